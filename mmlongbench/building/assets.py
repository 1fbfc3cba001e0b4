"""The assets stage: every image that some example shows, once; an image that stands in its place is whole."""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mmlongbench.building.dataset import Dataset, limits_of, open_dataset
from mmlongbench.building.records import record_shards
from mmlongbench.building.work import Shard, Work
from mmlongbench.documents.page_store import images_of
from mmlongbench.errors import BuildError
from mmlongbench.files import sha256_of, write_whole
from mmlongbench.release.layout import IMAGES

PICTURES = 256
"""Pictures of a shard."""


def asset_shards(work: Work, dataset: Dataset) -> list[Shard]:
    """One shard a document that is shown, then the pictures in blocks."""
    name = dataset.spec.name
    shown = {path.split("/")[-2] for path in needed_images(work, dataset)}
    documents = [Shard("assets", name, document) for document in dataset.plan.documents if document in shown]
    pictures = len(needed_pictures(work, dataset))
    blocks = [(f"{start // PICTURES:05d}", min(PICTURES, pictures - start)) for start in range(0, pictures, PICTURES)]
    return [*documents, *(Shard("pictures", name, block, steps) for block, steps in blocks)]


def render_document(work: Work, shard: Shard) -> Iterator[Any]:
    """One document: each page that any example shows, rendered once; a page that stands there is whole."""
    dataset = open_dataset(work.out, shard.dataset)
    file = dataset.plan.documents[shard.name]
    pages = {page.index: page for page in dataset.world.pages(file.id)}
    needed = sorted(index for index, page in pages.items() if page.path in needed_images(work, dataset))
    missing = [index for index in needed if not (work.out / IMAGES / pages[index].path).is_file()]
    spec = dataset.spec
    paths, sizes = ([pages[i].path for i in missing], [(pages[i].width, pages[i].height) for i in missing])
    made = images_of(file.pages, paths, missing, sizes, spec.pages.dpi, spec.pages.quality, limits_of(spec))
    for index, size, data in made:
        planned = (pages[index].width, pages[index].height)
        if size != planned:
            raise BuildError(f"{file.id}, page {index}: rendered as {size}, planned as {planned}; report this")
        write_whole(work.out / IMAGES / pages[index].path, [data])
    yield from (_described(work, pages[index].path) for index in needed)


def copy_pictures(work: Work, shard: Shard) -> Iterator[Any]:
    """A block of pictures: the source's own bytes, or those of the upright picture."""
    dataset = open_dataset(work.out, shard.dataset)
    first = int(shard.name) * PICTURES
    for path, name in needed_pictures(work, dataset)[first : first + PICTURES]:
        target, data = work.out / IMAGES / path, dataset.world.image(name).released()
        if not target.is_file():
            write_whole(target, [data])
        elif hashlib.sha256(data).hexdigest() != sha256_of(target):
            raise BuildError(f"{path}: another dataset of this release has another picture there; build them apart")
        yield _described(work, path)


def _described(work: Work, path: str) -> dict[str, Any]:
    file = work.out / IMAGES / path
    return {"path": path, "bytes": file.stat().st_size, "sha256": sha256_of(file)}


def needed_images(work: Work, dataset: Dataset) -> frozenset[str]:
    """The pages that some example of a dataset shows, by released path."""
    return _needed(work.out, dataset.spec.name, dataset.spec.lengths)[0]


def needed_pictures(work: Work, dataset: Dataset) -> tuple[tuple[str, str], ...]:
    """(released path, name in the source) of the pictures that some example shows, sorted.

    Raises:
        BuildError: two pictures of the source have one name in the release.

    """
    return _needed(work.out, dataset.spec.name, dataset.spec.lengths)[1]


@cache
def _needed(out: Path, name: str, lengths: tuple[int, ...]) -> tuple[frozenset[str], tuple[tuple[str, str], ...]]:
    work = Work(out)
    by_content = getattr(open_dataset(out, name).reader, "names_images_by_content", False)
    pages: set[str] = set()
    pictures: dict[str, str] = {}
    for shard in record_shards(out, name, lengths):
        shown = work.last(shard)
        pages.update(shown["pages"])
        for path, origins in shown["pictures"].items():
            for origin in origins:
                other = pictures.setdefault(path, origin)
                if by_content:  # one path, one content: whichever name, so the first
                    pictures[path] = min(origin, other)
                elif other != origin:
                    raise BuildError(f"two pictures would be {path}: {pictures[path]!r} and {origin!r}; rename one")
    return frozenset(pages.difference(pictures)), tuple(sorted(pictures.items()))


def forget_assets() -> None:
    """Forget which images are needed: a new build may use the same folder."""
    _needed.cache_clear()

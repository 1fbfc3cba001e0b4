"""The assets stage: every image that some example shows, made once, with its hash as it was made."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.build_plan import load_interrupted_plan
from mmlongbench.building.dataset import Dataset, limits_of, open_dataset
from mmlongbench.building.fingerprints import DocumentFile, parts_of
from mmlongbench.building.records import record_shards
from mmlongbench.building.source_files import source_files
from mmlongbench.documents.page_store import images_of
from mmlongbench.errors import BuildError, ReaderDiedError, TimeLimitError
from mmlongbench.io.atomic import sha256_of, write_whole
from mmlongbench.manifest.registry import reader_type
from mmlongbench.release.layout import IMAGES
from mmlongbench.task.sources import Page

PICTURES = 256
"""Pictures of a shard."""


def asset_shards(build_dir: BuildDir, dataset: Dataset) -> list[Shard]:
    """One shard a document that is shown, then the pictures in blocks."""
    name = dataset.spec.name
    shown = {path.split("/")[-2] for path in needed_images(build_dir, dataset)}
    documents = [Shard("assets", name, document) for document in dataset.plan.documents if document in shown]
    pictures = len(needed_pictures(build_dir, dataset))
    blocks = [(f"{start // PICTURES:05d}", min(PICTURES, pictures - start)) for start in range(0, pictures, PICTURES)]
    return [*documents, *(Shard("pictures", name, block, steps) for block, steps in blocks)]


@contextmanager
def reading(build_dir: BuildDir, dataset: str, file: DocumentFile) -> Iterator[None]:
    """Make sure that what the block reads of a document is what was fingerprinted, and name it where it takes too long.

    Raises:
        SourceChangedError: a file of the document has changed.
        BuildError: a page takes too long, or the process that reads the document dies at it.

    """
    try:
        with source_files(build_dir.out).unchanged(*parts_of(file.pages)):
            yield
    except TimeLimitError as error:
        raise BuildError(
            f"dataset {dataset!r}, document {file.id!r}: {error.what}; {excluding(file.id)}, or raise "
            "limits.seconds_a_page, and the same command goes on"
        ) from error
    except ReaderDiedError as error:
        raise BuildError(f"dataset {dataset!r}, document {file.id!r}: {error}: {excluding(file.id)}") from error


def excluding(id: str) -> str:
    """How a document is left out, its id quoted so that YAML reads it as a string."""
    return f"exclude it (`exclude: [{json.dumps(id, ensure_ascii=False)}]` in the manifest, and a new folder)"


def render_document(build_dir: BuildDir, shard: Shard) -> Iterator[Any]:
    """One document: each page that any example shows, rendered once.

    A page that stands there is kept only if a shard of another dataset, which shows the same document, has made it:
    of any other nobody knows what it is.
    """
    dataset = open_dataset(build_dir.out, shard.dataset)
    file, shown = dataset.plan.documents[shard.name], needed_images(build_dir, dataset)
    pages = [page for page in dataset.world.pages(file.id) if page.path in shown]
    made = {path: line for path, line in _made_by_others(build_dir, dataset, shard) if _is_made(build_dir, line)}
    with reading(build_dir, shard.dataset, file):
        made |= _rendered(build_dir, dataset, shard.name, [page for page in pages if page.path not in made])
    yield from (made[page.path] for page in pages)


def _rendered(build_dir: BuildDir, dataset: Dataset, name: str, pages: Sequence[Page]) -> dict[str, dict[str, Any]]:
    """Render pages of a document, and write them; what was written, by path."""
    file, spec = dataset.plan.documents[name], dataset.spec
    paths, sizes = [page.path for page in pages], [(page.width, page.height) for page in pages]
    numbers = {page.index: page for page in pages}
    made = {}
    images = images_of(file.pages, paths, list(numbers), sizes, spec.pages.dpi, spec.pages.quality, limits_of(spec))
    for index, size, data in images:
        page = numbers[index]
        if size != (page.width, page.height):
            planned = (page.width, page.height)
            raise BuildError(f"{file.id}, page {index}: rendered as {size}, planned as {planned}; report this")
        write_whole(build_dir.out / IMAGES / page.path, [data])
        made[page.path] = _described(page.path, data)
    return made


def _made_by_others(build_dir: BuildDir, dataset: Dataset, shard: Shard) -> Iterator[tuple[str, dict[str, Any]]]:
    """The images that shards of other datasets have made of the same document, by path."""
    for name in _sharing(build_dir.out, dataset.reader.image_folder):
        other = Shard("assets", name, shard.name)
        if name != shard.dataset and build_dir.is_done(other):
            yield from ((line["path"], line) for line in build_dir.read(other))


@cache
def _sharing(out: Path, folder: str) -> list[str]:
    """The datasets whose images stand in a folder of the release."""
    saved = load_interrupted_plan(BuildDir(out))
    plans = saved.plans.values() if saved else ()
    return [plan.spec.name for plan in plans if reader_type(plan.spec.reader).image_folder == folder]


def _is_made(build_dir: BuildDir, line: dict[str, Any]) -> bool:
    """Whether an image stands there as it was made."""
    path = build_dir.out / IMAGES / line["path"]
    return path.is_file() and sha256_of(path) == str(line["sha256"])


def copy_pictures(build_dir: BuildDir, shard: Shard) -> Iterator[Any]:
    """A block of pictures: the source's own bytes, or those of the upright picture."""
    dataset = open_dataset(build_dir.out, shard.dataset)
    first = int(shard.name) * PICTURES
    for path, name in needed_pictures(build_dir, dataset)[first : first + PICTURES]:
        target, data = build_dir.out / IMAGES / path, dataset.world.image(name).released()
        if not target.is_file():
            write_whole(target, [data])
        elif hashlib.sha256(data).hexdigest() != sha256_of(target):
            raise BuildError(
                f"{target}: another picture stands there; if another dataset of this release has made it, build them "
                "apart, else remove it and run the command again"
            )
        yield _described(path, data)


def _described(path: str, data: bytes) -> dict[str, Any]:
    """An image as the lock has it, by the bytes that were made."""
    return {"path": path, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def needed_images(build_dir: BuildDir, dataset: Dataset) -> frozenset[str]:
    """Return the released paths of the pages that the examples of a dataset show."""
    return _needed(build_dir.out, dataset.spec.name, dataset.spec.lengths)[0]


def needed_pictures(build_dir: BuildDir, dataset: Dataset) -> tuple[tuple[str, str], ...]:
    """(released path, name in the source) of the pictures that some example shows, sorted.

    Raises:
        BuildError: two pictures of the source have one name in the release.

    """
    return _needed(build_dir.out, dataset.spec.name, dataset.spec.lengths)[1]


@cache
def _needed(out: Path, name: str, lengths: tuple[int, ...]) -> tuple[frozenset[str], tuple[tuple[str, str], ...]]:
    build_dir = BuildDir(out)
    by_content = open_dataset(out, name).reader.names_images_by_content
    pages: set[str] = set()
    pictures: dict[str, str] = {}
    for shard in record_shards(out, name, lengths):
        shown = build_dir.last(shard)
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
    _sharing.cache_clear()

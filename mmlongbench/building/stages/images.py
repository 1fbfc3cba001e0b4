"""The images stage: makes every image that an example shows, each once, and yields its hash."""

import hashlib
from collections.abc import Iterator, Sequence

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import IMAGES as IMAGE_LINES
from mmlongbench.building.shard_results import MadeImage
from mmlongbench.building.source_files import DocumentFile
from mmlongbench.building.stages.documents import reading
from mmlongbench.documents.joined_pages import join
from mmlongbench.documents.page_parts import WHOLE_PAGE
from mmlongbench.documents.pages import crops_of, images_of
from mmlongbench.errors import BuildError
from mmlongbench.io.files import sha256_of, write_whole
from mmlongbench.release.layout import IMAGES
from mmlongbench.task.sources import Page

PAGES, PICTURES = "pages", "pictures"
"""The first part of a shard's name: `pages` if the shard renders a document, `pictures` if it copies pictures."""
PICTURES_OF_SHARD = 256
"""How many pictures a shard copies at most."""
_BEST = 100
"""The JPEG quality of pages that are joined, which are encoded once more afterwards."""


def image_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each document that is shown, then one shard for each block of pictures."""
    pages, pictures = session.needed_images(name)
    shown = {path.split("/")[-2] for path in pages}
    shards = [Shard("images", name, f"{PAGES}/{doc}") for doc in session.plans[name].documents if doc in shown]
    for block, first in enumerate(range(0, len(pictures), PICTURES_OF_SHARD)):
        steps = min(PICTURES_OF_SHARD, len(pictures) - first)
        shards.append(Shard("images", name, f"{PICTURES}/{block:05d}", steps))
    return shards


def _render_document(session: Session, shard: Shard, name: str) -> Iterator[MadeImage]:
    """Make the images of a document that are in an example, each once: its pages, crops of them, or joined pages.

    An existing file is kept only if a shard of another dataset has made it from the same document. Any other file has
    unknown content and is replaced.
    """
    dataset, images = session.dataset(shard.dataset), session.build_dir.out / IMAGES
    file, (shown, _) = dataset.plan.documents[name], session.needed_images(shard.dataset)
    document = dataset.sources.documents[file.id]
    listed = [*(page.path for page in document.pages), *(crop.path for crop in document.crops)]
    paths = [path for path in dict.fromkeys(listed) if path in shown]
    made: dict[str, MadeImage] = {}
    folders = {name: plan.bound.reader_type.image_folder for name, plan in session.plans.items()}
    for other in (Shard("images", name, shard.name) for name in folders if name != shard.dataset):
        if folders[other.dataset] == folders[shard.dataset] and session.build_dir.is_done(other):
            for line in session.build_dir.read(other, IMAGE_LINES):
                if (images / line.path).is_file() and sha256_of(images / line.path) == line.sha256:
                    made[line.path] = line
    with reading(session.source_files, shard.dataset, file):
        for path, data in make_pages(dataset, file, [path for path in paths if path not in made]):
            write_whole(images / path, [data])
            made[path] = MadeImage(path, len(data), hashlib.sha256(data).hexdigest())
    yield from (made[path] for path in paths)


def make_images(session: Session, shard: Shard) -> Iterator[MadeImage]:
    """Make the pages of a document, or write a block of pictures: the bytes of the source, or the picture encoded anew
    (see `Picture.released`).
    """
    kind, _, name = shard.name.partition("/")
    if kind == PAGES:
        yield from _render_document(session, shard, name)
        return
    first = int(name) * PICTURES_OF_SHARD
    dataset, build_dir = session.dataset(shard.dataset), session.build_dir
    _, pictures = session.needed_images(shard.dataset)
    for path, origin in pictures[first : first + PICTURES_OF_SHARD]:
        target, data = build_dir.file(f"{IMAGES}/{path}"), dataset.sources.images.released(origin)
        sha256 = hashlib.sha256(data).hexdigest()
        if not target.is_file():
            write_whole(build_dir.out / IMAGES / path, [data])
        elif sha256 != sha256_of(target):
            raise BuildError(
                f"{target}: already holds another picture; if another dataset of this release made it, build them "
                "apart; if not, remove it and run the command again"
            )
        yield MadeImage(path, len(data), sha256)


def make_pages(dataset: Dataset, file: DocumentFile, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield (path, bytes) of the images of a document that have these paths in the release: its pages, crops of them,
    or joined pages.
    """
    document, spec, joining = dataset.sources.documents[file.id], dataset.spec, dataset.builder.spec.join_pages
    dpi, quality, limits, wanted = spec.pages.dpi, spec.pages.quality, spec.limits, frozenset(paths)
    pages = [page for page in document.pages if page.path in wanted]
    crops = [crop for crop in document.crops if crop.path in wanted and crop.kind != WHOLE_PAGE]

    def drawn(chosen: Sequence[Page], jpeg_quality: int) -> Iterator[tuple[str, tuple[int, int], bytes]]:
        names = {page.index: page.path for page in chosen}
        sizes = [(page.width, page.height) for page in chosen]
        made = images_of(file.pages, list(names.values()), list(names), sizes, dpi, jpeg_quality, limits)
        for number, size, data in made:
            yield names[number], size, data

    def images() -> Iterator[tuple[str, tuple[int, int], bytes]]:
        if joining:
            for image in pages:
                single = document.joined[image.index]
                sizes = [(page.width, page.height) for page in single]
                yield image.path, *join((data for _, _, data in drawn(single, _BEST)), sizes, joining.pixels, quality)
        else:
            yield from drawn(pages, quality)
        boxes = [(crop.page, crop.box) for crop in crops]
        for place, size, data in crops_of(file.pages, boxes, dpi, quality, limits):
            yield crops[place].path, size, data

    planned = {page.path: (page.width, page.height) for page in pages}
    planned |= {crop.path: (crop.width, crop.height) for crop in crops}
    for path, size, data in images():
        if size != planned[path]:
            raise BuildError(f"{document.id}, {path}: rendered as {size}, planned as {planned[path]}; report this")
        yield path, data

"""The images stage: makes every image that an example shows, each once, and yields its hash."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.lines import IMAGES as IMAGE_LINES
from mmlongbench.building.lines import MadeImage
from mmlongbench.building.session import Session
from mmlongbench.building.source_files import DocumentFile
from mmlongbench.building.stages.documents import reading
from mmlongbench.documents.joined_pages import JoinPages, join
from mmlongbench.documents.page_parts import WHOLE_PAGE
from mmlongbench.documents.pages import Pages, crops_of, images_of
from mmlongbench.errors import BuildError
from mmlongbench.io.files import sha256_of, write_whole
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.release.layout import IMAGES
from mmlongbench.task.sources import Document, Page

PAGES, PICTURES = "pages", "pictures"
"""The first part of a shard's name: `pages` if the shard renders a document, `pictures` if it copies pictures."""
TOGETHER = 256
"""How many pictures a shard copies at most."""
_BEST = 100
"""The JPEG quality of pages that are joined, which are encoded once more afterwards."""

_Drawn: TypeAlias = tuple[str, tuple[int, int], bytes]
"""The path of an image in the release, its (width, height), and its bytes."""


def image_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each document that is shown, then one shard for each block of pictures."""
    pages, pictures = session.needed_images(name)
    shown = {path.split("/")[-2] for path in pages}
    documents = [Shard("images", name, f"{PAGES}/{doc}") for doc in session.plans[name].documents if doc in shown]
    count = len(pictures)
    blocks = [(f"{start // TOGETHER:05d}", min(TOGETHER, count - start)) for start in range(0, count, TOGETHER)]
    return [*documents, *(Shard("images", name, f"{PICTURES}/{block}", steps) for block, steps in blocks)]


def make_images(session: Session, shard: Shard) -> Iterator[MadeImage]:
    """Make the pages of a document, or a block of pictures."""
    kind, _, name = shard.name.partition("/")
    yield from _render_document(session, shard, name) if kind == PAGES else _copy_pictures(session, shard, int(name))


def _render_document(session: Session, shard: Shard, name: str) -> Iterator[MadeImage]:
    """Make the images of a document that are in an example, each once: its pages, crops of them, or joined pages.

    An existing file is kept only if a shard of another dataset has made it from the same document. Any other file has
    unknown content and is replaced.
    """
    dataset, build_dir = session.dataset(shard.dataset), session.build_dir
    file, (shown, _) = dataset.plan.documents[name], session.needed_images(shard.dataset)
    document = dataset.sources.documents[file.id]
    listed = [*(page.path for page in document.pages), *(crop.path for crop in document.crops)]
    paths = [path for path in dict.fromkeys(listed) if path in shown]
    made = {line.path: line for line in _made_by_others(session, shard) if _is_there(build_dir, line)}
    with reading(session.source_files, shard.dataset, file):
        for path, data in make_pages(dataset, file, [path for path in paths if path not in made]):
            write_whole(build_dir.out / IMAGES / path, [data])
            made[path] = _described(path, data)
    yield from (made[path] for path in paths)


def _made_by_others(session: Session, shard: Shard) -> Iterator[MadeImage]:
    """Yield the images that shards of other datasets have made of the same document."""
    folders = {name: plan.bound.reader_type.image_folder for name, plan in session.plans.items()}
    for name, folder in folders.items():
        other = Shard("images", name, shard.name)
        if name != shard.dataset and folder == folders[shard.dataset] and session.build_dir.is_done(other):
            yield from session.build_dir.read(other, IMAGE_LINES)


def _is_there(build_dir: BuildDir, line: MadeImage) -> bool:
    path = build_dir.out / IMAGES / line.path
    return path.is_file() and sha256_of(path) == line.sha256


def _copy_pictures(session: Session, shard: Shard, block: int) -> Iterator[MadeImage]:
    """Write a block of pictures: the bytes of the source, or the picture encoded anew (see `Picture.released`)."""
    dataset, build_dir = session.dataset(shard.dataset), session.build_dir
    _, pictures = session.needed_images(shard.dataset)
    for path, name in pictures[block * TOGETHER : (block + 1) * TOGETHER]:
        target, data = build_dir.file(f"{IMAGES}/{path}"), dataset.sources.images[name].released()
        if not target.is_file():
            write_whole(build_dir.out / IMAGES / path, [data])
        elif hashlib.sha256(data).hexdigest() != sha256_of(target):
            raise BuildError(
                f"{target}: already holds another picture; if another dataset of this release made it, build them "
                "apart; if not, remove it and run the command again"
            )
        yield _described(path, data)


def _described(path: str, data: bytes) -> MadeImage:
    return MadeImage(path, len(data), hashlib.sha256(data).hexdigest())


def make_pages(dataset: Dataset, file: DocumentFile, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield (path, bytes) of the images of a document that have these paths in the release: its pages, crops of them,
    or joined pages.

    Raises:
        BuildError: a page cannot be drawn or decoded, or an image has another size than was planned.

    """
    document, spec, join_pages = dataset.sources.documents[file.id], dataset.spec, dataset.builder.spec.join_pages
    wanted = frozenset(paths)
    pages = [page for page in document.pages if page.path in wanted]
    crops = [crop for crop in document.crops if crop.path in wanted and crop.kind != WHOLE_PAGE]
    planned = {page.path: (page.width, page.height) for page in pages}
    planned |= {crop.path: (crop.width, crop.height) for crop in crops}
    if join_pages:
        drawn = _draw_joined(file.pages, document, pages, spec, join_pages)
    else:
        drawn = _draw(file.pages, pages, spec, spec.pages.quality)
    boxes = [(crop.page, crop.box) for crop in crops]
    cropped = crops_of(file.pages, boxes, spec.pages.dpi, spec.pages.quality, spec.limits)
    for images in (drawn, ((crops[place].path, size, data) for place, size, data in cropped)):
        for path, size, data in images:
            if size != planned[path]:
                raise BuildError(f"{document.id}, {path}: rendered as {size}, planned as {planned[path]}; report this")
            yield path, data


def _draw(file: Pages, pages: Sequence[Page], spec: DatasetSpec, quality: int) -> Iterator[_Drawn]:
    by_number = {page.index: page.path for page in pages}
    sizes = [(page.width, page.height) for page in pages]
    drawn = images_of(file, list(by_number.values()), list(by_number), sizes, spec.pages.dpi, quality, spec.limits)
    return ((by_number[number], size, data) for number, size, data in drawn)


def _draw_joined(
    file: Pages, document: Document, images: Sequence[Page], spec: DatasetSpec, join_pages: JoinPages
) -> Iterator[_Drawn]:
    for image in images:
        pages = document.joined[image.index]
        sizes = [(page.width, page.height) for page in pages]
        drawn = (data for _, _, data in _draw(file, pages, spec, _BEST))
        size, data = join(drawn, sizes, join_pages.pixels, spec.pages.quality)
        yield image.path, size, data

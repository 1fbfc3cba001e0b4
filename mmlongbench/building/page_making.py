"""Makes the images of a document as they are released: pages, crops of pages, and joined pages."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from mmlongbench.documents.joined_pages import JoinPages, join
from mmlongbench.documents.page_parts import WHOLE_PAGE
from mmlongbench.documents.pages import Pages, crops_of, images_of
from mmlongbench.errors import BuildError
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.task.sources import Crop, Document, Page

_BEST = 100
"""The JPEG quality of pages that are joined, which are encoded once more afterwards."""

Made: TypeAlias = tuple[str, tuple[int, int], bytes]
"""The path of an image in the release, its (width, height), and its bytes."""


def make_pages(
    file: Pages, document: Document, paths: Sequence[str], spec: DatasetSpec, join_pages: JoinPages | None
) -> Iterator[Made]:
    """Yield the images of a document that have these paths.

    Raises:
        BuildError: a page cannot be drawn or decoded, or an image has another size than was planned.

    """
    wanted = frozenset(paths)
    pages = [page for page in document.pages if page.path in wanted]
    crops = [crop for crop in document.crops if crop.path in wanted and crop.kind != WHOLE_PAGE]
    planned = {page.path: (page.width, page.height) for page in pages}
    planned |= {crop.path: (crop.width, crop.height) for crop in crops}
    made = _joined(file, document, pages, spec, join_pages) if join_pages else _pages(file, pages, spec)
    for found in (made, _crops(file, crops, spec)):
        for path, size, data in found:
            if size != planned[path]:
                raise BuildError(f"{document.id}, {path}: rendered as {size}, planned as {planned[path]}; report this")
            yield path, size, data


def _pages(file: Pages, pages: Sequence[Page], spec: DatasetSpec, quality: int | None = None) -> Iterator[Made]:
    by_number = {page.index: page.path for page in pages}
    sizes = [(page.width, page.height) for page in pages]
    chosen = quality or spec.pages.quality
    found = images_of(file, list(by_number.values()), list(by_number), sizes, spec.pages.dpi, chosen, spec.limits)
    return ((by_number[number], size, data) for number, size, data in found)


def _crops(file: Pages, crops: Sequence[Crop], spec: DatasetSpec) -> Iterator[Made]:
    boxes = [(crop.page, crop.box) for crop in crops]
    found = crops_of(file, boxes, spec.pages.dpi, spec.pages.quality, spec.limits)
    return ((crops[place].path, size, data) for place, size, data in found)


def _joined(
    file: Pages, document: Document, images: Sequence[Page], spec: DatasetSpec, join_pages: JoinPages
) -> Iterator[Made]:
    for image in images:
        pages = document.joined[image.index]
        sizes = [(page.width, page.height) for page in pages]
        drawn = (data for _, _, data in _pages(file, pages, spec, _BEST))
        size, data = join(drawn, sizes, join_pages.pixels, spec.pages.quality)
        yield image.path, size, data

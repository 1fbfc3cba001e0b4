"""How often what a page paints would cover it, as MuPDF finds it without painting.

A fill of the whole page is a few bytes of content, and takes as long as the page has pixels. A path and a run of text
count as the rectangles around them, whatever is inside.
"""

from contextlib import suppress
from typing import Any

from pymupdf import mupdf

MAX_COUNTED = 500_000
"""Things painted that are counted: a few seconds of counting; what comes after them is left to the time of a page."""


class _Counter(mupdf.FzDevice2):  # type: ignore[misc]  # PyMuPDF has no types
    """A device of MuPDF that adds up areas in place of painting them."""

    def __init__(self, page: Any, most: float) -> None:  # noqa: ANN401
        super().__init__()
        for name in ("fill_path", "stroke_path", "fill_text", "stroke_text", "fill_shade", "fill_image"):
            getattr(self, f"use_virtual_{name}")()
        self.use_virtual_fill_image_mask()
        box = page.rect
        self._box = (box.x0, box.y0, box.x1, box.y1)
        self._page_area = max(1.0, abs(box.width * box.height))
        self._most = most * self._page_area
        self._area = 0.0
        self._counted = 0
        self.cookie = mupdf.FzCookie()

    @property
    def pages(self) -> float:
        """The sum of all areas / the area of the page."""
        return float(self._area / self._page_area)

    def fill_path(self, _: Any, path: Any, even_odd: int, matrix: Any, *more: Any) -> None:  # noqa: ANN401
        self._add(mupdf.ll_fz_bound_path(path, None, matrix))

    def stroke_path(self, _: Any, path: Any, stroke: Any, matrix: Any, *more: Any) -> None:  # noqa: ANN401
        self._add(mupdf.ll_fz_bound_path(path, stroke, matrix))

    def fill_text(self, _: Any, text: Any, matrix: Any, *more: Any) -> None:  # noqa: ANN401
        self._add(mupdf.ll_fz_bound_text(text, None, matrix))

    def stroke_text(self, _: Any, text: Any, stroke: Any, matrix: Any, *more: Any) -> None:  # noqa: ANN401
        self._add(mupdf.ll_fz_bound_text(text, stroke, matrix))

    def fill_shade(self, _: Any, shade: Any, matrix: Any, *more: Any) -> None:  # noqa: ANN401
        self._add(mupdf.ll_fz_bound_shade(shade, matrix))

    def fill_image(self, _: Any, image: Any, matrix: Any, *more: Any) -> None:  # noqa: ANN401
        self._add_unit(matrix)

    def fill_image_mask(self, _: Any, image: Any, matrix: Any, *more: Any) -> None:  # noqa: ANN401
        self._add_unit(matrix)

    def _add_unit(self, matrix: Any) -> None:  # noqa: ANN401
        """Add the rectangle around a unit square, as which pictures are painted."""
        left = matrix.e + min(0, matrix.a) + min(0, matrix.c)
        top = matrix.f + min(0, matrix.b) + min(0, matrix.d)
        width, height = abs(matrix.a) + abs(matrix.c), abs(matrix.b) + abs(matrix.d)
        self._add_box(left, top, left + width, top + height)

    def _add(self, found: Any) -> None:  # noqa: ANN401
        self._add_box(found.x0, found.y0, found.x1, found.y1)

    def _add_box(self, x0: float, y0: float, x1: float, y1: float) -> None:
        left, top, right, bottom = self._box
        width, height = min(x1, right) - max(x0, left), min(y1, bottom) - max(y0, top)
        if width > 0 and height > 0:
            self._area += width * height
        self._counted += 1
        if self._area > self._most or self._counted >= MAX_COUNTED:
            self.cookie.m_internal.abort = 1


def painted_pages(page: Any, most: float) -> float:  # noqa: ANN401
    """Return how often what a page paints would cover it; counting ends soon after the limit, or at a broken part."""
    counter = _Counter(page, most)
    with suppress(RuntimeError, ValueError):  # MuPDF's errors, of what it passes over when it paints
        mupdf.fz_run_page(page.this, counter, mupdf.FzMatrix(), counter.cookie)
        mupdf.fz_close_device(counter)
    return counter.pages

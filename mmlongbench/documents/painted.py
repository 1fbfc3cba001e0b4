"""Adds up the areas that a page would paint, as a multiple of the page's own area. MuPDF reports the areas; nothing is
painted.

A command that fills the whole page takes only a few bytes of a file, but the time to paint it grows with the pixels of
the page. A path and a run of text count as the rectangles around them, whatever is inside.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from pymupdf import mupdf

if TYPE_CHECKING:
    from mmlongbench.documents.mupdf_types import Box, Matrix, MuPDF, Page

MAX_COUNTED = 500_000
"""The maximum number of painted things that are counted. Counting so many takes a few seconds; the time limit of a page
covers the rest."""


_MUPDF: "MuPDF" = mupdf


class _Counter(mupdf.FzDevice2):  # type: ignore[misc]  # PyMuPDF has no types
    """A device of MuPDF that adds up areas instead of painting them."""

    def __init__(self, page: "Page", most: float) -> None:
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
        self.cookie = _MUPDF.FzCookie()

    @property
    def pages(self) -> float:
        """The sum of all areas divided by the area of the page."""
        return self._area / self._page_area

    def fill_path(self, _: object, path: object, even_odd: int, matrix: "Matrix", *more: object) -> None:
        self._add(_MUPDF.ll_fz_bound_path(path, None, matrix))

    def stroke_path(self, _: object, path: object, stroke: object, matrix: "Matrix", *more: object) -> None:
        self._add(_MUPDF.ll_fz_bound_path(path, stroke, matrix))

    def fill_text(self, _: object, text: object, matrix: "Matrix", *more: object) -> None:
        self._add(_MUPDF.ll_fz_bound_text(text, None, matrix))

    def stroke_text(self, _: object, text: object, stroke: object, matrix: "Matrix", *more: object) -> None:
        self._add(_MUPDF.ll_fz_bound_text(text, stroke, matrix))

    def fill_shade(self, _: object, shade: object, matrix: "Matrix", *more: object) -> None:
        self._add(_MUPDF.ll_fz_bound_shade(shade, matrix))

    def fill_image(self, _: object, image: object, matrix: "Matrix", *more: object) -> None:
        self._add_unit(matrix)

    def fill_image_mask(self, _: object, image: object, matrix: "Matrix", *more: object) -> None:
        self._add_unit(matrix)

    def _add_unit(self, matrix: "Matrix") -> None:
        """Add the rectangle around a transformed unit square, which is how pictures are painted."""
        left = matrix.e + min(0, matrix.a) + min(0, matrix.c)
        top = matrix.f + min(0, matrix.b) + min(0, matrix.d)
        width, height = abs(matrix.a) + abs(matrix.c), abs(matrix.b) + abs(matrix.d)
        self._add_box(left, top, left + width, top + height)

    def _add(self, found: "Box") -> None:
        self._add_box(found.x0, found.y0, found.x1, found.y1)

    def _add_box(self, x0: float, y0: float, x1: float, y1: float) -> None:
        left, top, right, bottom = self._box
        width, height = min(x1, right) - max(x0, left), min(y1, bottom) - max(y0, top)
        if width > 0 and height > 0:
            self._area += width * height
        self._counted += 1
        if self._area > self._most or self._counted >= MAX_COUNTED:
            self.cookie.m_internal.abort = 1


def painted_pages(page: "Page", most: float) -> float:
    """Return the sum of the areas that a page paints, divided by the area of the page.

    The addition stops when the sum is above `most`, after `MAX_COUNTED` things, or at a broken part of the page.
    """
    counter = _Counter(page, most)
    with suppress(RuntimeError, ValueError):  # MuPDF's errors about things that it skips when it paints
        _MUPDF.fz_run_page(page.this, counter, _MUPDF.FzMatrix(), counter.cookie)
        _MUPDF.fz_close_device(counter)
    return counter.pages

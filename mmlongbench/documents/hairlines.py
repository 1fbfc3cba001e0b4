"""Draws pages of PDFs with their hairlines.

MuPDF paints a line by how much of each pixel it covers, so a rule without a height has a fifteenth of its colour.
Viewers paint it one pixel wide. A page without such lines is painted as MuPDF paints it, to the byte.
"""

from contextlib import suppress

from pymupdf import mupdf

from mmlongbench.documents.mupdf import Matrix, Page, Pixmap, Stroke, pymupdf

MAX_COUNTED = 500_000  # so many painted things of a page are looked at for hairlines
MAX_LINES = 10_000  # so many fills of a page are drawn as hairlines; further ones stay as MuPDF paints them
_THIN = 0.5  # a line that covers less than this share of a pixel's width is a hairline
_SHORT = 8  # in pixels; what is shorter is no line but a part of a drawing or of a letter
_LEAST_PAINTED = 1 / 15  # the share of a pixel that MuPDF paints for a fill without a height


class _Hairlines(mupdf.FzDevice2):  # type: ignore[misc]  # PyMuPDF has no types
    """A device of MuPDF that finds hairlines instead of painting."""

    def __init__(self) -> None:
        super().__init__()
        self.use_virtual_fill_path()
        self.use_virtual_stroke_path()
        self.cookie = mupdf.FzCookie()
        self.fills: list[tuple[float, float, float, float]] = []
        self.has_strokes = False
        self._counted = 0

    def fill_path(self, _: object, path: object, even_odd: int, matrix: Matrix, *more: object) -> None:
        x0, y0, x1, y1, short, long = self._sides(path, matrix)
        if short < _THIN and long >= _SHORT and len(self.fills) < MAX_LINES:
            self.fills.append((x0, y0, x1, y1))

    def stroke_path(self, _: object, path: object, stroke: Stroke, matrix: Matrix, *more: object) -> None:
        is_thin = stroke.linewidth * mupdf.ll_fz_matrix_expansion(matrix) < _THIN
        self.has_strokes |= is_thin and self._sides(path, matrix)[-1] >= _SHORT

    def _sides(self, path: object, matrix: Matrix) -> tuple[float, float, float, float, float, float]:
        """Return the corners of a path's box, and the length of its shorter and of its longer side."""
        self._counted += 1
        self.cookie.m_internal.abort = int(self._counted >= MAX_COUNTED)
        box = mupdf.ll_fz_bound_path(path, None, matrix)
        x0, y0, x1, y1 = box.x0, box.y0, box.x1, box.y1  # each look-up crosses into C++
        return x0, y0, x1, y1, min(x1 - x0, y1 - y0), max(x1 - x0, y1 - y0)


def drawn(page: Page, dpi: int, clip: object = None) -> Pixmap:
    """Return the pixels of a page, or of a part of it, with every hairline at least one pixel wide."""
    device, zoom = _Hairlines(), mupdf.FzMatrix(dpi / 72, 0, 0, dpi / 72, 0, 0)
    with suppress(RuntimeError, ValueError):  # MuPDF's errors about things that it skips when it paints
        mupdf.fz_run_page(page.this, device, zoom, device.cookie)
        mupdf.fz_close_device(device)
    pymupdf.TOOLS.set_graphics_min_line_width(int(device.has_strokes))
    try:
        pixels = page.get_pixmap(dpi=dpi, clip=clip, alpha=False)
        if device.fills:
            # PyMuPDF's way leaves out what has no height inside of a clip; this one does not
            painted = pymupdf.Pixmap(pymupdf.csRGB, pixels.irect, False)
            painted.clear_with(255)
            painter = mupdf.fz_new_draw_device(zoom, painted.this)
            mupdf.fz_run_page(page.this, painter, mupdf.FzMatrix(), mupdf.FzCookie())
            mupdf.fz_close_device(painter)
            _darken(pixels, painted, device.fills)
    finally:
        pymupdf.TOOLS.set_graphics_min_line_width(0)
    return pixels


def _darken(pixels: Pixmap, painted: Pixmap, fills: list[tuple[float, float, float, float]]) -> None:
    """Give hairlines the colour of which MuPDF has painted a part, where it has: where the pixels on both sides are
    equal, and those of the line differ. What covers or clips a line stays.
    """
    import numpy as np

    shape = pixels.height, pixels.width, 3
    image = np.frombuffer(pixels.samples_mv, np.uint8).reshape(shape)
    before = np.frombuffer(painted.samples, np.uint8).reshape(shape).astype(np.int16)
    for x0, y0, x1, y1 in fills:
        x0, y0, x1, y1 = x0 - pixels.x, y0 - pixels.y, x1 - pixels.x, y1 - pixels.y
        is_flat = y1 - y0 < x1 - x0
        rows, old = (array if is_flat else array.transpose(1, 0, 2) for array in (image, before))
        (low, high), (left, right) = ((y0, y1), (x0, x1)) if is_flat else ((x0, x1), (y0, y1))
        first, last, begin, end = int(low), int(high), max(0, int(left)), max(0, int(right) + 1)
        if not 1 <= first <= last < len(rows) - 1:
            continue
        ground = old[first - 1, begin:end]
        line = old[first : last + 1, begin:end] - ground
        is_line = (ground == old[last + 1, begin:end]).all(axis=-1) & line.any(axis=(0, -1))
        full = ground + line.sum(axis=0) / max(high - low, _LEAST_PAINTED)
        strongest = first + int(np.abs(line).sum(axis=(1, 2)).argmax())
        rows[strongest, begin:end][is_line] = full.clip(0, 255).round()[is_line]

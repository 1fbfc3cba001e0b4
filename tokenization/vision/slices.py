"""Slices of about one resolution each, beside the whole: the rules of MiniCPM-V."""

import functools
import math


def slice_grid(width: int, height: int, *, max_slices: int, resolution: int) -> tuple[int, int] | None:
    """(columns, rows) closest in log aspect ratio, of one slice more or less than the area asks for; None for none.

    Of two equally close ones, that with more rows.
    """
    slices = min(math.ceil(width * height / resolution**2), max_slices)
    if slices <= 1:
        return None
    aspect = math.log(width / height)
    return min(_candidates(slices, max_slices), key=lambda candidate: abs(aspect - candidate[0]))[1]


def numbered_slices(
    width: int, height: int, *, max_slices: int, resolution: int, per_slice: int, slice_markers: int, markers: int
) -> int:
    """Count as MiniCPM-V 2.6 does: the whole, then rows of slices with a newline between, all of one size.

    Args:
        width: pixels.
        height: pixels.
        max_slices: the most slices.
        resolution: side in pixels of the square whose area a slice should have.
        per_slice: tokens of the whole, and of each slice.
        slice_markers: tokens around a slice.
        markers: tokens around the whole, and its number when that has one digit.

    """
    grid = slice_grid(width, height, max_slices=max_slices, resolution=resolution)
    if grid is None:
        return markers + per_slice
    return markers + per_slice + math.prod(grid) * (per_slice + slice_markers) + grid[1] - 1


def sized_slices(
    width: int, height: int, *, max_slices: int, resolution: int, cell: int, slice_markers: int, markers: int
) -> int:
    """Count as MiniCPM-V 4.6 does: as before, but whole and slices keep their aspect ratio.

    Args:
        width: pixels.
        height: pixels.
        max_slices: the most slices.
        resolution: side in pixels of the square whose area a slice should have.
        cell: side in pixels of what becomes one token; the sides of whole and slices are multiples of it.
        slice_markers: tokens around a slice.
        markers: tokens around the whole, and its number when that has one digit.

    """
    grid = slice_grid(width, height, max_slices=max_slices, resolution=resolution)
    tokens = markers + _cells(*_scaled(width, height, resolution), cell)
    if grid is None:
        return tokens
    columns, rows = grid
    part = _multiple(width, columns) / columns, _multiple(height, rows) / rows
    return tokens + columns * rows * (_cells(*_scaled(*part, resolution), cell) + slice_markers) + rows - 1


def _scaled(width: float, height: float, resolution: int) -> tuple[int, int]:
    """Sides in pixels at about this resolution and the same aspect ratio."""
    aspect = width / height
    scaled_height = int(resolution / math.sqrt(aspect))
    return int(scaled_height * aspect), scaled_height


def _cells(width: float, height: float, cell: int) -> int:
    """Tokens of a picture whose sides are first rounded to multiples of what is merged."""
    return math.prod(_multiple(side, cell) // cell for side in (width, height))


def _multiple(side: float, unit: int) -> int:
    """The multiple of `unit` closest to a side, at least one of it."""
    return max(round(side / unit) * unit, unit)


@functools.cache
def _candidates(slices: int, most: int) -> tuple[tuple[float, tuple[int, int]], ...]:
    """(log of columns / rows, grid) of each grid of about so many slices; more rows first."""
    counts = [count for count in (slices - 1, slices, slices + 1) if 1 < count <= most]
    found = [(columns, count // columns) for count in counts for columns in range(1, count + 1) if not count % columns]
    return tuple((math.log(columns / rows), (columns, rows)) for columns, rows in found)

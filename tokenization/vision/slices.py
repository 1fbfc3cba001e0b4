"""Slices of about the same resolution, and the whole image: the rules of MiniCPM-V."""

import functools
import math


def slice_grid(width: int, height: int, *, max_slices: int, resolution: int) -> tuple[int, int] | None:
    """Return (columns, rows) of the grid whose aspect ratio is closest to the image's; None if the image is not cut.

    The grid may have one slice more or less than the area needs. Logarithms of aspect ratios are compared. Of equally
    close grids, the one with the fewest slices is returned and, of equal numbers of slices, the one with the most rows.
    """
    slices = min(math.ceil(width * height / resolution**2), max_slices)
    if slices <= 1:
        return None
    aspect = math.log(width / height)
    return min(_candidates(slices, max_slices), key=lambda candidate: abs(aspect - candidate[0]))[1]


def numbered_slices(
    width: int, height: int, *, max_slices: int, resolution: int, per_slice: int, slice_markers: int, markers: int
) -> int:
    """Count like MiniCPM-V 2.6: the whole image, then rows of slices of one size with a newline between rows.

    Args:
        width: pixels.
        height: pixels.
        max_slices: the maximum number of slices.
        resolution: side in pixels of a square with the area of a slice.
        per_slice: tokens of the whole image, and of each slice.
        slice_markers: tokens around a slice.
        markers: tokens around the whole image, including its number if that has one digit.

    """
    grid = slice_grid(width, height, max_slices=max_slices, resolution=resolution)
    if grid is None:
        return markers + per_slice
    return markers + per_slice + math.prod(grid) * (per_slice + slice_markers) + grid[1] - 1


def sized_slices(
    width: int, height: int, *, max_slices: int, resolution: int, cell: int, slice_markers: int, markers: int
) -> int:
    """Count like MiniCPM-V 4.6: as in `numbered_slices`, but the whole image and the slices keep their aspect ratio.

    Args:
        width: pixels.
        height: pixels.
        max_slices: the maximum number of slices.
        resolution: side in pixels of a square with the area of a slice.
        cell: side in pixels of the area of one token; the sides of the image and of slices are multiples of this.
        slice_markers: tokens around a slice.
        markers: tokens around the whole image, including its number if that has one digit.

    """
    grid = slice_grid(width, height, max_slices=max_slices, resolution=resolution)
    tokens = markers + _cells(*_scaled(width, height, resolution), cell)
    if grid is None:
        return tokens
    columns, rows = grid
    part = _multiple(width, columns) / columns, _multiple(height, rows) / rows
    return tokens + columns * rows * (_cells(*_scaled(*part, resolution), cell) + slice_markers) + rows - 1


def _scaled(width: float, height: float, resolution: int) -> tuple[int, int]:
    """Return the sides in pixels of a picture with the same aspect ratio and about `resolution` squared pixels."""
    aspect = width / height
    scaled_height = int(resolution / math.sqrt(aspect))
    return int(scaled_height * aspect), scaled_height


def _cells(width: float, height: float, cell: int) -> int:
    """Return the tokens of a picture, whose sides are first rounded to multiples of the side of a cell."""
    return math.prod(_multiple(side, cell) // cell for side in (width, height))


def _multiple(side: float, unit: int) -> int:
    """Return the multiple of `unit` closest to a side, at least one unit."""
    return max(round(side / unit) * unit, unit)


@functools.cache
def _candidates(slices: int, most: int) -> tuple[tuple[float, tuple[int, int]], ...]:
    """Return (logarithm of columns / rows, (columns, rows)) of each grid with `slices` slices, one less or one more. Of
    equal numbers of slices, the grid with more rows comes first.
    """
    counts = [count for count in (slices - 1, slices, slices + 1) if 1 < count <= most]
    found = [(columns, count // columns) for count in counts for columns in range(1, count + 1) if not count % columns]
    return tuple((math.log(columns / rows), (columns, rows)) for columns, rows in found)

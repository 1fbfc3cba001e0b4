"""Images at their own resolution: one token for each cell of pixels, within limits."""

import functools
import math

from tokenization.images import PatchRule, Rounding


def long_side_tiles(width: int, height: int, *, long_side: int, tile: int, per_tile: int) -> int:
    """Count like Idefics3, which also enlarges images: rows of tiles, in which each tile has two markers, then an
    overview. A single tile is left out, because it would repeat the overview.

    Args:
        width: pixels.
        height: pixels.
        long_side: pixels to which the long side is scaled.
        tile: side of a tile in pixels; both sides of the scaled image are stretched to whole numbers of tiles.
        per_tile: tokens of a tile without its markers.

    """
    aspect = width / height
    if width >= height:
        width, height = long_side, _even(int(long_side / aspect))
        aspect = width / height
        columns = -(-width // tile)
        rows = -(-int(columns * tile / aspect) // tile)
    else:
        width, height = _even(int(long_side * aspect)), long_side
        aspect = width / height
        rows = -(-height // tile)
        columns = -(-int(rows * tile * aspect) // tile)
    split = rows * (columns * (per_tile + 2) + 1) if columns * rows > 1 else 0
    return split + per_tile + 3  # the newline before the overview and the newline of the last row are one token


def _even(side: int) -> int:
    """Return an odd number of pixels plus 1, and an even number unchanged; but 1 for 0."""
    return max(side + side % 2, 1)


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


_rule = functools.cache(PatchRule)


def patch_cells(
    width: int, height: int, *, patch: int, merge: int, min_pixels: int, max_pixels: int, rounding: Rounding = "round"
) -> int:
    """Count the cells of `PatchRule`, which also counts an image whose extreme aspect ratio the model would refuse."""
    return _rule(patch, merge, rounding, min_pixels, max_pixels).tokens(width, height)


def native_grid(
    width: int,
    height: int,
    *,
    patch: int,
    merge: int,
    min_pixels: int,
    max_pixels: int,
    max_aspect: int,
    markers: int,
    frames: int = 1,
    min_side: int = 1,
) -> int:
    """Count like Qwen2-VL and its successors: the cells of the image, and the markers around the image.

    Args:
        width: pixels.
        height: pixels.
        patch: side of a patch in pixels.
        merge: patches along the side of a cell.
        min_pixels: an image whose cells cover fewer pixels is enlarged.
        max_pixels: an image whose cells cover more pixels is shrunk.
        max_aspect: the largest ratio of long to short side that is accepted.
        markers: tokens around the image.
        frames: how often the pixels of the image count for the limits (GLM treats an image as a video of two frames).
        min_side: an image with a shorter side, in pixels, is enlarged first.

    """
    if min(width, height) < min_side:
        scale = max(min_side / height, min_side / width)
        width, height = int(width * scale), int(height * scale)
    aspect = max(width, height) / min(width, height)
    if aspect > max_aspect:
        raise ValueError(f"its long side is {aspect:g} times the short one, at most {max_aspect} are accepted")
    least, most = min_pixels // frames, max_pixels // frames
    return patch_cells(width, height, patch=patch, merge=merge, min_pixels=least, max_pixels=most) + markers


def broken_rows(width: int, height: int, *, patch: int, merge: int, max_side: int) -> int:
    """Count like Pixtral: the long side is shrunk to at most `max_side` pixels, cells are rounded up, and a break or
    end token follows each row.
    """
    shrink = max(width / max_side, height / max_side)
    if shrink > 1:
        width, height = math.floor(width / shrink), math.floor(height / shrink)
    if min(width, height) < 1:
        raise ValueError(f"shrunk to a long side of {max_side} pixels, its short side has no pixel left")
    columns, rows = (-(-side // (patch * merge)) for side in (width, height))
    return (columns + 1) * rows

"""The rules of hosted models, as their vendors document them. None was compared with the running service, but the rule
of GPT-4o at high detail agrees with three bills.

The maximum number of images is that of the vendor's own API, as documented in 2026; resellers may have other limits.
"""

import math

from tokenization.vision.rule import Provenance, VisionRule


def scaled_tiles(width: int, height: int, *, base: int, per_tile: int, tile: int, box: int, short_side: int) -> int:
    """Count like GPT-4o at high detail: the image is shrunk to fit into a box, its short side is shrunk to a limit, and
    its tiles are counted.

    The image is never enlarged, and its sides are rounded to whole pixels after each step; otherwise the counts would
    not agree with known bills.

    Args:
        width: pixels.
        height: pixels.
        base: tokens of the image as a whole.
        per_tile: tokens of a tile.
        tile: side of a tile in pixels.
        box: side in pixels of the square that the image is fitted into.
        short_side: the maximum of the image's short side in pixels; a longer one is shrunk to this.

    """
    width, height = _shrunk(width, height, box / max(width, height))
    width, height = _shrunk(width, height, short_side / max(1, min(width, height)))
    return base + per_tile * max(1, -(-width // tile)) * max(1, -(-height // tile))


def budgeted_patches(width: int, height: int, *, patch: int, budget: int, max_side: int, multiplier: float = 1) -> int:
    """Count like GPT-4.1 mini: the patches times `multiplier`, rounded up. An image with more patches than the budget,
    or with a side over `max_side`, is shrunk first.

    Args:
        width: pixels.
        height: pixels.
        patch: side of a patch in pixels.
        budget: the maximum number of patches.
        max_side: the maximum side in pixels; a larger image is shrunk.
        multiplier: the tokens that the model charges for a patch.

    """
    patches = -(-width // patch) * -(-height // patch)
    if patches > budget or max(width, height) > max_side:
        scale = min(1.0, max_side / max(width, height))
        if math.prod(math.ceil(side * scale / patch) for side in (width, height)) > budget:
            scale = _whole_patches(width, height, patch, math.sqrt(patch * patch * budget / (width * height)))
        # rounded to 6 digits, because an error in the last bit would add a patch
        covered = math.prod(math.ceil(max(1, round(side * scale, 6)) / patch) for side in (width, height))
        patches = min(budget, covered)
    return math.ceil(patches * multiplier)


def padded_cells(width: int, height: int, *, cell: int, max_edge: int, budget: int) -> int:
    """Count like Claude: the cells of the image. A larger image is first shrunk until it is within `max_edge` and
    `budget`.

    Args:
        width: pixels.
        height: pixels.
        cell: side in pixels of the area of one token; sides are padded to whole cells.
        max_edge: the maximum side in pixels after padding.
        budget: the maximum number of tokens.

    """

    def cells(first: int, second: int) -> tuple[int, int]:
        return -(-first // cell), -(-second // cell)

    def fits(first: int, second: int) -> bool:
        found = cells(first, second)
        return max(found) * cell <= max_edge and found[0] * found[1] <= budget

    if fits(width, height):
        return math.prod(cells(width, height))
    aspect = max(width, height) / min(width, height)
    low, high = 1, min(max(width, height), max_edge + 1)  # a size beyond the edge never fits
    while low + 1 < high:
        middle = (low + high) // 2
        if fits(middle, max(round(middle / aspect), 1)):
            low = middle
        else:
            high = middle
    return math.prod(cells(low, max(round(low / aspect), 1)))


def area_share(width: int, height: int, *, pixels_per_token: int, max_edge: int, max_tokens: int) -> int:
    """Count by area, after the long side is shrunk to at most `max_edge` pixels. The result is at most `max_tokens`."""
    scale = min(1, max_edge / max(width, height))
    return min(max_tokens, math.ceil(width * scale * (height * scale) / pixels_per_token))


def crop_units(width: int, height: int, *, small: int, per_tile: int, divisor: float) -> int:
    """Count tiles whose side is the image's short side divided by `divisor`; an image whose sides have at most `small`
    pixels is one tile.
    """
    if max(width, height) <= small:
        return per_tile
    return _tiles(width, height, max(1, math.floor(min(width, height) / divisor))) * per_tile


def plain_tiles(width: int, height: int, *, small: int, per_tile: int, tile: int) -> int:
    """Count tiles whose side has `tile` pixels; an image whose sides have at most `small` pixels is one tile."""
    return per_tile if max(width, height) <= small else _tiles(width, height, tile) * per_tile


def _tiles(width: int, height: int, tile: int) -> int:
    """Return the number of tiles that cover an image."""
    return -(-width // tile) * -(-height // tile)


def _shrunk(width: int, height: int, scale: float) -> tuple[int, int]:
    """Return the sides in whole pixels after scaling; a scale of 1 or more leaves them unchanged."""
    return (round(width * scale), round(height * scale)) if scale < 1 else (width, height)


def _whole_patches(width: int, height: int, patch: int, scale: float) -> float:
    """Return the scale, reduced until one of the scaled sides is a whole number of patches."""
    across, down = width * scale / patch, height * scale / patch
    return scale * min(math.floor(side) / side if side >= 1 else 1 for side in (across, down))


def fixed(width: int, height: int, *, tokens: int) -> int:
    """Count every image with the same number of tokens."""
    del width, height
    return tokens


def quartered(width: int, height: int, *, per_crop: int, crops: int) -> int:
    """Count like Idefics2: the four quarters and the whole image, with a marker before each and one at the end."""
    if min(width, height) < 2:
        raise ValueError("it is cut into four, so each side must have at least 2 pixels")
    return crops * (per_crop + 1) + 1


def pan_and_scan(width: int, height: int, *, per_crop: int, min_crop: int, max_crops: int, min_ratio: float) -> int:
    """Count like Gemma 3 with pan and scan: the whole image and, if it is long, crops along its long side.

    The English words that the processor puts around the crops are text and are not counted here.

    Args:
        width: pixels.
        height: pixels.
        per_crop: tokens of the whole image, and of each crop, including markers and newlines.
        min_crop: the minimum side of a crop in pixels.
        max_crops: the maximum number of crops.
        min_ratio: the minimum ratio of long to short side at which an image is cropped.

    """
    long, short = max(width, height), min(width, height)
    if long / short < min_ratio:
        return per_crop
    crops = min(max_crops, max(2, min(long // min_crop, math.floor(long / short + 0.5))))
    if min(-(-long // crops), short) < min_crop:
        return per_crop
    return per_crop * (1 + crops)


DOCUMENTATION = "documentation"

_OPENAI = "documentation, images and vision"
_TILES = {"tile": 512, "box": 2048, "short_side": 768}
_PATCHES = {"patch": 32, "budget": 1536, "max_side": 2048}
_UNROUNDED = "the product is rounded up here; the documentation does not say how it is rounded"
_ANTHROPIC = "documentation, reference code and tables; litellm 1.109.1"
_LIMIT_OPENAI, _LIMIT_GOOGLE = 1500, 3600
_LIMIT_ANTHROPIC = 100  # for a window of 200K tokens; 600 for a larger one


def _tiled(name: str, base: int, per_tile: int, checked: str = _OPENAI) -> tuple[VisionRule, VisionRule]:
    """Return the rules of an OpenAI model at high and at low detail."""
    numbers = {"base": base, "per_tile": per_tile, **_TILES}
    high = VisionRule(
        name, scaled_tiles, numbers, Provenance(checked, DOCUMENTATION, "high detail"), max_images=_LIMIT_OPENAI
    )
    low = VisionRule(
        f"{name}-low",
        fixed,
        {"tokens": base},
        Provenance(_OPENAI, DOCUMENTATION, "low detail"),
        max_images=_LIMIT_OPENAI,
        variant_of=name,
    )
    return high, low


def _patched(name: str, multiplier: float, note: str = _UNROUNDED, variant_of: str = "") -> VisionRule:
    """Return the rule of an OpenAI model that counts patches."""
    return VisionRule(
        name,
        budgeted_patches,
        {**_PATCHES, "multiplier": multiplier},
        Provenance(_OPENAI, DOCUMENTATION, note),
        max_images=_LIMIT_OPENAI,
        variant_of=variant_of,
    )


def _gemini3(name: str, tokens: int, variant_of: str = "gemini-3") -> VisionRule:
    """Return the rule of Gemini 3 at one media resolution."""
    return VisionRule(
        name,
        fixed,
        {"tokens": tokens},
        Provenance(
            "documentation, media resolution", DOCUMENTATION, "the most that an image is given, whatever its size"
        ),
        max_images=_LIMIT_GOOGLE,
        variant_of=variant_of,
    )


SERVICES = (
    *_tiled("gpt-4o", 85, 170, f"{_OPENAI}, worked examples; three bills"),
    *_tiled("gpt-4o-mini", 2833, 5667),
    *_tiled("o3", 75, 150),
    *_tiled("gpt-5", 70, 140),
    _patched("gpt-4.1-mini", 1.62),
    _patched("gpt-4.1-nano", 2.46),
    _patched("o4-mini", 1.72),
    _patched("openai-patches-1536", 1, "patches before a model's multiplier", "gpt-4.1-mini"),
    VisionRule(
        "claude",
        padded_cells,
        {"cell": 28, "max_edge": 1568, "budget": 1568},
        Provenance(_ANTHROPIC, DOCUMENTATION, "all models before 4.7"),
        max_images=_LIMIT_ANTHROPIC,
    ),
    VisionRule(
        "claude-high-resolution",
        padded_cells,
        {"cell": 28, "max_edge": 2576, "budget": 4784},
        Provenance(_ANTHROPIC, DOCUMENTATION, "4.7 and later"),
        max_images=_LIMIT_ANTHROPIC,
    ),
    VisionRule(
        "claude-w-h-750",
        area_share,
        {"pixels_per_token": 750, "max_edge": 1568, "max_tokens": 1600},
        Provenance("nothing", "older documentation", "what was documented when the paper was written; approximate"),
        max_images=_LIMIT_ANTHROPIC,
        variant_of="claude",
    ),
    VisionRule(
        "gemini-2",
        crop_units,
        {"small": 384, "per_tile": 258, "divisor": 1.5},
        Provenance("documentation, worked example", DOCUMENTATION, "a rough formula, of no use for extreme aspects"),
        max_images=_LIMIT_GOOGLE,
    ),
    VisionRule(
        "gemini-2-tiles-768",
        plain_tiles,
        {"small": 384, "per_tile": 258, "tile": 768},
        Provenance(DOCUMENTATION, DOCUMENTATION, "the documentation's tiles of 768 pixels, read literally"),
        max_images=_LIMIT_GOOGLE,
        variant_of="gemini-2",
    ),
    _gemini3("gemini-3", 1120, ""),
    _gemini3("gemini-3-low", 280),
    _gemini3("gemini-3-medium", 560),
    _gemini3("gemini-3-ultra-high", 2240),
)

"""The rules of hosted models, as their vendors document them. None was compared with the running service, but the rule
of GPT-4o at high detail agrees with three bills.

The maximum number of images is that of the vendor's own API, as documented in 2026; resellers may have other limits.
"""

from tokenization.vision.fixed import fixed
from tokenization.vision.hosted import area_share, budgeted_patches, crop_units, padded_cells, plain_tiles, scaled_tiles
from tokenization.vision.rule import Provenance, VisionRule

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

"""The vision rules: counts that fit in the head, goldens, the reference's vectors, names, plug-ins, and any size."""

import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import shared

from tokenization import PatchRule, TokenizationError, VisionRule, vision_rules
from tokenization.vision import Crowd, Provenance, numbered
from tokenization.vision.cells import (
    area_share,
    broken_rows,
    budgeted_patches,
    fitted_cells,
    fixed,
    limited_patches,
    native_grid,
    padded_cells,
    patch_cells,
)
from tokenization.vision.tiles import (
    alike_crops,
    anyres,
    best_fit,
    canvas,
    canvas_states,
    canvas_tiles,
    closest_aspect,
    covering_grid,
    crop_units,
    fitted_tiles,
    grids,
    hd_crops,
    long_side_tiles,
    numbered_slices,
    padded_crops,
    pan_and_scan,
    plain_tiles,
    quartered,
    scaled_tiles,
    sized_slices,
    slice_grid,
)

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "vision_vectors.json").read_text(encoding="utf-8"))
FAMILIES: dict[str, Any] = json.loads((Path(__file__).parent / "family_vectors.json").read_text(encoding="utf-8"))
RULES = vision_rules()
BY_IMAGES = {"deepseek-vl2", "idefics2", "llava-onevision", "minicpm-v-2.6", "minicpm-v-4.6", "nvila", "nvila-lite"}
MADE_UP = Provenance("counted by hand", "made up")


def refused(rule: VisionRule, width: int, height: int) -> str:
    with pytest.raises(TokenizationError, match=f"image size {width} x {height}: rule {rule.name!r} refuses") as caught:
        rule.tokens(width, height)
    return str(caught.value)


# Counts


@pytest.mark.parametrize("name", RULES)
def test_goldens(name: str) -> None:
    """Each count was also made by the family's own code, or by the documentation's formula."""
    rule = RULES[name]
    for (width, height), tokens in zip(GOLDEN["sizes"], GOLDEN["tokens"][name], strict=True):
        if tokens is None:
            refused(rule, width, height)
        else:
            assert rule.tokens(width, height) == tokens


def test_every_vector_of_the_reference() -> None:
    entries = json.loads(shared("reference", "vision_tokens_vectors.json").read_text(encoding="utf-8"))
    assert len(entries) == 52
    for key, entry in entries.items():
        vectors = entry["vectors"] + entry["degenerate_vectors"]
        assert [vector for vector in vectors if RULES[key].tokens(*vector[:2]) != vector[2]] == [], key
        for width, height, _ in entry["errors"]:
            if key == "benchmark_mmlongbench":  # clamped on purpose
                assert RULES[key].tokens(width, height) == PatchRule().tokens(width, height)
            else:
                refused(RULES[key], width, height)


@pytest.mark.parametrize("name", FAMILIES["tokens"])
def test_vectors_of_the_newer_families(name: str) -> None:
    """Made by `tests/loaders/check_processors.py --vectors` with the processors of transformers 5.24.0; those of Gemma
    4 with another budget by its image processor, those of Kimi-VL by a copy of the model's own code.
    """
    assert [RULES[name].tokens(*size) for size in FAMILIES["sizes"]] == FAMILIES["tokens"][name]


@pytest.mark.parametrize(
    ("formula", "numbers", "counts"),
    [
        # cells of 2 pixels, two markers, at most 25 cells; no cell at all is enlarged to one
        (
            native_grid,
            {"patch": 2, "merge": 1, "min_pixels": 4, "max_pixels": 100, "max_aspect": 9, "markers": 2},
            {(4, 4): 4 + 2, (5, 4): 4 + 2, (7, 4): 8 + 2, (20, 20): 25 + 2, (1, 1): 1 + 2},
        ),
        # taken for two frames: half the cells; sides under 2 are doubled first
        (
            native_grid,
            {"patch": 2, "merge": 1, "min_pixels": 4, "max_pixels": 100, "max_aspect": 9, "markers": 0}
            | {"frames": 2, "min_side": 2},
            {(4, 4): 4, (20, 20): 9, (1, 3): 3},
        ),
        (patch_cells, {"patch": 2, "merge": 2, "min_pixels": 0, "max_pixels": 100, "rounding": "ceil"}, {(5, 4): 2}),
        # a row of two cells and its break, twice; shrunk to 8 x 4
        (broken_rows, {"patch": 2, "merge": 1, "max_side": 8}, {(4, 4): 6, (3, 1): 3, (16, 8): 10}),
        # 2 x 1 is as close to 1.5 as 1 x 1; it is taken when the image fills more than half of it
        (
            closest_aspect,
            {"tile": 10, "max_tiles": 2, "per_tile": 100, "overview": 7},
            {(5, 5): 7, (12, 8): 7, (15, 10): 207, (20, 10): 207, (10, 90): 207},
        ),
        (closest_aspect, {"tile": 10, "max_tiles": 4, "min_tiles": 4, "per_tile": 100, "overview": 7}, {(5, 5): 407}),
        # enlarged into 1 tile, fitting 2, shrunk into 4 of the 6 that are allowed
        (canvas_tiles, {"tile": 10, "max_tiles": 6}, {(3, 4): 1, (10, 11): 2, (90, 90): 4, (99, 9): 6, (1, 999): 6}),
        (canvas, {"tile": 10, "max_tiles": 6, "per_tile": 100, "overview": 7}, {(3, 4): 7, (10, 11): 207}),
        (canvas_states, {"tile": 10, "max_tiles": 6, "per_tile": 100}, {(3, 4): 100, (10, 11): 200}),
        # 4 features, and those of the tile's live rows with a newline each
        (
            anyres,
            {"tile": 10, "per_side": 2, "max_per_side": 2, "max_area": 9},
            {(10, 10): 4 + 2 * 3, (20, 10): 4 + 2 * 5, (20, 20): 4 + 4 * 5, (20, 5): 4 + 2 * 5},
        ),
        # the 4 x 4 features are shrunk to 2 x 2
        (anyres, {"tile": 10, "per_side": 2, "max_per_side": 2, "max_area": 1}, {(20, 20): 4 + 2 * 3}),
        (fitted_tiles, {"tile": 10, "per_side": 2, "max_tiles": 4}, {(9, 9): 6 + 1 + 2 * 3, (20, 9): 6 + 1 + 2 * 5}),
        # 1 tile covers all of the first, half of the second; nothing covers enough of the last
        (
            covering_grid,
            {"tile": 10, "max_tiles": 4, "enough": 0.9, "per_tile": 101, "overview": 7},
            {(10, 10): 7, (20, 10): 7 + 2 * 101 - 1, (99, 99): 7 + 4 * 101 - 1},
        ),
        # long side to 8: 2 x 1 tiles of 4 pixels; a square is 2 x 2
        (
            long_side_tiles,
            {"long_side": 8, "tile": 4, "per_tile": 10},
            {(2, 1): 1 * (2 * 12 + 1) + 13, (1, 2): 2 * (1 * 12 + 1) + 13, (99, 99): 2 * (2 * 12 + 1) + 13},
        ),
        # 2 x 2 crops for a square, 4 x 1 for what is very wide, and rows of 3 features
        (
            hd_crops,
            {"crop": 10, "max_crops": 4, "per_crop": 9, "per_row": 3},
            {(5, 5): 5 * 9 + 1 + 3 * 3, (40, 4): 5 * 9 + 1 + 2 * 3, (4, 40): 5 * 9 + 1 + 5 * 3},
        ),
        # a crop of 4 x 4 patches is 2 x 2 features; half of it padding leaves one row or column
        (
            padded_crops,
            {"crop": 8, "max_crops": 4, "patch": 2, "per_crop": 100, "min_side": 2, "markers": 7},
            {(8, 8): 107 + 4 + 2, (8, 4): 107 + 2 + 1, (4, 8): 107 + 2 + 2, (16, 16): 107 + 16 + 4},
        ),
        # 2 slices side by side or one above the other, with a newline between
        (
            numbered_slices,
            {"max_slices": 4, "resolution": 10, "per_slice": 8, "slice_markers": 2, "markers": 5},
            {(10, 10): 13, (20, 10): 13 + 2 * 10, (10, 20): 13 + 2 * 10 + 1},
        ),
        # the whole of 7 x 14 pixels is 1 x 3 cells of 5, each of the slices 2 x 2
        (
            sized_slices,
            {"max_slices": 4, "resolution": 10, "cell": 5, "slice_markers": 2, "markers": 5},
            {(10, 10): 5 + 4, (10, 20): 5 + 3 + 2 * (4 + 2) + 1},
        ),
        (fixed, {"tokens": 9}, {(1, 1): 9, (99, 9): 9}),
        (quartered, {"per_crop": 10, "crops": 5}, {(2, 2): 56}),
        # 3 crops of a length of 30; none where they would be too small
        (
            pan_and_scan,
            {"per_crop": 7, "min_crop": 10, "max_crops": 4, "min_ratio": 1.5},
            {(14, 10): 7, (30, 10): 28, (10, 30): 28, (30, 9): 7, (10, 99): 35},
        ),
        # fitted into 20, short side to 10, never enlarged
        (
            scaled_tiles,
            {"base": 5, "per_tile": 100, "tile": 10, "box": 20, "short_side": 10},
            {(1, 1): 105, (10, 10): 105, (40, 40): 105, (40, 20): 205, (40, 1): 205},
        ),
        # 16 patches of 2 pixels are at most 9; half a token more for each
        (
            budgeted_patches,
            {"patch": 2, "budget": 9, "max_side": 20, "multiplier": 1.5},
            {(2, 2): 2, (4, 4): 6, (8, 8): 14, (100, 1): 14},
        ),
        # about 12 cells of 2 pixels, at any size; a thin image is one cell high
        (
            fitted_cells,
            {"cell": 2, "budget": 12, "markers": 1},
            {(4, 3): 12 + 1, (400, 300): 12 + 1, (5, 5): 9 + 1, (90, 1): 12 + 1, (1, 9): 10 + 1},
        ),
        # cells of 4 pixels, rounded up; 36 patches are shrunk to 25, 5 x 5
        (
            limited_patches,
            {"patch": 2, "merge": 2, "max_patches": 25, "max_side": 99, "markers": 1},
            {(4, 4): 2, (5, 4): 3, (12, 12): 9 + 1, (1, 40): 10 + 1},
        ),
        # a square is the most like 2 x 2, of two like shapes the one of its size
        (
            alike_crops,
            {"side": 10, "per_crop": 7, "grids": [(1, 1), (2, 2), (3, 1)]},
            {(10, 10): 2 * 7, (20, 20): 5 * 7, (30, 11): 4 * 7},
        ),
        # an edge of 8 pixels and 12 cells of 2
        (
            padded_cells,
            {"cell": 2, "max_edge": 8, "budget": 12},
            {(3, 3): 4, (8, 6): 12, (8, 8): 9, (90, 1): 4, (1, 90): 4},
        ),
        (
            area_share,
            {"pixels_per_token": 10, "max_edge": 20, "max_tokens": 30},
            {(10, 10): 10, (40, 20): 20, (20, 20): 30, (1, 1): 1},
        ),
        (crop_units, {"small": 10, "per_tile": 7, "divisor": 1.5}, {(10, 10): 7, (15, 30): 42, (1, 11): 77}),
        (plain_tiles, {"small": 10, "per_tile": 7, "tile": 20}, {(10, 10): 7, (11, 11): 7, (21, 41): 42}),
    ],
)
def test_shapes_in_small(
    formula: Callable[..., int], numbers: Mapping[str, Any], counts: dict[tuple[int, int], int]
) -> None:
    assert {size: formula(*size, **numbers) for size in counts} == counts


def test_grids() -> None:
    assert grids(4) == ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (1, 4), (2, 2), (4, 1))
    assert grids(4, 4) == ((1, 4), (2, 2), (4, 1))
    assert len(grids(9)) == 23
    assert slice_grid(20, 10, max_slices=9, resolution=10) == (2, 1)
    assert slice_grid(10, 10, max_slices=9, resolution=10) is None


scales = st.integers(1, 5000)


@given(width=scales, height=scales, most=st.integers(1, 16))
def test_canvas_is_that_of_a_search_through_all(width: int, height: int, most: int) -> None:
    canvases = [(min(columns * 336 / width, rows * 336 / height), columns * rows) for columns, rows in grids(most)]
    enlarged = [found for found in canvases if found[0] >= 1]
    best = min(enlarged)[0] if enlarged else max(canvases)[0]
    tiles = min(tiles for scale, tiles in canvases if scale == best)
    assert canvas_tiles(width, height, tile=336, max_tiles=most) == tiles


@given(width=scales, height=scales)
def test_best_fit_is_that_of_a_search_through_all(width: int, height: int) -> None:
    def worth(grid: tuple[int, int]) -> tuple[int, int]:
        across, down = grid[0] * 384, grid[1] * 384
        scale = min(across / width, down / height)
        effective = min(int(width * scale) * int(height * scale), width * height)
        return effective, effective - across * down

    assert worth(best_fit(width, height, grids(9), 384)) == max(map(worth, grids(9)))


@given(width=scales, height=scales)
def test_benchmark_rule_is_the_patch_rule(width: int, height: int) -> None:
    tokens = PatchRule().tokens(width, height)
    assert RULES["mmlongbench"].tokens(width, height) == tokens
    assert RULES["mmlongbench-ceil"].tokens(width, height) == -(-width // 28) * -(-height // 28)
    assert RULES["mmlongbench-floor"].tokens(width, height) == width // 28 * (height // 28)
    if max(width, height) <= 200 * min(width, height):
        assert RULES["qwen2.5-vl"].tokens(width, height) == tokens + 2


def test_table_11_of_the_paper() -> None:
    """368.2 images of a 128K example of Visual Haystack: 2,358K tokens for Llama 3.2, 996K for LLaVA-OneVision."""
    sizes = [(640, 480)] * 368
    assert round(368.2 * RULES["llama-3.2-vision"].tokens(640, 480, 368) / 1000) == 2358
    assert RULES["llama-3.2-vision"].total(sizes) == 368 * 6404
    assert RULES["llama-3.2-vision-prompt"].total(sizes) == 368
    assert RULES["llama-3.2-vision-cross-attention"].total(sizes) == 368 * 2 * 1601
    # 996K for LLaVA-OneVision are 2705 an image: each in full resolution, whatever their number
    common = [(640, 480), (640, 427), (640, 428), (480, 640), (640, 425), (500, 375), (427, 640), (612, 612)]
    mean = sum(RULES["llava-onevision"].tokens(*size, 368) for size in common) / len(common)
    assert 368.2 * mean / 1000 == pytest.approx(996, rel=0.04)
    assert RULES["llava-onevision"].tokens(640, 480, 368) == 2929
    assert RULES["llava-onevision-nested"].tokens(640, 480, 368) == 730


# Many images


def looks_at_others(rule: VisionRule) -> bool:
    return rule.among is not None or rule.shared > 0


def test_six_families_look_at_the_other_images() -> None:
    assert {rule.variant_of or rule.name for rule in RULES.values() if looks_at_others(rule)} == BY_IMAGES
    assert len({name.removesuffix("-2.6").removesuffix("-4.6") for name in BY_IMAGES}) == 6


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("nvila", {1: 3073, 2: 257, 400: 257}),
        ("nvila-lite", {1: 1599, 2: 122}),
        ("deepseek-vl2", {1: 1023, 2: 1023, 3: 421}),
        ("llava-onevision-nested", {1: 2929, 2: 730}),
        ("minicpm-v-2.6", {1: 201, 10: 201, 11: 202, 101: 203}),
        ("idefics2", {1: 326, 2: 326}),
    ],
)
def test_tokens_among_others(name: str, counts: dict[int, int]) -> None:
    assert {images: RULES[name].tokens(640, 480, images) for images in counts} == counts


def test_the_other_rules_look_at_the_size_alone() -> None:
    for rule in RULES.values():
        if not looks_at_others(rule):
            assert {rule.tokens(1000, 300, images) for images in (1, 2, 3, 10, 101)} == {rule.tokens(1000, 300)}


def test_totals() -> None:
    sizes = [(640, 480), (20, 20), (640, 480)]
    assert RULES["qwen2.5-vl"].total(sizes) == 393 + 6 + 393
    assert RULES["deepseek-vl2"].total(sizes) == 3 * 421
    assert RULES["deepseek-vl2"].total(sizes[:2]) == 1023 + 421
    assert RULES["minicpm-v-2.6"].total([(20, 20)] * 12) == 10 * 69 + 2 * 70
    assert RULES["idefics2"].total(sizes, adjacent=2) == 3 * 326 - 2
    assert RULES["qwen2.5-vl"].total(iter(sizes), adjacent=2) == 393 + 6 + 393
    assert RULES["nvila"].total([]) == 0
    with pytest.raises(TokenizationError, match="adjacent: expected 0 to 2 of 3 images, found 3"):
        RULES["idefics2"].total(sizes, adjacent=3)


def test_limits() -> None:
    assert {RULES[name].max_images for name in ("claude", "claude-high-resolution", "claude-w-h-750")} == {100}
    assert {RULES[name].max_images for name in ("gpt-4o", "gpt-4o-low")} == {1500}
    assert RULES["qwen2.5-vl"].max_images is None


def test_what_was_only_read_is_not_exact() -> None:
    services = ("gpt-", "o3", "o4-", "openai-", "claude", "gemini-")
    for name, rule in RULES.items():
        assert not (rule.exact and (name.startswith(services) or rule.provenance.checked == "nothing; read")), name
    assert not RULES["mplug-owl3"].exact
    assert RULES["gemma4-1120"].exact
    assert {rule.text for name, rule in RULES.items() if name.startswith(("claude", "gemini"))} == {""}
    assert {rule.text for name, rule in RULES.items() if name.startswith("mmlongbench")} == {"llama2"}
    assert RULES["gpt-5.6-high"].text == "tiktoken:o200k_base"


# Any size


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=25)
@given(width=st.integers(1, 100_000), height=st.integers(1, 100_000), n_images=st.integers(1, 400))
def test_counts_or_refuses(name: str, width: int, height: int, n_images: int) -> None:
    rule = RULES[name]
    tokens: Any = 1
    refusal = f"image size {width} x {height}: rule {name!r} refuses it: "
    try:
        tokens = rule.tokens(width, height, n_images)
    except TokenizationError as error:
        refusal = str(error)
    assert refusal.startswith(f"image size {width} x {height}: rule {name!r} refuses it: ")
    assert type(tokens) is int
    assert tokens > 0 or (name == "mmlongbench-floor" and min(width, height) < 28)


@pytest.mark.parametrize("size", [(60_000, 60_000), (2**31 - 1, 2**31 - 1)])
@pytest.mark.parametrize("name", RULES)
def test_huge_images_are_counted(name: str, size: tuple[int, int]) -> None:
    if RULES[name].parameters.get("is_strict"):
        assert "patches, at most 30000" in refused(RULES[name], *size)
    else:
        assert RULES[name].tokens(*size) > 0


@pytest.mark.parametrize("size", [(1, 100_000), (100_000, 1), (1, 2**31 - 1), (1, 1)])
def test_what_extreme_sizes_are_refused_for(size: tuple[int, int]) -> None:
    reasons = {
        "qwen2.5-vl": "times the short one, at most 200 are accepted",
        "glm-4.1v": "times the short one, at most 200 are accepted",
        "pixtral-12b": "shrunk to a long side of 1024 pixels, its short side has no pixel left",
        "phi-3.5-vision": "scaled to a long side of 1344 pixels, its short side has no pixel left",
        "phi-4-multimodal": "pixels, a side is under 10",
        "idefics2": "it is cut into four, so each side must have at least 2 pixels",
    }
    for name in reasons if size != (1, 1) else ["idefics2"]:
        assert reasons[name] in refused(RULES[name], *size)


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-3, 5), (5.0, 5), ("5", 5), (None, 5), (True, 5)], ids=repr)
@pytest.mark.parametrize("name", ["qwen2.5-vl", "gemma3", "nvila-lite-multi-image"])
def test_bad_size(name: str, size: tuple[Any, Any]) -> None:
    RULES[name].tokens(5, 5)  # what is cached for 5 is no answer for 5.0
    with pytest.raises(TokenizationError, match="both sides must be integers from 1 to 2147483647 pixels") as caught:
        RULES[name].tokens(*size)
    assert f"image size {size[0]!r} x {size[1]!r}" in str(caught.value)


@pytest.mark.parametrize("n_images", [0, -1, 1.0, "1", None, True])
def test_bad_number_of_images(n_images: Any) -> None:
    with pytest.raises(TokenizationError, match=rf"{n_images!r} images in a prompt: give an integer of at least 1"):
        RULES["gemma3"].tokens(5, 5, n_images)


# What a rule is


def test_a_rule_of_ones_own() -> None:
    def area(width: int, height: int, per: int) -> int:
        if width == 13:
            raise ValueError("13 brings bad luck")
        return width * height // per if per else -1

    rule = VisionRule("mine", area, {"per": 2}, MADE_UP, among=numbered, by_place=True)
    assert [rule.tokens(4, 5, place) for place in (1, 10, 11)] == [10, 10, 11]
    assert rule.total([(4, 5)] * 11) == 10 * 10 + 11
    assert "refuses it: 13 brings bad luck; crop or pad the image, or leave the model out" in refused(rule, 13, 5)
    with pytest.raises(TokenizationError, match="rule 'negative' counts -1 tokens"):
        VisionRule("negative", area, {"per": 0}, MADE_UP).tokens(4, 5)
    assert Crowd(over=2, tokens=7)(100, 2) == 100
    assert Crowd(over=2, tokens=7)(100, 3) == 7


def test_every_rule_says_where_it_is_from() -> None:
    assert list(GOLDEN["tokens"]) == list(RULES)
    for name, rule in RULES.items():
        assert rule.name == name
        assert rule.provenance.checked
        assert rule.provenance.parameters
        assert rule.parameters
        assert not rule.variant_of or RULES[rule.variant_of].variant_of == ""


def test_rules_are_values() -> None:
    for rule in RULES.values():
        again = pickle.loads(pickle.dumps(rule))
        assert again == rule
        assert hash(again) == hash(rule)
        assert again.tokens(640, 480) == rule.tokens(640, 480)
    with pytest.raises(TypeError, match="does not support item assignment"):
        RULES["qwen2-vl"].parameters["patch"] = 1  # type: ignore[index]

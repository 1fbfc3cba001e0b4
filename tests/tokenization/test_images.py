"""The image rule: cases that fit in the head, vectors of the reference code, and what is true of every size."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenization import PatchRule, TokenizationError
from tokenization.vision.cells import Rounding

VECTORS: dict[Rounding, list[tuple[int, int, int]]] = json.loads(
    (Path(__file__).parent / "image_vectors.json").read_text(encoding="utf-8")
)
RULES: dict[Rounding, PatchRule] = {
    "round": PatchRule(),
    "ceil": PatchRule(rounding="ceil", min_pixels=0, max_pixels=2**62),
    "floor": PatchRule(rounding="floor", min_pixels=0, max_pixels=2**62),
}
ROUNDINGS: tuple[Rounding, ...] = ("round", "ceil", "floor")


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_vectors(rounding: Rounding) -> None:
    """`round` was run through Qwen2_5_VLProcessor of transformers 5.23.0, the others are closed forms."""
    assert len(VECTORS[rounding]) >= 49
    wrong = [vector for vector in VECTORS[rounding] if RULES[rounding].tokens(*vector[:2]) != vector[2]]
    assert wrong == []


@pytest.mark.parametrize(
    ("rule", "width", "height", "tokens"),
    [
        (PatchRule(2, 1, "round", 0, 100), 4, 4, 4),
        (PatchRule(2, 2, "round", 0, 100), 4, 4, 1),
        (PatchRule(2, 1, "round", 0, 100), 5, 4, 4),  # 2.5 cells: half to even is 2
        (PatchRule(2, 1, "round", 0, 100), 7, 4, 8),  # 3.5 cells: half to even is 4
        (PatchRule(2, 1, "ceil", 0, 100), 5, 4, 6),
        (PatchRule(2, 1, "floor", 0, 100), 7, 4, 6),
        (PatchRule(2, 1, "floor", 0, 100), 1, 4, 0),
        (PatchRule(2, 1, "round", 0, 16), 8, 8, 4),  # shrunk to 4 x 4
        (PatchRule(2, 1, "round", 0, 16), 16, 4, 4),  # shrunk to 8 x 2
        (PatchRule(2, 1, "round", 0, 16), 64, 3, 9),  # shrunk to 18 x 2: a side keeps one cell, above the limit
        (PatchRule(2, 1, "round", 64, 100), 4, 4, 16),  # enlarged to 8 x 8
        (PatchRule(2, 1, "floor", 16, 100), 1, 1, 4),  # no cell at all: enlarged to 4 x 4
    ],
)
def test_small_cases(rule: PatchRule, width: int, height: int, tokens: int) -> None:
    assert rule.tokens(width, height) == tokens


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(1224, 1584, 44 * 57), (1584, 1224, 57 * 44), (2000, 1, 90), (1, 2000, 90), (3584, 3584, 128 * 128)],
)
def test_benchmark_rule(width: int, height: int, tokens: int) -> None:
    assert PatchRule().tokens(width, height) == tokens


sides = st.integers(1, 20_000)


@given(width=sides, height=sides, rounding=st.sampled_from(ROUNDINGS))
def test_turning_changes_nothing(width: int, height: int, rounding: Rounding) -> None:
    for rule in (RULES[rounding], PatchRule(rounding=rounding)):
        assert rule.tokens(width, height) == rule.tokens(height, width)


@given(short=sides, ratio=st.floats(1, 200), rounding=st.sampled_from(ROUNDINGS))
def test_within_the_pixel_limits(short: int, ratio: float, rounding: Rounding) -> None:
    assert 4 <= PatchRule(rounding=rounding).tokens(short, int(short * ratio)) <= 128 * 128


@given(columns=st.integers(1, 128), rows=st.integers(1, 128), rounding=st.sampled_from(ROUNDINGS))
def test_whole_cells_are_counted(columns: int, rows: int, rounding: Rounding) -> None:
    rule = PatchRule(rounding=rounding, min_pixels=0)
    assert rule.tokens(28 * columns, 28 * rows) == columns * rows


@given(width=sides, height=sides)
def test_rounding_lies_between_floor_and_ceil(width: int, height: int) -> None:
    nearest = PatchRule(min_pixels=0, max_pixels=2**62)
    assert RULES["floor"].tokens(width, height) <= nearest.tokens(width, height) <= RULES["ceil"].tokens(width, height)


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-3, 5), (5.0, 5), ("5", 5), (None, 5), (True, 5)], ids=repr)
def test_bad_size(size: tuple[Any, Any]) -> None:
    with pytest.raises(TokenizationError, match="both sides must be integers of at least 1 pixel") as caught:
        PatchRule().tokens(*size)
    assert f"image size {size[0]!r} x {size[1]!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rounding": "up"}, "rounding is 'up': use one of round, ceil, floor"),
        ({"patch": 0}, "patch is 0: give an integer of at least 1"),
        ({"unshuffle": 1.5}, "unshuffle is 1.5: give an integer of at least 1"),
        ({"min_pixels": -1}, "min_pixels is -1: give an integer of at least 0"),
        ({"min_pixels": "a"}, "min_pixels is 'a': give an integer of at least 0"),
        ({"max_pixels": 3135}, "max_pixels is 3135: give an integer of at least 3136"),
        ({"min_pixels": 0, "max_pixels": 0}, "max_pixels is 0: give an integer of at least 1"),
    ],
)
def test_bad_rule(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizationError) as caught:
        PatchRule(**fields)
    assert str(caught.value) == message

"""Match scores by hand: the types (B.3), formulas and worked examples of the paper."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmlongbench.metrics.smudge.matching import (
    SCALES,
    elements_of,
    grounding_score,
    kind_of,
    match_score,
    paired,
    said_of,
    similarity,
)

PAGE = Path(__file__).parents[2] / "mmlongbench/scoring/README.md"
MGS = ("up to 12 milligrams", "up to 12 mgs")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("12", "numeric"),
        (" 12 ", "numeric"),
        ("007", "numeric"),
        ("१२", "numeric"),
        ("apple", "textual"),
        ("Café", "textual"),
        ("app1e", "hybrid"),
        ("1,700", "hybrid"),
        ("(8)", "hybrid"),
        ("-5", "hybrid"),
        ("18.29%", "hybrid"),
        ("12 mg", "hybrid"),
        ("Chapel Hill", "hybrid"),
        ("Ph.D.", "hybrid"),
        ("", "hybrid"),
    ],
)
def test_the_types_are_those_of_appendix_b_3(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("gold", "prediction", "score"),
    [
        ("apple", "app1e", 0.8),  # the paper's: a digit in the prediction does not make the gold a hybrid
        ("apple", "Apple", 1),
        ("apple", "", 0),
        ("apple", "pear", 0.2),  # no threshold below which a text scores 0
        ("12", "26", 0),
        ("12", "12", 1),
        ("12", "12.0", 1),
        ("12", "12,000", 1),
        ("12", "1200", 1),
        ("12", "0.12", 1),
        ("12", "120", 0),
        ("12", "12000000", 1),
        ("12", "12000000000", 1),
        ("12", "120000", 0),
        ("0", "0.00", 1),
        ("12", "-12", 0),
        ("12", "twelve", 0),
        ("12", "up to 12 mgs", 0),  # no number as a whole
        ("12", "12%", 0),
        ("12", ".", 0),
        ("up to 12 milligrams", "up to 12 milligrams", 1),
        ("up to 12 milligrams", "up to 12 mgs", 11 / (10 + 17 / 10)),
        ("up to 12 milligrams", "up to 1z milligrams", 0),
        ("up to 12 milligrams", "26", 0),
        ("1,700", "1,700", 1),
        ("1,700", "1700", 0),  # the comma is its text, and one part that scores 0 makes the mean 0
        ("(8)", "(9)", 0),
        ("2019-04-01", "2019-04-01", 1),
        ("Chapel Hill", "chapel  hill", 1),
        ("Chapel Hill", "Chapel Hall", 1 - 1 / 11),
        ("Chapel Hill", "Chape1 Hill", 1 - 1 / 11),  # without digits in the gold its text alone counts
        ("5 million dollars", "5000000 dollars", 11 / (10 + 16 / 8)),
    ],
)
def test_match_scores_by_hand(gold: str, prediction: str, score: float) -> None:
    assert match_score(gold, prediction) == pytest.approx(score)


@pytest.mark.parametrize(
    ("printed", "formula", "cause"),
    [
        (0.80, match_score("apple", "app1e"), similarity("apple", "app1e")),
        (0.74, match_score(*MGS), 2 / (1 + 17 / 10)),
        (0.02, grounding_score(0.2), math.exp(-(1 - 0.2) / 0.2)),
    ],
    ids=["a text, apple and app1e", "a hybrid, up to 12 mgs", "grounding at a distance of 0.2"],
)
def test_the_worked_examples_follow_the_formulas_and_not_the_printed_table(
    printed: float, formula: float, cause: float
) -> None:
    assert round(cause, 2) == printed  # numbers that weigh as much as text, and the formula turned round
    assert round(formula, 2) == {0.80: 0.80, 0.74: 0.94, 0.02: 0.78}[printed]
    assert f"| {printed:.2g} | {formula:.2f} |" in PAGE.read_text("utf-8")


@settings(max_examples=40)
@given(st.integers(0, 10**12), st.sampled_from(SCALES))
def test_numbers_are_the_same_on_every_scale_either_way(number: int, power: int) -> None:
    assert match_score(str(number), str(number * 10**power)) == 1
    assert match_score(str(number * 10**power), str(number)) == 1


@settings(max_examples=40)
@given(st.text(max_size=30), st.text(max_size=30))
def test_a_match_score_is_from_0_to_1_and_1_of_a_string_with_itself(gold: str, prediction: str) -> None:
    assert 0 <= match_score(gold, prediction) <= 1
    assert match_score(gold, gold) == 1


@settings(max_examples=40)
@given(st.floats(0, 1), st.floats(0, 1))
def test_grounding_falls_from_1_to_0_with_distance(one: float, other: float) -> None:
    near, far = sorted((one, other))
    assert 1 >= grounding_score(near) >= grounding_score(far) >= 0
    assert (grounding_score(0), grounding_score(1)) == (1, 0)


def test_what_was_said_is_taken_apart() -> None:
    assert said_of(" Answer: 12 mg ") == "12 mg"
    assert said_of("The answer: 12") == "The answer: 12"
    assert elements_of("['a', 2]") == ["a", "2"]
    assert elements_of("[1, x") == ["[1", "x"]
    assert elements_of("") == []
    assert paired([]) == []

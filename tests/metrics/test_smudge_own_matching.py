"""The match score of the profile `ours`, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.metrics.smudge.own_matching import are_equal, kind_of, match_score, numbers_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [("12", "numeric"), ("1,234.50", "numeric"), ("Chapel Hill", "textual"), ("12 mg", "hybrid"), ("", "textual")],
)
def test_the_kind_of_a_string(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("gold", "prediction", "score"),
    [
        ("Chapel Hill", "chapel  hill", 1),
        ("Chapel Hill", "Chapel Hall", 1 - 1 / 11),
        ("Chapel Hill", "Chapel Hill 27514", 0),  # digits on one side: hybrid, and its numbers differ
        ("12", "26", 0),
        ("12", "12.0", 1),
        ("12", "120", 0),
        ("5", "5,000,000", 1),
        ("0.1829", "18.29", 1),
        ("7000000000", "7", 1),
        ("12", "-12", 0),
        ("12", "twelve", 0),
        ("12 mg", "12 mg", 1),
        ("12 mg", "13 mg", 0),
        ("12 mg", "12", 0),  # one part scores 0, so its harmonic mean with the other does
        ("5 million dollars", "5000000 dollars", 11 / (10 + 1 / (1 - 8 / 15))),
        ("2019-04-01", "2019-04-01", 1),
        ("from 1 to 2", "from 100 to 200", 1),
        ("Fig. 5", "Fig.5", 11 / (10 + 1 / 1)),
        ("10-20", "10–20", 1),
        ("12.", "12", 1),
        ("from 1 to 2", "from 100 to 2", 0),
    ],
)
def test_match_scores_by_hand(gold: str, prediction: str, score: float) -> None:
    assert match_score(gold, prediction) == pytest.approx(score)


def test_the_example_of_the_paper_by_its_formulas() -> None:
    assert match_score("12", "26") == 0
    for gold in ("12", "up to 12 milligrams"):
        assert match_score(gold, "up to 12 mgs") > 0.9
        assert match_score(gold, "up to 1z milligrams") == 0
    assert match_score("up to 12 milligrams", "up to 12 mgs") == pytest.approx(11 / (10 + 1 / (1 - 7 / 16)))


def test_numbers_have_signs_commas_and_points() -> None:
    assert numbers_of("-1,200 to .5 in 2019-04, $-3.20") == (
        ("-", "12", 2),
        ("", "5", -1),
        ("", "2019", 0),
        ("", "4", 0),
        ("-", "32", -1),
    )
    assert numbers_of("1,2") == (("", "1", 0), ("", "2", 0))


@given(st.integers(-(10**12), 10**12), st.sampled_from([0, 2, 3, 6, 9]))
def test_numbers_are_equal_across_the_scales(number: int, power: int) -> None:
    one, other = numbers_of(str(number)), numbers_of(str(number * 10**power))
    assert are_equal(one, other)
    assert are_equal(other, one)


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_match_score_is_from_0_to_1_and_1_of_a_string_with_itself(gold: str, prediction: str) -> None:
    assert 0 <= match_score(gold, prediction) <= 1
    assert match_score(gold, gold) == 1

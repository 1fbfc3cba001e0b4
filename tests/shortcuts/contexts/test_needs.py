"""The verdicts about needs: what decides, what does not, and how often a verdict is wrong."""

import numpy as np
import pytest

from mmlongbench.draws import digest
from mmlongbench.shortcuts.contexts.answers import Asked, Guess
from mmlongbench.shortcuts.contexts.needs import FEW, MARGIN, UNSOLVED, Fall, need
from mmlongbench.shortcuts.contexts.results import Difference
from mmlongbench.shortcuts.contexts.rows import rows


def difference(full: list[float], other: list[float], context: str = "none", chance: float = 0.0) -> Difference:
    """The difference of a dataset of questions that are clusters of their own."""
    examples = [
        Asked("d", 8192, str(number), "", {}, Guess(0, chance, ""), {("m", ""): {0: a}, ("m", context): {0: b}})
        for number, (a, b) in enumerate(zip(full, other, strict=True))
    ]
    return rows(examples, "d", "m")[0].differences[0]


def verdict(found: Difference) -> str:
    assert found.need
    return found.need.verdict


@pytest.mark.parametrize(
    ("number", "lost", "expected"),
    [
        (100, 50, "needs"),
        (100, 0, "does not need"),
        (71, 0, "undecided"),
        (72, 0, "does not need"),
        (100, 10, "undecided"),
    ],
)
def test_verdicts_by_the_number_of_lost_questions(number: int, lost: int, expected: str) -> None:
    found = difference([1.0] * number, [0.0] * lost + [1.0] * (number - lost))
    assert verdict(found) == expected
    assert found.need
    assert (found.need.needed is None) == (expected != "undecided")
    assert found.need.reason == (FEW if expected == "undecided" else "")


def test_a_model_that_solves_nothing_does_not_say_that_nothing_is_needed() -> None:
    found = difference([1.0, 0.0, 0.0, 0.0] * 100, [0.0, 1.0, 0.0, 0.0] * 100, chance=0.25)
    assert found.need
    assert (found.need.verdict, found.need.reason, found.need.needed) == ("undecided", UNSOLVED, None)
    assert found.survival is None
    assert verdict(difference([0.0] * 200, [0.0] * 200)) == "undecided"


def test_few_clusters_decide_nothing() -> None:
    found = difference([1.0] * 4, [0.0] * 4)
    assert (found.low, found.high, verdict(found)) == (None, None, "undecided")


def test_an_interval_is_as_wide_as_what_was_not_seen() -> None:
    found = difference([1.0] * 36, [1.0] * 36)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 36))
    assert found.low == pytest.approx(0.025 ** (1 / 36) - 1)


def test_the_interval_of_survival_is_as_wide_as_what_was_not_seen() -> None:
    found = difference([1.0] * 36, [0.25] * 36, chance=0.25)
    assert found.survival == 0.0
    assert found.survival_high == pytest.approx((1 - 0.025 ** (1 / 36)) / 0.75)


def test_questions_about_one_thing_are_resampled_together() -> None:
    guess = Guess(0, 0.0, "")
    examples = [
        Asked("d", 8192, f"{number}", f"c{number % 20}", {}, guess, {("m", ""): {0: 1.0}, ("m", "none"): {0: score}})
        for number in range(400)
        for score in [float(number % 20 < 10)]
    ]
    found = rows(examples, "d", "m")[0].differences[0]
    alone = difference([1.0] * 400, [float(number % 20 < 10) for number in range(400)])
    assert (found.questions, found.clusters, alone.clusters) == (400, 20, 400)
    assert found.low is not None
    assert alone.low is not None
    assert found.mean - found.low > 3 * (alone.mean - alone.low)


def test_a_context_without_a_part_has_no_verdict() -> None:
    assert difference([1.0] * 100, [0.0] * 100, "wrong").need is None
    assert need("oracle", Fall(0.0, np.zeros(1000), 100, 100), is_solved=True) is None


def uniform(*path: object) -> float:
    return int.from_bytes(digest(*map(str, path))[:6], "big") / (1 << 48)


def test_a_wrong_verdict_is_rare_at_the_margin() -> None:
    """If the score falls by exactly 5 points, either verdict is wrong; each may occur in 2.5 % of the cases."""
    wrong, rounds, number = 0, 200, 200
    for turn in range(rounds):
        lost = [uniform("lost", turn, place) < MARGIN for place in range(number)]
        wrong += verdict(difference([1.0] * number, [float(not each) for each in lost])) != "undecided"
    assert wrong / rounds <= 0.08


def test_the_needed_number_decides_in_most_cases() -> None:
    """Questions of which 15 in 100 are lost: about as many as `needed` says must decide, and far fewer must not."""
    few = difference([1.0] * 40, [0.0] * 6 + [1.0] * 34)
    assert few.need
    assert few.need.needed is not None
    decided, rounds = 0, 60
    for turn in range(rounds):
        lost = [uniform("needed", turn, place) < 0.15 for place in range(few.need.needed)]
        decided += verdict(difference([1.0] * len(lost), [float(not each) for each in lost])) == "needs"
    assert 0.65 <= decided / rounds <= 1.0

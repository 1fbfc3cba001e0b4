"""The verdicts about needs, and the questions that are listed as answered blind: what decides them."""

from collections.abc import Iterable, Sequence

import pytest

from mmlongbench.shortcuts.blind import blind_questions
from mmlongbench.shortcuts.context_scores import Asked
from mmlongbench.shortcuts.contexts import FEW, UNSOLVED, Difference, rows

# What a dataset needs.


def difference(
    full: Sequence[float], other: Sequence[float], context: str = "none", chance: float = 0.0, clusters: int = 0
) -> Difference:
    """The difference of a dataset of questions that are clusters of their own, or of some clusters."""
    examples = [
        Asked(
            "d",
            8192,
            str(number),
            f"c{number % clusters}" if clusters else "",
            {},
            *(0, chance, ""),
            {("m", ""): {0: a}, ("m", context): {0: b}},
        )
        for number, (a, b) in enumerate(zip(full, other, strict=True))
    ]
    return next(rows(examples, "d", "m")).differences[0]


def verdict(found: Difference) -> tuple[str, str]:
    assert found.need
    return found.need.verdict, found.need.reason


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
    assert verdict(found) == (expected, FEW if expected == "undecided" else "")
    assert found.need
    assert (found.need.needed is None) == (expected != "undecided")


def test_a_model_that_solves_nothing_does_not_say_that_nothing_is_needed() -> None:
    found = difference([1.0, 0.0, 0.0, 0.0] * 100, [0.0, 1.0, 0.0, 0.0] * 100, chance=0.25)
    assert verdict(found) == ("undecided", UNSOLVED)
    assert found.need
    assert (found.need.needed, found.survival) == (None, None)
    assert verdict(difference([0.0] * 200, [0.0] * 200))[0] == "undecided"


def test_intervals_are_as_wide_as_what_was_not_seen() -> None:
    found = difference([1.0] * 36, [1.0] * 36)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 36))
    assert found.low == pytest.approx(0.025 ** (1 / 36) - 1)
    found = difference([1.0] * 36, [0.25] * 36, chance=0.25)
    assert found.survival == 0.0
    assert found.survival_high == pytest.approx((1 - 0.025 ** (1 / 36)) / 0.75)


def test_questions_about_one_thing_are_resampled_together() -> None:
    scores = [float(number % 20 < 10) for number in range(400)]
    found, alone = difference([1.0] * 400, scores, clusters=20), difference([1.0] * 400, scores)
    assert (found.questions, found.clusters, alone.clusters) == (400, 20, 400)
    assert found.low is not None
    assert alone.low is not None
    assert found.mean - found.low > 3 * (alone.mean - alone.low)


def test_a_context_without_a_part_has_no_verdict() -> None:
    assert difference([1.0] * 100, [0.0] * 100, "wrong").need is None
    assert difference([1.0] * 100, [1.0] * 100, "oracle").need is None


# Questions that are answered blind.


def asked(id: str, right: Iterable[bool], options: int = 4, gold: str = "", length: int = 8192) -> Asked:
    """A question that models are asked without context; model 0 answers first."""
    scores = {(f"model {number}", "none"): {0: float(is_right)} for number, is_right in enumerate(right)}
    return Asked("d", length, id, "", {}, options, 1 / options if options else 0.0, gold or id, scores)


def others(number: int) -> list[Asked]:
    """Questions that no model answers, each with an answer of its own."""
    return [asked(f"other {each}", [False], options=0) for each in range(number)]


@pytest.mark.parametrize(
    ("options", "right", "is_listed"),
    [
        (4, [True], False),  # 0.25
        (4, [True] * 3, False),  # 0.0156
        (4, [True] * 4, True),  # 0.0039
        (4, [True] * 4 + [False], False),  # 0.0156
        (4, [True] * 5 + [False], True),  # 0.0046
        (200, [True], True),
        (2, [True] * 30, False),  # never one by one
        (1, [True] * 30, False),
        (0, [True], True),  # a free answer that one question in 1,001 has
        (0, [False] * 9, False),
    ],
)
def test_a_question_is_listed_only_where_luck_has_at_most_one_per_cent(
    options: int, right: list[bool], is_listed: bool
) -> None:
    listed, counts = blind_questions([asked("q", right, options), *others(1_000)])
    assert [each.id for each in listed] == ["q"] * is_listed
    assert counts[0].listed == is_listed


def test_an_answer_or_option_that_many_questions_have_is_luck() -> None:
    common = [asked(str(number), [True], options=0, gold="not answerable") for number in range(20)]
    listed, counts = blind_questions([*common, *others(180)])
    assert (listed, counts[0].questions, counts[0].right, counts[0].listed) == ((), 200, 20, 0)
    skewed = [asked(str(number), [True] * 4, gold="first" if number < 80 else f"{number}") for number in range(100)]
    listed, _ = blind_questions(skewed)
    assert {int(each.id) for each in listed} == set(range(80, 100))
    assert {each.chance for each in listed} == {0.25}


def test_a_question_at_several_lengths_is_one_trial() -> None:
    answers = [asked("q", [True, True], length=length) for length in (8192, 16384, 32768)]
    listed, counts = blind_questions([*answers, *others(100)])
    assert (listed, counts[0].questions) == ((), 101)
    answers = [asked("q", [True] * 4, length=8192), asked("q", [True] * 3 + [False], length=16384)]
    assert blind_questions([*answers, *others(100)])[0] == ()


def test_the_number_expected_by_luck_is_what_guessing_models_have_listed() -> None:
    right = [[(guess >> shift) % 4 == 0 for shift in (0, 2, 4, 6)] for guess in range(256)]
    listed, counts = blind_questions([asked(str(place), each) for place, each in enumerate(right)])
    assert len(listed) == 1  # all 4 ^ 4 guesses of four models, of which one is right everywhere
    assert counts[0].by_luck == pytest.approx(256 * 0.25**4)
    assert len(blind_questions([asked(str(place), [True] * 4) for place in range(400)])[0]) == 400


def sampled(id: str, answers: str) -> Asked:
    """A question with four options, of which A is right, and the samples of one model."""
    scores = {("m", "none"): {number: float(answer == "A") for number, answer in enumerate(answers)}}
    said = {("m", number): answer for number, answer in enumerate(answers)}
    return Asked("d", 8192, id, "", {}, 4, 0.25, id, scores, said)


def test_samples_that_repeat_each_other_count_once_and_those_that_differ_count_each() -> None:
    stuck = [sampled(f"{number}", "ABCD"[number % 4] * 8) for number in range(200)]
    listed, counts = blind_questions(stuck)
    assert (listed, counts[0].right, counts[0].by_luck) == ((), 50, 0.0)
    known = [sampled(f"known {number}", "A" * 8) for number in range(10)]
    guessed = [sampled(f"guessed {number}", "ABCDABCD"[number % 4 :] + "ABCD"[: number % 4]) for number in range(200)]
    listed, _ = blind_questions([*known, *guessed])
    assert {each.id for each in listed} == {each.id for each in known}
    assert {(each.right, each.answers, each.independent) for each in listed} == {(8, 8, 8)}
    assert listed[0].luck == pytest.approx(0.25**8)

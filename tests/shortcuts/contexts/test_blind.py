"""Which questions are listed as answered blind: only where luck has at most one per cent, and no binary ones."""

from collections.abc import Iterable
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.shortcuts.contexts.answers import Asked, Guess
from mmlongbench.shortcuts.contexts.blind import MAX_LUCK, blind_questions, luck


def asked(id: str, right: Iterable[bool], options: int = 4, gold: str = "", length: int = 8192) -> Asked:
    """A question that models are asked without context; model 0 answers first."""
    scores = {(f"model {number}", "none"): {0: float(is_right)} for number, is_right in enumerate(right)}
    return Asked("d", length, id, "", {}, Guess(options, 1 / options if options else 0.0, gold or id), scores)


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


def test_a_free_answer_that_many_questions_have_is_luck() -> None:
    common = [asked(str(number), [True], options=0, gold="not answerable") for number in range(20)]
    listed, counts = blind_questions([*common, *others(180)])
    assert listed == ()
    assert (counts[0].questions, counts[0].right, counts[0].listed) == (200, 20, 0)


def test_an_option_that_is_right_more_often_than_others_is_luck() -> None:
    answers = [True] * 4
    skewed = [asked(str(number), answers, gold="first" if number < 80 else f"{number}") for number in range(100)]
    listed, _ = blind_questions(skewed)
    assert {int(each.id) for each in listed} == set(range(80, 100))
    assert {each.chance for each in listed} == {0.25}


def test_a_question_at_several_lengths_is_one_trial() -> None:
    answers = [asked("q", [True, True], length=length) for length in (8192, 16384, 32768)]
    listed, counts = blind_questions([*answers, *others(100)])
    assert listed == ()
    assert counts[0].questions == 101
    answers = [asked("q", [True] * 4, length=8192), asked("q", [True] * 3 + [False], length=16384)]
    assert blind_questions([*answers, *others(100)])[0] == ()


def test_the_number_expected_by_luck_is_what_guessing_models_have_listed() -> None:
    number = 400
    right = [[(guess >> shift) % 4 == 0 for shift in (0, 2, 4, 6)] for guess in range(256)]
    listed, counts = blind_questions([asked(str(place), each) for place, each in enumerate(right)])
    assert len(listed) == 1  # all 4 ^ 4 guesses of four models, of which one is right everywhere
    assert counts[0].by_luck == pytest.approx(256 * 0.25**4)
    assert len(blind_questions([asked(str(place), [True] * 4) for place in range(number)])[0]) == number


def sampled(id: str, answers: str) -> Asked:
    """A question with four options, of which A is right, and the samples of one model."""
    scores = {("m", "none"): {number: float(answer == "A") for number, answer in enumerate(answers)}}
    said = {("m", number): answer for number, answer in enumerate(answers)}
    return Asked("d", 8192, id, "", {}, Guess(4, 0.25, id), scores, said)


def test_samples_that_repeat_each_other_count_once() -> None:
    stuck = [sampled(f"{number}", "ABCD"[number % 4] * 8) for number in range(200)]
    listed, counts = blind_questions(stuck)
    assert listed == ()
    assert (counts[0].right, counts[0].by_luck) == (50, 0.0)


def test_samples_that_differ_where_they_are_wrong_count_each() -> None:
    known = [sampled(f"known {number}", "A" * 8) for number in range(10)]
    guessed = [sampled(f"guessed {number}", "ABCDABCD"[number % 4 :] + "ABCD"[: number % 4]) for number in range(200)]
    listed, _ = blind_questions([*known, *guessed])
    assert {each.id for each in listed} == {each.id for each in known}
    assert {(each.right, each.answers, each.independent) for each in listed} == {(8, 8, 8)}
    assert listed[0].luck == pytest.approx(0.25**8)


@given(answers=st.integers(1, 40), share=st.fractions(0, 1, max_denominator=20), data=st.data())
def test_luck_is_the_tail_of_a_binomial(answers: int, share: Fraction, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, answers))
    exact = sum(comb(answers, k) * share**k * (1 - share) ** (answers - k) for k in range(right, answers + 1))
    assert luck(right, answers, float(share)) == pytest.approx(float(exact), abs=1e-12)
    assert MAX_LUCK == 0.01

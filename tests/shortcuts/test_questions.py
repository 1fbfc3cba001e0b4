"""When two questions count as the same: their words, their answers, and questions that are very long."""

import pytest

from mmlongbench.shortcuts.questions import KnownQuestions
from mmlongbench.shortcuts.reading import AskedQuestion

CREWS = "How many crews were sent to sea by the harbours board in the winter of 1911?"


def known(question: str, answer: str, subject: str = "ledger") -> KnownQuestions:
    found = KnownQuestions()
    found.add(("x", "1"), AskedQuestion("1", "f", question, subject, (answer,), None, (), (), ()))
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Crispin Ware", "crispin ware"),
        ("Crispin Ware", "Crispin Ware."),
        ("1,040", "1040"),
        ("1 234 567 carts", "1,234,567 carts"),
        ("12,345.50", "12345.50"),
        ("%", "%"),
    ],
)
def test_answers_that_differ_in_case_punctuation_or_separators_are_the_same(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        assert known(CREWS, first).same(CREWS, "another ledger", (second,)) == [("x", "1")]


@pytest.mark.parametrize(
    ("one", "other"),
    [("Crispin Ware", "Crispin"), ("10,40", "1040"), ("1.5", "15"), ("1040", "1041"), ("%", "$"), ("3, 250", "3,2500")],
)
def test_other_answers_are_not_the_same(one: str, other: str) -> None:
    assert known(CREWS, one).same(CREWS, "another ledger", (other,)) == []


def test_a_very_long_question_is_compared_too() -> None:
    long = " ".join(f"{CREWS} That is question {number}." for number in range(40))
    assert known(long, "1040").same(long, "ledger", ("7",)) == [("x", "1")]
    assert known(CREWS, "1040").same(long, "ledger", ("7",)) == [("x", "1")]
    other = " ".join(f"word{number}" for number in range(1_000))
    assert known(CREWS, "1040").same(other, "ledger", ("1040",)) == []

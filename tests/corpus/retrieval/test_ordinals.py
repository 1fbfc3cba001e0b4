"""Ordinals in words: the spelling written out, and every number read back by code that does not know it."""

import pytest

from mmlongbench.corpus.retrieval.numbers import NAMES, spoken
from mmlongbench.corpus.retrieval.ordinals import MAX_ORDINAL, ordinal_words
from mmlongbench.corpus.retrieval.spellings import ORDINALS

SPELLED = {
    1: "first",
    3: "third",
    5: "fifth",
    8: "eighth",
    9: "ninth",
    12: "twelfth",
    20: "twentieth",
    21: "twenty-first",
    40: "fortieth",
    99: "ninety-ninth",
    100: "one hundredth",
    101: "one hundred and first",
    110: "one hundred and tenth",
    112: "one hundred and twelfth",
    200: "two hundredth",
    342: "three hundred and forty-second",
    600: "six hundredth",
    999: "nine hundred and ninety-ninth",
    1000: "one thousandth",
    1001: "one thousand and first",
    1100: "one thousand, one hundredth",
    1101: "one thousand, one hundred and first",
    21_000: "twenty-one thousandth",
    123_456: "one hundred and twenty-three thousand, four hundred and fifty-sixth",
}


@pytest.mark.parametrize("number", SPELLED)
def test_ordinals_are_spelled_as_in_the_rows_of_upstream(number: int) -> None:
    assert ordinal_words(number) == SPELLED[number]


def cardinal(ordinal: str) -> str:
    """The number words of an ordinal: its last word, or pair of words, without the ending."""
    head, blank, last = ordinal.rpartition(" ")
    if last in ("hundredth", "thousandth"):
        return f"{head}{blank}{last.removesuffix('th')}"
    return f"{head}{blank}{NAMES[ORDINALS.index(last)]}"


def test_each_ordinal_says_its_number_and_no_other() -> None:
    numbers = [*range(1, 2_500), *range(2_500, MAX_ORDINAL, 977), MAX_ORDINAL]
    words = [ordinal_words(number) for number in numbers]
    assert [spoken(cardinal(each).replace(",", "")) for each in words] == numbers
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("number", [0, -1, MAX_ORDINAL + 1])
def test_what_has_no_ordinal_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="expected 1 to 999999"):
        ordinal_words(number)

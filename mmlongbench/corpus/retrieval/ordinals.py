"""Ordinal numbers in English words, in the British spelling with `and` and a comma after the thousands."""

from mmlongbench.corpus.retrieval.numbers import NAMES
from mmlongbench.corpus.retrieval.spellings import ORDINALS

MAX_ORDINAL = 999_999


def ordinal_words(number: int) -> str:
    """Return a number from 1 to 999,999 as an ordinal in words.

    >>> ordinal_words(2), ordinal_words(21), ordinal_words(100), ordinal_words(101)
    ('second', 'twenty-first', 'one hundredth', 'one hundred and first')
    >>> ordinal_words(1000), ordinal_words(1101)
    ('one thousandth', 'one thousand, one hundred and first')
    """
    if not 1 <= number <= MAX_ORDINAL:
        raise ValueError(f"an ordinal of {number}: expected 1 to {MAX_ORDINAL}")
    thousands, below = divmod(number, 1000)
    if not thousands:
        return _below_thousand(below)
    head = f"{_cardinal(thousands)} thousand"
    if not below:
        return f"{head}th"
    return f"{head}{' and' if below < 100 else ','} {_below_thousand(below)}"


def _below_thousand(number: int) -> str:
    hundreds, below = divmod(number, 100)
    last: str = ORDINALS[below]
    if not hundreds:
        return last
    return f"{NAMES[hundreds]} hundred and {last}" if below else f"{NAMES[hundreds]} hundredth"


def _cardinal(number: int) -> str:
    hundreds, below = divmod(number, 100)
    parts = [f"{NAMES[hundreds]} hundred"] if hundreds else []
    return " and ".join([*parts, *([NAMES[below]] if below else [])])

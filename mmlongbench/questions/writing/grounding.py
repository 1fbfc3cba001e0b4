"""Finds answers in the text of pages, without a model."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from mmlongbench.documents.page_facts import is_number
from mmlongbench.questions.writing.answers import words
from mmlongbench.questions.writing.documents import ReadDocument

CLOSE = 0.9
"""The smallest similarity of a run of words that counts as the answer."""
_NUMBERS = re.compile(r"\d+")


def is_on(value: str, text: str) -> bool:
    """Return whether an answer is a run of words of a text (both as `answers.words` gives them), or nearly so.

    >>> is_on(words("harbour master"), words("The harbor master said 12")), is_on(" 12 ", " 1234 ")
    (True, False)
    """
    if value in text:
        return True
    wanted = value.split()
    if not wanted or _NUMBERS.search(value) or len(value) < 8:
        return False
    found = text.split()
    joined = " ".join(wanted)
    for at in range(len(found) - len(wanted) + 1):
        run = " ".join(found[at : at + len(wanted)])
        if abs(len(run) - len(joined)) <= 2 and SequenceMatcher(None, joined, run).ratio() >= CLOSE:
            return True
    return False


def pages_with(values: Sequence[str], document: ReadDocument) -> list[int]:
    """Return the pages, from 1, that hold every element of an answer."""
    wanted = [words(value) for value in values]
    return [n for n, text in enumerate(document.texts, 1) if all(is_on(value, text) for value in wanted)]


def is_located(values: Sequence[str], document: ReadDocument, pages: Sequence[int]) -> bool:
    """Return whether the evidence pages together hold every element of an answer."""
    text = "".join(document.texts[page - 1] for page in pages)
    return all(is_on(words(value), text) for value in values)


def missing_numbers(quote: str, document: ReadDocument, pages: Sequence[int]) -> list[str]:
    """Return the numbers of a quotation that are on none of the pages."""
    text = "".join(document.texts[page - 1] for page in pages)
    return [number for number in _NUMBERS.findall(words(quote)) if f" {number} " not in text]


def rows_that_fit(question: str, document: ReadDocument, pages: Sequence[int]) -> list[str]:
    """Return the headings of table rows that a question may mean: rows of one label, which the question names, under
    headings that it does not tell apart. One row, or none, is no trouble.
    """
    said = words(question)
    fitting: list[tuple[str, str]] = []
    for page in pages:
        heading = ""
        for row in document.pages[page - 1].rows:
            if len(row) == 1:
                heading = words(row[0])
                continue
            label = words(row[0])
            if len(label) > 4 and not is_number(row[0]) and label in said and any(map(is_number, row[1:])):
                fitting.append((label, heading))
    repeated = {label for label, _ in fitting if sum(label == other for other, _ in fitting) > 1}
    longest = max(repeated, key=len, default="")
    headings = [heading for label, heading in fitting if label == longest]
    return headings if longest and not _told_apart(said, headings) else []


def _told_apart(said: str, headings: Sequence[str]) -> bool:
    """Return whether a question has a word of exactly one of some headings."""
    own = [set(heading.split()) for heading in headings]
    asked = set(said.split())
    named = [
        bool(asked & (words_of - set().union(*(other for other in own if other is not words_of)))) for words_of in own
    ]
    return sum(named) == 1 and len(set(headings)) == len(headings)

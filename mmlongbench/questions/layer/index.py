"""Finds phrases on pages: words in a normal form, without punctuation, capitals and places."""

import re
from collections.abc import Sequence
from functools import cached_property

from mmlongbench.questions.layer.page import Page


def normal(text: str) -> str:
    """Return the letters and digits of a text in lower case, with one blank between runs of them.

    >>> normal("Net income (loss): $9,889")
    'net income loss 9 889'
    """
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


class PageIndex:
    """The texts of pages, to find phrases in them."""

    def __init__(self, texts: Sequence[tuple[int, str]]) -> None:
        """Take (number, text) of each page."""
        self._texts = [(number, f" {normal(text)} ") for number, text in texts]
        self._known: dict[str, frozenset[int]] = {}

    @classmethod
    def of(cls, pages: Sequence[Page]) -> "PageIndex":
        """Return the index of pages: their words in the order of the file, and again line by line.

        A phrase that is broken over two lines is found in the first text, one in a column of its own in the second.
        """
        return cls([(page.number, f"{page.text} | {' '.join(line.text for line in page.lines)}") for page in pages])

    def pages_with(self, *phrases: str) -> tuple[int, ...]:
        """Return the numbers of the pages on which all phrases are; no page if there is no phrase with a word."""
        found = [self._pages_with(form) for phrase in phrases if (form := normal(phrase))]
        return tuple(sorted(frozenset.intersection(*found))) if found else ()

    def _pages_with(self, form: str) -> frozenset[int]:
        if form not in self._known:
            self._known[form] = frozenset(number for number, text in self._texts if f" {form} " in text)
        return self._known[form]

    def has(self, *phrases: str) -> bool:
        """Return whether all phrases are on one page."""
        return bool(self.pages_with(*phrases))

    @cached_property
    def years(self) -> frozenset[str]:
        """All runs of four digits in the document, also those inside longer words."""
        return frozenset(found for _, text in self._texts for found in re.findall(r"(?=(\d{4}))", text))

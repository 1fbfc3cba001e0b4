"""Finds phrases on pages: words in a normal form, without punctuation, capitals and places."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from mmlongbench.questions.layer.page import Page


def normal(text: str) -> str:
    """Return the letters and digits of a text in lower case, with one blank between runs of them.

    >>> normal("Net income (loss): $9,889")
    'net income loss 9 889'
    """
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def searched_texts(pages: Sequence[Page], others: Mapping[int, str]) -> tuple[str, ...]:
    """Return the text of each page in which phrases are searched: its words in the order of the file, and again line by
    line. For a page whose layer is not read, `others` has the text.

    A phrase that is broken over two lines is found in the first text, one in a column of its own in the second.
    """
    return tuple(
        " | ".join((page.text, " ".join(line.text for line in page.lines), others.get(page.number, "")))
        for page in pages
    )


class PageIndex:
    """The texts of pages, to find phrases in them."""

    def __init__(self, texts: Sequence[tuple[int, str]]) -> None:
        """Index some pages; `texts` has the number and the text of each."""
        self._texts = [(number, f" {normal(text)} ") for number, text in texts]
        self._known: dict[str, frozenset[int]] = {}

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

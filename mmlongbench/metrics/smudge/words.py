"""The words of a document and their positions, in an order that can be searched."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mmlongbench.errors import Fault, SourceError

Array: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

MAX_WORDS = 2_000_000
"""The maximum words of one document; a document with more is refused."""
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_BEFORE = "([{\"'“‘«"
_AFTER = ".,;:!?)]}\"'”’»"


class Word(NamedTuple):
    """A word as a source gives it."""

    page: int
    """The page, from 0, in the document."""
    text: str
    box: tuple[float, float, float, float]
    """x0, y0, x1, y1 in units of the page's size: from 0 to 1 within the page."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a document in reading order."""

    text: str
    """All words: a line ` word word … word ` for each page that has words."""
    starts: Integers
    """The position in the text where each word begins."""
    ends: Integers
    """The position after each word's last character."""
    boxes: Array
    """The boxes, one row for each word."""
    pages: Integers
    """The pages that have words, ascending."""
    firsts: Integers
    """The number of the first word of each page; the last value is the number of all words."""

    def __len__(self) -> int:
        """The number of words."""
        return len(self.starts)

    def word(self, number: int) -> str:
        """Return one word."""
        return self.text[self.starts[number] : self.ends[number]]

    def page_of(self, numbers: Integers) -> Integers:
        """Return the page of each word, given by its number."""
        return self.pages[np.searchsorted(self.firsts, numbers, side="right") - 1]

    def range_of(self, page: int) -> range:
        """Return the numbers of the words of a page; empty if it has none."""
        at = int(np.searchsorted(self.pages, page))
        if at == len(self.pages) or self.pages[at] != page:
            return range(0)
        return range(int(self.firsts[at]), int(self.firsts[at + 1]))

    @property
    def weight(self) -> int:
        """About how many bytes this object takes."""
        return len(self) * 48 + len(self.text) * 4


def split(text: str) -> list[str]:
    """Return the words of a string in the form that is compared: no case, no thousands' commas, no brackets, quotes or
    punctuation around a word.

    >>> split("The  ﬁrst (in 2019), of “Chapel Hill” ... 12,500 %.")
    ['the', 'first', 'in', '2019', 'of', 'chapel', 'hill', '...', '12500', '%']
    """
    words = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold()).split()
    return [word.lstrip(_BEFORE).rstrip(_AFTER) or word for word in words]


def words_of(source: Iterable[Word], name: str) -> Words:
    """Make a document's words searchable. Words are sorted by page; the words of a page keep their order.

    Raises:
        SourceError: there are too many words.

    """
    found: list[tuple[int, str, tuple[float, float, float, float]]] = []
    for word in source:
        found += ((word.page, piece, word.box) for piece in split(word.text))
        if len(found) > MAX_WORDS:
            raise SourceError(
                Fault("words-of-a-document", f"at most {MAX_WORDS} words", "more", name, todo="leave the document out")
            )
    found.sort(key=lambda each: each[0])  # the words of a page keep their order
    return _laid(found)


def _laid(found: list[tuple[int, str, tuple[float, float, float, float]]]) -> Words:
    numbers = np.array([page for page, _, _ in found], np.int64)
    lengths = np.array([len(piece) for _, piece, _ in found], np.int64)
    pages, firsts = np.unique(numbers, return_index=True)
    turned = np.searchsorted(pages, numbers) if len(found) else numbers
    # each word follows a blank; the first word of a page also follows the blank and line break after the page before
    starts = np.cumsum(lengths + 1) - lengths + 2 * turned
    bounds = [*firsts.tolist(), len(found)]
    text = "\n".join(
        " " + " ".join(piece for _, piece, _ in found[first:last]) + " " for first, last in pairwise(bounds)
    )
    boxes = np.array([box for _, _, box in found], np.float64).reshape(-1, 4)
    return Words(text, starts, starts + lengths, boxes, pages, np.array(bounds, np.int64))

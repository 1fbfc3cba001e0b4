"""The words of a document and their positions, in an order that can be searched; from PDFs or from a list of words."""

import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import page_words
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.json_lines import json_line_at, json_lines
from mmlongbench.metrics.smudge.matching import split

Array: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

MAX_WORDS = 2_000_000
"""The maximum words of one document; a document with more is refused."""


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


class WordLine(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    document: str = Field(min_length=1)
    page: int = Field(ge=0, lt=2**31)
    text: str
    box: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
    size: tuple[FiniteFloat, FiniteFloat]

    @model_validator(mode="after")
    def _is_a_box(self) -> "WordLine":
        left, top, right, bottom = self.box
        if min(self.size) <= 0:
            raise ValueError(f"a page has a width and a height above 0, not {list(self.size)}")
        if left > right or top > bottom:
            raise ValueError(f"a box is left, top, right, bottom, not {list(self.box)}")
        if not all(map(math.isfinite, self.in_pages())):
            raise ValueError(f"a box {list(self.box)} cannot stand on a page of {list(self.size)}")
        return self

    def in_pages(self) -> tuple[float, float, float, float]:
        """Return the box in units of the page's size."""
        (left, top, right, bottom), (width, height) = self.box, self.size
        return left / width, top / height, right / width, bottom / height


class WordList:
    """A file of words; only the positions of each document's lines are kept in memory."""

    def __init__(self, path: Path) -> None:
        """Read the file once, to find its documents.

        Raises:
            SourceError: the file cannot be read, or a line is not a word; the error names line and field.

        """
        self._path = path
        self._offsets: dict[str, array[int]] = {}
        for line in json_lines(path):
            word = _validated(line.value, path, f"line {line.number}")
            self._offsets.setdefault(word.document, array("Q")).append(line.offset)

    def __contains__(self, document: str) -> bool:
        return document in self._offsets

    def words(self, document: str) -> Iterator[Word]:
        """Yield the words of a document in the file's order."""
        for offset in self._offsets[document]:
            line = _validated(json_line_at(self._path, offset), self._path, f"byte {offset}")
            yield Word(line.page, line.text, line.in_pages())


def _validated(value: dict[str, object] | Fault, path: Path, place: str) -> WordLine:
    if isinstance(value, Fault):
        raise SourceError(Fault(value.reason, value.expected, value.found, path.name, place, todo=value.todo))
    try:
        return WordLine.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        expected = "a word as {document, page, text, box, size}"
        fault = Fault("bad-word", expected, first["msg"], path.name, place, field, "mend the line, or take it out")
        raise SourceError(fault) from error


def pdf_words(path: Path, limits: Limits) -> Iterator[Word]:
    """Yield every word of a PDF.

    Raises:
        SourceError: the PDF, or one of its pages, cannot be read within limits.
        PageLimitError: a page takes too much time or memory.

    """
    for number, words in enumerate(page_words(path, limits)):
        for x0, y0, x1, y1, text, width, height in words:
            yield Word(number, text, (x0 / width, y0 / height, x1 / width, y1 / height))

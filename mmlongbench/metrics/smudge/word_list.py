"""A file of words that a user provides in place of the words of PDFs, for example from an OCR. Each line is a JSON
object with one word.

    {"document": "report", "page": 0, "text": "Total", "box": [72, 90, 101.5, 102], "size": [612, 792]}

`document` is the release's name of the document (`doc_name`), `page` counts from 0 in the whole document, `box` is
left, top, right, bottom in any unit, and `size` is the page's width and height in the same unit. Lines of one page are
in reading order.
"""

import math
from array import array
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.json_lines import json_line_at, json_lines
from mmlongbench.metrics.smudge.words import Word


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

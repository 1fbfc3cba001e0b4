"""The texts that OCR has read in the pages of one document, kept in a file page by page, so that a build that was
killed does not read a page twice.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError


class _PageText(BaseModel):
    """A line of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    page: int
    """The number of the page, from 0."""
    text: str


class KeptTexts:
    """The known texts of a document."""

    def __init__(self, path: Path | None = None) -> None:
        """Read the file, if there is one; without a path, texts are kept in memory only. A line that was cut off when a
        process was killed is left out.
        """
        self._path = path
        self.texts: dict[int, str] = {line.page: line.text for line in _lines(path)} if path else {}
        """The known texts, by the number of the page."""

    def add(self, page: int, text: str) -> None:
        """Keep the text of one more page."""
        self.texts[page] = text
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = _PageText(page=page, text=text).model_dump_json().encode() + b"\n"
        with self._path.open("ab+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line  # the last line was cut off
            file.write(line)


def _lines(path: Path) -> Iterator[_PageText]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield _PageText.model_validate_json(line)
        except ValidationError:
            continue

"""Web pages read when they are asked for, and the pictures they name: what the readers of MM-NIAH share."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from mmlongbench import Fault, Image, SourceError

WebPage: TypeAlias = Sequence[str | Image]


class Pages(Mapping[str, WebPage]):
    """Interleaved pages by id, in the source's order; only where to find each is held in memory."""

    def __init__(self, found: Mapping[str, Callable[[], WebPage]]) -> None:
        """`found` gives for each id a function that reads the page."""
        self._found = found

    def __getitem__(self, id: str) -> WebPage:
        return self._found[id]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def json_lines(path: Path) -> Iterator[tuple[int, int, dict[str, Any] | Fault]]:
    """(number from 1, byte offset, object or what is wrong) of each line that is not empty."""
    try:
        with path.open("rb") as lines:
            offset = 0
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, offset, parsed(line)
                offset += len(line)
    except OSError as error:
        found = error.strerror or str(error)
        raise SourceError(Fault("unreadable-source", "a JSON Lines file", found, path.name)) from error


def line_at(path: Path, offset: int) -> dict[str, Any] | Fault:
    """The object of the line that begins at a byte."""
    with path.open("rb") as file:
        file.seek(offset)
        return parsed(file.readline())


def parsed(line: bytes) -> dict[str, Any] | Fault:
    """One line: an object of valid Unicode, or what is wrong with it."""
    try:
        value = json.loads(line)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Fault("invalid-unicode", "valid Unicode", "a lone surrogate")
    except (ValueError, RecursionError) as error:
        return Fault("invalid-json", "a JSON object", str(error))
    if not isinstance(value, dict):
        return Fault("not-a-row", "a JSON object", type(value).__name__)
    return value


def picture_file(folder: Path, name: str) -> Path | None:
    """A picture below a folder, by its name or by its name without the first folder; none that leads out of it."""
    parts = PurePosixPath(name).parts
    for tried in (parts, parts[1:]):
        path = folder.joinpath(*tried)
        try:
            if tried and path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                return path
        except (OSError, ValueError):  # too long, or no name of a file at all
            continue
    return None

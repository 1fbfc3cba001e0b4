"""Reads JSON and JSON Lines files within limits. A line that cannot be read gives a fault, not an exception."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import MAX_BYTES, bounded_lines, read_whole, source_file

_MAX_DEPTH = 100
_DEPTH = f"at most {_MAX_DEPTH} levels of lists and objects"


class JsonLine(NamedTuple):
    """A line of a JSON Lines file."""

    number: int
    """The number of the line, from 1."""
    offset: int
    """The position of the line's first byte in the file."""
    value: dict[str, object] | Fault
    """The object, or what is wrong with the line; `raw_row` adds file and place."""


def json_lines(path: Path) -> Iterator[JsonLine]:
    """Yield each line that is not blank; raises SourceError if the file is missing or cannot be read."""
    with source_file(path, "a JSON Lines file") as file:
        for number, offset, line in bounded_lines(file):
            if line is None:
                expected, todo = f"at most {MAX_BYTES} bytes", "shorten the row, or take it out"
                yield JsonLine(number, offset, Fault("line-too-long", expected, "more", todo=todo))
            elif line.strip():
                yield JsonLine(number, offset, json_object(line))


def json_line_at(path: Path, offset: int) -> dict[str, object] | Fault:
    """Return the object of the line that begins at the byte `offset`, or what is wrong with the line."""
    with path.open("rb") as file:
        file.seek(offset)
        return json_object(file.readline(MAX_BYTES))


def json_object(line: bytes) -> dict[str, object] | Fault:
    """Return the JSON object of a line, or what is wrong with the line, such as text that is not valid Unicode."""
    try:
        value: object = json.loads(line)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Fault("invalid-unicode", "valid Unicode", "a lone surrogate", todo="write the text in valid Unicode")
    except (ValueError, RecursionError) as error:
        return Fault("invalid-json", "a JSON object", _said(error), todo="correct the line, or take it out")
    if _is_deep(value):
        return Fault("nested-too-deeply", _DEPTH, "more", todo="write the row with fewer levels")
    if not isinstance(value, dict):
        return Fault("not-a-row", "a JSON object", type(value).__name__, todo="write the row as an object")
    return value


def _said(error: Exception) -> str:
    """Return the words of an error, without the advice to programmers that Python gives about long numbers."""
    return str(error).partition("; use sys.")[0][:120]


def _is_deep(value: object) -> bool:
    """Return whether a value is nested so deeply that walking or printing it may exhaust the stack."""
    level = [value]
    for _ in range(_MAX_DEPTH + 1):
        parts = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = [inner for part in parts for inner in part if isinstance(inner, dict | list)]
    return bool(level)


def load_json(path: Path, expected: str, hook: Callable[[dict[str, object]], object] | None = None) -> object:
    """Read a whole JSON file, gzipped or not; `hook` converts each object in it.

    Raises:
        SourceError: the file cannot be read, is too large or too deep, or is not JSON. If it is not JSON, the error has
            the line and the column.

    """
    try:
        value: object = json.loads(read_whole(path, expected), object_hook=hook)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        fault = Fault("invalid-json", expected, error.msg, path.name, place, todo="correct the file")
        raise SourceError(fault) from error
    except (ValueError, RecursionError) as error:
        todo = "make the file readable, or give another one"
        raise SourceError(Fault("unreadable-source", expected, _said(error), path.name, todo=todo)) from error
    if _is_deep(value):
        todo = "write the file with fewer levels"
        raise SourceError(Fault("nested-too-deeply", _DEPTH, "more", path.name, todo=todo))
    return value

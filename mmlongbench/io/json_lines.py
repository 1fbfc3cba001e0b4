"""JSON and JSON Lines files, read within limits. A line that cannot be read is a fault, not an exception."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.safe_read import MAX_BYTES, bounded_lines, read_whole, source_file

MAX_DEPTH = 100
"""Levels of lists and objects inside each other."""


class JsonLine(NamedTuple):
    """A line of a JSON Lines file."""

    number: int
    """From 1."""
    offset: int
    """Its first byte."""
    value: dict[str, Any] | Fault
    """The object, or what is wrong with the line; without file and place, which `raw_row` adds."""


def json_lines(path: Path) -> Iterator[JsonLine]:
    """Each line that is not empty.

    Raises:
        SourceError: the file is missing or cannot be read.

    """
    with source_file(path, "a JSON Lines file") as file:
        for number, offset, line in bounded_lines(file):
            if line is None:
                yield JsonLine(number, offset, Fault("line-too-long", f"at most {MAX_BYTES} bytes", "more"))
            elif line.strip():
                yield JsonLine(number, offset, json_object(line))


def json_line_at(path: Path, offset: int) -> dict[str, Any] | Fault:
    """The object of the line that begins at a byte."""
    with path.open("rb") as file:
        file.seek(offset)
        return json_object(file.readline(MAX_BYTES))


def json_object(line: bytes) -> dict[str, Any] | Fault:
    """An object of valid Unicode, or what is wrong with it."""
    try:
        value = json.loads(line)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Fault("invalid-unicode", "valid Unicode", "a lone surrogate")
    except (ValueError, RecursionError) as error:
        return Fault("invalid-json", "a JSON object", str(error)[:120])
    if _is_deep(value):
        return Fault("nested-too-deeply", f"at most {MAX_DEPTH} levels of lists and objects", "more")
    if not isinstance(value, dict):
        return Fault("not-a-row", "a JSON object", type(value).__name__)
    return value


def _is_deep(value: object) -> bool:
    """Whether a value is nested so deeply that who walks or prints it may run out of stack."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        parts = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [inner for each in parts for inner in each if isinstance(inner, dict | list)]
    return bool(level)


def load_json(path: Path, expected: str, hook: Callable[[dict[str, Any]], object] | None = None) -> Any:  # noqa: ANN401
    """A whole JSON file, gzipped or not, each object in it as `hook` makes it.

    Raises:
        SourceError: it cannot be read, is too large or too deep, or is no JSON; with line and column.

    """
    try:
        value = json.loads(read_whole(path, expected), object_hook=hook)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise SourceError(Fault("invalid-json", expected, error.msg, path.name, place)) from error
    except (ValueError, RecursionError) as error:
        raise SourceError(Fault("unreadable-source", expected, str(error)[:120], path.name)) from error
    if _is_deep(value):
        bound = f"at most {MAX_DEPTH} levels of lists and objects"
        raise SourceError(Fault("nested-too-deeply", bound, "more", path.name))
    return value

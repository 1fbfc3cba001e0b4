"""Fields of JSON lines, checked: what the readers of entity questions share."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmlongbench import Fault, SourceError


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any] | Fault]]:
    """(`line <n>`, object or what is wrong) of each line that is not empty."""
    if not path.is_file():
        raise SourceError(Fault("unreadable-source", "a JSON Lines file", "no such file", path.name))
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"line {number}", _object(line)


def _object(line: bytes) -> dict[str, Any] | Fault:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Fault("invalid-json", "a JSON object", str(error))
    if not isinstance(value, dict):
        return Fault("not-a-row", "a JSON object", type(value).__name__)
    if any("\ud800" <= character <= "\udfff" for text in _texts(value) for character in text):
        return Fault("invalid-unicode", "valid Unicode", "a lone surrogate")
    return value


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401  (any JSON)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for item in (*value.keys(), *value.values()) for text in _texts(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in _texts(item))


def file_inside(folder: Path, path: Path) -> Path | None:
    """A file, if it is one and lies in the folder once all links are followed; names come from data."""
    try:
        is_there = path.is_file() and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # too long, or no name of a file at all
        return None
    return path if is_there else None


def faulty_text(raw: Mapping[str, Any], fields: Sequence[str]) -> Fault | None:
    """What is wrong with fields that must hold text."""
    for field in fields:
        value = raw.get(field)
        if not isinstance(value, str) or not value.strip():
            found = repr(value) if field in raw else "nothing"
            return Fault("missing-or-mistyped-field", "a text", found, field=field)
    return None

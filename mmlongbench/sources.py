"""Files of raw sources, read with care: lines of JSON, PDFs by name, files that must lie inside a folder."""

import filecmp
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from mmlongbench.errors import Fault, SourceError

MOST_BYTES = 64 * 1024 * 1024
"""The longest line that is parsed."""


class JsonLine(NamedTuple):
    """A line of a JSON Lines file."""

    number: int
    """From 1."""
    offset: int
    """Its first byte."""
    value: dict[str, Any] | Fault
    """The object, or what is wrong with the line; without file and place, which `at_place` adds."""


def json_lines(path: Path) -> Iterator[JsonLine]:
    """Each line that is not empty.

    Raises:
        SourceError: the file is missing or cannot be read.

    """
    try:
        with path.open("rb") as lines:
            number, offset = 0, 0
            while line := lines.readline(MOST_BYTES + 1):
                number += 1
                length = len(line)
                if length > MOST_BYTES:
                    length += _skip(lines)
                    yield JsonLine(number, offset, Fault("line-too-long", f"at most {MOST_BYTES} bytes", "more"))
                elif line.strip():
                    yield JsonLine(number, offset, json_object(line))
                offset += length
    except OSError as error:
        found = error.strerror or str(error)
        raise SourceError(Fault("unreadable-source", "a JSON Lines file", found.lower(), path.name)) from error


def json_line_at(path: Path, offset: int) -> dict[str, Any] | Fault:
    """The object of the line that begins at a byte."""
    with path.open("rb") as file:
        file.seek(offset)
        return json_object(file.readline(MOST_BYTES))


def json_object(line: bytes) -> dict[str, Any] | Fault:
    """An object of valid Unicode, or what is wrong with it."""
    try:
        value = json.loads(line)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Fault("invalid-unicode", "valid Unicode", "a lone surrogate")
    except (ValueError, RecursionError) as error:
        return Fault("invalid-json", "a JSON object", str(error)[:120])
    if not isinstance(value, dict):
        return Fault("not-a-row", "a JSON object", type(value).__name__)
    return value


def load_json(path: Path, expected: str, hook: Callable[[dict[str, Any]], object] | None = None) -> Any:  # noqa: ANN401
    """A whole JSON file, each object in it as `hook` makes it.

    Raises:
        SourceError: it cannot be read, or is no JSON; with line and column.

    """
    try:
        return json.loads(path.read_bytes(), object_hook=hook)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise SourceError(Fault("invalid-json", expected, error.msg, path.name, place)) from error
    except (OSError, ValueError, RecursionError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise SourceError(Fault("unreadable-source", expected, found, path.name)) from error


def pdfs_by_name(folder: Path, *, is_deep: bool = True) -> dict[str, Path | Fault]:
    """Every visible PDF of a folder, or below it, by its name without the ending; of one name, only copies.

    Raises:
        SourceError: it is no folder.

    """
    if not folder.is_dir():
        raise SourceError(Fault("unreadable-source", "a folder of PDFs", "a file", folder.name))
    named: dict[str, list[Path]] = {}
    for path in visible_files(folder):
        if path.suffix.lower() == ".pdf" and (is_deep or path.parent == folder):
            named.setdefault(path.stem, []).append(path)
    return {stem: paths[0] if _is_one(paths) else two_of_one_name(paths, folder) for stem, paths in named.items()}


def _is_one(paths: list[Path]) -> bool:
    """Whether files are copies of one."""
    return all(filecmp.cmp(paths[0], path, shallow=False) for path in paths[1:])


def two_of_one_name(paths: list[Path], folder: Path) -> Fault:
    """What is wrong with documents that a question could not tell apart."""
    found, expected = (
        ", ".join(path.relative_to(folder).as_posix() for path in paths),
        "names that differ before the ending",
    )
    return Fault("two-documents-of-one-name", expected, found, folder.name, todo="rename all but one")


def visible_files(folder: Path) -> list[Path]:
    """All files below a folder, sorted, without those whose name, or whose folder's, begins with a dot."""
    below = (found for found in folder.rglob("*") if found.is_file())
    return sorted(f for f in below if not any(part.startswith(".") for part in f.relative_to(folder).parts))


def file_inside(folder: Path, name: str | Path) -> Path | None:
    """A file by its name, if it lies in the folder once all links are followed; names come from data."""
    path = folder / name
    try:
        is_there = path.is_file() and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # too long, or no name of a file at all
        return None
    return path if is_there else None


def _skip(lines: IO[bytes]) -> int:
    """Pass over the rest of a line; its bytes."""
    length = 0
    while part := lines.readline(MOST_BYTES):
        length += len(part)
        if part.endswith(b"\n"):
            break
    return length

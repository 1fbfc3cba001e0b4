"""Files of raw sources, read with care: lines of JSON, PDFs by name, files that must lie inside a folder."""

import filecmp
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mmlongbench.bounded import MOST_BYTES, bounded_lines, read_whole, source_file
from mmlongbench.errors import Fault, SourceError

MOST_DEPTH = 100
"""Levels of lists and objects inside each other."""


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
    with source_file(path, "a JSON Lines file") as file:
        for number, offset, line in bounded_lines(file):
            if line is None:
                yield JsonLine(number, offset, Fault("line-too-long", f"at most {MOST_BYTES} bytes", "more"))
            elif line.strip():
                yield JsonLine(number, offset, json_object(line))


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
    if _is_deep(value):
        return Fault("nested-too-deeply", f"at most {MOST_DEPTH} levels of lists and objects", "more")
    if not isinstance(value, dict):
        return Fault("not-a-row", "a JSON object", type(value).__name__)
    return value


def _is_deep(value: object) -> bool:
    """Whether a value is nested so deeply that who walks or prints it may run out of stack."""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
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
        bound = f"at most {MOST_DEPTH} levels of lists and objects"
        raise SourceError(Fault("nested-too-deeply", bound, "more", path.name))
    return value


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
    return {stem: _document(paths, folder) for stem, paths in named.items()}


def _document(paths: list[Path], folder: Path) -> Path | Fault:
    """The one document of a name, or what is wrong with it."""
    for path in paths:
        if file_inside(folder, path.relative_to(folder)) is None:
            name, todo = path.relative_to(folder).as_posix(), "copy it into the folder"
            return Fault("path-outside-source", "a PDF that lies in the folder", "a link out of it", name, todo=todo)
    return paths[0] if _is_one(paths) else two_of_one_name(paths, folder)


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
        is_there = path.is_file() and any(path.resolve().is_relative_to(root) for root in _roots(folder))
    except (OSError, ValueError):  # too long, or no name of a file at all
        return None
    return path if is_there else None


def _roots(folder: Path) -> Iterator[Path]:
    """Where a folder's files may lie: in it, or, of a download in the hub's cache, among that dataset's blobs."""
    root = folder.resolve()
    yield root
    for above in root.parents:
        if above.name == "snapshots" and above.parent.name.startswith(("datasets--", "models--")):
            yield above.parent / "blobs"

"""Names and formats of released files. A pattern writes a name and recognises it again; a format writes records and
reads them again.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import MAX_BYTES, bounded_lines
from mmlongbench.lengths import K
from mmlongbench.task.rows import Record

_SLOTS = {"name": r"[\w.-]+?", "k": r"[1-9]\d*", "questions": r"\d+", "placements": r"\d+"}
_PLAIN: frozenset[type] = frozenset((str, int, bool, type(None)))
"""Values that `orjson` writes as the json module does; integers over 64 bits and lone surrogates it refuses."""
_COMMA = ord(",")
_SLOT = re.compile("|".join(rf"\{{{slot}\}}" for slot in _SLOTS))


@dataclass(frozen=True, slots=True)
class FilePattern:
    """The pattern of a path below `mmlb_data/`, with the slots {name} and {k}, and {questions} and {placements} if
    needed.
    """

    template: str
    """The path with its slots, such as `documentQA/{name}_K{k}.jsonl`."""

    @property
    def fault(self) -> str:
        """Why files cannot have the names of this pattern; empty if they can. Every file is inside `mmlb_data/`."""
        said = (
            f"is {self.template!r:.120}, expected a path with {{name}} and {{k}}, such as tasks/{{name}}_K{{k}}.jsonl"
        )
        if not isinstance(self.template, str) or not all(f"{{{slot}}}" in self.template for slot in ("name", "k")):
            return said
        if re.search(r"[{}]", _SLOT.sub("", self.template)):
            return f"{said}; the only other slots are {{questions}} and {{placements}}"
        if not self.template.endswith((".jsonl", ".json")):
            return f"{said}; the path ends with .jsonl or .json"
        parts = self.template.split("/")
        if "\\" in self.template or ":" in self.template or any(part.strip() in ("", ".", "..") for part in parts):
            return f"{said}; the path stays below mmlb_data: it is relative, without .., \\, : or an empty part"
        return "" if self.template.isprintable() else f"{said}; the path has no control characters"

    def write(self, name: str, length: int, questions: int = 0, placements: int = 0) -> str:
        """Return the path of the file of a dataset at a length.

        >>> FilePattern("documentQA/{name}_K{k}.jsonl").write("mmlongdoc", 8192)
        'documentQA/mmlongdoc_K8.jsonl'
        """
        return self.template.format(name=name, k=length // K, questions=questions, placements=placements)

    def recognise(self, path: str) -> tuple[str, int] | None:
        """Return the dataset and the length of a file by its path, or None if the path does not follow the pattern.

        >>> FilePattern("documentQA/{name}_K{k}.jsonl").recognise("documentQA/mmlongdoc_K128.jsonl")
        ('mmlongdoc', 131072)
        """
        pattern = re.escape(self.template)
        for slot, form in _SLOTS.items():
            pattern = pattern.replace(rf"\{{{slot}\}}", f"(?P<{slot}>{form})")
        found = re.fullmatch(pattern, path)
        return (found["name"], int(found["k"]) * K) if found else None


class FileFormat(ABC):
    """How records are written to a file and read back."""

    @abstractmethod
    def bundle(self, records: Iterable[Record]) -> Iterator[bytes]:
        """Return the bytes of a file with these records, piece by piece."""

    @abstractmethod
    def unbundle(self, path: Path) -> Iterator[tuple[str, Record]]:
        """Yield (where in the file, record) of each example.

        Raises:
            ReleaseError: the file cannot be read.

        """

    def read(self, path: Path) -> Iterator[tuple[str, Record | ReleaseError]]:
        """Yield (where, record) as `unbundle` does; a format that can continue after a bad record yields a ReleaseError
        instead of this record.
        """
        return self.unbundle(path)

    def without(self, path: Path, is_dropped: Callable[[Record], bool]) -> Iterator[bytes]:
        """Return the bytes of a file without some of its examples. A format whose files do not hold whole records, or
        that keeps the bytes of the other examples, overrides it.
        """
        return self.bundle(record for _, record in self.unbundle(path) if not is_dropped(record))


class JsonLines(FileFormat):
    """One JSON object a line: the default format."""

    def bundle(self, records: Iterable[Record]) -> Iterator[bytes]:
        for record in records:
            yield to_json(record)

    def unbundle(self, path: Path) -> Iterator[tuple[str, Record]]:
        """Yield (line, record) of each example, where the line is a text such as `line 3`; memory does not grow with
        the file.
        """
        for where, record in self.read(path):
            if isinstance(record, ReleaseError):
                raise record
            yield where, record

    def without(self, path: Path, is_dropped: Callable[[Record], bool]) -> Iterator[bytes]:
        """Return the other lines, byte for byte."""
        with path.open("rb") as lines:
            for number, _, line in bounded_lines(lines):
                record: object = None if line is None or not line.strip() else json.loads(line)
                if line is None or (line.strip() and not isinstance(record, dict)):
                    raise ReleaseError(f"{path.name}, line {number}: expected a JSON object, found another line")
                if not isinstance(record, dict) or not is_dropped(record):
                    yield line

    def read(self, path: Path) -> Iterator[tuple[str, Record | ReleaseError]]:
        with path.open("rb") as lines:
            for number, _, line in bounded_lines(lines):
                where = f"line {number}"
                if line is None:
                    bound = f"at most {MAX_BYTES} bytes"
                    yield where, ReleaseError(f"{path.name}, {where}: expected {bound}, found more")
                    continue
                if not line.strip():
                    continue
                try:
                    record: object = json.loads(line)
                except (ValueError, RecursionError) as error:
                    said = str(error)[:200]
                    yield where, ReleaseError(f"{path.name}, {where}: expected one JSON object, found {said}")
                    continue
                if isinstance(record, dict):
                    yield where, record
                else:
                    kind = type(record).__name__
                    yield where, ReleaseError(f"{path.name}, {where}: expected a JSON object, found {kind}")


JSON_LINES = JsonLines()


def to_json(value: object) -> bytes:
    """Return one line of JSON: UTF-8, with a newline at the end. Characters that UTF-8 cannot encode, as in some file
    names, are escaped.
    """
    if (data := plain_json(value, orjson.OPT_INDENT_2)) is not None:
        return _one_line(data)
    return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def written(record: Record, known: dict[tuple[object, ...], bytes] | None = None) -> tuple[bytes, Record]:
    """Return the line of a record, as `to_json` writes it, and the record as it is read from the line. `known` keeps
    the JSON of units for the other placements of a question, whose records list the same ones.

    Raises:
        TypeError, ValueError, RecursionError: JSON cannot hold the record.

    """
    fields = [_field(key, value, known) for key, value in record.items()]
    if type(record) is dict and None not in fields:
        return b"".join((b"{", b", ".join(filter(None, fields)), b"}\n")), record
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace"), json.loads(text)


def _field(key: str, value: object, known: dict[tuple[object, ...], bytes] | None) -> bytes | None:
    """Return a field of a record as JSON; None as `plain_json` does."""
    if known is None or not isinstance(value, list) or (units := _units(value, known)) is None:
        data = plain_json({key: value}, orjson.OPT_INDENT_2)
        return None if data is None else _one_line(data)[1:-2]
    name = plain_json(key)
    return None if name is None else b"".join((name, b": [", b", ".join(units), b"]"))


def _units(values: list[Any], known: dict[tuple[object, ...], bytes]) -> list[bytes] | None:
    """Return the JSON of dicts of texts and whole numbers; None of other values."""
    if type(values) is not list or set(map(type, values)) != {dict} or not all(values):
        return None
    try:
        # with types, because 1 and True are equal
        keys = [(*unit, *unit.values(), *map(type, unit.values())) for unit in values]
        new = {key: unit for key, unit in zip(keys, values, strict=True) if key not in known}
        if not _PLAIN.issuperset(map(type, chain.from_iterable(map(dict.values, new.values())))):
            return None
        data = orjson.dumps([*new.values()], option=orjson.OPT_INDENT_2)
    except TypeError:
        return None
    pieces = (b" ".join(map(bytes.lstrip, piece[5:].split(b"\n"))) for piece in data[5:-6].split(b"\n  },\n  {"))
    known.update((key, b"{" + piece + b"}") for key, piece in zip(new, pieces, strict=False))
    return [known[key] for key in keys]


def _one_line(data: bytes) -> bytes:
    """Return indented JSON as one line. Of orjson, only indented JSON has a blank after each colon, as that of the json
    module has; a string in it has no newline.
    """
    pieces = [piece + b" " if piece[-1] == _COMMA else piece for piece in map(bytes.lstrip, data.split(b"\n"))]
    return b"".join((*pieces, b"\n"))


def plain_json(value: object, option: int = 0) -> bytes | None:
    """Return the JSON of a value without a newline at the end, several times as fast as the json module; None unless
    the value is the same after the JSON is read.
    """
    try:
        return orjson.dumps(value, option=option) if _is_plain(value) else None
    except (TypeError, RecursionError):
        return None


def _is_plain(value: object) -> bool:
    if isinstance(value, float):  # others have an exponent, which Python spells in another way
        return type(value) is float and (not value or 1e-4 <= abs(value) < 1e16)
    if type(value) is dict or type(value) is list:
        parts = value.values() if isinstance(value, dict) else value
        return _PLAIN.issuperset(map(type, parts)) or all(map(_is_plain, parts))
    return type(value) in _PLAIN

"""Names and shapes of released files: one pattern both writes and recognises a name; a bundle both ways."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.errors import ReleaseError
from mmlongbench.io.safe_read import MAX_BYTES, bounded_lines
from mmlongbench.lengths import K

_SLOTS = {"name": r"[\w.-]+?", "k": r"[1-9]\d*", "questions": r"\d+", "placements": r"\d+"}


@dataclass(frozen=True, slots=True)
class FileName:
    """What a file's name says."""

    name: str
    k: int

    @property
    def length(self) -> int:
        """L in tokens."""
        return self.k * K


@dataclass(frozen=True, slots=True)
class FilePattern:
    """A path below `mmlb_data/` with slots: {name}, {k}, and where needed {questions}, {placements}."""

    template: str

    def write(self, name: str, length: int, questions: int = 0, placements: int = 0) -> str:
        """The file of a dataset at a length.

        >>> FilePattern("documentQA/{name}_K{k}.jsonl").write("mmlongdoc", 8192)
        'documentQA/mmlongdoc_K8.jsonl'
        """
        return self.template.format(name=name, k=length // K, questions=questions, placements=placements)

    def recognise(self, path: str) -> FileName | None:
        """Read a name back.

        >>> FilePattern("documentQA/{name}_K{k}.jsonl").recognise("documentQA/mmlongdoc_K128.jsonl")
        FileName(name='mmlongdoc', k=128)
        """
        pattern = re.escape(self.template)
        for slot, form in _SLOTS.items():
            pattern = pattern.replace(rf"\{{{slot}\}}", f"(?P<{slot}>{form})")
        found = re.fullmatch(pattern, path)
        return FileName(found["name"], int(found["k"])) if found else None


class FileFormat(ABC):
    """How records become a file and come back."""

    @abstractmethod
    def bundle(self, records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        """Return the file's bytes, piece by piece."""

    @abstractmethod
    def unbundle(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """Return (where in the file, record) of each example.

        Raises:
            ReleaseError: the file cannot be read.

        """

    def read(self, path: Path) -> Iterator[tuple[str, dict[str, Any] | ReleaseError]]:
        """Return (where, record) as `unbundle` does. A format that can go on gives a bad record as a ReleaseError."""
        return self.unbundle(path)


class JsonLines(FileFormat):
    """One object a line: the default."""

    def bundle(self, records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        """One line a record, in UTF-8, keys in the order of the record."""
        for record in records:
            yield to_json(record)

    def unbundle(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each line, with its number; memory does not grow with the file."""
        for where, record in self.read(path):
            if isinstance(record, ReleaseError):
                raise record
            yield where, record

    def read(self, path: Path) -> Iterator[tuple[str, dict[str, Any] | ReleaseError]]:
        """Each line that is not blank, or what is wrong with it."""
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
                    record = json.loads(line)
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
    """One line of JSON: UTF-8 (an undecodable byte of a file's name as an escape), a newline at the end."""
    return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")

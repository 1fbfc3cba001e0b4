"""Finds the Parquet files of one split in a download from the hub, and opens them.

The hub writes the name of a split into the name of a file (`data/test-00000-of-00011.parquet`) or of a folder
(`plain_text/test/0000.parquet`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.task import Fault, SourceError, visible_files

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

PARQUET = ".parquet"
"""The ending of Parquet files."""
_SPLITS = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation"}
_SPLITS |= {"dev": "validation", "test": "test"}
_PART = re.compile(r"(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})(?:-[0-9a-f]+)?\.parquet")
"""Matches the name of a file that is one of several of a split."""


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """The Parquet files that a source means."""

    name: str
    """The name of their split; empty if no name tells it."""
    files: tuple[Path, ...]
    """The files, in the order of their names."""
    others: tuple[str, ...] = ()
    """The names of the splits that the source has besides."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user must know about the choice, one sentence each."""
        said = []
        if self.others:
            said.append(
                f"of the splits {', '.join(sorted((self.name, *self.others)))}, only {self.name} is read; to read "
                "another one, name its files alone, as in data/train-*.parquet"
            )
        counts = {int(part["count"]) for part in map(_PART.fullmatch, (file.name for file in self.files)) if part}
        if len(counts) == 1 and (count := counts.pop()) > len(self.files):
            split = f"the split {self.name}" if self.name else "the split"
            said.append(f"only {len(self.files)} of the {count} files of {split} are there; rows are numbered in these")
        return tuple(said)


def split_of(name: str) -> str:
    """Return the split that the path of a file names, in the benchmark's words; empty if it names none.

    >>> split_of("data/val-00000-of-00003.parquet"), split_of("plain_text/test/0000.parquet"), split_of("0000.parquet")
    ('validation', 'test', '')
    """
    words = re.findall(r"[a-z]+", name.lower())
    return next((_SPLITS[word] for word in reversed(words) if word in _SPLITS), "")


def split_files(source: Path, preferred: str = "test") -> SplitFiles:
    """Return the Parquet files of one split: the file that the source is, or all files of a folder that has one split.
    If a folder has several splits, it is the preferred one.

    Raises:
        SourceError: there is no Parquet file; there are several splits, but not the preferred one; or two files have
            one name.

    """
    if not source.is_dir():
        return SplitFiles(split_of(source.name), (source,))
    found: dict[str, list[Path]] = {}
    for file in visible_files(source):
        if file.suffix.lower() == PARQUET:
            found.setdefault(split_of(file.relative_to(source).as_posix()), []).append(file)
    if not found:
        raise _refused(source, "Parquet files of one split", "none", "give the folder that has them, or a file")
    if len(found) > 1 and preferred not in found:
        names = ", ".join(sorted(name or "no split" for name in found))
        raise _refused(source, "files of one split", f"files of {names}", "give a folder with the files of one split")
    name = preferred if len(found) > 1 else next(iter(found))
    return SplitFiles(name, _each_once(found[name], source), tuple(sorted(filter(None, {*found} - {name}))))


def _each_once(files: Sequence[Path], source: Path) -> tuple[Path, ...]:
    """Return files in the order of their names; refuse two files of one name, which may be two copies of a split."""
    named: Mapping[str, list[str]] = {file.name: [] for file in files}
    for file in files:
        named[file.name].append(file.relative_to(source).as_posix())
    if twice := next((paths for paths in named.values() if len(paths) > 1), None):
        raise _refused(source, "each file of a split once", " and ".join(twice[:2]), "take one of the copies out")
    return tuple(sorted(files, key=lambda file: file.name))


def _refused(source: Path, expected: str, found: str, todo: str) -> SourceError:
    return SourceError(
        Fault("several-splits" if found != "none" else "missing-split", expected, found, source.name, todo=todo)
    )


def open_parquet(file: Path) -> "ParquetFile":
    """Open a Parquet file, to be read in parts.

    Raises:
        SourceError: it is no Parquet file.

    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            Fault("unreadable-source", "a Parquet file", str(error)[:200], file.name, todo="download the file again")
        ) from error

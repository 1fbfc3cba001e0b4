"""The working folder of a build, the shards into which the work is divided, and the results that they leave there. All
state of a build is on disk.

A shard is done when its result file is there and complete. The working folder is inside the folder of the release, and
is removed once the lock is written.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mmlongbench.building.shard_results import Line, PackedRecord, to_fields
from mmlongbench.errors import BuildError
from mmlongbench.io.files import file_lock, write_whole
from mmlongbench.release.layout import LOCK, STAGE_NAMES, StageName
from mmlongbench.task.file_formats import plain_json, to_json

LineT = TypeVar("LineT")
WantedT = TypeVar("WantedT")
WORKING = ".build"
EXTENSION = "extension"
_MAX_END = 256
"""The maximum size in bytes of the last line of a result."""
BLOCK = 32
"""The maximum number of rows or questions in a block."""


@dataclass(frozen=True, slots=True)
class Shard:
    """An independent piece of work with a stable name."""

    stage: StageName
    dataset: str
    name: str
    steps: int = field(default=1, compare=False)
    """The number of questions or pictures of the shard, for the progress bar; 1 for other shards."""

    def __str__(self) -> str:
        return f"{self.stage}/{self.dataset}/{self.name}"


def blocks(rows: int) -> dict[str, int]:
    """Return the names of the blocks into which rows or questions are divided, with the number of each block's rows.

    >>> blocks(40)
    {'00000': 32, '00001': 8}
    """
    return {f"{first // BLOCK:05d}": min(BLOCK, rows - first) for first in range(0, rows, BLOCK)}


def block_shards(stage: StageName, dataset: str, rows: int) -> list[Shard]:
    """Return the shards of a stage that works on blocks of rows or questions."""
    return [Shard(stage, dataset, block, steps) for block, steps in blocks(rows).items()]


def places_in(block: str) -> slice:
    """Return the places of a block's rows among all rows."""
    return slice(int(block) * BLOCK, (int(block) + 1) * BLOCK)


def rows_shard(dataset: str) -> Shard:
    """The shard that reads the rows of a dataset: one, because an id may occur only once among all rows."""
    return Shard("rows", dataset, "all")


def questions_shard(dataset: str) -> Shard:
    """The shard that chooses the questions of a dataset: one, because the choice depends on all rows."""
    return Shard("questions", dataset, "all")


class _End(BaseModel):
    """The last line of a shard's result; it shows whether the result is complete."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    bytes: int
    """The size in bytes of all lines before this one."""
    sha256: str


@dataclass(frozen=True, slots=True)
class BuildDir:
    """A release under construction."""

    out: Path

    @property
    def root(self) -> Path:
        """The working folder."""
        return self.out / WORKING

    @property
    def plan(self) -> Path:
        """The file of the plan: the resolved manifest and the fingerprints of the sources."""
        return self.root / "plan.json"

    def extracted(self, dataset: str) -> Path:
        """Return the folder with what the reader of a dataset extracts from its sources (`Reader.extract`)."""
        return self.root / "extracted" / dataset

    @property
    def corpora(self) -> Path:
        """The folder with corpora that the build made from articles."""
        return self.root / "corpus"

    @property
    def opened(self) -> Path:
        """The folder with unpacked archives, and with sources downloaded from URLs."""
        return self.root / "opened"

    @property
    def holds_work(self) -> bool:
        """Whether the folder holds a build to continue: one with a plan, or an extension whose files are being moved to
        their places.
        """
        return self.plan.is_file() or (self.extension.out / LOCK).is_file()

    @property
    def extension(self) -> "BuildDir":
        """The release under construction that will take the place of the finished release in this folder."""
        return BuildDir(self.root / EXTENSION)

    @property
    def before(self) -> Path:
        """The folder with the lock of a release that is being replaced by its extension."""
        return self.root / "before"

    @property
    def is_moving(self) -> bool:
        """Whether the files of an extension are being moved to their places."""
        return (self.before / LOCK).is_file()

    @property
    def extended(self) -> Path | None:
        """The finished release that this build extends; None if it extends none."""
        is_extension = self.out.name == EXTENSION and self.out.parent.name == WORKING
        return self.out.parent.parent if is_extension else None

    def file(self, path: str) -> Path:
        """Return where a file of the release is: in this folder or, if it was taken over, in the extended release."""
        here, extended = self.out / path, self.extended
        return here if extended is None or here.exists() else extended / path

    # The results of shards

    def result(self, shard: Shard) -> Path:
        """Return the path of a shard's result."""
        return self.root / f"{shard}.jsonl"

    def lock_shard(self, shard: Shard) -> AbstractContextManager[None]:
        """Return a context that holds the lock of a shard, so that only one process writes its result."""
        return file_lock(self.root / "claims" / f"{shard}".replace("/", "--"), f"shard {shard} of {self.out}")

    def write(self, shard: Shard, lines: Iterable[Line]) -> None:
        """Write a shard's result as lines of JSON; one more line at the end has the size and hash of the lines before
        it.
        """

        def ended() -> Iterator[bytes]:
            size, digest = 0, hashlib.sha256()
            for line in lines:
                plain = plain_json(to_fields(line))
                data = plain + b"\n" if plain else to_json(to_fields(line))
                if isinstance(line, PackedRecord):
                    data += line.line
                size += len(data)
                digest.update(data)
                yield data
            yield to_json({"bytes": size, "sha256": digest.hexdigest()})

        write_whole(self.result(shard), ended())

    def is_done(self, shard: Shard) -> bool:
        """Return whether the shard's result exists and is complete."""
        return self._end(shard) is not None

    def fingerprint(self, shard: Shard) -> str:
        """Return the SHA-256 in the last line of a shard's result; empty if there is no complete result."""
        end = self._end(shard)
        return end.sha256 if end else ""

    def _end(self, shard: Shard) -> _End | None:
        """Return the last line of a result; None if the result is incomplete or missing."""
        try:
            with self.result(shard).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _MAX_END))
                tail = file.read().splitlines(keepends=True)
            end = _End.model_validate_json(tail[-1] if tail else b"")
        except (OSError, ValidationError):
            return None
        return end if end.bytes + len(tail[-1]) == size and tail[-1].endswith(b"\n") else None

    def read(self, shard: Shard, kind: TypeAdapter[LineT]) -> Iterator[LineT]:
        """Yield the lines of a shard's result; `kind` is the type of the lines of its stage. As in all methods that
        read results, one that is missing or not as it was written is a `BuildError`, is removed, and is no longer done.
        """
        yield from (line for _, line in self.read_placed(shard, kind))

    def read_placed(self, shard: Shard, kind: TypeAdapter[LineT]) -> Iterator[tuple[int, LineT]]:
        """Yield (byte where the line begins, line) for each line of a shard's result (see `line_at`)."""
        end = self._complete(shard)
        start, digest = 0, hashlib.sha256()
        with self.result(shard).open("rb", buffering=1 << 20) as lines:
            while start < end.bytes and (line := lines.readline()):
                digest.update(line)
                parsed, size = self._parsed(line, kind, shard), len(line)
                if isinstance(parsed, PackedRecord):
                    parsed.line = lines.readline()
                    digest.update(parsed.line)
                    size += len(parsed.line)
                yield start, parsed
                start += size
        if digest.hexdigest() != end.sha256:
            raise self.damaged(shard)

    def line_at(self, shard: Shard, start: int, kind: TypeAdapter[LineT]) -> LineT:
        """Return the line of a shard's result that begins at byte `start`."""
        try:
            with self.result(shard).open("rb") as lines:
                lines.seek(start)
                return self._parsed(lines.readline(), kind, shard)
        except FileNotFoundError as error:
            raise self.damaged(shard) from error

    def last(self, shard: Shard, kind: TypeAdapter[LineT]) -> LineT:
        """Return the last line of a shard's result, not counting the `_End`; the lines before it are not read."""
        size, block, tail = self._complete(shard).bytes, 1 << 16, b""
        with self.result(shard).open("rb") as lines:
            while b"\n" not in tail[:-1] and len(tail) < size:
                lines.seek(size - min(size, block))
                tail, block = lines.read(min(size, block)), block * 4
        return self._parsed(tail.splitlines()[-1] if tail else b"", kind, shard)

    def only(self, shard: Shard, kind: TypeAdapter[LineT], wanted: type[WantedT]) -> WantedT:
        """Return the line of the type `wanted` in a shard's result; there must be exactly one."""
        lines = [line for line in self.read(shard, kind) if isinstance(line, wanted)]
        if len(lines) != 1:
            raise self.damaged(shard)
        return lines[0]

    def _complete(self, shard: Shard) -> _End:
        if (end := self._end(shard)) is None:
            raise self.damaged(shard)
        return end

    def _parsed(self, line: bytes, kind: TypeAdapter[LineT], shard: Shard) -> LineT:
        try:
            return kind.validate_json(line)
        except ValidationError:  # the line is damaged, or has invalid Unicode, which only the json module reads
            try:
                return kind.validate_python(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise self.damaged(shard) from error

    def damaged(self, shard: Shard) -> BuildError:
        """Remove a result that is not what its stage writes, so that it is made again; return the error to raise."""
        self.discard(shard)
        path = self.result(shard)
        return BuildError(f"{path}: was damaged or changed, and was removed; run the command again to continue")

    def discard(self, shard: Shard) -> None:
        """Remove the result of a shard, so that it is done again."""
        self.result(shard).unlink(missing_ok=True)

    def discard_all(self) -> None:
        """Remove the results of all shards, because their plan is lost; caches, corpora and samples stay."""
        for stage in STAGE_NAMES:
            shutil.rmtree(self.root / stage, ignore_errors=True)

    def discard_from(self, stage: StageName, dataset: str) -> None:
        """Remove the results of a stage and of all later stages for a dataset."""
        for later in STAGE_NAMES[STAGE_NAMES.index(stage) :]:
            shutil.rmtree(self.root / later / dataset, ignore_errors=True)

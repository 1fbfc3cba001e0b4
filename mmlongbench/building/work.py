"""The working folder of a build: where shards leave their results. The disk is the only state.

A shard is done when its file stands under its name. The folder lies inside the release and goes once the
lock is written.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mmlongbench.files import claim, write_whole
from mmlongbench.formats import to_json

Stage: TypeAlias = Literal["documents", "rows", "negatives", "records", "assets", "pictures", "cells"]
_MADE = {
    "documents": "documents",
    "rows": "questions",
    "negatives": "negatives",
    "assets": "page images",
    "pictures": "pictures",
    "cells": "files",
}


@dataclass(frozen=True, slots=True)
class Shard:
    """An independent piece of work with a stable name."""

    stage: Stage
    dataset: str
    name: str
    steps: int = field(default=1, compare=False)
    """How many questions or pictures that is, to show how far a build is."""

    @property
    def group(self) -> str:
        """The cell it belongs to, or what is made of the dataset: a line of progress."""
        return f"{self.dataset} {self.name.split('/')[0] if self.stage == 'records' else _MADE[self.stage]}"

    def __str__(self) -> str:
        return f"{self.stage}/{self.dataset}/{self.name}"


@dataclass(frozen=True, slots=True)
class Work:
    """A release under construction."""

    out: Path

    @property
    def root(self) -> Path:
        """The working folder."""
        return self.out / ".build"

    @property
    def plan(self) -> Path:
        """What is being built, from which bytes."""
        return self.root / "plan.json"

    def result(self, shard: Shard) -> Path:
        """Where a shard's result stands once it is done."""
        return self.root / f"{shard}.jsonl"

    def is_done(self, shard: Shard) -> bool:
        """Whether the shard's result is there, whole."""
        return self.result(shard).is_file()

    def write(self, shard: Shard, lines: Iterable[Any]) -> None:
        """Leave a shard's result, as lines of JSON."""
        write_whole(self.result(shard), map(to_json, lines))

    def read(self, shard: Shard) -> Iterator[Any]:
        """A shard's result, line by line."""
        with self.result(shard).open("rb") as lines:
            yield from map(json.loads, lines)

    def last(self, shard: Shard) -> Any:  # noqa: ANN401  (JSON)
        """The last line of a shard's result, without reading the others."""
        with self.result(shard).open("rb") as lines:
            size = lines.seek(0, os.SEEK_END)
            block, tail = 1 << 16, b""
            while b"\n" not in tail[:-1] and len(tail) < size:
                lines.seek(-min(size, block), os.SEEK_END)
                tail, block = lines.read(), block * 4
        return json.loads(tail.splitlines()[-1])

    def claim(self, shard: Shard) -> Any:  # noqa: ANN401  (a context manager)
        """The right to write a shard."""
        return claim(self.root / "claims" / f"{shard}".replace("/", "--"), f"shard {shard} of {self.out}")

"""What was taken out of a release, and when: a line for each takedown, in a file beside the lock (`TOMBSTONES`)."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mmlongbench.io.files import write_whole
from mmlongbench.release.layout import TOMBSTONES
from mmlongbench.task.file_formats import to_json


class Tombstone(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    """The day, as 2026-11-25."""
    kind: str
    """`document`, `image` or `source`."""
    id: str
    """What was taken out."""
    before: str
    """The first digits of the SHA-256 of the lock before (`lock_id`)."""
    examples: dict[str, int]
    """How many examples were dropped from each public file."""
    images: int
    """How many images were removed, with those that no other example shows."""
    texts: int
    """How many texts were removed, with those that no other example shows."""
    equal: int
    """How many images and texts went because they equal what was taken out, under another name."""


def write_tombstones(release: Path, out: Path, tombstone: Tombstone) -> None:
    """Write the tombstones of earlier takedowns, and the new one."""
    before = (release / TOMBSTONES).read_bytes() if (release / TOMBSTONES).is_file() else b""
    write_whole(out / TOMBSTONES, [before, to_json(tombstone.model_dump())])

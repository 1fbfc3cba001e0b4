"""The contract of an export: what a target is given, what it writes, and what it reports. No target is known here."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mmlongbench.release.release import Example, Release
from mmlongbench.release.selection import Cell


@dataclass(frozen=True, slots=True)
class Export:
    """What is exported, where to, and how."""

    release: Release
    cells: tuple[Cell, ...]
    """The chosen examples: one cell for each dataset and length."""
    out: Path
    """The folder to write into; it exists and is empty."""
    model: str = ""
    """The name of the model, for targets whose files name it; empty: not given."""
    images: str = ""
    """The form of image addresses (see `Example.messages`); empty: the target's own choice."""
    max_tokens: int | None = None
    """The maximum number of tokens of an answer; None: the reserve of the example."""
    form: str = ""
    """The form of the lines, one of the target's `forms`; empty if it has only one."""

    def examples(self) -> Iterator[Example]:
        """Yield all chosen examples, cell by cell; one is in memory at a time."""
        for cell in self.cells:
            yield from cell.examples()


@dataclass(frozen=True, slots=True)
class Exported:
    """What a target wrote."""

    examples: int
    """The number of examples in its files."""
    left_out: tuple[str, ...] = ()
    """The examples that the form cannot hold, each with the reason."""
    notes: tuple[str, ...] = ()
    """Sentences that a user must know to run the files."""
    bytes_copied: int = 0
    """The bytes of images that its files contain, as copies or in base64; 0 if images are linked or referred to."""
    files: int = 0
    """The number of files; counted by `export`."""
    bytes: int = 0
    """The size of all files, without files that are linked; counted by `export`."""


class Target(ABC):
    """A form in which other tools take examples. Subclasses are entry points of the group `mmlongbench.exports`; the
    name of the entry point is the name of the target.
    """

    summary: ClassVar[str]
    """What the target is, in one line."""
    forms: ClassVar[tuple[str, ...]] = ()
    """The forms of its lines, of which `--format` chooses one, the first by default; empty: there is only one."""

    @abstractmethod
    def write(self, export: Export) -> Exported:
        """Write the files, and a README.md that says how to run them.

        The same release and the same choices give the same bytes. Images are referred to, linked or embedded, as the
        form allows; a text part or an image is never left out or moved.

        Raises:
            ReleaseError: the release cannot be read, or a choice does not fit the target.

        """

"""What all pages are made of: what is viewed, its index, the answers and the models; and the addresses of pages, which
differ between a server and files on disk.
"""

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mmlongbench.errors import ReleaseError
from mmlongbench.release.diff import ReleaseDifference
from mmlongbench.release.example_cost import Model
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.web.viewer.answers import Answers
from mmlongbench.web.viewer.index import Index
from mmlongbench.web.viewer.index_lines import IndexRow, read_back
from mmlongbench.web.viewer.opened import OpenExample, open_example
from mmlongbench.web.viewer.review import Review
from mmlongbench.web.viewer.sources import Viewed, ViewedFile

_OPEN = 3
"""The examples that are kept open; a reader goes back and forth between few."""
Key: TypeAlias = tuple[int, int]
"""The number of a file and the number of a row in it."""


class Links(ABC):
    """The addresses of pages and of their parts."""

    mode: str
    """`server` or `static`; scripts load data accordingly."""

    @abstractmethod
    def release(self) -> str:
        """Return the address of the page of the release."""

    @abstractmethod
    def dataset(self, number: int) -> str:
        """Return the address of the page of a dataset."""

    @abstractmethod
    def rejects(self) -> str:
        """Return the address of the page of rejects."""

    @abstractmethod
    def report(self) -> str:
        """Return the address of the report."""

    @abstractmethod
    def review(self) -> str:
        """Return the address of the list of what is reviewed."""

    @abstractmethod
    def subject(self, number: int) -> str:
        """Return the address of something that is reviewed, which counts from 1."""

    @abstractmethod
    def example(self, file: ViewedFile, row: int) -> str:
        """Return the address of an example, which counts from 1; empty if the site does not have it."""

    @abstractmethod
    def asset(self, name: str) -> str:
        """Return the address of a stylesheet or a script."""

    @abstractmethod
    def data(self) -> str:
        """Return the beginning of the addresses of data."""

    @abstractmethod
    def small(self) -> str:
        """Return the beginning of the addresses of small copies of images."""

    @abstractmethod
    def large(self) -> str:
        """Return the beginning of the addresses of images in full size."""


@dataclass
class Site:
    """Everything that pages are made of. Threads may share it."""

    viewed: Viewed
    index: Index
    answers: Answers
    models: Sequence[Model] = ()
    """The models by whose rules the ruler can be drawn."""
    findings: Sequence[Finding] = ()
    """The findings of `mmlongbench shortcuts --json`."""
    against: tuple[str, ReleaseDifference] | None = None
    """The name of another release, and the differences to it."""
    review: Review | None = None
    """What is reviewed; None if nothing is."""
    _open: OrderedDict[Key, OpenExample] = field(default_factory=OrderedDict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def file(self, number: int) -> ViewedFile:
        """Return a public file by its number.

        Raises:
            ReleaseError: there is no such file.

        """
        if not 0 <= number < len(self.viewed.files):
            raise ReleaseError(f"there is no file {number}")
        return self.viewed.files[number]

    def row(self, file: ViewedFile, row: int) -> IndexRow:
        """Return a row of a public file.

        Raises:
            ReleaseError: there is no such row.

        """
        rows = self.index.file(file.number).rows
        if not 0 <= row < len(rows):
            raise ReleaseError(f"{file.name}: there is no example {row + 1}")
        return rows[row]

    def open(self, file: ViewedFile, row: int) -> OpenExample:
        """Open an example, or return it if it is open; one is opened at a time, which bounds memory.

        Raises:
            MMLongBenchError: it cannot be read.

        """
        key = (file.number, row)
        with self._guard:
            if key not in self._open:
                self._open[key] = self.read(file, row)
                while len(self._open) > _OPEN:
                    self._open.popitem(last=False)
            self._open.move_to_end(key)
            return self._open[key]

    def read(self, file: ViewedFile, row: int) -> OpenExample:
        """Read an example from the disk.

        Raises:
            MMLongBenchError: it cannot be read.

        """
        found = self.row(file, row)
        units = self.index.units(file.number, found)
        return open_example(self.viewed, file, found, self.index.record(file.number, found), units)

    def image(self, file: ViewedFile, number: int) -> str:
        """Return the path of an image by its number in the index of a file.

        Raises:
            ReleaseError: there is no such image.

        """
        images = self.index.file(file.number).head.images
        if not 0 <= number < len(images):
            raise ReleaseError(f"{file.name}: there is no image {number}")
        return read_back(images[number])

    def elsewhere(self, file: ViewedFile, row: IndexRow) -> list[tuple[ViewedFile, IndexRow]]:
        """Return the other places of a question in its dataset: other lengths and placements, the shortest first."""
        return [
            (other, each)
            for other in self.viewed.of(file.dataset)
            for each in self.index.file(other.number).rows
            if each.id == row.id and (other.number, each.row) != (file.number, row.row)
        ]

    def shorter(self, file: ViewedFile, row: IndexRow) -> tuple[ViewedFile, IndexRow] | None:
        """Return the example of the same question and placement at the next shorter length; None if there is none."""
        same = [
            (other, each)
            for other, each in self.elsewhere(file, row)
            if other.length < file.length and each.placement == row.placement and not each.fault
        ]
        return max(same, key=lambda pair: pair[0].length, default=None)

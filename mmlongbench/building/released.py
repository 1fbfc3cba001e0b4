"""The finished release that a build extends: what is taken from it instead of being made again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import cast

from mmlongbench.building.lines import PackedRecord, Reject
from mmlongbench.building.shortfalls import read_rejects
from mmlongbench.errors import BuildError, ReleaseError
from mmlongbench.lengths import format_length
from mmlongbench.release.items import Item
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, REJECTS
from mmlongbench.release.lock import CellCounts, Lock, LockedFile, read_lock
from mmlongbench.task.spec import TaskSpec

_ROWS = 10_000
"""How many rows of items are read at once."""


@dataclass(frozen=True, slots=True)
class CellFiles:
    """The paths of the files of a dataset at a length, below the release."""

    public: str
    items: str
    bundle: str
    """The second public file (`TaskSpec.bundle`); empty if the task has none."""

    @property
    def all(self) -> tuple[str, ...]:
        """All these files."""
        return tuple(filter(None, (self.public, self.items, self.bundle)))


def cell_files(spec: TaskSpec, name: str, length: int, questions: int, placements: int) -> CellFiles:
    """Return the paths of the files of a dataset at a length."""
    about = (name, length, questions, placements)
    public = spec.files.write(*about)
    bundle = f"{DATA}/{spec.bundle.files.write(*about)}" if spec.bundle else ""
    return CellFiles(f"{DATA}/{public}", f"{ITEMS}/{Path(public).with_suffix('.parquet').as_posix()}", bundle)


class ReleasedCell:
    """The examples that the extended release has of a dataset at a length."""

    def __init__(
        self, out: Path, spec: TaskSpec, length: int, files: CellFiles, counts: CellCounts, rejects: list[Reject]
    ) -> None:
        """Read nothing yet."""
        self._out, self._spec = out, spec
        self.length = length
        self.files = files
        self.counts = counts
        self.rejects = rejects
        """The questions that do not fit, in the order of the source."""

    @cached_property
    def rejected(self) -> dict[str, Reject]:
        """The questions that do not fit, by id."""
        return {reject.id: reject for reject in self.rejects}

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the questions that have examples, in the order of the file."""
        if not self.counts.examples:
            return ()
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self._out / self.files.items) as file:
                batches = file.iter_batches(_ROWS, columns=["id"])
                return tuple(dict.fromkeys(str(id) for batch in batches for id in batch.column("id").to_pylist()))
        except (ValueError, LookupError, OSError) as error:  # errors of pyarrow are subclasses of these
            raise self._unusable(self.files.items, error) from error

    @cached_property
    def asked(self) -> frozenset[str]:
        """The same ids as `ids`, as a set."""
        return frozenset(self.ids)

    def examples(self) -> Iterator[tuple[str, list[PackedRecord]]]:
        """Yield (id, examples) of each question, in the order of the file.

        Raises:
            BuildError: the records and the items of the release do not belong together.

        """
        if not self.counts.examples:
            return
        made = self._each()
        for id, examples in groupby(made, key=lambda example: str(example.record.get("id"))):
            yield id, list(examples)

    def _each(self) -> Iterator[PackedRecord]:
        try:
            records = (record for _, record in self._spec.format.unbundle(self._out / self.files.public))
            for record, items in zip(records, self._items(), strict=True):
                if not items or record.get("id") != items[0]["id"]:
                    raise ValueError(f"the record {record.get('id')!r} has the items of another example")
                # whether its units ran out is in the counts of the cell
                yield PackedRecord(record, items, ran_dry=False, missing=0)
        except (ValueError, LookupError, OSError, ReleaseError) as error:
            raise self._unusable(self.files.public, error) from error

    def _unusable(self, name: str, error: Exception) -> BuildError:
        said = " ".join(str(error).split())[:200]
        return BuildError(f"{self._out / name}: the release cannot be extended: {said}; build into another folder")

    def _items(self) -> Iterator[list[Item]]:
        """Yield the items of each example, in the order of the file."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self._out / self.files.items) as file:
            rows = (cast(Item, row) for batch in file.iter_batches(_ROWS) for row in batch.to_pylist())
            for _, items in groupby(rows, key=lambda row: (row["id"], row["placement"])):
                yield list(items)


class Released:
    """A finished release that is being extended."""

    def __init__(self, out: Path) -> None:
        """Read the lock."""
        self.out = out
        self.lock: Lock = read_lock(out)
        self._cells: dict[tuple[str, int], ReleasedCell] = {}

    @cached_property
    def images(self) -> dict[str, LockedFile]:
        """The images, by their path in the release. An extension keeps every example, so it needs all of them."""
        return {path: file for path, file in self.lock.files.items() if path.startswith(f"{IMAGES}/")}

    @cached_property
    def shown(self) -> frozenset[str]:
        """The paths of the images as records name them, below `mmlb_image/`."""
        return frozenset(path.removeprefix(f"{IMAGES}/") for path in self.images)

    @cached_property
    def _rejects(self) -> list[Reject]:
        return list(read_rejects(self.out / REJECTS))

    def kept(self, name: str) -> int | None:
        """Return how many questions a dataset has; None if the release has no such dataset."""
        found = self.lock.counts(name)
        return found.questions.kept if found else None

    def source_hashes(self, name: str) -> Mapping[str, object]:
        """Return the SHA-256 of the sources of a dataset, by the names of the sources."""
        found = self.dataset(name).get("source_sha256")
        return found if isinstance(found, Mapping) else {}

    def lengths(self, name: str) -> Sequence[int]:
        """Return the lengths at which the release has a dataset, the shortest first."""
        lengths = self.dataset(name).get("lengths")
        return sorted(each for each in lengths if isinstance(each, int)) if isinstance(lengths, list) else ()

    def dataset(self, name: str) -> Mapping[str, object]:
        """Return a dataset as it was resolved; empty if the release has no such dataset."""
        return next((data for data in self.lock.manifest if data.get("name") == name), {})

    def cell(self, name: str, length: int, spec: TaskSpec, placements: int) -> ReleasedCell | None:
        """Return what the release has of a dataset at a length; None if it has not this length of the dataset."""
        counts = self.lock.counts(name)
        if counts is None or format_length(length) not in counts.cells:
            return None
        if (name, length) not in self._cells:
            files = cell_files(spec, name, length, counts.questions.kept, placements)
            rejects = [reject for reject in self._rejects if (reject.dataset, reject.length) == (name, length)]
            found = ReleasedCell(self.out, spec, length, files, counts.cells[format_length(length)], rejects)
            self._cells[name, length] = found
        return self._cells[name, length]

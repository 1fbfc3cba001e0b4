"""The finished release that a build extends: what is taken from it instead of being made again."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from mmlongbench.building.source_files import Hashed, hash_files
from mmlongbench.errors import BuildError, ReleaseError
from mmlongbench.lengths import format_length
from mmlongbench.release.items import Item, items_in_order, keys_of_items
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, REJECTS
from mmlongbench.release.lock import CellCounts, Lock, LockedFile, read_lock
from mmlongbench.release.rejects import Reject, read_rejects
from mmlongbench.task.rows import Record
from mmlongbench.task.spec import TaskSpec


class CellFiles(NamedTuple):
    """The paths of the files of a dataset at a length, below the release."""

    public: str
    items: str
    bundle: str

    @property
    def all(self) -> tuple[str, ...]:
        """All these files."""
        return tuple(filter(None, self))


def cell_files(spec: TaskSpec, name: str, length: int, questions: int, placements: int) -> CellFiles:
    """Return the paths of the files of a dataset at a length."""
    about = (name, length, questions, placements)
    public = spec.files.write(*about)
    bundle = f"{DATA}/{spec.bundle.files.write(*about)}" if spec.bundle else ""
    return CellFiles(f"{DATA}/{public}", f"{ITEMS}/{Path(public).with_suffix('.parquet').as_posix()}", bundle)


@dataclass(frozen=True)
class ReleasedCell:
    """The examples that the extended release has of a dataset at a length."""

    out: Path
    spec: TaskSpec
    length: int
    files: CellFiles
    counts: CellCounts
    rejects: dict[str, Reject]
    """The questions that do not fit, by id, in the order of the source."""

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the questions that have examples, in the order of the file."""
        try:
            keys = keys_of_items(self.out, self._name) if self.counts.examples else None
        except ReleaseError as error:
            raise self._unusable(self.files.items, error) from error
        return tuple(dict.fromkeys(id for id, _ in keys or ()))

    def examples(self) -> Iterator[tuple[Record, list[Item]]]:
        """Yield (record, items) of each example, as in the file; raises BuildError if they do not belong together."""
        if not self.counts.examples:
            return
        try:
            records = (record for _, record in self.spec.format.unbundle(self.out / self.files.public))
            every = items_in_order(self.out, self._name, self.length)
            for record, (id, _, items) in zip(records, every, strict=True):
                if record.get("id") != id:
                    raise ValueError(f"the record {record.get('id')!r} has the items of another example")
                yield record, items
        except (ValueError, LookupError, OSError, ReleaseError) as error:
            raise self._unusable(self.files.public, error) from error

    @property
    def _name(self) -> str:
        return self.files.public.removeprefix(f"{DATA}/")

    def _unusable(self, name: str, error: Exception) -> BuildError:
        said = " ".join(str(error).split())[:200]
        return BuildError(f"{self.out / name}: the release cannot be extended: {said}; build into another folder")


class Released:
    """A finished release that is being extended."""

    def __init__(self, out: Path) -> None:
        """Read the lock."""
        self.out = out
        self.lock: Lock = read_lock(out)
        self.images: dict[str, LockedFile] = {
            path: file for path, file in self.lock.files.items() if path.startswith(f"{IMAGES}/")
        }
        """The images, by their path in the release. An extension keeps every example, so it needs all of them."""
        self.shown = frozenset(path.removeprefix(f"{IMAGES}/") for path in self.images)
        """The paths of the images as records name them, below `mmlb_image/`."""
        self._cells: dict[tuple[str, int], ReleasedCell] = {}

    def kept(self, name: str) -> int | None:
        """Return how many questions a dataset has; None if the release has no such dataset."""
        counts = self.lock.counts(name)
        return counts.questions.kept if counts else None

    def dataset(self, name: str) -> Mapping[str, object]:
        """Return a dataset as it was resolved; empty if the release has no such dataset."""
        return next((data for data in self.lock.manifest if data.get("name") == name), {})

    def source_hashes(self, name: str) -> Mapping[str, object]:
        """Return the SHA-256 of the sources of a dataset, by the names of the sources."""
        hashes = self.dataset(name).get("source_sha256")
        return hashes if isinstance(hashes, Mapping) else {}

    @cached_property
    def _rejects(self) -> list[Reject]:
        return list(read_rejects(self.out / REJECTS))

    def cell(self, name: str, length: int, spec: TaskSpec, placements: int) -> ReleasedCell | None:
        """Return what the release has of a dataset at a length; None if it has not this length of the dataset."""
        counts, shown = self.lock.counts(name), format_length(length)
        if counts is None or shown not in counts.cells:
            return None
        if (name, length) not in self._cells:
            files = cell_files(spec, name, length, counts.questions.kept, placements)
            own = (reject for reject in self._rejects if (reject.dataset, reject.length) == (name, length))
            rejects = {reject.id: reject for reject in own}
            self._cells[name, length] = ReleasedCell(self.out, spec, length, files, counts.cells[shown], rejects)
        return self._cells[name, length]


def refuse_damage(files: Mapping[str, LockedFile], out: Path, *, is_hashed: bool = False) -> None:
    """Refuse a finished release with a file that is missing or has another size than the lock says; the `BuildError`
    names the first. With `is_hashed`, refuse also a file with other content; images are not hashed, because an
    extension compares those that it needs.
    """
    for name, locked in files.items():
        size = (out / name).stat().st_size if (out / name).is_file() else None
        if size != locked.bytes:
            found = "it is missing" if size is None else f"it has {size} bytes"
            raise damaged(out, name, f"expected {locked.bytes} bytes, {found}")
    hashed = {out / name: name for name in files if is_hashed and not name.startswith(f"{IMAGES}/")}
    for path, content in hash_files(list(hashed), lambda: None):
        if not (isinstance(content, Hashed) and content.sha256 == files[hashed[path]].sha256):
            raise damaged(out, hashed[path], "its content is not what the lock says")


def damaged(out: Path, name: str, fault: str) -> BuildError:
    """Return the error for a file of a finished release that is not as the lock says."""
    return BuildError(
        f"--out {out}: the release is damaged: {name}: {fault}; put the file back, or remove the folder and build "
        f"again (`mmlongbench audit {shlex.quote(str(out))}` lists all)"
    )

"""The index of what is viewed: the rows of tables, and where the record and the units of each example begin. Files are
read in pieces, never whole.
"""

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.task.rows import Record
from mmlongbench.web.viewer.index_lines import HEAD, ROW, UNITS, IndexHead, IndexRow, Units, read_back
from mmlongbench.web.viewer.indexing import IndexPaths, index_file, record_of
from mmlongbench.web.viewer.places import cache_folder, key_of
from mmlongbench.web.viewer.sources import Viewed, ViewedFile

_MAX_ROWS = 60_000
"""The rows of tables that are in memory at a time; rows of other files are read again when they are needed."""
FOLDER = "index"
"""The folder of the indexes, in the folder of the viewer."""


@dataclass(frozen=True, slots=True)
class FileIndex:
    """The index of one public file."""

    head: IndexHead
    rows: Sequence[IndexRow]


class Index:
    """The indexes of all files of what is viewed. Threads may share it."""

    def __init__(self, viewed: Viewed, keys: Sequence[str], folder: Path) -> None:
        self._viewed, self._folder, self._keys = viewed, folder, keys
        self._read: OrderedDict[int, FileIndex] = OrderedDict()
        self._guard = threading.Lock()

    def file(self, number: int) -> FileIndex:
        """Return the index of a public file.

        Raises:
            ReleaseError: the index is gone.

        """
        with self._guard:
            if number not in self._read:
                self._read[number] = _read(self._paths(number))
                while len(self._read) > 1 and sum(len(each.rows) for each in self._read.values()) > _MAX_ROWS:
                    self._read.popitem(last=False)
            self._read.move_to_end(number)
            return self._read[number]

    def head(self, number: int) -> IndexHead:
        """Return the head of the index of a public file; its rows are not read.

        Raises:
            ReleaseError: the index is gone.

        """
        with self._guard:
            known = self._read.get(number)
        return known.head if known else _head(self._paths(number))

    def record(self, number: int, row: IndexRow) -> Record:
        """Read the record of an example.

        Raises:
            ReleaseError: the file has changed, or the record cannot be read.

        """
        file = self._viewed.files[number]
        if row.fault:
            raise ReleaseError(f"{file.name}, example {row.number}: {row.fault}")
        self._require_same(number)
        is_copied = self.file(number).head.is_copied
        copies = self._paths(number).records
        data = _piece(copies if is_copied else file.path, row.offset, row.size)
        try:
            found = record_of(zlib.decompress(data) if is_copied else data, f"example {row.number}")
        except zlib.error as error:
            raise _no_index(copies, error) from error
        if isinstance(found, ReleaseError):
            raise ReleaseError(f"{file.name}: {found}")
        return found

    def units(self, number: int, row: IndexRow) -> Units:
        """Read the units of an example; they are empty if none are known.

        Raises:
            ReleaseError: the index cannot be read.

        """
        if not row.units_size:
            return Units()
        path = self._paths(number).units
        try:
            return UNITS.validate_json(_piece(path, row.units_at, row.units_size))
        except ValidationError as error:
            raise _no_index(path, error) from error

    def images(self, number: int) -> Sequence[str]:
        """Return the paths of the images of a file; the number of an image is its place here."""
        return [read_back(path) for path in self.file(number).head.images]

    def _paths(self, number: int) -> IndexPaths:
        return IndexPaths.of(self._folder, self._keys[number])

    def _require_same(self, number: int) -> None:
        file = self._viewed.files[number]
        if _key(self._viewed, file) != self._keys[number]:
            raise ReleaseError(f"{file.name}: has changed since the viewer was started; start it again")


def open_index(
    viewed: Viewed,
    images: Path | None = None,
    tasks: TaskFiles = NO_TASK_FILES,
    progress: Progress | None = None,
    run: Callable[..., int] | None = None,
) -> Index:
    """Open the index of what is viewed; files that changed, or that are new, are indexed in a process of their own.

    Args:
        viewed: what is viewed.
        images: the folder of images that was given to open it.
        tasks: the task files that were given to open it.
        progress: shows the bar.
        run: makes the index of a file in this process (see `indexing.index_file`); None: in other processes.

    Raises:
        ReleaseError: a file cannot be read.

    """
    folder = cache_folder() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    keys = [_key(viewed, file) for file in viewed.files]
    stale = [file for file in viewed.files if not IndexPaths.of(folder, keys[file.number]).head.is_file()]
    calls = [(viewed.path, images, tasks, file.name, folder, keys[file.number]) for file in stale]
    shown = progress or Progress(False)
    with shown.bar("index: files", len(calls)) as advance:
        if run is not None:
            for call in calls:
                run(*call)
                advance()
        else:
            for _ in each_done(1, index_file, calls, [file.name for file in stale]) if calls else ():
                advance()
    return Index(viewed, keys, folder)


def _key(viewed: Viewed, file: ViewedFile) -> str:
    """Return the key of a file's index: its path, size and time of change, those of its items, the lock and the
    code that reads it.
    """
    return key_of(
        [file.path, *([file.items] if file.items else [])], viewed.lock_id, viewed.code, file.name, str(file.images)
    )


def _read(paths: IndexPaths) -> FileIndex:
    try:
        with paths.rows.open("rb") as lines:
            return FileIndex(_head(paths), [ROW.validate_json(line) for line in lines])
    except (OSError, ValidationError) as error:
        raise _no_index(paths.rows, error) from error


def _head(paths: IndexPaths) -> IndexHead:
    try:
        return HEAD.validate_json(paths.head.read_bytes())
    except (OSError, ValidationError) as error:
        raise _no_index(paths.head, error) from error


def _no_index(path: Path, error: Exception) -> ReleaseError:
    """Return the error for a damaged file of an index; without its head, the index is made again."""
    head = path.with_suffix(".head")
    return ReleaseError(f"{path}: is no index ({type(error).__name__}); remove {head} and start again")


def _piece(path: Path, offset: int, size: int) -> bytes:
    """Return some bytes of a file."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)
    except OSError as error:
        raise ReleaseError(f"{path}: cannot be read: {error.strerror or error}") from error


def plain(value: object) -> str:
    """Return a value as JSON for a page; characters that UTF-8 cannot hold stay escapes."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))

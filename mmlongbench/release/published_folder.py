"""Reads a folder that `publish` wrote. Its public files and images are made again from its tables, in the user's cache.

What is made again is a release without items and rejects. A publication may leave out examples, whose licences forbid
to pass them on, and has an image once, whatever its paths are.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import sha256_of, write_whole
from mmlongbench.release.layout import CHECKSUMS, DATA, IMAGES, LOCK, PUBLISHED_EXAMPLES, PUBLISHED_IMAGES, by_length
from mmlongbench.release.lock import Lock, files_below, is_release_path
from mmlongbench.task.file_formats import FileFormat
from mmlongbench.task.rows import Record

_ROWS = 16
_MAX_GROUP = 1024 * 1024 * 1024
"""The maximum size of a row group in bytes; `publish` writes groups of at most 32 MiB, or one larger row."""


def is_publication(folder: Path) -> bool:
    """Return whether `publish` wrote a folder: it has a lock and tables of examples, and no public files."""
    has_tables = next((folder / PUBLISHED_EXAMPLES).glob("*/*.parquet"), None) is not None
    return has_tables and (folder / LOCK).is_file() and not (folder / DATA).exists()


def restored(
    folder: Path, lock: Lock, known: Mapping[str, tuple[FileFormat, int]], *, with_images: bool
) -> tuple[Path, list[str]]:
    """Return the folder of a release that is made of a publication, and the public files that are not those of the
    lock: the publication leaves out some of their examples, or has them in several tables, whose order is lost.

    The folder is made once, in the user's cache, and again if a table of the publication changes. `known` has the
    format of each public file with examples, and the number of its examples in the lock, by name.
    """
    tables = sorted(folder.glob(f"{PUBLISHED_EXAMPLES}/*/*.parquet"), key=lambda path: by_length(path.as_posix()))
    pictures = sorted(folder.glob(f"{PUBLISHED_IMAGES}/*.parquet"))
    files = [(path.absolute(), path.stat()) for path in (folder / LOCK, *tables, *pictures)]
    state = "\n".join(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in files)
    home = user_cache() / "published" / sha256(state.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    out = home / (folder.resolve().name or "release")
    parts, has_images = home / "parts.json", home / "has_images"  # written when all of it is there
    try:
        if not parts.is_file():
            names = list(_write_public(tables, lock, known, out))
            out.mkdir(parents=True, exist_ok=True)
            write_whole(out / LOCK, [(folder / LOCK).read_bytes()])
            write_whole(parts, [json.dumps(names).encode()])
        if with_images and not has_images.is_file():
            _write_images(pictures, lock, out)
            write_whole(has_images, [])
        return out, json.loads(parts.read_bytes())
    except OSError as error:
        raise ReleaseError(
            f"{folder}: cannot be made a release again in {home}: {error.strerror or error}; the variable "
            "XDG_CACHE_HOME names another folder for it"
        ) from error


def user_cache() -> Path:
    """Return the user's folder for what can be made again, by the rules of XDG."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(given) if given and Path(given).is_absolute() else Path("~/.cache").expanduser()
    return root / "mmlongbench"


def _write_public(
    tables: Sequence[Path], lock: Lock, known: Mapping[str, tuple[FileFormat, int]], out: Path
) -> Iterator[str]:
    """Write the public files; yield the names of those that have a part of their examples, or another order."""
    by_file: dict[str, list[Path]] = {}
    for table in tables:
        name = str(next(_column(table, "file"), None))
        if name not in known:
            raise ReleaseError(f"{table}: its examples are of {name!r:.200}, which is no file of the lock")
        by_file.setdefault(name, []).append(table)
    for name, of_file in by_file.items():
        form, examples = known[name]
        path = out / DATA / name
        write_whole(path, form.bundle(record for table in of_file for record in _records(table)))
        rows = sum(1 for table in of_file for _ in _column(table, "file"))
        is_other = sha256_of(path) != lock.files[f"{DATA}/{name}"].sha256
        if is_other and (rows < examples or len(of_file) > 1):
            yield name


def _records(table: Path) -> Iterator[Record]:
    for text in _column(table, "record"):
        try:
            record: object = json.loads(str(text))
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise ReleaseError(f"{table}: record: expected a JSON object, found {text!r:.80}")
        yield record


def _write_images(tables: Sequence[Path], lock: Lock, out: Path) -> None:
    paths: dict[str, list[str]] = {}
    for name, file in lock.files.items():
        if name.startswith(f"{IMAGES}/") and is_release_path(name):
            paths.setdefault(file.sha256, []).append(name)
    for table in tables:
        for image in _column(table, "image"):
            data = image.get("bytes") if isinstance(image, dict) else None
            digest = sha256(data).hexdigest() if isinstance(data, bytes) else ""
            if data is None or digest not in paths:
                raise ReleaseError(f"{table}: has an image that the lock does not have: SHA-256 {digest or 'unknown'}")
            for name in paths[digest]:
                write_whole(out / name, [data])


def _column(table: Path, column: str) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(table) as file:
            if column not in file.schema_arrow.names:
                raise ReleaseError(
                    f"{table}: has no column {column!r}: the folder was published by an older version, which no "
                    "command can read; publish the release again"
                )
            for number in range(file.metadata.num_row_groups):
                if (size := file.metadata.row_group(number).total_byte_size) > _MAX_GROUP:
                    raise ReleaseError(f"{table}: {size:,} bytes in a row group, at most {_MAX_GROUP:,} are read")
            for batch in file.iter_batches(_ROWS, columns=[column]):
                yield from batch[column].to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ReleaseError(f"{table}: cannot be read as Parquet: {' '.join(str(error).split())[:200]}") from error


def unlike_checksums(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (file, what is wrong with it) for each file of a publication that differs from its checksum."""
    try:
        lines = (folder / CHECKSUMS).read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ReleaseError(
            f"{folder}: has no readable {CHECKSUMS}; it was not made by `mmlongbench publish`"
        ) from error
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    there = {path.relative_to(folder).as_posix() for path in files_below(folder)} - {CHECKSUMS}
    for name in sorted(there | listed.keys()):
        if name not in listed:
            yield name, f"is not in the list of {CHECKSUMS}"
        elif name not in there:
            yield name, f"is missing of {CHECKSUMS}"
        elif sha256_of(folder / name) != listed[name]:
            yield name, "is not the file that was made"

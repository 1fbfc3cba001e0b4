"""Makes every source a file or a folder of this machine, whatever it is in the manifest.

A path is used as it is. An archive is the folder that it unpacks to; if it holds nothing but one folder, it is that
folder. If it holds nothing but the file that it is named after (`val.json.tar.gz`), it is that file. A packed file
(`rows.jsonl.gz`) is the file in it. What follows the name of an archive is a path inside it. Files at a URL are
downloaded first, and those of the hub to the hub's own cache. Several locations are one folder that has the files of
all; there, an archive that holds nothing but one folder keeps this folder. So a source gives the same release in each
of these forms.

Everything is unpacked and downloaded once, into one folder: the next call finds it there.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.archives import (
    ARCHIVES,
    BROKEN,
    FULL,
    MORE_SPACE,
    OTHER_ARCHIVES,
    archive_ending,
    disk_error,
    packed_ending,
    remove,
    unpack_archive,
    unpack_file,
    unpacked_size,
    whole_folder,
)
from mmlongbench.io.downloads import snapshot, url_facts, url_file
from mmlongbench.io.files import atomic_replace, visible_files
from mmlongbench.io.locations import LocalPath, Location, Url
from mmlongbench.io.progress import Advance, Progress

MAX_FILES = 4_000_000  # maximum number of files of a folder at a URL
_DIGITS = 16
_MAX_NAME = 100


def _download(url: Url, into: Path, progress: Progress, field: str) -> None:
    """Download a file or a folder to `into`, which appears whole or not at all; no message has a secret of it."""
    import fsspec

    label = f"{field}: downloading"
    try:
        if url.address.startswith(("http://", "https://")):
            address = url.address.partition("#")[0]
            size, version = url_facts(address)
            with progress.meter(label, size or 0) as advance, atomic_replace(into) as temporary:
                url_file(address, size, version, temporary, advance)
            return
        files, root = fsspec.core.url_to_fs(url.address)
        is_folder = False
        with suppress(NotImplementedError):  # a file system without folders
            is_folder = files.isdir(root)
        if not is_folder:
            with atomic_replace(into) as temporary:
                files.get_file(root, str(temporary))
            return
        paths: list[str] = sorted(files.find(root))
        if not 0 < len(paths) <= MAX_FILES:
            found = "more" if paths else "none"
            raise _fault("missing-source", f"1 to {MAX_FILES:,} files", found, field, "correct the URL", url.name)
        with whole_folder(into) as temporary, progress.bar(label, len(paths)) as step:
            for path in paths:
                name = path.removeprefix(root.rstrip("/")).lstrip("/")
                if {"", ".."} & {*name.split("/")} or "\0" in name or path == name:
                    todo = "check what the URL leads to"
                    raise _fault("path-out-of-archive", "names below the folder", repr(name)[:120], field, todo)
                (temporary / name).parent.mkdir(parents=True, exist_ok=True)
                files.get_file(path, str(temporary / name))
                step()
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001  (the errors of file systems have no common base)
        if isinstance(error, OSError) and error.errno in FULL:
            raise disk_error(error, url.name, field) from None
        said = " ".join(str(error).split())
        if not said or any(secret in said for secret in url.secrets):
            said = type(error).__name__
        todo = "check the URL and the network, or download it and give its path"
        if isinstance(error, ImportError):
            todo = "install what it names, or download the source and give its path"
        # without the cause, which may have secrets
        raise _fault("unreachable-source", f"a source at {url}", said[:200], field, todo) from None


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """A source as a file or a folder of this machine."""

    path: Path
    """The file or the folder."""
    bytes: int = 0
    """How many bytes were unpacked or downloaded for it; 0 if it is used where it is."""


class SourceOpener:
    """Opens sources; everything that must be unpacked or downloaded is kept in one folder."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        """`folder` may not exist yet; it is made when something is kept in it."""
        self._folder = folder
        self._progress = progress

    def open(self, locations: Sequence[Location], patterns: Sequence[str], field: str) -> OpenedSource:
        """Return a source as a file or a folder.

        Args:
            locations: where it is; several locations, and all files that a pattern such as `test-*.parquet` matches,
                are one folder that has the files of all.
            patterns: the files that the reader needs of a dataset of the hub, if the location names no path in it.
            field: the source as messages name it, such as `source.documents`.

        Raises:
            SourceError: a location does not exist, cannot be read, or holds something that no source may hold.

        """
        matching = (place.matching() if isinstance(place, LocalPath) else (place,) for place in locations)
        paths = [self._local(location, patterns, field) for places in matching for location in places]
        if len(paths) == 1:
            return self._opened(*paths[0], field)
        key = [str(part) for path, inner in paths for part in (*_identity(path), inner)]
        together = self._place("together", *key) / "files"
        if not together.is_dir():
            with whole_folder(together) as temporary:
                for path, inner in paths:
                    self._add(path, inner, temporary, field)
        return OpenedSource(together, _size(together))

    def _local(self, location: Location, patterns: Sequence[str], field: str) -> tuple[Path, str]:
        """Return (path on this machine, path inside it if it is an archive) of a location, after downloading it."""
        if isinstance(location, LocalPath):
            return _split_path(location.path)
        if isinstance(location, Url):
            scheme, _, rest = location.address.partition("://")
            outer, inner = (rest, "") if "?" in rest else _split_name(rest)
            address = Url(f"{scheme}://{outer}")
            place = self._place("download", address.address) / (address.name[:_MAX_NAME] or "file")
            if not place.exists():
                _download(address, place, self._progress, field)
            return place, inner
        outer, inner = _split_name(location.path)
        folder = snapshot(location, outer, patterns, field, is_shown=self._progress.is_shown)
        if outer:
            return folder, inner
        # an earlier download may have left other files in the hub's cache
        names = {file: file.relative_to(folder).as_posix() for file in visible_files(folder)}
        wanted = [file for file, name in names.items() if any(fnmatchcase(name, pattern) for pattern in patterns)]
        if len(wanted) == len(names):
            return folder, inner
        place = self._place("only", *patterns, *_identity(folder)) / "files"
        if not place.is_dir():
            with whole_folder(place) as temporary:
                for file in wanted:
                    _copy(file, temporary / file.relative_to(folder), field)
        return place, inner

    def _opened(self, path: Path, inner: str, field: str) -> OpenedSource:
        kept = _size(path) if path.is_relative_to(self._folder) else 0
        if path.is_dir() or not path.exists():
            return OpenedSource(path, kept)
        if archive_ending(path.name):
            root = self._place("archive", *_identity(path)) / path.name.removesuffix(archive_ending(path.name))
            if not root.is_dir():
                self._check_space(path, field)
                with whole_folder(root) as temporary:
                    self._unpack(path, temporary, field)
            opened, kept = _inside(root, inner, path.name, field), kept + _size(root)
            return OpenedSource(self._plain(opened, field) if opened.is_file() else opened, kept)
        if path.name.lower().endswith(OTHER_ARCHIVES):
            expected, todo = f"an archive that ends with {', '.join(ARCHIVES)}", "unpack it, and give the folder"
            raise _fault("unknown-archive", expected, path.name, field, todo, path.name)
        plain = self._plain(path, field)
        return OpenedSource(plain, kept + (plain.stat().st_size if plain != path else 0))

    def _plain(self, path: Path, field: str) -> Path:
        ending = packed_ending(path.name)
        if not ending:
            return path
        place = self._place("packed", *_identity(path)) / path.name.removesuffix(ending)
        if not place.exists():
            with self._unpacking(path, field) as advance:
                unpack_file(path, place, field, advance)
        return place

    def _unpack(self, path: Path, into: Path, field: str) -> None:
        with self._unpacking(path, field) as advance:
            if not unpack_archive(path, into, field, advance):
                raise _fault("empty-archive", "files in it", "none", field, "give an archive with files", path.name)

    @contextmanager
    def _unpacking(self, path: Path, field: str) -> Iterator[Advance]:
        """Show a bar; remove a downloaded file that turns out to be broken, so that the next build downloads it
        again.
        """
        try:
            with self._progress.meter(f"{field}: unpacking", path.stat().st_size) as advance:
                yield advance
        except SourceError as error:
            if error.fault.reason == BROKEN and path.parent.parent == self._folder:  # not a file of an archive
                remove(path)
            raise

    def _check_space(self, path: Path, field: str) -> None:
        """Refuse an archive that cannot fit on the disk, before anything of it is unpacked."""
        needed = unpacked_size(path)
        above = next(folder for folder in (self._folder, *self._folder.parents) if folder.exists())
        free = shutil.disk_usage(above).free
        if needed is not None and needed > free:
            expected = f"{needed:,} bytes of free space"
            raise _fault("disk-full", expected, f"{free:,}", field, MORE_SPACE, path.name)

    def _add(self, path: Path, inner: str, into: Path, field: str) -> None:
        if not path.exists():
            raise _fault("missing-source", "a file or a folder", "none", field, "correct the path", path.name)
        if archive_ending(path.name) and path.is_file() and not inner:
            self._check_space(path, field)
            self._unpack(path, into, field)
            return
        opened = self._opened(path, inner, field).path
        for file in visible_files(opened) if opened.is_dir() else [opened]:
            target = into / (file.relative_to(opened) if opened.is_dir() else file.name)
            if target.exists():
                name, todo = target.relative_to(into).as_posix(), "give each file once, or rename one"
                raise _fault("file-twice", "each file in one location", "two of them", field, todo, name)
            _copy(file, target, field)

    def _place(self, kind: str, *identity: str) -> Path:
        digest = hashlib.sha256("\0".join((kind, *identity)).encode("utf-8", "surrogateescape")).hexdigest()
        return self._folder / digest[:_DIGITS]


def _split_path(path: Path) -> tuple[Path, str]:
    """Return (path, path inside it): the second is empty unless the path goes on after the name of an archive."""
    with suppress(OSError, ValueError):  # no possible name of a file
        if path.exists():
            return path, ""
        for above in path.parents:
            if above.is_file() and archive_ending(above.name):
                return above, path.relative_to(above).as_posix()
    return path, ""


def _split_name(path: str) -> tuple[str, str]:
    """Return (path up to the first archive, path inside the archive).

    >>> _split_name("data/images.tar.gz/val/x.jpg"), _split_name("data/rows.jsonl")
    (('data/images.tar.gz', 'val/x.jpg'), ('data/rows.jsonl', ''))
    """
    parts = path.split("/")
    last = next((at for at, part in enumerate(parts) if archive_ending(part)), len(parts))
    return "/".join(parts[: last + 1]), "/".join(parts[last + 1 :])


def _inside(root: Path, inner: str, archive: str, field: str) -> Path:
    """Return what a path inside an archive leads to; what an empty one leads to, the module says."""
    parts = [part for part in inner.split("/") if part not in ("", ".")]
    if parts and ".." not in parts and (root.joinpath(*parts)).exists():
        return root.joinpath(*parts)
    below = sorted(root.iterdir())
    if parts:
        names, todo = ", ".join(path.name for path in below[:5]), "correct the path inside the archive"
        raise _fault("missing-source", f"{inner!r:.120} in it", names, field, todo, archive)
    if len(below) == 1 and (below[0].is_dir() or below[0].name == root.name):
        return below[0]
    return root


def _fault(reason: str, expected: str, found: str, field: str, todo: str, file: str = "") -> SourceError:
    return SourceError(Fault(reason, expected, found, file, "", field, todo))


def _identity(path: Path) -> Iterator[str]:
    """Yield what tells a file or a folder from all others and from its earlier content."""
    yield str(path.resolve())
    for file in visible_files(path) if path.is_dir() else [path] if path.is_file() else []:
        status = file.stat()
        yield f"{file.relative_to(path)} {status.st_size} {status.st_mtime_ns}"


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _copy(file: Path, target: Path, field: str) -> None:
    """Copy a file. A link would be refused as one that leads out of the folder, and a hard link would change the times
    by which other builds see that a source has not changed.
    """
    try:
        with atomic_replace(target) as temporary:  # it makes the folder too
            shutil.copyfile(file, temporary)
    except OSError as error:
        raise disk_error(error, file.name, field) from error

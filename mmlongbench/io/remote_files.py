"""Downloads a source: a file over HTTP, or a file or folder that `fsspec` can read, such as those at `s3://…`."""

from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, Protocol

from mmlongbench.errors import Fault, FetchError, MMLongBenchError, SourceError
from mmlongbench.io.archives import FULL, disk_error, whole_folder
from mmlongbench.io.atomic import atomic_replace
from mmlongbench.io.locations import Url
from mmlongbench.io.partial_files import Part, part_of
from mmlongbench.io.progress import Progress
from mmlongbench.io.transfer import Download, Remote, Transfer

_STEP = 1024 * 1024
MAX_FILES = 4_000_000
"""The maximum number of files of a folder at a URL."""


class _Files(Protocol):
    """What is used of a file system of `fsspec`."""

    def isdir(self, path: str) -> bool: ...
    def find(self, path: str, *, detail: bool) -> dict[str, Any]: ...
    def info(self, path: str) -> dict[str, Any]: ...
    def open(self, path: str, mode: str) -> IO[bytes]: ...


def download(url: Url, into: Path, progress: Progress, field: str) -> None:
    """Download a file or a folder to `into`, which appears complete or not at all.

    Raises:
        SourceError: the URL cannot be read; no message has the user, the password or the query of the URL.

    """
    try:
        if url.address.startswith(("http://", "https://")):
            _over_http(url, into, progress, field)
        else:
            _download(url, into, progress, field)
    except FetchError as error:
        raise _unreadable(url, error, field) from None
    except (MMLongBenchError, KeyboardInterrupt):
        raise
    except OSError as error:
        if error.errno in FULL:
            raise disk_error(error, url.name, field) from None
        raise _unreadable(url, error, field) from None
    except Exception as error:  # noqa: BLE001  (the errors of file systems have no common base)
        raise _unreadable(url, error, field) from None


def _over_http(url: Url, into: Path, progress: Progress, field: str) -> None:
    remote = Remote(url.address.partition("#")[0])
    into.parent.mkdir(parents=True, exist_ok=True)
    with closing(Transfer()) as transfer:
        size, _ = transfer.look(remote)
        with progress.meter(f"{field}: downloading", size or 0) as advance:
            transfer.fetch(Download(remote, into, Part(part_of(into)), lambda: None, advance))


def _download(url: Url, into: Path, progress: Progress, field: str) -> None:
    import fsspec

    found: tuple[_Files, str] = fsspec.core.url_to_fs(url.address)
    files, root = found
    is_folder = False
    with suppress(NotImplementedError):  # a file system without folders
        is_folder = files.isdir(root)
    if not is_folder:
        with progress.meter(f"{field}: downloading", int(files.info(root).get("size") or 0)) as advance:
            _copy(files, root, into, advance)
        return
    listed = {path: int(each.get("size") or 0) for path, each in files.find(root, detail=True).items()}
    if not listed or len(listed) > MAX_FILES:
        found_there = "none" if not listed else "more"
        raise SourceError(
            Fault("missing-source", f"1 to {MAX_FILES:,} files", found_there, url.name, "", field, "correct the URL")
        )
    with whole_folder(into) as temporary, progress.meter(f"{field}: downloading", sum(listed.values())) as advance:
        for path in sorted(listed):
            _copy(files, path, temporary / _below(path, root, field), advance)


def _copy(files: _Files, path: str, into: Path, advance: Any) -> None:  # noqa: ANN401  (a function of the bar)
    with atomic_replace(into) as temporary, files.open(path, "rb") as there, temporary.open("wb") as here:
        while part := there.read(_STEP):
            here.write(part)
            advance(len(part))


def _below(path: str, root: str, field: str) -> str:
    """Return the path of a file below the folder at a URL."""
    name = path.removeprefix(root.rstrip("/")).lstrip("/")
    parts = name.split("/")
    if not name or ".." in parts or "" in parts or "\0" in name or path == name:
        todo = "check what the URL leads to"
        raise SourceError(Fault("path-out-of-archive", "names below the folder", repr(name)[:120], "", "", field, todo))
    return name


def _unreadable(url: Url, error: Exception, field: str) -> SourceError:
    said = " ".join(str(error).split())
    if not said or any(secret in said for secret in url.secrets):
        said = type(error).__name__
    todo = "check the URL and the network, or download it and give its path"
    if isinstance(error, ImportError):
        todo = "install what it names, or download the source and give its path"
    return SourceError(Fault("unreachable-source", f"a source at {url}", said[:200], "", "", field, todo))

"""Downloads files of datasets of the Hugging Face hub, and files at URLs, with the client of the hub.

The client requests, waits, and continues where a connection broke. What is here names what went wrong and what to do,
shows no secret of an address, and says what a server knows of a file before it is downloaded.
"""

import email.utils
import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mmlongbench.errors import Fault, FetchError, SourceError
from mmlongbench.io.locations import HubFiles
from mmlongbench.io.printable import without_secrets
from mmlongbench.io.progress import Advance

T = TypeVar("T")
ATTEMPTS = 5  # how often a request is made that may succeed later
MAX_ASKED = 300.0  # the longest wait that a server may ask for, in seconds
_SECONDS = 60.0  # the seconds that a server has to answer, and to send more of a file
_WORTH = (408, 425, 429, 500, 502, 503, 504)  # the HTTP statuses after which the same request may succeed
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a server, and what is known of its bytes."""

    path: str
    """The path in its dataset, which may be anything; empty for a URL."""
    size: int | None = None
    sha256: str = ""
    """Empty for a small file of the hub, which has a git id instead."""
    git: str = ""

    @property
    def is_known(self) -> bool:
        """Whether its bytes are known, so that wrong ones are found."""
        return bool(self.sha256 or self.git)

    def fault(self, path: Path, size: int, sha256: str) -> str:
        """Return in what way a file that was downloaded is another one; empty if nothing speaks against it."""
        if self.size is not None and size != self.size:
            return f"expected {self.size:,} bytes, found {size:,}"
        if self.sha256 and sha256 != self.sha256:
            return f"expected SHA-256 {self.sha256[:16]}…, found {sha256[:16]}…"
        if self.git and (found := hash_of(path, "sha1", f"blob {size}\0".encode())) != self.git:
            return f"expected the git id {self.git[:12]}…, found {found[:12]}…"
        return ""


class HttpRefusal(FetchError):
    """A server refuses a file; `status` says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NoRevisionError(FetchError):
    """The hub has no such revision of a dataset."""


class UnreachableError(FetchError):
    """A server does not answer."""


def hash_of(path: Path, name: str = "sha256", begin: bytes = b"", advance: Advance = lambda size: None) -> str:
    """Return the hash of a file's bytes, with others before them, in hexadecimal."""
    digest = hashlib.new(name, begin, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1024 * 1024):
            digest.update(chunk)
            advance(len(chunk))
    return digest.hexdigest()


def hub_address() -> str:
    """Return the address of the hub: the variable HF_ENDPOINT, or the public one."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def list_dataset(name: str, revision: str) -> tuple[str, tuple[RemoteFile, ...]]:
    """Return the commit of a dataset at a branch, a tag or a commit, and its files.

    Raises:
        HttpRefusal: the hub asks for an agreement or a login first, or has no such dataset.
        NoRevisionError: the dataset has no such revision.
        UnreachableError: the hub does not answer.
        FetchError: its answer cannot be used.

    """
    from huggingface_hub import HfApi

    api = HfApi(endpoint=hub_address(), library_name="mmlongbench")
    options: dict[str, Any] = {"revision": revision, "files_metadata": True, "timeout": _SECONDS}
    info = asked(f"hub:{name}", lambda: api.dataset_info(name, **options))
    if not _COMMIT.fullmatch(info.sha or ""):
        raise FetchError(f"hub:{name}: the hub names no commit for {revision!r}; check HF_ENDPOINT")
    files = []
    for file in info.siblings or ():
        sha256, git = (file.lfs.sha256, "") if file.lfs else ("", file.blob_id or "")
        size = file.size if isinstance(file.size, int) and file.size >= 0 else None
        known = sha256 if _SHA256.fullmatch(sha256) else "", git if _COMMIT.fullmatch(git) else ""
        files.append(RemoteFile(str(file.rfilename), size, *known))
    return str(info.sha), tuple(files)


def hub_file(name: str, commit: str, path: str, into: Path, advance: Advance) -> Path:
    """Download a file of a dataset below the folder `into`, and return it; the client writes files of its own there.

    Raises:
        FetchError: the hub refuses it, or cannot be reached; `HttpRefusal` has the status.

    """
    from huggingface_hub import hf_hub_download

    options: dict[str, Any] = {"repo_type": "dataset", "revision": commit, "local_dir": into}
    options |= {"endpoint": hub_address(), "library_name": "mmlongbench", "tqdm_class": _steps(advance)}
    written: str = asked(f"hub:{name}/{path}", lambda: hf_hub_download(name, path, **options))
    return Path(written)


def url_facts(url: str) -> tuple[int | None, str]:
    """Return the size of the file at a URL, and what its server calls this version of it: a strong ETag, or a date.
    None and an empty text if the server does not say them.

    Raises:
        FetchError: the server refuses the file, sends a web page instead, or cannot be reached.

    """
    from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]  # it is documented

    name = without_secrets(url)

    def look() -> tuple[int | None, str]:
        headers = {"accept-encoding": "identity"}
        with _client_for(url) as client, client.stream("GET", url, headers=headers, timeout=_SECONDS) as response:
            hf_raise_for_status(response)
            kind, length = response.headers.get("content-type", ""), response.headers.get("content-length", "")
            if kind.startswith("text/html") and not re.search(r"\.html?$", url.partition("?")[0]):
                raise FetchError(f"{name}: expected a file, found a web page; download it by hand")
            if response.headers.get("content-encoding", "identity") != "identity":
                return None, ""
            tag: str = response.headers.get("etag", "")
            version = tag if tag.startswith('"') else response.headers.get("last-modified", "")
            return int(length) if length.isdigit() and len(length) < 20 else None, version

    return asked(name, look)


def url_file(url: str, size: int | None, version: str, into: Path, advance: Advance) -> None:
    """Download the file at a URL to `into`, whose bytes are replaced; `size` and `version` are its `url_facts`.

    Raises:
        FetchError: the server refuses it, sends another size than it says, or cannot be reached.

    """
    from huggingface_hub.file_download import http_get

    name = without_secrets(url)
    options: dict[str, Any] = {"displayed_filename": name, "tqdm_class": _steps(advance)}

    # Where the connection breaks, the client asks for the rest. A server sends the rest only of the version that is
    # named here, and another version from its beginning. It has no version of the name "unknown".
    headers = {"accept-encoding": "identity", "if-range": version or '"unknown"'}

    def get() -> None:
        # the client refuses 50 GB and more if it knows the size
        with _client_for(url), into.open("wb") as file:
            http_get(url, file, headers=headers, **options)

    asked(name, get)
    if size not in (None, found := into.stat().st_size):
        raise FetchError(f"{name}: expected {size:,} bytes, found {found:,}; run the same command again later")


@contextmanager
def _client_for(url: str) -> Iterator[Any]:
    """Yield the hub's client, which in this block refuses a redirect away from https before it asks the other address;
    `http_get` uses the same client.

    The whole process shares this client, so its hooks are put back: other requests may lead anywhere. One download runs
    at a time in a process; two at once would put back each other's hooks.
    """
    from huggingface_hub import get_session

    def refuse(request: Any) -> None:  # noqa: ANN401  (of the client's library)
        if url.startswith("https:") and request.url.scheme != "https":
            raise FetchError(f"{without_secrets(url)}: leads to an address without https; download it by hand")

    client = get_session()
    hooks = client.event_hooks
    client.event_hooks = {**hooks, "request": [*hooks["request"], refuse]}
    try:
        yield client
    finally:
        client.event_hooks = hooks


def asked(what: str, call: Callable[[], T]) -> T:
    """Return what a call of the hub's client returns; the call is made again if that may help.

    Raises:
        FetchError: it failed; the message begins with `what`, and has no secret.
        OSError: the disk is full, or cannot be written.

    """
    import httpx2
    from huggingface_hub import errors

    _hide_secrets()
    for attempt in range(1, ATTEMPTS + 1):
        seconds: float | None = None
        try:
            return call()
        except FetchError:
            raise
        except Exception as raised:
            is_last = attempt == ATTEMPTS
            error: BaseException = raised
            if isinstance(raised, errors.LocalEntryNotFoundError) and raised.__cause__:
                error, is_last = raised.__cause__, True  # the client has tried several times
            if isinstance(error, errors.RevisionNotFoundError):
                raise NoRevisionError(f"{what}: the hub has no such revision") from error
            if isinstance(error, errors.OfflineModeIsEnabled):
                todo = "HF_HUB_OFFLINE forbids to ask a server; unset it to download"
                raise UnreachableError(f"{what}: {todo}") from error
            if isinstance(error, errors.HfHubHTTPError):
                status = error.response.status_code
                if status not in _WORTH:
                    raise HttpRefusal(status, f"{what}: the server answered {status}") from error
                said, seconds = f"the server answered {status}", retry_after(error.response.headers)
            elif isinstance(error, httpx2.NetworkError | httpx2.TimeoutException | httpx2.RemoteProtocolError):
                said = f"the server cannot be reached ({_kind(error)})"
            elif isinstance(error, OSError) and error.errno is not None:
                raise
            else:
                todo = "check the address (that of the hub is HF_ENDPOINT), or download it by hand"
                raise FetchError(f"{what}: the answer cannot be used ({_kind(error)}); {todo}") from error
            if seconds is not None and seconds > MAX_ASKED:
                todo = "run the same command then"
                raise UnreachableError(f"{what}: {said}; the server asks to wait {seconds:,.0f} s: {todo}") from error
            if is_last:
                todo = "run the same command again to continue"
                raise UnreachableError(f"{what}: {said}, also when it was asked again; {todo}") from error
        time.sleep(2.0 ** (attempt - 1) if seconds is None else seconds)
    raise AssertionError


def _hide_secrets() -> None:
    """Take secrets out of the warnings of the hub's client, which have whole addresses."""
    for logger in ("huggingface_hub.file_download", "huggingface_hub.utils._http"):
        logging.getLogger(logger).addFilter(_without_secrets)


def _without_secrets(record: logging.LogRecord) -> bool:
    record.msg, record.args = without_secrets(record.getMessage()), ()
    return True


def _kind(error: BaseException) -> str:
    said = without_secrets((str(error).splitlines() or [""])[0])
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _steps(advance: Advance) -> type[Any]:
    """Return a bar for the hub's client that shows nothing, but tells of each step."""
    from huggingface_hub.utils.tqdm import tqdm

    class Steps(tqdm):
        monitor_interval = 0  # no thread

        def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  (those of tqdm)
            options["disable"] = True
            super().__init__(*args, **options)  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            advance(int(n or 0))

        # a file of the hub's newer store has two bars, unless the class has these
        def update_transfer(self, n: float | None = 1) -> None: ...
        def set_transfer_postfix_str(self, s: str = "", refresh: bool = True) -> None: ...

    return Steps


_EXHAUSTED = re.compile(r";\s*r=0\s*;\s*t=(\d{1,9})\b")
"""Matches a `RateLimit` header that says that no request is left, and in how many seconds there are some again."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an endpoint asks to wait, given as milliseconds, seconds or a date, or as the time until
    its rate limit allows requests again; None if it gives no valid time.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after-ms": "20"}), retry_after({"retry-after": "soon"})
    (1.5, 0.02, None)
    >>> retry_after({"ratelimit": '"api";r=0;t=55'})
    55.0
    """
    for name, parts in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / parts
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None
    if exhausted := _EXHAUSTED.search(headers.get("ratelimit", "")):
        return float(exhausted[1])
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, OverflowError):
        return None
    return max(0.0, date.timestamp() - time.time())


def snapshot(location: HubFiles, path: str, patterns: Sequence[str], field: str, *, is_shown: bool = False) -> Path:
    """Return a file or a folder of a dataset in the hub's own cache, after downloading it if necessary.

    An empty `path` is the whole dataset, of which only the files of `patterns`, such as `*.parquet`, are needed. If
    there are none, a path must be given, because a dataset may be larger than a disk. `field` is the source as messages
    name it, such as `source.data`; `is_shown`: the hub's client shows bars.

    Raises:
        SourceError: the dataset cannot be downloaded, or has no such file; the message says why.

    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars

    wanted = [path, f"{path}/**"] if path else list(patterns)
    if not wanted:
        todo = "name the file or folder that is needed, or download it and give its path"
        expected = f"hub:{location.repository}/<path>"
        raise SourceError(Fault("unknown-source", expected, str(location), field=field, todo=todo))
    _hide_secrets()
    (enable_progress_bars if is_shown else disable_progress_bars)()
    options: dict[str, Any] = {"repo_type": "dataset", "revision": location.revision or None}
    try:
        folder = Path(snapshot_download(location.repository, allow_patterns=wanted, **options))
    except Exception as error:  # the errors of the hub's client have no common base
        todo = "download it and give its path, or check its name and the network"
        expected = "a dataset of the hub that can be read"
        fault = Fault("unreachable-dataset", expected, _kind(error), field=field, todo=todo)
        raise SourceError(fault) from error
    if not (folder / path).exists():
        todo = "correct the path; the page of the dataset lists its files"
        fault = Fault("missing-source", f"{path!r:.120} in it", "none", field=f"{field}: {location}", todo=todo)
        raise SourceError(fault)
    return folder / path

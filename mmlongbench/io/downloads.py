"""Downloads one file over HTTP: in bounded attempts, continued where a connection broke, checked, whole or absent.

The bytes go into a hidden file beside the target, which stays if the download ends early, and is continued by the next
one if the server says that the file is the same (`If-Range`). The library of the hub discards such a file when its
process ends, so this module downloads the files of the hub too.
"""

import email.utils
import errno
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from mmlongbench.errors import DiskFullError, FetchError
from mmlongbench.io.printable import without_secrets
from mmlongbench.io.progress import Advance

if TYPE_CHECKING:
    import httpx2

_CHUNK = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Received:
    """The bytes that were downloaded."""

    size: int
    sha256: str


@dataclass
class Part:
    """The bytes of a file that are already there."""

    path: Path
    validator: str = ""
    """What the server calls this version of the file: a strong ETag, or a date."""
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _hashed: int = 0
    """How many of the bytes are in `_digest`, counted from the first."""

    def add(self, chunk: bytes, offset: int) -> None:
        """Take bytes into account that were written at an offset."""
        if offset == 0:
            self._digest, self._hashed = hashlib.sha256(), 0
        if offset == self._hashed:
            self._digest.update(chunk)
            self._hashed += len(chunk)

    def received(self) -> Received:
        """Return the size and the SHA-256 of the bytes; they are read again if another process wrote some of them."""
        is_hashed = self._hashed == self.size
        return Received(self._hashed, self._digest.hexdigest()) if is_hashed else received_of(self.path)

    @property
    def size(self) -> int:
        """The number of bytes; 0 if there is no file."""
        return self.path.stat().st_size if self.path.is_file() and not self.path.is_symlink() else 0

    def drop(self) -> None:
        """Remove the bytes."""
        self.path.unlink(missing_ok=True)
        self.validator = ""


def part_of(target: Path) -> Path:
    """Return the path of the bytes of a file that is not complete."""
    return target.with_name(f".part-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}")


def received_of(path: Path, advance: Advance = lambda size: None) -> Received:
    """Return the size and the SHA-256 of a file that is there."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            advance(len(chunk))
    return Received(size, digest.hexdigest())


def git_id(path: Path) -> str:
    """Return the id that git gives the bytes of a file."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def opened_part(part: Path, target: Path, *, is_new: bool) -> Iterator[IO[bytes]]:
    """Open the bytes of a file for writing at their end; a link is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | (os.O_TRUNC if is_new else 0)
    with disk_errors(target):
        part.parent.mkdir(parents=True, exist_ok=True)
        opened = os.fdopen(os.open(part, flags, 0o644), "ab", buffering=0)
    with opened as file:
        yield file


@contextmanager
def disk_errors(target: Path) -> Iterator[None]:
    """Turn an error of a full disk into one that names the file."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DiskFullError(
            f"{target}: {error.strerror}; what was downloaded is kept: make room and run the same command to continue"
        ) from error


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


ATTEMPTS = 5
"""How often a request is made again in a row without a byte more."""
ATTEMPTS_TO_CONNECT = 3
"""How often in a row a connection is tried again."""
ATTEMPTS_IN_ALL = 1000
"""How often a file is requested in one run."""
MAX_WAIT = 30.0
"""The longest of the waits that double, in seconds."""
MAX_ASKED = 300.0
"""The longest wait that a server may ask for, in seconds."""
SILENCE = 60.0
"""The seconds after which a server that sends nothing is given up for this attempt."""
WORTH = (408, 425, 429, 500, 502, 503, 504)
"""The HTTP statuses after which the same request may succeed."""

Wait: TypeAlias = Callable[[float], None]
"""A function that waits some seconds."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file of a server."""

    url: str = field(repr=False)
    """Its address, which may have a password."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of the request, such as the one with a token."""
    size: int | None = None
    """The bytes that are expected, if that is known."""
    sha256: str = ""
    """The SHA-256 that is expected, if that is known."""
    git: str = ""
    """The id that git gives the expected bytes, if that is known."""

    @property
    def name(self) -> str:
        """The address without secrets."""
        return without_secrets(self.url)

    @property
    def is_known(self) -> bool:
        """Whether its bytes are known, so that wrong ones are found."""
        return bool(self.sha256 or self.git)


class HttpRefusal(FetchError):
    """A server refuses a file; `status` says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status."""


class OtherBytesError(FetchError):
    """A file has other bytes than expected."""


class AgainError(Exception):
    """An attempt failed in a way that another one may not."""

    def __init__(self, message: str, seconds: float | None = None, *, is_unreachable: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        """The wait that the server asks for."""
        self.is_unreachable = is_unreachable
        """Whether there was no connection at all."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is downloaded."""

    remote: Remote
    target: Path
    part: Part
    """The bytes that are already there, to which the others are added."""
    begun: Callable[[], None]
    """Called when `part.validator` is known, before the first byte is written."""
    advance: Advance
    """Called with the number of bytes that came in, or with a negative one if bytes were dropped."""

    def forget(self) -> None:
        """Drop the bytes of a file that the server has changed, or cannot continue."""
        self.advance(-self.part.size)
        self.part.drop()


class Transfer:
    """Downloads files with one HTTP client."""

    def __init__(self, wait: Wait = time.sleep) -> None:
        """Open a client; `wait` waits between attempts."""
        import httpx2

        self._client = httpx2.Client(follow_redirects=True, timeout=httpx2.Timeout(SILENCE, connect=30.0))
        self._wait = wait

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def again(self, what: str, attempt: int, error: AgainError) -> None:
        """Wait before another attempt; `attempt` is the number of those that were made again before.

        Raises:
            FetchError: there were enough attempts, or the server asks for too long a wait.

        """
        if error.seconds is not None and error.seconds > MAX_ASKED:
            todo = "run the same command then"
            raise FetchError(f"{what}: {error}; the server asks to wait {error.seconds:,.0f} s: {todo}")
        if attempt >= (ATTEMPTS_TO_CONNECT if error.is_unreachable else ATTEMPTS):
            todo = "run the same command again to continue"
            raise FetchError(f"{what}: {error}, {attempt + 1} times in a row; {todo}")
        self._wait(min(2.0**attempt, MAX_WAIT) if error.seconds is None else error.seconds)

    def look(self, remote: Remote) -> tuple[int | None, str]:
        """Return the size of a file, and the name of its version, as its server says them; None and an empty text if it
        does not say them.

        Raises:
            FetchError: the server refuses the file, or cannot be reached.

        """
        attempt = 0
        while True:
            try:
                with self._answer(remote, {}) as response:
                    return _length(response), _validator(response)
            except AgainError as error:
                self.again(remote.name, attempt, error)
                attempt += 1

    def fetch(self, download: Download) -> Received:
        """Download a file to its target, continuing its part.

        Raises:
            OtherBytesError: the bytes are not the expected ones; nothing is at the target that was not there.
            DiskFullError: there is no room; the part stays.
            FetchError: the server refuses the file, or too many attempts failed; the part stays.

        """
        part, remote = download.part, download.remote
        has_old = part.size > 0
        received = self._received(download)
        fault = fault_of(remote, received, part.path)
        if fault and has_old:  # the part may be of another file
            download.forget()
            received = self._received(download)
            fault = fault_of(remote, received, part.path)
        if fault:
            part.drop()
            raise OtherBytesError(fault)
        part.path.replace(download.target)
        return received

    def _received(self, download: Download) -> Received:
        """Download into the part until it is complete, and return what it holds."""
        part, name, attempt = download.part, download.remote.name, 0
        if not part.validator and not download.remote.is_known:
            part.drop()  # nothing says that the server's file is still the same
        download.advance(part.size)
        for _ in range(ATTEMPTS_IN_ALL):
            before = part.size
            try:
                self._attempt(download)
                break
            except AgainError as error:
                attempt = 0 if part.size > before else attempt
                self.again(name, attempt, error)
                attempt += 1
        else:
            todo = "run the same command again to continue"
            raise FetchError(f"{name}: the connection broke {ATTEMPTS_IN_ALL:,} times; {todo}")
        with disk_errors(download.target), part.path.open("rb") as file:
            os.fsync(file.fileno())
        return part.received()

    def _attempt(self, download: Download) -> None:
        """Request the bytes that are missing, and write them.

        Raises:
            AgainError: the bytes did not all come.

        """
        part, remote, have = download.part, download.remote, download.part.size
        if remote.size is not None and have == remote.size:
            with opened_part(part.path, download.target, is_new=not have):
                return
        if have and not (remote.is_known or part.validator):  # nothing would say that the rest is of the same file
            download.forget()
            have = 0
        same = {"if-range": part.validator} if not remote.is_known else {}  # known bytes are compared in the end
        with self._answer(remote, {"range": f"bytes={have}-", **same} if have else {}) as response:
            is_rest = response.status_code == 206
            if response.status_code == 416 or (is_rest and not _begins_at(response, have)):
                download.forget()
                raise AgainError("the server does not send the part of the file that is missing")
            if not is_rest:
                download.forget()
            part.validator = _validator(response)
            download.begun()
            with opened_part(part.path, download.target, is_new=not is_rest) as file:
                _copy(response, file, download, have if is_rest else 0)

    @contextmanager
    def _answer(self, remote: Remote, asked: Mapping[str, str]) -> "Iterator[httpx2.Response]":
        """Request a file; raise `AgainError` if that fails in a way that another attempt may not."""
        import httpx2

        headers = {**remote.headers, "accept-encoding": "identity", **asked}
        try:
            with self._client.stream("GET", remote.url, headers=headers) as response:
                _refuse(response, remote)
                yield response
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as error:
            raise FetchError(f"{remote.name}: cannot be requested ({_kind(error)}); correct the address") from error
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise AgainError(f"the server cannot be reached ({_kind(error)})", is_unreachable=True) from error
        except httpx2.TransportError as error:
            raise AgainError(f"the connection broke ({_kind(error)})") from error
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise FetchError(f"{remote.name}: cannot be requested ({_kind(error)}); correct the address") from error


def _copy(response: "httpx2.Response", file: IO[bytes], download: Download, size: int) -> None:
    """Write the body of a response behind `size` bytes; raise `AgainError` if it ends early."""
    length, most = _length(response), download.remote.size
    for chunk in response.iter_bytes():
        with disk_errors(download.target):
            left = memoryview(chunk)
            while left:  # an almost full disk takes less than it is given
                left = left[file.write(left) :]
        download.part.add(chunk, size)
        size += len(chunk)
        download.advance(len(chunk))
        if most is not None and size > most:
            return  # the sizes are compared later
    if length is not None and size < length:
        raise AgainError(f"the connection ended after {size:,} of {length:,} bytes")


def fault_of(remote: Remote, received: Received, path: Path) -> str:
    """Return in what way bytes are not the expected ones; empty if they are, or if nothing is known about them."""
    if remote.size is not None and received.size != remote.size:
        return f"expected {remote.size:,} bytes, found {received.size:,}"
    if remote.sha256 and received.sha256 != remote.sha256:
        return f"expected SHA-256 {remote.sha256[:16]}…, found {received.sha256[:16]}…"
    if remote.git and (found := git_id(path)) != remote.git:
        return f"expected the git id {remote.git[:12]}…, found {found[:12]}…"
    return ""


def _refuse(response: "httpx2.Response", remote: Remote) -> None:
    """Raise an error if a response has no bytes of a file."""
    status = response.status_code
    if remote.url.startswith("https:") and response.url.scheme != "https":
        raise FetchError(f"{remote.name}: leads to an address without https; download it by hand")
    if status in (200, 206, 416):
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/html") and not re.search(r"\.html?$", remote.url.partition("?")[0]):
            raise FetchError(f"{remote.name}: expected a file, found a web page; download it by hand")
        return
    if status in WORTH:
        raise AgainError(f"the server answered {status}", retry_after(response.headers))
    raise HttpRefusal(status, f"{remote.name}: the server answered {status}")


def _length(response: "httpx2.Response") -> int | None:
    """Return the size of the whole file that a response has, or has a part of; None if it does not say it."""
    if response.headers.get("content-encoding", "identity") != "identity":
        return None
    total = response.headers.get("content-range", "").rpartition("/")[2] or response.headers.get("content-length", "")
    return int(total) if total.isdigit() and len(total) < 20 else None


def _begins_at(response: "httpx2.Response", offset: int) -> bool:
    """Return whether a response has the bytes of a file from an offset on."""
    found = re.match(r"bytes (\d{1,19})-", response.headers.get("content-range", ""))
    return found is not None and int(found[1]) == offset


def _validator(response: "httpx2.Response") -> str:
    """Return what names this version of a file in `If-Range`; empty if the server gives nothing that may."""
    tag: str = response.headers.get("etag", "")
    if response.headers.get("content-encoding", "identity") != "identity":
        return ""
    return tag if tag.startswith('"') else str(response.headers.get("last-modified", ""))


def _kind(error: Exception) -> str:
    """Return the kind of an error, and what it says, without secrets."""
    said = without_secrets(" ".join(str(error).split()))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__

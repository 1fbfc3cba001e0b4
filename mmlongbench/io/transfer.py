"""Downloads one file over HTTP: in bounded attempts, continued where a connection broke, checked, whole or absent.

The bytes go into a hidden file beside the target, which stays if the download ends early, and is continued by the next
one if the server says that the file is the same (`If-Range`). The library of the hub discards such a file when its
process ends, so this module downloads the files of the hub too.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from mmlongbench.errors import FetchError
from mmlongbench.io.partial_files import Part, Received, disk_errors, git_id, opened_part
from mmlongbench.io.printable import without_secrets
from mmlongbench.io.progress import Advance
from mmlongbench.io.waits import retry_after

if TYPE_CHECKING:
    import httpx2

ATTEMPTS = 5
"""How often a request is made again in a row without a byte more."""
ATTEMPTS_IN_ALL = 1000
"""How often a file is requested in one run."""
MAX_WAIT = 30.0
"""The longest of the waits that double, in seconds."""
MAX_ASKED = 300.0
"""The longest wait that a server may ask for, in seconds."""
SILENCE = 60.0
"""The seconds after which a server that sends nothing is given up for this attempt."""
_WORTH = (408, 425, 429, 500, 502, 503, 504)
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


class HttpRefusal(FetchError):
    """A server refuses a file; `status` says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status."""


class OtherBytesError(FetchError):
    """A file has other bytes than expected."""


class _AgainError(Exception):
    """An attempt failed in a way that another one may not; `seconds` is the wait that the server asks for."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


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

    def again(self, what: str, attempt: int, seconds: float | None, why: str) -> None:
        """Wait before attempt number `attempt` + 1.

        Raises:
            FetchError: there were enough attempts, or the server asks for too long a wait.

        """
        if seconds is not None and seconds > MAX_ASKED:
            raise FetchError(f"{what}: {why}; the server asks to wait {seconds:,.0f} s: run the same command then")
        if attempt >= ATTEMPTS:
            todo = "run the same command again to continue"
            raise FetchError(f"{what}: {why}, {attempt + 1} times in a row; {todo}")
        self._wait(min(2.0**attempt, MAX_WAIT) if seconds is None else seconds)

    def look(self, remote: Remote) -> tuple[int | None, str]:
        """Return the size of a file, and the name of its version, as its server says them; None and an empty text if it
        does not say them.

        Raises:
            FetchError: the server refuses the file, or cannot be reached.

        """
        for attempt in range(ATTEMPTS + 1):
            try:
                with self._answer(remote, {}) as response:
                    return _length(response), _validator(response)
            except _AgainError as error:
                self.again(remote.name, attempt, error.seconds, str(error))
        raise AssertionError

    def fetch(self, remote: Remote, target: Path, part: Part, begun: Callable[[], None], advance: Advance) -> Received:
        """Download a file to `target`, continuing `part`.

        `begun` is called when `part.validator` is known, before the first byte is written. `advance` gets the number of
        bytes that came in.

        Raises:
            OtherBytesError: the bytes are not the expected ones; nothing is at `target` that was not there.
            DiskFullError: there is no room; `part` stays.
            FetchError: the server refuses the file, or too many attempts failed; `part` stays.

        """
        has_old = part.size > 0
        received = self._received(remote, target, part, begun, advance)
        if fault := fault_of(remote, received, part.path):
            part.drop()
            if not has_old:
                raise OtherBytesError(fault)
            advance(-received.size)
            received = self._received(remote, target, part, begun, advance)
            if fault := fault_of(remote, received, part.path):
                part.drop()
                raise OtherBytesError(fault)
        part.path.replace(target)
        return received

    def _received(
        self, remote: Remote, target: Path, part: Part, begun: Callable[[], None], advance: Advance
    ) -> Received:
        """Download into `part` until it is complete, and return what it holds."""
        attempt = 0
        if not part.validator and not (remote.sha256 or remote.git):
            part.drop()  # nothing says that the server's file is still the same
        advance(part.size)
        for _ in range(ATTEMPTS_IN_ALL):
            before = part.size
            try:
                self._attempt(remote, target, part, begun, advance)
                break
            except _AgainError as error:
                attempt = 0 if part.size > before else attempt
                self.again(remote.name, attempt, error.seconds, str(error))
                attempt += 1
        else:
            todo = "run the same command again to continue"
            raise FetchError(f"{remote.name}: the connection broke {ATTEMPTS_IN_ALL:,} times; {todo}")
        with disk_errors(target), part.path.open("rb") as file:
            os.fsync(file.fileno())
        return part.received()

    def _attempt(self, remote: Remote, target: Path, part: Part, begun: Callable[[], None], advance: Advance) -> None:
        """Request the bytes that are missing, and write them.

        Raises:
            _AgainError: the bytes did not all come.

        """
        have = part.size
        if remote.size is not None and have == remote.size:
            with opened_part(part.path, target, is_new=not have):
                return
        asked = {"range": f"bytes={have}-", **({"if-range": part.validator} if part.validator else {})} if have else {}
        with self._answer(remote, asked) as response:
            if have and response.status_code == 416:
                _forget(part, advance)
                raise _AgainError("the server has no such part of the file")
            is_rest = response.status_code == 206 and _begins_at(response, have)
            if have and not is_rest:
                _forget(part, advance)
            part.validator = _validator(response)
            begun()
            with opened_part(part.path, target, is_new=not is_rest) as file:
                self._copy(response, file, remote, part, have if is_rest else 0, target, advance)

    def _copy(
        self,
        response: "httpx2.Response",
        file: IO[bytes],
        remote: Remote,
        part: Part,
        size: int,
        target: Path,
        advance: Advance,
    ) -> None:
        """Write the body of a response behind `size` bytes; raise `_AgainError` if it ends early."""
        length = _length(response)
        for chunk in response.iter_bytes():
            with disk_errors(target):
                left = memoryview(chunk)
                while left:  # an almost full disk takes less than it is given
                    left = left[file.write(left) :]
            part.add(chunk, size)
            size += len(chunk)
            advance(len(chunk))
            if remote.size is not None and size > remote.size:
                return  # the sizes are compared later
        if length is not None and size < length:
            raise _AgainError(f"the connection ended after {size:,} of {length:,} bytes")

    @contextmanager
    def _answer(self, remote: Remote, asked: Mapping[str, str]) -> "Iterator[httpx2.Response]":
        """Request a file; raise `_AgainError` if that fails in a way that another attempt may not."""
        import httpx2

        headers = {**remote.headers, "accept-encoding": "identity", **asked}
        try:
            with self._client.stream("GET", remote.url, headers=headers) as response:
                _refuse(response, remote)
                yield response
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as error:
            raise FetchError(f"{remote.name}: cannot be requested ({_kind(error)}); correct the address") from error
        except httpx2.TransportError as error:
            raise _AgainError(f"the connection broke ({_kind(error)})") from error
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise FetchError(f"{remote.name}: cannot be requested ({_kind(error)}); correct the address") from error


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
    if status in _WORTH:
        raise _AgainError(f"the server answered {status}", retry_after(response.headers))
    raise HttpRefusal(status, f"{remote.name}: the server answered {status}")


def _forget(part: Part, advance: Advance) -> None:
    """Drop the bytes of a file that the server has changed, or cannot continue."""
    advance(-part.size)
    part.drop()


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

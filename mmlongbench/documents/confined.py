"""Runs functions that open foreign files in another process, with limits of time and memory for each page.

The system enforces the limits. On Linux these are the processor time and the memory that is written to, and the process
ends with the one that started it. macOS limits the time alone, and Windows has no such limits; neither is tested.
Processor time counts, not time by a clock, so a page is not refused because other programs are busy; one that waits
without work, such as for a slow disk, is not ended.

Requests and answers are JSON and bytes, so nothing that a hostile file makes of the process can run code in another
one. The process stays for the next requests. If it dies for another reason than a limit, a new process answers the
request once more from the beginning, and the answers that are already known are skipped.
"""

import atexit
import importlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import cache, wraps
from inspect import signature
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from mmlongbench.documents.limits import Limits
from mmlongbench.errors import BuildError, Fault, PageLimitError, ReaderDiedError, SourceError
from mmlongbench.io.pool import end_with

P = ParamSpec("P")
T = TypeVar("T")

_START = """
import json, sys, types
sys.path[:] = json.loads(sys.argv[1])
sys.modules["mmlongbench"] = package = types.ModuleType("mmlongbench")
package.__path__ = json.loads(sys.argv[2])
from mmlongbench.documents.confined import main
main(int(sys.argv[3]), int(sys.argv[4]))
"""
"""The program of the process. It does not run the package's `__init__`, which would take most of the time to start."""
_PACKAGE = Path(__file__).parents[1]
_MAX_SAID = 300
"""The bytes at the end of the process's output that are searched for its last line."""
_ERRORS = {each.__name__: each for each in (BuildError, ReaderDiedError)}
"""The errors that the process may report beside those of a document."""


def confined(function: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Return a function that calls another one in a process with limits, and yields its answers.

    Args:
        function: a function of a module. It has the arguments `path` and `limits`, and calls `begin_page` before each
            page that it reads. Its other arguments and its answers are plain values, of which tuples arrive as lists;
            or an answer is a tuple of a number, a size and bytes.

    Errors that the function raises beside its own:
        PageLimitError: a page takes too much time or memory.
        ReaderDiedError: the process died twice.
        BuildError: the file cannot be read on this machine.

    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        given = signature(function).bind(*args, **kwargs).arguments
        return ask(function, given.pop("path"), given.pop("limits"), **given)

    return call


def ask(function: Callable[..., Iterator[Any]], path: Path, limits: Limits, **arguments: object) -> Iterator[Any]:
    """Yield the answers of a function, computed in another process (see `confined`)."""
    known = 0
    for is_last in (False, True):
        reader = _free_reader()
        try:
            for number, answer in enumerate(reader.answers(function, path, limits, arguments)):
                if number >= known:  # skip the answers that came before the process died
                    known += 1
                    yield answer
        except _DiedError as error:
            if is_last:
                raise ReaderDiedError(
                    f"{path.name}: the process that reads it died twice, the second time {error}; run the "
                    "command again with more memory, or leave the document out"
                ) from error
        else:
            return


class _DiedError(Exception):
    """The process is gone; the message says how it ended."""


class _Reader:
    """A process that reads files."""

    def __init__(self) -> None:
        """Start the process; it ends when the current process ends."""
        self._channel, theirs = Pipe()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        folders = [json.dumps(sys.path), json.dumps([str(_PACKAGE)])]
        words = [sys.executable, "-c", _START, *folders, str(theirs.fileno()), str(os.getpid())]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # it must not get the signal of Ctrl-C
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                pass_fds=[theirs.fileno()],
                # NumPy is used without linear algebra; the buffers of many threads would count as memory
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        self._has_started = False

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process at once."""
        self._channel.close()
        self._process.kill()
        self._process.wait()
        self._said.close()

    def answers(
        self, function: Callable[..., Iterator[Any]], path: Path, limits: Limits, arguments: Mapping[str, object]
    ) -> Iterator[Any]:
        """Yield the answers to a request; then the process is free for another one. If not all answers are read, or
        memory ran out, the process is ended.
        """
        is_free, place, last = False, "", dict[str, Any]()
        where = str(path.absolute())  # this process may change its working folder, the other one does not
        request = [function.__module__, function.__qualname__, where, asdict(limits), arguments]
        try:
            self._start()
            self._channel.send_bytes(json.dumps(request, default=list).encode())
            while True:
                last = json.loads(self._channel.recv_bytes())
                if "item" in last:
                    yield last["item"]
                elif "size" in last:
                    yield last["number"], tuple(last["size"]), self._channel.recv_bytes()
                elif "page" in last:
                    place = f"page {last['page'] + 1}"
                else:
                    break
            is_free = "memory" not in last
        except (EOFError, OSError) as error:
            self._process.kill()
            if self._process.wait() != -signal.SIGXCPU:
                raise _DiedError(self._how_it_ended()) from error
            last = {"time": True}
        finally:
            if is_free:
                _free(os.getpid()).append(self)
            else:
                self.end()
        if "time" in last:
            raise _above("time", f"{limits.seconds_a_page:g} seconds of a processor", "seconds_a_page", path, place)
        if "memory" in last:
            raise _above("memory", f"{limits.memory:,} bytes of memory", "memory", path, place)
        if "fault" in last:
            raise SourceError(Fault(**last["fault"]))
        if "error" in last:
            raise _ERRORS.get(last["kind"], BuildError)(last["error"])

    def _start(self) -> None:
        if not self._has_started and (error := json.loads(self._channel.recv_bytes()).get("error")):
            raise BuildError(error)
        self._has_started = True

    def _how_it_ended(self) -> str:
        code = self._process.returncode
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - _MAX_SAID))
        said = self._said.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        return f"{how} ({last})" if last else how


def _above(what: str, bound: str, option: str, path: Path, place: str) -> PageLimitError:
    todo = f"raise limits.{option} and build into a new folder if the document is meant to be so, or exclude it"
    return PageLimitError(Fault(f"{what}-of-a-page", f"at most {bound}", "more", path.name, place, todo=todo))


def end_readers() -> None:
    """End the processes that wait for a request; the next request starts a new process with the environment variables
    of that moment.
    """
    _end_all(_free(os.getpid()), os.getpid())


def _free_reader() -> _Reader:
    """Return a process that waits for a request, or a new one."""
    free = _free(os.getpid())
    while free:
        reader = free.pop()
        if reader.is_alive():
            return reader
        reader.end()
    return _Reader()


@cache
def _free(process: int) -> list[_Reader]:
    """Return the processes that this process has started and that wait for a request; a forked process has its own
    list.
    """
    free: list[_Reader] = []
    atexit.register(_end_all, free, process)
    return free


def _end_all(free: list[_Reader], process: int) -> None:
    if os.getpid() == process:
        while free:
            free.pop().end()


# --- in the process ---------------------------------------------------------------------------------------------------


_at_page: Callable[[int], None] | None = None
"""What happens when a page begins; None in a process without limits."""


def begin_page(number: int) -> None:
    """Say that the reading of a page begins, by its number from 0. The page gets processor time of its own."""
    if _at_page:
        _at_page(number)


def main(channel: int, parent: int) -> None:
    """Answer requests until the other process is gone."""
    global _at_page  # as the limits, it is one for the whole process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process gets the signal and ends this one
    end_with(parent)  # even in the middle of a page: MuPDF holds the interpreter while it draws
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a process that is ended for its time would leave a file
    connection = Connection(channel)
    connection.send_bytes(_started())
    while True:
        try:
            module, name, path, limits, arguments = json.loads(connection.recv_bytes())
        except EOFError:
            return
        bounds = Limits(**limits)

        def begin(number: int, seconds: float = bounds.seconds_a_page) -> None:  # bound now, not at the next request
            connection.send_bytes(json.dumps({"page": number}).encode())
            _allow(seconds)

        _at_page = begin
        _allow(bounds.seconds_a_page)
        _limit(resource.RLIMIT_DATA, bounds.memory)
        function = getattr(importlib.import_module(module), name)
        _answer(connection, function(Path(path), **arguments, limits=bounds))


def _started() -> bytes:
    """Return the first message, a JSON object. It is empty, or its `error` says why PDFs cannot be read at all."""
    try:
        import mmlongbench.documents.mupdf  # noqa: F401
    except (ImportError, MemoryError, OSError) as error:
        said = f"PyMuPDF cannot be loaded: {' '.join(str(error).split()) or 'memory ran out'}"
        return json.dumps({"error": said}).encode()
    return b"{}"


def _allow(seconds: float) -> None:
    """Let this process run so many seconds of a processor more, or a second more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _answer(connection: Connection, answers: Iterator[Any]) -> None:
    try:
        for answer in answers:
            if isinstance(answer, tuple) and isinstance(answer[-1], bytes):
                number, size, data = answer
                connection.send_bytes(json.dumps({"number": number, "size": size}).encode())
                connection.send_bytes(data)
            else:
                connection.send_bytes(json.dumps({"item": answer}).encode())
        last: dict[str, object] = {"done": True}
    except SourceError as error:
        last = {"fault": error.fault.fields()}
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_DATA, (resource.getrlimit(resource.RLIMIT_DATA)[1],) * 2)  # enough to say so
        last = {"memory": True}
    except BuildError as error:
        last = {"error": str(error), "kind": type(error).__name__}
    connection.send_bytes(json.dumps(last).encode())

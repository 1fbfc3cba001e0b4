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
from dataclasses import asdict, replace
from functools import cache, wraps
from inspect import signature, unwrap
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from mmlongbench.documents.limits import Limits
from mmlongbench.errors import BuildError, Fault, PageLimitError, ReaderDiedError, SourceError
from mmlongbench.io.pool import end_with, interrupts_held

P = ParamSpec("P")
T = TypeVar("T")

# The program of the process. It does not run the package's `__init__`, which would take most of the time to start.
_START = """
import json, sys, types
sys.path[:] = json.loads(sys.argv[1])
sys.modules["mmlongbench"] = package = types.ModuleType("mmlongbench")
package.__path__ = json.loads(sys.argv[2])
from mmlongbench.documents.confined import main
main(int(sys.argv[3]), int(sys.argv[4]))
"""
_PACKAGE = Path(__file__).parents[1]
_ERRORS = {error.__name__: error for error in (BuildError, ReaderDiedError)}
"""The errors that the process may report beside those of a document."""


def confined(
    answer: Callable[..., Any] = lambda value: value, *, is_needed: bool = False
) -> Callable[[Callable[P, Iterator[T]]], Callable[P, Iterator[T]]]:
    """Return a decorator that runs a function in a process with limits, and yields what the function yields.

    The function has the arguments `path` and `limits`, and calls `begin_page` before each page that it reads. Its other
    arguments and what it yields are plain values, of which tuples arrive as lists, and dataclasses as dicts; or it
    yields tuples of a number, a size and bytes.

    Args:
        answer: makes a value of the function of the plain value that arrives.
        is_needed: whether a release needs the pages. They were read within the limits before, perhaps at a lower
            resolution, so they may take more; and a page that cannot be read is a BuildError.

    Raises:
        SourceError: the document or a page cannot be read.
        PageLimitError: a page takes too much time or memory.
        ReaderDiedError: the process died twice.
        BuildError: the file cannot be read on this machine.

    """

    def decorate(function: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            given = signature(function).bind(*args, **kwargs).arguments
            path, limits = given.pop("path"), given.pop("limits")
            if is_needed:
                limits = replace(limits, seconds_a_page=100 * limits.seconds_a_page, memory=2 * limits.memory)
            try:
                yield from map(answer, ask(function, path, limits, **given))
            except SourceError as error:
                if is_needed:
                    raise BuildError(str(error)) from error
                raise

        return call

    return decorate


def ask(function: Callable[..., Iterator[Any]], path: Path, limits: Limits, **arguments: object) -> Iterator[Any]:
    """Yield what a function yields in another process (see `confined`)."""
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
    def __init__(self) -> None:
        self._channel, theirs = Pipe()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        folders = [json.dumps(sys.path), json.dumps([str(_PACKAGE)])]
        words = [sys.executable, "-c", _START, *folders, str(theirs.fileno()), str(os.getpid())]
        with theirs, interrupts_held():
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                pass_fds=[theirs.fileno()],
                # NumPy is used without linear algebra; the buffers of many threads would count as memory
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        self._has_started = False

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        self._channel.close()
        self._process.kill()
        self._process.wait()
        self._stderr.close()

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
            if not self._has_started and (error := json.loads(self._channel.recv_bytes()).get("error")):
                raise BuildError(error)
            self._has_started = True
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
            if (code := self._process.wait()) != -signal.SIGXCPU:
                how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
                self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 300))
                lines = self._stderr.read().decode("utf-8", "replace").strip().split("\n")
                raise _DiedError(f"{how} ({lines[-1].strip()})" if lines[-1] else how) from error
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


def _above(what: str, bound: str, option: str, path: Path, place: str) -> PageLimitError:
    todo = f"raise limits.{option} and build into a new folder if the document is meant to be so, or exclude it"
    return PageLimitError(Fault(f"{what}-of-a-page", f"at most {bound}", "more", path.name, place, todo=todo))


def _free_reader() -> _Reader:
    free = _free(os.getpid())
    while free:
        reader = free.pop()
        if reader.is_alive():
            return reader
        reader.end()
    return _Reader()


@cache
def _free(process: int) -> list[_Reader]:
    """Return the processes that a process has started and that wait for a request; a forked process has its own
    list.
    """
    atexit.register(end_readers)
    return []


def end_readers() -> None:
    """End the processes that wait for a request; the next request starts a new process with the environment variables
    of that moment.
    """
    free = _free(os.getpid())
    while free:
        free.pop().end()


# --- in the process ---------------------------------------------------------------------------------------------------


_at_page: Callable[[int, bool], None] | None = None
"""What happens when a page begins; None in a process without limits."""


def begin_page(number: int, *, has_own_time: bool = True) -> None:
    """Say that the reading of a page begins, by its number from 0. The page gets processor time of its own, or goes on
    with the time that is left.
    """
    if _at_page:
        _at_page(number, has_own_time)


def main(channel: int, parent: int) -> None:
    """Answer requests until the other process is gone."""
    global _at_page  # as the limits, it is one for the whole process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process gets the signal and ends this one
    end_with(parent)  # even in the middle of a page: MuPDF holds the interpreter while it draws
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a process that is ended for its time would leave a file
    connection, first = Connection(channel), dict[str, str]()
    try:
        import mmlongbench.documents.mupdf  # noqa: F401
    except (ImportError, MemoryError, OSError) as error:
        first = {"error": f"PyMuPDF cannot be loaded: {' '.join(str(error).split()) or 'memory ran out'}"}
    connection.send_bytes(json.dumps(first).encode())
    while True:
        try:
            module, name, path, limits, arguments = json.loads(connection.recv_bytes())
        except EOFError:
            return
        bounds = Limits(**limits)

        # bound now, not at the next request
        def begin(number: int, has_own_time: bool, seconds: float = bounds.seconds_a_page) -> None:
            connection.send_bytes(json.dumps({"page": number}).encode())
            if has_own_time:
                _allow(seconds)

        _at_page = begin
        _allow(bounds.seconds_a_page)
        _limit(resource.RLIMIT_DATA, bounds.memory)
        function = unwrap(getattr(importlib.import_module(module), name))
        last = _answer(connection, function(Path(path), **arguments, limits=bounds))
        connection.send_bytes(json.dumps(last).encode())


def _allow(seconds: float) -> None:
    """Let this process run so many seconds of a processor more, or a second more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _answer(connection: Connection, answers: Iterator[Any]) -> dict[str, object]:
    """Send answers to a request; return how it ended, as the last message."""
    try:
        for answer in answers:
            if isinstance(answer, tuple) and isinstance(answer[-1], bytes):
                number, size, data = answer
                connection.send_bytes(json.dumps({"number": number, "size": size}).encode())
                connection.send_bytes(data)
            else:
                connection.send_bytes(json.dumps({"item": answer}, default=asdict).encode())
    except SourceError as error:
        return {"fault": error.fault.fields()}
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_DATA, (resource.getrlimit(resource.RLIMIT_DATA)[1],) * 2)  # enough to say so
        return {"memory": True}
    except BuildError as error:
        return {"error": str(error), "kind": type(error).__name__}
    return {"done": True}

"""Reads PDFs in another process, page by page; no page may take longer than the time limit of a page.

The process is started when the first PDF is read, and stays for the next ones. It is ended if a page takes too long or
if its answers are no longer needed. If it dies, a new process answers the request once more from the beginning, and the
answers that are already known are skipped.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cache
from itertools import starmap
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import PageRead
from mmlongbench.documents.pdf_process import WITH_BYTES, request
from mmlongbench.errors import BuildError, Fault, ReaderDiedError, SourceError, TimeLimitError

if TYPE_CHECKING:
    from mmlongbench.documents.mupdf import PageWord

_START = """
import json, sys, types
sys.path[:] = json.loads(sys.argv[1])
sys.modules["mmlongbench"] = package = types.ModuleType("mmlongbench")
package.__path__ = json.loads(sys.argv[2])
from mmlongbench.documents.pdf_process import main
main(int(sys.argv[3]), int(sys.argv[4]))
"""
"""The program of the process. It does not run the package's `__init__`, which would take most of the time to start."""
_PACKAGE = Path(__file__).parents[1]
_STARTING = 120.0
"""The seconds that the process may take to start."""
_GRACE = 2.0
"""The seconds after the time limit of a page in which the process may still report by itself that the page took too
long."""
_MAX_SAID = 300
"""The bytes at the end of the process's output that are searched for its last line."""
_SLICE = 1.0
"""The seconds of one wait. If this process is suspended during a wait, the wait still counts as at most these
seconds."""


def page_sizes(path: Path, dpi: int, limits: Limits) -> list[tuple[int, int]]:
    """See `pdf.page_sizes`. Like all functions here, it also raises TimeLimitError."""
    steps: Iterator[int | list[int]] = ask("sizes", path, limits, dpi=dpi)
    return [(step[0], step[1]) for step in steps if not isinstance(step, int)]


def page_text(path: Path, limits: Limits, *, ocr: bool = False) -> Iterator[str]:
    """See `pdf.page_text`."""
    return ask("texts", path, limits, ocr=ocr)


def page_keys(path: Path, limits: Limits) -> Iterator[str]:
    """See `pdf.page_keys`."""
    return ask("keys", path, limits)


def read_pages(path: Path, limits: Limits, *, ocr: bool = False) -> Iterator[PageRead]:
    """See `pdf.read_pages`."""
    return starmap(PageRead, ask("pages", path, limits, ocr=ocr))


def page_words(path: Path, limits: Limits) -> "Iterator[Sequence[PageWord]]":
    """See `pdf.page_words`; a word is a list here, not a tuple, because it was sent as JSON."""
    return ask("words", path, limits)


def page_facts(path: Path, limits: Limits) -> Iterator[Mapping[str, Any]]:
    """See `page_facts.page_facts`; a page is a mapping of the fields of `PageFacts`."""
    return ask("facts", path, limits)


def page_parts(path: Path, dpi: int, limits: Limits) -> Iterator[dict[str, Any]]:
    """See `page_parts.page_parts`; the numbers of the pages that are looked at first are left out."""
    steps: Iterator[int | dict[str, Any]] = ask("parts", path, limits, dpi=dpi)
    return (step for step in steps if not isinstance(step, int))


def crop_pages(
    path: Path, crops: Sequence[tuple[int, Sequence[float]]], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """See `page_parts.crop_pages`."""
    found: Iterator[tuple[int, list[int], bytes]] = ask(
        "crops of pages", path, limits, crops=list(crops), dpi=dpi, quality=quality
    )
    for place, size, data in found:
        yield place, (size[0], size[1]), data


def page_layers(path: Path, limits: Limits) -> Iterator[dict[str, Any]]:
    """See `page_layer.page_layers`."""
    return ask("layers", path, limits)


def page_crops(
    path: Path, crops: Sequence[tuple[int, Sequence[Sequence[float]]]], limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """See `page_layer.page_crops`."""
    found: Iterator[tuple[int, list[int], bytes]] = ask("crops", path, limits, crops=list(crops))
    for number, size, data in found:
        yield number, (size[0], size[1]), data


def render_pages(
    path: Path, numbers: Sequence[int], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """See `pdf.render_pages`."""
    found: Iterator[tuple[int, list[int], bytes]] = ask(
        "images", path, limits, numbers=list(numbers), dpi=dpi, quality=quality
    )
    for number, size, data in found:
        yield number, (size[0], size[1]), data


def pages_to_read(path: Path, known: Sequence[int], limits: Limits) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """See `pdf.pages_to_read`."""
    found: Iterator[tuple[int, list[int], bytes]] = ask("pages to read", path, limits, known=list(known))
    for number, size, data in found:
        yield number, (size[0], size[1]), data


def ask(call: str, path: Path, limits: Limits, **arguments: object) -> Iterator[Any]:
    """Yield the answers to a request, each within the time limit of a page.

    Raises:
        SourceError: the document is broken or over a limit.
        TimeLimitError: a page takes too long.
        ReaderDiedError: the process that reads the document died twice.
        BuildError: the document cannot be read on this machine, for example because memory runs out.

    """
    known = 0
    for is_last in (False, True):
        reader = _free_reader()
        try:
            for number, answer in enumerate(reader.answers(call, path, limits, arguments)):
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
    """A process that reads PDFs."""

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

    def answers(self, call: str, path: Path, limits: Limits, arguments: Mapping[str, object]) -> Iterator[Any]:
        """Yield the answers to a request; then the process is free for another one. If not all answers are read, the
        process is ended.
        """
        is_free = False
        try:
            self._start()
            self._channel.send_bytes(request(call, path, limits, arguments))
            last = yield from self._items(call, path, limits, arguments)
            is_free = True
        except (EOFError, OSError) as error:
            raise _DiedError(self._how_it_ended()) from error
        finally:
            if is_free:
                _free(os.getpid()).append(self)
            else:
                self.end()
        if "fault" in last:
            raise SourceError(Fault(**last["fault"]))
        if "error" in last:
            raise BuildError(last["error"])

    def _start(self) -> None:
        if self._has_started:
            return
        if not self._says_something(_STARTING):
            raise BuildError(
                f"the process that reads PDFs did not start within {_STARTING:.0f} s; run the command again to continue"
            )
        if error := json.loads(self._channel.recv_bytes()).get("error"):
            raise BuildError(error)
        self._has_started = True

    def _items(
        self, call: str, path: Path, limits: Limits, arguments: Mapping[str, object]
    ) -> Generator[Any, None, Mapping[str, Any]]:
        """Yield the answers, and return the last message. Each answer must come within the time limit of a page."""
        numbers, page = arguments.get("numbers"), 0
        while True:
            said = json.loads(self._channel.recv_bytes()) if self._says_something(limits.seconds_a_page) else {}
            if not said or "late" in said:
                at = numbers[page] if isinstance(numbers, list) and numbers else page
                raise TimeLimitError(f"{path.name}, page {at + 1}: takes longer than {limits.seconds_a_page:g} s")
            if "item" not in said:
                return dict(said)
            item = said["item"]
            yield (*item, self._channel.recv_bytes()) if call in WITH_BYTES else item
            page = item + 1 if isinstance(item, int) else page + 1

    def _says_something(self, seconds: float) -> bool:
        """Return whether the process sends something within `seconds + _GRACE`."""
        waited, bound = 0.0, seconds + _GRACE
        while waited < bound:
            if self._channel.poll(min(_SLICE, bound - waited)):
                return True
            waited += _SLICE
        return False

    def _how_it_ended(self) -> str:
        self._process.kill()
        code = self._process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - _MAX_SAID))
        said = self._said.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        return f"{how} ({last})" if last else how


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

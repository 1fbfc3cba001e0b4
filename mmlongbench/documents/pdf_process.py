"""The process that reads PDFs for another one, which ends it where a page takes too long.

MuPDF holds the interpreter while it draws, so no thread beside it can: only another process can. Requests and answers
are JSON, and bytes beside it; nothing that a hostile PDF makes of this process is run by the other.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import (
    page_keys,
    page_keys_and_texts,
    page_text,
    page_words,
    render_pages,
    steps_to_sizes,
)
from mmlongbench.errors import BuildError, SourceError, TimeLimitError
from mmlongbench.io.process_pool import end_with

CALLS: dict[str, Callable[..., Iterator[Any]]] = {
    "sizes": steps_to_sizes,
    "texts": page_text,
    "keys": page_keys,
    "keys and texts": page_keys_and_texts,
    "images": render_pages,
    "words": page_words,
}
"""What can be asked for; each answers page after page."""


def request(call: str, path: Path, limits: Limits, arguments: dict[str, Any]) -> bytes:
    """A request as it is sent."""
    return json.dumps([call, str(path), asdict(limits), arguments]).encode()


def answers(call: str, path: Path, limits: Limits, arguments: dict[str, Any]) -> Iterator[Any]:
    """The answers to a request, made in this process."""
    return CALLS[call](path, **arguments, limits=limits)


def main(channel: int, parent: int) -> None:
    """Answer requests until the other process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process hears it, and ends this one
    end_with(parent)  # even in the middle of a page
    for unused in ("pymupdf.layout", "pymupdf4llm"):  # PyMuPDF imports them, which takes longer than all of itself
        sys.modules[unused] = _ABSENT
    connection = Connection(channel)
    connection.send_bytes(_started())
    while True:
        try:
            call, path, limits, arguments = json.loads(connection.recv_bytes())
        except EOFError:
            return
        _answer(connection, call, Path(path), Limits(**limits), arguments)


_ABSENT: ModuleType = None  # type: ignore[assignment]  # how Python marks a module that cannot be imported


def _started() -> bytes:
    """Whether PDFs can be read at all, as where memory suffices."""
    try:
        import pymupdf  # noqa: F401
    except (ImportError, MemoryError, OSError) as error:
        return json.dumps(
            {"error": f"PyMuPDF cannot be loaded: {' '.join(str(error).split()) or 'memory ran out'}"}
        ).encode()
    return b"{}"


def _answer(connection: Connection, call: str, path: Path, limits: Limits, arguments: dict[str, Any]) -> None:
    try:
        for found in answers(call, path, limits, arguments):
            if call == "images":
                number, size, data = found
                connection.send_bytes(json.dumps({"item": [number, size]}).encode())
                connection.send_bytes(data)
            else:
                connection.send_bytes(json.dumps({"item": found}).encode())
        last: dict[str, Any] = {"done": True}
    except SourceError as error:
        last = {"fault": error.fault.fields()}
    except TimeLimitError:
        last = {"late": True}
    except (BuildError, MemoryError) as error:
        last = {"error": str(error) or f"{path.name}: memory ran out while reading it; run again to go on"}
    connection.send_bytes(json.dumps(last).encode())

"""The process that reads PDFs for another process. That other process ends this one if a page takes too long.

MuPDF holds the interpreter while it draws, so no thread could interrupt it. Only another process can. Requests and
answers are JSON and bytes, so nothing that a hostile PDF makes of this process can run code in the other one.
"""

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import page_crops, page_facts, page_layers
from mmlongbench.documents.page_parts import crop_pages, page_parts
from mmlongbench.documents.pdf import (
    page_keys,
    page_text,
    page_words,
    pages_to_read,
    read_pages,
    render_pages,
    steps_to_sizes,
)
from mmlongbench.errors import BuildError, SourceError, TimeLimitError
from mmlongbench.io.pool import end_with

CALLS: Mapping[str, Callable[..., Iterator[Any]]] = {
    "sizes": steps_to_sizes,
    "texts": page_text,
    "keys": page_keys,
    "pages": read_pages,
    "images": render_pages,
    "layers": page_layers,
    "crops": page_crops,
    "words": page_words,
    "facts": page_facts,
    "parts": page_parts,
    "crops of pages": crop_pages,
    "pages to read": pages_to_read,
}
"""The functions that can be requested; each yields its answers page by page."""
WITH_BYTES = frozenset(("images", "pages to read", "crops", "crops of pages"))
"""The functions whose answers end with bytes, which are sent as a message of their own."""


def request(call: str, path: Path, limits: Limits, arguments: Mapping[str, object]) -> bytes:
    """Return a request in the form in which it is sent."""
    where = str(path.absolute())  # this process may change its working folder, the other one does not
    return json.dumps([call, where, asdict(limits), arguments]).encode()


def answers(call: str, path: Path, limits: Limits, arguments: Mapping[str, object]) -> Iterator[Any]:
    """Yield the answers to a request; they are computed in this process."""
    return CALLS[call](path, **arguments, limits=limits)


def main(channel: int, parent: int) -> None:
    """Answer requests until the other process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process gets the signal and ends this one
    end_with(parent)  # even in the middle of a page
    connection = Connection(channel)
    connection.send_bytes(_started())
    while True:
        try:
            call, path, limits, arguments = json.loads(connection.recv_bytes())
        except EOFError:
            return
        _answer(connection, call, Path(path), Limits(**limits), arguments)


def _started() -> bytes:
    """Return the first message, a JSON object. It is empty, or its `error` says why PDFs cannot be read at all."""
    try:
        import mmlongbench.documents.mupdf  # noqa: F401
    except (ImportError, MemoryError, OSError) as error:
        return json.dumps(
            {"error": f"PyMuPDF cannot be loaded: {' '.join(str(error).split()) or 'memory ran out'}"}
        ).encode()
    return b"{}"


def _answer(connection: Connection, call: str, path: Path, limits: Limits, arguments: Mapping[str, object]) -> None:
    try:
        for found in answers(call, path, limits, arguments):
            if call in WITH_BYTES:
                number, size, data = found
                connection.send_bytes(json.dumps({"item": [number, size]}).encode())
                connection.send_bytes(data)
            else:
                connection.send_bytes(json.dumps({"item": found}).encode())
        last: dict[str, object] = {"done": True}
    except SourceError as error:
        last = {"fault": error.fault.fields()}
    except TimeLimitError:
        last = {"late": True}
    except (BuildError, MemoryError) as error:
        last = {
            "error": str(error) or f"{path.name}: memory ran out while reading it; run the command again to continue"
        }
    connection.send_bytes(json.dumps(last).encode())

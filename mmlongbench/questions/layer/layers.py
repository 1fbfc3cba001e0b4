"""Reads the layer of a document, or takes it from the cache: one file for the bytes of a document and the version of
PyMuPDF.
"""

import gzip
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import VERSION, page_layers
from mmlongbench.io.files import write_whole
from mmlongbench.questions.layer.page import Page, RawPage

_MAX_LINE = 16 * 1024 * 1024
"""The maximum length of a line of the cache in bytes."""


def pages_of(path: Path, sha256: str, cache: Path, limits: Limits) -> list[Page]:
    """Return the pages of a document.

    Raises:
        SourceError, ReaderDiedError: as `page_layers`.

    """
    file = cache / f"{sha256}-{layer_version()}.jsonl.gz"
    found = _kept(file)
    if found is None:
        found = [RawPage.model_validate(raw) for raw in page_layers(path, limits)]
        lines = (page.model_dump_json().encode() + b"\n" for page in found)
        write_whole(file, [gzip.compress(b"".join(lines), mtime=0)])
    return [Page(number, raw) for number, raw in enumerate(found, 1)]


def layer_version() -> str:
    """Return the versions of the programs that read the layer of a page; with other ones, it is read again."""
    return f"pymupdf-{importlib.metadata.version('pymupdf')}-{VERSION}"


def _kept(file: Path) -> list[RawPage] | None:
    """Return the pages in a file of the cache; None if there is none, or if it is damaged."""
    try:
        with gzip.open(file) as lines:
            return [RawPage.model_validate_json(line) for line in _lines(lines)]
    except (OSError, EOFError, ValueError, ValidationError):
        return None


def _lines(file: gzip.GzipFile) -> Iterator[bytes]:
    while line := file.readline(_MAX_LINE):
        yield line

"""Reads text in pictures with the program `tesseract` (OCR). Each picture is read by a process of its own, so the text
depends on nothing but the picture and the engine.
"""

import hashlib
import math
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal, TypeAlias

from mmlongbench.errors import BuildError, ReaderDiedError
from mmlongbench.io.pool import end_with

Ocr: TypeAlias = bool | Literal["all"]
"""The pages that are read by OCR: none, pages of PDFs that have few letters (True), or all."""
DPI = 288  # the resolution at which pages are read, twice the default of releases
MAX_PIXELS = 20_000_000
"""The maximum area of a picture when all pages are read; larger pages are read at a lower resolution. On such a
picture, `tesseract` takes up to half a gigabyte of memory."""
MAX_SIDE = 16_384  # the maximum side of a picture when all pages are read; `tesseract` reads none above 32,767
SECONDS_A_PAGE = "limits.seconds_a_page"
"""How a manifest sets the seconds that `tesseract` may take at a page."""
_LANGUAGE = "eng"
_OPTIONS = ("--oem", "1", "--psm", "3", "-c", "page_separator=")
"""The options for reading all pages: the neural network, whole pages, and no form feed at the end."""
_ANSWERING = 60.0  # the seconds within which `tesseract` must answer questions about itself
_POINTS_PER_INCH = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class OcrEngine:
    """Everything that decides which text is read in a picture; the lock names it as `pages.ocr`."""

    pages: Literal["all"] = "all"
    engine: str
    """The program and its version."""
    library: str
    """The library that opens pictures, with its version."""
    language: dict[str, str]
    """The `name` of the language, and the `sha256` of its data; empty if the program does not say where they are."""
    options: str = " ".join(_OPTIONS)
    dpi: int = DPI
    most_pixels: int = MAX_PIXELS


@cache
def ocr_version() -> str:
    """Return the first line of `tesseract --version`; raise BuildError if it is not installed or does not answer."""
    return next(iter(_answer("--version")), "")


@cache
def ocr_engine() -> OcrEngine:
    """Return the engine of this machine.

    Raises:
        BuildError: `tesseract` is not installed, does not answer, or lacks its data for English.

    """
    lines = (line.strip() for line in _answer("--version"))
    library = next((line for line in lines if line.startswith("leptonica")), "")
    title, *languages = _answer("--list-langs") or [""]
    if _LANGUAGE not in (line.strip() for line in languages):
        raise BuildError(
            f"pages.ocr: `tesseract` has no data for the language {_LANGUAGE!r}; install them (on Debian: `apt-get "
            f"install tesseract-ocr-{_LANGUAGE}`), or leave pages.ocr out"
        )
    folder = re.search('"(.+)"', title)
    data = Path(folder[1]) / f"{_LANGUAGE}.traineddata" if folder else None
    sha256 = hashlib.sha256(data.read_bytes()).hexdigest() if data and data.is_file() else ""
    return OcrEngine(engine=ocr_version(), library=library, language={"name": _LANGUAGE, "sha256": sha256})


def dpi_of(width: float, height: float) -> int:
    """Return the resolution at which a page is read, from its size in points.

    >>> dpi_of(612, 792), dpi_of(4000, 3000), dpi_of(7200, 1)
    (288, 92, 163)
    """
    return max(1, min(DPI, math.floor(_POINTS_PER_INCH * _largest_scale(width, height))))


def scale_of(size: tuple[int, int], dpi: int | None) -> float:
    """Return by how much a picture of a page is enlarged before it is read, from its size in pixels. If its resolution
    is not known, it is only made smaller, where it is too large.

    >>> scale_of((612, 792), 72), scale_of((612, 792), None), scale_of((8000, 10000), 288)
    (4.0, 1.0, 0.5)
    """
    return min(max(1.0, DPI / dpi) if dpi else 1.0, _largest_scale(*size))


def _largest_scale(width: float, height: float) -> float:
    return min(math.sqrt(MAX_PIXELS / (width * height)), MAX_SIDE / max(width, height))


def read_page(picture: bytes, page: str, seconds: float, limit: str = SECONDS_A_PAGE) -> str:
    """Return the text in a picture; messages name it as `page`, and call the limit of `seconds` by its name in the
    manifest or by the option `limit`.

    Raises:
        ReaderDiedError: `tesseract` fails, or takes longer than `seconds`. A document is never refused for this,
            because with pictures of this size it depends on the machine, for example on its memory.
        BuildError: `tesseract` is not installed.

    """
    try:
        return run(picture, page, seconds, ("-l", _LANGUAGE, *_OPTIONS), limit)
    except ValueError as error:
        raise ReaderDiedError(
            f"{page}: tesseract failed ({error}); run the command again to continue, or leave the document out"
        ) from error


def run(picture: bytes, page: str, seconds: float, options: Sequence[str] = (), limit: str = SECONDS_A_PAGE) -> str:
    """Return what `tesseract` prints for a picture; for messages see `read_page`.

    Raises:
        ReaderDiedError: it takes longer than `seconds`.
        BuildError: it is not installed.
        ValueError: it fails; the message is its last one.

    """
    try:
        code, out, err = _run([find_tesseract(), "stdin", "stdout", *options], picture, seconds)
    except subprocess.TimeoutExpired as error:
        todo = f"leave the document out, or raise {limit}, and run the command again to continue"
        raise ReaderDiedError(f"{page}: tesseract takes longer than {seconds:g} s; {todo}") from error
    if code:
        raise ValueError(err[-1])
    return out


def find_tesseract() -> str:
    """Return the path of `tesseract`; raise BuildError if it is not installed."""
    command = shutil.which("tesseract")
    if command is None:
        raise BuildError(
            "pages.ocr: `tesseract` is not installed; install it (on Debian: `apt-get install tesseract-ocr`), or "
            "leave pages.ocr out"
        )
    return command


def _answer(question: str) -> list[str]:
    try:
        code, out, err = _run([find_tesseract(), question], b"", _ANSWERING)
        how = f"fails ({(out.splitlines() or err)[-1]})" if code else ""
    except subprocess.TimeoutExpired:
        how = f"does not answer within {_ANSWERING:g} s"
    if how:
        raise BuildError(f"pages.ocr: `tesseract {question}` {how}; repair it, or leave out pages.ocr")
    return out.splitlines() or err


def _run(command: Sequence[str], given: bytes, seconds: float) -> tuple[int, str, list[str]]:
    """Run a program with a time limit; return its exit code, its output, and the lines of its errors, or how it ended
    if it failed without a word. On Linux, the kernel kills the program if this process dies.

    It gets one thread: many pages are read at once, and more threads take many times as long for the same text.
    """
    done = subprocess.run(
        command,
        input=given,
        capture_output=True,
        check=False,
        timeout=seconds,
        env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        preexec_fn=partial(end_with, os.getpid()),
    )
    code = done.returncode
    errors = str(done.stderr, "utf-8", "replace").splitlines()
    if code and not errors:
        errors = [f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit {code}"]
    return code, str(done.stdout, "utf-8", "replace"), errors

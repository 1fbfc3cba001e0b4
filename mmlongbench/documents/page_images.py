"""Documents whose pages are image files: sized from headers, released as they are or as JPEG."""

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.documents.pdf import Limits
from mmlongbench.documents.pixels import ending_of, header_size, opened, released_bytes, unreadable
from mmlongbench.errors import BuildError, Fault, SourceError


@dataclass(frozen=True, slots=True)
class PageImages:
    """The image files of a document's pages, in reading order."""

    files: tuple[Path, ...]
    names: tuple[str, ...] = ()
    """Their names in the release, for loaders that expect others than `<document>_page<N>.jpg`."""
    dpi: int | None = None
    """At which they were rendered, where they were; a context shows pages of one DPI only."""


def image_sizes(document: PageImages, limits: Limits) -> list[tuple[int, int]]:
    """(width, height) in pixels of each page, after EXIF rotation, from headers alone.

    Raises:
        SourceError: a file is missing or too large, or is no picture.

    """
    if not 1 <= len(document.files) <= limits.pages:
        bound = f"1 to {limits.pages} pages"
        raise SourceError(Fault("pages-of-a-document", bound, str(len(document.files)), todo="raise limits.pages"))
    return [_size(file, limits) for file in document.files]


def _size(file: Path, limits: Limits) -> tuple[int, int]:
    try:
        if (size := file.stat().st_size) > limits.bytes:
            raise SourceError(Fault("size-of-a-page", f"at most {limits.bytes} bytes", str(size), file.name))
        width, height = header_size(file)
    except unreadable() as error:
        raise SourceError(_broken(file, error)) from error
    if not 0 < min(width, height) <= max(width, height) <= limits.side or width * height > limits.pixels:
        bound = f"sides of 1 to {limits.side} pixels and an area of {limits.pixels}"
        raise SourceError(Fault("size-of-a-page", bound, f"{width} × {height}", file.name))
    return width, height


def image_keys(document: PageImages) -> Iterator[str]:
    """What tells each page's content: a hash of its file."""
    for file in document.files:
        yield hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def image_pages(
    document: PageImages, paths: Sequence[str], numbers: Sequence[int], sizes: Sequence[tuple[int, int]], quality: int
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """(page number, (width, height), bytes) of the asked pages: the file's own where its ending fits, else as JPEG.

    Raises:
        BuildError: a page cannot be decoded; its header was found fit, so the release cannot do without it.

    """
    for number, path, size in zip(numbers, paths, sizes, strict=True):
        file = document.files[number]
        try:
            data = released_bytes(file.read_bytes(), size)
            yield number, size, data if path.endswith(ending_of(data)) else _jpeg(data, quality)
        except unreadable() as error:
            todo = "mend the document, or take it out of the sources, and build into a new folder"
            raise BuildError(f"{_broken(file, error)}; {todo}") from error


def _jpeg(data: bytes, quality: int) -> bytes:
    buffer = io.BytesIO()
    with opened(io.BytesIO(data)) as picture:
        picture.convert("RGB").save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def _broken(file: Path, error: Exception) -> Fault:
    found = next(iter(str(error).replace(f"{file.parent}/", "").splitlines()), "")
    return Fault("broken-page", "a picture that can be opened and decoded", found, file.name)

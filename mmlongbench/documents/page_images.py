"""Documents whose pages are image files: sizes come from headers, and pages are released unchanged or as JPEG."""

import hashlib
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import scale_of
from mmlongbench.documents.pixels import ending_of, header_size, opened, released_bytes, shrunk, unreadable
from mmlongbench.errors import BuildError, Fault, SourceError

if TYPE_CHECKING:
    from PIL import Image

_FORMATS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG"}


@dataclass(frozen=True, slots=True)
class PageImages:
    """The image files of a document's pages, in reading order."""

    files: tuple[Path, ...]
    """The image of each page, in order; pages of `missing` have none."""
    names: tuple[str, ...] = ()
    """The file names of the pages in the release, for loaders that do not expect the usual names
    `<document>_page<N>.jpg`; empty: the pages have the usual names."""
    dpi: int | None = None
    """The resolution at which the pages were rendered; None if it is not known. A context shows pages of one DPI
    only."""
    missing: tuple[int, ...] = ()
    """The numbers, from 0 and ascending, of pages of the document of which the source has no image. No context shows
    them, and the other pages keep their numbers."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number of each page in `files`, from 0."""
        lacking = frozenset(self.missing)
        return tuple(number for number in range(len(self.files) + len(lacking)) if number not in lacking)


def image_sizes(document: PageImages, limits: Limits) -> list[tuple[int, int]]:
    """Return (width, height) in pixels of each page, after EXIF rotation, from headers alone.

    Raises:
        SourceError: a file is missing or too large, or is no picture.

    """
    if not 1 <= len(document.files) <= limits.pages:
        bound = f"1 to {limits.pages} pages"
        raise SourceError(Fault("pages-of-a-document", bound, str(len(document.files)), todo="raise limits.pages"))
    return [_size(file, limits) for file in document.files]


def oversized_page(file: Path, max_bytes: int) -> Fault | None:
    """Return a fault if a page's file is too large to be read; None if it is small enough, or does not exist."""
    if not file.is_file() or (size := file.stat().st_size) <= max_bytes:
        return None
    return Fault("size-of-a-page", f"at most {max_bytes} bytes", str(size), file.name, todo="raise limits.bytes")


def _size(file: Path, limits: Limits) -> tuple[int, int]:
    try:
        if fault := oversized_page(file, limits.bytes):
            raise SourceError(fault)
        width, height = header_size(file)
    except unreadable() as error:
        raise SourceError(_broken(file, error)) from error
    if not 0 < min(width, height) <= max(width, height) <= limits.side or width * height > limits.pixels:
        bound = f"sides of 1 to {limits.side} pixels and an area of {limits.pixels}"
        raise SourceError(
            Fault(
                "size-of-a-page",
                bound,
                f"{width} × {height}",
                file.name,
                todo="make the picture smaller, raise limits.pixels, or exclude the document",
            )
        )
    return width, height


def image_keys(document: PageImages) -> Iterator[str]:
    """Yield a key of each page's content: a hash of the page's file, or an empty text for a blank page.

    Raises:
        SourceError: a page cannot be decoded.

    """
    for file in document.files:
        try:
            data = file.read_bytes()
            with opened(io.BytesIO(data)) as picture:
                picture.load()
                is_blank = all(low == high for low, high in _extrema(picture.convert("RGB")))
        except unreadable() as error:
            raise SourceError(_broken(file, error)) from error
        yield "" if is_blank else hashlib.sha256(data).hexdigest()[:16]


def _extrema(picture: "Image.Image") -> Sequence[tuple[int, int]]:
    found: Sequence[tuple[int, int]] = picture.getextrema()  # type: ignore[assignment]  # one pair a band
    return found


def image_pages(
    document: PageImages, paths: Sequence[str], numbers: Sequence[int], sizes: Sequence[tuple[int, int]], quality: int
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (page number, (width, height), bytes) of the chosen pages. If the ending of a page's path in the release
    does not fit the format of the page's file in the source, the page is encoded anew.

    Raises:
        BuildError: a page cannot be decoded any more, so its file has changed since the document was read.

    """
    files = dict(zip(document.numbers, document.files, strict=True))
    for number, path, size in zip(numbers, paths, sizes, strict=True):
        file = files[number]
        try:
            data = released_bytes(file.read_bytes(), size)
            form = _FORMATS.get(Path(path).suffix.lower(), "JPEG")
            yield number, size, data if _FORMATS.get(ending_of(data)) == form else _encoded(data, form, quality)
        except unreadable() as error:
            todo = "mend the document, or take it out of the sources, and build into a new folder"
            raise BuildError(f"{_broken(file, error)}; {todo}") from error


def images_to_read(document: PageImages, known: Collection[int]) -> Iterator[tuple[int, bytes]]:
    """Yield (page number, PNG bytes) of each page for OCR; pages in `known` are not opened. If the resolution of the
    pages is known, they are enlarged to that of OCR, because `tesseract` reads small letters badly.

    Raises:
        SourceError: a page cannot be decoded.

    """
    for number, file in enumerate(document.files):
        try:
            yield number, b"" if number in known else _to_read(file, document.dpi)
        except unreadable() as error:
            raise SourceError(_broken(file, error)) from error


def _to_read(file: Path, dpi: int | None) -> bytes:
    from PIL import Image

    buffer, size = io.BytesIO(), header_size(file)
    with opened(io.BytesIO(released_bytes(file.read_bytes(), size))) as picture:
        picture.load()
        layer = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
        scale = scale_of(size, dpi)
        wanted = shrunk(size, scale)
        layer = layer if wanted == size else layer.resize(wanted, Image.Resampling.LANCZOS)
        ground = Image.new("RGB", wanted, "white")
        ground.paste(layer, mask=layer.getchannel("A") if layer.mode == "RGBA" else None)
        ground.save(buffer, "PNG", compress_level=1, **({"dpi": (dpi * scale, dpi * scale)} if dpi else {}))
    return buffer.getvalue()


def _encoded(data: bytes, form: str, quality: int) -> bytes:
    """Return a picture in another format, with transparent parts in white."""
    from PIL import Image

    buffer = io.BytesIO()
    with opened(io.BytesIO(data)) as picture:
        picture.load()
        layer = picture.convert("RGBA")
        ground = Image.new("RGBA", layer.size, "white")
        ground.alpha_composite(layer)
        ground.convert("RGB").save(buffer, form, quality=quality)
    return buffer.getvalue()


def _broken(file: Path, error: Exception) -> Fault:
    found = next(iter(str(error).replace(f"{file.parent}/", "").splitlines()), "")
    return Fault(
        "broken-page",
        "a picture that can be opened and decoded",
        found,
        file.name,
        todo="replace the picture, or exclude the document",
    )

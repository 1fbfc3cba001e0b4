"""The limits of what a document, or one of its pages, may cost. A document above a limit is refused."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le

MAX_PIXELS = 178_956_970
"""The pixels of the largest picture that Pillow opens: twice `PIL.Image.MAX_IMAGE_PIXELS`."""

EARLIER_COUNTS = frozenset(
    {
        *("content_bytes", "operators", "forms", "groups", "nesting"),
        *("pattern_cells", "image_pixels", "painted_pages", "function_bytes"),
    }
)
"""Limits of what a page draws, in the locks of releases up to version 0.2. Time and memory bound a page since then."""

Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of documents, which a manifest sets under `limits`. The first four are counts, which are the same on
    every machine. Time and memory may differ a little; ordinary pages need less than a hundredth of them.
    """

    bytes: Count = 512 * 1024 * 1024
    """The size of a document's file in bytes."""
    pages: Count = 5000
    """The number of a document's pages."""
    side: Count = 16_384
    """The longest side of a rendered page, in pixels."""
    pixels: Annotated[Count, Le(MAX_PIXELS)] = 64_000_000
    """The area of a rendered page, or of a picture, in pixels."""
    memory: Annotated[int, Ge(512 * 1024 * 1024)] = 4 * 1024 * 1024 * 1024
    """The bytes of memory of the process that reads PDFs. Drawing a page of a release may take twice as much."""
    seconds_a_page: Annotated[float, Gt(0), Le(86_400)] = 60.0
    """The time of a processor in seconds that a page of a PDF may take, or `tesseract` at a page. Drawing a page of a
    release, after it was found to be within limits, may take a hundred times as long."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}
    """How a manifest is read: unknown keys are refused, and so are texts instead of numbers."""

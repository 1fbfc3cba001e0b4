"""The limits of what a document, or one of its pages, may cost. A document above a limit is refused; only the time
limit ends the build instead.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt, Le

MAX_PIXELS = 178_956_970
"""The pixels of the largest picture that Pillow opens: twice `PIL.Image.MAX_IMAGE_PIXELS`."""


def _pixels(value: int) -> int:
    if value > MAX_PIXELS:
        raise ValueError(f"at most {MAX_PIXELS:,} pixels: Pillow refuses a larger picture, which may be an attack")
    return value


class _PillowOpens:
    """Makes pydantic refuse a number of pixels that Pillow would not open, with the reason.

    Pydantic is imported only when a manifest is read: the process that reads PDFs does not need it.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type, handler: Any) -> Any:  # noqa: ANN401  (pydantic's)
        from pydantic import AfterValidator

        return AfterValidator(_pixels).__get_pydantic_core_schema__(source, handler)


Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of documents, which a manifest sets under `limits`. All but the last are counts, which are the same on
    every machine.

    A form is a piece of content that a PDF can draw several times (form XObject). Each time that a page draws a form,
    the form counts again with everything in it, except for patterns, which count once.
    """

    bytes: Count = 512 * 1024 * 1024
    """The size of a document's file in bytes."""
    pages: Count = 5000
    """The number of a document's pages."""
    side: Count = 16_384
    """The longest side of a rendered page, in pixels."""
    pixels: Annotated[Count, _PillowOpens] = 64_000_000
    """The area of a rendered page, or of a picture, in pixels."""
    content_bytes: Count = 64 * 1024 * 1024
    """The bytes of a page's content after unpacking."""
    operators: Count = 10_000_000
    """The operators (drawing commands) of a page."""
    forms: Count = 1_000_000
    """The forms that a page draws."""
    groups: Count = 10_000
    """The transparency groups and soft masks that a page draws; each may take as much time as painting the whole
    page."""
    nesting: Annotated[Count, Le(100)] = 50
    """How deep forms may be nested."""
    pattern_cells: Count = 100_000_000
    """The cells of a page's patterns: how often the tile of each pattern is repeated if the pattern covers the whole
    page."""
    image_pixels: Count = 1_000_000_000
    """The pixels of all pictures that a page draws."""
    painted_pages: Count = 10_000
    """The sum of the areas that a page paints, divided by the area of the page. The time to paint a page grows with
    this number."""
    function_bytes: Count = 32 * 1024
    """The bytes of the code of one PostScript function."""
    seconds_a_page: Annotated[float, Gt(0), Le(86_400)] = 60.0
    """The time in seconds that a page of a PDF may take. A build ends at a page that takes longer, because no released
    byte may depend on a clock."""

    __pydantic_config__: ClassVar[dict[str, object]] = {
        "extra": "forbid",
        "strict": True,
        "use_attribute_docstrings": True,
    }
    """How a manifest is read: unknown keys are refused, and so are texts instead of numbers."""

"""What a document may cost before it is refused, and what one page of it may."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of documents; all but the last are counts, which are the same on every machine.

    Forms, and all that they hold but patterns, count each time a page draws them.
    """

    bytes: int
    pages: int
    side: int
    """The longest side of a rendered page, in pixels."""
    pixels: int = 64_000_000
    """The area of a rendered page; image libraries take more for an attack."""
    content_bytes: int = 64 * 1024 * 1024
    """The unpacked content of a page."""
    operators: int = 10_000_000
    """Operators of a page."""
    forms: int = 1_000_000
    """Forms that a page draws."""
    groups: int = 10_000
    """Forms that are blended as a whole, and soft masks: each may take as long as the page has pixels."""
    nesting: int = 50
    """Forms inside each other."""
    pattern_cells: int = 100_000_000
    """Cells of its patterns that would fit on a page."""
    image_pixels: int = 1_000_000_000
    """Pixels of all pictures that a page draws."""
    function_bytes: int = 32 * 1024
    """The code of one PostScript function."""
    seconds_a_page: float = 60.0
    """The time that one page may take; a build ends where one takes longer."""

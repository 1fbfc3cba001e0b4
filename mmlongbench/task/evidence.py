"""Where the answer of an example stands, as its builder tells. Values only: knows no record and no metric."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the answer of an example stands: in which document, and on which of its pages.

    A page is known by its number in the document, counted from 0; paths are below the release's folder of images.
    """

    document: str | None = None
    """The name of the document, as the release spells it; None where the record names none."""
    pages: tuple[int, ...] = ()
    """The numbers of the pages that hold the answer, ascending; the prompt need not show all of them."""
    shown: tuple[int, ...] = ()
    """The numbers of the pages of this document that the prompt shows, each once, in the order of the prompt."""
    images: Mapping[int, str] = field(default_factory=dict)
    """The image path of each page in `shown`, by number; and of each page that holds the answer, or stands directly
    before or behind one, whether or not the release has that file."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """The text of each page in `shown`, by number, where the prompt shows texts."""

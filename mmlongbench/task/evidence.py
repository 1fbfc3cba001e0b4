"""Where the answer of an example is, as its builder says. Values only: this module knows no record and no metric."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the answer of an example is: in which document, and on which of its pages.

    Pages are numbered from 0 within their document; paths are below the release's folder of images.
    """

    document: str | None = None
    """The name of the document, as the release spells it; None if the record names none."""
    pages: tuple[int, ...] = ()
    """The numbers of the pages that hold the answer, ascending; the prompt may show only some of them."""
    shown: tuple[int, ...] = ()
    """The numbers of the pages of this document that the prompt shows, each once, in the order of the prompt."""
    images: Mapping[int, str] = field(default_factory=dict)
    """The image paths of pages, by page number: the pages in `shown`, the pages that hold the answer, and the pages
    directly before and after a page that holds the answer. The release may lack the image of a page that is not in
    `shown`."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """The text of each page in `shown`, by number, if the prompt shows texts."""
    joined: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """If images join pages, all numbers above count images, and this has the first and the last page of the document
    that each image in `shown` shows, both from 0; otherwise it is empty."""
    document_pages: tuple[int, ...] = ()
    """If images join pages, the numbers of the pages that hold the answer in their document; otherwise empty."""

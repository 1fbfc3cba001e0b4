"""The documents of a dataset: their pages, the texts of the pages, and crops of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Literal

from mmlongbench.documents.names import distinct_labels
from mmlongbench.errors import DraftError, Fault, Rejected, nearest
from mmlongbench.prompt import escape_markers

_MAX_COMPARED = 1_000
"""How many names of documents, and of how many characters, a missing one is compared with to find the nearest."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page as an image of the release."""

    index: int
    """The number of the page in its document, counted from 0."""
    path: str
    """The path below `mmlb_image/`."""
    width: int
    """The width in pixels."""
    height: int
    """The height in pixels."""


@dataclass(frozen=True, slots=True)
class Crop:
    """A crop of a page as an image of the release: a table, a figure, or the whole page if that has no text
    or is a picture with little text.
    """

    page: int
    """The number of the page in its document, counted from 0."""
    kind: Literal["table", "figure", "page"]
    """What it shows."""
    box: tuple[int, int, int, int]
    """Its corners on the page as it is shown, from the upper left corner, in points: x0, y0, x1, y1. In pixels, if the
    page is an image file."""
    path: str
    """The path below `mmlb_image/`; that of the page, if the crop shows the whole page."""
    width: int
    """The width in pixels."""
    height: int
    """The height in pixels."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document whose pages are known."""

    id: str
    """The id that the source gives it."""
    name: str
    """The name of its folder in the release."""
    sha256: str
    """The SHA-256 of its PDF, in hexadecimal; if its pages are image files, a hash of the hashes of all these files."""
    pages: tuple[Page, ...]
    """All pages that can be shown, in order."""
    keys: tuple[str, ...] = ()
    """A key for each page: pages with the same content have the same key, and blank pages have an empty key. There are
    keys only if `TaskSpec.page_keys` asks for them."""
    missing: tuple[int, ...] = ()
    """The numbers, from 0, of pages of which the source has no image. They are not in `pages`."""
    crops: tuple[Crop, ...] = ()
    """The crops of all pages, in the order of the pages, if `TaskSpec.page_crops` asks for them."""
    joined: tuple[tuple[Page, ...], ...] = ()
    """If `TaskSpec.join_pages` joins pages, each of `pages` is a joined image, and this has the pages that it shows."""
    joined_keys: tuple[tuple[str, ...], ...] = ()
    """The keys of the pages in `joined`, each as in `keys`. There are none without `keys`."""
    damaged: Mapping[int, str] = field(default_factory=dict, hash=False)  # a document can be a key
    """The pages of a PDF that are not drawn whole, because a picture or a part of their content is broken: by their
    number from 0, what MuPDF says of them."""
    hidden_text: tuple[int, ...] = ()
    """The numbers, from 0, of the pages of a PDF with text that cannot be seen; it is left out of their texts."""

    @property
    def page_count(self) -> int:
        """The number of pages of the document, with missing ones."""
        return len(self.pages) + len(self.missing)

    def position(self, index: int) -> int:
        """Return the position in `pages` of the page with a number from 0, which must not be missing."""
        return index - sum(1 for number in self.missing if number < index)

    def keys_at(self, position: int) -> tuple[str, ...]:
        """Return the keys of the pages that the image at a position in `pages` shows: of one page or, if it is a joined
        image, of several. Without `keys`, the result is empty.
        """
        return self.joined_keys[position] if self.joined_keys else self.keys[position : position + 1]

    def unfit(self, page: Page) -> str:
        """Return why a page that nobody asks about is no context: it is damaged, or blank; empty if it may be shown. A
        joined image is blank if all its pages are.
        """
        shown = self.joined[page.index] if self.joined else (page,)
        if any(each.index in self.damaged for each in shown):
            return "damaged page"
        keys = self.keys_at(self.position(page.index))
        return "" if any(keys) or not keys else "page of one colour"

    def page(self, number: int) -> Page:
        """Return a page by its number, counted from 1 as people count.

        Raises:
            Rejected: the document has no such page, or its source has no image of the page.

        """
        if number - 1 in self.missing:
            expected, todo = f"page {number} of document {self.id}", "add the image of this page, or correct the row"
            raise Rejected(Fault("missing-page", expected, "no image of it", todo=todo))
        if 1 <= number <= self.page_count:
            return self.pages[self.position(number - 1)]
        expected = f"a page from 1 to {self.page_count} of document {self.id}"
        raise Rejected(Fault("page-out-of-range", expected, f"{number}", todo="correct the row"))


class Documents:
    """The documents of a dataset: usable ones with their pages, and the faults of the others."""

    def __init__(
        self,
        usable: Mapping[str, Document],
        faults: Mapping[str, Fault] | None = None,
        texts: Callable[[str], tuple[str, ...]] = lambda name: (),
        parts: Callable[[str], tuple[tuple[str, ...], ...]] = lambda name: (),
    ) -> None:
        """Keep the usable documents, and in `faults` what is wrong with the others; both by id.

        `texts` takes the name of a document's folder in the release. It returns the texts of the document's pages, or
        an empty tuple if they were not read. `parts` returns for each page the texts before, between and after its
        crops.
        """
        self.usable = usable
        """The documents that can be used, by id."""
        self.faults = faults or {}
        """What is wrong with the documents that cannot be used, by id."""
        self._texts = texts
        self._parts = parts
        self._ids = tuple(sorted(usable))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all documents that can be used, sorted."""
        return self._ids

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids of all documents that can be used."""
        return iter(self._ids)

    def __getitem__(self, id: str) -> Document:
        """Return a document by its id, or by the name of its PDF: `ash.pdf` is the document `ash`.

        Raises:
            Rejected: it is missing, or was refused; the reject says why.

        """
        for name in (id, id.removesuffix(".pdf")):
            if name in self.usable:
                return self.usable[name]
            if name in self.faults:
                raise Rejected(self.faults[name])
        if (fault := self.faults.get(PurePosixPath(id).name.removesuffix(".pdf"))) is not None:
            raise Rejected(fault)  # the id has the folder of one of two documents of this name
        raise Rejected(self._missing(id))

    def _missing(self, id: str) -> Fault:
        """Return the fault of a document that is not among the sources; it names the document with the nearest name."""
        known = [*self.usable, *self.faults] if len(id) <= _MAX_COMPARED else []
        hint = nearest(id, known[:_MAX_COMPARED]).removeprefix("; ")
        todo = hint or "add it to the sources, or correct its name"
        return Fault(
            "missing-document", f"a document {id[:_MAX_COMPARED]!r} among the sources", "none", "", "", "doc", todo
        )

    @cached_property
    def distinct_labels(self) -> Mapping[str, str]:
        """The beginning of each usable document's name that tells the document apart from all others, by name."""
        return distinct_labels(document.name for document in self.usable.values())

    def page_texts(self, id: str) -> tuple[str, ...]:
        """Return the text of each page of a document, if `TaskSpec.page_texts` of the task asks for it.

        Raises:
            DraftError: the task does not ask for texts.

        """
        document = self[id]
        texts = self._texts(document.name)
        if len(texts) != len(document.pages):
            raise DraftError(f"document {id}: its texts were not read: set TaskSpec.page_texts")
        return texts

    def page_text(self, id: str, index: int) -> str:
        """Return the text of a page, by its number from 0, as a prompt shows it: stripped, its markers escaped."""
        return escape_markers(self.page_texts(id)[self[id].position(index)]).strip()

    def page_parts(self, id: str, index: int) -> tuple[str | Crop, ...]:
        """Return a page, by its number from 0, as texts with crops between them, in reading order. The texts are as a
        prompt shows them: stripped, their markers escaped; empty ones are left out.

        Raises:
            DraftError: the task does not ask for crops.

        """
        document = self[id]
        parts = self._parts(document.name)
        if len(parts) != len(document.pages):
            raise DraftError(f"document {id}: its crops were not read: set TaskSpec.page_crops")
        texts = [escape_markers(text).strip() for text in parts[document.position(index)]]
        crops = [crop for crop in document.crops if crop.page == index]
        found = [part for pair in zip(texts, crops, strict=False) for part in pair] + texts[len(crops) :]
        return tuple(part for part in found if part)

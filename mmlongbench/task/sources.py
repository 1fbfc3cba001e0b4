"""The opened sources of a dataset, from which a builder makes drafts.

The parts are documents, images, web pages, classes of pictures, and a corpus. A part exists only if the reader or the
manifest provides it. Where a builder uses a part that does not exist, the error names that part.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Literal, TypeVar

from mmlongbench.corpus.cutting import Mode, cut_text
from mmlongbench.corpus.retrieval.pages import PageRanking
from mmlongbench.corpus.retrieval.search import SearchedCorpus
from mmlongbench.documents.names import distinct_labels
from mmlongbench.documents.pictures import Picture, PictureBytes, Pictures
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, Fault, Rejected, nearest
from mmlongbench.prompt import Image, escape_markers
from mmlongbench.task.rows import Row


class WebPages:
    """The web pages of a dataset: texts and pictures in reading order. A picture's path is its name in the source."""

    def __init__(self, pages: Mapping[str, Sequence[str | Image]]) -> None:
        """`pages` has the pages by id, in the source's order."""
        self._pages = pages
        self._ids = tuple(pages)
        self._cut: dict[tuple[str, Mode], tuple[str | Image, ...]] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all pages, in the source's order."""
        return self._ids

    def page(self, id: str, mode: Mode = "sentences") -> tuple[str | Image, ...]:
        """Return a page with its texts cut into passages."""
        if (id, mode) not in self._cut:
            pieces = (cut_text(part, mode) if isinstance(part, str) else [part] for part in self._pages[id])
            self._cut[id, mode] = tuple(part for piece in pieces for part in piece)
        return self._cut[id, mode]


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
        known = [*self.usable, *self.faults] if len(id) <= _MAX_COMPARED else []
        todo = nearest(id, known[:_MAX_COMPARED]).removeprefix("; ") or "add it to the sources, or correct its name"
        expected = f"a document {id[:_MAX_COMPARED]!r} among the sources"
        raise Rejected(Fault("missing-document", expected, "none", field="doc", todo=todo))

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


@dataclass(frozen=True, slots=True)
class ImageClass:
    """A class of pictures (ICL)."""

    name: str
    """The name that a label shows."""
    domain: str
    """The domain of the class; an example shows classes of one domain only. Empty if there are no domains."""
    exemplars: Sequence[str]
    """The pictures that may be shown with their label, by their names in the source."""
    tests: int
    """How many test pictures the source has for this class."""


@dataclass(frozen=True, slots=True)
class ImageClasses:
    """All classes of a source."""

    exemplar_split: str
    """The name in the source of the split whose pictures may be shown."""
    test_split: str
    """The name in the source of the split whose pictures are asked about."""
    classes: Mapping[str, ImageClass] = field(default_factory=dict)
    """The classes, each by its id."""


class Images:
    """The pictures of a dataset, by the names that its source has for them."""

    def __init__(
        self,
        pictures: Pictures,
        shown: Mapping[str, frozenset[str]] | None = None,
        asked: Iterable[str] = (),
    ) -> None:
        """Keep the pictures; `shown` is the pool of the source, with the objects of each picture (`Reader.shows`).

        `asked` has the names of the pictures that any row of the source asks about, or shows beside its question.
        """
        self.pictures = pictures
        """Opens a picture by its name."""
        self.shown = shown or {}
        """The objects that each picture of the pool shows, by the picture's name."""
        self._asked_names = asked
        self._asked: PictureBytes | None = None
        self._names = tuple(sorted(self.shown))
        self._undecodable: dict[str, str] = {}
        self._as_they_are: set[str] = set()
        self._likenesses: dict[str, bytes] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all pictures of the pool, sorted; empty if the reader has no pool (`Reader.shows`)."""
        return self._names

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all pictures of the pool."""
        return iter(self._names)

    def __getitem__(self, name: str) -> Picture:
        """Return a picture by its name.

        Raises:
            Rejected: it is missing or broken.

        """
        return self.pictures[name]

    def objects(self, name: str) -> frozenset[str]:
        """Return the objects that a picture of the pool shows."""
        return self.shown[name]

    def is_asked(self, picture: Picture) -> bool:
        """Return whether any row of the source, even a refused one, asks about a picture with the same bytes as this
        one, or shows such a picture beside its question.
        """
        if self._asked is None:
            files = map(self.pictures.file, dict.fromkeys(self._asked_names))
            self._asked = PictureBytes(file for file in files if file is not None)
        return picture.source in self._asked

    def likeness(self, name: str) -> bytes:
        """Return what the picture with this name looks like, as a value for `is_like_any`; each picture is decoded
        once.

        Raises:
            Rejected: it is missing or broken.

        """
        picture = self[name]
        if picture.path not in self._likenesses:
            self._likenesses[picture.path] = picture.likeness()
            self._undecodable.setdefault(picture.path, "")
        return self._likenesses[picture.path]

    def origin(self, path: str) -> str | None:
        """Return the name in the source of a picture of the release, given its path there; None for a page."""
        return self.pictures.origins.get(path)

    def decode(self, path: str) -> None:
        """Check that not only the header but also the pixels of a picture of the release can be decoded.

        Raises:
            Rejected: it cannot be decoded.

        """
        if self._undecodable.get(path) != "" and (name := self.origin(path)):
            self.released(name)
            self._undecodable[path] = ""

    def released(self, name: str) -> bytes:
        """Return the bytes of a picture as released; a picture that is released as it is, is decoded once.

        Raises:
            Rejected: it cannot be decoded.

        """
        picture = self[name]
        source = picture.source_bytes()
        if picture.path in self._as_they_are:
            return source
        data = picture.released(source)
        if data is source:
            self._as_they_are.add(picture.path)
        return data

    def fault_of(self, path: str) -> str:
        """Return why a picture of the release cannot be decoded; empty if it can. Each picture is decoded once."""
        if path not in self._undecodable:
            try:
                self.decode(path)
            except Rejected as refused:
                self._undecodable[path] = refused.fault.reason
        return self._undecodable.get(path, "")


_PartT = TypeVar("_PartT")


class Sources:
    """Everything that a builder makes drafts from, besides the row. Using a part that the dataset does not have raises
    a `DraftError`.
    """

    def __init__(
        self,
        *,
        documents: Documents | None = None,
        images: Images | None = None,
        web_pages: WebPages | None = None,
        image_classes: ImageClasses | None = None,
        corpus: SearchedCorpus | None = None,
        page_rankings: Callable[[str], PageRanking | None] | None = None,
        rows: Sequence[Row] = (),
        draws: Draws | None = None,
        sample_draws: Draws | None = None,
    ) -> None:
        """Keep the parts that the dataset has."""
        self._documents = documents
        self._images = images
        self._web_pages = web_pages
        self._image_classes = image_classes
        self._corpus = corpus
        self._page_rankings = page_rankings
        self.rows = rows
        """All readable rows of the source in its order, with errata applied, before any is selected or sampled.

        They stay on disk: each loop over them reads the whole file, `rows[place]` reads one line.
        """
        self.draws = draws or Draws(())
        """The draws of the dataset, the same for all its questions."""
        self.sample_draws = sample_draws or Draws(())
        """The draws that select the sample. A stratified sample takes one row of each value of its field, then the next
        row of each, and so on; the draw `stratum` gives the order of the values."""

    @property
    def documents(self) -> Documents:
        """The documents that the reader finds."""
        return _there(self._documents, "documents", "its task needs mt.Pdfs in `sources`, or its reader `documents()`")

    @property
    def images(self) -> Images:
        """The pictures that the reader finds."""
        return _there(self._images, "pictures", "its task needs mt.Folder in `sources`, or its reader `image()`")

    @property
    def web_pages(self) -> WebPages:
        """The web pages that the reader finds."""
        return _there(self._web_pages, "web pages", "its reader needs a method `web_pages(sources)`")

    @property
    def image_classes(self) -> ImageClasses:
        """The classes of pictures that the reader finds."""
        return _there(self._image_classes, "classes of pictures", "its reader needs a method `image_classes(sources)`")

    @property
    def corpus(self) -> SearchedCorpus:
        """The corpus that the manifest names."""
        return _there(self._corpus, "corpus", "name one in its manifest (`corpus: …`)")

    def page_ranking(self, id: str) -> PageRanking:
        """Return the pages that were ranked for the row with an id.

        Raises:
            DraftError: no pages were ranked for it.

        """
        found = self._page_rankings(id) if self._page_rankings else None
        return _there(found, "ranked pages", "its task needs `TaskSpec.page_rankings` and a method `page_query()`")

    @property
    def has_documents(self) -> bool:
        """Whether the part `documents` exists."""
        return self._documents is not None

    @property
    def has_images(self) -> bool:
        """Whether the part `images` exists."""
        return self._images is not None

    @property
    def has_image_classes(self) -> bool:
        """Whether the part `image_classes` exists."""
        return self._image_classes is not None

    @property
    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """(width, height) in pixels by released path: of every page, and of every picture that was opened."""
        documents = self._documents.usable.values() if self._documents else ()
        pages = {page.path: (page.width, page.height) for document in documents for page in document.pages}
        pages |= {crop.path: (crop.width, crop.height) for document in documents for crop in document.crops}
        return ChainMap(pages, self._images.pictures.sizes) if self._images else pages


def _there(part: _PartT | None, name: str, todo: str) -> _PartT:
    if part is None:
        raise DraftError(f"this dataset has no {name}: {todo}")
    return part

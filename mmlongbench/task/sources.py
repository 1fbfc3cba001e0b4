"""Prepared things, as a builder sees them: documents and their pages, pictures, passages."""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mmlongbench.corpus.cutting import Mode, cut_text
from mmlongbench.documents.pictures import Picture, Pictures
from mmlongbench.documents.same_bytes import PictureBytes
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, Fault, Rejected, nearest
from mmlongbench.prompt import Image, escape_markers

if TYPE_CHECKING:
    from mmlongbench.corpus.info import Passage
    from mmlongbench.corpus.retrieval.library import Lead, Library, Query


@dataclass(frozen=True, slots=True)
class Page:
    """One page as an image of the release."""

    index: int
    """From 0."""
    path: str
    """Below `mmlb_image/`."""
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Document:
    """A document whose pages are known."""

    id: str
    """As the source calls it."""
    name: str
    """Its folder in the release."""
    sha256: str
    pages: tuple[Page, ...]
    keys: tuple[str, ...] = ()
    """Equal of pages of equal content, empty of blank ones; only where `TaskSpec.page_keys` asks for them."""


@dataclass(frozen=True, slots=True)
class ImageClass:
    """A class of pictures (ICL)."""

    name: str
    domain: str
    """Examples stay within one; empty where there is one only."""
    exemplars: Sequence[str]
    """The pictures that may be shown with their label, by the source's names."""
    tests: int
    """How many pictures the source has to ask about."""


@dataclass(frozen=True, slots=True)
class ImageClasses:
    """All classes of a source."""

    exemplar_split: str
    test_split: str
    classes: Mapping[str, ImageClass] = field(default_factory=dict)
    """By an id of their own."""


@dataclass(frozen=True, slots=True)
class World:
    """The handle to prepared things that a builder drafts from."""

    documents: Mapping[str, Document] = field(default_factory=dict)
    faults: Mapping[str, Fault] = field(default_factory=dict)
    """What is wrong with the documents that cannot be used."""
    pictures: Pictures | None = None
    library: "Library | None" = None
    web: Mapping[str, Sequence[str | Image]] = field(default_factory=dict)
    """Interleaved pages by id, in the source's order, with pictures by the source's names."""
    shown: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The pool of pictures by the source's names, with the objects that each shows."""
    image_classes: ImageClasses | None = None
    draws: Draws = field(default_factory=lambda: Draws(()))
    """The draws of the dataset, the same for all of its questions."""
    sample_draws: Draws = field(default_factory=lambda: Draws(()))
    """Those of its sample: in their order `stratum` a stratified sample goes through the values of a field."""
    texts: Callable[[str], tuple[str, ...]] = lambda name: ()
    """The texts of a document's pages, by its folder in the release."""
    asked_pictures: Iterable[str] = ()
    """The pictures that any row of the source asks about or shows beside its question, by the source's names."""
    _asked: list[PictureBytes] = field(default_factory=list, compare=False)
    _cut: dict[tuple[str, Mode], tuple[str | Image, ...]] = field(default_factory=dict, compare=False)
    _decoded: dict[str, str] = field(default_factory=dict, compare=False)
    _likenesses: dict[str, bytes] = field(default_factory=dict, compare=False)
    _pools: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    def document(self, id: str) -> Document:
        """A document by its id.

        Raises:
            Rejected: it is missing, or was refused; the reject says why.

        """
        if id in self.documents:
            return self.documents[id]
        missing = Fault("missing-document", f"a document {id!r} among the sources", "none", field="doc")
        raise Rejected(self.faults.get(id, missing))

    def pages(self, id: str) -> tuple[Page, ...]:
        """The pages of a document, in its own order."""
        return self.document(id).pages

    def page_texts(self, id: str) -> tuple[str, ...]:
        """The text of each page of a document, where the task's `TaskSpec.page_texts` asks for it.

        Raises:
            DraftError: it does not.

        """
        texts, document = self.texts(self.document(id).name), self.document(id)
        if len(texts) != len(document.pages):
            raise DraftError(f"document {id}: its texts were not read: set TaskSpec.page_texts")
        return texts

    def page_text(self, id: str, index: int) -> str:
        """The text of one page as a prompt shows it: stripped, its image markers escaped (see `page_texts`)."""
        return escape_markers(self.page_texts(id)[index]).strip()

    def pool(self, name: str) -> tuple[str, ...]:
        """The ids of all things of a kind: `documents` and `pictures` sorted, `web_pages` as the source has them.

        Raises:
            DraftError: there is no such kind.

        """
        pools = {"documents": self.documents, "pictures": self.shown, "web_pages": self.web}
        if name not in pools:
            raise DraftError(f"no pool {name!r}: there are {', '.join(pools)}{nearest(name, pools)}")
        if name not in self._pools:
            self._pools[name] = tuple(pools[name]) if name == "web_pages" else tuple(sorted(pools[name]))
        return self._pools[name]

    def shows(self, name: str) -> frozenset[str]:
        """The objects that a picture of the pool shows."""
        return self.shown[name]

    def web_page(self, id: str, mode: Mode = "sentences") -> tuple[str | Image, ...]:
        """An interleaved page: its texts cut into passages, its pictures by the source's names."""
        if (id, mode) not in self._cut:
            pieces = (cut_text(part, mode) if isinstance(part, str) else [part] for part in self.web[id])
            self._cut[id, mode] = tuple(part for piece in pieces for part in piece)
        return self._cut[id, mode]

    def image(self, name: str) -> Picture:
        """A picture of the source, by the name a row has for it.

        Raises:
            Rejected: it is missing or broken.

        """
        if self.pictures is None:
            raise DraftError("the reader of this dataset has no pictures: it needs a method `image(sources, name)`")
        return self.pictures[name]

    def is_asked_picture(self, picture: Picture) -> bool:
        """Whether a picture has the bytes of one that some row of the source, kept or not, asks about."""
        if not self._asked:
            names = dict.fromkeys(self.asked_pictures)
            files = (self.pictures.file(name) for name in names) if self.pictures else ()
            self._asked.append(PictureBytes(file for file in files if file is not None))
        return picture.source in self._asked[0]

    def decode(self, path: str) -> None:
        """Make sure of a picture's pixels, not only of its header.

        Raises:
            Rejected: it cannot be decoded.

        """
        if (name := self.origin(path)) and self.pictures:
            self.pictures[name].released()

    def fault_of(self, path: str) -> str:
        """The reason why a picture of the release cannot be decoded; empty if it can. Each is decoded once."""
        if path not in self._decoded:
            try:
                self.decode(path)
                self._decoded[path] = ""
            except Rejected as refused:
                self._decoded[path] = refused.fault.reason
        return self._decoded[path]

    def likeness(self, name: str) -> bytes:
        """What a picture looks like, by the source's name for it; see `is_like_any`. Each is decoded once.

        Raises:
            Rejected: it is missing or broken.

        """
        picture = self.image(name)
        if picture.path not in self._likenesses:
            self._likenesses[picture.path] = picture.likeness()
            self._decoded.setdefault(picture.path, "")
        return self._likenesses[picture.path]

    def origin(self, path: str) -> str | None:
        """The source's name of a picture of the release; None of a page."""
        return self.pictures.origins.get(path) if self.pictures else None

    def lead(self, doc_id: str, title: str) -> "tuple[Passage, ...]":
        """The passages of an article's lead section, as `find_lead` finds it; none if it is not there."""
        return self.find_lead(doc_id, title).passages

    def find_lead(self, doc_id: str, title: str) -> "Lead":
        """Find an article's lead section: by the corpus's own id, by the Wikidata id, or by the title, in this order.

        `doc_id` may be either id. In a corpus that marks no sections the lead is the article's first passage.
        """
        return self._library().lead(doc_id, title)

    def paragraphs(self, doc_id: str, first: int, last: int) -> "tuple[Passage, ...]":
        """The passages of an article that hold some of its paragraphs `first` to `last`, as the source counts."""
        return self._library().paragraphs(doc_id, first, last)

    def check(self, query: "Query") -> None:
        """Refuse a question whose answer cannot be kept out of any passage.

        Raises:
            Rejected: the answer is a stop word, or one character.

        """
        if fault := self._library().unfilterable_answer(query):
            raise Rejected(fault)

    def negatives(self, query: "Query") -> "Iterator[Passage]":
        """Hard negatives of a question, hardest first."""
        return self._library().negatives(query)

    def random_negatives(self, query: "Query") -> "Iterator[Passage]":
        """Clean passages in a drawn order, to follow the hard negatives; none where the manifest does not allow it."""
        return self._library().random_negatives(query)

    def _library(self) -> "Library":
        if self.library is None:
            raise DraftError("this dataset has no corpus: name one in its manifest (corpus: …)")
        return self.library

    @property
    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """(width, height) in pixels by path, of every page, and of every picture that was asked for."""
        pages = {page.path: (page.width, page.height) for d in self.documents.values() for page in d.pages}
        return ChainMap(pages, self.pictures.sizes) if self.pictures else pages

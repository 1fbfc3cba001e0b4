"""What a builder uses for its drafts besides the row: the opened sources of a dataset, in parts.

The parts are documents, images, web pages, classes of pictures, and a corpus. A part exists only if the reader or the
manifest provides it. Where a builder uses a part that does not exist, the error names that part.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mmlongbench.corpus.retrieval.page_queries import PageRanking
from mmlongbench.corpus.retrieval.searched import SearchedCorpus
from mmlongbench.documents.pictures import Picture, Pictures
from mmlongbench.documents.same_bytes import PictureBytes
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, Rejected
from mmlongbench.task.documents import Documents
from mmlongbench.task.rows import Row
from mmlongbench.task.web_pages import WebPages


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
        if name := self.origin(path):
            self[name].released()

    def fault_of(self, path: str) -> str:
        """Return why a picture of the release cannot be decoded; empty if it can. Each picture is decoded once."""
        if path not in self._undecodable:
            try:
                self.decode(path)
                self._undecodable[path] = ""
            except Rejected as refused:
                self._undecodable[path] = refused.fault.reason
        return self._undecodable[path]


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
    def has_web_pages(self) -> bool:
        """Whether the part `web_pages` exists."""
        return self._web_pages is not None

    @property
    def has_corpus(self) -> bool:
        """Whether the part `corpus` exists."""
        return self._corpus is not None

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

"""Prepared documents, as a builder sees them: names, pages, sizes; no file is opened here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mmlongbench.errors import Fault, Rejected


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


@dataclass(frozen=True, slots=True)
class World:
    """The handle to prepared things that a builder drafts from."""

    documents: Mapping[str, Document] = field(default_factory=dict)
    faults: Mapping[str, Fault] = field(default_factory=dict)
    """What is wrong with the documents that cannot be used."""

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

    def pool(self, name: str) -> tuple[str, ...]:
        """The ids of all usable things of a kind, sorted; `documents` is one."""
        pools = {"documents": self.documents}
        return tuple(sorted(pools[name]))

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """(width, height) in pixels by path, of every image that a draft may show."""
        return {page.path: (page.width, page.height) for d in self.documents.values() for page in d.pages}

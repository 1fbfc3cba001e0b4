"""The interfaces between retrieval and a corpus. They do not depend on how passages are stored."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class Passage(Protocol):
    """A titled piece of text."""

    @property
    def id(self) -> str:
        """The passage's id, unique in its corpus; passages with equal scores are ordered by id."""
        ...

    @property
    def title(self) -> str:
        """The title of the article that the passage comes from."""
        ...

    @property
    def text(self) -> str:
        """The words of the passage, without the title."""
        ...


class Passages(Protocol):
    """A corpus: passages by number, and a fingerprint that changes if any passage changes."""

    @property
    def fingerprint(self) -> str:
        """A hash that is equal only for equal corpora."""
        ...

    def __len__(self) -> int:
        """Return the number of passages."""
        ...

    def __iter__(self) -> Iterator[Passage]:
        """Yield every passage in order."""
        ...

    def passage(self, number: int, /) -> Passage:
        """Return one passage, 0 <= number < len."""
        ...


class Hit(NamedTuple):
    """A passage that a search found."""

    number: int
    """The number of the passage in the corpus, from 0."""
    score: float
    """The score; higher is better. Hits with the same score are ordered by passage id."""


class Index(Protocol):
    """A searchable corpus."""

    @property
    def fingerprint(self) -> str:
        """A hash; with equal fingerprints, equal queries give equal hits."""
        ...

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the best k passages that share a word with the query, ordered by (-score, passage id)."""
        ...

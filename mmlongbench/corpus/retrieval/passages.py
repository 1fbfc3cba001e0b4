"""What retrieval asks of a corpus and gives back. Knows nothing of where passages are stored."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class Passage(Protocol):
    """A titled piece of text."""

    @property
    def id(self) -> str:
        """Its name, once in a corpus; ties are broken by it."""
        ...

    @property
    def title(self) -> str:
        """The title of the article it comes from."""
        ...

    @property
    def text(self) -> str:
        """The words themselves, without the title."""
        ...


class Passages(Protocol):
    """A corpus: passages by number, and a fingerprint that changes when any of them does."""

    @property
    def fingerprint(self) -> str:
        """Equal for equal corpora only."""
        ...

    def __len__(self) -> int:
        """How many passages."""
        ...

    def __iter__(self) -> Iterator[Passage]:
        """Every passage in order."""
        ...

    def passage(self, number: int, /) -> Passage:
        """One passage, 0 <= number < len."""
        ...


class Hit(NamedTuple):
    """A passage that a search found."""

    number: int
    """Its place in the corpus, from 0."""
    score: float
    """Higher is better; hits of one score are ordered by passage id."""


class Index(Protocol):
    """A searchable corpus."""

    @property
    def fingerprint(self) -> str:
        """Equal where equal queries give equal hits."""
        ...

    def search(self, query: str, k: int) -> list[Hit]:
        """The best k passages that share a word with the query, by (-score, passage id)."""
        ...

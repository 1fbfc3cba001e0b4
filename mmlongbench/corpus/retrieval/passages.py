"""The interfaces between retrieval and a corpus. They do not depend on how passages are stored."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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


ROUNDING = 2.0**-23
"""The relative difference that one addition in single precision can make between two sums that are compared."""


def ranks_of(blocks: Iterable[list[str]]) -> "NDArray[np.uint32]":
    """Return for each passage the place of its id among all sorted ids; shape (passages,).

    The ids come in blocks, and are kept as bytes: about 25 bytes a passage.
    """
    import numpy as np
    import pyarrow
    import pyarrow.compute

    text = pyarrow.large_string()
    ids = pyarrow.chunked_array([pyarrow.array(block, text) for block in blocks], text)
    order = pyarrow.compute.sort_indices(ids).to_numpy()
    ranks = np.empty(len(order), np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    return ranks


def groups(scores: "NDArray[np.float64]", tolerance: float, is_relative: bool = True) -> "NDArray[np.intp]":
    """Return for each score the number of its group of equal scores. The scores must be sorted, highest first. A new
    group begins where a score is lower than the one before by more than the tolerance.
    """
    import numpy as np

    bounds = tolerance * np.abs(scores[:-1]) if is_relative else tolerance
    return np.concatenate(([0], np.cumsum(scores[:-1] - scores[1:] > bounds)))[: len(scores)]


def settle(
    scores: "NDArray[np.float64]",
    numbers: "NDArray[np.int64]",
    ranks: "NDArray[np.uint32]",
    k: int,
    tolerance: float,
    is_all: bool,
) -> list[Hit] | None:
    """Return the best k passages; None if a passage that is not given may have the same score as the last of these.

    Args:
        scores: highest first, up to rounding.
        numbers: the passage of each score.
        ranks: the ranks of all passages of the corpus, see `ranks_of`.
        k: how many passages to return.
        tolerance: the relative difference that rounding can make.
        is_all: whether these are the scores of all passages.

    """
    import numpy as np

    group = groups(scores, tolerance)
    if not is_all and (len(scores) <= k or int(group[k - 1]) == int(group[-1])):
        return None
    best = np.lexsort((ranks[numbers], group))[:k]
    tied = scores[np.searchsorted(group, group[best])]
    return list(map(Hit._make, zip(numbers[best].tolist(), tied.tolist(), strict=True)))

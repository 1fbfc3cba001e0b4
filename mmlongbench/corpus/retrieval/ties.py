"""The order of scored passages: the best first, ties by passage id, whatever order the sums were made in.

Engines add the weights of a query's words in single precision and in an order of their own, so equal sums can differ
in their last bits. Scores closer than that rounding can make them count as one score.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mmlongbench.corpus.retrieval.passages import Hit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUNDING = 2.0**-23
"""The relative error of one addition in single precision, for two sums that are compared."""


def ranks_of(blocks: Iterable[list[str]]) -> "NDArray[np.uint32]":
    """For each passage the place of its id among all ids, by code point; shape (passages,).

    The ids come block after block, and are kept as bytes: some 25 bytes a passage.
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
    """Number the ties of scores that fall: a new one begins where a score drops by more than the tolerance."""
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
    """The best k of scores that fall, or None if a tie at the edge may go on beyond the last of them.

    Args:
        scores: highest first, up to rounding.
        numbers: the passage of each score.
        ranks: of all passages of the corpus, see `ranks_of`.
        k: how many are asked for.
        tolerance: the relative difference that rounding makes.
        is_all: whether these are all that there are.

    """
    import numpy as np

    group = groups(scores, tolerance)
    if not is_all and (len(scores) <= k or group[k - 1] == group[-1]):
        return None
    best = np.lexsort((ranks[numbers], group))[:k]
    tied = scores[np.searchsorted(group, group[best])]
    return list(map(Hit._make, zip(numbers[best].tolist(), tied.tolist(), strict=True)))

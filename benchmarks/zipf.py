"""Passages and queries of words with Zipf frequencies, the same everywhere: each word is a hash of its place."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mmlongbench.corpus.articles import Article

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORDS = 100
"""Words in a passage."""
VOCABULARY = 200_000
QUERY_WORDS = 10
_BLOCK = 10_000
_QUERIES = 10**8
"""The first row of words that are queries, not passages."""


def articles(count: int) -> Iterator[Article]:
    """Return passages whose ids are in no order."""
    for number, words in enumerate(rows(0, count)):
        id = f"p{number * 7_368_787 % 2_147_483_647}"
        yield Article(f"d{number}", f"Article {words[0]} {words[1]}", (" ".join(words),), passage_id=id)


def queries(count: int) -> list[str]:
    """Questions of the same words."""
    return [" ".join(words[:QUERY_WORDS]) for words in rows(_QUERIES, count)]


def rows(first: int, count: int) -> Iterator[list[str]]:
    """Rows of words from a row on; the n-th commonest word has a chance in proportion to 1 / n."""
    import numpy as np

    weights = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    vocabulary = [_spell(rank) for rank in range(VOCABULARY)]
    for start in range(first, first + count, _BLOCK):
        here = min(_BLOCK, first + count - start)
        places = np.arange(start * WORDS, (start + here) * WORDS, dtype=np.uint64)
        chance = (_hashed(places) >> np.uint64(11)).astype(np.float64) / 2**53
        ranks = np.searchsorted(weights, chance * weights[-1]).reshape(here, WORDS)
        yield from ([vocabulary[rank] for rank in row] for row in ranks.tolist())


def _hashed(values: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    """SplitMix64 (Steele et al. 2014)."""
    import numpy as np

    mixed = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _spell(rank: int) -> str:
    """A word of letters; the commoner, the shorter.

    >>> [_spell(rank) for rank in (0, 25, 26, 702)]
    ['a', 'z', 'aa', 'aaa']
    """
    letters, rest = "", rank + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return letters

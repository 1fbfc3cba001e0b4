"""Text as answers, words and shingles are compared. Knows nothing of passages or questions.

`normalise` is SQuAD's normalisation (Rajpurkar et al. 2016, the official evaluation script) with accents and Unicode
punctuation folded as well.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable

LONGEST_WORD = 255
"""Characters of a word that count in a search; an index has a bound on the length of its words."""
WORDS_IN_SHINGLE = 5

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WORD = re.compile(r"[^\W_]+")


class _Dropped(dict[int, str | None]):
    """A table for `str.translate` that leaves out combining characters, and punctuation if asked, filled as used."""

    def __init__(self, is_punctuation_out: bool) -> None:
        super().__init__()
        self._is_punctuation_out = is_punctuation_out

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        is_punctuation = character in string.punctuation or unicodedata.category(character).startswith("P")
        is_out = unicodedata.combining(character) or (self._is_punctuation_out and is_punctuation)
        self[code] = None if is_out else character
        return self[code]


_BARE = _Dropped(is_punctuation_out=True)
_UNACCENTED = _Dropped(is_punctuation_out=False)


def normalise(text: str) -> str:
    """Lower case, no accents, no punctuation, no articles, single spaces.

    >>> normalise("The  Café—“Déjà-vu”, an  inn")
    'cafedejavu inn'
    """
    bare = unicodedata.normalize("NFKD", text.lower()).translate(_BARE)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def padded(text: str) -> str:
    """A normalised text between spaces: one padded text is in another where it stands there at word boundaries.

    >>> padded("an Ox.")
    ' ox '
    """
    return f" {normalise(text)} "


def contains(text: str, answer: str) -> bool:
    """Whether a text holds an answer at word boundaries, both normalised; every text holds no word at all.

    >>> contains("She sang at the Olympia, Paris.", "olympia paris"), contains("an oxbow", "ox")
    (True, False)
    """
    bare = normalise(answer)
    return not bare or f" {bare} " in padded(text)


def tokens(text: str) -> list[str]:
    """The words to search by: runs of letters and digits, lower case, without accents.

    >>> tokens("Zoë's 3.5-litre (V8)")
    ['zoe', 's', '3', '5', 'litre', 'v8']
    """
    folded = text.lower()
    if not text.isascii():  # twice lower: a ligature like № has capitals once it is taken apart
        folded = unicodedata.normalize("NFKD", folded).translate(_UNACCENTED).lower()
    return [word[:LONGEST_WORD] for word in _WORD.findall(folded)]


def shingles(text: str, width: int = WORDS_IN_SHINGLE) -> frozenset[str]:
    """All runs of `width` normalised words; a shorter text is one shingle, and an empty one has none."""
    words = normalise(text).split()
    if not words:
        return frozenset()
    return frozenset(" ".join(words[at : at + width]) for at in range(max(1, len(words) - width + 1)))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The part of all shingles of two texts that both have; 0 where neither has any."""
    either = len(one | other)
    return len(one & other) / either if either else 0.0


class NearDuplicates:
    """Texts seen so far, and whether one comes close to any of them.

    Exact: shared shingles are counted through an inverted index, so the cost of a look does not grow with texts that
    share nothing.
    """

    def __init__(self, threshold: float, texts: Iterable[str] = ()) -> None:
        """Two texts are near when the Jaccard similarity of their shingles is at least `threshold`, 0 < t <= 1."""
        if not 0 < threshold <= 1:
            raise ValueError(f"a threshold of near-duplicates is above 0 and at most 1, not {threshold}")
        self._threshold = threshold
        self._sizes: list[int] = []
        self._holders: dict[str, list[int]] = {}
        for text in texts:
            self.add(shingles(text))

    def add(self, found: frozenset[str]) -> None:
        """Remember the shingles of a text."""
        for shingle in found:
            self._holders.setdefault(shingle, []).append(len(self._sizes))
        self._sizes.append(len(found))

    def near(self, found: frozenset[str]) -> bool:
        """Whether a text with these shingles is near one that was added."""
        shared = Counter(holder for shingle in found for holder in self._holders.get(shingle, ()))
        size = len(found)
        return any(both >= self._threshold * (size + self._sizes[at] - both) for at, both in shared.items())

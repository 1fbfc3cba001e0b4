"""The questions of a release, to find each one that is asked elsewhere in the same or nearly the same words."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mmlongbench.shortcuts.extra import missing
from mmlongbench.shortcuts.reading import AskedQuestion
from mmlongbench.shortcuts.wording import digest_of, grams, resemblance, shingles, words

if TYPE_CHECKING:
    from datasketch import MinHash

SAME = 0.8
"""The smallest resemblance of two questions that count as the same words."""
_FOUND = 0.6
"""The resemblance from which candidates are requested: the estimate is coarse, and each candidate is computed again."""
_PERMUTATIONS = 128
_MAX_CANDIDATES = 1_000
"""The most candidates of one question that are compared word by word; a template such as `is there a ...?` has many."""
LONGEST = 2_000
"""The most letters of a question of which runs of three words are compared; of a longer one, all words and runs of 13
words are compared."""
_SEPARATED = re.compile(r"(?<![\d.,])\d{1,3}(?:([, ])\d{3})(?:\1\d{3})*(?!\d)")
"""Matches a number whose digits are in groups of three."""
_Key = tuple[str, str]


def is_same_wording(one: str, other: str) -> bool:
    """Return whether two questions have 13 words in a row in common, or 80 % of their runs of three words.

    >>> is_same_wording("Who planted the old oak at the gate?", "who planted the old oak, at the gate")
    True
    >>> is_same_wording("Is there a car?", "Is there a cat?")
    False
    """
    return not grams(one).isdisjoint(grams(other)) or resemblance(one, other) >= SAME


class KnownQuestions:
    """The questions of a release, by their words."""

    def __init__(self) -> None:
        """Make an empty index.

        Raises:
            ReleaseError: `datasketch` is not installed.

        """
        try:
            from datasketch import MinHashLSH
        except ImportError as error:
            raise missing("datasketch", "a comparison of questions with others") from error
        self._index = MinHashLSH(threshold=_FOUND, num_perm=_PERMUTATIONS)
        self._grams: dict[str, list[bytes]] = {}
        self._texts: dict[bytes, str] = {}
        self._asked: dict[bytes, list[tuple[_Key, AskedQuestion]]] = {}

    def add(self, key: _Key, asked: AskedQuestion) -> None:
        """Add a question; many may have the same words."""
        digest = digest_of(asked.question)
        if digest not in self._texts:
            self._texts[digest] = asked.question
            self._index.insert(digest, _sketch(asked.question))
            for gram in grams(asked.question):
                self._grams.setdefault(gram, []).append(digest)
        self._asked.setdefault(digest, []).append((key, asked))

    def same(self, question: str, subject: str, answers: tuple[str, ...] | None) -> list[_Key]:
        """Return the questions that have the words of another one and, if its answers are known, its subject or answer.

        Without this rule `Which country is this from?` would be shared by all that ask about pictures. An answer that
        is chosen from offered ones, such as yes, is not compared.
        """
        found = [
            pair
            for digest in self._candidates(question)
            if is_same_wording(self._texts[digest], question)
            for pair in self._asked[digest]
        ]
        return [key for key, asked in found if answers is None or _is_about(asked, subject, answers)]

    def _candidates(self, question: str) -> Iterable[bytes]:
        digest = digest_of(question)
        if not digest:
            return []
        near = [*(each for gram in sorted(grams(question)) for each in self._grams.get(gram, ()))]
        if len(question) <= LONGEST:
            near += sorted(self._index.query(_sketch(question)))
        return list(dict.fromkeys([*([digest] if digest in self._texts else []), *near]))[:_MAX_CANDIDATES]


def _is_about(asked: AskedQuestion, subject: str, answers: tuple[str, ...]) -> bool:
    is_same_thing = bool(subject) and asked.subject == subject
    return is_same_thing or (
        asked.choices is None and not set(map(_plain, asked.answers)).isdisjoint(map(_plain, answers))
    )


def _plain(answer: str) -> str:
    """Return an answer in a form in which answers that differ in case, punctuation or separated digits are equal.

    >>> _plain("About 1,040 crews.") == _plain("about 1040 crews")
    True
    """
    joined = _SEPARATED.sub(lambda found: re.sub("[, ]", "", found[0]), answer)
    return words(joined) or answer


def _sketch(text: str) -> "MinHash":
    from datasketch import MinHash

    sketch = MinHash(num_perm=_PERMUTATIONS)
    sketch.update_batch([each.encode("utf-8", "backslashreplace") for each in sorted(shingles(text))])
    return sketch

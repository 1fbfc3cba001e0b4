"""Hard negatives: ranked passages that neither answer the question nor name what the question is about.

The filter reads no files. Every passage that it rejects is counted by the first of `REASONS` that applies.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from mmlongbench.corpus.corpus import Passage
from mmlongbench.corpus.retrieval.numbers import numbers_in
from mmlongbench.corpus.retrieval.spellings import usual_spellings, value_of
from mmlongbench.corpus.retrieval.text import TEXTS_KEPT, NearDuplicates, forms, needles, normalise, shingles
from mmlongbench.errors import Fault

REASONS = ("gold", "barred", "answer", "number-in-range", "entity", "near-duplicate", "empty")
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "about after all also am and any are as at be because been before being but by can could did do does for from "
        "had has have he her hers him his how i if in into is it its just me might more most must my no nor not of "
        "off on only or other our out over own shall she should so some such than that their them then there these "
        "they this those through to too under until up very was we were what when where which while who whom whose "
        "why will with would you your",
    )
)
"""Words that are too frequent in passages to be searched for."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What must not occur in a negative of one question."""

    answers: tuple[str, ...]
    """Answers and their aliases; numbers and dates are searched for in all their usual spellings."""
    entities: tuple[str, ...] = ()
    """Names of what the question is about."""
    gold: tuple[Passage, ...] = ()
    """The passages that hold the answer."""
    excluded: frozenset[str] = frozenset()
    """Ids of other passages that may answer the question."""
    within: tuple[float, float] | None = None
    """The smallest and the largest number that answer the question; None if no range of numbers answers it."""


@dataclass(frozen=True, slots=True)
class Query:
    """One search for hard negatives (`Builder.queries`)."""

    id: str
    """The id of the query: the id of its row, or this id followed by `#` and any text. Queries of different rows must
    have different ids."""
    text: str
    """The text to search for; for a visual question, it has the entity's name instead of the picture."""
    facts: Facts
    """What must not occur in a negative."""


class NegativeFilter:
    """The filter of one question. It remembers the passages that it admitted, because a later passage may be a
    near-duplicate of one of them.
    """

    def __init__(self, facts: Facts, near: float) -> None:
        """Two passages are near-duplicates if their shingles have a Jaccard similarity of at least `near`, which is
        above 0 and at most 1.
        """
        self._excluded = facts.excluded
        self._gold = {passage.id for passage in facts.gold}
        spelled = {spelling for answer in facts.answers for spelling in usual_spellings(answer)}
        self._answers = _Needles(spelled)
        self._entities = _Needles(facts.entities)
        self._values = {value for answer in facts.answers if (value := value_of(answer)) is not None}
        self._within = facts.within
        self._seen = NearDuplicates(near)
        for passage in facts.gold:
            self._seen.add(shingles(normalise(passage.text)))

    def admit(self, passage: Passage) -> str | None:
        """Admit a passage as a negative and return None, or return the reason why it is rejected, one of `REASONS`."""
        if passage.id in self._gold:
            return "gold"
        if passage.id in self._excluded:
            return "barred"
        title, text = forms(passage.title), forms(passage.text)
        numbers: frozenset[float] = frozenset()
        if self._values or self._within is not None:
            numbers = _numbers_in(passage.title) | _numbers_in(passage.text)
        if not numbers.isdisjoint(self._values) or self._answers.stand_in(title) or self._answers.stand_in(text):
            return "answer"
        if self._within and any(self._within[0] <= number <= self._within[1] for number in numbers):
            return "number-in-range"
        if self._entities.stand_in(title) or self._entities.stand_in(text):
            return "entity"
        found = shingles(text.partition("\n")[0])
        if not found:
            return "empty"
        if self._seen.near(found):
            return "near-duplicate"
        self._seen.add(found)
        return None


def unfilterable_answer(facts: Facts) -> Fault | None:
    """Return why the answer of a question cannot be kept out of its negatives; None if it can.

    An answer of one character or a stop word occurs in most passages; an answer without a letter or digit occurs in
    all. A name of the entity must have a letter or digit to be searched for.
    """

    def fault(reason: str, field: str, expected: str, found: str) -> Fault:
        todo = "correct the source, or leave the question out: this cannot be kept out of its negatives"
        return Fault(reason, expected, found, field=field, todo=todo)

    for answer in facts.answers:
        bare = normalise(answer)
        if len(bare) < 2 or bare in STOP_WORDS:
            what = "a stop word" if len(bare) > 1 else "one character" if bare else "no letter or digit"
            return fault("common-answer", "answer", "an answer that passages can be free of", f"{answer!r}, {what}")
    for name in facts.entities:
        if not normalise(name):
            return fault("nameless-entity", "entity", "a name with a letter or digit", repr(name))
    if not facts.answers and facts.within is None:
        return fault("no-answer", "answer", "at least one answer", "none")
    return None


@lru_cache(maxsize=TEXTS_KEPT)
def _numbers_in(text: str) -> frozenset[float]:
    return frozenset(numbers_in(text))


class _Needles:
    """Texts to search for in passages. Each is searched for only in passages that contain its longest word."""

    def __init__(self, names: Iterable[str]) -> None:
        by_word: dict[str, set[str]] = {}
        for name in names:
            whole = normalise(name)
            for needle in needles(name):
                form = needle.strip()
                if form == whole or form not in STOP_WORDS:
                    longest = max(form.split(), key=lambda word: (len(word), word))
                    by_word.setdefault(f" {longest} ", set()).add(needle)
        self._by_word = tuple((word, tuple(sorted(by_word[word]))) for word in sorted(by_word))

    def stand_in(self, text: str) -> bool:
        """Return whether one of these texts occurs in a passage, given by its `forms`."""
        return any(word in text and any(needle in text for needle in found) for word, found in self._by_word)

"""Looks at the answers and the names of images while records are written, and says where they alone tell an answer.

This is a first look at what `mmlongbench shortcuts` tries in full, for what a build has at hand. It must be quick and
must not accuse by chance, so the rule is strict: one drawn question of each subject counts, the probability is an exact
binomial one, it is multiplied by the number of values that were compared and must then be at most 1 in 1,000, and the
excess above chance must be at least 5 points. Questions that can be guessed in another way are not found here.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from mmlongbench.building.dataset import Dataset
from mmlongbench.draws import Draws
from mmlongbench.manifest.calling import calling
from mmlongbench.release.items import Item
from mmlongbench.release.positions import NEEDLES
from mmlongbench.task.choices import Choices
from mmlongbench.task.rows import Record

MAX_LUCK = 0.001
"""The probability that a dataset without a fault is reported, for answers and for names: a manifest of 16 datasets is
reported wrongly in at most 3 of 100 builds."""
LEAST_EXCESS = 0.05
"""The smallest excess above chance that is reported, as a share."""
FREE_CHANCE = 0.05
"""How often one free answer may be right: in one question of twenty."""
_SEE = "see `mmlongbench shortcuts`"
_TRAITS = ("folder", "name without digits", "file type", "length of the name")
_CONTEXTS = 1_000
"""The maximum number of contexts whose names of images are compared; others are left out by a draw."""
_DIGITS = re.compile(r"\d+")
_LONGEST = 200
"""The most characters of an answer that are compared."""
_SHOWN = 60
"""The most characters of an answer that are shown."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is kept of a question."""

    answer: str
    choices: Choices | None
    gold: str
    """The path of an image that is gold; empty if there is none, or nothing to compare it with."""
    others: tuple[str, ...]
    """The paths of the other images of its context."""


class FirstLook:
    """Collects the questions of one dataset; equal subjects and equal placements count once."""

    def __init__(self, dataset: Dataset) -> None:
        """Look at the records of a dataset."""
        self._builder, self._name = dataset.builder, dataset.spec.builder
        self._draws = Draws(("first look", dataset.spec.name))
        self._ids = set[str]()
        self._answers = Counter[str]()
        """How many questions have each answer, by its label; a choice counts by its text and by its place."""
        self._kept: dict[str, tuple[int, _Seen]] = {}

    def add(self, record: Record, items: Sequence[Item] = ()) -> None:
        """Look at a record; only the first record of a question counts.

        Raises:
            DraftError: the builder cannot read the record.

        """
        id = str(record.get("id"))
        if id in self._ids:
            return
        self._ids.add(id)
        with calling("builder", self._name, "a method that reads records", about=f"question {id}"):
            choices, answer = self._builder.choices(record), _text(self._builder.gold(record))
            subject = self._builder.cluster(record) or id
        rank = self._draws.rank("question", id)
        if subject not in self._kept or rank < self._kept[subject][0]:
            self._kept[subject] = rank, _Seen(answer, choices, *self._images(id, items))
        for each in _labels(answer, choices):
            self._answers[each] += 1

    def _images(self, id: str, items: Sequence[Item]) -> tuple[str, tuple[str, ...]]:
        golds = [item["image"] for item in items if item["role"] in NEEDLES and item["image"]]
        others = [item["image"] for item in items if item["role"] not in NEEDLES and item["image"]]
        return (self._draws.choice(f"gold of {id}", golds), tuple(others)) if golds and others else ("", ())

    def sentences(self) -> list[str]:
        """Return what tells answers, one sentence each; nothing if nothing stands out."""
        kept = [seen for _, seen in sorted(self._kept.values(), key=lambda each: each[0])]
        return [*self._of_answers(kept), *_of_names(kept)]

    def _of_answers(self, kept: Sequence[_Seen]) -> Iterator[str]:
        """Yield a sentence about the answer that is right too often, the strongest one."""
        found = min(_answer_tests(kept), default=None)
        if found and found[0] <= MAX_LUCK:
            right, asked = self._answers[found[1]], len(self._ids)
            name = found[1] if len(found[1]) <= _SHOWN else f"{found[1][:_SHOWN]} …'"
            yield f"{name} is the right answer of {right:,} of {asked:,} questions: {_SEE}"


def _text(gold: object) -> str:
    """Return an answer as one short text; of several accepted ones, the first.

    >>> _text(["Ossery  Ridge", "Ossery"]), _text([]), _text(3)
    ('Ossery Ridge', '', '3')
    """
    while isinstance(gold, list | tuple):
        gold = gold[0] if gold else ""
    return " ".join(str(gold)[:_LONGEST].split())


def _labels(answer: str, choices: Choices | None) -> tuple[str, ...]:
    """Return how messages name the answer: by its text and, if it is chosen from several, by its place."""
    if choices is None:
        return (f"{answer!r}",)
    right = choices.offered[choices.right]
    place = f"choice {choices.right + 1}"
    return (f"{right[:_LONGEST]!r}", place) if isinstance(right, str) else (place,)


def _answer_tests(kept: Sequence[_Seen]) -> Iterator[tuple[float, str]]:
    """Yield (probability, name) of the answer, or place of a choice, that is right most often."""
    chosen = [(seen.choices, _labels(seen.answer, seen.choices)) for seen in kept if seen.choices is not None]
    chosen = [(choices, labels) for choices, labels in chosen if len(choices.offered) > 1]
    texts = [(labels[0], choices.chance) for choices, labels in chosen if len(labels) == 2]
    places = [(labels[-1], choices.chance) for choices, labels in chosen]
    free = [(_labels(seen.answer, None)[0], FREE_CHANCE) for seen in kept if seen.choices is None and seen.answer]
    yield from _most_frequent(texts, tests=2)
    yield from _most_frequent(places, tests=2)
    yield from _most_frequent(free)


def _most_frequent(answers: Sequence[tuple[str, float]], tests: int = 1) -> Iterator[tuple[float, str]]:
    """Yield (probability, answer) of the most frequent answer, if it is right often enough.

    Args:
        answers: the right answer of each question, and the chance of a guess.
        tests: how many tests the same questions have.

    """
    if answers:
        counts = Counter(answer for answer, _ in answers)
        usual, times = counts.most_common(1)[0]
        chance = sum(chance for _, chance in answers) / len(answers)
        compared = tests * max(len(counts), round(1 / chance))
        if times / len(answers) >= chance + LEAST_EXCESS:
            yield compared * binomial_tail(times, len(answers), chance), usual


def _of_names(kept: Sequence[_Seen]) -> Iterator[str]:
    """Yield a sentence about the trait of names that golds have and other images of their contexts lack."""
    shown = [seen for seen in kept if seen.gold][:_CONTEXTS]
    golds = [(_traits(seen.gold), tuple(map(_traits, seen.others))) for seen in shown]
    tests = [test for place in range(len(_TRAITS)) if (test := _name_test(golds, place))]
    compared = sum(len({gold[place] for gold, _ in golds}) for place in range(len(_TRAITS)))
    best = min(tests, key=lambda test: test.p, default=None)
    if best and compared * best.p <= MAX_LUCK:
        yield (
            f"the {best.trait} of the gold image is {best.value!r} in {best.times:,} of {len(golds):,} contexts, "
            f"and that of {100 * best.chance:.0f} % of the images there: {_SEE}"
        )


_Traits = tuple[str, ...]


@lru_cache(100_000)
def _traits(path: str) -> _Traits:
    """Return the traits of a name, in the order of `_TRAITS`.

    >>> _traits("walks/2019/img_0042.jpg")
    ('walks/2019', 'img_', '.jpg', '8')
    """
    pure = PurePosixPath(path)
    return pure.parent.as_posix(), _DIGITS.sub("", pure.stem), pure.suffix, str(len(pure.stem))


@dataclass(frozen=True, slots=True)
class _NameTest:
    """The value of a trait that most golds have, and how likely that is if gold is any image of its context."""

    trait: str
    value: str
    times: int
    chance: float
    p: float


def _name_test(golds: Sequence[tuple[_Traits, tuple[_Traits, ...]]], place: int) -> _NameTest | None:
    """Test one trait; None if most golds do not share a value that other images lack.

    Contexts have different shares of images with the value. The binomial distribution with their mean has the heavier
    tail, so the probability is not too small.
    """
    counts = Counter(gold[place] for gold, _ in golds)
    if not counts:
        return None
    value, times = counts.most_common(1)[0]
    shares = (_share(value, [gold[place], *(other[place] for other in others)]) for gold, others in golds)
    chance = sum(shares) / len(golds)
    if times / len(golds) < chance + LEAST_EXCESS or times < chance * len(golds) + 1:
        return None
    return _NameTest(_TRAITS[place], value, times, chance, binomial_tail(times, len(golds), chance))


def _share(value: str, values: Sequence[str]) -> float:
    return values.count(value) / len(values)


def binomial_tail(hits: int, n: int, share: float) -> float:
    """Return the probability of at least `hits` among n independent events, each with the probability `share`.

    >>> binomial_tail(2, 2, 0.5), round(binomial_tail(61, 80, 0.5), 8), binomial_tail(0, 5, 0.2)
    (0.25, 1.37e-06, 1.0)
    """
    if hits <= 0 or share >= 1:
        return 1.0
    if share <= 0:
        return 0.0
    logs = (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(share)
        + (n - k) * math.log1p(-share)
        for k in range(hits, n + 1)
    )
    return min(1.0, math.fsum(map(math.exp, logs)))

"""Finds the questions that models answer without the context, as far as luck does not explain it.

An answer counts as right if its score is 1 at every length and placement of the question: without the context these
prompts are equal, so their answers are one trial and not several. Trials are then one for each model and sample, less
those of samples that repeat each other: a model that says A ten times has guessed once.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from mmlongbench.shortcuts.contexts.answers import Asked
from mmlongbench.shortcuts.contexts.results import BLIND, BlindCounts, BlindQuestion

MAX_LUCK = 0.01
"""A question is listed only if guesses do as well with at most this probability."""
_DUST = 1e-9
"""A difference that is smaller comes from rounding."""
_RIGHT = 1 - _DUST
"""A score from which an answer counts as right."""
_BINARY = 2
"""A question with at most this many answers is never listed: many of them are right by luck, whichever they are."""


@dataclass(slots=True)
class _Question:
    """The trials of one question."""

    id: str
    options: int = 0
    chance: float = 0.0
    gold: str = ""
    is_right: dict[tuple[str, int], bool] = field(default_factory=dict)
    """By model and sample: whether the answer is right at every length and placement."""
    said: dict[tuple[str, int], str] = field(default_factory=dict)
    """By model and sample: a hash of the answer at the first length and placement."""

    @property
    def right(self) -> int:
        return sum(self.is_right.values())

    @property
    def by_model(self) -> dict[str, list[tuple[str, int]]]:
        """The trials of each model."""
        found: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for model, sample in self.is_right:
            found[model].append((model, sample))
        return found


def luck(right: int, answers: int, chance: float) -> float:
    """Return the probability that at least `right` of `answers` independent guesses are right.

    >>> luck(2, 2, 0.25), luck(0, 5, 0.25), luck(1, 1, 0.0)
    (0.0625, 1.0, 0.0)
    """
    found = (math.comb(answers, k) * chance**k * (1 - chance) ** (answers - k) for k in range(right, answers + 1))
    return min(1.0, math.fsum(found))


def blind_questions(examples: Iterable[Asked]) -> tuple[tuple[BlindQuestion, ...], tuple[BlindCounts, ...]]:
    """Return the questions to prune, and how many questions of each dataset are answered without the context."""
    questions: dict[str, dict[str, _Question]] = defaultdict(dict)
    for each in examples:
        _add(questions[each.dataset], each)
    listed, counts = list[BlindQuestion](), list[BlindCounts]()
    for dataset, by_id in questions.items():
        asked = [each for each in by_id.values() if each.is_right]
        if not asked:
            continue
        chances, repeated = _chances(list(by_id.values())), _repeated(asked)
        here = sorted(_listed(dataset, asked, chances, repeated), key=lambda found: (found.luck, found.id))
        listed += here
        many = [each for each in asked if not _is_binary(each)]
        counts.append(
            BlindCounts(
                dataset=dataset,
                questions=len(asked),
                right=sum(each.right == len(each.is_right) for each in asked),
                binary=len(asked) - len(many),
                listed=len(here),
                by_luck=math.fsum(_listed_by_luck(_independent(each, repeated)[1], chances[each.id]) for each in many),
            )
        )
    return tuple(listed), tuple(counts)


def _add(questions: dict[str, _Question], asked: Asked) -> None:
    found = questions.setdefault(asked.id, _Question(asked.id))
    found.options = max(found.options, asked.guess.options)
    found.chance = max(found.chance, asked.guess.chance)
    found.gold = found.gold or asked.guess.gold
    for trial, answer in asked.blind.items():
        found.said.setdefault(trial, answer)
    for (model, context), scores in asked.scores.items():
        if context == BLIND:
            for sample, score in scores.items():
                found.is_right[model, sample] = found.is_right.get((model, sample), True) and score >= _RIGHT


def _chances(questions: Sequence[_Question]) -> dict[str, float]:
    """Return the probability that a guess is right, by question. A model that says the most frequent answer everywhere
    is right as often as this answer occurs, so the share of an answer counts if it is above the chance.
    """
    shares = Counter(each.gold for each in questions)
    return {each.id: max(each.chance, shares[each.gold] / len(questions)) for each in questions}


def _is_binary(question: _Question) -> bool:
    return 0 < question.options <= _BINARY


def _repeated(questions: Iterable[_Question]) -> dict[str, float]:
    """Return, by model, how much its samples repeat each other: 0 if they agree as often as guesses, 1 if always.

    Only questions count that the model has not right in all samples, since samples agree where a model knows the
    answer. If there are none, nothing shows that samples differ, and they count as repeated.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for each in questions:
        chance = 1 / each.options if each.options > 1 else 0.0
        for model, trials in each.by_model.items():
            if len(trials) > 1 and not all(each.is_right[trial] for trial in trials):
                pairs = [each.said.get(one) == each.said.get(two) for one, two in combinations(trials, 2)]
                found[model].append((sum(pairs) / len(pairs) - chance) / (1 - chance))
    return {model: min(1.0, max(0.0, math.fsum(shares) / len(shares))) for model, shares in found.items()}


def _independent(question: _Question, repeated: Mapping[str, float]) -> tuple[int, int]:
    """Return how many answers are right and how many there are, if each model counts with as many answers as its
    samples are worth (the design effect of repeated measurements, rounded down).
    """
    right, answers = 0, 0
    for model, trials in question.by_model.items():
        worth = max(1, math.floor(len(trials) / (1 + (len(trials) - 1) * repeated.get(model, 1.0)) + _DUST))
        right += math.floor(worth * sum(question.is_right[trial] for trial in trials) / len(trials) + _DUST)
        answers += worth
    return right, answers


def _listed(
    dataset: str, asked: Iterable[_Question], chances: Mapping[str, float], repeated: Mapping[str, float]
) -> Iterator[BlindQuestion]:
    for each in asked:
        right, answers = _independent(each, repeated)
        found = luck(right, answers, chances[each.id])
        if right and not _is_binary(each) and found <= MAX_LUCK:
            yield BlindQuestion(
                dataset=dataset,
                id=each.id,
                right=each.right,
                answers=len(each.is_right),
                independent=answers,
                models=tuple(sorted({model for (model, _), is_right in each.is_right.items() if is_right})),
                chance=chances[each.id],
                luck=found,
            )


def _listed_by_luck(answers: int, chance: float) -> float:
    """Return the probability that a question is listed if all its answers are guesses."""
    return next((found for right in range(1, answers + 1) if (found := luck(right, answers, chance)) <= MAX_LUCK), 0.0)

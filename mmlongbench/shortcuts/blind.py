"""Finds the questions that models answer without the context, as far as luck does not explain it.

An answer counts as right if its score is 1 at every length and placement of the question: without the context these
prompts are equal, so their answers are one trial and not several. Trials are then one for each model and sample, less
those of samples that repeat each other: a model that says A ten times has guessed once.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from pydantic import BaseModel, ConfigDict

from mmlongbench.likeness import missing
from mmlongbench.shortcuts.context_scores import BLIND, Asked

MAX_LUCK = 0.01
"""A question is listed only if guesses do as well with at most this probability."""
_DUST = 1e-9
"""A difference that is smaller comes from rounding."""
_RIGHT = 1 - _DUST
"""A score from which an answer counts as right."""
_BINARY = 2
"""A question with at most this many answers is never listed: many of them are right by luck, whichever they are."""


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BlindQuestion(_Value):
    """A question that models answer without its context, more often than luck explains."""

    dataset: str
    id: str
    right: int
    """The number of answers without context that are right at every length and placement."""
    answers: int
    """The number of answers without context: models times samples."""
    independent: int
    """How many of these answers count: samples of a model that repeat its wrong answers say little new."""
    models: tuple[str, ...]
    """The models with a right answer."""
    chance: float
    """The probability that a guess is right: one divided by the number of offered answers or, if it is more, the share
    of the questions of the dataset that have the same answer."""
    luck: float
    """The probability that guesses are right as often among the independent answers; at most 0.01."""


class BlindCounts(_Value):
    """How many questions of a dataset are answered without the context."""

    dataset: str
    questions: int
    """The number of questions that were asked without their context."""
    right: int
    """The questions that every answer without context has right."""
    binary: int
    """The questions that offer at most two answers; a single one of them is never listed."""
    listed: int
    """The questions that are listed."""
    by_luck: float
    """How many would be listed on average if every answer were a guess."""


@dataclass(slots=True)
class _Question:
    """The trials of one question, by model and sample."""

    id: str
    options: int = 0
    chance: float = 0.0
    gold: str = ""
    is_right: dict[tuple[str, int], bool] = field(default_factory=dict)
    """Whether the answer is right at every length and placement."""
    said: dict[tuple[str, int], str] = field(default_factory=dict)
    """A hash of the answer at the first length and placement."""

    @property
    def is_binary(self) -> bool:
        return 0 < self.options <= _BINARY

    @property
    def by_model(self) -> dict[str, list[tuple[str, int]]]:
        trials: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for model, sample in self.is_right:
            trials[model].append((model, sample))
        return trials

    def independent(self, repeated: Mapping[str, float]) -> tuple[int, int]:
        """Return how many answers are right and how many there are, if each model counts with as many answers as its
        samples are worth (the design effect of repeated measurements, rounded down).
        """
        right, answers = 0, 0
        for model, trials in self.by_model.items():
            worth = max(1, math.floor(len(trials) / (1 + (len(trials) - 1) * repeated.get(model, 1.0)) + _DUST))
            right += math.floor(worth * sum(self.is_right[trial] for trial in trials) / len(trials) + _DUST)
            answers += worth
        return right, answers


def blind_questions(examples: Iterable[Asked]) -> tuple[tuple[BlindQuestion, ...], tuple[BlindCounts, ...]]:
    """Return the questions that are answered without the context, those with the least luck first, and how many there
    are, by dataset.
    """
    questions: dict[str, dict[str, _Question]] = defaultdict(dict)
    for example in examples:
        question = questions[example.dataset].setdefault(example.id, _Question(example.id))
        question.options = max(question.options, example.options)
        question.chance = max(question.chance, example.chance)
        question.gold = question.gold or example.gold
        for trial, answer in example.blind.items():
            question.said.setdefault(trial, answer)
        for (model, context), scores in example.scores.items():
            for sample, score in scores.items() if context == BLIND else ():
                is_right = question.is_right.get((model, sample), True) and score >= _RIGHT
                question.is_right[model, sample] = is_right
    listed, counts = list[BlindQuestion](), list[BlindCounts]()
    for dataset, by_id in questions.items():
        # A model that says the most frequent answer everywhere is right as often as this answer occurs.
        shares = Counter(question.gold for question in by_id.values())
        for question in by_id.values():
            question.chance = max(question.chance, shares[question.gold] / len(by_id))
        asked = [question for question in by_id.values() if question.is_right]
        if asked:
            own, of_dataset = _of_dataset(dataset, asked)
            listed += own
            counts.append(of_dataset)
    return tuple(listed), tuple(counts)


def _of_dataset(dataset: str, asked: list[_Question]) -> tuple[list[BlindQuestion], BlindCounts]:
    try:
        from scipy.stats import binom
    except ModuleNotFoundError as error:
        raise missing("scipy", "a comparison of contexts") from error
    repeated, listed, by_luck = _repeated(asked), list[BlindQuestion](), list[float]()
    for question in (each for each in asked if not each.is_binary):
        right, answers = question.independent(repeated)
        # the probability that the question is listed if all its answers are guesses
        by_luck.append(float(binom.sf(binom.isf(MAX_LUCK, answers, question.chance), answers, question.chance)))
        luck = float(binom.sf(right - 1, answers, question.chance))
        if right and luck <= MAX_LUCK:
            models = sorted({model for (model, _), is_right in question.is_right.items() if is_right})
            listed.append(
                BlindQuestion(
                    dataset=dataset,
                    id=question.id,
                    right=sum(question.is_right.values()),
                    answers=len(question.is_right),
                    independent=answers,
                    models=tuple(models),
                    chance=question.chance,
                    luck=luck,
                )
            )
    counts = BlindCounts(
        dataset=dataset,
        questions=len(asked),
        right=sum(all(question.is_right.values()) for question in asked),
        binary=sum(question.is_binary for question in asked),
        listed=len(listed),
        by_luck=math.fsum(by_luck),
    )
    return sorted(listed, key=lambda question: (question.luck, question.id)), counts


def _repeated(questions: Iterable[_Question]) -> dict[str, float]:
    """Return, by model, how much its samples repeat each other: 0 if they agree as often as guesses, 1 if always.

    Only questions count that the model has not right in all samples, since samples agree where a model knows the
    answer. If there are none, nothing shows that samples differ, and they count as repeated.
    """
    shares: dict[str, list[float]] = defaultdict(list)
    for question in questions:
        chance = 1 / question.options if question.options > 1 else 0.0
        for model, trials in question.by_model.items():
            if len(trials) > 1 and not all(question.is_right[trial] for trial in trials):
                pairs = [question.said.get(one) == question.said.get(two) for one, two in combinations(trials, 2)]
                shares[model].append((sum(pairs) / len(pairs) - chance) / (1 - chance))
    return {model: min(1.0, max(0.0, math.fsum(of_model) / len(of_model))) for model, of_model in shares.items()}

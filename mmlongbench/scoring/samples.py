"""Combines the scores of several answers (samples) of a model to one example. It knows neither files nor metrics."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
_MAX_RUNS = 120
"""The maximum number of lists that `runs` yields, unless an example has more samples."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sample that has a score."""

    answer: object
    """The answer as the metric compares it; equal answers are equal values."""
    score: float


def mean_score(samples: Sequence[Sampled]) -> float:
    """Return the mean of the scores."""
    return math.fsum(each.score for each in samples) / len(samples)


def best_score(samples: Sequence[Sampled]) -> float:
    """Return the highest score."""
    return max(each.score for each in samples)


def majority_score(samples: Sequence[Sampled]) -> float:
    """Return the score of the most frequent answer; the samples are in the order of their numbers.

    Of several answers that are equally frequent, the one that occurs first counts. If samples with this answer have
    different scores, the first of these scores counts.

    >>> made = [Sampled("a", 0.0), Sampled("b", 1.0), Sampled("b", 0.5)]
    >>> majority_score(made), majority_score(made[:2])
    (1.0, 0.0)
    """
    (answer, _), *_ = Counter(each.answer for each in samples).most_common(1)
    return next(each.score for each in samples if each.answer == answer)


def runs(examples: Sequence[Sequence[T]]) -> Iterator[list[T]]:
    """Yield lists with one sample of each example: the first samples, the second ones, and so on. An example with fewer
    samples than others repeats its own in turn, until each sample of an example has occurred equally often.

    >>> list(runs([["a1", "a2"], ["b1"]]))
    [['a1', 'b1'], ['a2', 'b1']]
    """
    counts = set(map(len, examples))
    for number in range(min(math.lcm(*counts), max(_MAX_RUNS, *counts)) if counts else 0):
        yield [samples[number % len(samples)] for samples in examples]


def mean_figures(
    figures: Callable[[Sequence[T]], Mapping[str, float]], examples: Sequence[Sequence[T]]
) -> dict[str, float]:
    """Return the mean, over the lists that `runs` yields, of each figure; a figure that a list lacks is left out."""
    found: dict[str, list[float]] = {}
    for run in runs(examples):
        for name, value in figures(run).items():
            found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else math.fsum(values) / len(values) for name, values in found.items()}


@dataclass(slots=True)
class SampleCounts:
    """Counts examples by their number of samples, for each public file."""

    by_file: dict[str, dict[int, tuple[int, str]]] = field(default_factory=dict)
    """By file and number of samples: how many examples have this number, and the name of the first one."""

    def add(self, file: str, example: str, samples: int) -> None:
        """Count one example."""
        of_file = self.by_file.setdefault(file, {})
        count, first = of_file.get(samples, (0, example))
        of_file[samples] = (count + 1, first)

    def notes(self) -> list[str]:
        """Return a list with a sentence about examples that have fewer samples than others of their file; an empty list
        if there are none.
        """
        fewer, every, firsts = 0, 0, list[str]()
        for file, found in self.by_file.items():
            most = max(found)
            if len(found) > 1:
                fewer += sum(count for number, (count, _) in found.items() if number < most)
                every += sum(count for count, _ in found.values())
                firsts += [f"{file}: {first} has {n} of {most}" for n, (_, first) in found.items() if n < most]
        if not fewer:
            return []
        return [f"{fewer:,} of {every:,} examples have fewer samples than others of their file; first {firsts[0]}"]

"""Computes the rows of the table: means, paired differences and survival, each with an interval over the same resamples
of clusters.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from mmlongbench.shortcuts.contexts.answers import Asked
from mmlongbench.shortcuts.contexts.needs import Fall, need
from mmlongbench.shortcuts.contexts.results import FULL, ContextMean, ContextRow, Difference
from mmlongbench.statistics import MIN_CLUSTERS, Floats, interval, resampled_means

_What: TypeAlias = Literal["mean", "full", "other", "chance"]
"""`mean`: all scores in a context. The others are of examples with a score both in the context and in the released
prompt: `full` and `other` are their scores in these two, `chance` is their chance."""
_PAIRED: tuple[_What, ...] = ("full", "other", "chance")


class _Group(NamedTuple):
    """A group of examples of a dataset."""

    length: int | None
    facet: str
    value: str


class _Mean(NamedTuple):
    """A mean score, with its value in each resample."""

    mean: float
    draws: Floats
    clusters: int
    examples: int
    questions: int


@dataclass(frozen=True, slots=True)
class _Paired:
    """Three means over the same examples and the same resamples."""

    full: _Mean
    other: _Mean
    chance: _Mean

    @property
    def is_solved(self) -> bool:
        """Whether the model is above chance with the released prompt, with 95 % confidence."""
        return self.full.clusters >= MIN_CLUSTERS and interval(self.full.draws - self.chance.draws)[0] > 0


def rows(examples: Sequence[Asked], dataset: str, model: str) -> tuple[ContextRow, ...]:
    """Return the rows of a model on a dataset: all questions, each length, and each value of each facet.

    Args:
        examples: the examples of the dataset; those that the model was not given are left out.
        dataset: the name of the dataset.
        model: the name of the model.

    """
    asked = [each for each in examples if any(given[0] == model for given in each.scores)]
    if not asked:
        return ()
    contexts = sorted({context for each in asked for name, context in each.scores if name == model})
    groups = _groups(asked)
    estimates = _Estimates(_means(_scores_of(asked, model, contexts, groups), asked, dataset))
    return tuple(
        ContextRow(
            model=model,
            dataset=dataset,
            length=group.length,
            facet=group.facet,
            value=group.value,
            chance=sum(asked[at].guess.chance for at in members) / len(members),
            means=tuple(estimates.means(place, contexts)),
            differences=tuple(estimates.differences(place, contexts)),
        )
        for place, (group, members) in enumerate(groups.items())
    )


def _groups(asked: Sequence[Asked]) -> dict[_Group, list[int]]:
    """Return the places of the examples of each group, all examples first. Facets are over all lengths together; a
    value that all examples have makes no group.
    """
    found: dict[_Group, list[int]] = {_Group(None, "", ""): list(range(len(asked)))}
    lengths = sorted({each.length for each in asked})
    for length in lengths if len(lengths) > 1 else ():
        found[_Group(length, "", "")] = [at for at, each in enumerate(asked) if each.length == length]
    by_value: dict[_Group, list[int]] = {}
    for at, each in enumerate(asked):
        for facet, values in each.facets.items():
            for value in dict.fromkeys(values):
                by_value.setdefault(_Group(None, facet, value), []).append(at)
    parts = {group: members for group, members in by_value.items() if len(members) < len(asked)}
    return found | dict(sorted(parts.items(), key=lambda item: (item[0].facet, item[0].value)))


def _means(lines: pd.DataFrame, asked: Sequence[Asked], dataset: str) -> dict[tuple[int, str, _What], _Mean]:
    """Return the mean of each group, context and `_What`."""
    by = ["group", "context", "what"]
    # A question without a cluster is one of its own, even if another cluster has its id as a name.
    clusters = sorted({(each.cluster or each.id, not each.cluster) for each in asked})
    places = {cluster: place for place, cluster in enumerate(clusters)}
    of_each = np.array([places[each.cluster or each.id, not each.cluster] for each in asked])
    ids = np.array([each.id for each in asked], dtype=object)
    example = lines["example"].to_numpy()
    lines = lines.assign(dataset=dataset, id=ids[example], cluster=of_each[example])
    draws = resampled_means(lines, by, [(dataset, name) for name, _ in clusters])
    groups: Any = lines.groupby(by, observed=True)
    return {
        key: _Mean(
            math.fsum(some["score"]) / len(some),
            of_group,
            some["cluster"].nunique(),
            len(some),
            some["id"].nunique(),
        )
        for (key, some), of_group in zip(groups, draws.T, strict=True)
    }


def _scores_of(
    asked: Sequence[Asked], model: str, contexts: Sequence[str], groups: Mapping[_Group, Sequence[int]]
) -> pd.DataFrame:
    """Return a table with a line for each score of each example, in each of its groups."""
    scored = [list(_scores(each, model, contexts)) for each in asked]
    found = [
        (place, context, what, at, score)
        for place, members in enumerate(groups.values())
        for at in members
        for context, what, score in scored[at]
    ]
    lines = pd.DataFrame(found, columns=["group", "context", "what", "example", "score"])
    return lines.astype({"example": np.int64, "score": np.float64})


def _scores(asked: Asked, model: str, contexts: Sequence[str]) -> Iterator[tuple[str, _What, float]]:
    full = asked.mean((model, FULL))
    for context in contexts:
        score = asked.mean((model, context))
        if score is None:
            continue
        yield context, "mean", score
        if context != FULL and full is not None:
            yield context, "full", full
            yield context, "other", score
            yield context, "chance", asked.guess.chance


@dataclass(frozen=True, slots=True)
class _Estimates:
    """The means of a model on a dataset. A key is the number of the group (0: all examples), the context, and what."""

    of: Mapping[tuple[int, str, _What], _Mean]

    def means(self, group: int, contexts: Iterable[str]) -> Iterator[ContextMean]:
        """Yield the mean of a group in each context."""
        for context in contexts:
            if found := self.of.get((group, context, "mean")):
                low, high = interval(found.draws) if found.clusters >= MIN_CLUSTERS else (None, None)
                yield ContextMean(context=context, mean=found.mean, low=low, high=high, questions=found.questions)

    def differences(self, group: int, contexts: Iterable[str]) -> Iterator[Difference]:
        """Yield the difference of a group between the released prompt and each other context.

        A model that always says no is above chance where the answer is no. So it solves a group only if it solves all
        questions of the dataset together, too.
        """
        for context in contexts:
            if (group, context, "full") in self.of:
                paired = self._paired(group, context)
                is_solved = paired.is_solved and self._paired(0, context).is_solved
                yield _difference(context, paired, is_solved=is_solved)

    def _paired(self, group: int, context: str) -> _Paired:
        full, other, chance = (self.of[group, context, what] for what in _PAIRED)
        return _Paired(full, other, chance)


def _difference(context: str, paired: _Paired, *, is_solved: bool) -> Difference:
    full, other, chance = paired.full, paired.other, paired.chance
    fall = Fall(full.mean - other.mean, full.draws - other.draws, full.clusters, full.questions)
    low, high = fall.interval or (None, None)
    survival, survival_low, survival_high = _survival(paired, fall.unseen) if is_solved else (None, None, None)
    return Difference(
        context=context,
        full=full.mean,
        other=other.mean,
        mean=fall.mean,
        low=low,
        high=high,
        examples=full.examples,
        questions=full.questions,
        clusters=full.clusters,
        chance=chance.mean,
        survival=survival,
        survival_low=survival_low,
        survival_high=survival_high,
        need=need(context, fall, is_solved=is_solved),
    )


def _survival(paired: _Paired, unseen: float) -> tuple[float, float, float]:
    """Return the survival, and the ends of its interval, which is widened as that of the difference (`Fall.unseen`).
    Resamples without a score above chance are left out.
    """
    above = paired.full.draws - paired.chance.draws
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = np.where(above > 0, (paired.other.draws - paired.chance.draws) / above, np.nan)
    low, high = interval(draws)
    ability = paired.full.mean - paired.chance.mean
    found = (paired.other.mean - paired.chance.mean) / ability
    return found, min(low, found - unseen / ability), max(high, found + unseen / ability)

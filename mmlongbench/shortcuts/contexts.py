"""Compares what models answer in several contexts of a release: what `mmlongbench shortcuts --predictions` shows.

Differences are paired by question, and each has an interval over the same resamples of clusters. One margin decides in
both directions whether questions need a part of their context: an interval above it says `needs`, an interval below it
says `does not need`. So no difference is both, and a difference that is certain but tiny is not called a need. The
margin is 5 points, as for findings of the audit without a model.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict

from mmlongbench.io.progress import Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.shortcuts.blind import BlindCounts, BlindQuestion, blind_questions
from mmlongbench.shortcuts.context_scores import FULL, Asked, read_answers
from mmlongbench.statistics import LEVEL, MIN_CLUSTERS, Floats, interval, resampled_means

MARGIN = 0.05
"""A fall of the score that is smaller than this is no need."""
POWER = 0.8
"""The probability with which `Need.smallest` is shown."""
UNSOLVED = "the model is not above chance with the released prompt"
"""The reason that nothing is decided if the model does not solve the questions even with their context."""
FEW = "too few questions"
_Z = 1.959964
"""The normal quantile of an interval of 95 %."""
_Z_POWER = 0.841621
"""The normal quantile of a power of 0.8."""
_NEAREST = 0.01
"""A fall closer to the margin than this is taken to be this far away from it, so that `Need.needed` stays finite."""
_DUST = 1e-9
"""A difference that is smaller comes from rounding."""
NeedVerdict: TypeAlias = Literal["needs", "does not need", "undecided"]
"""`needs`: the score falls by more than 5 points, with 95 % confidence. `does not need`: it falls by less, with the
same confidence. `undecided`: there are too few questions to say either, or the model does not solve them."""
Part: TypeAlias = Literal["context", "images", "order"]
"""What a question may need."""


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ContextMean(_Value):
    """The mean score of a model in one context."""

    context: str
    """The context; empty for the released prompt."""
    mean: float
    """The mean, from 0 to 1, over the examples that have a score in this context."""
    low: float | None
    """The lower end of the 95 % interval; None if there are fewer than 5 clusters."""
    high: float | None
    """The upper end of this interval."""
    questions: int
    """The number of questions that have a score in this context."""


class Need(_Value):
    """Whether questions need the context, its images or its order."""

    part: Part
    verdict: NeedVerdict
    reason: str
    """Why nothing is decided; empty if it is."""
    smallest: float | None
    """The smallest fall of the score that these questions would show with a probability of 0.8; None if even a fall
    from 1 to 0 would not be shown."""
    needed: int | None
    """About how many questions would decide, if the fall is as found; None if it is decided, or if more questions do
    not help, since the model does not solve them."""


class Difference(_Value):
    """How much a model loses in another context, over the examples that have a score in both."""

    context: str
    """The other context, such as `none`."""
    full: float
    """The mean score of the released prompt."""
    other: float
    """The mean score in the other context."""
    mean: float
    """The mean of the differences full − other."""
    low: float | None
    """The lower end of the 95 % interval of the difference; None if there are fewer than 5 clusters."""
    high: float | None
    """The upper end of this interval."""
    examples: int
    """The number of examples that have a score in both contexts; a question with several placements or lengths has
    several examples."""
    questions: int
    """The number of these questions."""
    clusters: int
    """The number of documents, entities or needle pictures that these questions are about."""
    chance: float
    """The mean score of guesses among the answers that these questions offer; a question that offers none counts 0."""
    survival: float | None
    """(other − chance) / (full − chance): the share of the model's ability that is left; None if the score of the
    released prompt is not above chance with 95 % confidence."""
    survival_low: float | None
    """The lower end of the 95 % interval of `survival`."""
    survival_high: float | None
    """The upper end of this interval."""
    need: Need | None
    """What the difference says about the questions; None for contexts that no verdict is about."""


class ContextRow(_Value):
    """The scores of a model on a group of questions, in each context."""

    model: str
    dataset: str
    length: int | None
    """The length in tokens; None: all lengths together."""
    facet: str
    """The facet that the group is made by; empty: all questions."""
    value: str
    """The value of the facet; empty: all questions."""
    chance: float
    """The mean score of guesses among the offered answers, over all examples of the group that the model answered."""
    means: tuple[ContextMean, ...]
    """The mean of each context that the model was given; the released prompt is first."""
    differences: tuple[Difference, ...]
    """The differences between the released prompt and each other context; empty without the released prompt."""


class ContextAudit(_Value):
    """What models answer in several contexts of a release."""

    models: tuple[str, ...]
    contexts: tuple[str, ...]
    """The contexts, the released prompt (an empty name) first."""
    rows: tuple[ContextRow, ...]
    """A row for each dataset, model and group of questions."""
    blind: tuple[BlindQuestion, ...]
    """The questions that are listed, by dataset; those with the least luck first."""
    blind_counts: tuple[BlindCounts, ...]
    """How many questions of each dataset are answered without the context."""
    notes: tuple[str, ...]
    """Sentences that a reader must know, such as predictions that were left out."""


def audit_contexts(
    release: Path, predictions: Sequence[Path], progress: Progress, tasks: TaskFiles = NO_TASK_FILES
) -> ContextAudit:
    """Score the predictions of models in several contexts, and compare the contexts question by question (see
    `mmlongbench.compare_contexts`).
    """
    examples, given, notes = read_answers(release, predictions, progress, tasks)
    datasets: dict[str, list[Asked]] = {}
    for asked in examples:
        datasets.setdefault(asked.dataset, []).append(asked)
    contexts_of: dict[str, list[str]] = {}
    for model, context in given:
        contexts_of.setdefault(model, []).append(context)
    for model, contexts in contexts_of.items():
        if FULL not in contexts:
            notes.append(f"{model}: no predictions of the released prompt, so nothing is compared; give them too")
        elif len(contexts) == 1:
            notes.append(
                f"{model}: only predictions of the released prompt; `mmlongbench run --context none` makes others"
            )
    blind, counts = blind_questions(examples)
    return ContextAudit(
        models=tuple(contexts_of),
        contexts=tuple(sorted({context for _, context in given})),
        rows=tuple(
            row for name, of_name in datasets.items() for model in contexts_of for row in rows(of_name, name, model)
        ),
        blind=blind,
        blind_counts=counts,
        notes=tuple(notes),
    )


# ---- Rows

_What: TypeAlias = Literal["mean", "full", "other", "chance"]
"""`mean`: all scores in a context. The others are of examples with a score both in the context and in the released
prompt: `full` and `other` are their scores in these two, `chance` is their chance."""


class _Group(NamedTuple):
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


def rows(examples: Sequence[Asked], dataset: str, model: str) -> Iterator[ContextRow]:
    """Yield the rows of a model on a dataset: all questions, each length, and each value of each facet."""
    asked = [example for example in examples if any(name == model for name, _ in example.scores)]
    if not asked:
        return
    contexts = sorted({context for example in asked for name, context in example.scores if name == model})
    groups = _groups(asked)
    means = _means(asked, dataset, model, contexts, groups)

    def is_solved(group: int, context: str) -> bool:
        """Return whether the model is above chance with the released prompt, with 95 % confidence."""
        full, chance = means[group, context, "full"], means[group, context, "chance"]
        return full.clusters >= MIN_CLUSTERS and interval(full.draws - chance.draws)[0] > 0

    for place, (group, members) in enumerate(groups.items()):
        differences, of_contexts = list[Difference](), list[ContextMean]()
        for context in contexts:
            if mean := means.get((place, context, "mean")):
                low, high = interval(mean.draws) if mean.clusters >= MIN_CLUSTERS else (None, None)
                of_contexts.append(
                    ContextMean(context=context, mean=mean.mean, low=low, high=high, questions=mean.questions)
                )
            if full := means.get((place, context, "full")):
                other, chance = means[place, context, "other"], means[place, context, "chance"]
                # A model that always says no is above chance where the answer is no. So it solves a group only if it
                # solves all questions of the dataset together, too.
                solves = is_solved(place, context) and is_solved(0, context)
                differences.append(_difference(context, full, other, chance, is_solved=solves))
        yield ContextRow(
            model=model,
            dataset=dataset,
            length=group.length,
            facet=group.facet,
            value=group.value,
            chance=sum(asked[at].chance for at in members) / len(members),
            means=tuple(of_contexts),
            differences=tuple(differences),
        )


def _groups(asked: Sequence[Asked]) -> dict[_Group, list[int]]:
    """Return the places of the examples of each group, all examples first. Facets are over all lengths together; a
    value that all examples have makes no group.
    """
    groups: dict[_Group, list[int]] = {_Group(None, "", ""): list(range(len(asked)))}
    lengths = sorted({example.length for example in asked})
    for length in lengths if len(lengths) > 1 else ():
        groups[_Group(length, "", "")] = [at for at, example in enumerate(asked) if example.length == length]
    by_value: dict[_Group, list[int]] = {}
    for at, example in enumerate(asked):
        for facet, values in example.facets.items():
            for value in dict.fromkeys(values):
                by_value.setdefault(_Group(None, facet, value), []).append(at)
    parts = {group: members for group, members in by_value.items() if len(members) < len(asked)}
    return groups | dict(sorted(parts.items(), key=lambda item: (item[0].facet, item[0].value)))


def _means(
    asked: Sequence[Asked],
    dataset: str,
    model: str,
    contexts: Sequence[str],
    groups: Mapping[_Group, Sequence[int]],
) -> dict[tuple[int, str, _What], _Mean]:
    """Return the means by the number of the group (0: all examples), the context, and what."""
    # A question without a cluster is one of its own, even if another cluster has its id as a name.
    clusters = sorted({(example.cluster or example.id, not example.cluster) for example in asked})
    places = {cluster: place for place, cluster in enumerate(clusters)}
    lines: list[tuple[int, str, _What, str, int, float]] = []
    for group, members in enumerate(groups.values()):
        for example in (asked[at] for at in members):
            cluster, full = places[example.cluster or example.id, not example.cluster], example.mean((model, FULL))
            for context in contexts:
                score = example.mean((model, context))
                if score is None:
                    continue
                scores: dict[_What, float] = {"mean": score}
                if context != FULL and full is not None:
                    scores |= {"full": full, "other": score, "chance": example.chance}
                lines += [(group, context, what, example.id, cluster, value) for what, value in scores.items()]
    import pandas as pd  # takes half a second, and most audits compare no contexts

    by = ["group", "context", "what"]
    table = pd.DataFrame(lines, columns=[*by, "id", "cluster", "score"]).assign(dataset=dataset)
    table["score"] = table["score"].astype(np.float64)
    draws = resampled_means(table, by, [(dataset, name) for name, _ in clusters])
    grouped: Any = table.groupby(by, observed=True)
    return {
        key: _Mean(
            math.fsum(some["score"]) / len(some),
            of_group,
            some["cluster"].nunique(),
            len(some),
            some["id"].nunique(),
        )
        for (key, some), of_group in zip(grouped, draws.T, strict=True)
    }


# ---- Differences

PARTS: dict[str, Part] = {"none": "context", "text-only": "images", "shuffled": "order"}
"""What a question needs if its score falls in a context."""


def _difference(context: str, full: _Mean, other: _Mean, chance: _Mean, *, is_solved: bool) -> Difference:
    fall, draws, unseen = full.mean - other.mean, full.draws - other.draws, unseen_share(full.clusters)
    ends = None
    if full.clusters >= MIN_CLUSTERS:
        # Resamples contain only what was seen. If no question of five is lost, no resample loses any; yet one question
        # in two may be of a kind that is lost. So the interval is widened to what was not seen.
        low, high = interval(draws)
        ends = max(-1.0, min(low, fall - unseen)), min(1.0, max(high, fall + unseen))
    survival: tuple[float, float, float] | tuple[None, None, None] = (None, None, None)
    if is_solved:
        above, ability = full.draws - chance.draws, full.mean - chance.mean
        with np.errstate(invalid="ignore", divide="ignore"):  # resamples without a score above chance are left out
            low, high = interval(np.where(above > 0, (other.draws - chance.draws) / above, np.nan))
        share = (other.mean - chance.mean) / ability
        survival = share, min(low, share - unseen / ability), max(high, share + unseen / ability)
    need = None
    if part := PARTS.get(context):
        need = _need(part, fall, ends, float(np.nanstd(draws)), full, is_solved=is_solved)
    return Difference(
        context=context,
        full=full.mean,
        other=other.mean,
        mean=fall,
        low=ends and ends[0],
        high=ends and ends[1],
        examples=full.examples,
        questions=full.questions,
        clusters=full.clusters,
        chance=chance.mean,
        survival=survival[0],
        survival_low=survival[1],
        survival_high=survival[2],
        need=need,
    )


def unseen_share(clusters: int) -> float:
    """Return the upper end of the exact interval (Clopper and Pearson) of a share of which no case was found.

    >>> round(unseen_share(5), 3), round(unseen_share(72), 3)
    (0.522, 0.05)
    """
    return 1.0 - float(((1 - LEVEL) / 2) ** (1 / clusters))


def _need(
    part: Part, fall: float, ends: tuple[float, float] | None, error: float, full: _Mean, *, is_solved: bool
) -> Need:
    """Return what a fall of the score says about the questions; `error` is the standard deviation of its resamples."""
    # A model that does not solve the questions loses nothing without the context, so its scores do not say that a
    # question can do without.
    verdict: NeedVerdict = "undecided"
    if ends and ends[0] > MARGIN + _DUST:
        verdict = "needs"
    elif ends and ends[1] < MARGIN - _DUST and is_solved:
        verdict = "does not need"
    smallest = MARGIN + max((_Z + _Z_POWER) * error, unseen_share(full.clusters))
    is_open, needed = verdict == "undecided", None
    if is_open and is_solved:  # how many would decide, if the fall, its spread and the size of clusters stay
        gap = max(abs(fall - MARGIN), _NEAREST)
        by_spread = full.questions * ((_Z + _Z_POWER) * error / gap) ** 2
        by_unseen = full.questions / full.clusters * math.log((1 - LEVEL) / 2) / math.log(1 - min(gap, 0.99))
        needed = max(full.questions + 1, math.ceil(by_spread), math.ceil(by_unseen))
    return Need(
        part=part,
        verdict=verdict,
        reason="" if not is_open else FEW if is_solved else UNSOLVED,
        smallest=smallest if smallest <= 1 else None,
        needed=needed,
    )

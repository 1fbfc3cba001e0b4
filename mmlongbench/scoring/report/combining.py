"""Combines the lines of several answers (samples) to one example into one line, so that an example counts once in every
mean, interval and count.

The score of the example is the mean over its samples that have a score. An example has failed if all its samples have
failed. `best` is the highest score of the samples, and `majority` the score of the most frequent answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mmlongbench.scoring.report.columns import ABSENT, FAILED, SCORED
from mmlongbench.scoring.samples import Sampled, best_score, majority_score, mean_score
from mmlongbench.statistics import Ints
from mmlongbench.task.metric import Score


@dataclass(frozen=True, slots=True)
class Combined:
    """The result of combining the lines that were read: one line for each example."""

    lines: pd.DataFrame
    """The lines, with the columns `best`, `majority` and `samples` (the number of samples)."""
    details: pd.DataFrame
    """The details; each is the mean over the samples that have it."""
    kept: Mapping[int, tuple[Score, ...]]
    """The scores of the samples of each example, by the number of its line."""
    notes: tuple[str, ...]


def combined(lines: pd.DataFrame, details: pd.DataFrame, kept: Mapping[int, Score], example: Sequence[str]) -> Combined:
    """Combine the lines that have the same values in the columns `example`; they are sorted by these and by sample.

    Of several lines, the first one stays, but a line with a score stays rather than one without.
    """
    whole = lines.assign(best=lines["score"], majority=lines["score"], samples=1)
    is_several = lines.duplicated(list(example), keep=False).to_numpy()
    if not is_several.any():
        return Combined(whole, details, {number: (score,) for number, score in kept.items()}, ())
    places = np.flatnonzero(is_several)
    groups = [places[at] for at in lines[is_several].groupby(list(example), observed=True).indices.values()]
    first, members = _first_lines(whole, groups)
    numbers = whole.index.to_numpy()
    owner = pd.Series(numbers, numbers)
    owner[numbers[places]] = -1
    for place, own in zip(first, members, strict=True):
        owner[numbers[own]] = numbers[place]
    scores = {
        number: tuple(kept[own] for own in numbers[members[at]] if own in kept)
        for at, number in enumerate(numbers[first])
        if number in kept
    }
    single = {number: (score,) for number, score in kept.items() if owner.get(number) == number}
    stays = ~is_several
    stays[first] = True
    found = whole[stays]
    return Combined(
        found, _mean_details(details, owner), {**single, **scores}, tuple(_notes(found, whole, first, members))
    )


def _first_lines(lines: pd.DataFrame, groups: Sequence[Ints]) -> tuple[Ints, list[Ints]]:
    """Return, for each group of lines, the line that stays, and the lines with the same status; the scores of the lines
    that stay become those of their groups.
    """
    status, score, answer = lines["status"].to_numpy(), lines["score"].to_numpy(), lines["answer"].cat.codes.to_numpy()
    columns = {name: lines[name].to_numpy().copy() for name in ("score", "best", "majority", "samples")}
    first, members = [], []
    for at in groups:
        own = at[status[at] == status[at].min()]
        first.append(own[0])
        members.append(own)
        columns["samples"][own[0]] = np.count_nonzero(np.isin(status[at], (SCORED, FAILED)))
        if status[own[0]] <= ABSENT:
            made = [Sampled(answer[place], float(score[place])) for place in own]
            columns["score"][own[0]] = mean_score(made)
            columns["best"][own[0]] = best_score(made)
            columns["majority"][own[0]] = majority_score(made)
    for name, values in columns.items():
        lines[name] = values
    return np.array(first), members


def _mean_details(details: pd.DataFrame, owner: "pd.Series[int]") -> pd.DataFrame:
    """Return the details of the lines that stay; each is the mean over the lines that were combined."""
    moved = details.assign(line=details["line"].map(owner).fillna(details["line"]).astype(np.int64))
    moved = moved[moved["line"] >= 0]
    is_several = moved.duplicated(["line", "name"], keep=False)
    ordered = moved[is_several].sort_values(["line", "name", "value"], kind="stable")
    means = ordered.groupby(["line", "name"], observed=True)["value"].mean().reset_index()
    return pd.concat([moved[~is_several], means], ignore_index=True)


def _notes(found: pd.DataFrame, whole: pd.DataFrame, first: Ints, members: Sequence[Ints]) -> Iterator[str]:
    """Yield sentences about examples that have fewer samples than others of their file, and about failed samples."""
    answered = found[found["status"].isin((SCORED, FAILED))]
    most = answered.groupby(["series", "file"], observed=True)["samples"].transform("max")
    for (model, name), some in answered.assign(most=most).groupby(["model", "metric"], observed=True):
        if fewer := int((some["samples"] < some["most"]).sum()):
            yield f"{model}, {name}: {fewer:,} of {len(some):,} examples have fewer samples than others of their file"
    samples = whole["samples"].to_numpy()[first].tolist()
    lost = sum(max(0, number - len(own)) for number, own in zip(samples, members, strict=True))
    if lost:
        yield f"{lost:,} samples of examples with other samples have failed, and are left out of the examples' scores"

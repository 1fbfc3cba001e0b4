"""Makes the table `Scores` from the lines that were read; its rows have a fixed order. Lines that contradict each other
raise an error.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import numpy as np
import pandas as pd

from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.report.choices import told_apart
from mmlongbench.scoring.report.columns import Origin, ScoredFile, Scores, Series, derived, grouped, values_of
from mmlongbench.scoring.report.combining import combined
from mmlongbench.scoring.report.differing import differing
from mmlongbench.scoring.report.reading import Reading, read_lines
from mmlongbench.scoring.report.sharing import shared

_EXAMPLE = ["series", "file", "question", "placement"]
"""The columns that identify one line."""


def read(folder: Path, keeps: Callable[[str], bool] = lambda metric: False, profile: str = "") -> Scores:
    """Read the scores of a folder; if `profile` is given, only the scores under this profile.

    `keeps` returns, for the name of a metric, whether the complete scores of this metric are kept, with their details.

    Raises:
        ReleaseError: there are no scores, a line is not valid or occurs twice, a score is impossible, or files of
            several releases are mixed.

    """
    return to_columns(read_lines(folder, keeps, profile))


def to_columns(read: Reading) -> Scores:
    """Return the table; its rows have the same order, in whatever order the lines were read."""
    lines = read.lines()
    _refuse_two_files(values_of(lines["file"]))
    shown = told_apart(list(read.numbers["series"]))
    origins = _origins(lines, shown)
    lines["series"] = derived(lines["series"], shown.__getitem__)
    clusters = [(dataset, name) for dataset, name, _ in sorted({*map(read.cluster_of, read.numbers["question"])})]
    lines = lines.sort_values([*_EXAMPLE, "sample"], kind="stable")
    _refuse_twins(lines)
    for name in ("model", "metric", "profile"):
        lines[name] = derived(lines["series"], attrgetter(name))
    for name in ("dataset", "length"):
        lines[name] = derived(lines["file"], attrgetter(name))
    found = differing(lines)
    details = read.pairs(read.details, "name").assign(value=np.array(read.values))
    one = combined(lines, details, read.kept, _EXAMPLE)
    lines, notes = shared(one.lines)
    return Scores(
        lines=lines,
        clusters=clusters,
        members=read.pairs(read.members, "group"),
        details=one.details,
        kept=one.kept,
        own_metrics=read.own_metrics,
        first_metrics=_first_metrics(read, shown),
        averaged_metrics=read.averaged_metrics,
        origins=origins,
        reasoning=read.reasoning,
        differing=found,
        locks=_locks(one.lines),
        notes=(*read.notes(), *found.notes(), *one.notes, *notes),
    )


def _origins(lines: pd.DataFrame, shown: Mapping[Series, Series]) -> dict[Series, set[Origin]]:
    """Return where the rules of each series come from; the keys are the series that reports show (see `told_apart`)."""
    found = defaultdict[Series, set[Origin]](set)
    for series, follows in grouped(lines, ["series", "follows"]):
        found[shown[series]].add(Origin(follows, series.choices))
    return found


def _locks(lines: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the releases that the lines of each model name."""
    pairs = lines.loc[lines["lock"] != "", ["model", "lock"]].drop_duplicates()
    found: dict[str, list[str]] = {}
    for model, lock in sorted(zip(pairs["model"], pairs["lock"], strict=True)):
        found.setdefault(model, []).append(lock)
    return {model: tuple(locks) for model, locks in found.items()}


def _first_metrics(read: Reading, shown: Mapping[Series, Series]) -> dict[tuple[str, str], str]:
    """Return the first metric by dataset and profile, including the profiles that `told_apart` makes."""
    found = dict(read.first_metrics)
    for (dataset, profile), metric in read.first_metrics.items():
        for series, new in shown.items():
            if (series.metric, series.profile) == (metric, profile):
                found.setdefault((dataset, new.profile), metric)
    return found


def _refuse_two_files(files: Sequence[ScoredFile]) -> None:
    """Refuse a dataset that has two files of one length."""
    for one, two in pairwise(files):
        if (one.dataset, one.length) == (two.dataset, two.length):
            raise ReleaseError(
                f"dataset {one.dataset!r} has two files of {one.length:,} tokens, {one.name} and {two.name}: scores of "
                "several releases are mixed; report each from a folder of its own"
            )


def _refuse_twins(lines: pd.DataFrame) -> None:
    """Refuse two lines that have the same sample and the same values in the columns `_EXAMPLE`."""
    same = [*_EXAMPLE, "sample"]
    for _, two in lines[lines.duplicated(same, keep=False)].head(2).groupby(same, observed=True):
        line, where = two.iloc[0], " and ".join(sorted(set(two["source"])))
        sample = f", sample {line['sample']}" if line["sample"] else ""
        raise ReleaseError(
            f"{line['series'].model}, {line['series'].label}, {line['file'].name}: id {line['question'].id!r}"
            f"{line['placement']}{sample} is scored twice, in {where}; "
            "keep one line of each (--model names a second run of a model)"
        )

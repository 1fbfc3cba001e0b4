"""A report: everything that is computed from a folder of scores, before it is shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmlongbench.scoring.report.averages import all_averages, average_grid, cells, dataset_grid, sample_grid
from mmlongbench.scoring.report.breakdowns import depth_grids, facet_grids
from mmlongbench.scoring.report.columns import FAILED, Origin, Scores, Series, grouped
from mmlongbench.scoring.report.correlations import Correlations, correlations
from mmlongbench.scoring.report.details import detail_grid, total_grid
from mmlongbench.scoring.report.differing import Differing
from mmlongbench.scoring.report.estimates import Estimate, estimates
from mmlongbench.scoring.report.grids import Grid
from mmlongbench.scoring.report.sorting import read
from mmlongbench.scoring.report.totals import KnownTotals
from mmlongbench.statistics import LEVEL, RESAMPLES


@dataclass(frozen=True, slots=True)
class Missing:
    """How many examples of one series and file have no prediction, have no score, or were skipped."""

    series: Series
    file: str
    found: Estimate
    """The counts and, if examples were skipped, the mean of the others."""

    def summary(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        others = {"mean_of_others": self.found.others} if self.found.counts.skipped else {}
        return {**self.series.summary(), "file": self.file, **asdict(self.found.counts), **others}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A metric under one profile, and where its rules come from."""

    metric: str
    profile: str
    follows: tuple[str, ...]
    """The code or paper that the rules come from; several, if scores were made by several versions."""
    choices: tuple[str, ...]
    """The choices with which the scores of at least one model were made."""
    models: int


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a report; scores are from 0 to 1."""

    lines: int
    models: tuple[str, ...]
    metrics: tuple[str, ...]
    datasets: tuple[str, ...]
    own_metrics: frozenset[str]
    """The own metrics of all datasets; see `Scores.default_metrics` for datasets whose own metric is not known."""
    provenance: tuple[Scheme, ...]
    """Every metric under every profile that occurs."""
    reasoning: Mapping[str, Mapping[str, int]]
    """For each model, how many predictions had reasoning, by what was done with it."""
    locks: Mapping[str, tuple[str, ...]]
    """For each model, the releases on which it was scored (see `ScoreLine.lock`), as far as the scores name them."""
    differing: Differing
    """The examples that are not the same in all scores."""
    averages: Grid
    scores: Grid
    samples: Grid
    """Scores of examples with several samples: of the best sample, and of the most frequent answer."""
    depths: tuple[Grid, ...]
    facets: tuple[Grid, ...]
    details: Grid
    totals: Grid
    correlations: Correlations
    missing: tuple[Missing, ...]
    failures: tuple[tuple[Series, str, int], ...]
    """Why examples failed: (series, reason, number of examples), the most frequent reason first."""
    notes: tuple[str, ...]
    """Sentences that a reader of the numbers must know."""

    def summary(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "lines": self.lines,
            "models": list(self.models),
            "metrics": list(self.metrics),
            "datasets": list(self.datasets),
            "profiles": [asdict(each) for each in self.provenance],
            "reasoning": {model: dict(counts) for model, counts in self.reasoning.items()},
            "releases": {model: list(locks) for model, locks in self.locks.items()},
            "different_examples": self.differing.summary(),
            "resamples": RESAMPLES,
            "level": LEVEL,
            "averages": self.averages.summary(),
            "scores": self.scores.summary(),
            "samples": self.samples.summary(),
            "depths": [grid.summary() for grid in self.depths],
            "facets": [grid.summary() for grid in self.facets],
            "details": self.details.summary(),
            "totals": self.totals.summary(),
            "correlations": self.correlations.summary(),
            "missing": [each.summary() for each in self.missing],
            "failures": [{**series.summary(), "reason": why, "times": times} for series, why, times in self.failures],
            "notes": list(self.notes),
        }


def report(folder: Path, preferred: Sequence[str] = (), profile: str = "") -> Report:
    """Return the report of a folder of scores; if `profile` is given, only of the scores under this profile.

    If a `preferred` metric scored a dataset, averages use this metric instead of the dataset's own metric.

    Raises:
        ReleaseError: the scores cannot be read or contradict each other, a preferred metric scored nothing, or nothing
            was scored under the profile.

    """
    metrics = KnownTotals()
    scores = read(folder, metrics.has, profile)
    found = cells(scores)
    averages = all_averages(scores, found, preferred)
    return Report(
        lines=len(scores.lines),
        models=scores.models,
        metrics=scores.metrics,
        datasets=scores.scored_datasets,
        own_metrics=scores.default_metrics,
        provenance=_provenance(scores),
        reasoning=_reasoning(scores),
        locks=scores.locks,
        differing=scores.differing,
        averages=average_grid(scores, averages),
        scores=dataset_grid(scores, found),
        samples=sample_grid(scores),
        depths=tuple(depth_grids(scores)),
        facets=tuple(facet_grids(scores)),
        details=detail_grid(scores),
        totals=total_grid(scores, metrics.found),
        correlations=correlations(averages),
        missing=_missing(scores),
        failures=_failures(scores),
        notes=(*scores.notes, *_differing(scores), *_unknown(metrics)),
    )


def _provenance(scores: Scores) -> tuple[Scheme, ...]:
    """Return every metric under every profile; those under `official` come first."""
    found: dict[tuple[str, str], list[Series]] = {}
    for series in scores.series:
        found.setdefault((series.profile, series.metric), []).append(series)
    schemes = []
    for profile in scores.profiles:
        for metric in sorted(name for under, name in found if under == profile):
            many = found[profile, metric]
            origins = sorted({origin for series in many for origin in scores.origins[series]})
            follows = tuple(dict.fromkeys(origin.follows for origin in origins if origin.follows))
            choices = tuple(dict.fromkeys(choice for origin in origins for choice in origin.choices))
            schemes.append(Scheme(metric, profile, follows, choices, len(many)))
    return tuple(schemes)


def _reasoning(scores: Scores) -> dict[str, dict[str, int]]:
    """Return how many predictions of each model had reasoning, by what was done with it.

    Several metrics may have read the same predictions, so for each file the highest number of any metric counts.
    """
    files: dict[tuple[str, str, str], int] = {}
    for (series, file, kind), count in scores.reasoning.items():
        key = (series.model, file, kind)
        files[key] = max(count, files.get(key, 0))
    found: dict[str, dict[str, int]] = {}
    for (model, _, kind), count in sorted(files.items()):
        of_model = found.setdefault(model, {})
        of_model[kind] = of_model.get(kind, 0) + count
    return found


def _differing(scores: Scores) -> Iterator[str]:
    """Yield a note for each metric whose scores of different models differ in profile, version or choices."""
    by_metric: dict[str, list[Series]] = {}
    for series in scores.series:
        by_metric.setdefault(series.metric, []).append(series)
    for metric, many in by_metric.items():
        under = {profile: [each.model for each in many if each.profile == profile] for profile in scores.profiles}
        there = {profile: models for profile, models in under.items() if models}
        if len(set(map(tuple, there.values()))) > 1:
            said = "; ".join(f"{profile}: {', '.join(models)}" for profile, models in there.items())
            yield f"{metric} was scored under different profiles for different models, in different tables: {said}"
        for profile in there:
            made = {each.model: tuple(sorted(scores.origins[each])) for each in many if each.profile == profile}
            if len(set(made.values())) > 1:
                said = "; ".join(f"{model}: {' and '.join(map(_said, origins))}" for model, origins in made.items())
                yield f"scores by {metric} ({profile}) were not made in the same way for all models: {said}"


def _said(origin: Origin) -> str:
    return ", ".join([*([origin.follows] if origin.follows else []), *origin.choices]) or "no choices"


def _unknown(metrics: KnownTotals) -> list[str]:
    return [f"totals of {name} are not shown: {why}" for name, why in sorted(metrics.problems.items())]


def _missing(scores: Scores) -> tuple[Missing, ...]:
    """Return the counts of every series and file with absent, failed or skipped examples."""
    every = estimates(scores.lines, ["series", "file"])
    return tuple(
        Missing(series, file.name, found)
        for (series, file), found in every.items()
        if found.counts.absent or found.counts.failed or found.counts.skipped
    )


def _failures(scores: Scores) -> tuple[tuple[Series, str, int], ...]:
    failed = scores.lines[scores.lines["status"] == FAILED]
    found = [(*key, len(at)) for key, at in grouped(failed, ["series", "failure"]).items()]
    return tuple(sorted(found, key=lambda each: -each[2]))

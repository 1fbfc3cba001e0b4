"""A report: everything that is computed from a folder of scores, before it is shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmlongbench.scoring.report.agreement import Agreement, agreement
from mmlongbench.scoring.report.averages import all_averages, average_grid, cells, dataset_grid
from mmlongbench.scoring.report.breakdowns import depth_grids, facet_grids
from mmlongbench.scoring.report.columns import Origin, Scores, Series, grouped
from mmlongbench.scoring.report.correlations import Correlations, correlations
from mmlongbench.scoring.report.details import detail_grid, total_grid
from mmlongbench.scoring.report.estimates import Estimate, plain_mean
from mmlongbench.scoring.report.grids import Grid
from mmlongbench.scoring.report.resampling import LEVEL, RESAMPLES
from mmlongbench.scoring.report.sorting import read
from mmlongbench.scoring.report.totals import KnownTotals
from mmlongbench.scoring.report.volatility import Volatility, volatilities


@dataclass(frozen=True, slots=True)
class Missing:
    """The examples of one series and file that have no prediction or no score, or that were skipped, as counts."""

    series: Series
    file: str
    found: Estimate
    """The counts, and the mean of what was not skipped where some examples were."""

    def summary(self) -> dict[str, Any]:
        """As JSON holds it."""
        others = {"mean_of_others": self.found.others} if self.found.counts.skipped else {}
        return {**self.series.summary(), "file": self.file, **asdict(self.found.counts), **others}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A metric under one profile, and where its rules come from."""

    metric: str
    profile: str
    follows: tuple[str, ...]
    """The code or paper that the rules are taken from; several where the scores were made by several versions."""
    choices: tuple[str, ...]
    """What changes the scores within the profile, of any model."""
    models: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything there is to show; scores are from 0 to 1."""

    lines: int
    models: tuple[str, ...]
    metrics: tuple[str, ...]
    datasets: tuple[str, ...]
    own_metrics: frozenset[str]
    """The metric of each dataset that is its own, or else was read first."""
    provenance: tuple[Scheme, ...]
    """Every metric under every profile that there is."""
    reasoning: Mapping[str, Mapping[str, int]]
    """By model: how many predictions had reasoning, by what became of it."""
    averages: Grid
    scores: Grid
    depths: tuple[Grid, ...]
    facets: tuple[Grid, ...]
    details: Grid
    totals: Grid
    agreement: Agreement
    correlations: Correlations
    volatilities: tuple[Volatility, ...]
    missing: tuple[Missing, ...]
    failures: tuple[tuple[Series, str, int], ...]
    """How often examples failed for each reason, the most frequent reason first."""
    notes: tuple[str, ...]
    """What a reader of all numbers must know."""

    def summary(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "lines": self.lines,
            "models": list(self.models),
            "metrics": list(self.metrics),
            "datasets": list(self.datasets),
            "profiles": [asdict(each) for each in self.provenance],
            "reasoning": {model: dict(counts) for model, counts in self.reasoning.items()},
            "resamples": RESAMPLES,
            "level": LEVEL,
            "averages": self.averages.summary(),
            "scores": self.scores.summary(),
            "depths": [grid.summary() for grid in self.depths],
            "facets": [grid.summary() for grid in self.facets],
            "details": self.details.summary(),
            "totals": self.totals.summary(),
            "agreement": _agreement(self.agreement),
            "correlations": self.correlations.summary(),
            "volatility": [{**asdict(each), "robustness": each.robustness} for each in self.volatilities],
            "missing": [each.summary() for each in self.missing],
            "failures": [{**series.summary(), "reason": why, "times": times} for series, why, times in self.failures],
            "notes": list(self.notes),
        }


def report(folder: Path, preferred: Sequence[str] = (), profile: str = "") -> Report:
    """Return the report of a folder of scores, or of those under one profile.

    `preferred` metrics enter the averages before the datasets' own.

    Raises:
        ReleaseError: the scores cannot be read, contradict each other, or were not made by a preferred metric or under
            the profile.

    """
    metrics = KnownTotals()
    scores = read(folder, metrics.has, profile)
    found = cells(scores)
    averages = all_averages(scores, found, preferred)
    return Report(
        lines=len(scores.score),
        models=scores.models,
        metrics=scores.metrics,
        datasets=scores.scored_datasets,
        own_metrics=scores.default_metrics,
        provenance=_provenance(scores),
        reasoning=_reasoning(scores),
        averages=average_grid(scores, averages),
        scores=dataset_grid(scores, found),
        depths=tuple(depth_grids(scores)),
        facets=tuple(facet_grids(scores)),
        details=detail_grid(scores),
        totals=total_grid(scores, metrics.found),
        agreement=agreement(scores),
        correlations=correlations(averages),
        volatilities=volatilities(scores),
        missing=_missing(scores),
        failures=_failures(scores),
        notes=(*scores.notes, *_differing(scores), *_unknown(metrics)),
    )


def _provenance(scores: Scores) -> tuple[Scheme, ...]:
    """Return every metric under every profile, those of the public code first."""
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
    """Return by model how many predictions had reasoning; for each file, by the metric that scored the most of them."""
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
                yield f"{metric} ({profile}) was not made alike for all models: {said}"


def _said(origin: Origin) -> str:
    return ", ".join([*([origin.follows] if origin.follows else []), *origin.choices]) or "no choices"


def _unknown(metrics: KnownTotals) -> list[str]:
    return [f"totals of {name} are not shown: {why}" for name, why in sorted(metrics.problems.items())]


def _missing(scores: Scores) -> tuple[Missing, ...]:
    """Return every series and file that has something absent, failed or skipped."""
    found = []
    everything = np.arange(len(scores.score))
    for (series, file), at in grouped(everything, scores.of_series, scores.of_file).items():
        mean = plain_mean(scores, at)
        if mean.counts.absent or mean.counts.failed or mean.counts.skipped:
            found.append(Missing(scores.series[series], scores.files[file].name, mean))
    return tuple(found)


def _failures(scores: Scores) -> tuple[tuple[Series, str, int], ...]:
    listed = ((series, reason, times) for (series, reason), times in scores.failures.items())
    return tuple(sorted(listed, key=lambda each: (-each[2], each[0], each[1])))


def _agreement(found: Agreement) -> dict[str, Any]:
    pairs = [
        {
            "metrics": list(pair.metrics),
            "examples": pair.examples,
            "tau": pair.tau,
            **({"reason": pair.reason} if pair.reason else {}),
            "scores": {model: list(both) for model, both in pair.scores.items()},
            "ranks": {model: list(both) for model, both in pair.ranks().items()},
        }
        for pair in found.pairs
    ]
    shifts = {model: asdict(each) for model, each in (found.shifts or {}).items()}
    return {"pairs": pairs, "shifts": shifts, **({"reason": found.reason} if found.reason else {})}

"""A report: everything that is computed from a folder of scores, before it is shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmlongbench.scoring.report.averages import average_grid, averages, cells, dataset_grid, sample_grid
from mmlongbench.scoring.report.breakdowns import depth_grids, detail_grid, facet_grids, total_grid
from mmlongbench.scoring.report.correlations import Correlations, correlations
from mmlongbench.scoring.report.grids import Estimate, Grid, estimates
from mmlongbench.scoring.report.reading import FAILED, SERIES, Differing, Scores, Series, grouped, read
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
        return {**self.series._asdict(), "file": self.file, **asdict(self.found.counts), **others}


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
            "models": self.models,
            "metrics": self.metrics,
            "datasets": self.datasets,
            "profiles": [asdict(each) for each in self.provenance],
            "reasoning": self.reasoning,
            "releases": self.locks,
            "different_examples": asdict(self.differing),
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
            "failures": [{**series._asdict(), "reason": why, "times": times} for series, why, times in self.failures],
            "notes": self.notes,
        }


def report(folder: Path, preferred: Sequence[str] = (), profile: str = "") -> Report:
    """Return the report of a folder of scores; if `profile` is given, only of the scores under this profile.

    If a `preferred` metric scored a dataset, averages use this metric instead of the dataset's own metric.

    Raises:
        ReleaseError: the scores cannot be read or contradict each other, a preferred metric scored nothing, or nothing
            was scored under the profile.

    """
    scores = read(folder, profile)
    found = cells(scores)
    of_profiles = averages(scores, found, preferred)
    return Report(
        lines=len(scores.lines),
        models=tuple(scores.values("model")),
        metrics=tuple(scores.values("metric")),
        datasets=tuple(scores.values("dataset")),
        own_metrics=scores.default_metrics,
        provenance=_provenance(scores),
        reasoning=scores.reasoning,
        locks=scores.locks,
        differing=scores.differing,
        averages=average_grid(scores, of_profiles),
        scores=dataset_grid(scores, found),
        samples=sample_grid(scores),
        depths=tuple(depth_grids(scores)),
        facets=tuple(facet_grids(scores)),
        details=detail_grid(scores),
        totals=total_grid(scores),
        correlations=correlations(of_profiles),
        missing=_missing(scores),
        failures=_failures(scores),
        notes=(
            *scores.notes,
            *_made_differently(scores),
            *(f"totals of {name} are not shown: {why}" for name, why in sorted(scores.totals.problems.items())),
        ),
    )


def _provenance(scores: Scores) -> tuple[Scheme, ...]:
    """Return every metric under every profile; those under `official` come first."""
    schemes = []
    for profile in scores.profiles:
        under = scores.origins[scores.origins["profile"] == profile]
        for metric, some in under.groupby("metric", observed=True):
            some = some.sort_values(["follows", "choices"])
            follows = tuple(text for text in some["follows"].unique() if text)
            choices = tuple(dict.fromkeys(choice for text in some["choices"] for choice in text.split("\n") if choice))
            schemes.append(Scheme(str(metric), profile, follows, choices, some["model"].nunique()))
    return tuple(schemes)


def _made_differently(scores: Scores) -> Iterator[str]:
    """Yield a note for each metric whose scores of different models differ in profile, version or choices."""
    for metric, of_metric in scores.origins.groupby("metric", observed=True):
        models = {
            profile: list(dict.fromkeys(some["model"]))
            for profile in scores.profiles
            if not (some := of_metric[of_metric["profile"] == profile]).empty
        }
        if len(set(map(tuple, models.values()))) > 1:
            under = "; ".join(f"{profile}: {', '.join(names)}" for profile, names in models.items())
            yield f"{metric} was scored under different profiles for different models, in different tables: {under}"
        for profile in models:
            some = of_metric[of_metric["profile"] == profile]
            rules = (some["follows"].astype(str) + "\n" + some["choices"].astype(str)).str.strip("\n")
            rules = rules.str.replace("\n", ", ").replace("", "no choices")
            by_model = rules.groupby(some["model"], observed=True).agg(" and ".join)
            if by_model.nunique() > 1:
                made = "; ".join(f"{model}: {text}" for model, text in by_model.items())
                yield f"scores by {metric} ({profile}) were not made in the same way for all models: {made}"


def _missing(scores: Scores) -> tuple[Missing, ...]:
    names = {(each.dataset, each.length): str(each.file) for each in scores.files.itertuples()}
    return tuple(
        Missing(Series(*key[:3]), names[key[3:]], found)
        for key, found in estimates(scores.lines, [*SERIES, "dataset", "length"]).items()
        if found.counts.absent or found.counts.failed or found.counts.skipped
    )


def _failures(scores: Scores) -> tuple[tuple[Series, str, int], ...]:
    failed = grouped(scores.lines[scores.lines["status"] == FAILED], [*SERIES, "failure"])
    counts = [(Series(*series), why, len(rows)) for (*series, why), rows in failed.items()]
    return tuple(sorted(counts, key=lambda count: -count[2]))

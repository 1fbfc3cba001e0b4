"""The report as one page: no network, no image files, no script; everything from data is escaped."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from html import escape

from mmlongbench.scoring.report.agreement import Agreement, Pair
from mmlongbench.scoring.report.breakdowns import EVERY, MIDDLE_LESS_ENDS
from mmlongbench.scoring.report.charts import curves
from mmlongbench.scoring.report.columns import Series
from mmlongbench.scoring.report.correlations import Correlations
from mmlongbench.scoring.report.estimates import MIN_CLUSTERS, Counts
from mmlongbench.scoring.report.grids import MEAN, Grid, length_name
from mmlongbench.scoring.report.html_tables import WHOLE, beside, correlation_table, listing, multiples, points, ramp_of
from mmlongbench.scoring.report.report import Missing, Report
from mmlongbench.scoring.report.resampling import LEVEL, RESAMPLES
from mmlongbench.scoring.report.style import STYLE
from mmlongbench.scoring.report.volatility import Volatility

HOW = (
    "Scores are from 0 to 100. Below a score stands its "
    f"{LEVEL:.0%} interval: the percentiles of {RESAMPLES:,} resamples of clusters, which are what the questions are "
    "about: documents, entities, needle pictures, classes. All questions about one of them, and all their placements, "
    "stay together; models, metrics and lengths are measured on the same resamples. A dash in place of the "
    f"interval: a score, or a part of an average, rests on fewer than {MIN_CLUSTERS} clusters, which is too few to say "
    "how far it may be off. An interval has no width where every question scored the same.",
    "An example without a prediction is absent and counts as 0. One that could not be scored has failed and is left "
    "out of the means. Where there are any, a cell has a red edge and their number. N/A: the model cannot hold some of "
    "the examples, which were skipped; the mean of the others would be that of another set, so that none is shown, and "
    "an average with such a part is N/A too. A dash: nothing was scored, or an average lacks a part, since the average "
    "of the rest would be another one.",
)


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of the page; without a body it is left out."""

    anchor: str
    name: str
    body: str
    parts: Sequence[tuple[str, str]] = ()
    """Headings below it: name and metric."""


def page(title: str, report: Report) -> str:
    """The whole page."""
    sections = [section for section in _sections(report) if section.body]
    said = "".join(f"<p>{escape(note)}</p>" for note in (*HOW, *report.notes))
    body = "".join(f'<section><h2 id="{s.anchor}">{escape(s.name)}</h2>{s.body}</section>' for s in sections)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1>{_state(report)}{_contents(sections)}{said}{body}</body></html>\n"
    )


def _state(report: Report) -> str:
    missed = sum((each.found.counts for each in report.missing), Counts())
    under = ", ".join(dict.fromkeys(each.profile for each in report.provenance))
    counts = f"{report.lines:,} scores of {len(report.models):,} models by {len(report.metrics):,} metrics ({under})"
    skipped = f", {missed.skipped:,} skipped" if missed.skipped else ""
    said = f"{missed.absent:,} absent, {missed.failed:,} failed{skipped}"
    missing = f'<p class="bad">{said}</p>' if report.missing else ""
    return (
        f"<p>{counts} on {len(report.datasets):,} datasets</p>{missing or '<p>nothing is absent, nothing failed</p>'}"
    )


def _sections(report: Report) -> list[Section]:
    models = report.models
    return [
        Section("profiles", "Profiles", _profiles(report)),
        Section("averages", "Averages", _averages(report.averages, models)),
        Section("datasets", "Datasets by length", WHOLE.key() + _each(report.scores, models)),
        Section("depth", "By depth", _depths(report.depths, models), [(g.title, g.label) for g in report.depths]),
        Section("facets", "By facet", _facets(report.facets, models), [(name, "") for name in _names(report.facets)]),
        Section("correlations", "Between datasets", _correlations(report.correlations)),
        Section("agreement", "Between metrics", _agreement(report.agreement)),
        Section("volatility", "Between subsets of the questions", _volatilities(report.volatilities)),
        Section("totals", "Figures of whole files", _totals(report.totals, models)),
        Section("missing", "Absent, failed and skipped", _missing(report)),
        Section("details", "What metrics say beside the score", _details(report.details, models)),
    ]


def _profiles(report: Report) -> str:
    """Whose rules the scores follow, and what is different between models."""
    note = (
        "<p>A profile says whose rules a score follows: official, what the public code does; paper, what a paper "
        "prints; ours, what this project does; unknown, of scores that were made before they had profiles. No table "
        "of scores has two profiles; only “Between metrics” compares them, and names the profile of each metric.</p>"
    )
    rows = (
        (each.metric, each.profile, ", ".join(each.follows), ", ".join(each.choices), each.models)
        for each in report.provenance
    )
    kinds = ("stripped", "unclosed", "kept")
    counts: list[tuple[str | int, ...]] = [
        (model, *(found.get(kind, 0) for kind in kinds)) for model, found in report.reasoning.items()
    ]
    reasoning = (
        "<h3>Reasoning in predictions</h3><p>Stripped: it is left out of what is scored. Unclosed: it was cut off, so "
        "that only what stands before it is scored. Kept: it is scored with the rest.</p>"
        + listing(["model", *kinds], counts)
    )
    schemes = listing(["metric", "profile", "follows", "choices", "models"], rows)
    return note + schemes + (reasoning if report.reasoning else "")


def _each(grid: Grid, models: Sequence[str], *, are_scores: bool = True) -> str:
    """A table for each profile, with a heading that names it."""
    return "".join(
        f"<h3>{escape(part.profile)}</h3>{beside(part, models, are_scores=are_scores)}" for part in grid.by_profile()
    )


def _averages(grid: Grid, models: Sequence[str]) -> str:
    if not grid.rows:
        return f"<p>{escape('; '.join(grid.notes)) or 'no dataset is in a category'}</p>"
    made = (
        "A category is the mean of its datasets, each entering once, those in [brackets] as one; overall is the mean "
        "of the categories. A dataset enters by the metric in parentheses."
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in (made, *grid.notes))
    lengths = [column for column in grid.columns if column != MEAN]
    drawn = ""
    for part in grid.by_profile():
        lines = curves(part, models, lengths) if len(lengths) > 1 else ""
        drawn += f"<h3>{escape(part.profile)}</h3>{lines}{WHOLE.key()}{beside(part, models)}"
    return notes + drawn


def _depths(grids: Sequence[Grid], models: Sequence[str]) -> str:
    note = (
        "<p>Where the needle stands, as asked for: 0 is the beginning of the context, 1 its end. In the last row: the "
        "mean of the middle depths less that of the first and the last; it is below 0 where models are lost in the "
        "middle. Colours go from the lowest to the highest score of a dataset.</p>"
    )
    maps = ""
    for at, grid in enumerate(grids):
        maps += _head("depth", at, grid.title, grid.label) + _maps(grid, models)
    return note + maps if maps else ""


def _facets(grids: Sequence[Grid], models: Sequence[str]) -> str:
    """A heading a facet, and below it each metric; the first of them is open."""
    note = (
        "Rows under “all datasets” pool the datasets that are in an average, or every dataset where there is no "
        "average; n counts examples."
    )
    ranked = " A number behind # is the model's place among all models." if any(grid.ranks for grid in grids) else ""
    text = f"<p>{note}{ranked}</p>" if grids else ""
    for at, name in enumerate(_names(grids)):
        text += _head("facets", at, name, "")
        for place, grid in enumerate(grid for grid in grids if grid.title == name):
            state = "" if place else " open"
            text += f"<details{state}><summary>{escape(grid.label)}</summary>{_facet(grid, models)}</details>"
    return text


def _facet(grid: Grid, models: Sequence[str]) -> str:
    """All datasets together, and each of them folded away below."""
    pooled, single = ([row for row in grid.rows if (row.of == EVERY) == is_pooled] for is_pooled in (True, False))
    shown = _maps(replace(grid, rows=tuple(pooled or single)), models)
    if pooled:
        folded = _maps(replace(grid, rows=tuple(single)), models)
        shown += f"<details><summary>{escape(grid.label)}, each dataset</summary>{folded}</details>"
    return shown


def _maps(grid: Grid, models: Sequence[str]) -> str:
    """A heat map a model, on one ramp."""
    ramp = ramp_of(grid, [row for row in grid.rows if row != MIDDLE_LESS_ENDS])
    return ramp.key() + multiples(grid, models, ramp, MIDDLE_LESS_ENDS)


def _names(grids: Sequence[Grid]) -> list[str]:
    return list(dict.fromkeys(grid.title for grid in grids))


def _totals(grid: Grid, models: Sequence[str]) -> str:
    return _each(grid, models, are_scores=False)


def _details(grid: Grid, models: Sequence[str]) -> str:
    if not grid.rows:
        return ""
    tables = "".join(f"<h3>{escape(part.profile)}</h3>{multiples(part, models)}" for part in grid.by_profile())
    return f"<p>Means over the examples that have the detail; a flag is 0 or 1.</p>{tables}"


def _correlations(found: Correlations) -> str:
    """The longest length open, the others folded away."""
    if found.reason:
        return f"<p>{escape(found.reason)}</p>"
    note = (
        "Spearman's ρ over the models: do those that are better on one dataset, or on average over a category, do "
        "better on the other? A model for which one of the two is N/A or missing is left out of the pair; the number "
        "of models stands in the title of each cell. Behind a category stands the mean of its ρ with the others, ± "
        "their standard deviation."
    )
    longest, text = list(found.longest()), f"<p>{note}</p>"
    for matrix in sorted(found.matrices, key=lambda each: (each not in longest, each.profile, -each.length)):
        head = f"{matrix.profile}, {length_name(matrix.length)}, {matrix.models:,} models"
        state = " open" if matrix in longest else ""
        text += f"<details{state}><summary>{escape(head)}</summary>{correlation_table(matrix)}</details>"
    return text


def _agreement(found: Agreement) -> str:
    if found.reason:
        return f"<p>{escape(found.reason)}</p>"
    note = (
        "Kendall's τ of the models' ranking under two metrics, or two values of a parameter, over the examples that "
        "both scored for every model; a model of which one of them scored nothing is left out of the pair. Metrics may "
        "have different profiles, which stand behind their names. Shift of a model: how far it moves when the metric "
        "is exchanged, the mean over these pairs of the difference of its scores (points) and of its ranks (places)."
    )
    models = sorted(found.shifts or {})
    heads = ["metric", "metric", "examples", "τ", *(f"{model}: scores, ranks" for model in models)]
    pairs = (
        (*pair.metrics, pair.examples, pair.reason if pair.tau is None else pair.tau, *_moved(pair, models))
        for pair in found.pairs
    )
    moves = ((model, 100 * each.score, each.rank, each.pairs) for model, each in (found.shifts or {}).items())
    return (
        f"<p>{note}</p>{listing(heads, pairs)}"
        f"<h3>Shift between metrics</h3>{listing(['model', 'points', 'places', 'pairs of metrics'], moves)}"
    )


def _volatilities(found: Sequence[Volatility]) -> str:
    if not found:
        return ""
    note = (
        "Over the T groups of all facets of a dataset: the volatility of a score (points) and of a rank (places) is "
        "its standard deviation times √T, and robustness is the volatility of the rank over the median rank. The "
        "smaller, the steadier (arXiv:2503.19120, appendix B.6)."
    )
    heads = ["dataset", "metric", "model", "T", "score", "rank", "median rank", "robustness"]
    rows = (
        (
            each.dataset,
            each.metric,
            each.model,
            each.subsets,
            100 * each.score,
            each.rank,
            each.median_rank,
            each.robustness,
        )
        for each in found
    )
    return f"<p>{note}</p>{listing(heads, rows)}"


def _moved(pair: Pair, models: Sequence[str]) -> list[str]:
    """Of each model, its scores and its ranks under the two metrics; a dash where it was not scored by both."""
    said = {
        model: f"{points(pair.scores[model][0])} → {points(pair.scores[model][1])}, {one:g} → {two:g}"
        for model, (one, two) in pair.ranks().items()
    }
    return [said.get(model, "–") for model in models]


def _missing(report: Report) -> str:
    if not report.missing:
        return ""
    rows = ((*_series(each.series), each.file, *astuple(each.found.counts), _others(each)) for each in report.missing)
    heads = ["model", "metric", "file", "examples", "absent", "failed", "skipped", "mean of what was not skipped"]
    table = listing(heads, rows)
    reasons = ((*_series(series), reason, times) for series, reason, times in report.failures)
    failed = f"<h3>Why they failed</h3>{listing(['model', 'metric', 'reason', 'times'], reasons)}"
    return table + (failed if report.failures else "")


def _others(missing: Missing) -> str:
    return "" if missing.found.others is None else points(missing.found.others)


def _series(series: Series) -> tuple[str, str]:
    return series.model, series.label


def _head(section: str, at: int, name: str, metric: str) -> str:
    small = f" <span>{escape(metric)}</span>" if metric else ""
    return f'<h3 id="{section}-{at}">{escape(name)}{small}</h3>'


def _contents(sections: Sequence[Section]) -> str:
    lines = ""
    for section in sections:
        parts = "".join(
            f'<li><a href="#{section.anchor}-{at}">{escape(name)}</a>{f" {escape(metric)}" if metric else ""}</li>'
            for at, (name, metric) in enumerate(section.parts)
        )
        inner = f"<ul>{parts}</ul>" if parts else ""
        lines += f'<li><a href="#{section.anchor}">{escape(section.name)}</a>{inner}</li>'
    return f'<nav aria-label="Contents"><ul>{lines}</ul></nav>'

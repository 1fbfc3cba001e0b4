"""Scores by depth and by every facet of the questions, and the values that metrics give beside a score.

No facet is known here by name.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from mmlongbench.scoring.report.grids import (
    ALL,
    MEAN,
    Counts,
    Estimate,
    Grid,
    Row,
    difference,
    estimates,
    length_name,
    ranks_of,
)
from mmlongbench.scoring.report.reading import SKIPPED, Scores, grouped
from mmlongbench.scoring.scores import mean_figures, profile_order

Shown: TypeAlias = dict[tuple[str, Row, str], Estimate]
"""The cells of a grid, by model, row and column."""
Of: TypeAlias = tuple[str, str, str]
"""What a grid is about: first a dataset (for depths) or a facet, then the metric, then the profile."""
EVERY = "all datasets"
"""The `Row.of` of a row whose mean is over the examples of several datasets together. These are the datasets
that are in a category, because other datasets may repeat the same questions. If no dataset is in a category, these are
all datasets."""
MIDDLE_LESS_ENDS = Row("middle − ends")
_MIDDLE = (0.3, 0.7)
"""The depths between which the middle lies; these two do not belong to it."""
_STEPS = 10
"""If there are more than `_STEPS` + 1 different depths, they are rounded to multiples of 1 / `_STEPS`."""
_CELL = ["dataset", "metric", "profile", "model", "length"]


def depth_grids(scores: Scores) -> list[Grid]:
    """Return a grid for each dataset, metric and profile.

    There is a row for each depth, and a last row: the mean over the middle depths minus the mean over the first and
    last depth. There is a column for each length, and a last column for all lengths together.
    """
    lines = scores.lines[scores.lines["depth"] > -math.inf]
    depth = lines["depth"].round(6)
    if depth.nunique() > _STEPS + 1:
        depth = (lines["depth"] * _STEPS).round() / _STEPS
    lines, by = lines.assign(depth=depth), [*_CELL[:4], "depth"]
    grids: dict[Of, Shown] = {}
    wholes: dict[Of, dict[str, dict[float, Estimate]]] = {}
    for (dataset, metric, profile, model, at), found in estimates(lines, by, scores.clusters).items():
        wholes.setdefault((dataset, metric, profile), {}).setdefault(model, {})[at] = found
    for key, by_model in wholes.items():
        cells = grids[key] = {}
        middle, ends = _parts({at for whole in by_model.values() for at in whole})
        for model, whole in by_model.items():
            cells |= {(model, Row(f"{at:g}"), ALL): found.without_draws() for at, found in whole.items()}
        for model, whole in by_model.items():
            if lost := difference([whole.get(at) for at in middle], [whole.get(at) for at in ends]):
                cells[model, MIDDLE_LESS_ENDS, ALL] = lost.without_draws()
    for (dataset, metric, profile, model, at, length), found in estimates(lines, [*by, "length"]).items():
        grids[dataset, metric, profile][model, Row(f"{at:g}"), length_name(length)] = found
    made = []
    for (dataset, metric, profile), cells in sorted(grids.items()):
        cells |= _lost_by_length(cells)
        there = {row for _, row, _ in cells}
        last = {MIDDLE_LESS_ENDS} & there
        rows = sorted(there - last, key=lambda row: float(row.name))
        made.append(Grid(dataset, (*rows, *last), _columns(scores, cells), cells, metric, profile))
    return made


def _lost_by_length(cells: Shown) -> Shown:
    """Return the cells of the row `MIDDLE_LESS_ENDS`, for each model and length.

    A cell is missing if the score at one of the depths is missing, and N/A if one of these scores is N/A.
    """
    found: Shown = {}
    middle, ends = _parts({float(row.name) for _, row, _ in cells if row != MIDDLE_LESS_ENDS})
    for model, column in sorted({(model, column) for model, _, column in cells if column != ALL}):
        there = [[cells.get((model, Row(f"{at:g}"), column)) for at in some] for some in (middle, ends)]
        parts = [part for some in there for part in some]
        if not middle or any(part is None or (part.mean is None and not part.is_inapplicable) for part in parts):
            continue
        counts = sum((part.counts for part in parts if part), Counts())
        means = [[part.mean for part in some if part and part.mean is not None] for some in there]
        one, two = (math.fsum(some) / len(some) if some else math.nan for some in means)
        found[model, MIDDLE_LESS_ENDS, column] = Estimate(None if counts.skipped else one - two, counts=counts)
    return found


def _parts(depths: Iterable[float]) -> tuple[list[float], list[float]]:
    """Return two lists: the middle depths, and the first and last depth. With fewer than three depths, the first list
    is empty.
    """
    ordered = sorted(depths)
    middle = [depth for depth in ordered if _MIDDLE[0] < depth < _MIDDLE[1]]
    return middle if len(ordered) > 2 else [], ordered[:: max(1, len(ordered) - 1)]


def facet_grids(scores: Scores) -> list[Grid]:
    """Return a grid for each facet, metric and profile; for each facet, the datasets' own metrics come first.

    There is a row for each group of each dataset, and first, if there are several datasets, one for each group of all
    datasets together. There is a column for each length, and a last column for all lengths together.
    """
    lines = scores.groups.join(scores.lines, on="line", how="inner")
    categorised = list(scores.files["dataset"][scores.files["category"] != ""])
    pooled = lines[lines["dataset"].isin(categorised)] if categorised else lines
    grids: dict[Of, Shown] = {}
    for some, of in ((lines, ["dataset"]), (pooled, [])):
        by = ["facet", "group", *of, "metric", "profile", "model"]
        for (facet, group, *dataset, metric, profile, model), found in estimates(some, by, scores.clusters).items():
            row = Row(group, dataset[0] if dataset else EVERY)
            grids.setdefault((facet, metric, profile), {})[model, row, ALL] = found.without_draws()
        for (facet, group, *dataset, metric, profile, model, length), found in estimates(some, [*by, "length"]).items():
            row = Row(group, dataset[0] if dataset else EVERY)
            grids[facet, metric, profile][model, row, length_name(length)] = found
    own = scores.default_metrics
    ordered = sorted(grids, key=lambda key: (key[0], key[1] not in own, key[1], profile_order(key[2])))
    made = []
    for key in ordered:
        facet, metric, profile = key
        is_several = len({row.of for _, row, _ in grids[key]} - {EVERY}) > 1
        cells = {at: found for at, found in grids[key].items() if is_several or at[1].of != EVERY}
        rows = sorted({row for _, row, _ in cells}, key=lambda row: (row.of != EVERY, row.of, natural(row.name)))
        made.append(Grid(facet, tuple(rows), _columns(scores, cells), cells, metric, profile, ranks_of(cells)))
    return made


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts numbers in names by value.

    >>> sorted(["10-19 pages", "2-9 pages", "unknown"], key=natural)
    ['2-9 pages', '10-19 pages', 'unknown']
    """
    parts = re.split(r"([0-9]{1,15})", name)
    return [(part[0] not in "0123456789", int(part) if part[0] in "0123456789" else 0, part) for part in parts if part]


def _columns(scores: Scores, cells: Iterable[tuple[str, Row, str]]) -> tuple[str, ...]:
    """Return the names of the lengths that have a number, and then the column of all lengths together."""
    there = {column for _, _, column in cells}
    lengths = map(length_name, sorted(scores.files["length"].unique()))
    return (*(name for name in lengths if name in there), ALL)


def detail_grid(scores: Scores) -> Grid:
    """Return a grid with the mean of every detail that is a number or a flag (0 or 1), over the lines that have it.

    If a model was not given some examples of a dataset at a length, the details of this file are N/A, like the score.
    """
    found = scores.details.join(scores.lines[_CELL], on="line", how="inner")
    skipped = scores.lines[scores.lines["status"] == SKIPPED].groupby(_CELL, observed=True).size().to_dict()
    values = found["value"].to_numpy()
    cells: dict[tuple[str, Row, int], Estimate] = {}
    for (name, *of, model, length), at in grouped(found, ["name", *_CELL]).items():
        counts = Counts(len(at), skipped=skipped.get((*of, model, length), 0))
        cells[model, Row(name, *of), length] = _figure(math.fsum(values[at]) / len(at), counts)
    return _figure_grid("Details", scores, cells)


def total_grid(scores: Scores) -> Grid:
    """Return a grid with the totals of files: figures that are not means of examples, for metrics that have totals.

    If examples have several samples, a figure is the mean over the samples (see `mean_figures`).
    """
    lines = scores.lines[scores.lines["metric"].isin([name for name, totals in scores.totals.items() if totals])]
    plain = estimates(lines, _CELL)
    cells: dict[tuple[str, Row, int], Estimate] = {}
    scored = lines[lines["score"].notna()]
    for (*of, model, length), at in grouped(scored, _CELL).items():
        totals = scores.totals[of[1]]
        figures = mean_figures(totals, [scores.kept[line] for line in scored.index[at]]) if totals else {}
        for name, value in figures.items():
            cells[model, Row(name, *of), length] = _figure(value, plain[*of, model, length].counts)
    return _figure_grid("Totals", scores, cells)


def _figure(value: float, counts: Counts) -> Estimate:
    """Return a figure; if examples were skipped, it is N/A, and the figure of the other examples is in `others`."""
    return Estimate(None, counts=counts, others=value) if counts.skipped else Estimate(value, counts=counts)


def _figure_grid(title: str, scores: Scores, cells: Mapping[tuple[str, Row, int], Estimate]) -> Grid:
    """Return a grid with a column for each length; if there are several, the last column is the mean over them.

    If a model's figure at one of the lengths is missing, there is no mean. If one of the figures is N/A, the mean is
    N/A, too.
    """
    rows = sorted({row for _, row, _ in cells}, key=lambda row: (row.of, row.metric, row.profile, row.name))
    lengths = sorted({length for _, _, length in cells})
    shown = {(model, row, length_name(length)): found for (model, row, length), found in cells.items()}
    models = scores.values("model")
    for row in rows:
        wanted = [length for length in lengths if any((model, row, length) in cells for model in models)]
        for model in models:
            parts = [part for length in wanted if (part := cells.get((model, row, length))) is not None]
            means = [part.mean for part in parts if part.mean is not None]
            if len(parts) == len(wanted) > 1:
                mean = sum(means) / len(means) if len(means) == len(wanted) else None
                shown[model, row, MEAN] = Estimate(mean, counts=sum((part.counts for part in parts), Counts()))
    names = [length_name(length) for length in lengths]
    return Grid(title, tuple(rows), (*names, MEAN) if len(names) > 1 else tuple(names), shown)

"""Breaks scores down by depth and by every facet of the lines; it knows no facet by name."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from mmlongbench.scoring.report.columns import Scores
from mmlongbench.scoring.report.estimates import Counts, Estimate, Sample, difference, estimates, samples
from mmlongbench.scoring.report.grids import ALL, Grid, Row, length_name, ranks_of
from mmlongbench.scoring.scores import profile_order
from mmlongbench.statistics import Floats

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


def depth_grids(scores: Scores) -> list[Grid]:
    """Return a grid for each dataset, metric and profile.

    There is a row for each depth, and a last row: the mean over the middle depths minus the mean over the first and
    last depth. There is a column for each length, and a last column for all lengths together.
    """
    lines = scores.lines.assign(depth=_binned(scores.lines["placement"]))
    lines = lines[lines["depth"].notna()]
    by = ["dataset", "metric", "profile", "model", "depth"]
    wholes: dict[Of, dict[tuple[str, float], Sample]] = {}
    for (*of, model, depth), sample in samples(lines, by, scores.clusters).items():
        wholes.setdefault((of[0], of[1], of[2]), {})[model, depth] = sample
    shown = {key: _whole_depths(whole) for key, whole in wholes.items()}
    for (*of, model, depth, length), found in estimates(lines, [*by, "length"]).items():
        shown[of[0], of[1], of[2]][model, Row(f"{depth:g}"), length_name(length)] = found
    return [_depth_grid(scores, *key, cells | _lost_by_length(cells)) for key, cells in sorted(shown.items())]


def _whole_depths(whole: Mapping[tuple[str, float], Sample]) -> Shown:
    """Return the cells of the column `ALL`."""
    cells = {(model, Row(f"{depth:g}"), ALL): sample.estimate() for (model, depth), sample in whole.items()}
    middle, ends = _parts({depth for _, depth in whole})
    for model in dict.fromkeys(model for model, _ in whole):
        parts = ([whole.get((model, depth)) for depth in some] for some in (middle, ends))
        if lost := difference(*parts):
            cells[model, MIDDLE_LESS_ENDS, ALL] = lost.estimate()
    return cells


def _lost_by_length(cells: Shown) -> Shown:
    """Return the cells of the row `MIDDLE_LESS_ENDS`, for each model and length.

    A cell is the mean over the middle depths minus the mean over the first and last depth. It is missing if the score
    at one of these depths is missing, and N/A if one of these scores is N/A.
    """
    found: Shown = {}
    middle, ends = _parts({float(row.name) for _, row, _ in cells if row != MIDDLE_LESS_ENDS})
    for model, column in sorted({(model, column) for model, _, column in cells if column != ALL}):
        there = [[cells.get((model, Row(f"{depth:g}"), column)) for depth in some] for some in (middle, ends)]
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


def _depth_grid(scores: Scores, dataset: str, metric: str, profile: str, cells: Shown) -> Grid:
    rows = {row for _, row, _ in cells}
    last = {MIDDLE_LESS_ENDS} & rows
    ordered = sorted(rows - last, key=lambda row: float(row.name))
    return Grid(dataset, (*ordered, *last), _columns(scores, cells), cells, metric, profile)


def _binned(placements: "pd.Series[Any]") -> Floats:
    """Return the requested depth of each line; NaN if it has none. More than 11 different depths are rounded
    to tenths.
    """
    used = placements.cat.remove_unused_categories().cat
    depths = np.array([placement.depth for placement in used.categories])
    depths[np.isinf(depths)] = np.nan
    rounded: Floats = np.round(depths, 6)
    if len(np.unique(rounded[~np.isnan(rounded)])) > _STEPS + 1:
        rounded = np.round(depths * _STEPS) / _STEPS
    return rounded[used.codes]


def facet_grids(scores: Scores) -> list[Grid]:
    """Return a grid for each facet, metric and profile; for each facet, the datasets' own metrics come first.

    There is a row for each group of each dataset. There is a column for each length, and a last column for all lengths
    together.
    """
    lines = scores.members.join(scores.lines, on="line", how="inner")
    shown: dict[Of, Shown] = {}
    _add_groups(scores, shown, lines)
    in_averages = lines["file"].isin([file for file in scores.files if file.category])
    is_any = any(file.category for file in scores.files)
    _add_groups(scores, shown, lines[in_averages | (not is_any)], EVERY)
    own = scores.default_metrics
    ordered = sorted(shown, key=lambda key: (key[0], key[1] not in own, key[1], profile_order(key[2])))
    return [_facet_grid(scores, *key, shown[key]) for key in ordered]


def _add_groups(scores: Scores, shown: dict[Of, Shown], lines: pd.DataFrame, name: str = "") -> None:
    """Add a row to `shown` for each group of each dataset.

    If `name` is given, each group gets only one row, for the lines of all datasets together, and the row's `of`
    is `name`.
    """
    by = ["group", *([] if name else ["dataset"]), "metric", "profile", "model"]
    for (group, *of, metric, profile, model), sample in samples(lines, by, scores.clusters).items():
        row = Row(group.name, name or of[0])
        shown.setdefault((group.facet, metric, profile), {})[model, row, ALL] = sample.estimate()
    for (group, *of, metric, profile, model, length), found in estimates(lines, [*by, "length"]).items():
        row = Row(group.name, name or of[0])
        shown[group.facet, metric, profile][model, row, length_name(length)] = found


def _facet_grid(scores: Scores, facet: str, metric: str, profile: str, cells: Shown) -> Grid:
    """Return the grid of a facet. The rows of `EVERY` come first; they are left out if there is only one dataset."""
    is_several = len({row.of for _, row, _ in cells} - {EVERY}) > 1
    kept = {key: found for key, found in cells.items() if is_several or key[1].of != EVERY}
    rows = sorted({row for _, row, _ in kept}, key=lambda row: (row.of != EVERY, row.of, natural(row.name)))
    return Grid(facet, tuple(rows), _columns(scores, kept), kept, metric, profile, ranks_of(kept))


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
    lengths = [name for name in map(length_name, scores.lengths) if name in there]
    return (*lengths, ALL)

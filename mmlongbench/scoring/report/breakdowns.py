"""Scores by depth and by every facet that the lines have. Knows no facet by name."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmlongbench.scoring.report.columns import Column, Floats, Ints, Scores, by_value
from mmlongbench.scoring.report.estimates import Counts, Estimate, Sample, difference, plain_mean, samples
from mmlongbench.scoring.report.grids import ALL, Grid, Row, length_name, ranks_of
from mmlongbench.scoring.scores import profile_order

Shown: TypeAlias = dict[tuple[str, Row, str], Estimate]
"""Cells of a grid: by model, row and column."""
Of: TypeAlias = tuple[str, str, str]
"""What a grid is of: a dataset or a facet, the metric and its profile."""
EVERY = "all datasets"
"""Those that are in an average, where any is: others may ask the same questions once more."""
MIDDLE_LESS_ENDS = Row("middle − ends")
_MIDDLE = (0.3, 0.7)
"""Depths that count as the middle."""
_STEPS = 10
"""Depths are rounded to so many steps where more than these were asked for."""


def depth_grids(scores: Scores) -> list[Grid]:
    """One a dataset and metric: depth by length, all lengths together, and what is lost in the middle."""
    depths = _binned(scores.depth)
    lines = np.flatnonzero(~np.isnan(depths))
    values, codes = np.unique(depths[lines], return_inverse=True)
    columns = [
        scores.dataset.at(lines),
        scores.metric.at(lines),
        scores.profile.at(lines),
        scores.model.at(lines),
        Column(values.tolist(), codes),
    ]
    wholes: dict[Of, dict[tuple[str, float], Sample]] = {}
    for (dataset, metric, profile, *key), sample in samples(scores, by_value(lines, *columns)).items():
        wholes.setdefault((dataset, metric, profile), {})[key[0], key[1]] = sample
    shown = {key: _whole_depths(whole) for key, whole in wholes.items()}
    for (*of, model, depth, length), at in by_value(lines, *columns, scores.length.at(lines)).items():
        shown[of[0], of[1], of[2]][model, Row(f"{depth:g}"), length_name(length)] = plain_mean(scores, at)
    return [_depth_grid(scores, *key, cells | _lost_by_length(cells)) for key, cells in sorted(shown.items())]


def _whole_depths(whole: Mapping[tuple[str, float], Sample]) -> Shown:
    """All lengths together."""
    cells = {(model, Row(f"{depth:g}"), ALL): sample.estimate() for (model, depth), sample in whole.items()}
    middle, ends = _parts({depth for _, depth in whole})
    for model in dict.fromkeys(model for model, _ in whole):
        parts = ([whole.get((model, depth)) for depth in some] for some in (middle, ends))
        if lost := difference(*parts):
            cells[model, MIDDLE_LESS_ENDS, ALL] = lost.estimate()
    return cells


def _lost_by_length(cells: Shown) -> Shown:
    """Return the mean of the depths in the middle less that of the first and the last, for each length.

    It is N/A where one of these depths is.
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
    """The depths in the middle, and the first and the last; no middle where there are fewer than three."""
    ordered = sorted(depths)
    middle = [depth for depth in ordered if _MIDDLE[0] < depth < _MIDDLE[1]]
    return middle if len(ordered) > 2 else [], ordered[:: max(1, len(ordered) - 1)]


def _depth_grid(scores: Scores, dataset: str, metric: str, profile: str, cells: Shown) -> Grid:
    rows = {row for _, row, _ in cells}
    last = {MIDDLE_LESS_ENDS} & rows
    ordered = sorted(rows - last, key=lambda row: float(row.name))
    return Grid(dataset, (*ordered, *last), _columns(scores, cells), cells, metric, profile)


def _binned(depths: Floats) -> Floats:
    """Depths as asked for; rounded where so many were asked for that no two examples share one."""
    rounded: Floats = np.round(depths, 6)
    there = np.unique(rounded[~np.isnan(rounded)])
    return rounded if len(there) <= _STEPS + 1 else np.round(depths * _STEPS) / _STEPS


def facet_grids(scores: Scores) -> list[Grid]:
    """One a facet and metric, the datasets' own first: dataset and group by length, and all lengths together."""
    lines = scores.members[:, 0]
    shown: dict[Of, Shown] = {}
    _add_groups(shown, scores, scores.members, scores.dataset.at(lines))
    pooled = scores.members[_in_averages(scores)[scores.of_file[lines]]]
    _add_groups(shown, scores, pooled, Column([EVERY], np.zeros(len(pooled), np.int64)))
    own = scores.default_metrics
    ordered = sorted(shown, key=lambda key: (key[0], key[1] not in own, key[1], profile_order(key[2])))
    return [_facet_grid(scores, *key, shown[key]) for key in ordered]


def _add_groups(shown: dict[Of, Shown], scores: Scores, members: Ints, dataset: Column) -> None:
    """The cells of some rows of (line, group), under the names of their datasets."""
    lines = members[:, 0]
    keys = (scores.metric.at(lines), scores.profile.at(lines), scores.model.at(lines))
    columns = [Column(scores.groups, members[:, 1]), dataset, *keys]
    for (found, name, metric, profile, model), sample in samples(scores, by_value(lines, *columns)).items():
        shown.setdefault((found.facet, metric, profile), {})[model, Row(found.name, name), ALL] = sample.estimate()
    for (found, name, metric, profile, model, length), at in by_value(lines, *columns, scores.length.at(lines)).items():
        cells = shown[found.facet, metric, profile]
        cells[model, Row(found.name, name), length_name(length)] = plain_mean(scores, at)


def _in_averages(scores: Scores) -> NDArray[np.bool_]:
    """Of each file, whether its dataset is in an average; all are where none is."""
    categories = np.array([bool(file.category) for file in scores.files])
    return categories if categories.any() else ~categories


def _facet_grid(scores: Scores, facet: str, metric: str, profile: str, cells: Shown) -> Grid:
    """All datasets together stand first, and only where there are several."""
    is_several = len({row.of for _, row, _ in cells} - {EVERY}) > 1
    kept = {key: found for key, found in cells.items() if is_several or key[1].of != EVERY}
    rows = sorted({row for _, row, _ in kept}, key=lambda row: (row.of != EVERY, row.of, natural(row.name)))
    return Grid(facet, tuple(rows), _columns(scores, kept), kept, metric, profile, ranks_of(kept))


def natural(name: str) -> list[tuple[bool, int, str]]:
    """A key that puts numbers in names in their order.

    >>> sorted(["10-19 pages", "2-9 pages", "unknown"], key=natural)
    ['2-9 pages', '10-19 pages', 'unknown']
    """
    parts = re.split(r"([0-9]{1,15})", name)
    return [(part[0] not in "0123456789", int(part) if part[0] in "0123456789" else 0, part) for part in parts if part]


def _columns(scores: Scores, cells: Iterable[tuple[str, Row, str]]) -> tuple[str, ...]:
    """The lengths that have a cell, and all of them together where there are several."""
    there = {column for _, _, column in cells}
    lengths = [name for name in map(length_name, scores.lengths) if name in there]
    return (*lengths, ALL)

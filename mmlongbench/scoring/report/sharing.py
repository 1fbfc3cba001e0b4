"""Which lines can stand side by side: of each file and metric the examples that all its models were asked."""

from array import array
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.report.columns import Ints, grouped
from mmlongbench.scoring.report.reading import Reading

V = TypeVar("V")


def shared(read: Reading) -> tuple[Reading, tuple[str, ...]]:
    """The lines without those of examples that not all models were asked, and what was left out.

    Models asked other samples of a file, or that lost outputs of one, are so compared on what they share.

    Raises:
        ReleaseError: models that share no example of a file.

    """
    rows: Ints = np.array(read.rows, np.int64).reshape(-1, 6)
    metrics: dict[str, int] = {}
    metric = np.array([metrics.setdefault(series.label, len(metrics)) for series in read.series])[rows[:, 0]]
    example = rows[:, 2] * len(read.placements) + rows[:, 3]
    keep, notes = np.ones(len(rows), np.bool_), set[str]()
    for (file, number), lines in grouped(np.arange(len(rows)), rows[:, 1], metric).items():
        asked = {one: set(example[at].tolist()) for (one,), at in grouped(lines, rows[lines, 0]).items()}
        every = set.intersection(*asked.values())
        if any(len(some) > len(every) for some in asked.values()):
            notes.add(_said(read, file, list(metrics)[number], {one: len(some) for one, some in asked.items()}, every))
            keep[lines] = np.isin(example[lines], list(every))
    return (read if keep.all() else _kept(read, rows, keep)), tuple(sorted(notes))


def _said(read: Reading, file: int, metric: str, asked: Mapping[int, int], every: set[int]) -> str:
    """That the models of a file were asked different examples; refused where they share none."""
    models, name = [series.model for series in read.series], list(read.files)[file].name
    counts = ", ".join(f"{model} {count:,}" for model, count in sorted((models[one], n) for one, n in asked.items()))
    if not every:
        raise ReleaseError(
            f"{metric}, {name}: models were asked different examples ({counts}) and share none: scores of several "
            "samples or releases are mixed; score all models on one, or report each from a folder of its own"
        )
    return f"{name}, {metric}: models were asked different examples ({counts}); here are the {len(every):,} they share"


def _kept(read: Reading, rows: Ints, keep: NDArray[np.bool_]) -> Reading:
    """Some of the lines, with the questions that these have."""
    number: Ints = np.cumsum(keep) - 1
    details = keep[_pairs(read.details)[:, 0]]
    rows = rows[keep]
    questions = []
    for file, ids in enumerate(read.questions):
        at = rows[:, 1] == file
        there, rows[at, 2] = np.unique(rows[at, 2], return_inverse=True)
        names = list(ids)
        questions.append({names[old]: new for new, old in enumerate(there.tolist())})
    return replace(
        read,
        rows=array("q", rows.reshape(-1).tobytes()),
        score=array("d", np.array(read.score)[keep].tobytes()),
        members=_renumbered(read.members, keep, number),
        details=_renumbered(read.details, keep, number),
        values=array("d", np.array(read.values)[details].tobytes()),
        questions=questions,
        kept=_moved(read.kept, keep, number),
        failures=_moved(read.failures, keep, number),
    )


def _pairs(flat: Any) -> Ints:  # noqa: ANN401  (an array)
    return np.array(flat, np.int64).reshape(-1, 2)


def _renumbered(flat: Any, keep: NDArray[np.bool_], number: Ints) -> "array[int]":  # noqa: ANN401  (an array)
    """Pairs of (line, name), of the lines that are kept."""
    pairs = _pairs(flat)
    pairs = pairs[keep[pairs[:, 0]]]
    pairs[:, 0] = number[pairs[:, 0]]
    return array("q", pairs.reshape(-1).tobytes())


def _moved(by_line: Mapping[int, V], keep: NDArray[np.bool_], number: Ints) -> dict[int, V]:
    return {number[line].item(): value for line, value in by_line.items() if keep[line]}

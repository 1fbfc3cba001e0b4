"""How far two annotators agree: Cohen's kappa with an interval over documents, and Gwet's AC1.

Most questions are retained, so kappa is low even where annotators nearly always agree; AC1 is not (ViDoRe V3 reports
such a coefficient for this reason). Both stand beside the share of equal decisions.
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mmlongbench.draws import digest
from mmlongbench.questions.question import Line
from mmlongbench.questions.reviewing.decisions import LABELS, Label

RESAMPLES = 2000
"""How often documents are drawn with replacement."""
LEVEL = 0.95
_Matrix = npt.NDArray[np.float64]


class Agreement(Line):
    """How far the first two annotators of each question agree."""

    questions: int
    """How many questions have two decisions."""
    matrix: tuple[tuple[int, ...], ...]
    """How often the first annotator said the row's label and the second the column's: Retain, Revise, Remove."""
    equal: float | None = None
    """The share of equal decisions."""
    kappa: float | None = None
    """Cohen's kappa; None if it is not defined, because everybody gave one label."""
    interval: tuple[float, float] | None = None
    """The interval of kappa that contains 95 % of resamples of documents; None if there are fewer than two."""
    ac1: float | None = None
    """Gwet's AC1."""


def agreement(pairs: Sequence[tuple[str, Label, Label]]) -> Agreement:
    """Return how far two annotators agree; each pair has a document and two labels."""
    by_document: dict[str, _Matrix] = {}
    for document, one, other in pairs:
        matrix = by_document.setdefault(document, np.zeros((3, 3)))
        matrix[LABELS.index(one), LABELS.index(other)] += 1
    if not by_document:
        return Agreement(questions=0, matrix=((0, 0, 0),) * 3)
    whole = np.sum(list(by_document.values()), axis=0)
    return Agreement(
        questions=len(pairs),
        matrix=tuple(tuple(int(count) for count in row) for row in whole),
        equal=_rounded(float(np.trace(whole) / whole.sum())),
        kappa=_rounded(kappa(whole)),
        interval=_interval(by_document),
        ac1=_rounded(ac1(whole)),
    )


def kappa(matrix: _Matrix) -> float | None:
    """Return Cohen's kappa of a matrix of counts; None if it is not defined.

    >>> round(kappa(np.array([[40, 5, 2], [6, 20, 4], [1, 3, 19.0]])), 5)
    0.67064
    """
    total = float(matrix.sum())
    expected = float(matrix.sum(axis=0) @ matrix.sum(axis=1)) / total**2 if total else 1.0
    return None if expected > 1 - 1e-12 else (float(np.trace(matrix)) / total - expected) / (1 - expected)


def ac1(matrix: _Matrix) -> float:
    """Return Gwet's AC1 of a matrix of counts.

    >>> round(ac1(np.array([[95, 2, 0], [3, 0, 0], [0, 0, 0.0]])), 5), ac1(np.diag([10.0, 0, 0]))
    (0.94875, 1.0)
    """
    total, labels = matrix.sum(), len(matrix)
    share = (matrix.sum(axis=0) + matrix.sum(axis=1)) / (2 * total)
    expected = float(share @ (1 - share)) / (labels - 1)
    return (float(np.trace(matrix)) / float(total) - expected) / (1 - expected)


def _interval(by_document: Mapping[str, _Matrix]) -> tuple[float, float] | None:
    names = sorted(by_document)
    if len(names) < 2:
        return None
    stacked, n = np.stack([by_document[name] for name in names]), len(names)
    drawn = hashlib.shake_128(digest("kappa", *names)).digest(4 * n * RESAMPLES)
    chosen = (np.frombuffer(drawn, "<u4").astype(np.uint64) * n >> np.uint64(32)).reshape(RESAMPLES, n)
    found = [value for row in chosen if (value := kappa(stacked[row].sum(axis=0))) is not None]
    if not found:
        return None
    low, high = np.quantile(found, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return round(float(low), 4), round(float(high), 4)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)

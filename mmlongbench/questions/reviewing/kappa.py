"""How far two annotators agree: Cohen's kappa with an interval over documents, and Gwet's AC1.

Most questions are retained, so kappa is low even where annotators nearly always agree; AC1 is not (ViDoRe V3 reports
such a coefficient for this reason). Both stand beside the share of equal decisions.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from mmlongbench.draws import digest
from mmlongbench.questions.question import Line
from mmlongbench.questions.reviewing.decisions import LABELS, Label
from mmlongbench.statistics import Floats, ac1, drawn_places, interval, kappa

RESAMPLES = 2000
"""How often documents are drawn with replacement."""


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
    by_document: dict[str, Floats] = {}
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


def _interval(by_document: Mapping[str, Floats]) -> tuple[float, float] | None:
    names = sorted(by_document)
    if len(names) < 2:
        return None
    stacked, n = np.stack([by_document[name] for name in names]), len(names)
    chosen = drawn_places(digest("kappa", *names), n, n * RESAMPLES).reshape(RESAMPLES, n)
    found = [value for row in chosen if (value := kappa(stacked[row].sum(axis=0))) is not None]
    if not found:
        return None
    low, high = interval(np.array(found))
    return round(low, 4), round(high, 4)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)

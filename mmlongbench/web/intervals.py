"""Intervals of an excess above chance as numbers: the positions of the lines and marks that `charts.html` draws."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from mmlongbench.web.numbers import whole_points

Look = Literal["sure", "open", "dashed"]
"""A filled mark with a thick line, an open mark, or an open mark with a dashed line; they differ without colours."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a difference of shares, on a scale from −0.5 to 1 that is the same for all."""

    WIDTH: ClassVar = 154
    HEIGHT: ClassVar = 14
    ZERO: ClassVar = 52

    low: str
    high: str
    at: str
    look: Look
    title: str


def interval(low: float, high: float, at: float, look: Look) -> Interval:
    """Return an interval with a mark at the estimate; ends beyond the scale are cut.

    >>> interval(-0.1, 0.2, 0.05, "open").low, interval(-0.1, 0.2, 0.05, "open").title
    ('42.0', '5 points, from −10 to 20')
    """
    title = f"{whole_points(at)} points, from {whole_points(low)} to {whole_points(high)}"
    return Interval(_x(low), _x(high), _x(at), look, title)


def _x(share: float) -> str:
    return f"{Interval.ZERO + 100 * min(1.0, max(-0.5, share)):.1f}"

"""How many examples of each pool and length a mix takes, as fractions: a linear program.

The first program finds the largest mix of these shares that the pools can fill. Every smaller one can be filled too, so
it decides whether the mix is possible. The second one stays as close as it can to shares that are independent of each
other: each task has the same histogram of lengths. Its costs hold a small drawn part, so its optimum is unique and does
not depend on the solver.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError
from mmlongbench.likeness import missing
from mmlongbench.manifest.mix import MixSpec
from mmlongbench.mixes.amounts import TOLERANCE, Column, Row, columns_of, rows_of
from mmlongbench.mixes.pools import Offer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
_DRAWN = 1e-3
"""The drawn part of the costs."""
_USED_UP = 1e-6
"""How close to all of its items a pool is used up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many examples of each column a mix takes."""

    columns: tuple[Column, ...]
    """What may be taken."""
    rows: tuple[Row, ...]
    """What is asked."""
    counts: tuple[float, ...]
    """The examples of each column, as fractions."""


def plan_of(spec: MixSpec, offer: Offer) -> Plan:
    """Return how many examples of each pool and length a mix takes.

    Raises:
        ReleaseError: the pools cannot fill the mix; the error says what lacks and how much there is. Or `scipy` is not
            installed.

    """
    columns = columns_of(offer)
    rows = rows_of(spec, columns)
    for row in rows:
        if not row.columns:
            raise ReleaseError(f"mix: {row}: no example can be taken; {row.share:.1%} of the {row.measure} are asked")
    if not columns:
        raise ReleaseError("mix: the release has no example that can be taken")
    program = _Program(spec.tokens, columns, rows, [len(pool.items) for pool in offer.pools])
    largest = program.largest()
    reached = float(largest.sum())
    if reached < 1 - TOLERANCE:
        raise ReleaseError(_shortage(program, largest, spec))
    even = program.closest(min(1.0, reached) * (1 - 1e-9), _even(spec, columns, offer), _drawn(spec, columns))
    counts = tuple(float(share) * spec.tokens / each.mean for share, each in zip(even, columns, strict=True))
    return Plan(tuple(columns), tuple(rows), counts)


@dataclass(frozen=True, slots=True)
class _Program:
    """The linear program of a mix. Its variables are the tokens of each column, as parts of the budget."""

    tokens: int
    columns: Sequence[Column]
    rows: Sequence[Row]
    items: Sequence[int]
    """The number of items of each pool."""

    def largest(self) -> "NDArray[np.float64]":
        """Return the columns of the largest mix that has the shares."""
        import numpy as np

        found = _solved(
            -np.ones(len(self.columns)), self._shares(), np.zeros(len(self.rows)), self._uses(), self._most()
        )
        if found is None:  # taking nothing is always possible
            raise ReleaseError("mix: no plan was found; report this, with the mix")
        return found

    def closest(self, total: float, even: "NDArray[np.float64]", drawn: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return the columns of a mix of a size that is as close as possible to `even`: tokens of datasets at lengths.

        The variables are followed by how much each dataset has too much and too little at each length.
        """
        import numpy as np

        cells = _cells(self.columns)
        n, m = len(self.columns), len(set(cells))
        of_cell = np.zeros((m, n))
        for place, cell in enumerate(cells):
            of_cell[cell, place] = 1
        off = np.hstack([of_cell, -np.eye(m), np.eye(m)])
        shares = np.hstack([self._shares(), np.zeros((len(self.rows), 2 * m))])
        whole = np.hstack([np.ones((1, n)), np.zeros((1, 2 * m))])
        uses = np.hstack([self._uses(), np.zeros((len(self.items), 2 * m))])
        costs = np.concatenate([_DRAWN * drawn, np.ones(2 * m)])
        wanted = np.concatenate([np.zeros(len(self.rows)), [total], even])
        found = _solved(costs, np.vstack([shares, whole, off]), wanted, uses, self._most())
        if found is None:
            raise ReleaseError("mix: no plan was found; report this, with the mix")
        return found[:n]

    def _shares(self) -> "NDArray[np.float64]":
        """Return a line for each row, which is 0 where the row has its share."""
        import numpy as np

        lines = np.zeros((len(self.rows), len(self.columns)))
        largest = max(each.mean for each in self.columns)
        for number, row in enumerate(self.rows):
            for place, column in enumerate(self.columns):
                weight = 1.0 if row.measure == "tokens" else largest / column.mean
                lines[number, place] = weight * ((place in row.columns) - row.share)
        return lines

    def _uses(self) -> "NDArray[np.float64]":
        """Return a line for each pool: the part of its items that the tokens of each column need."""
        import numpy as np

        lines = np.zeros((len(self.items), len(self.columns)))
        for place, column in enumerate(self.columns):
            lines[column.pool, place] = self.tokens / column.mean / self.items[column.pool]
        return lines

    def _most(self) -> "NDArray[np.float64]":
        import numpy as np

        return np.ones(len(self.items))

    def used_up(self, taken: "NDArray[np.float64]") -> list[bool]:
        """Return for each pool whether all its items are taken."""
        return [bool(used >= 1 - _USED_UP) for used in (self._uses() * taken).sum(axis=1)]


def _solved(
    costs: "NDArray[np.float64]",
    equal: "NDArray[np.float64]",
    wanted: "NDArray[np.float64]",
    uses: "NDArray[np.float64]",
    most: "NDArray[np.float64]",
) -> "NDArray[np.float64] | None":
    """Return the cheapest values that are at least 0 and meet all equations and bounds; None: there are none."""
    import numpy as np

    try:
        from scipy.optimize import linprog
    except ImportError as error:
        raise missing("scipy", "a training mix") from error
    rows = {"A_eq": equal, "b_eq": wanted} if len(equal) else {}
    found = linprog(costs, A_ub=uses, b_ub=most, **rows, method="highs")
    return np.asarray(found.x, np.float64) if found.status == 0 else None


def _cells(columns: Sequence[Column]) -> list[int]:
    """Return the number of the dataset and length of each column; pools of one dataset share it."""
    numbers: dict[tuple[str, int], int] = {}
    return [numbers.setdefault((each.way.dataset, each.way.length), len(numbers)) for each in columns]


def _even(spec: MixSpec, columns: Sequence[Column], offer: Offer) -> "NDArray[np.float64]":
    """Return the tokens of each dataset at each length, as parts of the budget, if shares were independent.

    Datasets of a task share its tokens by their numbers of items.
    """
    import numpy as np

    items, of_task = Counter[str](), Counter[str]()
    for pool in offer.pools:
        for name in {way.dataset for way in pool.ways}:
            items[name] += len(pool.items)
            of_task[offer.tasks[name]] += len(pool.items)
    shares = _parts(spec.tasks[1] if spec.tasks else of_task)
    lengths = sorted({each.way.length for each in columns})
    measure, histogram = spec.lengths or ("tokens", dict.fromkeys(lengths, 1.0))
    by_length = _parts({each: histogram[each] * (each if measure == "examples" else 1) for each in lengths})
    cells = dict.fromkeys((each.way.dataset, each.way.length) for each in columns)
    parts = [
        shares[offer.tasks[name]] * items[name] / of_task[offer.tasks[name]] * by_length[length]
        for name, length in cells
    ]
    return np.array(parts)


def _parts(amounts: Mapping[T, float]) -> dict[T, float]:
    whole = sum(amounts.values())
    return {name: amount / whole for name, amount in amounts.items()}


def _drawn(spec: MixSpec, columns: Sequence[Column]) -> "NDArray[np.float64]":
    import numpy as np

    draws = Draws((spec.seed, "mix"))
    return np.array([draws.fraction(f"cost {each.pool} {each.way.dataset} {each.way.length}") for each in columns])


def _shortage(program: _Program, largest: "NDArray[np.float64]", spec: MixSpec) -> str:
    """Return what lacks, and how much there is."""
    used_up, total = program.used_up(largest), float(largest.sum()) * spec.tokens
    lacking = [said for row in program.rows if (said := _lack(program, row, used_up, spec))]
    if not lacking:
        names = dict.fromkeys(each.way.dataset for each in program.columns if used_up[each.pool])
        lacking = [f"what ends first are the {spec.once}s of {', '.join(names)}"]
    more = ", or write 'once: example' to take a question at several lengths" if spec.once == "question" else ""
    return (
        f"mix: there is not enough: {'; '.join(lacking)}; with these shares there are {total:,.0f} tokens, and "
        f"{spec.tokens:,} are asked: ask for fewer, change the shares, or build a release with more{more}"
    )


def _lack(program: _Program, row: Row, used_up: Sequence[bool], spec: MixSpec) -> str:
    """Return what a row lacks by itself; empty if it lacks nothing."""
    largest: dict[int, float] = {}
    for place in row.columns:
        column = program.columns[place]
        largest[column.pool] = max(column.mean, largest.get(column.pool, 0))
    there = sum(program.items[pool] * mean for pool, mean in largest.items())
    items = sum(program.items[pool] for pool in largest)
    has = f"{row} has at most {there:,.0f} tokens in {items:,} {spec.once}s"
    if row.measure == "tokens":
        asked = row.share * spec.tokens
        return f"{has}, {asked:,.0f} are asked" if there < asked else ""
    return f"{has}, {row.share:.1%} of the examples are asked" if all(used_up[pool] for pool in largest) else ""

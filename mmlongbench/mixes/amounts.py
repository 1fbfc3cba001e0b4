"""How much of each task and length a mix asks for. A row is a task or a length with the share that it should have; a
column is a pool whose items are taken in one way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from mmlongbench.lengths import format_length
from mmlongbench.manifest.mix import Measure, MixSpec
from mmlongbench.mixes.pools import Offer, Way

TOLERANCE = 0.01
"""How far the tokens may be from the budget, as a part of it, and a share from what is asked, as a part of the mix."""


@dataclass(frozen=True, slots=True)
class Column:
    """Examples of one pool, taken in one way."""

    pool: int
    """The place of the pool among all pools."""
    way: Way
    """How its items are taken."""
    task: str
    """The name of the share that the dataset belongs to."""
    mean: float
    """The mean tokens of an example."""


@dataclass(frozen=True, slots=True)
class Row:
    """A share that a mix asks for."""

    kind: str
    """`task` or `length`."""
    name: str
    """The name of the task, or the length as people write it."""
    measure: Measure
    """What the share is a share of."""
    share: float
    """The share, from 0 to 1."""
    columns: tuple[int, ...]
    """The places of the columns that count for it."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def columns_of(offer: Offer) -> list[Column]:
    """Return the columns of what a release offers, pool by pool."""
    return [
        Column(place, way, offer.tasks[way.dataset], pool.mean(way))
        for place, pool in enumerate(offer.pools)
        for way in pool.ways
    ]


def rows_of(spec: MixSpec, columns: Sequence[Column]) -> list[Row]:
    """Return the shares that a mix asks for, each as a part of 1."""
    return list(chain(_task_rows(spec, columns), _length_rows(spec, columns)))


def _task_rows(spec: MixSpec, columns: Sequence[Column]) -> Iterator[Row]:
    if spec.tasks:
        measure, shares = spec.tasks
        for task, share in shares.items():
            found = tuple(place for place, each in enumerate(columns) if each.task == task)
            yield Row("task", task, measure, share / sum(shares.values()), found)


def _length_rows(spec: MixSpec, columns: Sequence[Column]) -> Iterator[Row]:
    if spec.lengths:
        measure, shares = spec.lengths
        for length, share in shares.items():
            found = tuple(place for place, each in enumerate(columns) if each.way.length == length)
            yield Row("length", format_length(length), measure, share / sum(shares.values()), found)

"""Chooses the examples of a mix: takes whole examples near the planned fractions, then exchanges examples until shares
and tokens are as close as whole examples allow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.mix import MixSpec
from mmlongbench.mixes.amounts import TOLERANCE, Column, Row
from mmlongbench.mixes.planning import Plan, plan_of
from mmlongbench.mixes.pools import Candidate, Offer, Pool, Way

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ATTEMPTS = 20
"""How many drawn orders of the examples are tried, one after the other, until one meets the mix."""
_STEPS = 500
"""The most steps of each kind towards the shares and the tokens; each one makes the mix closer."""
_GAIN = 1e-9
"""The smallest part by which a step must make the mix closer."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The examples of a mix."""

    candidates: tuple[Candidate, ...]
    """The examples, column by column."""
    columns: tuple[Column, ...]
    """What may be taken."""
    rows: tuple[Row, ...]
    """What is asked."""
    counts: tuple[int, ...]
    """The number of examples of each column."""
    tokens: tuple[int, ...]
    """The tokens of each column."""

    def reached(self, row: Row) -> float:
        """Return the share that a row has."""
        found = self.tokens if row.measure == "tokens" else self.counts
        return sum(found[place] for place in row.columns) / max(1, sum(found))


def choose(spec: MixSpec, offer: Offer) -> Chosen:
    """Return the examples of a mix, whose tokens are within 1 % of the budget, and whose shares are within 1 % of the
    mix.

    Raises:
        ReleaseError: there is not enough for it, or whole examples cannot come so close.

    """
    plan = plan_of(spec, offer)
    for attempt in range(_ATTEMPTS):
        chosen = _taken(spec, plan, [_again(pool, spec, attempt) for pool in offer.pools])
        if not list(_faults(spec, chosen)):
            return chosen
    raise _refused(spec, _taken(spec, plan, offer.pools))


def _taken(spec: MixSpec, plan: Plan, pools: Sequence[Pool]) -> Chosen:
    taking = _Taking(spec.tokens, plan, pools)
    for place, count in enumerate(plan.counts):
        for _ in range(int(count + _GAIN)):
            taking.take(place)
    taking.settle()
    return taking.chosen()


def _again(pool: Pool, spec: MixSpec, attempt: int) -> Pool:
    """Return a pool with its items in another drawn order; at the first attempt, in their own."""
    if not attempt:
        return pool
    draws = Draws((spec.seed, "mix"))
    return replace(pool, items=tuple(draws.order(f"attempt {attempt}", pool.items, _name)))


def _name(item: Mapping[Way, Candidate]) -> str:
    each = item[min(item)]
    return f"{each.dataset} {each.length} {each.id} {each.placement}"


@dataclass(frozen=True, slots=True)
class _Step:
    """An example that is given back, and one that is taken."""

    give: int | None
    """The column of the first one; None: none is given back."""
    take: int | None
    minus: int
    """The tokens of the first one."""
    plus: int


@dataclass(slots=True)
class _Taking:
    """Which items are taken. Items are taken in their drawn order, and given back in the opposite order."""

    budget: int
    plan: Plan
    pools: Sequence[Pool]
    free: list[list[int]] = field(init=False)
    """The items of each pool that are not taken, the next one last."""
    taken: list[list[int]] = field(init=False)
    """The items of each column, the last one last."""

    def __post_init__(self) -> None:
        self.free = [list(reversed(range(len(pool.items)))) for pool in self.pools]
        self.taken = [[] for _ in self.plan.columns]

    def take(self, place: int) -> None:
        free = self.free[self.plan.columns[place].pool]
        if free:
            self.taken[place].append(free.pop())

    def give_back(self, place: int) -> None:
        self.free[self.plan.columns[place].pool].append(self.taken[place].pop())

    def settle(self) -> None:
        """Make single steps until none makes the mix closer: first of whole examples, then of their sizes."""
        for _ in range(_STEPS):
            if not self._step():
                break
        for _ in range(_STEPS):
            if not self._exchange():
                break

    def tokens(self, place: int, item: int) -> int:
        column = self.plan.columns[place]
        return self.pools[column.pool].items[item][column.way].tokens

    def chosen(self) -> Chosen:
        columns = self.plan.columns
        found = tuple(
            self.pools[columns[place].pool].items[item][columns[place].way]
            for place, items in enumerate(self.taken)
            for item in sorted(items)
        )
        counts, tokens = self._sums()
        return Chosen(found, columns, self.plan.rows, tuple(counts), tuple(tokens))

    def _sums(self) -> tuple[list[int], list[int]]:
        tokens = [sum(self.tokens(place, item) for item in items) for place, items in enumerate(self.taken)]
        return [len(items) for items in self.taken], tokens

    def _step(self) -> bool:
        """Take an example, give one back, or do both, whichever makes the mix closest; return whether any does."""
        steps = list(self._steps())
        off = self._distances(steps)
        best = int(off.argmin())
        if off[best] >= off[-1] * (1 - _GAIN):
            return False
        step = steps[best]
        if step.give is not None:
            self.give_back(step.give)
        if step.take is not None:
            self.take(step.take)
        return True

    def _steps(self) -> Iterator["_Step"]:
        """Yield every possible step; the last one does nothing."""
        places = [*range(len(self.taken)), None]
        for give in (each for each in places if each is None or self.taken[each]):
            given = None if give is None else self.taken[give][-1]
            minus = 0 if give is None or given is None else self.tokens(give, given)
            for take in places:
                if take is None:
                    yield _Step(give, None, minus, 0)
                elif (item := self._next(take, give)) is not None:
                    yield _Step(give, take, minus, self.tokens(take, item))

    def _next(self, take: int, give: int | None) -> int | None:
        """Return the item that is taken for a column after one was given back for another; None: there is none left."""
        pool = self.plan.columns[take].pool
        if give is not None and self.plan.columns[give].pool == pool:
            return self.taken[give][-1]
        return self.free[pool][-1] if self.free[pool] else None

    def _distances(self, steps: "Sequence[_Step]") -> "NDArray[np.float64]":
        """Return how far the mix is from what is asked after each step: the sum of the squares of all deviations, and
        1 for each share without any example.
        """
        import numpy as np

        counts, tokens = self._sums()
        gives = np.array([len(counts) if each.give is None else each.give for each in steps])
        takes = np.array([len(counts) if each.take is None else each.take for each in steps])
        minus, plus = np.array([each.minus for each in steps]), np.array([each.plus for each in steps])
        one = np.array([*(1 for _ in counts), 0])
        all_tokens = sum(tokens) - minus + plus
        all_counts = np.maximum(sum(counts) - one[gives] + one[takes], 1)
        off = np.asarray((all_tokens / self.budget - 1) ** 2, np.float64)
        for row in self.plan.rows:
            of_row = np.zeros(len(counts) + 1)
            of_row[list(row.columns)] = 1
            held = sum(counts[place] for place in row.columns) - of_row[gives] + of_row[takes]
            off += (held == 0) * (row.share > 0)  # a small share is close to nothing, but nothing does not meet it
            if row.measure == "tokens":
                part = sum(tokens[place] for place in row.columns) - of_row[gives] * minus + of_row[takes] * plus
                off += (part / np.maximum(all_tokens, 1) - row.share) ** 2
            else:
                off += (held / all_counts - row.share) ** 2
        return off

    def _exchange(self) -> bool:
        """Exchange an example for another one of its column, if that brings the tokens closer to the
        budget.
        """
        missing = self.budget - sum(self._sums()[1])
        best = (abs(missing), -1, -1, -1)
        for place, items in enumerate(self.taken):
            free = self.free[self.plan.columns[place].pool]
            if items and free and missing:
                best = min(best, self._closest(place, missing))
        if best[1] < 0:
            return False
        _, place, item, other = best
        free = self.free[self.plan.columns[place].pool]
        self.taken[place][self.taken[place].index(item)], free[free.index(other)] = other, item
        return True

    def _closest(self, place: int, missing: int) -> tuple[int, int, int, int]:
        """Return the exchange in a column that comes closest: (distance, column, item, other item)."""
        import numpy as np

        free, items = self.free[self.plan.columns[place].pool], self.taken[place]
        sizes = np.array([self.tokens(place, item) for item in free])
        order = np.argsort(sizes, kind="stable")
        own = np.array([self.tokens(place, item) for item in items])
        at = np.searchsorted(sizes[order], own + missing)
        found = []
        for near in (np.maximum(at - 1, 0), np.minimum(at, len(free) - 1)):
            off = np.abs(own + missing - sizes[order][near])
            which = int(off.argmin())
            found.append((int(off[which]), place, items[which], free[int(order[near[which]])]))
        return min(found)


def _faults(spec: MixSpec, chosen: Chosen) -> Iterator[str]:
    """Yield in what a mix is not what is asked."""
    total = sum(chosen.tokens)
    if abs(total - spec.tokens) > TOLERANCE * spec.tokens:
        yield f"{total:,} of {spec.tokens:,} tokens"
    for row in chosen.rows:
        if row.share > 0 and not any(chosen.counts[place] for place in row.columns):
            yield f"{row}: no example, {row.share:.2%} of the {row.measure} are asked"
        elif abs(chosen.reached(row) - row.share) > TOLERANCE:
            yield f"{row}: {chosen.reached(row):.2%} of the {row.measure}, {row.share:.2%} are asked"


def _refused(spec: MixSpec, chosen: Chosen) -> ReleaseError:
    """Return the error of a mix that whole examples do not meet."""
    largest = max(each.mean for each in chosen.columns)
    smallest = min((row.share for row in chosen.rows if row.share > 0), default=1.0)
    enough = max(50, 1 / smallest) * largest
    more = f"ask for more tokens, such as {enough:,.0f}" if enough > spec.tokens else "give another 'seed'"
    off = "; ".join(_faults(spec, chosen))
    return ReleaseError(
        f"mix: no choice of whole examples was found that comes closer than this: {off}; an example has up to "
        f"{largest:,.0f} tokens, which is {largest / spec.tokens:.1%} of the mix: {more}, or other shares"
    )

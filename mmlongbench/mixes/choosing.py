"""Chooses the examples of a mix, so that its shares and tokens are what is asked.

An item is a question, or a single example if a mix may have a question several times; it is taken at most once. A
question that two datasets ask, such as with pages as images and as texts, is one item. Items that may be taken in the
same ways are a pool. A column is a pool whose items are taken in one way; a row is a task or a length, with the share
that it should have.

Two linear programs plan how many examples of each column are taken, as fractions. The first finds the largest mix of
these shares that the pools can fill. Every smaller one can be filled too, so it decides whether the mix is possible.
The second stays as close as it can to shares that are independent of each other: each task has the same histogram of
lengths. Its costs hold a small drawn part, so its optimum is unique and does not depend on the solver. Then whole
examples are taken near the planned fractions, and exchanged until shares and tokens are as close as they can be.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.lengths import format_length
from mmlongbench.likeness import missing
from mmlongbench.manifest.mix import Measure, MixSpec
from mmlongbench.release.release import Release

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
TOLERANCE = 0.01
"""How far the tokens may be from the budget, as a part of it, and a share from what is asked, as a part of the mix."""
_ATTEMPTS = 20
"""How many drawn orders of the examples are tried, one after the other, until one meets the mix."""
_STEPS = 500
"""The most steps of each kind towards the shares and the tokens; each one makes the mix closer."""
_GAIN = 1e-9
"""The smallest part by which a step must make the mix closer."""
_DRAWN = 1e-3
"""The drawn part of the costs."""
_USED_UP = 1e-6
"""How close to all of its items a pool is used up."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An example that a mix may take."""

    dataset: str
    length: int
    """The length of its file, in tokens."""
    id: str
    """The id of its question."""
    placement: float | None
    """The depth or the number of the permutation."""
    tokens: int
    """The tokens of its prompt, as the release counts them."""
    question: bytes
    """A digest that is the same for the same question, in any dataset."""

    def __str__(self) -> str:
        return f"{self.dataset} {self.length} {self.id} {self.placement}"


@dataclass(frozen=True, slots=True, order=True)
class Way:
    """A way in which an item may be taken: as a question of a dataset, at a length in tokens."""

    dataset: str
    length: int


@dataclass(frozen=True, slots=True)
class Pool:
    """Items that may be taken in the same ways."""

    ways: tuple[Way, ...]
    """The ways, in order; each item has a candidate for each."""
    items: tuple[Mapping[Way, Candidate], ...]
    """The items in a drawn order: the candidate for each way."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a release offers for a mix."""

    pools: tuple[Pool, ...]
    """What may be taken; no item is in two pools."""
    tasks: Mapping[str, str]
    """The name of the share that each dataset belongs to."""
    unanswered: int
    """The number of examples that cannot be taken because the release has no answer."""
    candidates: tuple[Candidate, ...] = ()
    """All examples that the pools were drawn from, at every placement."""

    def only(self, spec: MixSpec, is_taken: Callable[[Candidate], bool]) -> "Offer":
        """Return an offer of some of these examples. A question whose drawn placement is not among them is offered at
        another placement.
        """
        candidates = tuple(filter(is_taken, self.candidates))
        return replace(self, pools=tuple(pools_of(candidates, spec)), candidates=candidates)


def offer_of(release: Release, spec: MixSpec) -> Offer:
    """Return what a release offers for a mix.

    Raises:
        ReleaseError: a name of the mix does not exist, a dataset has two shares, a length has no example, or a file
            cannot be read.

    """
    tasks = _tasks_of(release, spec)
    there = sorted({length for dataset in tasks for length in release.lengths(dataset)})
    wanted = tuple(spec.lengths[1]) if spec.lengths else tuple(there)
    if lacking := [length for length in wanted if length not in there]:
        raise ReleaseError(
            f"mix: no dataset of the mix has examples of {format_length(lacking[0])}; {release.path.name} has "
            f"{', '.join(map(format_length, there))}"
        )
    candidates, unanswered = list[Candidate](), 0
    for dataset in tasks:
        for length in (each for each in wanted if each in release.lengths(dataset)):
            for size in release.sizes(dataset, length):
                if size.has_answer:
                    place = (dataset, length, size.id, size.placement)
                    candidates.append(Candidate(*place, size.tokens, size.question))
                else:
                    unanswered += 1
    return Offer(tuple(pools_of(candidates, spec)), tasks, unanswered, tuple(candidates))


def _tasks_of(release: Release, spec: MixSpec) -> dict[str, str]:
    """Return the name of the share that each dataset of a mix belongs to, in the order of the release."""
    # The folder of the public files of a dataset names its family.
    with_files = (name for name in release.datasets if release.lengths(name))
    folders = {name: release.file(name, release.lengths(name)[0]).name.split("/")[0] for name in with_files}
    if spec.tasks is None:
        return {name: name for name in folders}
    task_of: dict[str, str] = {}
    for task in spec.tasks[1]:
        names = [task] if task in folders else [name for name, folder in folders.items() if folder == task]
        if not names:
            known = [*dict.fromkeys(folders.values()), *folders]
            raise ReleaseError(
                f"mix: task {task!r}: {release.path.name} has no such dataset or folder; there are {', '.join(known)}"
                f"{nearest(task, known)}"
            )
        for name in names:
            if name in task_of:
                raise ReleaseError(f"mix: {name} belongs to {task_of[name]!r} and to {task!r}; leave one of them out")
            task_of[name] = task
    return {name: task_of[name] for name in folders if name in task_of}


def pools_of(candidates: Iterable[Candidate], spec: MixSpec) -> Iterator[Pool]:
    """Yield the pools of candidates. Their order has no effect."""
    draws = Draws((spec.seed, "mix"))
    placed: dict[str, dict[Way, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for each in candidates:
        alone = f" {each}" if spec.once == "example" else ""
        placed[f"{each.question.hex()}{alone}"][Way(each.dataset, each.length)].append(each)
    # Each item at a drawn placement, which does not depend on the length.
    items = {
        name: {
            way: draws.at(name).order("placement", found, lambda each: f"{each.dataset} {each.id} {each.placement}")[0]
            for way, found in ways.items()
        }
        for name, ways in placed.items()
    }
    pools: dict[tuple[Way, ...], list[Mapping[Way, Candidate]]] = defaultdict(list)
    for name in draws.order("items", items):
        pools[tuple(sorted(items[name]))].append(items[name])
    for ways in sorted(pools):
        yield Pool(ways, tuple(pools[ways]))


@dataclass(frozen=True, slots=True)
class Column:
    """Examples of one pool, taken in one way."""

    pool: int
    """The place of the pool among all pools."""
    way: Way
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


@dataclass(frozen=True, slots=True)
class Chosen:
    """The examples of a mix."""

    candidates: tuple[Candidate, ...]
    """The examples, column by column."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    """What is asked."""
    counts: tuple[int, ...]
    """The number of examples of each column."""
    tokens: tuple[int, ...]
    """The tokens of each column."""

    def reached(self, row: Row) -> float:
        """Return the share that a row has."""
        amounts = self.tokens if row.measure == "tokens" else self.counts
        return sum(amounts[place] for place in row.columns) / max(1, sum(amounts))

    def faults(self, spec: MixSpec) -> Iterator[str]:
        """Yield in what the mix is not what is asked."""
        total = sum(self.tokens)
        if abs(total - spec.tokens) > TOLERANCE * spec.tokens:
            yield f"{total:,} of {spec.tokens:,} tokens"
        for row in self.rows:
            if row.share > 0 and not any(self.counts[place] for place in row.columns):
                yield f"{row}: no example, {row.share:.2%} of the {row.measure} are asked"
            elif abs(self.reached(row) - row.share) > TOLERANCE:
                yield f"{row}: {self.reached(row):.2%} of the {row.measure}, {row.share:.2%} are asked"


def choose(spec: MixSpec, offer: Offer) -> Chosen:
    """Return the examples of a mix, whose tokens are within 1 % of the budget, and whose shares are within 1 % of the
    mix.

    Raises:
        ReleaseError: there is not enough for it, or whole examples cannot come so close. Or `scipy` is not installed.

    """
    program = _Program(spec, offer)
    plan = program.planned()
    for attempt in range(_ATTEMPTS):
        chosen = _Taking(program, plan, [_drawn_again(pool, spec, attempt) for pool in offer.pools]).settled()
        if not any(chosen.faults(spec)):
            return chosen
    chosen = _Taking(program, plan, offer.pools).settled()
    largest = max(column.mean for column in chosen.columns)
    smallest = min((row.share for row in chosen.rows if row.share > 0), default=1.0)
    enough = max(50, 1 / smallest) * largest
    more = f"ask for more tokens, such as {enough:,.0f}" if enough > spec.tokens else "give another 'seed'"
    raise ReleaseError(
        f"mix: no choice of whole examples was found that comes closer than this: {'; '.join(chosen.faults(spec))}; an "
        f"example has up to {largest:,.0f} tokens, which is {largest / spec.tokens:.1%} of the mix: {more}, or other "
        "shares"
    )


def _drawn_again(pool: Pool, spec: MixSpec, attempt: int) -> Pool:
    """Return a pool with its items in another drawn order; at the first attempt, in their own."""
    if not attempt:
        return pool
    draws = Draws((spec.seed, "mix"))
    return replace(pool, items=tuple(draws.order(f"attempt {attempt}", pool.items, lambda item: str(item[min(item)]))))


class _Program:
    """The linear program of a mix. Its variables are the tokens of each column, as parts of the budget."""

    def __init__(self, spec: MixSpec, offer: Offer) -> None:
        import numpy as np

        self.spec, self.offer = spec, offer
        self.columns = tuple(
            Column(place, way, offer.tasks[way.dataset], sum(item[way].tokens for item in pool.items) / len(pool.items))
            for place, pool in enumerate(offer.pools)
            for way in pool.ways
        )
        self.rows = tuple(self._rows())
        for row in self.rows:
            if not row.columns:
                raise ReleaseError(
                    f"mix: {row}: no example can be taken; {row.share:.1%} of the {row.measure} are asked"
                )
        if not self.columns:
            raise ReleaseError("mix: the release has no example that can be taken")
        self.items = [len(pool.items) for pool in offer.pools]
        # A line for each row, which is 0 where the row has its share; and a line for each pool: the part of its items
        # that the tokens of each column need.
        self.shares = np.zeros((len(self.rows), len(self.columns)))
        self.uses = np.zeros((len(self.items), len(self.columns)))
        largest = max(column.mean for column in self.columns)
        for place, column in enumerate(self.columns):
            self.uses[column.pool, place] = spec.tokens / column.mean / self.items[column.pool]
            for number, row in enumerate(self.rows):
                weight = 1.0 if row.measure == "tokens" else largest / column.mean
                self.shares[number, place] = weight * ((place in row.columns) - row.share)

    def _rows(self) -> Iterator[Row]:
        """Yield the shares that are asked, each as a part of 1."""
        if self.spec.tasks:
            measure, by_task = self.spec.tasks
            for task, share in _parts(by_task).items():
                places = (place for place, column in enumerate(self.columns) if column.task == task)
                yield Row("task", task, measure, share, tuple(places))
        if self.spec.lengths:
            measure, by_length = self.spec.lengths
            for length, share in _parts(by_length).items():
                places = (place for place, column in enumerate(self.columns) if column.way.length == length)
                yield Row("length", format_length(length), measure, share, tuple(places))

    def planned(self) -> tuple[float, ...]:
        """Return how many examples of each column the mix takes, as fractions; if the pools cannot fill it, the
        `ReleaseError` says what lacks and how much there is.
        """
        import numpy as np

        n, none_over = len(self.columns), np.zeros(len(self.rows))
        largest = self._solved(-np.ones(n), self.shares, none_over, self.uses)
        reached = float(largest.sum())
        if reached < 1 - TOLERANCE:
            raise ReleaseError(self._shortage(largest))
        # The variables are followed by how much each dataset has too much and too little at each length.
        cells = list(dict.fromkeys(column.way for column in self.columns))
        m = len(cells)
        of_cell = np.array([[float(column.way == cell) for column in self.columns] for cell in cells])
        equal = np.vstack(
            [
                np.hstack([self.shares, np.zeros((len(self.rows), 2 * m))]),
                np.hstack([np.ones((1, n)), np.zeros((1, 2 * m))]),
                np.hstack([of_cell, -np.eye(m), np.eye(m)]),
            ]
        )
        draws = Draws((self.spec.seed, "mix"))
        names = (f"cost {each.pool} {each.way.dataset} {each.way.length}" for each in self.columns)
        costs = np.concatenate([_DRAWN * np.array([draws.fraction(name) for name in names]), np.ones(2 * m)])
        wanted = np.concatenate([none_over, [min(1.0, reached) * (1 - 1e-9)], self._even(cells)])
        even = self._solved(costs, equal, wanted, np.hstack([self.uses, np.zeros((len(self.items), 2 * m))]))[:n]
        return tuple(
            float(part) * self.spec.tokens / column.mean for part, column in zip(even, self.columns, strict=True)
        )

    def _solved(
        self,
        costs: "NDArray[np.float64]",
        equal: "NDArray[np.float64]",
        wanted: "NDArray[np.float64]",
        uses: "NDArray[np.float64]",
    ) -> "NDArray[np.float64]":
        """Return the cheapest values that are at least 0, meet all equations, and use no pool up more than once."""
        import numpy as np

        try:
            from scipy.optimize import linprog
        except ImportError as error:
            raise missing("scipy", "a training mix") from error
        equations = {"A_eq": equal, "b_eq": wanted} if len(equal) else {}
        found = linprog(costs, A_ub=uses, b_ub=np.ones(len(self.items)), **equations, method="highs")
        if found.status:  # taking nothing is always possible
            raise ReleaseError("mix: no plan was found; report this, with the mix")
        return np.asarray(found.x, np.float64)

    def _even(self, cells: Sequence[Way]) -> "NDArray[np.float64]":
        """Return the tokens of each dataset at each length, as parts of the budget, if shares were independent.

        Datasets of a task share its tokens by their numbers of items.
        """
        import numpy as np

        items, of_task, task_of = Counter[str](), Counter[str](), self.offer.tasks
        for pool in self.offer.pools:
            for name in {way.dataset for way in pool.ways}:
                items[name] += len(pool.items)
                of_task[task_of[name]] += len(pool.items)
        shares = _parts(self.spec.tasks[1] if self.spec.tasks else of_task)
        lengths = sorted({cell.length for cell in cells})
        measure, histogram = self.spec.lengths or ("tokens", dict.fromkeys(lengths, 1.0))
        by_length = _parts({each: histogram[each] * (each if measure == "examples" else 1) for each in lengths})
        tasks = [task_of[cell.dataset] for cell in cells]
        return np.array(
            [
                shares[task] * items[cell.dataset] / of_task[task] * by_length[cell.length]
                for task, cell in zip(tasks, cells, strict=True)
            ]
        )

    def _shortage(self, largest: "NDArray[np.float64]") -> str:
        spec, total = self.spec, float(largest.sum()) * self.spec.tokens
        used_up = [bool(used >= 1 - _USED_UP) for used in (self.uses * largest).sum(axis=1)]
        lacking = []
        for row in self.rows:
            means: dict[int, float] = {}
            for column in (self.columns[place] for place in row.columns):
                means[column.pool] = max(column.mean, means.get(column.pool, 0))
            there = sum(self.items[pool] * mean for pool, mean in means.items())
            items = sum(self.items[pool] for pool in means)
            has, asked = f"{row} has at most {there:,.0f} tokens in {items:,} {spec.once}s", row.share * spec.tokens
            if row.measure == "tokens":
                lacking += [f"{has}, {asked:,.0f} are asked"] if there < asked else []
            elif all(used_up[pool] for pool in means):
                lacking.append(f"{has}, {row.share:.1%} of the examples are asked")
        if not lacking:
            names = dict.fromkeys(column.way.dataset for column in self.columns if used_up[column.pool])
            lacking = [f"what ends first are the {spec.once}s of {', '.join(names)}"]
        more = ", or write 'once: example' to take a question at several lengths" if spec.once == "question" else ""
        return (
            f"mix: there is not enough: {'; '.join(lacking)}; with these shares there are {total:,.0f} tokens, and "
            f"{spec.tokens:,} are asked: ask for fewer, change the shares, or build a release with more{more}"
        )


def _parts(amounts: Mapping[T, float]) -> dict[T, float]:
    whole = sum(amounts.values())
    return {name: amount / whole for name, amount in amounts.items()}


class _Taking:
    """Which items are taken. Items are taken in their drawn order, and given back in the opposite order."""

    def __init__(self, program: _Program, plan: Sequence[float], pools: Sequence[Pool]) -> None:
        self.budget, self.columns, self.rows, self.pools = program.spec.tokens, program.columns, program.rows, pools
        # The items of each pool that are not taken, the next one last; and those of each column, the last one last.
        self.free = [list(reversed(range(len(pool.items)))) for pool in pools]
        self.taken: list[list[int]] = [[] for _ in self.columns]
        for place, count in enumerate(plan):
            free = self.free[self.columns[place].pool]
            for _ in range(min(int(count + _GAIN), len(free))):
                self.taken[place].append(free.pop())

    def settled(self) -> Chosen:
        """Return the examples after single steps until none makes the mix closer: first of whole examples, then of
        their sizes.
        """
        for improve in (self._step, self._exchange):
            for _ in range(_STEPS):
                if not improve():
                    break
        taken = ((place, item) for place, items in enumerate(self.taken) for item in sorted(items))
        counts, tokens = self._sums()
        candidates = tuple(self._candidate(place, item) for place, item in taken)
        return Chosen(candidates, self.columns, self.rows, tuple(counts), tuple(tokens))

    def _candidate(self, place: int, item: int) -> Candidate:
        column = self.columns[place]
        return self.pools[column.pool].items[item][column.way]

    def _sums(self) -> tuple[list[int], list[int]]:
        """Return the number of examples and the tokens of each column."""
        sizes = [[self._candidate(place, item).tokens for item in items] for place, items in enumerate(self.taken)]
        return [len(each) for each in sizes], [sum(each) for each in sizes]

    def _step(self) -> bool:
        """Take an example, give one back, or do both, whichever makes the mix closest; return whether any does."""
        steps = list(self._steps())
        off = self._distances(steps)
        best = int(off.argmin())
        if off[best] >= off[-1] * (1 - _GAIN):
            return False
        give, take, *_ = steps[best]
        if give is not None:
            self.free[self.columns[give].pool].append(self.taken[give].pop())
        if take is not None:
            self.taken[take].append(self.free[self.columns[take].pool].pop())
        return True

    def _steps(self) -> Iterator[tuple[int | None, int | None, int, int]]:
        """Yield every possible step: the column of an example that is given back, that of one that is taken, or None,
        and the tokens of both. The last one does nothing.
        """
        places = [*range(len(self.columns)), None]
        for give in (place for place in places if place is None or self.taken[place]):
            minus = 0 if give is None else self._candidate(give, self.taken[give][-1]).tokens
            for take in places:
                if take is None:
                    yield give, None, minus, 0
                    continue
                pool = self.columns[take].pool
                # what was given back is the next one that its pool gives
                is_same = give is not None and self.columns[give].pool == pool
                free = self.taken[give] if give is not None and is_same else self.free[pool]
                if free:
                    yield give, take, minus, self._candidate(take, free[-1]).tokens

    def _distances(self, steps: Sequence[tuple[int | None, int | None, int, int]]) -> "NDArray[np.float64]":
        """Return how far the mix is from what is asked after each step: the sum of the squares of all deviations, and
        1 for each share without any example.
        """
        import numpy as np

        counts, tokens = self._sums()
        nothing = len(counts)
        gives = np.array([nothing if give is None else give for give, *_ in steps])
        takes = np.array([nothing if take is None else take for _, take, *_ in steps])
        minus, plus = np.array([step[2] for step in steps]), np.array([step[3] for step in steps])
        one = np.array([*(1 for _ in counts), 0])
        all_tokens = sum(tokens) - minus + plus
        all_counts = np.maximum(sum(counts) - one[gives] + one[takes], 1)
        off = np.asarray((all_tokens / self.budget - 1) ** 2, np.float64)
        for row in self.rows:
            of_row = np.zeros(nothing + 1)
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
        """Exchange an example for another one of its column, if that brings the tokens closer to the budget."""
        import numpy as np

        missing_tokens = self.budget - sum(self._sums()[1])
        best = (abs(missing_tokens), -1, -1, -1)  # distance, column, item, other item
        for place, items in enumerate(self.taken):
            free = self.free[self.columns[place].pool]
            if not (items and free and missing_tokens):
                continue
            sizes = np.array([self._candidate(place, item).tokens for item in free])
            order = np.argsort(sizes, kind="stable")
            wanted = np.array([self._candidate(place, item).tokens for item in items]) + missing_tokens
            at = np.searchsorted(sizes[order], wanted)
            for nearest_size in (np.maximum(at - 1, 0), np.minimum(at, len(free) - 1)):
                off = np.abs(wanted - sizes[order][nearest_size])
                which = int(off.argmin())
                best = min(best, (int(off[which]), place, items[which], free[int(order[nearest_size[which]])]))
        _, place, item, other = best
        if place < 0:
            return False
        free = self.free[self.columns[place].pool]
        self.taken[place][self.taken[place].index(item)], free[free.index(other)] = other, item
        return True

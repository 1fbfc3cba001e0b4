"""The one packer: required units, then the longest prefix of the take order that fits, then the closing units.

Nothing loops by guess: when the required units do not fit, the error has the numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mmlongbench.draft import Closing, Draft, Question, Unit
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, MMLongBenchError
from mmlongbench.packing.budget import TokenBudget, format_length
from mmlongbench.packing.closing import closest_sum
from mmlongbench.packing.placing import Placement, Standing, stand
from mmlongbench.packing.pricing import NOTHING, Pricer, total
from mmlongbench.prompt import Part, Prompt
from tokenization import TokenCount


class DoesNotFitError(MMLongBenchError):
    """The required units of a draft cost more than the budget."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The units of one context, chosen but not yet placed."""

    required: tuple[Unit, ...]
    taken: tuple[Unit, ...]
    """In take order."""
    questions: tuple[Question, ...]
    """Those that this context is asked."""
    ran_dry: bool = False
    """Whether the supply ended before the room did."""

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units, the required ones first."""
        return (*self.required, *self.taken)


@dataclass(frozen=True, slots=True)
class Item:
    """A unit as it stands in a prompt."""

    unit: Unit
    start: int
    """Tokens before it, by prices."""
    count: TokenCount


@dataclass(frozen=True, slots=True)
class Example:
    """One finished example: a question over its packed context."""

    id: str
    question: Question
    items: tuple[Item, ...]
    prompt: Prompt
    count: TokenCount
    """Tokens of the prompt."""
    reserve: int
    placement: Placement = None
    depths: tuple[float, ...] = ()
    """The depth asked for each needle."""
    achieved: tuple[float, ...] = ()
    """The depth each needle got."""
    ran_dry: bool = False
    """Whether all units there are stand in it, and there is still room."""

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units in prompt order."""
        return tuple(item.unit for item in self.items)


def assemble(instruction: Sequence[Part], units: Sequence[Unit], separator: str, question: Sequence[Part]) -> Prompt:
    """The prompt of an example; builders use it to rebuild one from a record."""
    between = [part for unit in units for part in (*unit.parts, separator)][:-1]
    return Prompt.of((*instruction, *between, *question))


def pack(draft: Draft, budget: TokenBudget, pricer: Pricer) -> Packed:
    """Choose the units of a draft at a length, by prices.

    Raises:
        DoesNotFitError: the frame and the required units alone are over the budget.

    """
    groups = draft.supply.groups(budget.length)
    asked = tuple(q for q in draft.questions if q.group is None or groups is None or q.group in groups)
    if not asked:
        raise DoesNotFitError(f"{draft.id}: no question of it is asked at {format_length(budget.length)}")
    separator = pricer.text(draft.separator)
    frame = max(pricer.frame(draft, question).total for question in asked)
    needed = frame - separator + sum(pricer.unit(unit).total + separator for unit in draft.required)
    if needed > budget.room:
        raise DoesNotFitError(
            f"{draft.id}: the question and its {len(draft.required)} required units need {needed} tokens, with a "
            f"reserve of {budget.reserve} that is {needed + budget.reserve - budget.length} over "
            f"{format_length(budget.length)}"
        )
    taken, ran_dry = _take(draft, budget.length, budget.room - needed, separator, pricer)
    return Packed(draft.required, taken, asked, ran_dry)


def _take(draft: Draft, length: int, room: int, separator: int, pricer: Pricer) -> tuple[tuple[Unit, ...], bool]:
    """The longest prefix of the supply that fits the room, finished as the draft says; and whether it ran dry."""
    taken: list[Unit] = []
    spare: list[Unit] = []
    seen = {unit.id for unit in draft.required}
    if len(seen) < len(draft.required):
        raise DraftError(f"{draft.id}: two required units of one id")
    ahead = draft.finish.window if draft.finish else 0
    is_open = True
    for unit in draft.supply.units(length):
        if unit.id in seen:
            raise DraftError(f"{draft.id}: two units of the id {unit.id!r}")
        seen.add(unit.id)
        cost = pricer.unit(unit).total + separator
        if is_open and cost <= room:
            taken.append(unit)
            room -= cost
            continue
        is_open = False
        spare.append(unit)
        if len(spare) >= ahead:
            break
    if draft.finish and spare:
        return _close(taken, spare, room, draft.finish, separator, pricer), False
    return tuple(taken), is_open


def _close(
    taken: list[Unit], spare: list[Unit], room: int, finish: Closing, separator: int, pricer: Pricer
) -> tuple[Unit, ...]:
    """Exchange the last units for the ones that fill the room best; fewer are given up where that fills it better."""
    spared = [pricer.unit(unit).total + separator for unit in spare]
    best, least = tuple(taken), room + 1
    for last in reversed(range(min(finish.last, len(taken)) + 1)):
        kept, given = taken[: len(taken) - last], taken[len(taken) - last :]
        choice = given + spare
        costs = [pricer.unit(unit).total + separator for unit in given] + spared
        space = room + sum(costs[:last])
        chosen = closest_sum(costs, space, finish.last)
        gap = space - sum(costs[i] for i in chosen)
        if gap < least:
            best, least = (*kept, *(choice[i] for i in chosen)), gap
        if not gap:
            break
    return best


def examples(
    draft: Draft, budget: TokenBudget, placements: Sequence[Placement], pricer: Pricer, draws: Draws
) -> list[Example]:
    """All examples of a draft at one length: packed once, stood once a placement, one example a question.

    Where sums of prices are only a plan, the whole prompt is counted, and units are given back, the last taken first,
    until every placement fits; the context only shrinks, so this ends.

    Raises:
        DoesNotFitError: the required units alone are over the budget.

    """
    packed = pack(draft, budget, pricer)
    is_exact = pricer.is_exact(draft)
    counts = {unit.id: pricer.unit(unit) for unit in packed.units}
    while True:
        made = [e for placement in placements for e in _stood(draft, packed, counts, budget, placement, pricer, draws)]
        if is_exact:
            return made
        made = [replace(example, count=pricer.whole(example.prompt)) for example in made]
        over = max(example.count.total for example in made) - budget.room
        if over <= 0:
            return made
        if not packed.taken:
            raise DoesNotFitError(f"{draft.id}: its required units are {over} tokens over when the whole is counted")
        packed = replace(packed, taken=packed.taken[:-1])


def _stood(
    draft: Draft,
    packed: Packed,
    counts: Mapping[str, TokenCount],
    budget: TokenBudget,
    placement: Placement,
    pricer: Pricer,
    draws: Draws,
) -> Iterator[Example]:
    """The examples of a context that stands at one placement; `counts` are the prices of its units."""
    separator = pricer.text(draft.separator)
    costs = [counts[unit.id].total + separator for unit in packed.units]
    standing = stand(packed.units, costs, placement, draws)
    items, context = _items(standing, counts, pricer.opening(draft).total, separator)
    for question in packed.questions:
        yield Example(
            question.id,
            question,
            items,
            assemble(draft.instruction, standing.units, draft.separator, question.parts),
            context + pricer.frame(draft, question),
            budget.reserve,
            placement,
            standing.requested,
            standing.achieved,
            packed.ran_dry,
        )


def _items(
    standing: Standing, counts: Mapping[str, TokenCount], at: int, separator: int
) -> tuple[tuple[Item, ...], TokenCount]:
    """The standing units with their start tokens, the first at `at`, and what they add to the frame."""
    items = []
    for unit in standing.units:
        count = counts[unit.id]
        items.append(Item(unit, at, count))
        at += count.total + separator
    gaps = TokenCount(separator * max(0, len(items) - 1), 0)
    return tuple(items), total([item.count for item in items]) + gaps if items else NOTHING

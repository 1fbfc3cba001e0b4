"""The packer takes the required units, then the longest prefix of the take order that fits, then the closing units.

If the required units do not fit, the error says by how many tokens.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, combinations
from typing import Any

from mmlongbench.draft import Closing, ContextDraft, Question, Unit
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, Fault, MMLongBenchError, Rejected
from mmlongbench.lengths import TokenBudget, format_length
from mmlongbench.packing.place import Haystack, Placement
from mmlongbench.packing.pricing import Pricer, RefusedImage
from mmlongbench.prompt import Image, Part, Prompt, turns_of
from tokenization import TokenCount


def closest_sum(costs: Sequence[int], room: int, most: int) -> tuple[int, ...]:
    """Return the indexes of at most `most` (1 to 3) costs whose sum is the largest that is not above the room.

    If several choices have this sum, a choice of the fewest costs is returned. If there are several such choices, the
    one with the earliest indexes is returned.

    >>> closest_sum([5, 4, 3, 2], 9, 2)
    (0, 1)
    """
    if not costs:
        return ()
    places: dict[int, list[int]] = {}
    for index, cost in enumerate(costs):
        places.setdefault(cost, []).append(index)
    values = sorted(places)
    best: tuple[int, tuple[int, ...]] = (0, ())
    for size in range(1, most + 1):
        for head in combinations(range(len(costs)), size - 1):
            given = sum([costs[i] for i in head])
            if given + values[-1] <= best[0]:
                continue
            # add the largest cost after the head that is not above the rest of the room; of equal costs, the first
            start = head[-1] + 1 if head else 0
            for at in reversed(range(bisect_right(values, room - given))):
                indexes = places[values[at]]
                if indexes[-1] >= start:
                    if given + values[at] > best[0]:
                        best = (given + values[at], (*head, indexes[bisect_left(indexes, start)]))
                        if best[0] == room:
                            return best[1]
                    break
    return best[1]


JOINTS = 2
"""Tokens kept free for each needle sentence that is put between other sentences: texts meet at a space there, so that
prices are not exact."""

RECOUNTS = 8
"""How often a context is counted as a whole at most, once one fits."""
TOO_HIGH = 16
"""Tokens by which the price of a context may still be too high after whole prompts were counted."""

_PLACINGS = 4
"""How often the needles of a conversation are placed at most."""


class DoesNotFitError(MMLongBenchError):
    """The required units of a draft cost more than the budget."""


class NothingAskedError(DoesNotFitError):
    """No question of a draft can be asked at this length, because the context shows no question's group
    (`Question.group`).
    """


@dataclass(frozen=True, slots=True)
class Packed:
    """The units of one context, chosen but not yet placed; `ran_dry`, `missing` and `left_out` are those of its
    examples.
    """

    required: tuple[Unit, ...]
    taken: tuple[Unit, ...]
    """The units beyond the required ones, in take order."""
    questions: tuple[Question, ...]
    """The questions that are asked about this context."""
    ran_dry: bool = False
    missing: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units, the required ones first."""
        return (*self.required, *self.taken)


@dataclass(frozen=True, slots=True)
class PlacedUnit:
    """A unit with its position in a prompt, and its tokens; see `PackedExample`."""

    unit: Unit
    start: int
    count: TokenCount


@dataclass(frozen=True, slots=True)
class PlacedNeedle:
    """The position of one needle."""

    unit: Unit
    requested: float
    """The depth that the placement asks for."""
    achieved: float
    """The depth that was reached: haystack tokens before the needle / haystack tokens."""
    start: int
    """Tokens of the prompt before the needle, as a sum of prices."""
    tokens: TokenCount
    """Tokens of the needle alone."""


@dataclass(frozen=True, slots=True)
class PackedExample:
    """One finished example: a question over its packed context."""

    id: str
    """The released id of the question."""
    question: Question
    """The question, with the wording that was chosen for these units."""
    units: tuple[Unit, ...]
    """The units in prompt order."""
    starts: Sequence[int]
    """For each unit, the tokens of the prompt before it, as a sum of prices."""
    counts: Sequence[TokenCount]
    """The tokens of each unit."""
    prompt: Prompt
    count: TokenCount
    """Tokens of the prompt."""
    reserve: int
    """Tokens that are kept free for the answer."""
    placement: Placement = None
    """The placement that its needles follow; None without needles."""
    needles: tuple[PlacedNeedle, ...] = ()
    """Its needles, in the order of the draft."""
    ran_dry: bool = False
    """Whether the take order was exhausted while there was still room."""
    missing: int = 0
    """About how many more units of mean size would have fitted; 0 if the take order was not exhausted."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """The number of excluded units, by reason; the next units of the take order were taken instead."""

    @property
    def items(self) -> tuple[PlacedUnit, ...]:
        """The units in prompt order, each with its position in tokens."""
        return tuple(map(PlacedUnit, self.units, self.starts, self.counts))

    @property
    def row(self) -> Any:  # noqa: ANN401  (of the class that its task declares)
        """The row that is asked about, in a `Task`."""
        return self.question.data["row"]


def assemble(
    instruction: Sequence[Part],
    units: Sequence[Unit],
    separator: str,
    question: Sequence[Part],
    *,
    in_turns: bool = False,
) -> Prompt:
    """Return the prompt of an example; builders use it to rebuild the prompt from a record."""
    shown = [turns_of(unit.shown) if in_turns else unit.shown for unit in units]
    return Prompt.of_units(instruction, shown, separator, question)


def pack(draft: ContextDraft, budget: TokenBudget, pricer: Pricer, slack: int = 0) -> Packed:
    """Choose the units of a draft for a length, by the prices of the units; `slack` tokens of the budget are kept free.

    Raises:
        DoesNotFitError: the instruction, the question and the required units alone are over the budget, or have more
            images than the counted model takes.
        RefusedImage: one of their images is refused by that model.
        Rejected: the context shows none of `ContextDraft.one_of`.

    """
    groups = draft.take_order.groups(budget.length)
    asked = tuple(q for q in draft.questions if q.group is None or groups is None or q.group in groups)
    length = format_length(budget.length)
    if not asked:
        raise NothingAskedError(f"{draft.id}: no question of it is asked at {length}")
    separator = pricer.text(draft.separator)
    frame = max(pricer.reserved_frame(draft, question).total for question in asked)
    costs = [pricer.cost(unit, 0 if unit.between_sentences else separator) for unit in draft.required]
    needed = frame - (0 if draft.in_turns else separator) + sum(costs) + slack
    if needed > budget.room:
        raise DoesNotFitError(
            f"{draft.id}: the question and its {len(draft.required)} required units need {needed} tokens, with a "
            f"reserve of {budget.reserve} that is {needed + budget.reserve - budget.length} over {length}"
        )
    room, most = budget.room - needed, pricer.counter.max_images
    if most is not None:
        most -= sum(isinstance(part, Image) for part in draft.instruction)
        most -= sum(len(unit.images) for unit in draft.required)
        most -= max(sum(isinstance(part, Image) for part in question.parts) for question in asked)
        if most < 0:
            raise DoesNotFitError(f"{draft.id}: its required units have {-most} images more than the model takes")
    taken, ran_dry, left_out = _take(draft, budget.length, room, separator, pricer, most)
    if groups and (unshown := sorted(groups - {unit.group for unit in taken})):
        if ran_dry and left_out:
            said = ", ".join(f"{count} × {reason}" for reason, count in left_out.items())
            raise DoesNotFitError(
                f"{draft.id}: the sources end before each of the {len(groups)} groups is shown once: {said}"
            )
        raise DoesNotFitError(
            f"{draft.id}: {length} has room for {len(groups) - len(unshown)} of the {len(groups)} groups it must show, "
            f"not for {unshown[0]!r}; shrink the pictures (pictures.longest_side), or build a longer length"
        )
    wanted = {unit.id for unit in draft.one_of or ()}
    if wanted and wanted.isdisjoint(unit.id for unit in (*draft.required, *taken)):
        expected, todo = f"one of {len(wanted)} units in the context", "require one of them, or take it earlier"
        raise Rejected(Fault("not-shown", expected, "none of them", todo=todo))
    missing = 0
    if ran_dry and (spent := sum(pricer.cost(unit, separator) for unit in taken)):  # with some tokenizers, 0
        missing = (room - spent) * len(taken) // spent  # units of the mean cost
    return Packed(draft.required, taken, asked, ran_dry, missing, left_out)


def _take(
    draft: ContextDraft, length: int, room: int, separator: int, pricer: Pricer, most: int | None
) -> tuple[tuple[Unit, ...], bool, Mapping[str, int]]:
    """Return the units taken, whether the take order was exhausted, and the number of excluded units by reason.

    The units are the longest prefix of the take order that fits; then the closing units are exchanged. A unit whose
    image the counted model refuses is left out. The order ends where its units have more than `most` images.
    """
    taken: list[Unit] = []
    spare: list[Unit] = []
    left_out: Counter[str] = Counter()
    seen = {unit.id for unit in draft.required}
    if len(seen) < len(draft.required):
        raise DraftError(f"{draft.id}: two required units of one id")
    ahead = draft.closing.window if draft.closing else 0
    is_open = True
    for number, unit in enumerate(draft.take_order.units(length)):
        if unit.id in seen:
            pictures = ""
            if isinstance(unit.body, Image):
                pictures = (
                    "; two files of the folder may be the same picture: leave one out, or give the units ids of their "
                    "own and set `repeats_pictures = True`"
                )
            raise DraftError(f"{draft.id}: two units of the id {unit.id!r}{pictures}")
        seen.add(unit.id)
        reason = unit.excluded
        if draft.left_out:  # a broken picture counts as one wherever it is shown, also where it repeats
            reason = next((draft.left_out[path] for path in unit.images if path in draft.left_out), reason)
        if reason:
            left_out[reason] += is_open
            continue
        if unit.place is None or not unit.role:
            place = (number,) if unit.place is None else unit.place
            unit = replace(unit, place=place, role=unit.role or "padding")
        try:
            cost = pricer.cost(unit, separator)
        except RefusedImage:
            left_out["an image that the counted model refuses"] += is_open
            continue
        if most is not None:
            most -= len(unit.images)
            if most < 0:
                left_out["a unit with more images than the counted model takes"] += is_open
                break
        if is_open and cost <= room:
            taken.append(unit)
            room -= cost
        elif not unit.is_optional:
            is_open = False
            spare.append(unit)
            if len(spare) >= ahead:
                break
    counted = {reason: count for reason, count in sorted(left_out.items()) if count}
    if draft.closing and spare:
        return _close(taken, spare, room, draft.closing, separator, pricer), False, counted
    return tuple(taken), is_open, counted


def _close(
    taken: list[Unit], spare: list[Unit], room: int, closing: Closing, separator: int, pricer: Pricer
) -> tuple[Unit, ...]:
    """Exchange the last units taken, up to `closing.last` of them, for the units that fill the room best."""
    spared = [pricer.cost(unit, separator) for unit in spare]
    best, least = tuple(taken), room + 1
    givable = [number for number, unit in enumerate(taken) if not unit.is_optional][-closing.last :]
    for last in reversed(range(len(givable) + 1)):
        gone = set(givable[len(givable) - last :])
        kept = [unit for number, unit in enumerate(taken) if number not in gone]
        given = [taken[number] for number in sorted(gone)]
        choice = given + spare
        costs = [pricer.cost(unit, separator) for unit in given] + spared
        space = room + sum(costs[:last])
        chosen = closest_sum(costs, space, closing.last)
        gap = space - sum(costs[i] for i in chosen)
        if gap < least:
            best, least = (*kept, *(choice[i] for i in chosen)), gap
        if not gap:
            break
    return best


def examples(
    draft: ContextDraft, budget: TokenBudget, placements: Sequence[Placement], pricer: Pricer, draws: Draws
) -> list[PackedExample]:
    """Return all examples of a draft at one length. The context is packed, and its units are then placed anew for each
    placement. Each placement has one example for each question.

    Raises:
        DoesNotFitError: the required units alone are over the budget, or all units in the form that is shown.
        Rejected: the context shows none of `ContextDraft.one_of`.

    """
    choose = _with_exact_prices if pricer.counter.additive else _with_estimated_prices
    packed, fitted = choose(draft, budget, placements, pricer, draws)
    if not (rendering := draft.rendered_as_text):
        return fitted
    required, taken = (tuple(map(rendering.unit, units)) for units in (packed.required, packed.taken))
    packed, shown = replace(packed, required=required, taken=taken), replace(draft, instruction=rendering.instruction)
    fitted = _everywhere(shown, packed, budget, placements, pricer, draws)
    over = _costliest(fitted) - budget.room
    if over > 0:  # no unit is left out to make room for another form
        raise DoesNotFitError(f"{draft.id}: retold, its {len(packed.units)} units are {over} tokens over the budget")
    return fitted


def _with_exact_prices(
    draft: ContextDraft, budget: TokenBudget, placements: Sequence[Placement], pricer: Pricer, draws: Draws
) -> tuple[Packed, list[PackedExample]]:
    """Return the context that fits, and its examples. Only in a conversation, and where a needle sentence meets other
    text at a space, a whole prompt may cost more than the sum of prices; then fewer tokens are packed.
    """
    slack = JOINTS * sum(unit.between_sentences for unit in draft.required)
    while True:
        packed = pack(draft, budget, pricer, slack)
        if draft.rendered_as_text:  # shown, and counted, in another form
            return packed, []
        fitted = _everywhere(draft, packed, budget, placements, pricer, draws)
        if (over := _costliest(fitted) - budget.room) <= 0:
            return packed, fitted
        slack += over


def _with_estimated_prices(
    draft: ContextDraft, budget: TokenBudget, placements: Sequence[Placement], pricer: Pricer, draws: Draws
) -> tuple[Packed, list[PackedExample]]:
    """Return the fullest context that fits, and its examples. Whole prompts are counted: if one is over the budget, the
    context is packed again with fewer tokens, and if one leaves room, with more.
    """
    best, fitted, fullest, enough = None, list[PackedExample](), 0, 0
    least_over = budget.room + budget.length  # the price of the cheapest context that is over the budget
    points: list[tuple[int, int]] = []  # of each context: its price, and the tokens of its costliest prompt
    allowed = budget.room - JOINTS * sum(unit.between_sentences for unit in draft.required)
    while best is None or allowed > enough:
        try:
            packed = pack(draft, budget, pricer, budget.room - allowed)
        except (DoesNotFitError, Rejected):
            if best is None:
                raise
            break
        if best and packed.units == best.units:
            best = packed
            break
        made = _everywhere(draft, packed, budget, placements, pricer, draws)
        whole = _costliest(made)
        if fullest < whole <= budget.room:
            best, fitted, fullest, enough = packed, made, whole, allowed + budget.length // 1000
        if best and (packed.ran_dry or len(points) >= RECOUNTS):
            break
        points.append((_price(draft, packed, pricer), whole))
        if whole > budget.room:
            least_over = min(least_over, points[-1][0])
        allowed = min(_price_that_fills(points, budget.room), least_over - 1)
    # Prices can be a few tokens too high, and a large unit more may then fit.
    allowed = min(allowed + TOO_HIGH, least_over - 1)
    for _ in range(RECOUNTS if not best.ran_dry and fullest < budget.room - budget.length // 200 else 0):
        try:
            packed = pack(draft, budget, pricer, budget.room - allowed)
        except (DoesNotFitError, Rejected):
            break
        if packed.units == best.units:
            break
        made = _everywhere(draft, packed, budget, placements, pricer, draws)
        if (whole := _costliest(made)) <= budget.room:
            return (packed, made) if whole > fullest else (best, fitted)
        allowed = _price(draft, packed, pricer) - 1
    return best, fitted


def _costliest(made: Sequence[PackedExample]) -> int:
    return max(example.count.total for example in made)


def _price(draft: ContextDraft, packed: Packed, pricer: Pricer) -> int:
    """Return the tokens of a context by the prices that `pack` goes by."""
    separator = pricer.text(draft.separator)
    frame = max(pricer.reserved_frame(draft, question).total for question in packed.questions)
    costs = (pricer.cost(unit, 0 if unit.between_sentences else separator) for unit in packed.units)
    return frame - (0 if draft.in_turns else separator) + sum(costs)


def _price_that_fills(points: Sequence[tuple[int, int]], room: int) -> int:
    """Return the price of the context whose costliest prompt fills the room, as the last two contexts let expect. Of
    one context it is known only by how much its price is wrong.
    """
    (price, whole), (before, counted) = points[-1], points[-2] if len(points) > 1 else (0, 0)
    if (price - before) * (whole - counted) <= 0 or len(points) == 1:
        return price + room - whole
    return price + (room - whole) * (price - before) // (whole - counted)


def _everywhere(
    draft: ContextDraft,
    packed: Packed,
    budget: TokenBudget,
    placements: Sequence[Placement],
    pricer: Pricer,
    draws: Draws,
) -> list[PackedExample]:
    """Return the examples of a context at all placements, each counted as a whole unless prices are exact."""
    if not draft.in_turns and (spoken := next((unit.id for unit in packed.units if unit.turns), None)):
        raise DraftError(f"{draft.id}: unit {spoken!r} has turns; a task with such units sets `in_turns = True`")

    def known(units: Sequence[Unit]) -> dict[str, tuple[TokenCount, tuple[Part, ...]]]:
        parts = (unit.parts if unit.images else (unit.text,) for unit in units)
        return {unit.id: (pricer.unit(unit), (*part, draft.separator)) for unit, part in zip(units, parts, strict=True)}

    priced = known(packed.units)
    separator = 0 if draft.in_turns else pricer.text(draft.separator)
    hay = Haystack(packed.units, [count.total + separator for count, _ in priced.values()], pricer.text)
    made = list[PackedExample]()
    for placement in placements:
        placed = hay.placed(placement, draws)
        hosts = known([unit for unit in placed[0] if unit.needles])
        made += _placed(draft, packed, {**priced, **hosts}, placed, budget, placement, pricer, draws)
    if draft.in_turns or not pricer.is_exact(draft):
        made = [replace(example, count=pricer.whole(example.prompt)) for example in made]
    return made


def _placed(
    draft: ContextDraft,
    packed: Packed,
    priced: Mapping[str, tuple[TokenCount, tuple[Part, ...]]],
    placed: tuple[Sequence[Unit], Sequence[float], Sequence[float]],
    budget: TokenBudget,
    placement: Placement,
    pricer: Pricer,
    draws: Draws,
) -> Iterator[PackedExample]:
    """Yield the examples of a context at one placement, where its units are `placed`; `priced` has the tokens of each
    unit, and its parts with a separator after them.
    """
    units, requested, achieved = placed
    before: tuple[Part, ...] = ()
    if draft.in_turns:
        # What a unit costs depends on the turns beside it, so needles are placed until costs and places agree.
        costs = {unit.id: priced[unit.id][0].total for unit in packed.units}
        for _ in range(_PLACINGS):
            starts, counts = _in_turns(draft, units, pricer)
            found = zip(units, counts, strict=True)
            alone = {unit.id: count.total for unit, count in found if unit.place is not None and not unit.needles}
            if all(costs[id] == cost for id, cost in alone.items()):
                break
            costs |= alone
            hay = Haystack(packed.units, [*costs.values()], pricer.text)
            units, requested, achieved = hay.placed(placement, draws)
        else:
            starts, counts = _in_turns(draft, units, pricer)
        context = sum(counts, TokenCount(0, 0))
    else:
        separator, shown = pricer.text(draft.separator), [priced[unit.id] for unit in units]
        counts = [count for count, _ in shown]
        spent = [count.text + count.image + separator for count in counts]
        starts = [*accumulate(spent[:-1], initial=pricer.opening(draft).total)][: len(units)]
        images = sum([count.image for count in counts])
        context = TokenCount(sum(spent) - images - (separator if units else 0), images)
        between = [*chain.from_iterable([parts for _, parts in shown])][:-1]
        before = (*draft.instruction, *between)
        if len(packed.questions) > 1:  # they share it
            before = Prompt.of(before).parts
    starts_of = {}
    for unit, start in zip(units, starts, strict=True):
        if unit.place is None:
            starts_of[unit.id] = start
        text, at = unit.text if unit.needles else "", 0
        for needle in unit.needles:  # in reading order; two may be the same sentence
            at = text.index(str(needle.body), at)
            starts_of[needle.id] = start + (pricer.text(text[:at].rstrip(" ")) if at else 0)
            at += len(str(needle.body))
    without_place = (unit for unit in packed.units if unit.place is None)
    needles = tuple(
        PlacedNeedle(unit, wanted, reached, starts_of[unit.id], priced[unit.id][0])
        for unit, wanted, reached in zip(without_place, requested, achieved, strict=bool(requested))
    )
    for asked in packed.questions:
        question = asked
        if asked.wording is not None:
            texts, chosen = asked.wording.texts, asked.wording.choose(units)
            if not 0 <= chosen < len(texts):
                raise DraftError(
                    f"{draft.id}: the wording of question {asked.id!r} chose text {chosen} of {len(texts)}; "
                    "`choose` returns an index of `texts`"
                )
            question = asked.worded(texts[chosen])
        if draft.in_turns:
            prompt = assemble(draft.instruction, units, draft.separator, question.parts, in_turns=True)
        else:
            prompt = Prompt.of((*before, *question.parts))
        yield PackedExample(
            question.id,
            question,
            tuple(units),
            starts,
            counts,
            prompt,
            context + pricer.frame(draft, question),
            budget.reserve,
            placement,
            needles,
            packed.ran_dry,
            packed.missing,
            packed.left_out,
        )


def _in_turns(draft: ContextDraft, units: Sequence[Unit], pricer: Pricer) -> tuple[list[int], list[TokenCount]]:
    """Return the starts and tokens of the units of a conversation, as a recount of its turns finds them. A unit ends
    where the next one begins, so a separator between two units of one turn belongs to the first of them.
    """
    role, text, is_opening = "user", Prompt.of(draft.instruction).text, True
    before = sum(pricer.part(part).image for part in draft.instruction)
    starts: list[int] = []
    for unit in units:
        for number, turn in enumerate(turns_of(unit.shown)):
            if turn.role != role:
                before += pricer.turn(text)
                role, text = turn.role, ""
            elif not is_opening:
                text += draft.separator
            is_opening = False
            if not number:
                starts.append(before + pricer.turn(text))
            text += "".join(part for part in turn.parts if isinstance(part, str))
            before += sum(pricer.part(part).image for part in turn.parts if isinstance(part, Image))
    ends = [*starts, before + pricer.turn(text)][1:]
    images = (pricer.unit(unit).image for unit in units)
    spans = zip(starts, ends, images, strict=True)
    return starts, [TokenCount(end - start - image, image) for start, end, image in spans]

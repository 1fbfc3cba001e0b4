"""Needles among drawn units: alone or between sentences, at depths or in permutations; and excluded units."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mmlongbench.task as mt
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import DoesNotFitError, closest_sum, examples, pack
from mmlongbench.packing.place import Placement
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

seeds = st.integers(0, 10_000)
lengths = st.integers(2, 24).map(lambda n: n * K)
relaxed = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
WORDS = ("heron", "lantern", "the", "of", "crosses", "quiet", "harbour", "before", "seven", "bells", "and", "drifts")
DEPTHS = tuple(mt.Depth(value) for value in mt.DEPTHS)


def sentence(draws: mt.Draws, name: str) -> str:
    words = [draws.choice(f"{name} {n}", WORDS) for n in range(draws.integer(name, 4, 14))]
    return " ".join(words).capitalize() + "."


def haystack(draws: mt.Draws, count: int = 260) -> list[mt.Unit]:
    """Passages of one to six sentences, every fifth or so a picture."""
    units = []
    for n in range(count):
        if draws.integer(f"kind {n}", 0, 4) == 0:
            units.append(mt.Unit(f"u{n}", mt.Image(f"u{n}.jpg"), (n,), "own", is_optional=True))
        else:
            parts = [sentence(draws, f"{n} {k}") for k in range(draws.integer(f"parts {n}", 1, 6))]
            units.append(mt.Unit(f"u{n}", " ".join(parts), (n,), "own"))
    return units


def sizes(draws: mt.Draws, units: list[mt.Unit]) -> dict[str, tuple[int, int]]:
    paths = [unit.body.path for unit in units if isinstance(unit.body, mt.Image)]
    return {path: (draws.integer(f"w {path}", 30, 700), draws.integer(f"h {path}", 30, 700)) for path in paths}


def draft_of(seed: int, needles: int, *, inside: bool) -> tuple[mt.advanced.ContextDraft, Pricer, mt.Draws]:
    draws = mt.Draws((seed, "needles"))
    units = haystack(draws)
    hidden = tuple(
        mt.Unit(f"needle{n}", f"The secret number {n} is {n}{n}{n}.", None, "needle", between_sentences=inside)
        for n in range(needles)
    )
    pricer = Pricer(CrossModalCounter(load_tokenizer("llama2"), PatchRule()), sizes(draws, units))
    question = mt.advanced.Question("q", ("\n\nQuestion: which?\nAnswer:",))
    draft = mt.advanced.ContextDraft(
        hidden,
        mt.InOrder(tuple(units)),
        id="q",
        instruction=("Read.\n\n",),
        questions=(question,),
        closing=mt.Closing(),
    )
    return draft, pricer, draws


def places(needles: int) -> tuple[Placement, ...]:
    return DEPTHS if needles == 1 else tuple(map(mt.Permutation, range(3)))


@relaxed
@given(seed=seeds, length=lengths, needles=st.integers(1, 5), inside=st.booleans())
def test_every_needle_once_the_filler_in_its_order_the_budget_kept(
    seed: int, length: int, needles: int, inside: bool
) -> None:
    draft, pricer, draws = draft_of(seed, needles, inside=inside)
    made = examples(draft, TokenBudget(length, 256), places(needles), pricer, draws)
    filler = [[u.id for u in example.units if u.place is not None] for example in made]
    assert all(order == filler[0] for order in filler)
    for example in made:
        assert pricer.whole(example.prompt) == example.count
        assert example.count.total + 256 <= length
        standing = Counter(n.id for unit in example.units for n in (unit, *unit.needles))
        assert all(standing[needle.id] == 1 for needle in draft.required)
        assert all(example.prompt.text.count(str(needle.body)) == 1 for needle in draft.required)


@relaxed
@given(seed=seeds, length=lengths)
def test_a_hidden_sentence_leaves_its_passage_whole_and_stands_between_two_sentences(seed: int, length: int) -> None:
    draft, pricer, draws = draft_of(seed, 1, inside=True)
    bodies = {unit.id: str(unit.body) for unit in draft.take_order.units(length)}
    needle = str(draft.required[0].body)
    for example in examples(draft, TokenBudget(length, 256), DEPTHS, pricer, draws):
        for host in (unit for unit in example.units if unit.needles):  # it stands alone between two pictures
            before, after = (part.strip() for part in str(host.body).split(needle))
            assert " ".join(filter(None, (before, after))) == bodies[host.id]
            assert [*mt.advanced.sentences(before), needle, *mt.advanced.sentences(after)] == mt.advanced.sentences(
                str(host.body)
            )


@relaxed
@given(seed=seeds, length=lengths, depth=st.floats(0, 1), inside=st.booleans())
def test_a_needle_is_at_most_half_a_unit_from_its_depth(seed: int, length: int, depth: float, inside: bool) -> None:
    draft, pricer, draws = draft_of(seed, 1, inside=inside)
    (example,) = examples(draft, TokenBudget(length, 256), (mt.Depth(depth),), pricer, draws)
    (needle,) = example.needles
    gap, taken = pricer.text(draft.separator), {unit.id for unit in example.units}
    hay = [pricer.unit(u).total + gap for u in draft.take_order.units(length) if u.id in taken]
    assert abs(needle.achieved - needle.requested) * sum(hay) <= max(hay) / 2
    exact = {0.0: example.units[0], 1.0: example.units[-1]}
    if depth in exact:
        assert needle.unit.id in {unit.id for unit in (exact[depth], *exact[depth].needles)}


@relaxed
@given(seed=seeds, length=lengths)
def test_the_start_of_a_needle_is_what_a_recount_of_the_prompt_before_it_gives(seed: int, length: int) -> None:
    draft, pricer, draws = draft_of(seed, 1, inside=True)
    count = pricer.counter.text.count
    for example in examples(draft, TokenBudget(length, 256), DEPTHS, pricer, draws):
        before = example.prompt.text.split(str(draft.required[0].body))[0].rstrip(" ")
        (host,) = (item for item in example.items if draft.required[0] in (item.unit, *item.unit.needles))
        images = sum(item.count.image for item in example.items if item.start < host.start)
        assert example.needles[0].start == count(before) + images


@relaxed
@given(
    seed=seeds,
    length=st.integers(4, 24),
    needles=st.integers(2, 6),
    apart=st.sampled_from([0.0, 0.05, 0.12]),
    order=st.booleans(),
)
def test_needles_keep_their_order_and_their_distance_and_are_asked_the_same_at_every_length(
    seed: int, length: int, needles: int, apart: float, order: bool
) -> None:
    draft, pricer, draws = draft_of(seed, needles, inside=False)
    placements = tuple(mt.Permutation(number, order, apart) for number in range(3))
    made = examples(draft, TokenBudget(length * K, 256), placements, pricer, draws)
    for example, placement in zip(made, placements, strict=True):
        asked = [needle.requested for needle in example.needles]
        assert asked == placement.requested(draft.required, draws)  # no length is known there
        assert [needle.unit.id for needle in example.needles] == [unit.id for unit in draft.required]
        if order:
            assert asked == sorted(asked)
            starts = [needle.start for needle in example.needles]
            assert starts == sorted(starts)
        for depths in (asked, [needle.achieved for needle in example.needles]):
            assert all(later - earlier >= apart - 1e-9 for earlier, later in pairwise(sorted(depths)))
    assert len({tuple(needle.requested for needle in example.needles) for example in made}) == 3


def test_needles_that_no_context_can_hold_apart_are_rejected_with_what_to_do() -> None:
    draft, pricer, draws = draft_of(1, 5, inside=False)
    with pytest.raises(mt.Rejected, match=r"5 needles, one after another, 0.3 of the haystack apart.*build longer"):
        examples(draft, TokenBudget(8 * K, 256), (mt.Permutation(0, False, 0.3),), pricer, draws)
    draft, pricer, draws = draft_of(1, 2, inside=True)
    with pytest.raises(mt.advanced.DraftError, match="make each sentence of the haystack a unit"):
        examples(draft, TokenBudget(8 * K, 256), (mt.Permutation(0, True),), pricer, draws)


def test_depths_nought_and_one_are_the_very_first_and_the_very_last_sentence() -> None:
    draft, pricer, draws = draft_of(1, 1, inside=True)
    draft = replace(
        draft, take_order=mt.InOrder((mt.Unit("a", "One. Two.", (0,), "own"), mt.Unit("b", "Three.", (1,), "own")))
    )
    first, last = examples(draft, TokenBudget(K, 256), (mt.Depth(0.0), mt.Depth(1.0)), pricer, draws)
    assert [u.body for u in first.units] == ["The secret number 0 is 000. One. Two.", "Three."]
    assert [u.body for u in last.units] == ["One. Two.", "Three. The secret number 0 is 000."]
    assert [e.needles[0].achieved for e in (first, last)] == [0.0, pytest.approx(1.0, abs=0.2)]


@pytest.mark.parametrize("depth", mt.DEPTHS)
def test_a_passage_keeps_its_line_breaks_and_the_depth_is_that_of_the_prompt(depth: float) -> None:
    draft, pricer, draws = draft_of(1, 1, inside=True)
    bodies = ["One.\n\n\n\nTwo  goes on.\n- Three.\n\n\n\n\n\nFour.", "Five.\n\n\n\nSix is it.\n\n\n\nSeven.\n"]
    units = tuple(mt.Unit(f"u{n}", body, (n,), "own") for n, body in enumerate(bodies))
    (made,) = examples(
        replace(draft, take_order=mt.InOrder(units)), TokenBudget(K, 256), (mt.Depth(depth),), pricer, draws
    )
    (needle,), said = made.needles, str(draft.required[0].body)
    host = next(number for number, unit in enumerate(made.units) if unit.needles)
    before, after = str(made.units[host].body).split(said)
    assert bodies[host] in (before.removesuffix(" ") + after, before + after.removeprefix(" "))
    start = pricer.counter.text.count("Read.\n\n")
    tokens = pricer.counter.text.count("Read.\n\n" + "\n\n".join(bodies) + "\n\n") - start
    assert abs(needle.achieved * tokens - (needle.start - start)) <= 2


def test_permutations_do_not_depend_on_the_length_and_differ_from_each_other() -> None:
    draft, pricer, draws = draft_of(3, 4, inside=True)
    asked = [
        [
            [needle.requested for needle in e.needles]
            for e in examples(draft, TokenBudget(n * K, 256), places(4), pricer, draws)
        ]
        for n in (4, 20)
    ]
    assert asked[0] == asked[1]
    assert len({tuple(depths) for depths in asked[0]}) == 3


def test_a_sentence_stands_alone_where_no_text_is_near() -> None:
    draft, pricer, draws = draft_of(1, 1, inside=True)
    pictures = mt.InOrder(tuple(u for u in draft.take_order.units(K) if isinstance(u.body, mt.Image)))
    made = examples(replace(draft, take_order=pictures), TokenBudget(4 * K, 256), DEPTHS, pricer, draws)
    assert (made[0].units[0].id, made[-1].units[-1].id) == ("needle0", "needle0")
    assert all(pricer.whole(example.prompt) == example.count for example in made)
    assert all(example.count.total + 256 <= 4 * K for example in made)


def test_long_sentences_do_not_push_a_needle_from_its_depth() -> None:
    draft, pricer, draws = draft_of(1, 1, inside=True)
    body = f"{'word ' * 80}end. Five words stand here then."
    units = tuple(mt.Unit(f"p{n}", body, (n,), "own") for n in range(5))
    (example,) = examples(
        replace(draft, take_order=mt.InOrder(units), closing=None),
        TokenBudget(K, 256),
        (mt.Depth(0.21),),
        pricer,
        draws,
    )
    assert abs(example.needles[0].achieved - 0.21) <= 0.5 / len([u for u in example.units if u.place])


def test_two_sentences_in_one_passage_stay_whole() -> None:
    draft, pricer, draws = draft_of(1, 3, inside=True)
    unit = mt.Unit("p", "One stands first. Two stands second. Three stands third.", (0,), "own")
    made = examples(replace(draft, take_order=mt.InOrder((unit,))), TokenBudget(K, 256), places(3), pricer, draws)
    for example in made:
        (host,) = example.units
        rest = str(host.body)
        for needle in host.needles:
            assert rest.count(str(needle.body)) == 1
            rest = rest.replace(str(needle.body), "")
        assert " ".join(rest.split()) == unit.body
        assert [str(n.body) for n in host.needles] == sorted(
            (str(n.body) for n in host.needles), key=str(host.body).index
        )


def test_a_needle_larger_than_the_budget_is_said_in_numbers() -> None:
    draft, pricer, draws = draft_of(1, 1, inside=False)
    huge = mt.Unit("huge", "word " * 2000, None, "needle")
    with pytest.raises(DoesNotFitError, match=r"q: the question and its 1 required units need \d+ tokens"):
        examples(replace(draft, required=(huge,)), TokenBudget(K, 256), DEPTHS, pricer, draws)


def test_pictures_that_do_not_fit_are_passed_over_and_text_goes_on() -> None:
    draft, pricer, _ = draft_of(1, 0, inside=False)
    units = (
        mt.Unit("a", "First words.", (0,), "own"),
        mt.Unit("b", mt.Image("large.jpg"), (1,), "own", is_optional=True),
        mt.Unit("c", "Last words.", (2,), "own"),
    )
    pricer = Pricer(pricer.counter, {"large.jpg": (1400, 1400)})
    plain = replace(draft, take_order=mt.InOrder(units), closing=None)
    assert [u.id for u in pack(plain, TokenBudget(K, 100), pricer).taken] == ["a", "c"]
    assert [u.id for u in pack(plain, TokenBudget(4 * K, 100), pricer).taken] == ["a", "b", "c"]


def test_barred_units_are_passed_over_and_counted_as_far_as_the_context_goes() -> None:
    draft, pricer, _ = draft_of(1, 0, inside=False)
    units = [
        mt.Unit(f"u{n}", f"Passage {n}. " + "word " * 150, (n,), "own", excluded="taboo" * (n % 2)) for n in range(40)
    ]
    packed = pack(replace(draft, take_order=mt.InOrder(tuple(units)), closing=None), TokenBudget(2 * K, 100), pricer)
    numbers = [int(unit.id[1:]) for unit in packed.taken]
    assert numbers == list(range(0, 2 * len(numbers), 2))
    assert packed.left_out == {"taboo": len(numbers)}


@given(costs=st.lists(st.integers(1, 40), max_size=9), room=st.integers(0, 90), most=st.integers(1, 3))
def test_the_closest_sum_is_the_one_that_trying_all_would_find(costs: list[int], room: int, most: int) -> None:
    sums = [sum(chosen) for size in range(most + 1) for chosen in combinations(costs, size)]
    found = closest_sum(costs, room, most)
    assert len(set(found)) == len(found) <= most
    assert sum(costs[i] for i in found) == max(total for total in sums if total <= room)


@given(n=st.integers(0, 300), seed=seeds)
def test_a_lazy_permutation_holds_each_number_once(n: int, seed: int) -> None:
    first, second = (list(mt.Draws((key,)).permutation("pool", n)) for key in (seed, seed + 1))
    assert sorted(first) == sorted(second) == list(range(n))
    assert n < 20 or first != second

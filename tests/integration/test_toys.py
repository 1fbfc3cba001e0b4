"""The five toy families through pack, record, prompt, bundle and recount."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from toys import TOYS, OneObject, Toy, sizes_of

import mmlongbench.task as mt
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import examples, pack
from mmlongbench.packing.place import Placement
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, TextTokenizer, load_tokenizer

toys = pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
seeds = st.integers(0, 10_000)
lengths = st.integers(2, 140).map(lambda n: n * K)
relaxed = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


def made(
    toy: Toy, seed: int, length: int, tokenizer: TextTokenizer | None = None
) -> tuple[mt.advanced.ContextDraft, Pricer, Any]:
    sizes, draws = sizes_of(seed), mt.Draws((seed, toy.name, "row"))
    pricer = Pricer(CrossModalCounter(tokenizer or load_tokenizer("llama2"), PatchRule()), sizes)
    draft = toy.write("row", sizes, draws)
    budget = TokenBudget(length, 100)
    return draft, pricer, lambda places: examples(draft, budget, places, pricer, draws)


def placements(toy: Toy) -> tuple[Placement, ...]:
    own: dict[str, tuple[Placement, ...]] = {"vrag": (mt.Depth(0.4),), "vh": tuple(map(mt.Permutation, range(3)))}
    return own.get(toy.name, (None,))


@toys
@relaxed
@given(seed=seeds, length=lengths)
def test_never_over_the_length_and_counted_to_the_token(toy: Toy, seed: int, length: int) -> None:
    _, pricer, build = made(toy, seed, length)
    for example in build(placements(toy)):
        assert example.count.total + example.reserve <= length
        assert example.count == pricer.whole(example.prompt)


@toys
@relaxed
@given(seed=seeds, length=lengths)
def test_the_prompt_is_rebuilt_from_the_record_alone(toy: Toy, seed: int, length: int) -> None:
    for example in made(toy, seed, length)[2](placements(toy)):
        assert toy.prompt(json.loads(json.dumps(toy.record(example)))) == example.prompt


@toys
@relaxed
@given(seed=seeds, length=lengths)
def test_every_required_unit_stands_once_and_no_unit_twice(toy: Toy, seed: int, length: int) -> None:
    draft, _, build = made(toy, seed, length)
    for example in build(placements(toy)):
        times = Counter(unit.id for unit in example.units)
        assert set(times.values()) == {1}
        assert {unit.id for unit in draft.required} <= times.keys()


@toys
@relaxed
@given(seed=seeds, first=lengths, second=lengths)
def test_shorter_contexts_are_nested_in_longer_ones(toy: Toy, seed: int, first: int, second: int) -> None:
    shorter, longer = sorted((first, second))
    draft, pricer, _ = made(toy, seed, shorter)
    if draft.take_order.groups(shorter) != draft.take_order.groups(longer):
        return  # the class table is the stated exception
    prefix = pack(replace(draft, closing=None), TokenBudget(shorter, 100), pricer).taken
    firm = prefix[: len(prefix) - draft.closing.last] if draft.closing else prefix  # so are the closing units
    assert {unit.id for unit in firm} <= {unit.id for unit in pack(draft, TokenBudget(longer, 100), pricer).units}


@toys
@relaxed
@given(seed=seeds, length=lengths)
def test_the_prefix_is_the_longest_that_fits_and_closing_never_fills_less(toy: Toy, seed: int, length: int) -> None:
    draft, pricer, _ = made(toy, seed, length)
    budget = TokenBudget(length, 100)
    plain = pack(replace(draft, closing=None), budget, pricer)
    order = [unit.id for unit in draft.take_order.units(length)]
    assert [unit.id for unit in plain.taken] == order[: len(plain.taken)]

    def cost(taken: tuple[mt.Unit, ...]) -> int:
        return sum(pricer.unit(unit).total + pricer.text(draft.separator) for unit in taken)

    frame = max(pricer.frame(draft, question).total for question in plain.questions)
    room = budget.room - frame + pricer.text(draft.separator) - cost(draft.required)
    taken = len(plain.taken)
    if taken < len(order):
        following = next(unit for unit in draft.take_order.units(length) if unit.id == order[taken])
        assert following.excluded or cost((*plain.taken, following)) > room
    assert cost(plain.taken) <= cost(pack(draft, budget, pricer).taken) <= room


@relaxed
@given(seed=seeds, length=lengths, depth=st.floats(0, 1))
def test_a_needle_stands_at_the_nearest_boundary_to_its_depth(seed: int, length: int, depth: float) -> None:
    (example,) = made(TOYS[0], seed, length)[2]((mt.Depth(depth),))
    hay = [item for item in example.items if item.unit.role != "gold"]
    costs = [item.count.total + 2 for item in hay]
    bounds = [sum(costs[:n]) for n in range(len(hay) + 1)]
    position = next(i for i, item in enumerate(example.items) if item.unit.role == "gold")
    errors = [abs(bound - depth * bounds[-1]) for bound in bounds]
    assert errors[position] == min(errors)
    assert tuple(n.achieved for n in example.needles) == (bounds[position] / bounds[-1] if bounds[-1] else 0.0,)
    around = costs[max(0, position - 1) : position + 1]
    assert errors[position] <= max(around, default=0) / 2 + 1e-6


def test_a_start_token_is_what_stands_before_the_unit() -> None:
    _, pricer, build = made(TOYS[2], 3, 8 * K)
    example = build((None,))[0]
    for item in example.items[1:]:
        assert isinstance(item.unit.body, mt.Image)
        parts = example.prompt.parts
        before = parts[: parts.index(item.unit.body)]
        assert pricer.whole(mt.Prompt.of(before)).total == item.start


@relaxed
@given(seed=seeds, length=st.integers(8, 128).map(lambda n: n * K))
def test_rounds_show_each_label_once_and_only_the_last_is_cut(seed: int, length: int) -> None:
    found = made(TOYS[2], seed, length)[2]((None,))
    labels = min(50, 5 * length // 8192)
    shown = [unit.group for unit in found[0].units]
    rounds = [shown[start : start + labels] for start in range(0, len(shown), labels)]
    assert all(len(set(turn)) == len(turn) for turn in rounds)
    assert all(len(turn) == labels for turn in rounds[:-1])
    assert {example.question.group for example in found} <= set(shown) or len(shown) < labels


def test_many_questions_share_one_context_and_one_file(tmp_path: Path) -> None:
    found = made(TOYS[2], 5, 16 * K)[2]((None,))
    assert len(found) == 10
    assert all(example.items == found[0].items for example in found)
    records = [TOYS[2].record(example) for example in found]
    path = tmp_path / "toy.json"
    path.write_bytes(b"".join(OneObject().bundle(records)))
    assert [TOYS[2].prompt(record) for _, record in OneObject().unbundle(path)] == [e.prompt for e in found]


@toys
@relaxed
@given(seed=seeds, length=lengths)
def test_a_tokenizer_that_merges_newlines_is_recounted_and_still_fits(
    merging: TextTokenizer, toy: Toy, seed: int, length: int
) -> None:
    _, pricer, build = made(toy, seed, length, merging)
    for example in build(placements(toy)):
        assert example.count == pricer.whole(example.prompt)
        assert example.count.total + example.reserve <= length


@pytest.mark.parametrize("place", ["unit", "frame"])
def test_a_literal_marker_in_a_text_is_refused(place: str) -> None:
    draft, pricer, _ = made(TOYS[0], 1, 8 * K)
    unit = replace(draft.required[0], body="a literal <image> here") if place == "unit" else draft.required[0]
    frame = ("<image>\n\n",) if place == "frame" else draft.instruction
    with pytest.raises(mt.advanced.DraftError, match="literal <image>"):
        pack(replace(draft, required=(unit,), instruction=frame), TokenBudget(8 * K, 0), pricer)


def test_two_units_of_one_id_are_refused() -> None:
    draft, pricer, _ = made(TOYS[0], 1, 8 * K)
    twice = mt.InOrder((replace(draft.required[0], place=(0,)),))
    with pytest.raises(mt.advanced.DraftError, match="two units of the id 'gold'"):
        pack(replace(draft, take_order=twice), TokenBudget(8 * K, 0), pricer)


@pytest.fixture(scope="module")
def merging(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    """A byte-level BPE that merges across newlines."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    text = "\n\nDocument: Passage 1. grasshopper grasshopper\n\nlabel: 3\n\nlabel: 4\n\nDocument alpha (page 3): "
    tokenizer.train_from_iterator([text] * 50, trainer)
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    tokenizer.save(str(path))
    return load_tokenizer(str(path))

"""Units of turns: what is counted is what is sent, wherever neighbouring turns of one speaker become one."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmlongbench.draft import ContextDraft, Question, Unit
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError
from mmlongbench.lengths import TokenBudget
from mmlongbench.packing.pack import PackedExample, examples
from mmlongbench.packing.place import Depth
from mmlongbench.packing.pricing import Pricer
from mmlongbench.prompt import Image, Part, Prompt, Speaker, Turn, turns_of
from mmlongbench.task import InOrder
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule())
SIZE, IMAGE_TOKENS = (112, 84), 12
WORDS = ("mug", "Look at", " blank first", "\nline", "x" * 9, "two\n\nlines", "état", "last ")

said = st.lists(st.sampled_from((*WORDS, "")), min_size=1, max_size=4).map("".join).filter(bool)
kinds = st.sampled_from(("user", "assistant", "both", "many", "plain"))


def unit(name: str, kind: str, texts: list[str], place: tuple[int, ...] | None) -> Unit:
    """A unit of one or several turns, or of none; a first turn of the user has a picture of its own."""
    if kind == "plain":
        return Unit(name, f"{name}{texts[0]}", place)
    speakers: dict[str, tuple[Speaker, ...]] = {
        "both": ("user", "assistant"),
        "many": ("user", "user", "assistant", "user"),
        "user": ("user",),
        "assistant": ("assistant",),
    }
    turns = []
    for number, speaker in enumerate(speakers[kind]):
        parts: tuple[Part, ...] = (texts[number % len(texts)],)
        if speaker == "user" and not number:
            parts = (*parts, Image(f"{name}.png")) if len(texts) % 2 else (Image(f"{name}.png"), *parts)
        turns.append(Turn(speaker, parts))
    return Unit(name, turns=tuple(turns), place=place)


def recounted(prompt: Prompt) -> tuple[int, int]:
    """The tokens of the turns, each counted by itself."""
    texts = ["".join(part for part in turn.parts if isinstance(part, str)) for turn in prompt.turns]
    return sum(map(COUNTER.text.count, texts)), IMAGE_TOKENS * len(prompt.images)


def packed(
    units: list[tuple[str, list[str]]], length: int, depths: tuple[float, ...], needle_kind: str = "both"
) -> list[PackedExample]:
    made = [unit(f"unit {number} ", kind, texts, (number,)) for number, (kind, texts) in enumerate(units)]
    needle = unit("needle ", needle_kind, ["Where is the needle?", "Here."], None)
    question = Question("q", ("Well?",))
    draft = ContextDraft(
        (needle,), InOrder(made), instruction=("Talk.\n\n",), questions=(question,), id="q", in_turns=True
    )
    pricer = Pricer(COUNTER, dict.fromkeys([f"{each.id}.png" for each in (needle, *made)], SIZE))
    return examples(draft, TokenBudget(length, 16), [Depth(depth) for depth in depths], pricer, Draws(("t", "q")))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(kinds, st.lists(said, min_size=1, max_size=4)), min_size=1, max_size=30),
    st.integers(90, 600),
    st.sampled_from(("both", "plain")),
)
def test_counts_and_positions_are_those_of_the_turns_that_are_sent(
    units: list[tuple[str, list[str]]], length: int, needle_kind: str
) -> None:
    for example in packed(units, length, (0.0, 0.4, 1.0), needle_kind):
        prompt = example.prompt
        assert (example.count.text, example.count.image) == recounted(prompt)
        assert example.count.total + example.reserve <= length
        assert all(one.role != other.role for one, other in pairwise(prompt.turns))
        assert (prompt.turns[0].role, prompt.turns[-1].role) == ("user", "user")
        assert prompt.outline is not None
        assert prompt.outline.prompt(prompt.outline.shown) == prompt
        for number, item in enumerate(example.items):
            before = Prompt.of_units(
                ("Talk.\n\n",), [turns_of(each.shown) for each in example.units[:number]], "\n\n", ()
            )
            first = item.unit.turns[0].role if item.unit.turns else "user"
            if number and before.turns[-1].role == first:  # a separator stands between two units of one turn
                before = Prompt((*before.turns[:-1], Turn(first, (*before.turns[-1].parts, "\n\n"))))
            assert item.start == sum(recounted(before))
            after = example.items[number + 1].start if number + 1 < len(example.items) else None
            assert after is None or item.start + item.count.total == after


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(kinds, st.lists(said, min_size=1, max_size=4)), min_size=4, max_size=30))
def test_a_needle_stands_at_the_boundary_that_is_nearest_by_the_recounted_costs(
    units: list[tuple[str, list[str]]],
) -> None:
    for example in packed(units, 2000, (0.2, 0.5, 0.8)):
        hay = [item for item in example.items if item.unit.place is not None]
        bounds = [sum(item.count.total for item in hay[:number]) for number in range(len(hay) + 1)]
        (needle,) = example.needles
        assert needle.achieved * bounds[-1] == pytest.approx(
            sum(item.count.total for item in hay if item.start < needle.start)
        )
        assert (
            abs(needle.achieved - needle.requested) * bounds[-1]
            <= min(abs(bound - needle.requested * bounds[-1]) for bound in bounds) + 1e-6
        )


def test_a_unit_of_turns_and_other_parts_is_no_unit() -> None:
    with pytest.raises(DraftError, match="turns and other parts"):
        Prompt.of_units((), [[Turn("user", ("a",)), "b"]], "", ())

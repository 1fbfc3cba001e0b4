"""Contexts under counters whose prices are only near: never over the budget, and as full as with exact prices."""

from functools import cache
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import mmlongbench.task as mt
from mmlongbench.draft import ContextDraft, Question
from mmlongbench.lengths import TokenBudget
from mmlongbench.packing.pack import DoesNotFitError, assemble, examples
from mmlongbench.packing.pricing import Pricer, RefusedImage
from tokenization import CrossModalCounter, PatchRule, TextTokenizer, VisionRule, load_tokenizer, vision_rule

WORDS = ("heron", "the", "of", "crosses", "quiet.", "harbour", "\n\n", "bells:\n", "12", " ", "—", "and")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map(" ".join)
sizes = st.tuples(st.integers(200, 1300), st.integers(200, 1300))


@cache
def crossing() -> TextTokenizer:
    """A byte-level tokenizer whose tokens span words, lines and units."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    said = [f"{one}{gap}{other}" for one in WORDS for gap in ("\n\n", " ") for other in WORDS]
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(said, trainer)
    with TemporaryDirectory() as folder:
        tokenizer.save(f"{folder}/tokenizer.json")
        return load_tokenizer(f"{folder}/tokenizer.json")


RULES = (PatchRule(), *map(vision_rule, ("llava-onevision-nested", "deepseek-vl2", "minicpm-v-2.6", "idefics2")))
"""The benchmark's rule; two with crowds, one with numbers, and one with tokens that neighbours share."""


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(texts | sizes, min_size=4, max_size=60),
    st.integers(60, 12_000),
    st.booleans(),
    st.sampled_from(RULES),
)
@example(["\n\n"] * 4, 60, False, PatchRule())  # units that cost nothing
@example(["heron", "heron heron heron heron heron", (687, 882), "heron heron"], 843, False, PatchRule())  # fits exactly
def test_a_context_is_under_the_budget_and_a_unit_more_is_over_it(
    bodies: list[str | tuple[int, int]], length: int, in_turns: bool, rule: PatchRule | VisionRule
) -> None:
    pictures = {f"{n}.jpg": body for n, body in enumerate(bodies) if not isinstance(body, str)}
    shown = [body if isinstance(body, str) else mt.Image(f"{n}.jpg") for n, body in enumerate(bodies)]
    units = [mt.Unit(f"u{n}", body, (n,), "own") for n, body in enumerate(shown)]
    question = Question("q", ("\n\nQuestion: which?\nAnswer:",))
    draft = ContextDraft(
        (), mt.InOrder(units), id="q", instruction=("Read.\n\n",), questions=(question,), in_turns=in_turns
    )
    pricer, budget = Pricer(CrossModalCounter(crossing(), rule), pictures), TokenBudget(length, 8)
    try:
        (example,) = examples(draft, budget, [None], pricer, mt.Draws(("q",)))
    except DoesNotFitError:
        assume(False)
    assert example.count == pricer.whole(example.prompt)
    assert example.count.total <= budget.room
    taken = len(example.units)
    assert [unit.id for unit in example.units] == [unit.id for unit in units[:taken]]
    if taken < len(units):
        more = assemble(draft.instruction, units[: taken + 1], draft.separator, question.parts, in_turns=in_turns)
        assert pricer.whole(more).total > budget.room or example.count.total >= 0.995 * budget.room


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(texts | sizes | st.just((10, 2300)), min_size=4, max_size=60), st.integers(400, 12_000))
def test_a_context_is_filled_as_if_images_that_the_model_refuses_were_not_there(
    bodies: list[str | tuple[int, int]], length: int
) -> None:
    pictures = {f"{n}.jpg": body for n, body in enumerate(bodies) if not isinstance(body, str)}
    shown = [body if isinstance(body, str) else mt.Image(f"{n}.jpg") for n, body in enumerate(bodies)]
    units = [mt.Unit(f"u{n}", body, (n,), "own") for n, body in enumerate(shown)]
    taken = [unit for unit, body in zip(units, bodies, strict=True) if body != (10, 2300)]
    pricer = Pricer(CrossModalCounter(crossing(), vision_rule("qwen2.5-vl")), pictures)
    drafts = [
        ContextDraft(
            (), mt.InOrder(each), id="q", instruction=("Read.\n\n",), questions=(Question("q", ("\n\nWhich?",)),)
        )
        for each in (units, taken)
    ]
    found, expected = (examples(each, TokenBudget(length, 8), [None], pricer, mt.Draws(("q",))) for each in drafts)
    assert found[0].prompt == expected[0].prompt


@pytest.mark.parametrize("where", ["instruction", "question"])
def test_an_image_around_the_units_that_the_model_refuses_rejects_the_question(where: str) -> None:
    parts = {"instruction": ("Read.\n",), "question": ("\nWhich?",)}
    parts[where] = (mt.Image("long.jpg"), *parts[where])  # type: ignore[assignment]
    question = Question("q", parts["question"])
    draft = ContextDraft((), mt.InOrder([]), id="q", instruction=parts["instruction"], questions=(question,))
    pricer = Pricer(CrossModalCounter(crossing(), vision_rule("qwen2.5-vl")), {"long.jpg": (10, 2300)})
    with pytest.raises(RefusedImage, match="refuses it"):
        examples(draft, TokenBudget(4096, 8), [None], pricer, mt.Draws(("q",)))

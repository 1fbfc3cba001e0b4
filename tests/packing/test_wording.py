"""Questions whose words depend on the placed units; and needles that are the same sentence twice."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import mmlongbench.task as mt
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import PackedExample, examples, pack
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, TextTokenizer, load_tokenizer

relaxed = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 10_000)
DEPTHS = tuple(mt.Depth(value) for value in mt.DEPTHS)
TEXTS = tuple(mt.advanced.ordinal_words(place) for place in range(1, 1001))


def place(texts: tuple[str, ...] = TEXTS, shift: int = 0) -> mt.Wording:
    """Names the needle by its place among the pictures."""
    return mt.Wording(
        texts,
        lambda units: [unit.id for unit in units if isinstance(unit.body, mt.Image)].index("needle") + shift,
        lambda text: (f"\n\nQuestion: what is behind the {text} image?\nA. ", mt.Image("a.jpg"), "\nAnswer:"),
    )


def haystack(draws: mt.Draws, count: int) -> tuple[mt.Unit, ...]:
    units = []
    for n in range(count):
        if draws.integer(f"kind {n}", 0, 2):
            units.append(mt.Unit(f"u{n}", mt.Image(f"u{n}.jpg"), (n,), "own", is_optional=True))
        else:
            words = " ".join(f"word{draws.integer(f'{n} {k}', 0, 99)}" for k in range(draws.integer(f"n {n}", 2, 30)))
            units.append(mt.Unit(f"u{n}", f"{words}.", (n,), "own"))
    return tuple(units)


def draft_of(
    seed: int, wording: mt.Wording, tokenizer: TextTokenizer
) -> tuple[mt.advanced.ContextDraft, Pricer, mt.Draws]:
    draws = mt.Draws((seed, "wording"))
    sizes = dict.fromkeys(("a.jpg", "needle.jpg", *(f"u{n}.jpg" for n in range(400))), (56, 56))
    pricer = Pricer(CrossModalCounter(tokenizer, PatchRule()), sizes)
    question = mt.advanced.Question("q", wording.parts(wording.texts[0]), wording=wording)
    needle = mt.Unit("needle", mt.Image("needle.jpg"), None, "needle")
    take_order = mt.InOrder(haystack(draws, 400))
    return (
        mt.advanced.ContextDraft(
            (needle,), take_order, id="q", instruction=("Read.\n\n",), questions=(question,), closing=mt.Closing()
        ),
        pricer,
        draws,
    )


def place_of(example: PackedExample) -> int:
    return 1 + [path for path in example.prompt.images if path != "a.jpg"].index("needle.jpg")


@pytest.fixture(scope="module")
def merging(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    """A tokenizer that merges neighbouring characters, also across blanks and newlines."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    text = f"Read.\n\nword1 word2 word3.\n\nQuestion: what is behind the {' '.join(TEXTS[:30])} image?\nAnswer:"
    tokenizer.train_from_iterator([text] * 20, trainer)
    path: Path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    tokenizer.save(str(path))
    return load_tokenizer(str(path))


@relaxed
@given(seed=seeds, length=st.integers(1, 6).map(lambda n: n * K))
def test_the_words_are_right_for_each_placement_and_the_count_is_exact(seed: int, length: int) -> None:
    draft, pricer, draws = draft_of(seed, place(), load_tokenizer("llama2"))
    for example in examples(draft, TokenBudget(length, 256), DEPTHS, pricer, draws):
        words = mt.advanced.ordinal_words(place_of(example))
        assert example.question.chosen == words
        assert f"behind the {words} image?" in example.prompt.text
        assert pricer.whole(example.prompt) == example.count
        assert example.count.total + 256 <= length


@relaxed
@given(seed=seeds)
def test_a_tokenizer_that_merges_across_blanks_is_recounted_and_still_fits(seed: int, merging: TextTokenizer) -> None:
    draft, pricer, draws = draft_of(seed, place(), merging)
    for example in examples(draft, TokenBudget(4 * K, 256), DEPTHS, pricer, draws):
        assert example.question.chosen == mt.advanced.ordinal_words(place_of(example))
        assert pricer.whole(example.prompt) == example.count
        assert example.count.total + 256 <= 4 * K


@relaxed
@given(seed=seeds)
def test_the_costliest_words_are_kept_free_so_the_units_do_not_depend_on_the_words(seed: int) -> None:
    llama2 = load_tokenizer("llama2")
    draft, pricer, draws = draft_of(seed, place(), llama2)
    costliest = max(TEXTS, key=lambda text: (llama2.count(f"behind the {text} image"), len(text), text))
    (question,) = draft.questions
    fixed = replace(draft, questions=(mt.advanced.Question("q", question.worded(costliest).parts),))
    budget = TokenBudget(2 * K, 256)
    assert pack(draft, budget, pricer).units == pack(fixed, budget, pricer).units
    ends = [e.count.text for e in examples(draft, budget, DEPTHS, pricer, draws)]
    assert max(ends) <= max(e.count.text for e in examples(fixed, budget, DEPTHS, pricer, draws))


def test_no_words_cost_more_than_those_that_are_kept_free() -> None:
    llama2 = load_tokenizer("llama2")
    draft, pricer, _ = draft_of(1, place(), llama2)
    (question,) = draft.questions
    reserved = pricer.reserved_frame(draft, question).total
    costs = [pricer.frame(draft, question.worded(text)).total for text in TEXTS]
    assert max(costs) == reserved
    assert min(costs) < reserved


@relaxed
@given(seed=seeds)
def test_shorter_contexts_are_contained_in_longer_ones(seed: int) -> None:
    draft, pricer, draws = draft_of(seed, place(), load_tokenizer("llama2"))
    made = [examples(draft, TokenBudget(n * K, 256), DEPTHS[2:3], pricer, draws)[0] for n in (1, 2, 4)]
    for shorter, longer in pairwise(made):
        missing = {unit.id for unit in shorter.units} - {unit.id for unit in longer.units}
        assert len(missing) <= mt.Closing().last


def test_a_wording_that_chooses_none_of_its_texts_is_named() -> None:
    draft, pricer, draws = draft_of(1, place(texts=("first", "second"), shift=2), load_tokenizer("llama2"))
    with pytest.raises(mt.advanced.DraftError, match=r"q: the wording of question 'q' chose text 2 of 2"):
        examples(draft, TokenBudget(2 * K, 256), DEPTHS[:1], pricer, draws)


def test_a_question_without_other_words_is_as_it_was() -> None:
    plain = mt.advanced.Question("q", ("\n\nQuestion: which?\nAnswer:",))
    assert plain.worded("anything") is plain


@relaxed
@given(seed=seeds, passages=st.integers(1, 4))
def test_equal_sentences_are_hidden_each_at_a_start_of_its_own(seed: int, passages: int) -> None:
    draws = mt.Draws((seed, "twice"))
    body = "The little owl counted 4 \u2605 ."
    hidden = tuple(mt.Unit(f"needle{n}", body, None, "needle", between_sentences=True) for n in range(3))
    units = tuple(mt.Unit(f"p{n}", f"One is {n}. Two is {n}. Three is {n}.", (n,), "own") for n in range(passages))
    pricer = Pricer(CrossModalCounter(load_tokenizer("llama2"), PatchRule()), {})
    question = mt.advanced.Question("q", ("\n\nQuestion: which?\nAnswer:",))
    draft = mt.advanced.ContextDraft(
        hidden, mt.InOrder(units), id="q", instruction=("Read.\n\n",), questions=(question,)
    )
    for example in examples(draft, TokenBudget(K, 256), tuple(map(mt.Permutation, range(3))), pricer, draws):
        text = example.prompt.text
        assert text.count(body) == 3
        starts, at = [], -1
        for _ in hidden:
            at = text.index(body, at + 1)
            starts.append(pricer.counter.text.count(text[:at].rstrip(" ")))
        assert sorted(needle.start for needle in example.needles) == starts
        order = [needle.unit.id for needle in sorted(example.needles, key=lambda needle: needle.start)]
        assert order == [needle.id for unit in example.units for needle in (unit, *unit.needles) if needle in hidden]
        assert pricer.whole(example.prompt) == example.count

"""The arithmetic of a mix: shares, lengths and tokens are met within 1 %, or the error says what lacks."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from mmlongbench.draws import Draws, digest
from mmlongbench.errors import ManifestError, ReleaseError
from mmlongbench.lengths import format_length
from mmlongbench.manifest.mix import MixSpec, parse_mix
from mmlongbench.mixes.choosing import Chosen, choose
from mmlongbench.mixes.pools import Candidate, Offer, pools_of

LENGTHS = (8192, 16384, 32768, 65536)
DATASETS = ("maps", "letters", "photos", "notes")


def candidate(dataset: str, length: int, id: str, tokens: int, placement: float | None = None) -> Candidate:
    return Candidate(dataset, length, id, placement, tokens, digest(dataset, id))


def drawn(seed: int, most: int = 400) -> list[Candidate]:
    """Candidates of four datasets: of different numbers, lengths and sizes; some questions are not at every length."""
    found, draws = list[Candidate](), Draws((seed,))
    for dataset in DATASETS:
        lengths = [each for each in LENGTHS if draws.fraction(f"{dataset} {each}") < 0.8] or [LENGTHS[0]]
        spread = draws.fraction(f"spread {dataset}") / 2
        for number in range(draws.integer(f"questions {dataset}", most // 4, most)):
            shortest = draws.integer(f"{dataset} {number}", -2, len(lengths) - 1)
            for length in lengths[max(0, shortest) :]:
                part = 1 - spread * draws.fraction(f"size {dataset} {number} {length}")
                found.append(candidate(dataset, length, f"q{number}", int(length * 0.98 * part)))
    return found


def offer(candidates: Sequence[Candidate], spec: MixSpec) -> Offer:
    return Offer(tuple(pools_of(candidates, spec)), {name: name for name in DATASETS}, 0)


def shares_of(amounts: dict[str, float]) -> dict[str, float]:
    return {name: amount / sum(amounts.values()) for name, amount in amounts.items()}


def is_met(spec: MixSpec, chosen: Chosen) -> bool:
    """Whether a mix is what is asked, computed again from its examples alone."""
    total = sum(each.tokens for each in chosen.candidates)
    if abs(total / spec.tokens - 1) > 0.01:
        return False
    by_task, by_length = spec.tasks, spec.lengths
    if by_task and not has_shares(by_task, [(each.dataset, each.tokens) for each in chosen.candidates]):
        return False
    return not by_length or has_shares(by_length, [(each.length, each.tokens) for each in chosen.candidates])


def has_shares(asked: tuple[str, Mapping[Any, float]], found: Sequence[tuple[object, int]]) -> bool:
    """Whether examples, each a (task or length, tokens), have the shares that are asked, within 1 % of the whole."""
    amounts: dict[object, float] = dict.fromkeys(asked[1], 0)
    for key, tokens in found:
        amounts[key] += tokens if asked[0] == "tokens" else 1
    whole = sum(amounts.values())
    return all(abs(amounts[key] / whole - share) <= 0.01 for key, share in asked[1].items())


def asked_as(candidates: Sequence[Candidate], tasks: str, lengths: str, part: float) -> MixSpec:
    """A mix that has the shares of some candidates, and a part of their tokens."""
    by_task: dict[str, float] = defaultdict(float)
    by_length: dict[str, float] = defaultdict(float)
    for each in candidates:
        by_task[each.dataset] += each.tokens if tasks == "tokens" else 1
        by_length[format_length(each.length)] += each.tokens if lengths == "tokens" else 1
    tokens = int(part * sum(each.tokens for each in candidates))
    keys = {f"{tasks}_by_task": shares_of(by_task), f"{lengths}_by_length": shares_of(by_length)}
    return parse_mix({"tokens": tokens, **keys}, "test")


MEASURES = st.sampled_from(["tokens", "examples"])


@tries(max_examples=25)
@given(seed=st.integers(0, 10**6), tasks=MEASURES, lengths=MEASURES, part=st.floats(0.3, 1))
def test_a_mix_that_is_there_is_found(seed: int, tasks: str, lengths: str, part: float) -> None:
    """The mix asks for the shares of a drawn choice of questions, each at a drawn length, so it can be met."""
    candidates, draws = drawn(seed), Draws((seed, "planted"))
    of_question: dict[bytes, list[Candidate]] = defaultdict(list)
    for each in candidates:
        of_question[each.question].append(each)
    planted = [draws.choice(key.hex(), found) for key, found in of_question.items()]
    spec = asked_as(planted, tasks, lengths, part)
    chosen = choose(spec, offer(candidates, spec))
    assert is_met(spec, chosen)
    assert len({each.question for each in chosen.candidates}) == len(chosen.candidates)
    assert set(chosen.candidates) <= set(candidates)
    assert sum(chosen.tokens) == sum(each.tokens for each in chosen.candidates)


@tries(max_examples=10)
@given(seed=st.integers(0, 10**6), tokens=st.integers(10**5, 3 * 10**7), share=st.floats(0.05, 0.95))
def test_any_mix_is_met_or_the_error_says_why(seed: int, tokens: int, share: float) -> None:
    candidates = drawn(seed, most=60)
    there = {each.length for each in candidates if each.dataset in DATASETS[:2]}
    lengths = shares_of({format_length(each): 1.0 for each in there})
    shares = {DATASETS[0]: share, DATASETS[1]: 1 - share}
    spec = parse_mix({"tokens": tokens, "tokens_by_task": shares, "tokens_by_length": lengths}, "test")
    two = [each for each in candidates if each.dataset in DATASETS[:2]]
    try:
        chosen = choose(spec, offer(two, spec))
    except ReleaseError as error:
        said = str(error)
    else:
        said = "met" if is_met(spec, chosen) else "not met"
    assert re.search(r"^met$|there is not enough|no choice of whole examples was found|no example can be taken", said)


@tries(max_examples=10)
@given(seed=st.integers(0, 10**6), order=st.integers(0, 10**6))
def test_neither_the_order_of_files_nor_other_questions_left_out_change_the_draws(seed: int, order: int) -> None:
    candidates = drawn(seed, most=80)
    spec = asked_as(candidates, "tokens", "tokens", 0.2)
    spec = spec.model_copy(update={"tokens_by_length": None})
    mixed = Draws((order,)).order("files", candidates, lambda each: f"{each.dataset} {each.length} {each.id}")
    assert choose(spec, offer(candidates, spec)) == choose(spec, offer(mixed, spec))


def test_a_question_is_taken_once_unless_examples_may_be() -> None:
    candidates = [candidate("maps", length, f"q{n}", length - 300, 0.2) for n in range(100) for length in LENGTHS[:2]]
    keys = {"tokens": 2_000_000, "tokens_by_length": {"8K": 1 / 3, "16K": 2 / 3}}
    once, often = parse_mix(keys, "test"), parse_mix({**keys, "once": "example"}, "test")
    with pytest.raises(ReleaseError, match=r"1,1[0-9]{2},[0-9]{3} tokens, and 2,000,000 are asked.*once: example"):
        choose(once, offer(candidates, once))
    chosen = choose(often, offer(candidates, often))
    assert is_met(often, chosen)
    assert max(sum(each.id == f"q{n}" for each in chosen.candidates) for n in range(100)) == 2


def test_a_placement_does_not_depend_on_the_length() -> None:
    at = [0.0, 0.2, 0.4, 0.6]
    every = [candidate("maps", length, f"q{n}", length - 300, d) for n in range(60) for length in LENGTHS for d in at]
    spec = parse_mix({"tokens": "1M"}, "test")
    (pool,) = pools_of(every, spec)
    assert all(len({each.placement for each in item.values()}) == 1 for item in pool.items)
    assert len({each.placement for item in pool.items for each in item.values()}) == len(at)


def test_the_error_names_what_lacks_and_how_much_there_is() -> None:
    few = [candidate("maps", 8192, f"q{n}", 8000) for n in range(10)]
    many = [candidate("photos", length, f"q{n}", length - 192) for n in range(500) for length in LENGTHS[:2]]
    spec = parse_mix({"tokens": 1_000_000, "tokens_by_task": {"maps": 0.5, "photos": 0.5}}, "test")
    with pytest.raises(ReleaseError) as raised:
        choose(spec, offer([*few, *many], spec))
    assert str(raised.value) == (
        "mix: there is not enough: task maps has at most 80,000 tokens in 10 questions, 500,000 are asked; with "
        "these shares there are 160,000 tokens, and 1,000,000 are asked: ask for fewer, change the shares, or build a "
        "release with more, or write 'once: example' to take a question at several lengths"
    )


def test_a_mix_that_whole_examples_cannot_meet_is_refused() -> None:
    large = [candidate("maps", 65536, f"q{n}", 65000) for n in range(50)]
    spec = parse_mix({"tokens": 100_000}, "test")
    with pytest.raises(ReleaseError, match=r"130,000 of 100,000 tokens.* 65.0% of the mix: ask for more tokens"):
        choose(spec, offer(large, spec))


@pytest.mark.parametrize("measure", ["tokens", "examples"])
def test_a_share_that_only_no_example_would_meet_is_refused(measure: str) -> None:
    """A share of less than 1 % is within 1 % of nothing at all."""
    every = [candidate(name, 8192, f"q{n}", 8000) for name in ("maps", "photos") for n in range(60)]
    spec = parse_mix({"tokens": 400_000, f"{measure}_by_task": {"maps": 0.996, "photos": 0.004}}, "test")
    with pytest.raises(ReleaseError, match=r"task photos: 2.00% of the .*, 0.40% are asked; .* such as 2,000,000"):
        choose(spec, offer(every, spec))


@pytest.mark.parametrize("seed", range(12))
def test_a_small_mix_of_examples_of_different_sizes_is_found(seed: int) -> None:
    """The first drawn order is not always the one whose whole examples meet the mix."""
    draws = Draws(("sizes",))
    every = [
        candidate(name, 8192, f"q{n}", draws.integer(f"{name} {n}", 3000, 8000)) for name in DATASETS for n in range(30)
    ]
    shares = {DATASETS[0]: 0.5, DATASETS[1]: 0.25, DATASETS[2]: 0.25}
    spec = parse_mix({"tokens": 200_000, "tokens_by_task": shares, "seed": seed}, "test")
    assert is_met(spec, choose(spec, offer([each for each in every if each.dataset in shares], spec)))


def test_a_small_share_has_an_example() -> None:
    every = [candidate(name, 8192, f"q{n}", 8000) for name in ("maps", "photos") for n in range(100)]
    spec = parse_mix({"tokens": 800_000, "tokens_by_task": {"maps": 0.996, "photos": 0.004}}, "test")
    chosen = choose(spec, offer(every, spec))
    assert is_met(spec, chosen)
    assert [each.dataset for each in chosen.candidates].count("photos") == 1


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "the key 'tokens' is missing"),
        ({"tokens": 0}, "greater than 0"),
        ({"tokens": "8 pages"}, "a whole number of K"),
        (
            {"tokens": "1M", "tokens_by_task": {"a": 0.5, "b": 0.4}},
            "expected shares whose sum is 1, found 0.9",
        ),
        ({"tokens": "1M", "tokens_by_length": {"8K": 1}, "examples_by_length": {"8K": 1}}, "not both"),
        ({"tokens": "1M", "examples_by_length": {"8K": 0.5, 8192: 0.5}}, "the same length occurs twice"),
        ({"tokens": "1M", "token_by_task": {"a": 1}}, "unknown key 'token_by_task'; did you mean 'tokens_by_task'?"),
        ({"tokens": "1M", "once": "never"}, "'question' or 'example'"),
        ({"tokens": "1M", "tokens_by_task": {"a": float("nan")}}, "finite number"),
    ],
)
def test_a_wrong_mix_is_named(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ManifestError) as raised:
        parse_mix(keys, "mix.yaml")
    assert str(raised.value).startswith("mix.yaml: mix: ")
    assert said in str(raised.value)

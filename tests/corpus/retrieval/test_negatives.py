"""The filter of hard negatives: what it excludes, in which order, and how it counts."""

import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.corpus.retrieval.negatives import (
    REASONS,
    Facts,
    NegativeFilter,
    Negatives,
    negatives,
    unfilterable_answer,
)
from mmlongbench.corpus.retrieval.passages import Passage

MakePassage = Callable[..., Passage]
LONG = "the river runs from the hills through nine old towns to the sea and back in every drawing of it"
NEAR = 0.6


def test_every_reason_is_counted_once(passage: MakePassage) -> None:
    gold = passage("gold", LONG)
    facts = Facts(("Lima", "1,200"), ("Grass Hopper",), (gold,), frozenset({"b"}), (4.5, 5.5))
    ranked = [
        gold,
        passage("b", "another passage about something"),
        passage("answer", "They met in LIMA, they say."),
        passage("answer in the title", "They met.", "Lima (city)"),
        passage("answer spelled otherwise", "All 1200 of them came."),
        passage("number", "There were five or so of 5.2 metres."),
        passage("number in the title", "A river.", "Route 5"),
        passage("entity", "A grass-hopper is no “Grass Hopper”!"),
        passage("entity in the title", "It jumps.", "grass hopper"),
        passage("like the gold", f"{LONG} too"),
        passage("…", "…"),
        passage("clean", "Limaçon is a curve of 12,001 points and 15 loops."),
        passage("like the last", "Limaçon is a curve of 12,001 points and 15 loops!"),
        passage("not so like", "Limaçon is a word."),
    ]
    found = negatives(facts, ranked, NEAR)
    assert [taken.id for taken in found.passages] == ["clean", "not so like"]
    assert found.rejected == {
        "gold": 1,
        "barred": 1,
        "answer": 3,
        "number-in-range": 2,
        "entity": 2,
        "near-duplicate": 2,
        "empty": 1,
    }
    assert set(found.rejected) == set(REASONS)
    assert sum(found.rejected.values()) + len(found.passages) == len(ranked)


def test_an_answer_does_not_stand_across_title_and_text(passage: MakePassage) -> None:
    split = passage("split", "York is a town.", "New")
    assert negatives(Facts(("New York",)), [split], NEAR) == Negatives((split,), Counter())


def test_the_range_includes_its_ends(passage: MakePassage) -> None:
    ranked = [passage(text, text) for text in ("at 4.49", "at 4.5", "at 5", "at 5.5", "at 5.51", "at 5 million")]
    found = negatives(Facts((), within=(4.5, 5.5)), ranked, NEAR)
    assert [taken.id for taken in found.passages] == ["at 4.49", "at 5.51"]


def test_the_order_stays_and_nothing_is_read_beyond_what_is_asked(passage: MakePassage) -> None:
    def ranked() -> list[Passage]:
        return [passage(str(number), f"passage of number {number}") for number in range(20)]

    def forever() -> Passage:
        raise AssertionError("read too far")

    passages = (make() for make in (*(lambda at=at: ranked()[at] for at in range(3)), forever))
    found = negatives(Facts(("answer",)), passages, NEAR, most=3)
    assert [taken.id for taken in found.passages] == ["0", "1", "2"]
    assert [taken.id for taken in negatives(Facts(("answer",)), ranked(), NEAR).passages] == list(map(str, range(20)))


def test_a_filter_goes_on_where_the_ranking_ended(passage: MakePassage) -> None:
    chosen = NegativeFilter(Facts(("answer",)), NEAR)
    assert chosen.admit(passage("1", LONG)) is None
    assert chosen.admit(passage("2", LONG)) == "near-duplicate"


class Plain(NamedTuple):
    id: str
    title: str
    text: str


words = st.lists(st.sampled_from(["lima", "nine", "9", "9.0", "grass", "hopper", "sea", "é"]), min_size=1, max_size=6)


@given(st.lists(words.map(" ".join), max_size=12))
def test_no_answer_and_no_entity_gets_through(texts: list[str]) -> None:
    ranked = [Plain(str(at), text[::-1], text) for at, text in enumerate(texts)]
    found = negatives(Facts(("Lima", "nine"), ("grass hopper",)), ranked, NEAR)
    for taken in found.passages:
        assert not re.search(r"\b(lima|nine|9|9\.0|grass hopper)\b", taken.text)
    assert len(found.passages) + sum(found.rejected.values()) == len(texts)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (Facts(("The Who",)), "answer: common-answer: expected .*, found 'The Who', a stop word; correct the source"),
        (Facts(("Lima", "5")), "found '5', one character"),
        (Facts(("C++",)), "found 'C\\+\\+', one character"),
        (Facts(("the",)), "found 'the', no letter or digit"),
        (Facts(("龍",)), "one character"),
        (Facts(("Lima",), ("?",)), "entity: nameless-entity: expected a name with a letter or digit, found '\\?'"),
        (Facts(()), "answer: no-answer"),
    ],
)
def test_what_cannot_be_kept_out_is_named(facts: Facts, message: str) -> None:
    assert re.search(message, str(unfilterable_answer(facts)))


@pytest.mark.parametrize("answer", ["Lima", "12", "May", "US", "to be or not to be"])
def test_other_answers_can_be_kept_out(answer: str) -> None:
    assert unfilterable_answer(Facts((answer,), ("grass",))) is None


def test_a_number_with_a_range_needs_no_answer() -> None:
    assert unfilterable_answer(Facts((), within=(1, 2))) is None

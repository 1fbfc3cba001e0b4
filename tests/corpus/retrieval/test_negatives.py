"""Hard negatives: what the filter excludes and counts; none holds an answer or a name, as other means check."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from once import once
from samples import Sources

from builders.vrag import EntityQuestion, InfoSeek
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.corpus.build import make_corpus
from mmlongbench.corpus.corpus import Corpus, Passage
from mmlongbench.corpus.retrieval.negatives import REASONS, Facts, NegativeFilter, unfilterable_answer

LONG = "the river runs from the hills through nine old towns to the sea and back in every drawing of it"
NEAR = 0.6


def passage(id: str, text: str, title: str = "") -> Passage:
    return Passage(id, "", title, text, 0)


def negatives(facts: Facts, ranked: Iterable[Passage], near: float = NEAR) -> tuple[list[str], Counter[str]]:
    """The ids of the passages that the filter admits, and how many it rejects, by reason."""
    chosen = NegativeFilter(facts, near)
    reasons = [(each.id, chosen.admit(each)) for each in ranked]
    return [id for id, reason in reasons if reason is None], Counter(reason for _, reason in reasons if reason)


def test_every_reason_is_counted_once() -> None:
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
    taken, rejected = negatives(facts, ranked)
    assert taken == ["clean", "not so like"]
    assert rejected == {
        "gold": 1,
        "barred": 1,
        "answer": 3,
        "number-in-range": 2,
        "entity": 2,
        "near-duplicate": 2,
        "empty": 1,
    }
    assert set(rejected) == set(REASONS)
    assert rejected.total() + len(taken) == len(ranked)


def test_an_answer_does_not_stand_across_title_and_text() -> None:
    split = passage("split", "York is a town.", "New")
    assert negatives(Facts(("New York",)), [split]) == (["split"], Counter())


def test_the_range_includes_its_ends() -> None:
    ranked = [passage(text, text) for text in ("at 4.49", "at 4.5", "at 5", "at 5.5", "at 5.51", "at 5 million")]
    assert negatives(Facts((), within=(4.5, 5.5)), ranked)[0] == ["at 4.49", "at 5.51"]


def test_a_filter_goes_on_where_the_ranking_ended() -> None:
    chosen = NegativeFilter(Facts(("answer",)), NEAR)
    assert chosen.admit(passage("1", LONG)) is None
    assert chosen.admit(passage("2", LONG)) == "near-duplicate"


words = st.lists(st.sampled_from(["lima", "nine", "9", "9.0", "grass", "hopper", "sea", "é"]), min_size=1, max_size=6)


@given(st.lists(words.map(" ".join), max_size=12))
def test_no_answer_and_no_entity_gets_through(texts: list[str]) -> None:
    ranked = [passage(str(at), text, text[::-1]) for at, text in enumerate(texts)]
    taken, rejected = negatives(Facts(("Lima", "nine"), ("grass hopper",)), ranked)
    for id in taken:
        assert not re.search(r"\b(lima|nine|9|9\.0|grass hopper)\b", texts[int(id)])
    assert len(taken) + rejected.total() == len(texts)


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


@pytest.mark.parametrize(
    "facts",
    [
        *(Facts((answer,), ("grass",)) for answer in ("Lima", "12", "May", "US", "to be or not to be")),
        Facts((), within=(1, 2)),  # a number with a range needs no answer
    ],
)
def test_other_answers_can_be_kept_out(facts: Facts) -> None:
    assert unfilterable_answer(facts) is None


ANSWERS = [
    "Paris",
    "Jackie Wilson",
    "5 May 1990",
    "Łódź",
    "U.S. Army",
    "3.5 km",
    "€500",
    "Simon & Garfunkel",
    "St. John's",
]
JOINTS = (" ", "-", "–", "\u00a0", "\u2009", " / ", "_", "·", "\n")


@cache
def unaccented(text: str) -> str:
    return "".join(part for part in unicodedata.normalize("NFKD", text) if not unicodedata.combining(part))


def hits(passages: list[Passage], names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Which of the names stand in which passages as they are, not within a word."""
    found = [(name, re.compile(rf"(?<!\w){re.escape(unaccented(name))}(?!\w)", re.IGNORECASE)) for name in names]
    texts = [(passage.id, unaccented(text)) for passage in passages for text in (passage.title, passage.text)]
    return [(name, id) for name, pattern in found for id, text in texts if pattern.search(text)]


Drawn = tuple[list[Passage], list[tuple[EntityQuestion, list[Passage]]]]


@pytest.fixture(scope="module")
def drawn(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """All passages of a drawn encyclopedia, and every third question with the negatives that the filter admits."""
    sources = sample("infoseek")

    def make(folder: Path) -> None:
        make_corpus(str(sources["corpus"]), folder / "corpus")

    folder = once(tmp_path_factory, "infoseek-corpus", make) / "corpus"
    every = list(Corpus.open(folder))
    rows = [row for row in read_rows(InfoSeek(), sources) if isinstance(row, EntityQuestion)]
    assert len(rows) == 40
    found = []
    for row in rows[::3]:
        facts = Facts(row.answer, (row.entity,), within=row.answer_range)
        taken = set(negatives(facts, every, 0.8)[0])
        found.append((row, [each for each in every if each.id in taken]))
    return every, found


def test_no_negative_of_the_drawn_encyclopedia_holds_an_answer_or_the_entity_or_a_number_in_range(drawn: Drawn) -> None:
    every, asked = drawn
    in_range = 0
    for row, taken in asked:
        names = (*row.answer, row.entity)
        assert hits(every, names), "the check itself finds none"
        assert hits(taken, names) == []
        assert len(taken) > len(every) / 2
        if row.answer_range:
            low, high = row.answer_range
            texts = " ".join(f"{each.title} {each.text}" for each in taken)
            plain = re.findall(r"(?<![\w.,])\d+(?:\.\d+)?(?![\w.,]*\d)", texts)
            assert plain
            assert [number for number in plain if low <= float(number) <= high] == []
            in_range += 1
    assert in_range >= 2


marks = st.text(st.characters(categories=["P", "S", "Z", "Cf", "Cc"]), min_size=1, max_size=4)
before = st.one_of(
    st.just(""), marks, st.tuples(st.sampled_from(["Vienna", "in", "4", "É", "1.5"]), marks).map("".join)
)
after = st.one_of(
    st.just(""),
    marks,
    st.sampled_from(["'s", "’s", "ʼs", "´s"]),
    st.tuples(marks, st.sampled_from(["a", "6", "based"])).map("".join),
)


@given(st.sampled_from(ANSWERS), before, after, st.sampled_from(JOINTS), st.booleans())
def test_no_punctuation_hides_an_answer_or_a_name(
    answer: str, left: str, right: str, joint: str, is_title: bool
) -> None:
    held = f"{left}{answer.replace(' ', joint)}{right}"
    holds = passage("1", "nothing", held) if is_title else passage("1", f"They say {held} and so on.", "nothing")
    assert negatives(Facts((answer,)), [holds])[1] == {"answer": 1}
    assert negatives(Facts(("nowhere",), (answer,)), [holds])[1] == {"entity": 1}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("5 May 1990", "on the 5th day of May, 1990"),
        ("5 May 1990", "on 5-May-1990"),
        ("1990", "in the season 1989/90"),
        ("2.03 million", "2,030,000 people"),
        ("2030000", "2.03 million people"),
        ("1.2 million", "between 1.2 and 1.5 million"),
        ("100", "a hundred of them"),
        ("2.5 km", "two and a half km"),
        ("€500", "for 500 euros"),
        ("£3.5 million", "for £3.5m"),
        ("21st", "the twenty-first of them"),
        ("19th century", "in the nineteenth century"),
        ("Simon and Garfunkel", "Simon & Garfunkel’s song"),
        ("the Beatles", "Lennon/the Beatles’ songs"),
    ],
)
def test_what_a_reader_takes_for_the_answer_is_turned_away(answer: str, text: str) -> None:
    assert negatives(Facts((answer,)), [passage("1", text)])[1] == {"answer": 1}

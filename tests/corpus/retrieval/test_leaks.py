"""No negative holds an answer or a name, checked by other means than those of the filter."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.samples.vrag.sources import draw_infoseek
from builders.vrag.infoseek import InfoSeek
from builders.vrag.rows import EntityQuestion
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.corpus import Corpus, build_corpus
from mmlongbench.corpus.retrieval.negatives import Facts, negatives
from mmlongbench.corpus.sources import find_source

pytestmark = pytest.mark.slow

NEAR = 0.8
ANSWERS = (
    "Paris",
    "Jackie Wilson",
    "5 May 1990",
    "Łódź",
    "U.S. Army",
    "3.5 km",
    "€500",
    "Simon & Garfunkel",
    "St. John's",
)
JOINTS = (" ", "-", "–", "\u00a0", "\u2009", " / ", "_", "·", "\n")


class Plain(NamedTuple):
    id: str
    title: str
    text: str


class Drawn(NamedTuple):
    every: list[Plain]
    """All passages of the encyclopedia."""
    asked: list[tuple[EntityQuestion, list[Plain]]]
    """Each question with all its negatives."""


@cache
def unaccented(text: str) -> str:
    return "".join(part for part in unicodedata.normalize("NFKD", text) if not unicodedata.combining(part))


def hits(passages: list[Plain], names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Which of the names stand in which passages as they are, not within a word."""
    found = [(name, re.compile(rf"(?<!\w){re.escape(unaccented(name))}(?!\w)", re.IGNORECASE)) for name in names]
    texts = [(passage.id, unaccented(text)) for passage in passages for text in (passage.title, passage.text)]
    return [(name, id) for name, pattern in found for id, text in texts if pattern.search(text)]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """The drawn encyclopedia and the negatives that the filter admits; not to be changed."""
    folder = tmp_path_factory.mktemp("drawn")
    sources = draw_infoseek(folder)
    source = find_source(str(sources["corpus"]))
    build_corpus(source.articles(), folder / "corpus", source=source.info)
    rows = [row for row in read_rows(InfoSeek(), sources) if isinstance(row, EntityQuestion)]
    every = [Plain(passage.id, passage.title, passage.text) for passage in Corpus.open(folder / "corpus")]
    return Drawn(every, list(found(rows, every)))


def found(rows: list[EntityQuestion], every: list[Plain]) -> Iterator[tuple[EntityQuestion, list[Plain]]]:
    for row in rows:
        facts = Facts(row.answer, (row.entity,), within=row.answer_range)
        taken = {passage.id for passage in negatives(facts, every, NEAR).passages}
        yield row, [passage for passage in every if passage.id in taken]


def test_no_negative_of_the_drawn_encyclopedia_holds_an_answer_or_the_entity(drawn: Drawn) -> None:
    assert len(drawn.asked) == 40
    for row, taken in drawn.asked:
        names = (*row.answer, row.entity)
        assert hits(drawn.every, names), "the check itself finds none"
        assert hits(taken, names) == []
        assert len(taken) > len(drawn.every) / 2


def test_no_negative_of_the_drawn_encyclopedia_holds_a_number_in_range(drawn: Drawn) -> None:
    ranges = [(row.answer_range, taken) for row, taken in drawn.asked if row.answer_range]
    assert len(ranges) == 10
    for (low, high), taken in ranges:
        texts = " ".join(f"{passage.title} {passage.text}" for passage in taken)
        plain = re.findall(r"(?<![\w.,])\d+(?:\.\d+)?(?![\w.,]*\d)", texts)
        assert plain
        assert [number for number in plain if low <= float(number) <= high] == []


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
    passage = Plain("1", held, "nothing") if is_title else Plain("1", "nothing", f"They say {held} and so on.")
    assert negatives(Facts((answer,)), [passage], NEAR).rejected == {"answer": 1}
    assert negatives(Facts(("nowhere",), (answer,)), [passage], NEAR).rejected == {"entity": 1}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Paris", "Paris's mayor"),
        ("Paris", "the Vienna–Paris railway"),
        ("Paris", "a Paris-based firm"),
        ("Paris", "London/Paris"),
        ("5 May 1990", "(5 May 1990–6 June 1991)"),
        ("5 May 1990", "on 4–5 May 1990"),
        ("5 May 1990", "on the 5th day of May, 1990"),
        ("5 May 1990", "on 5-May-1990"),
        ("1990", "in the season 1989/90"),
        ("2.03 million", "2,030,000 people"),
        ("2030000", "2.03 million people"),
        ("1.2 million", "between 1.2 and 1.5 million"),
        ("100", "a hundred of them"),
        ("2.5", "2½ of them"),
        ("2.5 km", "two and a half km"),
        ("3 km", "3km away"),
        ("3km", "3.0 km away"),
        ("3,000 m", "3 000 m high"),
        ("500 euros", "for €500"),
        ("€500", "for 500 euros"),
        ("£3.5m", "for £3.5 million"),
        ("£3.5 million", "for £3.5m"),
        ("21st", "the twenty-first of them"),
        ("19th century", "in the nineteenth century"),
        ("Søren", "Soren's book"),
        ("Simon and Garfunkel", "Simon & Garfunkel’s song"),
        ("the Beatles", "Lennon/the Beatles’ songs"),
    ],
)
def test_what_a_reader_takes_for_the_answer_is_turned_away(answer: str, text: str) -> None:
    assert negatives(Facts((answer,)), [Plain("1", "", text)], NEAR).rejected == {"answer": 1}

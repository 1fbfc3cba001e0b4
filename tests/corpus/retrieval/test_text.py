"""Normalising, looking for answers, words to search by, near-duplicates."""

import re
import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.corpus.retrieval.text import (
    NearDuplicates,
    contains,
    forms,
    jaccard,
    needles,
    normalise,
    shingles,
    tokens,
)

PIECES = [
    "a",
    "an",
    "the",
    "The",
    "ox",
    "É",
    "e\u0301",
    "ß",
    "İ",
    "ﬁ",
    "№",
    "٣",
    "“",
    "—",
    "-",
    "'",
    "$",
    "+",
    "_",
    ".",
]
PIECES += ["\u00a0", "\u200b", "\ud800", "½", "10", "1,000", "龍", "\t", "\n", " ", " ", " "]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(
    "abßłØÆđé s'’.,-–/&34\u00ad№½", max_size=30
)
any_text = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30)


def slowly(text: str) -> list[str]:
    """SQuAD's normalisation, character by character, as a list of words."""
    kept = ""
    for character in unicodedata.normalize("NFKD", text.lower()).lower():
        is_mark = unicodedata.combining(character) != 0 or character in "\u034f\ufe0f"
        is_punctuation = character in string.punctuation or unicodedata.category(character)[0] == "P"
        is_out = is_mark or is_punctuation or unicodedata.category(character) == "Cf"
        kept += "" if is_out else {"ß": "ss", "ł": "l", "ø": "o", "æ": "ae", "đ": "d"}.get(character, character)
    spaced = re.sub(r"(?<!\w)(?:a|an|the)(?!\w)", " ", kept)
    return spaced.split()


@given(texts)
def test_normalising_is_what_a_slow_reading_gives(text: str) -> None:
    assert normalise(text).split() == slowly(text)
    assert normalise(text) == " ".join(slowly(text))


@given(texts, texts)
def test_an_answer_is_found_where_its_words_stand_in_a_row(text: str, answer: str) -> None:
    here, wanted = slowly(text), slowly(answer)
    rows = [here[at : at + len(wanted)] for at in range(len(here) + 1)]
    if not re.search(r"\d[.,]\d", text + " " + answer):
        assert contains(text, answer) >= (wanted in rows)


@given(any_text, any_text)
def test_what_a_text_contains_is_a_needle_in_its_forms(text: str, answer: str) -> None:
    both = f"{text} {answer} {text}"
    for held in (text, both):
        if contains(held, answer):
            assert not normalise(answer) or any(needle in forms(held) for needle in needles(answer))


@given(any_text, any_text, any_text)
def test_an_answer_between_spaces_is_found(before: str, answer: str, after: str) -> None:
    assert contains(f"{before} {answer} {after}", answer)


@given(texts)
def test_words_to_search_by_hold_no_space_and_no_capital(text: str) -> None:
    for word in tokens(text):
        assert word.split() == [word]
        assert word == word.lower()
        assert tokens(word) == [word]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Beatles' 1st LP", ["the", "beatles", "1st", "lp"]),
        ("naïve café", ["naive", "cafe"]),
        ("snake_case", ["snake", "case"]),
        ("x" * 1000, ["x" * 255]),
        ("…!?", []),
        ("\ud800", []),
    ],
)
def test_known_words(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris's mayor", "Paris"),
        ("Paris’s mayor", "Paris"),
        ("Vienna–Paris railway", "Paris"),
        ("Paris-based", "Paris"),
        ("London/Paris", "Paris"),
        ("Paris™ and Paris²", "Paris"),
        ("Jackie Wilson's song", "Jackie Wilson"),
        ("Jackie Wilson’s song", "Jackie Wilson"),
        ("(5 May 1990–6 June 1991)", "5 May 1990"),
        ("4–5 May 1990", "5 May 1990"),
        ("Łódź", "Lodz"),
        ("Søren", "Soren"),
        ("Weißensee", "Weissensee"),
        ("Ærø", "aero"),
        ("Œuvre", "oeuvre"),
        ("Đorđe", "Dorde"),
        ("Pa\u00adris and Lon\u200bdon", "Paris and London"),
        ("Simon and Garfunkel", "Simon & Garfunkel"),
        ("Simon & Garfunkel", "Simon and Garfunkel"),
        ("Hawaiʻi", "Hawaii"),
        ("3km away", "3 km"),
        ("3.0 km away", "3km"),
        ("3 000 m high", "3,000 m"),
        ("some 3,4 litres", "3.4"),
        ("It grew to 1,200.", "1200"),
        ("Post-War", "postwar"),
        ("the U.S.-led", "U.S."),
        ("version 1.0.1", "1.0.1"),
    ],
)
def test_an_answer_is_held(text: str, answer: str) -> None:
    assert contains(text, answer)
    assert any(needle in forms(text) for needle in needles(answer))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("There are 34 people", "3.4"),
        ("3.4 people", "34"),
        ("12.34 m", "34 m"),
        ("12,345 people", "345"),
        ("an oxbow", "ox"),
        ("Parisian", "Paris"),
        ("the 1990s", "1990"),
    ],
)
def test_an_answer_is_not_held(text: str, answer: str) -> None:
    assert not contains(text, answer)


def test_a_long_text_is_read_in_passing() -> None:
    assert contains("word " * 1_000_000 + "needle", "Needle!")


def test_shingles_of_short_texts() -> None:
    assert shingles("one two three four five six") == {"one two three four five", "two three four five six"}
    assert shingles("One, two.") == {"one two"}
    assert shingles("…") == frozenset()
    assert jaccard(frozenset(), frozenset()) == 0


@given(
    st.lists(st.lists(st.sampled_from("bcde"), max_size=9).map(" ".join), max_size=8), st.sampled_from([0.3, 0.5, 1.0])
)
def test_near_duplicates_are_those_of_every_pair(several: list[str], threshold: float) -> None:
    *seen, last = [shingles(text) for text in ["b", *several]]
    near = NearDuplicates(threshold)
    for found in seen:
        near.add(found)
    assert near.near(last) == any(jaccard(last, found) >= threshold for found in seen)


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.1])
def test_a_threshold_is_above_0_and_at_most_1(threshold: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1, not"):
        NearDuplicates(threshold)

"""Texts: normalising, answers in them, words to search by, near-duplicates, numbers and dates as they are spelled."""

import re
import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.corpus.retrieval.numbers import NAMES, numbers_in, spoken
from mmlongbench.corpus.retrieval.spellings import (
    MAX_ORDINAL,
    ORDINALS,
    number_spellings,
    ordinal_words,
    usual_spellings,
    value_of,
)
from mmlongbench.corpus.retrieval.text import (
    NearDuplicates,
    contains,
    forms,
    needles,
    normalise,
    shingles,
    tokens,
)

PIECES = [*["a", "an", "the", "The", "ox", "É", "é", "ß", "İ", "ﬁ", "№", "٣", "“", "—", "-", "'", "$", "+", "_", "."]]
PIECES += ["\u00a0", "\u200b", "\ud800", "½", "10", "1,000", "龍", "\t", "\n", " ", " ", " "]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(
    "abßłØÆđé s'’.,-–/&34\u00ad№½", max_size=30
)
any_text = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30)


def slowly(text: str) -> list[str]:
    """SQuAD's normalisation, character by character, as a list of words; each Han character is a word."""
    kept = ""
    for character in unicodedata.normalize("NFKD", text.lower()).lower():
        is_mark = unicodedata.combining(character) != 0 or character in "\u034f\ufe0f"
        is_punctuation = character in string.punctuation or unicodedata.category(character)[0] == "P"
        is_out = is_mark or is_punctuation or unicodedata.category(character) == "Cf"
        letters = {"ß": "ss", "ł": "l", "ø": "o", "æ": "ae", "đ": "d", "龍": " 龍 "}
        kept += "" if is_out else letters.get(character, character)
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
        ("艾勒里港2019", ["艾勒", "勒里", "里港", "2019"]),
        ("港", ["港"]),
        ("がらす か\u3099", ["がら", "らす", "が"]),
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
        ("答案是艾勒里。", "艾勒里"),
        ("か\u3099らすの窓", "がらす"),
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
        ("がらす", "からす"),
        ("勒艾里", "艾勒里"),
    ],
)
def test_an_answer_is_not_held(text: str, answer: str) -> None:
    assert not contains(text, answer)


def test_a_long_text_is_read_in_passing() -> None:
    assert contains("word " * 1_000_000 + "needle", "Needle!")


def test_shingles_of_short_texts_and_thresholds() -> None:
    assert shingles("one two three four five six") == {"one two three four five", "two three four five six"}
    assert shingles("one two") == {"one two"}
    assert shingles("") == frozenset()
    for threshold in (0.0, -1.0, 1.1):
        with pytest.raises(ValueError, match="above 0 and at most 1, not"):
            NearDuplicates(threshold)


@given(
    st.lists(st.lists(st.sampled_from("bcde"), max_size=9).map(" ".join), max_size=8), st.sampled_from([0.3, 0.5, 1.0])
)
def test_near_duplicates_are_those_of_every_pair(several: list[str], threshold: float) -> None:
    *seen, last = [shingles(normalise(text)) for text in ["b", *several]]
    near = NearDuplicates(threshold)
    for found in seen:
        near.add(found)
    assert near.near(last) == any(len(last & found) >= threshold * len(last | found) > 0 for found in seen)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234 people", {1234}),
        ("1234.0 and 1 234", {1234, 1, 234}),
        ("1.234.567,8 m", {1234567.8}),
        ("1,5 km", {1.5}),
        ("from 12-15 to −3", {12, 15, 3, -3}),
        ("1.2 million", {1.2, 1200000}),
        ("five hundred and six thousand", {5, 6, 500, 6000, 500000, 506000}),
        ("2.03 million", {2.03, 2030000}),
        ("a hundred", {100}),
        ("a dozen", {12}),
        ("half a dozen", {6}),
        ("half a million", {500000}),
        ("a hundred thousand", {100000}),
        ("2½", {2, 2.5}),
        ("2 1/2", {1, 2, 2.5}),
        ("2½ million", {2, 2.5, 2500000}),
        ("two and a half", {2, 0.5, 2.5}),
        ("2 and a half", {2, 2.5}),
        ("£3.5m", {3.5, 3500000}),
        ("£3.5 m", {3.5, 3500000}),
        ("3.5 m", {3.5}),
        ("3.5 mn", {3.5, 3500000}),
        ("3.5bn", {3.5, 3500000000}),
        ("3 hundred thousand", {3, 300, 300000}),
        ("1.2–1.5 million", {1.2, 1.5, 1200000, 1500000}),
        ("between 1.2 and 1.5 million", {1.2, 1.5, 1200000, 1500000}),
        ("two to three million", {2, 3, 2000000, 3000000, 5000000}),
        ("1 000", {1, 0, 1000}),
        ("1989/90", {1989, 90, 1990}),
        ("1999–00", {1999, 0, 2000}),
        ("1990-05-03", {1990, 5, 3}),
        ("Twenty-one (B12, 3rd)", {20, 1, 21, 12, 3}),
        (".5 or 0.25", {0.5, 0.25}),
        ("1,2,3", {1, 2, 3}),
        ("3.5.1990", {3, 5, 1990}),
        ("no number, x², a hut or a half", set()),
        ("٣", {3}),
        ("9" * 400, {float("inf")}),
    ],
)
def test_numbers_in_a_text(text: str, expected: set[float]) -> None:
    assert numbers_in(text) == expected


@given(st.integers(0, 10**15) | st.integers(0, 120))
def test_every_spelling_of_a_number_holds_it(value: int) -> None:
    for spelling in number_spellings(float(value)):
        assert float(value) in numbers_in(f"It was {spelling}, they say.")


@given(st.integers(0, 10**12), st.sampled_from(["", " km", " years", "%"]))
def test_spellings_of_a_quantity_lead_to_each_other(value: int, unit: str) -> None:
    plain = f"{value}{unit}"
    for spelling in usual_spellings(plain):
        assert plain in usual_spellings(spelling)


_WORDS = ["a", "and", "dozen", "half", "hundred", "million", "one", "or", "six", "thousand", "to", "½", "3", "1,5", "-"]


@given(
    st.text(max_size=60)
    | st.text("0123456789,.-+e%$ /:tn", max_size=60)
    | st.lists(st.sampled_from(_WORDS), max_size=30).map(" ".join)
)
def test_no_text_breaks_the_search_for_numbers(text: str) -> None:
    assert all(isinstance(number, float) and number == number for number in numbers_in(text))  # none is NaN
    first, *others = usual_spellings(text)
    assert first == text
    assert all(isinstance(spelling, str) for spelling in others)
    assert value_of(text) is None or isinstance(value_of(text), float | int)


def test_odd_letters_and_long_texts_break_nothing() -> None:
    for text in ("ſix", "sıx km", "Sİx", "firſt", "3 ſept 1990", "5 \u212am"):
        assert usual_spellings(text)[0] == text
        value_of(text)
    for many in ("hundred ", "million ", "one ", "9", "9,999", "1-", "1, ", "½", "a ", "dozen and "):
        assert all(isinstance(number, float) for number in numbers_in("one " + many * 2000))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.03 million", 2030000.0),
        ("1 000", 1000.0),
        ("1\u202f000", 1000.0),
        ("2½", 2.5),
        ("2½ million", 2500000.0),
        ("two and a half", 2.5),
        ("a hundred", 100.0),
        ("half a million", 500000.0),
        ("3.5bn", 3500000000.0),
        ("3km", None),
        ("€500", None),
        ("half", None),
    ],
)
def test_what_a_text_is_as_a_number(text: str, value: float | None) -> None:
    assert value_of(text) == value


DATES = [
    *("3 May 1990", "May 3, 1990", "3rd of May 1990", "3-May-1990", "3rd day of May, 1990", "the third of May 1990"),
    *("May 3rd, 1990", "1990-05-03", "03/05/1990", "3.5.1990", "1990-05-03T00:00:00Z"),
]


@pytest.mark.parametrize("text", DATES)
def test_a_date_is_found_however_it_is_spelled(text: str) -> None:
    for other in DATES[:-1]:
        assert any(contains(f"Born on {other}.", spelling) for spelling in usual_spellings(text))


def test_everything_else_is_spelled_as_it_is() -> None:
    for text in ("31 February 1990", "May", "1990s", "Apollo 13", "half", "12:30", ""):
        assert usual_spellings(text) == [text]


def test_known_spellings() -> None:
    assert usual_spellings("1,234.50 m") == ["1,234.50 m", "1234.5 m", "1,234.5 m"]
    assert usual_spellings("3km") == ["3km", "3 km", "three km"]
    assert {"2.5 km", "2½ km", "two and a half km"} <= set(usual_spellings("2.5 km"))
    assert {"500 euros", "€500"} <= set(usual_spellings("€500")) & set(usual_spellings("500 euros"))
    assert {"£3.5 million", "£3,500,000"} <= set(usual_spellings("£3.5m"))
    assert {"21st", "twenty-first"} <= set(usual_spellings("21st")) & set(usual_spellings("twenty-first"))
    assert {"19th century", "nineteenth century"} <= set(usual_spellings("19th century"))
    assert "19th century" in usual_spellings("nineteenth century")
    assert {"sixty km", "60 km"} == set(usual_spellings("sixty km"))
    assert usual_spellings("ninetieth") == ["ninetieth", "90th"]
    assert usual_spellings("twelve") == ["twelve", "12"]
    assert usual_spellings("3rd") == ["3rd", "third"]
    assert {"$5 million", "$5000000", "$5,000,000", "5 million dollars"} <= set(usual_spellings("$5 million"))
    assert usual_spellings("50%")[:3] == ["50%", "50 percent", "50 per cent"]
    assert number_spellings(-5.0) == ["-5"]
    assert number_spellings(float("nan")) == []


SPELLED = {
    3: "third",
    12: "twelfth",
    21: "twenty-first",
    40: "fortieth",
    100: "one hundredth",
    101: "one hundred and first",
    110: "one hundred and tenth",
    342: "three hundred and forty-second",
    999: "nine hundred and ninety-ninth",
    1000: "one thousandth",
    1001: "one thousand and first",
    1100: "one thousand, one hundredth",
    1101: "one thousand, one hundred and first",
    21_000: "twenty-one thousandth",
    123_456: "one hundred and twenty-three thousand, four hundred and fifty-sixth",
}


def test_ordinals_are_spelled_as_in_the_rows_of_upstream() -> None:
    assert {number: ordinal_words(number) for number in SPELLED} == SPELLED
    for number in (0, -1, MAX_ORDINAL + 1):
        with pytest.raises(ValueError, match="expected 1 to 999999"):
            ordinal_words(number)


def cardinal(ordinal: str) -> str:
    """The number words of an ordinal: its last word, or pair of words, without the ending."""
    head, blank, last = ordinal.rpartition(" ")
    if last in ("hundredth", "thousandth"):
        return f"{head}{blank}{last.removesuffix('th')}"
    return f"{head}{blank}{NAMES[ORDINALS.index(last)]}"


def test_each_ordinal_says_its_number_and_no_other() -> None:
    numbers = [*range(1, 2_500), *range(2_500, MAX_ORDINAL, 977), MAX_ORDINAL]
    words = [ordinal_words(number) for number in numbers]
    assert [spoken(cardinal(each).replace(",", "")) for each in words] == numbers
    assert len(set(words)) == len(words)

"""Numbers and dates: found in texts, and spelled as they usually are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.corpus.retrieval.numbers import numbers_in
from mmlongbench.corpus.retrieval.spellings import number_spellings, usual_spellings, value_of
from mmlongbench.corpus.retrieval.text import contains

DATES = [
    "3 May 1990",
    "May 3, 1990",
    "3rd of May 1990",
    "3-May-1990",
    "3rd day of May, 1990",
    "the third of May 1990",
    "May 3rd, 1990",
    "1990-05-03",
    "03/05/1990",
    "3.5.1990",
    "1990-05-03T00:00:00Z",
]


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


@given(st.text(max_size=20))
def test_a_text_is_its_own_first_spelling(text: str) -> None:
    assert usual_spellings(text)[0] == text


@given(st.text("0123456789,.-+e%$ /:tn", max_size=60))
def test_what_looks_like_a_number_breaks_nothing(text: str) -> None:
    assert all(isinstance(spelling, str) for spelling in usual_spellings(text))
    assert value_of(text) is None or isinstance(value_of(text), float | int)
    assert all(number == number for number in numbers_in(text))  # none is NaN


_WORDS = ["a", "and", "dozen", "half", "hundred", "million", "one", "or", "six", "thousand", "to", "½", "3", "1,5", "-"]


@given(st.text(max_size=60) | st.lists(st.sampled_from(_WORDS), max_size=30).map(" ".join))
def test_no_text_breaks_the_search_for_numbers(text: str) -> None:
    assert all(isinstance(number, float) for number in numbers_in(text))
    value_of(text)
    usual_spellings(text)


@pytest.mark.parametrize("text", ["ſix", "sıx km", "Sİx", "firſt", "3 ſept 1990", "5 \u212am"])
def test_odd_letters_break_nothing(text: str) -> None:
    assert usual_spellings(text)[0] == text
    value_of(text)


@pytest.mark.parametrize("many", ["hundred ", "million ", "one ", "9", "9,999", "1-", "1, ", "½", "a ", "dozen and "])
def test_long_texts_break_nothing(many: str) -> None:
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


@pytest.mark.parametrize("text", DATES)
def test_a_date_is_found_however_it_is_spelled(text: str) -> None:
    for other in DATES[:-1]:
        assert any(contains(f"Born on {other}.", spelling) for spelling in usual_spellings(text))


@pytest.mark.parametrize("text", ["31 February 1990", "May", "1990s", "Apollo 13", "half", "12:30", ""])
def test_everything_else_is_spelled_as_it_is(text: str) -> None:
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

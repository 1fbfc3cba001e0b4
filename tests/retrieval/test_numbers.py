"""Numbers and dates: found in texts, and spelled as they usually are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.retrieval.numbers import numbers_in
from mmlongbench.retrieval.spellings import number_spellings, usual_spellings
from mmlongbench.retrieval.text import contains

DATES = ["3 May 1990", "May 3, 1990", "3rd of May 1990", "1990-05-03", "03/05/1990", "3.5.1990", "1990-05-03T00:00:00Z"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234 people", {1234}),
        ("1234.0 and 1 234", {1234, 1, 234}),
        ("1.234.567,8 m", {1234567.8}),
        ("1,5 km", {1.5}),
        ("from 12-15 to −3", {12, 15, 3, -3}),
        ("1.2 million", {1.2, 1200000}),
        ("five hundred and six thousand", {5, 6, 506000}),
        ("Twenty-one (B12, 3rd)", {20, 1, 21, 12, 3}),
        (".5 or 0.25", {0.5, 0.25}),
        ("1,2,3", {1, 2, 3}),
        ("3.5.1990", {3, 5, 1990}),
        ("no number, x² or ½", set()),
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
    usual_spellings(text)
    numbers_in(text)


@pytest.mark.parametrize("text", DATES)
def test_a_date_is_found_however_it_is_spelled(text: str) -> None:
    for other in DATES[:-1]:
        assert any(contains(f"Born on {other}.", spelling) for spelling in usual_spellings(text))


@pytest.mark.parametrize("text", ["31 February 1990", "May", "1990s", "Apollo 13", "half", "12:30", ""])
def test_everything_else_is_spelled_as_it_is(text: str) -> None:
    assert usual_spellings(text) == [text]


def test_known_spellings() -> None:
    assert usual_spellings("1,234.50 m") == ["1,234.50 m", "1234.5 m", "1,234.5 m"]
    assert usual_spellings("twelve") == ["twelve", "12"]
    assert usual_spellings("3rd") == ["3rd", "third"]
    assert usual_spellings("$5 million") == ["$5 million", "$5000000", "$5,000,000"]
    assert usual_spellings("50%")[:3] == ["50%", "50 percent", "50 per cent"]
    assert number_spellings(-5.0) == ["-5"]
    assert number_spellings(float("nan")) == []

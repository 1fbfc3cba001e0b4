"""Answers and their formats: which are kept, repaired and rejected."""

import warnings
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.docvqa.rows import NOT_ANSWERABLE, Answer, AnswerFormat, count_words, literal_list, normalise
from mmlongbench.task import Fault

DECLARED = ["Int", "Integer", "Float", "Str", "String", "List", "None"]
NONE = (NOT_ANSWERABLE,)

KEPT = [
    ("8", "Int", "Integer", ("8",)),
    ("8", "Integer", "Integer", ("8",)),
    (" 8\n", "Int", "Integer", ("8",)),
    ("-3", "Int", "Integer", ("-3",)),
    ("+3", "Int", "Integer", ("+3",)),
    ("1,234,567", "Int", "Integer", ("1,234,567",)),
    ("19.5", "Float", "Float", ("19.5",)),
    ("20%", "Float", "Float", ("20%",)),
    ("$1.5 million", "Float", "Float", ("$1.5 million",)),
    ("Less well-off", "Str", "String", ("Less well-off",)),
    ("  two\twords ", "String", "String", ("two\twords",)),
    ("['red', 'blue']", "List", "List", ("red", "blue")),
    ('["red", "blue"]', "List", "List", ("red", "blue")),
    ("[' red ', 1, 2.5]", "List", "List", ("red", "1", "2.5")),
    ("[\n  'red',\n  'blue',\n]", "List", "List", ("red", "blue")),
    (r"['50\% of C:\data']", "List", "List", (r"50\% of C:\data",)),
    ("Not answerable", "None", "None", NONE),
    ("not answerable.", "None", "None", NONE),
]

MENDED = [
    ("21%", "Int", "String", ("21%",), "integer-to-string"),
    ("14:04 CET", "Int", "String", ("14:04 CET",), "integer-to-string"),
    ("yes", "Int", "String", ("yes",), "integer-to-string"),
    ("GPT-4", "Int", "String", ("GPT-4",), "integer-to-string"),
    ("12.0", "Int", "String", ("12.0",), "integer-to-string"),
    ("1,23", "Int", "String", ("1,23",), "integer-to-string"),
    ("['1']", "Int", "List", ("1",), "integer-to-list"),
    ("[1.5, 2.5]", "Float", "List", ("1.5", "2.5"), "float-to-list"),
    ("1,234 tons", "Float", "String", ("1,234 tons",), "float-to-string"),
    ("none of them", "Float", "String", ("none of them",), "float-to-string"),
    ("inf", "Float", "String", ("inf",), "float-to-string"),
    ("['red', 'blue']", "Str", "List", ("red", "blue"), "string-to-list"),
    ("[7]", "String", "List", ("7",), "string-to-list"),
    ("92", "List", "String", ("92",), "list-to-string"),
    ("red, blue", "List", "String", ("red, blue",), "list-to-string"),
    ("['red', 'blue'", "List", "String", ("['red', 'blue'",), "list-to-string"),
    ("('red', 'blue')", "List", "String", ("('red', 'blue')",), "list-to-string"),
    ("[red]", "List", "String", ("[red]",), "list-to-string"),
    (f"[0x{'f' * 5000}]", "List", "String", (f"[0x{'f' * 5000}]",), "list-to-string"),
    ("Not answerable", "Str", "None", NONE, "string-to-none"),
    ("Not answerable", "Int", "None", NONE, "integer-to-none"),
    (" NOT ANSWERABLE. ", "List", "None", NONE, "list-to-none"),
]

REFUSED = [
    ("", "Str", "empty-answer", "answer"),
    (" \n", "Int", "empty-answer", "answer"),
    ("[]", "List", "list-answer", "answer"),
    ("[ ]", "Str", "list-answer", "answer"),
    ("[['red'], 'blue']", "List", "list-answer", "answer"),
    ("[('red', 'blue')]", "List", "list-answer", "answer"),
    ("[{'red': 1}]", "List", "list-answer", "answer"),
    ("['red', None]", "List", "list-answer", "answer"),
    ("[b'red']", "Str", "list-answer", "answer"),
    ("[...]", "Str", "list-answer", "answer"),
    ("['red', ' ']", "List", "list-answer", "answer"),
    ("8", "None", "answer-of-format-none", "answer"),
    ("", "None", "answer-of-format-none", "answer"),
    ("8", "int", "unknown-answer-format", "answer_format"),
    ("8", "", "unknown-answer-format", "answer_format"),
]


@pytest.mark.parametrize(("text", "declared", "format", "values"), KEPT)
def test_what_agrees_is_kept(text: str, declared: str, format: AnswerFormat, values: tuple[str, ...]) -> None:
    assert normalise(text, declared) == Answer(format, values)


@pytest.mark.parametrize(("text", "declared", "format", "values", "repair"), MENDED)
def test_what_disagrees_is_mended_by_name(
    text: str, declared: str, format: AnswerFormat, values: tuple[str, ...], repair: str
) -> None:
    assert normalise(text, declared) == Answer(format, values, (repair,))


@pytest.mark.parametrize(("text", "declared", "reason", "field"), REFUSED)
def test_what_cannot_be_mended_is_refused_with_its_reason(text: str, declared: str, reason: str, field: str) -> None:
    fault = normalise(text, declared)
    assert isinstance(fault, Fault)
    assert (fault.reason, fault.field) == (reason, field)


def test_a_refusal_says_what_was_expected_and_found() -> None:
    assert str(normalise("8", "int")) == (
        "answer_format: unknown-answer-format: expected one of Int, Integer, Float, Str, String, List, None, "
        "found 'int'; write one of them, or leave it empty if the table is your own"
    )
    assert str(normalise("[]", "List")) == (
        "answer: list-answer: expected a list of at least one string or number, none empty, found []; correct the list"
    )


list_like = st.text("[]()'\",\\ \n0x1e+-j{}:*ab", max_size=30).map(lambda text: f"[{text}]")


@given(st.text() | st.text(st.characters()) | list_like, st.sampled_from(DECLARED) | st.text(max_size=8))
def test_any_text_becomes_an_answer_or_a_fault(text: str, declared: str) -> None:
    found = normalise(text, declared)
    if isinstance(found, Fault):
        assert found.field in ("answer", "answer_format")
        return
    assert found.format in get_args(AnswerFormat)
    assert found.values
    assert all(value and value == value.strip() for value in found.values)
    assert found.format == "List" or len(found.values) == 1
    assert (found.format == "None") == (found.values == NONE) or found.format == "List"
    if found.format == "Integer":
        int(found.values[0].replace(",", ""))


@pytest.mark.parametrize(
    "text", [f"[{'-' * 100_000}1]", "[" * 100_000, f"[1{'+1' * 50_000}]", "[\x00]", "[\ud800]", f"[{'9' * 5000}]"]
)
def test_a_hostile_list_is_a_string(text: str) -> None:
    assert literal_list(text) is None
    assert normalise(text, "Str") == Answer("String", (text,))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.integers(-(10**9), 10**9)))
def test_a_list_is_read_as_it_was_written(values: list[str | int]) -> None:
    assert literal_list(repr(values)) == values


def test_nothing_is_printed_or_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert literal_list(r"['\d', 1if 1else 2]") is None
        assert literal_list(r"['\d']") == [r"\d"]
    assert not caught
    assert capsys.readouterr() == ("", "")


def test_words_of_a_list_are_counted_together_or_in_its_longest_element() -> None:
    answer = ["one", "two  words", "and\tthree more"]
    assert count_words(answer, "whole") == 6
    assert count_words(answer, "per_element") == 3
    assert count_words(["one two"], "whole") == count_words(["one two"], "per_element") == 2

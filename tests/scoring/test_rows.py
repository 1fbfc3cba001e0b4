"""Rows that share an id are told apart by answer and images, otherwise by their order if all are there."""

from dataclasses import dataclass
from typing import Any

import pytest

from mmlongbench.scoring.rows import shared_out, told_by


@dataclass(frozen=True)
class Said:
    told: bytes | None
    text: str


def shared(rows: str, predictions: str) -> tuple[str, bool]:
    """Each letter identifies a row or a prediction; `-` is a prediction that cannot be identified."""
    made = [Said(None if letter == "-" else letter.encode(), f"{n}") for n, letter in enumerate(predictions)]
    found, is_ambiguous = shared_out([letter.encode() for letter in rows], made)
    return "".join(each.text if each else "." for each in found), is_ambiguous


@pytest.mark.parametrize(
    ("rows", "predictions", "found", "is_ambiguous"),
    [
        ("abc", "---", "012", False),
        ("abc", "----", "0123", False),
        ("abc", "--", "...", True),
        ("abc", "bc", ".01", False),
        ("abc", "cba", "210", False),
        ("aab", "aab", "012", False),
        ("aab", "ab", "..1", True),
        ("aab", "abb", "..12", True),
        ("abc", "b-c", "102", False),
        ("abcd", "b-", ".0..", True),
        ("abc", "xyz", "012", False),
        ("a", "-", "0", False),
        ("a", "-a", "10", False),
    ],
)
def test_a_row_takes_what_is_for_it(rows: str, predictions: str, found: str, is_ambiguous: bool) -> None:
    assert shared(rows, predictions) == (found, is_ambiguous)


@pytest.mark.parametrize(
    ("record", "output"),
    [
        ({"answer": ["Mott"], "image": "viquae/a.jpg", "ctxs": [{"text": "x"}]}, {"image_list": ["/r/viquae/a.jpg"]}),
        ({"answer": "Yes", "ctxs": ["vh/a.jpg", "vh/b.jpg"]}, {"image_list": ["/r/vh/a.jpg", "/r/vh/b.jpg"]}),
        (
            {"answer": 1, "ctxs": [{"text": "x"}], "image_list": ["o/a.png"], "choices_image": ["n/c.png", "n/d.png"]},
            {"image_list": ["/r/o/a.png", "/r/n/c.png", "/r/n/d.png"]},
        ),
        (
            {"answer": [1, 2], "image_list": ["o/a.png", "o/b.png"], "needle_image_list": ["n/c.png"]},
            {"image_list": ["/r/o/a.png", "/r/o/b.png", "/r/n/c.png"]},
        ),
    ],
)
def test_an_output_says_the_same_of_a_row_as_its_record(record: dict[str, Any], output: dict[str, Any]) -> None:
    said = {**{key: value for key, value in record.items() if key != "ctxs"}, **output}
    assert told_by(said) == told_by(record) is not None
    assert told_by({**said, "answer": "another"}) != told_by(record)
    assert told_by({**said, "image_list": [*said["image_list"][::-1], "/r/z.png"]}) != told_by(record)


def test_nothing_is_told_by_fields_that_say_nothing() -> None:
    assert told_by({"id": "a", "ctxs": [{"text": "x"}], "image_list": []}) is None

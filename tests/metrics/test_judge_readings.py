"""Replies in words: what each rule accepts as a verdict. Literal readings accept what the public code accepts."""

from collections.abc import Callable
from typing import Any

import pytest

from mmlongbench.metrics.judge.verdicts import (
    counts_of,
    fluency_of,
    key_points_of,
    last_grade,
    last_object,
    mark_of,
    public_counts_of,
    public_mark_of,
    sentences_of,
)
from mmlongbench.models.replies import Unusable

Rule = Callable[[str], Any]
NO_OBJECT, NONE_LAST = "no JSON object", "the last braces hold no JSON object"
OFF = "the last number is no grade from 1 to 5"


def both(rule: Callable[..., Any], *args: Any) -> tuple[Rule, Rule]:
    """A rule as the public code has it, and as this project has it."""
    return (lambda words: rule(words, *args, is_literal=True), lambda words: rule(words, *args, is_literal=False))


RULES: dict[str, tuple[tuple[Rule, Rule], tuple[str, ...]]] = {
    "object": (both(last_object), ()),
    "fluency": (both(fluency_of), ("fluency",)),
    "recall": (both(key_points_of, 4), ("recall",)),
    "precision": (both(sentences_of), ("precision", "sentence_count")),
    "mark": ((public_mark_of, mark_of), ("score", "has_verdict")),
    "list": (
        (public_counts_of, lambda words: counts_of(words, 3)),
        ("student_answer_count", "covered_count", "has_verdict"),
    ),
    "grade": (both(last_grade), ("score",)),
}
"""The two rules of a verdict, and the fields of what they find; own verdicts have no `has_verdict`."""

CASES: dict[str, dict[str, tuple[str, Any, Any]]] = {
    "object": {
        "alone": ('{"a": 1}', {"a": 1}, {"a": 1}),
        "the last of two": ('{"a": 1} or rather {"a": 2}', {"a": 2}, {"a": 2}),
        "a fence": ('```json\n{"a": 1}\n```', {"a": 1}, {"a": 1}),
        "inner braces in a fence": ('```json\n{"a": {"b": 1}}\n```', {"a": {"b": 1}}, {"a": {"b": 1}}),
        "a fence behind other braces": ('{x}. ```json\n{"a": {"b": {}}}\n``` {y}', {"a": {"b": {}}}, {"a": {"b": {}}}),
        "inner braces without a fence": ('{"a": {"b": 1}}', NONE_LAST, NONE_LAST),
        "an open brace before it": ('{ "a": {"b": 1}', NONE_LAST, NONE_LAST),
        "the last is none": ('{"a": 1} {x}', NONE_LAST, NONE_LAST),
        "a fence that is open": ('{x} ```json\n{"a": 1, {', NONE_LAST, NONE_LAST),
        "5,000 digits": ('{"a": ' + "1" * 5000 + "}", NONE_LAST, NONE_LAST),
        "lists inside each other": ('{"a": ' + "[" * 50_000 + "}", NONE_LAST, NONE_LAST),
        "prose": ("I would say two.", NO_OBJECT, NO_OBJECT),
        "nothing": ("", NO_OBJECT, NO_OBJECT),
        "many open braces": ("{" * 100_000, NO_OBJECT, NO_OBJECT),
    },
    "fluency": {
        "one": ('{"fluency": 1}', (1,), (1,)),
        "zero": ('{"fluency": 0, "why": "it repeats itself"}', (0,), (0,)),
        "a half": ('{"fluency": 0.5}', (0.5,), "fluency is 0.5, expected 0 or 1"),
        "minus": ('{"fluency": -1}', "fluency is -1, expected 0 to 1", "fluency is -1, expected 0 to 1"),
        **{
            name: (f'{{"fluency": {value}}}', "fluency is no number", "fluency is no number")
            for name, value in {"text": '"1"', "flag": "true", "NaN": "NaN", "inf": "1e999", "null": "null"}.items()
        },
        "another key": ('{"recall": 1}', "fluency is missing", "fluency is missing"),
    },
    "recall": {
        "a count": ('Two. {"recall": 2}', (2,), (2,)),
        "the numbers too": ('{"supported_key_points": [1, 3], "recall": 2}', (2,), (2,)),
        "more than there are": ('{"recall": 5}', (5,), "recall is 5, expected a whole number up to 4"),
        "a half": ('{"recall": 2.5}', (2.5,), "recall is 2.5, expected a whole number up to 4"),
        "minus": ('{"recall": -1}', "recall is -1, expected 0 or more", "recall is -1, expected 0 or more"),
        "a text": ('{"recall": "2"}', "recall is no number", "recall is no number"),
        "another key": ('{"supported_key_points": [1]}', "recall is missing", "recall is missing"),
    },
    "precision": {
        "both counts": ('{"precision": 3, "sentence_count": 4}', (3, 4), (3, 4)),
        "more than there are": (
            '{"precision": 5, "sentence_count": 4}',
            (5, 4),
            "precision is 5 of 4 sentences, expected",
        ),
        "half a sentence": ('{"precision": 1, "sentence_count": 2.5}', (1, 2.5), "precision is 1 of 2.5 sentences"),
        "a key missing": ('{"precision": 3}', "sentence_count is missing", "sentence_count is missing"),
        "a text": ('{"precision": 3, "sentence_count": "4"}', "sentence_count is no num", "sentence_count is no num"),
        "minus": ('{"precision": 3, "sentence_count": -4}', "sentence_count is -4", "sentence_count is -4"),
    },
    "mark": {
        "both": ('It is.\n[Score]: 1 point\n[JSON]:\n{"answer_score": 1}', (1, True), (1,)),
        "the line alone": ("[Score]: 1 points", (1, True), NO_OBJECT),
        "the object alone": ('[JSON]: {"answer_score": 0}', (0, True), (0,)),
        "the first line": (
            '[Score]: 0 points as it says, no: [Score]: 1 point [JSON]: {"answer_score": 1}',
            (0, True),
            (1,),
        ),
        "the line before the object": (
            '[Score]: 0 points [JSON]: {"answer_score": 1}',
            (0, True),
            "the last score line and answer_score differ",
        ),
        "broken JSON": ('[JSON]: {"answer_score": 1, "x": }', (1, True), NONE_LAST),
        "a half": ('[JSON]: {"answer_score": 0.5}', (0.5, True), "answer_score is 0.5, expected 0 or 1"),
        "nothing of it": ("I would say that it is right.", (0, False), NO_OBJECT),
        "nothing": ("", (0, False), NO_OBJECT),
        "off the scale": ("[Score]: 5 points", "the score is '5', the scale goes from 0 to 1", NO_OBJECT),
        "a long number": (f"[Score]: {'9' * 5000} points", "the score is '1000000000', the scale goes", NO_OBJECT),
        "a text": ('[JSON]: {"answer_score": "1"}', "the score is '1', the scale", "answer_score is no number"),
    },
    "list": {
        "both counts": ('[JSON]:\n{"student_answer_count": 3, "covered_count": 2}', (3, 2, True), (3, 2)),
        "broken JSON": ('[JSON]: {"student_answer_count": 3, "covered_count": 2,}', (3, 2, True), NONE_LAST),
        "a key missing": ('[JSON]: {"covered_count": 2}', (0, 0, False), "student_answer_count is missing"),
        "no counts": ("Two of three.", (0, 0, False), NO_OBJECT),
        "more than the reference has": (
            '[JSON]: {"student_answer_count": 9, "covered_count": 4}',
            (9, 4, True),
            "covered_count is 4, expected 0 to 3",
        ),
        "covered by nothing": (
            '[JSON]: {"student_answer_count": 0, "covered_count": 2}',
            "2 items are covered by an answer of 0",
            "covered_count is above 0, student_answer_count is 0",
        ),
        "minus": (
            '[JSON]: {"student_answer_count": 2, "covered_count": -1}',
            (2, 0, True),
            "covered_count is -1, expected 0 to 3",
        ),
        "texts": (
            '[JSON]: {"student_answer_count": "3", "covered_count": 2}',
            "the counts are \"'3' and 2\", expected numbers",
            "student_answer_count is no number",
        ),
        "halves": (
            '[JSON]: {"student_answer_count": 2.5, "covered_count": 2}',
            (2.5, 2, True),
            "the counts are 2.5 and 2, expected whole numbers",
        ),
    },
    "grade": {
        words[:40] or "nothing": (words, literal if isinstance(literal, str) else (literal,), own)
        for words, literal, own in (
            ("4", 4, (4,)),
            ("I give it a 4.", 4, (4,)),
            ("Not 5 but 2", 2, (2,)),
            ("4/5", 5, (4,)),
            ("A 3 out of  5.", 5, (3,)),
            ("4 (out of 5)", 5, (4,)),
            ("I give it a 4 on a scale of 1 to 5.", 5, (4,)),
            ("**4**/5", 5, (4,)),
            ("4 on a 5-point scale", 5, (4,)),
            ("4 (on a scale from 1 (worst) to 5 (best))", 5, (4,)),
            ("Grade: 4. 1 = poor, 2 = fair, 3=ok, 4=good, 5 = excellent", 5, (4,)),
            ("from 1 to 5", 5, "no grade"),
            ("1 to 5.5", 5, OFF),
            ("4 of 10", OFF, OFF),
            ("4.5", 5, OFF),
            ("-1", 1, OFF),
            ("It is correct.", "no grade", "no grade"),
            ("", "no grade", "no grade"),
            ("0", OFF, OFF),
            ("9" * 5000, OFF, OFF),
            ("4" + " " * 100_000 + "of", 4, (4,)),
            ("1" + " " * 50_000 + "(" + " " * 50_000 + "4", 4, (4,)),
        )
    },
}
"""For each verdict: a reply, and what the public code and this project find: the values, or what is wrong."""


def found_by(rule: Rule, words: str) -> Any:
    """What a rule finds, or what is wrong."""
    try:
        return rule(words)
    except Unusable as error:
        return error


@pytest.mark.parametrize(("kind", "case"), [(kind, case) for kind, cases in CASES.items() for case in cases])
def test_each_rule_accepts_the_verdicts_that_it_accepts(kind: str, case: str) -> None:
    words, *expected = CASES[kind][case]
    (rules, fields) = RULES[kind]
    for rule, wanted, is_literal in zip(rules, expected, (True, False), strict=True):
        found = found_by(rule, words)
        if not isinstance(wanted, str):
            made = found if isinstance(wanted, dict) else tuple(getattr(found, name) for name in fields[: len(wanted)])
            assert made == wanted
            continue
        assert found.fault.startswith(wanted)
        is_final = found.kind == "never"
        if kind == "grade" or (is_literal and kind in ("mark", "list")):
            assert is_final == is_literal
        if kind == "object":
            assert is_final == (is_literal and wanted == NO_OBJECT)


def test_the_numbers_of_key_points_are_kept_as_far_as_they_are_numbers() -> None:
    words = '{"supported_key_points": [1, "2", true, 3, 4.0], "recall": 2}'
    assert key_points_of(words, 4, is_literal=True).supported_key_points == (1, 3)

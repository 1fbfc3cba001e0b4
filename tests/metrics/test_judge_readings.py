"""Replies in words: what each rule accepts as a verdict. Literal readings accept what the public code accepts."""

from collections.abc import Callable
from typing import Any

import pytest

from mmlongbench.metrics.judge.readings import (
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
from mmlongbench.metrics.judge.verdicts import NoVerdict
from mmlongbench.models.calls import Unusable


def found_by(rule: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What a rule finds, or what is wrong."""
    try:
        return rule(*args, **options)
    except NoVerdict as error:
        return error.unusable


OBJECTS: dict[str, tuple[str, Any]] = {
    "alone": ('{"a": 1}', {"a": 1}),
    "behind reasoning": ('Points 1 and 3 hold.\n\nOutput: {"a": 1}', {"a": 1}),
    "the last of two": ('{"a": 1} or rather {"a": 2}', {"a": 2}),
    "over lines": ('{\n  "a": 1\n}', {"a": 1}),
    "a list inside": ('{"b": [1, 2], "a": 1} so it is', {"b": [1, 2], "a": 1}),
    "a fence": ('```json\n{"a": 1}\n```', {"a": 1}),
    "inner braces in a fence": ('```json\n{"a": {"b": 1}}\n```', {"a": {"b": 1}}),
    "a fence behind other braces": ('The set {x}. ```json\n{"a": {"b": {}}}\n``` {y}', {"a": {"b": {}}}),
    "an object between braces that are none": ('{x} {"a": 1}', {"a": 1}),
    "inner braces without a fence": ('{"a": {"b": 1}}', "the last braces hold no JSON object"),
    "an open brace before it": ('{ "a": {"b": 1}', "the last braces hold no JSON object"),
    "the last is none": ('{"a": 1} {x}', "the last braces hold no JSON object"),
    "a fence that is none": ("{x} ```json\n{y}\n```", "the last braces hold no JSON object"),
    "a list in a fence": ("{x} ```json\n[1]\n```", "the last braces hold no JSON object"),
    "a fence that is open": ('{x} ```json\n{"a": 1, {', "the last braces hold no JSON object"),
    "a number of 5,000 digits": ('{"a": ' + "1" * 5000 + "}", "the last braces hold no JSON object"),
    "lists inside each other": ('{"a": ' + "[" * 50_000 + "}", "the last braces hold no JSON object"),
    "prose": ("I would say two.", "no JSON object"),
    "nothing": ("", "no JSON object"),
    "cut off": ('It supports points 1 to 9. {"a": 1', "no JSON object"),
    "many open braces": ("{" * 100_000, "no JSON object"),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_the_last_braces_up_to_the_next_closing_one_count_or_else_the_fence(case: str) -> None:
    words, expected = OBJECTS[case]
    for is_literal in (True, False):
        found = found_by(last_object, words, is_literal=is_literal)
        if isinstance(expected, dict):
            assert found == expected
        else:
            assert isinstance(found, Unusable)
            assert (found.fault, found.is_final) == (expected, is_literal and expected == "no JSON object")


FLUENCY: dict[str, tuple[str, float | str, float | str]] = {
    "one": ('{"fluency": 1}', 1, 1),
    "zero": ('{"fluency": 0, "why": "it repeats itself"}', 0, 0),
    "a half": ('{"fluency": 0.5}', 0.5, "fluency is 0.5, expected 0 or 1"),
    "two": ('{"fluency": 2}', "fluency is 2, expected 0 to 1", "fluency is 2, expected 0 to 1"),
    "less than nothing": ('{"fluency": -1}', "fluency is -1, expected 0 to 1", "fluency is -1, expected 0 to 1"),
    "a text": ('{"fluency": "1"}', "fluency is no number", "fluency is no number"),
    "a flag": ('{"fluency": true}', "fluency is no number", "fluency is no number"),
    "no number": ('{"fluency": NaN}', "fluency is no number", "fluency is no number"),
    "infinite": ('{"fluency": 1e999}', "fluency is no number", "fluency is no number"),
    "null": ('{"fluency": null}', "fluency is no number", "fluency is no number"),
    "another key": ('{"recall": 1}', "fluency is missing", "fluency is missing"),
}


@pytest.mark.parametrize("case", FLUENCY)
def test_fluency_is_a_number_from_0_to_1_of_this_project_one_of_the_two(case: str) -> None:
    words, literal, own = FLUENCY[case]
    for is_literal, expected in ((True, literal), (False, own)):
        found = found_by(fluency_of, words, is_literal=is_literal)
        assert (found.fault if isinstance(found, Unusable) else found.fluency) == expected


RECALL: dict[str, tuple[str, float | str, float | str]] = {
    "a count": ('Two. {"recall": 2}', 2, 2),
    "the numbers too": ('{"supported_key_points": [1, 3], "recall": 2}', 2, 2),
    "numbers that are none": ('{"supported_key_points": "1, 3", "recall": 2}', 2, 2),
    "none": ('{"recall": 0}', 0, 0),
    "more than there are": ('{"recall": 9}', 9, "recall is 9, expected a whole number up to 4"),
    "a half": ('{"recall": 2.5}', 2.5, "recall is 2.5, expected a whole number up to 4"),
    "less than nothing": ('{"recall": -1}', "recall is -1, expected 0 or more", "recall is -1, expected 0 or more"),
    "a text": ('{"recall": "2"}', "recall is no number", "recall is no number"),
    "another key": ('{"supported_key_points": [1]}', "recall is missing", "recall is missing"),
}


@pytest.mark.parametrize("case", RECALL)
def test_a_count_of_key_points_is_capped_by_nobody_and_refused_here_if_it_cannot_be(case: str) -> None:
    words, literal, own = RECALL[case]
    for is_literal, expected in ((True, literal), (False, own)):
        found = found_by(key_points_of, words, 4, is_literal=is_literal)
        assert (found.fault if isinstance(found, Unusable) else found.recall) == expected


def test_the_numbers_of_key_points_are_kept_as_far_as_they_are_numbers() -> None:
    words = '{"supported_key_points": [1, "2", true, 3, 4.0], "recall": 2}'
    assert key_points_of(words, 4, is_literal=True).supported_key_points == (1, 3)


PRECISION: dict[str, tuple[str, tuple[float, float] | str, tuple[float, float] | str]] = {
    "both counts": ('{"precision": 3, "sentence_count": 4}', (3, 4), (3, 4)),
    "no sentence": ('{"precision": 0, "sentence_count": 0}', (0, 0), (0, 0)),
    "more than there are": ('{"precision": 5, "sentence_count": 4}', (5, 4), "precision is 5 of 4 sentences, expected"),
    "one of no sentences": ('{"precision": 1, "sentence_count": 0}', (1, 0), "precision is 1 of 0 sentences, expected"),
    "half a sentence": ('{"precision": 1, "sentence_count": 2.5}', (1, 2.5), "precision is 1 of 2.5 sentences"),
    "a key missing": ('{"precision": 3}', "sentence_count is missing", "sentence_count is missing"),
    "a text": ('{"precision": 3, "sentence_count": "4"}', "sentence_count is no number", "sentence_count is no number"),
    "less than nothing": ('{"precision": 3, "sentence_count": -4}', "sentence_count is -4", "sentence_count is -4"),
}


@pytest.mark.parametrize("case", PRECISION)
def test_sentences_are_counted_by_the_judge(case: str) -> None:
    words, literal, own = PRECISION[case]
    for is_literal, expected in ((True, literal), (False, own)):
        found = found_by(sentences_of, words, is_literal=is_literal)
        if isinstance(expected, str):
            assert found.fault.startswith(expected)
        else:
            assert (found.precision, found.sentence_count) == expected


MARKS: dict[str, tuple[str, tuple[float, bool] | str, float | str]] = {
    "both": ('It is.\n[Score]: 1 point\n[JSON]:\n{"answer_score": 1}', (1, True), 1),
    "the line alone": ("[Score]: 1 points", (1, True), "no JSON object"),
    "the object alone": ('[JSON]: {"answer_score": 0}', (0, True), 0),
    "an object without its mark": ('So {"answer_score": 1}.', (1, True), 1),
    "the first line": (
        '[Score]: 0 points as it says, no: [Score]: 1 point [JSON]: {"answer_score": 1}',
        (0, True),
        1,
    ),
    "the line before the object": (
        '[Score]: 0 points [JSON]: {"answer_score": 1}',
        (0, True),
        "the last score line and answer_score differ",
    ),
    "broken JSON": ('[JSON]: {"answer_score": 1, "x": }', (1, True), "the last braces hold no JSON object"),
    "a half": ('[JSON]: {"answer_score": 0.5}', (0.5, True), "answer_score is 0.5, expected 0 or 1"),
    "nothing of it": ("I would say that it is right.", (0, False), "no JSON object"),
    "another key": ('[JSON]: {"score": 1}', (0, False), "answer_score is missing"),
    "nothing": ("", (0, False), "no JSON object"),
    "off the scale": ("[Score]: 5 points", "the score is '5', the scale goes from 0 to 1", "no JSON object"),
    "a long number": (f"[Score]: {'9' * 5000} points", "the score is '1000000000', the scale goes", "no JSON object"),
    "a text": ('[JSON]: {"answer_score": "1"}', "the score is '1', the scale", "answer_score is no number"),
}


@pytest.mark.parametrize("case", MARKS)
def test_the_public_code_reads_the_score_line_then_the_object_and_else_takes_0(case: str) -> None:
    words, literal, own = MARKS[case]
    found = found_by(public_mark_of, words)
    if isinstance(literal, str):
        assert found.fault.startswith(literal)
        assert found.is_final
    else:
        assert (found.score, found.has_verdict) == literal
    found = found_by(mark_of, words)
    assert (found.fault if isinstance(found, Unusable) else found.score) == own


LISTS: dict[str, tuple[str, tuple[float, float, bool] | str, tuple[float, float] | str]] = {
    "both counts": ('[JSON]:\n{"student_answer_count": 3, "covered_count": 2}', (3, 2, True), (3, 2)),
    "nothing covered": ('[JSON]: {"student_answer_count": 0, "covered_count": 0}', (0, 0, True), (0, 0)),
    "counts in broken JSON": (
        '[JSON]: {"student_answer_count": 3, "covered_count": 2,}',
        (3, 2, True),
        "the last braces hold no JSON object",
    ),
    "a key missing": ('[JSON]: {"covered_count": 2}', (0, 0, False), "student_answer_count is missing"),
    "no counts": ("Two of three.", (0, 0, False), "no JSON object"),
    "more than the reference has": (
        '[JSON]: {"student_answer_count": 9, "covered_count": 9}',
        (9, 9, True),
        "covered_count is 9, expected 0 to 3",
    ),
    "covered by nothing": (
        '[JSON]: {"student_answer_count": 0, "covered_count": 2}',
        "2 items are covered by an answer of 0",
        "covered_count is above 0, student_answer_count is 0",
    ),
    "less than nothing": (
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
}


@pytest.mark.parametrize("case", LISTS)
def test_the_counts_of_a_list_are_the_judges(case: str) -> None:
    words, literal, own = LISTS[case]
    found = found_by(public_counts_of, words)
    if isinstance(literal, str):
        assert found.fault.startswith(literal)
        assert found.is_final
    else:
        assert (found.student_answer_count, found.covered_count, found.has_verdict) == literal
    found = found_by(counts_of, words, 3)
    if isinstance(own, str):
        assert found.fault == own
    else:
        assert (found.student_answer_count, found.covered_count) == own


OFF = "the last number is no grade from 1 to 5"
GRADES: dict[str, tuple[str, int | str, int | str]] = {
    "alone": ("4", 4, 4),
    "in a sentence": ("I give it a 4.", 4, 4),
    "the last": ("Not 5 but 2", 2, 2),
    "of five": ("4/5", 5, 4),
    "out of five": ("A 3 out of  5.", 5, 3),
    "out of five in brackets": ("4 (out of 5)", 5, 4),
    "points out of five": ("3 points out of a possible 5", 5, 3),
    "on a scale": ("I give it a 4 on a scale of 1 to 5.", 5, 4),
    "on a scale with a dash": ("2 (scale: 1–5)", 5, 2),
    "in bold letters": ("**4**/5", 5, 4),
    "of the points": ("4 of the 5 points", 5, 4),
    "on a scale of points": ("4 on a 5-point scale", 5, 4),
    "on a scale with words": ("4 (on a scale from 1 (worst) to 5 (best))", 5, 4),
    "before a scale": ("Grade: 2. Scale: 1 = worst, 5 = best", 5, 2),
    "before a scale of all grades": ("Grade: 4. 1 = poor, 2 = fair, 3=ok, 4=good, 5 = excellent", 5, 4),
    "a scale alone": ("from 1 to 5", 5, "no grade"),
    "a range beyond the scale": ("1 to 5.5", 5, OFF),
    "of ten": ("4 of 10", OFF, OFF),
    "of ten in brackets": ("4 (out of 10)", OFF, OFF),
    "a half": ("4.5", 5, OFF),
    "below zero": ("-1", 1, OFF),
    "none": ("It is correct.", "no grade", "no grade"),
    "nothing": ("", "no grade", "no grade"),
    "zero": ("0", OFF, OFF),
    "six": ("6", OFF, OFF),
    "a long number": ("9" * 5000, OFF, OFF),
    "many blanks": ("4" + " " * 100_000 + "of", 4, 4),
    "many blanks and a bracket": ("1" + " " * 50_000 + "(" + " " * 50_000 + "4", 4, 4),
}


@pytest.mark.parametrize("case", GRADES)
def test_the_last_number_of_a_reply_is_its_grade_and_none_is_no_grade(case: str) -> None:
    words, literal, own = GRADES[case]
    for is_literal, expected in ((True, literal), (False, own)):
        found = found_by(last_grade, words, is_literal=is_literal)
        if isinstance(expected, int):
            assert found.score == expected
        else:
            assert (found.fault, found.is_final) == (expected, is_literal)

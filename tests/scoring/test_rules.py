"""The benchmark's own metrics by hand: what counts, what is refused, and what would break the public code."""

import json
from typing import Any

import pytest

from mmlongbench.scoring.benchmark import (
    ClassLabel,
    DocumentAnswer,
    OptionLetter,
    RougeL,
    SubstringExactMatch,
    TotalCount,
    YesNo,
    after_prefix,
    binary_acc,
    cls_acc,
    doc_qa,
    mc_acc,
    soft_acc,
    sub_em,
)
from mmlongbench.scoring.metric import Asked, Metric, Settings
from mmlongbench.scoring.mmlongbench_doc import ANLS, Rules

OURS, COMPATIBLE = Settings(), Settings(is_compatible=True)
METRICS: tuple[tuple[Metric, Any], ...] = (
    (SubstringExactMatch(OURS), ["Peru"]),
    (YesNo(OURS), "Yes"),
    (TotalCount(OURS), [1, 2]),
    (OptionLetter(OURS), 1),
    (ClassLabel(OURS), 3),
    (RougeL(OURS), "The case was settled."),
    *((metric, gold) for metric in (DocumentAnswer(OURS), Rules(OURS), ANLS(OURS)) for gold in ("5", '["a", "b"]')),
)


def asked(said: str, gold: Any, kind: str = "String", **other: Any) -> Asked:
    return Asked("documentQA/x_K8.jsonl", "x", {"id": "x", "answer_format": kind}, gold, said, **other)


def test_an_answer_may_stand_anywhere_among_lists_of_answers() -> None:
    assert sub_em("It is in São Paulo!", [["Rio"], ["são paulo", "SP"]]) == 1
    assert sub_em("Rio", "São Paulo") == 0
    assert sub_em("Peru", []) == 0


def test_only_what_stands_behind_the_prefix_is_parsed() -> None:
    assert after_prefix("  Answer:   ", "Answer:") == ""
    assert after_prefix("ANSWER: a\nAnswer: b", "Answer:") == "a\nAnswer: b"
    assert after_prefix(" no prefix ", "Answer:") == "no prefix"


def test_a_refusal_is_wrong_and_flagged_whatever_its_place() -> None:
    for place in range(4):
        scored = YesNo(OURS).score(asked("I cannot tell", "Yes", place=place))
        assert (scored.score, scored.details) == (0.0, {"refused": True})
    assert YesNo(OURS).score(asked("No... yes", "Yes")).details == {"refused": False}
    assert binary_acc("", "maybe") == 0


def test_compatible_refusals_take_the_public_codes_turn_by_place() -> None:
    scores = [YesNo(COMPATIBLE).score(asked("I cannot tell", "Yes", place=place)).score for place in range(6)]
    assert scores == [0, 1, 1, 0, 0, 1]


@pytest.mark.parametrize("settings", [OURS, COMPATIBLE])
def test_outputs_of_the_public_code_are_scored_as_it_scores_them(settings: Settings) -> None:
    """Behind its prefix a capital is taken for an option; of whole and parsed output the better counts."""
    for gold, score in ((1, 1.0), (2, 1.0), (3, 0.0)):
        assert OptionLetter(settings).score(asked("Both are alike, I take C", gold, lead="Answer:")).score == score
    assert ClassLabel(settings).score(asked("label: 3\nlabel: 0", 0, lead="label:")).score == 1
    assert DocumentAnswer(settings).score(asked("Answer: Yes", "yes", lead="Answer:")).score == 1


def test_predictions_of_ones_own_are_scored_as_they_stand() -> None:
    assert OptionLetter(OURS).score(asked("Both are alike, I take C", 1)).score == 0
    assert ClassLabel(OURS).score(asked("label: 3\nlabel: 0", 0)).score == 0
    assert DocumentAnswer(OURS).score(asked("So:\nAnswer: Yes", "yes")).score == 1
    assert SubstringExactMatch(OURS).score(asked("Answer:Peru", ["Peru"])).score == 1


@pytest.mark.parametrize(
    ("said", "gold", "kind", "score"),
    [
        ("there are 4, or 5", "5", "Integer", 1),
        ("1,577 visitors", "1577", "Integer", 1),
        ("4.5", "4", "Integer", 0),
        ("18.2", "18.29%", "Float", 1),
        ("0.1829", "18.29%", "Float", 1),
        ("1829", "18.29%", "Float", 1),
        ("17", "18.29%", "Float", 0),
        ("on 2021-02-08 it was", "2021-02-08", "String", 1),
        ("2021-02-8", "2021-02-08", "String", 0),
        ("up to eight degrees", "eight degrees", "String", 2 * 0.5 / 1.5),
        ("red, green and 3", '["green", "red", "3"]', "List", 0.5 * (2 / 3 + 1)),
        ("yes", "yes", "Integer", 1),
        ("not a list", "not a list", "List", 1),
        ("[]", "[]", "List", 0),
        ("five and a half", "5.5", "Integer", 0),
    ],
)
def test_document_answers_by_format(said: str, gold: str, kind: str, score: float) -> None:
    assert doc_qa(said, gold, kind) == pytest.approx(score)


@pytest.mark.parametrize("said", ["²", "9" * 5000, "yeſ", "[" + "9" * 5000 + "]", "label: " + "1" * 5000, "\ud800"])
def test_what_breaks_the_public_code_is_only_wrong(said: str) -> None:
    for metric, gold in METRICS:
        assert metric.score(asked(said, gold)).score == 0
    assert (soft_acc(said, [1]), mc_acc(said, 1), cls_acc(said, 0)) == (0, 0, 0)


SIZE = 100_000
HOSTILE = {
    "brackets": "[" * SIZE,
    "half lists": "[1," * (SIZE // 3),
    "nested": '[{"a":' * (SIZE // 6) + "]",
    "digits": "1" * SIZE,
    "numbers": "1. " * (SIZE // 3),
    "words": "yes no " * (SIZE // 7),
    "letters": "A " * (SIZE // 2),
    "prefixes": "Answer:" * (SIZE // 7),
    "parentheses": "(" * SIZE,
    "blanks": "x" + " " * SIZE + "x",
    "quotes": "['" + "\\'" * (SIZE // 2),
    "minus": "-" * SIZE,
    "sharp s": "ß" * SIZE,
    "mail": "a@" + "a." * (SIZE // 2),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_long_predictions_are_scored_in_one_pass(kind: str) -> None:
    """Of the square of this length no test would see the end."""
    for metric, gold in METRICS:
        if metric.name != "rouge":
            for form in ("Float", "List"):
                assert metric.score(asked(HOSTILE[kind], gold, form)).score is not None


def test_rouge_looks_at_a_bounded_part_and_says_so() -> None:
    gold = "The case was settled."
    scored = RougeL(OURS).score(asked(gold + " " * 60_000 + "Not looked at.", gold))
    assert (scored.score, scored.details["cut"]) == (1.0, True)


@pytest.mark.parametrize(
    ("metric", "gold", "said"),
    [
        (TotalCount(OURS), "3", "the answer is '3', expected a list of whole numbers"),
        (OptionLetter(OURS), "A", "the answer is 'A', expected the place of an option"),
        (ClassLabel(OURS), None, "the answer is None, expected a label"),
    ],
)
def test_a_gold_answer_of_another_type_is_a_failure_and_no_zero(metric: Metric, gold: Any, said: str) -> None:
    scored = metric.score(asked("3", gold))
    assert (scored.score, scored.failure) == (None, said)


def test_an_unknown_answer_format_is_a_failure_that_names_the_known() -> None:
    for metric in (DocumentAnswer(OURS), Rules(OURS)):
        scored = metric.score(asked("3", "3", "Number"))
        assert scored.score is None
        assert scored.failure == "answer_format is 'Number', expected one of Integer, Float, String, None, List"


def test_details_are_json() -> None:
    for metric, gold in METRICS:
        json.dumps(dict(metric.score(asked("Not answerable", gold)).details))

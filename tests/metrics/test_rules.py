"""The benchmark's own metrics: by hand, on what would break the public code, and over vectors made with that code."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import needs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmlongbench.answers import after_prefix, rest_of_line
from mmlongbench.errors import ScoringError
from mmlongbench.metrics.benchmark import (
    ClassLabel,
    DocumentAnswer,
    OptionLetter,
    RougeL,
    SubstringExactMatch,
    TotalCount,
    YesNo,
    binary_acc,
    cls_acc,
    doc_qa,
    mc_acc,
    rouge,
    rouge_scorer,
    soft_acc,
    sub_em,
)
from mmlongbench.metrics.benchmark.metrics import DEFAULTS, BenchmarkMetric
from mmlongbench.metrics.mmlongbench_doc import ANLS, LenientRules, Rules, accuracy_and_f1, score_extracted
from mmlongbench.task.metrics import Metric, ScoringInput, Settings

OFFICIAL, PAPER, OURS = Settings(profile="official"), Settings(profile="paper"), Settings(profile="ours")
DEFAULT = Settings()
BENCHMARK: tuple[type[BenchmarkMetric], ...] = (
    SubstringExactMatch,
    YesNo,
    TotalCount,
    OptionLetter,
    ClassLabel,
    DocumentAnswer,
    RougeL,
)
GOLDS: tuple[Any, ...] = (["Peru"], "Yes", [1, 2], 1, 3)
METRICS: tuple[tuple[Metric, Any], ...] = (
    *(
        (kind(profile), gold)
        for profile in (OFFICIAL, PAPER, OURS)
        for kind, gold in zip(BENCHMARK, GOLDS, strict=False)
    ),
    *((RougeL(profile), "The case was settled.") for profile in (OFFICIAL, PAPER, OURS)),
    *(
        (metric, gold)
        for metric in (DocumentAnswer(OFFICIAL), DocumentAnswer(OURS), Rules(OURS), LenientRules(OURS), ANLS(DEFAULT))
        for gold in ("5", '["a", "b"]')
    ),
)


def asked(said: str, gold: Any, kind: str = "String", **other: Any) -> ScoringInput:
    return ScoringInput("documentQA/x_K8.jsonl", "x", "x", gold, said, answer_format=kind, **other)


def test_an_answer_may_stand_anywhere_among_lists_of_answers() -> None:
    assert sub_em("It is in São Paulo!", [["Rio"], ["são paulo", "SP"]]) == 1
    assert sub_em("Rio", "São Paulo") == sub_em("Peru", []) == 0


def test_only_what_stands_behind_the_prefix_is_parsed() -> None:
    assert after_prefix("  Answer:   ", "Answer:") == ""
    assert after_prefix("ANSWER: a\nAnswer: b", "Answer:") == "a\nAnswer: b"
    assert after_prefix(" no prefix ", "Answer:") == "no prefix"
    assert rest_of_line("Answer: Answer: Peru\nChile", "Answer:") == "Peru"


def test_every_metric_says_whose_rules_it_follows() -> None:
    for kind in BENCHMARK:
        assert (kind(DEFAULT).profile, kind(DEFAULT).follows) == ("official", "EdinburghNLP/MMLongBench@22b9f27")
        assert (kind(OURS).profile, kind(OURS).follows) == ("ours", "")
        assert (kind(PAPER).profile, kind(PAPER).follows) == ("paper", "arXiv:2505.10610")
    assert DocumentAnswer(OFFICIAL).choices == ("docqa_llm_judge off",)
    assert DocumentAnswer(PAPER).choices == DocumentAnswer(OURS).choices == ()
    rules = Rules(DEFAULT)  # without a judge it is an approximation of this project
    assert (rules.profile, rules.choices) == ("ours", ("rule-extracted",))
    assert rules.follows == "mayubo2333/MMLongBench-Doc@d73f0dc"
    with pytest.raises(ScoringError, match=r"--profile official: the metric 'mmlongbench-doc' .* it offers ours"):
        Rules(OFFICIAL)


LATER = "I look at the map.\nAnswer: Peru"
SUMMARY = ("It has two parts.\nTwelve programs lacked metrics.", "Twelve programs lacked metrics.")
BOTH_ALIKE, TWO_LABELS = "Both are alike, I take C", "label: 3\nlabel: 0"
PARSED: tuple[tuple[Callable[[Settings], BenchmarkMetric], Settings, str, Any, str, float], ...] = (
    (DocumentAnswer, PAPER, "Peru\n\nIt is Peru, since the map on page 3 shows it.", "Peru", "", 1),  # the line's rest
    (DocumentAnswer, OFFICIAL, "Peru\n\nIt is Peru, since the map on page 3 shows it.", "Peru", "", 2 / 12),
    (DocumentAnswer, PAPER, LATER, "Peru", "", 0),
    (DocumentAnswer, OFFICIAL, f"Answer: {LATER}", "Peru", "", 2 / 7),
    (RougeL, PAPER, *SUMMARY, "", 2 * 4 / (9 + 4)),  # "Summary" is one of the words
    (RougeL, OFFICIAL, *SUMMARY, "", 2 * 4 / (8 + 4)),
    # under official a capital behind the prompt's last words is an option; of the whole and the rest the better counts
    *(
        each
        for lead in ("", "Answer:")
        for each in (
            *(
                (OptionLetter, OFFICIAL, BOTH_ALIKE, gold, lead, score)
                for gold, score in ((1, 1.0), (2, 1.0), (3, 0.0))
            ),
            # its pattern takes the A of the second "Answer" for an option
            *((OptionLetter, OFFICIAL, "Answer: C", gold, lead, score) for gold, score in ((0, 1), (2, 1), (1, 0))),
            (ClassLabel, OFFICIAL, "5, surely not 7", 5, lead and "label:", 1),
            (ClassLabel, OFFICIAL, TWO_LABELS, 0, lead and "label:", 1),
            (DocumentAnswer, OFFICIAL, "Answer: Yes", "yes", lead, 1),
            (SubstringExactMatch, OFFICIAL, "Peru", ["answer Peru"], lead, 0),
            (RougeL, OFFICIAL, "The summary: it was settled.", "it was settled", lead and "Summary:", 0.75),
        )
    ),
    # under ours predictions are scored as they stand
    (OptionLetter, OURS, BOTH_ALIKE, 1, "", 0),
    (OptionLetter, OURS, "Answer: C", 0, "Answer:", 0),
    (ClassLabel, OURS, "5, surely not 7", 5, "", 0),
    (ClassLabel, OURS, TWO_LABELS, 0, "", 0),
    (DocumentAnswer, OURS, "So:\nAnswer: Yes", "yes", "", 1),
    (SubstringExactMatch, OURS, "Answer:Peru", ["Peru"], "", 1),
)


@pytest.mark.parametrize(("kind", "profile", "said", "gold", "lead", "score"), PARSED)
def test_what_each_profile_reads_of_a_prediction(
    kind: Callable[[Settings], BenchmarkMetric], profile: Settings, said: str, gold: Any, lead: str, score: float
) -> None:
    assert kind(profile).score(asked(said, gold, lead=lead)).score == pytest.approx(score)


def test_refusals_take_the_public_codes_turn_by_place_but_under_ours() -> None:
    for profile, turns in ((OFFICIAL, [0, 1, 1, 0, 0, 1]), (PAPER, [0, 1, 1, 0, 0, 1]), (OURS, [0] * 6)):
        scored = [YesNo(profile).score(asked("I cannot tell", "Yes", place=place)) for place in range(6)]
        assert [each.score for each in scored] == turns
        assert {each.details["refused"] for each in scored} == {True}
    assert YesNo(OURS).score(asked("No... yes", "Yes")).details == {"refused": False}
    assert binary_acc("", "maybe") == 0


WORDS = st.lists(
    st.sampled_from(("summary", "Summaries", "Summary:", "the", "case", "was", "settled", "\n", ".")), max_size=9
)


@settings(max_examples=50)
@given(WORDS, WORDS)
def test_a_summary_is_compared_once_where_that_is_the_better_of_both(said: list[str], gold: list[str]) -> None:
    prediction, answer, scorer = " ".join(said), " ".join(gold), rouge_scorer()
    texts = (f"Summary:{prediction}", after_prefix(f"Summary:{prediction}", "Summary:"))
    both = [rouge(scorer, text, [answer]) for text in texts]
    expected = {key: max(found[key] for found in both) for key in both[0]}
    assert RougeL(OFFICIAL).score(asked(prediction, answer)).details == pytest.approx(expected)


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


SIZE = 50_000
HOSTILE = {
    "brackets": "[" * SIZE,
    "half lists": "[1," * (SIZE // 3),
    "nested": '[{"a":' * (SIZE // 6) + "]",
    "digits": "1" * SIZE,
    "a fraction": "1" * SIZE + "½",
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
    """If the time grew with the square of this length, the test would not end."""
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
        details = dict(metric.score(asked("Not answerable", gold)).details)
        assert json.loads(json.dumps(details, allow_nan=False)) == details


@pytest.mark.parametrize(
    ("metric", "gold", "said"),
    [
        (SubstringExactMatch(OURS), ["Peru", "Lima"], "Peru"),
        (YesNo(OURS), "Yes", "Yes"),
        (TotalCount(OURS), [1, 2], "[1, 2]"),
        (OptionLetter(OURS), 3, "D"),
        (OptionLetter(OURS), -1, "-1"),
        (OptionLetter(OURS), 26, "26"),
        (OptionLetter(OURS), "D", "D"),
        (ClassLabel(OURS), 3, "3"),
        (DocumentAnswer(OURS), "", ""),
    ],
)
def test_the_full_answer_of_a_metric(metric: Metric, gold: object, said: str) -> None:
    assert metric.full_answer(ScoringInput("f", "d", "1", gold, "")) == said


# Vectors of the public code

NA = "Not answerable"
Row = dict[str, Any]
scorer = cache(rouge_scorer)


def figures(row: Row) -> dict[str, float]:
    rows = [(each["score"], each["answer"] != NA, each["pred"] != NA) for each in row["rows"]]
    found = accuracy_and_f1(rows)
    return {"acc": found["accuracy"], "f1": found["f1"]}


SCORES: dict[str, Callable[[Row], object]] = {
    "sub_em": lambda row: max(sub_em(row[key], row["answer"]) for key in ("prediction", "parsed")),
    "binary_acc": lambda row: binary_acc(row["prediction"], row["answer"], row["default"]),
    "count_acc": lambda row: soft_acc(row["prediction"], row["answer"]),
    "mc_acc": lambda row: mc_acc(row["prediction"], row["answer"]),
    "cls_acc": lambda row: cls_acc(row["prediction"], row["answer"]),
    "doc_qa": lambda row: doc_qa(row["prediction"], row["answer"], row["answer_format"]),
    "rouge": lambda row: rouge(scorer(), row["prediction"], [row["answer"]]),
    "mmlongbench_doc": lambda row: score_extracted(row["answer"], row["answer_format"], row["prediction"]),
    "mmlongbench_doc_acc_f1": figures,
}
CHANGED: dict[str, tuple[type[BenchmarkMetric], set[str]]] = {
    "sub_em": (SubstringExactMatch, set()),
    "binary_acc": (YesNo, {"1", "0"}),  # the digit is no longer the whole prediction
    "count_acc": (TotalCount, set()),
    "mc_acc": (OptionLetter, {"Answer: C", "C or D"}),  # behind "Answer:" its letter or the first letter counts, too
    "cls_acc": (ClassLabel, {"label: 3\nlabel: 0"}),  # behind the prompt's "label:" the second label is read, too
    "rouge": (RougeL, set()),
}
"""Metrics, and the predictions whose `official` scores are not those of the functions.

The vectors were made without the prompt's last words, which `eval.py` and `official` put before each prediction.
"""


@pytest.fixture(scope="module")
def vectors() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = json.loads(needs.shared("reference", "scoring_vectors.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("kind", SCORES)
def test_every_vector_is_equal(kind: str, vectors: dict[str, list[Row]]) -> None:
    assert set(vectors) == set(SCORES)
    wanted = [row["score"] if "score" in row else {name: row[name] for name in ("acc", "f1")} for row in vectors[kind]]
    assert wanted
    for row, score in zip(vectors[kind], wanted, strict=True):
        assert SCORES[kind](row) == pytest.approx(score, abs=1e-6), row
        if "parsed" in row:
            assert after_prefix(row["prediction"], "Answer:") == row["parsed"]


def differing(metric: BenchmarkMetric, rows: list[Row]) -> list[Row]:
    """The vectors whose score under `official` is not that of the functions."""
    found = []
    for row in rows:
        place = DEFAULTS.index(row["default"]) if "default" in row else 0
        scored = metric.score(replace(of(row), place=place))
        made = scored.details if isinstance(row["score"], dict) else scored.score
        if made != pytest.approx(row["score"], abs=1e-6):
            found.append(row)
    return found


def of(row: Row) -> ScoringInput:
    return asked(row["prediction"], row["answer"], row.get("answer_format", ""))


@pytest.mark.parametrize("kind", CHANGED)
def test_official_differs_from_the_functions_only_by_the_prompts_last_words(
    kind: str, vectors: dict[str, list[Row]]
) -> None:
    metric, expected = CHANGED[kind]
    found = [row["prediction"] for row in differing(metric(Settings(profile="official")), vectors[kind])]
    assert (set(found), len(found)) == (expected, len(expected))


def test_official_differs_on_document_answers_only_where_they_repeat_answer(vectors: dict[str, list[Row]]) -> None:
    """The functions compare "Answer:" with the rest; `official` removes it."""
    official = DocumentAnswer(Settings(profile="official"))
    rows = differing(official, vectors["doc_qa"])
    assert len(rows) == 50
    for row in rows:
        assert row["prediction"].lower().startswith("answer:")
        without = row["prediction"][len("answer:") :].strip()
        assert official.score(of(row)).score == doc_qa(without, row["answer"], row["answer_format"])

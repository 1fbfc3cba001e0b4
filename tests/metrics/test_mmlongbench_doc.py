"""MMLongBench-Doc's protocol by hand: reading answers out by rules, lists, accuracy and F1, ANLS."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmlongbench.answers import MAX_LIST, anls, flat_list, gold_list
from mmlongbench.metrics.mmlongbench_doc import ANLS, LenientRules, Rules, extract_answer, score_extracted
from mmlongbench.metrics.mmlongbench_doc.metrics import FORMATS
from mmlongbench.task import Score
from mmlongbench.task.metrics import ScoringInput, Settings

NA = "Not answerable"
FAIL = "Fail to answer"


def asked(said: str, gold: str, kind: str = "String", lead: str = "") -> ScoringInput:
    return ScoringInput("documentQA/x_K8.jsonl", "x", "x", gold, said, lead, answer_format=kind)


@pytest.mark.parametrize(
    ("response", "kind", "answer"),
    [
        ("1,577", "Integer", "1577"),
        ("Answer: **12** charts.", "Integer", "12"),
        ("There are seven.", "Integer", "7"),
        ("It rose by 18.29 %.", "Float", "18.29%"),
        ("Answer: $1,577.50", "Float", "1577.50"),
        ("I reason.\nAnswer: 3\nNo, wait.\nFinal answer: 4", "Integer", "4"),
        ("Extracted answer: ['a', 'b']\nAnswer format: List", "List", "['a', 'b']"),
        ("answer: [Tern Rock]", "String", "Tern Rock"),
        ("The answer is Tern Rock.", "String", "Tern Rock"),
        ("Tern Rock.\n\nIt is on page 3.", "String", "Tern Rock"),
        ("They are:\n1. red\n2. blue.", "List", '["red", "blue"]'),
        ("red; green; blue", "List", '["red", "green", "blue"]'),
        ("Answer: Not answerable.", "Integer", NA),
        ("The provided document does not mention any such number.", "Integer", NA),
        ("This cannot be determined from the pages", "String", NA),
        ("It is not stated in the report.", "Float", NA),
        ("It doesn't mention the harbour.", "String", NA),
        ("The toll isn't mentioned.", "Integer", NA),
        ("The toll isn’t stated on this page, page 3", "Integer", NA),
        ("Not provided", "Float", NA),
        ("There is no information about it", "String", NA),
        ("Answer: N/A.", "Float", NA),
        ("The file couldn't be opened; I can't open the file", "String", FAIL),
        ("The COVID-19 share is 45%", "Float", "45%"),
        ("GPT-4 reached 87 in 2019-2020", "Integer", "87"),
        ("From -5.5 to 2", "Float", "-5.5"),
        ("FY2019", "Integer", "2019"),
        ("US$1,577.50", "Float", "1577.50"),
        ("I'm unable to view the images, so I cannot answer", "String", FAIL),
        ("I can’t read the document", "List", FAIL),
        ("", "Integer", ""),
        ("Answer:", "String", ""),
    ],
)
def test_answers_are_read_out_by_rules(response: str, kind: str, answer: str) -> None:
    assert extract_answer(response, kind) == answer


@pytest.mark.parametrize(
    "said", ["It does not include taxes", "a fileless design", "notable", "no information security officer", "N/A, 3"]
)
def test_an_answer_that_denies_something_is_no_refusal(said: str) -> None:
    assert extract_answer(said, "String") == said


def test_lists_are_read_as_python_or_json_writes_them() -> None:
    assert flat_list(r"""['it\'s', "caf\u00e9", 'a\dz', '\x41', "\101"]""") == ["it's", "café", r"a\dz", "A", "A"]
    assert flat_list("[1, -2.50, 1_000, 1e3, None, True]") == ["1", "-2.5", "1000", "1000.0", "None", "True"]
    assert flat_list(" [ 'a' , ] ") == ["a"]
    assert flat_list("[]") == flat_list("[ ]") == []


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "[__import__('os').getcwd()]",
        "['a'",
        "['a'] + ['b']",
        "[x]",
        "[[1]]",
        "['a', , 'b']",
        "[" * 300 + "]" * 300,
        r"['\U99999999']",
        "[" + "1" * 5000 + "]",
        "['" + "a" * MAX_LIST + "']",
        "",
        "[",
    ],
)
def test_what_is_no_flat_list_is_none_and_nothing_is_evaluated(text: str) -> None:
    assert flat_list(text) is None
    assert score_extracted('["a"]', "List", text) == 0


def test_gold_lists_may_be_json_python_or_bare() -> None:
    assert gold_list('["a", 1]') == ["a", "1"]
    assert gold_list("['a', 1]") == ["a", "1"]
    assert gold_list("92") == ["92"]
    assert gold_list("[sic]") == ["[sic]"]


def test_a_list_needs_as_many_elements_and_its_worst_pair_counts() -> None:
    assert score_extracted('["red", "blue"]', "List", "['blue', 'red']") == 1
    assert score_extracted('["red", "blue"]', "List", "['red']") == 0
    assert score_extracted('["yellow", "blue"]', "List", "['yellow', 'blues']") == pytest.approx(0.8)
    assert score_extracted('["1", "2"]', "List", "['1', '3']") == 0
    assert score_extracted('["92"]', "List", "92") == 1


def test_an_integer_is_cut_and_a_float_may_be_a_percentage() -> None:
    assert score_extracted("5", "Int", "5.9") == 1
    assert score_extracted("5", "Integer", "five") == 0
    assert score_extracted("14:04 CET", "Int", "14:04 CET") == 0
    assert score_extracted("21%", "Float", "0.21") == 1
    assert score_extracted("a fifth", "Float", "0.2") == 0


def test_anls_is_0_up_to_one_half_and_looks_at_long_strings_by_their_length() -> None:
    assert anls("abcd", "abxx") == 0
    assert anls("abcd", "abcx") == 0.75
    assert anls("abcd", "abcd" * 1_000_000) == 0


def test_the_anls_metric_takes_the_nearest_answer_without_case() -> None:
    metric = ANLS(Settings())
    assert metric.score(ScoringInput("f", "d", "x", ["Tern Rock", "the Rock"], "Answer: tern  rocks")).score == 0.9
    assert metric.score(asked('["red", "blue"]', '["red", "blue"]', "List")).score == 1
    assert metric.score(asked("Red, blue", '["red", "blue"]', "List")).score == 1
    assert metric.score(asked("", "red")).score == 0


@pytest.mark.parametrize(
    ("gold", "kind"),
    [
        ("18.29%", "Float"),
        ("$1,577.00", "Float"),
        ("12", "Integer"),
        ('["Is it safe?", "1.3", "a.m."]', "List"),
        ("1,066", "Integer"),
        ("1.5 million", "Float"),
        (NA, "None"),
    ],
)
def test_a_gold_answer_fed_back_scores_full(gold: str, kind: str) -> None:
    for rules in (Rules(Settings()), LenientRules(Settings())):
        assert rules.score(asked(gold, gold, kind)).score == 1
        assert rules.score(asked(f"Answer: {gold}", gold, kind)).score == pytest.approx(1, abs=0.1)
        for said in {"", NA, FAIL} - {gold}:
            assert (rules.score(asked(said, gold, kind)).score or 0) < 0.6, said


@pytest.mark.parametrize(
    ("said", "gold", "kind", "strict", "lenient"),
    [
        ("Melinda D.", "Melinda D.", "String", 0.9, 1.0),
        ("N/A", "N/A", "String", 0.0, 1.0),
        ("[Tern Rock]", "[Tern Rock]", "String", 9 / 11, 1.0),
        ("Not stated, but 12", "12", "Integer", 1.0, 1.0),
        ("It is not answerable.\n\nOr 12", "12", "Integer", 0.0, 0.0),
        ("a lot: 3 of them", "a lot: 3 of them", "None", 1.0, 1.0),
    ],
)
def test_one_reading_is_chosen_before_the_gold_is_seen_and_lenient_takes_the_best_of_three(
    said: str, gold: str, kind: str, strict: float, lenient: float
) -> None:
    assert Rules(Settings()).score(asked(said, gold, kind)).score == pytest.approx(strict)
    assert LenientRules(Settings()).score(asked(said, gold, kind)).score == pytest.approx(lenient)


@settings(max_examples=40)
@given(st.text(max_size=60), st.sampled_from(FORMATS), st.text(max_size=20), st.text(max_size=20))
def test_the_reading_does_not_depend_on_the_gold_answer(said: str, kind: str, one: str, other: str) -> None:
    found = [Rules(Settings()).score(asked(said, gold, kind)).details["extracted"] for gold in (one, other)]
    assert found[0] == found[1]


def test_totals_are_accuracy_and_f1_over_what_was_answered() -> None:
    rules = Rules(Settings())
    said = [("red", "red"), (NA, "blue"), (NA, NA), ("green", NA)]
    scored = [rules.score(asked(*pair, "None" if pair[1] == NA else "String")) for pair in said]
    absent = Score(0.0, rules.absent(asked("", "red")))
    assert rules.totals(scored) == {"accuracy": 0.5, "f1": pytest.approx(0.5)}  # recall 1 / 2, precision 1 / 2
    assert rules.totals([*scored, absent]) == {"accuracy": 0.4, "f1": pytest.approx(1 / 3)}
    denied = LenientRules(Settings()).score(asked("N/A", "N/A"))
    assert rules.totals([denied, rules.score(asked(NA, "red"))]) == {"accuracy": 0.5, "f1": pytest.approx(2 / 3)}
    assert rules.totals([]) == {"accuracy": 0.0, "f1": 0.0}


def test_a_long_extracted_answer_is_cut_in_the_details() -> None:
    assert len(Rules(Settings()).score(asked("word " * 1000, "red")).details["extracted"]) < 300

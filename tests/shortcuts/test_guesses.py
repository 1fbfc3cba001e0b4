"""Guessing answers from questions: planted leaks are found, and dependence within a document is not taken for one."""

import numpy as np
import pytest

from mmlongbench.shortcuts.guesses import guess_answers
from mmlongbench.shortcuts.measured import PERMUTATIONS, Floats, Measured, uniforms
from mmlongbench.shortcuts.priors import format_prior, free_prior, offered_prior
from mmlongbench.shortcuts.verdicts import judge


def drawn(n: int, *key: str | int) -> Floats:
    return uniforms(n, *key)


@pytest.mark.parametrize("strength", [0.6, 1.2, 3.0])
def test_a_planted_word_is_a_leak(strength: float) -> None:
    n = 160
    answers = ["Yes" if each < 0.5 else "No" for each in drawn(n, "answers")]
    features = drawn(n * 4, "features").reshape(n, 4).copy()
    features[:, 2] += strength * np.array([answer == "Yes" for answer in answers])
    ids = [str(number) for number in range(n)]
    measured = guess_answers("answer from the question", ids, ids, answers, features, "words")
    assert measured is not None
    assert judge([("set", "file", measured)]).findings[0].verdict == "leak"


def test_answers_of_a_document_may_depend_on_each_other() -> None:
    flagged = 0
    for run in range(10):
        of_document = drawn(30, "answers", run)
        feature = drawn(30, "feature", run)
        clusters = [f"d{number // 5}" for number in range(150)]
        answers = ["Yes" if of_document[number // 5] < 0.5 else "No" for number in range(150)]
        features = np.array([[feature[number // 5]] for number in range(150)])
        ids = [str(number) for number in range(150)]
        measured = guess_answers("answer from the question", ids, clusters, answers, features, "words")
        assert measured is not None
        flagged += (judge([("set", "file", measured)]).findings[0].p or 0.0) <= 0.05
    assert flagged <= 3  # 10 draws of a share of 5 %: more than 3 in 1 of 900 cases


def test_the_null_spreads_as_much_as_clean_scores_where_clusters_have_very_different_sizes() -> None:
    clusters = [*(f"small {n}" for n in range(30)), *(f"large {n // 12}" for n in range(72))]
    names, ids = sorted(set(clusters)), [str(number) for number in range(len(clusters))]
    standardised = []
    for run in range(40):
        of = dict(zip(names, drawn(2 * len(names), "two sizes", run).reshape(-1, 2).tolist(), strict=True))
        answers = ["Yes" if of[cluster][0] < 0.5 else "No" for cluster in clusters]
        features = np.array([[of[cluster][1]] for cluster in clusters])
        measured = guess_answers("answer from the question", ids, clusters, answers, features, "words")
        assert measured is not None
        standardised.append((measured.scores.mean() - measured.null.mean()) / measured.null.std())
    assert 0.6 < float(np.square(standardised).mean()) < 1.6  # 2.1 if answers of small clusters are put together


def test_one_answer_alone_cannot_be_guessed() -> None:
    ids = [str(number) for number in range(20)]
    assert guess_answers("answer", ids, ids, ["Yes"] * 20, drawn(20, "x").reshape(20, 1), "words") is None


def test_a_place_that_is_right_too_often_is_a_leak_and_a_balanced_one_is_not() -> None:
    ids = [str(number) for number in range(800)]
    often = [(0 if each < 0.5 else int(each * 4), 4) for each in drawn(800, "often")]
    even = [(number % 4, 4) for number in range(800)]
    biased, balanced = offered_prior(ids, ids, often), offered_prior(ids, ids, even)
    assert biased is not None
    assert balanced is not None
    found = judge([("set", "file", biased), ("set", "file", balanced)])
    assert [each.verdict for each in found.findings] == ["leak", "clean"]
    assert found.findings[0].chance == 0.25
    assert found.p is not None
    assert found.p <= 0.001


def test_a_frequent_free_answer_is_a_leak_only_above_one_in_twenty() -> None:
    ids = [str(number) for number in range(200)]
    many = free_prior(ids, ids, ["Not answerable" if number % 4 == 0 else str(number) for number in range(200)])
    few = free_prior(ids, ids, ["Not answerable" if number % 50 == 0 else str(number) for number in range(200)])
    assert many is not None
    assert few is not None
    findings = judge([("set", "file", many), ("set", "file", few)]).findings
    assert findings[0].verdict == "leak"
    assert findings[1].verdict != "leak"
    assert "'Not answerable', in 50 of 200" in findings[0].evidence


def test_the_most_frequent_of_many_tolerable_answers_is_no_leak() -> None:
    ids, flagged = [str(number) for number in range(200)], 0
    for run in range(80):
        measured = free_prior(ids, ids, [str(int(20 * each)) for each in drawn(200, "twenty answers", run)])
        assert measured is not None
        flagged += (judge([("set", "file", measured)]).findings[0].p or 0.0) <= 0.05
    assert flagged <= 10  # 80 draws of a share of 5 %: more than 10 in 1 of 700 cases


@pytest.mark.parametrize("share", [0.8, 0.5, 0.3])
def test_an_answer_that_is_frequent_among_those_of_its_format_is_a_leak(share: float) -> None:
    ids = [str(number) for number in range(160)]
    formats = ["Integer" if number % 8 == 0 else "String" for number in range(160)]
    kept = drawn(160, "format")
    answers = ["2" if number % 8 == 0 and kept[number] < share else f"x{number}" for number in range(160)]
    measured = format_prior(ids[::8] * 4, [f"{number}" for number in range(80)], answers[::8] * 4, formats[::8] * 4)
    assert measured is not None
    finding = judge([("set", "file", measured)]).findings[0]
    assert finding.verdict == "leak"
    assert "of the format Integer" in finding.evidence


def test_answers_that_are_rare_in_their_format_are_no_leak() -> None:
    ids = [str(number) for number in range(200)]
    formats = ["Integer" if number % 2 else "String" for number in range(200)]
    measured = format_prior(ids, ids, [str(int(40 * each)) for each in drawn(200, "rare")], formats)
    assert measured is not None
    assert judge([("set", "file", measured)]).findings[0].verdict != "leak"


def test_documents_that_cannot_be_answered_as_a_whole_are_not_taken_for_a_frequent_answer() -> None:
    flagged = 0
    for run in range(40):
        answers, clusters = [], []
        for document, each in enumerate(drawn(40, "documents", run)):
            answers += ["Not answerable" if each < 0.05 else f"{document}-{number}" for number in range(5)]
            clusters += [f"d{document}"] * 5
        measured = free_prior([str(number) for number in range(200)], clusters, answers)
        assert measured is not None
        flagged += judge([("set", "file", measured)]).findings[0].verdict == "leak"
    assert flagged <= 6  # 40 draws of a share of 5 %: more than 6 in 1 of 70 cases


@pytest.mark.parametrize(("equal", "n", "least"), [(3, 6, 0.0022), (4, 12, 0.0022)])
def test_a_p_value_of_few_questions_is_at_least_the_exact_one(equal: int, n: int, least: float) -> None:
    ids = [str(number) for number in range(n)]
    measured = free_prior(ids, ids, ["A"] * equal + [f"x{number}" for number in range(n - equal)])
    assert measured is not None
    assert (judge([("set", "file", measured)]).findings[0].p or 0.0) >= least


def test_an_answer_whose_format_no_other_subject_has_is_not_guessed() -> None:
    ids = [str(number) for number in range(60)]
    clusters = ["one"] * 20 + ids[20:]
    answers = ["1"] * 20 + [f"x{number}" for number in range(40)]  # `1` is the first of all answers in order
    measured = format_prior(ids, clusters, answers, ["Integer"] * 20 + ["String"] * 40)
    assert measured is not None
    assert measured.scores[:20].sum() == 0


def test_a_null_of_one_value_takes_no_difference_of_rounding_for_a_leak() -> None:
    n = 20
    ids, scores, null = tuple(str(number) for number in range(n)), np.full(n, 0.1), np.full(PERMUTATIONS, 0.1)
    measured = Measured("kind", "measure", ids, ids, scores + 1e-16, null, "evidence", chance=0.0)
    judged = judge([("set", "file", measured)])
    assert judged.p == judged.findings[0].p == 1.0

"""The learners and their nulls: what is planted is found, and what is clean is seldom accused."""

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from asked_questions import golds, judged

from mmlongbench.draws import Draws
from mmlongbench.shortcuts.findings import PERMUTATIONS, Measured, judge, uniforms
from mmlongbench.shortcuts.image_features import NAME, of_name
from mmlongbench.shortcuts.learners import Group, find_golds, free_prior, guess_answers, offered_prior
from mmlongbench.statistics import Floats

UNITS = 20
FEATURES = ("bytes", "width", "place")


def numbered(n: int) -> list[str]:
    return [str(number) for number in range(n)]


def p_of(measured: Measured | None) -> float:
    p = judged(measured).p
    assert p is not None
    return p


# Gold among the units of a context.


def context(name: str, planted: float, share: float = 1.0) -> Group:
    """A context of 20 units with three drawn features; in a share of contexts, gold has more of the first one."""
    drawn = uniforms(UNITS * 3 + 2, "context", name)
    features: Floats = drawn[:-2].reshape(UNITS, 3).copy()
    gold = int(drawn[-1] * UNITS)
    if drawn[-2] < share:
        features[gold, 0] += planted
    return Group(name, f"about {name}", (f"gold of {name}",), features, tuple(at == gold for at in range(UNITS)))


def contexts(n: int, planted: float, share: float = 1.0, run: int = 0) -> list[Group]:
    return [context(f"{run}-{number}", planted, share) for number in range(n)]


def with_features(group: Group, features: Floats) -> Group:
    return Group(group.id, group.cluster, group.golds, features, group.is_gold)


@pytest.mark.parametrize(("planted", "share"), [(1.0, 1.0), (0.4, 1.0), (1.0, 0.5)])
def test_a_planted_difference_of_gold_is_a_leak_and_the_feature_is_named(planted: float, share: float) -> None:
    finding = judged(golds(contexts(80, planted, share), *FEATURES))
    assert finding.verdict == "leak"
    assert finding.evidence.split(",")[0] in ("gold differs by bytes (more)", "gold differs by bytes (high in rank)")
    assert len(finding.examples) == 10


def test_a_rare_difference_of_gold_is_found_although_its_direction_changes() -> None:
    groups = []
    for number, group in enumerate(contexts(60, 0.0)):
        features = np.ones((UNITS, 1))
        features[np.flatnonzero(group.is_gold), 0] = 2.0 if number % 2 else 0.0
        groups.append(with_features(group, features))
    assert golds(groups, "format").scores.mean() == 1.0


def test_a_gold_of_medium_size_is_found() -> None:
    groups = []
    for group in contexts(60, 0.0):
        features = group.features[:, :1].copy()
        features[np.flatnonzero(group.is_gold), 0] = 0.5
        groups.append(with_features(group, features))
    assert golds(groups, "width").scores.mean() > 0.8


def test_few_clean_contexts_are_undecided_and_many_are_seldom_accused() -> None:
    assert judged(golds(contexts(12, 0.0), *FEATURES)).verdict == "undecided"
    found = [judged(golds(contexts(600, 0.0, run=run), *FEATURES)).verdict for run in range(4)]
    assert found.count("leak") <= 1  # 4 draws of a share of 5 %: more than 1 in 1 of 70 cases
    assert found.count("clean") >= 2


def test_clean_contexts_have_even_p_values() -> None:
    p = [p_of(golds(contexts(16, 0.0, run=run), *FEATURES)) for run in range(60)]
    assert sum(each <= 0.05 for each in p) <= 7  # 60 draws of a share of 5 %: more than 7 in 1 of 100 cases
    assert 0.3 < float(np.mean(p)) < 0.7


def test_a_gold_that_many_questions_share_is_compared_once() -> None:
    one = context("one", 1.0)
    again = [Group(f"q{number}", one.cluster, one.golds, one.features, one.is_gold) for number in range(50)]
    assert len(golds([*again, *contexts(8, 1.0)], *FEATURES).ids) == 9


def test_a_gold_that_stands_in_several_clusters_is_not_learned_by_heart() -> None:
    photographs = uniforms(60 * 4, "photographs").reshape(60, 4)
    groups = []
    for number in range(100):
        needles = np.argsort(uniforms(60, "needles", number))[:3]
        others = uniforms(30 * 4, "others", number).reshape(30, 4)
        features = np.concatenate([photographs[needles], others])
        is_gold = (True,) * 3 + (False,) * 30
        groups.append(Group(f"q{number}", f"c{min(needles)}", tuple(map(str, needles)), features, is_gold))
    measured = golds(groups, "a", "b", "c", "d")
    shown = [group.golds for group in groups if group.id in measured.ids]
    assert len({gold for each in shown for gold in each}) == 3 * len(shown)


def few_distractors(run: int) -> list[Group]:
    """Forty contexts of a gold and 20 of the same 40 distractors; all of them are drawn in the same way."""
    pool, groups = uniforms(40 * 3, "pool", run).reshape(40, 3), []
    for number in range(40):
        shown = np.argsort(uniforms(40, "shown", run, number))[:20]
        features = np.concatenate([uniforms(3, "own", run, number)[None, :], pool[shown]])
        units = (1000 + number, *map(int, shown))
        groups.append(Group(f"q{number}", f"c{number}", (f"{number}",), features, (True,) + (False,) * 20, units))
    return groups


def test_golds_that_differ_by_chance_from_few_distractors_of_all_contexts_are_not_accused() -> None:
    p = [p_of(golds(few_distractors(run), "a", "b", "c")) for run in range(40)]
    assert sum(each <= 0.05 for each in p) <= 6  # 40 draws of a share of 5 %: more than 6 in 1 of 70 cases
    assert 0.35 < float(np.mean(p)) < 0.65


@pytest.mark.parametrize("form", ["a/{}_{}.jpg", "{}/{}.jpg"])
def test_the_letters_of_a_file_name_or_folder_tell_gold(form: str) -> None:
    groups = []
    for number in range(30):
        names = [form.format("gold" if at == 0 else "hays", 1000 + 37 * number + at) for at in range(UNITS)]
        features = np.array([of_name(name) for name in names])[:, 5:]
        groups.append(Group(f"q{number}", f"c{number}", (names[0],), features, tuple(at == 0 for at in range(UNITS))))
    assert golds(groups, *NAME[5:]).scores.mean() == 1.0


def test_files_are_numbered_by_the_last_number_of_their_names() -> None:
    assert of_name("val2017/COCO_2014_train_0012.jpg")[2] == 12.0


def test_equal_features_and_five_subjects_are_not_measured() -> None:
    equal = [with_features(group, np.full((UNITS, 1), 3.0)) for group in contexts(20, 0.0)]
    assert find_golds("gold from files", ("bytes",), equal) is None
    assert find_golds("gold from files", FEATURES, contexts(5, 1.0)) is None
    assert find_golds("gold from files", FEATURES, contexts(6, 1.0)) is not None


def test_several_golds_of_a_context_are_compared_with_the_others_alone() -> None:
    groups = []
    for number in range(30):
        features = uniforms(UNITS, "several", number).reshape(UNITS, 1).copy()
        features[:3] += 2
        names = tuple(f"{number}: {at}" for at in range(3))
        groups.append(Group(f"q{number}", f"c{number}", names, features, tuple(at < 3 for at in range(UNITS))))
    measured = golds(groups, "bytes")
    assert measured.scores.tolist() == [1.0] * 30
    assert measured.null.shape == (PERMUTATIONS,)
    assert abs(float(measured.null.mean()) - 0.5) < 0.02


def choices_of_a_subject(run: int, subject: int) -> list[Group]:
    """Six questions about a subject that offer the same four choices, of drawn lengths, with the same right one."""
    draws = Draws(("choices", run, subject))
    features: Floats = np.array([[float(draws.integer(f"length {at}", 3, 40))] for at in range(4)])
    right = draws.integer("right", 0, 3)
    ids = [f"{run}-{subject}-{number}" for number in range(6)]
    return [Group(id, f"{subject}", (id,), features, tuple(at == right for at in range(4))) for id in ids]


def test_questions_about_one_thing_with_the_same_choices_are_not_independent() -> None:
    p = [p_of(golds([g for at in range(20) for g in choices_of_a_subject(run, at)], "characters")) for run in range(20)]
    assert sum(each <= 0.05 for each in p) <= 4  # 20 draws of a share of 5 %: more than 4 in 1 of 390 cases


# Answers from questions.


def guessed(
    clusters: Sequence[str], answers: Sequence[str], features: Floats, ids: Sequence[str] | None = None
) -> Measured | None:
    ids = ids or numbered(len(answers))
    return guess_answers("answer from the question", ids, clusters, answers, features, "words")


@pytest.mark.parametrize("strength", [0.6, 1.2, 3.0])
def test_a_planted_word_is_a_leak(strength: float) -> None:
    n = 160
    answers = ["Yes" if each < 0.5 else "No" for each in uniforms(n, "answers")]
    features = uniforms(n * 4, "features").reshape(n, 4).copy()
    features[:, 2] += strength * np.array([answer == "Yes" for answer in answers])
    assert judged(guessed(numbered(n), answers, features)).verdict == "leak"


def test_answers_of_a_document_may_depend_on_each_other() -> None:
    p = []
    clusters = [f"d{number // 5}" for number in range(150)]
    for run in range(10):
        of_document, feature = uniforms(30, "answers", run), uniforms(30, "feature", run)
        answers = ["Yes" if of_document[number // 5] < 0.5 else "No" for number in range(150)]
        p.append(p_of(guessed(clusters, answers, np.array([[feature[number // 5]] for number in range(150)]))))
    assert sum(each <= 0.05 for each in p) <= 3  # 10 draws of a share of 5 %: more than 3 in 1 of 900 cases


@pytest.mark.rare
def test_the_null_spreads_as_much_as_clean_scores_where_clusters_have_very_different_sizes() -> None:
    clusters = [*(f"small {n}" for n in range(30)), *(f"large {n // 12}" for n in range(72))]
    names = sorted(set(clusters))
    standardised = []
    for run in range(40):
        of = dict(zip(names, uniforms(2 * len(names), "two sizes", run).reshape(-1, 2).tolist(), strict=True))
        answers = ["Yes" if of[cluster][0] < 0.5 else "No" for cluster in clusters]
        measured = guessed(clusters, answers, np.array([[of[cluster][1]] for cluster in clusters]))
        assert measured is not None
        standardised.append((measured.scores.mean() - measured.null.mean()) / measured.null.std())
    assert 0.6 < float(np.square(standardised).mean()) < 1.6  # 2.1 if answers of small clusters are put together


# Answers without the question.


def test_a_place_that_is_right_too_often_is_a_leak_and_a_balanced_one_is_not() -> None:
    ids = numbered(800)
    often = [(0 if each < 0.5 else int(each * 4), 4) for each in uniforms(800, "often")]
    biased, balanced = offered_prior(ids, ids, often), offered_prior(ids, ids, [(n % 4, 4) for n in range(800)])
    assert biased is not None
    assert balanced is not None
    findings, p = judge([("biased", "file", biased), ("balanced", "file", balanced)])
    assert [each.verdict for each in findings] == ["leak", "clean"]
    assert findings[0].chance == 0.25
    assert p is not None
    assert p <= 0.001


def frequent(every: int) -> list[str]:
    return ["Not answerable" if number % every == 0 else str(number) for number in range(200)]


def test_a_frequent_free_answer_is_a_leak_only_above_one_in_twenty() -> None:
    ids = numbered(200)
    many, few = free_prior(ids, ids, frequent(4)), free_prior(ids, ids, frequent(50))
    finding = judged(many, few)
    assert finding.verdict == "leak"
    assert "'Not answerable', in 50 of 200" in finding.evidence
    assert judged(few, many).verdict != "leak"


def test_the_most_frequent_of_many_tolerable_answers_is_no_leak() -> None:
    ids = numbered(200)
    drawn = [[str(int(20 * each)) for each in uniforms(200, "twenty answers", run)] for run in range(80)]
    p = [p_of(free_prior(ids, ids, answers)) for answers in drawn]
    assert sum(each <= 0.05 for each in p) <= 10  # 80 draws of a share of 5 %: more than 10 in 1 of 700 cases


def test_one_very_long_free_answer_needs_little_memory_and_no_letter_is_lost() -> None:
    ids = numbered(200)
    tracemalloc.start()
    measured = free_prior(ids, ids, [*frequent(4)[:-1], "a" * 100_000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert measured is not None
    assert measured.scores.sum() == 50
    assert peak < 40_000_000  # as an array of texts, the answers alone take 80 MB
    differ = free_prior(ids, ids, ["a" + "\0" * number for number in range(200)])
    assert differ is not None
    assert differ.scores.sum() == 0


def test_documents_that_cannot_be_answered_as_a_whole_are_not_taken_for_a_frequent_answer() -> None:
    flagged = 0
    clusters = [f"d{number // 5}" for number in range(200)]
    for run in range(40):
        none = uniforms(40, "documents", run) < 0.05
        answers = ["Not answerable" if none[n // 5] else f"{n // 5}-{n % 5}" for n in range(200)]
        flagged += judged(free_prior(numbered(200), clusters, answers)).verdict == "leak"
    assert flagged <= 6  # 40 draws of a share of 5 %: more than 6 in 1 of 70 cases


@pytest.mark.parametrize(("equal", "n", "least"), [(3, 6, 0.0022), (4, 12, 0.0022)])
def test_a_p_value_of_few_questions_is_at_least_the_exact_one(equal: int, n: int, least: float) -> None:
    answers = ["A"] * equal + [f"x{number}" for number in range(n - equal)]
    assert p_of(free_prior(numbered(n), numbered(n), answers)) >= least


@pytest.mark.parametrize("share", [0.8, 0.5, 0.3])
def test_an_answer_that_is_frequent_among_those_of_its_format_is_a_leak(share: float) -> None:
    kept = uniforms(160, "format")
    answers = ["2" if kept[number] < share else f"x{number}" for number in range(0, 160, 8)] * 4
    finding = judged(free_prior(numbered(160)[::8] * 4, numbered(80), answers, ["Integer"] * 80))
    assert finding.verdict == "leak"
    assert "of the format Integer" in finding.evidence


def test_answers_that_are_rare_in_their_format_are_no_leak() -> None:
    formats = ["Integer" if number % 2 else "String" for number in range(200)]
    answers = [str(int(40 * each)) for each in uniforms(200, "rare")]
    assert judged(free_prior(numbered(200), numbered(200), answers, formats)).verdict != "leak"


def test_an_answer_whose_format_no_other_subject_has_is_not_guessed() -> None:
    clusters = ["one"] * 20 + numbered(60)[20:]
    answers = ["1"] * 20 + [f"x{number}" for number in range(40)]  # `1` is the first of all answers in order
    measured = free_prior(numbered(60), clusters, answers, ["Integer"] * 20 + ["String"] * 40)
    assert measured is not None
    assert measured.scores[:20].sum() == 0


def test_a_null_of_one_value_takes_no_difference_of_rounding_for_a_leak() -> None:
    ids, scores, null = tuple(numbered(20)), np.full(20, 0.1), np.full(PERMUTATIONS, 0.1)
    (finding,), p = judge(
        [("set", "file", Measured("kind", "measure", ids, ids, scores + 1e-16, null, "e", chance=0.0))]
    )
    assert p == finding.p == 1.0


def test_a_p_value_counts_the_score_itself_among_the_draws() -> None:
    ids, scores, null = tuple(numbered(20)), np.full(20, 0.5), np.zeros(PERMUTATIONS)
    null[:20] = 1.0
    assert p_of(Measured("kind", "measure", ids, ids, scores, null, "e", chance=0.0)) == 21 / (PERMUTATIONS + 1)


def test_a_short_file_that_is_undecided_is_not_hidden_by_a_long_one_that_is_clean() -> None:
    def measured(questions: int, right: int, length: int) -> tuple[str, str, Measured]:
        ids, scores = tuple(numbered(questions)), np.arange(questions) < right
        null = 0.5 + np.linspace(-2, 2, PERMUTATIONS) * 0.5 / questions**0.5
        kind = ("kind", "measure", ids, ids, scores.astype(float), null, "e")
        return "set", f"file_{length}", Measured(*kind, chance=0.5, length=length)

    clean, undecided = measured(4_000, 2_030, 8192), measured(16, 9, 32_768)
    alone = [judge([each])[0][0].verdict for each in (clean, undecided)]
    (together,) = judge([clean, undecided])[0]
    assert alone == ["clean", "undecided"]
    assert (together.verdict, together.length) == ("undecided", 32_768)

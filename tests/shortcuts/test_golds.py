"""Finding gold by what should not tell it: planted leaks are found, and clean contexts are not accused."""

from collections.abc import Sequence

import numpy as np
import pytest

from mmlongbench.draws import Draws
from mmlongbench.shortcuts.features import NAME, of_name
from mmlongbench.shortcuts.golds import Group, find_golds
from mmlongbench.shortcuts.measured import PERMUTATIONS, Floats, uniforms
from mmlongbench.shortcuts.verdicts import judge

UNITS = 20


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


def verdicts(groups: Sequence[Group]) -> str:
    measured = find_golds("gold from files", ("bytes", "width", "place"), groups)
    assert measured is not None
    return judge([("set", "file", measured)]).findings[0].verdict


@pytest.mark.parametrize(("planted", "share"), [(1.0, 1.0), (0.4, 1.0), (1.0, 0.5)])
def test_a_planted_difference_is_a_leak(planted: float, share: float) -> None:
    assert verdicts(contexts(80, planted, share)) == "leak"


def test_the_feature_that_tells_is_named_with_the_questions_that_carry_it() -> None:
    measured = find_golds("gold from files", ("bytes", "width", "place"), contexts(80, 0.5))
    assert measured is not None
    finding = judge([("set", "file", measured)]).findings[0]
    assert finding.evidence.split(",")[0] in ("gold differs by bytes (more)", "gold differs by bytes (high in rank)")
    assert len(finding.examples) == 10


def test_a_difference_that_is_rare_among_units_is_found_although_its_direction_changes() -> None:
    groups = []
    for number, group in enumerate(contexts(60, 0.0)):
        features = np.ones((UNITS, 1))
        features[np.flatnonzero(group.is_gold), 0] = 2.0 if number % 2 else 0.0
        groups.append(Group(group.id, group.cluster, group.golds, features, group.is_gold))
    measured = find_golds("gold from files", ("format",), groups)
    assert measured is not None
    assert measured.scores.mean() == 1.0


def test_a_gold_of_medium_size_is_found() -> None:
    groups = []
    for group in contexts(60, 0.0):
        features = group.features[:, :1].copy()
        features[np.flatnonzero(group.is_gold), 0] = 0.5
        groups.append(Group(group.id, group.cluster, group.golds, features, group.is_gold))
    measured = find_golds("gold from sizes of images", ("width",), groups)
    assert measured is not None
    assert measured.scores.mean() > 0.8


def test_few_clean_contexts_are_undecided() -> None:
    assert verdicts(contexts(12, 0.0)) == "undecided"


def test_many_clean_contexts_are_clean_or_undecided_and_seldom_accused() -> None:
    found = [verdicts(contexts(600, 0.0, run=run)) for run in range(8)]
    assert found.count("leak") <= 2  # 8 draws of a share of 5 %: more than 2 in 1 of 170 cases
    assert found.count("clean") >= 3


def test_clean_files_have_even_p_values() -> None:
    p = []
    for run in range(60):
        measured = find_golds("gold from files", ("bytes", "width", "place"), contexts(16, 0.0, run=run))
        assert measured is not None
        p.append(judge([("set", "file", measured)]).findings[0].p or 0.0)
    assert sum(each <= 0.05 for each in p) <= 7  # 60 draws of a share of 5 %: more than 7 in 1 of 100 cases
    assert 0.3 < float(np.mean(p)) < 0.7


def test_a_gold_that_many_questions_share_is_compared_once() -> None:
    one = context("one", 1.0)
    again = [Group(f"q{number}", one.cluster, one.golds, one.features, one.is_gold) for number in range(50)]
    measured = find_golds("gold from files", ("a", "b", "c"), [*again, *contexts(8, 1.0)])
    assert measured is not None
    assert len(measured.ids) == 9


def test_a_gold_that_stands_in_several_clusters_is_not_learned_by_heart() -> None:
    photographs = uniforms(60 * 4, "photographs").reshape(60, 4)
    groups = []
    for number in range(100):
        needles = np.argsort(uniforms(60, "needles", number))[:3]
        others = uniforms(30 * 4, "others", number).reshape(30, 4)
        features = np.concatenate([photographs[needles], others])
        groups.append(
            Group(f"q{number}", f"c{min(needles)}", tuple(map(str, needles)), features, (True,) * 3 + (False,) * 30)
        )
    measured = find_golds("gold from files", ("a", "b", "c", "d"), groups)
    assert measured is not None
    shown = [group.golds for group in groups if group.id in measured.ids]
    assert len({gold for golds in shown for gold in golds}) == 3 * len(shown)


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
    p = []
    for run in range(40):
        measured = find_golds("gold from files", ("a", "b", "c"), few_distractors(run))
        assert measured is not None
        p.append(judge([("set", "file", measured)]).findings[0].p or 0.0)
    assert sum(each <= 0.05 for each in p) <= 6  # 40 draws of a share of 5 %: more than 6 in 1 of 70 cases
    assert 0.35 < float(np.mean(p)) < 0.65


def test_the_letters_of_a_file_name_or_folder_tell_gold() -> None:
    for form in ("a/{}_{}.jpg", "{}/{}.jpg"):
        groups = []
        for number in range(30):
            names = [form.format("gold" if at == 0 else "hays", 1000 + 37 * number + at) for at in range(UNITS)]
            features = np.array([of_name(name) for name in names])
            is_gold = tuple(at == 0 for at in range(UNITS))
            groups.append(Group(f"q{number}", f"c{number}", (names[0],), features[:, 5:], is_gold))
        measured = find_golds("gold from file names", NAME[5:], groups)
        assert measured is not None
        assert measured.scores.mean() == 1.0


def test_features_that_are_equal_in_each_context_tell_nothing() -> None:
    groups = [Group(g.id, g.cluster, g.golds, np.full((UNITS, 1), 3.0), g.is_gold) for g in contexts(20, 0.0)]
    assert find_golds("gold from files", ("bytes",), groups) is None


def test_five_subjects_are_too_few_to_learn_from() -> None:
    assert find_golds("gold from files", ("a", "b", "c"), contexts(5, 1.0)) is None


def test_several_golds_of_a_context_are_compared_with_the_others_alone() -> None:
    groups = []
    for number in range(30):
        features = uniforms(UNITS, "several", number).reshape(UNITS, 1).copy()
        features[:3] += 2
        golds = tuple(f"{number}: {at}" for at in range(3))
        groups.append(Group(f"q{number}", f"c{number}", golds, features, tuple(at < 3 for at in range(UNITS))))
    measured = find_golds("gold from files", ("bytes",), groups)
    assert measured is not None
    assert measured.scores.tolist() == [1.0] * 30
    assert measured.null.shape == (PERMUTATIONS,)
    assert abs(float(measured.null.mean()) - 0.5) < 0.02


def choices_of_a_subject(run: int, subject: int) -> list[Group]:
    """Six questions about a subject that offer the same four choices, of drawn lengths, with the same right one."""
    draws = Draws(("choices", run, subject))
    features: Floats = np.array([[float(draws.integer(f"length {at}", 3, 40))] for at in range(4)])
    right = draws.integer("right", 0, 3)
    is_gold = tuple(at == right for at in range(4))
    ids = [f"{run}-{subject}-{number}" for number in range(6)]
    return [Group(id, f"{subject}", (id,), features, is_gold) for id in ids]


def test_questions_about_one_thing_with_the_same_choices_are_not_independent() -> None:
    small = 0
    for run in range(20):
        groups = [each for subject in range(20) for each in choices_of_a_subject(run, subject)]
        measured = find_golds("right choice from its text", ("characters",), groups)
        assert measured is not None
        small += (judge([("set", "file", measured)]).findings[0].p or 0.0) <= 0.05
    assert small <= 4  # 20 draws of a share of 5 %: more than 4 in 1 of 390 cases

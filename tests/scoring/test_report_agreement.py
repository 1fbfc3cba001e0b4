"""Between metrics: Kendall's τ against a hand count, and how far models move."""

import sys
from pathlib import Path

import pytest
from score_lines import Line, absent, line, page, reported, skipped

from mmlongbench.scoring.report.agreement import kendall


def ranked(metric: str, scores: str, dataset: str = "docs") -> list[Line]:
    """Models a, b, c, … with one score each, in tenths."""
    return [
        line(n, int(score) / 10, model=model, metric=metric, dataset=dataset)
        for model, score in zip("abcdefgh", scores, strict=False)
        for n in range(2)
    ]


def test_tau_is_the_balance_of_pairs_in_and_out_of_order(tmp_path: Path) -> None:
    found = reported(tmp_path, [*ranked("one", "1234"), *ranked("two", "1324")]).agreement
    (pair,) = found.pairs
    assert pair.metrics == ("one", "two")
    assert pair.examples == 2
    assert pair.tau == pytest.approx((5 - 1) / 6)  # of six pairs of models, b and c are in the other order
    assert pair.ranks() == {"a": (4, 4), "b": (3, 2), "c": (2, 3), "d": (1, 1)}


def test_ties_are_taken_out_of_both_sides_and_share_their_places(tmp_path: Path) -> None:
    (pair,) = reported(tmp_path, [*ranked("one", "1223"), *ranked("two", "1234")]).agreement.pairs
    assert pair.tau == pytest.approx(5 / (5 * 6) ** 0.5)
    assert [one for one, _ in pair.ranks().values()] == [4, 2.5, 2.5, 1]


def test_models_with_the_same_scores_in_another_order_are_equal(tmp_path: Path) -> None:
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are not the same number: without rounding b would be better than a."""
    scores = {"a": (0.3, 0.2, 0.1), "b": (0.1, 0.2, 0.3), "c": (0.9, 0.9, 0.9)}
    assert sum(scores["a"]) != sum(scores["b"])
    lines = [
        line(n, score, model=model, metric="one") for model, each in scores.items() for n, score in enumerate(each)
    ]
    lines += [line(n, 0.1 * at, model=model, metric="two") for at, model in enumerate(scores) for n in range(3)]
    (pair,) = reported(tmp_path, lines).agreement.pairs
    assert [one for one, _ in pair.ranks().values()] == [2.5, 2.5, 1]
    assert pair.tau == pytest.approx(2 / (2 * 3) ** 0.5)


def test_a_shift_is_the_mean_move_in_points_and_in_places(tmp_path: Path) -> None:
    lines = [*ranked("one", "123"), *ranked("two", "213"), *ranked("three", "129")]
    found = reported(tmp_path, lines).agreement.shifts
    assert found is not None
    assert found["a"].score == pytest.approx((0.1 + 0.0 + 0.1) / 3)
    assert found["a"].rank == pytest.approx(2 / 3)
    assert found["c"].score == pytest.approx((0.0 + 0.6 + 0.6) / 3)
    assert (found["c"].rank, found["c"].pairs) == (0, 3)


def test_only_examples_that_both_metrics_scored_for_every_model_are_compared(tmp_path: Path) -> None:
    more = [line(9, 1.0, model=model, metric="one") for model in "abc"]
    failed = [line(9, None if model == "b" else 1.0, model=model, metric="two") for model in "abc"]
    lines = [*ranked("one", "123"), *ranked("two", "123"), *more, *failed]
    (pair,) = reported(tmp_path, lines).agreement.pairs
    assert pair.examples == 2
    assert pair.scores["a"] == pytest.approx((0.1, 0.1))


def test_values_of_a_parameter_stand_for_their_metric_and_what_is_absent_is_0_in_each(tmp_path: Path) -> None:
    lines = []
    for model, low, high in (("a", 0.1, 0.9), ("b", 0.2, 0.5), ("c", 0.3, 0.1)):
        details = {"match": 1.0, "alpha_0.25": low, "alpha_1": high}
        lines += [line(n, low, model=model, metric="s", details=details) for n in range(3)]
        lines.append(absent(3, model=model, metric="s"))
    (pair,) = reported(tmp_path, lines).agreement.pairs
    assert pair.metrics == ("s alpha_0.25", "s alpha_1")
    assert pair.tau == pytest.approx(-1)
    assert pair.scores["a"] == pytest.approx((0.75 * 0.1, 0.75 * 0.9))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([*ranked("one", "12"), *ranked("two", "21")], "n/a: 2 of the 3 models"),
        (ranked("one", "123"), "n/a: one metric"),
        ([*ranked("one", "123"), *ranked("two", "123", dataset="b")], "n/a: no two metrics scored the same examples"),
    ],
)
def test_where_there_is_nothing_to_compare_it_says_why(lines: list[Line], reason: str, tmp_path: Path) -> None:
    found = reported(tmp_path, lines).agreement
    assert found.reason.startswith(reason)
    assert not found.pairs


def test_equal_models_have_no_ranking() -> None:
    assert kendall([0.5, 0.5, 0.5], [0.1, 0.2, 0.3]) == (
        None,
        "n/a: all models are equal under one of the metrics",
    )


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    tau, reason = kendall([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert tau is None
    assert 'pip install "mmlongbench[scoring]"' in reason


def test_a_model_that_skipped_everything_is_left_out_of_the_pair(tmp_path: Path) -> None:
    lines = [*ranked("one", "1234"), *ranked("two", "1324")]
    lines += [skipped(n, model="z", metric=metric) for metric in ("one", "two") for n in range(2)]
    (pair,) = reported(tmp_path, lines).agreement.pairs
    assert (sorted(pair.scores), pair.examples) == (["a", "b", "c", "d"], 2)
    assert pair.tau == pytest.approx((5 - 1) / 6)
    failed = [line(n, None, model="y", metric="two") for n in range(2)]
    failed += [line(n, 0.5, model="y", metric="one") for n in range(2)]
    (pair,) = reported(tmp_path, [*lines, *failed]).agreement.pairs
    assert sorted(pair.scores) == ["a", "b", "c", "d"]


def test_metrics_under_different_profiles_are_compared_and_each_is_named_with_its_own(tmp_path: Path) -> None:
    profiles = {"one": "official", "two": "paper", "three": "unknown"}
    lines = [each | {"profile": profiles[each["metric"]]} for name in profiles for each in ranked(name, "1234")]
    found = reported(tmp_path, lines)
    names = {name for pair in found.agreement.pairs for name in pair.metrics}
    assert names == {"one (official)", "two (paper)", "three (unknown)"}
    html = " ".join(page(found).split())
    assert "No table of scores has two profiles; only “Between metrics” compares them" in html
    assert "No table has scores of two profiles" not in html
    assert "Metrics may have different profiles" in html

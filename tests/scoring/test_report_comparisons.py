"""Comparisons of models in a report, by hand: between metrics, between datasets, between groups of the questions."""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest
from scipy.stats import spearmanr
from score_lines import Line, absent, line, page, printed, reported, skipped, table, told, write

MIN_QUESTIONS = 10
"""A group of fewer questions is no subset."""
NO_SCIPY = 'pip install "mmlongbench[scoring]"'
SUMS = {"a": (0.3, 0.2, 0.1), "b": (0.1, 0.2, 0.3), "c": (0.9, 0.9, 0.9)}
"""0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are not the same number: without rounding b would be better than a."""


def by_metric(metric: str, scores: str, dataset: str = "docs") -> list[Line]:
    """Models a, b, c, … with the same score for two questions, in tenths."""
    return [
        line(n, int(score) / 10, model=model, metric=metric, dataset=dataset)
        for model, score in zip("abcdefgh", scores, strict=False)
        for n in range(2)
    ]


def pair(folder: Path, lines: list[Line]) -> Line:
    """The only pair of metrics of a report."""
    (found,) = reported(folder, lines)["agreement"]["pairs"]
    return dict(found)


@pytest.mark.parametrize(
    ("one", "two", "tau", "ranks"),
    [
        ("1234", "1324", (5 - 1) / 6, [[4, 4], [3, 2], [2, 3], [1, 1]]),  # of six pairs, b and c are in the other order
        ("1223", "1234", 5 / (5 * 6) ** 0.5, [[4, 4], [2.5, 3], [2.5, 2], [1, 1]]),  # ties are taken out of both sides
        ("123", "321", -1, [[3, 1], [2, 2], [1, 3]]),
    ],
    ids=["in and out of order", "ties", "turned round"],
)
def test_tau_is_the_balance_of_pairs_in_and_out_of_order(
    one: str, two: str, tau: float, ranks: list[list[float]], tmp_path: Path
) -> None:
    found = pair(tmp_path, [*by_metric("one", one), *by_metric("two", two)])
    assert (found["metrics"], found["examples"]) == (["one", "two"], 2)
    assert found["tau"] == pytest.approx(tau)
    assert found["ranks"] == dict(zip("abcd", ranks, strict=False))


def test_the_mean_of_a_model_weighs_files_not_examples(tmp_path: Path) -> None:
    lines = [
        line(n, float(dataset == model), model=model, metric=metric, dataset=dataset)
        for model in ("few", "many", "none")
        for metric in ("one", "two")
        for dataset, count in (("few", 1), ("many", 9))
        for n in range(count)
    ]
    assert pair(tmp_path, lines)["scores"] == {"few": [0.5, 0.5], "many": [0.5, 0.5], "none": [0, 0]}


def test_models_with_the_same_scores_in_another_order_are_equal(tmp_path: Path) -> None:
    assert sum(SUMS["a"]) != sum(SUMS["b"])
    lines = [line(n, score, model=model, metric="one") for model, each in SUMS.items() for n, score in enumerate(each)]
    lines += [line(n, 0.1 * at, model=model, metric="two") for at, model in enumerate(SUMS) for n in range(3)]
    found = pair(tmp_path, lines)
    assert [one for one, _ in found["ranks"].values()] == [2.5, 2.5, 1]
    assert found["tau"] == pytest.approx(2 / (2 * 3) ** 0.5)


def test_a_shift_is_the_mean_move_in_points_and_in_places(tmp_path: Path) -> None:
    lines = [*by_metric("one", "123"), *by_metric("two", "213"), *by_metric("three", "129")]
    shifts = reported(tmp_path, lines)["agreement"]["shifts"]
    assert shifts["a"] == {"score": pytest.approx((0.1 + 0.0 + 0.1) / 3), "rank": pytest.approx(2 / 3), "pairs": 3}
    assert shifts["c"] == {"score": pytest.approx((0.0 + 0.6 + 0.6) / 3), "rank": 0, "pairs": 3}
    assert ["a", "6.7", "0.67", "3"] in table(tmp_path, "shift:")


def test_only_examples_that_both_metrics_scored_for_every_model_are_compared(tmp_path: Path) -> None:
    more = [line(9, 1.0, model=model, metric="one") for model in "abc"]
    failed = [line(9, None if model == "b" else 1.0, model=model, metric="two") for model in "abc"]
    found = pair(tmp_path, [*by_metric("one", "123"), *by_metric("two", "123"), *more, *failed])
    assert (found["examples"], found["scores"]["a"]) == (2, pytest.approx([0.1, 0.1]))


def test_values_of_a_parameter_stand_for_their_metric_and_what_is_absent_is_0_in_each(tmp_path: Path) -> None:
    lines = []
    for model, low, high in (("a", 0.1, 0.9), ("b", 0.2, 0.5), ("c", 0.3, 0.1)):
        details = {"match": 1.0, "alpha_0.25": low, "alpha_1": high}
        lines += [line(n, low, model=model, metric="s", details=details) for n in range(3)]
        lines.append(absent(3, model=model, metric="s"))
    found = pair(tmp_path, lines)
    assert (found["metrics"], found["tau"]) == (["s alpha_0.25", "s alpha_1"], pytest.approx(-1))
    assert found["scores"]["a"] == pytest.approx([0.75 * 0.1, 0.75 * 0.9])


def test_a_model_that_skipped_everything_is_left_out_of_the_pair(tmp_path: Path) -> None:
    lines = [*by_metric("one", "1234"), *by_metric("two", "1324")]
    lines += [skipped(n, model="z", metric=metric) for metric in ("one", "two") for n in range(2)]
    failed = [line(n, None, model="y", metric="two") for n in range(2)]
    failed += [line(n, 0.5, model="y", metric="one") for n in range(2)]
    for some in (lines, [*lines, *failed]):
        found = pair(tmp_path, some)
        assert (sorted(found["scores"]), found["examples"]) == (["a", "b", "c", "d"], 2)
        assert found["tau"] == pytest.approx((5 - 1) / 6)


def test_equal_models_have_no_ranking_by_a_metric_and_no_order_by_a_dataset(tmp_path: Path) -> None:
    found = pair(tmp_path / "a", [*by_metric("one", "555"), *by_metric("two", "123")])
    assert (found["tau"], found["reason"]) == (None, "n/a: all models are equal under one of the metrics")
    (only,) = matrix(tmp_path / "b", [*of("one", "555"), *of("two", "123")])["pairs"][:1]
    assert only == {"of": ["one", "two"], "rho": None, "models": 3, "reason": "all models are equal"}


def test_without_scipy_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    found = reported(tmp_path, [*by_metric("one", "123"), *by_metric("two", "123"), *by_metric("one", "123", "b")])
    (only,) = found["agreement"]["pairs"]
    assert (only["tau"], NO_SCIPY in only["reason"]) == (None, True)
    assert (found["correlations"]["matrices"], NO_SCIPY in found["correlations"]["reason"]) == ([], True)


def test_metrics_under_different_profiles_are_compared_and_each_is_named_with_its_own(tmp_path: Path) -> None:
    profiles = {"one": "official", "two": "paper", "three": "unknown"}
    lines = [each | {"profile": profiles[each["metric"]]} for name in profiles for each in by_metric(name, "1234")]
    names = {name for found in reported(tmp_path, lines)["agreement"]["pairs"] for name in found["metrics"]}
    assert names == {"one (official)", "two (paper)", "three (unknown)"}
    html = " ".join(page(tmp_path).split())
    assert "No table of scores has two profiles; only “Between metrics” compares them" in html
    assert "Metrics may have different profiles" in html


def of(dataset: str, scores: str, k: int = 8, **about: Any) -> list[Line]:
    """Models a, b, c, … with one score each, in tenths; `-` was not asked, `/` cannot hold the example."""
    lines = []
    for model, score in zip("abcdefgh", scores, strict=False):
        fields = {**about, "model": model}
        if score == "/":
            lines.append(skipped(1, dataset, k, **fields))
        elif score != "-":
            lines.append(line(1, int(score) / 10, dataset, k, **fields))
    return lines


def matrix(folder: Path, lines: list[Line]) -> Line:
    """The only matrix of a report."""
    (found,) = reported(folder, lines)["correlations"]["matrices"]
    return dict(found)


def rhos(found: Line) -> dict[tuple[str, ...], float | None]:
    return {tuple(sorted(each["of"])): each["rho"] for each in found["pairs"]}


def test_rho_by_hand(tmp_path: Path) -> None:
    found = matrix(tmp_path, [*of("one", "1234"), *of("two", "1324"), *of("three", "4321")])
    assert (found["datasets"], found["categories"]) == (["one", "three", "two"], ["Docs"])
    assert {each["models"] for each in found["pairs"]} == {4}
    between = rhos(found)
    assert between["one", "two"] == pytest.approx(1 - 6 * (1 + 1) / (4 * 15))  # b and c are in the other order
    assert between["one", "three"] == pytest.approx(-1)
    assert len(between) == 6


def test_a_model_without_one_of_the_two_is_left_out_of_the_pair(tmp_path: Path) -> None:
    found = matrix(tmp_path, [*of("one", "12349"), *of("two", "1243/"), *of("three", "12-4-")])
    assert [each["models"] for each in found["pairs"] if each["of"] == ["one", "two"]] == [4]
    assert rhos(found)["one", "two"] == pytest.approx(0.8)
    assert rhos(found)["three", "two"] == pytest.approx(1)
    few = matrix(tmp_path, [*of("one", "1234"), *of("two", "1243"), *of("three", "12--")])
    assert {"of": ["three", "two"], "rho": None, "models": 2, "reason": "2 models"} in few["pairs"]


def test_categories_and_overall_are_compared_and_what_counts_together_is_one(tmp_path: Path) -> None:
    lines = [
        *of("text", "1122", category="NIAH", counted_with="retrieval"),
        *of("image", "2143", category="NIAH", counted_with="retrieval"),
        *of("photographs", "4321", category="NIAH"),
        *of("slides", "1423", category="DocVQA"),
        *of("cars", "1234", category="ICL"),
    ]
    found = matrix(tmp_path, lines)
    assert found["datasets"] == ["slides", "cars", "retrieval", "photographs"]
    assert found["categories"] == ["DocVQA", "ICL", "NIAH", "overall"]
    between = rhos(found)
    retrieval = [0.15, 0.1, 0.3, 0.25]
    assert between["cars", "retrieval"] == pytest.approx(spearmanr(retrieval, [1, 2, 3, 4]).statistic)
    assert between["DocVQA", "slides"] == 1
    others = [between["DocVQA", "ICL"] or 0, between["DocVQA", "NIAH"] or 0]
    expected = {"mean": pytest.approx(sum(others) / 2), "sd": pytest.approx(abs(others[0] - others[1]) / 2)}
    assert found["with_other_categories"]["DocVQA"] == expected


def test_each_length_has_a_matrix_and_the_longest_is_shown(tmp_path: Path) -> None:
    lines = [*of("one", "123"), *of("two", "321"), *of("one", "123", 16), *of("two", "132", 16)]
    found = reported(tmp_path, lines)["correlations"]["matrices"]
    assert [each["length"] for each in found] == ["8K", "16K"]
    text = " ".join(printed(tmp_path).split())
    assert (text.count("unknown, 16K, 3 models"), "unknown, 8K" in text) == (1, False)


def test_profiles_are_not_mixed(tmp_path: Path) -> None:
    official: dict[str, Any] = {"profile": "official", "is_own": True}
    ours: dict[str, Any] = {"profile": "ours", "is_own": True}
    lines = [*of("one", "123", **official), *of("two", "123", **official)]
    lines += [*of("one", "321", **ours), *of("two", "123", **ours)]
    found = reported(tmp_path, lines)["correlations"]["matrices"]
    assert {each["profile"]: rhos(each)["one", "two"] for each in found} == {
        "official": pytest.approx(1),
        "ours": pytest.approx(-1),
    }


FEW: tuple[tuple[str, list[Line], str], ...] = (
    ("metrics", [*by_metric("one", "12"), *by_metric("two", "21")], "2 of the 3 models"),
    ("metrics", by_metric("one", "123"), "one metric"),
    ("metrics", [*by_metric("one", "123"), *by_metric("two", "123", "b")], "no two metrics scored the same examples"),
    ("datasets", [*of("one", "12"), *of("two", "12")], "2 of the 3 models that a correlation needs"),
    ("datasets", of("one", "123"), "no two datasets have 3 models in common"),
    ("datasets", [*of("one", "12--"), *of("two", "--12")], "no two datasets have 3 models in common"),
)


@pytest.mark.parametrize(("kind", "lines", "reason"), FEW)
def test_where_there_is_nothing_to_compare_it_says_why(
    kind: str, lines: list[Line], reason: str, tmp_path: Path
) -> None:
    found = reported(tmp_path, lines)["agreement" if kind == "metrics" else "correlations"]
    assert found["reason"].startswith(f"n/a: {reason}")
    assert found["pairs" if kind == "metrics" else "matrices"] == []
    assert f"between {kind}: n/a: {reason}" in printed(tmp_path)


def test_means_that_differ_by_the_order_of_a_sum_alone_are_equal(tmp_path: Path) -> None:
    lines = [
        line(1, score, f"part {n}", model=model, category="NIAH", counted_with="together")
        for model, scores in SUMS.items()
        for n, score in enumerate(scores)
    ]
    found = matrix(tmp_path, [*lines, *of("slides", "123", category="DocVQA")])
    assert rhos(found)["slides", "together"] == pytest.approx(spearmanr([1, 1, 2], [1, 2, 3]).statistic)


def test_a_dataset_that_is_called_as_its_category_stays_apart(tmp_path: Path) -> None:
    found = matrix(tmp_path, [*of("Docs", "123"), *of("two", "321")])
    assert (found["datasets"], found["categories"]) == (["Docs", "two"], ["Docs (average)"])


def test_the_terminal_the_page_and_the_json_have_the_matrix(tmp_path: Path) -> None:
    icl: dict[str, Any] = {"category": "ICL"}
    lines = [*of("slides", "1423", category="DocVQA"), *of("cars", "1234", **icl), *of("birds", "2134", **icl)]
    found = matrix(tmp_path, lines)
    assert (found["profile"], found["length"]) == ("unknown", "8K")
    assert {"of": ["slides", "cars"], "rho": pytest.approx(0.4), "models": 4} in found["pairs"]
    assert found["with_other_categories"]["ICL"] == {"mean": pytest.approx(0.105, abs=1e-3), "sd": 0}
    shown = table(tmp_path, "between datasets")
    assert "between datasets: Spearman's ρ, unknown, 8K, 4 models" in " ".join(" ".join(row) for row in shown)
    assert ["slides", "1.00", "0.11", "0.80"] in shown
    assert ["DocVQA", "0.11", "0.80", "0.11", "±", "0.00"] in shown
    html = page(tmp_path)
    assert '<h2 id="correlations">Between datasets</h2>' in html
    assert 'title="4 models">0.40</td>' in html


def test_the_terminal_says_how_many_models_a_pair_has_where_some_lack(tmp_path: Path) -> None:
    write(tmp_path, [*of("one", "1234"), *of("two", "123/"), *of("three", "12//")])
    shown = " ".join(" ".join(row) for row in table(tmp_path, "between datasets"))
    assert "1.00 (3)" in shown
    assert "– (2)" in shown


def test_models_are_ranked_within_every_group_of_a_facet(tmp_path: Path) -> None:
    lines = []
    for model, integer, text in (("a", 0.9, 0.1), ("b", 0.5, 0.1), ("c", 0.2, 0.8)):
        for n in range(2):
            lines.append(line(f"i{n}", integer, model=model, facets={"answer format": ["Integer"]}))
            lines.append(line(f"s{n}", text, model=model, facets={"answer format": ["String"]}))
    (grid,) = reported(tmp_path, lines)["facets"]
    ranks = {(each["row"], each["model"]): each["rank"] for each in grid["cells"] if each["column"] == "all"}
    assert [ranks["Integer", model] for model in "abc"] == [1, 2, 3]
    assert [ranks["String", model] for model in "abc"] == [2.5, 2.5, 1]
    row = ["docs:", "String", "10.0", "±–", "#2.5", "10.0", "±–", "#2.5", "80.0", "±–", "#1"]
    assert row in table(tmp_path, "answer format")
    assert "80.0<small>–</small><small>#1</small></td>" in page(tmp_path)
    (alone,) = reported(tmp_path, [each for each in lines if each["model"] == "a"])["facets"]
    assert {each["row"] for each in alone["cells"] if "rank" not in each} == {"Integer", "String"}


TENTHS = {"a": (9, 5, 1), "b": (6, 6, 6), "c": (3, 7, 2)}
"""Models, and their scores of the three groups."""


def asked(scores: Mapping[str, tuple[int, ...]] = TENTHS, per_group: int = MIN_QUESTIONS, k: int = 8) -> list[Line]:
    """Questions of several groups, each group scored alike."""
    return [
        line(f"{group}-{n}", tenths / 10, k=k, model=model, facets={"format": [f"format {group}"]})
        for model, groups in scores.items()
        for group, tenths in enumerate(groups)
        for n in range(per_group)
    ]


def moved(folder: Path, lines: list[Line]) -> dict[str, Line]:
    """The volatility of each model."""
    found = reported(folder, lines)["volatility"]
    assert len({each["model"] for each in found}) == len(found)
    return {each["model"]: each for each in found}


def test_volatility_is_the_standard_deviation_times_the_root_of_the_number_of_subsets(tmp_path: Path) -> None:
    ranks = {"a": (1, 3, 3), "b": (2, 2, 1), "c": (3, 1, 2)}
    root = math.sqrt(3)
    assert moved(tmp_path, asked()) == {
        model: {
            **{"model": model, "dataset": "docs", "metric": "em", "subsets": 3},
            "score": pytest.approx(stdev(tenths / 10 for tenths in TENTHS[model]) * root),
            "rank": pytest.approx(stdev(places) * root),
            "median_rank": sorted(places)[1],
            "robustness": pytest.approx(stdev(places) * root * sorted(places)[1]),
        }
        for model, places in ranks.items()
    }
    assert stdev(tenths / 10 for tenths in TENTHS["a"]) == pytest.approx(0.4)
    assert ["a", "3", "69.3", "2.00", "3", "6.00"] in table(tmp_path, "volatility over T groups of the questions")
    assert "Between subsets of the questions" in page(tmp_path)


def test_a_poor_model_that_is_as_steady_as_a_good_one_is_less_robust(tmp_path: Path) -> None:
    ranks = {n: [n, n, n, n] for n in range(1, 11)}
    ranks[10][2], ranks[8][2], ranks[9][2] = 8, 9, 10
    ranks[1][3], ranks[2][3], ranks[3][3] = 3, 1, 2
    found = moved(tmp_path, asked({str(n): tuple(11 - rank for rank in each) for n, each in ranks.items()}))
    assert (found["1"]["rank"], found["10"]["rank"]) == pytest.approx((2, 2))
    assert (found["1"]["robustness"], found["10"]["robustness"]) == pytest.approx((2, 20))


def test_equal_models_share_their_ranks_and_one_that_keeps_its_rank_is_wholly_robust(tmp_path: Path) -> None:
    found = moved(tmp_path, asked({"a": (9, 9), "b": (5, 5), "c": (5, 1)}))
    assert (found["a"]["rank"], found["a"]["robustness"], found["a"]["median_rank"]) == (0, 0, 1)
    assert found["b"]["median_rank"] == 2.25  # 2.5 beside c, then 2
    assert found["c"]["rank"] == pytest.approx(stdev([2.5, 3]) * math.sqrt(2))


def test_models_with_the_same_scores_in_another_order_share_their_ranks(tmp_path: Path) -> None:
    lines = [
        line(f"{group}-{n}", each[n % 3] / 10, model=model, facets={"format": [group]})
        for model, each in {"a": (1, 2, 3), "b": (3, 2, 1)}.items()
        for group in "xyz"
        for n in range(12 if group == "x" else 15)
    ]
    assert {(each["rank"], each["median_rank"]) for each in moved(tmp_path, lines).values()} == {(0, 1.5)}


def test_groups_of_few_questions_and_of_every_question_are_no_subsets(tmp_path: Path) -> None:
    lines = asked()
    for each in lines:
        each["facets"] = {**each["facets"], "kind": ["report"]}  # all of them
    few = [line(f"few-{n}", 1.0, model=model, facets={"format": ["rare"]}) for model in "abc" for n in range(9)]
    with_few = moved(tmp_path, [*lines, *few])
    assert {each["subsets"] for each in with_few.values()} == {4}  # `kind` has all but nine now
    assert {each["subsets"] for each in moved(tmp_path, lines).values()} == {3}


def test_a_question_at_several_lengths_is_one_and_each_file_counts_once(tmp_path: Path) -> None:
    short = [*asked(per_group=MIN_QUESTIONS - 1), *asked(per_group=MIN_QUESTIONS - 1, k=16)]
    assert moved(tmp_path / "short", short) == {}
    lines = [*asked(), *asked({"a": (1, 5, 9), "b": (6, 6, 6), "c": (3, 7, 2)}, k=16)]
    assert moved(tmp_path / "both", lines)["a"]["score"] == pytest.approx(0)  # both files have 0.5 in each group


def test_only_examples_that_every_model_has_a_score_for_count(tmp_path: Path) -> None:
    lines = asked(per_group=MIN_QUESTIONS + 2)
    for each in lines:
        if each["model"] == "b" and each["id"] in ("0-0", "0-1"):
            each |= {"status": "failed", "score": None}
        if each["model"] == "a" and each["id"] in ("0-0", "0-1"):
            each |= {"score": 0.0}
    assert moved(tmp_path, lines)["a"]["score"] == pytest.approx(0.4 * math.sqrt(3))


@pytest.mark.parametrize("scores", [{"a": (9, 5, 1)}, {"a": (9,), "b": (5,)}], ids=["one model", "one group"])
def test_of_one_model_or_one_group_there_is_no_volatility(scores: dict[str, tuple[int, ...]], tmp_path: Path) -> None:
    assert moved(tmp_path, asked(scores)) == {}
    assert "Between subsets of the questions" not in page(tmp_path)


def test_a_metric_with_one_value_of_a_parameter_is_reported_by_its_score(tmp_path: Path) -> None:
    """SMuDGE is scored at one α unless more are given."""
    lines = [{**each, "details": {"alpha_0.25": each["score"]}} for each in asked()]
    assert {each["metric"] for each in moved(tmp_path, lines).values()} == {"em"}


def test_each_metric_and_each_value_of_a_parameter_has_its_own_volatility(tmp_path: Path) -> None:
    lines = asked()
    for each in lines:
        each["details"] = {"alpha_0": each["score"], "alpha_1": 0.5}
    found = told(write(tmp_path, lines))["volatility"]
    assert {(each["metric"], each["score"] == 0) for each in found if each["model"] == "a"} == {
        ("em alpha_0", False),
        ("em alpha_1", True),
    }

"""Comparisons of models in a report, by hand: between datasets, and in groups of the questions."""

import sys
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr
from score_lines import Line, line, page, printed, reported, skipped, table, write

NO_SCIPY = 'pip install "mmlongbench[scoring]"'
SUMS = {"a": (0.3, 0.2, 0.1), "b": (0.1, 0.2, 0.3), "c": (0.9, 0.9, 0.9)}
"""0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are not the same number: without rounding b would be better than a."""


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


FEW: tuple[tuple[list[Line], str], ...] = (
    ([*of("one", "12"), *of("two", "12")], "2 of the 3 models that a correlation needs"),
    (of("one", "123"), "no two datasets have 3 models in common"),
    ([*of("one", "12--"), *of("two", "--12")], "no two datasets have 3 models in common"),
)


@pytest.mark.parametrize(("lines", "reason"), FEW)
def test_where_there_is_nothing_to_compare_it_says_why(lines: list[Line], reason: str, tmp_path: Path) -> None:
    found = reported(tmp_path, lines)["correlations"]
    assert (found["reason"].startswith(f"n/a: {reason}"), found["matrices"]) == (True, [])
    assert f"between datasets: n/a: {reason}" in printed(tmp_path)


def test_models_that_are_equal_on_a_dataset_have_no_order_by_it(tmp_path: Path) -> None:
    (only,) = matrix(tmp_path, [*of("one", "555"), *of("two", "123")])["pairs"][:1]
    assert only == {"of": ["one", "two"], "rho": None, "models": 3, "reason": "all models are equal"}


def test_without_scipy_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    found = reported(tmp_path, [*of("one", "123"), *of("two", "123")])["correlations"]
    assert (found["matrices"], NO_SCIPY in found["reason"]) == ([], True)


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

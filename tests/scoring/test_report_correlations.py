"""Between datasets: Spearman's ρ against a hand count, over the models that have both scores; places by facet."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from score_lines import Line, line, page, reported, skipped, write

from mmlongbench.cli.report import report as command
from mmlongbench.scoring.report import report
from mmlongbench.scoring.report.correlations import Correlation, Matrix, spearman
from mmlongbench.scoring.report.grids import ALL, Row


def ranked(dataset: str, scores: str, k: int = 8, **about: Any) -> list[Line]:
    """Models a, b, c, … with one score each, in tenths; `-` was not asked, `/` cannot hold the example."""
    lines = []
    for model, score in zip("abcdefgh", scores, strict=False):
        fields = {**about, "model": model}
        if score == "/":
            lines.append(skipped(1, dataset, k, **fields))
        elif score != "-":
            lines.append(line(1, int(score) / 10, dataset, k, **fields))
    return lines


def matrix(folder: Path, lines: list[Line]) -> Matrix:
    (found,) = reported(folder, lines).correlations.matrices
    return found


def rho(found: Matrix, one: str, other: str) -> float:
    there = found.at(one, other)
    assert there is not None
    assert there.rho is not None
    return there.rho


def test_rho_by_hand(tmp_path: Path) -> None:
    found = matrix(tmp_path, [*ranked("one", "1234"), *ranked("two", "1324"), *ranked("three", "4321")])
    assert rho(found, "one", "two") == pytest.approx(1 - 6 * (1 + 1) / (4 * 15))  # b and c are in the other order
    assert rho(found, "three", "one") == rho(found, "one", "three") == pytest.approx(-1)
    assert (found.datasets, found.categories, found.models) == (("one", "three", "two"), ("Docs",), 4)
    assert found.at("one", "one") is None


def test_a_model_without_one_of_the_two_is_left_out_of_the_pair(tmp_path: Path) -> None:
    found = matrix(tmp_path, [*ranked("one", "12349"), *ranked("two", "1243/"), *ranked("three", "12-4-")])
    pair = found.at("one", "two")
    assert pair is not None
    assert pair.models == 4
    assert rho(found, "one", "two") == pytest.approx(0.8)
    assert rho(found, "two", "three") == pytest.approx(1)
    few = matrix(tmp_path, [*ranked("one", "1234"), *ranked("two", "1243"), *ranked("three", "12--")])
    assert few.at("two", "three") == Correlation(None, 2, "2 models")


def test_categories_and_overall_are_compared_and_what_counts_together_is_one(tmp_path: Path) -> None:
    lines = [
        *ranked("text", "1122", category="NIAH", counted_with="retrieval"),
        *ranked("image", "2143", category="NIAH", counted_with="retrieval"),
        *ranked("photographs", "4321", category="NIAH"),
        *ranked("slides", "1423", category="DocVQA"),
        *ranked("cars", "1234", category="ICL"),
    ]
    found = matrix(tmp_path, lines)
    assert found.datasets == ("slides", "cars", "retrieval", "photographs")
    assert found.categories == ("DocVQA", "ICL", "NIAH", "overall")
    retrieval = [0.15, 0.1, 0.3, 0.25]
    assert rho(found, "retrieval", "cars") == pytest.approx(spearmanr(retrieval, [1, 2, 3, 4]).statistic)
    assert rho(found, "DocVQA", "slides") == 1
    others = [rho(found, "DocVQA", "ICL"), rho(found, "DocVQA", "NIAH")]
    assert found.with_others("DocVQA") == pytest.approx((sum(others) / 2, abs(others[0] - others[1]) / 2))


def test_each_length_has_a_matrix_and_the_longest_is_shown(tmp_path: Path) -> None:
    lines = [*ranked("one", "123"), *ranked("two", "321"), *ranked("one", "123", 16), *ranked("two", "132", 16)]
    found = reported(tmp_path, lines).correlations
    assert [each.length for each in found.matrices] == [8192, 16384]
    assert [each.length for each in found.longest()] == [16384]


def test_profiles_are_not_mixed(tmp_path: Path) -> None:
    official: dict[str, Any] = {"profile": "official", "is_own": True}
    ours: dict[str, Any] = {"profile": "ours", "is_own": True}
    lines = [*ranked("one", "123", **official), *ranked("two", "123", **official)]
    lines += [*ranked("one", "321", **ours), *ranked("two", "123", **ours)]
    found = {each.profile: each for each in reported(tmp_path, lines).correlations.matrices}
    assert {profile: rho(each, "one", "two") for profile, each in found.items()} == {
        "official": pytest.approx(1),
        "ours": pytest.approx(-1),
    }


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([*ranked("one", "12"), *ranked("two", "12")], "n/a: 2 of the 3 models that a correlation needs"),
        (ranked("one", "123"), "n/a: no two datasets have 3 models in common"),
        ([*ranked("one", "12--"), *ranked("two", "--12")], "n/a: no two datasets have 3 models in common"),
    ],
    ids=["two models", "one dataset", "none in common"],
)
def test_where_there_is_nothing_to_compare_it_says_why(lines: list[Line], reason: str, tmp_path: Path) -> None:
    found = reported(tmp_path, lines).correlations
    assert (found.matrices, found.reason) == ((), reason)
    printed = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False).output
    assert f"between datasets: {reason}\n" in printed


def test_equal_models_have_no_order(tmp_path: Path) -> None:
    found = matrix(tmp_path, [*ranked("one", "555"), *ranked("two", "123")])
    assert found.at("one", "two") == Correlation(None, 3, "all models are equal")


def test_means_that_differ_by_the_order_of_a_sum_alone_are_equal(tmp_path: Path) -> None:
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are not the same number: without rounding b would be better than a."""
    sums = {"a": (0.3, 0.2, 0.1), "b": (0.1, 0.2, 0.3), "c": (0.9, 0.9, 0.9)}
    assert sum(sums["a"]) != sum(sums["b"])
    lines = [
        line(1, score, f"part {n}", model=model, category="NIAH", counted_with="together")
        for model, scores in sums.items()
        for n, score in enumerate(scores)
    ]
    found = matrix(tmp_path, [*lines, *ranked("slides", "123", category="DocVQA")])
    assert rho(found, "together", "slides") == pytest.approx(spearmanr([1, 1, 2], [1, 2, 3]).statistic)


def test_without_scipy_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    found = reported(tmp_path, [*ranked("one", "123"), *ranked("two", "123")]).correlations
    assert 'pip install "mmlongbench[scoring]"' in found.reason
    assert not found.matrices


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_rho_is_within_its_bounds_and_the_same_both_ways(scores: dict[str, tuple[int, int]]) -> None:
    one, other = ({model: float(both[side]) for model, both in scores.items()} for side in (0, 1))
    found = spearman(one, other)
    assert found.models == len(scores)
    assert found.rho is None or -1.000001 <= found.rho <= 1.000001
    assert (found.rho or 0) == pytest.approx(spearman(other, one).rho or 0)


def test_a_dataset_that_is_called_as_its_category_stays_apart(tmp_path: Path) -> None:
    found = matrix(tmp_path, [*ranked("Docs", "123"), *ranked("two", "321")])
    assert found.names == ("Docs", "two", "Docs (average)")


def test_the_terminal_the_page_and_the_json_have_the_matrix(tmp_path: Path) -> None:
    lines = [
        *ranked("slides", "1423", category="DocVQA"),
        *ranked("cars", "1234", category="ICL"),
        *ranked("birds", "2134", category="ICL"),
    ]
    folder = write(tmp_path, lines)
    printed = CliRunner().invoke(command, [str(folder)], catch_exceptions=False).output
    assert "between datasets: Spearman's ρ, unknown, 8K, 4 models" in " ".join(printed.split())
    table = printed[printed.index("between datasets") :].splitlines()
    assert table[2].split() == ["slides", "1.00", "0.11", "0.80"]
    assert table[5].split() == ["DocVQA", "0.11", "0.80", "0.11", "±", "0.00"]
    html = page(report(folder))
    assert '<h2 id="correlations">Between datasets</h2>' in html
    assert 'title="4 models">0.40</td>' in html
    found = json.loads(CliRunner().invoke(command, [str(folder), "--json"], catch_exceptions=False).output)
    (only,) = found["correlations"]["matrices"]
    assert (only["profile"], only["length"], only["categories"]) == ("unknown", "8K", ["DocVQA", "ICL", "overall"])
    assert {"of": ["slides", "cars"], "rho": pytest.approx(0.4), "models": 4} in only["pairs"]
    assert only["with_other_categories"]["ICL"] == {"mean": pytest.approx(0.105, abs=1e-3), "sd": 0}


def test_the_terminal_says_how_many_models_a_pair_has_where_some_lack(tmp_path: Path) -> None:
    lines = [*ranked("one", "1234"), *ranked("two", "123/"), *ranked("three", "12//")]
    printed = CliRunner().invoke(command, [str(write(tmp_path, lines))], catch_exceptions=False).output
    table = printed[printed.index("between datasets") :]
    assert "1.00 (3)" in table
    assert "– (2)" in table


def test_models_are_ranked_within_every_group_of_a_facet(tmp_path: Path) -> None:
    lines = []
    for model, integer, text in (("a", 0.9, 0.1), ("b", 0.5, 0.1), ("c", 0.2, 0.8)):
        for n in range(2):
            lines.append(line(f"i{n}", integer, model=model, facets={"answer format": ["Integer"]}))
            lines.append(line(f"s{n}", text, model=model, facets={"answer format": ["String"]}))
    found = reported(tmp_path, lines)
    (grid,) = found.facets
    ranks = {(row.name, model): place for (model, row, column), place in grid.ranks.items() if column == ALL}
    assert ranks == {
        ("Integer", "a"): 1,
        ("Integer", "b"): 2,
        ("Integer", "c"): 3,
        ("String", "a"): 2.5,
        ("String", "b"): 2.5,
        ("String", "c"): 1,
    }
    assert {cell["rank"] for cell in grid.summary()["cells"]} == {1, 2, 2.5, 3}
    printed = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False).output
    (row,) = [text.split() for text in printed.splitlines() if "String" in text]
    assert row == ["docs:", "String", "10.0", "±–", "#2.5", "10.0", "±–", "#2.5", "80.0", "±–", "#1"]
    assert "80.0<small>–</small><small>#1</small></td>" in page(found)
    alone = reported(tmp_path / "alone", [each for each in lines if each["model"] == "a"])
    assert alone.facets[0].ranks == {}
    assert Row("String", "docs") in alone.facets[0].rows

"""Scores of different profiles in one folder: no table mixes them, each is named, averages have members of one."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from score_lines import Line, line, mean, page, reported, write

from mmlongbench.cli.report import report as command
from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.report import report
from mmlongbench.scoring.report.grids import Grid

pytestmark = pytest.mark.slow
CODE = "EdinburghNLP/MMLongBench@22b9f27"
OFFICIAL: dict[str, Any] = {"profile": "official", "follows": CODE, "is_own": True}
OURS: dict[str, Any] = {"profile": "ours", "is_own": True}


def everywhere() -> list[Line]:
    """Two models under official and ours, by the datasets' own metric; further metrics under paper and ours."""
    lines = []
    for model, add in (("a", 0.0), ("b", 0.1)):
        for n in range(4):
            about: dict[str, Any] = {
                "model": model,
                "depth": n / 4,
                "facets": {"kind": ["x"]},
                "details": {"refused": n == 1},
            }
            for dataset in ("one", "two"):
                lines.append(line(n, 0.5 + add, dataset, **about, **OFFICIAL))
                lines.append(line(n, 0.2 + add, dataset, **about, **OURS))
                lines.append(line(n, 0.7 + add, dataset, **about, metric="anls", profile="paper"))
            choices = ["rule-extracted"]
            lines.append(line(n, 0.8 + add, "one", **about, metric="rules", profile="ours", choices=choices))
    return lines


def shown(grid: Grid, model: str = "a") -> dict[str, dict[str, float | None]]:
    """By profile: each row and the first model's number in the first column."""
    return {
        part.profile: {row.name: part.cells[model, row, part.columns[0]].mean for row in part.rows}
        for part in grid.by_profile()
    }


def test_averages_have_members_of_one_profile(tmp_path: Path) -> None:
    found = reported(tmp_path, everywhere())
    assert shown(found.averages) == {"official": {"Docs": 0.5}, "ours": {"Docs": 0.2}}
    assert found.averages.notes == ()
    assert {each.metric: each.profile for each in found.provenance} == {"em": "ours", "anls": "paper", "rules": "ours"}
    assert [(each.metric, each.profile) for each in found.provenance] == [
        ("em", "official"),
        ("anls", "paper"),
        ("em", "ours"),
        ("rules", "ours"),
    ]
    asked = reported(tmp_path, everywhere(), "anls")
    assert shown(asked.averages) == {"official": {"Docs": 0.5}, "paper": {"Docs": 0.7}, "ours": {"Docs": 0.2}}


def test_a_member_that_another_profile_scored_leaves_a_dash_and_is_named(tmp_path: Path) -> None:
    about: dict[str, Any] = {"category": "Summ", "averaged_metric": "flu"}
    lines = [line(n, 0.5, "one", **OFFICIAL) for n in range(3)]
    lines += [line(n, 0.4, name, metric="rouge", **about, **OFFICIAL) for n in range(3) for name in ("gov", "lex")][:-3]
    lines += [line(n, 0.9, name, metric="flu", profile="ours", **about) for n in range(3) for name in ("gov", "lex")]
    found = reported(tmp_path, lines)
    kept = {(row.profile, row.name) for row in found.averages.rows if found.averages.cells.get(("m", row, "8K"))}
    assert kept == {("official", "Docs"), ("official", "Summ"), ("official", "overall"), ("ours", "Summ")}
    without = reported(tmp_path, [each for each in lines if (each["dataset"], each["metric"]) != ("lex", "rouge")])
    kept = {(row.profile, row.name) for row in without.averages.rows if without.averages.cells.get(("m", row, "8K"))}
    assert kept == {("official", "Docs"), ("ours", "Summ")}
    assert without.averages.notes == (
        "averages under official lack lex at 8K; those that need it are left empty",
        "gov enter by rouge; the paper's averages take flu, which is scored here under ours only",
    )
    docs_and_judged = [each for each in lines if each["metric"] != "rouge"]
    assert "Summ" not in shown(reported(tmp_path, docs_and_judged).averages, "m")["official"]


def test_overall_is_empty_where_a_whole_category_was_scored_under_another_profile(tmp_path: Path) -> None:
    lines = [line(n, 0.5, name, category=name, **OFFICIAL) for n in range(3) for name in ("A", "B")]
    lines += [line(n, 0.9, "C", category="C", **OURS) for n in range(3)]
    found = reported(tmp_path, lines)
    rows = {row.name: found.averages.cells.get(("m", row, "8K")) for row in found.averages.rows}
    assert [name for name, cell in rows.items() if cell] == ["A", "B", "C"]
    assert found.averages.notes == ("overall under official is empty: nothing of C was scored under official",)


def test_one_profile_may_be_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path, everywhere())
    assert report(folder, profile="paper").metrics == ("anls",)
    only = report(folder, profile="ours")
    assert (only.metrics, {row.profile for row in only.scores.rows}) == (("em", "rules"), {"ours"})
    assert mean(only.averages, "Docs", "8K", "b") == pytest.approx(0.3)
    with pytest.raises(
        ReleaseError, match=r"--profile unknown: .* there are official: em; paper: anls; ours: em, rules"
    ):
        report(folder, profile="unknown")


def test_a_model_scored_with_several_choices_has_a_series_for_each(tmp_path: Path) -> None:
    about: dict[str, Any] = {"facets": {"kind": ["x"]}, "depth": 0.5, **OFFICIAL}
    lines = [line(n, 0.5, model=model, choices=["rules"], **about) for n in range(3) for model in "abc"]
    lines += [
        line(n, 0.75, model=model, choices=["rules", "reasoning kept"], **about) for n in range(3) for model in "ab"
    ]
    lines += [line(n, 0.25, model="a", metric="anls", profile="paper", choices=["reasoning kept"]) for n in range(3)]
    found = reported(tmp_path, lines)
    kept = "official, reasoning kept"
    assert shown(found.scores) == {"official": {"docs": 0.5}, kept: {"docs": 0.75}, "paper": {"docs": 0.25}}
    assert shown(found.averages, "b") == {"official": {"Docs": 0.5}, kept: {"Docs": 0.75}}
    assert {grid.label for grid in (*found.depths, *found.facets)} == {"em (official)", f"em ({kept})"}
    assert [(each.profile, each.choices, each.models) for each in found.provenance] == [
        ("official", ("rules",), 3),
        (kept, ("rules", "reasoning kept"), 2),
        ("paper", ("reasoning kept",), 1),
    ]
    assert found.notes[0] == (
        "em was scored under different profiles for different models, in different tables: "
        f"official: a, b, c; {kept}: a, b"
    )
    assert f"<h3>{kept}</h3>" in page(found)
    assert report(tmp_path, profile="official").summary()["scores"]["cells"] == [
        each for each in found.summary()["scores"]["cells"] if each["profile"] != "paper"
    ]


def test_models_under_different_profiles_or_made_differently_are_named(tmp_path: Path) -> None:
    lines = [line(n, 0.5, model="a", **OFFICIAL) for n in range(3)]
    lines += [line(n, 0.6, model="b", **OURS) for n in range(3)]
    lines += [line(n, 0.6, model="c", choices=["compat"], **OFFICIAL) for n in range(3)]
    assert reported(tmp_path, lines).notes[:2] == (
        "em was scored under different profiles for different models, in different tables: official: a, c; ours: b",
        f"scores by em (official) were not made in the same way for all models: a: {CODE}; c: {CODE}, compat",
    )


def test_the_same_examples_under_two_profiles_are_no_twins_and_under_one_are(tmp_path: Path) -> None:
    assert reported(tmp_path, [line(1, 0.5, **OFFICIAL), line(1, 0.2, **OURS)]).lines == 2
    with pytest.raises(ReleaseError, match=r"m, em \(official\), docs_K8.jsonl: id '1' is scored twice"):
        reported(tmp_path, [line(1, 0.5, **OFFICIAL), line(1, 0.2, **OFFICIAL)])


def test_scores_without_a_profile_are_read_and_called_unknown(tmp_path: Path) -> None:
    found = reported(tmp_path, [line(1, 0.5), line(2, 0.5)])
    assert [(each.metric, each.profile, each.follows) for each in found.provenance] == [("em", "unknown", ())]
    assert shown_titles(tmp_path) == ["averages, unknown", "datasets, unknown"]
    printed = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False).output
    assert "unknown (made before scores had profiles): em\n" in printed
    assert ">unknown</h3>" in page(found)


def shown_titles(folder: Path, *options: str) -> list[str]:
    printed = CliRunner().invoke(command, [str(folder), *options], catch_exceptions=False).output.splitlines()
    return [text.strip() for text in printed if text.startswith(("averages,", "datasets,"))]


def test_every_table_names_its_profile_and_none_has_two(tmp_path: Path) -> None:
    folder = write(tmp_path, everywhere())
    assert shown_titles(folder) == [
        "averages, official",
        "averages, ours",
        "datasets, official",
        "datasets, paper",
        "datasets, ours",
    ]
    assert shown_titles(folder, "--profile", "ours") == ["averages, ours", "datasets, ours"]
    printed = CliRunner().invoke(command, [str(folder)], catch_exceptions=False).output
    for said in (
        f"official: em (follows {CODE})\n",
        "paper: anls\n",
        "ours: rules (rule-extracted)\n",
        "depth: one, em (official)",
        "depth: one, rules (ours)",
        "kind, em (ours)",
        "between metrics",
    ):
        assert said in printed, said
    html = page(report(folder))
    assert html.count("<h3>official</h3>") == html.count("<h3>ours</h3>") == 3
    assert "em <span>" not in html


def test_json_says_the_profile_of_every_cell(tmp_path: Path) -> None:
    folder = write(tmp_path, everywhere())
    found = json.loads(CliRunner().invoke(command, [str(folder), "--json"], catch_exceptions=False).output)
    assert found["profiles"][0] == {
        "metric": "em",
        "profile": "official",
        "follows": [CODE],
        "choices": [],
        "models": 2,
    }
    grids = [found["averages"], found["scores"], found["details"], found["totals"], *found["depths"], *found["facets"]]
    assert {cell["profile"] for grid in grids for cell in grid["cells"]} == {"official", "paper", "ours"}


def mixed() -> list[Line]:
    """Documents by their own metric under official, by a lenient and a strict one under ours; summaries in part."""
    lines = []
    for n in range(6):
        lines.append(line(n, 0.5, "docs", depth=n / 5, facets={"kind": ["x"]}, **OFFICIAL))
        for metric, choice, score in (("a-best-of", "lenient", 0.9), ("b-rules", "rule-extracted", 0.7)):
            about: dict[str, Any] = {"metric": metric, "profile": "ours", "choices": [choice], "details": {"x": n}}
            lines.append(line(n, score, "docs", depth=n / 5, facets={"kind": ["x"]}, **about))
        summaries: dict[str, Any] = {"category": "Summ", "averaged_metric": "flu"}
        lines.append(line(n, 0.4, "gov", metric="rouge", **summaries, **OFFICIAL))
        lines += [line(n, 0.8, name, metric="flu", profile="ours", **summaries) for name in ("gov", "lex")]
    return lines


@pytest.mark.parametrize("profile", ["official", "ours"])
def test_a_profile_alone_has_the_numbers_that_it_has_beside_the_others(profile: str, tmp_path: Path) -> None:
    folder = write(tmp_path, mixed())
    both, alone = report(folder).summary(), report(folder, profile=profile).summary()
    for name in ("averages", "scores", "details", "totals"):
        wanted = [each for each in both[name]["cells"] if each["profile"] == profile]
        assert alone[name]["cells"] == wanted, name
    for name in ("depths", "facets"):
        assert [grid for grid in both[name] if grid["cells"][0]["profile"] == profile] == alone[name], name
    assert alone["datasets"] == {"official": ["docs", "gov"], "ours": ["docs", "gov", "lex"]}[profile]


def test_a_profile_that_scored_some_of_the_questions_has_the_same_intervals_alone(tmp_path: Path) -> None:
    """As SMuDGE leaves out questions whose answer does not stand in the document."""
    lines = [line(n, n % 5 / 5, cluster=f"document {n % 9}", metric="rules", profile="ours") for n in range(18)]
    lines += [line(n, n % 4 / 4, cluster=f"document {n % 9}", **OFFICIAL) for n in range(6)]
    lines += [line(f"apart {n}", 0.5, metric="rules", profile="ours") for n in range(6)]
    folder = write(tmp_path, lines)
    both, alone = report(folder).scores, report(folder, profile="official").scores
    (row,) = alone.rows
    found = alone.cells["m", row, "8K"]
    assert (found.mean, found.low is None) == (both.cells["m", row, "8K"].mean, False)
    assert (found.low, found.high) == (both.cells["m", row, "8K"].low, both.cells["m", row, "8K"].high)


def test_a_metric_that_is_not_a_datasets_own_enters_no_average_of_its_profile_alone(tmp_path: Path) -> None:
    folder = write(tmp_path, [each for each in mixed() if each["dataset"] == "docs"])
    alone = report(folder, profile="ours")
    assert alone.averages.rows == ()
    assert alone.averages.notes == (
        "there is no average: no dataset was scored by its own metric; --metric takes another (a-best-of, b-rules)",
    )
    assert shown(report(folder, ["b-rules"], "ours").averages, "m") == {"ours": {"Docs": pytest.approx(0.7)}}


def test_a_lenient_metric_enters_averages_only_where_it_is_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path, [each for each in mixed() if each["profile"] == "ours" and each["dataset"] == "docs"])
    assert shown(report(folder).averages, "m") == {"ours": {"Docs": pytest.approx(0.7)}}  # it was read first
    assert shown(report(folder, ["a-best-of"]).averages, "m") == {"ours": {"Docs": pytest.approx(0.9)}}
    lenient = write(tmp_path / "lenient", [each for each in mixed() if each.get("choices") == ["lenient"]])
    assert report(lenient).averages.rows == ()
    assert shown(report(lenient, ["a-best-of"]).averages, "m") == {"ours": {"Docs": pytest.approx(0.9)}}

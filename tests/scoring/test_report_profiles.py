"""Scores of different profiles in one folder: no table mixes them, each is named, averages have members of one."""

from pathlib import Path
from typing import Any

import pytest
from score_lines import Line, known, line, mean, page, printed, refused, reported, told, write

CODE = "EdinburghNLP/MMLongBench@22b9f27"
OFFICIAL: dict[str, Any] = {"profile": "official", "follows": CODE, "is_own": True}
OURS: dict[str, Any] = {"profile": "ours", "is_own": True}


def everywhere() -> list[Line]:
    """Two models under official and ours, by the datasets' own metric; further metrics under paper and ours."""
    lines = []
    for model, add in (("a", 0.0), ("b", 0.1)):
        for n in range(4):
            about: dict[str, Any] = {"model": model, "depth": n / 4, "facets": {"kind": ["x"]}}
            about["details"] = {"refused": n == 1}
            for dataset in ("one", "two"):
                lines.append(line(n, 0.5 + add, dataset, **about, **OFFICIAL))
                lines.append(line(n, 0.2 + add, dataset, **about, **OURS))
                lines.append(line(n, 0.7 + add, dataset, **about, metric="anls", profile="paper"))
            choices = ["rule-extracted"]
            lines.append(line(n, 0.8 + add, "one", **about, metric="rules", profile="ours", choices=choices))
    return lines


def shown(grid: Line, model: str = "a", column: str = "8K") -> dict[str, dict[str, float | None]]:
    """By profile: each row and the model's number."""
    found: dict[str, dict[str, float | None]] = {}
    for each in grid["cells"]:
        if (each["model"], each["column"]) == (model, column):
            found.setdefault(each["profile"], {})[each["row"]] = each["mean"]
    return found


def test_averages_have_members_of_one_profile(tmp_path: Path) -> None:
    found = reported(tmp_path, everywhere())
    assert shown(found["averages"]) == {"official": {"Docs": 0.5}, "ours": {"Docs": 0.2}}
    assert found["averages"]["notes"] == []
    about = {"follows": [], "choices": [], "models": 2}
    assert found["profiles"] == [
        {**about, "metric": "em", "profile": "official", "follows": [CODE]},
        {**about, "metric": "anls", "profile": "paper"},
        {**about, "metric": "em", "profile": "ours"},
        {**about, "metric": "rules", "profile": "ours", "choices": ["rule-extracted"]},
    ]
    asked = told(tmp_path, "--metric", "anls")["averages"]
    assert shown(asked) == {"official": {"Docs": 0.5}, "paper": {"Docs": 0.7}, "ours": {"Docs": 0.2}}


def test_a_member_that_another_profile_scored_leaves_a_dash_and_is_named(tmp_path: Path) -> None:
    about: dict[str, Any] = {"category": "Summ", "averaged_metric": "flu"}
    lines = [line(n, 0.5, "one", **OFFICIAL) for n in range(3)]
    lines += [line(n, 0.4, name, metric="rouge", **about, **OFFICIAL) for n in range(3) for name in ("gov", "lex")][:-3]
    lines += [line(n, 0.9, name, metric="flu", profile="ours", **about) for n in range(3) for name in ("gov", "lex")]
    found = shown(reported(tmp_path, lines)["averages"], "m")
    assert {name: set(rows) for name, rows in found.items()} == {
        "official": {"Docs", "Summ", "overall"},
        "ours": {"Summ"},
    }
    some = [each for each in lines if (each["dataset"], each["metric"]) != ("lex", "rouge")]
    without = reported(tmp_path, some)["averages"]
    assert {name: set(rows) for name, rows in shown(without, "m").items()} == {"official": {"Docs"}, "ours": {"Summ"}}
    assert without["notes"] == [
        "averages under official lack lex at 8K; those that need it are left empty",
        "gov enter by rouge; the paper's averages take flu, which is scored here under ours only",
    ]
    judged = reported(tmp_path, [each for each in lines if each["metric"] != "rouge"])["averages"]
    assert "Summ" not in shown(judged, "m")["official"]


def test_overall_is_empty_where_a_whole_category_was_scored_under_another_profile(tmp_path: Path) -> None:
    lines = [line(n, 0.5, name, category=name, **OFFICIAL) for n in range(3) for name in ("A", "B")]
    lines += [line(n, 0.9, "C", category="C", **OURS) for n in range(3)]
    found = reported(tmp_path, lines)["averages"]
    assert shown(found, "m") == {"official": {"A": 0.5, "B": 0.5}, "ours": {"C": pytest.approx(0.9)}}
    assert found["notes"] == ["overall under official is empty: nothing of C was scored under official"]


def test_one_profile_may_be_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path, everywhere())
    assert told(folder, "--profile", "paper")["metrics"] == ["anls"]
    only = told(folder, "--profile", "ours")
    assert (only["metrics"], {each["profile"] for each in only["scores"]["cells"]}) == (["em", "rules"], {"ours"})
    assert mean(only["averages"], "Docs", "8K", "b") == pytest.approx(0.3)
    said = refused(folder, "--profile", "unknown")
    assert "--profile unknown:" in said
    assert "there are official: em; paper: anls; ours: em, rules" in said


def test_a_model_scored_with_several_choices_has_a_series_for_each(tmp_path: Path) -> None:
    about: dict[str, Any] = {"facets": {"kind": ["x"]}, "depth": 0.5, **OFFICIAL}
    both = ["rules", "reasoning kept"]
    lines = [line(n, 0.5, model=model, choices=["rules"], **about) for n in range(3) for model in "abc"]
    lines += [line(n, 0.75, model=model, choices=both, **about) for n in range(3) for model in "ab"]
    lines += [line(n, 0.25, model="a", metric="anls", profile="paper", choices=["reasoning kept"]) for n in range(3)]
    found = reported(tmp_path, lines)
    kept = "official, reasoning kept"
    assert shown(found["scores"]) == {"official": {"docs": 0.5}, kept: {"docs": 0.75}, "paper": {"docs": 0.25}}
    assert shown(found["averages"], "b") == {"official": {"Docs": 0.5}, kept: {"Docs": 0.75}}
    for grids in (found["depths"], found["facets"]):
        assert [{each["profile"] for each in grid["cells"]} for grid in grids] == [{"official"}, {kept}]
    assert [(each["profile"], each["choices"], each["models"]) for each in found["profiles"]] == [
        ("official", ["rules"], 3),
        (kept, both, 2),
        ("paper", ["reasoning kept"], 1),
    ]
    assert found["notes"][0] == (
        "em was scored under different profiles for different models, in different tables: "
        f"official: a, b, c; {kept}: a, b"
    )
    assert f"<h3>{kept}</h3>" in page(tmp_path)
    assert told(tmp_path, "--profile", "official")["scores"]["cells"] == [
        each for each in found["scores"]["cells"] if each["profile"] != "paper"
    ]


def test_models_under_different_profiles_or_made_differently_are_named(tmp_path: Path) -> None:
    lines = [line(n, 0.5, model="a", **OFFICIAL) for n in range(3)]
    lines += [line(n, 0.6, model="b", **OURS) for n in range(3)]
    lines += [line(n, 0.6, model="c", choices=["compat"], **OFFICIAL) for n in range(3)]
    assert reported(tmp_path, lines)["notes"][:2] == [
        "em was scored under different profiles for different models, in different tables: official: a, c; ours: b",
        f"scores by em (official) were not made in the same way for all models: a: {CODE}; c: {CODE}, compat",
    ]


def titles(folder: Path, *options: str) -> list[str]:
    return [
        text.strip() for text in printed(folder, *options).splitlines() if text.startswith(("averages,", "datasets,"))
    ]


def test_scores_without_a_profile_are_read_and_called_unknown(tmp_path: Path) -> None:
    (found,) = reported(tmp_path, [line(1, 0.5), line(2, 0.5)])["profiles"]
    assert (found["metric"], found["profile"], found["follows"]) == ("em", "unknown", [])
    assert titles(tmp_path) == ["averages, unknown", "datasets, unknown"]
    assert "unknown (made before scores had profiles): em\n" in printed(tmp_path)
    assert ">unknown</h3>" in page(tmp_path)


def test_every_table_names_its_profile_and_none_has_two(tmp_path: Path) -> None:
    folder = write(tmp_path, everywhere())
    of_scores = [f"datasets, {profile}" for profile in ("official", "paper", "ours")]
    assert titles(folder) == ["averages, official", "averages, ours", *of_scores]
    assert titles(folder, "--profile", "ours") == ["averages, ours", "datasets, ours"]
    text = printed(folder)
    said = (
        *(f"official: em (follows {CODE})\n", "paper: anls\n", "ours: rules (rule-extracted)\n"),
        *("depth: one, em (official)", "depth: one, rules (ours)", "kind, em (ours)"),
    )
    assert [each for each in said if each not in text] == []
    html = page(folder)
    assert html.count("<h3>official</h3>") == html.count("<h3>ours</h3>") == 3
    found = told(folder)
    grids = [*(found[name] for name in ("averages", "scores", "details", "totals")), *found["depths"], *found["facets"]]
    assert {cell["profile"] for grid in grids for cell in grid["cells"]} == {"official", "paper", "ours"}


def mixed() -> list[Line]:
    """Documents by their own metric under official, by a lenient and a strict one under ours; summaries in part."""
    lines = []
    summaries: dict[str, Any] = {"category": "Summ", "averaged_metric": "flu"}
    for n in range(6):
        placed: dict[str, Any] = {"depth": n / 5, "facets": {"kind": ["x"]}}
        lines.append(line(n, 0.5, "docs", **placed, **OFFICIAL))
        for metric, choice, score in (("a-best-of", "lenient", 0.9), ("b-rules", "rule-extracted", 0.7)):
            about: dict[str, Any] = {"metric": metric, "profile": "ours", "choices": [choice], "details": {"x": n}}
            lines.append(line(n, score, "docs", **placed, **about))
        lines.append(line(n, 0.4, "gov", metric="rouge", **summaries, **OFFICIAL))
        lines += [line(n, 0.8, name, metric="flu", profile="ours", **summaries) for name in ("gov", "lex")]
    return lines


@pytest.mark.parametrize(("profile", "datasets"), [("official", ["docs", "gov"]), ("ours", ["docs", "gov", "lex"])])
def test_a_profile_alone_has_the_numbers_that_it_has_beside_the_others(
    profile: str, datasets: list[str], tmp_path: Path
) -> None:
    folder = write(tmp_path, mixed())
    both, alone = told(folder), told(folder, "--profile", profile)
    for name in ("averages", "scores", "details", "totals"):
        assert alone[name]["cells"] == [each for each in both[name]["cells"] if each["profile"] == profile], name
    for name in ("depths", "facets"):
        assert [grid for grid in both[name] if grid["cells"][0]["profile"] == profile] == alone[name], name
    assert alone["datasets"] == datasets


def test_a_profile_that_scored_some_of_the_questions_has_the_same_intervals_alone(tmp_path: Path) -> None:
    """As SMuDGE leaves out questions whose answer does not stand in the document."""
    lines = [line(n, n % 5 / 5, cluster=f"document {n % 9}", metric="rules", profile="ours") for n in range(18)]
    lines += [line(n, n % 4 / 4, cluster=f"document {n % 9}", **OFFICIAL) for n in range(6)]
    lines += [line(f"apart {n}", 0.5, metric="rules", profile="ours") for n in range(6)]
    folder = write(tmp_path, lines)
    (alone,) = told(folder, "--profile", "official")["scores"]["cells"]
    assert alone["interval"] is not None
    assert alone == known(told(folder)["scores"], "docs", "8K", of="official")


def test_a_metric_enters_averages_as_a_datasets_own_or_where_it_is_asked_for(tmp_path: Path) -> None:
    docs = [each for each in mixed() if each["dataset"] == "docs"]
    folder = write(tmp_path, docs)
    alone = told(folder, "--profile", "ours")["averages"]
    assert alone["cells"] == []
    assert alone["notes"] == [
        "there is no average: no dataset was scored by its own metric; --metric takes another (a-best-of, b-rules)"
    ]
    asked = told(folder, "--metric", "b-rules", "--profile", "ours")["averages"]
    assert shown(asked, "m") == {"ours": {"Docs": pytest.approx(0.7)}}


def test_a_lenient_metric_enters_averages_only_where_it_is_asked_for(tmp_path: Path) -> None:
    docs = [each for each in mixed() if each["dataset"] == "docs" and each["profile"] == "ours"]
    folder = write(tmp_path, docs)
    assert shown(told(folder)["averages"], "m") == {"ours": {"Docs": pytest.approx(0.7)}}  # it was read first
    lenient = write(tmp_path / "lenient", [each for each in docs if each["choices"] == ["lenient"]])
    assert told(lenient)["averages"]["cells"] == []
    for scores in (folder, lenient):
        found = shown(told(scores, "--metric", "a-best-of")["averages"], "m")
        assert found == {"ours": {"Docs": pytest.approx(0.9)}}

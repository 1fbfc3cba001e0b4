"""Examples that a model cannot hold: no score, N/A in every cell and average with one of them, never 0."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from score_lines import Line, absent, cell, line, page, reported, skipped, write
from tiny import Ran, command

from mmlongbench.cli.report import report as report_command
from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.predictions import SKIPPED
from mmlongbench.scoring.report import report
from mmlongbench.scoring.report.breakdowns import MIDDLE_LESS_ENDS
from mmlongbench.scoring.report.estimates import Counts
from mmlongbench.scoring.scores import read_scores

pytestmark = pytest.mark.slow
VH = "NIAH/vh_multi_test_2_K8_dep3.jsonl"
DOCS = "documentQA/mmlongdoc_K8.jsonl"


def said(line: Line, reason: str = "context-length") -> Line:
    """A line of predictions that says the model cannot hold the example."""
    return {key: value for key, value in line.items() if key != "prediction"} | {"skipped": reason}


def run(public: Path, lines: list[Line], folder: Path, *options: str) -> Ran:
    path = folder / "m.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return command("score", public, path, "--partial", "--out", folder / "scores", *options)


def cells(found: Ran) -> dict[str, Any]:
    scores: dict[str, Any] = json.loads(found.out)["scores"]
    return {
        f"{dataset} {length}": cell
        for each in scores.values()
        for dataset, by in each.items()
        for length, cell in by.items()
    }


def test_skipped_examples_have_no_score_and_are_counted_apart(public: Path, golds: list[Line], tmp_path: Path) -> None:
    docs = [each for each in golds if each["file"] == DOCS]
    vh = [said(each, "image-limit") for each in golds if each["file"] == VH]
    found = run(public, [*docs, *vh], tmp_path, "--json")
    assert json.loads(found.out)["skipped"] == {"image-limit": 6}
    assert set(json.loads(found.out)["problems"]) == {"no-predictions"}
    counts = {"examples": 6, "absent": 0, "failed": 0, "skipped": 6}
    assert cells(found)["vh_multi 8192"] == {"score": None, "score_of_others": None, **counts}
    lines = [each for each in read_scores(tmp_path / "scores") if each.file == VH]
    assert {(each.status, each.score, each.skipped) for each in lines} == {("skipped", None, "image-limit")}
    printed = run(public, [*docs, *vh], tmp_path).out
    assert "N/A (6 of 6 skipped)" in printed
    assert "skipped: 6 examples that the model cannot take (image-limit 6): N/A, not 0\n" in printed


def test_a_cell_with_some_skipped_is_not_applicable_as_a_whole_and_says_the_mean_of_the_others(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    docs = [each for each in golds if each["file"] == DOCS]
    lines = [said(docs[0]), *docs[1:3], {**docs[3], "prediction": "?"}]
    found = run(public, lines, tmp_path, "--metrics", "mmlongbench-doc", "--json")
    assert cells(found)["mmlongdoc 8192"] == {
        "score": None,
        "score_of_others": 0.5,
        "examples": 5,
        "absent": 1,
        "failed": 0,
        "skipped": 1,
    }
    assert "N/A (1 of 5 skipped)" in run(public, lines, tmp_path, "--metrics", "mmlongbench-doc").out


@pytest.mark.parametrize(
    ("fields", "reason", "place"),
    [
        ({"skipped": "too hard", "prediction": None}, "unknown-skip", "m.jsonl, line 1: 'too hard', expected one of"),
        ({"skipped": True}, "skipped-and-predicted", "m.jsonl, line 1"),
        ({"skipped": ["context-length"], "prediction": None}, "unknown-skip", "m.jsonl, line 1: ['context-length']"),
        ({"skipped": "context-length"}, "skipped-and-predicted", "m.jsonl, line 1"),
        ({"prediction": None}, "not-a-text", "m.jsonl, line 1: NoneType"),
    ],
)
def test_what_is_no_reason_leaves_the_example_absent_which_is_0(
    fields: Line, reason: str, place: str, public: Path, golds: list[Line], tmp_path: Path
) -> None:
    docs = [each for each in golds if each["file"] == DOCS]
    found = run(public, [docs[0] | fields, *docs[1:]], tmp_path, "--json")
    problems = json.loads(found.out)["problems"]
    assert found.code == 1
    assert problems[reason]["first"][0].startswith(place)
    assert problems["absent"]["count"] == 1
    assert (cells(found)["mmlongdoc 8192"]["score"], cells(found)["mmlongdoc 8192"]["skipped"]) == (0.8, 0)


@pytest.mark.parametrize("reason", SKIPPED)
def test_every_reason_is_taken_beside_an_empty_prediction(
    reason: str, public: Path, golds: list[Line], tmp_path: Path
) -> None:
    docs = [{**said(each, reason), "prediction": None} for each in golds if each["file"] == DOCS]
    assert json.loads(run(public, docs, tmp_path, "--json").out)["skipped"] == {reason: 5}


def test_a_skipped_example_takes_no_turn_of_the_public_codes_refusals(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    vh = [{**each, "prediction": "I cannot tell"} for each in golds if each["file"] == VH]
    run(public, [said(vh[0]), *vh[1:]], tmp_path, "-q")
    scores = [each.score for each in read_scores(tmp_path / "scores") if each.file == VH]
    assert scores == [None, *(a == b for a, b in zip((0, 1, 1, 0, 0), (1, 1, 0, 0, 0), strict=True))]


def models(**by_model: list[Line]) -> list[Line]:
    return [each | {"model": model} for model, lines in by_model.items() for each in lines]


def test_every_cell_and_average_with_a_skipped_example_is_not_applicable(tmp_path: Path) -> None:
    about: dict[str, Any] = {"facets": {"kind": ["x"]}, "depth": 0.5}
    whole = [line(n, 0.5, name, k, **about) for n in range(4) for name in ("a", "b") for k in (8, 16)]
    some = [each for each in whole if each["dataset"] == "a"]
    some += [line(n, 1.0, "b", 8, **about) for n in range(4)]
    some += [line(n, 1.0, "b", 16, **about) for n in range(3)] + [skipped(3, "b", 16, **about)]
    found = reported(tmp_path, models(whole=whole, some=some))
    shown = {
        (row, column): (cell(found.scores, row, column, "some"), cell(found.scores, row, column, "whole"))
        for row in ("a", "b")
        for column in ("8K", "16K", "mean")
    }
    assert {key: bool(mine and mine.is_inapplicable) for key, (mine, _) in shown.items()} == {
        ("a", "8K"): False,
        ("a", "16K"): False,
        ("a", "mean"): False,
        ("b", "8K"): False,
        ("b", "16K"): True,
        ("b", "mean"): True,
    }
    assert {other and other.mean for _, other in shown.values()} == {0.5}
    partly = shown["b", "16K"][0]
    assert partly is not None
    assert (partly.counts, partly.others, partly.low) == (Counts(4, 0, 0, 1), 1.0, None)
    averages = {column: cell(found.averages, "Docs", column, "some") for column in ("8K", "16K", "mean")}
    assert [bool(each and each.is_inapplicable) for each in averages.values()] == [False, True, True]
    assert found.averages.notes == ()
    for grid in (*found.depths[1:], *found.facets):
        over_all = [each for (model, _, column), each in grid.cells.items() if (model, column) == ("some", "all")]
        assert any(each.is_inapplicable for each in over_all)
    json_cells = [each for each in found.scores.summary()["cells"] if each["skipped"]]
    assert {(each["mean"], each.get("mean_of_others")) for each in json_cells if each["column"] == "16K"} == {(None, 1)}


def test_an_average_that_also_lacks_a_part_is_empty_rather_than_not_applicable(tmp_path: Path) -> None:
    lines = models(m=[skipped(1, "a"), line(1, 1.0, "b")], n=[line(1, 1.0, "a"), line(1, 1.0, "b")])
    assert cell(reported(tmp_path, lines).averages, "Docs", "8K") is not None
    assert cell(reported(tmp_path, lines[:1] + lines[2:]).averages, "Docs", "8K") is None


def test_totals_of_a_file_with_skipped_examples_are_not_applicable(tmp_path: Path) -> None:
    about: dict[str, Any] = {"metric": "mmlongbench-doc", "details": {"answerable": True, "answered": True}}
    lines = models(m=[line(1, 1.0, **about), skipped(2, metric="mmlongbench-doc")])
    (accuracy, f1) = reported(tmp_path, lines).totals.cells.values()
    assert (accuracy.mean, accuracy.others, accuracy.is_inapplicable, f1.is_inapplicable) == (None, 1.0, True, True)


def test_details_of_a_cell_with_skipped_examples_are_not_applicable(tmp_path: Path) -> None:
    lines = [line(n, 1.0, k=8, details={"recall": 0.25}) for n in (1, 2)]
    lines += [line(1, 1.0, k=16, details={"recall": 0.75}), skipped(2, k=16)]
    found = reported(tmp_path, lines).details
    at = {column: cell(found, "recall", column) for column in found.columns}
    assert [(each and each.mean, each and each.others) for each in at.values()] == [
        (0.25, None),
        (None, 0.75),
        (None, None),
    ]
    assert [bool(each and each.is_inapplicable) for each in at.values()] == [False, True, True]
    assert at["16K"] is not None
    assert at["16K"].counts == Counts(1, 0, 0, 1)
    html = page(report(tmp_path))
    assert "N/A" in html[html.index('<h2 id="details">') :]


def test_the_loss_in_the_middle_of_a_length_with_skipped_examples_is_not_applicable(tmp_path: Path) -> None:
    depths = (0.0, 0.5, 1.0)
    lines = [line(1, depth, depth=depth, k=8) for depth in depths]
    lines += [line(1, 1.0, depth=depth, k=16) for depth in depths[:2]] + [skipped(1, k=16, depth=1.0)]
    (grid,) = reported(tmp_path, lines).depths
    at = {column: grid.cells.get(("m", MIDDLE_LESS_ENDS, column)) for column in grid.columns}
    assert [(each and each.mean, each and each.is_inapplicable) for each in at.values()] == [
        (0.0, False),
        (None, True),
        (None, True),
    ]


def test_the_terminal_shows_details_of_skipped_examples_as_n_a(tmp_path: Path) -> None:
    lines = [line(1, 1.0, details={"recall": 0.25}), skipped(2)]
    folder = write(tmp_path, lines)
    printed = CliRunner().invoke(report_command, [str(folder)], catch_exceptions=False).output
    (recall,) = [text.split() for text in printed.splitlines() if text.startswith("docs em: recall")]
    assert recall[-1] == "N/A"


def test_the_report_shows_n_a_and_lists_what_was_skipped(tmp_path: Path) -> None:
    lines = models(m=[line(1, 1.0), skipped(2)], n=[line(1, 0.5), absent(2)])
    folder = write(tmp_path, lines)
    printed = CliRunner().invoke(report_command, [str(folder)], catch_exceptions=False).output
    assert [text.split() for text in printed.splitlines() if text.startswith("  m ")] == [["m", "N/A"]] * 2
    html = page(report(folder))
    assert html.count("N/A<small") == 2
    assert "1 absent, 0 failed, 1 skipped" in html
    missing = report(folder).summary()["missing"]
    assert [(each["model"], each["skipped"], each.get("mean_of_others")) for each in missing] == [
        ("m", 1, 1.0),
        ("n", 0, None),
    ]


def test_a_skipped_line_with_a_score_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"status 'skipped' with score 0.0.*expected a score null"):
        reported(tmp_path, [skipped(1) | {"score": 0.0}])


def test_the_terminal_shows_depths_and_facets_over_the_lengths_that_a_model_holds_with_a_mark(tmp_path: Path) -> None:
    about: dict[str, Any] = {"depth": 0.5, "facets": {"kind": ["x"]}}
    whole = [line(n, 0.5, k=k, **about) for n in range(6) for k in (8, 16, 32)]
    some = [line(n, 0.25, k=8, **about) for n in range(2)] + [line(n, 0.75, k=16, **about) for n in range(2, 6)]
    some += [line(n, 1.0, k=32, **about) for n in range(5)] + [skipped(5, k=32, **about)]
    whole = [each for each in whole if each["length"] == 32 * 1024 or (int(each["id"]) < 2) == (each["length"] < 9000)]
    folder = write(tmp_path, models(some=some, whole=whole))
    printed = CliRunner().invoke(report_command, [str(folder)], catch_exceptions=False).output
    mean = f"{100 * (2 * 0.25 + 4 * 0.75) / 6:.1f}*"
    depth = next(text.split() for text in printed[printed.index("depth:") :].splitlines() if text.startswith("some"))
    (facet,) = [text.split() for text in printed.splitlines() if text.startswith("docs: x")]
    assert depth == ["some", mean]
    assert facet == ["docs:", "x", mean, "50.0", "±0.0"]
    assert printed.count("* over the lengths that the model can hold; over all of them it is N/A\n") == 2
    whole_only = CliRunner().invoke(report_command, [str(write(tmp_path / "w", models(whole=whole)))])
    assert "over the lengths that the model can hold" not in whole_only.output


def test_one_skipped_example_is_one_example(public: Path, golds: list[Line], tmp_path: Path) -> None:
    docs = [each for each in golds if each["file"] == DOCS]
    assert "skipped: 1 example that the model cannot take" in run(public, [said(docs[0]), *docs[1:]], tmp_path).out

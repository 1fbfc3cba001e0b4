"""Examples that a model cannot hold: no score, N/A in every cell and average with one of them, never 0."""

import json
from pathlib import Path
from typing import Any

from score_lines import (
    Line,
    absent,
    cell,
    cells,
    counts,
    is_inapplicable,
    known,
    line,
    page,
    printed,
    problems,
    reported,
    score,
    scored,
    skipped,
    table,
    write,
)

VH = "NIAH/vh_multi_test_2_K8_dep3.jsonl"
DOCS = "documentQA/mmlongdoc_K8.jsonl"
REASONS = ("context-length", "image-limit", "request-size")


def said(line: Line, reason: str = "context-length") -> Line:
    """A line of predictions that says the model cannot hold the example."""
    return {key: value for key, value in line.items() if key != "prediction"} | {"skipped": reason}


def of_file(golds: list[Line], file: str) -> list[Line]:
    return [each for each in golds if each["file"] == file]


def test_skipped_examples_have_no_score_and_are_counted_apart(public: Path, golds: list[Line], tmp_path: Path) -> None:
    lines = [*of_file(golds, DOCS), *(said(each, "image-limit") for each in of_file(golds, VH))]
    found = score(public, lines, tmp_path, "--partial", "--json")
    assert json.loads(found.out)["skipped"] == {"image-limit": 6}
    assert set(problems(found)) == {"no-predictions"}
    numbers = {"examples": 6, "absent": 0, "failed": 0, "skipped": 6}
    made = cells(found)["binary_acc", "vh_multi", "8192"]
    assert made == {"score": None, "score_of_others": None, **numbers}
    kept = [each for each in scored(tmp_path / "scores") if each.file == VH]
    assert {(each.status, each.score, each.skipped) for each in kept} == {("skipped", None, "image-limit")}
    text = score(public, lines, tmp_path, "--partial").out
    assert "N/A (6 of 6 skipped)" in text
    assert "skipped: 6 examples that the model cannot take (image-limit 6): N/A, not 0\n" in text


def test_a_cell_with_some_skipped_is_not_applicable_as_a_whole_and_says_the_mean_of_the_others(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    docs = of_file(golds, DOCS)
    lines = [said(docs[0]), *docs[1:3], {**docs[3], "prediction": "?"}]
    options = ("--partial", "--metrics", "mmlongbench-doc")
    numbers = {"examples": 5, "absent": 1, "failed": 0, "skipped": 1}
    found = cells(score(public, lines, tmp_path, *options, "--json"))
    assert list(found.values()) == [{"score": None, "score_of_others": 0.5, **numbers}]
    text = score(public, lines, tmp_path, *options).out
    assert "N/A (1 of 5 skipped)" in text
    assert "skipped: 1 example that the model cannot take" in text


def test_every_reason_is_taken_beside_an_empty_prediction(public: Path, golds: list[Line], tmp_path: Path) -> None:
    docs = of_file(golds, DOCS)
    lines = [{**said(each, reason), "prediction": None} for each, reason in zip(docs, REASONS, strict=False)]
    found = score(public, lines, tmp_path, "--partial", "--json")
    assert json.loads(found.out)["skipped"] == dict.fromkeys(REASONS, 1)
    assert problems(found)["absent"] == 2


def test_a_skipped_example_takes_no_turn_of_the_public_codes_refusals(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    vh = [{**each, "prediction": "I cannot tell"} for each in of_file(golds, VH)]
    score(public, [said(vh[0]), *vh[1:]], tmp_path, "--partial", "-q")
    in_turn = [a == b for a, b in zip((0, 1, 1, 0, 0), (1, 1, 0, 0, 0), strict=True)]
    assert [each.score for each in scored(tmp_path / "scores")] == [None, *in_turn]


def models(**by_model: list[Line]) -> list[Line]:
    return [each | {"model": model} for model, lines in by_model.items() for each in lines]


def test_every_cell_and_average_with_a_skipped_example_is_not_applicable(tmp_path: Path) -> None:
    about: dict[str, Any] = {"facets": {"kind": ["x"]}, "depth": 0.5}
    whole = [line(n, 0.5, name, k, **about) for n in range(4) for name in ("a", "b") for k in (8, 16)]
    some = [each for each in whole if each["dataset"] == "a"]
    some += [line(n, 1.0, "b", 8, **about) for n in range(4)]
    some += [line(n, 1.0, "b", 16, **about) for n in range(3)] + [skipped(3, "b", 16, **about)]
    found = reported(tmp_path, models(whole=whole, some=some))
    scores = {(each["model"], each["row"], each["column"]): each for each in found["scores"]["cells"]}
    assert {key for key, each in scores.items() if is_inapplicable(each)} == {
        ("some", "b", "16K"),
        ("some", "b", "mean"),
    }
    assert {each["mean"] for (model, _, _), each in scores.items() if model == "whole"} == {0.5}
    assert len(scores) == 12
    partly = scores["some", "b", "16K"]
    assert (counts(partly), partly["mean_of_others"], partly["interval"]) == ((4, 0, 0, 1), 1.0, None)
    averages = [cell(found["averages"], "Docs", column, "some") for column in ("8K", "16K", "mean")]
    assert [is_inapplicable(each) for each in averages] == [False, True, True]
    assert found["averages"]["notes"] == []
    for grid in (*found["depths"][1:], *found["facets"]):
        assert any(
            is_inapplicable(each) for each in grid["cells"] if (each["model"], each["column"]) == ("some", "all")
        )


def test_an_average_that_also_lacks_a_part_is_empty_rather_than_not_applicable(tmp_path: Path) -> None:
    lines = models(m=[skipped(1, "a"), line(1, 1.0, "b")], n=[line(1, 1.0, "a"), line(1, 1.0, "b")])
    assert is_inapplicable(cell(reported(tmp_path, lines)["averages"], "Docs", "8K"))
    assert cell(reported(tmp_path, lines[:1] + lines[2:])["averages"], "Docs", "8K") is None


def test_totals_and_details_of_a_file_with_skipped_examples_are_not_applicable(tmp_path: Path) -> None:
    rules: dict[str, Any] = {"metric": "mmlongbench-doc", "details": {"answerable": True, "answered": True}}
    found = reported(tmp_path, [line(1, 1.0, **rules), skipped(2, metric="mmlongbench-doc")])["totals"]["cells"]
    assert {(each["row"], each["mean"], each["mean_of_others"]) for each in found} == {
        ("accuracy", None, 1.0),
        ("f1", None, 1.0),
    }
    lines = [line(n, 1.0, k=8, details={"recall": 0.25}) for n in (1, 2)]
    lines += [line(1, 1.0, k=16, details={"recall": 0.75}), skipped(2, k=16)]
    folder = tmp_path / "scores"
    details = reported(folder, lines)["details"]["cells"]
    assert [(each["column"], each["mean"], each.get("mean_of_others"), is_inapplicable(each)) for each in details] == [
        ("8K", 0.25, None, False),
        ("16K", None, 0.75, True),
        ("mean", None, None, True),
    ]
    assert counts(details[1]) == (1, 0, 0, 1)
    html = page(folder)
    assert "N/A" in html[html.index('<h2 id="details">') :]
    recall = next(row for row in table(folder, "what metrics say") if row[:3] == ["docs", "em:", "recall"])
    assert recall[-1] == "N/A"


def test_the_loss_in_the_middle_of_a_length_with_skipped_examples_is_not_applicable(tmp_path: Path) -> None:
    depths = (0.0, 0.5, 1.0)
    lines = [line(1, depth, depth=depth, k=8) for depth in depths]
    lines += [line(1, 1.0, depth=depth, k=16) for depth in depths[:2]] + [skipped(1, k=16, depth=1.0)]
    (grid,) = reported(tmp_path, lines)["depths"]
    found = [known(grid, "middle − ends", column) for column in ("8K", "16K", "all")]
    assert [(each["mean"], is_inapplicable(each)) for each in found] == [(0.0, False), (None, True), (None, True)]


def test_the_report_shows_n_a_and_lists_what_was_skipped(tmp_path: Path) -> None:
    folder = write(tmp_path / "scores", models(m=[line(1, 1.0), skipped(2)], n=[line(1, 0.5), absent(2)]))
    rows = [text.split() for text in printed(folder).splitlines() if text.startswith("  m ")]
    assert rows == [["m", "N/A"]] * 2
    html = page(folder)
    assert html.count("N/A<small") == 2
    assert "1 absent, 0 failed, 1 skipped" in html
    missing = reported(folder, models(m=[line(1, 1.0), skipped(2)], n=[line(1, 0.5), absent(2)]))["missing"]
    assert [(each["model"], each["skipped"], each.get("mean_of_others")) for each in missing] == [
        ("m", 1, 1.0),
        ("n", 0, None),
    ]


def test_the_terminal_shows_depths_and_facets_over_the_lengths_that_a_model_holds_with_a_mark(tmp_path: Path) -> None:
    about: dict[str, Any] = {"depth": 0.5, "facets": {"kind": ["x"]}}
    whole = [line(n, 0.5, k=k, **about) for n in range(6) for k in (8, 16, 32)]
    some = [line(n, 0.25, k=8, **about) for n in range(2)] + [line(n, 0.75, k=16, **about) for n in range(2, 6)]
    some += [line(n, 1.0, k=32, **about) for n in range(5)] + [skipped(5, k=32, **about)]
    whole = [each for each in whole if each["length"] == 32 * 1024 or (int(each["id"]) < 2) == (each["length"] < 9000)]
    folder = write(tmp_path / "scores", models(some=some, whole=whole))
    mean = f"{100 * (2 * 0.25 + 4 * 0.75) / 6:.1f}*"
    assert ["some", mean] in table(folder, "depth: docs")
    assert ["docs:", "x", mean, "50.0", "±0.0"] in table(folder, "kind, em")
    mark = "* over the lengths that the model can hold; over all of them it is N/A\n"
    assert printed(folder).count(mark) == 2
    assert mark not in printed(write(folder, models(whole=whole)))

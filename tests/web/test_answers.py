"""Predictions and scores that are given to the viewer: shown with their examples, in curves that lead to them, and what
fits no example is said."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from once import linked
from starlette.testclient import TestClient
from viewing import static, viewer

FILE = "documentQA/mmlongdoc_K1.jsonl"
SAID: dict[str, object] = {"file": FILE, "id": "mmlongdoc_0", "prediction": "hard"}
SCORED: dict[str, object] = {
    "model": "m",
    "metric": "doc_qa",
    "dataset": "mmlongdoc",
    "category": "DocVQA",
    "length": 1024,
    "status": "scored",
    "score": 1,
    "file": FILE,
}


def written(path: Path, *lines: Mapping[str, object]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_what_fits_no_example_or_cannot_be_read_is_counted_with_its_first_line(finished: Path, tmp_path: Path) -> None:
    other = [SAID | {"file": "documentQA/x_K1.jsonl"}, SAID | {"id": "nobody"}, SAID | {"depth": 0.2}]
    path = written(tmp_path / "model-a.jsonl", SAID, *other, SAID | {"id": "no one"}, {"id": "x"})
    ids = [SCORED | {"id": "mmlongdoc_0"}, SCORED | {"id": "gone"}, SCORED | {"id": "g", "file": "y", "dataset": "y"}]
    scores = written(tmp_path / "m.jsonl", *ids)
    ran = static(finished, tmp_path / "site", "--predictions", path, "--scores", scores, "-q")
    assert ran.code == 0, ran.err
    unfit = [
        "model-a: predictions for a file that the release does not have: 1; the first: model-a.jsonl, line 2",
        "model-a: predictions for an id that the file does not have: 2; the first: model-a.jsonl, line 3 (nobody)",
        "model-a: predictions for a placement that the example does not have: 1; the first: model-a.jsonl, line 4",
        f"m: predictions for an id that the file does not have: 1; the first: a score of {FILE}, gone",
        "m: predictions for a file that the release does not have: 1; the first: a score of y, g",
    ]
    unread = "predictions: predictions without a field they need: 1; the first: model-a.jsonl, line 6: file"
    page = (tmp_path / "site/index.html").read_text("utf-8")
    for note in (*unfit, unread):
        assert f"note: {note}" in ran.err
        assert note in page


@pytest.mark.parametrize(("option", "line"), [("--predictions", SAID), ("--scores", SCORED)])
def test_a_file_of_which_nothing_fits_is_refused(
    finished: Path, tmp_path: Path, option: str, line: Mapping[str, object]
) -> None:
    ran = static(finished, tmp_path / "s", option, written(tmp_path / "m.jsonl", {**line, "id": "nobody"}))
    assert ran.code == 2
    assert "m: predictions for an id that the file does not have: 1; the first:" in ran.err
    assert "Nothing of m fits; give what was made for " in ran.err


def test_scores_that_were_kept_are_those_of_these_files(finished: Path, tmp_path: Path, calls: list[str]) -> None:
    release = linked(finished, tmp_path / "release")
    path = written(tmp_path / "m.jsonl", SAID)

    def made_anew() -> list[str]:
        del calls[:]
        viewer(release, "--predictions", path)
        return [each for each in calls if each == "score_file"]

    assert [made_anew(), made_anew()] == [["score_file"], []]
    os.utime(release / "mmlb_data" / FILE, ns=(1, 1))
    assert [made_anew(), made_anew()] == [["score_file"], []]
    written(path, SAID, SAID | {"id": "mmlongdoc_1"})
    assert [made_anew(), made_anew()] == [["score_file"], []]


def test_predictions_with_one_name_have_scores_and_curves_of_their_own(finished: Path, tmp_path: Path) -> None:
    paths = [
        written(tmp_path / name / "m.jsonl", SAID | {"prediction": said}) for name, said in (("a", "hard"), ("b", "no"))
    ]
    asked = viewer(finished, "--predictions", paths[0], "--predictions", paths[1])
    row = asked.get("/data/rows-0.json").json()[0]
    assert row["scores"] == [1.0, 0.0]
    curves = unescape(asked.get("/report.html").text)
    assert {said.partition(",")[0] for said in re.findall(r'aria-label="(m[^"]*, 1K[^"]*)"', curves)} == {"m", "m (2)"}


def test_scores_belong_to_predictions_with_just_their_name_and_are_refused_if_two_have_it(
    finished: Path, tmp_path: Path
) -> None:
    a, b, other = (written(tmp_path / name, SAID) for name in ("a/m.jsonl", "b/m.jsonl", "c/m.v2.jsonl"))
    scores = written(tmp_path / "m.default.jsonl", SCORED | {"id": "mmlongdoc_0", "score": 0.0, "is_own": True})
    ran = static(finished, tmp_path / "s", "--predictions", a, "--predictions", b, "--scores", scores)
    assert ran.code == 2
    assert "scores of m, and 2 of the predictions have this name" in ran.err
    asked = viewer(finished, "--predictions", other, "--predictions", a, "--scores", scores)
    row = asked.get("/data/rows-0.json").json()[0]
    assert row["scores"] == [1.0, 0.0], "m.v2 is scored here, and m has the scores that were given"


# The report.


@pytest.fixture(scope="module")
def asked(tiles: Path, scores: Path) -> TestClient:
    return viewer(tiles, "--scores", scores)


def points(asked: TestClient) -> dict[str, tuple[str, dict[str, str]]]:
    """The addresses of points with their queries, by what is said about them."""
    parts = asked.get("/report.html").text.split('<a class="go" href="')[1:]
    found = {part.split('aria-label="')[1].split('"')[0]: part.split('"')[0] for part in parts}
    split = {unescape(said): unescape(address).partition("#") for said, address in found.items()}
    return {said: (path, dict(parse_qsl(query))) for said, (path, _, query) in split.items()}


def test_a_point_leads_to_its_examples_the_worst_first(asked: TestClient) -> None:
    found = points(asked)
    assert {path for path, _ in found.values()} == {"dataset-0.html"}
    query = next(query for said, (_, query) in found.items() if said.startswith("two, 0.4: 0.0"))
    assert (query["placement"], query["sort"], query["model"]) == ("~0.4", "score", "two")
    said, (_, query) = next(each for each in found.items() if each[0].startswith("one, 1K: 100.0"))
    assert "6 examples" in said
    assert query["length"] == "1K"


def test_without_scores_there_is_no_report_and_scores_that_cannot_be_compared_are_named(
    tiles: Path, tmp_path: Path
) -> None:
    without = viewer(tiles)
    assert without.get("/report.html").status_code == 404
    assert "report.html" not in without.get("/").text
    ran = static(tiles, tmp_path / "site", "--scores", written(tmp_path / "bad.jsonl", {}))
    assert ran.code == 2
    assert "bad.jsonl" in ran.err


@pytest.mark.rare
def test_a_server_does_not_load_what_computes_curves(scores: Path) -> None:
    """Pandas would take two thirds of the memory that a server may have."""
    script = (
        "import sys, pathlib, mmlongbench.web.viewer.serve\n"
        "from mmlongbench.web.viewer.pages import curves_of_scores\n"
        "if __name__ == '__main__':\n"
        "    assert curves_of_scores([pathlib.Path(sys.argv[1])])['figures']\n"
        "    assert 'pandas' not in sys.modules\n"
    )
    words = [sys.executable, "-c", script, str(scores / "one.jsonl")]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr

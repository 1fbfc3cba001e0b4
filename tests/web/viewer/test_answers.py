"""Predictions and scores that are given to the viewer: what fits no example is said, and nothing old is shown."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from tiny import command
from viewing import site_of

from mmlongbench.errors import ScoringError
from mmlongbench.web.viewer import answers, index, sources
from mmlongbench.web.viewer.curves import read_curves
from mmlongbench.web.viewer.curving import curves_of
from mmlongbench.web.viewer.sources import open_viewed

FILE = "documentQA/mmlongdoc_K1.jsonl"


def written(path: Path, lines: Iterable[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def scored(**other: object) -> dict[str, object]:
    """A line of scores."""
    common = {
        "model": "m",
        "metric": "doc_qa",
        "dataset": "mmlongdoc",
        "category": "DocVQA",
        "length": 1024,
        "status": "scored",
        "score": 1,
    }
    return {**common, "file": FILE, **other}


def test_what_fits_no_example_is_counted_by_reason_with_its_first_line(finished: Path, tmp_path: Path) -> None:
    good: dict[str, object] = {"file": FILE, "id": "mmlongdoc_0", "prediction": "hard"}
    other = [good | {"file": "documentQA/x_K1.jsonl"}, good | {"id": "nobody"}, good | {"depth": 0.2}]
    path = written(tmp_path / "model-a.jsonl", [good, *other, good | {"id": "no one"}])
    scores = written(
        tmp_path / "m.jsonl", [scored(id="mmlongdoc_0"), scored(id="gone"), scored(id="g", file="y", dataset="y")]
    )
    ran = command("view", finished, "--static", tmp_path / "site", "--predictions", path, "--scores", scores, "-q")
    assert ran.code == 0, ran.err
    notes = [
        "model-a: predictions for a file that the release does not have: 1; the first: model-a.jsonl, line 2",
        "model-a: predictions for an id that the file does not have: 2; the first: model-a.jsonl, line 3 (nobody)",
        "model-a: predictions for a placement that the example does not have: 1; the first: model-a.jsonl, line 4",
        f"m: predictions for an id that the file does not have: 1; the first: a score of {FILE}, gone",
        "m: predictions for a file that the release does not have: 1; the first: a score of y, g",
    ]
    page = (tmp_path / "site/index.html").read_text("utf-8")
    for note in notes:
        assert f"note: {note}" in ran.err
        assert note in page


def test_lines_that_cannot_be_read_are_said_with_the_first_of_them(finished: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [{"file": FILE, "id": "mmlongdoc_0", "prediction": "hard"}, {"id": "x"}])
    ran = command("view", finished, "--static", tmp_path / "site", "--predictions", path, "-q")
    assert "note: predictions: predictions without a field they need: 1; the first: a.jsonl, line 2: file" in ran.err


@pytest.mark.parametrize("option", ["--predictions", "--scores"])
def test_a_file_of_which_nothing_fits_is_refused(finished: Path, tmp_path: Path, option: str) -> None:
    line: Mapping[str, object] = (
        scored(id="nobody") if option == "--scores" else {"file": FILE, "id": "nobody", "prediction": "hard"}
    )
    ran = command("view", finished, "--static", tmp_path / "s", option, written(tmp_path / "m.jsonl", [line]))
    assert ran.code == 2
    assert "m: predictions for an id that the file does not have: 1; the first:" in ran.err
    assert "Nothing of m fits; give what was made for " in ran.err


def test_scores_that_were_kept_are_those_of_these_files_and_this_code(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = Path(shutil.copytree(finished, tmp_path / "release"))
    path = written(tmp_path / "m.jsonl", [{"file": FILE, "id": "mmlongdoc_0", "prediction": "hard"}])

    def key() -> str:
        return answers._score_key(open_viewed(release), "m", path)

    first = key()
    assert key() == first
    assert answers._score_key(open_viewed(release), "m (2)", path) != first
    os.utime(release / "mmlb_data" / FILE, ns=(1, 1))
    changed = key()
    assert changed != first
    monkeypatch.setattr(sources, "package_sha256", lambda name: f"other code of {name}")
    assert key() != changed


def test_an_index_that_other_code_made_is_not_used(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    viewed = open_viewed(finished)
    first = index._key(viewed, viewed.files[0])
    monkeypatch.setattr(sources, "package_sha256", lambda name: f"other code of {name}" if name == "builders" else "")
    other = open_viewed(finished)
    assert index._key(other, other.files[0]) != first


def test_predictions_with_one_name_have_scores_and_curves_of_their_own(finished: Path, tmp_path: Path) -> None:
    paths = []
    for folder, said in (("a", "hard"), ("b", "no")):
        (tmp_path / folder).mkdir()
        line = {"file": FILE, "id": "mmlongdoc_0", "prediction": said}
        paths.append(written(tmp_path / folder / "m.jsonl", [line]))
    found = site_of(finished, predictions=paths).answers
    assert found.models == ("m", "m (2)")
    file = next(each for each in found.viewed.files if each.name == FILE)
    row = next(each for each in site_of(finished).index.file(file.number).rows if each.id == "mmlongdoc_0")
    assert [
        (each.model, each.text, [one.score for one in each.scores if one.is_own]) for each in found.of(file, row)
    ] == [("m", "hard", [1.0]), ("m (2)", "no", [0.0])]
    curves = read_curves(found.score_paths, compute=curves_of)
    assert [model for model, _ in curves.models] == ["m", "m (2)"]


def test_scores_that_may_belong_to_two_predictions_are_refused(finished: Path, tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        line = {"file": FILE, "id": "mmlongdoc_0", "prediction": folder}
        paths.append(written(tmp_path / folder / "m.jsonl", [line]))
    scores = written(tmp_path / "m.default.jsonl", [scored(id="mmlongdoc_0")])
    with pytest.raises(ScoringError, match=r"scores of m, and 2 of the predictions have this name .*rename one"):
        site_of(finished, predictions=paths, scores=[scores])


def test_scores_belong_to_predictions_with_just_their_name_before_others(tmp_path: Path) -> None:
    (tmp_path / "m.v2").mkdir()
    sources = {"m": tmp_path / "m.jsonl", "m.v2": tmp_path / "m.v2"}
    assert answers._shown_names({"m", "m.v2", "other"}, sources) == {"m": "m", "m.v2": "m.v2"}
    assert answers._shown_names({"m"}, {"m.v2": tmp_path / "m.v2"}) == {"m": "m.v2"}

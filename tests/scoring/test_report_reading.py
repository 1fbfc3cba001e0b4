"""Scores that cannot be reported are refused with the problem, its place and the next step."""

from pathlib import Path
from typing import Any

import pytest
from score_lines import Line, line, write

from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.report import report


@pytest.mark.parametrize("lines", [[], None])
def test_a_folder_without_scores(tmp_path: Path, lines: list[Line] | None) -> None:
    folder = tmp_path if lines is None else write(tmp_path, lines)
    with pytest.raises(ReleaseError, match="`mmlongbench score` writes them"):
        report(folder)


def test_a_single_file_is_read_too(tmp_path: Path) -> None:
    assert report(write(tmp_path, [line(1, 1.0)]) / "m.default.jsonl").lines == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"score": 1.5},
            r"m\.default\.jsonl: m, em, docs_K8.jsonl, id '1': status 'scored' with score 1.5.*from 0 to 1",
        ),
        ({"score": float("nan")}, "with score nan"),
        ({"score": None}, "with score None"),
        ({"status": "absent", "score": 0.5}, "status 'absent' with score 0.5.*expected a score 0;"),
        ({"status": "failed"}, "status 'failed' with score 1.0.*expected a score null"),
        ({"depth": float("inf")}, "at depth inf"),
        ({"status": "unknown"}, "m.default.jsonl, line 1: status"),
        ({"colour": "red"}, "m.default.jsonl, line 1: colour: Extra inputs"),
        ({"id": 7}, "m.default.jsonl, line 1: id"),
    ],
)
def test_a_line_that_is_none(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        report(write(tmp_path, [line(1, 1.0) | fields]))


def test_a_line_that_is_there_twice(tmp_path: Path) -> None:
    write(tmp_path, [line(1, 1.0, depth=0.2), line(2, 1.0, depth=0.2)])
    write(tmp_path, [line(1, 0.0, depth=0.2)], "m.again.jsonl")
    twice = "m, em, docs_K8.jsonl: id '1' at depth 0.2 is scored twice, in m.again.jsonl and m.default.jsonl"
    with pytest.raises(ReleaseError, match=twice):
        report(tmp_path)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"category": "else"}, "docs_K8.jsonl is of .*category 'else'.*elsewhere of .*category 'Docs'"),
        ({"length": 4096}, "docs_K8.jsonl is of .*length 4096"),
        ({"file": "docs2_K8.jsonl"}, "dataset 'docs' has two files of 8,192 tokens, docs2_K8.jsonl and docs_K8.jsonl"),
        ({"model": "n"}, r"em, docs_K8.jsonl: models were asked different examples \(m 1, n 1\) and share none"),
        ({"model": "n", "id": "1", "permutation": 2}, "and share none"),
    ],
)
def test_scores_of_two_releases_in_one_folder(tmp_path: Path, other: dict[str, Any], message: str) -> None:
    with pytest.raises(ReleaseError, match=f"{message}.*mixed"):
        report(write(tmp_path, [line(1, 1.0), line(2, 1.0) | other]))


def test_models_and_metrics_may_lack_whole_files(tmp_path: Path) -> None:
    lines = [line(1, 1.0), line(1, 1.0, k=16), line(1, 1.0, model="n"), line(1, 1.0, metric="other")]
    assert report(write(tmp_path, lines)).lines == 4


def test_models_asked_different_examples_are_compared_on_those_they_share(tmp_path: Path) -> None:
    kept = [line(n, n / 10, model=model, depth=0.2, details={"x": n}) for n in (2, 3) for model in ("m", "n")]
    more = [line(n, 1.0, facets={"kind": ["a"]}, depth=0.2, details={"x": 9, "y": 1}) for n in (1, 4)]
    more += [line(2, 1.0, model="n", depth=0.4), line(5, None, model="n", depth=0.2, failure="down")]
    alone = line(1, 1.0, "other")
    found, wanted = (report(write(tmp_path / f"{len(some)}", [*some, alone])) for some in ([*more, *kept], kept))
    assert (
        found.notes[0]
        == "docs_K8.jsonl, em: models were asked different examples (m 4, n 4); here are the 2 they share"
    )
    assert found.notes[1:] == wanted.notes
    assert {**found.summary(), "notes": []} == {**wanted.summary(), "notes": []}


def test_odd_names_stay_apart(tmp_path: Path) -> None:
    names = ["m", "m\0", "m ", "M", "m\n", "m\ud800"]
    found = report(write(tmp_path, [line(1, at / 10, model=name) for at, name in enumerate(names)]))
    assert set(found.models) == set(names)
    assert len(found.scores.cells) == 6

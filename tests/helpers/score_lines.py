"""Score lines for tests, with defaults for the fields that a test does not set, and what commands make of them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tiny import Ran, command

Line = dict[str, Any]
DEFAULTS: Line = {
    **dict.fromkeys(("follows", "reasoning", "skipped", "failure", "cluster", "digest", "lock", "averaged_metric"), ""),
    **{"choices": [], "details": {}, "facets": {}, "sample": 0, "answer": "", "is_own": False, "is_stale": False},
    **{"depth": None, "permutation": None, "category": "", "counted_with": "", "profile": "unknown"},
}
"""The fields that a scores file may leave out."""


def line(id: object, score: float | None, dataset: str = "docs", k: int = 8, **fields: Any) -> Line:
    """Return the line of a scored example; `fields` replaces other fields."""
    plain = {
        "model": "m",
        "metric": "em",
        "file": f"{dataset}_K{k}.jsonl",
        "dataset": dataset,
        "category": "Docs",
        "length": k * 1024,
        "id": str(id),
        "status": "failed" if score is None else "scored",
        "score": score,
    }
    return plain | fields


def absent(id: object, **fields: Any) -> Line:
    """One example without a prediction."""
    return line(id, 0.0, status="absent", **fields)


def skipped(id: object, dataset: str = "docs", k: int = 8, **fields: Any) -> Line:
    """One example that the model cannot hold."""
    return line(id, None, dataset, k, status="skipped", skipped="context-length", **fields)


def write(folder: Path, lines: Iterable[Mapping[str, Any]], name: str = "m.default.jsonl") -> Path:
    """A folder with these lines in one file."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return folder


def scored(folder: Path) -> list[SimpleNamespace]:
    """The lines of a scores file or of a folder of them, with all fields; none if there is no such folder."""
    files = [folder] if folder.is_file() else sorted(folder.glob("*.jsonl"))
    read = [json.loads(text) for file in files for text in file.read_text("utf-8").splitlines()]
    return [SimpleNamespace(**DEFAULTS | each) for each in read]


def told(folder: Path, *options: object) -> Line:
    """What `report --json` prints about a folder of scores."""
    ran = command("report", folder, "--json", *options)
    assert ran.code == 0, ran.err
    found: Line = json.loads(ran.out)
    return found


def reported(folder: Path, lines: Iterable[Mapping[str, Any]], *options: object) -> Line:
    """What `report --json` prints about these lines."""
    return told(write(folder, lines), *options)


def printed(folder: Path, *options: object) -> str:
    """What `report` prints for people."""
    ran = command("report", folder, *options)
    assert ran.code == 0, ran.err
    return ran.out


def table(folder: Path, title: str, *options: object) -> list[list[str]]:
    """The words of each line of the table whose title begins so, as `report` prints it for people."""
    text = printed(folder, *options)
    assert f"\n{title}" in text, text
    found = text[text.index(f"\n{title}") + 1 :].partition("\n\n")[0]
    return [row.split() for row in found.splitlines()]


def refused(folder: Path, *options: object) -> str:
    """The words with which `report` refuses a folder."""
    ran = command("report", folder, *options)
    assert (ran.code, ran.out) == (2, ""), ran.out
    return " ".join(ran.err.split())


def page(folder: Path) -> str:
    """The page that `report --html` writes about a folder of scores."""
    path = folder.parent / f"{folder.name}.html"
    ran = command("report", folder, "--html", path, "-q")
    assert (ran.code, ran.out) == (0, ""), ran.err
    return path.read_text("utf-8")


def cell(grid: Line, row: str, column: str, model: str = "m", of: str | None = None) -> Line | None:
    """The number of a row by its name, and by what it belongs to where a name is there twice."""
    keys = [each for each in grid["cells"] if (each["row"], each["column"], each["model"]) == (row, column, model)]
    found = [each for each in keys if of in (None, each.get("of"), each["metric"], each["profile"])]
    assert len(found) <= 1, found
    return found[0] if found else None


def known(grid: Line, row: str, column: str, model: str = "m", of: str | None = None) -> Line:
    """The number of a row, which is there."""
    found = cell(grid, row, column, model, of)
    assert found is not None, (row, column, model)
    return found


def mean(grid: Line, row: str, column: str, model: str = "m", of: str | None = None) -> float:
    """Its mean."""
    found: float | None = known(grid, row, column, model, of)["mean"]
    assert found is not None
    return found


def is_inapplicable(found: Line | None) -> bool:
    """Whether there is no mean because examples were skipped."""
    return bool(found and found["mean"] is None and found["skipped"])


def counts(found: Line) -> tuple[int, int, int, int]:
    """(examples, absent, failed, skipped)."""
    return found["examples"], found["absent"], found["failed"], found["skipped"]


def score(release: Path, lines: Iterable[Mapping[str, Any]], folder: Path, *options: object) -> Ran:
    """Run `score` on these lines of predictions of the model `m`; the scores lie in `scores` of the folder."""
    predictions = write(folder, lines, "m.jsonl") / "m.jsonl"
    return command("score", release, predictions, "--out", folder / "scores", *options)


def cells(ran: Ran) -> dict[tuple[str, str, str], Line]:
    """What `score --json` printed, by metric, dataset and length."""
    return {
        (metric, dataset, length): found
        for metric, datasets in json.loads(ran.out)["scores"].items()
        for dataset, lengths in datasets.items()
        for length, found in lengths.items()
    }


def means(ran: Ran) -> dict[tuple[str, str, str], float | None]:
    """The scores that `score --json` printed."""
    return {key: found["score"] for key, found in cells(ran).items()}


def problems(ran: Ran) -> dict[str, int]:
    """How many problems of each kind `score --json` printed."""
    return {reason: found["count"] for reason, found in json.loads(ran.out)["problems"].items()}


def first(ran: Ran, reason: str) -> list[str]:
    """The first places of a problem."""
    return list(json.loads(ran.out)["problems"][reason]["first"])

"""Score lines for tests, with defaults for the fields that a test does not set."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mmlongbench.scoring.report import Report, report
from mmlongbench.scoring.report.estimates import Estimate
from mmlongbench.scoring.report.grids import Grid
from mmlongbench.web.report_page import report_page

Line = dict[str, Any]


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
    """A folder with these lines in one scores file."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return folder


def reported(folder: Path, lines: Iterable[Mapping[str, Any]], *preferred: str) -> Report:
    """The report of these lines."""
    return report(write(folder, lines), preferred)


def cell(grid: Grid, row: str, column: str, model: str = "m", of: str | None = None) -> Estimate | None:
    """The number of a row by its name, and by what it belongs to where a name is there twice."""
    found = [at for at in grid.rows if at.name == row and of in (None, at.of, at.metric)]
    assert len(found) == 1, grid.rows
    return grid.cells.get((model, found[0], column))


def mean(grid: Grid, row: str, column: str, model: str = "m", of: str | None = None) -> float:
    """Its mean."""
    found = cell(grid, row, column, model, of)
    assert found is not None
    assert found.mean is not None
    return found.mean


def page(found: Report, title: str = "Report") -> str:
    """The page of a report."""
    return "".join(report_page(title, found))

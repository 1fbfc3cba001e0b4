"""A small world that the package draws itself: twelve reports, and questions whose answers are on known pages.

Questions and pages are made from the same declared facts (`reports.yaml`), so they always agree: a question refers to
cells of facts, and the answer, the answer pages and the kinds of evidence are computed from these cells. Each name and
number of a fact belongs to one report only. Every call writes the same bytes.
"""

import json
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from mmlongbench.task import Draws
from tests.drawing.docvqa.pages import draw_report
from tests.drawing.docvqa.prose import Fact, Report

How = Literal["value", "sum", "difference", "larger", "list", "none"]
SOURCES = {
    "text": "Pure-text (Plain-text)",
    "list": "Pure-text (Plain-text)",
    "table": "Table",
    "bars": "Chart",
    "line": "Chart",
    "flow": "Figure",
    "box": "Generalized-text (Layout)",
}


class Question(BaseModel):
    """A question, the cells of facts that it is about, and the rule that makes the answer from their values."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    ask: str
    """The text of the question; `{a}` and `{b}` stand for the names of the rows of the first two cells."""
    how: How
    cells: tuple[tuple[str, ...], ...] = ()
    """The paths of the cells: [fact] means all rows of the fact, [fact, row] one row, and [fact, row, column] one
    value. Without a column, the value is in the last column."""


class QuestionedReport(Report):
    """A report as it is declared, with its questions."""

    questions: tuple[Question, ...]


class Cell(NamedTuple):
    """A value of a fact, and the name of its row."""

    fact: Fact
    name: str
    value: str


def read_reports() -> tuple[QuestionedReport, ...]:
    """Return the declared reports; every scalar is read as text, so that 25.10 stays 25.10."""
    text = files("tests.drawing.docvqa").joinpath("reports.yaml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[QuestionedReport, ...]).validate_python(yaml.load(text, Loader=yaml.BaseLoader))


def find_cells(report: Report, path: tuple[str, ...]) -> list[Cell]:
    """Return the cells that a path of `Question.cells` refers to."""
    fact = report.facts[path[0]]
    rows = [row for row in fact.rows if len(path) < 2 or row[0] == path[1]]
    column = fact.columns.index(path[2]) if len(path) > 2 else -1
    return [Cell(fact, row[0], row[column]) for row in rows]


def answer(how: How, cells: list[Cell]) -> str:
    """Return the answer from the cells, in MMLongBench-Doc's form."""
    if how == "none":
        return "Not answerable"
    if how == "list":
        return str([cell.value for cell in cells])
    if how == "value":
        return cells[0].value
    first, second = Decimal(cells[0].value), Decimal(cells[1].value)
    if how == "larger":
        return cells[0].name if first > second else cells[1].name
    return str(first + second if how == "sum" else abs(first - second))


def answer_format(how: How, text: str) -> str:
    """Return the answer format in MMLongBench-Doc's words.

    >>> answer_format("sum", "12.50"), answer_format("value", "Tern Rock")
    ('Float', 'Str')
    """
    if how in ("none", "list"):
        return how.title()
    number = text.replace(".", "", 1).isdigit()
    return "Str" if not number else "Float" if "." in text else "Int"


def sample_row(report: Report, question: Question) -> dict[str, str]:
    """Return the question as a raw row of MMLongBench-Doc: seven strings, with pages counted from 1."""
    cells = [cell for path in question.cells for cell in find_cells(report, path)]
    text = answer(question.how, cells)
    return {
        "doc_id": f"{report.name}.pdf",
        "doc_type": report.kind,
        "question": question.ask.format(**dict(zip("ab", (cell.name for cell in cells), strict=False))),
        "answer": text,
        "evidence_pages": str(sorted({cell.fact.page for cell in cells})),
        "evidence_sources": str(list(dict.fromkeys(SOURCES[cell.fact.form] for cell in cells))),
        "answer_format": answer_format(question.how, text),
    }


def draw_reports(folder: Path) -> dict[str, Path]:
    """Draw twelve reports with questions about them, in MMLongBench-Doc's form: `samples.json`, `documents/*.pdf`."""
    samples, documents = folder / "samples.json", folder / "documents"
    documents.mkdir(parents=True, exist_ok=True)
    reports = read_reports()
    for report in reports:
        (documents / f"{report.name}.pdf").write_bytes(draw_report(report, Draws(("docvqa sample", report.name))))
    rows = [sample_row(report, question) for report in reports for question in report.questions]
    samples.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    return {"samples": samples, "documents": documents}

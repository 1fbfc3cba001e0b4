"""The drawn reports in the form of M-LongDoc: open questions without answers, PDFs, one parsed document, and marks."""

import base64
import csv
import io
import json
from pathlib import Path, PurePath
from typing import NamedTuple

import pymupdf

from builders.docvqa.public import DPI
from mmlongbench.task import Draws
from tests.drawing.docvqa.pages import draw_report
from tests.drawing.docvqa.prose import Fact
from tests.drawing.docvqa.reports import QuestionedReport, read_reports

_DOMAINS = {"Research report / Introduction": "academic", "Administration/Industry file": "finance"}
"""The domains of the reports by their kind; all others are `product`."""
_ASKS = {
    "table": ("tables", 'How do the rows of the table "{0}" compare, and which one differs most from the others?'),
    "bars": ("figures or diagrams or charts", 'What does the chart "{0}" show, and which value stands out?'),
    "line": ("figures or diagrams or charts", 'How does the line in the chart "{0}" develop, and where does it turn?'),
    "flow": ("figures or diagrams or charts", 'What are the steps of the diagram "{0}", and in which order?'),
    "list": ("texts", 'What do the points of the list "{0}" have in common?'),
    "text": ("texts", 'What does the report tell in the sentence that begins with "{0}", and what does it rest on?'),
    "box": ("texts", 'What does the box that says "{0}" tell the reader to do?'),
}
"""The category of a question about a fact, and the question, by the form of the fact."""
_PARSED = "orchard-trials-2021"
"""The report that is given as a parsed document instead of a PDF."""
_LEFT_OUT = 7
"""Of so many questions, people did not keep the last one."""


class _Asked(NamedTuple):
    domain: str
    row: dict[str, object]


def draw_m_longdoc(folder: Path) -> dict[str, Path]:
    """Draw `questions/test_<domain>.json`, `documents/*.pdf` and one `.json`, `annotations/marks.csv`, and
    `metadata.csv`.
    """
    paths = {name: folder / name for name in ("questions", "documents", "annotations")}
    for path in paths.values():
        path.mkdir(parents=True)
    reports = [report for report in read_reports() if report.paper in ("letter", "a4")]
    for report in reports:
        data = draw_report(report, Draws(("docvqa sample", report.name)))
        if report.name == _PARSED:
            (paths["documents"] / f"{report.name}.json").write_text(_parsed(data, report.name), "utf-8", newline="\n")
        else:
            (paths["documents"] / f"{report.name}.pdf").write_bytes(data)
    asked = [_asked(report, fact) for report in reports for fact in report.facts.values()]
    for domain in sorted({each.domain for each in asked}):
        rows = [json.dumps(each.row, ensure_ascii=False) for each in asked if each.domain == domain]
        path = paths["questions"] / f"test_{domain}.json"
        path.write_text("".join(f"{row}\n" for row in rows), "utf-8", newline="\n")
    marks = [(str(each.row["question"]), str(int(n % _LEFT_OUT != 0))) for n, each in enumerate(asked, 1)]
    _write_table(paths["annotations"] / "marks.csv", [("question", "valid"), *marks])
    about = [(f"https://documents.example.org/{report.name}.pdf", report.kind) for report in reports]
    _write_table(folder / "metadata.csv", [("url", "category"), *about])
    return {**paths, "metadata": folder / "metadata.csv"}


def _asked(report: QuestionedReport, fact: Fact) -> _Asked:
    """Return the question about a fact, as a raw row."""
    category, ask = _ASKS[fact.form]
    row: dict[str, object] = {
        "question": f"{ask.format(fact.text.partition('{')[0].strip())} Name {report.title} in your answer.",
        "answer": "",
        "category": category,
        "evidence_pages": [fact.page],
        "raw_output": "",
        "pred": "",
        "source": str(PurePath("data", "test", f"{report.name}.json")),
        "annotator": "drawn",
        "generator": "",
        "retrieved_pages": [],
        "judgements": [],
    }
    return _Asked(_DOMAINS.get(report.kind, "product"), row)


def _parsed(pdf: bytes, name: str) -> str:
    """Return a document as JSON Lines, one page a line, with its text and its picture."""
    lines = []
    with pymupdf.open(stream=pdf, filetype="pdf") as document:
        for page in document:
            picture = page.get_pixmap(dpi=DPI, alpha=False).tobytes("png")
            line = {
                "number": page.number + 1,
                "objects": [],
                "text": page.get_text(),
                "image_string": base64.b64encode(picture).decode(),
                "source": f"data/test/{name}.pdf",
            }
            lines.append(json.dumps(line, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def _write_table(path: Path, rows: list[tuple[str, str]]) -> None:
    table = io.StringIO(newline="")
    csv.writer(table, lineterminator="\n").writerows(rows)
    path.write_text(table.getvalue(), encoding="utf-8", newline="\n")

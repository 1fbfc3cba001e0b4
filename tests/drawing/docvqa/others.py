"""The drawn reports in the raw formats of other readers: LongDocURL's rows, SlideVQA's decks, a table of your own."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pymupdf

from mmlongbench.task import Draws
from mmlongbench.task.metrics import literal_list
from tests.drawing.docvqa.pages import draw_report
from tests.drawing.docvqa.reports import QuestionedReport, answer, find_cells, read_reports, sample_row

FORMATS = {"Int": "Integer", "Str": "String"}
WIDTH = 1024
"""The width of a slide in pixels."""
DECKS = ("harbour-dredging-2019", "lighthouse-walks", "solar-workshop")
"""The reports that are drawn as slides."""


def draw_longdocurl(folder: Path) -> dict[str, Path]:
    """Draw reports with questions about windows of them: `LongDocURL.jsonl`, `documents/<doc_no>.pdf`."""
    lines = []
    for number, report in enumerate(_reports("letter", "a4")[:4]):
        doc_no = str(4000123 + 1111 * number)
        _write_pdf(folder / "documents" / f"{doc_no}.pdf", report)
        for place, question in enumerate(report.questions):
            row = sample_row(report, question)
            pages = sorted({cell.fact.page for path in question.cells for cell in find_cells(report, path)})
            first, last = (min(pages) - 2, max(pages) + 3) if pages else (1, report.pages)
            window = [max(1, first), min(report.pages, last)]
            lines.append(
                {
                    "question_id": f"drawn_{doc_no}_{window[0]}_{window[1]}_{place}",
                    "doc_no": doc_no,
                    "total_pages": report.pages,
                    "start_end_idx": window,
                    "question_type": "extract",
                    "question": row["question"],
                    "answer": _native(row),
                    "evidence_pages": pages,
                    "evidence_sources": literal_list(row["evidence_sources"]),
                    "answer_format": FORMATS.get(row["answer_format"], row["answer_format"]),
                    "task_tag": "Understanding",
                }
            )
    _write_lines(folder / "LongDocURL.jsonl", lines)
    return {"questions": folder / "LongDocURL.jsonl", "documents": folder / "documents"}


def draw_slidevqa(folder: Path) -> dict[str, Path]:
    """Draw decks with questions about them: `test.jsonl`, `decks/<deck>/<slug>-<page>-1024.jpg`."""
    lines = []
    for report in (each.model_copy(update={"paper": "slide"}) for each in read_reports() if each.name in DECKS):
        deck = folder / "decks" / report.name.replace("-", "_")
        deck.mkdir(parents=True, exist_ok=True)
        names = [f"{report.name}-{number}-1024.jpg" for number in range(1, report.pages + 1)]
        with pymupdf.open(stream=_pdf(report), filetype="pdf") as pdf:
            for number, name in enumerate(names):
                page = pdf[number]
                zoom = WIDTH / page.rect.width
                pixels = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), alpha=False)
                (deck / name).write_bytes(pixels.tobytes("jpeg", jpg_quality=85))
        for place, question in enumerate(report.questions):
            row = sample_row(report, question)
            if question.how in ("none", "list"):
                continue
            lines.append(
                {
                    "deck_name": deck.name,
                    "deck_url": f"https://slides.example.org/{deck.name}",
                    "image_urls": [f"https://image.example.org/{name}" for name in names],
                    "qa_id": place,
                    "question": row["question"],
                    "answer": row["answer"],
                    "arithmetic_expression": "None",
                    "evidence_pages": literal_list(row["evidence_pages"]),
                    "reasoning_type": "Single-Hop",
                }
            )
    _write_lines(folder / "test.jsonl", lines)
    return {"questions": folder / "test.jsonl", "decks": folder / "decks"}


def draw_own_documents(folder: Path) -> dict[str, Path]:
    """Draw reports with a table of questions about them: `questions.csv`, `documents/*.pdf`."""
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["doc", "question", "answer", "pages"])
    for report in _reports("letter", "a4")[-3:]:
        _write_pdf(folder / "documents" / f"{report.name}.pdf", report)
        for question in report.questions:
            row = sample_row(report, question)
            cells = [cell for path in question.cells for cell in find_cells(report, path)]
            text = answer(question.how, cells)
            pages = "; ".join(str(page) for page in sorted({cell.fact.page for cell in cells}))
            writer.writerow([row["doc_id"], row["question"], text, pages])
    path = folder / "questions.csv"
    path.write_text(table.getvalue(), encoding="utf-8", newline="\n")
    return {"questions": path, "documents": folder / "documents"}


def _reports(*papers: str) -> list[QuestionedReport]:
    return [report for report in read_reports() if report.paper in papers]


def _pdf(report: QuestionedReport) -> bytes:
    return draw_report(report, Draws(("docvqa sample", report.name)))


def _write_pdf(path: Path, report: QuestionedReport) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_pdf(report))


def _native(row: dict[str, str]) -> object:
    """Return an answer in LongDocURL's form: a number, a text or a list of JSON."""
    if row["answer_format"] == "Int":
        return int(row["answer"])
    if row["answer_format"] == "Float":
        return float(row["answer"])
    return literal_list(row["answer"]) if row["answer_format"] == "List" else row["answer"]


def _write_lines(path: Path, lines: Sequence[dict[str, object]]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")

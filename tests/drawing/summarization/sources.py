"""The drawn reports and cases in the raw formats of the two readers."""

import json
from pathlib import Path

from mmlongbench.task import Draws
from tests.drawing.docvqa.prose import write_paragraphs
from tests.drawing.summarization.letters import Look
from tests.drawing.summarization.reports import SUBJECTS, Layout, draw_case_document, draw_report

DRAWS = Draws(("drawn reports",))
REPORTS = {
    "gao-18-107": (15, Layout(Look(columns=2))),
    "gao-18-21": (14, Layout(Look(manner="capitals", hyphens=True), (2,))),
    "gao-19-8": (14, Layout(Look(manner="small capitals"), (1, 2))),
    "gao-20-355": (13, Layout(Look(columns=2, manner="broken"), (0,))),
}
"""(number of pages, layout) of each report."""
CASES = {"12041": (8, 4), "13577": (3, 5, 4, 1), "16008": (13,)}
"""The number of pages of each document, by case."""


def draw_reports(folder: Path) -> dict[str, Path]:
    """Draw reports with a summary page like GAO's: `gov-report/gao/<id>.json`, `documents/<id>.pdf`.

    One report is from CRS, whose summaries have another form.
    """
    reports, documents = folder / "gov-report", folder / "documents"
    for path in (reports / "gao", reports / "crs", documents):
        path.mkdir(parents=True, exist_ok=True)
    for number, (name, (pages, layout)) in enumerate(REPORTS.items()):
        data, summary = draw_report(name, SUBJECTS[number], pages, layout, DRAWS.at(name))
        (documents / f"{name}.pdf").write_bytes(data)
        highlight = [{**section.model_dump(mode="json"), "subsections": []} for section in summary]
        url = f"https://www.example.org/products/{name}"
        raw = {
            "id": name.upper(),  # as in the archive; PDFs are named in lower case
            "title": f"Report on {SUBJECTS[number][0]}",
            "url": url,
            "highlight": highlight,
            "report": [],
        }
        (reports / "gao" / f"{name}.json").write_text(json.dumps(raw, indent=1))
    crs = {"id": "CRS_R40001", "title": "Of another service", "summary": ["A text."], "reports": {}}
    (reports / "crs" / "CRS_R40001.json").write_text(json.dumps(crs))
    return {"reports": reports, "documents": documents}


def draw_cases(folder: Path) -> dict[str, Path]:
    """Draw court files with their summaries: `test.json` (lines of JSON), `documents/<case>/<document>.pdf`."""
    lines = []
    for number, (case, documents) in enumerate(CASES.items()):
        subject, draws = SUBJECTS[-1 - number], DRAWS.at(case)
        root = folder / "documents" / case
        root.mkdir(parents=True, exist_ok=True)
        ids = [str(31854 + 100 * number + place) for place in range(len(documents))]
        for id, pages in zip(ids, documents, strict=True):
            (root / f"{id}.pdf").write_bytes(draw_case_document(id, subject, pages, draws))
        prose = write_paragraphs(subject, None, draws.at("summary"))
        texts = [" ".join(next(prose)) for _ in range(3)]
        summaries = {"summary/long": " ".join(texts), "summary/short": texts[0], "summary/tiny": None}
        lines.append(json.dumps({"case_id": case, "case_documents": ids, **summaries}))
    (folder / "test.json").write_text("\n".join(lines) + "\n")
    return {"cases": folder / "test.json", "documents": folder / "documents"}

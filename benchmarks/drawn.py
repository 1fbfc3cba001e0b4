"""Datasets for builds of a minute: drawn reports with questions, and questions about pictures over drawn passages."""

import json
from pathlib import Path
from typing import Any

from vrag import SHORTEST, STEP, write_sources
from zipf import WORDS, rows

from builders.samples.docvqa.pages import draw_report
from builders.samples.docvqa.reports import read_reports, sample_row
from mmlongbench.corpus.build import make_corpus
from mmlongbench.task import Draws

PASSAGES = 20_000


def draw_reports(root: Path, copies: int) -> dict[str, Any]:
    """The twelve reports of the sample, each drawn so many times with other words; a DocVQA dataset of them."""
    (root / "documents").mkdir(parents=True)
    asked = []
    for copy in range(copies):
        for report in read_reports():
            own = report.model_copy(update={"name": f"{report.name}-{copy}"})
            pdf = draw_report(own, Draws(("benchmark", copy, report.name)))
            (root / "documents" / f"{own.name}.pdf").write_bytes(pdf)
            asked += [sample_row(own, question) for question in report.questions]
    (root / "samples.json").write_text(json.dumps(asked), "utf-8")
    source = {"samples": root / "samples.json", "documents": root / "documents"}
    return {"name": "mmlongdoc", "builder": "docvqa", "reader": "mmlongbench_doc", "source": source}


def draw_visual_questions(root: Path, questions: int) -> dict[str, Any]:
    """Passages of words with Zipf frequencies, kept as a corpus, and questions about some of them; a VRAG dataset."""
    pieces = [piece[: SHORTEST + n * STEP % (WORDS - SHORTEST + 1)] for n, piece in enumerate(rows(0, PASSAGES))]
    write_sources(root, pieces, questions)
    make_corpus(str(root / "corpus.json"), root / "corpus")
    source = {"questions": root / "infoseek.jsonl", "entities": root / "entities.jsonl", "images": root / "images"}
    about = {"name": "infoseek", "builder": "vrag", "reader": "infoseek", "options": {"gold": "lead"}}
    return {**about, "source": source, "corpus": root / "corpus"}

"""What a test reviews: suspects of the tiny source, and a folder of questions."""

import json
from pathlib import Path
from typing import Any

from tiny import ROWS


def suspect_lines(folder: Path, *further: dict[str, Any]) -> Path:
    """A file of suspects: one with a correction, one without, one whose row is not in the release."""
    kinds = {1: {"evidence_pages": [3]}, 2: {}, 7: {}}
    common = {"dataset": "mmlongdoc", "kind": "answer-on-another-page", "evidence": "look at it"}
    lines = [
        {**common, "id": f"mmlongdoc_{row}", "correction": correction, "fields": {**ROWS[row], "weight": 1}}
        for row, correction in kinds.items()
    ]
    path = folder / "suspects.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (*lines, *further)), "utf-8")
    return path


def question_folder(folder: Path) -> Path:
    """A folder of questions about two documents of the tiny source."""
    common = {"document_sha256": "ab", "answer_format": "String", "pages": [2], "kind": "text", "synthetic": "model"}
    asked = (("birch", "What is the bark of the birch?", "white"), ("cedar", "How tall is it?", "=30 m"))
    lines = [
        {**common, "id": f"{number:016}", "document": document, "question": text, "answer": answer}
        for number, (document, text, answer) in enumerate(asked)
    ]
    out = folder / "questions"
    out.mkdir()
    (out / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return out

"""Reviews in a test: suspects of the tiny source and a folder of questions, and requests that decide."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from tiny import ROWS
from viewing import HOST, client, site_of

from mmlongbench.questions import table
from mmlongbench.questions.question import Question, question_id
from mmlongbench.web.viewer.reviewing.review import open_review
from mmlongbench.web.viewer.site import Site


def suspect_lines(folder: Path, *further: dict[str, Any]) -> Path:
    """A file of suspects: one with a correction, one without, one whose row is not in the release."""
    kinds = {1: {"evidence_pages": [3]}, 2: {}, 7: {}}
    lines = [
        {
            "dataset": "mmlongdoc",
            "id": f"mmlongdoc_{row}",
            "kind": "answer-on-another-page",
            "evidence": "look at it",
            "correction": correction,
            "fields": {**ROWS[row], "weight": 1},
        }
        for row, correction in kinds.items()
    ]
    path = folder / "suspects.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (*lines, *further)), "utf-8")
    return path


def question_folder(folder: Path) -> Path:
    """A folder of questions about two documents of the tiny source."""
    out = folder / "questions"
    asked = (("birch", "What is the bark of the birch?", "white", (2,)), ("cedar", "How tall is it?", "=30 m", (2,)))
    questions = [
        Question(
            id=question_id("ab", number),
            document=document,
            document_sha256="ab",
            question=text,
            answer=answer,
            answer_format="String",
            pages=pages,
            kind="text",
            synthetic="model",
        )
        for number, (document, text, answer, pages) in enumerate(asked)
    ]
    table.write_folder(out, folder / "docs", "model", questions, [])
    return out


def reviewing(
    release: Path, suspects: Path | None = None, questions: Path | None = None, write: Path | None = None
) -> Site:
    """A site with a review by Anna."""
    return replace(site_of(release), review=open_review(suspects, questions, write, "anna"))


class Deciding:
    """A client that decides as the page does."""

    def __init__(self, site: Site) -> None:
        assert site.review
        self.site, self.client = site, client(site)
        self.headers = {"origin": HOST, "x-review-token": site.review.token, "content-type": "application/json"}

    def send(self, number: int, act: str, **more: Any) -> Any:
        """Send a decision, and return the answer."""
        found = self.post(number, json.dumps({"act": act, **more}).encode(), **self.headers)
        return found

    def post(self, number: int, body: bytes, **headers: str) -> Any:
        """Send a body with headers of one's own."""
        return self.client.post(f"/data/review/{number}", content=body, headers=headers)


def deciding(site: Site) -> tuple[Deciding, TestClient]:
    """A client that decides, and one that reads."""
    made = Deciding(site)
    return made, made.client

"""Which documents of a folder are used, and which questions are checked again."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pymupdf
import pytest
from question_world import Doc

from mmlongbench.io.progress import Progress
from mmlongbench.questions.writing import funnel
from mmlongbench.questions.writing.context import Context, Rankings, passed, rejected, revised
from mmlongbench.questions.writing.documents import Library, read_library
from mmlongbench.questions.writing.funnel import Runner
from mmlongbench.questions.writing.lines import Candidate, Judged
from mmlongbench.questions.writing.settings import WritingSettings
from mmlongbench.questions.writing.stages import AGAIN, CHECKS, Check


def draw(path: bytes, text: str) -> None:
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 72), text)
        data = document.tobytes()
    with open(path, "wb") as file:  # noqa: PTH123  (a path of bytes)
        file.write(data)


def test_a_copy_and_a_name_that_is_not_utf_8_are_left_out_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    draw(os.fsencode(folder / "board.pdf"), "The keeper of Quarl Bay is Anna Tolm.")
    (folder / "copy of board.pdf").write_bytes((folder / "board.pdf").read_bytes())
    draw(os.fsencode(folder) + b"/r\xe9port.pdf", "Another document.")
    found = read_library(folder, None, tmp_path / "kept", 72, "", Progress(False))
    assert [*found.documents] == ["board"]
    assert {line.doc: line.reason for line in found.left_out} == {
        "copy of board": "same-bytes",
        "r\\xe9port": "name-not-unicode",
    }
    assert "board" in next(line.detail for line in found.left_out if line.reason == "same-bytes")
    assert all(line.model_dump_json() for line in found.left_out)


def question(slot: str, *pages: int) -> Candidate:
    fact = Doc("harbours", 4).cell(2, 0)
    return Candidate(
        slot=slot,
        doc="harbours",
        kind="cross",
        author="gpt-4o",
        question=fact.question,
        answer=fact.answers,
        answer_format="Integer",
        pages=pages,
        about=pages,
    )


def test_a_question_whose_evidence_is_revised_is_probed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two questions lose a page; one of them is then known without the document, which ends it."""
    asked: list[tuple[str, str, tuple[int, ...]]] = []

    def doing(name: str) -> Any:
        def one(candidate: Candidate, context: Context) -> Judged:
            asked.append((name, candidate.slot, candidate.pages))
            if name == "each-page" and candidate.slot != "c" and len(candidate.pages) == 2:
                return revised(candidate, "shortcut", "", pages=candidate.pages[:1])
            if name == "no-document" and candidate.slot == "a" and len(candidate.pages) == 1:
                return rejected(candidate.slot, "answerable-without-document", "")
            return passed(candidate)

        return one

    def quiet(check: Check) -> Check:
        return replace(check, one=doing(check.name), is_for="all")

    monkeypatch.setattr(funnel, "CHECKS", [quiet(check) for check in CHECKS])
    library = Library({}, (), tmp_path, 72)
    client: Any = SimpleNamespace(settings=SimpleNamespace(concurrency=1), stop=lambda: None)
    runner = Runner(library, WritingSettings(authors=("gpt-4o",)), client, tmp_path, Progress(False))
    runner.rankings = Rankings(library)
    found = runner.checks([question("a", 1, 2), question("b", 1, 2), question("c", 1, 2)], "drafts")
    assert [(each.slot, each.pages) for each in found] == [("b", (1,)), ("c", (1, 2))]
    assert [name for name, slot, pages in asked if slot == "b" and len(pages) == 1] == [
        *AGAIN,
        *("whole-document", "round-trip", "grades"),
    ]
    assert not [name for name, slot, _ in asked if slot == "a" and name in ("round-trip", "grades")]
    assert len([name for name, slot, _ in asked if slot == "c"]) == len(CHECKS)

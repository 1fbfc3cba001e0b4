"""The folder of questions: its files, and what the engine reads of them."""

import json
from pathlib import Path
from typing import Any

import pytest

import mmlongbench as mm
from builders.docvqa import DocVQA, OwnDocuments
from builders.docvqa.options import DocVQAOptions
from builders.docvqa.rows import DocumentQuestion
from builders.docvqa.rows import format_of as format_of_builders
from builders.samples.docvqa.reports import draw_reports
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.errors import SourceError
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.questions.question import Grounding, Question, Reject, format_of, question_id
from mmlongbench.questions.table import MANIFEST, QUESTIONS, REJECTS, SUMMARY, TABLE, read_questions, write_folder

DOCUMENT = "harbour-dredging-2019"


def question(**changed: Any) -> Question:
    given = {"document": DOCUMENT, "question": "How many?", "answer": "3,927", "pages": (4,), **changed}
    given.setdefault("id", question_id("ab", str(given["question"])))
    given.setdefault("answer_format", format_of(given["answer"]))
    return Question.model_validate(
        {"document_sha256": "ab", "kind": "table-value", "synthetic": "layer", "sources": ("Table",), **given}
    )


QUESTIONS_OF_TEST = (
    question(grounding=(Grounding(page=4, text="3,927", box=(1, 2, 3, 4)),)),
    question(question="Which?", answer=("Port Ellery", "Stannow Quay"), pages=(4, 9), kind="cross-page"),
    question(question="Where?", answer="Not answerable", pages=(), sources=(), kind="unanswerable"),
)
REJECT = Reject(id="x", document=DOCUMENT, stage="rendered", reason="no-ink", found="0", expected="ink", pages=(3,))


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    draw_reports(folder)
    return folder / "documents"


def test_own_documents_reads_every_line_as_it_was_meant(tmp_path: Path) -> None:
    write_folder(tmp_path, tmp_path, "layer", QUESTIONS_OF_TEST, [])
    rows = list(read_rows(OwnDocuments(), {"questions": tmp_path / TABLE, "documents": tmp_path}))
    assert len(rows) == 3
    for row, meant in zip(rows, sorted(QUESTIONS_OF_TEST, key=lambda each: each.pages), strict=True):
        assert isinstance(row, DocumentQuestion)
        answer = (meant.answer,) if isinstance(meant.answer, str) else meant.answer
        assert (row.id, row.answer, row.answer_format) == (meant.id, answer, meant.answer_format)
        assert row.pages == tuple(page - 1 for page in meant.pages)
        assert row.sources == meant.sources
        assert not row.repairs
        assert row.columns == {"kind": meant.kind, "synthetic": "layer"}


def test_build_takes_the_manifest_as_it_is(documents: Path, tmp_path: Path) -> None:
    out = tmp_path / "questions"
    write_folder(out, documents, "layer", QUESTIONS_OF_TEST, [])
    manifest = load_manifest(out / MANIFEST, {"questions_layer.lengths": ["8K"]})
    built = mm.build(manifest, tmp_path / "release")
    assert built.lock.readable["questions_layer"].questions.kept == 3
    lines = (tmp_path / "release/mmlb_data/documentQA/questions_layer_K8.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["facets"]["synthetic"] for line in lines} == {"layer"}


def test_synthetic_questions_are_in_no_category_and_so_in_no_average() -> None:
    assert DocVQA("own", DocVQAOptions()).spec.category == "DocVQA"
    for made in ("layer", "model"):
        assert DocVQA("own", DocVQAOptions.model_validate({"synthetic": made})).spec.category == ""


def test_the_order_of_questions_changes_no_byte(tmp_path: Path) -> None:
    for name, questions in (("a", QUESTIONS_OF_TEST), ("b", QUESTIONS_OF_TEST[::-1])):
        write_folder(tmp_path / name, tmp_path, "layer", questions, [REJECT])
    for file in (TABLE, QUESTIONS, REJECTS, SUMMARY, MANIFEST):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    write_folder(tmp_path, tmp_path, "layer", QUESTIONS_OF_TEST, [])
    assert sorted(read_questions(tmp_path / QUESTIONS), key=lambda each: each.id) == sorted(
        QUESTIONS_OF_TEST, key=lambda each: each.id
    )


@pytest.mark.parametrize("line", ["{}", '{"id": 3}', "[", "[]"])
def test_a_line_that_is_no_question_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / QUESTIONS).write_text(line + "\n", "utf-8")
    with pytest.raises(SourceError, match=r"questions\.jsonl, line 1"):
        list(read_questions(tmp_path / QUESTIONS))


def test_the_summary_counts_by_stage_and_reason_and_shows_the_public_shares(tmp_path: Path) -> None:
    summary = write_folder(tmp_path, tmp_path, "layer", QUESTIONS_OF_TEST, [REJECT, REJECT])
    assert summary.rejects == {"rendered": {"no-ink": 2}}
    assert summary.by_document == {DOCUMENT: {"cross-page": 1, "table-value": 1, "unanswerable": 1}}
    pages = {share.value: (share.count, share.mmlongbench_doc) for share in summary.distributions["evidence_pages"]}
    assert pages == {"single-page": (1, 45.7), "cross-page": (1, 33.7), "unanswerable": (1, 20.6)}
    assert json.loads((tmp_path / SUMMARY).read_bytes()) == summary.model_dump(mode="json")


@pytest.mark.parametrize("answer", ["1,066", "12.5%", "$3", "$ 1,003.2", "-4", ".5", "(3)", "2019-04-01", "a", "1,06"])
def test_formats_are_those_of_the_reader(answer: str) -> None:
    assert format_of(answer) == format_of_builders(answer)

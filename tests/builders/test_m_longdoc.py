"""M-LongDoc: open questions that people kept, parsed documents, and a committee of judges as the metric."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from model_server import good, serving
from rows import cleaned_row
from tiny import command

import mmlongbench.task as mt
from builders.docvqa import DocVQA, DocVQAOptions, MLongDoc
from builders.docvqa.parsed_pages import PAGES, parsed_documents, write_parsed
from builders.docvqa.rows import DocumentQuestion
from builders.samples.docvqa import draw_m_longdoc

pytestmark = pytest.mark.slow
RAW: dict[str, Any] = {
    "question": "How do the two tables differ?",
    "answer": "",
    "category": "tables",
    "evidence_pages": [24],
    "raw_output": "",
    "pred": "",
    "source": "data/test/2499.00001.json",
    "annotator": "azure",
    "generator": "",
    "retrieved_pages": [],
    "judgements": [],
}
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAHPQ5QAAAAABJRU5ErkJggg==")
LONG = DocVQAOptions(answer_form="long")


@pytest.fixture(scope="module", name="drawn")
def _drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return draw_m_longdoc(tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="module", name="release")
def _release(drawn: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    source = ", ".join(f"{name}: {path}" for name, path in drawn.items())
    about = "lengths: [8K], pages: {dpi: 150}, options: {answer_form: long, facets: [subject]}"
    dataset = f"{{name: m_longdoc, builder: docvqa, reader: m_longdoc, source: {{{source}}}, {about}}}"
    (folder / "m.yaml").write_text(f"datasets: [{dataset}]\n", "utf-8")
    built = command("build", folder / "m.yaml", "--out", folder / "release", "--limit", 6)
    assert built.code == 0, built.err
    return folder / "release"


def records(release: Path) -> list[dict[str, Any]]:
    path = release / "mmlb_data/documentQA/m_longdoc_K8.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_row_is_an_open_question_about_one_page() -> None:
    found = cleaned_row(MLongDoc(), "m_longdoc_academic_0", RAW)
    assert isinstance(found, DocumentQuestion)
    assert (found.doc, found.pages, found.sources, found.answer_format) == ("2499.00001", (23,), ("Table",), "String")
    assert not found.has_reference
    assert found.columns["annotator"] == "azure"


@pytest.mark.parametrize("mark", [1, 1.0, True, "1", "TRUE", "1.0"])
def test_a_mark_counts_in_every_form_that_programs_write(mark: object) -> None:
    assert isinstance(cleaned_row(MLongDoc(), "id", {**RAW, "valid": mark}), DocumentQuestion)


def test_a_row_of_the_training_files_keeps_its_answer() -> None:
    found = cleaned_row(MLongDoc(), "id", {**RAW, "answer": "The first has <image> two rows more. "})
    assert isinstance(found, DocumentQuestion)
    assert found.has_reference
    assert found.answer == ("The first has < image > two rows more.",)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"question": " \n"}, "empty-question"),
        ({"question": None}, "missing-or-mistyped-field"),
        ({"answer": None}, "missing-or-mistyped-field"),
        ({"answer": ["a"]}, "missing-or-mistyped-field"),
        ({"answer": "\ud800"}, "invalid-unicode"),
        ({"category": "pictures"}, "unknown-category"),
        ({"category": 3}, "missing-or-mistyped-field"),
        ({"evidence_pages": []}, "no-answer-pages"),
        ({"evidence_pages": [0]}, "answer-page-out-of-range"),
        ({"evidence_pages": "all"}, "answer-pages-not-a-list"),
        ({"source": "data/test/"}, "unknown-source"),
        ({"source": "../../etc/passwd"}, "unknown-source"),
        ({"source": 7}, "missing-or-mistyped-field"),
        ({"valid": "0"}, "not-kept-by-people"),
        ({"valid": 0.0}, "not-kept-by-people"),
        ({"valid": None}, "not-kept-by-people"),
        ({"valid": "no mark"}, "not-marked"),
        ({"valid": "maybe"}, "unknown-mark"),
    ],
)
def test_a_row_that_cannot_be_asked_says_why_and_what_to_do(changed: dict[str, Any], reason: str) -> None:
    found = cleaned_row(MLongDoc(), "id", {**RAW, **changed})
    assert isinstance(found, mt.Fault)
    assert found.reason == reason
    assert found.todo
    assert found.is_expected == (reason == "not-kept-by-people")


def test_ids_name_the_file_and_the_row_and_other_files_are_named(drawn: Mapping[str, Path], tmp_path: Path) -> None:
    (tmp_path / "test_product.json").write_text(f"{json.dumps(RAW)}\nnot json\n{json.dumps(RAW)}\n", "utf-8")
    (tmp_path / "train.json").write_text("", "utf-8")
    sources = {"questions": tmp_path, "documents": drawn["documents"]}
    rows = list(MLongDoc().raw_rows(sources))
    assert [row.id for row in rows] == [f"m_longdoc_product_{n}" for n in range(3)]
    assert isinstance(rows[1], mt.RowFault)
    notes = MLongDoc().notes(sources, DocVQAOptions())
    assert "not read: train.json" in notes[0]
    assert "851 of 1,051" in notes[1]
    assert len(list(MLongDoc().raw_rows({"questions": tmp_path / "test_product.json"}))) == 3


def test_only_questions_with_the_mark_1_are_kept_from_sheets_with_other_columns(tmp_path: Path) -> None:
    questions = [f"Question {n}?" for n in range(4)]
    lines = "".join(f"{json.dumps({**RAW, 'question': each})}\n" for each in questions)
    (tmp_path / "test_finance.json").write_text(lines, "utf-8")
    (tmp_path / "annotation").mkdir()
    sheets: dict[str, dict[int, float]] = {"a": {0: 1, 1: 0}, "b": {2: 1.0}}
    for name, marks in sheets.items():
        book = openpyxl.Workbook()
        sheet = book.active
        assert sheet is not None
        sheet.append(["file", "comments", "question", "valid"])
        for number, mark in marks.items():
            sheet.append(["x.pdf", "none", f" {questions[number]}\n", mark])
        book.save(tmp_path / "annotation" / f"{name}.xlsx")
    sources = {"questions": tmp_path / "test_finance.json", "annotations": tmp_path / "annotation"}
    found = [cleaned_row(MLongDoc(), row.id, row.fields) for row in MLongDoc().raw_rows(sources)]  # type: ignore[union-attr]
    assert [isinstance(each, DocumentQuestion) for each in found] == [True, False, True, False]


def test_a_source_without_questions_or_marks_and_an_unknown_facet_are_named(tmp_path: Path) -> None:
    for sources, named in (
        ({"questions": tmp_path}, "test_academic.json"),
        ({"questions": tmp_path / "test_a.json", "annotations": tmp_path}, "data/annotation"),
    ):
        with pytest.raises(mt.SourceError, match=named):
            list(MLongDoc().raw_rows(sources))
    with pytest.raises(mt.SourceError, match="did you mean 'subject'"):
        MLongDoc().notes({"questions": tmp_path}, DocVQAOptions(facets=("subjct",)))


def page(number: object, data: object = PIXEL) -> str:
    text = base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return json.dumps({"number": number, "objects": [], "text": "", "image_string": text, "source": ""})


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "missing-pages"),
        ([page(1), page(3)], "missing-pages"),
        ([page(1), page(1)], "two-pages-of-one-number"),
        ([page("1")], "page-without-number"),
        ([page(10**9)], "page-without-number"),
        ([page(1, "@@")], "broken-page"),
        ([page(1, b"GIF89a")], "broken-page"),
        ([page(1, None)], "broken-page"),
        (["{"], "invalid-json"),
    ],
)
def test_a_parsed_document_that_lacks_a_page_is_refused(lines: list[str], reason: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    write_parsed(tmp_path / "in", tmp_path / "out", frozenset())
    (fault,) = parsed_documents(tmp_path / "out").values()
    assert isinstance(fault, mt.Fault)
    assert (fault.reason, fault.file, bool(fault.todo)) == (reason, "a.json", True)


def test_pages_of_a_parsed_document_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "twice.json").write_text(page(1), "utf-8")
    (tmp_path / "in/a.json").write_text(f"{page(2, PIXEL)}\n{page(1, PIXEL)}\n", "utf-8")
    (tmp_path / "in/known.json").write_text("never read", "utf-8")
    write_parsed(tmp_path / "in", tmp_path / "out", frozenset({"known"}))
    found = parsed_documents(tmp_path / "out")
    assert isinstance(found["twice"], mt.Fault)
    assert isinstance(found["a"], mt.PageImages)
    assert [file.name for file in found["a"].files] == ["page_1.png", "page_2.png"]
    assert "known" not in found


def test_a_pdf_goes_before_a_parsed_document(drawn: Mapping[str, Path], tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    pdf = next(path for path in drawn["documents"].iterdir() if path.suffix == ".pdf")
    for name in (pdf.name, f"{pdf.stem}.json"):
        (tmp_path / "documents" / name).write_bytes(pdf.read_bytes())
    (tmp_path / "out").mkdir()
    MLongDoc().extract({"documents": tmp_path / "documents"}, tmp_path / "out")
    sources = {"documents": tmp_path / "documents", PAGES: tmp_path / "out" / PAGES}
    assert MLongDoc().documents(sources) == {pdf.stem: tmp_path / "documents" / pdf.name}


def test_a_short_answer_cannot_be_asked_for_without_a_reference() -> None:
    row = cleaned_row(MLongDoc(), "id", RAW)
    assert isinstance(row, DocumentQuestion)
    from builders.docvqa.builder import check_answer

    with pytest.raises(mt.Rejected, match=r"options\.answer_form to long"):
        check_answer(row, DocVQAOptions())
    check_answer(row, LONG)


def test_the_task_of_long_answers_is_graded_by_the_committee_and_keeps_room_for_200_words() -> None:
    spec = DocVQA("m_longdoc", LONG).spec
    assert (spec.metric, spec.reserve, spec.may_lack_answers, spec.category) == ("judge-committee", 512, True, "")
    short = DocVQA("mmlongdoc", DocVQAOptions()).spec
    assert (short.metric, short.reserve, short.may_lack_answers) == ("doc_qa", 256, False)


def test_a_release_has_no_answers_and_passes_audit_and_shortcuts(release: Path) -> None:
    made = records(release)
    assert len(made) == 6
    assert {(each["answer"], each["answer_form"], each["answer_length"]) for each in made} == {("", "long", "long")}
    assert all(each["facets"]["subject"] for each in made)
    assert all(each["tokens"]["reserve"] == 512 for each in made)
    audited = command("audit", release)
    assert audited.code == 0, audited.out
    assert "answer from priors" not in command("shortcuts", release, "--all").out.replace("(no", "")


@pytest.mark.parametrize("profile", ["paper", "official"])
def test_the_committee_grades_answers_without_a_reference(release: Path, profile: str, tmp_path: Path) -> None:
    ids = [each["id"] for each in records(release)]
    folder = tmp_path / "predictions"
    folder.mkdir()
    told = ({"file": "documentQA/m_longdoc_K8.jsonl", "id": id, "prediction": "It rose."} for id in ids)
    (folder / "predictions.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in told), "utf-8")
    with serving(lambda request: good(score=4)) as server:
        judges = [part for name in "abc" for part in ("--judge-model", name)]
        args = ("score", release, folder, "--profile", profile, "--judge-url", server.url, *judges)
        ran = command(*args, "--images", release / "mmlb_image", "--out", tmp_path / "scores")
    assert ran.code == 0, ran.err
    assert "judge-committee" in ran.out
    assert " 75.0" in ran.out

import json
import os
import re
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pymupdf
import pytest

from builders.samples.docvqa.reports import QuestionedReport, draw_reports, find_cells, read_reports, sample_row

pytestmark = pytest.mark.slow

REPORTS = read_reports()
FORMATS = {"Int", "Float", "Str", "List", "None"}
PAPERS = {"letter": (612, 792), "a4": (595, 842), "slide": (720, 540)}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return draw_reports(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def rows(drawn: dict[str, Path]) -> list[dict[str, str]]:
    loaded: list[dict[str, str]] = json.loads(drawn["samples"].read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def texts(drawn: dict[str, Path]) -> dict[str, list[str]]:
    """The words of each page of each document."""
    texts = {}
    for path in sorted(drawn["documents"].iterdir()):
        with pymupdf.open(path) as document:
            texts[path.name] = [" ".join(page.get_text().split()) for page in document]
    return texts


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_another_process_with_another_hash_seed_draws_the_same_bytes(drawn: dict[str, Path], tmp_path: Path) -> None:
    command = "import sys, pathlib, builders.samples.docvqa.reports as s; s.draw_reports(pathlib.Path(sys.argv[1]))"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", command, str(tmp_path)], check=True, env=environment)
    assert bytes_below(tmp_path) == bytes_below(drawn["samples"].parent)


def test_documents_have_their_pages_and_names_that_differ_early(drawn: dict[str, Path]) -> None:
    names = [report.name for report in REPORTS]
    assert sorted(path.stem for path in drawn["documents"].iterdir()) == sorted(names)
    assert len({name[:15] for name in names}) == len(names) == 12
    assert not any("page" in name for name in names)
    for report in REPORTS:
        with pymupdf.open(drawn["documents"] / f"{report.name}.pdf") as document:
            assert document.page_count == report.pages
            assert {(page.rect.width, page.rect.height) for page in document} == {PAPERS[report.paper]}


def test_rows_are_raw_rows_of_mmlongbench_doc(rows: list[dict[str, str]]) -> None:
    for row in rows:
        assert all(isinstance(value, str) for value in row.values())
        pages = literal_eval(row["evidence_pages"])
        assert (row["answer_format"] == "None") == (pages == []) == (row["answer"] == "Not answerable")
        assert len(pages) <= 2
        assert "{" not in row["question"]
        if row["answer_format"] == "List":
            assert all(isinstance(item, str) for item in literal_eval(row["answer"]))
        else:
            assert len(row["answer"].split()) <= 5
    assert {row["answer_format"] for row in rows} == FORMATS
    assert sum(len(literal_eval(row["evidence_pages"])) == 2 for row in rows) >= 8
    assert len({(row["doc_id"], row["question"]) for row in rows}) == len(rows) == 48


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_every_answer_stands_on_its_page_and_on_no_other(report: QuestionedReport, texts: dict[str, list[str]]) -> None:
    for question in report.questions:
        cells = [cell for path in question.cells for cell in find_cells(report, path)]
        for cell in cells:
            assert cell.value in texts[f"{report.name}.pdf"][cell.fact.page - 1]
            where = [
                (name, page)
                for name, pages in texts.items()
                for page, text in enumerate(pages, 1)
                if cell.value in text
            ]
            assert where == [(f"{report.name}.pdf", cell.fact.page)], cell.value


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_an_answer_that_is_reckoned_stands_nowhere(
    report: QuestionedReport, rows: list[dict[str, str]], texts: dict[str, list[str]]
) -> None:
    asked = {row["question"]: row["answer"] for row in rows if row["doc_id"] == f"{report.name}.pdf"}
    assert len(asked) == len(report.questions)
    for question, reckoned in zip(report.questions, asked.values(), strict=True):
        if question.how in ("sum", "difference"):
            assert not any(reckoned in text.split() for text in texts[f"{report.name}.pdf"])


def test_one_fact_a_page_and_none_before_the_body() -> None:
    for report in REPORTS:
        pages = [fact.page for fact in report.facts.values()]
        assert len(set(pages)) == len(pages)
        assert min(pages) >= (3 if report.pages >= 10 and report.paper != "slide" else 2)
        assert max(pages) <= report.pages


def test_known_rows(rows: list[dict[str, str]]) -> None:
    assert rows[1] == {
        "doc_id": "harbour-dredging-2019.pdf",
        "doc_type": "Administration/Industry file",
        "question": "By how many barge loads did the dredged volume at Veldersund fall from 2016 to 2019?",
        "answer": "809",
        "evidence_pages": "[4, 9]",
        "evidence_sources": "['Table']",
        "answer_format": "Int",
    }
    assert rows[6]["answer"] == "['Grey Lantern', 'Sollas Beauty', 'Duke of Marne']"


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_no_question_holds_the_answer_of_another_question_about_the_report(report: QuestionedReport) -> None:
    asked = [sample_row(report, question) for question in report.questions]
    for row in asked:
        others = " ".join(other["question"] for other in asked if other is not row)
        assert not re.search(rf"\b{re.escape(row['answer'])}\b", others), row["answer"]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_a_page_has_nearly_all_words_of_a_question_that_cannot_be_answered(
    report: QuestionedReport, texts: dict[str, list[str]]
) -> None:
    """If it were about something else, the words on the pages would tell that it cannot be answered."""
    pages = [set(re.findall(r"[a-z0-9]+", text.lower())) for text in texts[f"{report.name}.pdf"]]
    common = {"what", "was", "the", "in", "of", "at", "how", "many", "did", "came", "to", "were"}
    for question in report.questions:
        if question.how == "none":
            words = set(re.findall(r"[a-z0-9]+", question.ask.lower())) - common
            assert max(len(words & page) for page in pages) >= len(words) - 2, question.ask

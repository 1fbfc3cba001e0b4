"""Questions of drawn PDFs, from the networks that read the layout to a release; hostile PDFs; the same bytes again."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hostile_pdfs
import pymupdf
import pytest
from drawn_tables import CATCHES, PORTS, VOLUMES, draw, draw_tables
from tiny import command, records

from mmlongbench.documents import pdf_reader
from mmlongbench.documents.limits import Limits
from mmlongbench.errors import TimeLimitError
from mmlongbench.questions.layer.index import normal
from mmlongbench.questions.layer.layers import pages_of
from mmlongbench.questions.layer.make import DOCUMENTS, Made, Settings, make_questions
from mmlongbench.questions.layer.rendered import agrees, engine
from mmlongbench.questions.question import Question
from mmlongbench.questions.table import MANIFEST, QUESTIONS, REJECTS, SUMMARY, TABLE, read_questions

pytestmark = pytest.mark.slow

FILES = (TABLE, QUESTIONS, REJECTS, SUMMARY, DOCUMENTS)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    draw_tables(folder)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("layers")


def make(folder: Path, out: Path, cache: Path, workers: int = 1, *, with_ocr: bool = False) -> Made:
    return make_questions(folder, out, Settings(cache, with_ocr=with_ocr), workers)


@pytest.fixture(scope="module")
def made(reports: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    make(reports, out, cache)
    return out


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def questions_in(folder: Path, document: str = "") -> dict[str, Question]:
    found = read_questions(folder / QUESTIONS)
    return {each.id: each for each in found if not document or each.document == document}


def copied(folder: Path, *paths: Path) -> Path:
    folder.mkdir()
    for path in paths:
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_every_cell_of_drawn_tables_becomes_a_fact_and_every_answer_is_right(made: Path) -> None:
    found = {report["document"]: report["facts"] for report in lines_of(made / DOCUMENTS)}
    assert found == {"dredging": 8, "landings": 8}
    asked = {(each.document, each.kind): each for each in questions_in(made).values()}
    for document, lines in (("dredging", VOLUMES), ("landings", CATCHES)):
        numbers = {port: (int(before), int(after)) for port, (before, after) in zip(PORTS, lines, strict=True)}
        change, largest = asked[document, "table-change"], asked[document, "table-largest"]
        before, after = next(line for port, line in numbers.items() if f"“{port}”" in change.question)
        assert change.answer == f"{abs(after - before):,}"
        column = int("2017" in largest.question or "2019" in largest.question)
        best = max if "largest" in largest.question else min
        assert largest.answer == best(numbers, key=lambda port: numbers[port][column])
        assert change.pages == largest.pages == (1,)
        assert {word.role for word in change.grounding} == {"title", "row", "column", "operand"}


def test_the_same_bytes_with_other_workers_and_from_the_cache(
    reports: Path, made: Path, cache: Path, tmp_path: Path
) -> None:
    make(reports, tmp_path, cache, workers=2)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made / name).read_bytes(), name


def test_a_damaged_cache_is_made_again_and_a_document_alone_gives_the_same(
    reports: Path, made: Path, tmp_path: Path
) -> None:
    alone = copied(tmp_path / "reports", reports / "dredging.pdf")
    make(alone, tmp_path / "out", tmp_path / "cache")
    (file,) = (tmp_path / "cache").glob("*.gz")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    make(alone, tmp_path / "again", tmp_path / "cache")
    assert file.read_bytes() == whole
    assert questions_in(tmp_path / "again") == questions_in(tmp_path / "out")
    assert questions_in(made, "dredging").items() <= questions_in(tmp_path / "out").items()


def test_hostile_and_equal_documents_are_named_and_the_others_are_asked_about(
    reports: Path, made: Path, cache: Path, tmp_path: Path
) -> None:
    folder = copied(tmp_path / "mixed", *sorted(reports.iterdir()))
    (folder / "twin.pdf").write_bytes((reports / "landings.pdf").read_bytes())
    (folder / "empty.pdf").write_bytes(b"")
    (folder / "forms.pdf").write_bytes(hostile_pdfs.nested_forms())
    (folder / "cut.pdf").write_bytes((reports / "landings.pdf").read_bytes()[:900])
    found = make(folder, tmp_path / "out", cache)
    reasons = {reject.document: reject.reason for reject in found.unreadable}
    assert set(reasons) == {"cut", "empty", "forms", "twin"}
    assert (reasons["twin"], reasons["empty"]) == ("same-bytes", "broken-document")
    assert questions_in(made).items() <= questions_in(tmp_path / "out").items()


def test_a_page_that_takes_too_long_ends_the_command_and_more_time_lets_it_go_on(
    reports: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = pages_of

    def hurried(path: Path, sha256: str, cache: Path, limits: Limits) -> Any:
        if limits.seconds_a_page < 1:
            raise TimeLimitError(f"{path.name}, page 0: takes longer than {limits.seconds_a_page:g} s")
        return read(path, sha256, cache, limits)

    def in_this_process(
        workers: int, function: Callable[..., Any], calls: list[tuple[Any, ...]], names: object
    ) -> Iterator[tuple[int, Any]]:
        yield from ((place, function(*arguments)) for place, arguments in enumerate(calls))

    monkeypatch.setattr("mmlongbench.questions.layer.make.pages_of", hurried)
    monkeypatch.setattr("mmlongbench.questions.layer.make.each_done", in_this_process)
    alone = copied(tmp_path / "reports", reports / "dredging.pdf")
    words = ("questions", alone, "--from", "layer", "--no-ocr", "--workers", 1, "--out", tmp_path / "out", "-q")
    ended = command(*words, "--seconds-a-page", 0.5)
    assert (ended.code, ended.err) == (
        2,
        "error: dredging.pdf, page 0: takes longer than 0.5 s; run the same command with more --seconds-a-page to "
        "continue, or leave the document out\n",
    )
    assert command(*words, "--seconds-a-page", 600).code == 0
    assert questions_in(made, "dredging").items() <= questions_in(tmp_path / "out").items()


def test_a_page_of_another_document_that_answers_takes_the_question_away(
    reports: Path, cache: Path, tmp_path: Path
) -> None:
    """The other document has the name, the row and the column of a table: it could answer in its place."""
    folder = copied(tmp_path / "padded", reports / "dredging.pdf")
    draw(folder / "rival.pdf", [("1", "2"), ("3", "4"), ("5", "6"), ("7", "8")], ("2016", "2017"), "Rival volume")
    make(folder, tmp_path / "out", cache)
    padding = [reject for reject in lines_of(tmp_path / "out" / REJECTS) if reject["stage"] == "padding"]
    assert {reject["reason"] for reject in padding} == {"answered-by-padding"}
    assert any(reject["found"].startswith("rival, page 1") for reject in padding)


def test_the_command_says_what_each_document_gives_and_build_takes_the_manifest(
    reports: Path, cache: Path, tmp_path: Path
) -> None:
    out = tmp_path / "questions"
    shown = command("questions", reports, "--from", "layer", "--no-ocr", "--cache", cache, "--out", out)
    assert shown.code == 0, shown.err
    assert "8 cells, 1 captions and 2 headings" in shown.out
    built = command("build", out / MANIFEST, "--set", "questions_layer.lengths=8K", "--out", tmp_path / "release")
    assert built.code == 0, built.err
    assert command("audit", tmp_path / "release").code == 0


def test_a_folder_without_pdfs_is_an_error(tmp_path: Path) -> None:
    refused = command("questions", tmp_path, "--from", "layer", "--out", tmp_path / "out")
    assert refused.code == 2
    assert "a folder with PDFs" in refused.err


def test_pages_without_words_and_turned_pages_are_counted(cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    with pymupdf.open() as document:
        document.new_page()
        document.new_page().insert_text((72, 72), "A page that is turned")
        document[1].set_rotation(90)
        document.save(folder / "odd.pdf")
    (report,) = make(folder, tmp_path / "out", cache).reports
    assert (report.pages, report.pages_without_words, report.pages_left_out) == (2, 1, 1)
    assert not report.questions


def test_reading_a_layout_changes_nothing_that_the_process_reads_later(reports: Path) -> None:
    path = reports / "dredging.pdf"
    before = list(pdf_reader.page_keys_and_texts(path, Limits()))
    list(pdf_reader.page_layers(path, Limits()))
    assert list(pdf_reader.page_keys_and_texts(path, Limits())) == before


@pytest.mark.skipif(not engine(), reason="tesseract is not installed")
def test_ocr_takes_away_what_is_painted_over_and_reads_no_box_twice(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another number is painted over a cell: the layer still has the old one."""
    folder = tmp_path / "painted"
    folder.mkdir()
    with pymupdf.open(reports / "dredging.pdf") as document:
        (box,) = document[0].search_for("2768")
        document[0].draw_rect(box, color=(1, 1, 1), fill=(1, 1, 1))
        document[0].insert_text((box.x0, box.y1 - 2), "9615", fontsize=10)
        document.save(folder / "painted.pdf")
    make(folder, tmp_path / "out", tmp_path / "cache", with_ocr=True)
    kept = questions_in(tmp_path / "out").values()
    assert kept
    assert not [each for each in kept if "9615" in each.answer]
    assert not [each for each in kept if any(word.text == "2768" for word in each.grounding)]
    monkeypatch.setattr("mmlongbench.questions.layer.rendered.run", None)
    make(folder, tmp_path / "again", tmp_path / "cache", with_ocr=True)
    assert (tmp_path / "again" / TABLE).read_bytes() == (tmp_path / "out" / TABLE).read_bytes()


@pytest.mark.parametrize(
    ("printed", "read", "is_same"),
    [
        ("$ 9,889", "$9,889", True),
        ("45.6%", "45.6 %", True),
        ("9,889", "9,839", False),
        ("12.5", "125", False),
        ("Net income", "Net incorne", True),
        ("Net income", "Gross profit", False),
        ("1", "", False),
    ],
)
def test_ocr_must_read_the_same_digits_and_similar_words(printed: str, read: str, is_same: bool) -> None:
    assert agrees(printed, read) == is_same


def test_a_file_name_that_is_not_utf_8_is_named_and_the_others_are_asked_about(
    reports: Path, made: Path, cache: Path, tmp_path: Path
) -> None:
    folder = copied(tmp_path / "named", *sorted(reports.iterdir()))
    odd = os.fsencode(folder) + b"/r\xe9port.pdf"
    with open(odd, "wb") as file:  # noqa: PTH123  (a path of bytes)
        file.write((reports / "landings.pdf").read_bytes() + b"\n")
    found = make(folder, tmp_path / "out", cache)
    assert [(each.document, each.reason) for each in found.unreadable] == [("r\\xe9port", "name-not-unicode")]
    assert questions_in(tmp_path / "out") == questions_in(made)
    manifest = tmp_path / "out" / MANIFEST
    built = command("build", manifest, "--set", "questions_layer.lengths=8K", "--out", tmp_path / "release")
    assert built.code == 0, built.err


def test_turned_and_crowded_pages_are_read_for_what_no_page_may_have(
    reports: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turned page, and a page with too many words, have the name, the row and the column of every cell."""
    folder = tmp_path / "doubtful"
    folder.mkdir()
    said = f"Table 1: Dredged volume {' '.join(PORTS)} 2016 2017 1 DREDGED VOLUME 2 OUTLOOK FOR NEXT SEASON"
    with pymupdf.open(reports / "dredging.pdf") as document:
        document.new_page().insert_textbox((50, 50, 500, 700), said)
        document[2].set_rotation(90)
        document.save(folder / "turned.pdf")
    monkeypatch.setattr("mmlongbench.documents.page_layer.MAX_WORDS", 20)
    make(folder, tmp_path / "out", tmp_path / "cache")
    of_tables = [each for each in questions_in(tmp_path / "out").values() if each.kind.startswith("table")]
    assert of_tables
    assert all(each.alternatives == (3,) or "on page 1" in each.question for each in of_tables)
    reasons = {(reject["stage"], reject["reason"]) for reject in lines_of(tmp_path / "out" / REJECTS)}
    assert ("unique", "also-on-another-page") in reasons


def test_a_picture_of_a_page_that_nobody_reads_holds_questions_back(reports: Path, cache: Path, tmp_path: Path) -> None:
    """Without OCR, the picture may say anything; so no question of the other document is kept."""
    folder = copied(tmp_path / "pictured", reports / "dredging.pdf")
    with pymupdf.open(reports / "landings.pdf") as document, pymupdf.open() as scan:
        pixels = document[0].get_pixmap(dpi=150)
        scan.new_page().insert_image((0, 0, 595, 842), pixmap=pixels)
        scan.save(folder / "scan.pdf")
    make(folder, tmp_path / "out", cache)
    assert not questions_in(tmp_path / "out")
    padding = [reject for reject in lines_of(tmp_path / "out" / REJECTS) if reject["stage"] == "padding"]
    assert {reject["reason"] for reject in padding} == {"page-not-readable"}
    assert all(reject["found"].startswith("scan, page 1") for reject in padding)
    if engine():
        make(folder, tmp_path / "read", cache, with_ocr=True)
        assert questions_in(tmp_path / "read")


def test_in_a_built_release_a_fact_is_on_its_gold_pages_alone(reports: Path, cache: Path, tmp_path: Path) -> None:
    """Reads the packed pages of every context: no other page has the words that a question rests on, and no page has
    those of a question without an answer.
    """
    folder = copied(tmp_path / "reports")
    draw(tmp_path / "first.pdf", VOLUMES, ("2016", "2017"), "Dredged volume")
    draw(tmp_path / "second.pdf", CATCHES, ("2016", "2017"), "Landed catch", 2)
    with pymupdf.open(tmp_path / "first.pdf") as document, pymupdf.open(tmp_path / "second.pdf") as more:
        document.insert_pdf(more, to_page=0)
        document.save(folder / "dredging.pdf")
    draw(folder / "rival.pdf", VOLUMES, ("2016", "2017"), "Rival volume")
    out = tmp_path / "questions"
    assert command("questions", folder, "--from", "layer", "--no-ocr", "--cache", cache, "--out", out).code == 0
    manifest = out / MANIFEST
    manifest.write_text(manifest.read_text("utf-8").replace("page_label: printed", "pages_as: text"), "utf-8")
    built = command("build", manifest, "--set", "questions_layer.lengths=8K", "--out", tmp_path / "release")
    assert built.code == 0, built.err
    questions = questions_in(out)
    seen, padded = dict[str, set[str]](), 0
    for record in records(tmp_path / "release", "8K", "questions_layer"):
        question = questions[record["id"]]
        others = _others(record, question)
        seen.setdefault("answerable" if question.pages else "unanswerable", set()).add(question.id)
        padded += any(doc != question.document for doc, _ in others)
        for phrases in _facts(question):
            assert not [page for page, text in others.items() if all(phrase in text for phrase in phrases)], question
    assert seen.keys() == {"answerable", "unanswerable"}
    assert padded >= 3
    assert "answered-by-padding" in {reject["reason"] for reject in lines_of(out / REJECTS)}


def _others(record: dict[str, Any], question: Question) -> dict[tuple[str, int], str]:
    """The words of each packed page that is no gold page, by its document and number."""
    found = {}
    for path, text in zip(record["page_list"], record["page_text_list"], strict=True):
        doc, number = Path(path).parent.name, int(Path(path).stem.rpartition("page")[2] or 0) + 1
        if doc != question.document or number not in (*question.pages, *question.alternatives):
            found[doc, number] = normal(text)
    return found


def _facts(question: Question) -> list[tuple[str, ...]]:
    """The words that a page must have to answer: the table, a row and a column, or those that were changed."""
    if not question.pages:
        return [(normal(question.edit.split(" → ")[1]),)]
    titles = [normal(word.text) for word in question.grounding if word.role == "title"]
    rows = [normal(word.text) for word in question.grounding if word.role == "row"]
    quoted = [normal(words) for words in re.findall("“([^”]+)”", question.question)]
    return [(*titles, row) for row in rows] or [(*quoted, *(normal(word.text) for word in question.grounding))]

"""Questions from the layer of drawn PDFs, by the command: right answers, hostile PDFs, a release of them."""

import json
import os
import re
from pathlib import Path
from typing import Any

import hostile_pdfs
import needs
import pymupdf
import pytest
import yaml
from drawn_tables import CATCHES, PORTS, QUAYS, VOLUMES, draw, draw_tables
from once import once
from tiny import Ran, command, records

from mmlongbench.errors import Fault, PageLimitError

FILES = ("table.jsonl", "questions.jsonl", "rejects.jsonl", "summary.json", "documents.jsonl")
Lines = list[dict[str, Any]]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two reports, a folder of layers, and what the command makes of the reports; not to be changed."""

    def make(folder: Path) -> None:
        (folder / "reports").mkdir()
        draw_tables(folder / "reports")
        ran = asked(folder / "reports", folder / "out", folder / "layers")
        assert ran.code == 0, ran.err
        (folder / "said").write_text(ran.out, "utf-8")

    return once(tmp_path_factory, "layer-questions", make)


@pytest.fixture(scope="session")
def layers(made: Path) -> Path:
    """The layers of documents that were read before."""
    return made / "layers"


def asked(folder: Path, out: Path, cache: Path, *words: object, ocr: bool = False, workers: int = 1) -> Ran:
    options = [*([] if ocr else ["--no-ocr"]), "--workers", workers, "--cache", cache, "--out", out]
    return command("questions", folder, "--from", "layer", *options, *words)


def lines_of(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def questions_in(out: Path, document: str = "") -> dict[str, dict[str, Any]]:
    found = lines_of(out / "questions.jsonl")
    return {each["id"]: each for each in found if not document or each["document"] == document}


def rejects_in(out: Path, stage: str) -> Lines:
    return [reject for reject in lines_of(out / "rejects.jsonl") if reject["stage"] == stage]


def copied(folder: Path, *paths: Path) -> Path:
    folder.mkdir()
    for path in paths:
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_every_cell_of_drawn_tables_becomes_a_fact_and_every_answer_is_right(made: Path) -> None:
    assert "8 cells of 1 table" in (made / "said").read_text("utf-8")
    reports = {report["document"]: report["facts"] for report in lines_of(made / "out/documents.jsonl")}
    assert reports == {"dredging": 8, "landings": 8}
    found = questions_in(made / "out").values()
    assert {each["kind"] for each in found} >= {"table-change", "table-comparison", "table-value", "unanswerable"}
    for each in found:
        of_document = (PORTS, VOLUMES, "2017") if each["document"] == "dredging" else (QUAYS, CATCHES, "2019")
        (ports, lines, second), question = of_document, each["question"]
        named = [port for port in ports if f"“{port}”" in question]
        cells = dict(zip(ports, lines, strict=True))
        numbers = [int(cells[port][f"“{second}”" in question]) for port in named]
        if each["kind"] == "table-value":
            assert each["answer"] == str(numbers[0])
        if each["kind"] == "table-change":
            before, after = map(int, cells[named[0]])
            assert each["answer"] == f"{abs(after - before):,}"
        if each["kind"] == "table-comparison":
            larger = named[numbers.index(max(numbers))]
            assert each["answer"] == [larger, f"{max(numbers) - min(numbers):,}"]
        if each["kind"] == "unanswerable":
            old, new = each["edit"].split(" → ")
            assert f"“{new}”" in question
            assert (old in ports, new in ports) in ((True, False), (False, False))
        else:
            assert each["pages"] == [1]
        assert {word.get("role") for word in each["grounding"]} >= {"title", "row", "column"}


def test_other_workers_and_a_cache_give_the_same_bytes(made: Path, tmp_path: Path) -> None:
    assert asked(made / "reports", tmp_path, made / "layers", workers=2).code == 0
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made / "out" / name).read_bytes(), name


def test_hostile_and_equal_documents_are_named_and_the_others_are_asked_about(
    made: Path, layers: Path, tmp_path: Path
) -> None:
    folder = copied(tmp_path / "mixed", *sorted((made / "reports").iterdir()))
    landings = (folder / "landings.pdf").read_bytes()
    (folder / "twin.pdf").write_bytes(landings)
    (folder / "empty.pdf").write_bytes(b"")
    (folder / "forms.pdf").write_bytes(hostile_pdfs.nested_forms())
    (folder / "cut.pdf").write_bytes(landings[:900])
    with open(os.fsencode(folder) + b"/r\xe9port.pdf", "wb") as file:  # noqa: PTH123  (a path of bytes)
        file.write(landings + b"\n")
    ran = asked(folder, tmp_path / "out", layers, "--seconds-a-page", 3)  # the forms would take a minute
    assert ran.code == 0, ran.err
    reasons = {each["document"]: each["reason"] for each in lines_of(tmp_path / "out/rejects.jsonl")}
    assert {"cut", "empty", "forms", "twin", "r\\xe9port"} <= reasons.keys()
    assert (reasons["twin"], reasons["empty"]) == ("same-bytes", "broken-document")
    assert reasons["r\\xe9port"] == "name-not-unicode"
    assert questions_in(tmp_path / "out") == questions_in(made / "out")
    assert [name for name in reasons if name in ran.out or name in ran.err]
    short = ("--set", "questions_layer.lengths=8K", "--set", "questions_layer.limits={seconds_a_page: 1}")
    built = command("plan", tmp_path / "out/manifest.yaml", *short)
    assert built.code == 0, built.err


def test_in_a_built_release_a_fact_is_on_its_gold_pages_alone(made: Path, layers: Path, tmp_path: Path) -> None:
    """Reads the packed pages of every context: no other page has the words that a question rests on, and no page has
    those of a question without an answer.
    """
    folder = copied(tmp_path / "reports")
    draw(tmp_path / "first.pdf", VOLUMES, ("2016", "2017"), "Dredged volume")
    draw(tmp_path / "second.pdf", CATCHES, ("2016", "2017"), "Landed catch", 2)
    with pymupdf.open(tmp_path / "first.pdf") as document, pymupdf.open(tmp_path / "second.pdf") as more:
        document.insert_pdf(more, to_page=0)
        document.save(folder / "dredging.pdf", no_new_id=True)
    draw(folder / "rival.pdf", VOLUMES, ("2016", "2017"), "Rival volume")
    draw(folder / "landings.pdf", CATCHES, ("2018", "2019"), "Landed catch", 2, QUAYS)
    out = tmp_path / "questions"
    ran = asked(folder, out, tmp_path / "layers")
    assert ran.code == 0, ran.err
    padding = rejects_in(out, "padding")
    assert {reject["reason"] for reject in padding} == {"answered-by-padding"}
    assert any("page 1: Table 1" in reject["found"] for reject in padding)
    manifest = out / "manifest.yaml"
    manifest.write_text(manifest.read_text("utf-8").replace("page_label: printed", "pages_as: text"), "utf-8")
    built = command("build", manifest, "--set", "questions_layer.lengths=8K", "--out", tmp_path / "release")
    assert built.code == 0, built.err
    assert command("audit", tmp_path / "release", "-q").code == 0
    questions = questions_in(out)
    seen, padded = dict[str, set[str]](), 0
    for record in records(tmp_path / "release", "8K", "questions_layer"):
        question = questions[record["id"]]
        others = _others(record, question)
        seen.setdefault("answerable" if question["pages"] else "unanswerable", set()).add(question["id"])
        padded += any(doc != question["document"] for doc, _ in others)
        for phrases in _facts(question):
            assert not [page for page, text in others.items() if all(phrase in text for phrase in phrases)], question
    assert seen.keys() == {"answerable", "unanswerable"}
    assert padded >= 3


def normal(text: str) -> str:
    """Words in a form in which the same words are equal."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _others(record: dict[str, Any], question: dict[str, Any]) -> dict[tuple[str, int], str]:
    """The words of each packed page that is no gold page, by its document and number."""
    found = {}
    for path, text in zip(record["page_list"], record["page_text_list"], strict=True):
        doc, number = Path(path).parent.name, int(Path(path).stem.rpartition("page")[2] or 0) + 1
        if doc != question["document"] or number not in (*question["pages"], *question.get("alternatives", ())):
            found[doc, number] = normal(text)
    return found


def _facts(question: dict[str, Any]) -> list[tuple[str, ...]]:
    """The words that a page must have to answer: the table and a row; or those that were changed."""
    words = {(word["role"], normal(word["text"])) for word in question["grounding"] if "role" in word}
    (title,) = (text for role, text in words if role == "title")
    if not question["pages"]:
        return [(title, *(normal(text) for text in re.findall("“([^”]+)”", question["question"])))]
    return [(title, text) for role, text in words if role == "row"]


def test_a_document_with_a_page_that_nobody_reads_is_in_no_context_and_takes_no_question_of_others(
    made: Path, layers: Path, tmp_path: Path
) -> None:
    """Without OCR, a picture of a page may say anything."""
    folder = copied(tmp_path / "pictured", *sorted((made / "reports").iterdir()))
    with pymupdf.open(made / "reports/landings.pdf") as document, pymupdf.open() as scan:
        pixels = document[0].get_pixmap(dpi=150)
        scan.new_page().insert_image((0, 0, 595, 842), pixmap=pixels)
        scan.new_page().insert_text((72, 72), "A page that is turned")
        scan[1].set_rotation(90)
        scan.save(folder / "scan.pdf", no_new_id=True)
    ran = asked(folder, tmp_path / "out", layers)
    assert ran.code == 0
    assert questions_in(tmp_path / "out") == questions_in(made / "out")
    report = next(each for each in lines_of(tmp_path / "out/documents.jsonl") if each["document"] == "scan")
    assert (report["pages"], report["unread"], report["pages_left_out"]) == (2, [1, 2], 1)
    assert [line for line in ran.err.splitlines() if "exclude" in line and line.endswith(": scan")]
    manifest = tmp_path / "out/manifest.yaml"
    assert command("plan", manifest, "--set", "questions_layer.lengths=8K").code == 0
    assert yaml.safe_load(manifest.read_text("utf-8"))["datasets"][0]["exclude"] == ["scan"]
    written = command("questions", "export", tmp_path / "out", "--review", tmp_path / "sheet.csv")
    assert written.code == 0, written.err
    assert command("questions", "import", tmp_path / "out", tmp_path / "sheet.csv").code == 0
    reviewed = yaml.safe_load((tmp_path / "out/reviewed/manifest.yaml").read_text("utf-8"))
    assert reviewed["datasets"][0]["exclude"] == ["scan"]


def test_a_page_that_takes_too_long_is_named_and_more_time_lets_it_be_read(
    made: Path, layers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hurried(path: Path, sha256: str, cache: Path, limits: Any) -> None:
        bound = f"at most {limits.seconds_a_page:g} seconds"
        todo = "raise limits.seconds_a_page and build into a new folder"
        raise PageLimitError(Fault("time-of-a-page", bound, "more", path.name, "page 1", todo=todo))

    def in_this_process(workers: int, function: Any, calls: list[tuple[Any, ...]], names: object) -> Any:
        yield from ((place, function(*arguments)) for place, arguments in enumerate(calls))

    alone = copied(tmp_path / "reports", made / "reports/dredging.pdf")
    with monkeypatch.context() as patch:
        patch.setattr("mmlongbench.questions.layer.make.pages_of", hurried)
        patch.setattr("mmlongbench.questions.layer.make.each_done", in_this_process)
        said = asked(alone, tmp_path / "out", layers, "--seconds-a-page", 0.5)
    assert said.code == 0
    assert "dredging: not read: time-of-a-page: expected at most 0.5 seconds: raise --seconds-a-page" in said.err
    assert "found page 1: more" in said.err
    (left_out,) = rejects_in(tmp_path / "out", "document")
    assert (left_out["document"], left_out["reason"]) == ("dredging", "time-of-a-page")
    assert asked(alone, tmp_path / "out", layers, "-q", "--seconds-a-page", 600).code == 0
    assert questions_in(tmp_path / "out")


def test_documents_that_are_all_refused_give_no_questions(made: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links/dredging.pdf").symlink_to(made / "reports/dredging.pdf")
    ran = asked(tmp_path / "links", tmp_path / "out", tmp_path / "layers")
    assert (ran.code, questions_in(tmp_path / "out")) == (0, {})
    assert "dredging: not read: path-outside-source" in ran.err
    assert "build them" not in ran.out


def test_a_folder_without_pdfs_is_an_error(tmp_path: Path) -> None:
    refused = command("questions", tmp_path, "--from", "layer", "--out", tmp_path / "out")
    assert refused.code == 2
    assert "a folder with PDFs" in refused.err


@pytest.mark.rare
def test_a_damaged_cache_is_made_again(made: Path, tmp_path: Path) -> None:
    alone = copied(tmp_path / "reports", made / "reports/dredging.pdf")
    asked(alone, tmp_path / "out", tmp_path / "cache")
    (file,) = (tmp_path / "cache").glob("*.gz")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert asked(alone, tmp_path / "again", tmp_path / "cache").code == 0
    assert file.read_bytes() == whole
    assert questions_in(tmp_path / "again") == questions_in(tmp_path / "out")


@pytest.mark.rare
def test_ocr_takes_away_what_is_painted_over_and_reads_no_box_twice(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another number is painted over a cell: the layer still has the old one."""
    needs.tesseract()
    folder = tmp_path / "painted"
    folder.mkdir()
    with pymupdf.open(made / "reports/dredging.pdf") as document:
        (box,) = document[0].search_for("2768")
        document[0].draw_rect(box, color=(1, 1, 1), fill=(1, 1, 1))
        document[0].insert_text((box.x0, box.y1 - 2), "9615", fontsize=10)
        document.save(folder / "painted.pdf")
    assert asked(folder, tmp_path / "out", tmp_path / "cache", ocr=True).code == 0
    kept = questions_in(tmp_path / "out").values()
    assert kept
    assert not [each for each in kept if "9615" in each["answer"]]
    assert not [each for each in kept if any(word["text"] == "2768" for word in each["grounding"])]
    monkeypatch.setattr("mmlongbench.questions.layer.checks.run", None)
    assert asked(folder, tmp_path / "again", tmp_path / "cache", ocr=True).code == 0
    assert (tmp_path / "again/table.jsonl").read_bytes() == (tmp_path / "out/table.jsonl").read_bytes()


def test_a_page_of_thousands_of_drawings_is_left_out_and_counted(made: Path, tmp_path: Path) -> None:
    folder = copied(tmp_path / "dots", made / "reports/dredging.pdf")
    dots = " ".join(f"{at % 600} {at % 700} 1 1 re f" for at in range(1_001))
    (folder / "dots.pdf").write_bytes(hostile_pdfs.page(hostile_pdfs.stream(dots)))
    assert asked(folder, tmp_path / "out", tmp_path / "cache").code == 0
    left_out = {line["document"]: line["pages_left_out"] for line in lines_of(tmp_path / "out/documents.jsonl")}
    assert left_out == {"dredging": 0, "dots": 1}


@pytest.mark.rare
def test_what_rests_on_a_letter_that_is_printed_otherwise_is_left_out(made: Path, tmp_path: Path) -> None:
    """The fonts say that each `t` is an `O`; what is printed is right, and OCR reads it."""
    needs.tesseract()
    honest, lying = copied(tmp_path / "honest", made / "reports/dredging.pdf"), tmp_path / "lying"
    lying.mkdir()
    with pymupdf.open(honest / "dredging.pdf") as document:
        table = document.get_new_xref()
        document.update_object(table, "<<>>")
        said = "1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfchar <74> <004f> endbfchar"
        document.update_stream(table, f"begincmap {said} endcmap".encode())
        for font in {font[0] for page in document for font in page.get_fonts()}:
            document.xref_set_key(font, "ToUnicode", f"{table} 0 R")
        document.save(lying / "dredging.pdf", no_new_id=True)
    for folder in (honest, lying):
        assert asked(folder, tmp_path / f"{folder.name}-out", tmp_path / "cache", ocr=True).code == 0
    assert questions_in(tmp_path / "honest-out")
    left = [each["question"] for each in questions_in(tmp_path / "lying-out").values()]
    assert not [question for question in left if "O" in question.replace("“", "")]
    assert {each["reason"] for each in rejects_in(tmp_path / "lying-out", "rendered")} == {"ocr-differs"}


@pytest.mark.rare
def test_turned_and_crowded_pages_are_read_for_what_no_page_may_have(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turned page, and a page with too many words, have the name, the row and the column of every cell."""
    folder = copied(tmp_path / "doubtful")
    said = f"Table 1: Dredged volume {' '.join(PORTS)} 2016 2017 1 DREDGED VOLUME 2 OUTLOOK FOR NEXT SEASON"
    with pymupdf.open(made / "reports/dredging.pdf") as document:
        document.new_page().insert_textbox((50, 50, 500, 700), said)
        document[2].set_rotation(90)
        document.save(folder / "turned.pdf")
    monkeypatch.setattr("mmlongbench.documents.page_facts.MAX_WORDS", 20)
    assert asked(folder, tmp_path / "out", tmp_path / "cache").code == 0
    of_tables = [each for each in questions_in(tmp_path / "out").values() if each["kind"].startswith("table")]
    assert of_tables
    assert all(each["alternatives"] == [3] for each in of_tables)

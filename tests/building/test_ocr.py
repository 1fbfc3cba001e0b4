"""OCR of pages in a build: each page is read once, with an engine that the lock names, or an error says what to do."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import needs
import pymupdf
import pytest
import yaml
from halted import refused
from hostile_pdfs import groups
from ocr_programs import StandIn, forget, programs_of
from samples import Sources
from tiny import PAGES, build, command, environment, hashes, lock, mmlongbench, records, rejects, write_manifest

PAGE_COUNT = sum(PAGES.values())
HIDDEN = "A hidden layer about bananas, which nobody sees on this page of the document."
SEEN = "The harbour master counted seven grey seals."
SCANNED = "The tide tables were printed in Whitby."
DRAWN = "Plain words of a page without a picture."


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    found = StandIn(tmp_path / "bin")
    with programs_of(found.folder, monkeypatch, alone=True):
        yield found


@pytest.fixture
def own(source: Path, tmp_path: Path) -> Path:
    """The tiny source in a folder of the test, shown as the text that OCR reads on every page."""
    folder = shutil.copytree(source, tmp_path / "source")
    write_manifest(folder / "tiny.yaml", pages={"ocr": "all"}, options={"pages_as": "text", "max_answer_words": 5})
    return folder


def picture(text: str) -> bytes:
    """A page with words, as a PNG."""
    with pymupdf.open() as document:
        document.new_page(width=400, height=200).insert_textbox((20, 20, 380, 180), text, fontsize=14)
        return bytes(document[0].get_pixmap(dpi=200, alpha=False).tobytes("png"))


@pytest.fixture
def seals(tmp_path: Path) -> Path:
    """A manifest of a PDF of four pages (words under a picture of others, a scan, an empty page, plain words), and of a
    document of page images.
    """
    folder = tmp_path / "seals"
    (folder / "documents").mkdir(parents=True)
    with pymupdf.open() as document:
        for words, shown in ((HIDDEN, SEEN), ("", SCANNED), ("", ""), (DRAWN, "")):
            page = document.new_page(width=400, height=200)
            page.insert_textbox((20, 20, 380, 180), words, fontsize=14)
            if shown:
                page.insert_image(page.rect, stream=picture(shown))
        document.save(folder / "documents/harbour.pdf")
    (folder / "documents/letter_1.png").write_bytes(picture("Dear captain, the lamp is lit."))
    (folder / "q.csv").write_text("doc,question,answer,pages\nharbour,How many?,seven,1\nletter,What is lit?,lamp,1\n")
    dataset = {
        "name": "text_own",
        "builder": "docvqa",
        "reader": "own_documents",
        "source": {"questions": "q.csv", "documents": "documents"},
        "lengths": ["2K"],
        "admission_length": "2K",
        "options": {"pages_as": "text", "text_fill": "budget"},
        "pages": {"ocr": "all"},
    }
    (folder / "seals.yaml").write_text(yaml.safe_dump({"datasets": [dataset]}))
    return folder / "seals.yaml"


def test_the_text_of_each_page_is_what_its_picture_shows(seals: Path, tmp_path: Path) -> None:
    needs.tesseract()
    forget()
    ran = command("build", seals, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    first, second = records(tmp_path / "out", "2K", "text_own")
    texts = dict(zip(first["page_list"], first["page_text_list"], strict=True))
    shown = [" ".join(texts[f"own-documents/harbour/harbour_page{number}.jpg"].split()) for number in range(4)]
    assert shown == [SEEN, SCANNED, "", DRAWN]
    assert "Dear captain, the lamp is lit." in second["page_text_list"]
    assert command("audit", tmp_path / "out").code == 0


def test_the_lock_names_what_decides_the_text(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    assert build(own, tmp_path / "out").code == 0
    assert lock(tmp_path / "out")["manifest"][0]["pages"] == {
        "dpi": 144,
        "quality": 90,
        "ocr": {
            "pages": "all",
            "engine": "tesseract 9.8.7",
            "library": "leptonica-6.5.4",
            "language": {"name": "eng", "sha256": hashlib.sha256(b"data").hexdigest()},
            "options": "--oem 1 --psm 3 -c page_separator=",
            "dpi": 288,
            "most_pixels": 20_000_000,
        },
    }
    assert len(stand_in.pictures) == PAGE_COUNT
    (stand_in.folder / "eng.traineddata").write_text("other data")
    forget()
    refused(build(own, tmp_path / "out"), "differs (pages.ocr.language: the file changed)")


@pytest.mark.parametrize(("setting", "recorded"), [("false", False), ("true", "tesseract 9.8.7")])
def test_the_lock_of_other_settings_is_short(
    setting: str, recorded: object, own: Path, tmp_path: Path, stand_in: StandIn
) -> None:
    assert build(own, tmp_path / "out", "--set", f"pages.ocr={setting}").code == 0
    assert lock(tmp_path / "out")["manifest"][0]["pages"] == {"dpi": 144, "quality": 90, "ocr": recorded}
    assert bool(stand_in.pictures) == (setting == "true")


@pytest.mark.rare
def test_a_killed_build_reads_no_page_twice(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    """It is killed in the middle of a document."""
    stand_in.after(7, "kill -9 $PPID; exit 1")
    words = ("build", own / "tiny.yaml", "--out", tmp_path / "out", "--workers", 1)
    assert mmlongbench(*words, env=environment()).code != 0
    assert len(stand_in.pictures) == 7
    stand_in.mend()
    assert mmlongbench(*words, env=environment()).code == 0
    assert len(stand_in.pictures) == PAGE_COUNT
    assert build(own, tmp_path / "other").code == 0
    assert hashes(tmp_path / "out") == hashes(tmp_path / "other")
    assert sorted(stand_in.pictures[:PAGE_COUNT]) == sorted(stand_in.pictures[PAGE_COUNT:])


FAILURES = {
    "a code": ("exit 3", ("tesseract failed (exit 3)", "run the command again", 'exclude it (`exclude: ["birch"]`')),
    "words": ("echo 'no memory' >&2; exit 1", ("tesseract failed (no memory)", "run the command again")),
    "a signal": ("kill -9 $$", ("tesseract failed (ended by SIGKILL)", "run the command again")),
    "late": (
        f"exec {shutil.which('sleep')} 60",
        ("tesseract takes longer than 3 s", 'exclude it (`exclude: ["birch"]`'),
    ),
}


@pytest.mark.parametrize(
    "failure", ["a code", *(pytest.param(name, marks=pytest.mark.rare) for name in [*FAILURES][1:])]
)
def test_a_page_that_cannot_be_read_ends_the_build_by_name_and_the_texts_before_it_are_kept(
    failure: str, own: Path, tmp_path: Path, stand_in: StandIn
) -> None:
    does, facts = FAILURES[failure]
    stand_in.after(3, does)
    late = ("--set", "limits.seconds_a_page=3") if failure == "late" else ()
    ran = build(own, tmp_path / "out", *late)
    refused(ran, "error: dataset 'mmlongdoc', document 'birch': birch.pdf, page 2: ", *facts)
    stand_in.mend()
    (first, *_) = sorted((tmp_path / "out/.build/ocr").glob("*.jsonl"))
    with first.open("ab") as file:
        file.write(b'{"page":1,"te')  # as if the line was cut off
    assert build(own, tmp_path / "out").code == 0
    assert len(stand_in.pictures) == PAGE_COUNT
    assert build(own, tmp_path / "other").code == 0
    assert hashes(tmp_path / "out") == hashes(tmp_path / "other")


def test_documents_above_a_limit_are_refused_before_ocr(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    (own / "documents/oak.pdf").write_bytes(groups(3))
    limits = ("--set", "limits.pages=4", "--set", "limits.pixels=200000")
    assert build(own, tmp_path / "out", *limits).code == 0
    reasons = {each["file"]: each["reason"] for each in rejects(tmp_path / "out")}
    assert reasons["oak.pdf"] == "size-of-a-page"
    assert reasons["dogwood.pdf"] == "pages-of-a-document"
    assert len(stand_in.pictures) == PAGE_COUNT - PAGES["dogwood"]


def test_a_build_that_starts_again_keeps_the_texts(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    assert build(own, tmp_path / "out", "--stage", "prepare").code == 0
    again = build(own, tmp_path / "out", "--set", "seed=7")
    assert (again.code, "was started again" in again.err) == (0, True)
    assert len(stand_in.pictures) == PAGE_COUNT


def test_an_extension_that_stops_keeps_the_texts(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    out = tmp_path / "out"
    assert build(own, out, "--lengths", "1K").code == 0
    before = hashes(out)
    stand_in.after(7, "exit 3")
    refused(build(own, out), "cedar.pdf, page 3: tesseract failed (exit 3)")
    stand_in.mend()
    assert hashes(out).items() >= before.items()
    assert build(own, out).code == 0
    assert len(stand_in.pictures) == 2 * PAGE_COUNT
    assert command("verify", out).code == 0


def test_datasets_of_the_same_documents_read_them_once(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    """A dataset with images may stand beside one with texts, although only one of them is read by OCR."""
    (dataset,) = yaml.safe_load((own / "tiny.yaml").read_text())["datasets"]
    images = {**dataset, "name": "images", "pages": {}, "options": {}}
    both = [dataset, {**dataset, "name": "budget", "options": {"pages_as": "text", "text_fill": "budget"}}, images]
    (own / "tiny.yaml").write_text(yaml.safe_dump({"datasets": both}))
    assert build(own, tmp_path / "out").code == 0
    assert len(stand_in.pictures) == PAGE_COUNT


def test_a_plan_reads_no_page_and_says_how_many_a_build_reads(own: Path, stand_in: StandIn) -> None:
    ran = command("plan", own / "tiny.yaml")
    assert f"OCR reads {PAGE_COUNT} pages in the build" in ran.out
    assert (ran.code, stand_in.pictures) == (0, [])


@pytest.mark.parametrize("setting", ["all", "true"])
def test_a_missing_program_is_named_before_any_work(
    setting: str, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    facts = ("pages.ocr: `tesseract` is not installed", "apt-get install tesseract-ocr", "leave pages.ocr out")
    with programs_of(tmp_path / "empty", monkeypatch, alone=True):
        refused(build(own, tmp_path / "out", "--set", f"pages.ocr={setting}"), *facts)
        assert not (tmp_path / "out").exists()
        planned = command("plan", own / "tiny.yaml", "--set", f"pages.ocr={setting}")
        assert (planned.code, planned.out.startswith(f"mmlongdoc: cannot be built: {facts[0]}")) == (1, True)


@pytest.mark.parametrize(
    ("program", "facts"),
    [
        (None, ("`tesseract` has no data for the language 'eng'", "apt-get install tesseract-ocr-eng")),
        ("echo 'cannot open libtesseract.so' >&2\nexit 127\n", ("--version` fails (cannot open libtesseract.so)",)),
    ],
    ids=["without English", "broken"],
)
def test_a_program_that_cannot_be_used_is_named_before_any_work(
    program: str | None, facts: tuple[str, ...], own: Path, tmp_path: Path, stand_in: StandIn
) -> None:
    stand_in.languages("deu", "osd")
    if program:
        (stand_in.folder / "tesseract").write_text(f"#!/bin/sh\n{program}")
    refused(build(own, tmp_path / "out"), "error: pages.ocr: ", *facts)
    assert not (tmp_path / "out").exists()


def test_a_task_without_page_texts_needs_no_program(
    sample: Callable[[str], Sources], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {name: str(path) for name, path in sample("visual_haystacks").items()}
    dataset = {"name": "vh", "builder": "visual_haystack", "reader": "visual_haystacks", "lengths": ["8K"]}
    (tmp_path / "vh.yaml").write_text(
        yaml.safe_dump({"datasets": [{**dataset, "source": source, "pages": {"ocr": "all"}, "sample": {"n": 1}}]})
    )
    (tmp_path / "empty").mkdir()
    with programs_of(tmp_path / "empty", monkeypatch, alone=True):
        planned = command("plan", tmp_path / "vh.yaml")
    assert planned.code == 0, planned


def test_a_share_needs_no_ocr_of_its_own(source: Path, finished: Path, tmp_path: Path, stand_in: StandIn) -> None:
    words = ("--set", "pages.ocr=true", "--stage")
    assert build(source, tmp_path / "out", *words, "prepare").code == 0
    (stand_in.folder / "tesseract").unlink()
    forget()
    assert build(source, tmp_path / "out", *words, "records").code == 0
    refused(build(source, tmp_path / "out", "--stage", "records"), "differs (pages.ocr: tesseract 9.8.7 → false)")


def test_a_wrong_setting_is_answered_with_the_right_ones(own: Path, tmp_path: Path) -> None:
    ran = build(own, tmp_path / "out", "--set", "pages.ocr=every")
    assert ran.code == 2
    assert all(fact in ran.err for fact in ("pages.ocr: ", "boolean", "'all'", "(found 'every')")), ran.err

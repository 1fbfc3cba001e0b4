"""`pages.ocr: all`: OCR reads every page, once, with an engine that the lock names."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest
import yaml
from hostile_pdfs import blanks, groups
from ocr_programs import StandIn, forget, programs_of, require_tesseract
from tiny import PAGES, build, command, environment, hashes, lock, mmlongbench, records, rejects, write_manifest

from mmlongbench.building.ocr_texts import check_engine, needs_ocr
from mmlongbench.documents import ocr
from mmlongbench.errors import BuildError
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.manifest.model import DatasetSpec

pytestmark = pytest.mark.slow

PAGE_COUNT = sum(PAGES.values())
HIDDEN = "A hidden layer about bananas, which nobody sees on this page of the document."
SEEN = "The harbour master counted seven grey seals."
SCANNED = "The tide tables were printed in Whitby."
DRAWN = "Plain words of a page without a picture."


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    found = StandIn(tmp_path / "bin")
    with programs_of(found.folder, monkeypatch):
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
    require_tesseract()
    forget()
    ran = [command("build", seals, "--out", tmp_path / name, "--workers", name) for name in ("1", "2")]
    assert [each.code for each in ran] == [0, 0], ran
    first, second = records(tmp_path / "1", "2K", "text_own")
    texts = dict(zip(first["page_list"], first["page_text_list"], strict=True))
    assert [" ".join(texts[f"own-documents/harbour/harbour_page{number}.jpg"].split()) for number in range(4)] == [
        SEEN,
        SCANNED,
        "",
        DRAWN,
    ]
    assert "Dear captain, the lamp is lit." in second["page_text_list"]
    assert hashes(tmp_path / "1") == hashes(tmp_path / "2")
    assert command("audit", tmp_path / "1").code == 0


def test_the_lock_names_what_decides_the_text(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    assert build(own, tmp_path / "out").code == 0
    assert lock(tmp_path / "out")["manifest"][0]["pages"] == {
        "dpi": 144,
        "quality": 90,
        "ocr": {
            "pages": "all",
            "engine": "tesseract 9.8.7",
            "library": "leptonica-6.5.4",
            "language": {"name": "eng", "sha256": ocr.ocr_engine().language["sha256"]},
            "options": "--oem 1 --psm 3 -c page_separator=",
            "dpi": 288,
            "most_pixels": 20_000_000,
        },
    }
    assert len(ocr.ocr_engine().language["sha256"]) == 64
    assert len(stand_in.pictures) == PAGE_COUNT
    (stand_in.folder / "eng.traineddata").write_text("other data")
    forget()
    differs = build(own, tmp_path / "out")
    assert (differs.code, "differs (pages.ocr.language: the file changed)" in differs.err) == (2, True)


@pytest.mark.parametrize(("setting", "recorded"), [("false", False), ("true", "tesseract 9.8.7")])
def test_the_lock_of_other_settings_stays(
    setting: str, recorded: object, own: Path, tmp_path: Path, stand_in: StandIn
) -> None:
    assert build(own, tmp_path / "out", "--set", f"pages.ocr={setting}").code == 0
    assert lock(tmp_path / "out")["manifest"][0]["pages"] == {"dpi": 144, "quality": 90, "ocr": recorded}
    assert bool(stand_in.pictures) == (setting == "true")


def test_a_killed_build_reads_no_page_twice(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    """It is killed in the middle of a document, and a line that it wrote is cut off."""
    stand_in.after(7, "kill -9 $PPID; exit 1")
    words = ("build", own / "tiny.yaml", "--out", tmp_path / "out", "--workers", 1)
    assert mmlongbench(*words, env=environment()).code != 0
    before = stand_in.pictures
    assert len(before) == 7
    stand_in.mend()
    kept = sorted((tmp_path / "out/.build/ocr").glob("*.jsonl"))
    assert kept
    with kept[0].open("ab") as file:
        file.write(b'{"page":1,"te')
    assert mmlongbench(*words, env=environment()).code == 0
    assert len(stand_in.pictures) == PAGE_COUNT
    assert build(own, tmp_path / "other").code == 0
    assert hashes(tmp_path / "out") == hashes(tmp_path / "other")
    assert sorted(stand_in.pictures[:PAGE_COUNT]) == sorted(stand_in.pictures[PAGE_COUNT:])


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("exit 3", "tesseract failed (exit 3); run the command again to continue, or leave the document out: exclude"),
        ("echo 'no memory' >&2; exit 1", "tesseract failed (no memory); run the command again"),
        ("kill -9 $$", "tesseract failed (ended by SIGKILL); run the command again"),
        ("exec sleep 60", "tesseract takes longer than 3 s; exclude it"),
    ],
)
def test_a_page_that_cannot_be_read_ends_the_build_by_name(
    does: str, said: str, own: Path, tmp_path: Path, stand_in: StandIn
) -> None:
    stand_in.after(3, does)
    late = ("--set", "limits.seconds_a_page=3") if "sleep" in does else ()
    ran = build(own, tmp_path / "out", *late)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"error: dataset 'mmlongdoc', document 'birch': birch.pdf, page 1: {said}" in ran.err
    stand_in.mend()
    assert build(own, tmp_path / "out").code == 0
    assert len(stand_in.pictures) == PAGE_COUNT


@pytest.mark.parametrize("limit", ["pages=4", "pixels=200000"])
def test_a_document_above_a_limit_is_refused_before_ocr(
    limit: str, own: Path, tmp_path: Path, stand_in: StandIn
) -> None:
    (own / "documents/oak.pdf").write_bytes(blanks(5) if limit == "pages=4" else groups(3))
    pages = PAGE_COUNT - PAGES["dogwood"] if limit == "pages=4" else PAGE_COUNT
    assert build(own, tmp_path / "out", "--set", f"limits.{limit}").code == 0
    found = {each["file"]: each["reason"] for each in rejects(tmp_path / "out")}
    assert found["oak.pdf"] == ("pages-of-a-document" if limit == "pages=4" else "size-of-a-page")
    assert len(stand_in.pictures) == pages


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
    assert "cedar.pdf, page 2: tesseract failed (exit 3)" in build(own, out).err
    stand_in.mend()
    assert hashes(out).items() >= before.items()
    assert build(own, out).code == 0
    assert len(stand_in.pictures) == 2 * PAGE_COUNT
    assert build(own, tmp_path / "other").code == 0
    assert hashes(out) == hashes(tmp_path / "other")


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
    assert f"OCR reads {PAGE_COUNT} pages in the build, in seconds each" in ran.out
    assert (ran.code, stand_in.pictures) == (0, [])


@pytest.mark.parametrize("setting", ["all", "true"])
def test_a_missing_program_is_named_before_any_work(
    setting: str, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    said = (
        "pages.ocr: `tesseract` is not installed; install it (on Debian: `apt-get install tesseract-ocr`), or leave "
        "pages.ocr out\n"
    )
    with programs_of(tmp_path / "empty", monkeypatch, alone=True):
        ran = build(own, tmp_path / "out", "--set", f"pages.ocr={setting}")
        assert (ran.code, ran.err) == (2, f"error: {said}")
        assert not (tmp_path / "out").exists()
        planned = command("plan", own / "tiny.yaml", "--set", f"pages.ocr={setting}")
        assert (planned.code, planned.out) == (1, f"mmlongdoc: cannot be built: {said}")


def test_missing_data_for_english_are_named_before_any_work(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    stand_in.languages("deu", "osd")
    ran = build(own, tmp_path / "out")
    assert (ran.code, ran.err) == (
        2,
        "error: pages.ocr: `tesseract` has no data for the language 'eng'; install them (on Debian: `apt-get install "
        "tesseract-ocr-eng`), or leave pages.ocr out\n",
    )
    assert not (tmp_path / "out").exists()


def test_a_broken_program_is_named_before_any_work(own: Path, tmp_path: Path, stand_in: StandIn) -> None:
    (stand_in.folder / "tesseract").write_text("#!/bin/sh\necho 'cannot open libtesseract.so' >&2\nexit 127\n")
    ran = build(own, tmp_path / "out")
    assert (ran.code, ran.err) == (
        2,
        "error: pages.ocr: `tesseract --version` fails (cannot open libtesseract.so); repair it, or leave out "
        "pages.ocr\n",
    )
    assert not (tmp_path / "out").exists()


def test_a_task_without_page_texts_needs_no_program() -> None:
    spec = {"name": "x", "reader": "own_pages", "source": "sample", "pages": {"ocr": "all"}}
    text = DatasetSpec.model_validate({**spec, "builder": "docvqa", "reader": "own_documents"})
    needles = DatasetSpec.model_validate({**spec, "builder": "visual_haystack", "reader": "visual_haystacks"})
    assert (needs_ocr(text), needs_ocr(needles)) == (True, False)


def test_another_engine_than_the_planned_one_is_refused(stand_in: StandIn) -> None:
    planned = ocr.ocr_engine()
    check_engine(planned)
    with pytest.raises(BuildError, match=r"planned with tesseract 4\.1, leptonica-6\.5\.4; here it is tesseract 9"):
        check_engine(replace(planned, engine="tesseract 4.1"))
    with pytest.raises(BuildError, match="here its data for English differ; install the same on all machines"):
        check_engine(replace(planned, language={"name": "eng", "sha256": "0"}))


def test_a_wrong_setting_is_answered_with_the_right_ones(own: Path, tmp_path: Path) -> None:
    ran = build(own, tmp_path / "out", "--set", "pages.ocr=every")
    assert "pages.ocr: Input should be a valid boolean or Input should be 'all' (found 'every')" in ran.err
    assert load_manifest(own / "tiny.yaml").datasets[0].pages.ocr == "all"

"""Summaries as they are released: no summary page leaks, pages are cut evenly, text for images, unusable documents."""

import json
import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from hub_forms import json_lines_of
from ocr_programs import programs_of
from one_dataset import OneDataset, built, ran, write_lines
from samples import Sources

import mmlongbench as mm

READERS = {"govreport": ("gov", "report"), "multi_lexsum": ("lexsum", "case")}
TEXT = {"pages_as": "text"}


def dataset(reader: str, source: Sources, **more: Any) -> dict[str, Any]:
    name, kind = READERS[reader]
    options = {"kind": kind, **more.pop("options", {})}
    common = {"name": name, "builder": "summary", "reader": reader, "source": source, "options": options}
    return {**common, "reference_length": "16K", **more}


def copied(source: Sources, folder: Path) -> Sources:
    """A copy of a source whose files and folders are all in one folder, to be changed."""
    (drawn,) = {path.parent for path in source.values()}
    shutil.copytree(drawn, folder)
    return {name: folder / path.name for name, path in source.items()}


@pytest.fixture
def reports(sample: Callable[[str], Sources], tmp_path: Path) -> Sources:
    return copied(sample("govreport"), tmp_path / "reports")


@pytest.fixture
def cases(sample: Callable[[str], Sources], tmp_path: Path) -> Sources:
    return copied(sample("multi_lexsum"), tmp_path / "cases")


def only(reports: Sources, *names: str) -> None:
    """Leave these reports and the one that is no report of GAO."""
    for path in (reports["reports"] / "gao").iterdir():
        if path.stem not in names:
            path.unlink()


def pdf(path: Path, texts: Sequence[str], side: float = 600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pymupdf.open() as document:
        for text in texts:
            document.new_page(width=side, height=side).insert_textbox((40, 40, side - 40, side - 40), text)
        document.save(path, no_new_id=True)


def page_number(path: str) -> int:
    return int(path.split("page")[1].split(".")[0])


# --- reports ----------------------------------------------------------------------------------------------------------


def test_removed_pages_are_in_no_record_and_page_numbers_stay_the_original_ones(
    sample: Callable[[str], Sources], families: Path
) -> None:
    source = sample("govreport")
    for example in mm.open_release(families).examples("gov", "16K"):
        record = example.record
        name = record["source_id"].lower()
        assert (record["id"], record["source_id"]) == (f"gov_report_{name}", name.upper())
        given = json.loads((source["reports"] / f"gao/{name}.json").read_bytes())
        told = [(part["section_title"], part["paragraphs"]) for part in record["summary"]]
        assert told == [(part["section_title"], part["paragraphs"]) for part in given["highlight"]]
        removed = {int(part.split(":")[0]) for part in record["removed_pages"].split("; ")}
        shown = [page_number(path) for path in record["image_list"]]
        assert removed
        assert shown == [page for page in range(max(shown) + 1) if page not in removed]
        with pymupdf.open(source["documents"] / f"{name}.pdf") as document:
            assert record["documents"] == [{"doc": name, "pages": len(document) - len(removed), "shown": len(shown)}]
            text = " ".join(" ".join(document[page].get_text() for page in shown).split())
        sentences = [each for part in given["highlight"][:2] for one in part["paragraphs"] for each in one.split(". ")]
        assert sum(sentence in text for sentence in sentences) <= 0.2 * len(sentences)
        folder = families / f"mmlb_image/gov-report/bg_pdf_img/{name}"
        released = {page_number(path.name) for path in folder.iterdir()}
        assert released == set(shown)


@pytest.mark.parametrize("name", ["gov", "lexsum"])
def test_a_public_loader_makes_the_same_prompt(families: Path, name: str) -> None:
    """As the public loader does: the folder's name cut to 15 characters, the number after the first `page`."""
    kind = dict(READERS.values())[name]
    for example in mm.open_release(families).examples(name, "8K"):
        pages = [path.split("/")[-1].split("page") for path in example.record["image_list"]]
        shown = [f"Document {name[:-1][:15]} (page {number.split('.')[0]}): <image>" for name, number in pages]
        said = example.prompt.rendered()
        assert said.endswith("\n\n".join(shown) + f"\n\nNow please summarize the {kind}.\nSummary:")
        assert said.count("<image>") == len(shown)


BODY = "The agency has looked at every ledger of the harbour. " * 12


def encrypted(path: Path) -> None:
    with pymupdf.open(path) as document:
        data = document.tobytes(encryption=pymupdf.mupdf.PDF_ENCRYPT_AES_256, owner_pw="a", user_pw="b")
    path.write_bytes(data)


def without_pages(path: Path) -> None:
    catalog = b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
    path.write_bytes(b"%PDF-1.4\n" + catalog + b"trailer<</Root 1 0 R/Size 3>>\n%%EOF\n")


BROKEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "missing": ("missing-document", Path.unlink),
    "encrypted": ("encrypted-document", encrypted),
    "truncated": ("broken-document", lambda path: path.write_bytes(path.read_bytes()[:300])),
    "nothing": ("broken-document", lambda path: path.write_bytes(b"%PDF-1.4 nothing")),
    "scanned": ("document-without-text", lambda path: pdf(path, [path.stem] * 14)),
    "no-summary": ("no-summary-page", lambda path: pdf(path, [BODY] * 14)),
    "zero-pages": ("document-without-pages", without_pages),
}


def test_reports_that_cannot_be_used_are_rejected_and_the_others_are_built(reports: Sources, tmp_path: Path) -> None:
    only(reports, "gao-18-21", "gao-19-8")
    gao = reports["reports"] / "gao"
    raw = json.loads((gao / "gao-18-21.json").read_text())
    for name, (_, spoil) in BROKEN.items():
        (gao / f"{name}.json").write_text(json.dumps({**raw, "id": name}))
        path = reports["documents"] / f"{name}.pdf"
        shutil.copy(reports["documents"] / "gao-18-21.pdf", path)
        spoil(path)
    release = built(tmp_path / "out", dataset("govreport", reports))
    reasons = {f"gov_report_{name}": reason for name, (reason, _) in BROKEN.items()}
    rejects = {row["id"]: row for row in release.rejects()}
    assert {id: row["reason"] for id, row in rejects.items() if id in reasons} == reasons
    assert all(row["expected"] and row["found"] for id, row in rejects.items() if id in reasons)
    assert release.questions["kept"] == 2


def test_a_first_page_above_the_budget_is_named_with_its_length(reports: Sources, tmp_path: Path) -> None:
    only(reports, "gao-18-21")
    pdf(reports["documents"] / "gao-18-21.pdf", [BODY] * 4, side=4000)
    options = {"without_summary_page": "keep"}
    none = ran(tmp_path / "out", dataset("govreport", reports, options=options, reference_length="256K"))
    assert none.code == 1
    (reject,) = [
        row for row in OneDataset(tmp_path / "out", "gov", "").rejects() if row["id"] == "gov_report_gao-18-21"
    ]
    assert reject["reason"] == "above-admission-length"
    assert "8K" in reject["expected"]


TESSERACT = """#!/bin/sh
cd "$(dirname "$0")" || exit 3
if [ "$1" = --version ]; then echo "tesseract 0.0"; exit 0; fi
cat > /dev/null
number=$(cat count)
echo $((number + 1)) > count
cat "$number.txt"
"""
"""Gives its files 0.txt, 1.txt and so on in turn, and fails where there is none."""


@pytest.mark.parametrize("pages", [14, 9])
def test_a_scanned_report_is_read_and_its_summary_page_removed(
    pages: int, reports: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer texts than pages, the program fails at one: the report is refused, and no other."""
    pdf(reports["documents"] / "gao-18-21.pdf", ["GAO-18-21"] * 14)
    raw = json.loads((reports["reports"] / "gao/gao-18-21.json").read_text())
    told = "\n".join(text for part in raw["highlight"] for text in part["paragraphs"])
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tesseract").write_text(TESSERACT)
    (folder / "tesseract").chmod(0o755)
    (folder / "count").write_text("0")
    for page in range(pages):
        (folder / f"{page}.txt").write_text(f"What GAO Found\n{told}" if page == 2 else BODY)
    only(reports, "gao-18-21", "gao-18-107")
    with programs_of(folder, monkeypatch):
        release = built(tmp_path / "out", dataset("govreport", reports, pages={"ocr": True}, lengths=["16K"]))
    records = {record["id"]: record for record in release.records(16)}
    if pages == 14:
        found = records["gov_report_gao-18-21"]
        assert found["removed_pages"] == "2: heading 'What GAO Found'"
        assert not [path for path in found["image_list"] if path.endswith("page2.jpg")]
    else:
        (reject,) = [row for row in release.rejects() if row["id"] == "gov_report_gao-18-21"]
        assert (reject["reason"], reject["place"]) == ("unrecognised-page", "page 10")
    assert len(records) == (2 if pages == 14 else 1)


# --- cases ------------------------------------------------------------------------------------------------------------


def test_documents_are_cut_evenly_and_the_shorter_context_is_the_start_of_each(cases: Sources, tmp_path: Path) -> None:
    ids = ["900", "80", "7"]  # neither as numbers nor as texts in ascending order
    for id, pages in zip(ids, (5, 1, 6), strict=True):
        pdf(cases["documents"] / f"17000/{id}.pdf", [f"{id}, {page}. {BODY}" for page in range(pages)])
    rows = [*json_lines_of(cases["cases"]), {"case_id": 17000, "case_documents": ids, "summary/short": "Settled."}]
    write_lines(cases["cases"], rows)
    given = {str(row["case_id"]): row["case_documents"] for row in rows}
    release = built(tmp_path / "out", dataset("multi_lexsum", cases, lengths=["8K", "16K"]))
    long, short = ({record["id"]: record for record in release.records(k)} for k in (16, 8))
    assert long.keys() == short.keys() == given.keys()
    for id, record in long.items():
        assert set(short[id]["image_list"]) < set(record["image_list"])
        parts = record["documents"]
        assert [part["doc"] for part in parts] == given[id]
        whole, taken = (sum(part[key] for part in parts) for key in ("pages", "shown"))
        assert all(abs(part["shown"] - part["pages"] * taken / whole) <= 1 for part in parts)
        order = [path.split("/")[1] for path in record["image_list"]]
        assert order == sorted(order, key=given[id].index)
        for before, after in pairwise(record["image_list"]):
            if before.split("/")[1] == after.split("/")[1]:
                assert page_number(after) == page_number(before) + 1
    assert any(part["shown"] == 0 for record in short.values() for part in record["documents"])


def test_the_same_examples_are_at_every_length_and_too_long_ones_in_none(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    more = {"reference_length": "36K", "lengths": ["8K", "32K"]}
    release = built(tmp_path / "out", dataset("multi_lexsum", sample("multi_lexsum"), **more))
    assert (release.questions["kept"], release.questions["rejected"]) == (2, {"full-prompt-out-of-span": 1})
    assert all(cell["examples"] == 2 for cell in release.lock["cells"].values())


def test_documents_that_cannot_be_used_or_told_apart_reject_their_case_whole(cases: Sources, tmp_path: Path) -> None:
    folders = {name: cases["documents"] / name for name in ("12041", "13577", "16008")}
    first, second, third = (sorted(folder.glob("*.pdf"))[0] for folder in folders.values())
    (cases["documents"] / "again").mkdir()
    for path, data in ((third, third.read_bytes()), (first, second.read_bytes())):
        (cases["documents"] / "again" / path.name).write_bytes(data)  # a copy, and another document
    encrypted(second)
    release = built(tmp_path / "out", dataset("multi_lexsum", cases))
    assert {row["id"]: row["reason"] for row in release.rejects()} == {
        "12041": "two-documents-of-one-name",
        "13577": "encrypted-document",
    }
    assert [record["id"] for record in release.records()] == ["16008"]
    second.unlink()
    (cases["documents"] / "again" / first.name).unlink()
    third.rename(third.with_name("a page.pdf"))
    shutil.rmtree(cases["documents"] / "again")
    cases["cases"].write_text(cases["cases"].read_text().replace(third.stem, "a page"))
    again = built(tmp_path / "again", dataset("multi_lexsum", cases))
    assert {row["id"]: row["reason"] for row in again.rejects()} == {"13577": "missing-document"}
    names = [Path(path).name for path in again.records()[-1]["image_list"]]
    assert [name.split("page")[1] for name in names] == [f"{number}.jpg" for number in range(len(names))]


def test_a_case_without_the_asked_summary_and_a_kind_that_the_reader_does_not_give_are_named(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    asked = dataset("multi_lexsum", sample("multi_lexsum"), options={"reference": "tiny"})
    assert ran(tmp_path / "tiny", asked).code == 1
    rejects = OneDataset(tmp_path / "tiny", "lexsum", "").rejects()
    assert [(row["reason"], row["found"]) for row in rejects] == [("no-such-summary", "short, long")] * 3
    for reader, kind, gives in (("govreport", "case", "report"), ("multi_lexsum", "report", "case")):
        refused = ran(tmp_path / reader, dataset(reader, sample(reader), options={"kind": kind}))
        assert refused.code != 0
        facts = (f"options.kind is '{kind}'", f"the reader gives {gives}s", f"set options.kind to {gives}")
        assert all(fact in refused.err for fact in facts)


# --- pages as text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
def test_pages_as_text_stand_in_place_of_the_very_pages_that_images_have_room_for(
    reader: str, sample: Callable[[str], Sources], families: Path, tmp_path: Path
) -> None:
    name, kind = READERS[reader]
    text = dataset(reader, sample(reader), options=TEXT, lengths=["8K", "16K"])
    release = built(tmp_path / "texts", {**text, "name": f"text_{name}", "drawn_as": name}, "--limit", 2)
    images, texts = mm.open_release(families), mm.open_release(release.folder)
    for length in ("8K", "16K"):
        pairs = zip(images.examples(name, length), texts.examples(f"text_{name}", length), strict=True)
        for image, example in ((image.record, example) for image, example in pairs):
            record = example.record
            same = image.keys() - {"length", "tokens"}
            assert "page_text_list" not in image
            assert {key: image[key] for key in same} == {key: record[key] for key in same}
            assert (record["tokens"]["image"], example.prompt.images) == (0, ())
            pages = zip(record["image_list"], record["page_text_list"], strict=True)
            shown = "\n\n".join(
                f"Document {path.split('/')[-2][:15]} (page {page_number(path)}): \n{page}" for path, page in pages
            )
            assert example.prompt.text.endswith(f"{shown}\n\nNow please summarize the {kind}.\nSummary:")
            assert all(len(page) > 40 and page == page.strip() for page in record["page_text_list"])
    assert not any(line.problems for line in mm.audit(release.folder))


def test_pages_as_text_can_fill_the_budget_and_a_page_without_text_is_named(cases: Sources, tmp_path: Path) -> None:
    one = next((cases["documents"] / "16008").glob("*.pdf"))
    with pymupdf.open(one) as document:
        document[1].add_redact_annot(document[1].rect)
        document[1].apply_redactions()
        data = document.tobytes()
    one.write_bytes(data)
    options = {**TEXT, "text_fill": "budget"}
    texts = built(
        tmp_path / "out", dataset("multi_lexsum", cases, options=options, reference_length="8K", lengths=["4K"])
    )
    images = built(tmp_path / "images", dataset("multi_lexsum", cases, lengths=["4K"]))
    assert texts.questions["kept"] == 3
    for image, text in zip(images.records(4), texts.records(4), strict=True):
        assert set(image["image_list"]) < set(text["image_list"])
        assert 3 * 1024 < text["length"] <= 4 * 1024 - 520
    named = {record["id"]: record["pages_without_text"] for record in texts.records(4)}
    assert named == {"12041": "", "13577": "", "16008": "1"}
    assert not any(line.problems for line in mm.audit(texts.folder))

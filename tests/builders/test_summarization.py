"""Summarization: summary pages are found in every layout, none leaks, pages are cut evenly, bad input is named."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pymupdf
import pytest

import mmlongbench.task as mt
from builders.samples.summarization.reports import (
    SUBJECTS,
    Layout,
    broken_over_lines,
    draw_case_document,
    draw_report,
    layouts,
    reworded,
    summary_of,
)
from builders.samples.summarization.sources import draw_cases, draw_reports
from builders.summarization import GovReport, MultiLexSum, Summary, SummaryOptions
from builders.summarization.highlights import find_highlights, grams, heading_in
from builders.summarization.removal import UNCHECKED, removed_pages
from builders.summarization.rows import Kind, Section, Summarised
from builders.summarization.templates import INSTRUCTIONS
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.documents.ocr import ocr_version
from mmlongbench.documents.pdf_reader import end_readers
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import DatasetSpec, Manifest
from mmlongbench.release.audit import audit_release

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)
DRAWS = mt.Draws(("tests of summaries",))
LAYOUTS = dict(layouts())
WITHOUT_HEADINGS = [name for name, layout in LAYOUTS.items() if layout.look.manner == "none"]
WITH_HEADINGS = [name for name in LAYOUTS if name not in WITHOUT_HEADINGS]
HEADING = re.compile("heading '(Why GAO Did This Study|What GAO Recommends)'")
OVERLAP = re.compile(r"\d+% of the summary")


def built(out: Path, source: Any, reader: str = "govreport", **more: Any) -> dict[str, Any]:
    """What the lock says of the dataset."""
    name, kind = ("gov", "report") if reader == "govreport" else ("lexsum", "case")
    name = more.pop("name", name)
    about = {"name": name, "builder": "summary", "reader": reader, "source": source}
    options = {"kind": kind, **more.pop("options", {})}
    spec = DatasetSpec.model_validate(
        {**about, "options": options, "lengths": (8 * K, 16 * K), "reference_length": 16 * K, **more}
    )
    lock: dict[str, Any] = build(Manifest(datasets=(spec,)), out, LocalExecutor(1, QUIET)).lock.public()["datasets"][
        name
    ]
    return lock


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def rejects(out: Path) -> dict[str, dict[str, Any]]:
    return {reject["id"]: reject for reject in lines(out / "rejects.jsonl")}


@pytest.fixture(scope="module")
def drawn_reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sample's reports; not to be changed."""
    return draw_reports(tmp_path_factory.mktemp("drawn") / "reports")


@pytest.fixture(scope="module")
def drawn_cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sample's cases; not to be changed."""
    return draw_cases(tmp_path_factory.mktemp("drawn") / "cases")


@pytest.fixture
def reports(drawn_reports: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """The sample's reports, to be changed."""
    return copied(drawn_reports, tmp_path / "reports")


@pytest.fixture
def cases(drawn_cases: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """The sample's cases, to be changed."""
    return copied(drawn_cases, tmp_path / "cases")


SHORT = (8 * K,)
"""One length, for tests of what is the same at every length."""


def copied(source: dict[str, Path], folder: Path) -> dict[str, Path]:
    """A copy of a source whose files and folders are all in one folder."""
    (drawn,) = {path.parent for path in source.values()}
    shutil.copytree(drawn, folder)
    return {name: folder / path.name for name, path in source.items()}


@dataclass(frozen=True)
class Release:
    """A release that is built once, and what its lock says of the dataset; not to be changed."""

    folder: Path
    lock: dict[str, Any]


@pytest.fixture(scope="module")
def of_reports(drawn_reports: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("built") / "gov"
    return Release(folder, built(folder, drawn_reports))


@pytest.fixture(scope="module")
def of_cases(drawn_cases: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("built") / "lexsum"
    return Release(folder, built(folder, drawn_cases, "multi_lexsum"))


# --- finding the summary --------------------------------------------------------------------------------------------


@cache
def drawn(name: str) -> tuple[Layout, tuple[str, ...], tuple[Section, ...]]:
    """The layout of that name, the texts of a report's pages in it, the reference."""
    layout = LAYOUTS[name]
    data, summary = draw_report("gao-18-107", SUBJECTS[2], 8, layout, DRAWS.at(name))
    return layout, tuple(page.get_text() for page in pymupdf.open(stream=data, filetype="pdf").pages()), summary


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_summary_pages_of_every_layout_are_found_and_no_other(name: str) -> None:
    layout, texts, summary = drawn(name)
    found = find_highlights(texts, summary)
    assert tuple(found.removed) == layout.pages
    sign = OVERLAP if layout.look.manner == "none" else HEADING
    assert all(sign.fullmatch(why) for why in found.removed.values())
    if layout.pages:
        assert not found.leaks


@pytest.mark.parametrize("name", WITH_HEADINGS)
def test_a_summary_page_is_found_by_its_heading_where_the_reference_has_other_words(name: str) -> None:
    layout, texts, summary = drawn(name)
    reference = reworded(summary)
    told = frozenset[str]().union(*(grams("\n".join(part.paragraphs)) for part in reference[:2]))
    assert max(len(grams(text) & told) / len(told) for text in texts) < 0.1
    found = find_highlights(texts, reference)
    assert tuple(found.removed) == layout.pages
    assert all(HEADING.fullmatch(why) for why in found.removed.values())


@pytest.mark.parametrize("name", WITHOUT_HEADINGS)
def test_a_summary_page_without_headings_is_found_where_its_words_are_broken_over_lines(name: str) -> None:
    layout, texts, summary = drawn(name)
    broken_texts = [broken_over_lines(text) for text in texts]
    assert all(text.count("-\n") > 10 for number, text in enumerate(broken_texts) if number in layout.pages)
    found = find_highlights(broken_texts, summary)
    assert tuple(found.removed) == layout.pages
    assert all(OVERLAP.fullmatch(why) for why in found.removed.values())


FILLER = "The office keeps a ledger of every boat that passes the light at the end of the mole."


@pytest.mark.parametrize("heading", ["", "What GAO Found\n"])
@pytest.mark.parametrize("parts", [2, 3, 5, 6])
@pytest.mark.parametrize("first", [0, 1])
def test_a_summary_that_is_spread_over_the_first_pages_is_found_whole(heading: str, parts: int, first: int) -> None:
    summary = summary_of(SUBJECTS[0], DRAWS)
    words = " ".join(text for section in summary for text in section.paragraphs).split()
    size = -(-len(words) // parts)
    told = [" ".join(words[start : start + size]) for start in range(0, len(words), size)]
    assert len(told) == parts
    texts = [*[FILLER] * first, f"{heading}{told[0]}", *told[1:], *[FILLER] * 8]
    found = find_highlights(texts, summary)
    assert list(found.removed) == list(range(first, first + parts))
    assert not found.leaks


def test_a_summary_that_begins_on_the_first_pages_is_followed_to_its_end() -> None:
    summary = summary_of(SUBJECTS[0], DRAWS)
    words = " ".join(text for section in summary for text in section.paragraphs).split()
    told = [" ".join(words[start : start + 40]) for start in range(0, len(words), 40)]
    assert len(told) > 4
    texts = [FILLER, f"What GAO Found\n{told[0]}", *told[1:], *[FILLER] * 8]
    assert list(find_highlights(texts, summary, first_pages=2).removed) == list(range(1, len(told) + 1))


def test_pages_that_repeat_a_little_are_no_summary_where_they_are_apart() -> None:
    summary = summary_of(SUBJECTS[0], DRAWS)
    words = " ".join(text for section in summary[:2] for text in section.paragraphs).split()
    part = len(words) // 8
    texts = [FILLER, " ".join(words[:part]), FILLER, " ".join(words[-part:]), *[FILLER] * 8]
    assert not find_highlights(texts, summary).removed
    near = [FILLER, texts[1], texts[3], *[FILLER] * 9]
    assert list(find_highlights(near, summary).removed) == [1, 2]
    assert not find_highlights([*[FILLER] * 8, *near], summary).removed, "beyond the first pages"


def test_a_page_that_repeats_the_summary_leaks_unless_it_repeats_recommendations() -> None:
    summary = summary_of(SUBJECTS[0], DRAWS)
    told = "\n".join(text for section in summary for text in section.paragraphs)
    recommended = "\n".join(summary[2].paragraphs)
    texts = [FILLER, f"What GAO Found\n{told}", *[FILLER] * 8, told, f"Recommendations\n{recommended}"]
    found = find_highlights(texts, summary)
    assert list(found.removed) == [1]
    assert list(found.leaks) == [10]
    assert found.leaks[10] == 1


def test_a_table_of_contents_is_no_summary_page() -> None:
    contents = "Contents\nWhat GAO Found ......... 1\nWhy GAO Did This Study\n3\nAppendix I ........ 20"
    assert not find_highlights([contents], summary_of(SUBJECTS[0], DRAWS)).removed


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("What GAO Found", "What GAO Found"),
        ("WHY GAO DID THIS STUDY", "Why GAO Did This Study"),
        ("W HAT G AO R ECOMMENDS", "What GAO Recommends"),
        ("Why GAO Did\nThis Study", "Why GAO Did This Study"),
        ("What GAO Found The agency paid twice.", "What GAO Found"),
        ("This report repeats what GAO found in 2009.", ""),
        ("What GAO Found .... 3", ""),
    ],
)
def test_a_heading_stands_on_lines_of_its_own(text: str, heading: str) -> None:
    assert heading_in(f"Highlights\n{text}") == heading


def test_words_are_compared_without_hyphens_ligatures_and_case() -> None:
    assert grams("The o\ufb03ce re\u00ad\nquired long-\nterm TESTS") == grams("the office required longterm tests")


def spread_texts() -> tuple[list[str], tuple[Section, ...]]:
    """The texts of a report whose summary is on page 1, and the reference."""
    summary = summary_of(SUBJECTS[0], DRAWS)
    told = "\n".join(text for section in summary for text in section.paragraphs)
    return [FILLER, f"What GAO Found\n{told}", *[FILLER] * 8], summary


def test_a_first_page_that_cannot_be_checked_is_removed() -> None:
    texts, summary = spread_texts()
    texts[3], texts[7] = "GAO-18-107  Page 3", ""
    removed = removed_pages(texts, summary, 0.2, 6, must_be_found=True)
    assert removed == {1: "heading 'What GAO Found'", 3: UNCHECKED}
    assert UNCHECKED == "no text to check"


@pytest.mark.parametrize("must_be_found", [True, False])
def test_a_page_that_cannot_be_checked_is_no_summary_page_that_is_found(must_be_found: bool) -> None:
    texts, summary = spread_texts()
    texts[1] = ""
    if must_be_found:
        with pytest.raises(mt.Rejected, match="no-summary-page"):
            removed_pages(texts, summary, 0.2, 6, must_be_found=True)
    else:
        assert removed_pages(texts, summary, 0.2, 6, must_be_found=False) == {1: UNCHECKED}


@pytest.mark.parametrize("without", [range(6), range(9, 20)])
def test_a_report_without_text_on_the_first_or_on_most_pages_is_refused(without: range) -> None:
    texts, summary = spread_texts()
    texts += [FILLER] * 10
    for number in without:
        texts[number] = ""
    with pytest.raises(mt.Rejected, match=r"document-without-text.*set pages\.ocr, or take the report out"):
        removed_pages(texts, summary, 0.2, 6, must_be_found=True)


# --- the release ----------------------------------------------------------------------------------------------------


def test_removed_pages_are_in_no_record_and_page_numbers_stay_the_original_ones(
    drawn_reports: dict[str, Path], of_reports: Release
) -> None:
    assert of_reports.lock["questions"]["kept"] == 4
    for record in lines(of_reports.folder / "mmlb_data/summ/gov_K16.jsonl"):
        removed = {int(part.split(":")[0]) for part in record["removed_pages"].split("; ")}
        shown = [int(path.split("page")[1].split(".")[0]) for path in record["image_list"]]
        assert removed
        assert shown == [page for page in range(max(shown) + 1) if page not in removed]
        (document,) = record["documents"]
        assert document["shown"] == len(shown)
        assert record["length"] <= 16 * K
        with pymupdf.open(drawn_reports["documents"] / f"{record['source_id'].lower()}.pdf") as pdf:
            assert document["pages"] == len(pdf) - len(removed)
            pages = "\n".join(pdf[page].get_text() for page in shown)
        told = frozenset[str]().union(*(grams("\n".join(part["paragraphs"])) for part in record["summary"][:2]))
        assert len(grams(pages) & told) <= 0.2 * len(told)
    folder = of_reports.folder / "mmlb_image/gov-report/bg_pdf_img/gao-18-107"
    assert (folder / "gao-18-107_page0.jpg").is_file()
    assert not (folder / "gao-18-107_page1.jpg").exists()


def test_documents_are_cut_evenly_and_the_shorter_context_is_the_start_of_each(
    cases: dict[str, Path], tmp_path: Path
) -> None:
    ids = ["900", "80", "7"]  # neither as numbers nor as texts in ascending order
    (cases["documents"] / "17000").mkdir()
    for id, pages in zip(ids, (5, 1, 6), strict=True):
        data = draw_case_document(id, SUBJECTS[0], pages, DRAWS)
        (cases["documents"] / "17000" / f"{id}.pdf").write_bytes(data)
    with cases["cases"].open("a") as file:
        file.write(json.dumps({"case_id": 17000, "case_documents": ids, "summary/short": "Settled."}) + "\n")
    given = {str(raw["case_id"]): raw["case_documents"] for raw in lines(cases["cases"])}
    built(tmp_path / "out", cases, "multi_lexsum")
    long, short = (
        {record["id"]: record for record in lines(tmp_path / f"out/mmlb_data/summ/lexsum_K{k}.jsonl")} for k in (16, 8)
    )
    assert long.keys() == short.keys() == given.keys()
    for id, record in long.items():
        assert set(short[id]["image_list"]) < set(record["image_list"])
        parts = record["documents"]
        assert [part["doc"] for part in parts] == given[id]
        whole = sum(part["pages"] for part in parts)
        taken = sum(part["shown"] for part in parts)
        assert all(abs(part["shown"] - part["pages"] * taken / whole) <= 1 for part in parts)
        order = [path.split("/")[1] for path in record["image_list"]]
        assert order == sorted(order, key=given[id].index)
        for before, after in pairwise(record["image_list"]):
            if before.split("/")[1] == after.split("/")[1]:
                assert int(after.split("page")[1][:-4]) == int(before.split("page")[1][:-4]) + 1
    assert any(part["shown"] == 0 for record in short.values() for part in record["documents"])


def test_the_same_examples_are_at_every_length_and_too_long_ones_in_none(
    cases: dict[str, Path], tmp_path: Path
) -> None:
    lock = built(tmp_path / "out", cases, "multi_lexsum", reference_length=36 * K, lengths=(8 * K, 32 * K))
    kept = lock["questions"]["kept"]
    assert kept == 2
    assert lock["questions"]["rejected"] == {"full-prompt-out-of-span": 1}
    assert all(cell["examples"] == kept for cell in lock["cells"].values())


TEXT = {"pages_as": "text"}


def audited(out: Path) -> None:
    assert not [(audit.file, audit.first) for audit in audit_release(out, QUIET) if audit.problems]


@pytest.mark.parametrize("reader", ["govreport", "multi_lexsum"])
def test_pages_as_text_stand_in_place_of_the_very_pages_that_images_have_room_for(
    request: pytest.FixtureRequest, tmp_path: Path, reader: str
) -> None:
    kind: Kind = "report" if reader == "govreport" else "case"
    name = "gov" if kind == "report" else "lexsum"
    source: dict[str, Path] = request.getfixturevalue(f"drawn_{kind}s")
    of_images: Release = request.getfixturevalue(f"of_{kind}s")
    built(tmp_path / "texts", source, reader, name=f"text_{name}", options=TEXT)
    builder = Summary(name, SummaryOptions(kind=kind))
    for k in (8, 16):
        images = lines(of_images.folder / f"mmlb_data/summ/{name}_K{k}.jsonl")
        texts = lines(tmp_path / f"texts/mmlb_data/summ/text_{name}_K{k}.jsonl")
        assert [record["id"] for record in images] == [record["id"] for record in texts]
        for image, text in zip(images, texts, strict=True):
            assert "page_text_list" not in image
            assert image.keys() - text.keys() == set()
            same = image.keys() - {"length", "tokens"}
            assert {key: image[key] for key in same} == {key: text[key] for key in same}
            assert text["tokens"]["image"] == 0
            prompt = builder.prompt(text)
            assert not prompt.images
            assert (
                prompt.text
                == INSTRUCTIONS[kind]
                + "\n\n".join(
                    f"Document {path.split('/')[-2][:15]} (page {path.split('page')[1][:-4]}): \n{page}"
                    for path, page in zip(text["image_list"], text["page_text_list"], strict=True)
                )
                + f"\n\nNow please summarize the {kind}.\nSummary:"
            )
            assert all(len(page) > 40 and page == page.strip() for page in text["page_text_list"])
    audited(tmp_path / "texts")


def test_pages_as_text_can_fill_the_budget_with_text(cases: dict[str, Path], tmp_path: Path) -> None:
    options = {**TEXT, "text_fill": "budget"}
    lock = built(tmp_path / "out", cases, "multi_lexsum", options=options, reference_length=8 * K, lengths=(4 * K,))
    assert lock["questions"]["kept"] == 3
    built(tmp_path / "images", cases, "multi_lexsum", lengths=(4 * K,))
    images = lines(tmp_path / "images/mmlb_data/summ/lexsum_K4.jsonl")
    texts = lines(tmp_path / "out/mmlb_data/summ/lexsum_K4.jsonl")
    for image, text in zip(images, texts, strict=True):
        assert set(image["image_list"]) < set(text["image_list"])
        assert text["length"] + 520 <= 4 * K
        assert text["length"] > 3 * K
    audited(tmp_path / "out")


def test_a_page_without_text_is_named_among_the_pages_as_text(cases: dict[str, Path], tmp_path: Path) -> None:
    one = next((cases["documents"] / "16008").glob("*.pdf"))
    with pymupdf.open(one) as document:
        document[1].add_redact_annot(document[1].rect)
        document[1].apply_redactions()
        data = document.tobytes()
    one.write_bytes(data)
    built(tmp_path / "out", cases, "multi_lexsum", options=TEXT, lengths=(16 * K,))
    named = {r["id"]: r["pages_without_text"] for r in lines(tmp_path / "out/mmlb_data/summ/lexsum_K16.jsonl")}
    assert named == {"12041": "", "13577": "", "16008": "1"}


def test_a_public_loader_makes_the_same_prompt(of_reports: Release) -> None:
    """As the public loader does: the folder's name cut to 15 characters, the number after the first `page`."""
    for record in lines(of_reports.folder / "mmlb_data/summ/gov_K8.jsonl"):
        pages = [path.split("/")[-1].split("page") for path in record["image_list"]]
        shown = [f"Document {name[:-1][:15]} (page {number.split('.')[0]}): <image>" for name, number in pages]
        prompt = Summary("gov", SummaryOptions()).prompt(record)
        said = "".join(part if isinstance(part, str) else "<image>" for part in prompt.parts)
        assert said == INSTRUCTIONS["report"] + "\n\n".join(shown) + "\n\nNow please summarize the report.\nSummary:"


# --- bad input ------------------------------------------------------------------------------------------------------


def broken(pdf: Path, how: str) -> None:
    """Replace a PDF by one that cannot be used."""
    if how == "missing":
        pdf.unlink()
    elif how == "encrypted":
        with pymupdf.open(pdf) as document:
            data = document.tobytes(encryption=pymupdf.mupdf.PDF_ENCRYPT_AES_256, owner_pw="a", user_pw="b")
        pdf.write_bytes(data)
    elif how == "scanned":
        data, _ = draw_report(pdf.stem, SUBJECTS[0], 14, Layout(pages=()), DRAWS, is_scanned=True)
        pdf.write_bytes(data)
    elif how == "no summary":
        data, _ = draw_report(pdf.stem, SUBJECTS[4], 14, Layout(pages=()), DRAWS)
        pdf.write_bytes(data)
    elif how == "truncated":
        pdf.write_bytes(pdf.read_bytes()[:300])
    elif how == "huge pages":
        with pymupdf.open() as document:
            for _ in range(14):
                document.new_page(width=4000, height=4000).insert_text((72, 72), "What the agency has found. " * 4)
            pdf.write_bytes(document.tobytes())
    elif how == "zero pages":
        catalog = b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
        pdf.write_bytes(b"%PDF-1.4\n" + catalog + b"trailer<</Root 1 0 R/Size 3>>\n%%EOF\n")
    else:
        pdf.write_bytes(b"%PDF-1.4 nothing")


REASONS = {
    "missing": "missing-document",
    "encrypted": "encrypted-document",
    "truncated": "broken-document",
    "nothing": "broken-document",
    "scanned": "document-without-text",
    "no summary": "no-summary-page",
    "zero pages": "document-without-pages",
}


@pytest.mark.parametrize("how", REASONS)
def test_a_report_that_cannot_be_used_is_rejected_and_the_others_are_built(
    reports: dict[str, Path], tmp_path: Path, how: str
) -> None:
    broken(reports["documents"] / "gao-18-21.pdf", how)
    lock = built(tmp_path / "out", reports, lengths=SHORT)
    assert lock["questions"]["kept"] == 3
    reject = rejects(tmp_path / "out")["gov_report_gao-18-21"]
    assert reject["reason"] == REASONS[how]
    assert reject["expected"]
    assert reject["found"]


@pytest.fixture
def tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose files 0.txt, 1.txt and so on a `tesseract` gives in turn; it fails where there is none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = """#!/bin/sh
cd "$(dirname "$0")" || exit 3
if [ "$1" = --version ]; then echo "tesseract 0.0"; exit 0; fi
cat > /dev/null
number=$(cat count)
echo $((number + 1)) > count
cat "$number.txt"
"""
    (folder / "tesseract").write_text(script)
    (folder / "tesseract").chmod(0o755)
    (folder / "count").write_text("0")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    ocr_version.cache_clear()
    end_readers()
    yield folder
    ocr_version.cache_clear()
    end_readers()


@pytest.mark.parametrize("pages", [14, 9])
def test_a_scanned_report_is_read_and_its_summary_page_removed(
    reports: dict[str, Path], tmp_path: Path, tesseract: Path, pages: int
) -> None:
    """With fewer texts than pages, `tesseract` fails at one: the report is refused, and no other."""
    pdf = reports["documents"] / "gao-18-21.pdf"
    broken(pdf, "scanned")
    raw = json.loads((reports["reports"] / "gao/gao-18-21.json").read_text())
    told = "\n".join(text for part in raw["highlight"] for text in part["paragraphs"])
    for page in range(pages):
        (tesseract / f"{page}.txt").write_text(f"What GAO Found\n{told}" if page == 2 else FILLER)
    built(tmp_path / "out", reports, pages={"ocr": True}, lengths=(16 * K,))
    records = {record["id"]: record for record in lines(tmp_path / "out/mmlb_data/summ/gov_K16.jsonl")}
    assert len(records) == (4 if pages == 14 else 3)
    if pages == 14:
        assert records["gov_report_gao-18-21"]["removed_pages"] == "2: heading 'What GAO Found'"
        assert not [path for path in records["gov_report_gao-18-21"]["image_list"] if path.endswith("page2.jpg")]
    else:
        reject = rejects(tmp_path / "out")["gov_report_gao-18-21"]
        assert (reject["reason"], reject["place"]) == ("unrecognised-page", "page 9")


@pytest.mark.parametrize("how", ["missing", "encrypted"])
def test_a_case_with_a_document_that_cannot_be_read_is_rejected_whole(
    cases: dict[str, Path], tmp_path: Path, how: str
) -> None:
    broken(next((cases["documents"] / "13577").glob("*.pdf")), how)
    assert built(tmp_path / "out", cases, "multi_lexsum", lengths=SHORT)["questions"]["rejected"] == {REASONS[how]: 1}


def test_a_first_page_above_the_budget_is_named_with_its_length(reports: dict[str, Path], tmp_path: Path) -> None:
    broken(reports["documents"] / "gao-18-21.pdf", "huge pages")
    options = {"without_summary_page": "keep"}
    built(tmp_path / "out", reports, options=options, reference_length=256 * K, lengths=(8 * K,))
    reject = rejects(tmp_path / "out")["gov_report_gao-18-21"]
    assert reject["reason"] == "above-admission-length"
    assert "8K" in reject["expected"]


def section(**changed: Any) -> dict[str, Any]:
    return {"section_title": "What GAO Found", "paragraphs": ["It found much."], "subsections": [], **changed}


def highlights(**changed: Any) -> dict[str, Any]:
    return {"id": "gao-18-107", "url": "https://www.example.org", "highlight": [section()], **changed}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ([], "not-a-row"),
        ({"highlight": []}, "missing-or-mistyped-field"),
        (highlights(id=7), "missing-or-mistyped-field"),
        (highlights(highlight=[]), "empty-summary"),
        (highlights(highlight=None), "empty-summary"),
        (highlights(highlight="What GAO Found: much"), "empty-summary"),
        (highlights(highlight=[{"section_title": "What GAO Found", "paragraphs": ["  "]}]), "empty-summary"),
        (highlights(highlight=[{"paragraphs": ["It found much."]}]), "broken-summary"),
        (highlights(highlight=[{"section_title": "What", "paragraphs": [7]}]), "broken-summary"),
        (highlights(highlight=["What GAO Found"]), "broken-summary"),
        (highlights(highlight=[section(paragraphs="It found much.")]), "broken-summary"),
        (highlights(highlight=[section(paragraphs="")]), "broken-summary"),
        (highlights(highlight=[section(subsections={"section_title": "Delays"})]), "broken-summary"),
        (highlights(highlight=[section(subsections="")]), "broken-summary"),
        (highlights(url=7), "missing-or-mistyped-field"),
        (highlights(url=["https://www.example.org"]), "missing-or-mistyped-field"),
        (highlights(url="https://www.example.org/\ud800"), "invalid-unicode"),
        (highlights(highlight=[section(paragraphs=["It found \udc00 much."])]), "invalid-unicode"),
        (highlights(id=" "), "missing-or-mistyped-field"),
        (highlights(id=True), "missing-or-mistyped-field"),
        ({"id": "CRS_R40001", "summary": ["A text."], "reports": {}}, "crs-report"),
    ],
)
def test_a_report_of_another_shape_is_named(tmp_path: Path, raw: object, reason: str) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/one.json").write_text(json.dumps(raw))
    (found,) = read_rows(GovReport(), {"reports": tmp_path / "reports", "documents": tmp_path})
    assert isinstance(found, mt.RowFault)
    assert found.fault.reason == reason
    assert found.fault.file == "one.json"


def read(tmp_path: Path, text: str, *names: str, file: str = "reports.json") -> list[Summarised | mt.RowFault]:
    """The rows of one file of reports, beside a folder of PDFs of these names."""
    (tmp_path / file).write_text(text)
    (tmp_path / "pdf").mkdir()
    for number, name in enumerate(names):
        (tmp_path / "pdf" / name).write_bytes(b"%d" % number)
    rows = list(read_rows(GovReport(), {"reports": tmp_path / file, "documents": tmp_path / "pdf"}))
    return [row for row in rows if isinstance(row, Summarised | mt.RowFault)]


def test_paragraphs_of_subsections_follow_their_section(tmp_path: Path) -> None:
    inner = section(section_title="Delays", paragraphs=["They grew."])
    (found,) = read(tmp_path, json.dumps(highlights(highlight=[section(subsections=[inner])])))
    assert isinstance(found, Summarised)
    assert [(part.section_title, part.paragraphs) for part in found.sections] == [
        ("What GAO Found", ("It found much.",)),
        ("Delays", ("They grew.",)),
    ]


def test_a_url_and_subsections_may_be_absent(tmp_path: Path) -> None:
    part = {"section_title": "What GAO Found", "paragraphs": ["It found much."]}
    raw = [highlights(id="a", url=None), {"id": "b", "highlight": [part]}, highlights(id="c", highlight=[part])]
    found = read(tmp_path, "\n".join(map(json.dumps, raw)))
    assert [row.url for row in found if isinstance(row, Summarised)] == ["", "", "https://www.example.org"]


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["gao-18-107.pdf"], "gao-18-107"),
        (["GAO-18-107.pdf"], "GAO-18-107"),
        (["GAO-18-107.pdf", "gao-18-107.pdf", "Gao-18-107.pdf"], "gao-18-107"),
        (["GAO-18-107.pdf", "Gao-18-107.pdf"], "gao-18-107"),  # two candidates: missing
        (["gao-18-1.pdf"], "gao-18-107"),
    ],
)
def test_the_pdf_of_a_report_is_the_one_of_its_very_name_or_else_the_only_one_in_another_case(
    tmp_path: Path, names: list[str], taken: str
) -> None:
    (found,) = read(tmp_path, json.dumps(highlights(id=" gao-18-107 ")), *names)
    assert isinstance(found, Summarised)
    assert (found.source_id, found.docs) == ("gao-18-107", (taken,))


@pytest.mark.parametrize(
    ("id", "public"),
    [
        ("GAO-18-107", "gov_report_gao-18-107"),
        ("gao-18-107", "gov_report_gao-18-107"),
        (" gov_report_gao-18-107", "gov_report_gao-18-107"),
        ("GOV_REPORT_GAO-18-107", "gov_report_gao-18-107"),
        ("GAO-18-107SP", "gov_report_gao-18-107sp"),
    ],
)
def test_either_form_of_an_id_is_read_and_the_public_one_released(tmp_path: Path, id: str, public: str) -> None:
    (found,) = read(tmp_path, json.dumps(highlights(id=id)))
    assert isinstance(found, Summarised)
    assert (found.id, found.source_id) == (public, id.strip())


@pytest.mark.parametrize("pdf", ["gao-18-107.pdf", "GAO-18-107.pdf", "gov_report_gao-18-107.pdf"])
@pytest.mark.parametrize("id", ["GAO-18-107", "gov_report_gao-18-107"])
def test_the_pdf_of_a_report_is_found_under_either_form_of_its_id(tmp_path: Path, id: str, pdf: str) -> None:
    (found,) = read(tmp_path, json.dumps(highlights(id=id)), pdf, "gao-18-10.pdf")
    assert isinstance(found, Summarised)
    assert found.docs == (pdf.removesuffix(".pdf"),)


def test_two_forms_of_one_id_are_one_report(reports: dict[str, Path], tmp_path: Path) -> None:
    raw = json.loads((reports["reports"] / "gao/gao-18-107.json").read_text())
    (reports["reports"] / "gao/again.json").write_text(json.dumps({**raw, "id": "gov_report_gao-18-107"}))
    lock = built(tmp_path / "out", reports, lengths=SHORT)
    assert lock["questions"]["kept"] == 4
    assert lock["questions"]["rejected"]["duplicate-id"] == 1


def test_a_record_has_the_public_id_and_the_sources(of_reports: Release) -> None:
    found = {record["id"]: record["source_id"] for record in lines(of_reports.folder / "mmlb_data/summ/gov_K8.jsonl")}
    assert found == {
        f"gov_report_{number}": number.upper() for number in ("gao-18-107", "gao-18-21", "gao-19-8", "gao-20-355")
    }


@pytest.mark.parametrize("file", ["reports.json", "reports.jsonl"])
def test_a_file_of_one_report_over_many_lines_is_one_row(tmp_path: Path, file: str) -> None:
    found = read(tmp_path, json.dumps(highlights(), indent=1), file=file)
    if file == "reports.jsonl":
        assert len(found) > 1, "lines of JSON"
        return
    (row,) = found
    assert isinstance(row, Summarised)
    assert (row.id, row.file, row.place) == ("gov_report_gao-18-107", "reports.json", "report")


@pytest.mark.parametrize(("text", "reason"), [("{\n\n", "invalid-json"), ("[\n {}\n]", "not-a-row")])
def test_a_file_that_is_neither_is_one_reject(tmp_path: Path, text: str, reason: str) -> None:
    (found,) = read(tmp_path, text)
    assert isinstance(found, mt.RowFault)
    assert (found.fault.reason, found.fault.file) == (reason, "reports.json")


def test_a_line_that_is_no_valid_unicode_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    found = read(tmp_path, f"{json.dumps(highlights(url=chr(0xD800)))}\n{json.dumps(highlights())}\n")
    assert [type(row) for row in found] == [mt.RowFault, Summarised]


def of_case(tmp_path: Path, raw: object) -> Summarised | mt.RowFault:
    (tmp_path / "test.json").write_text(raw if isinstance(raw, str) else json.dumps(raw))
    (found,) = read_rows(MultiLexSum(), {"cases": tmp_path / "test.json", "documents": tmp_path})
    assert isinstance(found, Summarised | mt.RowFault)
    return found


CASE = {"case_id": "12041", "case_documents": ["1", "2"], "summary/short": "Settled.", "summary/long": "It was."}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("{", "invalid-json"),
        ('{"case_id": "\x00', "invalid-json"),
        ([CASE], "not-a-row"),
        ({**CASE, "case_documents": []}, "case-without-documents"),
        ({**CASE, "case_documents": None}, "missing-or-mistyped-field"),
        ({**CASE, "case_documents": "1"}, "missing-or-mistyped-field"),
        ({**CASE, "case_documents": ["1", "1"]}, "document-twice"),
        ({**CASE, "case_documents": ["1", True]}, "missing-or-mistyped-field"),
        ({**CASE, "case_documents": ["1", 2.0]}, "missing-or-mistyped-field"),
        ({**CASE, "case_documents": ["1", " "]}, "missing-or-mistyped-field"),
        ({**CASE, "case_documents": ["1", 1]}, "document-twice"),
        ({**CASE, "case_documents": ["1", " 1"]}, "document-twice"),
        ({**CASE, "summary/short": " ", "summary/long": None}, "empty-summary"),
        ({**CASE, "summary/short": "Settled. \ud83d"}, "invalid-unicode"),
        ({**CASE, "summary/tiny": 7}, "broken-summary"),
    ],
)
def test_a_case_of_another_shape_is_named(tmp_path: Path, raw: object, reason: str) -> None:
    found = of_case(tmp_path, raw)
    assert isinstance(found, mt.RowFault)
    assert (found.fault.reason, found.fault.place) == (reason, "line 1")


@pytest.mark.parametrize("id", [None, True, False, 1.5, [], {}, "", " ", "1\ud800"])
def test_a_case_without_an_id_is_named_by_its_line(tmp_path: Path, id: object) -> None:
    found = of_case(tmp_path, {**CASE, "case_id": id})
    assert isinstance(found, mt.RowFault)
    assert found.id == "line-1"
    wrong = "invalid-unicode" if isinstance(id, str) and id.strip() else "missing-or-mistyped-field"
    assert found.fault.reason == wrong


@pytest.mark.parametrize(("id", "read"), [(0, "0"), ("0", "0"), (12041, "12041"), (" 12041\n", "12041")])
def test_a_case_is_called_by_its_id_as_text(tmp_path: Path, id: object, read: str) -> None:
    found = of_case(tmp_path, {**CASE, "case_id": id, "case_documents": [7, " 8 "]})
    assert isinstance(found, Summarised)
    assert (found.id, found.docs) == (read, ("7", "8"))


@pytest.mark.parametrize(
    ("reader", "kind", "gives"), [("govreport", "case", "report"), ("multi_lexsum", "report", "case")]
)
def test_a_kind_that_the_reader_does_not_give_is_named(
    reports: dict[str, Path], cases: dict[str, Path], tmp_path: Path, reader: str, kind: str, gives: str
) -> None:
    said = f"options.kind is '{kind}', the reader gives {gives}s; set options.kind to {gives}"
    source = reports if reader == "govreport" else cases
    with pytest.raises(mt.DraftError, match=re.escape(said)):
        built(tmp_path / "out", source, reader, options={"kind": kind})


def test_the_summaries_there_are_are_kept_by_their_length(tmp_path: Path) -> None:
    found = of_case(tmp_path, CASE)
    assert isinstance(found, Summarised)
    assert [part.section_title for part in found.sections] == ["short", "long"]
    assert found.docs == ("1", "2")


def test_a_case_without_the_asked_summary_is_rejected_with_those_it_has(cases: dict[str, Path], tmp_path: Path) -> None:
    lock = built(tmp_path / "out", cases, "multi_lexsum", options={"reference": "tiny"}, lengths=SHORT)
    assert lock["questions"]["rejected"] == {"no-such-summary": 3}
    assert {reject["found"] for reject in rejects(tmp_path / "out").values()} == {"short, long"}


@pytest.mark.parametrize("are_alike", [True, False])
def test_two_documents_of_one_name_are_refused_for_the_case_that_names_them_unless_they_are_copies(
    cases: dict[str, Path], tmp_path: Path, are_alike: bool
) -> None:
    one = next((cases["documents"] / "16008").glob("*.pdf"))
    other = one if are_alike else next((cases["documents"] / "12041").glob("*.pdf"))
    (cases["documents"] / "again").mkdir()
    (cases["documents"] / "again" / one.name).write_bytes(other.read_bytes())
    lock = built(tmp_path / "out", cases, "multi_lexsum", lengths=SHORT)
    assert lock["questions"]["rejected"] == ({} if are_alike else {"two-documents-of-one-name": 1})
    assert lock["questions"]["kept"] == (3 if are_alike else 2)


def test_a_name_with_page_in_it_becomes_one_that_public_loaders_can_split(
    cases: dict[str, Path], tmp_path: Path
) -> None:
    one = next((cases["documents"] / "16008").glob("*.pdf"))
    one.rename(one.with_name("a page.pdf"))
    cases["cases"].write_text(cases["cases"].read_text().replace(one.stem, "a page"))
    built(tmp_path / "out", cases, "multi_lexsum", lengths=SHORT)
    record = lines(tmp_path / "out/mmlb_data/summ/lexsum_K8.jsonl")[-1]
    names = [Path(path).name for path in record["image_list"]]
    assert [name.split("page")[1] for name in names] == [f"{number}.jpg" for number in range(len(names))]


def test_every_summary_of_a_release_is_the_sources_own(drawn_reports: dict[str, Path], of_reports: Release) -> None:
    given = {raw["id"]: raw for raw in map(json.loads, _texts(drawn_reports["reports"] / "gao"))}
    for record in lines(of_reports.folder / "mmlb_data/summ/gov_K8.jsonl"):
        told = [(part["section_title"], part["paragraphs"]) for part in record["summary"]]
        assert told == [(part["section_title"], part["paragraphs"]) for part in given[record["source_id"]]["highlight"]]


def _texts(folder: Path) -> Iterator[str]:
    return (path.read_text() for path in sorted(folder.glob("*.json")))

"""Summarization: summary pages are found in every layout, none leaks, pages are cut evenly, bad input is named."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pymupdf
import pytest

import mmlongbench as mm
from builders.summ import GovReport, MultiLexSum, Summary, SummaryOptions
from builders.summ.highlights import find_highlights, grams, heading_in
from builders.summ.rows import Summarised
from builders.summ.sample import draw_cases, draw_reports
from builders.summ.sample_reports import SUBJECTS, Layout, draw_report, layouts, summary_of
from builders.summ.templates import INSTRUCTIONS
from mmlongbench.building.build import build
from mmlongbench.building.engine import LocalEngine
from mmlongbench.manifest import DatasetSpec, Manifest
from mmlongbench.packing.budget import K
from mmlongbench.progress import Progress

QUIET = Progress(is_shown=False)
DRAWS = mm.Draws(("tests of summaries",))
LAYOUTS = dict(layouts())


def built(out: Path, source: Any, reader: str = "govreport", **more: Any) -> dict[str, Any]:
    """What the lock says of the dataset."""
    name, kind = ("gov", "report") if reader == "govreport" else ("lexsum", "case")
    about = {"name": name, "builder": "summary", "reader": reader, "source": source}
    options = {"kind": kind, **more.pop("options", {})}
    spec = DatasetSpec.model_validate(
        {**about, "options": options, "lengths": (8 * K, 16 * K), "reference_length": 16 * K, **more}
    )
    lock: dict[str, Any] = build(Manifest(datasets=(spec,)), out, LocalEngine(1, QUIET)).lock["datasets"][name]
    return lock


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def rejects(out: Path) -> dict[str, dict[str, Any]]:
    return {reject["id"]: reject for reject in lines(out / "rejects.jsonl")}


@pytest.fixture
def reports(tmp_path: Path) -> dict[str, Path]:
    return draw_reports(tmp_path / "reports")


@pytest.fixture
def cases(tmp_path: Path) -> dict[str, Path]:
    return draw_cases(tmp_path / "cases")


# --- finding the summary --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_summary_pages_of_every_layout_are_found_and_no_other(name: str) -> None:
    layout = LAYOUTS[name]
    data, summary = draw_report("gao-18-107", SUBJECTS[2], 8, layout, DRAWS.at(name))
    texts = [page.get_text() for page in pymupdf.open(stream=data, filetype="pdf")]
    found = find_highlights(texts, summary)
    assert tuple(found.removed) == layout.pages
    if layout.pages:
        assert not found.leaks


def test_a_page_that_repeats_the_summary_leaks_unless_it_repeats_recommendations() -> None:
    summary = summary_of(SUBJECTS[0], DRAWS)
    told = "\n".join(text for section in summary for text in section.paragraphs)
    recommended = "\n".join(summary[2].paragraphs)
    filler = "The office keeps a ledger of every boat that passes the light at the end of the mole."
    texts = [filler, f"What GAO Found\n{told}", *[filler] * 8, told, f"Recommendations\n{recommended}"]
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


# --- the release ----------------------------------------------------------------------------------------------------


def test_removed_pages_are_in_no_record_and_page_numbers_stay_the_original_ones(
    reports: dict[str, Path], tmp_path: Path
) -> None:
    lock = built(tmp_path / "out", reports)
    assert lock["questions"]["kept"] == 4
    for record in lines(tmp_path / "out/mmlb_data/summ/gov_K16.jsonl"):
        removed = {int(part.split(":")[0]) for part in record["removed_pages"].split("; ")}
        shown = [int(path.split("page")[1].split(".")[0]) for path in record["image_list"]]
        assert removed
        assert shown == [page for page in range(max(shown) + 1) if page not in removed]
        (document,) = record["documents"]
        assert document["shown"] == len(shown)
        assert record["length"] <= 16 * K
        with pymupdf.open(reports["documents"] / f"{record['id']}.pdf") as pdf:
            assert document["pages"] == len(pdf) - len(removed)
            pages = "\n".join(pdf[page].get_text() for page in shown)
        told = frozenset[str]().union(*(grams("\n".join(part["paragraphs"])) for part in record["summary"][:2]))
        assert len(grams(pages) & told) <= 0.2 * len(told)
    assert not set(Path(tmp_path / "out/mmlb_image/gov-report/bg_pdf_img/gao-18-107").glob("*page1.jpg"))


def test_documents_are_cut_evenly_and_the_shorter_context_is_the_start_of_each(
    cases: dict[str, Path], tmp_path: Path
) -> None:
    built(tmp_path / "out", cases, "multi_lexsum")
    long, short = (
        {record["id"]: record for record in lines(tmp_path / f"out/mmlb_data/summ/lexsum_K{k}.jsonl")} for k in (16, 8)
    )
    assert long.keys() == short.keys()
    for id, record in long.items():
        assert set(short[id]["image_list"]) < set(record["image_list"])
        parts = record["documents"]
        assert [part["doc"] for part in parts] == [str(part["doc"]) for part in parts]
        whole = sum(part["pages"] for part in parts)
        taken = sum(part["shown"] for part in parts)
        assert all(abs(part["shown"] - part["pages"] * taken / whole) <= 1 for part in parts)
        order = [path.split("/")[1] for path in record["image_list"]]
        assert order == sorted(order, key=[part["doc"] for part in parts].index)
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


def test_the_text_variant_has_the_text_of_each_page_in_place_of_its_image(
    cases: dict[str, Path], tmp_path: Path
) -> None:
    built(tmp_path / "out", cases, "multi_lexsum", options={"page_text": True})
    builder = Summary("lexsum", SummaryOptions(kind="case", page_text=True))
    for record in lines(tmp_path / "out/mmlb_data/summ/lexsum_K8.jsonl"):
        pictures, text = builder.prompt(record), builder.prompt(record, "text")
        assert len(pictures.images) == len(record["image_list"])
        assert not text.images
        for page in record["page_text_list"]:
            assert page in "".join(part for part in text.parts if isinstance(part, str))


def test_a_public_loader_makes_the_same_prompt(reports: dict[str, Path], tmp_path: Path) -> None:
    """As the public loader does: the folder's name cut to 15 characters, the number after the first `page`."""
    built(tmp_path / "out", reports)
    for record in lines(tmp_path / "out/mmlb_data/summ/gov_K8.jsonl"):
        pages = [path.split("/")[-1].split("page") for path in record["image_list"]]
        shown = [f"Document {name[:-1][:15]} (page {number.split('.')[0]}): <image>" for name, number in pages]
        prompt = Summary("gov", SummaryOptions()).prompt(record)
        said = "".join(part if isinstance(part, str) else "<image>" for part in prompt.parts)
        assert said == INSTRUCTIONS["report"] + "\n\n".join(shown) + "\n\nNow please summarize the report.\nSummary:"


# --- bad input ------------------------------------------------------------------------------------------------------


def broken(pdf: Path, how: str) -> None:
    """Make a PDF one that cannot be used."""
    if how == "missing":
        pdf.unlink()
    elif how == "encrypted":
        with pymupdf.open(pdf) as document:
            data = document.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="a", user_pw="b")
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
    else:
        pdf.write_bytes(b"%PDF-1.4 nothing")


REASONS = {
    "missing": "missing-document",
    "encrypted": "encrypted-document",
    "truncated": "broken-document",
    "nothing": "broken-document",
    "scanned": "document-without-text",
    "no summary": "no-summary-page",
}


@pytest.mark.parametrize("how", REASONS)
def test_a_report_that_cannot_be_used_is_rejected_and_the_others_are_built(
    reports: dict[str, Path], tmp_path: Path, how: str
) -> None:
    broken(reports["documents"] / "gao-18-21.pdf", how)
    lock = built(tmp_path / "out", reports)
    assert lock["questions"]["kept"] == 3
    reject = rejects(tmp_path / "out")["gao-18-21"]
    assert reject["reason"] == REASONS[how]
    assert reject["expected"]
    assert reject["found"]


@pytest.mark.parametrize("how", ["missing", "encrypted"])
def test_a_case_with_a_document_that_cannot_be_read_is_rejected_whole(
    cases: dict[str, Path], tmp_path: Path, how: str
) -> None:
    broken(next((cases["documents"] / "13577").glob("*.pdf")), how)
    assert built(tmp_path / "out", cases, "multi_lexsum")["questions"]["rejected"] == {REASONS[how]: 1}


def test_a_first_page_above_the_budget_is_named_with_its_length(reports: dict[str, Path], tmp_path: Path) -> None:
    broken(reports["documents"] / "gao-18-21.pdf", "huge pages")
    options = {"without_summary_page": "keep"}
    built(tmp_path / "out", reports, options=options, reference_length=256 * K, lengths=(8 * K,))
    reject = rejects(tmp_path / "out")["gao-18-21"]
    assert reject["reason"] == "above-admission-length"
    assert "8K" in reject["expected"]


def highlights(**changed: Any) -> dict[str, Any]:
    section = {"section_title": "What GAO Found", "paragraphs": ["It found much."], "subsections": []}
    return {"id": "gao-18-107", "url": "https://www.example.org", "highlight": [section], **changed}


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
        ({"id": "CRS_R40001", "summary": ["A text."], "reports": {}}, "crs-report"),
    ],
)
def test_a_report_of_another_shape_is_named(tmp_path: Path, raw: object, reason: str) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/one.json").write_text(json.dumps(raw))
    (found,) = GovReport().rows({"reports": tmp_path / "reports", "documents": tmp_path})
    assert isinstance(found, mm.RowFault)
    assert found.fault.reason == reason
    assert found.fault.file == "one.json"


def test_paragraphs_of_subsections_follow_their_section(tmp_path: Path) -> None:
    inner = {"section_title": "Delays", "paragraphs": ["They grew."], "subsections": []}
    outer = {"section_title": "What GAO Found", "paragraphs": ["Much."], "subsections": [inner]}
    (tmp_path / "one.json").write_text(json.dumps(highlights(highlight=[outer])))
    (found,) = GovReport().rows({"reports": tmp_path / "one.json", "documents": tmp_path})
    assert isinstance(found, Summarised)
    assert [(part.section_title, part.paragraphs) for part in found.sections] == [
        ("What GAO Found", ("Much.",)),
        ("Delays", ("They grew.",)),
    ]


def of_case(tmp_path: Path, raw: object) -> Summarised | mm.RowFault:
    (tmp_path / "test.json").write_text(raw if isinstance(raw, str) else json.dumps(raw))
    (found,) = MultiLexSum().rows({"cases": tmp_path / "test.json", "documents": tmp_path})
    assert isinstance(found, Summarised | mm.RowFault)
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
        ({**CASE, "summary/short": " ", "summary/long": None}, "empty-summary"),
    ],
)
def test_a_case_of_another_shape_is_named(tmp_path: Path, raw: object, reason: str) -> None:
    found = of_case(tmp_path, raw)
    assert isinstance(found, mm.RowFault)
    assert (found.fault.reason, found.fault.place) == (reason, "line 1")


def test_the_summaries_there_are_are_kept_by_their_length(tmp_path: Path) -> None:
    found = of_case(tmp_path, CASE)
    assert isinstance(found, Summarised)
    assert [part.section_title for part in found.sections] == ["short", "long"]
    assert found.docs == ("1", "2")


def test_a_case_without_the_asked_summary_is_rejected_with_those_it_has(cases: dict[str, Path], tmp_path: Path) -> None:
    lock = built(tmp_path / "out", cases, "multi_lexsum", options={"reference": "tiny"})
    assert lock["questions"]["rejected"] == {"no-such-summary": 3}
    assert {reject["found"] for reject in rejects(tmp_path / "out").values()} == {"short, long"}


def test_two_documents_of_one_name_are_refused_for_the_case_that_names_them(
    cases: dict[str, Path], tmp_path: Path
) -> None:
    one = next((cases["documents"] / "16008").glob("*.pdf"))
    (cases["documents"] / "again").mkdir()
    (cases["documents"] / "again" / one.name).write_bytes(one.read_bytes())
    lock = built(tmp_path / "out", cases, "multi_lexsum")
    assert lock["questions"]["rejected"] == {"two-documents-of-one-name": 1}


def test_a_name_with_page_in_it_becomes_one_that_public_loaders_can_split(
    cases: dict[str, Path], tmp_path: Path
) -> None:
    one = next((cases["documents"] / "16008").glob("*.pdf"))
    one.rename(one.with_name("a page.pdf"))
    cases["cases"].write_text(cases["cases"].read_text().replace(one.stem, "a page"))
    built(tmp_path / "out", cases, "multi_lexsum")
    record = lines(tmp_path / "out/mmlb_data/summ/lexsum_K8.jsonl")[-1]
    names = [Path(path).name for path in record["image_list"]]
    assert [name.split("page")[1] for name in names] == [f"{number}.jpg" for number in range(len(names))]


def test_every_summary_of_a_release_is_the_sources_own(reports: dict[str, Path], tmp_path: Path) -> None:
    built(tmp_path / "out", reports)
    given = {raw["id"]: raw for raw in map(json.loads, _texts(reports["reports"] / "gao"))}
    for record in lines(tmp_path / "out/mmlb_data/summ/gov_K8.jsonl"):
        told = [(part["section_title"], part["paragraphs"]) for part in record["summary"]]
        assert told == [(part["section_title"], part["paragraphs"]) for part in given[record["id"]]["highlight"]]


def _texts(folder: Path) -> Iterator[str]:
    return (path.read_text() for path in sorted(folder.glob("*.json")))

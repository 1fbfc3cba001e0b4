"""Summaries: where they stand in a report, and the rows of GovReport and Multi-LexSum in every form."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from hub_forms import json_lines_of, loaded_case, structure_row, write_structure, write_table
from one_dataset import write_lines
from samples import Sources

import mmlongbench.task as mt
from builders.summarization import GovReport, MultiLexSum
from builders.summarization.builder import find_highlights, grams, heading_in, removed_pages
from builders.summarization.readers import Section, Summarised
from mmlongbench.building.stages.rows import read_rows
from tests.drawing.summarization.reports import (
    SUBJECTS,
    Layout,
    broken_over_lines,
    draw_report,
    layouts,
    reworded,
    summary_of,
)

DRAWS = mt.Draws(("tests of summaries",))
LAYOUTS = dict(layouts())
HEADING = re.compile("heading '(Why GAO Did This Study|What GAO Recommends)'")
OVERLAP = re.compile(r"\d+% of the summary")


# --- finding the summary ----------------------------------------------------------------------------------------------


@cache
def drawn(name: str) -> tuple[Layout, tuple[str, ...], tuple[Section, ...]]:
    """The layout of that name, the texts of a report's pages in it, the reference."""
    layout = LAYOUTS[name]
    data, summary = draw_report("gao-18-107", SUBJECTS[2], 8, layout, DRAWS.at(name))
    return layout, tuple(page.get_text() for page in pymupdf.open(stream=data, filetype="pdf").pages()), summary


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_summary_pages_of_every_layout_are_found_and_no_other(name: str) -> None:
    layout, texts, summary = drawn(name)
    removed, leaks = find_highlights(texts, summary)
    assert tuple(removed) == layout.pages
    has_headings = layout.look.manner != "none"
    sign = HEADING if has_headings else OVERLAP
    assert all(sign.fullmatch(why) for why in removed.values())
    if layout.pages:
        assert not leaks
    if has_headings:  # found where the reference has other words
        reference = reworded(summary)
        told = frozenset[str]().union(*(grams("\n".join(part.paragraphs)) for part in reference[:2]))
        assert max(len(grams(text) & told) / len(told) for text in texts) < 0.1
        again, _ = find_highlights(texts, reference)
    else:  # found where words are broken over lines
        broken = [broken_over_lines(text) for text in texts]
        assert all(text.count("-\n") > 10 for number, text in enumerate(broken) if number in layout.pages)
        again, _ = find_highlights(broken, summary)
    assert tuple(again) == layout.pages
    assert all(sign.fullmatch(why) for why in again.values())


FILLER = "The office keeps a ledger of every boat that passes the light at the end of the mole."
SUMMARY = summary_of(SUBJECTS[0], DRAWS)
TOLD = "\n".join(text for section in SUMMARY for text in section.paragraphs)
WORDS = TOLD.split()


def in_parts(size: int) -> list[str]:
    return [" ".join(WORDS[start : start + size]) for start in range(0, len(WORDS), size)]


@pytest.mark.parametrize("heading", ["", "What GAO Found\n"])
@pytest.mark.parametrize("parts", [2, 3, 5, 6])
@pytest.mark.parametrize("first", [0, 1])
def test_a_summary_that_is_spread_over_the_first_pages_is_found_whole(heading: str, parts: int, first: int) -> None:
    told = in_parts(-(-len(WORDS) // parts))
    assert len(told) == parts
    pages = [*[FILLER] * first, f"{heading}{told[0]}", *told[1:], *[FILLER] * 8]
    removed, leaks = find_highlights(pages, SUMMARY)
    assert list(removed) == list(range(first, first + parts))
    assert not leaks


def test_what_repeats_a_summary_is_no_summary_page_where_it_stands_apart() -> None:
    told = in_parts(40)
    assert len(told) > 4
    spread = [FILLER, f"What GAO Found\n{told[0]}", *told[1:], *[FILLER] * 8]  # followed to its end
    assert list(find_highlights(spread, SUMMARY, first_pages=2)[0]) == list(range(1, len(told) + 1))
    words = " ".join(text for section in SUMMARY[:2] for text in section.paragraphs).split()
    start, end = " ".join(words[: len(words) // 8]), " ".join(words[-(len(words) // 8) :])
    assert not find_highlights([FILLER, start, FILLER, end, *[FILLER] * 8], SUMMARY)[0]
    near = [FILLER, start, end, *[FILLER] * 9]
    assert list(find_highlights(near, SUMMARY)[0]) == [1, 2]
    assert not find_highlights([*[FILLER] * 8, *near], SUMMARY)[0], "beyond the first pages"
    contents = "Contents\nWhat GAO Found ......... 1\nWhy GAO Did This Study\n3\nAppendix I ........ 20"
    assert not find_highlights([contents], SUMMARY)[0]
    recommended = "\n".join(SUMMARY[2].paragraphs)
    pages = [FILLER, f"What GAO Found\n{TOLD}", *[FILLER] * 8, TOLD, f"Recommendations\n{recommended}"]
    removed, leaks = find_highlights(pages, SUMMARY)
    assert (list(removed), leaks) == ([1], {10: 1})  # recommendations may be repeated


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
    assert grams("one two three four five six") == {"one two three four five", "two three four five six"}


def test_a_first_page_that_cannot_be_checked_is_removed_and_is_no_summary_page_that_is_found() -> None:
    pages = [FILLER, f"What GAO Found\n{TOLD}", *[FILLER] * 8]
    pages[3], pages[5], pages[6] = "GAO-18-107  Page 3", "", ""  # page 6 is beyond the first six
    removed = removed_pages(pages, SUMMARY, 0.2, 6, must_be_found=True)
    assert removed == {1: "heading 'What GAO Found'", 3: "no text to check", 5: "no text to check"}
    pages[1] = ""
    with pytest.raises(mt.Rejected, match="no-summary-page"):
        removed_pages(pages, SUMMARY, 0.2, 6, must_be_found=True)
    unchecked = removed_pages(pages, SUMMARY, 0.2, 6, must_be_found=False)
    assert unchecked == dict.fromkeys((1, 3, 5), "no text to check")
    with pytest.raises(mt.Rejected, match=r"summary-in-the-body: .*at most 20%.*100% on page 9"):
        removed_pages([f"What GAO Found\n{TOLD}", *[FILLER] * 8, TOLD], SUMMARY, 0.2, 6, must_be_found=True)
    with pytest.raises(mt.Rejected, match="document-without-pages"):
        removed_pages([f"What GAO Found\n{TOLD}"], SUMMARY, 0.2, 6, must_be_found=True)


@pytest.mark.parametrize("without", [range(6), range(9, 20)])
def test_a_report_without_text_on_the_first_or_on_most_pages_is_refused(without: range) -> None:
    pages = [FILLER, f"What GAO Found\n{TOLD}", *[FILLER] * 18]
    for number in without:
        pages[number] = ""
    with pytest.raises(mt.Rejected, match=r"document-without-text.*set pages\.ocr"):
        removed_pages(pages, SUMMARY, 0.2, 6, must_be_found=True)


# --- reports of GovReport ---------------------------------------------------------------------------------------------

MISTYPED = "missing-or-mistyped-field"
URL = "https://www.example.org"


def section(**changed: Any) -> dict[str, Any]:
    return {"section_title": "What GAO Found", "paragraphs": ["It found much."], "subsections": [], **changed}


def report(**changed: Any) -> dict[str, Any]:
    return {"id": "gao-18-107", "url": URL, "highlight": [section()], **changed}


def read(reports: Path, documents: Path | None = None) -> list[Any]:
    return list(read_rows(GovReport(), {"reports": reports, "documents": documents or reports.parent}))


NO_PARAGRAPHS: tuple[Any, ...] = ("It found much.", "", [7])
REPORTS_WRONG: list[tuple[object, str]] = [
    ([], "not-a-row"),
    ({"highlight": []}, MISTYPED),
    *((report(id=id), MISTYPED) for id in (7, " ", True)),
    *((report(highlight=wrong), "empty-summary") for wrong in (None, "What GAO Found: much")),
    (report(highlight=[]), "empty-summary"),
    (report(highlight=[{"section_title": "What GAO Found", "paragraphs": ["  "]}]), "empty-summary"),
    (report(highlight=[{"paragraphs": ["It found much."]}]), "broken-summary"),
    (report(highlight=["What GAO Found"]), "broken-summary"),
    *((report(highlight=[section(paragraphs=wrong)]), "broken-summary") for wrong in NO_PARAGRAPHS),
    (report(highlight=[section(subsections={"section_title": "Delays"})]), "broken-summary"),
    (report(highlight=[section(subsections="")]), "broken-summary"),
    (report(url=7), MISTYPED),
    (report(url=[URL]), MISTYPED),
    (report(url=f"{URL}/\ud800"), "invalid-unicode"),
    (report(highlight=[section(paragraphs=["It found \udc00 much."])]), "invalid-unicode"),
    ({"id": "CRS_R40001", "summary": ["A text."], "reports": {}}, "crs-report"),
    ("{", "invalid-json"),
]


def test_reports_of_another_shape_are_named_and_the_others_are_read(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "reports.jsonl", [*(raw for raw, _ in REPORTS_WRONG), report()])
    *faults, good = read(lines)
    assert [(row.fault.reason, row.fault.file, row.fault.place) for row in faults] == [
        (reason, "reports.jsonl", f"line {number}") for number, (_, reason) in enumerate(REPORTS_WRONG, 1)
    ]
    assert isinstance(good, Summarised)


def test_sections_have_their_paragraphs_then_those_of_their_subsections_which_may_be_absent(tmp_path: Path) -> None:
    inner = section(section_title="Delays", paragraphs=["They grew."])
    bare = {key: value for key, value in section().items() if key != "subsections"}
    raws = [
        report(highlight=[section(subsections=[inner])]),
        report(id="a", url=None, highlight=[section(subsections=None)]),
        {"id": "b", "highlight": [bare]},
    ]
    found = read(write_lines(tmp_path / "x.jsonl", raws))
    one = ("What GAO Found", ("It found much.",))
    assert [[(part.section_title, part.paragraphs) for part in row.sections] for row in found] == [
        [one, ("Delays", ("They grew.",))],
        [one],
        [one],
    ]
    assert [row.url for row in found] == [URL, "", ""]


@pytest.mark.parametrize(
    ("id", "names", "taken"),
    [
        *((" gao-18-107 ", [name], name) for name in ("gao-18-107", "GAO-18-107", "gov_report_gao-18-107")),
        ("gao-18-107", ["GAO-18-107", "gao-18-107", "Gao-18-107"], "gao-18-107"),
        ("gao-18-107", ["GAO-18-107", "Gao-18-107"], "gao-18-107"),  # two candidates: missing
        ("gao-18-107", ["gao-18-1", "gao-18-10"], "gao-18-107"),
        *((id, ["GAO-18-107"], "GAO-18-107") for id in ("GAO-18-107", "GAO_GAO-18-107", "gov_report_gao-18-107")),
        *((id, ["gov_report_gao-18-107"], "gov_report_gao-18-107") for id in ("GAO-18-107", "GOV_REPORT_GAO-18-107")),
    ],
)
def test_a_report_is_called_by_the_public_id_and_finds_its_pdf_under_any_form_of_it(
    id: str, names: list[str], taken: str, tmp_path: Path
) -> None:
    (tmp_path / "pdf").mkdir()
    for number, name in enumerate(names):
        (tmp_path / "pdf" / f"{name}.pdf").write_bytes(b"%d" % number)
    (row,) = read(write_lines(tmp_path / "x.jsonl", [report(id=id)]), tmp_path / "pdf")
    assert (row.id, row.source_id, row.docs) == ("gov_report_gao-18-107", id.strip(), (taken,))


def test_files_have_one_report_or_one_a_line(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps(report(id="a")))
    (folder / "spread.json").write_text(json.dumps(report(id="b"), indent=1))
    (folder / "lines.json").write_text(f"{json.dumps(report(id='c'))}\n{json.dumps(report(id='d'))}\n{{\n")
    (folder / "more.jsonl").write_text(json.dumps(report(id="e")) + "\n")
    (folder / "empty.json").write_text("")
    (folder / "array.json").write_text("[\n {}\n]")
    (folder / "cut.json").write_text("{\n\n")
    found = read(folder, tmp_path)
    assert {(row.file, row.place) for row in found if isinstance(row, Summarised)} == {
        ("one.json", "report"),
        ("spread.json", "report"),
        ("lines.json", "line 1"),
        ("lines.json", "line 2"),
        ("more.jsonl", "line 1"),
    }
    faults = {
        row.fault.file: (row.fault.reason, row.fault.place) for row in found if isinstance(row, mt.readers.RowFault)
    }
    assert faults.pop("cut.json")[0] == "invalid-json"
    assert faults.pop("array.json")[0] == "not-a-row"
    assert faults == {"lines.json": ("invalid-json", "line 3"), "empty.json": ("invalid-json", "report")}
    (folder / "spread.jsonl").write_text(json.dumps(report(), indent=1))
    assert len(read(folder / "spread.jsonl")) > 1, "lines of JSON"


FOUND = {"section_title": "What GAO Found", "paragraphs": ["Bridges age.", "Some fail."]}


@pytest.mark.parametrize("form", ["columns", "objects", "lines"])
def test_a_row_of_the_hub_is_read_in_each_of_its_forms(form: str, tmp_path: Path) -> None:
    row = structure_row({"id": "GAO-99-001", "url": URL, "highlight": [FOUND]})
    if form == "objects":
        sections = row["summary_sections"]
        pairs = zip(sections["title"], sections["paragraphs"], strict=True)
        row["summary_sections"] = [{"title": title, "paragraphs": text} for title, text in pairs]
    write = write_table([row], tmp_path / "x.parquet") if form != "lines" else write_lines(tmp_path / "x.jsonl", [row])
    (found,) = read(write)
    assert (found.id, found.source_id, found.docs) == ("gov_report_gao-99-001", "GAO_GAO-99-001", ("gao-99-001",))
    assert [part.model_dump(mode="json") for part in found.sections] == [FOUND]


def as_read(rows: list[Any]) -> dict[str, object]:
    """What rows say, without where they stand, and the reasons of faults; by id."""
    place = {"file", "place", "source_id", "url"}
    return {row.id: row.model_dump(exclude=place) if isinstance(row, mt.Row) else row.fault.reason for row in rows}


def test_the_hub_gives_the_reports_and_cases_of_the_archives(sample: Callable[[str], Sources], tmp_path: Path) -> None:
    reports, given = sample("govreport"), sample("multi_lexsum")["cases"]
    hub = write_structure(reports["reports"], tmp_path / "hub")
    expected = as_read(read(reports["reports"], reports["documents"]))
    found = as_read(read(hub, reports["documents"]))
    assert [reason for reason in found.values() if isinstance(reason, str)] == ["crs-report"]
    assert found == expected
    loaded = [loaded_case(row) for row in json_lines_of(given)]
    for form in (
        write_lines(tmp_path / "test.jsonl", loaded),
        write_table(loaded, tmp_path / "test.parquet"),
        write_table(loaded, tmp_path / "cases/v20230518/test-00000-of-00001.parquet").parents[1],
    ):
        assert as_read(cases(form)) == as_read(cases(given)) != {}


def test_broken_sections_of_the_hub_are_named_and_files_without_sections_are_left_out(tmp_path: Path) -> None:
    title = ["What GAO Found"]
    wrong: list[object] = [
        None,
        {"title": title, "paragraphs": []},
        {"title": [None], "paragraphs": ["x"]},
        {"title": title, "paragraphs": [None]},
        {"title": title, "paragraphs": [" \n "]},
        "What GAO Found: x",
        [["What GAO Found", "x"]],
    ]
    rows = [{"id": f"GAO_GAO-1-{number}", "summary_sections": each} for number, each in enumerate(wrong)]
    found = read(write_lines(tmp_path / "x.jsonl", rows))
    assert [row.id for row in found] == [f"gov_report_gao-1-{number}" for number in range(len(wrong))]
    assert {row.fault.reason for row in found} == {"broken-summary", "empty-summary"}
    (tmp_path / "reports").mkdir()
    write_lines(tmp_path / "reports/a.jsonl", [report(id=f"gao-1-{number}") for number in range(3)])
    for number in range(3):
        (tmp_path / f"archive{number}.json").write_text(json.dumps(report(id=f"GAO-1-{number}")))
    (tmp_path / "archive").mkdir()
    for file in tmp_path.glob("archive*.json"):
        file.rename(tmp_path / "archive" / file.name)
    sources = {"reports": write_structure(tmp_path / "archive", tmp_path / "hub")}
    (note,) = GovReport().notes(sources, mt.Options())
    assert note.startswith("3 of 6 Parquet files of reports are not read")
    assert GovReport().notes({"reports": tmp_path / "reports"}, mt.Options()) == ()


@pytest.mark.parametrize(
    ("row", "reason", "facts"),
    [
        (
            {"report": "A report.", "summary": "A summary."},
            "reports-without-ids",
            ["found report, summary", "ccdv/govreport-summarization has none"],
        ),
        (
            {"id": "GAO_GAO-99-001", "document": "A report.", "summary": "A summary."},
            "summary-without-sections",
            ["found id, document, summary", "plain_text"],
        ),
    ],
)
def test_forms_without_ids_or_sections_are_refused_with_what_to_use_instead(
    row: dict[str, str], reason: str, facts: list[str], tmp_path: Path
) -> None:
    facts = [reason, "id and summary_sections", "`structure` of launch/gov_report", *facts]
    table = write_table([row], tmp_path / "document/test-00000-of-00001.parquet")
    for source in (table, table.parent):
        with pytest.raises(mt.readers.SourceError) as caught:
            read(source, tmp_path)
        assert str(caught.value).startswith(f"{table.name}: ")
        assert all(fact in str(caught.value) for fact in facts)
    (found,) = read(write_lines(tmp_path / "x.jsonl", [row]))
    assert str(found.fault).startswith("x.jsonl, line 1: ")
    assert all(fact in str(found.fault) for fact in facts)


# --- cases of Multi-LexSum --------------------------------------------------------------------------------------------

CASE: dict[str, Any] = {"case_id": "EX-ZZ-0001", "case_documents": ["31001", "31002"], "summary/long": "A. B."}


def cases(path: Path) -> list[Any]:
    return list(read_rows(MultiLexSum(), {"cases": path, "documents": path.parent}))


CASES_READ: list[dict[str, Any]] = [
    {},
    {"case_documents": [31001, 31002]},
    {"case_documents": [31001, " 31002 "]},
    {"case_documents": None, "sources_metadata": {"doc_id": [31001, 31002]}},
    {"case_documents": None, "sources_metadata": [{"doc_id": "31001"}, {"doc_id": 31002}]},
    {"case_id": None, "id": "EX-ZZ-0001"},
    {"case_id": " EX-ZZ-0001\n"},
    {"id": "another", "sources_metadata": {"doc_id": ["7"]}},
]
NO_METADATA: tuple[Any, ...] = ({}, "31001", [7])
NO_IDS: tuple[Any, ...] = (None, True, False, 1.5, [], {}, "", " ")
DOCUMENTS, METADATA = "case_documents", "sources_metadata"
CASES_WRONG: list[tuple[object, str, str]] = [
    ("{", "invalid-json", ""),
    ('{"case_id": "\x00', "invalid-json", ""),
    ([CASE], "not-a-row", ""),
    *(({**CASE, "case_id": id}, MISTYPED, "case_id") for id in NO_IDS),
    ({**CASE, "case_id": True, "id": [1]}, MISTYPED, "case_id"),
    ({**CASE, "case_id": "1\ud800"}, "invalid-unicode", ""),
    ({**CASE, DOCUMENTS: []}, "case-without-documents", DOCUMENTS),
    ({**CASE, DOCUMENTS: [], METADATA: {"doc_id": ["1"]}}, "case-without-documents", DOCUMENTS),
    *(({**CASE, DOCUMENTS: wrong}, MISTYPED, DOCUMENTS) for wrong in (None, "1")),
    *(({**CASE, DOCUMENTS: ["1", wrong]}, MISTYPED, DOCUMENTS) for wrong in (True, 2.0, " ")),
    *(({**CASE, DOCUMENTS: ["1", again]}, "document-twice", DOCUMENTS) for again in ("1", 1, " 1")),
    *(({**CASE, DOCUMENTS: None, METADATA: wrong}, MISTYPED, METADATA) for wrong in NO_METADATA),
    ({**CASE, DOCUMENTS: None, METADATA: []}, "case-without-documents", METADATA),
    ({**CASE, DOCUMENTS: None, METADATA: {"doc_id": [1, "1"]}}, "document-twice", METADATA),
    ({**CASE, "summary/long": None}, "empty-summary", "summary"),
    ({**CASE, "summary/short": " ", "summary/long": None}, "empty-summary", "summary"),
    ({**CASE, "summary/long": float("nan")}, "broken-summary", "summary"),
    ({**CASE, "summary/tiny": 7}, "broken-summary", "summary"),
    ({**CASE, "summary/short": "Settled. \ud83d"}, "invalid-unicode", ""),
]


def test_cases_are_read_in_every_form_and_others_are_named_by_their_line(tmp_path: Path) -> None:
    raws: list[Any] = [{**CASE, **change} for change in CASES_READ]
    found = cases(write_lines(tmp_path / "test.json", [*raws, loaded_case(CASE)]))
    assert {(row.id, row.docs) for row in found} == {("EX-ZZ-0001", ("31001", "31002"))}
    assert len(found) == len(raws) + 1
    for row in found:
        assert [(part.section_title, part.paragraphs) for part in row.sections] == [("long", ("A. B.",))]
    numbers = cases(write_lines(tmp_path / "test.json", [{**CASE, "case_id": id} for id in (0, "0", 12041)]))
    assert [row.id for row in numbers] == ["0", "0", "12041"]
    faults = cases(write_lines(tmp_path / "test.json", [raw for raw, _, _ in CASES_WRONG]))
    assert [(row.fault.reason, row.fault.place) for row in faults] == [
        (reason, f"line {number}") for number, (_, reason, _) in enumerate(CASES_WRONG, 1)
    ]
    assert [field for _, _, field in CASES_WRONG if field] == [
        row.fault.field for row, (_, _, field) in zip(faults, CASES_WRONG, strict=True) if field
    ]
    assert [row.id for row in faults][3:12] == [f"line-{number}" for number in range(4, 13)]


def test_of_several_splits_test_is_read_and_rows_without_ids_are_numbered_through_it(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        write_table([loaded_case(CASE)], tmp_path / f"{split}-00000-of-00001.parquet")
    for number in (0, 1):
        rows = [{**loaded_case(CASE), "id": None}, {**loaded_case(CASE), "id": f"x{number}"}]
        write_table(rows, tmp_path / f"test-{number:05d}-of-00002.parquet")
    assert [row.id for row in cases(tmp_path)] == ["row-0", "x0", "row-2", "x1"]
    (note,) = MultiLexSum().notes({"cases": tmp_path}, mt.Options())
    assert all(fact in note for fact in ("test, train, validation", "only test is read", "data/train-*.parquet"))

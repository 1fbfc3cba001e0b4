"""GovReport in each form: JSON, JSON Lines, the hub's sections; forms without sections or ids are named."""

import json
from pathlib import Path
from typing import Any

import pytest
from hub_forms import archive_reports, structure_row, write_structure, write_table

import mmlongbench.task as mt
from builders.samples.summarization.sources import draw_reports
from builders.summarization import GovReport
from builders.summarization.rows import Summarised
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.errors import SourceError
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import DatasetSpec, Manifest

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)
FOUND = {"section_title": "What GAO Found", "paragraphs": ["Bridges age.", "Some fail."]}
REPORT: dict[str, Any] = {"id": "GAO-99-001", "url": "https://www.example.org", "highlight": [FOUND]}
USE = "use the configuration `structure` of launch/gov_report, or the JSON files of the archive gov-report"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return draw_reports(tmp_path_factory.mktemp("reports"))


def built(out: Path, sources: dict[str, Path]) -> dict[str, Any]:
    """The lock's account of the dataset."""
    about = {"name": "gov", "builder": "summary", "reader": "govreport", "source": sources, "lengths": (8 * K,)}
    spec = DatasetSpec.model_validate({**about, "options": {"kind": "report"}, "reference_length": 16 * K})
    lock = build(Manifest(datasets=(spec,)), out, LocalExecutor(1, QUIET)).lock.public()
    found: dict[str, Any] = lock["datasets"]["gov"]
    return found


def records(out: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in (out / "mmlb_data/summ/gov_K8.jsonl").read_text("utf-8").splitlines()]
    return {row["id"]: row for row in rows}


def read(reports: Path, documents: Path) -> list[mt.Row | mt.RowFault]:
    return list(read_rows(GovReport(), {"reports": reports, "documents": documents}))


def test_the_sections_of_the_hub_give_the_examples_of_the_archive(drawn: dict[str, Path], tmp_path: Path) -> None:
    folder = write_structure(drawn["reports"], tmp_path / "hub")
    archive, hub = built(tmp_path / "archive", drawn), built(tmp_path / "out", {**drawn, "reports": folder})
    assert hub["questions"] == archive["questions"]
    assert hub["questions"]["rejected"] == {"crs-report": 1}
    expected, found = records(tmp_path / "archive"), records(tmp_path / "out")
    assert found.keys() == expected.keys()
    for id, record in found.items():
        assert {**record, "source_id": "", "url": ""} == {**expected[id], "source_id": "", "url": ""}
        assert (record["source_id"], record["url"]) == (f"GAO_{expected[id]['source_id']}", "")


def test_files_without_sections_beside_others_are_left_out_with_a_note(drawn: dict[str, Path], tmp_path: Path) -> None:
    sources = {**drawn, "reports": write_structure(drawn["reports"], tmp_path)}
    assert GovReport().notes(sources, mt.Options()) == (
        "3 of 6 Parquet files of reports are not read, because their summaries have no sections",
    )
    assert GovReport().notes(drawn, mt.Options()) == ()


@pytest.mark.parametrize("form", ["columns", "objects", "lines"])
def test_a_row_of_the_hub_is_read_in_each_of_its_forms(form: str, tmp_path: Path) -> None:
    row = structure_row(REPORT)
    if form == "objects":
        sections = row["summary_sections"]
        pairs = zip(sections["title"], sections["paragraphs"], strict=True)
        row["summary_sections"] = [{"title": title, "paragraphs": text} for title, text in pairs]
    if form == "lines":
        (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")
    source = tmp_path / "x.jsonl" if form == "lines" else write_table([row], tmp_path / "x.parquet")
    (found,) = read(source, tmp_path)
    assert isinstance(found, Summarised)
    assert (found.id, found.source_id, found.docs) == ("gov_report_gao-99-001", "GAO_GAO-99-001", ("gao-99-001",))
    assert [section.model_dump(mode="json") for section in found.sections] == [FOUND]


@pytest.mark.parametrize(
    "sections",
    [
        None,
        {"title": ["What GAO Found"], "paragraphs": []},
        {"title": [None], "paragraphs": ["x"]},
        {"title": ["What GAO Found"], "paragraphs": [None]},
        {"title": ["What GAO Found"], "paragraphs": [" \n "]},
        "What GAO Found: x",
        [["What GAO Found", "x"]],
    ],
)
def test_broken_sections_of_the_hub_are_named(sections: object, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps({"id": "GAO_GAO-1-1", "summary_sections": sections}) + "\n")
    (found,) = read(tmp_path / "x.jsonl", tmp_path)
    assert isinstance(found, mt.RowFault)
    assert found.fault.reason in ("broken-summary", "empty-summary")
    assert found.id == "gov_report_gao-1-1"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"report": "A report.", "summary": "A summary."},
            "reports-without-ids: expected the columns id and summary_sections, found report, summary; without ids no "
            f"PDF can be found (ccdv/govreport-summarization has none): {USE}",
        ),
        (
            {"id": "GAO_GAO-99-001", "document": "A report.", "summary": "A summary."},
            "summary-without-sections: expected the columns id and summary_sections, found id, document, summary; the "
            f"reference summary needs its sections (the configurations plain_text have none): {USE}",
        ),
    ],
)
def test_forms_without_ids_or_sections_are_refused_with_what_to_use_instead(
    row: dict[str, str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "documents").mkdir()
    table = write_table([row], tmp_path / "document/test-00000-of-00001.parquet")
    for source, name in ((table, table.name), (table.parents[1] / "document", table.name)):
        with pytest.raises(SourceError) as caught:
            read(source, tmp_path / "documents")
        assert str(caught.value) == f"{name}: {said}"
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")
    (found,) = read(tmp_path / "x.jsonl", tmp_path / "documents")
    assert isinstance(found, mt.RowFault)
    assert str(found.fault) == f"x.jsonl, line 1: {said}"


@pytest.mark.parametrize("id", ["GAO-99-001", "gao-99-001", "GAO_GAO-99-001", "gov_report_gao-99-001"])
@pytest.mark.parametrize("pdf", ["GAO-99-001", "gao-99-001", "gov_report_gao-99-001"])
def test_a_report_finds_its_pdf_by_its_id_in_any_form(id: str, pdf: str, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/one.json").write_text(json.dumps({**REPORT, "id": id}, indent=1))
    (tmp_path / f"{pdf}.pdf").touch()
    (found,) = read(tmp_path / "reports", tmp_path)
    assert isinstance(found, Summarised)
    assert (found.id, found.docs) == ("gov_report_gao-99-001", (pdf,))


@pytest.mark.parametrize("subsections", [{}, {"subsections": None}, {"subsections": []}])
def test_sections_may_be_without_subsections(subsections: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps({**REPORT, "highlight": [{**FOUND, **subsections}]}))
    (found,) = read(tmp_path / "one.json", tmp_path)
    assert isinstance(found, Summarised)
    assert len(found.sections) == 1


def test_files_of_a_folder_have_one_report_or_one_a_line(drawn: dict[str, Path], tmp_path: Path) -> None:
    reports = archive_reports(drawn["reports"])
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/one.json").write_text(json.dumps(reports[0]))
    (tmp_path / "reports/two.json").write_text(json.dumps(reports[1], indent=1))
    (tmp_path / "reports/lines.json").write_text("".join(f"{json.dumps(each)}\n" for each in reports[2:4]) + "{\n")
    (tmp_path / "reports/more.jsonl").write_text(json.dumps(reports[4]) + "\n")
    (tmp_path / "reports/empty.json").write_text("")
    found = read(tmp_path / "reports", drawn["documents"])
    faults = {row.fault.file: row.fault for row in found if isinstance(row, mt.RowFault)}
    places = [(row.file, row.place) for row in found if isinstance(row, Summarised)]
    assert {*places, *((file, fault.place) for file, fault in faults.items())} == {
        ("one.json", "report"),
        ("two.json", "report"),
        ("lines.json", "line 1"),
        ("lines.json", "line 2"),
        ("lines.json", "line 3"),
        ("more.jsonl", "line 1"),
        ("empty.json", "report"),
    }
    assert {file: fault.reason for file, fault in faults.items()} == {
        "lines.json": "invalid-json",
        "empty.json": "invalid-json",
        "one.json": "crs-report",
    }

"""Multi-LexSum in the form of the release and as `datasets` loads it: ids, documents and summaries."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_forms import json_lines_of, loaded_case, write_table

import mmlongbench.task as mt
from builders.samples.summarization.sources import draw_cases
from builders.summarization import MultiLexSum
from builders.summarization.rows import Summarised
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import DatasetSpec, Manifest

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)
CASE: dict[str, Any] = {"case_id": "EX-ZZ-0001", "case_documents": ["31001", "31002"], "summary/long": "A. B."}
CASE |= {"summary/short": None, "summary/tiny": None}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return draw_cases(tmp_path_factory.mktemp("cases"))


def records(out: Path, sources: dict[str, Path]) -> list[dict[str, Any]]:
    about = {"name": "lexsum", "builder": "summary", "reader": "multi_lexsum", "source": sources, "lengths": (8 * K,)}
    spec = DatasetSpec.model_validate({**about, "options": {"kind": "case"}, "reference_length": 16 * K})
    build(Manifest(datasets=(spec,)), out, LocalExecutor(1, QUIET))
    return json_lines_of(out / "mmlb_data/summ/lexsum_K8.jsonl")


def as_lines(rows: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def read(cases: Path) -> list[mt.Row | mt.RowFault]:
    return list(read_rows(MultiLexSum(), {"cases": cases, "documents": cases.parent}))


def one(raw: dict[str, Any], folder: Path) -> mt.Row | mt.Fault:
    (found,) = read(as_lines([raw], folder / "x.jsonl"))
    return found.fault if isinstance(found, mt.RowFault) else found


FORMS: dict[str, Callable[[list[dict[str, Any]], Path], Path]] = {
    "lines": lambda rows, folder: as_lines(rows, folder / "test.jsonl"),
    "file": lambda rows, folder: write_table(rows, folder / "test.parquet"),
    "folder": lambda rows, folder: write_table(rows, folder / "v20230518/test-00000-of-00001.parquet").parents[1],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_loaded_form_gives_the_examples_of_the_release(form: str, drawn: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    cases = FORMS[form]([loaded_case(row) for row in json_lines_of(drawn["cases"])], tmp_path / "cases")
    found = records(tmp_path / "out", {**drawn, "cases": cases})
    assert found
    assert found == records(tmp_path / "raw", drawn)


@pytest.mark.parametrize("raw", [CASE, loaded_case(CASE)], ids=["release", "loaded"])
def test_a_case_has_an_id_documents_and_the_summaries_that_are_not_null(raw: dict[str, Any], tmp_path: Path) -> None:
    found = one(raw, tmp_path)
    assert isinstance(found, Summarised)
    assert (found.id, found.docs) == ("EX-ZZ-0001", ("31001", "31002"))
    assert [(part.section_title, part.paragraphs) for part in found.sections] == [("long", ("A. B.",))]


@pytest.mark.parametrize(
    "change",
    [
        {"case_documents": [31001, 31002]},
        {"case_documents": [31001, "31002"]},
        {"case_documents": None, "sources_metadata": {"doc_id": [31001, 31002]}},
        {"case_documents": None, "sources_metadata": [{"doc_id": "31001"}, {"doc_id": 31002}]},
        {"case_id": None, "id": "EX-ZZ-0001"},
        {"id": "another", "sources_metadata": {"doc_id": ["7"]}},
    ],
)
def test_ids_are_texts_or_numbers_in_either_field(change: dict[str, Any], tmp_path: Path) -> None:
    found = one({**CASE, **change}, tmp_path)
    assert isinstance(found, Summarised)
    assert (found.id, found.docs) == ("EX-ZZ-0001", ("31001", "31002"))


@pytest.mark.parametrize(
    ("change", "reason", "field"),
    [
        ({"case_id": None}, "missing-or-mistyped-field", "case_id"),
        ({"case_id": 1.5}, "missing-or-mistyped-field", "case_id"),
        ({"case_id": True, "id": [1]}, "missing-or-mistyped-field", "case_id"),
        ({"case_documents": None}, "missing-or-mistyped-field", "case_documents"),
        ({"case_documents": [1.5]}, "missing-or-mistyped-field", "case_documents"),
        ({"case_documents": [], "sources_metadata": {"doc_id": ["1"]}}, "case-without-documents", "case_documents"),
        ({"case_documents": None, "sources_metadata": {}}, "missing-or-mistyped-field", "sources_metadata"),
        ({"case_documents": None, "sources_metadata": "31001"}, "missing-or-mistyped-field", "sources_metadata"),
        ({"case_documents": None, "sources_metadata": [7]}, "missing-or-mistyped-field", "sources_metadata"),
        ({"case_documents": None, "sources_metadata": []}, "case-without-documents", "sources_metadata"),
        ({"case_documents": None, "sources_metadata": {"doc_id": [1, "1"]}}, "document-twice", "sources_metadata"),
        ({"summary/long": None}, "empty-summary", "summary"),
        ({"summary/long": float("nan")}, "broken-summary", "summary"),
    ],
)
def test_a_case_that_cannot_be_used_is_named(change: dict[str, Any], reason: str, field: str, tmp_path: Path) -> None:
    found = one({**CASE, **change}, tmp_path)
    assert isinstance(found, mt.Fault)
    assert (found.reason, found.field, found.place) == (reason, field, "line 1")


def test_of_several_splits_test_is_read_and_a_note_says_so(tmp_path: Path) -> None:
    for split in ("train", "validation", "test"):
        write_table([{**loaded_case(CASE), "id": split}], tmp_path / f"{split}-00000-of-00001.parquet")
    assert [row.id for row in read(tmp_path)] == ["test"]
    notes = MultiLexSum().notes({"cases": tmp_path}, mt.Options())
    assert notes == (
        "of the splits test, train, validation, only test is read; to read another one, name its files alone, as "
        "in data/train-*.parquet",
    )


def test_rows_without_ids_are_numbered_through_all_files_of_a_split(tmp_path: Path) -> None:
    for number in (0, 1):
        path = tmp_path / f"test-{number:05d}-of-00002.parquet"
        write_table([{**loaded_case(CASE), "id": None}, {**loaded_case(CASE), "id": f"x{number}"}], path)
    assert [row.id for row in read(tmp_path)] == ["row-0", "x0", "row-2", "x1"]

"""The readers of InfoSeek and ViQuAE with faulty files: one fault for each line; no file outside is opened."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image
from tiny import command, rejects

from builders.samples.vrag.sources import draw_viquae
from builders.vrag import InfoSeek, ViQuAE
from builders.vrag.rows import EntityQuestion
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.task import Fault, RowFault, SourceError

ASKED = {
    "data_id": "infoseek_val_00000007",
    "image_id": "oven_01234567",
    "question": "Where is it?",
    "answer": ["Peru"],
    "answer_eval": ["Peru", "pe"],
}
ENTITY = {"data_id": "infoseek_val_00000007", "entity_id": "Q1", "entity_text": "Old Mill", "wikipedia_summary": "A."}
SPAN = {"title": ["Old Mill"], "wikipedia_id": ["5"], "start_paragraph_id": [1], "end_paragraph_id": [2]}
SHOWN = {
    "image": "mill.jpg",
    "input": "Where is it?",
    "original_question": "Where is Old Mill?",
    "output": {"original_answer": "Peru", "answer": ["Peru", "Republic of Peru"], "provenance": [SPAN]},
    "wikidata_id": "Q1",
}


def number(value: object, bounds: object = (0.9, 1.1)) -> dict[str, object]:
    return {"wikidata": value, "range": bounds}


def lines(path: Path, rows: list[Any]) -> Path:
    texts = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path.write_bytes(b"\n".join(texts) + b"\n")
    return path


def infoseek(folder: Path, *rows: Any, entities: tuple[Any, ...] = (ENTITY,)) -> list[EntityQuestion | Fault]:
    questions, known = lines(folder / "q.jsonl", list(rows)), lines(folder / "e.jsonl", list(entities))
    found = read_rows(InfoSeek(), {"questions": questions, "entities": known, "images": folder})
    return [row.fault if isinstance(row, RowFault) else row for row in found]  # type: ignore[misc]


def viquae(folder: Path, *rows: Any) -> list[EntityQuestion | Fault]:
    found = read_rows(ViQuAE(), {"questions": lines(folder / "q.jsonl", list(rows)), "images": folder})
    return [row.fault if isinstance(row, RowFault) else row for row in found]  # type: ignore[misc]


def test_infoseek_joins_a_question_with_its_entity(tmp_path: Path) -> None:
    [row] = infoseek(tmp_path, ASKED)
    assert isinstance(row, EntityQuestion)
    assert (row.id, row.image, row.answer) == ("infoseek-7", "oven_01234567", ("Peru", "pe"))
    assert (row.entity, row.entity_id, row.summary) == ("Old Mill", "Q1", "A.")
    assert row.original_question == "Old Mill: Where is it?"


def test_of_two_entities_of_one_id_the_first_counts(tmp_path: Path) -> None:
    [row] = infoseek(tmp_path, ASKED, entities=(ENTITY, {**ENTITY, "entity_text": "New Mill"}, b"{", [1]))
    assert isinstance(row, EntityQuestion)
    assert row.entity == "Old Mill"


@pytest.mark.parametrize("given", [[number(1.0)], number(1.0), [number(1, [1.1, 0.9])]])
def test_a_number_comes_in_a_list_or_bare_with_its_range_in_either_order(tmp_path: Path, given: object) -> None:
    [row] = infoseek(tmp_path, {**ASKED, "answer_eval": given})
    assert isinstance(row, EntityQuestion)
    assert row.answer_range == (0.9, 1.1)
    assert "1" in row.answer


@pytest.mark.parametrize(
    "value",
    [
        number(1, [1]),
        number(1, [1, 2, 3]),
        number(1, None),
        number(1, "1-2"),
        number("1"),
        number(None),
        number(1, [0, "2"]),
        number(float("nan")),
        number(1, [0, float("inf")]),
        number(True),
        {},
    ],
)
def test_a_number_without_a_usable_range_is_refused(tmp_path: Path, value: object) -> None:
    [fault] = infoseek(tmp_path, {**ASKED, "answer_eval": [value]})
    assert isinstance(fault, Fault)
    assert fault.reason == "numerical-answer"
    assert (fault.file, fault.place, fault.field) == ("q.jsonl", "line 1", "answer_eval")


@pytest.mark.parametrize("field", ["data_id", "image_id", "question"])
@pytest.mark.parametrize("value", [None, 7, "", "  ", ["a"]])
def test_infoseek_names_a_field_that_is_missing_or_mistyped(tmp_path: Path, field: str, value: object) -> None:
    [fault] = infoseek(tmp_path, {**ASKED, field: value})
    assert isinstance(fault, Fault)
    assert (fault.reason, fault.field) == ("missing-or-mistyped-field", field)


@pytest.mark.parametrize("answer", [None, [], [""], [7], {"a": 1}, 7])
def test_infoseek_refuses_a_row_without_an_answer(tmp_path: Path, answer: object) -> None:
    [fault] = infoseek(tmp_path, {**ASKED, "answer": answer, "answer_eval": [" "]})
    assert isinstance(fault, Fault)
    assert fault.reason == "no-answer"


def test_infoseek_refuses_a_question_without_an_entity(tmp_path: Path) -> None:
    [fault] = infoseek(tmp_path, ASKED, entities=())
    assert isinstance(fault, Fault)
    assert (fault.reason, fault.found) == ("no-entity", "infoseek_val_00000007")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"data_id": ', "invalid-json"),
        (b"\xff\xfe", "invalid-json"),
        (b"[" * 100_000, "invalid-json"),
        (b"[1]", "not-a-row"),
        (b'"text"', "not-a-row"),
        (b'{"question": "\\ud800"}', "invalid-unicode"),
        (b'{"\\udfff": 1}', "invalid-unicode"),
    ],
)
def test_a_line_that_is_no_row_is_one_fault_and_the_next_is_read(tmp_path: Path, line: bytes, reason: str) -> None:
    for read, good in ((infoseek, ASKED), (viquae, SHOWN)):
        fault, row = read(tmp_path, line, good)
        assert isinstance(fault, Fault)
        assert (fault.reason, fault.place) == (reason, "line 1")
        assert isinstance(row, EntityQuestion)


def test_markers_in_questions_answers_and_names_are_spelled_apart(tmp_path: Path) -> None:
    mark = "a <image> b"
    asked = {**ASKED, "question": mark, "answer": [mark], "answer_eval": [mark]}
    named = {**ENTITY, "entity_text": mark, "wikipedia_summary": mark}
    output = {"original_answer": mark, "answer": [mark], "provenance": [{**SPAN, "title": [mark]}]}
    shown = {**SHOWN, "input": mark, "original_question": mark, "output": output}
    for row in (*infoseek(tmp_path, asked, entities=(named,)), *viquae(tmp_path, shown)):
        assert isinstance(row, EntityQuestion)
        assert "<image>" not in row.model_dump_json()
        assert row.answer == ("a < image > b",)


@pytest.mark.parametrize(
    "provenance",
    [
        [SPAN],
        SPAN,
        {"title": "Old Mill", "wikipedia_id": "5", "start_paragraph_id": 1, "end_paragraph_id": 2},
        [{"title": "Old Mill", "wikipedia_id": 5, "start_paragraph_id": 2, "end_paragraph_id": 1}, "rest", None],
    ],
)
def test_provenance_is_a_dict_of_lists_or_of_scalars(tmp_path: Path, provenance: object) -> None:
    [row] = viquae(tmp_path, {**SHOWN, "output": {"answer": "Peru", "provenance": provenance}})
    assert isinstance(row, EntityQuestion)
    assert (row.id, row.spans, row.entity) == ("viquae-0", (("5", 1, 2),), "Old Mill")


@pytest.mark.parametrize("provenance", [None, [], {}, "5", [{"title": ["x"]}], {**SPAN, "start_paragraph_id": ["1"]}])
def test_viquae_refuses_a_row_without_a_span(tmp_path: Path, provenance: object) -> None:
    [fault] = viquae(tmp_path, {**SHOWN, "output": {"answer": ["Peru"], "provenance": provenance}})
    assert isinstance(fault, Fault)
    assert fault.reason == "no-provenance"


NOWHERE = {"title": ["Old Mill"], "wikipedia_id": ["5"], "start_paragraph_id": [-1], "end_paragraph_id": [-1]}
"""A span as KILT writes it if the answer was not found: the missing numbers are -1."""


@pytest.mark.parametrize("provenance", [[NOWHERE], NOWHERE, [NOWHERE, NOWHERE], {**NOWHERE, "end_paragraph_id": [4]}])
def test_viquae_names_a_row_whose_spans_name_no_paragraph(tmp_path: Path, provenance: object) -> None:
    [fault] = viquae(tmp_path, {**SHOWN, "output": {"answer": ["Peru"], "provenance": provenance}})
    assert isinstance(fault, Fault)
    assert (fault.reason, fault.field) == ("no-paragraph-named", "output.provenance")
    assert fault.found == "-1, which stands for a missing number"


def test_viquae_uses_the_spans_that_name_paragraphs_and_drops_the_others(tmp_path: Path) -> None:
    lists = {"wikipedia_id": ["5", "6"], "start_paragraph_id": [-1, 0], "end_paragraph_id": [-1, 0]}
    provenance = [NOWHERE, {"title": ["Old Mill", "New Mill"], **lists}]
    [row] = viquae(tmp_path, {**SHOWN, "output": {"answer": ["Peru"], "provenance": provenance}})
    assert isinstance(row, EntityQuestion)
    assert row.spans == (("6", 0, 0),)


@pytest.mark.parametrize("output", [None, [], "x"])
def test_viquae_refuses_an_output_that_is_no_object(tmp_path: Path, output: object) -> None:
    [fault] = viquae(tmp_path, {**SHOWN, "output": output})
    assert isinstance(fault, Fault)
    assert (fault.reason, fault.field) == ("missing-or-mistyped-field", "output")


@pytest.mark.parametrize("field", ["image", "input", "original_question"])
def test_viquae_names_a_field_that_is_missing(tmp_path: Path, field: str) -> None:
    [fault] = viquae(tmp_path, {name: value for name, value in SHOWN.items() if name != field})
    assert isinstance(fault, Fault)
    assert (fault.reason, fault.field, fault.found) == ("missing-or-mistyped-field", field, "nothing")


def test_a_missing_file_of_questions_ends_the_build(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"none\.jsonl"):
        list(read_rows(ViQuAE(), {"questions": tmp_path / "none.jsonl", "images": tmp_path}))


@pytest.mark.parametrize("ending", [".jpg", ".JPEG", ".jpeg", ".JPG", ".png", ".PNG"])
@pytest.mark.parametrize("folder", ["", "01"])
def test_infoseek_finds_pictures_flat_or_by_two_digits(tmp_path: Path, folder: str, ending: str) -> None:
    path = tmp_path / folder / f"oven_01234567{ending}"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert InfoSeek().image({"images": tmp_path}, "oven_01234567") == path


@pytest.mark.parametrize("reader", [InfoSeek(), ViQuAE()])
def test_no_name_leads_out_of_the_folder_of_pictures(tmp_path: Path, reader: InfoSeek | ViQuAE) -> None:
    images = tmp_path / "images"
    (images / "in").mkdir(parents=True)
    for name in ("out", "out.jpg", "..abcdef.jpg"):
        (tmp_path / name).touch()
    for link in ("link", "link.jpg"):
        (images / link).symlink_to(tmp_path / "out.jpg")
    (images / "..").joinpath("up").symlink_to(tmp_path)
    hostile = ("../out", "../out.jpg", f"{tmp_path}/out", f"{tmp_path}/out.jpg", "link", "link.jpg", "in/../../out")
    for name in (*hostile, "..abcdef", "in", "", ".", "..", "x" * 5000, "a\0b"):
        assert reader.image({"images": images}, name) is None


def test_bad_pictures_and_doubled_rows_are_one_reject_each_and_the_build_goes_on(tmp_path: Path) -> None:
    drawn = draw_viquae(tmp_path)
    rows = [json.loads(line) for line in drawn["questions"].read_text("utf-8").splitlines()]
    odd = next(n for n, row in enumerate(rows) if '"' in row["image"])
    rows = [*rows[:4], rows[odd]]
    whole = (drawn["images"] / rows[0]["image"]).read_bytes()
    (drawn["images"] / rows[0]["image"]).write_bytes(whole[: len(whole) // 2])
    (drawn["images"] / rows[1]["image"]).write_bytes(b"")
    (drawn["images"] / rows[2]["image"]).write_text("a picture of a mill")
    rows.append({**rows[3], "image": "not there.jpg"})
    lines(drawn["questions"], rows)
    dataset = {"name": "viquae", "builder": "vrag", "reader": "viquae", "options": {"gold": "span"}, "lengths": ["8K"]}
    source = {name: str(drawn[name]) for name in ("questions", "images")}
    manifest = {"datasets": [{**dataset, "source": source, "corpus": str(drawn["corpus"])}]}
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(manifest))
    built = command("build", tmp_path / "m.yaml", "--out", tmp_path / "out")
    assert built.code == 0, built.err
    broken = {f"viquae-{n}": "broken-image" for n in (0, 1, 2)}
    assert {r["id"]: r["reason"] for r in rejects(tmp_path / "out")} == {**broken, "viquae-5": "missing-image"}
    _check_renamed(tmp_path / "out")


def _check_renamed(out: Path) -> None:
    text = (out / "mmlb_data/vrag/viquae_K8_dep6.jsonl").read_text("utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    assert {record["id"] for record in records} == {"viquae-3", "viquae-4"}
    record = next(record for record in records if record["id"] == "viquae-4")
    assert record["image_renamed"] is True
    assert '"' not in record["image"]
    with Image.open(out / "mmlb_image" / record["image"]) as picture:
        picture.load()

"""The readers of InfoSeek and ViQuAE with faulty files: one fault for each line; no file outside is opened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_forms import json_lines_of
from one_dataset import built, write_lines
from PIL import Image
from samples import Sources

import mmlongbench.task as mt
from builders.vrag import EntityQuestion, InfoSeek, ViQuAE
from mmlongbench.building.stages.rows import read_rows

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


NOWHERE = {"title": ["Old Mill"], "wikipedia_id": ["5"], "start_paragraph_id": [-1], "end_paragraph_id": [-1]}
"""A span as KILT writes it if the answer was not found: the missing numbers are -1."""
MISTYPED = "missing-or-mistyped-field"


def infoseek(folder: Path, *rows: Any, entities: tuple[Any, ...] = (ENTITY,)) -> list[Any]:
    """The questions and the faults of lines."""
    given = {"questions": list(rows), "entities": list(entities)}
    sources = {name: write_lines(folder / f"{name}.jsonl", lines) for name, lines in given.items()}
    found = read_rows(InfoSeek(), {**sources, "images": folder})
    return [row.fault if isinstance(row, mt.readers.RowFault) else row for row in found]


def viquae(folder: Path, *rows: Any) -> list[Any]:
    found = read_rows(ViQuAE(), {"questions": write_lines(folder / "questions.jsonl", list(rows)), "images": folder})
    return [row.fault if isinstance(row, mt.readers.RowFault) else row for row in found]


def output(provenance: object, answer: object = "Peru") -> dict[str, Any]:
    return {**SHOWN, "output": {"answer": answer, "provenance": provenance}}


def test_infoseek_joins_a_question_with_its_entity_of_two_of_one_id_the_first(tmp_path: Path) -> None:
    [row] = infoseek(tmp_path, ASKED, entities=(ENTITY, {**ENTITY, "entity_text": "New Mill"}, b"{", [1]))
    assert (row.id, row.image, row.answer) == ("infoseek-7", "oven_01234567", ("Peru", "pe"))
    assert (row.entity, row.entity_id, row.summary) == ("Old Mill", "Q1", "A.")
    assert row.original_question == "Old Mill: Where is it?"
    [fault] = infoseek(tmp_path, ASKED, entities=())
    assert (fault.reason, fault.found) == ("no-entity", "infoseek_val_00000007")


def test_a_number_comes_in_a_list_or_bare_with_its_range_in_either_order(tmp_path: Path) -> None:
    given = [[number(1.0)], number(1.0), [number(1, [1.1, 0.9])]]
    for row in infoseek(tmp_path, *({**ASKED, "answer_eval": each} for each in given)):
        assert row.answer_range == (0.9, 1.1)
        assert "1" in row.answer


INFOSEEK_WRONG: list[tuple[dict[str, Any], str, str]] = [
    *(
        ({"answer_eval": [value]}, "numerical-answer", "answer_eval")
        for value in (
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
        )
    ),
    *(
        ({field: value}, MISTYPED, field)
        for field in ("data_id", "image_id", "question")
        for value in (None, 7, "", "  ", ["a"])
    ),
    *(
        ({"answer": answer, "answer_eval": [" "]}, "no-answer", "answer")
        for answer in (None, [], [""], [7], {"a": 1}, 7)
    ),
]
VIQUAE_WRONG: list[tuple[dict[str, Any], str, str]] = [
    *(
        (output(provenance, ["Peru"]), "no-provenance", "output.provenance")
        for provenance in (None, [], {}, "5", [{"title": ["x"]}], {**SPAN, "start_paragraph_id": ["1"]})
    ),
    *(
        (output(provenance, ["Peru"]), "no-paragraph-named", "output.provenance")
        for provenance in ([NOWHERE], NOWHERE, [NOWHERE, NOWHERE], {**NOWHERE, "end_paragraph_id": [4]})
    ),
    ({"output": None}, MISTYPED, "output"),
    ({"output": []}, MISTYPED, "output"),
    ({"output": "x"}, MISTYPED, "output"),
    *(({field: None}, MISTYPED, field) for field in ("image", "input", "original_question")),
]


def test_a_row_that_cannot_be_asked_is_one_fault_that_names_its_field(tmp_path: Path) -> None:
    of_infoseek: tuple[Any, Any, Any] = (infoseek, ASKED, INFOSEEK_WRONG)
    for read, row, wrong in (of_infoseek, (viquae, SHOWN, VIQUAE_WRONG)):
        faults = read(tmp_path, *({**row, **changed} for changed, _, _ in wrong))
        assert [(fault.reason, fault.field, fault.file, fault.place) for fault in faults] == [
            (reason, field, "questions.jsonl", f"line {line}") for line, (_, reason, field) in enumerate(wrong, 1)
        ]
    [fault] = viquae(tmp_path, output(NOWHERE))
    assert fault.found == "-1, which stands for a missing number"
    [fault] = viquae(tmp_path, {name: value for name, value in SHOWN.items() if name != "input"})
    assert (fault.reason, fault.field, fault.found) == (MISTYPED, "input", "nothing")
    longest, longer = viquae(tmp_path, *({**SHOWN, "input": "ж" * letters} for letters in (10_000, 10_001)))
    assert isinstance(longest, mt.Row)
    assert (longer.reason, longer.field, longer.found) == ("field-too-long", "input", "10001")


def test_a_line_that_is_no_row_is_one_fault_and_the_next_is_read(tmp_path: Path) -> None:
    lines = {
        b'{"data_id": ': "invalid-json",
        b"\xff\xfe": "invalid-json",
        b"[" * 100_000: "invalid-json",
        b"[1]": "not-a-row",
        b'"text"': "not-a-row",
        b'{"question": "\\ud800"}': "invalid-unicode",
        b'{"\\udfff": 1}': "invalid-unicode",
    }
    for read, good in ((infoseek, ASKED), (viquae, SHOWN)):
        *faults, row = read(tmp_path, *lines, good)
        assert [(fault.reason, fault.place) for fault in faults] == [
            (reason, f"line {number}") for number, reason in enumerate(lines.values(), 1)
        ]
        assert isinstance(row, EntityQuestion)
    with pytest.raises(mt.readers.SourceError, match=r"none\.jsonl"):
        list(read_rows(ViQuAE(), {"questions": tmp_path / "none.jsonl", "images": tmp_path}))


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
    ("provenance", "spans"),
    [
        ([SPAN], (("5", 1, 2),)),
        (SPAN, (("5", 1, 2),)),
        ({"title": "Old Mill", "wikipedia_id": "5", "start_paragraph_id": 1, "end_paragraph_id": 2}, (("5", 1, 2),)),
        (
            [{"title": "Old Mill", "wikipedia_id": 5, "start_paragraph_id": 2, "end_paragraph_id": 1}, "rest", None],
            (("5", 1, 2),),
        ),
        (  # spans that name no paragraph are dropped beside others
            [
                NOWHERE,
                {
                    "title": ["Old Mill", "New Mill"],
                    "wikipedia_id": ["5", "6"],
                    "start_paragraph_id": [-1, 0],
                    "end_paragraph_id": [-1, 0],
                },
            ],
            (("6", 0, 0),),
        ),
    ],
)
def test_provenance_is_a_dict_of_lists_or_of_scalars(tmp_path: Path, provenance: object, spans: object) -> None:
    [row] = viquae(tmp_path, output(provenance))
    assert (row.id, row.spans, row.entity, row.answer) == ("viquae-0", spans, "Old Mill", ("Peru",))


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


def test_bad_pictures_and_doubled_rows_are_one_reject_each_and_the_build_goes_on(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    drawn = sample("viquae")
    rows = json_lines_of(drawn["questions"])
    odd = next(number for number, row in enumerate(rows) if '"' in row["image"])
    rows = [*rows[:4], rows[odd]]
    for row in rows:
        (tmp_path / "images").mkdir(exist_ok=True)
        (tmp_path / "images" / row["image"]).write_bytes((drawn["images"] / row["image"]).read_bytes())
    whole = (drawn["images"] / rows[0]["image"]).read_bytes()
    for row, data in zip(rows, (whole[: len(whole) // 2], b"", b"a picture of a mill"), strict=False):
        (tmp_path / "images" / row["image"]).write_bytes(data)
    rows.append({**rows[3], "image": "not there.jpg"})
    source = {"questions": write_lines(tmp_path / "q.jsonl", rows), "images": tmp_path / "images"}
    about = {"name": "viquae", "builder": "vrag", "reader": "viquae", "options": {"gold": "span"}}
    release = built(tmp_path / "out", {**about, "source": {**source, "corpus": drawn["corpus"]}})
    broken = {f"viquae-{number}": "broken-image" for number in (0, 1, 2)}
    assert {row["id"]: row["reason"] for row in release.rejects()} == {**broken, "viquae-5": "missing-image"}
    records = {record["id"]: record for record in release.records()}
    assert records.keys() == {"viquae-3", "viquae-4"}
    assert (records["viquae-3"]["image_renamed"], records["viquae-4"]["image_renamed"]) == (False, True)
    assert '"' not in records["viquae-4"]["image"]
    with Image.open(release.folder / "mmlb_image" / records["viquae-4"]["image"]) as picture:
        picture.load()

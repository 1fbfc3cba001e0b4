"""`mt.Task`: the rows of a table by the fields of a row model, their ids, and the sources of a task."""

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from pydantic import BaseModel, Field
from tiny import command, draw_pdf

import mmlongbench.task as mt
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.errors import SourceError


class Seal(BaseModel, extra="forbid"):
    """A seal of a letter."""

    colour: Annotated[str, Field(min_length=1)]
    parts: tuple[int, ...] | None = None


class Letter(mt.Row):
    """A letter."""

    name: str
    year: int = 1900
    tags: tuple[str, ...] = ()
    seals: tuple[Seal, ...] = ()


class Letters(mt.Task[Letter]):
    """Letters."""

    metric = "sub_em"
    sources: ClassVar = {"letters": mt.Table, "scans": mt.Pdfs, "photos": mt.Folder}

    def draft(self, row: Letter, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        raise NotImplementedError

    def record(self, example: mt.PackedExample) -> mt.Record:
        return {}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        return mt.Prompt.of(["x"])


ROWS: list[dict[str, Any]] = [
    {"name": "Anna", "year": 1901, "tags": ["red", "blue"]},
    {"name": "Bert <image>", "year": 1902, "tags": ["red"]},
    {"name": "Clara"},
]


def read(path: Path) -> list[Any]:
    return list(read_rows(Letters.reader_type()(), {"letters": path, "scans": path.parent, "photos": path.parent}))


def jsonl(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def csv(path: Path, separator: str = ",") -> Path:
    rows = (
        ["name", "year", "tags"],
        ["Anna", "1901", "red;blue"],
        ["Bert <image>", "1902", '["red"]'],
        ["Clara", "", ""],
    )
    quoted = (separator.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    path.write_text("\n".join(quoted), "utf-8")
    return path


def parquet(path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


def test_a_row_has_the_fields_of_its_model_with_image_markers_escaped(tmp_path: Path) -> None:
    anna, bert, clara = read(jsonl(tmp_path / "letters.jsonl", *ROWS))
    assert (anna.name, anna.year, anna.tags, anna.file, anna.place) == (
        "Anna",
        1901,
        ("red", "blue"),
        "letters.jsonl",
        "line 1",
    )
    assert (bert.name, clara.year, clara.tags) == ("Bert < image >", 1900, ())


def test_all_forms_of_a_table_give_the_same_rows_with_the_same_ids(tmp_path: Path) -> None:
    forms = [
        jsonl(tmp_path / "a.jsonl", *ROWS),
        jsonl(tmp_path / "a.json", ROWS),
        csv(tmp_path / "a.csv"),
        csv(tmp_path / "semicolons.csv", ";"),
        csv(tmp_path / "a.tsv", "\t"),
        parquet(tmp_path / "a.parquet"),
    ]
    rows = [[row.model_dump(exclude={"file", "place"}) for row in read(path)] for path in forms]
    assert len(rows[0]) == 3
    assert all(each == rows[0] for each in rows)


def test_ids_do_not_move_when_rows_or_columns_are_added_or_sorted(tmp_path: Path) -> None:
    before = {row.name: row.id for row in read(jsonl(tmp_path / "a.jsonl", *ROWS))}
    more = [{"name": "Dora"}, *({**row, "note": n} for n, row in enumerate(reversed(ROWS)))]
    after = {row.name: row.id for row in read(jsonl(tmp_path / "b.jsonl", *more))}
    assert before.items() <= after.items()
    assert len({*after.values()}) == 4


def test_a_column_id_is_the_id(tmp_path: Path) -> None:
    rows = read(jsonl(tmp_path / "a.jsonl", {"id": "x-1", "name": "Anna"}, {"id": " ", "name": "A"}))
    assert (rows[0].id, len(rows[1].id)) == ("x-1", 16)


@pytest.mark.parametrize(
    ("id", "expected"), [(7, "7"), (7.0, "7"), (" x ", "x"), ("a\tb", "a\tb"), (10**400, str(10**400))]
)
def test_ids_are_texts_and_whole_numbers_without_blanks_around_them(id: object, expected: str, tmp_path: Path) -> None:
    (row,) = read(jsonl(tmp_path / "a.jsonl", {"id": id, "name": "Anna"}))
    assert row.id == expected


@pytest.mark.parametrize(
    "id", [1.5, True, False, ["q"], {"a": 1}, float("nan"), float("inf"), "a\rb", "\x1b[2J", "\x9bm"]
)
def test_an_id_of_another_type_or_with_control_characters_rejects_its_row(id: object, tmp_path: Path) -> None:
    (found,) = read(jsonl(tmp_path / "a.jsonl", {"id": id, "name": "Anna"}))
    fault = found.fault
    assert (found.id, fault.reason, fault.field, fault.place) == ("line 1", "wrong-id", "id", "line 1")
    assert fault.todo


def test_whole_floats_of_a_parquet_table_are_ids(tmp_path: Path) -> None:
    pq.write_table(pa.table({"name": ["Anna", "Bert"], "id": [1.0, None]}), tmp_path / "a.parquet")
    anna, bert = read(tmp_path / "a.parquet")
    assert anna.id == "1"
    assert len(bert.id) == 16


def test_a_parquet_table_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    columns = [pa.array(["Anna"]), pa.array(["Bert"])]
    pq.write_table(pa.Table.from_arrays(columns, names=["name", "name"]), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="wrong-columns: expected each column once, found 'name' twice; rename or"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("row", [{"name": "a\0b"}, {"name": "A", "tags": ["x", "a\0b"]}, {"name": "A", "x": {"\0": 1}}])
def test_a_nul_character_rejects_its_row_in_every_form(row: dict[str, Any], tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    for path in (jsonl(tmp_path / "a.jsonl", row), jsonl(tmp_path / "a.json", [row]), tmp_path / "a.parquet"):
        (found,) = read(path)
        assert "found a NUL character; remove the character" in str(found.fault)


def test_a_long_number_is_named_without_advice_to_programmers(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"name": "A", "year": ' + "9" * 5000 + "}\n")
    (found,) = read(tmp_path / "a.jsonl")
    assert "Exceeds the limit (4300 digits)" in str(found.fault)
    (tmp_path / "a.json").write_text("[" + "9" * 5000 + "]")
    with pytest.raises(SourceError, match="Exceeds the limit") as refused:
        read(tmp_path / "a.json")
    assert "sys." not in str(found.fault) + str(refused.value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            {"year": 1},
            "name: missing-field: expected a value, found no such column; there are year; fill in name, or ",
        ),
        (
            {"name": " "},
            "name: missing-field: expected a value, found nothing; fill in name, or give the field a default",
        ),
        ({"name": "A", "year": "old"}, "year: wrong-field: expected a valid integer, unable to parse string as an int"),
        ({"name": 5}, "name: wrong-field: expected a valid string, found 5; correct the row"),
        ({"name": "A", "tags": 5}, "tags: wrong-field: expected a valid tuple, found 5; correct the row"),
        ({"name": "A", "tags": "[1"}, "tags: wrong-field: expected a valid tuple, found '[1'; correct the row"),
        (
            {"name": "A", "seals": [{"colour": "red"}, {}]},
            "seals[1].colour: wrong-field: expected a value, found nothing;",
        ),
        ({"name": "A", "seals": [3]}, "seals[0]: wrong-field: expected an object with the fields of Seal, found 3;"),
        (
            {"name": "A", "seals": [{"colour": "red", "size": 4}]},
            "seals[0].size: wrong-field: expected no such field, found 4;",
        ),
        (
            {"name": "A", "seals": [{"colour": "red", "parts": [1, "x"]}]},
            "seals[0].parts[1]: wrong-field: expected a valid integer, unable to parse string as an integer, found 'x'",
        ),
        (
            {"name": "A", "seals": [{"colour": ""}]},
            "seals[0].colour: wrong-field: expected at least 1 character, found ''; correct the row",
        ),
        (["A"], "not-a-row: expected a JSON object, found list"),
    ],
)
def test_a_row_that_does_not_fit_its_model_is_named(raw: object, said: str, tmp_path: Path) -> None:
    (found,) = read(jsonl(tmp_path / "a.jsonl", raw))
    assert str(found.fault).startswith(f"a.jsonl, line 1{', ' if isinstance(raw, dict) else ': '}{said}")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"", "expected a table (.csv, .tsv, .xlsx, .jsonl, .json, .parquet), found the ending '.txt'"),
        ("a.csv", b"name\n\xff\n", "a.csv, line 2: unreadable-source: expected CSV in UTF-8, found the byte 0xff"),
        ("a.csv", b"name,name\n1,2\n", "a.csv, line 1: wrong-columns: expected each column once, found 'name' twice"),
        ("a.csv", b"nmae,year\n1,2\n", "expected a header with name, found no name; rename 'nmae' to 'name'"),
        (
            "a.csv",
            b"name\nA\n" + b"q" * 200_000,
            "a.csv, line 3: unreadable-source: "
            "expected cells of at most 131,072 characters, found a longer one; close its "
            "quotes if they are open; if its text is so long, save the table as JSON Lines (.jsonl)",
        ),
        ("a.csv", b'name\n"a', "expected CSV in UTF-8, found unexpected end of data"),
        ("a.json", b"{}", "expected a JSON array of rows, found dict"),
        ("a.parquet", b"PAR1", "broken-parquet: expected a Parquet file that can be read"),
    ],
)
def test_a_table_that_cannot_be_read_is_named(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError) as refused:
        read(tmp_path / name)
    assert said in str(refused.value)


def test_a_column_that_no_name_resembles_is_looked_for_among_the_other_ones(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("PDF file,Correct answer,Kind\na,b,c\n")
    with pytest.raises(SourceError) as refused:
        list(mt.readers.table_rows(tmp_path / "a.csv", mt.readers.Columns(("doc", "answer"))))
    assert str(refused.value).endswith("rename 'Correct answer' to 'answer', 'PDF file' or 'Kind' to 'doc'")


def test_a_row_of_other_columns_than_the_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,year\nAnna,1901,x\nBert\nClara,1903\n")
    one, two, three = read(tmp_path / "a.csv")
    assert one.fault.reason == two.fault.reason == "wrong-columns"
    assert three.name == "Clara"


def test_a_folder_of_pdfs_and_one_of_pictures_are_parts_of_the_reader(tmp_path: Path) -> None:
    draw_pdf(tmp_path / "ash.pdf", 1)
    (tmp_path / "cats").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "cats/1.png")
    (tmp_path / "notes.txt").write_text("")
    kind = Letters.reader_type()
    reader, sources = kind(), dict.fromkeys(("letters", "scans", "photos"), tmp_path)
    assert (kind.sources, kind.image_folder, kind.names_images_by_content) == (
        ("letters", "scans", "photos"),
        "letters",
        True,
    )
    assert reader.documents(sources) == {"ash": tmp_path / "ash.pdf"}
    assert reader.shows(sources) == {"cats/1.png": frozenset()}
    assert reader.image(sources, "cats/1.png") == tmp_path / "cats/1.png"
    assert reader.image(sources, "../outside.png") is None


POOL = '''
from typing import Annotated

import mmlongbench.task as mt


class Photo(mt.Row):
    """A photo."""

    photo: Annotated[str, mt.Folder]
    answer: str
    further: list[Annotated[str, mt.Folder]] = []
    back: Annotated[str, mt.Folder] | None = None
    number: Annotated[int, mt.Folder] | None = None


class Photos(mt.Task[Photo]):
    """Which photo is at a depth among those of all other rows."""

    metric = "sub_em"
    instruction = "Look.\\n\\n"
    sources = {"rows": mt.Table, "photos": mt.Folder}
    placements = mt.Placements(mt.Depth, (0, 1))

    def draft(self, row, sources, draws):
        units = [mt.Unit(each.id, mt.Image(sources.images[each.photo].path)) for each in self.others(row, sources)]
        needle = mt.Unit(row.id, mt.Image(sources.images[row.photo].path))
        return mt.Draft((needle,), mt.InOrder(units), f"What is {row.id}?")
'''


def test_a_row_whose_picture_is_missing_is_rejected_and_in_no_haystack(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for number in range(40):
        Image.new("RGB", (112, 112), (number * 6, 9, 9)).save(tmp_path / f"photos/{number}.png")
    rows: list[dict[str, object]] = [{"id": f"r{n}", "photo": f"{n}.png", "answer": f"number {n}"} for n in range(40)]
    rows[7]["photo"], rows[9]["photo"] = "none.png", "../photos.py"
    more: dict[int, dict[str, object]] = {
        3: {"further": ["1.png"]},
        4: {"further": ["1.png", "n{}.png"]},
        5: {"back": "n.png"},
        6: {"back": 6},
        8: {"number": 8},
    }
    rows = [row | more.get(number, {}) for number, row in enumerate(rows)]
    jsonl(tmp_path / "rows.jsonl", *rows)
    (tmp_path / "photos.py").write_text(POOL, "utf-8")
    dataset = "{name: p, builder: 'photos.py:Photos', source: {rows: rows.jsonl, photos: photos}, lengths: [1K]}"
    (tmp_path / "p.yaml").write_text(f"datasets: [{dataset}]", "utf-8")
    ran = command("build", tmp_path / "p.yaml", "--out", tmp_path / "out", "--limit", 50)
    assert ran.code == 0, ran.err
    rejects = [json.loads(line) for line in (tmp_path / "out/rejects.jsonl").read_text("utf-8").splitlines()]
    assert [(each["id"], each["reason"], each["field"], each["place"]) for each in rejects] == [
        ("r4", "missing-image", "further", "line 5"),
        ("r5", "missing-image", "back", "line 6"),
        ("r6", "wrong-field", "back", "line 7"),
        ("r7", "missing-image", "photo", "line 8"),
        ("r8", "wrong-field", "number", "line 9"),
        ("r9", "missing-image", "photo", "line 10"),
    ]
    assert rejects[0]["expected"] == "a picture 'n{}.png' among the sources"
    assert len((tmp_path / "out/mmlb_data/tasks/p_K1_dep2.jsonl").read_text("utf-8").splitlines()) == 2 * 34


def test_the_declaration_comes_from_the_class() -> None:
    class Deep(Letters):
        placements = mt.Placements(mt.Depth, (0.0, 1.0))
        reserve = 64

    spec = Deep("x", mt.Options()).spec
    assert (spec.files.template, spec.reserve, spec.placements) == (
        "tasks/{name}_K{k}_dep{placements}.jsonl",
        64,
        Deep.placements,
    )
    assert Letters("x", mt.Options()).spec.files.template == "tasks/{name}_K{k}.jsonl"
    assert Deep.row_type is Letter


def test_columns_that_no_field_has_are_named_once(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"name": "A", "note": 1}, {"name": "B", "note": 2, "more": 3})
    reader = Letters.reader_type()()
    sources = {"letters": path, "scans": tmp_path, "photos": tmp_path}
    assert reader.notes(sources, mt.Options()) == ["a.jsonl: columns not used: note, more"]


def test_a_path_of_another_form_is_named(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", *ROWS)
    for sources, said in (
        (
            {"letters": path, "scans": tmp_path, "photos": path},
            "expected a folder of pictures, found a file; correct sou",
        ),
        (
            {"letters": tmp_path, "scans": tmp_path, "photos": tmp_path},
            "expected a file: a table of rows, found a folder",
        ),
    ):
        with pytest.raises(SourceError, match=said):
            list(read_rows(Letters.reader_type()(), sources))

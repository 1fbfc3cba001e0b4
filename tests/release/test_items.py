"""Reading the table of items of a file, also one that another version or another program wrote."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mmlongbench.errors import ReleaseError
from mmlongbench.release.items import Items, items_in_order, items_of_example

FILE: Any = SimpleNamespace(name="NIAH/x_K1.jsonl", length=1024)
EXAMPLE: Any = SimpleNamespace(id="row-1", placement=0.2)
ROW: dict[str, Any] = {
    "placement": 0.2,
    "id": "row-1",
    "unit": "page-1",
    "role": "negative",
    "inside": "",
    "image": None,
    "position": 0,
    "start": 7,
    "text_tokens": 12,
    "image_tokens": 0,
}


def read(root: Path, rows: list[dict[str, Any]]) -> Any:
    path = root / "items/NIAH/x_K1.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return Items(root, 1).of(FILE, EXAMPLE)


def test_rows_come_back_as_they_were_also_where_no_unit_has_an_image(tmp_path: Path) -> None:
    rows = [{**ROW, "position": at} for at in range(3)]
    assert read(tmp_path, rows) == rows


def test_a_table_without_a_column_of_later_versions_is_read(tmp_path: Path) -> None:
    rows = [{key: value for key, value in ROW.items() if key != "inside"}]
    assert read(tmp_path, rows) == rows


def test_columns_that_items_do_not_have_are_not_read(tmp_path: Path) -> None:
    assert read(tmp_path, [{**ROW, "note": "x" * 100_000}]) == [ROW]


def test_a_text_that_each_row_repeats_is_held_once(tmp_path: Path) -> None:
    one, *others = (row["unit"] for row in read(tmp_path, [{**ROW, "unit": "x" * 16_000}] * 1_000))
    assert all(other is one for other in others)


def test_a_long_text_is_refused_in_any_group_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "items/NIAH/x_K1.parquet"
    path.parent.mkdir(parents=True)
    rows = [{**ROW, "position": at, "unit": "x" * (20_000 if at == 7 else 9)} for at in range(8)]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    for read_all in (
        lambda: Items(tmp_path, 1).of(FILE, EXAMPLE),
        lambda: items_of_example(tmp_path, FILE.name, 1024, "row-1", 0.2),
    ):
        with pytest.raises(ReleaseError, match=r"x_K1.parquet: unit: a text of 20,000 bytes, at most 16,384 are read"):
            read_all()


@pytest.mark.parametrize(("column", "value"), [("id", {"a": 1}), ("unit", 7), ("start", "7"), ("start", [7])])
def test_a_column_of_another_type_is_named(column: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=rf"^x_K1.parquet: {column} is .*, expected a text or a number$"):
        read(tmp_path, [{**ROW, column: value}])


def test_the_items_of_all_examples_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    keys = [("row-2", 0.0), ("row-2", 1.0), ("row-1", 0.0)]
    read(tmp_path, [{**ROW, "id": id, "placement": at, "position": n} for id, at in keys for n in range(3)])
    found = list(items_in_order(tmp_path, FILE.name, FILE.length))
    assert [(id, at, [item["position"] for item in items]) for id, at, items in found] == [
        (id, at, [0, 1, 2]) for id, at in keys
    ]


def test_more_units_than_an_example_can_have_are_refused_in_order_too(tmp_path: Path) -> None:
    read(tmp_path, [{**ROW, "position": at} for at in range(2 * 1024)])
    with pytest.raises(ReleaseError, match="more than 2 units"):
        list(items_in_order(tmp_path, FILE.name, 1))


def test_a_release_without_items_has_none_in_order(tmp_path: Path) -> None:
    assert list(items_in_order(tmp_path, FILE.name, FILE.length)) == []

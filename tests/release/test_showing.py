"""What is shown of an example: its prompt in order, what the items say of each unit, and what marks it.

The items may be those that another version or another program wrote. The last tests are of the arithmetic by which the
audit finds where needles stand.
"""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiled import TASKS

from mmlongbench.errors import ReleaseError
from mmlongbench.packing.place import Depth, Permutation
from mmlongbench.prompt import Image, Needle, Part, Prompt, Turn
from mmlongbench.release.items import Item, ItemReader, NoItemError, items_in_order, items_of_example, keys_of_items
from mmlongbench.release.positions import FoundNeedle, Haystack, needle_places, placement_faults
from mmlongbench.release.release import Example, open_release
from mmlongbench.release.selection import Place, find_example
from mmlongbench.release.shown_example import (
    NO_ITEMS,
    NO_UNITS,
    Block,
    NeedlePlace,
    ShownExample,
    ShownImage,
    ShownText,
    described,
    shown_example,
)
from tokenization import PatchRule, TokenCount

SIZES = {"a.jpg": (56, 56), "b.jpg": (112, 56)}


def shown(release: Path, dataset: str, placement: float | None = None) -> ShownExample:
    opened = open_release(release)
    return shown_example(opened, find_example(opened, dataset=dataset, placement=placement)[0])


def part_of(piece: ShownText | ShownImage) -> Part:
    return piece.text if isinstance(piece, ShownText) else Image(piece.path)


def edit_items(release: Path, name: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    path = release / f"items/tiles/{name}_K1.parquet"
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), table.schema), path)


def made_example(prompt: Prompt, record: dict[str, Any] | None = None) -> Example:
    """An example with another prompt; nothing of its release is read."""
    opened: Any = None
    counted = {"tokens": {"text": 1, "image": 2}, **(record or {})}
    return Example("x", "f.jsonl", counted, prompt, "yes", None, TokenCount(1, 2), {}, "d", 1024, opened)


def item(position: int, image: str | None = None, at: int | None = None) -> Item:
    return {
        "id": "x",
        "placement": None,
        "position": position if at is None else at,
        "unit": f"u{position}",
        "role": "own",
        "image": image,
        "start": 10 * position,
        "text_tokens": 9,
        "image_tokens": 0,
    }


@pytest.mark.parametrize("dataset", TASKS)
def test_the_blocks_are_the_prompt_text_by_text_and_image_by_image(tiles: Path, dataset: str) -> None:
    opened = open_release(tiles)
    for example in opened.examples(dataset, 1024):
        found = shown_example(opened, example)
        parts: list[Part] = []
        for number, block in enumerate(found.blocks):
            if number and block.name == "unit" == found.blocks[number - 1].name:
                parts.append(found.separator)
            parts += map(part_of, block.pieces)
        assert Prompt.of(parts) == example.prompt


def first_line(release: Path, name: str, number: int = 0) -> str:
    return (release / f"mmlb_data/tiles/{name}_K1.jsonl").read_text("utf-8").splitlines()[number]


def test_pages_of_the_evidence_that_the_prompt_lacks_are_listed(finished: Path) -> None:
    opened = open_release(finished)
    example = next(each for each in opened.examples("mmlongdoc", 1024) if each.evidence and each.evidence.pages)
    assert example.evidence is not None
    without = replace(example, evidence=replace(example.evidence, pages=(0, 97), shown=(0,)))
    assert shown_example(opened, without).hidden_pages == (98,)
    joined = replace(example.evidence, pages=(0, 9), shown=(0,), joined={0: (0, 4)}, document_pages=(3, 47))
    found = shown_example(opened, replace(example, evidence=joined))  # an image has five pages
    assert (found.evidence_pages, found.hidden_pages) == ((4, 48), (48,))


def test_a_prompt_without_an_outline_is_shown_part_by_part(tiles: Path) -> None:
    found = shown(tiles, "shown")
    assert found.notes == (NO_UNITS,)
    assert {block.name for block in found.blocks} == {"user"}
    assert [block.marks for block in found.blocks][:5] == [(), ("needle",), (), ("needle",), ()]


def test_an_outline_of_another_prompt_is_not_believed() -> None:
    prompt = replace(Prompt.of(["a", Image("a.jpg")]), outline=Prompt.of_units(["b"], [["c"]], " ", ["d"]).outline)
    found = described(made_example(prompt), [], (), SIZES, PatchRule())
    assert found.notes == (NO_UNITS,)
    assert [block.pieces for block in found.blocks] == [(ShownText("a"),), (ShownImage("a.jpg", (56, 56), 4),)]


def test_each_turn_has_its_role() -> None:
    prompt = Prompt.of_turns([("user", ["a", Image("b.jpg")]), ("assistant", ["c"]), ("user", ["d"])])
    found = described(made_example(prompt), None, ["c"], SIZES, PatchRule())
    assert [(block.name, block.marks) for block in found.blocks] == [
        ("user", ()),
        ("user", ()),
        ("assistant", ("needle",)),
        ("user", ()),
    ]
    assert found.blocks[2].pieces == (ShownText("c", ((0, 1),)),)


def test_a_prompt_without_units_needs_no_items() -> None:
    found = described(made_example(Prompt.of_units(["a"], [], "\n", ["q"])), [], (), SIZES, PatchRule())
    assert found.blocks == (Block("instruction", (ShownText("a"),), start=0), Block("question", (ShownText("q"),)))


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ([item(0)], "the items list 1 units, the prompt has 2"),
        ([], "the items list 0 units, the prompt has 2"),
        ([item(0), item(1, "a.jpg", at=7)], "row 1 of the items has position 7, expected 1"),
        ([item(0), item(1)], "unit 1 has the image None in the items, 'a.jpg' in the prompt"),
        (
            [item(0, image="b.jpg"), item(1, image="a.jpg")],
            "unit 0 has the image 'b.jpg' in the items, '' in the prompt",
        ),
    ],
)
def test_items_of_another_prompt_are_refused_by_name(items: list[Item], problem: str) -> None:
    prompt = Prompt.of_units(["a"], [["one"], ["two", Image("a.jpg")]], "\n", ["q"])
    with pytest.raises(ReleaseError, match=f"^{problem}$"):
        described(made_example(prompt), items, (), SIZES, PatchRule())


@pytest.mark.parametrize(
    ("record", "places"),
    [
        ({}, ()),
        ({"needle_start": 5, "depth": 0.2, "depth_achieved": 0.21}, (NeedlePlace(0.2, 0.21, 5),)),
        ({"needle_start": [9, 5], "depth_achieved": [0.9]}, (NeedlePlace(None, None, 5), NeedlePlace(None, 0.9, 9))),
        ({"needle_start": ["x", True, 10**400], "depth": {}}, (NeedlePlace(None, None, None),) * 3),
    ],
)
def test_places_of_needles_that_a_record_states(record: dict[str, Any], places: tuple[NeedlePlace, ...]) -> None:
    found = described(made_example(Prompt.of(["a"]), record), None, (), SIZES, PatchRule())
    assert sorted(found.needles, key=repr) == sorted(places, key=repr)


@pytest.mark.parametrize(
    ("variant", "needles", "starts", "note"),
    [
        ("", ["A needle."], [5], ""),
        ("longer", ["A needle."], [29], ""),
        ("longer", [("Second. Reply.", Image("a.jpg"), "End")], [39], ""),  # of several turns
        ("longer", [Image("a.jpg"), "A needle."], [29, 53], ""),
        ("other", ["Another needle."], [], "the variant 'other' does not show the needle"),
        ("other", ["A needle.", Image("b.jpg")], [], "the variant 'other' does not show all needles"),
    ],
)
def test_needles_of_a_variant_are_where_its_prompt_shows_them(
    variant: str, needles: list[Needle], starts: list[int], note: str
) -> None:
    turns = [
        [Turn("user", ("A needle.",))],
        [Turn("user", ("Second. ",)), Turn("assistant", ("Reply.", Image("a.jpg"), "End"))],
    ]
    prompt = Prompt.of_units(["I shall ask: why? Well, look. "], turns, "", ["Why?"])
    given = replace(made_example(prompt, {"needle_start": 5}), variant=variant)
    found = described(given, None, needles, SIZES, PatchRule(), count=len)
    assert [needle.start for needle in found.needles] == starts
    assert note in "".join(found.notes)


def test_without_items_everything_but_starts_and_roles_is_shown(copy: Path) -> None:
    with_items = shown(copy, "blanks")
    (copy / "items/tiles/blanks_K1.parquet").unlink()
    found = shown(copy, "blanks")
    assert found.notes == (NO_ITEMS,)
    assert all(block.unit is None and block.start is None for block in found.units)
    assert [block.pieces for block in found.blocks] == [block.pieces for block in with_items.blocks]
    assert [block.marks for block in found.blocks] == [block.marks for block in with_items.blocks]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda rows: rows[1:], "headed_K1.jsonl, tile-0: the items list 11 units, the prompt has 12"),
        (lambda rows: [{**rows[0], "start": None}, *rows[1:]], "headed_K1.jsonl, tile-0: items: unit 0: start: "),
        (lambda rows: rows[:1] * 2050 + rows[1:], "headed_K1.parquet: tile-0, 0.0: more than 2,048 units"),
    ],
)
def test_items_that_were_changed_by_hand_are_refused_by_name(copy: Path, change: Any, problem: str) -> None:
    edit_items(copy, "headed", change)
    with pytest.raises(ReleaseError, match=problem):
        shown(copy, "headed")


def test_a_record_that_was_changed_by_hand_is_refused_by_name(copy: Path) -> None:
    path = copy / "mmlb_data/tiles/headed_K1.jsonl"
    record = json.loads(first_line(copy, "headed"))
    record["units"].pop()
    path.write_text("\n".join([json.dumps(record), *path.read_text("utf-8").splitlines()[1:]]), "utf-8")
    with pytest.raises(
        ReleaseError, match=r"headed_K1\.jsonl, tile-0: the items list 12 units, the prompt has 11; see"
    ):
        shown(copy, "headed")


def test_the_items_of_one_example_are_those_of_its_id_and_placement(tiles: Path) -> None:
    found = items_of_example(tiles, "tiles/headed_K1.jsonl", 1024, "tile-1", 1.0)
    assert found is not None
    assert {(each["id"], each["placement"]) for each in found} == {("tile-1", 1.0)}
    assert [each["position"] for each in found] == list(range(12))
    assert items_of_example(tiles, "tiles/headed_K1.jsonl", 1024, "tile-1", 0.5) == []
    assert items_of_example(tiles, "tiles/nothing_K1.jsonl", 1024, "tile-1", 1.0) is None
    keys = [(f"tile-{number}", depth) for number in range(2) for depth in (0.0, 0.4, 1.0)]
    assert keys_of_items(tiles, "tiles/headed_K1.jsonl") == keys
    assert keys_of_items(tiles, "tiles/nothing_K1.jsonl") is None


def test_a_file_of_items_that_is_none_is_named(copy: Path) -> None:
    (copy / "items/tiles/headed_K1.parquet").write_bytes(b"PAR1 no")
    for read in (
        lambda: items_of_example(copy, "tiles/headed_K1.jsonl", 1024, "tile-0", 0.0),
        lambda: keys_of_items(copy, "tiles/headed_K1.jsonl"),
    ):
        with pytest.raises(ReleaseError, match=r"^headed_K1\.parquet: is no Parquet file of items: ArrowInvalid; see"):
            read()
    assert issubclass(NoItemError, ReleaseError)


def found_in(release: Path, **wanted: Any) -> tuple[Example, list[Place]]:
    return find_example(open_release(release), **wanted)


def test_the_first_example_that_fits_is_found_and_the_others_are_listed(tiles: Path) -> None:
    example, places = found_in(tiles, id="tile-1", dataset="headed")
    assert places == [Place("headed", 1024, depth) for depth in (0.0, 0.4, 1.0)]
    assert example.key == {"file": "tiles/headed_K1.jsonl", "id": "tile-1", "depth": 0.0}
    _, places = found_in(tiles, id="tile-1", placement=1)
    assert places[0] == Place("headed", 1024, 1.0)
    assert {place.dataset for place in places[1:]} == set(TASKS)
    assert found_in(tiles)[0].id == "tile-0"


def test_examples_are_found_also_where_items_are_missing_or_broken(copy: Path) -> None:
    (copy / "items/tiles/headed_K1.parquet").unlink()
    (copy / "items/tiles/blanks_K1.parquet").write_bytes(b"no table")
    assert found_in(copy, id="tile-1", dataset="headed", placement=0.4)[0].record["depth"] == 0.4
    assert found_in(copy, id="tile-1", dataset="blanks")[0].id == "tile-1"


def test_a_release_can_be_sent_to_another_process_after_it_has_counted(tiles: Path) -> None:
    opened = open_release(tiles)
    sent = pickle.loads(pickle.dumps(opened))
    price, sent_price = (each.dataset("headed").counter.text.price("one line") for each in (opened, sent))
    assert price == sent_price


def test_ids_are_those_of_the_records_where_items_say_others(copy: Path) -> None:
    edit_items(copy, "headed", lambda rows: [{**row, "id": f"forged-{row['id']}"} for row in rows])
    assert set(open_release(copy).ids("headed", 1024)) == {"tile-0", "tile-1"}


NIAH: Any = SimpleNamespace(name="NIAH/x_K1.jsonl", length=1024)
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
    return ItemReader(root, NIAH.name, NIAH.length, examples=1).of("row-1", 0.2)


OLD = {key: value for key, value in ROW.items() if key != "inside"}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ([{**ROW, "position": at} for at in range(3)], [{**ROW, "position": at} for at in range(3)]),
        ([OLD], [OLD]),
        ([{**ROW, "note": "x" * 100_000}], [ROW]),
    ],
    ids=["no unit has an image", "a column of later versions is missing", "a column that items do not have"],
)
def test_rows_of_items_come_back_as_they_were(
    written: list[dict[str, Any]], found: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert read(tmp_path, written) == found


def test_a_text_that_each_row_repeats_is_held_once(tmp_path: Path) -> None:
    one, *others = (row["unit"] for row in read(tmp_path, [{**ROW, "unit": "x" * 16_000}] * 1_000))
    assert all(other is one for other in others)


def test_what_is_read_ahead_is_bounded_by_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [("row-1", at / 8) for at in range(8)]
    read(tmp_path, [{**ROW, "id": id, "placement": at, "position": n} for id, at in keys for n in range(2)])
    assert ItemReader(tmp_path, NIAH.name, 1).of("row-1", 0.875)
    monkeypatch.setattr("mmlongbench.release.items._ROWS_AHEAD", 2)
    assert ItemReader(tmp_path, NIAH.name, 1).of("row-1", 0.875) == ()
    assert ItemReader(tmp_path, NIAH.name, 1).of("row-1", 0.125)


def test_a_long_text_is_refused_in_any_group_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "items/NIAH/x_K1.parquet"
    path.parent.mkdir(parents=True)
    rows = [{**ROW, "position": at, "unit": "x" * (20_000 if at == 7 else 9)} for at in range(8)]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    for read_all in (
        lambda: ItemReader(tmp_path, NIAH.name, NIAH.length, examples=1).of("row-1", 0.2),
        lambda: items_of_example(tmp_path, NIAH.name, 1024, "row-1", 0.2),
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
    found = list(items_in_order(tmp_path, NIAH.name, NIAH.length))
    assert [(id, at, [item["position"] for item in items]) for id, at, items in found] == [
        (id, at, [0, 1, 2]) for id, at in keys
    ]


def test_more_units_than_an_example_can_have_are_refused_in_order_too(tmp_path: Path) -> None:
    read(tmp_path, [{**ROW, "position": at} for at in range(2 * 1024)])
    with pytest.raises(ReleaseError, match="more than 2 units"):
        list(items_in_order(tmp_path, NIAH.name, 1))
    assert list(items_in_order(tmp_path, "NIAH/none_K1.jsonl", 1)) == []


@pytest.mark.parametrize(
    ("start", "achieved", "depth", "said"),
    [
        (64, 0.5, 0.5, None),
        (64, 0.0, 0.5, "depth_achieved is 0.0, but in the prompt it is 0.5000"),
        (5, 0.5, 0.5, "needle_start is 5, but in the prompt the tokens before needles are 4, 64"),
        (64, 0.5, 0.57, "depth is 0.57, but in the prompt the needle is at 0.5000"),
        (64, 0.5, 0.53, None),
    ],
)
def test_of_several_needles_the_one_at_the_depth_is_looked_at(
    start: int, achieved: float, depth: float, said: str | None
) -> None:
    found = [FoundNeedle(4, 10, is_sentence=False), FoundNeedle(64, 10, is_sentence=False)]
    hay = Haystack((0, 50), (0, 10, 20, 30, 40, 50, 60, 100), slack=0.51)
    record = {"needle_start": start, "depth_achieved": achieved, "depth": depth}
    assert list(placement_faults(record, found, hay, Depth(depth))) == ([said] if said else [])


def test_a_sentence_between_two_units_may_stand_in_the_middle_of_either() -> None:
    found = [FoundNeedle(844, 11, is_sentence=True)]
    hay = Haystack((844,), (0, 788, 819, 969, 1665), slack=2.51)
    record = {"needle_start": [844], "depth_achieved": [844 / 1665]}
    for place, is_near in ((818, True), (817, True), (810, False), (900, True), (960, False)):
        said = list(placement_faults({**record, "depth_requested": [place / 1665]}, found, hay, Permutation(0)))
        assert (not said) == is_near, place


def test_thousands_of_equal_needles_are_found_one_after_the_other() -> None:
    prompt = Prompt.of(["Read.\n", "It is so. " * 20_000])
    assert list(needle_places(["It is so."] * 20_000, prompt, 6)) == list(range(6, 6 + 10 * 20_000, 10))

"""The readers of photographs with faulty files: one fault for each question; no file outside the folder is opened."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builders.visual_haystacks import Photographs, VisualHaystacks
from builders.visual_haystacks.rows import PhotographQuestion
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.task import Fault, RowFault, SourceError

ASKED = "For the image with a truck, is there a dog?"
ITEM = {
    "pos_image": ["coco/train2017/000000000001.jpg"],
    "neg_image": ["coco/train2017/000000000002.jpg", "train2017/000000000003.jpg"],
    "conversations": [{"from": "human", "value": ASKED}, {"from": "gpt", "value": "Yes"}],
}
LINE = {"id": "a", "question": ASKED, "answer": "No", "needles": ["one.jpg"], "negatives": ["two.jpg"]}
IMAGES = [{"id": number, "file_name": f"{number:012}.jpg"} for number in (1, 2, 3, 4)]
COCO = {
    "images": IMAGES,
    "annotations": [
        {"image_id": 1, "category_id": 8, "segmentation": [[1.5, 2]], "iscrowd": 0},
        {"image_id": 1, "category_id": 18, "segmentation": {"counts": "x", "size": [1, 2]}, "iscrowd": 1},
        {"image_id": 3, "category_id": 8},
        {"image_id": 99, "category_id": 8},
    ],
    "categories": [{"id": 8, "name": "truck"}, {"id": 18, "name": "dog"}],
}
Found = PhotographQuestion | Fault


def turns(question: object, answer: object) -> dict[str, Any]:
    return {**ITEM, "conversations": [{"value": question}, {"value": answer}]}


def sources(folder: Path, data: object, annotations: object = None) -> dict[str, Path]:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    (folder / "q.json").write_bytes(text)
    found = {"questions": folder / "q.json", "images": folder / "coco"}
    (folder / "coco" / "train2017").mkdir(parents=True, exist_ok=True)
    if annotations is not None:
        found["annotations"] = folder / "instances_train2017.json"
        found["annotations"].write_text(json.dumps(annotations))
    return found


def original(folder: Path, *items: object, annotations: object = None) -> list[Found]:
    rows = read_rows(VisualHaystacks(), sources(folder, items, annotations))
    return [row.fault if isinstance(row, RowFault) else row for row in rows]  # type: ignore[misc]


def plain(folder: Path, *lines: object, annotations: object = None) -> list[Found]:
    data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    rows = read_rows(Photographs(), sources(folder, data, annotations))
    return [row.fault if isinstance(row, RowFault) else row for row in rows]  # type: ignore[misc]


def row(found: Found) -> PhotographQuestion:
    assert isinstance(found, PhotographQuestion), found
    return found


def fault(found: Found) -> Fault:
    assert isinstance(found, Fault), found
    return found


def test_an_item_of_the_original_is_read_without_the_prefix_of_its_images(tmp_path: Path) -> None:
    [found] = original(tmp_path, ITEM)
    assert row(found) == PhotographQuestion(
        id="vh_single-0",
        question=ASKED,
        answer="Yes",
        needles=("train2017/000000000001.jpg",),
        negatives=("train2017/000000000002.jpg", "train2017/000000000003.jpg"),
        anchor="truck",
        file="q.json",
        place="item 0",
    )


def test_ids_count_all_items_and_tell_one_needle_from_several(tmp_path: Path) -> None:
    several = {**ITEM, "pos_image": ["a.jpg", "b.jpg"]}
    found = list(read_rows(VisualHaystacks(), sources(tmp_path, [ITEM, 7, several, {**several, "conversations": []}])))
    assert [entry.id for entry in found] == ["vh_single-0", "vh_single-1", "vh_multi-2", "vh_multi-3"]


def test_an_item_without_own_negatives_has_none(tmp_path: Path) -> None:
    [found] = original(tmp_path, {key: ITEM[key] for key in ("pos_image", "conversations")})
    assert row(found).negatives == ()


@pytest.mark.parametrize(
    ("question", "anchor"),
    [
        (ASKED, "truck"),
        ("For the image with an orange, is there a dog?", "orange"),
        ("for all images with a wine glass, do all of them contain an oven", "wine glass"),
        ("For all images with a hot dog, do any of them contain a cup ?", "hot dog"),
        ("Is there a dog?", ""),
        ("For the image with a truck, what is it?", ""),
    ],
)
def test_the_anchor_is_the_object_that_the_question_tells_the_needles_by(
    tmp_path: Path, question: str, anchor: str
) -> None:
    [found] = original(tmp_path, turns(question, "Yes"))
    assert row(found).anchor == anchor


def test_markers_before_the_question_go_and_others_are_spelled_apart(tmp_path: Path) -> None:
    [found] = original(tmp_path, turns("<image>\n<image>\nIs the <image> red?", "no"))
    assert (row(found).question, row(found).answer) == ("Is the < image > red?", "No")


@pytest.mark.parametrize(
    ("change", "reason", "field"),
    [
        ({"pos_image": []}, "missing-or-mistyped-field", "pos_image"),
        ({"pos_image": "a.jpg"}, "missing-or-mistyped-field", "pos_image"),
        ({"pos_image": [7]}, "missing-or-mistyped-field", "pos_image"),
        ({"pos_image": None}, "missing-or-mistyped-field", "pos_image"),
        ({"neg_image": [None]}, "missing-or-mistyped-field", "neg_image"),
        ({"neg_image": {"a": 1}}, "missing-or-mistyped-field", "neg_image"),
        ({"pos_image": [""]}, "path-outside-source", "pos_image"),
        ({"pos_image": ["coco/"]}, "path-outside-source", "pos_image"),
        ({"pos_image": ["/etc/hosts"]}, "path-outside-source", "pos_image"),
        ({"pos_image": ["coco//etc/hosts"]}, "path-outside-source", "pos_image"),
        ({"neg_image": ["train2017/../../a.jpg"]}, "path-outside-source", "neg_image"),
        ({"neg_image": ["a\0.jpg"]}, "path-outside-source", "neg_image"),
        ({"neg_image": ["a\ud800.jpg"]}, "invalid-unicode", "neg_image"),
        (turns("\udfff?", "Yes"), "invalid-unicode", "conversations[0].value"),
        (turns("<image>\n", "Yes"), "empty-question", "conversations[0].value"),
        (turns(" ", "Yes"), "missing-or-mistyped-field", "conversations[0].value"),
        (turns(ASKED, "Maybe"), "neither-yes-nor-no", "conversations[1].value"),
        (turns(ASKED, "Yes and No"), "neither-yes-nor-no", "conversations[1].value"),
        (turns(ASKED, True), "missing-or-mistyped-field", "conversations[1].value"),
        ({"conversations": [{"value": ASKED}]}, "missing-or-mistyped-field", "conversations"),
        ({"conversations": [ASKED, "Yes"]}, "missing-or-mistyped-field", "conversations"),
        ({"conversations": None}, "missing-or-mistyped-field", "conversations"),
    ],
)
def test_a_bad_item_is_one_fault_with_its_place_and_the_next_is_read(
    tmp_path: Path, change: Mapping[str, Any], reason: str, field: str
) -> None:
    bad, good = original(tmp_path, {**ITEM, **change}, ITEM)
    found = fault(bad)
    assert (found.reason, found.field, found.file, found.place) == (reason, field, "q.json", "item 0")
    assert found.expected
    assert found.found
    row(good)


@pytest.mark.parametrize("item", [7, None, [], "text"])
def test_an_item_that_is_no_object_is_one_fault(tmp_path: Path, item: object) -> None:
    assert [fault(found).reason for found in original(tmp_path, item)] == ["not-a-row"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "invalid-json"),
        (b'[{"a": ', "invalid-json"),
        (b'["\xff"]', "unreadable-source"),
        (b"[" * 100_000, "unreadable-source"),
        (b"{}", "invalid-source"),
    ],
)
def test_a_file_that_is_no_array_of_json_cannot_be_used_at_all(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(SourceError) as error:
        list(read_rows(VisualHaystacks(), sources(tmp_path, data)))
    assert (error.value.fault.reason, error.value.fault.file) == (reason, "q.json")


@pytest.mark.parametrize("reader", [VisualHaystacks, Photographs])
def test_a_missing_file_of_questions_is_named_without_its_folder(
    tmp_path: Path, reader: type[VisualHaystacks | Photographs]
) -> None:
    with pytest.raises(SourceError) as error:
        list(read_rows(reader(), {"questions": tmp_path / "none.json", "images": tmp_path}))
    assert error.value.fault.file == "none.json"
    assert str(tmp_path) not in str(error.value)


def test_annotations_say_what_each_picture_shows_below_its_split(tmp_path: Path) -> None:
    found = VisualHaystacks().shows(sources(tmp_path, [ITEM], COCO))
    assert found == {
        "train2017/000000000001.jpg": {"truck", "dog"},
        "train2017/000000000002.jpg": frozenset(),
        "train2017/000000000003.jpg": {"truck"},
        "train2017/000000000004.jpg": frozenset(),
    }


def test_without_annotations_nothing_is_known_of_the_original(tmp_path: Path) -> None:
    assert VisualHaystacks().shows(sources(tmp_path, [ITEM])) == {}


def test_a_split_that_the_annotations_do_not_name_is_found_by_looking(tmp_path: Path) -> None:
    given = sources(tmp_path, [ITEM], {**COCO, "images": [*IMAGES, {"id": 5, "file_name": "val/5.jpg"}]})
    given["annotations"] = given["annotations"].rename(tmp_path / "mine.json")
    (given["images"] / "train2017" / "000000000002.jpg").touch()
    names = set(VisualHaystacks().shows(given))
    assert {"train2017/000000000002.jpg", "000000000001.jpg", "val/5.jpg"} <= names


def test_own_negatives_that_show_the_anchor_go_and_are_counted(tmp_path: Path) -> None:
    [found] = original(tmp_path, ITEM, annotations=COCO)
    assert row(found).negatives == ("train2017/000000000002.jpg",)
    assert row(found).repairs == ("negative-shows-anchor",)


def test_a_needle_among_the_negatives_is_left_for_the_builder_to_refuse(tmp_path: Path) -> None:
    [found] = original(tmp_path, {**ITEM, "neg_image": ITEM["pos_image"]}, annotations=COCO)
    assert row(found).negatives == row(found).needles


def test_a_needle_that_lacks_the_anchor_is_refused_and_one_that_is_not_annotated_is_not(tmp_path: Path) -> None:
    lacking, unknown = (
        {**ITEM, "neg_image": [], "pos_image": [name]} for name in ("train2017/000000000004.jpg", "val2017/4.jpg")
    )
    first, second = original(tmp_path, lacking, unknown, annotations=COCO)
    assert (fault(first).reason, fault(first).found) == ("needle-without-anchor", "train2017/000000000004.jpg")
    assert row(second).anchor == "truck"


def test_an_anchor_that_is_no_category_leaves_the_pool_alone_and_is_counted(tmp_path: Path) -> None:
    spelled = turns("For the image with a TRUCK, is there a dog?", "Yes")
    unknown = turns("For the image with a lorry, is there a dog?", "Yes")
    first, *others = original(tmp_path, spelled, unknown, turns("Is there a dog?", "Yes"), annotations=COCO)
    assert row(first).anchor == "truck"
    for found in others:
        assert (row(found).anchor, row(found).repairs) == ("", ("anchor-unknown-pool-unused",))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"images": None}, ""),
        ({"images": [{"id": 1}]}, "images, item 0"),
        ({"images": [7]}, "images, item 0"),
        ({"categories": [{"id": [1], "name": "dog"}]}, "categories, item 0"),
        (
            {"annotations": [{"image_id": 1, "category_id": 8}, {"image_id": 1, "category_id": 9}]},
            "annotations, item 1",
        ),
        ({"annotations": [{"image_id": 1}]}, "annotations, item 0"),
        ({"annotations": [{"image_id": [1], "category_id": {}}]}, "annotations, item 0"),
        ({"annotations": ["x"]}, "annotations, item 0"),
    ],
)
def test_annotations_in_another_form_cannot_be_used_at_all(
    tmp_path: Path, change: Mapping[str, Any], place: str
) -> None:
    given = sources(tmp_path, [ITEM], {**COCO, **change})
    with pytest.raises(SourceError) as error:
        VisualHaystacks().shows(given)
    found = error.value.fault
    assert (found.reason, found.file, found.place) == ("invalid-annotations", "instances_train2017.json", place)


@pytest.mark.parametrize("reader", [VisualHaystacks, Photographs])
def test_a_picture_is_found_in_the_folder_and_nowhere_else(
    tmp_path: Path, reader: type[VisualHaystacks | Photographs]
) -> None:
    given = sources(tmp_path, [ITEM])
    inside, outside = given["images"] / "train2017" / "a.jpg", tmp_path / "b.jpg"
    for path in (inside, outside):
        path.touch()
    (given["images"] / "link.jpg").symlink_to(outside)
    assert reader().image(given, "train2017/a.jpg") == inside
    for name in ("../b.jpg", "link.jpg", str(outside), "train2017", "none.jpg", "a\0", "\ud800", "x" * 5000):
        assert reader().image(given, name) is None


def test_a_plain_line_has_an_id_negatives_and_an_anchor_where_it_says_so(tmp_path: Path) -> None:
    bare = {key: LINE[key] for key in ("question", "answer", "needles")}
    first, second, third = plain(tmp_path, LINE, bare, {**bare, "id": 7, "anchor": "lorry"})
    assert row(first).id == "a"
    assert (row(first).needles, row(first).negatives, row(first).place) == (("one.jpg",), ("two.jpg",), "line 1")
    assert (row(second).id, row(second).negatives) == ("vh-2", ())
    assert (row(third).id, row(third).anchor) == ("7", "lorry")


def test_without_annotations_any_anchor_lets_the_pool_in(tmp_path: Path) -> None:
    [found] = plain(tmp_path, LINE)
    assert row(found).anchor == "a"


def test_without_annotations_the_pool_is_every_picture_that_is_no_needle(tmp_path: Path) -> None:
    more = {**LINE, "needles": ["./sub/five.PNG", "six.jpg"]}
    data = b"\n".join([json.dumps(LINE).encode(), json.dumps(more).encode(), b"{", b'{"needles": 7}'])
    given = sources(tmp_path, data)
    for name in ("one.jpg", "two.jpg", "four.webp", ".hidden.jpg", "notes.txt", "sub/five.PNG", "sub/seven.jpeg"):
        (given["images"] / name).parent.mkdir(exist_ok=True)
        (given["images"] / name).touch()
    expected = dict.fromkeys(("two.jpg", "four.webp", "sub/seven.jpeg"), frozenset[str]())
    assert Photographs().shows(given) == expected


def test_with_annotations_a_plain_anchor_is_a_category(tmp_path: Path) -> None:
    given = [{**LINE, "anchor": anchor} for anchor in ("Truck", "lorry", None)]
    first, second, third = plain(tmp_path, *given, annotations=COCO)
    assert row(first).anchor == row(third).anchor == "truck"
    assert (fault(second).reason, fault(second).place) == ("unknown-anchor", "line 2")
    assert set(Photographs().shows(sources(tmp_path, b"", COCO))) == {f"train2017/{n:012}.jpg" for n in (1, 2, 3, 4)}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "invalid-json"),
        (b"\xff", "invalid-json"),
        (b"[" * 100_000, "invalid-json"),
        (b"[1]", "not-a-row"),
        ({**LINE, "id": ""}, "missing-or-mistyped-field"),
        ({**LINE, "id": True}, "missing-or-mistyped-field"),
        ({**LINE, "id": "\ud800"}, "invalid-unicode"),
        ({**LINE, "question": None}, "missing-or-mistyped-field"),
        ({**LINE, "answer": "perhaps"}, "neither-yes-nor-no"),
        ({**LINE, "needles": []}, "missing-or-mistyped-field"),
        ({**LINE, "needles": ["../one.jpg"]}, "path-outside-source"),
        ({**LINE, "negatives": "two.jpg"}, "missing-or-mistyped-field"),
        ({**LINE, "anchor": 7}, "missing-or-mistyped-field"),
    ],
)
def test_a_bad_line_is_one_fault_and_the_next_is_read(tmp_path: Path, line: object, reason: str) -> None:
    bad, good = plain(tmp_path, line, LINE)
    assert (fault(bad).reason, fault(bad).place) == (reason, "line 1")
    row(good)

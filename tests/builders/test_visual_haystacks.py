"""Visual Haystacks: rows of both readers, folders of question files, and haystacks without the anchor object."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hub_forms import haystack_item, json_lines_of, write_haystacks
from one_dataset import built
from PIL import Image
from samples import Sources as Paths

import mmlongbench.task as mt
from builders.visual_haystacks import Photographs, VisualHaystack, VisualHaystacks
from builders.visual_haystacks.readers import PhotographQuestion, asked_objects
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.documents.pictures import Pictures
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import examples
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

Reader = VisualHaystacks | Photographs
MISTYPED = "missing-or-mistyped-field"
OUTSIDE = "path-outside-source"

# --- rows -------------------------------------------------------------------------------------------------------------

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


def original(folder: Path, *items: object, annotations: object = None) -> list[Any]:
    """The questions and faults of a file in the original format."""
    rows = read_rows(VisualHaystacks(), sources(folder, items, annotations))
    return [row.fault if isinstance(row, mt.readers.RowFault) else row for row in rows]


def plain(folder: Path, *lines: object, annotations: object = None) -> list[Any]:
    """The questions and faults of lines in the format of one's own photographs."""
    data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    rows = read_rows(Photographs(), sources(folder, data, annotations))
    return [row.fault if isinstance(row, mt.readers.RowFault) else row for row in rows]


def test_an_item_of_the_original_is_read_without_the_prefix_of_its_images(tmp_path: Path) -> None:
    bare = {key: ITEM[key] for key in ("pos_image", "conversations")}
    marked = turns("<image>\n<image>\nIs the <image> red?", "no")
    item, without, spelled = original(tmp_path, ITEM, bare, marked)
    assert item == PhotographQuestion(
        id="vh_single-0",
        question=ASKED,
        answer="Yes",
        needles=("train2017/000000000001.jpg",),
        negatives=("train2017/000000000002.jpg", "train2017/000000000003.jpg"),
        anchor="truck",
        file="q.json",
        place="item 0",
    )
    assert without.negatives == ()
    assert (spelled.question, spelled.answer) == ("Is the < image > red?", "No")
    several = {**ITEM, "pos_image": ["a.jpg", "b.jpg"]}
    found = read_rows(VisualHaystacks(), sources(tmp_path, [ITEM, 7, several, {**several, "conversations": []}]))
    assert [entry.id for entry in found] == ["vh_single-0", "vh_single-1", "vh_multi-2", "vh_multi-3"]


def test_the_anchor_is_the_object_that_the_question_tells_the_needles_by(tmp_path: Path) -> None:
    anchors = {
        ASKED: "truck",
        "For the image with an orange, is there a dog?": "orange",
        "for all images with a wine glass, do all of them contain an oven": "wine glass",
        "For all images with a hot dog, do any of them contain a cup ?": "hot dog",
        "Is there a dog?": "",
        "For the image with a truck, what is it?": "",
    }
    found = original(tmp_path, *(turns(question, "Yes") for question in anchors))
    assert [row.anchor for row in found] == [*anchors.values()]


NO_NAMES: tuple[Any, ...] = ([], "a.jpg", [7], None)
WRONG: list[tuple[object, str, str]] = [
    *(({"pos_image": value}, MISTYPED, "pos_image") for value in NO_NAMES),
    *(({"neg_image": value}, MISTYPED, "neg_image") for value in ([None], {"a": 1})),
    *(({"pos_image": [name]}, OUTSIDE, "pos_image") for name in ("", "coco/", "/etc/hosts", "coco//etc/hosts")),
    *(({"neg_image": [name]}, OUTSIDE, "neg_image") for name in ("train2017/../../a.jpg", "a\0.jpg")),
    ({"neg_image": ["a\ud800.jpg"]}, "invalid-unicode", "neg_image"),
    (turns("\udfff?", "Yes"), "invalid-unicode", "conversations[0].value"),
    (turns("<image>\n", "Yes"), "empty-question", "conversations[0].value"),
    (turns(" ", "Yes"), MISTYPED, "conversations[0].value"),
    (turns(ASKED, "Maybe"), "neither-yes-nor-no", "conversations[1].value"),
    (turns(ASKED, "Yes and No"), "neither-yes-nor-no", "conversations[1].value"),
    (turns(ASKED, True), MISTYPED, "conversations[1].value"),
    *(({"conversations": value}, MISTYPED, "conversations") for value in ([{"value": ASKED}], [ASKED, "Yes"], None)),
    *((value, "not-a-row", "") for value in (7, None, "text")),
    ([], "not-a-row", ""),
]


def test_a_bad_item_is_one_fault_with_its_place_and_the_next_is_read(tmp_path: Path) -> None:
    items = [{**ITEM, **change} if isinstance(change, dict) else change for change, _, _ in WRONG]
    *faults, good = original(tmp_path, *items, ITEM)
    assert [(fault.reason, fault.field, fault.file, fault.place) for fault in faults] == [
        (reason, field, "q.json", f"item {number}") for number, (_, reason, field) in enumerate(WRONG)
    ]
    assert all(fault.expected and fault.found for fault in faults)
    assert isinstance(good, PhotographQuestion)
    joint = {"image": ["a.jpg", "b.jpg"], "conversations": ITEM["conversations"]}
    [fault] = original(tmp_path, joint)
    assert (fault.reason, fault.field, fault.expected) == ("joint-picture-list", "image", "pos_image and neg_image")
    oracles = original(tmp_path, {**ITEM, "neg_image": []}, {**ITEM, "neg_image": None})
    assert [row.negatives for row in oracles] == [(), ()]


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
    with pytest.raises(mt.readers.SourceError) as error:
        list(read_rows(VisualHaystacks(), sources(tmp_path, data)))
    assert (error.value.fault.reason, error.value.fault.file) == (reason, "q.json")


@pytest.mark.parametrize("reader", [VisualHaystacks, Photographs])
def test_a_missing_file_of_questions_is_named_without_its_folder(
    tmp_path: Path, reader: type[VisualHaystacks | Photographs]
) -> None:
    with pytest.raises(mt.readers.SourceError) as error:
        list(read_rows(reader(), {"questions": tmp_path / "none.json", "images": tmp_path}))
    assert error.value.fault.file == "none.json"
    assert str(tmp_path) not in str(error.value)


def test_a_plain_line_has_an_id_negatives_and_an_anchor_where_it_says_so(tmp_path: Path) -> None:
    bare = {key: LINE[key] for key in ("question", "answer", "needles")}
    first, second, third = plain(tmp_path, LINE, bare, {**bare, "id": 7, "anchor": "lorry"})
    assert (first.id, first.needles, first.negatives, first.place) == ("a", ("one.jpg",), ("two.jpg",), "line 1")
    assert first.anchor == "a"  # without annotations any anchor lets the pool in
    assert (second.id, second.negatives) == ("vh-2", ())
    assert (third.id, third.anchor) == ("7", "lorry")


LINES: list[tuple[object, str]] = [
    (b"{", "invalid-json"),
    (b"\xff", "invalid-json"),
    (b"[" * 100_000, "invalid-json"),
    (b"[1]", "not-a-row"),
    ({**LINE, "id": ""}, MISTYPED),
    ({**LINE, "id": True}, MISTYPED),
    ({**LINE, "id": "\ud800"}, "invalid-unicode"),
    ({**LINE, "question": None}, MISTYPED),
    ({**LINE, "answer": "perhaps"}, "neither-yes-nor-no"),
    ({**LINE, "needles": []}, MISTYPED),
    ({**LINE, "needles": ["../one.jpg"]}, OUTSIDE),
    ({**LINE, "negatives": "two.jpg"}, MISTYPED),
    ({**LINE, "anchor": 7}, MISTYPED),
]


def test_a_bad_line_is_one_fault_and_the_next_is_read(tmp_path: Path) -> None:
    *faults, good = plain(tmp_path, *(line for line, _ in LINES), LINE)
    assert [(fault.reason, fault.place) for fault in faults] == [
        (reason, f"line {number}") for number, (_, reason) in enumerate(LINES, 1)
    ]
    assert isinstance(good, PhotographQuestion)


# --- what annotations say ---------------------------------------------------------------------------------------------


def test_annotations_say_what_each_picture_shows_below_its_split(tmp_path: Path) -> None:
    assert VisualHaystacks().shows(sources(tmp_path, [ITEM])) == {}
    assert VisualHaystacks().shows(sources(tmp_path, [ITEM], COCO)) == {
        "train2017/000000000001.jpg": {"truck", "dog"},
        "train2017/000000000002.jpg": frozenset(),
        "train2017/000000000003.jpg": {"truck"},
        "train2017/000000000004.jpg": frozenset(),
    }
    given = sources(tmp_path, [ITEM], {**COCO, "images": [*IMAGES, {"id": 5, "file_name": "val/5.jpg"}]})
    given["annotations"] = given["annotations"].rename(tmp_path / "mine.json")  # names no split: it is looked for
    (given["images"] / "train2017" / "000000000002.jpg").touch()
    names = set(VisualHaystacks().shows(given))
    assert {"train2017/000000000002.jpg", "000000000001.jpg", "val/5.jpg"} <= names


def test_negatives_with_the_anchor_go_and_needles_without_it_are_refused(tmp_path: Path) -> None:
    lacking, unknown = (
        {**ITEM, "neg_image": [], "pos_image": [name]} for name in ("train2017/000000000004.jpg", "val2017/4.jpg")
    )
    among = {**ITEM, "neg_image": ITEM["pos_image"]}
    shown, needle, first, second = original(tmp_path, ITEM, among, lacking, unknown, annotations=COCO)
    assert (shown.negatives, shown.repairs) == (("train2017/000000000002.jpg",), ("negative-shows-anchor",))
    assert needle.negatives == needle.needles  # left for the builder to refuse
    assert (first.reason, first.found) == ("needle-without-anchor", "train2017/000000000004.jpg")
    assert second.anchor == "truck"


def test_an_anchor_that_is_no_category_leaves_the_pool_alone_and_is_counted(tmp_path: Path) -> None:
    questions = ("For the image with a TRUCK, is there a dog?", "For the image with a lorry, is there a dog?")
    asked = (turns(question, "Yes") for question in (*questions, "Is there a dog?"))
    first, *others = original(tmp_path, *asked, annotations=COCO)
    assert first.anchor == "truck"
    assert [(row.anchor, row.repairs) for row in others] == [("", ("anchor-unknown-pool-unused",))] * 2
    given = [{**LINE, "anchor": anchor} for anchor in ("Truck", "lorry", None)]
    first, second, third = plain(tmp_path, *given, annotations=COCO)
    assert first.anchor == third.anchor == "truck"
    assert (second.reason, second.place) == ("unknown-anchor", "line 2")
    assert set(Photographs().shows(sources(tmp_path, b"", COCO))) == {f"train2017/{n:012}.jpg" for n in (1, 2, 3, 4)}


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
    with pytest.raises(mt.readers.SourceError) as error:
        VisualHaystacks().shows(given)
    found = error.value.fault
    assert (found.reason, found.file, found.place) == ("invalid-annotations", "instances_train2017.json", place)


def test_without_annotations_the_pool_is_every_picture_that_is_no_needle(tmp_path: Path) -> None:
    more = {**LINE, "needles": ["./sub/five.PNG", "six.jpg"]}
    data = b"\n".join([json.dumps(LINE).encode(), json.dumps(more).encode(), b"{", b'{"needles": 7}'])
    given = sources(tmp_path, data)
    for name in ("one.jpg", "two.jpg", "four.webp", ".hidden.jpg", "notes.txt", "sub/five.PNG", "sub/seven.jpeg"):
        (given["images"] / name).parent.mkdir(exist_ok=True)
        (given["images"] / name).touch()
    expected = dict.fromkeys(("two.jpg", "four.webp", "sub/seven.jpeg"), frozenset[str]())
    assert Photographs().shows(given) == expected


def test_pictures_that_the_pool_does_not_read_are_named(tmp_path: Path) -> None:
    given = sources(tmp_path, json.dumps(LINE).encode())
    for name in ("one.jpg", "phone.HEIC", "sub/new.avif", ".hidden.heic", "notes.txt"):
        (given["images"] / name).parent.mkdir(exist_ok=True)
        (given["images"] / name).touch()
    faults = [row for row in read_rows(Photographs(), given) if isinstance(row, mt.readers.RowFault)]
    assert {fault.id: fault.fault.found for fault in faults} == {
        "images/phone.HEIC": ".HEIC",
        "images/sub/new.avif": ".avif",
    }
    assert all(fault.fault.is_expected and "JPEG or PNG" in fault.fault.todo for fault in faults)


# --- files of questions and pictures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", [VisualHaystacks, Photographs])
def test_a_picture_is_found_in_the_folder_and_nowhere_else(tmp_path: Path, reader: type[Reader]) -> None:
    given = sources(tmp_path, [ITEM])
    inside, outside = given["images"] / "train2017" / "a.jpg", tmp_path / "b.jpg"
    for path in (inside, outside):
        path.touch()
    (given["images"] / "link.jpg").symlink_to(outside)
    assert reader().image(given, "train2017/a.jpg") == inside
    for name in ("../b.jpg", "link.jpg", str(outside), "train2017", "none.jpg", "a\0", "\ud800", "x" * 5000):
        assert reader().image(given, name) is None


def read(folder: Path) -> list[Any]:
    return list(read_rows(VisualHaystacks(), {"questions": folder, "images": folder}))


def item(needles: list[str], negatives: Sequence[str] = ()) -> dict[str, Any]:
    asked = {"question": "For all images with a dog, is there a cat?", "answer": "Yes", "needles": needles}
    return haystack_item({**asked, "negatives": negatives}, 99)


def in_json(path: Path, *items: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(items), "utf-8")
    return path


@pytest.mark.parametrize("split", ["train2017", "val2017", "test2017"])
@pytest.mark.parametrize("prefix", ["", "coco/"])
def test_pictures_of_every_split_are_found_with_and_without_the_prefix(split: str, prefix: str, tmp_path: Path) -> None:
    picture = tmp_path / "root" / split / "000000000009.jpg"
    picture.parent.mkdir(parents=True)
    picture.touch()
    (row,) = read(in_json(tmp_path / "q.json", item([f"{prefix}{split}/{picture.name}"])))
    for images in (tmp_path / "root", picture.parent):
        assert VisualHaystacks().image({"images": images}, row.needles[0]) == picture


def test_a_folder_is_read_as_its_files_and_bad_items_keep_ids_of_their_own(tmp_path: Path) -> None:
    one = in_json(tmp_path / "q/visual_haystack_10.json", item(["a.jpg"]), item(["a.jpg"]), item(["a.jpg", "b.jpg"]))
    (tmp_path / "q/dataset_infos.json").write_text("{}")
    alone = read(one)
    assert [row.id for row in alone] == ["vh_single-0", "vh_single-1", "vh_multi-2"]  # twice in one file is kept
    assert read(tmp_path / "q") == alone
    bad: list[object] = [7, {}, {"pos_image": 3}, {"pos_image": ["a"], "conversations": [3]}, item(["a.jpg"])]
    for name in ("a", "b"):
        in_json(tmp_path / f"bad/{name}/visual_haystack_2.json", *bad)
    found = read(tmp_path / "bad")
    assert len({row.id for row in found}) == len(found) == 10
    assert [isinstance(row, PhotographQuestion) for row in found].count(True) == 1
    (tmp_path / "none").mkdir()
    (tmp_path / "none/notes.txt").touch()
    with pytest.raises(
        mt.readers.SourceError, match=r"none: missing-questions: .*visual_haystack_\*\.json, found none"
    ):
        read(tmp_path / "none")


def test_a_question_in_files_of_two_sizes_is_asked_once_with_the_negatives_of_the_larger(tmp_path: Path) -> None:
    many = [f"{number}.jpg" for number in range(9)]
    for size in (2, 100, 20):
        other = item(["coco/c.jpg" if size == 2 else "c.jpg"])
        in_json(tmp_path / f"visual_haystack_{size}.json", item(["a.jpg"], many[: size // 20]), other)
    in_json(tmp_path / "visual_haystack_oracle.json", item(["a.jpg"]), item(["d.jpg"]))
    found = read(tmp_path)
    assert [(row.id, len(row.negatives)) for row in found if isinstance(row, PhotographQuestion)] == [
        ("vh_single-visual_haystack_100-0", 5),
        ("vh_single-visual_haystack_100-1", 0),
        ("vh_single-visual_haystack_oracle-1", 0),
    ]
    faults = [row.fault for row in found if isinstance(row, mt.readers.RowFault)]
    assert {(fault.reason, fault.is_expected) for fault in faults} == {("repeated-question", True)}
    assert (faults[0].file, faults[0].place) == ("visual_haystack_20.json", "item 0")
    assert "visual_haystack_100.json, item 0" in faults[0].found


def test_files_of_two_and_three_needles_are_one_dataset_whatever_root_the_pictures_have(
    sample: Callable[[str], Paths], tmp_path: Path
) -> None:
    drawn = sample("photographs")
    questions = json_lines_of(drawn["questions"])
    folder = write_haystacks(drawn["questions"], tmp_path / "multi_needle")
    about = {"name": "vh_multi", "builder": "visual_haystack", "reader": "visual_haystacks"}
    dataset: dict[str, Any] = {**about, "options": {"needles": "several"}, "source": {**drawn, "questions": folder}}
    dataset |= {"lengths": ["2K"], "admission_length": "2K"}
    release = built(tmp_path / "out", dataset)
    counts = (release.questions["kept"], release.questions["rejected"], release.questions["skipped"])
    assert counts == (len(questions), {}, {"repeated-question": len(questions)})
    found = release.records(2)
    assert {record["needle_count"] for record in found} == {2, 3}
    assert all(len(record["needles"]) == record["needle_count"] for record in found)
    asked = {tuple(f"vh/{name}" for name in each["needles"]): each["question"] for each in questions}
    assert {tuple(record["needles"]): record["question"] for record in found} == asked
    assert found[0]["id"] == "vh_multi-multi_needle_2.visual_haystack_10-0"
    assert drawn["images"].name == "coco"
    pictures = {**drawn, "questions": folder, "images": drawn["images"] / "train2017"}
    inner = built(tmp_path / "inner", {**dataset, "source": pictures}, "--limit", 3)
    kept = {record["id"] for record in inner.records(2)}
    assert inner.records(2) == [record for record in found if record["id"] in kept]
    assert {path.rpartition("/")[0] for path in inner.images()} == {"vh/train2017"}


# --- haystacks --------------------------------------------------------------------------------------------------------

OPENING = (
    "You are given a set of images. Please answer the question in Yes or No based on the given images. "
    "Write your answer in the following format:\nAnswer: [answer]\n\n"
)
COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule())
RESERVE = 128
DRAWS = mt.Draws((42, "vh"))


@dataclass(frozen=True)
class Haystack:
    """A sample, opened."""

    sources: mt.Sources
    rows: tuple[PhotographQuestion, ...]
    shown: Mapping[str, set[str]]
    """Objects by released path, read from the annotations without the reader."""


def builder(**options: str) -> VisualHaystack:
    return VisualHaystack("vh", VisualHaystack.options_type.model_validate(options))


def opened(reader: Reader, sources: Mapping[str, Path]) -> mt.Sources:
    pictures = Pictures(reader.image_folder, partial(reader.image, sources), 10**8)
    return mt.Sources(images=mt.advanced.Images(pictures, reader.shows(sources)))


def made(
    task: VisualHaystack, row: PhotographQuestion, sources: mt.Sources, length: int = 8 * K
) -> list[mt.PackedExample]:
    draws = DRAWS.at(row.id)
    placements = task.spec.placements
    assert placements is not None
    pricer = Pricer(COUNTER, sources.sizes)
    return examples(task.draft(row, sources, draws), TokenBudget(length, RESERVE), placements.all(), pricer, draws)


def taken(task: VisualHaystack, row: PhotographQuestion, sources: mt.Sources) -> list[tuple[str, str]]:
    """(id, why it is excluded) of each unit of the take order, in the order of being taken."""
    return [(unit.id, unit.excluded) for unit in task.draft(row, sources, DRAWS.at(row.id)).take_order.units(0)]


def annotated(path: Path) -> dict[str, set[str]]:
    data = json.loads(path.read_bytes())
    names = {category["id"]: category["name"] for category in data["categories"]}
    files = {image["id"]: f"vh/train2017/{image['file_name']}" for image in data["images"]}
    shown: dict[str, set[str]] = {file: set() for file in files.values()}
    for instance in data["annotations"]:
        shown[files[instance["image_id"]]].add(names[instance["category_id"]])
    return shown


@pytest.fixture(scope="module")
def haystacks(sample: Callable[[str], Paths]) -> dict[str, Haystack]:
    """The samples of one needle and of several, opened."""
    found = {}
    readers: dict[str, tuple[Reader, str]] = {
        "single": (VisualHaystacks(), "visual_haystacks"),
        "several": (Photographs(), "photographs"),
    }
    for kind, (reader, name) in readers.items():
        rows = tuple(read_rows(reader, sample(name)))
        assert all(isinstance(row, PhotographQuestion) for row in rows)
        found[kind] = Haystack(opened(reader, sample(name)), rows, annotated(sample(name)["annotations"]))  # type: ignore[arg-type]
    return found


@pytest.fixture
def tiny(tmp_path: Path) -> mt.Sources:
    """Eight pictures of 112 × 112 pixels, 16 tokens each; of the pool, d shows a kite, and f is broken."""
    for name in "abcdefgh":
        Image.new("RGB", (112, 112), (ord(name), 90, 90)).save(tmp_path / f"{name}.png")
    (tmp_path / "f.png").write_bytes(b"no picture")
    (tmp_path / "q.jsonl").write_text("")
    reader = Photographs()
    shown = {f"{name}.png": frozenset({"kite"} if name == "d" else ()) for name in "cdefgh"}
    sources = {"questions": tmp_path / "q.jsonl", "images": tmp_path}
    return mt.Sources(
        images=mt.advanced.Images(Pictures(reader.image_folder, partial(reader.image, sources), 10**8), shown)
    )


def asked(needles: Sequence[str] = ("a.png",), negatives: Sequence[str] = (), anchor: str = "kite") -> Any:
    question = "For the image with a kite, is there a dog?"
    given = {"needles": tuple(needles), "negatives": tuple(negatives), "anchor": anchor}
    return PhotographQuestion(id="vh_single-0", question=question, answer="No", **given)  # type: ignore[arg-type]


def every(haystacks: Mapping[str, Haystack]) -> Iterator[tuple[Haystack, PhotographQuestion, mt.PackedExample]]:
    for kind, haystack in haystacks.items():
        for row in haystack.rows:
            for example in made(builder(needles=kind), row, haystack.sources):
                yield haystack, row, example


def test_the_small_example_is_this_to_the_character(tiny: mt.Sources) -> None:
    task = builder(finish="none")
    example = made(task, asked(negatives=["b.png", "missing.png"]), tiny, 1 * K)[2]
    shown = ["vh/b.png", "vh/c.png", "vh/a.png", "vh/g.png", "vh/e.png", "vh/h.png"]
    record = task.record(example)
    assert record == {
        "id": "vh_single-0",
        "question": "For the image with a kite, is there a dog?",
        "answer": "No",
        "ctxs": shown,
        "needles": ["vh/a.png"],
    }
    images = "\n".join("<image>" for _ in shown)
    ask = "\n\nQuestion: For the image with a kite, is there a dog?\nAnswer:"
    assert example.prompt.rendered() == OPENING + images + ask
    assert example.prompt.images == tuple(shown)
    assert example.count == COUNTER.count(example.prompt.text, [(112, 112)] * 6)
    assert example.ran_dry
    assert dict(example.left_out) == {"broken-image": 1, "missing-image": 1}


def test_a_released_line_gives_the_prompt_again_and_no_distractor_shows_the_anchor_object(
    haystacks: dict[str, Haystack],
) -> None:
    for haystack, row, example in every(haystacks):
        record = json.loads(json.dumps(builder().record(example)))
        assert builder().prompt({**record, "depth": 0.2, "unknown": None}) == example.prompt
        assert (record["id"], record["answer"], record["question"]) == (row.id, row.answer, row.question)
        assert record["needles"] == [haystack.sources.images[name].path for name in row.needles]
        assert len(set(record["ctxs"])) == len(record["ctxs"])
        with_anchor = [path for path in record["ctxs"] if row.anchor in haystack.shown[path]]
        assert sorted(with_anchor) == sorted(record["needles"])
        assert not example.ran_dry


def test_the_sample_asks_what_is_true_and_tells_no_answer(haystacks: dict[str, Haystack]) -> None:
    for kind, haystack in haystacks.items():
        assert Counter(row.answer for row in haystack.rows) == {"Yes": 6, "No": 6}
        assert len({row.anchor for row in haystack.rows}) == 12
        for row in haystack.rows:
            anchor, target = asked_objects(row.question)
            having = [target in haystack.shown[f"vh/{name}"] for name in row.needles]
            assert anchor == row.anchor
            assert (row.answer == "Yes") == (any(having) if " any " in row.question else all(having))
            assert not row.repairs
        counts = Counter((len(row.needles), " any " in row.question, row.answer) for row in haystack.rows)
        answers = [{key[:2]: many for key, many in counts.items() if key[2] == said} for said in ("Yes", "No")]
        assert answers[0].keys() == answers[1].keys(), kind


def test_one_needle_stands_at_six_depths_and_several_in_three_permutations(haystacks: dict[str, Haystack]) -> None:
    for kind, expected in (("single", 6), ("several", 3)):
        haystack = haystacks[kind]
        found = made(builder(needles=kind), haystack.rows[0], haystack.sources)
        assert len(found) == expected
        assert len({frozenset(example.prompt.images) for example in found}) == 1
        assert len({example.prompt for example in found}) == expected
        for example in found:
            others = [unit.id for unit in example.units if unit.role == "negative"]
            assert others == [unit.id for unit in found[0].units if unit.role == "negative"]


def test_closing_photographs_fill_the_budget_and_the_plain_way_stops_at_the_first_misfit(
    haystacks: dict[str, Haystack],
) -> None:
    haystack = haystacks["single"]
    fills = []
    for row in haystack.rows:
        closed, plain = (
            made(builder(finish=finish), row, haystack.sources, 16 * K)[0] for finish in ("closing", "none")
        )
        fills.append((closed.count.total + RESERVE) / (16 * K))
        assert closed.count.total >= plain.count.total
        order = [id for id, _ in taken(builder(), row, haystack.sources)]
        assert [unit.id for unit in plain.units[1:]] == order[: len(plain.units) - 1]
        assert [unit.id for unit in closed.units[1:-3]] == order[: len(closed.units) - 4]
    assert min(fills) >= 0.99
    assert sum(fills) / len(fills) >= 0.997


def test_a_longer_context_begins_with_a_shorter_one_but_for_the_closing(haystacks: dict[str, Haystack]) -> None:
    haystack = haystacks["several"]
    for row in haystack.rows[:4]:
        contexts = [made(builder(needles="several"), row, haystack.sources, length * K)[0] for length in (8, 16, 32)]
        order = [[unit.id for unit in example.units if unit.role == "negative"] for example in contexts]
        for shorter, longer in pairwise(order):
            assert shorter[:-2] == longer[: len(shorter) - 2]
        assert not contexts[-1].ran_dry


def test_an_oracle_context_has_the_needles_alone(haystacks: dict[str, Haystack]) -> None:
    for kind, haystack in haystacks.items():
        for row in haystack.rows[:3]:
            for example in made(builder(needles=kind, context="oracle"), row, haystack.sources):
                assert {unit.role for unit in example.units} == {"needle"}
                assert len(example.units) == len(row.needles)


def test_which_distractors_are_taken_and_in_which_order(tiny: mt.Sources) -> None:
    order = [id for id, _ in taken(builder(), asked(negatives=["b.png", "c.png", "b.png"]), tiny)]
    assert set(order[:2]) == {"b.png", "c.png"}  # own negatives before the pool, each once
    assert sorted(order[2:]) == ["e.png", "f.png", "g.png", "h.png"]
    assert taken(builder(), asked(negatives=["b.png"], anchor=""), tiny) == [("b.png", "")]  # no anchor, no pool
    found = taken(builder(needles="several"), asked(needles=["c.png", "e.png"]), tiny)
    assert sorted(id for id, _ in found) == ["f.png", "g.png", "h.png"]  # a needle is no distractor
    found = taken(builder(), asked(negatives=["none.png", "../q.jsonl"]), tiny)
    excluded = {id: reason for id, reason in found if reason}
    assert excluded == {"none.png": "missing-image", "../q.jsonl": "missing-image", "f.png": "broken-image"}


def test_the_order_differs_between_questions_and_seeds_and_is_the_same_twice(haystacks: dict[str, Haystack]) -> None:
    sources, row = haystacks["single"].sources, haystacks["single"].rows[0]
    orders = [
        [unit.id for unit in islice(builder().draft(row, sources, draws).take_order.units(0), 9, 60)]
        for draws in (DRAWS.at("a"), DRAWS.at("a"), DRAWS.at("b"), mt.Draws((43, "vh", "a")))
    ]
    assert orders[0] == orders[1]
    assert len(set(map(tuple, orders))) == 3


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (asked(needles=["a.png", "a.png"]), "needle-twice"),
        (asked(negatives=["b.png", "a.png"]), "needle-among-negatives"),
        (asked(needles=["a.png", "b.png"]), "several-needles"),
        (asked(needles=["none.png"]), "missing-image"),
        (asked(needles=["f.png"]), "broken-image"),
    ],
)
def test_a_question_whose_needles_cannot_be_used_is_rejected(
    tiny: mt.Sources, row: PhotographQuestion, reason: str
) -> None:
    with pytest.raises(mt.Rejected) as caught:
        builder().draft(row, tiny, DRAWS)
    assert caught.value.fault.reason == reason


def test_files_are_named_by_questions_length_and_placements() -> None:
    for kind, placements in (("single", 6), ("several", 3)):
        spec = builder(needles=kind).spec
        assert spec.metric == "binary_acc"
        assert spec.placements is not None
        name = spec.files.write("vh_x", 8 * K, 1000, len(spec.placements.all()))
        assert name == f"NIAH/vh_x_test_1000_K8_dep{placements}.jsonl"

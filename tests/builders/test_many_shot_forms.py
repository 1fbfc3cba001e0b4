"""The forms of classified pictures: Food-101, SUN397, Stanford Cars, iNaturalist, Parquet, folders, MATLAB files."""

import io
import json
import shutil
import struct
import sys
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from class_sets import (
    CARS,
    CORRUPTED,
    COUNTS,
    FOODS,
    SCENES,
    SHAPES,
    annotations,
    class_names,
    draw_cars,
    draw_folders,
    draw_food101,
    draw_inat,
    draw_parquet,
    draw_sun397,
    drawn_picture,
    save_mat,
)
from PIL import Image

import mmlongbench.task as mt
from builders.many_shot import ImageFolders, ImageTables, INaturalist, ManyShot
from builders.many_shot.forms import MAX_BYTES, read_variable
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.documents.pixels import is_like_any, likeness
from mmlongbench.io.downloads import snapshot
from mmlongbench.io.locations import HubFiles, parse_location

TWO = {"data/train-00000-of-00001.parquet": "train", "data/test-00000-of-00001.parquet": "test"}
PLAIN = ("abbey", "airplane cabin", "apartment building outdoor")
ORIGINALS: dict[str, Callable[[Path], Path]] = {"food101": draw_food101, "sun397": draw_sun397, "cars196": draw_cars}
NAMES = {"food101": FOODS, "sun397": PLAIN, "cars196": CARS}


def kept(source: Path) -> list[Any]:
    return [row for row in read_rows(ImageTables(), {"data": source}) if isinstance(row, mt.Row)]


def faults(source: Path) -> list[mt.readers.RowFault]:
    return [row for row in read_rows(ImageTables(), {"data": source}) if isinstance(row, mt.readers.RowFault)]


def reasons(source: Path) -> dict[str, int]:
    return dict(Counter(fault.fault.reason for fault in faults(source)))


def classes(source: Path) -> dict[str, tuple[str, int, int]]:
    """(name, exemplars, tests) of each class."""
    found = ImageTables().image_classes({"data": source}).classes
    return {id: (each.name, len(each.exemplars), each.tests) for id, each in found.items()}


@pytest.mark.parametrize("name", ORIGINALS)
def test_the_original_and_the_parquet_form_have_the_same_classes_splits_and_pictures(name: str, tmp_path: Path) -> None:
    original = ORIGINALS[name](tmp_path / "original")
    parquet = draw_parquet(tmp_path / "parquet", NAMES[name], TWO)
    expected = {f"{n:05}": (each, COUNTS["train"], COUNTS["test"]) for n, each in enumerate(NAMES[name])}
    assert classes(original) == classes(parquet) == expected
    assert [(row.id, row.kind) for row in kept(original)] == [(row.id, row.kind) for row in kept(parquet)]
    assert not faults(original)
    for split, count in (("exemplars", 27), ("tests", 6)):
        for number in range(count):
            cells = [ImageTables().image({"data": data}, f"{split}/{number}") for data in (original, parquet)]
            assert len({cell.read_bytes() for cell in cells if cell}) == 1
        assert ImageTables().image({"data": original}, f"{split}/{count}") is None


# --- Food-101 ---------------------------------------------------------------------------------------------------------


def test_the_lists_of_food101_may_be_texts_and_the_folder_may_be_one_level_above(tmp_path: Path) -> None:
    folder = draw_food101(tmp_path / "food" / "food-101")
    found = classes(tmp_path / "food"), [row.id for row in kept(tmp_path / "food")]
    for split in COUNTS:
        (folder / f"meta/{split}.json").unlink()
    assert (classes(folder), [row.id for row in kept(folder)]) == found
    assert kept(folder)[3].place == "line 4"


def test_a_class_without_a_folder_is_named_and_the_others_are_used(tmp_path: Path) -> None:
    folder = draw_food101(tmp_path)
    shutil.rmtree(folder / "images" / FOODS[1])
    assert [(row.id, row.kind) for row in kept(folder)] == [
        *((f"test-{n}", "00000") for n in range(2)),
        *((f"test-{n}", "00002") for n in (4, 5)),
    ]
    assert reasons(folder) == {"missing-image": 11}
    first = faults(folder)[0]
    assert (first.id, first.fault.file, first.fault.place) == ("test-2", "test.json", f"'{FOODS[1]}', item 0")
    assert first.fault.expected == f"the picture images/{FOODS[1]}/1000.jpg"
    assert first.fault.found == f"no folder images/{FOODS[1]}"
    assert [name for name, _, _ in classes(folder).values()] == [FOODS[0], FOODS[2]]


ENTRIES: dict[str, list[Any]] = {
    "missing-image": ["apple_pie/9999", "apple_pie/\0", f"apple_pie/{'x' * 5000}"],
    "unknown-class": [
        "apple_pie/../../../secret",
        "../secret",
        "/etc/passwd",
        "beignets/1000",
        "",
        None,
        ["apple_pie/1000"],
    ],
    "invalid-unicode": ["apple_pie/\ud800"],
    "image-twice": ["apple_pie/1000", "  apple_pie/1001\n"],
}


def test_each_hostile_entry_and_class_of_food101_is_one_fault_that_leads_nowhere(tmp_path: Path) -> None:
    folder = draw_food101(tmp_path / "food")
    (tmp_path / "secret.jpg").write_bytes(b"outside")
    path = folder / "meta/test.json"
    listed = json.loads(path.read_text())
    entries = [entry for each in ENTRIES.values() for entry in each]
    path.write_text(json.dumps({**listed, "apple_pie": ["apple_pie/1000", "apple_pie/1001", *entries]}))
    assert reasons(folder) == {reason: len(each) for reason, each in ENTRIES.items()}
    assert len(kept(folder)) == 6
    for number, kind in enumerate(("..", "../..", "/etc", "a\0b", "\ud800")):
        folder = draw_food101(tmp_path / f"{number}")  # what a folder holds is looked up once
        path = folder / "meta/test.json"
        path.write_text(json.dumps({**listed, kind: [f"{kind}/secret"]}))
        assert sum(reasons(folder).values()) == 1
        assert {name for name, _, _ in classes(folder).values()} == {*FOODS}
        assert ImageTables().image({"data": folder}, f"tests/{len(kept(folder))}") is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe[]", "unreadable-source|invalid-json"),
        (b"[]", "an object with a list of pictures for each class"),
        (b'{"apple_pie": "apple_pie/1"}', "an object with a list of pictures for each class"),
        (b'{"apple_pie": [', "invalid-json"),
    ],
)
def test_a_list_of_food101_that_cannot_be_read_is_named(data: bytes, said: str, tmp_path: Path) -> None:
    folder = draw_food101(tmp_path)
    (folder / "meta/train.json").write_bytes(data)
    with pytest.raises(mt.readers.SourceError, match=f"train.json.*({said})"):
        kept(folder)


@pytest.mark.parametrize("linked", ["images", f"images/{FOODS[0]}"])
def test_a_folder_that_is_a_link_out_gives_no_picture(linked: str, tmp_path: Path) -> None:
    folder = draw_food101(tmp_path / "set")
    (folder / linked).rename(tmp_path / "outside")
    (folder / linked).symlink_to(tmp_path / "outside")
    asked = 2 if linked.endswith(FOODS[0]) else 6
    assert reasons(folder) == {"path-outside-source": asked + asked // 2 * COUNTS["train"]}
    found = [ImageTables().image({"data": folder}, f"tests/{number}") for number in range(6)]
    assert sum(picture is None for picture in found) == asked


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    folder = draw_food101(tmp_path / "set")
    (folder / "images").rename(folder / "pictures")
    (folder / "images").symlink_to(folder / "pictures")
    assert not faults(folder)
    assert all(ImageTables().image({"data": folder}, f"tests/{number}") for number in range(6))


# --- SUN397 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("partitions", "used"), [(("10", "01"), "01"), (("07",), "07"), (("09", "10"), "09")])
@pytest.mark.parametrize("lists", ["", "Partitions"])
def test_the_first_partition_of_sun397_is_used(
    partitions: tuple[str, ...], used: str, lists: str, tmp_path: Path
) -> None:
    folder = draw_sun397(tmp_path, lists, partitions)
    assert {row.file for row in kept(folder)} == {f"Testing_{used}.txt"}
    [note] = ImageTables().notes({"data": folder}, ManyShot.options_type())
    assert note == f"{tmp_path.name}: partition {used} of SUN397 is used"


def test_half_a_partition_of_sun397_is_passed_over_and_named_if_there_is_no_other(tmp_path: Path) -> None:
    folder = draw_sun397(tmp_path / "second", partitions=("01", "02"))
    (folder / "Testing_01.txt").unlink()
    assert {row.file for row in kept(folder)} == {"Testing_02.txt"}
    folder = draw_sun397(tmp_path / "none", partitions=("01", "02"))
    for name in ("Testing_01.txt", "Testing_02.txt"):
        (folder / name).unlink()
    said = "missing-split: expected `Training_01.txt` and `Testing_01.txt`, found Training_01.txt, Training_02.txt; add"
    with pytest.raises(mt.readers.SourceError, match=said):
        kept(folder)


@pytest.mark.parametrize("name", ["Training_01.txt", "Testing_01.txt", "ClassName.txt"])
def test_a_list_of_sun397_in_another_encoding_is_named_and_a_link_out_is_not_read(name: str, tmp_path: Path) -> None:
    folder = draw_sun397(tmp_path / "set")
    (folder / name).write_bytes(b"/a/abbey\r\n/c/caf\xe9\r\n")
    with pytest.raises(mt.readers.SourceError, match=rf"{name}, line 2: invalid-unicode: .* in UTF-8, found byte 0xe9"):
        kept(folder)
    (tmp_path / "secret.txt").write_text("a secret")
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path / "secret.txt")
    with pytest.raises(mt.readers.SourceError, match=r"missing-(split|file)"):
        kept(folder)


def test_each_hostile_line_of_sun397_is_one_fault(tmp_path: Path) -> None:
    lines = {
        "/z/zoo/sun_a.jpg": "unknown-class",
        "/a/abbey/../../../secret.jpg": "unknown-class",
        "sun_a.jpg": "unknown-class",
        "/a/abbey/none.jpg": "missing-image",
        "/a/abbey/": "missing-image",
        "/a/abbey/sun_test0.jpg": "image-twice",
    }
    folder = draw_sun397(tmp_path)
    path = folder / "Testing_01.txt"
    path.write_text(path.read_text() + "\n".join(lines) + "\n\n")
    assert [(fault.fault.reason, fault.fault.place) for fault in faults(folder)] == [
        (reason, f"line {number}") for number, reason in enumerate(lines.values(), 7)
    ]
    assert len(kept(folder)) == 6


def test_names_of_sun397_that_are_paths_are_read_as_words_in_parquet_too(tmp_path: Path) -> None:
    assert [name for name, _, _ in classes(draw_parquet(tmp_path, SCENES, TWO)).values()] == list(PLAIN)


def test_windows_ends_of_lines_a_byte_order_mark_and_names_without_a_slash_are_read(tmp_path: Path) -> None:
    folder = draw_sun397(tmp_path)
    for name in ("Training_01.txt", "Testing_01.txt", "ClassName.txt"):
        lines = (folder / name).read_text().splitlines()
        (folder / name).write_bytes(b"\xef\xbb\xbf" + "\r\n".join(line.lstrip("/") for line in lines).encode())
    assert list(classes(folder).values()) == [(name, 9, 2) for name in PLAIN]
    assert not faults(folder)


# --- Stanford Cars ----------------------------------------------------------------------------------------------------


def test_the_devkit_of_stanford_cars_may_lie_beside_the_pictures(tmp_path: Path) -> None:
    draw_cars(tmp_path / "stanford_cars", devkit=".")
    assert [name for name, _, _ in classes(tmp_path).values()] == list(CARS)


@pytest.mark.parametrize(
    "missing", ["devkit/cars_meta.mat", "devkit/cars_train_annos.mat", "cars_test_annos_withlabels.mat"]
)
def test_a_missing_file_of_the_devkit_is_named(missing: str, tmp_path: Path) -> None:
    folder = draw_cars(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(mt.readers.SourceError, match=f"missing-file: expected the file .*{Path(missing).name}"):
        kept(folder)


def test_each_hostile_annotation_of_stanford_cars_is_one_fault(tmp_path: Path) -> None:
    rows: list[tuple[Any, str]] = [
        *((("00001.jpg", label), "no-label") for label in (0, 4, -1, 1.5, float("nan"), "1")),
        (("00009.jpg", 1), "missing-image"),
        *(((name, 1), "missing-or-mistyped-field") for name in ("../secret.jpg", "", 7)),
    ]
    folder = draw_cars(tmp_path / "cars")
    (tmp_path / "secret.jpg").write_bytes(b"outside")
    listed = annotations([("00002.jpg", 1), *(row for row, _ in rows)])
    save_mat(folder / "cars_test_annos_withlabels.mat", annotations=listed)
    found = faults(folder)
    assert [(fault.fault.reason, fault.fault.place) for fault in found] == [
        (reason, f"annotation {number}") for number, (_, reason) in enumerate(rows, 1)
    ]
    assert {each.fault.expected for each in found if each.fault.reason == "no-label"} == {"a whole number from 1 to 3"}
    assert [row.id for row in kept(folder)] == ["test-0"]


def test_of_the_nine_splits_of_stanford_cars_two_are_read_and_fetched(tmp_path: Path) -> None:
    corrupted = {f"data/{split}-00000-of-00002.parquet": "test" for split in CORRUPTED}
    folder = draw_parquet(tmp_path, CARS, {**TWO, **corrupted})
    for name in corrupted:
        (folder / name).write_bytes(b"must not be read")
    assert list(classes(folder).values()) == [(name, 9, 2) for name in CARS]
    asked = [name for name in (*TWO, *corrupted) if any(fnmatch(name, each) for each in ImageTables.hub_files)]
    assert asked == list(TWO)
    nested = ("default/train/0000.parquet", "data/validation-00000-of-00003.parquet", "val.parquet")
    assert all(any(fnmatch(name, each) for each in ImageTables.hub_files) for name in nested)


def test_two_repositories_with_a_split_each_are_one_set_and_further_columns_are_not_read(tmp_path: Path) -> None:
    files = {f"StanfordCars_{split}/data/{split}-00000-of-00001.parquet": split for split in COUNTS}
    lower = [name.lower() for name in CARS]
    folder = draw_parquet(tmp_path, lower, files, id=[7], blip_caption=["a car on a road"])
    assert list(classes(folder).values()) == [(name, 9, 2) for name in lower]
    assert not faults(folder)


def test_a_car_with_two_classes_is_refused_wherever_it_is_listed(tmp_path: Path) -> None:
    folder = draw_cars(tmp_path)
    rows = annotations([("00001.jpg", 1), ("00002.jpg", 2.0), ("00001.jpg", 2)])
    save_mat(folder / "cars_test_annos_withlabels.mat", annotations=rows)
    assert [(row.id, row.kind) for row in kept(folder)] == [("test-1", "00001")]
    assert reasons(folder) == {"image-of-two-classes": 2}


@pytest.mark.parametrize("names", [[1, 2, 3], [["ab", "cd"], "b", "c"]])
def test_names_of_cars_that_are_no_texts_are_refused(names: list[object], tmp_path: Path) -> None:
    folder = draw_cars(tmp_path)
    save_mat(folder / "devkit/cars_meta.mat", class_names=class_names(names))
    with pytest.raises(mt.readers.SourceError, match=r"cars_meta\.mat: .* a cell array of names, found something else"):
        kept(folder)


# --- Parquet, folders and links ---------------------------------------------------------------------------------------


def test_a_file_that_names_its_split_may_lie_in_a_folder_named_after_another(tmp_path: Path) -> None:
    files = {"test_of_train/train-0.parquet": "train", "train_and_test/test-0.parquet": "test"}
    assert list(classes(draw_parquet(tmp_path, CARS, files)).values()) == [(name, 9, 2) for name in CARS]


def test_files_of_a_split_that_are_missing_are_noted(tmp_path: Path) -> None:
    files = {"data/train-00000-of-00008.parquet": "train", "data/validation-00000-of-00001.parquet": "test"}
    folder = draw_parquet(tmp_path, FOODS, files)
    [note] = ImageTables().notes({"data": folder}, ManyShot.options_type())
    assert note == "only 1 of the 8 files of the split train are there; rows are numbered in these"
    assert not ImageTables().notes({"data": draw_parquet(tmp_path / "whole", FOODS, TWO)}, ManyShot.options_type())


def test_a_folder_without_any_form_and_one_with_two_forms_are_named(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "readme.txt").write_text("train")
    with pytest.raises(
        mt.readers.SourceError, match=r"none: unknown-form: expected Parquet files, or Food-101's folders"
    ):
        kept(tmp_path / "none")
    draw_food101(tmp_path / "two" / "food-101")
    draw_sun397(tmp_path / "two" / "SUN397")
    with pytest.raises(
        mt.readers.SourceError, match=r"two: several-forms: expected the files of one dataset, found Food-101's"
    ):
        kept(tmp_path / "two")


@pytest.mark.parametrize("name", ORIGINALS)
def test_a_link_out_of_the_folder_is_named_and_not_followed(name: str, tmp_path: Path) -> None:
    folder = ORIGINALS[name](tmp_path / "set")
    (tmp_path / "secret.jpg").write_bytes(b"outside")
    for place in ("tests/0", "exemplars/3"):
        path = ImageTables().image({"data": folder}, place)
        assert isinstance(path, Path)
        path.unlink()
        path.symlink_to(tmp_path / "secret.jpg")
        assert ImageTables().image({"data": folder}, place) is None
    found = tmp_path / "moved"
    folder.rename(found)
    assert [(fault.id, fault.fault.found) for fault in faults(found)] == [
        ("test-0", "a link out of it"),
        ("train-3", "a link out of it"),
    ]


def tables(folder: Path, labels: list[Any], kind: Any = "int64") -> Path:
    """Both splits with the same labels, in row groups of two."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": ["a", "b", "c"]}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    for split in ("train", "validation"):
        images = [{"bytes": drawn_picture(0, f"{split} {n}"), "path": None} for n in range(len(labels))]
        columns = {"image": pa.array(images), "label": pa.array(labels, kind)}
        table = pa.table(columns).replace_schema_metadata(metadata)
        pq.write_table(table, folder / f"{split}-00000-of-00001.parquet", row_group_size=2)
    return folder


def test_a_picture_of_a_table_is_the_cell_of_its_row_and_labels_that_are_none_are_named(tmp_path: Path) -> None:
    folder = tables(tmp_path, [0, None, -1, 3, 2])
    assert [(row.id, row.kind) for row in kept(folder)] == [("validation-0", "00000"), ("validation-4", "00002")]
    found = faults(folder)
    assert [(fault.id, fault.fault.place) for fault in found] == [
        (f"{split}-{n}", f"row {n}") for split in ("validation", "train") for n in (1, 2, 3)
    ]
    assert {(each.fault.reason, each.fault.expected) for each in found} == {("no-label", "a whole number from 0 to 2")}
    cell = ImageTables().image({"data": folder}, "tests/3")
    assert cell is not None
    assert cell.read_bytes() == drawn_picture(0, "validation 3")
    nowhere = ("tests/5", "others/1", "tests/-1", "../x")
    assert [ImageTables().image({"data": folder}, name) for name in nowhere] == [None] * 4


def test_labels_that_are_no_integers_and_missing_splits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        mt.readers.SourceError, match=r"labels-not-integers: expected a column of integers, found string"
    ):
        kept(tables(tmp_path, ["x", "y"], "string"))
    (tmp_path / "validation-00000-of-00001.parquet").rename(tmp_path / "other.parquet")
    with pytest.raises(mt.readers.SourceError, match=r"a split `train`, and of `test` or `validation`, found"):
        kept(tmp_path)


def test_a_picture_in_no_class_is_named_and_no_name_leads_out(tmp_path: Path) -> None:
    folders = draw_folders(tmp_path)
    for name in ("stray.jpg", "a/abbey/1.jpg", f"{SHAPES[0]}/notes.jfif"):
        (folders["test"] / name).parent.mkdir(parents=True, exist_ok=True)
        (folders["test"] / name).touch()
    found = list(read_rows(ImageFolders(), folders))
    assert {(row.id, row.fault.reason) for row in found if isinstance(row, mt.readers.RowFault)} == {
        ("test/stray.jpg", "no-class"),
        (f"test/{SHAPES[0]}/notes.jfif", "unknown-ending"),
    }
    assert {row.kind for row in found if isinstance(row, mt.Row)} == {*SHAPES, "a/abbey"}  # type: ignore[attr-defined]
    names = ("../x.jpg", "test/../../x.jpg", "other/a.jpg", "test")
    assert [ImageFolders().image(folders, name) for name in names] == [None] * 4


def test_files_that_cannot_be_exemplars_are_named_and_are_no_questions(tmp_path: Path) -> None:
    folders = draw_folders(tmp_path)
    before, options = len(list(read_rows(ImageFolders(), folders))), mt.Options()
    assert ImageFolders().notes(folders, options) == ()
    for name in ("stray.jpg", f"{SHAPES[0]}/phone.heic"):
        (folders["train"] / name).touch()
    assert len(list(read_rows(ImageFolders(), folders))) == before
    (note,) = ImageFolders().notes(folders, options)
    assert [fact for fact in ("2 files", "phone.heic", "unknown-ending") if fact not in note] == []


@pytest.mark.parametrize("change", ["smaller", "re-encoded", "cropped"])
def test_copies_are_alike_and_other_pictures_are_not(change: str) -> None:
    data, buffer = drawn_picture(7, "original"), io.BytesIO()
    with Image.open(io.BytesIO(data)) as picture:
        changes = {"smaller": (210, 210), "re-encoded": picture.size, "cropped": picture.size}
        box = (3, 3, 417, 417) if change == "cropped" else (0, 0, 420, 420)
        picture.resize(changes[change], box=box).save(buffer, "JPEG", quality=30)
    assert is_like_any(likeness(data), [likeness(buffer.getvalue())])
    assert not is_like_any(likeness(data), [likeness(drawn_picture(kind, "another")) for kind in range(54)])


def test_a_dataset_of_the_hub_is_read_from_the_hubs_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are in the cache of the hub's client, which is set to work offline."""
    import huggingface_hub

    repository = tmp_path / "cache/datasets--owner--shapes"
    data = repository / "snapshots" / ("0" * 40) / "data"
    data.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("0" * 40)
    tables(data, [0, 1, 2])
    get = huggingface_hub.snapshot_download

    def cached(name: str, **options: Any) -> str:
        return str(get(name, cache_dir=tmp_path / "cache", local_files_only=True, **options))

    def hub(text: str) -> HubFiles:
        found = parse_location(f"hub:{text}")
        assert isinstance(found, HubFiles)
        return found

    monkeypatch.setattr("huggingface_hub.snapshot_download", cached)
    assert len(kept(snapshot(hub("owner/shapes"), "", ImageTables.hub_files, "source.data"))) == 3
    with pytest.raises(mt.readers.SourceError, match=r"source.data: unreachable-dataset: .* found .*; download it"):
        snapshot(hub("owner/missing@v1"), "", ImageTables.hub_files, "source.data")
    with pytest.raises(
        mt.readers.SourceError, match=r"source\.images: unknown-source: expected hub:owner/shapes/<path>"
    ):
        snapshot(hub("owner/shapes"), "", (), "source.images")


# --- iNaturalist ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "val"])
def test_pictures_of_inaturalist_are_found_with_and_without_their_first_folder(below: str, tmp_path: Path) -> None:
    sources = draw_inat(tmp_path)
    found = {**sources, "images": tmp_path / below}
    rows = [row for row in read_rows(INaturalist(), found) if isinstance(row, mt.Row)]
    assert Counter(row.kind for row in rows) == {  # type: ignore[attr-defined]
        "Plants/Betula pendula": 2,
        "Birds/Parus major": 2,
        "Plants/Picea abies": 2,
    }
    picture = INaturalist().image(found, rows[3].image)  # type: ignore[attr-defined]
    assert picture is not None
    assert picture.read_bytes() == drawn_picture(1, "test 1")
    for name in ("../secret.jpg", "val/../../secret.jpg", "/etc/passwd", "val", ""):
        assert INaturalist().image(found, name) is None


def test_a_picture_of_inaturalist_is_looked_for_under_its_full_name_first(tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    for name in ("val/a.jpg", "a.jpg"):
        (tmp_path / name).write_text(name)
    assert INaturalist().image({"images": tmp_path}, "val/a.jpg") == tmp_path / "val/a.jpg"


def test_inaturalist_without_supercategory_or_image_or_with_two_categories_is_named(tmp_path: Path) -> None:
    categories = [{"id": n, "name": name, "supercategory": "Birds"} for n, name in ((0, "a"), (2, "c"))]
    categories.append({"id": 1, "name": "b"})
    images = [{"id": n, "file_name": f"val/{n}.jpg"} for n in (0, 1, 3)]
    pairs = [(0, 0), (1, 1), (2, 0), (3, 0), (3, 2)]  # the third image cannot be read, the last has two categories
    annotations = [{"image_id": image, "category_id": category} for image, category in pairs]
    for split in ("train", "test"):
        data = {"images": images, "annotations": annotations, "categories": categories}
        (tmp_path / f"{split}.json").write_text(json.dumps(data))
    sources = {"images": tmp_path, "train": tmp_path / "train.json", "test": tmp_path / "test.json"}
    found = list(read_rows(INaturalist(), sources))
    assert [row.id for row in found if isinstance(row, mt.Row)] == ["inat-0"]
    faults = [(f.id, f.fault.reason, f.fault.place) for f in found if isinstance(f, mt.readers.RowFault)]
    assert faults[:4] == [
        ("inat-1", "no-supercategory", "annotation 1"),
        ("inat-2", "no-such-image", "annotation 2"),
        *(("inat-3", "image-of-two-classes", f"annotation {n}") for n in (3, 4)),
    ]
    assert {id for id, _, _ in faults[4:]} == {"train-1", "train-2", "train-3"}


@pytest.mark.parametrize("text", ["", "[]", '{"images": []}', '{"images": [], "annotations": [{}], "categories": []}'])
def test_annotations_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "test.json"
    path.write_text(text)
    with pytest.raises(mt.readers.SourceError, match=r"test\.json"):
        list(read_rows(INaturalist(), {"images": tmp_path, "train": path, "test": path}))


# --- MATLAB files -----------------------------------------------------------------------------------------------------

HEADER = b"MATLAB 5.0 MAT-file, drawn".ljust(124) + struct.pack("<HH", 0x100, 0x4D49)
VALUES = {
    "annotations": annotations([(f"{n:05}.jpg", np.uint8(1 + n % 196)) for n in range(300)]),
    "class_names": class_names(["AM General Hummer SUV 2000", "Ram C/V Cargo Van Minivan 2012", "Škoda \u20ac"]),
    "numbers": np.array([[1.5, 2.0, -3.0]]),
    "one": np.int16(-7),
    "empty": np.zeros((0, 0)),
}


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def array(kind: int, sizes: tuple[int, ...], *parts: bytes) -> bytes:
    head = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack(f"<{len(sizes)}i", *sizes))
    return element(14, head + element(1, b"x") + b"".join(parts))


def nested(levels: int) -> bytes:
    """Cells in cells, which end SciPy's process from about 20,000 levels on."""
    data = array(6, (1, 1), element(9, struct.pack("<d", 1)))
    heads = [element(6, struct.pack("<II", 1, 0)) + element(5, struct.pack("<2i", 1, 1)) + element(1, b"x")] * levels
    parts, size = [data], len(data)
    for head in heads:
        size += len(head)
        parts.append(struct.pack("<II", 14, size) + head)
        size += 8
    return b"".join(reversed(parts))


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "another file": lambda: b"\x89PNG" * 100,
    "version 7.3": lambda: b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<HH", 0x200, 0x4D49) + b"\x89HDF",
    "100,000 levels": lambda: HEADER + nested(100_000),
    "cells that are not there": lambda: HEADER + array(1, (1, 2**31 - 1)),
}


@pytest.fixture(params=[True, False], ids=["packed", "plain"])
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return save_mat(tmp_path / "a.mat", is_packed=request.param, **VALUES)


def test_structs_cells_texts_and_numbers_are_read_as_scipy_reads_them(file: Path) -> None:
    rows: Any = read_variable(file, "annotations")
    box = {"bbox_x1": 39, "bbox_y1": 116, "bbox_x2": 569, "bbox_y2": 375}
    assert rows == [{**box, "class": 1 + n % 196, "fname": f"{n:05}.jpg"} for n in range(300)]
    found: Any = scipy.io.loadmat(file, squeeze_me=True)["annotations"]
    assert [(row["fname"], row["class"]) for row in rows] == [(str(e["fname"]), int(e["class"])) for e in found]
    names = ["AM General Hummer SUV 2000", "Ram C/V Cargo Van Minivan 2012", "Škoda \u20ac"]
    assert read_variable(file, "class_names") == names
    assert [read_variable(file, name) for name in ("numbers", "one", "empty")] == [[1.5, 2.0, -3.0], -7, []]


def test_arrays_of_other_kinds_are_none(tmp_path: Path) -> None:
    import scipy.sparse

    others = (scipy.sparse.csc_matrix(np.eye(3)), np.array([1 + 2j]), np.array(["ab", "cd"]))
    for value in others:
        assert read_variable(save_mat(tmp_path / "a.mat", x=value), "x") is None


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(HOSTILE[kind]())
    with pytest.raises(
        mt.readers.SourceError, match=r"^a\.mat: unreadable-source: expected .*; (download it again|give the file)"
    ):
        read_variable(path, "x")


def test_a_file_above_the_size_a_missing_variable_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with (tmp_path / "big.mat").open("wb") as file:
        file.truncate(1 << 40)
    path = save_mat(tmp_path / "a.mat", x=1)
    for found, name, said in (
        (tmp_path / "big.mat", "x", f"no file of at most {MAX_BYTES} bytes"),
        (path, "annotations", r"a\.mat: unreadable-source: expected a variable annotations, found none"),
        (tmp_path / "none.mat", "x", r"none\.mat"),
    ):
        with pytest.raises(mt.readers.SourceError, match=said):
            read_variable(found, name)


def test_without_scipy_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = draw_cars(tmp_path)
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(mt.readers.SourceError, match=r'cars_meta\.mat: .* pip install "mmlongbench\[matlab\]"'):
        kept(folder)

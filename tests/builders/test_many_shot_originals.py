"""Food-101, SUN397, Stanford Cars and iNaturalist as their authors and the hub publish them: the forms have the same
classes and splits; what is missing or hostile is named.
"""

import json
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from class_sets import (
    CARS,
    CORRUPTED,
    COUNTS,
    FOODS,
    SCENES,
    SPECIES,
    annotations,
    class_names,
    draw_cars,
    draw_food101,
    draw_inat,
    draw_parquet,
    draw_sun397,
    drawn_shape,
    save_mat,
)

import mmlongbench.task as mt
from builders.many_shot import ImageTables, INaturalist, ManyShot
from builders.samples.many_shot.shapes import CLASSES
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import DatasetSpec, Manifest

TWO = {"data/train-00000-of-00001.parquet": "train", "data/test-00000-of-00001.parquet": "test"}
PLAIN = ("abbey", "airplane cabin", "apartment building outdoor")
ORIGINALS: dict[str, Callable[[Path], Path]] = {"food101": draw_food101, "sun397": draw_sun397, "cars196": draw_cars}
NAMES = {"food101": FOODS, "sun397": PLAIN, "cars196": CARS}


def kept(source: Path) -> list[Any]:
    return [row for row in read_rows(ImageTables(), {"data": source}) if isinstance(row, mt.Row)]


def faults(source: Path) -> list[mt.RowFault]:
    return [row for row in read_rows(ImageTables(), {"data": source}) if isinstance(row, mt.RowFault)]


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


def test_the_lists_of_food101_may_be_texts_and_the_folder_may_be_one_level_above(tmp_path: Path) -> None:
    folder = draw_food101(tmp_path / "food" / "food-101")
    found = classes(tmp_path / "food"), [row.id for row in kept(tmp_path / "food")]
    for split in COUNTS:
        (folder / f"meta/{split}.json").unlink()
    assert (classes(folder), [row.id for row in kept(folder)]) == found
    assert kept(folder)[3].place == "line 4"


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
    with pytest.raises(mt.SourceError, match=said):
        kept(folder)


def test_names_of_sun397_that_are_paths_are_read_as_words_in_parquet_too(tmp_path: Path) -> None:
    assert [name for name, _, _ in classes(draw_parquet(tmp_path, SCENES, TWO)).values()] == list(PLAIN)


def test_the_devkit_of_stanford_cars_may_lie_beside_the_pictures(tmp_path: Path) -> None:
    draw_cars(tmp_path / "stanford_cars", devkit=".")
    assert [name for name, _, _ in classes(tmp_path).values()] == list(CARS)


@pytest.mark.parametrize(
    "missing",
    ["devkit/cars_meta.mat", "devkit/cars_train_annos.mat", "cars_test_annos_withlabels.mat"],
)
def test_a_missing_file_of_the_devkit_is_named(missing: str, tmp_path: Path) -> None:
    folder = draw_cars(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(mt.SourceError, match=f"missing-file: expected the file .*{Path(missing).name}"):
        kept(folder)


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
    with pytest.raises(mt.SourceError, match=r"none: unknown-form: expected Parquet files, or Food-101's folders"):
        kept(tmp_path / "none")
    draw_food101(tmp_path / "two" / "food-101")
    draw_sun397(tmp_path / "two" / "SUN397")
    with pytest.raises(
        mt.SourceError, match=r"two: several-forms: expected the files of one dataset, found Food-101's"
    ):
        kept(tmp_path / "two")


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
    assert picture.read_bytes() == drawn_shape(CLASSES[1], "test 1")
    for name in ("../secret.jpg", "val/../../secret.jpg", "/etc/passwd", "val", ""):
        assert INaturalist().image(found, name) is None


def built(out: Path, name: str, reader: str, source: Any) -> list[dict[str, Any]]:
    """The frozen records of a release."""
    about = {"name": name, "builder": "many_shot", "reader": reader, "source": source, "lengths": (8 * K,)}
    domains = {"options": {"domains": ["Plants"]}} if reader == "inaturalist" else {}
    spec = DatasetSpec.model_validate({**about, "sample": {"stratify": "kind"}, **domains})
    build(Manifest(datasets=(spec,)), out, LocalExecutor(1, Progress(is_shown=False)))
    lines = (out / f"mmlb_data/ICL/{name}_K8.frozen.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ORIGINALS)
def test_releases_of_both_forms_show_the_same_pictures_and_no_names(name: str, tmp_path: Path) -> None:
    original = built(tmp_path / "a", name, "image_tables", {"data": ORIGINALS[name](tmp_path / "original")})
    parquet = built(tmp_path / "b", name, "image_tables", {"data": draw_parquet(tmp_path / "hub", NAMES[name], TWO)})
    assert original == parquet
    assert len(original) == 6
    for record in original:
        paths = [record["image"], *(shown["image"] for shown in record["exemplars"])]
        assert all(Path(path).parent.name == "image-tables" and len(Path(path).stem) >= 16 for path in paths)


def test_a_release_of_inaturalist_does_not_show_the_names_of_its_folders(tmp_path: Path) -> None:
    records = built(tmp_path / "out", "inat2021", "inaturalist", draw_inat(tmp_path / "inat"))
    words = {word for name, _ in SPECIES for word in name.split("_")}
    paths = [
        path for record in records for path in (record["image"], *(shown["image"] for shown in record["exemplars"]))
    ]
    assert len(records) == 4
    assert not [path for path in paths if any(word in path for word in words)]


def test_a_class_without_a_folder_is_named_and_the_others_are_used(tmp_path: Path) -> None:
    import shutil

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


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("apple_pie/9999", "missing-image"),
        ("apple_pie/../../../secret", "unknown-class"),
        ("../secret", "unknown-class"),
        ("/etc/passwd", "unknown-class"),
        ("beignets/1000", "unknown-class"),
        ("apple_pie/\ud800", "invalid-unicode"),
        ("apple_pie/\0", "missing-image"),
        ("apple_pie/" + "x" * 5000, "missing-image"),
        ("", "unknown-class"),
        (None, "unknown-class"),
        (["apple_pie/1000"], "unknown-class"),
        ("apple_pie/1000", "image-twice"),
        ("  apple_pie/1001\n", "image-twice"),
    ],
)
def test_a_hostile_entry_of_food101_is_one_fault(entry: object, reason: str, tmp_path: Path) -> None:
    folder = draw_food101(tmp_path / "food")
    (tmp_path / "secret.jpg").write_bytes(b"outside")
    path = folder / "meta/test.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "apple_pie": ["apple_pie/1000", "apple_pie/1001", entry]})
    )
    assert reasons(folder) == {reason: 1}
    assert len(kept(folder)) == 6


@pytest.mark.parametrize("kind", ["..", "../..", "/etc", "a\0b", "\ud800"])
def test_a_hostile_class_of_food101_leads_nowhere(kind: str, tmp_path: Path) -> None:
    folder = draw_food101(tmp_path / "food")
    (tmp_path / "secret.jpg").write_bytes(b"outside")
    path = folder / "meta/test.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), kind: [f"{kind}/secret"]}))
    assert sum(reasons(folder).values()) == 1
    assert {name for name, _, _ in classes(folder).values()} == {*FOODS}
    last = len(kept(folder))
    assert ImageTables().image({"data": folder}, f"tests/{last}") is None


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
    with pytest.raises(mt.SourceError, match=f"train.json.*({said})"):
        kept(folder)


@pytest.mark.parametrize("name", ["Training_01.txt", "Testing_01.txt", "ClassName.txt"])
def test_a_list_of_sun397_in_another_encoding_is_named(name: str, tmp_path: Path) -> None:
    folder = draw_sun397(tmp_path)
    (folder / name).write_bytes(b"/a/abbey\r\n/c/caf\xe9\r\n")
    with pytest.raises(mt.SourceError, match=rf"{name}, line 2: invalid-unicode: .* in UTF-8, found byte 0xe9; save"):
        kept(folder)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("/z/zoo/sun_a.jpg", "unknown-class"),
        ("/a/abbey/../../../secret.jpg", "unknown-class"),
        ("sun_a.jpg", "unknown-class"),
        ("/a/abbey/none.jpg", "missing-image"),
        ("/a/abbey/", "missing-image"),
        ("/a/abbey/sun_test0.jpg", "image-twice"),
    ],
)
def test_a_hostile_line_of_sun397_is_one_fault(line: str, reason: str, tmp_path: Path) -> None:
    folder = draw_sun397(tmp_path)
    path = folder / "Testing_01.txt"
    path.write_text(path.read_text() + line + "\n\n")
    assert reasons(folder) == {reason: 1}
    assert faults(folder)[0].fault.place == "line 7"
    assert len(kept(folder)) == 6


def test_windows_ends_of_lines_a_byte_order_mark_and_names_without_a_slash_are_read(tmp_path: Path) -> None:
    folder = draw_sun397(tmp_path)
    for name in ("Training_01.txt", "Testing_01.txt", "ClassName.txt"):
        lines = (folder / name).read_text().splitlines()
        (folder / name).write_bytes(b"\xef\xbb\xbf" + "\r\n".join(line.lstrip("/") for line in lines).encode())
    assert list(classes(folder).values()) == [(name, 9, 2) for name in PLAIN]
    assert not faults(folder)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("00001.jpg", 0), "no-label"),
        (("00001.jpg", 4), "no-label"),
        (("00001.jpg", -1), "no-label"),
        (("00001.jpg", 1.5), "no-label"),
        (("00001.jpg", float("nan")), "no-label"),
        (("00001.jpg", "1"), "no-label"),
        (("00009.jpg", 1), "missing-image"),
        (("../secret.jpg", 1), "missing-or-mistyped-field"),
        (("", 1), "missing-or-mistyped-field"),
        ((7, 1), "missing-or-mistyped-field"),
    ],
)
def test_a_hostile_annotation_of_stanford_cars_is_one_fault(row: Any, reason: str, tmp_path: Path) -> None:
    folder = draw_cars(tmp_path / "cars")
    (tmp_path / "secret.jpg").write_bytes(b"outside")
    rows = annotations([("00002.jpg", 1), row])
    save_mat(folder / "cars_test_annos_withlabels.mat", annotations=rows)
    assert reasons(folder) == {reason: 1}
    assert [row.id for row in kept(folder)] == ["test-0"]
    assert faults(folder)[0].fault.place == "annotation 1"
    if reason == "no-label":
        assert faults(folder)[0].fault.expected == "a whole number from 1 to 3"


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
    with pytest.raises(mt.SourceError, match=r"cars_meta\.mat: .* a cell array of names, found something else"):
        kept(folder)


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


@pytest.mark.parametrize("name", ["Training_01.txt", "Testing_01.txt", "ClassName.txt"])
def test_a_list_that_is_a_link_out_is_not_read(name: str, tmp_path: Path) -> None:
    folder = draw_sun397(tmp_path / "set")
    (tmp_path / "secret.txt").write_text("a secret")
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path / "secret.txt")
    with pytest.raises(mt.SourceError, match=r"missing-(split|file)"):
        kept(folder)


def test_a_build_names_every_hostile_entry_and_keeps_the_rest(tmp_path: Path) -> None:
    folder = draw_food101(tmp_path / "food")
    for split in COUNTS:
        path = folder / f"meta/{split}.json"
        hostile = {
            "\ud800": ["\ud800/1", "\ud800"],
            "..": ["../x"],
            "a\0b": ["a\0b/1", None],
            "\x1b[31m": ["\x1b[31m/1"],
        }
        path.write_text(json.dumps({**json.loads(path.read_text()), **hostile}))
    records = built(tmp_path / "out", "food101", "image_tables", {"data": folder})
    rejects = [json.loads(line) for line in (tmp_path / "out/rejects.jsonl").read_text("utf-8").splitlines()]
    assert (len(records), len(rejects)) == (6, 12)
    assert Counter(reject["reason"] for reject in rejects) == {
        "invalid-unicode": 2,
        "unknown-class": 4,
        "path-outside-source": 2,
        "missing-image": 4,
    }

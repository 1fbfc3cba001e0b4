"""Folders of question files of Visual Haystacks: two and three needles together, each question once, any root."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hub_forms import haystack_item, json_lines_of, write_haystacks

from builders.samples.visual_haystacks.sources import draw_several
from builders.visual_haystacks import VisualHaystacks
from builders.visual_haystacks.rows import PhotographQuestion
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import DatasetSpec, Manifest
from mmlongbench.task import Row, RowFault, SourceError

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The drawn photographs, with questions in the format of your own photographs."""
    folder = tmp_path_factory.mktemp("haystacks")
    return draw_several(folder)


def built(out: Path, sources: dict[str, Path]) -> dict[str, Any]:
    """The lock's account of the dataset."""
    about = {"name": "vh_multi", "builder": "visual_haystack", "reader": "visual_haystacks", "lengths": (8 * K,)}
    spec = DatasetSpec.model_validate({**about, "source": sources, "options": {"needles": "several"}})
    lock = build(Manifest(datasets=(spec,)), out, LocalExecutor(1, QUIET)).lock.public()
    found: dict[str, Any] = lock["datasets"]["vh_multi"]
    return found


def records(out: Path) -> list[dict[str, Any]]:
    (path,) = sorted(out.glob("mmlb_data/NIAH/vh_multi_*_K8_dep3.jsonl"))
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read(folder: Path, images: Path, **more: Path) -> list[Row | RowFault]:
    return list(read_rows(VisualHaystacks(), {"questions": folder, "images": images, **more}))


def item(needles: list[str], negatives: list[str] | None = None, answer: str = "Yes") -> dict[str, Any]:
    asked = {"question": "For all images with a dog, is there a cat?", "answer": answer, "needles": needles}
    return haystack_item({**asked, "negatives": negatives or []}, 99)


def test_files_of_two_and_three_needles_are_one_dataset_with_the_number_in_the_record(
    drawn: dict[str, Path], tmp_path: Path
) -> None:
    questions = json_lines_of(drawn["questions"])
    folder = write_haystacks(drawn["questions"], tmp_path / "multi_needle")
    lock = built(tmp_path / "out", {**drawn, "questions": folder})
    assert lock["questions"]["kept"] == len(questions)
    assert lock["questions"]["rejected"] == {}
    assert lock["questions"]["skipped"] == {"repeated-question": len(questions)}
    found = records(tmp_path / "out")
    assert {record["needle_count"] for record in found} == {2, 3}
    assert all(len(record["needles"]) == record["needle_count"] for record in found)
    asked = {tuple(f"vh/{name}" for name in each["needles"]): each["question"] for each in questions}
    assert {tuple(record["needles"]): record["question"] for record in found} == asked
    (first, *_) = [record["id"] for record in found]
    assert first == "vh_multi-multi_needle_2.visual_haystack_10-0"


def test_ids_of_one_file_have_no_name_in_them_also_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "q").mkdir()
    (tmp_path / "q/visual_haystack_10.json").write_text(json.dumps([item(["a.jpg"]), item(["a.jpg", "b.jpg"])]))
    (tmp_path / "q/dataset_infos.json").write_text("{}")
    alone = read(tmp_path / "q/visual_haystack_10.json", tmp_path)
    assert [row.id for row in alone] == ["vh_single-0", "vh_multi-1"]
    assert read(tmp_path / "q", tmp_path) == alone


def test_a_question_in_files_of_two_sizes_is_asked_once_with_the_negatives_of_the_larger(tmp_path: Path) -> None:
    many = [f"{number}.jpg" for number in range(9)]
    for size in (2, 100, 20):
        items = [item(["a.jpg"], many[: size // 20]), item(["coco/c.jpg" if size == 2 else "c.jpg"])]
        (tmp_path / f"visual_haystack_{size}.json").write_text(json.dumps(items))
    (tmp_path / "visual_haystack_oracle.json").write_text(json.dumps([item(["a.jpg"]), item(["d.jpg"])]))
    found = read(tmp_path, tmp_path)
    kept = [row for row in found if isinstance(row, PhotographQuestion)]
    assert [(row.id, len(row.negatives)) for row in kept] == [
        ("vh_single-visual_haystack_100-0", 5),
        ("vh_single-visual_haystack_100-1", 0),
        ("vh_single-visual_haystack_oracle-1", 0),
    ]
    faults = [row.fault for row in found if isinstance(row, RowFault)]
    assert {(fault.reason, fault.is_expected) for fault in faults} == {("repeated-question", True)}
    assert str(faults[0]) == (
        "visual_haystack_20.json, item 0: repeated-question: expected a question that no file before has, found the "
        "question of visual_haystack_100.json, item 0; nothing: each question is asked once"
    )


def test_a_question_that_one_file_has_twice_is_kept_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps([item(["a.jpg"]), item(["a.jpg"])]))
    assert [type(row) for row in read(tmp_path / "q.json", tmp_path)] == [PhotographQuestion] * 2


@pytest.mark.parametrize("root", ["coco", "coco/train2017"])
def test_the_root_of_coco_and_its_folder_of_pictures_give_the_same_release(
    root: str, drawn: dict[str, Path], tmp_path: Path
) -> None:
    folder = write_haystacks(drawn["questions"], tmp_path / "multi_needle", (10,))
    assert drawn["images"].name == "coco"
    built(tmp_path / "whole", {**drawn, "questions": folder})
    built(tmp_path / "out", {**drawn, "questions": folder, "images": drawn["images"].parent / root})
    assert records(tmp_path / "out") == records(tmp_path / "whole")
    pictures = [path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.jpg")]
    assert {path.parent.as_posix() for path in pictures} == {"mmlb_image/vh/train2017"}


@pytest.mark.parametrize("split", ["train2017", "val2017", "test2017"])
@pytest.mark.parametrize("prefix", ["", "coco/"])
def test_pictures_of_every_split_are_found_with_and_without_the_prefix(split: str, prefix: str, tmp_path: Path) -> None:
    picture = tmp_path / "root" / split / "000000000009.jpg"
    picture.parent.mkdir(parents=True)
    picture.touch()
    (tmp_path / "q.json").write_text(json.dumps([item([f"{prefix}{split}/{picture.name}"])]))
    (row,) = read(tmp_path / "q.json", tmp_path / "root")
    assert isinstance(row, PhotographQuestion)
    for images in (tmp_path / "root", picture.parent):
        assert VisualHaystacks().image({"images": images}, row.needles[0]) == picture


@pytest.mark.parametrize("negatives", [[], None])
def test_an_oracle_has_no_negatives(negatives: object, tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps([item(["a.jpg"]) | {"neg_image": negatives}]))
    (row,) = read(tmp_path / "q.json", tmp_path)
    assert isinstance(row, PhotographQuestion)
    assert row.negatives == ()


def test_one_list_of_all_pictures_is_named(tmp_path: Path) -> None:
    joint = {"image": ["a.jpg", "b.jpg"], "conversations": item(["a.jpg"])["conversations"]}
    (tmp_path / "q.json").write_text(json.dumps([joint]))
    (row,) = read(tmp_path / "q.json", tmp_path)
    assert isinstance(row, RowFault)
    assert str(row.fault) == (
        "q.json, item 0, image: joint-picture-list: expected pos_image and neg_image, found one list `image`; give the "
        "files of the hub, which tell needles from other pictures"
    )


def test_a_folder_without_questions_is_named(tmp_path: Path) -> None:
    (tmp_path / "q").mkdir()
    (tmp_path / "q/notes.txt").touch()
    with pytest.raises(SourceError, match=r"q: missing-questions: expected files visual_haystack_\*.json, found none"):
        read(tmp_path / "q", tmp_path)


def test_bad_items_of_a_folder_are_one_fault_each(tmp_path: Path) -> None:
    items: list[object] = [7, {}, {"pos_image": 3}, {"pos_image": ["a"], "conversations": [3]}, item(["a.jpg"])]
    for name in ("a/visual_haystack_2.json", "b/visual_haystack_2.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json.dumps(items))
    found = read(tmp_path, tmp_path)
    assert len({row.id for row in found}) == len(found) == 10
    assert [isinstance(row, PhotographQuestion) for row in found].count(True) == 1
    shutil.rmtree(tmp_path / "a")
    assert [row.id for row in read(tmp_path, tmp_path)][-1] == "vh_single-4"

"""The drawn photographs: the same bytes every time, COCO's sizes, answers that are true of what is drawn."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from builders.samples.visual_haystacks import draw_several, draw_single
from builders.visual_haystacks import Photographs, VisualHaystacks
from builders.visual_haystacks.fields import asked_objects
from builders.visual_haystacks.rows import PhotographQuestion
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.documents.pixels import header_size
from mmlongbench.io.atomic import sha256_of

pytestmark = pytest.mark.slow

Sources = dict[str, Path]
READERS: dict[str, type[VisualHaystacks | Photographs]] = {"single": VisualHaystacks, "several": Photographs}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sources]:
    single, several = (tmp_path_factory.mktemp(kind) for kind in READERS)
    return {"single": draw_single(single), "several": draw_several(several)}


def questions(drawn: dict[str, Sources], kind: str) -> list[PhotographQuestion]:
    rows = list(read_rows(READERS[kind](), drawn[kind]))
    assert all(isinstance(row, PhotographQuestion) for row in rows)
    return rows  # type: ignore[return-value]


def annotated(path: Path) -> dict[str, set[str]]:
    """Objects by file, read without the readers."""
    data = json.loads(path.read_bytes())
    names = {category["id"]: category["name"] for category in data["categories"]}
    files = {image["id"]: f"train2017/{image['file_name']}" for image in data["images"]}
    shown: dict[str, set[str]] = {file: set() for file in files.values()}
    for instance in data["annotations"]:
        shown[files[instance["image_id"]]].add(names[instance["category_id"]])
    return shown


def digests(sources: Sources) -> dict[str, str]:
    root = sources["images"].parent
    return {str(path.relative_to(root)): sha256_of(path) for path in sorted(root.rglob("*")) if path.is_file()}


def test_every_drawing_writes_the_same_bytes(drawn: dict[str, Sources], tmp_path: Path) -> None:
    assert digests(draw_single(tmp_path)) == digests(drawn["single"])


def test_both_readers_draw_the_same_photographs_and_annotations(drawn: dict[str, Sources]) -> None:
    single, several = map(digests, drawn.values())
    assert single.items() - several.items() == {("visual_haystack_10.json", single["visual_haystack_10.json"])}


@pytest.mark.parametrize("kind", READERS)
def test_a_sample_has_the_sources_of_its_reader(drawn: dict[str, Sources], kind: str) -> None:
    reader = READERS[kind]
    assert drawn[kind].keys() == {*reader.sources, *reader.optional_sources}


def test_photographs_are_small_files_of_cocos_sizes_that_all_differ(drawn: dict[str, Sources]) -> None:
    paths = sorted(drawn["single"]["images"].rglob("*.jpg"))
    sizes = [header_size(path) for path in paths]
    share = {size: found / len(paths) for size, found in Counter(sizes).items()}
    assert len(paths) == 330
    assert sum(path.stat().st_size for path in paths) < 6_000_000
    assert share[640, 480] == pytest.approx(0.23, abs=0.02)
    assert share[640, 427] == pytest.approx(0.28, abs=0.02)
    assert sum(width < height for width, height in sizes) / len(sizes) == pytest.approx(0.17, abs=0.02)
    assert all(400 <= min(size) <= max(size) <= 640 for size in sizes)
    assert len(set(digests(drawn["single"]).values())) == len(paths) + 2


def test_annotations_have_the_size_of_each_photograph_and_boxes_within(drawn: dict[str, Sources]) -> None:
    data = json.loads(drawn["single"]["annotations"].read_bytes())
    images: dict[int, dict[str, Any]] = {image["id"]: image for image in data["images"]}
    for image in images.values():
        path = drawn["single"]["images"] / "train2017" / image["file_name"]
        assert header_size(path) == (image["width"], image["height"])
    for instance in data["annotations"]:
        left, top, width, height = instance["bbox"]
        image = images[instance["image_id"]]
        assert min(left, top) >= 0
        assert left + width <= image["width"]
        assert top + height <= image["height"]
        assert instance["area"] == width * height


@pytest.mark.parametrize("kind", READERS)
def test_as_many_answers_are_yes_as_no_and_no_photograph_is_asked_of_twice_by_one_question(
    drawn: dict[str, Sources], kind: str
) -> None:
    rows = questions(drawn, kind)
    assert Counter(row.answer for row in rows) == {"Yes": 6, "No": 6}
    assert len({row.id for row in rows}) == len({row.anchor for row in rows}) == 12
    assert all(len(set(row.needles)) == len(row.needles) for row in rows)


@pytest.mark.parametrize("kind", READERS)
def test_answers_are_true_of_the_annotations(drawn: dict[str, Sources], kind: str) -> None:
    shown = annotated(drawn[kind]["annotations"])
    for row in questions(drawn, kind):
        anchor, target = asked_objects(row.question)
        having = [target in shown[name] for name in row.needles]
        assert anchor == row.anchor
        assert all(anchor in shown[name] for name in row.needles)
        assert not any(anchor in shown[name] for name in row.negatives)
        assert (row.answer == "Yes") == (any(having) if " any " in row.question else all(having))
        assert not row.repairs


def test_of_several_needles_neither_their_number_nor_the_word_tells_the_answer(drawn: dict[str, Sources]) -> None:
    rows = questions(drawn, "several")
    found = Counter((" any " in row.question, row.answer) for row in rows)
    assert found == dict.fromkeys(((word, answer) for word in (True, False) for answer in ("Yes", "No")), 3)
    counts = Counter((len(row.needles), row.answer) for row in rows)
    assert counts == {(2, "Yes"): 4, (2, "No"): 4, (3, "Yes"): 2, (3, "No"): 2}


def test_every_object_is_lacking_in_far_more_photographs_than_32k_holds(drawn: dict[str, Sources]) -> None:
    shown = annotated(drawn["single"]["annotations"])
    for thing in set().union(*shown.values()):
        assert sum(thing not in found for found in shown.values()) > 250

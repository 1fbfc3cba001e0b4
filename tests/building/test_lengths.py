"""Every builder from 4K to 1M: contexts are full if the source suffices; otherwise the plan and the lock count what is
missing. What a plan says of a build is what the build becomes.

An image may cost 3,500 tokens, or it would not fit 4K; these worlds have small pictures of small cells, so that a few
hundred fill 1M.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image
from samples import Sources
from tiny import command, draw_pdf, leftovers, lock, records, row, write_rows

from mmlongbench.lengths import K

LENGTHS = {"4K": 4 * K, "256K": 256 * K, "1M": 1024 * K}
SIDE = 224
"""Of a page, in points, and of a picture, in pixels: 3,136 tokens in cells of 4 pixels."""
CELLS = {"image": {"patch": 4, "unshuffle": 1}}
World = dict[str, Any]


def reports(folder: Path, documents: int) -> World:
    """Documents of twenty pages, one of which is asked about."""
    (folder / "documents").mkdir()
    for number in range(documents):
        draw_pdf(folder / "documents" / f"{number:02}-tree.pdf", 20, SIDE)
    write_rows(folder, (row("01-tree.pdf", "How many petals?", "4", "[9]", answer_format="Int"),))
    source = {"samples": folder / "samples.json", "documents": folder / "documents"}
    return {"reader": "mmlongbench_doc", "source": source, "pages": {"dpi": 72}}


def case(folder: Path, pages: int) -> World:
    """A lawsuit of two documents, a third of the pages in one."""
    for name, count in (("100", pages // 3), ("101", pages - pages // 3)):
        draw_pdf(folder / f"{name}.pdf", count, SIDE)
    line = {"case_id": "7", "case_documents": ["100", "101"], "summary/short": "It was settled."}
    (folder / "cases.json").write_text(json.dumps(line) + "\n")
    source = {"cases": folder / "cases.json", "documents": folder}
    whole = {"options": {"kind": "case"}, "reference_length": pages * 3150 // K * K}
    return {"reader": "multi_lexsum", "source": source, "pages": {"dpi": 72}, **whole}


def draw(path: Path, number: int, side: int = SIDE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side), (number % 256, number // 256, 99)).save(path)


def web_pages(folder: Path, pages: int) -> World:
    """Prose with a picture on every page, and a picture to hide."""
    for number in range(pages):
        draw(folder / "pages/pictures" / f"{number}.png", number)
        text = f"The harbour of port {number} is near. " * 20
        (folder / "pages" / f"{number:03}.md").write_text(f"{text}\n\n![a view](pictures/{number}.png)\n\n{text}\n")
    draw(folder / "pages/pictures/hidden.png", 60_000, 112)
    draw(folder / "pages/pictures/other.png", 60_001, 112)
    (folder / "questions.jsonl").write_text(json.dumps(HIDDEN) + "\n")
    source = {"questions": folder / "questions.jsonl", "documents": folder / "pages"}
    return {"reader": "own_pages", "source": source, "placements": [0.4], "options": {"needle": "image"}}


HIDDEN = {
    "id": "q",
    "question": "Which of these pictures was shown?",
    "needles": ["pictures/hidden.png"],
    "choices": ["pictures/other.png", "pictures/hidden.png"],
    "answer": 1,
}


def photographs(folder: Path, count: int) -> World:
    """Photographs of a picture each."""
    for number in range(count):
        draw(folder / "photographs" / f"{number:04}.png", number)
    asked = {"id": "q", "question": "Is it?", "answer": "Yes", "needles": ["0000.png"], "negatives": ["0001.png"]}
    (folder / "questions.jsonl").write_text(json.dumps(asked) + "\n")
    source = {"questions": folder / "questions.jsonl", "images": folder / "photographs"}
    return {"reader": "photographs", "source": source, "placements": [0.4]}


def classes(folder: Path, pictures: int) -> World:
    """54 classes of so many pictures, of 1,600 tokens each; 13 of fifty classes are too few for 1M."""
    for number in range(54 * pictures):
        draw(folder / "train" / f"class {number % 54}" / f"{number}.png", number, 160)
    for number in range(54):
        draw(folder / "test" / f"class {number}" / f"{number}.png", 30_000 + number, 160)
    common = {"options": {"classes_per_8k": 2, "sets": 1}, "sample": {"n": 2}}
    return {"reader": "image_folders", "source": {"train": folder / "train", "test": folder / "test"}, **common}


DRAWN: dict[str, Callable[[Path, int], World]] = {
    "docvqa": reports,
    "many_shot": classes,
    "mm_niah": web_pages,
    "summary": case,
    "visual_haystack": photographs,
}
"""For each builder, a function that draws a source of a given size."""
LARGE = {"docvqa": 17, "many_shot": 26, "mm_niah": 400, "summary": 336, "visual_haystack": 450}
"""Sizes that suffice for 1M."""
SMALL = {
    "docvqa": (3, "padding"),
    "many_shot": (2, "exemplar"),
    "mm_niah": (8, "padding"),
    "summary": (40, "own"),
    "visual_haystack": (60, "negative"),
    "vrag": (0, "negative"),
}
"""Sizes that end before 256K, and what runs out."""


def kinds(table: dict[str, Any]) -> list[Any]:
    return [pytest.param(kind, marks=[] if kind == "docvqa" else [pytest.mark.rare]) for kind in table]


def manifest_of(builder: str, size: int, sample: Callable[[str], Sources], folder: Path) -> Path:
    (folder / "source").mkdir()
    if builder == "vrag":
        source = dict(sample("viquae"))
        more = {"corpus": str(source.pop("corpus")), "options": {"gold": "span"}, "placements": [0.4]}
        world: World = {"reader": "viquae", "source": source, **more}
    else:
        world = {**DRAWN[builder](folder / "source", size), "counter": CELLS}
    places = {name: str(path) for name, path in world["source"].items()}
    common = {"name": "made", "builder": builder, "lengths": [*LENGTHS], "admission_length": "4K", "sample": {"n": 1}}
    (folder / "made.yaml").write_text(yaml.safe_dump({"datasets": [{**common, **world, "source": places}]}))
    return folder / "made.yaml"


def built(manifest: Path) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The cells of the lock, and how full the records of each are; the release is audited."""
    out = manifest.with_name("release")
    ran = command("build", manifest, "--out", out, "--workers", 1)
    assert ran.code == 0, ran.err
    assert command("audit", out, "-q").code == 0
    assert not leftovers(out)
    full: dict[str, list[float]] = {}
    for name, tokens in LENGTHS.items():
        lines = [
            line
            for path in out.rglob(f"mmlb_data/*/*_K{tokens // K}[._]*jsonl")
            for line in path.read_text("utf-8").splitlines()
        ]
        full[name] = [(each["length"] + each["tokens"]["reserve"]) / tokens for each in map(json.loads, lines)]
    return lock(out)["datasets"]["made"]["cells"], full


@pytest.mark.parametrize("builder", kinds(LARGE))
def test_a_release_is_full_at_every_length(builder: str, sample: Callable[[str], Sources], tmp_path: Path) -> None:
    cells, full = built(manifest_of(builder, LARGE[builder], sample, tmp_path))
    for length in LENGTHS:
        assert cells[length]["examples"] == len(full[length])
        assert full[length] or (builder, length) == ("many_shot", "4K")  # one class alone, of which nobody asks
        assert cells[length]["rejected"] == cells[length]["ran_dry"] == 0
        assert "missing_units" not in cells[length]
        assert all(length == "4K" or 0.985 < fill <= 1 for fill in full[length]), full


@pytest.mark.parametrize("builder", kinds(SMALL))
def test_where_the_source_ends_the_plan_and_the_release_say_so(
    builder: str, sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    size, role = SMALL[builder]
    manifest = manifest_of(builder, size, sample, tmp_path)
    _, found = planned(manifest, "--probe", 9)
    cells, full = built(manifest)
    for cell, length in zip(found["cells"], LENGTHS, strict=True):
        made, is_long = cells[length], length != "4K"
        assert made["ran_dry"] == cell["ran_dry"] == (made["examples"] if is_long else 0)
        assert (cell["left_over"], cell["missing"]) == (role if is_long else "", made.get("missing_units", 0))
        assert (cell["missing"] > 0) == is_long
        assert not is_long or max(full[length]) < 0.985
    assert found["cells"][2]["missing"] > found["cells"][1]["missing"]


# Plans


def planned(*args: object) -> tuple[int, dict[str, Any]]:
    ran = command("plan", *args, "--json")
    assert "Traceback" not in ran.err
    (found,) = [json.loads(line) for line in ran.out.splitlines()]
    return ran.code, found


def test_a_plan_of_all_questions_is_what_the_build_becomes(source: Path, finished: Path) -> None:
    code, found = planned(source / "tiny.yaml", "--probe", 99)
    built = lock(finished)["datasets"]["mmlongdoc"]
    assert code == 0
    assert (found["questions"], found["rejected"]) == (built["questions"]["kept"], built["questions"]["rejected"])
    images = {path for path in lock(finished)["files"] if path.startswith("mmlb_image")}
    assert found["image_files"] == len(images)
    size = sum(lock(finished)["files"][path]["bytes"] for path in images)
    assert 0.7 * size < found["image_bytes"] < 1.4 * size
    for cell in found["cells"]:
        lines = records(finished, f"{cell['length'] // 1024}K")
        assert cell["examples"] == len(lines)
        assert cell["images"] * len(lines) == sum(len(line["page_list"]) for line in lines)
        path = finished / f"mmlb_data/documentQA/mmlongdoc_K{cell['length'] // 1024}.jsonl"
        assert cell["bytes"] == path.stat().st_size
        assert (cell["ran_dry"], cell["rejected"]) == (0, 0)


def test_a_length_beyond_the_sources_says_what_runs_out(source: Path) -> None:
    _, found = planned(source / "tiny.yaml", "--lengths", "1K,64K", "--probe", 2)
    short, long = found["cells"]
    assert (short["ran_dry"], long["ran_dry"], long["left_over"]) == (0, 2, "padding")
    assert long["missing"] > 200
    said = command("plan", source / "tiny.yaml", "--lengths", "64K").out
    assert "padding units run out first, by up to" in said
    assert "nothing is repeated" in said


def test_a_source_that_is_missing_is_said_and_the_others_are_planned(source: Path, tmp_path: Path) -> None:
    (own,) = yaml.safe_load((source / "tiny.yaml").read_text())["datasets"]
    places = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}
    other = {**own, "name": "other", "source": {**places, "samples": str(tmp_path / "no.json")}}
    path = tmp_path / "two.yaml"
    path.write_text(yaml.safe_dump({"datasets": [other, {**own, "source": places}]}))
    ran = command("plan", path)
    assert ran.code == 1
    assert "other: cannot be built: " in ran.out
    assert "no.json" in ran.out
    assert "mmlongdoc: 6 questions" in ran.out


def test_nothing_is_left(source: Path, tmp_path: Path) -> None:
    before = sorted(source.rglob("*"))
    assert command("plan", source / "tiny.yaml").code == 0
    assert sorted(source.rglob("*")) == before

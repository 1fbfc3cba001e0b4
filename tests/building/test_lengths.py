"""Every builder from 4K to 1M: contexts are full if the source suffices; otherwise the lock counts what is missing.

An image may cost 3,500 tokens, or it would not fit 4K; these worlds have small pictures of small cells, so that a few
hundred fill 1M.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import draw_pdf, row, write_rows

from builders.samples.many_shot.sources import draw_tables
from builders.samples.mm_niah.sources import draw_hidden_sentences
from builders.samples.visual_haystacks.sources import draw_single
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.forecast import forecast
from mmlongbench.io.atomic import TEMPORARY
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.registry import installed, sample_function
from mmlongbench.release.audit import audit_release

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)
LENGTHS = ("4K", "256K", "1M")
SIDE = 224
"""Of a page, in points and pixels: 3,136 tokens in cells of 4 pixels."""
World = dict[str, Any]


def reports(folder: Path, documents: int) -> World:
    """Documents of twenty pages, one of which is asked about."""
    (folder / "documents").mkdir()
    for number in range(documents):
        draw_pdf(folder / "documents" / f"{number:02}-tree.pdf", 20, SIDE)
    write_rows(folder, (row("01-tree.pdf", "How many petals?", "4", "[9]", answer_format="Int"),))
    source = {"samples": folder / "samples.json", "documents": folder / "documents"}
    return {"reader": "mmlongbench_doc", "source": source, "pages": {"dpi": 72}, **cells(4)}


def case(folder: Path, pages: int) -> World:
    """A lawsuit of two documents, a third of the pages in one."""
    for name, count in (("100", pages // 3), ("101", pages - pages // 3)):
        draw_pdf(folder / f"{name}.pdf", count, SIDE)
    line = {"case_id": "7", "case_documents": ["100", "101"], "summary/short": "It was settled."}
    (folder / "cases.json").write_text(json.dumps(line) + "\n")
    source = {"cases": folder / "cases.json", "documents": folder}
    whole = {"options": {"kind": "case"}, "reference_length": pages * 3150 // K * K}
    return {"reader": "multi_lexsum", "source": source, "pages": {"dpi": 72}, **whole, **cells(4)}


def web_pages(folder: Path, pages: int) -> World:
    """Prose with a view on every other page."""
    source = draw_hidden_sentences(folder, pages)
    return {"reader": "mm_niah", "source": source, "placements": [0.4], **cells(4)}


def photographs(folder: Path, count: int) -> World:
    """Photographs of some 2,800 tokens."""
    return {"reader": "visual_haystacks", "source": draw_single(folder, count), "placements": [0.4], **cells(10)}


def classes(folder: Path, pictures: int) -> World:
    """54 classes of so many pictures, of 1,700 tokens each; twelve of fifty classes are too few for 1M."""
    common = {"options": {"classes_per_8k": 2, "sets": 1}, "sample": {"n": 2, "stratify": "kind"}}
    return {"reader": "image_tables", "source": draw_tables(folder, pictures), **common, **cells(10)}


def passages(folder: Path, size: int) -> World:
    """The sample of one of the readers."""
    source = sample_function("viquae")(folder)
    corpus = {"corpus": str(source.pop("corpus")), "options": {"gold": "span"}}
    return {"reader": "viquae", "source": source, "placements": [0.4], **corpus}


def cells(side: int) -> World:
    """A token for so many pixels in the square."""
    return {"counter": {"image": {"patch": side, "unshuffle": 1}}}


DRAWN: dict[str, Callable[[Path, int], World]] = {
    "docvqa": reports,
    "many_shot": classes,
    "mm_niah": web_pages,
    "summary": case,
    "visual_haystack": photographs,
    "vrag": passages,
}
"""For each builder, a function that draws a source of a given size."""
LARGE = {"docvqa": 17, "many_shot": 12, "mm_niah": 130, "summary": 336, "visual_haystack": 450}
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


def manifest_of(builder: str, world: World) -> Manifest:
    source = {name: str(path) for name, path in world["source"].items()}
    common = {"name": "made", "builder": builder, "lengths": LENGTHS, "admission_length": "4K", "sample": {"n": 1}}
    return Manifest.model_validate({"datasets": [{**common, **world, "source": source}]})


def built(manifest: Manifest, out: Path) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The cells of the lock, and how full the records of each are; the release is audited."""
    lock = build(manifest, out, LocalExecutor(1, QUIET)).lock.public()
    assert [problem for audit in audit_release(out, QUIET) for problem in audit.problems] == []
    assert not list(out.rglob(f"{TEMPORARY}*"))
    return lock["datasets"]["made"]["cells"], {length: list(fills(out, length)) for length in LENGTHS}


def fills(out: Path, length: str) -> Iterator[float]:
    tokens = {"4K": 4 * K, "256K": 256 * K, "1M": 1024 * K}[length]
    for path in (out / "mmlb_data").rglob(f"*_K{tokens // K}[._]*jsonl"):
        for record in map(json.loads, path.read_text("utf-8").splitlines()):
            yield (record["length"] + record["tokens"]["reserve"]) / tokens


@pytest.mark.parametrize("builder", LARGE)
def test_a_release_is_full_at_every_length(builder: str, tmp_path: Path) -> None:
    manifest = manifest_of(builder, drawn(builder, tmp_path, LARGE[builder]))
    cells, full = built(manifest, tmp_path / "release")
    for length in LENGTHS:
        assert cells[length]["examples"] == len(full[length]) > 0
        assert cells[length]["rejected"] == cells[length]["ran_dry"] == 0
        assert "missing_units" not in cells[length]
        assert all(length == "4K" or 0.985 < fill <= 1 for fill in full[length]), full


@pytest.mark.parametrize("builder", SMALL)
def test_where_the_source_ends_the_plan_and_the_release_say_so(builder: str, tmp_path: Path) -> None:
    size, role = SMALL[builder]
    manifest = manifest_of(builder, drawn(builder, tmp_path, size))
    (planned,) = forecast(manifest, LocalExecutor(1, QUIET), probe=9)
    cells, full = built(manifest, tmp_path / "release")
    for cell, length in zip(planned.cells, LENGTHS, strict=True):
        found, is_long = cells[length], length != "4K"
        assert found["ran_dry"] == cell.ran_dry == (found["examples"] if is_long else 0)
        assert (cell.left_over, cell.missing) == (role if is_long else "", found.get("missing_units", 0))
        assert (cell.missing > 0) == is_long
        assert not is_long or max(full[length]) < 0.985
    assert planned.cells[2].missing > planned.cells[1].missing


def test_every_installed_builder_is_tried() -> None:
    assert {plugin.name for plugin in installed("builder")} == {*DRAWN} == {*SMALL} == {*LARGE, "vrag"}


def drawn(builder: str, folder: Path, size: int) -> World:
    (folder / "source").mkdir()
    return DRAWN[builder](folder / "source", size)

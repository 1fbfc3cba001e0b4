"""MM-NIAH: original rows of all six kinds, your own pages, rejected rows, and pages that no haystack may hold."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import mmlongbench.task as mt
from builders.common.pictures import picture_below
from builders.mm_niah import MMNIAH, MMNIAHRows, OwnPages
from builders.mm_niah.builder import MMNIAHOptions
from builders.mm_niah.haystack import Haystack
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest

pytestmark = pytest.mark.slow

TASKS = [(task, kind) for task in ("retrieval", "counting", "reasoning") for kind in ("text", "image")]
MADE = [
    "obelics_paste/n0.png",
    "obelics_paste/n1.png",
    *(f"abnormal_pic_val/c{n}.png" for n in range(3)),
    *(f"reasoning/j{n}.png" for n in range(3)),
]
PROSE = "The heron crosses the harbour before dawn. Seven bells ring over the quiet quay. Nobody on the pier looks up. "


@dataclass
class Source:
    """A folder in MM-NIAH's form."""

    folder: Path

    @property
    def paths(self) -> dict[str, Path]:
        return {
            name: self.folder / file
            for name, file in (("questions", "q.jsonl"), ("images", "images"), ("obelics", "o.jsonl"))
        }

    def write(self, rows: list[dict[str, Any]], pages: list[dict[str, Any]]) -> dict[str, Path]:
        for name, lines in (("q.jsonl", rows), ("o.jsonl", pages)):
            (self.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return self.paths


@pytest.fixture
def source(tmp_path: Path) -> Source:
    for number, name in enumerate([*(f"obelics/p{n}.png" for n in range(8)), *MADE]):
        file = tmp_path / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60 + number, 50), (number * 10, 10, 10)).save(file)
    return Source(tmp_path)


def page(number: int) -> dict[str, Any]:
    texts = [f"Page {number}, part {part}. " + PROSE * 2 + f"Line {number}-{part} ends." for part in range(3)]
    images = [None, None, "https://pages.invalid/p7.png", None]
    return {"texts": [*texts[:2], None, texts[2]], "images": images, "metadata": json.dumps([None] * 4)}


def row(task: str, kind: str) -> dict[str, Any]:
    """A row in the original form."""
    if kind == "text":
        return text_row(task)
    hidden, web = {"retrieval": ["obelics_paste/n0.png"], "reasoning": ["reasoning/j0.png"]}.get(task, MADE[:2]), "p6"
    context = "\n".join(["It was late.", *("<image>" for _ in hidden), "It rained.", "<image>"])
    images = [*hidden, f"obelics/{web}.png"]
    asked: dict[str, Any] = {"question": "Which one?", "answer": 1}
    choices: list[str] | None = ["abnormal_pic_val/c1.png", "abnormal_pic_val/c0.png", "abnormal_pic_val/c2.png"]
    if task == "counting":
        asked = {"question": "How many <image> are there in each?", "answer": "[4, 9, 0]"}
        images, choices = [*images, "abnormal_pic_val/c0.png"], None
    if task == "reasoning":
        asked["question"] = "Given the first image, whose corner is missing, which one is it?"
        choices = ["reasoning/j1.png", "reasoning/j2.png"]
    category = {"retrieval": "find-image", "counting": "count-image", "reasoning": "visual-reasoning"}[task]
    needles = {"retrieval": ["abnormal_pic_val/c0.png"], "counting": [4, 9], "reasoning": ["j0.png"]}[task]
    meta = {"placed_depth": [0.1], "needles": needles, "choices": None, "choices_image_path": choices}
    return {"id": 3, "context": context, "images_list": images, **asked, "meta": {**meta, "category": category}}


def text_row(task: str) -> dict[str, Any]:
    parts = [f"The keeper of lamp {n} is Odo{n}." for n in range(3 if task == "reasoning" else 1)]
    asked: dict[str, Any] = {"images_list": ["obelics/p6.png"], "question": "Who keeps them?", "answer": "Odo0"}
    if task == "counting":
        parts = [f"Odo{n} counted {n + 5} \u2605 ." for n in range(3)]
        asked |= {"question": "Collect the numbers of \u2605.", "answer": "[5, 6, 7]"}
    context = f"It was late. {' '.join(parts)} It rained.\n<image>\nThe end came."
    category = {"retrieval": "find-text", "counting": "count-text", "reasoning": "infer-choose"}[task]
    meta = {"placed_depth": 0.1, "needles": parts, "choices": None, "choices_image_path": None, "category": category}
    return {"id": 3, "context": context, **asked, "meta": meta}


def built(
    source: Source, task: str, kind: str, rows: list[dict[str, Any]], pages: int = 40
) -> tuple[Path, dict[str, Any]]:
    paths = source.write(rows, [page(number) for number in range(pages)])
    dataset = {
        "name": f"{task}-{kind}",
        "builder": "mm_niah",
        "reader": "mm_niah",
        "source": {name: str(path) for name, path in paths.items()},
        "lengths": ["2K"],
        "admission_length": "2K",
        "options": {"task": task, "needle": kind},
    }
    out = source.folder / "release"
    lock = build(
        Manifest.model_validate({"datasets": [dataset]}), out, LocalExecutor(1, Progress(is_shown=False))
    ).lock.public()
    return out, lock


def records(out: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((out / "mmlb_data").rglob("*.jsonl")):
        yield from map(json.loads, path.read_text("utf-8").splitlines())


@pytest.mark.parametrize(("task", "kind"), TASKS)
def test_a_row_of_each_kind_is_read_built_and_rendered_from_its_record(source: Source, task: str, kind: str) -> None:
    out, lock = built(source, task, kind, [row(task, kind)])
    assert lock["datasets"][f"{task}-{kind}"]["questions"]["rejected"] == {}
    found = list(records(out))
    builder = MMNIAH(f"{task}-{kind}", MMNIAHOptions(task=task, needle=kind))  # type: ignore[arg-type]
    assert len(found) == len(builder.spec.placements.values if builder.spec.placements else ())
    for record in found:
        foreign = {key: record[key] for key in record if key not in ("tokens", "length", "needle_start", "category")}
        assert builder.prompt(foreign) == builder.prompt(record)
        texts = [ctx["text"] for ctx in record["ctxs"]]
        assert texts.count("<image>") == len(record["image_list"])
        flags = [ctx["has_answer" if kind == "text" else "has_ans"] for ctx in record["ctxs"]]
        assert sum(flags) == len(record["positive_ctxs"])
        for positive in record["positive_ctxs"]:
            if kind == "text":
                assert sum(positive["text"] in text for text in texts) == 1
            else:
                assert record["image_list"].count(f"mm-niah/{positive['image']}") == 1
        if task != "counting" and kind == "image":
            right = {"retrieval": "abnormal_pic_val/c0.png", "reasoning": "reasoning/j2.png"}[task]
            assert record["choices_image"][record["answer"]] == f"mm-niah/{right}"


@pytest.mark.parametrize("kind", ["text", "image"])
def test_a_counting_answer_is_permuted_with_its_needles(source: Source, kind: str) -> None:
    counts = (
        {"needle-0": 4, "needle-1": 9}
        if kind == "image"
        else {f"Odo{n} counted {n + 5} \u2605 .": n + 5 for n in range(3)}
    )
    out, _ = built(source, "counting", kind, [{**row("counting", kind), "id": id} for id in range(12)])
    orders = set()
    for record in records(out):
        keys = [p["nid"] if kind == "image" else p["text"] for p in record["positive_ctxs"]]
        assert record["answer_needles" if kind == "image" else "answer"] == [counts[key] for key in keys]
        orders.add(tuple(keys))
    assert len(orders) > 1


@pytest.mark.parametrize(("task", "kind"), TASKS)
def test_needles_are_taken_out_of_a_rows_own_page(source: Source, task: str, kind: str) -> None:
    paths = source.write([row(task, kind)], [page(0)])
    pages = MMNIAHRows().web_pages(paths)
    assert list(pages) == ["row-3", "obelics/o.jsonl-0"]
    text = " ".join(part for part in pages["row-3"] if isinstance(part, str))
    assert "It was late." in text
    assert "Odo" not in text
    assert [p.path for p in pages["row-3"] if isinstance(p, mt.Image)] == ["obelics/p6.png"]
    assert pages["obelics/o.jsonl-0"][2] == mt.Image("obelics/p7.png")


def test_what_gives_a_needle_away_is_excluded_and_counted(source: Source) -> None:
    pages = [page(0), {"texts": ["They say Odo0 was there. It is so."], "images": [None]}, page(0)]
    pages.append({"texts": [None], "images": ["https://pages.invalid/gone.png"]})
    paths = source.write([row("retrieval", "text")], pages)
    reader = MMNIAHRows()
    (found,) = read_rows(reader, paths)
    from mmlongbench.documents.pictures import Pictures

    own = Pictures("mm-niah", lambda name: reader.image(paths, name), 10**6)
    sources = mt.Sources(images=mt.Images(own), web_pages=mt.WebPages(reader.web_pages(paths)))
    assert not isinstance(found, mt.RowFault)
    units = list(Haystack(found, sources, mt.Draws(("t",)), "sentences", ())())  # type: ignore[arg-type]
    reasons = [unit.excluded for unit in units if unit.excluded]
    assert sorted(set(reasons)) == ["holds-answer", "missing-image", "repeated"]
    clean = [str(unit.body) for unit in units if isinstance(unit.body, str) and not unit.excluded]
    assert not any("Odo" in text for text in clean)


def test_a_needle_picture_under_another_name_is_excluded(source: Source) -> None:
    needle = source.folder / "images" / "obelics_paste" / "n0.png"
    (source.folder / "images" / "obelics" / "p7.png").write_bytes(needle.read_bytes())
    out, lock = built(source, "retrieval", "image", [row("retrieval", "image")])
    assert lock["datasets"]["retrieval-image"]["cells"]["2K"]["left_out"]["needle-image"] > 0
    assert {path for record in records(out) for path in record["image_list"]} == {
        "mm-niah/obelics_paste/n0.png",
        "mm-niah/obelics/p6.png",
    }


def test_a_picture_that_cannot_be_decoded_is_excluded_and_the_next_unit_stands_in_its_place(source: Source) -> None:
    file = source.folder / "images" / "obelics" / "p7.png"
    Image.effect_noise((80, 80), 90).save(file)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    out, lock = built(source, "retrieval", "text", [row("retrieval", "text")])
    left_out = lock["datasets"]["retrieval-text"]["cells"]["2K"]["left_out"]
    assert left_out["broken-image"] == 7  # once a page, not once a depth
    assert all("mm-niah/obelics/p7.png" not in record["image_list"] for record in records(out))


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("markers and pictures disagree", {"images_list": []}, "markers-and-images"),
    ("an answer that is none", {"answer": None}, "missing-or-mistyped-field"),
    ("an answer of no letter", {"answer": "?!"}, "empty-answer"),
    ("no needles", {"meta": {"needles": []}}, "no-needles"),
    ("a needle that is nowhere", {"meta": {"needles": ["Never said."]}}, "needle-unknown"),
    ("no meta", {"meta": None}, "missing-or-mistyped-field"),
    ("no id", {"id": "three"}, "missing-or-mistyped-field"),
    (
        "a picture in the question",
        {"question": "Who is <image>?", "images_list": ["obelics/p6.png", "obelics/p5.png"]},
        "pictures-in-the-question",
    ),
    (
        "options that are no list",
        {"meta": {"needles": ["The keeper of lamp 0 is Odo0."], "choices": 4}},
        "missing-or-mistyped-field",
    ),
    (
        "options that have names",
        {"meta": {"needles": ["The keeper of lamp 0 is Odo0."], "choices": {"A": "x"}}, "answer": 0},
        "missing-or-mistyped-field",
    ),
]


@pytest.mark.parametrize(("change", "reason"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_a_bad_row_is_named_and_the_others_are_built(source: Source, change: dict[str, Any], reason: str) -> None:
    rows = [{**row("retrieval", "text"), **change}, {**row("retrieval", "text"), "id": 9}]
    out, lock = built(source, "retrieval", "text", rows)
    assert lock["datasets"]["retrieval-text"]["questions"]["rejected"] == {reason: 1}
    (reject,) = map(json.loads, (out / "rejects.jsonl").read_text("utf-8").splitlines())
    assert (reject["file"], reject["place"]) == ("q.jsonl", "line 1")
    assert {record["id"] for record in records(out)} == {"mm-niah-9"}


def test_text_options_and_identical_choices_are_refused(source: Source) -> None:
    worded = row("retrieval", "image")
    worded["meta"] = {**worded["meta"], "choices": ["left", "right"], "choices_image_path": None}
    twice = {**row("retrieval", "image"), "id": 4}
    twice["meta"] = {**twice["meta"], "choices_image_path": ["abnormal_pic_val/c0.png"] * 2}
    lock = built(source, "retrieval", "image", [worded, twice, {**row("retrieval", "image"), "id": 5}])[1]
    assert lock["datasets"]["retrieval-image"]["questions"]["rejected"] == {"identical-choices": 1, "text-options": 1}


def test_a_page_that_cannot_be_read_is_in_the_rejects(source: Source) -> None:
    paths = source.write([row("retrieval", "text")], [{"texts": ["a", None], "images": [None, None]}, page(1)])
    faults = [found for found in read_rows(MMNIAHRows(), paths) if isinstance(found, mt.RowFault)]
    assert [(fault.id, fault.fault.reason) for fault in faults] == [("obelics/o.jsonl-0", "text-or-image")]
    assert MMNIAHRows().web_pages(paths)["obelics/o.jsonl-0"] == []


def test_parquet_pages_are_read_as_the_lines_are(source: Source) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines = [page(number) for number in range(5)]
    paths = source.write([row("retrieval", "text")], lines)
    pq.write_table(pa.Table.from_pylist(lines), source.folder / "o.parquet", row_group_size=2)
    reader = MMNIAHRows()
    tables = reader.web_pages({**paths, "obelics": source.folder / "o.parquet"})
    lines_read = reader.web_pages(paths)
    for n in range(5):
        assert tables[f"obelics/o.parquet-{n}"] == lines_read[f"obelics/o.jsonl-{n}"]


def test_pages_of_two_files_of_one_name_are_all_there(source: Source) -> None:
    paths = source.write([row("retrieval", "text")], [])
    for folder in ("x", "y"):
        (source.folder / "web" / folder).mkdir(parents=True)
        (source.folder / "web" / folder / "o.jsonl").write_text(json.dumps(page(1)) + "\n")
    pages = MMNIAHRows().web_pages({**paths, "obelics": source.folder / "web"})
    assert list(pages) == ["row-3", "obelics/x/o.jsonl-0", "obelics/y/o.jsonl-0"]


@pytest.mark.parametrize("name", ["../q.jsonl", "/etc/hosts", "a/../../q.jsonl", "x" * 5000])
def test_a_picture_outside_its_folder_is_none(source: Source, name: str) -> None:
    paths = source.write([], [])
    assert MMNIAHRows().image(paths, name) is None
    assert OwnPages().image({"questions": paths["questions"], "documents": paths["images"]}, name) is None


def test_a_picture_is_found_by_a_relative_and_an_absolute_name_in_a_relative_and_an_absolute_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inside, outside = tmp_path / "pages" / "a" / "p.png", tmp_path / "p.png"
    inside.parent.mkdir(parents=True)
    for path in (inside, outside):
        path.write_bytes(b"a picture")
    for folder in (tmp_path / "pages", Path("pages")):
        for name in ("a/p.png", "images/a/p.png", str(inside)):
            found = picture_below(folder, name)
            assert found is not None
            assert found.resolve() == inside
        for name in ("../p.png", str(outside), "a", "a/q.png", "/"):
            assert picture_below(folder, name) is None
        assert picture_below(folder, "p.png", folder / "a") == folder / "a/p.png"
        assert picture_below(folder / "a", "p.png", folder / "a") == folder / "a/p.png"


def test_own_markdown_holds_text_and_pictures_in_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text("One.\n\n![x](../p.png)\n\nTwo.", "utf-8")
    (tmp_path / "b.txt").write_text("![x](p.png) stays", "utf-8")
    (tmp_path / "c.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "q.jsonl").write_text('{"question": "Q?", "answer": "A", "needles": ["A b."]}\n', "utf-8")
    sources = {"questions": tmp_path / "q.jsonl", "documents": tmp_path}
    pages = OwnPages().web_pages(sources)
    assert list(pages) == ["b.txt", "c.txt", "sub/a.md"]
    assert list(pages["sub/a.md"]) == ["One.\n\n", mt.Image("p.png"), "\n\nTwo."]
    assert list(pages["b.txt"]) == ["![x](p.png) stays"]
    good, bad = read_rows(OwnPages(), sources)
    assert isinstance(bad, mt.RowFault)
    assert (bad.id, bad.fault.reason) == ("c.txt", "unreadable-page")
    assert good.id == "mm-niah-0"


@pytest.mark.parametrize(
    "change",
    [
        {"answer": None},
        {"answer": 1},
        {"needles": "x"},
        {"needles": ["a\nb"]},
        {"needles": ["<image>"]},
        {"question": ""},
    ],
)
def test_a_bad_own_question_says_its_line_and_field(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "a.md").write_text("One.", "utf-8")
    line = {"question": "Q?", "answer": "A", "needles": ["A b."], **change}
    (tmp_path / "q.jsonl").write_text(json.dumps(line), "utf-8")
    (found,) = read_rows(OwnPages(), {"questions": tmp_path / "q.jsonl", "documents": tmp_path})
    assert isinstance(found, mt.RowFault)
    assert (found.fault.place, found.fault.field) == ("line 1", next(iter(change)))

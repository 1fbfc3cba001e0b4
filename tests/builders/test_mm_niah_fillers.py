"""Pictures and statements of questions never fill a haystack; counts over your own pages."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import mmlongbench.task as mt
from builders.mm_niah import MMNIAHRows, OwnPages, haystack
from builders.mm_niah.haystack import Haystack, counted_symbols
from builders.mm_niah.rows import HaystackQuestion, HiddenNeedle
from builders.samples.mm_niah.sources import draw_hidden_pictures
from builders.samples.mm_niah.upstream import FILES, STAR, draw_upstream
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.documents.pictures import Pictures
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest

pytestmark = pytest.mark.slow


def opened(paths: dict[str, Path]) -> mt.Sources:
    reader = MMNIAHRows()
    pictures = Pictures("mm-niah", lambda name: reader.image(paths, name), 10**6)
    images = mt.Images(pictures, asked=reader.asked_pictures(paths))
    return mt.Sources(images=images, web_pages=mt.WebPages(reader.web_pages(paths)))


def rows_of(sources: dict[str, Path]) -> list[HaystackQuestion]:
    return [row for row in read_rows(MMNIAHRows(), sources) if isinstance(row, HaystackQuestion)]


def units_of(row: HaystackQuestion, sources: mt.Sources) -> list[mt.Unit]:
    names = [*(needle.image for needle in row.needles if needle.image), *row.shown, *row.choices]
    return list(Haystack(row, sources, mt.Draws(("t",)), "sentences", [sources.images[name] for name in names])())


def with_page(sources: dict[str, Path], *parts: str) -> dict[str, Path]:
    """The sources with a web page more; parts that end in .png are pictures."""
    images = [f"https://pages.invalid/{part}" if part.endswith(".png") else None for part in parts]
    texts = [None if image else part for part, image in zip(parts, images, strict=True)]
    with sources["obelics"].open("a", encoding="utf-8") as file:
        file.write(json.dumps({"images": images, "texts": texts, "metadata": json.dumps([None] * len(parts))}) + "\n")
    return sources


@pytest.fixture
def drawn(tmp_path: Path) -> dict[str, dict[str, Path]]:
    return draw_upstream(tmp_path, rows=6, pictures=12, pages=2)


IMAGES = Path("mm_niah_dev") / "images"
MADE = {
    "retrieval-image": ("obelics_paste/find-image/pasted3.png", "abnormal_pic_val/egg.png", "composed/pasted5.png"),
    "counting-image": ("obelics_paste/count-image/counted2-1.png", "abnormal_pic_val/bell.png"),
    "reasoning-image": (
        "reasoning/val_Jigsaw_4_image_1.png",
        "reasoning/val_Jigsaw_4_image_3.png",
        "reasoning/val_Multi-view_Reasoning_2_image_1.png",
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_no_picture_of_another_question_fills_a_haystack_under_any_name(
    name: str, drawn: dict[str, dict[str, Path]], tmp_path: Path
) -> None:
    copies = [f"copy{number}.png" for number in range(len(MADE[name]))]
    for made, copy in zip(MADE[name], copies, strict=True):
        shutil.copy(tmp_path / IMAGES / made, tmp_path / IMAGES / "obelics" / copy)
    Image.new("RGB", (30, 30)).save(tmp_path / IMAGES / "obelics" / "plain.png")
    sources = with_page(drawn[name], "Words stand here.", *copies, "plain.png")
    world = opened(sources)
    units = {unit.id: unit for unit in units_of(rows_of(sources)[0], world)}
    page = [unit for id, unit in units.items() if id.startswith("obelics/obelics.jsonl-2#")]
    assert [unit.excluded for unit in page] == ["", *["image-of-a-question"] * len(copies), ""]


def test_pictures_of_folders_of_made_pictures_are_no_filler(drawn: dict[str, dict[str, Path]], tmp_path: Path) -> None:
    folder = tmp_path / "own"
    for number, name in enumerate(("my_paste/a.png", "abnormal_pic_val/b.png", "web/c.png")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (30 + number, 30)).save(folder / name)
    pictures = Pictures("mm-niah", lambda name: folder / name, 10**6)
    page = [mt.Image(name) for name in ("my_paste/a.png", "abnormal_pic_val/b.png", "web/c.png")]
    row = HaystackQuestion(id="q", question="?", needles=(HiddenNeedle(id="needle-0", text="It is."),))
    sources = mt.Sources(images=mt.Images(pictures), web_pages=mt.WebPages({"p": page}))
    units = list(Haystack(row, sources, mt.Draws(("t",)), "sentences", ())())
    assert [unit.excluded for unit in units] == ["made-image", "made-image", ""]


@pytest.mark.parametrize(
    ("kind", "source", "copy", "fault"),
    [
        ("retrieval-image", "obelics_paste/find-image/pasted3.png", "obelics/copy.png", "has the bytes of a picture"),
        (
            "retrieval-text",
            "obelics/web0000.png",
            "obelics/paste/copy.png",
            "is in a folder of pictures that the benchmark made",
        ),
    ],
    ids=["equal bytes", "a folder of made pictures"],
)
def test_a_build_that_would_release_such_filler_ends_with_its_name(
    kind: str, source: str, copy: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, images = draw_upstream(tmp_path / "drawn", rows=4, pictures=4, pages=0)[kind], tmp_path / "drawn" / IMAGES
    (images / copy).parent.mkdir(exist_ok=True)
    shutil.copy(images / source, images / copy)
    text = sources["questions"].read_text("utf-8").replace("obelics/web0003.png", copy)
    sources["questions"].write_text(text, "utf-8")
    sources["obelics"].write_text("", "utf-8")
    task, needle = kind.split("-")
    dataset = {
        "name": kind,
        "builder": "mm_niah",
        "reader": "mm_niah",
        "source": {key: str(path) for key, path in sources.items() if key != "obelics"},
        "lengths": ["4K"],
        "admission_length": "4K",
        "placements": [0],
        "options": {"task": task, "needle": needle},
    }
    manifest = Manifest.model_validate({"datasets": [dataset]})
    left_out = build(manifest, tmp_path / "right", LocalExecutor(1, Progress(is_shown=False))).lock.public()
    assert left_out["datasets"][kind]["cells"]["4K"]["left_out"]
    monkeypatch.setattr(haystack, "_picture_faults", lambda pictures, images: lambda name, picture: "")
    with pytest.raises(mt.DraftError, match=rf"mm-niah-\d: internal error: the picture mm-niah/{copy} .* it {fault}"):
        build(manifest, tmp_path / "wrong", LocalExecutor(1, Progress(is_shown=False)))


def test_statements_with_the_counted_symbol_are_no_filler(drawn: dict[str, dict[str, Path]]) -> None:
    sources = with_page(
        drawn["counting-text"], "No stars.", f"The film has {STAR}{STAR}.", f"So an owl counted 9 {STAR} ."
    )
    world = opened(sources)
    for row in rows_of(sources):
        assert counted_symbols(row) == {STAR}
        units = units_of(row, world)
        assert Counter(unit.excluded for unit in units)["holds-symbol"] == 2
        assert not [unit for unit in units if isinstance(unit.body, str) and STAR in unit.body and not unit.excluded]


def test_symbols_are_looked_for_where_statements_are_counted_and_nowhere_else() -> None:
    text = HiddenNeedle(id="needle-0", text=f"It has $5 and {STAR}.")
    asks = HaystackQuestion(id="q", question=f"How much is {STAR} and $?", needles=(text,), counts=(5,))
    assert counted_symbols(asks) == {STAR}
    assert counted_symbols(asks.model_copy(update={"counts": (), "answers": ("5",)})) == frozenset()
    assert counted_symbols(asks.model_copy(update={"question": "How much?"})) == frozenset()


@pytest.mark.parametrize("name", FILES)
def test_no_page_of_a_row_holds_a_needle_of_any_row(name: str, drawn: dict[str, dict[str, Path]]) -> None:
    sources = drawn[name]
    raw = [json.loads(line) for line in sources["questions"].read_text("utf-8").splitlines()]
    needles = [needle for row in raw for needle in row["meta"]["needles"] if isinstance(needle, str)]
    asked = set(MMNIAHRows().asked_pictures(sources))
    pages = MMNIAHRows().web_pages(sources)
    for page in pages.values():
        text = " ".join(" ".join(part.split()) for part in page if isinstance(part, str))
        assert not [needle for needle in needles if needle in text]
        assert not {part.path for part in page if isinstance(part, mt.Image)} & asked


def own_counting(folder: Path, **changes: Any) -> list[dict[str, Any]]:
    """A release of one own question that counts two pictures."""
    sources = draw_hidden_pictures(folder / "drawn")
    line = {
        "question": "How many signs are as <image> in each picture?",
        "answer": [2, 1],
        "needles": ["pictures/emblem00a.png", "pictures/emblem01a.png"],
        "shown": ["pictures/emblem02a.png"],
        **changes,
    }
    sources["questions"].write_text(json.dumps(line) + "\n", "utf-8")
    dataset = {
        "name": "counting-image",
        "builder": "mm_niah",
        "reader": "own_pages",
        "source": {key: str(path) for key, path in sources.items()},
        "lengths": ["8K"],
        "options": {"task": "counting", "needle": "image"},
    }
    build(Manifest.model_validate({"datasets": [dataset]}), folder / "out", LocalExecutor(1, Progress(is_shown=False)))
    (file,) = (folder / "out" / "mmlb_data").rglob("*.jsonl")
    return [json.loads(text) for text in file.read_text("utf-8").splitlines()]


def test_own_counts_become_one_number_for_each_picture_of_the_context(tmp_path: Path) -> None:
    counts = {"mm-niah/pictures/emblem00a.png": 2, "mm-niah/pictures/emblem01a.png": 1}
    orders = set()
    for record in own_counting(tmp_path):
        assert record["answer"] == [counts.get(path, 0) for path in record["image_list"]]
        assert record["answer_total"] == 3
        assert sorted(record["answer_needles"]) == [1, 2]
        assert len(record["image_list"]) > 2
        orders.add(tuple(record["answer"]))
    assert len(orders) == 3


def test_an_own_ordinal_is_written_anew_for_each_depth(tmp_path: Path) -> None:
    sources = draw_hidden_pictures(tmp_path / "drawn")
    lines = [json.loads(line) for line in sources["questions"].read_text("utf-8").splitlines()[:2]]
    for line in lines:
        line["question"] = "Which emblem is the first image, which is no view?"
    sources["questions"].write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    dataset = {
        "name": "retrieval-image",
        "builder": "mm_niah",
        "reader": "own_pages",
        "source": {key: str(path) for key, path in sources.items()},
        "lengths": ["8K"],
        "options": {"task": "retrieval", "needle": "image"},
    }
    build(
        Manifest.model_validate({"datasets": [dataset]}), tmp_path / "out", LocalExecutor(1, Progress(is_shown=False))
    )
    (file,) = (tmp_path / "out" / "mmlb_data").rglob("*.jsonl")
    for record in map(json.loads, file.read_text("utf-8").splitlines()):
        (needle,) = record["positive_ctxs"]
        place = 1 + record["image_list"].index(f"mm-niah/{needle['image']}")
        assert record["question"] == f"Which emblem is the {mt.ordinal_words(place)} image, which is no view?"
        assert (record["ordinal"], record["ordinal_source"]) == (place, 1)


def test_all_ordinals_of_a_question_are_recorded_where_they_are_kept_as_they_are(tmp_path: Path) -> None:
    sources = draw_hidden_pictures(tmp_path / "drawn")
    lines = [json.loads(line) for line in sources["questions"].read_text("utf-8").splitlines()[:2]]
    lines[0]["question"] = "Which emblem is like the first image or the third picture?"
    lines[1]["question"] = "Which emblem is like the second image?"
    sources["questions"].write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    dataset = {
        "name": "retrieval-image",
        "builder": "mm_niah",
        "reader": "own_pages",
        "source": {key: str(path) for key, path in sources.items()},
        "lengths": ["8K"],
        "placements": [0],
        "options": {"task": "retrieval", "needle": "image", "ordinal": "source"},
    }
    build(
        Manifest.model_validate({"datasets": [dataset]}), tmp_path / "out", LocalExecutor(1, Progress(is_shown=False))
    )
    (file,) = (tmp_path / "out" / "mmlb_data").rglob("*.jsonl")
    found = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [record["question_source"] for record in found] == [line["question"] for line in lines]
    assert [record["ordinal"] for record in found] == [record["ordinal_source"] for record in found] == [[1, 3], 2]


def test_own_pictures_of_questions_are_told_also_where_a_question_is_refused(tmp_path: Path) -> None:
    lines: list[object] = [
        {"question": "Q?", "answer": 0, "needles": ["a.png"], "choices": ["a.png", "b.JPG"]},
        {"question": "", "needles": ["c.png", 5, "A sentence."], "shown": "d.png"},
        ["no row"],
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    found = OwnPages().asked_pictures({"questions": tmp_path / "q.jsonl", "documents": tmp_path})
    assert list(found) == ["a.png", "a.png", "b.JPG", "c.png"]

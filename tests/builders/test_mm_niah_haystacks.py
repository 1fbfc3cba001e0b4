"""MM-NIAH's six tasks from files in the form of the download: what is asked, placed, and never used as filler.

Expected values come from the released lines and pictures only: the pixels of a drawn picture encode its content.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_forms import json_lines_of
from one_dataset import OneDataset, built, manifest, ran, write_lines
from PIL import Image
from samples import Sources
from tiny import command

import mmlongbench as mm
import mmlongbench.task as mt
from builders.mm_niah import MMNIAHRows, builder
from builders.mm_niah.builder import counted_symbols, haystack
from builders.mm_niah.rows import HaystackQuestion, HiddenNeedle, pictures_named, renamed
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.checking.check import check
from mmlongbench.documents.pictures import Pictures
from mmlongbench.manifest.loading import load_manifest, narrowed
from tests.drawing.mm_niah.upstream import FILES, SIDE, SLOTS, SQUARE, STAR, draw_upstream

ROWS = 6
LENGTHS = (2, 3)
Colour = tuple[int, int, int]
STALE = "naming another picture than the needle"
UNKNOWN = "that cannot be compared: the record does not say which picture is the needle"
ORDINALS, FILLERS = "questions with an ordinal", "contexts with other pictures than needles"


def dataset_of(name: str, sources: Sources, reader: str = "mm_niah", **more: Any) -> dict[str, Any]:
    task, needle = name.split("-")
    options = {"task": task, "needle": needle, **more.pop("options", {})}
    common = {"name": name, "builder": "mm_niah", "reader": reader, "source": sources, "options": options}
    return {**common, "lengths": ["2K"], "admission_length": "2K", **more}


def upstream(folder: Path, rows: int = ROWS, **more: Any) -> dict[str, dict[str, Path]]:
    return draw_upstream(folder, rows=rows, **{"pictures": 4, "pages": 1, **more})


# --- the six tasks ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A release of the six files, and its raw rows; not to be changed."""

    folder: Path
    raw: dict[str, dict[str, dict[str, Any]]]
    lock: dict[str, Any]

    def records(self, name: str, *lengths: int) -> Iterator[dict[str, Any]]:
        for length in lengths or LENGTHS:
            (file,) = (self.folder / "mmlb_data/NIAH").glob(f"{name}_*_K{length}_*.jsonl")
            yield from json_lines_of(file)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("upstream")
    sources = upstream(folder / "source", pictures=30, pages=6)
    datasets = [dataset_of(name, sources[name], lengths=[f"{k}K" for k in LENGTHS]) for name in FILES]
    done = command("build", manifest(folder / "m.yaml", *datasets), "--out", folder / "release", "-q")
    assert done.code == 0, done.err
    raw = {name: {f"mm-niah-{row['id']}": row for row in json_lines_of(sources[name]["questions"])} for name in FILES}
    lock = json.loads((folder / "release/build.lock.json").read_bytes())["datasets"]
    return Made(folder / "release", raw, lock)


@cache
def picture(release: Path, path: str) -> Image.Image:
    with Image.open(release / "mmlb_image" / path) as found:
        return found.convert("RGB")


def colour_at(release: Path, path: str, x: int, y: int) -> Colour:
    found = picture(release, path).getpixel((x, y))
    assert isinstance(found, tuple)
    return (found[0], found[1], found[2])


def cartoons(release: Path, path: str) -> list[Colour]:
    """The colours of the cartoons that a page picture shows: of all that is drawn, only they have much red."""
    seen = [colour_at(release, path, x + SQUARE // 2, y + SQUARE // 2) for x, y in SLOTS]
    return [colour for colour in seen if colour[0] > 200]


def has_corner(release: Path, path: str) -> bool:
    return colour_at(release, path, SIDE - 3, SIDE - 3) == (0, 0, 0)


def context_of(record: dict[str, Any]) -> str:
    return "\n\n".join(ctx["text"] for ctx in record["ctxs"])


def check_retrieval_text(release: Path, record: dict[str, Any]) -> None:
    said = re.findall(r"keeps the word (\w+)\.", context_of(record))
    assert said == [record["answer"]]
    assert [record["answer"] in ctx["text"] for ctx in record["ctxs"]] == [ctx["has_answer"] for ctx in record["ctxs"]]


def check_retrieval_image(release: Path, record: dict[str, Any]) -> None:
    (place,) = (n for n, path in enumerate(record["image_list"]) if cartoons(release, path))
    (shown,) = cartoons(release, record["image_list"][place])
    assert [colour_at(release, path, 3, 3) == shown for path in record["choices_image"]].index(True) == record["answer"]
    check_needles(record, [place])


def check_counting_text(release: Path, record: dict[str, Any]) -> None:
    said = re.findall(rf"counted (\d+) {STAR} \.", context_of(record))
    assert [int(number) for number in said] == record["answer"]
    assert context_of(record).count(STAR) == len(said)
    assert len(record["positive_ctxs"]) == len(said)


def check_counting_image(release: Path, record: dict[str, Any]) -> None:
    (pattern,) = (colour_at(release, path, 3, 3) for path in record["needle_image_list"])
    seen = [cartoons(release, path) for path in record["image_list"]]
    assert {colour for colours in seen for colour in colours} == {pattern}
    counts = [len(colours) for colours in seen]
    assert record["answer"] == counts
    assert record["answer_total"] == sum(counts)
    assert record["answer_needles"] == [count for count in counts if count]
    check_needles(record, [n for n, count in enumerate(counts) if count])


def check_reasoning_text(release: Path, record: dict[str, Any]) -> None:
    flights = re.findall(r"On day \d+ (\w+) flew farther than (\w+)\.", context_of(record))
    assert len(flights) == 2
    assert {one for one, _ in flights} - {other for _, other in flights} == {record["answer"]}
    options = re.findall(r"\n([A-C])\. (\w+)", record["question"])
    assert not options or record["answer"] in dict(options).values()


def check_reasoning_image(release: Path, record: dict[str, Any]) -> None:
    (place,) = (n for n, path in enumerate(record["image_list"]) if has_corner(release, path))
    assert f"the {mt.advanced.ordinal_words(place + 1)} image" in record["question"]
    assert record["ordinal"] == place + 1
    shown = colour_at(release, record["image_list"][place], 3, 3)
    assert [colour_at(release, path, 3, 3) == shown for path in record["choices_image"]].index(True) == record["answer"]
    check_needles(record, [place])


def check_needles(record: dict[str, Any], places: list[int]) -> None:
    """The flags and the paths of the needles give the same places."""
    pictures = [ctx for ctx in record["ctxs"] if ctx["text"] == "<image>"]
    assert [n for n, ctx in enumerate(pictures) if ctx["has_ans"]] == places
    paths = [f"mm-niah/{positive['image']}" for positive in record["positive_ctxs"]]
    assert paths == [record["image_list"][place] for place in places]


CHECKS = {
    "retrieval-text": check_retrieval_text,
    "retrieval-image": check_retrieval_image,
    "counting-text": check_counting_text,
    "counting-image": check_counting_image,
    "reasoning-text": check_reasoning_text,
    "reasoning-image": check_reasoning_image,
}
every = pytest.mark.parametrize("name", FILES)


@every
def test_question_place_and_answer_are_right_at_every_placement_of_every_row(made: Made, name: str) -> None:
    counts = made.lock[name]["questions"]
    skipped = {"multi-view": ROWS // 3} if name == "reasoning-image" else {}
    assert (counts["read"], counts["rejected"], counts.get("skipped", {})) == (ROWS, {}, skipped)
    assert counts["kept"] == ROWS - sum(skipped.values())
    records = list(made.records(name))
    placements = 6 if name in ("retrieval-text", "retrieval-image", "reasoning-image") else 3
    assert len(records) == counts["kept"] * placements * len(LENGTHS)
    builder = mm.open_release(made.folder).builder(name)
    for record in records:
        CHECKS[name](made.folder, record)
        foreign = {key: record[key] for key in record if key not in ("tokens", "length", "needle_start", "category")}
        assert builder.prompt(foreign) == builder.prompt(record)
        assert [ctx["text"] for ctx in record["ctxs"]].count("<image>") == len(record["image_list"])
        flags = [ctx["has_answer" if name.endswith("text") else "has_ans"] for ctx in record["ctxs"]]
        assert sum(flags) == len(record["positive_ctxs"])
    if name == "counting-image":  # answers are permuted with their needles
        assert len({tuple(record["answer_needles"]) for record in records}) > 1


@every
def test_no_filler_shows_or_says_what_any_question_asks(made: Made, name: str) -> None:
    listed = [needle for row in made.raw[name].values() for needle in row["meta"]["needles"]]
    needles = {needle for needle in listed if isinstance(needle, str)}
    for record in made.records(name):
        for ctx in (ctx for ctx in record["ctxs"] if not (ctx.get("has_ans") or ctx.get("has_answer"))):
            assert not [text for text in (*needles, "</s>", STAR) if text in ctx["text"]]
        own = {f"mm-niah/{positive.get('image')}" for positive in record["positive_ctxs"]}
        for path in (path for path in record["image_list"] if path not in own):
            assert not cartoons(made.folder, path)
            assert not has_corner(made.folder, path)
            assert path.startswith("mm-niah/obelics/")


def test_the_sources_question_and_both_ordinals_are_kept(made: Made) -> None:
    places = set()
    for record in made.records("reasoning-image"):
        row = made.raw["reasoning-image"][record["id"]]
        assert record["question_source"] == row["question"]
        corner = [path.split("/")[-1] for path in row["images_list"]].index(Path(row["meta"]["needles"][0]).name)
        assert record["ordinal_source"] == corner + 1
        assert record["question"].replace(mt.advanced.ordinal_words(record["ordinal"]), "n-th") == row[
            "question"
        ].replace(mt.advanced.ordinal_words(corner + 1), "n-th")
        places.add(record["ordinal"])
    assert len(places) > 6


@every
def test_every_example_is_within_its_budget_and_shorter_contexts_are_contained_in_longer_ones(
    made: Made, name: str
) -> None:
    reserve = next(made.records(name))["tokens"]["reserve"]
    for length in LENGTHS:
        assert all(record["length"] + reserve <= 1024 * length for record in made.records(name, length))

    def shown(record: dict[str, Any]) -> Counter[str]:
        """The pictures, and the texts without the needles among them."""
        texts = [ctx["text"] for ctx in record["ctxs"] if ctx["text"] != "<image>"]
        for needle in (positive["text"] for positive in record["positive_ctxs"] if "text" in positive):
            texts = [text.replace(needle, " ") for text in texts]
        return Counter([*(" ".join(text.split()) for text in texts), *record["image_list"]])

    for short, long in zip(*(made.records(name, length) for length in LENGTHS), strict=True):
        assert short["id"] == long["id"]
        assert (shown(short) - shown(long)).total() <= mt.Closing().last


def test_the_audit_counts_to_the_token_and_finds_every_ordinal_right(made: Made) -> None:
    lines = mm.audit(made.folder)
    assert not any(line.problems for line in lines)
    for line in lines:
        remarks = {remark.subject: (remark.examples, remark.faults) for remark in line.remarks}
        subjects = [FILLERS, *([ORDINALS] if line.dataset == "reasoning-image" else [])]
        assert remarks == {subject: (line.examples, []) for subject in subjects}


@pytest.mark.rare
def test_the_six_tasks_keep_the_rules_of_every_task(tmp_path: Path) -> None:
    sources = upstream(tmp_path / "source", rows=2, pictures=12, pages=2)
    datasets = (dataset_of(name, sources[name]) for name in FILES)
    small = narrowed(load_manifest(manifest(tmp_path / "m.yaml", *datasets)), "2K,4K", 1)
    assert check(small, workers=1).failures == ()


@pytest.mark.parametrize(
    ("pictures", "length"), [(1, "2K"), (60, "8K"), pytest.param(240, "32K", marks=pytest.mark.rare)]
)
def test_any_number_of_pictures(pictures: int, length: str, tmp_path: Path) -> None:
    sources = upstream(tmp_path / "source", rows=1, pictures=pictures - 1)
    for name in (name for name in FILES if name.endswith("image")):
        release = built(tmp_path / name, dataset_of(name, sources[name], lengths=[length], admission_length="1K"))
        for record in release.records(int(length[:-1])):
            assert len(record["image_list"]) == pictures
            CHECKS[name](release.folder, record)


# --- the source -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("images", "named"),
    [
        ("mm_niah_dev/images", "."),
        ("mm_niah_dev/images", "mm_niah_dev"),
        ("mm_niah_val/images", "mm_niah_val/images"),
        ("images", "."),
    ],
    ids=["two levels down", "one level down", "itself", "one level down, by another name"],
)
def test_the_pictures_are_found_wherever_the_archive_was_unpacked(images: str, named: str, tmp_path: Path) -> None:
    upstream(tmp_path, rows=1, images=images)
    (tmp_path / "outside.png").write_bytes(b"x")
    (tmp_path / images / "obelics" / "link.png").symlink_to("/etc/hosts")
    reader, sources = MMNIAHRows(), {"images": tmp_path / named}
    for name in ("obelics/web0000.png", "abnormal_pic_val/kite.png", "obelics_paste/find-image/pasted0.png"):
        inside = (tmp_path / images / name).relative_to(tmp_path / named)
        assert reader.image(sources, name) == tmp_path / named / inside
    for name in ("../../outside.png", "obelics/link.png", "/etc/hosts", "obelics/gone.png"):
        assert reader.image(sources, name) is None


WEB = "obelics/web0000.png"


def test_pictures_that_are_unpacked_later_are_found_and_links_are_no_second_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mm_niah_val"
    sources = {"images": tmp_path, "questions": folder / "annotations/retrieval-image.jsonl"}
    early = MMNIAHRows()
    assert early.image(sources, WEB) is None
    upstream(tmp_path, rows=1)
    found = tmp_path / "mm_niah_dev/images" / WEB
    assert MMNIAHRows().image(sources, WEB) == found
    assert len(list(read_rows(early, sources))) == 1
    assert early.image(sources, WEB) == found
    shutil.move(folder / "annotations", tmp_path / "annotations")
    folder.rmdir()
    folder.symlink_to("mm_niah_dev")
    sources["questions"] = tmp_path / "annotations/retrieval-image.jsonl"
    reader = MMNIAHRows()
    assert len(list(read_rows(reader, sources))) == 1
    assert reader.image(sources, WEB) == found
    (tmp_path / "source").mkdir()
    inner = tmp_path / "source/images"
    inner.symlink_to(tmp_path / "mm_niah_dev/images")
    assert MMNIAHRows().image({"images": tmp_path / "source"}, WEB) is None  # leads out of the source
    assert MMNIAHRows().image({"images": inner}, WEB) == inner / WEB


def test_two_folders_of_pictures_are_not_guessed_between(tmp_path: Path) -> None:
    for split in ("mm_niah_val", "mm_niah_test"):
        upstream(tmp_path, rows=1, images=f"{split}/images")
    sources = {"images": tmp_path, "questions": tmp_path / "mm_niah_val" / "annotations" / "retrieval-image.jsonl"}
    with pytest.raises(
        mt.readers.SourceError, match=r"several-picture-folders: .* mm_niah_test/images and mm_niah_val/images"
    ):
        list(read_rows(MMNIAHRows(), sources))


def test_a_build_says_what_was_skipped_apart_from_what_was_rejected_and_strict_goes_past_it(tmp_path: Path) -> None:
    sources = upstream(tmp_path / "source", rows=3)["reasoning-image"]
    dataset = dataset_of("reasoning-image", sources, placements=[0])
    strict = built(tmp_path / "a", dataset, "--strict")
    assert strict.questions["skipped"] == {"multi-view": 1}
    (skipped,) = strict.rejects()
    assert (skipped["reason"], skipped["is_expected"]) == ("multi-view", True)
    assert "the benchmark leaves Multi-view rows out" in skipped["todo"]
    assert "skipped 1: multi-view" in strict.out
    assert "rejected 1" not in strict.out
    planned = command("plan", tmp_path / "a.yaml")
    assert "reasoning-image: 2 questions; skipped: 1 × multi-view" in planned.out
    rows = json_lines_of(sources["questions"])
    write_lines(sources["questions"], [rows[2], {"id": 9}])
    none = ran(tmp_path / "b", dataset)
    assert none.code == 1
    assert "no question was kept: 2 read, 1 rejected, 1 skipped" in none.err
    write_lines(sources["questions"], [*rows, {"id": 9}])
    stopped = ran(tmp_path / "c", dataset, "--strict")
    assert stopped.code == 1
    assert "missing-or-mistyped-field" in stopped.err


PROSE = "The heron crosses the harbour before dawn. Seven bells ring over the quiet quay. Nobody on the pier looks up. "


def page(number: int) -> dict[str, Any]:
    texts = [f"Page {number}, part {part}. " + PROSE * 2 + f"Line {number}-{part} ends." for part in range(3)]
    images = [None, None, "https://pages.invalid/p7.png", None]
    return {"texts": [*texts[:2], None, texts[2]], "images": images, "metadata": json.dumps([None] * 4)}


def text_row(**changes: Any) -> dict[str, Any]:
    """A row with a sentence that is hidden, in the original form."""
    needle = "The keeper of lamp 0 is Odo0."
    meta = {"placed_depth": 0.1, "needles": [needle], "choices": None, "choices_image_path": None}
    context = f"It was late. {needle} It rained.\n<image>\nThe end came."
    asked = {"question": "Who keeps them?", "answer": "Odo0", "images_list": ["obelics/p6.png"]}
    return {"id": 3, "context": context, **asked, "meta": {**meta, "category": "find-text"}, **changes}


@pytest.fixture
def web(tmp_path: Path) -> dict[str, Path]:
    """Web pictures, without questions and pages."""
    for number in range(8):
        file = tmp_path / f"images/obelics/p{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((60 + number, 50), 90).save(file)
    return {"questions": tmp_path / "q.jsonl", "images": tmp_path / "images", "obelics": tmp_path / "o.jsonl"}


NEEDLES = ["The keeper of lamp 0 is Odo0."]
BAD: list[tuple[dict[str, Any], str]] = [
    ({"images_list": []}, "markers-and-images"),
    ({"answer": None}, "missing-or-mistyped-field"),
    ({"answer": "?!"}, "empty-answer"),
    ({"meta": {"needles": []}}, "no-needles"),
    ({"meta": {"needles": ["Never said."]}}, "needle-unknown"),
    ({"meta": None}, "missing-or-mistyped-field"),
    ({"id": "three"}, "missing-or-mistyped-field"),
    ({"question": "Who is <image>?", "images_list": ["obelics/p6.png", "obelics/p5.png"]}, "pictures-in-the-question"),
    ({"meta": {"needles": NEEDLES, "choices": 4}}, "missing-or-mistyped-field"),
    ({"meta": {"needles": NEEDLES, "choices": {"A": "x"}}, "answer": 0}, "missing-or-mistyped-field"),
]


def test_bad_rows_and_pages_are_named_and_a_broken_picture_is_passed_over(web: dict[str, Path], tmp_path: Path) -> None:
    rows = [text_row(**{"id": 20 + number, **change}) for number, (change, _) in enumerate(BAD)]
    write_lines(web["questions"], [*rows, text_row(id=9)])
    write_lines(web["obelics"], [*map(page, range(40)), {"texts": ["a", None], "images": [None, None]}])
    broken = tmp_path / "images/obelics/p7.png"
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    release = built(tmp_path / "out", dataset_of("retrieval-text", web))
    assert [(row["file"], row["place"], row["reason"]) for row in release.rejects()] == [
        *(("q.jsonl", f"line {line}", reason) for line, (_, reason) in enumerate(BAD, 1)),
        ("o.jsonl", "obelics/o.jsonl-40", "text-or-image"),
    ]
    assert {record["id"] for record in release.records(2)} == {"mm-niah-9"}
    assert release.lock["cells"]["2K"]["left_out"]["broken-image"] == 7  # once a page, not once a depth
    assert all("mm-niah/obelics/p7.png" not in record["image_list"] for record in release.records(2))
    pages = MMNIAHRows().web_pages(web)
    assert pages["obelics/o.jsonl-40"] == []
    assert pages["obelics/o.jsonl-0"][2] == mt.Image("obelics/p7.png")


def test_pages_in_parquet_are_read_as_lines_are_and_files_of_one_name_are_all_there(
    web: dict[str, Path], tmp_path: Path
) -> None:
    lines = [page(number) for number in range(5)]
    write_lines(web["questions"], [text_row()])
    write_lines(web["obelics"], lines)
    pq.write_table(pa.Table.from_pylist(lines), tmp_path / "o.parquet", row_group_size=2)
    reader = MMNIAHRows()
    tables, plain = reader.web_pages({**web, "obelics": tmp_path / "o.parquet"}), reader.web_pages(web)
    assert [tables[f"obelics/o.parquet-{n}"] for n in range(5)] == [plain[f"obelics/o.jsonl-{n}"] for n in range(5)]
    for folder in ("x", "y"):
        (tmp_path / "web" / folder).mkdir(parents=True)
        write_lines(tmp_path / "web" / folder / "o.jsonl", [page(1)])
    both = MMNIAHRows().web_pages({**web, "obelics": tmp_path / "web"})
    assert list(both) == ["row-3", "obelics/x/o.jsonl-0", "obelics/y/o.jsonl-0"]


# --- what fills a haystack --------------------------------------------------------------------------------------------


def opened(paths: dict[str, Path]) -> mt.Sources:
    reader = MMNIAHRows()
    pictures = Pictures("mm-niah", lambda name: reader.image(paths, name), 10**6)
    images = mt.advanced.Images(pictures, asked=reader.asked_pictures(paths))
    return mt.Sources(images=images, web_pages=mt.advanced.WebPages(reader.web_pages(paths)))


def rows_of(sources: dict[str, Path]) -> list[HaystackQuestion]:
    return [row for row in read_rows(MMNIAHRows(), sources) if isinstance(row, HaystackQuestion)]


def units_of(row: HaystackQuestion, sources: mt.Sources) -> list[mt.Unit]:
    names = [*(needle.image for needle in row.needles if needle.image), *row.shown, *row.choices]
    return list(haystack(row, sources, mt.Draws(("t",)), "sentences", [sources.images[name] for name in names]))


def with_page(sources: dict[str, Path], *parts: str) -> dict[str, Path]:
    """The sources with a web page more; parts that end in .png are pictures."""
    images = [f"https://pages.invalid/{part}" if part.endswith(".png") else None for part in parts]
    texts = [None if image else part for part, image in zip(parts, images, strict=True)]
    with sources["obelics"].open("a", encoding="utf-8") as file:
        file.write(json.dumps({"images": images, "texts": texts, "metadata": json.dumps([None] * len(parts))}) + "\n")
    return sources


@pytest.fixture
def drawn(tmp_path: Path) -> dict[str, dict[str, Path]]:
    return upstream(tmp_path, pictures=12, pages=2)


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
def test_no_picture_of_a_question_fills_a_haystack_under_any_name(
    name: str, drawn: dict[str, dict[str, Path]], tmp_path: Path
) -> None:
    row = rows_of(drawn[name])[0]
    own = next(needle.image for needle in row.needles)
    assert own is not None
    copies = {f"copy{number}.png": made for number, made in enumerate((*MADE[name], own))}
    for copy, made in copies.items():
        shutil.copy(tmp_path / IMAGES / made, tmp_path / IMAGES / "obelics" / copy)
    Image.new("RGB", (30, 30)).save(tmp_path / IMAGES / "obelics" / "plain.png")
    world = opened(with_page(drawn[name], "Words stand here.", *copies, "plain.png"))
    units = {unit.id: unit for unit in units_of(row, world)}
    page = [unit.excluded for id, unit in units.items() if id.startswith("obelics/obelics.jsonl-2#")]
    assert page == ["", *["image-of-a-question"] * len(MADE[name]), "needle-image", ""]


def test_pictures_of_folders_of_made_pictures_are_no_filler(drawn: dict[str, dict[str, Path]], tmp_path: Path) -> None:
    folder = tmp_path / "own"
    for number, name in enumerate(("my_paste/a.png", "abnormal_pic_val/b.png", "web/c.png")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (30 + number, 30)).save(folder / name)
    pictures = Pictures("mm-niah", lambda name: folder / name, 10**6)
    page = [mt.Image(name) for name in ("my_paste/a.png", "abnormal_pic_val/b.png", "web/c.png")]
    row = HaystackQuestion(id="q", question="?", needles=(HiddenNeedle(id="needle-0", text="It is."),))
    sources = mt.Sources(images=mt.advanced.Images(pictures), web_pages=mt.advanced.WebPages({"p": page}))
    units = list(haystack(row, sources, mt.Draws(("t",)), "sentences", ()))
    assert [unit.excluded for unit in units] == ["made-image", "made-image", ""]


def test_passages_that_give_an_answer_away_or_repeat_others_are_no_filler(web: dict[str, Path]) -> None:
    leaking = {"texts": ["They say Odo0 was there. It is so."], "images": [None]}
    gone = {"texts": [None], "images": ["https://pages.invalid/gone.png"]}
    write_lines(web["questions"], [text_row()])
    write_lines(web["obelics"], [page(0), leaking, page(0), gone])
    (row,) = rows_of(web)
    units = units_of(row, opened(web))
    assert {unit.excluded for unit in units} == {"", "holds-answer", "missing-image", "repeated"}
    clean = [unit.body for unit in units if isinstance(unit.body, str) and not unit.excluded]
    assert clean
    assert not [text for text in clean if "Odo" in text]


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


@pytest.mark.parametrize(
    ("kind", "source", "copy", "fault"),
    [
        ("retrieval-image", "obelics_paste/find-image/pasted3.png", "obelics/copy.png", "has the bytes of a picture"),
        ("retrieval-text", WEB, "obelics/paste/copy.png", "is in a folder of pictures that the benchmark made"),
    ],
    ids=["equal bytes", "a folder of made pictures"],
)
def test_a_build_that_would_release_such_filler_ends_with_its_name(
    kind: str, source: str, copy: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, images = upstream(tmp_path / "drawn", rows=4, pages=0)[kind], tmp_path / "drawn" / IMAGES
    (images / copy).parent.mkdir(exist_ok=True)
    shutil.copy(images / source, images / copy)
    text = sources.pop("questions").read_text("utf-8").replace("obelics/web0003.png", copy)
    (tmp_path / "q.jsonl").write_text(text, "utf-8")
    given = {"questions": tmp_path / "q.jsonl", "images": sources["images"]}
    dataset = dataset_of(kind, given, lengths=["4K"], admission_length="4K", placements=[0])
    assert built(tmp_path / "right", dataset).lock["cells"]["4K"]["left_out"]
    monkeypatch.setattr(builder, "_picture_fault", lambda *args: "")
    wrong = ran(tmp_path / "wrong", dataset)
    assert wrong.code != 0
    assert re.search(rf"mm-niah-\d: internal error: the picture mm-niah/{copy} .* it {fault}", wrong.err, re.DOTALL)


# --- your own pages ---------------------------------------------------------------------------------------------------


def own_pages(folder: Path, sample: Callable[[str], Sources], name: str, lines: list[Any], **more: Any) -> OneDataset:
    drawn = sample("own_pages")
    source = {"questions": write_lines(folder / "q.jsonl", lines), "documents": drawn["documents"]}
    return built(folder / "out", dataset_of(name, source, "own_pages", **{"lengths": ["8K"], **more}))


def test_own_counts_become_one_number_for_each_picture_of_the_context(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    asked = {"question": "How many signs are as <image> in each picture?", "shown": ["pictures/emblem02a.png"]}
    line = {**asked, "answer": [2, 1], "needles": ["pictures/emblem00a.png", "pictures/emblem01a.png"]}
    counts = {"mm-niah/pictures/emblem00a.png": 2, "mm-niah/pictures/emblem01a.png": 1}
    orders = set()
    for record in own_pages(tmp_path, sample, "counting-image", [line]).records():
        assert record["answer"] == [counts.get(path, 0) for path in record["image_list"]]
        assert record["answer_total"] == 3
        assert sorted(record["answer_needles"]) == [1, 2]
        assert len(record["image_list"]) > 2
        orders.add(tuple(record["answer"]))
    assert len(orders) == 3


def test_an_own_ordinal_is_written_anew_for_each_depth_or_kept_as_it_is(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    lines = json_lines_of(sample("own_pages")["questions"])[:2]
    first = [{**line, "question": "Which emblem is the first image, which is no view?"} for line in lines]
    (tmp_path / "a").mkdir()
    for record in own_pages(tmp_path / "a", sample, "retrieval-image", first).records():
        (needle,) = record["positive_ctxs"]
        place = 1 + record["image_list"].index(f"mm-niah/{needle['image']}")
        assert record["question"] == f"Which emblem is the {mt.advanced.ordinal_words(place)} image, which is no view?"
        assert (record["ordinal"], record["ordinal_source"]) == (place, 1)
    lines[0]["question"] = "Which emblem is like the first image or the third picture?"
    lines[1]["question"] = "Which emblem is like the second image?"
    more = {"placements": [0], "options": {"ordinal": "source"}}
    found = own_pages(tmp_path, sample, "retrieval-image", lines, **more).records()
    assert [record["question_source"] for record in found] == [line["question"] for line in lines]
    assert [record["ordinal"] for record in found] == [record["ordinal_source"] for record in found] == [[1, 3], 2]


# --- ordinals in releases and downloads -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OneDataset]:
    """The same four Jigsaw rows, the first stale, with their ordinals rewritten, left out, and as they were."""
    folder = tmp_path_factory.mktemp("ordinals")
    sources = upstream(folder / "drawn", rows=5, pictures=20, pages=3)["reasoning-image"]
    lines = json_lines_of(sources["questions"])
    (named,) = pictures_named(lines[0]["question"])
    lines[0]["question"] = renamed(lines[0]["question"], named, mt.advanced.ordinal_words(named.place + 1))
    write_lines(sources["questions"], lines)
    return {
        ordinal: built(folder / ordinal, dataset_of("reasoning-image", sources, options={"ordinal": ordinal}))
        for ordinal in ("rewrite", "neutral", "source")
    }


FILE = Path("mmlb_data/NIAH/reasoning-image_test_K2_dep6.jsonl")


def remarks(path: Path) -> dict[str, tuple[int, list[tuple[str, int]]]]:
    """(examples, (fault, count) of each fault) of each remark of an audit of one file, which fails for none of them."""
    (line,) = mm.audit(path)
    return {
        each.subject: (each.examples, [(fault.fault, fault.count) for fault in each.faults]) for each in line.remarks
    }


def foreign(release: Path, folder: Path) -> Path:
    """The public files alone, in the form in which others publish them: without what this engine adds."""
    shutil.copytree(release / "mmlb_image", folder / "mmlb_image")
    path = folder / FILE
    path.parent.mkdir(parents=True)
    added = ("length", "tokens", "depth_achieved", "needle_start", "question_source", "ordinal", "ordinal_source")
    lines = [
        {key: value for key, value in record.items() if key not in added} for record in json_lines_of(release / FILE)
    ]
    return write_lines(path, lines)


def needle_place(record: dict[str, Any]) -> int:
    """The place of the needle among the pictures of the context, from 1."""
    marks = [bool(ctx["has_ans"]) for ctx in record["ctxs"] if ctx["text"] == "<image>"]
    return 1 + marks.index(True)


def test_a_wrong_ordinal_of_the_source_is_counted_and_is_no_repair(releases: dict[str, OneDataset]) -> None:
    for release in releases.values():
        assert (release.questions["kept"], release.questions["repaired"]) == (4, {})
        assert release.questions["noted"] == {"ordinal of another picture in the source": 1}


def test_neutral_questions_have_the_same_words_at_every_depth(releases: dict[str, OneDataset]) -> None:
    found = releases["neutral"].records(2)
    for id in {record["id"] for record in found}:
        (question,) = {record["question"] for record in found if record["id"] == id}
        assert not pictures_named(question)
        assert re.search(r"the image (whose|with the|which has its) lower right corner", question)
    assert {record["ordinal"] for record in found} == {None}
    assert all(record["ordinal_source"] > 0 and pictures_named(record["question_source"]) for record in found)
    assert ORDINALS not in remarks(releases["neutral"].folder)


def test_source_questions_are_stale_and_the_audit_says_how_many(
    releases: dict[str, OneDataset], tmp_path: Path
) -> None:
    release = releases["source"]
    found = release.records(2)
    assert all(record["question"] == record["question_source"] for record in found)
    assert all(record["ordinal"] == record["ordinal_source"] for record in found)
    stale = sum(needle_place(record) != record["ordinal_source"] for record in found)
    assert 0 < stale <= len(found) == 24
    assert remarks(release.folder)[ORDINALS] == (24, [(STALE, stale)])
    audited = command("audit", release.folder, "--html", tmp_path / "page.html")
    assert audited.code == 0
    assert f"24, {stale} {STALE} (first line " in audited.out
    assert all(text in (tmp_path / "page.html").read_text("utf-8") for text in (ORDINALS, STALE))
    path = foreign(release.folder, tmp_path / "download")
    assert remarks(path)[ORDINALS] == (24, [(STALE, stale)])
    right = foreign(releases["rewrite"].folder, tmp_path / "right")
    assert remarks(right)[ORDINALS] == (24, [])
    assert "24, all right" in command("audit", right).out


def test_needles_of_a_download_are_told_by_their_paths_where_no_unit_is_marked(
    releases: dict[str, OneDataset], tmp_path: Path
) -> None:
    path = foreign(releases["source"].folder, tmp_path)
    with_marks, lines = remarks(path), json_lines_of(path)
    for line in lines:
        for ctx in line["ctxs"]:
            del ctx["has_ans"]
    write_lines(path, lines)
    assert remarks(path) == with_marks
    write_lines(path, [{**line, "positive_ctxs": []} for line in lines])
    assert remarks(path) == {subject: (24, [(UNKNOWN, 24)]) for subject in (ORDINALS, FILLERS)}


@pytest.mark.parametrize(
    ("filler", "fault"),
    [
        ("mm-niah/obelics_paste/find-image/x.png", "filled with a picture that was made for a question"),
        ("mm-niah/abnormal_pic_val/x.png", "filled with a picture that was made for a question"),
        ("", "filled with a picture that is shown beside the question"),
    ],
    ids=["pasted", "cartoon", "an option"],
)
def test_the_audit_of_any_file_says_where_a_picture_of_a_question_is_filler(
    filler: str, fault: str, releases: dict[str, OneDataset], tmp_path: Path
) -> None:
    path = foreign(releases["rewrite"].folder, tmp_path)
    lines = json_lines_of(path)
    at = 0 if needle_place(lines[0]) > 1 else 1
    if filler:
        (tmp_path / "mmlb_image" / filler).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / "mmlb_image" / lines[0]["image_list"][at], tmp_path / "mmlb_image" / filler)
    lines[0]["image_list"][at] = filler or lines[0]["choices_image"][0]
    write_lines(path, lines)
    assert remarks(path)[FILLERS] == (24, [(fault, 1)])


def test_filler_and_stale_ordinals_in_a_release_that_promised_none_are_problems(
    releases: dict[str, OneDataset], tmp_path: Path
) -> None:
    shutil.copytree(releases["rewrite"].folder, tmp_path / "release")
    found = json_lines_of(tmp_path / "release" / FILE)
    found[0]["image_list"][0 if needle_place(found[0]) > 1 else 1] = found[0]["choices_image"][0]
    words = [mt.advanced.ordinal_words(record["ordinal"]) for record in found]
    found[1]["question"] = found[1]["question"].replace(words[1], words[4])
    write_lines(tmp_path / "release" / FILE, found)
    audited = command("audit", tmp_path / "release", "-q")
    assert audited.code == 1
    assert f"{FILLERS}: filled with a picture that is shown beside the question: 1×, first line 1" in audited.err
    assert f"{ORDINALS}: {STALE}: 1×, first line 2, {found[1]['id']}" in audited.err

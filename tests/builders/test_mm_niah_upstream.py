"""The six datasets of MM-NIAH from files in the form of the download, looked at apart from the builder.

The expected values come from the released lines and pictures only: the pixels of a drawn picture encode its content.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from built import run_stages
from PIL import Image
from tiny import command

import mmlongbench.task as mt
from builders.mm_niah import MMNIAHRows
from builders.samples.mm_niah.upstream import FILES, SIDE, SLOTS, SQUARE, STAR, draw_upstream
from mmlongbench.building.build import Demands, build
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.finish import finish
from mmlongbench.building.session import Session
from mmlongbench.building.stages.records import finished_record, pack_row
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.errors import StrictStop
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import Manifest
from mmlongbench.task.rows import Row

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)
ROWS = 6
LENGTHS = ("2K", "3K")
Colour = tuple[int, int, int]


def dataset_of(name: str, sources: dict[str, Path], **changes: Any) -> dict[str, Any]:
    task, needle = name.split("-")
    options = {"task": task, "needle": needle, **changes.pop("options", {})}
    source = {key: str(path) for key, path in sources.items()}
    common = {"name": name, "builder": "mm_niah", "reader": "mm_niah", "source": source, "lengths": LENGTHS}
    return {**common, "admission_length": "2K", "options": options, **changes}


def built(out: Path, *datasets: dict[str, Any], is_strict: bool = False) -> dict[str, Any]:
    manifest = Manifest.model_validate({"datasets": datasets})
    found: dict[str, Any] = build(manifest, out, LocalExecutor(1, QUIET), Demands(is_strict)).lock.public()["datasets"]
    return found


@dataclass(frozen=True)
class Made:
    """A release of the six files, the working folder it was made in, and its raw rows."""

    release: Path
    raw: dict[str, dict[str, dict[str, Any]]]
    lock: dict[str, Any]
    session: Session

    def records(self, name: str) -> Iterator[dict[str, Any]]:
        files = sorted((self.release / "mmlb_data" / "NIAH").glob(f"{name}_*.jsonl"))
        assert len(files) == len(LENGTHS)
        for file in files:
            yield from map(json.loads, file.read_text("utf-8").splitlines())

    def dataset(self, name: str) -> Dataset:
        return self.session.dataset(name)

    def rows(self, name: str) -> tuple[Row, ...]:
        return self.session.questions(name)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("upstream")
    sources = draw_upstream(folder / "source", rows=ROWS, pictures=30, pages=6)
    manifest = Manifest.model_validate({"datasets": [dataset_of(name, sources[name]) for name in FILES]})
    session = run_stages(manifest, folder / "release")
    lock = finish(list(session.plans.values()), session, LocalExecutor(1, QUIET)).public()
    lines = {name: sources[name]["questions"].read_text("utf-8").splitlines() for name in FILES}
    raw = {name: {f"mm-niah-{row['id']}": row for row in map(json.loads, lines[name])} for name in FILES}
    with session:
        yield Made(folder / "release", raw, lock["datasets"], session)


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
    assert f"the {mt.ordinal_words(place + 1)} image" in record["question"]
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
def test_all_rows_are_read_and_only_multi_view_rows_are_left_out(made: Made, name: str) -> None:
    counts = made.lock[name]["questions"]
    skipped = {"multi-view": ROWS // 3} if name == "reasoning-image" else {}
    assert (counts["read"], counts["rejected"], counts.get("skipped", {})) == (ROWS, {}, skipped)
    assert counts["kept"] == ROWS - sum(skipped.values())


@every
def test_question_place_and_answer_are_right_at_every_placement(made: Made, name: str) -> None:
    records = list(made.records(name))
    placements = 6 if name in ("retrieval-text", "retrieval-image", "reasoning-image") else 3
    assert len(records) == made.lock[name]["questions"]["kept"] * placements * len(LENGTHS)
    for record in records:
        CHECKS[name](made.release, record)


@every
def test_no_filler_shows_or_says_what_any_question_asks(made: Made, name: str) -> None:
    listed = [needle for row in made.raw[name].values() for needle in row["meta"]["needles"]]
    needles = {needle for needle in listed if isinstance(needle, str)}
    for record in made.records(name):
        for ctx in (ctx for ctx in record["ctxs"] if not (ctx.get("has_ans") or ctx.get("has_answer"))):
            assert "</s>" not in ctx["text"]
            assert not [needle for needle in needles if needle in ctx["text"]]
            assert STAR not in ctx["text"]
        own = {f"mm-niah/{positive.get('image')}" for positive in record["positive_ctxs"]}
        for path in (path for path in record["image_list"] if path not in own):
            assert not cartoons(made.release, path)
            assert not has_corner(made.release, path)
            assert path.startswith("mm-niah/obelics/")


def test_the_sources_question_and_both_ordinals_are_kept(made: Made) -> None:
    places = set()
    for record in made.records("reasoning-image"):
        row = made.raw["reasoning-image"][record["id"]]
        assert record["question_source"] == row["question"]
        corner = [path.split("/")[-1] for path in row["images_list"]].index(Path(row["meta"]["needles"][0]).name)
        assert record["ordinal_source"] == corner + 1
        assert record["question"].replace(mt.ordinal_words(record["ordinal"]), "n-th") == row["question"].replace(
            mt.ordinal_words(corner + 1), "n-th"
        )
        places.add(record["ordinal"])
    assert len(places) > 6


@every
def test_every_example_is_within_its_budget_and_counts_to_the_token(made: Made, name: str) -> None:
    dataset = made.dataset(name)
    for row in made.rows(name):
        for example in pack_row(dataset, row, 2 * K):
            assert example.count.total + example.reserve <= 2 * K
            assert dataset.pricer.whole(example.prompt) == example.count
            record = json.loads(json.dumps(finished_record(dataset, example)))
            assert dataset.builder.prompt(record) == example.prompt


@every
def test_shorter_contexts_are_contained_in_longer_ones(made: Made, name: str) -> None:
    dataset = made.dataset(name)
    for row in made.rows(name):
        contexts = [pack_row(dataset, row, length * K)[0] for length in (2, 3, 5)]
        for shorter, longer in pairwise(contexts):
            missing = {unit.id for unit in shorter.units} - {unit.id for unit in longer.units}
            assert len(missing) <= mt.Closing().last


@every
def test_a_draft_is_pure(made: Made, name: str) -> None:
    dataset = made.dataset(name)
    for row in made.rows(name):
        first, again = (dataset.builder.draft(row, dataset.sources, dataset.draws(row.id)) for _ in range(2))
        assert first.questions == again.questions
        assert first.required == again.required
        assert list(first.take_order.units(K)) == list(again.take_order.units(K))


def test_the_audit_finds_every_ordinal_right(made: Made) -> None:
    audited = command("audit", made.release, "--json")
    assert audited.code == 0, audited.err
    files = {found["file"]: found for found in map(json.loads, audited.out.splitlines())}
    fillers = {"subject": "contexts with other pictures than needles", "faults": []}
    for found in files.values():
        assert {**fillers, "examples": found["examples"]} in found["remarks"]
    ordinals = {
        file: [each for each in found["remarks"] if each["subject"] == "questions with an ordinal"]
        for file, found in files.items()
    }
    named = {file: remarks for file, remarks in ordinals.items() if remarks}
    assert {file.split("_")[0] for file in named} == {"NIAH/reasoning-image"}
    for file, remarks in named.items():
        examples = files[file]["examples"]
        assert remarks == [{"subject": "questions with an ordinal", "examples": examples, "faults": []}]


@pytest.mark.parametrize("pictures", [1, 60, 500])
def test_any_number_of_pictures(pictures: int, tmp_path: Path) -> None:
    names = [name for name in FILES if name.endswith("image")]
    sources = draw_upstream(tmp_path / "source", rows=1, pictures=pictures - 1, pages=1)
    length = {1: "2K", 60: "8K", 500: "64K"}[pictures]
    cells = {"lengths": [length], "admission_length": "1K"}
    built(tmp_path / "release", *(dataset_of(name, sources[name], **cells) for name in names))
    for name in names:
        (file,) = (tmp_path / "release" / "mmlb_data" / "NIAH").glob(f"{name}_*.jsonl")
        for record in map(json.loads, file.read_text("utf-8").splitlines()):
            assert len(record["image_list"]) == pictures
            CHECKS[name](tmp_path / "release", record)


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
    draw_upstream(tmp_path, rows=1, pictures=2, images=images, pages=1)
    (tmp_path / "outside.png").write_bytes(b"x")
    (tmp_path / images / "obelics" / "link.png").symlink_to("/etc/hosts")
    reader, sources = MMNIAHRows(), {"images": tmp_path / named}
    for name in ("obelics/web0000.png", "abnormal_pic_val/kite.png", "obelics_paste/find-image/pasted0.png"):
        assert reader.image(sources, name) == tmp_path / named / (tmp_path / images / name).relative_to(
            tmp_path / named
        )
    for name in ("../../outside.png", "obelics/link.png", "/etc/hosts", "obelics/gone.png"):
        assert reader.image(sources, name) is None


def test_a_folder_of_pictures_that_leads_out_of_the_source_is_not_followed(tmp_path: Path) -> None:
    draw_upstream(tmp_path / "elsewhere", rows=1, pictures=2, pages=1)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "images").symlink_to(tmp_path / "elsewhere" / "mm_niah_dev" / "images")
    assert MMNIAHRows().image({"images": tmp_path / "source"}, "obelics/web0000.png") is None
    named = tmp_path / "source" / "images"
    assert MMNIAHRows().image({"images": named}, "obelics/web0000.png") == named / "obelics" / "web0000.png"


def test_pictures_that_are_unpacked_later_are_found(tmp_path: Path) -> None:
    sources = {"images": tmp_path, "questions": tmp_path / "mm_niah_val" / "annotations" / "retrieval-image.jsonl"}
    early = MMNIAHRows()
    assert early.image(sources, "obelics/web0000.png") is None
    draw_upstream(tmp_path, rows=1, pictures=1, pages=1)
    found = tmp_path / "mm_niah_dev" / "images" / "obelics" / "web0000.png"
    assert MMNIAHRows().image(sources, "obelics/web0000.png") == found
    assert len(list(read_rows(early, sources))) == 1
    assert early.image(sources, "obelics/web0000.png") == found


def test_a_link_to_the_folder_of_pictures_is_no_second_folder(tmp_path: Path) -> None:
    draw_upstream(tmp_path, rows=1, pictures=1, pages=1)
    shutil.move(tmp_path / "mm_niah_val" / "annotations", tmp_path / "annotations")
    (tmp_path / "mm_niah_val").rmdir()
    (tmp_path / "mm_niah_val").symlink_to("mm_niah_dev")
    sources = {"images": tmp_path, "questions": tmp_path / "annotations" / "retrieval-image.jsonl"}
    assert len(list(read_rows(MMNIAHRows(), sources))) == 1
    found = tmp_path / "mm_niah_dev" / "images" / "obelics" / "web0000.png"
    assert MMNIAHRows().image(sources, "obelics/web0000.png") == found


def test_two_folders_of_pictures_are_not_guessed_between(tmp_path: Path) -> None:
    for split in ("mm_niah_val", "mm_niah_test"):
        draw_upstream(tmp_path, rows=1, pictures=1, images=f"{split}/images", pages=1)
    sources = {"images": tmp_path, "questions": tmp_path / "mm_niah_val" / "annotations" / "retrieval-image.jsonl"}
    with pytest.raises(
        mt.SourceError, match=r"several-picture-folders: .* mm_niah_test/images and mm_niah_val/images;"
    ):
        list(read_rows(MMNIAHRows(), sources))


def test_a_strict_build_goes_past_rows_that_the_benchmark_leaves_out(tmp_path: Path) -> None:
    sources = draw_upstream(tmp_path / "source", rows=3, pictures=3, pages=1)["reasoning-image"]
    cells = {"lengths": ["2K"], "placements": [0]}
    lock = built(tmp_path / "a", dataset_of("reasoning-image", sources, **cells), is_strict=True)
    assert lock["reasoning-image"]["questions"]["skipped"] == {"multi-view": 1}
    (skipped,) = map(json.loads, (tmp_path / "a" / "rejects.jsonl").read_text("utf-8").splitlines())
    assert (skipped["reason"], skipped["is_expected"]) == ("multi-view", True)
    assert "the benchmark leaves Multi-view rows out" in skipped["todo"]
    with sources["questions"].open("a", encoding="utf-8") as file:
        file.write('{"id": 9}\n')
    with pytest.raises(StrictStop, match="missing-or-mistyped-field"):
        built(tmp_path / "b", dataset_of("reasoning-image", sources, **cells), is_strict=True)


def test_commands_say_what_was_skipped_apart_from_what_was_rejected(tmp_path: Path) -> None:
    sources = draw_upstream(tmp_path / "source", rows=3, pictures=3, pages=1)["reasoning-image"]
    lines = sources["questions"].read_text("utf-8").splitlines(keepends=True)
    dataset = dataset_of("reasoning-image", sources, lengths=["2K"], placements=[0])
    (tmp_path / "m.yaml").write_text(json.dumps({"datasets": [dataset]}), "utf-8")
    said = command("build", tmp_path / "m.yaml", "--out", tmp_path / "out", "--workers", "1")
    assert said.code == 0, said.err
    assert "skipped 1: multi-view (nothing is wrong: the benchmark leaves these rows out)" in said.out
    assert "rejected 1" not in said.out
    planned = command("plan", tmp_path / "m.yaml")
    assert "reasoning-image: 2 questions; skipped: 1 × multi-view" in planned.out
    sources["questions"].write_text(f"{lines[2]}{{}}\n", "utf-8")
    none = command("build", tmp_path / "m.yaml", "--out", tmp_path / "none", "--workers", "1")
    assert none.code == 1
    assert "no question was kept: 2 read, 1 rejected, 1 skipped, see " in none.err

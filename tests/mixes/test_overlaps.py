"""What a mix shares with an evaluation release: planted overlaps of every kind are found, each alone, and nothing else.

The evaluation release is a copy of the release with other pictures, names, questions and texts. A plant takes one of
them from the release.
"""

import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from once import linked, once
from PIL import Image, ImageDraw
from samples import Sources, from_samples
from tiny import command

import mmlongbench as mm
from mmlongbench.draws import Draws
from mmlongbench.io.atomic import sha256_of
from mmlongbench.mixes.overlaps import Comparison, Evaluation, Overlap
from mmlongbench.release.items import items_in_order
from mmlongbench.release.measuring import placement_of
from mmlongbench.release.opened import open_release

PAGES, TEXTS = "mmlb_data/documentQA/mmlongdoc_K8.jsonl", "mmlb_data/documentQA/text_mmlongdoc_K8.jsonl"
LONG = "In the annual report of the harbours board, how many of the two hundred crews were sent to sea in winter?"
Record = dict[str, Any]
Plant = Callable[[Record, Record], object]


@pytest.fixture(scope="session")
def built(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six questions about documents, with pages as images and as texts, at 8K. The first one is long."""

    def make(folder: Path) -> None:
        common = {"builder": "docvqa", "reader": "mmlongbench_doc", "lengths": ["8K"], "licence": "CC0-1.0"}
        texts = {"pages_as": "text", "text_fill": "budget", "max_answer_words": 5}
        datasets = [
            {"name": "mmlongdoc", **common, "options": {"max_answer_words": 5}},
            {"name": "text_mmlongdoc", **common, "drawn_as": "mmlongdoc", "options": texts},
        ]
        manifest, out = from_samples({"datasets": datasets}, sample), folder / "release"
        (folder / "m.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False), "utf-8")
        assert command("build", folder / "m.yaml", "--out", out, "--limit", 6, "-q").code == 0
        first = records(out, PAGES)[0]["id"]
        changed(out, PAGES, lambda record: record["id"] == first and record.update(question=LONG))

    return once(tmp_path_factory, "overlapping", make) / "release"


def records(release: Path, file: str) -> list[Record]:
    return [json.loads(line) for line in (release / file).read_text("utf-8").splitlines()]


def changed(release: Path, file: str, change: Callable[[Record], object]) -> None:
    """Change the records of a file."""
    found = records(release, file)
    for record in found:
        change(record)
    (release / file).write_text("".join(f"{json.dumps(each)}\n" for each in found), "utf-8")


@pytest.fixture(scope="session")
def stranger(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the same form that shares nothing with the built one."""
    return (
        once(tmp_path_factory, "strangers", lambda folder: draw_stranger(built, folder / "evaluation")) / "evaluation"
    )


def draw_stranger(built: Path, out: Path) -> None:
    shutil.copytree(built, out)
    shutil.rmtree(out / "mmlb_image")
    lock = json.loads((out / "build.lock.json").read_text("utf-8"))
    for name in [name for name in lock["files"] if name.startswith("mmlb_image/")]:
        del lock["files"][name]
        picture = out / renamed(name)
        picture.parent.mkdir(parents=True, exist_ok=True)
        drawn_page(name).save(picture, "JPEG")
        lock["files"][renamed(name)] = entry_of(picture)
    (out / "build.lock.json").write_text(json.dumps(lock), "utf-8")
    changed(out, PAGES, estranged)
    changed(out, TEXTS, estranged)


def drawn_page(name: str) -> Image.Image:
    """A page of drawn boxes, unlike any other."""
    page, draws = Image.new("RGB", (300, 400), "white"), Draws((name,))
    drawing = ImageDraw.Draw(page)
    for box in range(25):
        x, y = draws.integer(f"x {box}", 0, 260), draws.integer(f"y {box}", 0, 360)
        colour = tuple(draws.integer(f"{part} {box}", 0, 255) for part in "rgb")
        drawing.rectangle((x, y, x + draws.integer(f"w {box}", 10, 120), y + 30), fill=colour)
    return page


def entry_of(path: Path) -> Mapping[str, object]:
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}


def renamed(path: str) -> str:
    """The path of a page of a document with another name: `other-a/other-a_page1.jpg` for `a/a_page1.jpg`."""
    folder, name, page = path.rsplit("/", 2)
    return f"{folder}/other-{name}/other-{page}"


def estranged(record: Record) -> None:
    number = record["id"].rpartition("_")[2]
    record["doc_name"] = f"other-{record['doc_name']}"
    record["question"], record["answer"] = f"Which of the lamps is number {number}?", f"lamp {number}"
    record["page_list"] = [renamed(path) for path in record["page_list"]]
    texts = record.get("page_text_list") or []
    record |= {"page_text_list": [" ".join(f"w{ord(letter)}" for letter in text) for text in texts]} if texts else {}


class Found(NamedTuple):
    """What a release shares with an evaluation release."""

    overlaps: list[Overlap]
    kinds: set[str]
    ids: set[tuple[str, str]]


def compared(release: Path, evaluation: Path) -> Found:
    opened = open_release(release)
    comparison = Comparison(opened, [Evaluation(open_release(evaluation))])
    found = [
        overlap
        for dataset in opened.datasets
        for example in opened.examples(dataset, "8K")
        for overlap in comparison.overlaps(example, placement_of(example.record))
    ]
    return Found(found, {each.kind for each in found}, {(each.dataset, each.id) for each in found})


@pytest.fixture
def evaluation(stranger: Path, tmp_path: Path) -> Path:
    """A copy of the stranger, to plant in."""
    return linked(stranger, tmp_path / "evaluation")


def plant(built: Path, evaluation: Path, file: str, change: Plant) -> Record:
    """Change the first record of the evaluation release by that of the release, which is returned."""
    first = records(built, file)[0]
    changed(evaluation, file, lambda record: record["id"] == first["id"] and change(record, first))
    return first


def test_releases_that_share_nothing_are_disjoint(built: Path, stranger: Path) -> None:
    assert compared(built, stranger).overlaps == []


def test_every_example_of_the_same_release_is_shared(built: Path) -> None:
    found = compared(built, built)
    assert found.kinds == {"document", "question", "passage"}
    assert len(found.ids) == len(records(built, PAGES)) + len(records(built, TEXTS))


@pytest.mark.parametrize("name", [str, str.upper, lambda name: f"{name}.pdf", lambda name: name.replace("-", "_")])
def test_a_document_of_the_same_name_is_found(name: Callable[[str], str], built: Path, evaluation: Path) -> None:
    first = plant(built, evaluation, PAGES, lambda record, own: record.update(doc_name=name(own["doc_name"])))
    found = compared(built, evaluation)
    assert found.kinds == {"document"}
    about = {each["id"] for each in records(built, PAGES) if each["doc_name"] == first["doc_name"]}
    assert {id for dataset, id in found.ids if dataset == "mmlongdoc"} == about
    assert "has the name of" in found.overlaps[0].what


def filling(release: Path) -> tuple[str, str]:
    """A document that only fills the context of a question with pages as texts, and the id of the question."""
    about = {each["id"]: each["doc_name"] for each in records(release, TEXTS)}
    items = items_in_order(release, TEXTS.removeprefix("mmlb_data/"), 8192)
    shown = [(each["unit"].split("/")[-2], id) for id, _, found in items for each in found]
    return next((name, id) for name, id in shown if name not in about[id])


def test_a_document_that_only_fills_a_context_is_found_by_its_name(built: Path, evaluation: Path) -> None:
    """The evaluation shows it as images, and the mix as texts, so neither a picture nor a passage is shared."""
    name, id = filling(built)
    plant(built, evaluation, PAGES, lambda record, own: record.update(doc_name=name))
    found = compared(built, evaluation)
    assert found.kinds == {"document"}
    assert ("text_mmlongdoc", id) in found.ids


def test_a_document_that_only_fills_a_context_of_the_evaluation_is_found(built: Path, evaluation: Path) -> None:
    name, id = filling(built)
    about = {each["id"]: each["doc_name"] for each in records(built, TEXTS)}
    changed(evaluation, TEXTS, lambda record: record["id"] == id and record.update(doc_name=about[id]))
    assert f"has the name of {name!r}" in Evaluation(open_release(evaluation)).document(f"{name}.pdf")


def put_page(built: Path, evaluation: Path, encode: Callable[[Image.Image], bytes], place: int = 0) -> str:
    """Put a page of the first question into the evaluation release, in the place of a picture; return its path."""
    own, other = records(built, PAGES)[0]["page_list"][0], records(evaluation, PAGES)[0]["page_list"][place]
    with Image.open(built / "mmlb_image" / own) as page:
        (evaluation / "mmlb_image" / other).unlink()
        (evaluation / "mmlb_image" / other).write_bytes(encode(page))
    lock = json.loads((evaluation / "build.lock.json").read_text("utf-8"))
    lock["files"][f"mmlb_image/{other}"] = entry_of(evaluation / "mmlb_image" / other)
    (evaluation / "build.lock.json").write_text(json.dumps(lock), "utf-8")
    return str(own)


def saved(page: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    page.save(buffer, form, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "encode",
    [
        lambda page: saved(page, "PNG"),
        lambda page: saved(page, "JPEG", quality=60),
        lambda page: saved(page.resize((page.width // 2, page.height // 2)), "JPEG", quality=85),
    ],
    ids=["same pixels", "encoded again", "half the size"],
)
def test_a_page_of_the_same_document_under_another_name_is_found(
    encode: Callable[[Image.Image], bytes], built: Path, evaluation: Path
) -> None:
    own = put_page(built, evaluation, encode)
    found = compared(built, evaluation)
    assert found.kinds == {"document"}
    assert found.ids == {("mmlongdoc", each["id"]) for each in records(built, PAGES) if own in each["page_list"]}
    assert f"{own} is like mmlongbench-doc/other-" in found.overlaps[0].what


def test_a_picture_that_no_prompt_shows_is_found_too(built: Path, evaluation: Path) -> None:
    """A page that only the lock names, such as a page of the evidence that did not fit."""
    own = records(built, PAGES)[0]["page_list"][0]
    hidden = evaluation / "mmlb_image/hidden.jpg"
    shutil.copy(built / "mmlb_image" / own, hidden)
    lock = json.loads((evaluation / "build.lock.json").read_text("utf-8"))
    lock["files"]["mmlb_image/hidden.jpg"] = entry_of(hidden)
    (evaluation / "build.lock.json").write_text(json.dumps(lock), "utf-8")
    found = compared(built, evaluation)
    assert found.kinds == {"picture"}
    assert found.overlaps[0].what == f"{own} is like hidden.jpg"


def test_an_empty_page_is_not_compared(built: Path, evaluation: Path) -> None:
    put_page(built, evaluation, lambda page: saved(Image.new("RGB", page.size, "white"), "PNG"))
    evaluated = Evaluation(open_release(evaluation))
    assert evaluated.compared.blank_pictures == 1
    assert compared(built, evaluation).overlaps == []


@pytest.mark.parametrize(
    "worded",
    [
        LONG,
        LONG.upper().replace("?", " !"),
        LONG.replace(",", ";").replace(" of the two", " – of the two"),
        f"As we asked last year: {LONG.replace('in winter', 'in the dark season, by the count of its clerk')}",
    ],
    ids=["same words", "case", "punctuation", "13 words in a row"],
)
def test_a_question_in_nearly_the_same_words_is_found(worded: str, built: Path, evaluation: Path) -> None:
    first = plant(built, evaluation, PAGES, lambda record, own: record.update(question=worded, answer=own["answer"]))
    found = compared(built, evaluation)
    assert (found.kinds, found.ids) == ({"question"}, {("mmlongdoc", first["id"])})


def test_the_same_words_about_another_thing_with_another_answer_are_no_overlap(built: Path, evaluation: Path) -> None:
    plant(built, evaluation, PAGES, lambda record, own: record.update(question=own["question"]))
    assert compared(built, evaluation).overlaps == []


def test_a_passage_is_found_in_any_case_and_layout(built: Path, evaluation: Path) -> None:
    def put(record: Record, own: Record) -> None:
        record["page_text_list"][1] = own["page_text_list"][0].upper().replace("\n", "  ")

    first = plant(built, evaluation, TEXTS, put)
    found = compared(built, evaluation)
    assert found.kinds == {"passage"}
    text = first["page_text_list"][0]
    with_it = {each["id"] for each in records(built, TEXTS) if text in each["page_text_list"]}
    assert found.ids == {("text_mmlongdoc", id) for id in with_it}


# The commands


@pytest.fixture
def mix(tmp_path: Path) -> Path:
    path = tmp_path / "mix.yaml"
    path.write_text("mix: {tokens: 38600, examples_by_task: {documentQA: 1}, disjoint_from: [evaluation]}", "utf-8")
    return path


def test_an_overlap_stops_the_export_and_is_named(built: Path, evaluation: Path, mix: Path, tmp_path: Path) -> None:
    for file in (PAGES, TEXTS):
        changed(evaluation, file, lambda record: record.update(doc_name=records(built, PAGES)[0]["doc_name"]))
    done = command("export", built, "--to", "training", "--mix", mix, "--out", tmp_path / "out")
    assert done.code == 2
    assert "share something with an evaluation release (document " in done.err
    assert "has the name of" in done.err
    assert "--drop-overlap leaves such examples out" in done.err
    assert not (tmp_path / "out").exists()


def test_overlaps_are_left_out_and_listed_on_request(built: Path, evaluation: Path, mix: Path, tmp_path: Path) -> None:
    own = put_page(built, evaluation, lambda page: saved(page, "JPEG", quality=60))
    mixed = mm.export_mix(built, mix, "training", tmp_path / "out", drop_overlap=True)
    lines = (tmp_path / "out/overlaps.jsonl").read_text("utf-8").splitlines()
    listed = [Overlap.model_validate_json(line) for line in lines]
    assert {each.id for each in listed} == {each["id"] for each in records(built, PAGES) if own in each["page_list"]}
    proof = mixed.receipt.disjoint
    assert proof is not None
    assert (proof.examples_left_out, proof.left_out_by_kind) == (len(listed), {"document": len(listed)})
    taken = [json.loads(line) for line in (tmp_path / "out/examples.jsonl").read_text("utf-8").splitlines()]
    assert not {("mmlongdoc", each.id) for each in listed} & {(each["dataset"], each["id"]) for each in taken}


def test_a_proof_says_what_was_compared(built: Path, evaluation: Path, mix: Path, tmp_path: Path) -> None:
    proof = mm.export_mix(built, mix, "training", tmp_path / "out").receipt.disjoint
    assert proof is not None
    (other,) = proof.evaluations
    assert (other.release, other.lock) == ("evaluation", open_release(evaluation).lock_id)
    pictures = len([*(evaluation / "mmlb_image").rglob("*.jpg")])
    assert (other.shows.questions, other.shows.pictures) == (12, pictures)
    assert proof.shows.questions == 5
    assert proof.examples_left_out == 0
    assert not (tmp_path / "out/overlaps.jsonl").exists()

"""What units may be: needles of several parts, labels, pictures that stand still, needles in order."""

import json
import shutil
from bisect import insort
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tiny import Ran, command

import mmlongbench as mm
import mmlongbench.task as mt
from mmlongbench.release.changed_contexts import contextual
from mmlongbench.release.shown_example import ShownText, shown_example
from mmlongbench.shortcuts.reading import asked_question, asked_questions

TASKS = Path(__file__).parent / "units" / "units.py"
LENGTHS = ("1K", "2K")


def draw_pictures(folder: Path, count: int) -> None:
    """Draw pictures that differ from each other."""
    folder.mkdir(parents=True)
    for number in range(count):
        picture = Image.new("RGB", (56, 56), (200, 30 + number % 200, number // 200))
        picture.putpixel((number % 56, number // 56), (0, 0, 0))
        picture.save(folder / f"{number:03}.png")


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write a table."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a table."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write_manifest(folder: Path, task: str, source: dict[str, str], lengths: Sequence[str] = LENGTHS) -> Path:
    """Write a manifest of one dataset beside a copy of the tasks."""
    (folder / "units.py").write_text(TASKS.read_text("utf-8"), "utf-8")
    dataset = {"name": task.lower(), "builder": f"units.py:{task}", "source": source, "lengths": list(lengths)}
    path = folder / f"{task.lower()}.yaml"
    path.write_text(json.dumps({"datasets": [dataset]}), "utf-8")
    return path


def built(path: Path) -> Path:
    """Build a manifest."""
    ran = command("build", path, "--out", path.parent / "out", "--workers", 1, "-q")
    assert ran.code == 0, ran.err
    return path.parent / "out"


CARDS = {"cards": "cards.jsonl", "pictures": "pictures"}


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    """The sources of postcards."""
    draw_pictures(tmp_path / "pictures", 60)
    sides = [(f"{2 * number:03}.png", f"{2 * number + 1:03}.png") for number in range(30)]
    rows = [{"id": f"c{n}", "writer": f"Writer{n}x", "front": f, "back": b} for n, (f, b) in enumerate(sides)]
    write_rows(tmp_path / "cards.jsonl", rows)
    return tmp_path


@pytest.mark.parametrize("task", ["Postcards", "BarePostcards"])
def test_the_audit_looks_for_all_parts_of_a_needle(cards: Path, task: str) -> None:
    release = built(write_manifest(cards, task, CARDS))
    assert command("audit", release, "--task", cards / "units.py", "-q") == Ran(0, "", "")


def test_labels_of_units_are_shown_to_people_and_stand_in_no_prompt(cards: Path) -> None:
    release = built(write_manifest(cards, "Postcards", CARDS))
    task = ("--task", cards / "units.py")
    assert "card of Writer3x" in command("show", release, "c3", "--full", *task).out
    assert "card of" not in command("show", release, "c3", "--messages", *task).out
    assert command("show", release, "c3", "--html", cards / "page.html", *task).code == 0
    assert "<i>card of Writer3x</i>" in (cards / "page.html").read_text("utf-8")
    assert command("view", release, "--static", cards / "site", "--limit", 1, "-q", *task).code == 0
    files = [path for path in (cards / "site").rglob("*") if path.suffix in (".js", ".json", ".html")]
    assert any("card of Writer3x" in path.read_text("utf-8") for path in files)


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """Two films of 120 frames; a picture stands still for 20 frames."""
    for film in range(2):
        (tmp_path / "films" / f"f{film}").mkdir(parents=True)
        for frame in range(120):
            picture = Image.new("RGB", (56, 56), (40 * (frame // 20), 100, 90 * film))
            picture.save(tmp_path / "films" / f"f{film}" / f"{frame:03}.png")
    moments = [
        {"id": f"f{film}-{part}", "film": f"f{film}", "first": 20 * part, "last": 20 * part + 19, "seen": f"red {part}"}
        for film in range(2)
        for part in range(6)
    ]
    write_rows(tmp_path / "moments.jsonl", moments)
    return tmp_path


FILMS = {"moments": "moments.jsonl", "films": "films"}


def test_a_picture_may_stand_in_several_units_where_the_task_says_so(films: Path) -> None:
    release = built(write_manifest(films, "Films", FILMS))
    assert command("audit", release, "--task", films / "units.py", "-q") == Ran(0, "", "")
    for record in read_rows(release / "mmlb_data/tasks/films_K2.jsonl"):
        frames = [int(unit["shown"][0].strip("[] ")) for unit in record["units"]]
        assert frames == sorted(frames)
        assert len({unit["shown"][1]["image"] for unit in record["units"]}) < len(frames)
    ran = command("build", write_manifest(films, "Stills", FILMS), "--out", films / "stills", "--workers", 1, "-q")
    assert ran.code == 2
    for said in ("the units 'frame ", "show the same picture", "`repeats_pictures = True`"):
        assert said in ran.err


@given(count=st.integers(1, 700))
def test_every_prefix_of_a_spread_order_is_spread_over_the_sequence(count: int) -> None:
    units = [mt.Unit(f"{number}", "x") for number in range(count)]
    taken = list(mt.spread(units).units(0))
    assert sorted(int(unit.id) for unit in taken) == list(range(count))
    assert all(unit.place == (int(unit.id),) for unit in taken)
    places = [-1, count]
    for number, unit in enumerate(taken, 1):
        insort(places, int(unit.id))
        if number & (number + 1) in (0, number) or number == count:  # some prefixes, among them those of powers of 2
            assert max(later - earlier for earlier, later in pairwise(places)) <= 2 * (count + 1) / (number + 1)


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """Four recipes of three steps, and lines of other notes."""
    recipes = [
        {"id": f"r{n}", "recipe": f"Recipe {n}", "steps": [f"take {n}{n}", f"stir {n} times", f"serve with herb {n}x"]}
        for n in range(4)
    ]
    lines = [{"id": f"l{n}", "line": f"Note {n}: " + "the weather was fair, " * (1 + n % 7)} for n in range(300)]
    write_rows(tmp_path / "notes.jsonl", [*recipes, *lines])
    return tmp_path


def test_needles_in_order_are_audited_and_a_forged_order_is_found(steps: Path) -> None:
    release = built(write_manifest(steps, "Steps", {"rows": "notes.jsonl"}))
    audit = ("audit", release, "--task", steps / "units.py", "-q")
    assert command(*audit) == Ran(0, "", "")
    path = release / "mmlb_data/tasks/steps_K2_perm3.jsonl"
    known, shorter = read_rows(path), read_rows(path.with_name("steps_K1_perm3.jsonl"))
    assert [each["depth_requested"] for each in known] == [each["depth_requested"] for each in shorter]
    for name in ("needle_start", "depth_achieved", "depth_requested"):
        known[0][name].reverse()
    write_rows(path, known)
    assert "the needles stand in the order [3, 2, 1]" in command(*audit).err


@pytest.mark.parametrize("task", ["Entries", "Repeats", "Echoes"])
def test_units_that_look_like_a_needle_are_not_taken_for_it(tmp_path: Path, task: str) -> None:
    draw_pictures(tmp_path / "pictures", 1)
    write_rows(tmp_path / "entries.jsonl", [{"id": f"e{number}", "number": number} for number in range(2)])
    root = built(write_manifest(tmp_path, task, {"entries": "entries.jsonl", "pictures": "pictures"}))
    assert command("audit", root, "--task", tmp_path / "units.py", "-q") == Ran(0, "", "")
    release = mm.open_release(root, tasks=tmp_path / "units.py")
    for example, prompt in contextual(release, task.lower(), "oracle", release.examples(task.lower(), "2K")):
        assert prompt
        assert prompt.outline
        assert len(prompt.outline.units) == 3
        shown = shown_example(release, example)
        needles = [block.unit.id for block in shown.units if block.unit and block.marks == ("needle",)]
        assert needles == ["u1", "u2", "u3"]
    shutil.rmtree(root / "items")
    if task != "Entries":  # nothing tells them apart
        return
    for example in release.examples("entries", "2K"):
        blocks = [block for block in shown_example(release, example).blocks if block.marks]
        lines = [piece for block in blocks for piece in block.pieces if isinstance(piece, ShownText)]
        assert [piece.text.strip() for piece in lines] == ["Line 1", "Line 2", "Line 3"]
        assert [piece.needles for piece in lines] == [((0, len("Line 1")),)] * 3
        asked = asked_question(release.builder("entries"), example)
        assert [unit.text for unit in asked.units if unit.is_gold] == ["Line 1", "Line 2", "Line 3"]


def test_a_variant_of_the_prompt_is_shown_exported_and_collected_like_the_prompt(cards: Path) -> None:
    release = built(write_manifest(cards, "Reasoned", CARDS, ("1K",)))
    options = ("--variant", "reasoned", "--task", cards / "units.py")
    said = "Think step by step."
    shown = " ".join(command("show", release, "c3", "--full", *options).out.split())
    assert said in shown
    assert "card of" not in shown  # labels are about the units of the released form
    assert said in command("show", release, "c3", "--messages", *options).out
    assert command("audit", release, "-q", *options).code == 0
    assert command("view", release, "--static", cards / "site", "--limit", 1, "-q", *options).code == 0
    files = [path for path in (cards / "site").rglob("*") if path.suffix in (".js", ".json", ".html")]
    assert any(said in path.read_text("utf-8") for path in files)

    batch = cards / "batch"
    given = ("--to", "openai-batch", "--model", "m", "--images", "http://host/images", "--limit", 2)
    assert command("export", release, "--out", batch, *given, *options).code == 0
    lines = [line for path in sorted(batch.rglob("*.jsonl")) for line in read_rows(path)]
    requests = [line for line in lines if "body" in line]
    assert requests
    assert all(said in json.dumps(request) for request in requests)
    body = {"choices": [{"message": {"role": "assistant", "content": "Writer3x"}, "finish_reason": "stop"}]}
    results = [
        {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}} for request in requests
    ]
    write_rows(cards / "results.jsonl", results)
    collect = ("collect", release, cards / "results.jsonl", "--model", "m", "--out")
    # these are no answers to the released form
    assert command(*collect, cards / "plain.jsonl", *options[2:]).code == 2
    assert command(*collect, cards / "answers.jsonl", *options).code == 0
    answers = read_rows(cards / "answers.jsonl")
    assert {answer["context"] for answer in answers} == {"reasoned"}
    assert "stale" not in command("score", release, cards / "answers.jsonl", *options[2:]).err


def test_a_variant_that_no_task_offers_is_refused(cards: Path) -> None:
    release = built(write_manifest(cards, "Reasoned", CARDS, ("1K",)))
    ran = command("show", release, "--variant", "reasonde", "--task", cards / "units.py")
    assert (ran.code, "no builder of this release offers it; offered: reasoned" in ran.err) == (2, True)


@pytest.mark.parametrize("task", ["Catalogue", "Careless"])
def test_questions_share_a_context_in_one_file(tmp_path: Path, task: str) -> None:
    """The context is the same for all, and check finds one without the lines that are asked about."""
    books = [
        {"id": f"b{n}", "title": f"The book of {n} tales", "shelf": f"S{n}x", "answer": f"S{n}x"} for n in range(99)
    ]
    write_rows(tmp_path / "books.jsonl", books)
    manifest = write_manifest(tmp_path, task, {"rows": "books.jsonl"}, ("1K",))
    (dataset,) = json.loads(manifest.read_text("utf-8"))["datasets"]
    manifest.write_text(json.dumps({"datasets": [{**dataset, "sample": {"n": 8}}]}), "utf-8")
    ran = command("check", manifest, "--limit", 8, "--lengths", "1K", "-q")
    assert ("evidence is in the context: fails\n  in contexts(), row" in ran.out) is (task == "Careless"), ran.out
    release = built(manifest)
    assert command("audit", release, "--task", tmp_path / "units.py", "-q") == Ran(0, "", "")
    records = read_rows(release / f"mmlb_data/tasks/{task.lower()}_K1.jsonl")
    assert len(records) == 8
    assert len({json.dumps(record["units"]) for record in records}) == 1
    shown = [f"{record['title']}: shelf" in json.dumps(record["units"]) for record in records]
    assert all(shown) is (task == "Catalogue")

    if task == "Careless":
        return
    opened = mm.open_release(release, tasks=tmp_path / "units.py")
    for example, asked in zip(
        opened.examples("catalogue", "1K"), asked_questions(opened, "catalogue", 1024), strict=True
    ):
        marked = [block.unit.id for block in shown_example(opened, example).units if block.marks and block.unit]
        assert marked == [unit.id for unit in asked.units if unit.is_gold] == [example.id]
        assert asked.tenths == asked.tenths[:3]  # the answer looks for the id of a unit


def test_no_context_is_made_of_rows_that_are_all_rejected(tmp_path: Path) -> None:
    write_rows(tmp_path / "books.jsonl", [{"id": f"b{n}", "title": f"Tale {n}", "shelf": f"S{n}"} for n in range(9)])
    manifest = write_manifest(tmp_path, "NoneOf", {"rows": "books.jsonl"}, ("1K",))
    ran = command("build", manifest, "--out", tmp_path / "out", "-q")
    assert (ran.code, "no question was kept: 9 read, 9 rejected, most often 9 × not-shown" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("Reasoned", ()),
        ("Bare", ("variants fit their lengths holds: 'bare' is without its needles",)),
        ("Moody", ("in other surroundings, the prompt is another one",)),
        (
            "Wordy",
            (
                "fails\n  in render_variant('long')",
                "set `variant_reserve` to ",
                "fails\n  in render_variant('telling')",
                "stands in what the variant 'telling' adds",
            ),
        ),
    ],
)
def test_check_looks_at_variants_too(cards: Path, task: str, said: Sequence[str]) -> None:
    ran = command("check", write_manifest(cards, task, CARDS, ("1K",)), "--limit", 3)
    out = " ".join(ran.out.split())
    assert [text for text in said if " ".join(text.split()) not in out] == [], ran.out
    assert ran.code == (task in ("Moody", "Wordy"))


def test_paired_datasets_have_the_same_contexts(steps: Path) -> None:
    """With `drawn_as`, the second dataset draws what the first one draws."""
    path = write_manifest(steps, "Paired", {"rows": "notes.jsonl"}, ("1K",))
    (one,) = json.loads(path.read_text("utf-8"))["datasets"]
    two = {**one, "name": "pair", "drawn_as": one["name"], "options": {"says": "differ"}}
    for changed, said in (
        ({"seed": 7}, "`seed` must be the same"),
        ({"drawn_as": "piared"}, "has no questions of 'piared'"),
        ({}, "the same contexts holds"),
    ):
        path.write_text(json.dumps({"datasets": [one, {**two, **changed}]}), "utf-8")
        ran = command("check", path, "--limit", 2, "--lengths", "1K")
        assert said in " ".join(ran.out.split()), ran.out
        assert ("is drawn as 'piared'" in ran.err) is ("drawn_as" in changed)
    release = built(path)
    shown = [
        [
            [unit["shown"] for unit in record["units"]]
            for record in read_rows(release / f"mmlb_data/tasks/{name}_K1_perm1.jsonl")
        ]
        for name in ("paired", "pair")
    ]
    for ours, theirs in zip(*shown, strict=True):
        differing = [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other]
        assert len(differing) == 1
        assert "later" in differing[0][0][0]


@pytest.mark.parametrize("index", [-1, 3])
def test_a_page_that_is_not_there_rejects_its_row(index: int) -> None:
    units = [mt.Unit(str(number), "page") for number in range(3)]
    with pytest.raises(mt.Rejected, match=f"expected an index from 0 to 2, found {index}"):
        mt.inside_out(units, [index])


def test_a_question_with_options_is_scored_by_the_place_of_the_right_one(tmp_path: Path) -> None:
    towns = [
        f"{first}{last}" for first in ("Ash", "Birk", "Elm", "Oak", "Yew") for last in ("by", "ford", "ham", "ton")
    ]
    rows = [
        {
            "id": f"q{number}",
            "text": f"Person {number} moved to {towns[number % 20]} in a year of much rain. "
            + f"It was far, no {number}. " * 6,
            "question": f"Where did person {number} move?",
            "right": towns[number % 20],
            "wrong": [towns[(number + step) % 20] for step in (3, 7, 11)],
        }
        for number in range(40)
    ]
    write_rows(tmp_path / "quiz.jsonl", rows)
    manifest = write_manifest(tmp_path, "Quizzes", {"rows": "quiz.jsonl"})
    record = read_rows(built(manifest) / "mmlb_data/tasks/quizzes_K1_dep2.jsonl")[0]
    row = rows[int(str(record["id"])[1:])]
    assert record["options"][record["answer"]] == row["right"]
    assert f"{'ABCD'[record['answer']]}. {row['right']}" in record["question"]
    ran = command("check", manifest, "--limit", 3)
    assert ran.code == 0, ran.out
    assert any(f"answer: {town}\n" in ran.out for town in towns)

"""What units may be: needles of several parts, labels, pictures that stand still, needles in order."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tiny import Ran, command

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

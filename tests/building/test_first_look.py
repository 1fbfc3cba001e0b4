"""What `plan` and `build` say about answers and names at first sight."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tiny import command

import mmlongbench as mm
from mmlongbench.building.first_look import FirstLook, binomial_tail
from mmlongbench.draws import Draws
from mmlongbench.release.items import Item
from mmlongbench.task.choices import Choices

DRAWS = Draws(("tests of the first look",))


class Asking:
    """A builder whose records say all."""

    def choices(self, record: dict[str, Any]) -> Choices | None:
        return cast("Choices | None", record.get("choices"))

    def gold(self, record: dict[str, Any]) -> object:
        return record.get("answer", "")

    def cluster(self, record: dict[str, Any]) -> str:
        return str(record.get("subject", ""))


def look(*records: dict[str, Any], items: Any = ()) -> list[str]:
    found = FirstLook(cast("Any", SimpleNamespace(builder=Asking(), spec=SimpleNamespace(builder="b", name="walks"))))
    for number, record in enumerate(records):
        found.add({"id": f"q{number}", **record}, items[number] if items else ())
    return found.sentences()


def yes(number: int, right: int) -> dict[str, Any]:
    return {"choices": Choices(("Yes", "No"), int(number >= right))}


def four(number: int) -> dict[str, Any]:
    """A question whose offered texts are its own."""
    return {"choices": Choices(tuple(f"{number} {c}" for c in "abcd"), 1 if number % 2 else number // 2 % 4)}


def free(number: int, every: int) -> dict[str, Any]:
    return {"answer": "Not answerable" if number % every == 0 else [f"answer {number}"]}


SEE = ": see `mmlongbench shortcuts`"
LOOKS: list[tuple[list[dict[str, Any]], list[str]]] = [
    ([yes(n, 61) for n in range(80)], [f"'Yes' is the right answer of 61 of 80 questions{SEE}"]),
    ([yes(n, 45) for n in range(80)], []),
    ([yes(n, 9) for n in range(10)], []),
    ([four(n) for n in range(60)], [f"choice 2 is the right answer of 38 of 60 questions{SEE}"]),
    ([free(n, 4) for n in range(80)], [f"'Not answerable' is the right answer of 20 of 80 questions{SEE}"]),
    ([free(n, 16) for n in range(80)], []),  # a free answer may be right in one question of twenty
    ([{**yes(n, 61), "subject": f"s{n // 16}"} for n in range(80)], []),  # a subject counts once
    ([{**yes(n // 10, 6), "id": f"q{n // 10}"} for n in range(80)], []),  # placements never twice
]


@pytest.mark.parametrize(("records", "notes"), LOOKS)
def test_an_answer_or_a_place_that_is_right_too_often_is_named(records: list[dict[str, Any]], notes: list[str]) -> None:
    assert look(*records) == notes


def images(number: int, gold: str, ending: str = ".jpg") -> list[Item]:
    names = [f"walks/{DRAWS.integer(f'{number} {other}', 10_000, 99_999)}.jpg" for other in range(9)]
    paths = [(gold, "needle"), *((name, "padding") for name in names)]
    return [cast("Item", {"image": path, "role": role}) for path, role in paths]


def test_names_of_gold_images_are_compared_with_those_of_their_contexts() -> None:
    records = [{"answer": f"a{number}"} for number in range(12)]
    told = look(*records, items=[images(number, f"walks/{number + 20_000}.png") for number in range(12)])
    assert told == [
        "the file type of the gold image is '.png' in 12 of 12 contexts, and that of 10 % of the images there: see "
        "`mmlongbench shortcuts`"
    ]
    assert look(*records, items=[images(number, f"walks/{number + 20_000}.jpg") for number in range(12)]) == []


def test_the_tail_is_exact() -> None:
    for n, share in ((7, 0.3), (40, 0.05), (10_000, 0.5)):
        terms = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)] if n < 100 else []
        for hits in (0, 1, n // 3, n):
            if terms:
                assert binomial_tail(hits, n, share) == pytest.approx(sum(terms[hits:]))
    assert binomial_tail(5_000, 10_000, 0.5) == pytest.approx(0.504, abs=0.001)


def test_balanced_answers_are_reported_in_at_most_1_of_400_drawn_datasets() -> None:
    """The rule allows 1 in 1,000."""
    reported = 0
    for file in range(400):
        places = [DRAWS.integer(f"{file} {number}", 0, 3) for number in range(60)]
        reported += bool(look(*({"choices": Choices(("a", "b", "c", "d"), place)} for place in places)))
    assert reported <= 1


MANIFEST = """
datasets:
  - name: walks
    builder: visual_haystack
    reader: photographs
    source: {questions: questions.jsonl, images: photographs}
    lengths: [1K, 2K]
    admission_length: 1K
    reserve: 64
    licence: none
"""
SAID = "note: dataset 'walks': 'Yes' is the right answer of 40 of 40 questions: see `mmlongbench shortcuts`"


def test_plan_build_and_finish_print_it_and_a_complete_release_is_not_read_again(tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "photographs").mkdir()
    for number in range(50):
        Image.new("L", (56, 56), number).save(tmp_path / "photographs" / f"{number:04}.jpg")
    others = [f"{number:04}.jpg" for number in range(40, 50)]
    rows = [
        {"id": f"q{n}", "question": "Is it?", "answer": "Yes", "needles": [f"{n:04}.jpg"], "negatives": others}
        for n in range(40)
    ]
    (tmp_path / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    manifest = tmp_path / "walks.yaml"
    manifest.write_text(MANIFEST, "utf-8")
    assert SAID.replace("dataset 'walks': ", "") in command("plan", manifest).out
    assert command("build", manifest, "--out", tmp_path / "release").err.count(SAID) == 1
    assert SAID not in command("build", manifest, "--out", tmp_path / "release").err
    assert any("40 of 40" in note for note in mm.plan(manifest).datasets[0].notes)
    for stage in ("prepare", "negatives", "records", "images"):
        assert command("build", manifest, "--out", tmp_path / "parts", "--stage", stage).code == 0
    assert SAID in command("finish", tmp_path / "parts").err
    lock = (tmp_path / "release/build.lock.json").read_bytes()
    assert lock == (tmp_path / "parts/build.lock.json").read_bytes()
    assert b"tells" not in lock

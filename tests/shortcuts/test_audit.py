"""The audit of a whole release: what was planted is found, named and shown, and nothing else."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from once import linked, once
from PIL import Image
from tiny import Ran, command

import mmlongbench as mm

QUESTIONS, OTHERS, SIDE = 24, 60, 56
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
PLANTED = {
    "gold from image files",
    "gold from quantisation",
    "gold from metadata of images",
    "answer from the question",
}
"""What finds that the photographs that are asked about have a quality and a resolution of their own, and that the
questions that are answered by yes have a word of their own."""
Records = list[dict[str, Any]]


def drawn(n: int, *key: str | int) -> bytes:
    """Drawn bytes, the same for the same key."""
    return hashlib.shake_128(str(key).encode()).digest(n)


def build_walks(folder: Path, *, is_planted: bool) -> None:
    """Build questions about photographs of noise."""
    (folder / "photographs").mkdir(parents=True)
    names = [f"{int.from_bytes(drawn(4, 'name', n)):010}.jpg" for n in range(QUESTIONS + OTHERS)]
    for number, name in enumerate(names):
        tells = is_planted and number < QUESTIONS
        picture = Image.frombytes("L", (SIDE, SIDE), drawn(SIDE * SIDE, "noise", number))
        dots = (300, 300) if tells else (72, 72)
        picture.save(folder / "photographs" / name, quality=55 if tells else 80, dpi=dots)
    rows = []
    for number in range(QUESTIONS):
        answer = "Yes" if drawn(1, "answer", number)[0] % 2 else "No"
        seen = "bird" if is_planted and answer == "Yes" else "dog"
        asked = {"id": f"q{number}", "question": f"Was a {seen} seen on walk {number}?", "answer": answer}
        rows.append({**asked, "needles": [names[number]], "negatives": names[QUESTIONS:]})
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    (folder / "walks.yaml").write_text(MANIFEST, "utf-8")
    ran = command("build", folder / "walks.yaml", "--out", folder / "release")
    assert ran.code == 0, ran.err


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release in which nothing tells gold or answers."""
    return once(tmp_path_factory, "walks", lambda folder: build_walks(folder, is_planted=False)) / "release"


@pytest.fixture(scope="session")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with `PLANTED`."""
    return once(tmp_path_factory, "leaky-walks", lambda folder: build_walks(folder, is_planted=True)) / "release"


def test_records_without_a_question_say_what_was_not_tried(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mm.find_shortcuts(clean).notes == ()
    monkeypatch.setattr("mmlongbench.task.builder.Builder.question_of", lambda self, record: "")
    (note,) = mm.find_shortcuts(clean).notes
    assert note.startswith("walks: not tried: whether the question tells the answer")


def verdicts(ran: Ran) -> dict[str, str]:
    return {each["kind"]: each["verdict"] for each in map(json.loads, ran.out.splitlines())}


def test_what_was_planted_is_found_and_nothing_else(leaky: Path) -> None:
    ran = command("shortcuts", leaky, "--json", "--check")
    assert {each for each, verdict in verdicts(ran).items() if verdict == "leak"} == PLANTED
    assert ran.code == 1
    assert command("shortcuts", leaky).code == 0


def test_a_release_without_a_leak_passes(clean: Path) -> None:
    ran = command("shortcuts", clean, "--json", "--check")
    assert ran.code == 0
    assert set(verdicts(ran).values()) <= {"clean", "undecided"}
    shown = command("shortcuts", clean, "--all").out
    for text in ("answer from priors", "walks", "release: 0 leaks"):
        assert text in shown


def test_what_tells_at_the_shortest_length_alone_is_found_and_shown_there(clean: Path, tmp_path: Path) -> None:
    release = linked(clean, tmp_path / "short")

    def name_another_animal(records: Records) -> None:
        for record in records:
            if record["answer"] == "Yes":
                record["question"] = record["question"].replace("dog", "bird")

    change(release, "*/walks_*_K1_*", name_another_animal)
    leaks = mm.find_shortcuts(release).leaks
    assert [(each.kind, each.length) for each in leaks] == [("answer from the question", 1024)]
    assert "_K1_" in leaks[0].file
    assert re.search(r"walks +1K +answer from the question +leak", command("shortcuts", release).out)


def test_without_items_gold_is_found_by_its_needles_and_a_note_says_so(leaky: Path, tmp_path: Path) -> None:
    release = linked(leaky, tmp_path / "copy")
    shutil.rmtree(release / "items")
    ran = command("shortcuts", release, "--all")
    assert "walks, gold from image files: gold differs by" in ran.out
    assert "note: walks: the release has no items of NIAH/walks" in ran.out


def test_the_page_shows_gold_beside_others_with_what_tells_it(leaky: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert command("shortcuts", leaky, "--html", page).code == 0
    text = page.read_text("utf-8")
    leaks = text[text.index('<h2 id="leaks">') : text.index('<h2 id="reading">')]
    assert leaks.count('class="asked"') == 4 * 3  # four leaks, with three questions each
    assert leaks.count('class="unit gold"') == 3 * 3  # of a question that tells its answer, the words are shown
    assert leaks.count('class="unit"') == 3 * 12
    assert leaks.count('src="data:image/jpeg;base64,') == 3 * 15
    assert leaks.count("<dt>bytes</dt>") == leaks.count("<dt>quantisation of fine detail</dt>") == 15
    assert "seen on walk" in leaks
    assert "(choice 1 of 2)" in leaks or "(choice 2 of 2)" in leaks


def test_the_door_finds_the_same_and_an_unknown_dataset_is_named_with_the_nearest(leaky: Path) -> None:
    audit = mm.find_shortcuts(str(leaky), datasets="walks")
    assert {each.kind for each in audit.leaks} == PLANTED
    excesses = [each.excess for each in audit.leaks]
    assert excesses == sorted(excesses, reverse=True)
    with pytest.raises(mm.ReleaseError, match="no dataset 'walk'; there are walks"):
        mm.find_shortcuts(leaky, datasets=["walk"])
    ran = command("shortcuts", leaky, "--dataset", "walk")
    assert ran.code == 2
    assert "no dataset 'walk'; there are walks; did you mean 'walks'?" in ran.err


def test_documents_too_few_to_learn_from_are_noted(finished: Path) -> None:
    ran = command("shortcuts", finished)
    assert ran.code == 0
    assert "note: mmlongdoc: not tried: its questions are about fewer than 6 subjects" in ran.out


# Releases of several families.

SOME = ("text_mmlongdoc", "infoseek", "food101", "vh_multi")
COUNTED = {
    "question asked twice",
    "picture of the question in its context",
    "gold picture twice in its context",
    "answer in a negative",
    "gold text twice in its context",
}


def change(release: Path, file: str, plant: Callable[[Records], object]) -> None:
    """Change the records of a public file."""
    path = next((release / "mmlb_data").glob(file))
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    plant(records)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records), "utf-8")


def test_a_release_as_built_has_no_duplicates_and_no_answer_in_a_negative_and_shares_everything_with_itself(
    families: Path,
) -> None:
    found = [each for each in mm.find_shortcuts(families, datasets=SOME, against=families).findings if each.p is None]
    assert {each.kind for each in found} >= COUNTED
    shared = [each for each in found if "shared" in each.kind]
    assert {each.kind for each in found if each.verdict == "leak"} == {each.kind for each in shared}
    assert {(each.verdict, each.found) for each in shared} == {("leak", 1)}
    assert {each.kind.split()[0] for each in shared} == {"question", "picture", "passage"}


def test_duplicates_and_answers_that_were_planted_are_found(families: Path, tmp_path: Path) -> None:
    release = linked(families, tmp_path / "planted")

    def use_the_test_image(records: Records) -> None:
        records[1]["exemplars"][3]["image"] = records[1]["image"]

    def tell_in_a_negative(records: Records) -> None:
        gold = records[0]["positive_ctxs"][0]
        for record in (each for each in records if each["id"] == records[0]["id"]):
            record["answer"] = ["Thornbury Abbey"]
            negatives = [each for each in record["ctxs"] if each["doc_id"] != gold["doc_id"]]
            negatives[0]["text"] = gold["text"]
            negatives[1]["text"] += " It belongs to Thornbury Abbey."

    def ask_twice(records: Records) -> None:
        records[1] |= {"question": records[0]["question"].upper(), "doc_name": records[0]["doc_name"]}

    change(release, "ICL/food101_K16*", use_the_test_image)
    change(release, "vrag/infoseek_K16*", tell_in_a_negative)
    change(release, "documentQA/text_mmlongdoc_K16*", ask_twice)
    found = mm.find_shortcuts(release, datasets=SOME[:3]).leaks
    ids = {
        name: list(dict.fromkeys(each.id for each in mm.open_release(release).examples(name, "16K"))) for name in SOME
    }
    assert {(each.dataset, each.kind): set(each.examples) for each in found} == {
        ("food101", "picture of the question in its context"): {ids["food101"][1]},
        ("infoseek", "answer in a negative"): {ids["infoseek"][0]},
        ("infoseek", "gold text twice in its context"): {ids["infoseek"][0]},
        ("text_mmlongdoc", "question asked twice"): set(ids["text_mmlongdoc"]),
    }


def test_the_difficulty_is_told_by_length_and_pages_are_searched_by_their_texts(families: Path) -> None:
    given = ("--dataset", "infoseek", "--dataset", "vh_multi", "--dataset", "mmlongdoc")
    ran = command("shortcuts", families, "--json", *given)
    lines = [each for each in map(json.loads, ran.out.splitlines()) if each["kind"] == "difficulty"]
    assert [(each["dataset"], each["length"], each["search"], each["questions"]) for each in lines] == [
        ("mmlongdoc", 8192, "BM25", 2),  # its pages are images; another dataset has their texts
        ("mmlongdoc", 16_384, "BM25", 2),
        ("infoseek", 8192, "BM25", 2),
        ("infoseek", 16_384, "BM25", 2),
    ]
    assert all(1 <= each["k_50"] <= each["k_90"] <= each["units"] + 1 for each in lines)
    assert "difficulty: units to read to have half" in command("shortcuts", families, "--dataset", "infoseek").out


def test_records_that_were_taken_out_by_hand_leave_the_others_their_roles(families: Path, tmp_path: Path) -> None:
    release = linked(families, tmp_path / "fewer")
    change(release, "documentQA/text_mmlongdoc_K16*", lambda records: records.pop(0))
    audit = mm.find_shortcuts(release, datasets="text_mmlongdoc")
    assert audit.difficulties[-1].questions == 1
    assert audit.difficulties[-1].golds >= 1
    assert not [note for note in audit.notes if "items" in note]

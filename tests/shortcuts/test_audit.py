"""The audit of a whole release: questions about photographs, with a planted leak or without."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image
from tiny import Ran, command

import mmlongbench as mm
from mmlongbench.shortcuts.measured import uniforms

pytestmark = pytest.mark.slow

QUESTIONS, OTHERS, SIDE = 24, 60, 56
MANIFEST = """
datasets:
  - name: walks
    builder: visual_haystack
    reader: photographs
    source: {questions: questions.jsonl, images: photographs}
    lengths: [1K]
    admission_length: 1K
    reserve: 64
    licence: none
"""


def draw(folder: Path, planted: str) -> Path:
    """Write photographs, questions and a manifest; `planted` is what tells the photographs that are asked about, or the
    answers.
    """
    (folder / "photographs").mkdir(parents=True)
    for number in range(QUESTIONS + OTHERS):
        noise = (255 * uniforms(SIDE * SIDE, "photograph", number)).astype("u1").tobytes()
        is_asked = number < QUESTIONS
        quality = 55 if is_asked and planted == "quality" else 80
        dots = (300, 300) if is_asked and planted == "dpi" else (72, 72)
        picture = Image.frombytes("L", (SIDE, SIDE), noise)
        picture.save(folder / "photographs" / name(number), quality=quality, dpi=dots)
    rows = (question(number, has_word=planted == "words") for number in range(QUESTIONS))
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    (folder / "manifest.yaml").write_text(MANIFEST, "utf-8")
    return folder / "manifest.yaml"


def name(number: int) -> str:
    """The name of a photograph; its digits are drawn."""
    return f"{int(uniforms(1, 'name', number)[0] * 10**8):08}.png"[:8] + ".jpg"


def question(number: int, *, has_word: bool) -> dict[str, object]:
    answer = "Yes" if uniforms(1, "answer", number)[0] < 0.5 else "No"
    seen = "bird" if has_word and answer == "Yes" else "dog"
    return {
        "id": f"q{number}",
        "question": f"Was a {seen} seen on walk {number}?",
        "answer": answer,
        "needles": [name(number)],
        "negatives": [name(other) for other in range(QUESTIONS, QUESTIONS + OTHERS)],
    }


def built(folder: Path, planted: str) -> Path:
    ran = command("build", draw(folder / "source", planted), "--out", folder / "release")
    assert ran.code == 0, ran.err
    return folder / "release"


def found(release: Path, *options: str) -> tuple[Ran, dict[str, str]]:
    ran = command("shortcuts", release, "--json", *options)
    findings = [json.loads(line) for line in ran.out.splitlines()]
    return ran, {each["kind"]: each["verdict"] for each in findings}


@pytest.mark.parametrize(
    ("planted", "kinds"),
    [
        ("quality", {"gold from image files", "gold from quantisation"}),
        ("dpi", {"gold from metadata of images"}),
        ("words", {"answer from the question"}),
    ],
)
def test_what_was_planted_is_found_and_nothing_else(planted: str, kinds: set[str], tmp_path: Path) -> None:
    ran, verdicts = found(built(tmp_path, planted), "--check")
    assert {each for each, verdict in verdicts.items() if verdict == "leak"} == kinds
    assert ran.code == 1


def test_a_release_without_a_leak_passes_and_says_how_many_questions_would_decide(tmp_path: Path) -> None:
    release = built(tmp_path, "nothing")
    ran, verdicts = found(release, "--check")
    assert ran.code == 0
    assert set(verdicts.values()) <= {"clean", "undecided"}
    assert command("shortcuts", release, "--json").out == ran.out
    shown = command("shortcuts", release, "--all").out
    assert "answer from priors" in shown
    assert "walks" in shown
    assert "release: 0 leaks" in shown


def test_without_items_gold_is_found_by_its_needles_and_a_note_says_so(tmp_path: Path) -> None:
    release = built(tmp_path, "quality")
    shutil.rmtree(release / "items")
    ran = command("shortcuts", release, "--all")
    assert "walks, gold from image files: gold differs by" in ran.out
    assert "note: walks: the release has no items of NIAH/walks" in ran.out


def test_the_page_shows_gold_beside_others_with_what_tells_it(tmp_path: Path) -> None:
    release, page = built(tmp_path, "quality"), tmp_path / "page.html"
    assert command("shortcuts", release, "--html", page).code == 0
    text = page.read_text("utf-8")
    leaks = text[text.index('<h2 id="leaks">') : text.index('<h2 id="reading">')]
    assert leaks.count('class="asked"') == 2 * 3  # two leaks, with three questions each
    assert leaks.count('class="unit gold"') == 2 * 3
    assert leaks.count('class="unit"') == 2 * 12
    assert leaks.count('src="data:image/jpeg;base64,') == 2 * 15
    assert leaks.count("<dt>bytes</dt>") == leaks.count("<dt>quantisation of fine detail</dt>") == 15
    assert "Was a dog seen on walk" in leaks
    audit = mm.find_shortcuts(str(release), datasets="walks")
    assert {each.kind for each in audit.leaks} == {"gold from image files", "gold from quantisation"}
    with pytest.raises(mm.ReleaseError, match="no dataset 'walk'; there are walks"):
        mm.find_shortcuts(release, datasets=["walk"])


def test_of_a_question_that_tells_its_answer_the_words_are_shown(tmp_path: Path) -> None:
    release, page = built(tmp_path, "words"), tmp_path / "page.html"
    assert command("shortcuts", release, "--html", page).code == 0
    text = page.read_text("utf-8")
    leaks = text[text.index('<h2 id="leaks">') : text.index('<h2 id="reading">')]
    assert leaks.count('class="asked"') == 3
    assert 'class="unit' not in leaks
    assert "(choice 1 of 2)" in leaks or "(choice 2 of 2)" in leaks


def test_an_unknown_dataset_is_named_with_the_nearest(tmp_path: Path) -> None:
    ran = command("shortcuts", built(tmp_path, "nothing"), "--dataset", "walk")
    assert ran.code == 2
    assert "no dataset 'walk'; there are walks; did you mean 'walks'?" in ran.err


def test_documents_too_few_to_learn_from_are_noted(finished: Path) -> None:
    ran = command("shortcuts", finished)
    assert ran.code == 0
    assert "note: mmlongdoc: not tried: its questions are about fewer than 6 subjects" in ran.out

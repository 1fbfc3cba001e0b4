"""Questions, answers, texts and pictures that stand twice in a release, where they should not, or in something else."""

import io
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from asked_questions import asked, unit
from PIL import Image as Pillow
from PIL import ImageDraw

from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError
from mmlongbench.likeness import BITS, KnownQuestions, Look, NearIndex, Pictures, is_same_wording, look_of
from mmlongbench.prompt import Image, Part
from mmlongbench.shortcuts.against import Answering
from mmlongbench.shortcuts.counted import (
    ASKED_TWICE,
    ASKED_WITH,
    GOLD,
    NEGATIVE,
    OFFERED,
    REST,
    SHARED,
    TEXT_TWICE,
    Leakage,
    Overlap,
    Searched,
    in_other_questions,
)
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit
from mmlongbench.task.builder import Choices


def by_kind(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {each.kind: each for each in findings}


def overlap(questions: Iterable[AskedQuestion], folder: Path = Path()) -> dict[str, Finding]:
    found = Overlap("x", Pictures(folder))
    for each in questions:
        found.add(each)
    return by_kind(found.findings())


# Questions that are the same.

CREWS = "How many crews were sent to sea by the harbours board in the winter of 1911?"


def is_known(question: str, answer: str, other: str, *answers: str, subject: str = "another ledger") -> bool:
    """Whether a question is found again as another one."""
    found = KnownQuestions()
    found.add(("x", "1"), question, "ledger", (answer,))
    return found.same(other, subject, answers) == [("x", "1")]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Crispin Ware", "crispin ware", True),
        ("Crispin Ware", "Crispin Ware.", True),
        ("1,040", "1040", True),
        ("1 234 567 carts", "1,234,567 carts", True),
        ("12,345.50", "12345.50", True),
        ("%", "%", True),
        ("Crispin Ware", "Crispin", False),
        ("10,40", "1040", False),
        ("1.5", "15", False),
        ("1040", "1041", False),
        ("%", "$", False),
        ("3, 250", "3,2500", False),
    ],
)
def test_answers_that_differ_in_case_punctuation_or_separators_are_the_same(
    one: str, other: str, is_same: bool
) -> None:
    assert is_known(CREWS, one, CREWS, other) == is_same
    assert is_known(CREWS, other, CREWS, one) == is_same


def test_a_very_long_question_is_compared_too() -> None:
    long = " ".join(f"{CREWS} That is question {number}." for number in range(40))
    assert is_known(long, "1040", long, "7", subject="ledger")
    assert is_known(CREWS, "1040", long, "7", subject="ledger")
    assert not is_known(CREWS, "1040", " ".join(f"word{number}" for number in range(1_000)), "1040", subject="ledger")


def test_words_are_the_same_with_thirteen_in_a_row_or_a_resemblance_of_eighty_percent() -> None:
    long = " ".join(f"w{n}" for n in range(13))
    assert is_same_wording(f"one two three four five six {long}", f"{long} and so on to the very end of it all")
    assert not is_same_wording(" ".join(long.split()[:9]), f"{' '.join(long.split()[4:])} and so on")
    assert is_same_wording("Who planted the old oak?", "WHO planted the old oak")


def test_a_question_with_the_words_and_the_subject_of_another_one_is_a_leak() -> None:
    questions = [
        asked("a", "Who planted the oak?", subject="oak"),
        asked("b", "who planted  the OAK", subject="oak"),
        asked("c", "Who planted the oak?", subject="elm"),
        asked("d", "When was it planted?", subject="oak"),
    ]
    finding = overlap(questions)[ASKED_TWICE]
    assert (finding.verdict, finding.examples, finding.questions, finding.clusters) == ("leak", ("b", "a"), 4, 2)
    assert (finding.found, finding.p) == (0.5, None)
    clean = overlap([asked(str(n), f"What is number {n}?", subject=str(n)) for n in range(100)])[ASKED_TWICE]
    assert (clean.verdict, clean.found, clean.examples) == ("clean", 0, ())


def test_a_question_with_the_words_of_another_one_and_another_answer_is_a_leak() -> None:
    questions = [
        asked(id, words, answers=(answer,), subject=subject, needles=(f"Box {answer} is here.",), images=images)
        for id, words, answer, subject, images in (
            ("a", "Which box?", "L1", "", ()),
            ("b", "which  BOX?", "L2", "", ()),
            ("c", "Which box?", "L3", "oak", ()),
            ("d", "Which box?", "L4", "", ("oak.png",)),
            ("e", "Which other box?", "L5", "", ()),
        )
    ]
    finding = overlap(questions)[ASKED_TWICE]
    assert (finding.verdict, finding.examples, finding.carriers) == ("leak", ("b", "a"), ("b",))


def test_questions_that_offer_answers_are_the_same_only_with_equal_words() -> None:
    words = "In the image with the long red kite over the old harbour and the three boats, is there a {}?"
    offered = [asked(each, words.format(each), subject="k", answers=("Yes",), is_free=False) for each in ("cat", "dog")]
    free = [asked(each, words.format(each), subject="k", answers=("3 boats",)) for each in ("cat", "dog")]
    other = [asked(each, words.format(each), subject="k", answers=(each,)) for each in ("cat", "dog")]
    verdicts = [overlap(each)[ASKED_TWICE].verdict for each in (offered, free, other)]
    assert verdicts == ["undecided", "leak", "undecided"]


# Answers that stand where they should not.

CITIES = ("Oslo", "Bergen", "Narvik", "Molde", "Hamar", "Skien", "Alta", "Vard", "Larvik", "Moss Hill")


def about(
    id: str, subject: str, answer: str | tuple[str, ...], *units: ShownUnit, question: str = "?"
) -> AskedQuestion:
    return asked(id, question, *units, subject=subject, answers=(answer,) if isinstance(answer, str) else answer)


def told_elsewhere(questions: Iterable[AskedQuestion]) -> Finding:
    finding = in_other_questions("x", [Searched.of(each) for each in questions])
    assert finding is not None
    return finding


def leakage(*contexts: AskedQuestion) -> dict[str, Finding]:
    found = Leakage("x")
    for context in contexts:
        found.add(context)
    return by_kind(found.findings())


@pytest.mark.parametrize(
    ("needle", "other", "is_twice"),
    [
        (unit("gold", "Here is my boat.", image="a.jpg"), unit("padding", "Here is my boat.", image="b.jpg"), False),
        (unit("gold", "Here is my boat.", image="a.jpg"), unit("padding", "Here is my boat.", image="a.jpg"), True),
        (unit("gold", "I paid 9 crowns.\nI see, well done."), unit("padding", "I slept.\nI see, well done."), False),
        (unit("gold", "I paid 9 crowns.\nI see, well done."), unit("own", "I paid 9 crowns. I see, well done."), True),
    ],
)
def test_a_gold_text_is_there_twice_only_with_all_its_turns_and_images(
    needle: ShownUnit, other: ShownUnit, is_twice: bool
) -> None:
    context = asked("a", "?", needle, other, needles=(needle.text.replace("\n", ""),) if not needle.images else ())
    assert bool(leakage(context)[TEXT_TWICE].examples) is is_twice


def test_an_answer_in_another_question_about_the_same_thing_is_a_leak() -> None:
    questions = []
    for n, city in enumerate(CITIES):
        questions.append(about(f"{n}a", f"doc {n}", city, question="Where did the mayor live?"))
        place = city if n < 6 else "the town"
        questions.append(about(f"{n}b", f"doc {n}", f"{n} boats", question=f"How many boats did {place} have?"))
    finding = told_elsewhere(questions)
    assert (finding.verdict, finding.questions, finding.clusters, finding.chance) == ("leak", 20, 10, 0)
    assert finding.examples == ("0a", "1a", "2a", "3a", "4a", "5a")
    assert "'oslo' stands in 0b" in finding.evidence
    others = [about("a", "A", "Oslo", question="Where?"), about("b", "B", "Bergen", question="How old is Oslo?")]
    assert in_other_questions("x", [Searched.of(each) for each in others]) is None  # no cluster has two questions


def test_words_that_stand_in_every_question_are_expected_by_chance() -> None:
    questions = []
    for n in range(20):
        questions.append(about(f"{n}a", f"doc {n}", "the report", question=f"Which paper has {n} pages?"))
        questions.append(about(f"{n}b", f"doc {n}", f"name {n}", question=f"Who wrote the report {n}?"))
    finding = told_elsewhere(questions)
    assert (finding.found, finding.verdict) == (0.5, "undecided")
    assert finding.chance == pytest.approx(0.5)


def test_short_answers_numbers_and_choices_are_not_looked_for() -> None:
    for answer in ("1200", "Ulm", "42 %", "a b c"):
        assert Searched.of(asked("a", answers=(answer,))).answers == ()
    assert Searched.of(asked("a", answers=("Harbour",), is_free=False)).answers == ()
    assert Searched.of(asked("a", answers=("Harbour",))).answers == (" harbour ",)


@pytest.mark.parametrize(
    "texts",
    [
        ("Title: ", "They saw OSSERY  ridge."),
        ("Title: ", "the Ossery-Ridge"),
        ("Title: ", "Ｏｓｓｅｒｙ Ridge range"),
        ("Document (Title: Ossery Ridge): ", "Hills."),
    ],
)
def test_an_answer_in_a_negative_or_its_title_is_a_leak_in_any_spelling(texts: tuple[str, ...]) -> None:
    told = about("a", "A", ("Unknown hills", "Ossery Ridge"), unit("gold", "Gold"), unit("negative", *texts))
    other = about("b", "B", "Vorrin", unit("gold", "Vorrin"), unit("negative", "Vorrington"))
    finding = leakage(told, other)[NEGATIVE]
    assert (finding.verdict, finding.examples, finding.questions) == ("leak", ("a",), 2)
    assert "'ossery ridge' stands in a unit (negative)" in finding.evidence


def test_common_words_of_padding_are_expected_by_chance() -> None:
    padding = unit("padding", f"The total of {', '.join(CITIES)}")
    common = leakage(*(about(city, city, city, padding) for city in CITIES))[REST]
    assert (common.found, common.chance, common.verdict) == (1, 1, "clean")
    planted = leakage(*(about(city, city, city, unit("padding", f"It is {city}, they say")) for city in CITIES))[REST]
    assert (planted.found, planted.chance, planted.verdict) == (1, 0, "leak")
    assert leakage(*(about(city, city, city, unit("own", f"It is {city}")) for city in CITIES)) == {}
    ferry = unit("padding", "The ferry goes to Norway.")
    answers = ["Norway" if number % 2 else f"place {'abcdefgh'[number % 8] * 4} {number}" for number in range(400)]
    frequent = leakage(*(about(str(n), str(n), answer, ferry) for n, answer in enumerate(answers)))[REST]
    assert frequent.found == 0.5
    assert frequent.chance == pytest.approx(0.5, abs=0.03)
    assert frequent.verdict != "leak"


def test_a_gold_text_or_a_needle_that_is_there_twice_is_found() -> None:
    text = "The old oak was planted by the gardener of the abbey."
    gold, again = unit("gold", "Title: Oak", text), unit("negative", "Title: Elm", text.upper())
    finding = leakage(about("a", "A", "17", gold, again), about("b", "B", "18", gold))[TEXT_TWICE]
    assert (finding.verdict, finding.examples) == ("leak", ("a",))
    needle = "The pass phrase of the pier is gannet 410."
    inside = replace(unit("own", f"{needle} More."), is_gold=True)
    context = asked("a", "?", inside, unit("padding", f"Before. {needle} After."), needles=(needle,))
    assert leakage(context)[TEXT_TWICE].examples == ("a",)


# Pictures that are the same.


def scene(number: int) -> Pillow.Image:
    """A picture of drawn smooth colours, different for each number."""
    draws = Draws(("scene", number))
    levels = [draws.integer(str(n), 0, 255) for n in range(8 * 8 * 3)]
    return Pillow.fromarray(np.array(levels, np.uint8).reshape(8, 8, 3)).resize((240, 180), Pillow.Resampling.BICUBIC)


def saved(picture: Pillow.Image, path: Path, quality: int = 90) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, quality=quality)
    return path.name


def bytes_of(picture: Pillow.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("copy", ["same", "jpeg", "half", "brighter"])
def test_a_test_image_among_the_exemplars_is_found_in_any_encoding(copy: str, tmp_path: Path) -> None:
    own = scene(1)
    saved(own, tmp_path / "own.png")
    again = {"half": own.resize((120, 90)), "brighter": own.point(lambda level: level * 1.08)}.get(copy, own)
    name = saved(again, tmp_path / f"again.{'jpg' if copy == 'jpeg' else 'png'}", quality=40)
    others = [unit("exemplar", image=saved(scene(n), tmp_path / f"{n}.png")) for n in range(2, 9)]
    clean = asked("clean", "", *others, images=("own.png",))
    leaky = asked("leaky", "", *others, unit("exemplar", image=name), images=("own.png",))
    finding = overlap([clean, leaky], tmp_path)[ASKED_WITH]
    assert (finding.verdict, finding.examples, finding.found) == ("leak", ("leaky",), 0.5)


def test_a_gold_picture_among_the_distractors_is_found(tmp_path: Path) -> None:
    saved(scene(1), tmp_path / "gold.png")
    saved(scene(1), tmp_path / "again.jpg", quality=60)
    others = [unit("negative", image=saved(scene(n), tmp_path / f"{n}.png")) for n in range(2, 6)]
    gold, again = unit("needle", image="gold.png"), unit("negative", image="again.jpg")
    finding = overlap([asked("a", "?", gold, *others), asked("b", "?", gold, again)], tmp_path)[GOLD]
    assert (finding.verdict, finding.examples) == ("leak", ("b",))
    assert "again.jpg" in finding.evidence


def table_page(number: int) -> Pillow.Image:
    """A page with a table; all pages have the same layout and other numbers."""
    page = Pillow.new("RGB", (420, 532), "white")
    drawn, draws = ImageDraw.Draw(page), Draws(("table page", number))
    drawn.text((28, 30), f"Report of line {draws.integer('line', 10, 99)}", "black", font_size=16)
    for row, column in product(range(6), range(4)):
        x, y = 28 + 92 * column, 100 + 48 * row
        drawn.rectangle((x, y, x + 92, y + 48), outline="black", width=2)
        cell = f"{draws.integer(f'{row} {column}', 100, 999)}" if row and column else f"name {column}"
        drawn.text((x + 8, y + 18), cell, "black", font_size=13)
    return page


@pytest.mark.parametrize("may_repeat", [False, True])
def test_pages_of_one_layout_with_other_words_are_not_the_same_and_copies_of_pages_are(
    tmp_path: Path, *, may_repeat: bool
) -> None:
    pages, gold = [table_page(number) for number in range(9)], table_page(0)
    looks = [look_of(bytes_of(page)) for page in pages]
    assert sum(replace(one, page=b"").is_near(looks[0]) for one in looks[1:]) >= 6  # by the hashes alone
    copies = (gold.resize((280, 355), 1), gold.point(lambda level: int(level * 0.95)))
    for name, again, hits in (
        *((f"other {number}.jpg", page, ()) for number, page in enumerate(pages[1:])),
        *((f"again {number}.jpg", copy, ("a",)) for number, copy in enumerate(copies)),
    ):
        shown = unit("gold", image=saved(gold, tmp_path / "gold.png")), unit("own", image=saved(again, tmp_path / name))
        found = Overlap("x", Pictures(tmp_path), may_repeat=may_repeat)
        found.add(asked("a", "?", *shown))
        findings = by_kind(found.findings())
        assert (GOLD in findings) is not may_repeat
        assert may_repeat or findings[GOLD].examples == hits, name


def test_a_document_under_two_names_is_found_by_its_gold_pages_in_any_encoding(tmp_path: Path) -> None:
    def about_page(id: str, document: str, page: str) -> AskedQuestion:
        evidence = replace(unit("own", image=page), is_gold=True, is_evidence=True)
        return asked(id, f"What does {id} show?", evidence, subject=document)

    pages = [saved(scene(1), tmp_path / "a.jpg"), saved(scene(1), tmp_path / "b.jpg", 40)]
    pages.append(saved(scene(2), tmp_path / "c.jpg"))
    questions = [about_page(f"q{n}", f"document {page}", page) for n, page in enumerate(pages)]
    finding = overlap([*questions, about_page("again", "document a.jpg", "a.jpg")], tmp_path)[SHARED]
    assert (finding.verdict, finding.questions, finding.examples) == ("leak", 4, ("q1", "q0", "again"))
    assert finding.carriers == ("q1", "again")
    assert "b.jpg is a page of document a.jpg" in finding.evidence


def test_a_page_of_text_under_two_names_is_found_unless_it_has_few_words() -> None:
    for body, hits in ((" ".join(f"word{number}" for number in range(30)), ("q1", "q0")), ("Part two", ())):
        page = replace(unit("own", body), is_gold=True, is_evidence=True)
        both = [asked(f"q{n}", "What?", page, subject=f"document {n}") for n in range(2)]
        assert overlap(both)[SHARED].examples == hits


def test_pictures_that_differ_in_colour_alone_are_not_the_same() -> None:
    red, blue = (Pillow.new("RGB", (200, 200), "white") for _ in range(2))
    red.paste((200, 0, 0), (50, 60, 140, 150))
    blue.paste((30, 60, 255), (50, 60, 140, 150))
    one, two = look_of(bytes_of(red)), look_of(bytes_of(blue))
    assert one.bits is not None
    assert two.bits is not None
    assert (one.bits ^ two.bits).bit_count() <= BITS
    assert not one.is_near(two)


def test_pictures_are_compared_as_they_are_shown() -> None:
    upright, clear = scene(3), scene(3).convert("RGBA")
    clear.paste((0, 0, 0, 0), (0, 0, 240, 60))
    white = upright.copy()
    white.paste("white", (0, 0, 240, 60))
    assert look_of(bytes_of(clear)).is_near(look_of(bytes_of(white)))
    turned, exif = io.BytesIO(), Pillow.Exif()
    exif[0x0112] = 6
    upright.rotate(90, expand=True).save(turned, "JPEG", exif=exif)
    assert look_of(turned.getvalue()).is_near(look_of(bytes_of(upright)))
    assert not look_of(bytes_of(upright.rotate(90, expand=True))).is_near(look_of(bytes_of(upright)))


def test_nearly_uniform_pictures_are_compared_by_their_bytes_alone(tmp_path: Path) -> None:
    for name, level in (("a.png", 255), ("b.png", 254), ("c.png", 255)):
        saved(Pillow.new("RGB", (64, 64), (level, level, level)), tmp_path / name)
    one = asked("one", "?", unit("exemplar", image="b.png"), images=("a.png",))
    two = asked("two", "?", unit("exemplar", image="c.png"), images=("a.png",))
    finding = overlap([one, two], tmp_path)[ASKED_WITH]
    assert finding.examples == ("two",)
    assert "3 nearly uniform pictures were compared by their bytes alone" in finding.evidence


def test_the_index_finds_every_pair_that_a_comparison_of_all_pairs_finds() -> None:
    draws = Draws(("bits",))
    looks = []
    for n in range(60):
        bits = int(draws.integer(f"{n}", 0, 2**63))
        looks.append(Look(f"{n}", bits, 0, bytes(48)))
        for flips in range(1, 9):
            flipped = bits
            for place in draws.order(f"{n} {flips}", [str(each) for each in range(64)])[:flips]:
                flipped ^= 1 << int(place)
            looks.append(Look(f"{n} {flips}", flipped, 0, bytes(48)))
    index = NearIndex()
    for look in looks:
        index.add(look)
    for look in looks[::5]:
        assert set(index.near(look)) == {each.digest for each in looks if each.is_near(look)}


@pytest.mark.parametrize("path", ["../secret.png", "missing.png", "broken.png", "pipe.png"])
def test_a_picture_that_cannot_be_read_is_named(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    saved(scene(1), tmp_path / "secret.png")
    folder.mkdir()
    (folder / "broken.png").write_bytes(b"\x89PNG no picture")
    os.mkfifo(folder / "pipe.png")
    with pytest.raises(ReleaseError, match=r"image '.*png'"):
        Pictures(folder)[path]


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("imagehash", "datasketch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ReleaseError, match=r'pip install "mmlongbench\[shortcuts\]"'):
        look_of(bytes_of(scene(1)))
    with pytest.raises(ReleaseError, match=r'datasketch: pip install "mmlongbench\[shortcuts\]"'):
        KnownQuestions()


def test_a_text_or_a_picture_that_is_offered_twice_is_found_although_it_was_compressed_again(tmp_path: Path) -> None:
    def offering(id: str, *offered: Part) -> AskedQuestion:
        return replace(asked(id), choices=Choices(offered, 0))

    texts = [offering("a", "the oak", "the elm", "The  OAK"), offering("b", "-5", "5"), offering("c", "C", "C++")]
    finding = overlap([*texts, asked("free")], tmp_path)[OFFERED]
    assert (finding.verdict, finding.examples, finding.questions) == ("leak", ("a",), 3)
    images = [Image(saved(scene(number), tmp_path / f"{number}.jpg")) for number in (1, 2, 3)]
    again = Image(saved(scene(1), tmp_path / "again.jpg", quality=60))
    finding = overlap([offering("a", *images), offering("b", *images, again)], tmp_path)[OFFERED]
    assert (finding.verdict, finding.examples) == ("leak", ("b",))


# What a release shares with something else.

PASSAGE = "The old oak at the north gate was planted by a gardener of the abbey."
PLANTED = "Who planted the old oak at the north gate of the abbey?"


def answering(questions: Iterable[AskedQuestion], folder: Path = Path()) -> Answering:
    found = Answering(Pictures(folder))
    for each in questions:
        found.add("x", each)
    return found


def shared(answering: Answering) -> dict[str, Finding]:
    return {each.kind.split()[0]: each for each in answering.findings()}


def test_pictures_questions_and_passages_of_a_folder_are_found(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs" / "deep"
    saved(scene(1), mine / "own.png")
    saved(scene(2), mine / "other.png")
    saved(scene(1).resize((120, 90)), theirs / "copy.jpg", quality=70)
    (theirs / "broken.jpg").write_bytes(b"no picture")
    (theirs / "text.md").write_text(f"# Oaks\n\n{PASSAGE.upper()}\n", "utf-8")
    lines = [json.dumps({"asked": [{"q": PLANTED}]}), "no json", "[" * 9]
    (theirs / "lines.jsonl").write_text("\n".join(lines), "utf-8")
    os.mkfifo(theirs / "pipe.txt")
    other = (unit("gold", PASSAGE + " Not."), unit("negative", PASSAGE))
    questions = [
        asked("a", PLANTED, unit("gold", PASSAGE), images=("own.png",)),
        asked("b", "Who felled it?", *other, images=("other.png",)),
    ]
    mine_with_answers = answering(questions, mine)
    mine_with_answers.compare(tmp_path / "theirs")
    findings = shared(mine_with_answers)
    kinds = ("question", "picture", "passage")
    assert {kind: (each.verdict, each.examples) for kind, each in findings.items()} == dict.fromkeys(
        kinds, ("leak", ("a",))
    )
    assert "deep/lines.jsonl, line 1" in findings["question"].evidence
    assert "deep/copy.jpg" in findings["picture"].evidence
    with pytest.raises(ReleaseError, match="nowhere: is no folder; give a release"):
        mine_with_answers.compare(tmp_path / "nowhere")


def test_a_question_of_another_release_needs_the_same_subject_or_answer() -> None:
    words = "Which country is this from?"
    mine = [asked("a", words, subject="Q1", answers=("Peru",)), asked("b", words, subject="Q2", answers=("Chile",))]
    for subject, answers, id in (("Q9", ("Chile", "CL"), "b"), ("Q1", ("unknown",), "a")):
        compared = answering(mine)
        compared.compare_question("there", words, subject, answers)
        assert shared(compared)["question"].examples == (id,)

"""The pages of the shortcut audit: hostile names are text, verdicts differ without colours, images are bounded."""

import re
from pathlib import Path

import pytest
from PIL import Image

from mmlongbench.documents.image_urls import ImageUrls
from mmlongbench.shortcuts.audit import ShortcutAudit
from mmlongbench.shortcuts.contexts.results import (
    BlindCounts,
    BlindQuestion,
    ContextAudit,
    ContextMean,
    ContextRow,
    Difference,
    Need,
    NeedVerdict,
)
from mmlongbench.shortcuts.difficulty import Difficulty
from mmlongbench.shortcuts.findings import Finding, Verdict
from mmlongbench.shortcuts.to_look_at import SeenQuestion, SeenUnit
from mmlongbench.web import shortcuts_page as module
from mmlongbench.web.contexts_page import contexts_page
from mmlongbench.web.shortcuts_page import MAX_PIXELS, Seen, shortcuts_page

EVIL = "<img src=x onerror=\"document.title='run'\"></style><script>alert(1)</script>"
OUTSIDE = re.compile(r"https?://|src=[\"'](?!data:)|@import|url\(")


def finding(verdict: Verdict, kind: str = f"gold from {EVIL}", **changes: object) -> Finding:
    common = {"dataset": EVIL, "file": EVIL, "measure": EVIL, "evidence": EVIL, "examples": (EVIL,), "p": 0.0001}
    numbers = {"questions": 40, "clusters": 12, "found": 0.8, "chance": 0.5, "low": 0.1, "high": 0.4}
    given = {**common, **numbers, "smallest": 0.1, "needed": 1234, "kind": kind, "verdict": verdict, **changes}
    return Finding.model_validate(given)


def difficulty() -> Difficulty:
    texts = dict.fromkeys(("dataset", "file", "search"), EVIL)
    numbers = {"length": 8192, "questions": 3, "golds": 3, "units": 9.0, "found": 0.5, "median_rank": 2.5}
    return Difficulty.model_validate({**texts, **numbers, "k_50": 2, "k_90": 7})


def unit(path: str, *, is_gold: bool = False) -> SeenUnit:
    return SeenUnit(is_gold, EVIL, EVIL, path, ((f"bytes {EVIL}", EVIL),))


def page(audit: ShortcutAudit, seen: Seen, root: Path) -> str:
    return "".join(shortcuts_page(f"Of {EVIL}", audit, seen, ImageUrls(root, "data-uri", MAX_PIXELS)))


AUDIT = ShortcutAudit(
    (finding("clean"), finding("undecided"), finding("leak"), finding("leak", "answer in another question", p=None)),
    0.012,
    (f"a note {EVIL}",),
    (difficulty(),),
)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for number in range(3):
        Image.new("RGB", (600, 400), (80 * number, 0, 0)).save(tmp_path / f"{number}.jpg")
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    return tmp_path


def seen(*units: SeenUnit) -> Seen:
    return {(EVIL, f"gold from {EVIL}"): [SeenQuestion(EVIL, EVIL, EVIL, units)]}


def test_nothing_from_data_is_markup_and_nothing_is_fetched(images: Path) -> None:
    text = page(AUDIT, seen(unit("0.jpg", is_gold=True), unit(EVIL)), images)
    assert EVIL not in text
    assert "<img src=x" not in text
    assert text.count("<script>") == 1
    assert text.count("&lt;img src=x onerror=") > 20
    assert not OUTSIDE.search(text)


def test_verdicts_differ_by_mark_and_word_and_leaks_come_first(images: Path) -> None:
    text = page(AUDIT, {}, images)
    table = text[text.index('id="findings"') : text.index('id="leaks"')]
    assert re.findall(r"(■|◪|□) (\w+)</span>", table) == [
        *(("■", "leak"), ("■", "leak"), ("◪", "undecided"), ("□", "clean")),
    ]
    assert re.findall(r'class="interval (\w+)"', table) == ["sure", "sure", "dashed", "open"]
    assert table.count("1,234") == 1  # only what is undecided says how many questions are needed
    assert "p of the release: 0.012" in text
    assert re.findall(r'<h2 id="(\w+)">', text) == ["findings", "leaks", "difficulty", "untried", "reading"]


def test_gold_stands_beside_others_and_the_images_are_small_copies(images: Path) -> None:
    text = page(AUDIT, seen(unit("0.jpg", is_gold=True), unit("1.jpg"), unit("broken.jpg"), unit("gone.jpg")), images)
    assert text.count('class="unit gold"') == 1
    assert text.count("★ gold") == 1
    assert text.count('src="data:image/jpeg;base64,') == 2
    assert text.count("(the image is not in this page)") == 2
    assert len(text) < 60_000


def test_a_page_holds_a_bounded_number_of_images(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_IMAGES", 3)
    units = [unit(f"{number % 3}.jpg") for number in range(5)]
    assert page(AUDIT, seen(*units), images).count('src="data:') == 3
    monkeypatch.setattr(module, "MAX_URL", 100)
    assert page(AUDIT, seen(*units), images).count('src="data:') == 0


def test_a_section_is_there_only_if_it_has_content(images: Path) -> None:
    text = page(ShortcutAudit((), None, ()), {}, images)
    assert "Nothing could be tried." in text
    assert re.findall(r'<h2 id="(\w+)">', text) == ["reading"]
    assert '<h2 id="difficulty">' in page(ShortcutAudit((), None, (), (difficulty(),)), {}, images)


def contexts(verdict: NeedVerdict, facet: str = "") -> ContextRow:
    need = Need(
        part="context", verdict=verdict, reason="too few" if verdict == "undecided" else "", smallest=0.1, needed=77
    )
    numbers = {"full": 0.75, "other": 0.25, "mean": 0.5, "low": 0.4, "high": 0.6, "chance": 0.25}
    survival = {"survival": 0.0, "survival_low": -0.1, "survival_high": None}
    counts = {"examples": 12, "questions": 12, "clusters": 6}
    difference = Difference.model_validate({"context": EVIL, **numbers, **counts, **survival, "need": need})
    means = (
        ContextMean(context="", mean=0.75, low=0.7, high=0.8, questions=12),
        ContextMean(context=EVIL, mean=0.25, low=None, high=None, questions=12),
    )
    about = {"model": EVIL, "dataset": EVIL, "length": None if facet else 8192, "facet": facet, "value": facet}
    return ContextRow.model_validate({**about, "chance": 0.25, "means": means, "differences": (difference,)})


def test_the_page_of_contexts_has_verdicts_scores_and_blind_questions() -> None:
    counts = BlindCounts(dataset=EVIL, questions=9, right=5, binary=2, listed=1, by_luck=0.2)
    numbers = {"right": 3, "answers": 4, "independent": 4, "chance": 0.25, "luck": 0.004}
    blind = BlindQuestion.model_validate({"dataset": EVIL, "id": EVIL, "models": (EVIL,), **numbers})
    rows = (contexts("needs"), contexts("undecided"), contexts("does not need"), contexts("needs", EVIL))
    audit = ContextAudit(
        models=(EVIL,), contexts=("", EVIL), rows=rows, blind=(blind,), blind_counts=(counts,), notes=(EVIL,)
    )
    text = "".join(contexts_page(EVIL, audit))
    assert EVIL not in text
    assert text.count("<script>") == 1
    assert not OUTSIDE.search(text)
    assert re.findall(r'<h2 id="(\w+)">', text) == ["needs", "scores", "facets", "blind", "noted"]
    table = text[text.index('<h2 id="needs">') : text.index('<h2 id="scores">')]
    assert re.findall(r"(■|◪|□) ([a-z ]+):? the context</span>", table) == [
        *(("■", "does not need"), ("◪", "undecided"), ("□", "needs")),
    ]
    assert "too few; about 77 questions would decide" in table
    assert ">0 %<" in table.replace("\n", "")
    assert "8K" in table
    empty = ContextAudit(models=("m",), contexts=("",), rows=(), blind=(), blind_counts=(), notes=())
    assert re.findall(r'<h2 id="(\w+)">', "".join(contexts_page("t", empty))) == ["scores"]

"""Whether something tells that a question has no answer."""

from dataclasses import replace

import pytest
from asked_questions import asked, found, judged, unit

from mmlongbench.shortcuts.answerable import DETECTORS, measure_answerable, shown_in, shown_of
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.measured import uniforms
from mmlongbench.shortcuts.reading import AskedQuestion
from mmlongbench.shortcuts.vectors import of_named

WORDS = ("barley", "copper", "drift", "ember", "flint", "gravel", "harbour", "iris", "juniper", "kelp", "larch", "moss")
N = 90
SHOWN, QUESTION, NAMED = (
    "not answerable from what is shown",
    "not answerable from the question",
    "not answerable from the pages it names",
)


def page(words: list[str], number: int) -> str:
    return f"{' '.join(words)} of the year {number}"


def context(number: int, planted: str = "", share: float = 0.0) -> AskedQuestion:
    """A question about a document of six pages, three to five of which are shown; a third has no answer."""
    drawn = uniforms(40, "answerable", number)
    is_no, tells = drawn[0] < 1 / 3, drawn[1] < share
    terms = [WORDS[int(12 * each)] for each in drawn[2:6]]
    shown = 3 + int(3 * drawn[6])
    if planted == "pages" and tells:
        shown = 1 if is_no else 4
    pages = [[WORDS[int(12 * each)] for each in drawn[7 + 3 * at : 10 + 3 * at]] for at in range(shown)]
    if planted == "words" and tells:
        pages[0] = [] if is_no else terms
        pages[1:] = [[] for _ in pages[1:]] if is_no else pages[1:]
    question = f"How much {' '.join(terms)}?"
    if planted == "question" and tells:
        question = f"{'Which colour' if is_no else 'How many'} {' '.join(terms)}?"
    if planted == "named" and tells and is_no:
        question = f"How much {' '.join(terms)} on page {30 + number}?"
    units = [unit("own", "Document d: ", page(each, at)) for at, each in enumerate(pages)]
    padding = [unit("padding", "Document e: ", "nothing")] * (8 - shown)
    answers = ("Not answerable",) if is_no else (f"a{number}",)
    asking = asked(f"q{number}", question, *units, *padding, subject=f"d{number // 2}", answers=answers)
    return replace(asking, pages=tuple(range(shown)))


def findings(planted: str = "", share: float = 0.0) -> dict[str, Finding]:
    return refusals([context(number, planted, share) for number in range(N)])


def refusals(questions: list[AskedQuestion]) -> dict[str, Finding]:
    measured = measure_answerable(
        [each.id for each in questions],
        [each.cluster for each in questions],
        [each.question for each in questions],
        [each.answer for each in questions],
        [shown_in(each, None) for each in questions],
    )
    return {each.kind: judged(each) for each in measured if each}


@pytest.mark.parametrize("share", [1.0, 0.7, 0.5])
@pytest.mark.parametrize(
    ("planted", "kind"), [("words", SHOWN), ("pages", SHOWN), ("question", QUESTION), ("named", NAMED)]
)
def test_what_tells_that_there_is_no_answer_is_a_leak(planted: str, kind: str, share: float) -> None:
    assert findings(planted, share)[kind].verdict == "leak"


def test_the_evidence_names_what_differs() -> None:
    assert "own pages shown (less)" in findings("pages", 1.0)[SHOWN].evidence
    assert "pages named (more)" in findings("named", 1.0)[NAMED].evidence


def test_drawn_contexts_are_no_leak() -> None:
    kinds = findings()
    assert {SHOWN, QUESTION} <= kinds.keys()
    assert not [each.kind for each in kinds.values() if each.verdict == "leak"]


def test_without_unanswerable_questions_nothing_is_tried() -> None:
    questions = [replace(context(number), answers=(f"a{number}",)) for number in range(30)]
    assert refusals(questions) == {}


def test_a_refusal_is_tried_once_and_the_probes_read_the_pages() -> None:
    kinds = found(context(number, "pages", 1.0) for number in range(60))
    assert {SHOWN, QUESTION} <= kinds.keys()
    assert "answer from the question" not in kinds  # `Not answerable` is the only frequent answer


def test_detectors_know_what_they_do_not_know() -> None:
    shown = shown_of("Which boats left the harbour?", [frozenset({"boats"}), frozenset({"other"})], {0: 4}, document=9)
    values = {name: detect(shown) for name, detect in DETECTORS.items()}
    assert values["number of the question's words on the best page"] == 1
    assert values["pages of other documents are shown"] == 1
    assert values["own pages are off the document's middle"] == 0
    assert values["the document is cut"] == 1
    images = [unit("own", image="1.jpg"), unit("own", image="2.jpg")]
    unknown = shown_in(replace(asked("q", "Which boats?", *images), pages=(4, 5)), None)
    assert unknown is not None
    assert DETECTORS["share of the question's words on the best page"](unknown) is None
    assert DETECTORS["own pages shown"](unknown) == 2


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What is on page 12?", (1, 12)),
        ("What is on the 3rd slide?", (1, 3)),
        ("What does the last page say?", (1, 0)),
        ("What does the second page and page 9 say?", (2, 2)),
        ("How many pages are there?", (0, 0)),
    ],
)
def test_named_pages_are_read(question: str, named: tuple[int, int]) -> None:
    assert of_named(question)[:2] == named

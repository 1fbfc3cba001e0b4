"""The defects that authors of a `question_world` plant into drafts, and the reasons for which each may be caught."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from question_world import Doc, Fact, World, draft_of

from mmlongbench.draws import Draws

Plant = Callable[["World", Doc, int, int, Fact], dict[str, Any]]
"""Changes a draft: the world, the document, the page, the number of the draft, the clean fact."""


@dataclass(frozen=True)
class Defect:
    """A planted defect: which kinds of drafts can have it, and the reasons for which it may be caught."""

    kinds: str
    caught: tuple[str, ...]
    plant: Plant = lambda world, doc, page, n, fact: {}


def _other_value(world: World, doc: Doc, page: int, n: int, fact: Fact) -> dict[str, Any]:
    """Another value that stands on the page, too."""
    return {"answers": [doc.office(page, (n + 1) % 4).answers[0]]}


DEFECTS: Mapping[str, Defect] = {
    "page off by one": Defect(
        "text",
        ("evidence-page-elsewhere",),
        lambda w, d, p, n, f: {"evidence_pages": [p + 1 if p < d.pages else p - 1]},
    ),
    "invented answer": Defect("text", ("ungrounded",), lambda w, d, p, n, f: {"answers": ["Zebulon Crakehall"]}),
    "known without the document": Defect("table", ("answerable-without-document",)),
    "two rows fit": Defect(
        "table",
        ("qualifier-missing",),
        lambda w, d, p, n, f: {"question": re.sub(r" in the (summer|winter) of", " in", f.question)},
    ),
    "asked twice": Defect(
        "table",
        ("duplicate",),
        lambda w, d, p, n, f: _again(w, d, p, f, lambda text: text.upper().replace("?", " ?")),
    ),
    "asked in other words": Defect(
        "text",
        ("near-duplicate",),
        lambda w, d, p, n, f: _again(w, d, p, f, lambda text: f"On the long mole of {d.place(p)}, who acts as keeper?"),
    ),
    "long answer": Defect(
        "text", ("long-form-answer",), lambda w, d, p, n, f: {"answers": ["he who has kept the long mole there"]}
    ),
    "no JSON": Defect("table figure", ("invalid-reply",)),
    "refusal": Defect("table figure", ("refusal",)),
    "page out of range": Defect(
        "table figure", ("page-out-of-range",), lambda w, d, p, n, f: {"evidence_pages": [999]}
    ),
    "page not shown": Defect(
        "table figure", ("page-not-shown",), lambda w, d, p, n, f: {"evidence_pages": [(p + 4) % d.pages + 1]}
    ),
    "answer in the question": Defect(
        "text",
        ("answer-in-question",),
        lambda w, d, p, n, f: {"question": f"Is it {f.answers[0]} who serves {d.place(p)}?"},
    ),
    "points at the page": Defect(
        "table figure",
        ("deictic",),
        lambda w, d, p, n, f: {"question": f.question.replace("?", ", according to this page?")},
    ),
    "preamble": Defect(
        "table", ("preamble",), lambda w, d, p, n, f: {"question": f"Okay, my question would be {f.question}"}
    ),
    "two questions": Defect(
        "text", ("several-questions",), lambda w, d, p, n, f: {"question": f"{f.question} And where does he live?"}
    ),
    "about the file": Defect(
        "text",
        ("document-meta",),
        lambda w, d, p, n, f: {"question": f"How many pages of the document name {d.place(p)}?"},
    ),
    "empty list": Defect("text", ("empty-answer",), lambda w, d, p, n, f: {"answers": [], "answer_format": "List"}),
    "wrong answer of the page": Defect("text", ("evidence-insufficient",), _other_value),
    "one page of two": Defect(
        "cross",
        ("evidence-insufficient", "ungrounded"),
        lambda w, d, p, n, f: {"evidence_pages": [f.pages[0]], "quote": f.quote.split()[0]},
    ),
    "one page suffices": Defect(
        "cross",
        ("shortcut",),
        lambda w, d, p, n, f: {**draft_of(d.cell(f.pages[0], 8 + n % 8)), "evidence_pages": list(f.pages)},
    ),
    "on another page, too": Defect("text", ("evidence-elsewhere",), lambda w, d, p, n, f: draft_of(d.warden(p))),
    "in another document, too": Defect("table figure", ("document-independent",)),
    "of a benchmark": Defect(
        "text",
        ("benchmark-question",),
        lambda w, d, p, n, f: {"question": benchmark_question(d, p).replace("old ", "")},
    ),
    "not of the type": Defect("table figure", ("checklist-type",)),
    "does not need it": Defect("table", ("checklist-need",)),
    "unclear": Defect("table figure", ("checklist-clear",)),
    "too easy": Defect("table figure", ("checklist-difficulty",)),
    "checklist in prose": Defect("table figure", ("invalid-reply",)),
    "list not complete": Defect("text", ("incomplete-answer",), lambda w, d, p, n, f: draft_of(d.partial(p))),
    "readers differ": Defect("table", ("ambiguous",)),
    "readers agree on another": Defect("table", ("answers-disagree",)),
    "judges contradict": Defect("table figure", ("judges-contradict",)),
    "low grades": Defect("table figure", ("low-grade",)),
}
"""All defects of drafts; those of edits are in `EDIT_DEFECTS`."""
EDIT_DEFECTS = {
    "answered after all": "answerable-after-all",
    "two changes": "not-a-minimal-edit",
    "year of the document": "qualifier-in-document",
}


def benchmark_question(doc: Doc, page: int) -> str:
    return (
        f"Who has been the old harbour mason at {doc.place(page)} in all the years since the great autumn storm came?"
    )


def _again(world: World, doc: Doc, page: int, fact: Fact, say: Callable[[str], str]) -> dict[str, Any]:
    """The first question of the page and kind once more."""
    first = doc.cell(page, 0) if fact.sources == ("Table",) else doc.office(page, 0)
    return {**draft_of(first), "question": say(first.question)}


def defect_at(world: World, doc: str, page: int, n: int, kind: str) -> str:
    """The defect of a draft."""
    fitting = [each for each in world.defects if not each or kind in DEFECTS[each].kinds]
    if (n == 0 and world.is_first_clean) or not fitting:
        return ""
    return Draws(("defect", doc, page, kind)).choice(str(n), fitting)

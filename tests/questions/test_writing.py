"""Questions by models, without a server: which documents are used, which slots are drawn, what each check says."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pymupdf
import pytest
from question_world import Doc

from mmlongbench.documents.page_facts import PageFacts
from mmlongbench.io.progress import Progress
from mmlongbench.models.pictures import Picture
from mmlongbench.questions.writing import funnel, model_stages
from mmlongbench.questions.writing.answers import agrees, normal
from mmlongbench.questions.writing.asking import (
    Answered,
    Checklist,
    Desk,
    Drafted,
    Graded,
    Guessed,
    NoAnswer,
    Request,
    Said,
    WritingError,
    WritingSettings,
    read,
)
from mmlongbench.questions.writing.documents import Benchmark, Library, ReadDocument, of_benchmark, read_library
from mmlongbench.questions.writing.funnel import AGAIN, CHECKS, Check, Funnel
from mmlongbench.questions.writing.lines import (
    Candidate,
    DocumentLine,
    Judged,
    PageLine,
    QuotaLine,
    passed,
    rejected,
    revised,
)
from mmlongbench.questions.writing.pages import kind_of
from mmlongbench.questions.writing.quotas import (
    FORMATS,
    MOST,
    balanced,
    minima_of,
    quotas,
    slots,
    without_told,
    words_alone,
)
from mmlongbench.questions.writing.text_checks import (
    decontaminated,
    duplicates,
    static,
    wording_fault,
)

SETTINGS = WritingSettings(authors=("gpt-4o",), checkers=("qwen-2", "claude-3", "gemini-2"))
PAGES = (
    "Annual report of the harbour board. " * 3,
    "The keeper of Quarl Bay is Anna Tolm, who took the post after the storm. 12 boats were lost. 1",
    "The keeper of Nevin Sound is Bert Osk. In 2019 the board paid 4,120 crowns for rope and timber. 2",
    "Barges of all kinds called at the mole, as the clerk wrote in his book of that long year. 3",
)
ROWS = [["Summer"], ["Barges", "12", "14"], ["Winter"], ["Barges", "3", "4"]]


def facts(text: str, key: str = "", rows: list[list[str]] | None = None, **more: Any) -> PageFacts:
    given: dict[str, Any] = {"width": 612.0, "height": 792.0, "raster": 0.0, "drawings": 0, "lost": "", **more}
    return PageFacts(key=key or text[:20], text=text, rows=rows or [], **given)


def document(name: str = "board", pages: tuple[str, ...] = PAGES, **more: Any) -> ReadDocument:
    read_pages = tuple(facts(text, f"{name} {n}" if n == 1 else "") for n, text in enumerate(pages))
    line = DocumentLine(doc=name, sha256=f"{name:0<64}", pages=len(pages), **more)
    return ReadDocument(line, Path(f"{name}.pdf"), read_pages)


def candidate(**changes: Any) -> Candidate:
    given = {
        "slot": "board-text-000",
        "doc": "board",
        "kind": "text",
        "author": "gpt-4o",
        "question": "Who is the keeper of Quarl Bay since the great storm?",
        "answer": ("Anna Tolm",),
        "answer_format": "String",
        "declared": "String",
        "pages": (2,),
        "about": (1, 2, 3),
    }
    return Candidate(**{**given, **changes})


class Silent(Library):
    """Documents whose pages are not drawn."""

    def shown(self, doc: str, pages: Any) -> Any:
        return tuple((f"Page {page}", Picture(Path(doc), str(page))) for page in pages)


def pages_in(request: Request[Any]) -> tuple[int, ...]:
    """The numbers of the pages in a request."""
    return tuple(int(picture.sha256) for _, picture in request.pages)


class Scripted(Desk):
    """A desk whose models answer as a function says."""

    script: Any = None

    def ask(self, request: Request[Any]) -> Any:
        return self.script(request)


def desk(script: Any = None, *documents: ReadDocument, **settings: Any) -> Scripted:
    library = Silent({each.name: each for each in (documents or (document(), document("other")))}, (), Path(), 144)
    client: Any = None
    scripted = Scripted(library, SETTINGS.model_copy(update=settings), client)
    scripted.script = script
    return scripted


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("page-out-of-range", {"pages": (999,)}),
        ("page-out-of-range", {"pages": (0,)}),
        ("page-not-shown", {"pages": (4,)}),
        ("page-not-shown", {"pages": ()}),
        ("long-form-answer", {"answer": ("she who came there after that storm",)}),
        ("long-form-answer", {"answer": ("rope", "one two three four five six"), "declared": "List"}),
        ("long-form-answer", {"answer": ("-".join(["keeper"] * 13),)}),
        ("long-form-answer", {"answer": ("rope", "x" * 81), "declared": "List"}),
        ("empty-answer", {"answer": (), "declared": "List"}),
        ("empty-answer", {"answer": ("[]",), "declared": "List"}),
        ("unknown-answer-format", {"declared": "Sentence"}),
        ("answer-of-format-none", {"answer": ("Not answerable",)}),
        ("answer-in-question", {"question": "Is Anna Tolm the keeper of Quarl Bay?"}),
        ("deictic", {"question": "Who is the keeper in the table above, of Quarl Bay?"}),
        ("deictic", {"question": "Who is named as the keeper on this page?"}),
        ("deictic", {"question": "According to the provided image, who is the keeper?"}),
        ("document-meta", {"question": "How many pages does the PDF document have?"}),
        ("preamble", {"question": "Sure thing, who is the keeper of Quarl Bay?"}),
        ("several-questions", {"question": "Who is the keeper of Quarl Bay? And since when?"}),
        ("length", {"question": "Who keeps it?"}),
        ("ungrounded", {"answer": ("Cora Vint",)}),
    ],
)
def test_what_is_wrong_with_a_draft(reason: str, changes: dict[str, Any]) -> None:
    assert static(candidate(**changes), desk()).reason == reason


def test_a_draft_that_is_right_passes_and_evidence_elsewhere_or_a_printed_number_is_repaired() -> None:
    def located(found: Judged) -> tuple[str, str, tuple[int, ...], str]:
        assert found.candidate is not None
        return found.outcome, found.reason, found.candidate.pages, found.candidate.grounding

    assert located(static(candidate(), desk())) == ("passed", "", (2,), "located")
    assert located(static(candidate(pages=(3,)), desk()))[:3] == ("revised", "evidence-page-elsewhere", (2,))
    shifted = document(pages=(*PAGES[:1], f"{PAGES[1][:-1]} 17", f"{PAGES[2][:-1]} 18", PAGES[3]))
    found = static(candidate(pages=(17,)), desk(None, shifted))
    assert located(found)[2] == (2,)
    assert found.candidate
    assert "printed-page-number" in found.candidate.repairs


def test_a_word_that_names_a_table_is_not_deictic() -> None:
    for question in (
        "What is the figure for barges in Table 3 on page 4?",
        "Great Quarl had how many boats in 1903?",
        "Which map of the harbour shows the old mole?",
    ):
        assert wording_fault(candidate(question=question)) is None


def test_rows_of_one_label_need_a_word_that_tells_them_apart() -> None:
    page = facts(PAGES[1] + " barges 12 14 3 4 summer winter", rows=ROWS)
    doc = replace(document(), pages=(facts(PAGES[0]), page, *document().pages[2:]))
    asked = {"kind": "table", "answer": ("12",), "declared": "Integer"}
    loose = candidate(question="How many barges called at Quarl Bay in the first year?", **asked)
    told = candidate(question="How many barges called at Quarl Bay in the first summer?", **asked)
    assert static(loose, desk(None, doc)).reason == "qualifier-missing"
    assert static(told, desk(None, doc)).outcome == "passed"


def test_a_minimal_edit_changes_one_qualifier_that_the_document_does_not_have() -> None:
    def edit(question: str) -> str:
        was = "How much did the board pay for rope in 2019?"
        made = candidate(
            kind="unanswerable", question=question, was=was, answer=("Not answerable",), answer_format="None"
        )
        return static(made.model_copy(update={"pages": (), "parent": "board-text-001"}), desk()).reason

    assert edit("How much did the board pay for rope in 2016?") == ""
    assert edit("How much did the board pay for rope in 12?") == "qualifier-in-document"
    assert edit("How much did a board pay for rope in 2016?") == "not-a-minimal-edit"
    assert edit("How much did the board pay for rope in 2019?") == "not-a-minimal-edit"


def test_the_smaller_slot_survives_in_any_order() -> None:
    first, same = (
        candidate(slot="a"),
        candidate(slot="b", question="WHO is the keeper of Quarl Bay, since the great storm"),
    )
    reworded = candidate(slot="c", question="Since the great storm, who has been keeper of Quarl Bay?")
    another = candidate(
        slot="d", question="Who is the keeper of Nevin Sound since the great storm?", answer=("Bert Osk",), pages=(3,)
    )
    other_year = candidate(slot="e", question="Who is the keeper of Quarl Bay since the great storm of 1903?")
    for order in ([first, same, reworded, another, other_year], [other_year, another, reworded, same, first]):
        found = {line.slot: line.reason for line in duplicates(order)}
        assert found == {"a": "", "b": "duplicate", "c": "near-duplicate", "d": "", "e": ""}


def test_a_named_benchmark_takes_out_questions_pages_and_documents() -> None:
    near = "Who is the keeper of the Quarl Bay since the great storm?"
    known = Benchmark("known", (("line 3", near),), (("board", ""),), {"board 1": "theirs", PAGES[2][:20]: "theirs"})
    against = desk()
    against.library = replace(against.library, benchmarks=(known,))
    assert decontaminated(candidate(pages=(4,)), against).reason == "benchmark-question"
    far = {"question": "What did the board pay for rope and timber in the year 2019?"}
    assert decontaminated(candidate(pages=(3,), **far), against).reason == "benchmark-page"
    assert decontaminated(candidate(pages=(4,), **far), against).outcome == "passed"
    assert of_benchmark(document(), [known]) == "known has board"
    assert of_benchmark(document("another"), [Benchmark("known", keys={PAGES[3][:20]: "x"})]) == ""


@pytest.mark.parametrize(
    ("gold", "said", "format", "is_same"),
    [
        (["4,120"], ["4120 crowns"], "Integer", True),
        (["4120"], ["4121"], "Integer", False),
        (["12.5%"], ["0.125"], "Float", True),
        (["12.5"], ["1250"], "Float", False),
        (["3.42"], ["3.44"], "Float", True),
        (["Anna Tolm"], ["anna tolm."], "String", True),
        (["Anna Tolm"], ["Anna Tolma"], "String", True),
        (["Route 61"], ["Route 66"], "String", False),
        (["a", "b"], ["b", "a"], "List", True),
        (["a", "b"], ["a"], "List", False),
        (["Anna"], [], "String", False),
        (["Anna"], ["Anna", "Bert"], "String", False),
    ],
)
def test_one_function_says_whether_answers_agree(gold: list[str], said: list[str], format: Any, is_same: bool) -> None:
    assert agrees(gold, said, format) is is_same


def test_formats_are_repaired_by_name() -> None:
    assert normal(["21%"], "Int") == normal(["21%"], "integer")
    assert getattr(normal(["21%"], "Integer"), "format", "") == "Float"
    assert getattr(normal(["red", "blue"], "String"), "repairs", ()) == ("string-to-list",)
    assert isinstance(normal([""], "String"), tuple)
    assert [isinstance(normal(["ж" * letters], "String"), tuple) for letters in (80, 81)] == [False, True]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Said(text="Yes. All four hold."), "invalid-reply"),
        (Said(text='{"reason": "x", "grade": 9}'), "invalid-reply"),
        (Said(text='{"reason": "x", "grade": "4"}'), "invalid-reply"),
        (Said(text='{"reason": "x", "grade": 4} and {"reason": "cut'), "invalid-reply"),
        (Said(text='{"reason": "x", "grade": 4}', finish_reason="length"), "invalid-reply"),
        (Said(text=""), "invalid-reply"),
        (Said(text="I’m sorry, but I can’t do that."), "refusal"),
        (Said(text="No.", is_refusal=True), "refusal"),
    ],
)
def test_replies_without_the_form_are_no_answers(said: Said, reason: str) -> None:
    found = read(said, Graded)
    assert isinstance(found, NoAnswer)
    assert found.reason == reason


def test_the_last_object_of_a_reply_counts_and_has_the_form() -> None:
    said = Said(text='First {"reason": "a", "grade": 1}, then {"reason": "b", "grade": 4}')
    assert read(said, Graded) == Graded(reason="b", grade=4)
    assert isinstance(read(Said(text="{}"), Drafted), NoAnswer)


def answers(*values: str, pages: tuple[int, ...] = ()) -> Answered:
    return Answered(reason="", is_answerable=bool(values), answers=list(values), pages=list(pages))


def by_pages(said: dict[tuple[int, ...], Answered]) -> Any:
    """A model that answers as its pages say; nothing otherwise."""

    def ask(request: Request[Any]) -> Any:
        pages = pages_in(request)
        return said.get(pages, answers())

    return ask


def test_a_page_that_gives_the_answer_too_is_recorded_and_the_question_stays() -> None:
    ask = by_pages({(1, 3, 4): answers("Anna Tolm", pages=(4,)), (4,): answers("Anna Tolm", pages=(4,))})
    found = model_stages.necessity(candidate(), desk(ask))
    assert (found.outcome, found.reason) == ("revised", "evidence-elsewhere")
    assert found.candidate is not None
    assert found.candidate.alternatives == (4,)


def test_pages_that_repeat_an_evidence_page_are_not_shown_but_recorded() -> None:
    pages = document().pages
    repeated = replace(document(), pages=(*pages, pages[1]))
    asked: list[tuple[int, ...]] = []

    def ask(request: Request[Any]) -> Any:
        asked.append(pages_in(request))
        return answers()

    found = model_stages.necessity(candidate(), desk(ask, repeated))
    assert found.candidate is not None
    assert found.candidate.alternatives == (5,)
    assert asked == [(1, 3, 4)]


def test_a_page_that_is_not_needed_leaves_the_evidence() -> None:
    found = model_stages.each_page(candidate(kind="cross", pages=(2, 3)), desk(by_pages({(2,): answers("Anna Tolm")})))
    assert (found.outcome, found.reason) == ("revised", "shortcut")
    assert found.candidate is not None
    assert (found.candidate.pages, found.candidate.kind) == ((2,), "text")


def test_figures_that_models_cannot_read_are_held_and_others_rejected() -> None:
    nothing = by_pages({})
    assert model_stages.sufficiency(candidate(), desk(nothing)).outcome == "rejected"
    assert model_stages.sufficiency(candidate(kind="figure"), desk(nothing)).outcome == "held"


def test_small_numbers_count_as_known_if_two_of_three_guesses_are_right() -> None:
    def guesses(*values: str) -> Any:
        left = list(values)
        return lambda request: Guessed(reason="", answers=[left.pop(0)])

    small = candidate(answer=("12",), answer_format="Integer")
    assert model_stages.without_document(small, desk(guesses("12", "7", "9"))).outcome == "passed"
    assert model_stages.without_document(small, desk(guesses("12", "7", "12"))).reason == "answerable-without-document"
    assert model_stages.without_document(candidate(), desk(guesses("Anna Tolm"))).outcome == "rejected"


def test_another_document_with_another_answer_is_noted_or_rejected() -> None:
    firm = by_pages({(2,): answers("Somebody Else")})
    assert model_stages.wrong_document(candidate(), desk(firm)).reason == "anchor-weak"
    assert model_stages.wrong_document(candidate(), desk(firm, strict_anchor=True)).outcome == "rejected"
    alone = desk(firm, document())
    assert model_stages.wrong_document(candidate(), alone).detail == "there is no other document"


def test_a_checklist_without_four_verdicts_never_passes() -> None:
    asked: list[str] = []

    def prose(request: Request[Any]) -> Any:
        asked.append(request.model)
        return NoAnswer("invalid-reply", "no JSON object")

    found = model_stages.checklist(candidate(), desk(prose))
    assert (found.outcome, found.reason) == ("rejected", "invalid-reply")
    assert len({*asked}) == 2
    assert "gpt-4o" not in asked
    held = {name: True for name in Checklist.model_fields if not name.endswith("reason")}
    reasons = {name: "" for name in Checklist.model_fields if name.endswith("reason")}
    for reason, verdict, _ in model_stages.ITEMS:
        failing = Checklist.model_validate({**reasons, **held, verdict: False})
        assert model_stages.checklist(candidate(), desk(lambda request, failing=failing: failing)).reason == reason


def test_models_that_differ_and_judges_that_contradict_each_other_leave_the_decision_to_people() -> None:
    def say(qwen: str, claude: str, gemini: str) -> tuple[str, str]:
        said = {"qwen": qwen, "claude": claude, "gemini": gemini}
        ask = desk(lambda request: answers(said[request.model.partition("-")[0]]))
        found = model_stages.round_trip(candidate(), ask)
        return found.outcome, found.reason

    right, wrong = "Anna Tolm", "Quite Another"
    assert say(right, right, right) == ("passed", "all")
    assert say(wrong, wrong, wrong) == ("held", "answers-disagree")
    assert say("Cora Vint", "Dora Elm", "Emil Frey") == ("held", "ambiguous")

    def grade(qwen: int, claude: int, gemini: int) -> Judged:
        said = {"qwen": qwen, "claude": claude, "gemini": gemini}
        ask = desk(lambda request: Graded(reason="", grade=said[request.model.partition("-")[0]]))
        return model_stages.grades(candidate(), ask)

    found = grade(5, 1, 5)
    assert (found.outcome, found.reason) == ("held", "judges-contradict")
    assert "mean 3.67, spread 4" in found.detail
    assert grade(4, 3, 4).reason == "low-grade"
    assert grade(4, 5, 4).outcome == "passed"


def test_an_unanswerable_question_is_asked_of_every_page() -> None:
    asked: list[int] = []
    made = candidate(kind="unanswerable", answer=("Not answerable",), answer_format="None", pages=())

    def ask(request: Request[Any]) -> Any:
        asked.extend(pages_in(request))
        return answers()

    long = document(pages=tuple(f"{PAGES[1]} {n}" for n in range(45)))
    assert model_stages.whole_document(made, desk(ask, long)).outcome == "passed"
    assert {*asked} == {*range(1, 46)}
    assert len(asked) == 45 + model_stages.RANKED
    assert (
        model_stages.whole_document(made, desk(lambda request: answers("here", pages=(3,)), long)).reason
        == "answerable-after-all"
    )


def test_a_question_about_all_pages_is_held_if_no_model_gives_a_usable_reply() -> None:
    nothing = candidate(kind="unanswerable", answer=("Not answerable",), answer_format="None", pages=())
    listed = candidate(answer_format="List", answer=("a", "b"))
    for made in (nothing, listed):
        found = model_stages.whole_document(made, desk(lambda request: NoAnswer("refusal", "no")))
        assert (found.outcome, found.reason) == ("held", "unchecked-whole-document")
    refused = list[str]()

    def second_alone(request: Request[Any]) -> Any:
        refused.append(request.model)
        return NoAnswer("refusal", "no") if request.model == refused[0] else answers("here", pages=(3,))

    assert model_stages.whole_document(nothing, desk(second_alone)).reason == "answerable-after-all"


def test_kinds_of_pages_have_reasons() -> None:
    table = [["", "2019", "2020"], ["Barges", "12", "14"], ["Tugs", "3", "4"], ["Sum", "15", "18"]]
    long = "Words of a paragraph about the harbour, the mole and the tide. " * 15
    assert kind_of(facts("", raster=0.0), 2)[0] == ("blank",)
    damaged = kind_of(facts("Rope and timber of the board. " * 40, lost="padding truncated image"), 2)
    assert damaged == (("damaged",), 0.0, ("padding truncated image",))
    assert kind_of(facts("", raster=0.9), 2)[0] == ("scan",)
    assert set(kind_of(facts(long, rows=table), 2)[0]) == {"text", "table"}
    assert "figure" in kind_of(facts(f"{long}\nFigure 3: depths"), 2)[0]
    assert kind_of(facts("\n".join(f"Chapter {n} ........ {n * 4}" for n in range(9))), 2)[0] == ("contents",)
    assert kind_of(facts(long), 1)[1] == 0
    assert kind_of(facts(long, key="k"), 3, {"k"})[1] == 0
    for found in (kind_of(facts(long, rows=table), 2), kind_of(facts("", raster=0.9), 2)):
        assert found[2]


def test_a_page_has_at_most_two_questions_and_the_rest_is_surplus() -> None:
    passed = [candidate(slot=f"{n}", kind=kind) for n, kind in enumerate(("text", "text", "table", "figure"))]
    quotas = [QuotaLine(doc="board", kind=kind, wanted=2, least=0, slots=4) for kind in ("text", "table", "figure")]
    chosen, surplus = balanced(passed, quotas, 0)
    assert len(chosen) == 2
    assert len({each.kind for each in chosen}) == 2
    assert len(chosen) + len(surplus) == 4


def test_an_author_needs_a_model_of_another_family() -> None:
    with pytest.raises(WritingError, match="no model of another family"):
        WritingSettings(authors=("gpt-4o", "gpt-5")).check()
    WritingSettings(authors=("gpt-4o",), checkers=("qwen-2",)).check()


def draw(path: bytes, text: str) -> None:
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 72), text)
        data = document.tobytes()
    with open(path, "wb") as file:  # noqa: PTH123  (a path of bytes)
        file.write(data)


def test_a_copy_and_a_name_that_is_not_utf_8_are_left_out_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    draw(os.fsencode(folder / "board.pdf"), "The keeper of Quarl Bay is Anna Tolm.")
    (folder / "copy of board.pdf").write_bytes((folder / "board.pdf").read_bytes())
    draw(os.fsencode(folder) + b"/r\xe9port.pdf", "Another document.")
    found = read_library(folder, None, tmp_path / "kept", 72, "", Progress(False))
    assert [*found.documents] == ["board"]
    assert {line.doc: line.reason for line in found.left_out} == {
        "copy of board": "same-bytes",
        "r\\xe9port": "name-not-unicode",
    }
    assert "board" in next(line.detail for line in found.left_out if line.reason == "same-bytes")
    assert all(line.model_dump_json() for line in found.left_out)


def test_a_question_whose_evidence_is_revised_is_probed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two questions lose a page; one of them is then known without the document, which ends it."""
    asked: list[tuple[str, str, tuple[int, ...]]] = []

    def doing(name: str) -> Any:
        def one(candidate: Candidate, desk: Desk) -> Judged:
            asked.append((name, candidate.slot, candidate.pages))
            if name == "each-page" and candidate.slot != "c" and len(candidate.pages) == 2:
                return revised(candidate, "shortcut", "", pages=candidate.pages[:1])
            if name == "no-document" and candidate.slot == "a" and len(candidate.pages) == 1:
                return rejected(candidate.slot, "answerable-without-document", "")
            return passed(candidate)

        return one

    def quiet(check: Check) -> Check:
        return replace(check, judge=doing(check.name), is_for="all")

    monkeypatch.setattr(funnel, "CHECKS", [quiet(check) for check in CHECKS])
    library = Library({}, (), tmp_path, 72)
    client: Any = SimpleNamespace(settings=SimpleNamespace(concurrency=1), stop=lambda: None)
    runner = Funnel(library, WritingSettings(authors=("gpt-4o",)), client, tmp_path, Progress(False))
    questions = [candidate(slot=slot, kind="cross", pages=(1, 2), about=(1, 2)) for slot in "abc"]
    found = runner.checked(questions, "drafts")
    assert [(each.slot, each.pages) for each in found] == [("b", (1,)), ("c", (1, 2))]
    again = [name for name, slot, pages in asked if slot == "b" and len(pages) == 1]
    assert again == [*AGAIN, "whole-document", "round-trip", "grades"]
    assert not [name for name, slot, _ in asked if slot == "a" and name in ("round-trip", "grades")]
    assert len([name for name, slot, _ in asked if slot == "c"]) == len(CHECKS)


AUTHORS = WritingSettings(authors=("gpt-4o", "claude-3", "gemini-2"))


def empty(name: str, pages: int, doc_type: str = "") -> ReadDocument:
    """A document whose pages have no text."""
    line = DocumentLine(doc=name, sha256=name * 8, pages=pages, doc_type=doc_type)
    return ReadDocument(line, Path(f"{name}.pdf"), (PageFacts("", "", 1.0, 1.0, 0.0, 0, [], ""),) * pages)


def lines(doc: ReadDocument, *kinds: str) -> list[PageLine]:
    return [
        PageLine(doc=doc.name, page=n, key=f"{n}", kinds=kinds, worth=0.0 if n == 1 else 0.7, why=())
        for n in range(1, len(doc.pages) + 1)
    ]


@pytest.mark.parametrize(
    "doc_type", ["Financial report", "Academic paper", "Brochure", "Guidebook", "Tutorial/Workshop", ""]
)
def test_minima_of_the_type_are_wanted(doc_type: str) -> None:
    doc = empty("a", 30, doc_type)
    pages = lines(doc, "text", "table", "figure")
    found = {quota.kind: quota for quota in quotas(doc, pages, AUTHORS)}
    least = minima_of(doc_type)
    assert sum(quota.wanted for quota in found.values()) >= least["all"]
    assert found["cross"].wanted >= least["cross"]
    assert least["unanswerable"] <= found["unanswerable"].wanted
    assert least["table"] <= (found["table"].wanted if "table" in found else 0)
    assert least["figure"] <= (found["figure"].wanted if "figure" in found else 0)
    assert all(quota.slots >= 2 * quota.wanted and not quota.why_fewer for quota in found.values())


def test_what_a_document_does_not_have_is_said() -> None:
    doc = empty("a", 3, "Financial report")
    found = {quota.kind: quota for quota in quotas(doc, lines(doc, "text"), AUTHORS)}
    assert (found["table"].slots, found["table"].why_fewer) == (0, "0 pages with this content")
    assert found["text"].slots > 0


def test_formats_authors_and_fifths_have_their_shares() -> None:
    settings = AUTHORS.model_copy(update={"per_document": 60})
    drawn = []
    for number in range(6):
        doc = empty(f"d{number}", 40)
        pages = lines(doc, "text", "table", "figure")
        drawn += list(slots(doc, pages, quotas(doc, pages, settings), settings))
    answerable = [slot for slot in drawn if slot.kind != "unanswerable"]
    formats = Counter(slot.format for slot in answerable)
    for format, share in FORMATS.items():
        assert abs(formats[format] / len(answerable) - share) < 0.02
    authors = Counter(slot.author for slot in drawn)
    assert min(authors.values()) > 0.25 * len(drawn)
    fifths = Counter((slot.pages[0] - 1) // 8 for slot in answerable)
    assert all(0.12 <= fifths[fifth] / len(answerable) <= 0.30 for fifth in range(5))
    assert len({(slot.doc, slot.kind, slot.pages, slot.number) for slot in answerable}) == len(answerable)
    assert len({slot.id for slot in drawn}) == len(drawn)


def test_a_window_stays_inside_the_empty() -> None:
    doc = empty("a", 5)
    pages = lines(doc, "text")
    found = [slot for slot in slots(doc, pages, quotas(doc, pages, AUTHORS), AUTHORS) if slot.kind == "cross"]
    assert found
    assert all(len(slot.pages) == 2 and slot.pages[-1] <= 5 for slot in found)


DOCS = [Doc(f"harbours-{number}", 9) for number in range(30)]


def question(doc: Doc, page: int, n: int, *, edit: str = "") -> Candidate:
    """A question about a table, or an edit of it to another year."""
    fact, is_edit = doc.cell(page, n), bool(edit)
    return candidate(
        slot=f"{doc.name}-{page}-{n}-{is_edit}",
        doc=doc.name,
        kind="unanswerable" if is_edit else "table",
        question=fact.question.replace(fact.question[-5:-1], edit) if is_edit else fact.question,
        answer=fact.answers,
        answer_format="None" if is_edit else "Integer",
        pages=(),
        about=(page,),
    )


def questions(*, tells: bool) -> list[Candidate]:
    found = []
    for at, doc in enumerate(DOCS):
        other = next(each for each in DOCS[at + 1 :] + DOCS[:at] if each.years != doc.years)
        found += [question(doc, page, page) for page in range(2, 9)]
        found += [
            question(doc, page, page + 3, edit="1804" if tells else str(other.years[page % 4])) for page in (3, 6)
        ]
    return found


def told(questions: list[Candidate]) -> set[str]:
    return {line.slot for line in without_told(questions) if line.outcome == "rejected"}


def test_an_edit_like_the_questions_of_other_documents_is_not_told_and_a_word_that_only_edits_have_is() -> None:
    same, other = words_alone(questions(tells=False))[0], words_alone(questions(tells=True))[0]
    assert same.area is not None
    assert other.area is not None
    assert same.area <= MOST < 0.9 < other.area
    assert (same.is_told, other.is_told) == (False, True)
    assert told(questions(tells=False)) == set()
    few = [question(DOCS[0], 2, 0)]
    assert (words_alone(few)[0].area, words_alone(few)[0].is_undecided, told(few)) == (None, True, set())


def test_edits_that_are_told_are_dropped_until_no_word_tells() -> None:
    """The edits of every other document have a word of their own; the others are like questions of other documents."""
    plain, telling = questions(tells=False), questions(tells=True)
    edits = [each.slot for each in plain if not each.is_answerable]
    marked = {slot for at, slot in enumerate(edits) if at // 2 % 2}
    mixed = [new if new.slot in marked else old for old, new in zip(plain, telling, strict=True)]
    assert words_alone(mixed)[0].is_told
    dropped = told(mixed)
    assert dropped <= set(edits)
    assert len(dropped & marked) > 0.8 * len(dropped)
    left, _ = words_alone([each for each in mixed if each.slot not in dropped])
    assert not left.is_told
    assert told(mixed[::-1]) == dropped

"""What the checks say about single questions, without a server: wording, pages, answers, evidence, replies."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmlongbench.documents.page_facts import PageFacts
from mmlongbench.models.pictures import Picture
from mmlongbench.questions.writing import agreement, checklist, probes, whole
from mmlongbench.questions.writing.answers import Faulty, agrees, normal
from mmlongbench.questions.writing.asking import NoAnswer, Request, Said, Shown, read
from mmlongbench.questions.writing.balance import balanced
from mmlongbench.questions.writing.context import Context, Rankings
from mmlongbench.questions.writing.decontamination import Benchmark, of_document, of_question
from mmlongbench.questions.writing.documents import Library, ReadDocument
from mmlongbench.questions.writing.forms import Answered, Checklist, Drafted, Graded, Guessed
from mmlongbench.questions.writing.kinds import kind_of
from mmlongbench.questions.writing.lines import Candidate, DocumentLine, QuotaLine
from mmlongbench.questions.writing.near import without_duplicates
from mmlongbench.questions.writing.settings import WritingError, WritingSettings
from mmlongbench.questions.writing.statics import check, wording_fault

SETTINGS = WritingSettings(authors=("gpt-4o",), checkers=("qwen-2", "claude-3", "gemini-2"))
PAGES = (
    "Annual report of the harbour board. " * 3,
    "The keeper of Quarl Bay is Anna Tolm, who took the post after the storm. 12 boats were lost. 1",
    "The keeper of Nevin Sound is Bert Osk. In 2019 the board paid 4,120 crowns for rope and timber. 2",
    "Barges of all kinds called at the mole, as the clerk wrote in his book of that long year. 3",
)
ROWS = [["Summer"], ["Barges", "12", "14"], ["Winter"], ["Barges", "3", "4"]]


def facts(text: str, key: str = "", rows: list[list[str]] | None = None, **more: Any) -> PageFacts:
    given: dict[str, Any] = {"width": 612.0, "height": 792.0, "raster": 0.0, "drawings": 0, **more}
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
        return tuple(Shown(f"Page {page}", Picture(Path(doc), str(page))) for page in pages)


def pages_in(request: Request[Any]) -> tuple[int, ...]:
    """The numbers of the pages in a request."""
    return tuple(int(each.picture.sha256) for each in request.pages)


def context(ask: Any = None, *documents: ReadDocument, **settings: Any) -> Context:
    library = Silent({each.name: each for each in (documents or (document(), document("other")))}, (), Path(), 144)
    return Context(library, SETTINGS.model_copy(update=settings), Rankings(library), ask)


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
    assert check(candidate(**changes), context()).reason == reason


def test_a_draft_that_is_right_passes_and_is_located() -> None:
    found = check(candidate(), context())
    assert found.outcome == "passed"
    assert found.candidate is not None
    assert found.candidate.grounding == "located"


def test_an_answer_on_exactly_one_other_page_moves_the_evidence() -> None:
    found = check(candidate(pages=(3,)), context())
    assert (found.outcome, found.reason) == ("revised", "evidence-page-elsewhere")
    assert found.candidate is not None
    assert found.candidate.pages == (2,)


def test_a_printed_page_number_counts_as_the_label() -> None:
    shifted = document(pages=(*PAGES[:1], f"{PAGES[1][:-1]} 17", f"{PAGES[2][:-1]} 18", PAGES[3]))
    found = check(candidate(pages=(17,)), context(None, shifted))
    assert found.candidate is not None
    assert found.candidate.pages == (2,)
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
    assert check(loose, context(None, doc)).reason == "qualifier-missing"
    assert check(told, context(None, doc)).outcome == "passed"


def test_a_minimal_edit_changes_one_qualifier_that_the_document_does_not_have() -> None:
    def edit(question: str) -> str:
        was = "How much did the board pay for rope in 2019?"
        made = candidate(
            kind="unanswerable", question=question, was=was, answer=("Not answerable",), answer_format="None"
        )
        return check(made.model_copy(update={"pages": (), "parent": "board-text-001"}), context()).reason

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
        found = {line.slot: line.reason for line in without_duplicates(order)}
        assert found == {"a": "", "b": "duplicate", "c": "near-duplicate", "d": "", "e": ""}


def test_a_named_benchmark_takes_out_questions_pages_and_documents() -> None:
    near = "Who is the keeper of the Quarl Bay since the great storm?"
    known = Benchmark("known", (("line 3", near),), (("board", ""),), {"board 1": "theirs", PAGES[2][:20]: "theirs"})
    assert of_question(candidate(pages=(4,)), context(), [known]).reason == "benchmark-question"
    far = {"question": "What did the board pay for rope and timber in the year 2019?"}
    assert of_question(candidate(pages=(3,), **far), context(), [known]).reason == "benchmark-page"
    assert of_question(candidate(pages=(4,), **far), context(), [known]).outcome == "passed"
    assert of_document(document(), [known]) == ("benchmark-document", "known has board")
    assert of_document(document("another"), [Benchmark("known", keys={PAGES[3][:20]: "x"})]) is None


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
    assert isinstance(normal([""], "String"), Faulty)


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


def test_the_last_object_of_a_reply_counts() -> None:
    assert read(Said(text='First {"reason": "a", "grade": 1}, then {"reason": "b", "grade": 4}'), Graded) == Graded(
        reason="b", grade=4
    )


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
    found = probes.necessity(candidate(), context(ask))
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

    found = probes.necessity(candidate(), context(ask, repeated))
    assert found.candidate is not None
    assert found.candidate.alternatives == (5,)
    assert asked == [(1, 3, 4)]


def test_a_page_that_is_not_needed_leaves_the_evidence() -> None:
    found = probes.each_page(candidate(kind="cross", pages=(2, 3)), context(by_pages({(2,): answers("Anna Tolm")})))
    assert (found.outcome, found.reason) == ("revised", "shortcut")
    assert found.candidate is not None
    assert (found.candidate.pages, found.candidate.kind) == ((2,), "text")


def test_figures_that_models_cannot_read_are_held_and_others_rejected() -> None:
    nothing = by_pages({})
    assert probes.sufficiency(candidate(), context(nothing)).outcome == "rejected"
    assert probes.sufficiency(candidate(kind="figure"), context(nothing)).outcome == "held"


def test_small_numbers_count_as_known_if_two_of_three_guesses_are_right() -> None:
    def guesses(*values: str) -> Any:
        left = list(values)
        return lambda request: Guessed(reason="", answers=[left.pop(0)])

    small = candidate(answer=("12",), answer_format="Integer")
    assert probes.without_document(small, context(guesses("12", "7", "9"))).outcome == "passed"
    assert probes.without_document(small, context(guesses("12", "7", "12"))).reason == "answerable-without-document"
    assert probes.without_document(candidate(), context(guesses("Anna Tolm"))).outcome == "rejected"


def test_another_document_with_another_answer_is_noted_or_rejected() -> None:
    firm = by_pages({(2,): answers("Somebody Else")})
    assert probes.wrong_document(candidate(), context(firm)).reason == "anchor-weak"
    assert probes.wrong_document(candidate(), context(firm, strict_anchor=True)).outcome == "rejected"
    alone = context(firm, document())
    assert probes.wrong_document(candidate(), alone).detail == "there is no other document"


def test_a_checklist_without_four_verdicts_never_passes() -> None:
    asked: list[str] = []

    def prose(request: Request[Any]) -> Any:
        asked.append(request.model)
        return NoAnswer("invalid-reply", "no JSON object")

    found = checklist.check(candidate(), context(prose))
    assert (found.outcome, found.reason) == ("rejected", "invalid-reply")
    assert len({*asked}) == 2
    assert "gpt-4o" not in asked
    held = {name: True for name in Checklist.model_fields if not name.endswith("reason")}
    reasons = {name: "" for name in Checklist.model_fields if name.endswith("reason")}
    for reason, verdict, _ in checklist.ITEMS:
        failing = Checklist.model_validate({**reasons, **held, verdict: False})
        assert checklist.check(candidate(), context(lambda request, failing=failing: failing)).reason == reason


def test_models_that_differ_leave_the_decision_to_people() -> None:
    def say(**said: str) -> Any:
        return lambda request: answers(said.get(request.model.partition("-")[0], "nobody"))

    right, wrong = "Anna Tolm", "Quite Another"
    of_all = {"qwen": right, "claude": right, "gemini": right}
    assert agreement.round_trip(candidate(), context(say(**of_all))).reason == "all"
    agree = agreement.round_trip(candidate(), context(say(qwen=wrong, claude=wrong, gemini=wrong)))
    assert (agree.outcome, agree.reason) == ("held", "answers-disagree")
    differ = agreement.round_trip(candidate(), context(say(qwen="Cora Vint", claude="Dora Elm", gemini="Emil Frey")))
    assert (differ.outcome, differ.reason) == ("held", "ambiguous")


def test_judges_that_contradict_each_other_leave_the_decision_to_people() -> None:
    def grade(**grades: int) -> Any:
        return lambda request: Graded(reason="", grade=grades[request.model.partition("-")[0]])

    found = agreement.grades(candidate(), context(grade(qwen=5, claude=1, gemini=5)))
    assert (found.outcome, found.reason) == ("held", "judges-contradict")
    assert "mean 3.67, spread 4" in found.detail
    assert agreement.grades(candidate(), context(grade(qwen=4, claude=3, gemini=4))).reason == "low-grade"
    assert agreement.grades(candidate(), context(grade(qwen=4, claude=5, gemini=4))).outcome == "passed"


def test_an_unanswerable_question_is_asked_of_every_page() -> None:
    asked: list[int] = []
    made = candidate(kind="unanswerable", answer=("Not answerable",), answer_format="None", pages=())

    def ask(request: Request[Any]) -> Any:
        asked.extend(pages_in(request))
        return answers()

    long = document(pages=tuple(f"{PAGES[1]} {n}" for n in range(45)))
    assert whole.check(made, context(ask, long)).outcome == "passed"
    assert {*asked} == {*range(1, 46)}
    assert len(asked) == 45 + whole.RANKED
    assert (
        whole.check(made, context(lambda request: answers("here", pages=(3,)), long)).reason == "answerable-after-all"
    )


def test_a_question_about_all_pages_is_held_if_no_model_gives_a_usable_reply() -> None:
    nothing = candidate(kind="unanswerable", answer=("Not answerable",), answer_format="None", pages=())
    listed = candidate(answer_format="List", answer=("a", "b"))
    for made in (nothing, listed):
        found = whole.check(made, context(lambda request: NoAnswer("refusal", "no")))
        assert (found.outcome, found.reason) == ("held", "unchecked-whole-document")
    refused = list[str]()

    def second_alone(request: Request[Any]) -> Any:
        refused.append(request.model)
        return NoAnswer("refusal", "no") if request.model == refused[0] else answers("here", pages=(3,))

    assert whole.check(nothing, context(second_alone)).reason == "answerable-after-all"


def test_kinds_of_pages_have_reasons() -> None:
    table = [["", "2019", "2020"], ["Barges", "12", "14"], ["Tugs", "3", "4"], ["Sum", "15", "18"]]
    long = "Words of a paragraph about the harbour, the mole and the tide. " * 15
    assert kind_of(facts("", raster=0.0), 2).kinds == ("blank",)
    assert kind_of(facts("", raster=0.9), 2).kinds == ("scan",)
    assert set(kind_of(facts(long, rows=table), 2).kinds) == {"text", "table"}
    assert "figure" in kind_of(facts(f"{long}\nFigure 3: depths"), 2).kinds
    assert kind_of(facts("\n".join(f"Chapter {n} ........ {n * 4}" for n in range(9))), 2).kinds == ("contents",)
    assert kind_of(facts(long), 1).worth == 0
    assert kind_of(facts(long, key="k"), 3, {"k"}).worth == 0
    for found in (kind_of(facts(long, rows=table), 2), kind_of(facts("", raster=0.9), 2)):
        assert found.why


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


def test_a_draft_has_the_form_of_the_protocol() -> None:
    assert isinstance(read(Said(text="{}"), Drafted), NoAnswer)

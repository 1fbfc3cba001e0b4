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
from mmlongbench.models.calls import Picture
from mmlongbench.questions.writing import funnel, lines, model_stages, text_checks
from mmlongbench.questions.writing.answers import agrees, normal
from mmlongbench.questions.writing.asking import (
    Answered,
    Desk,
    Further,
    Graded,
    Guessed,
    NoAnswer,
    Request,
    Said,
    WritingSettings,
    read,
)
from mmlongbench.questions.writing.documents import Benchmark, Library, ReadDocument, of_benchmark, read_library
from mmlongbench.questions.writing.lines import Candidate, DocumentLine, Judged, PageLine, QuotaLine, Slot
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
from mmlongbench.questions.writing.text_checks import static

SETTINGS = WritingSettings(authors=("gpt-4o",), checkers=("qwen-2", "claude-3", "gemini-2"))
PAGES = (
    "Annual report of the harbour board. " * 3,
    "The keeper of Quarl Bay is Anna Tolm, who took the post after the storm. 12 boats were lost. 1",
    "The keeper of Nevin Sound is Bert Osk. In 2019 the board paid 4,120 crowns for rope and timber. 2",
    "Barges of all kinds called at the mole, as the clerk wrote in his book of that long year. 3",
)


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


def unanswerable(**changes: Any) -> Candidate:
    none = {"kind": "unanswerable", "answer": ("Not answerable",), "answer_format": "None", "pages": ()}
    return candidate(**{**none, **changes})


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
    asked: list[tuple[int, ...]]
    """The pages of each request."""

    def ask(self, request: Request[Any]) -> Any:
        self.asked.append(pages_in(request))
        return self.script(request)


def desk(script: Any = None, *documents: ReadDocument, **settings: Any) -> Scripted:
    library = Silent({each.line.doc: each for each in (documents or (document(), document("other")))}, (), Path(), 144)
    client: Any = None
    scripted = Scripted(library, SETTINGS.model_copy(update=settings), client)
    scripted.script, scripted.asked = script, []
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
    shifted = document(pages=(*PAGES[:1], f"{PAGES[1][:-1]} 17", f"{PAGES[2][:-1]} 18", PAGES[3]))
    for pages, docs, outcome, repairs in (
        ((2,), (), "passed", ()),
        ((3,), (), "revised", ("evidence-page-elsewhere",)),
        ((17,), (shifted,), "passed", ("printed-page-number",)),
    ):
        line = static(candidate(pages=pages), desk(None, *docs))
        assert line.candidate
        assert (line.outcome, line.candidate.repairs, line.candidate.pages) == (outcome, repairs, (2,))
        assert line.candidate.grounding == "located"


def test_a_word_that_names_a_table_is_not_deictic() -> None:
    for question in (
        "What is the figure for barges in Table 3 on page 4?",
        "Great Quarl had how many boats in 1903?",
        "Which map of the harbour shows the old mole?",
    ):
        assert text_checks.wording_fault(question, candidate().answer) is None


@pytest.mark.parametrize(("word", "reason"), [("year", "qualifier-missing"), ("summer", "")])
def test_rows_of_one_label_need_a_word_that_tells_them_apart(word: str, reason: str) -> None:
    rows = [["Summer"], ["Barges", "12", "14"], ["Winter"], ["Barges", "3", "4"]]
    page = facts(f"{PAGES[1]} barges 12 14 3 4 summer winter", rows=rows)
    doc = replace(document(), pages=(facts(PAGES[0]), page, *document().pages[2:]))
    question = f"How many barges called at Quarl Bay in the first {word}?"
    asked = candidate(question=question, kind="table", answer=("12",), declared="Integer")
    assert static(asked, desk(None, doc)).reason == reason


def test_the_smaller_slot_survives_in_any_order() -> None:
    asked = [
        candidate(slot="a"),
        candidate(slot="b", question="WHO is the keeper of Quarl Bay, since the great storm"),
        candidate(slot="c", question="Since the great storm, who has been keeper of Quarl Bay?"),
        candidate(slot="d", question="Who is the keeper of Nevin Sound since the great storm?", answer=("Bert Osk",)),
        candidate(slot="e", question="Who is the keeper of Quarl Bay since the great storm of 1903?"),
    ]
    for order in (asked, asked[::-1]):
        reasons = {line.slot: line.reason for line in text_checks.duplicates(order)}
        assert reasons == {"a": "", "b": "duplicate", "c": "near-duplicate", "d": "", "e": ""}


def test_a_named_benchmark_takes_out_questions_pages_and_documents() -> None:
    near = "Who is the keeper of the Quarl Bay since the great storm?"
    far = "What did the board pay for rope and timber in the year 2019?"
    known = Benchmark("known", (("line 3", near),), (("board", ""),), {"board 1": "theirs", PAGES[2][:20]: "theirs"})
    against = desk()
    against.library = replace(against.library, benchmarks=(known,))
    assert text_checks.decontaminated(candidate(pages=(4,)), against).reason == "benchmark-question"
    assert text_checks.decontaminated(candidate(pages=(3,), question=far), against).reason == "benchmark-page"
    assert text_checks.decontaminated(candidate(pages=(4,), question=far), against).outcome == "passed"
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


def answers(*values: str, pages: tuple[int, ...] = ()) -> Answered:
    return Answered(reason="", is_answerable=bool(values), answers=list(values), pages=list(pages))


def test_pages_that_repeat_an_evidence_page_are_not_shown_but_recorded() -> None:
    repeated = replace(document(), pages=(*document().pages, document().pages[1]))
    nothing = desk(lambda request: answers(), repeated)
    line = model_stages.necessity(candidate(), nothing)
    assert line.candidate
    assert line.candidate.alternatives == (5,)
    assert nothing.asked == [(1, 3, 4)]


def test_figures_that_models_cannot_read_are_held_and_others_rejected() -> None:
    nothing = desk(lambda request: answers())
    assert model_stages.sufficiency(candidate(), nothing).outcome == "rejected"
    assert model_stages.sufficiency(candidate(kind="figure"), nothing).outcome == "held"


@pytest.mark.parametrize(
    ("said", "outcome", "reason"),
    [
        (("Anna Tolm",) * 3, "passed", "all"),
        (("Quite Another",) * 3, "held", "answers-disagree"),
        (("Cora Vint", "Dora Elm", "Emil Frey"), "held", "ambiguous"),
    ],
)
def test_models_that_differ_leave_the_decision_to_people(said: tuple[str, ...], outcome: str, reason: str) -> None:
    by_model = dict(zip(SETTINGS.checkers, said, strict=True))
    line = model_stages.round_trip(candidate(), desk(lambda request: answers(by_model[request.model])))
    assert (line.outcome, line.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("answer", "guesses", "outcome"),
    [
        ("12", ("12", "7", "9"), "passed"),
        ("12", ("12", "7", "12"), "rejected"),
        ("Anna Tolm", ("Anna Tolm",), "rejected"),
        ("Anna Tolm", ("Nobody",), "passed"),
    ],
)
def test_small_numbers_count_as_known_if_two_of_three_guesses_are_right(
    answer: str, guesses: tuple[str, ...], outcome: str
) -> None:
    left = iter(guesses)
    asked = candidate(answer=(answer,), answer_format="Integer" if answer.isdecimal() else "String")
    line = model_stages.without_document(asked, desk(lambda request: Guessed(reason="", answers=[next(left)])))
    assert (line.outcome, next(left, "")) == (outcome, "")


def test_another_document_with_another_answer_is_noted_or_rejected() -> None:
    def other(request: Request[Any]) -> Any:
        return answers("Somebody Else")

    assert model_stages.wrong_document(candidate(), desk(other)).reason == "anchor-weak"
    assert model_stages.wrong_document(candidate(), desk(other, strict_anchor=True)).outcome == "rejected"
    alone = model_stages.wrong_document(candidate(), desk(other, document()))
    assert alone.detail == "there is no other document"


def test_an_unanswerable_question_is_asked_of_every_page() -> None:
    long = document(pages=tuple(f"{PAGES[1]} {n}" for n in range(45)))
    nothing = desk(lambda request: answers(), long)
    assert model_stages.whole_document(unanswerable(), nothing).outcome == "passed"
    asked = [page for pages in nothing.asked for page in pages]
    assert {*asked} == {*range(1, 46)}
    assert len(asked) == 45 + model_stages.RANKED


def test_a_question_about_all_pages_is_held_if_no_model_gives_a_usable_reply() -> None:
    refusal = NoAnswer("refusal", "no")
    for asked in (unanswerable(), candidate(answer_format="List", answer=("a", "b"))):
        line = model_stages.whole_document(asked, desk(lambda request: refusal))
        assert (line.outcome, line.reason) == ("held", "unchecked-whole-document")
    models = list[str]()

    def second_alone(request: Request[Any]) -> Any:
        models.append(request.model)
        return refusal if request.model == models[0] else answers("here", pages=(3,))

    assert model_stages.whole_document(unanswerable(), desk(second_alone)).reason == "answerable-after-all"


def test_a_model_does_not_agree_with_itself_that_an_answer_lacks_something() -> None:
    models = list[str]()

    def but_the_first(request: Request[Any]) -> Any:
        models.append(request.model)
        if request.model == models[0]:
            return NoAnswer("refusal", "no")
        return Further(reason="", items=["c"] if request.model == models[1] else [], pages=[3])

    line = model_stages.whole_document(candidate(answer_format="List", answer=("a", "b")), desk(but_the_first))
    assert (line.outcome, line.reason) == ("held", "incomplete-answer")
    assert line.detail == f"{models[1]} alone names c"
    assert len(models) == len({*models}) == 3


LONG = "Words of a paragraph about the harbour, the mole and the tide. " * 15
TABLE = [["", "2019", "2020"], ["Barges", "12", "14"], ["Tugs", "3", "4"], ["Sum", "15", "18"]]


@pytest.mark.parametrize(
    ("page", "number", "kinds", "is_worth"),
    [
        (facts(""), 2, {"blank"}, False),
        (facts(LONG, lost="padding truncated image"), 2, {"damaged"}, False),
        (facts("", raster=0.9), 2, {"scan"}, True),
        (facts(LONG, rows=TABLE), 2, {"text", "table"}, True),
        (facts(f"{LONG}\nFigure 3: depths"), 2, {"text", "figure"}, True),
        (facts("\n".join(f"Chapter {n} ........ {n * 4}" for n in range(9))), 2, {"contents"}, False),
        (facts(LONG), 1, {"text"}, False),
        (facts(LONG, key="boilerplate"), 3, {"text"}, False),
    ],
)
def test_kinds_of_pages_have_reasons(page: PageFacts, number: int, kinds: set[str], is_worth: bool) -> None:
    found, worth, why = kind_of(page, number, {"boilerplate"})
    assert ({*found}, worth > 0) == (kinds, is_worth)
    assert why


def test_a_page_has_at_most_two_questions_and_the_rest_is_surplus() -> None:
    passed = [candidate(slot=f"{n}", kind=kind) for n, kind in enumerate(("text", "text", "table", "figure"))]
    quotas = [QuotaLine(doc="board", kind=kind, wanted=2, least=0, slots=4) for kind in ("text", "table", "figure")]
    chosen, surplus = balanced(passed, quotas, 0)
    assert len(chosen) == 2
    assert len({each.kind for each in chosen}) == 2
    assert len(chosen) + len(surplus) == 4


def test_a_copy_a_link_and_a_name_that_is_not_utf_8_are_left_out_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in ((b"board.pdf", "The keeper of Quarl Bay is Anna Tolm."), (b"r\xe9port.pdf", "Another one.")):
        with pymupdf.open() as document:
            document.new_page().insert_text((72, 72), text)
            Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(document.tobytes())
    (folder / "copy of board.pdf").write_bytes((folder / "board.pdf").read_bytes())
    (tmp_path / "elsewhere.pdf").write_bytes((folder / "board.pdf").read_bytes())
    (folder / "link.pdf").symlink_to(tmp_path / "elsewhere.pdf")
    library = read_library(folder, None, tmp_path / "kept", 72, "", Progress(False))
    assert [*library.documents] == ["board"]
    left_out = {line.doc: (line.reason, line.detail) for line in library.left_out}
    assert left_out["copy of board"] == ("same-bytes", "the bytes of board, which is used")
    assert left_out["r\\xe9port"][0] == "name-not-unicode"
    assert left_out["link"][0] == "path-outside-source"  # a build does not read it, either
    assert all(line.model_dump_json() for line in library.left_out)


def test_a_question_whose_evidence_is_revised_is_probed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two questions lose a page; one of them is then known without the document, which ends it."""
    asked: list[tuple[str, str, tuple[int, ...]]] = []

    def quiet(check: model_stages.Check) -> model_stages.Check:
        def judge(candidate: Candidate, desk: Desk) -> Judged:
            asked.append((check.name, candidate.slot, candidate.pages))
            if check.name == "each-page" and candidate.slot != "c" and len(candidate.pages) == 2:
                return lines.revised(candidate, "shortcut", "", pages=candidate.pages[:1])
            if check.name == "no-document" and candidate.slot == "a" and len(candidate.pages) == 1:
                return lines.rejected(candidate.slot, "answerable-without-document", "")
            return lines.passed(candidate)

        return replace(check, judge=judge, is_for="all")

    monkeypatch.setattr(funnel, "CHECKS", [quiet(check) for check in model_stages.CHECKS])
    client: Any = SimpleNamespace(settings=SimpleNamespace(concurrency=1), stop=lambda: None)
    run = funnel.Funnel(Library({}, (), tmp_path, 72), SETTINGS, client, tmp_path, Progress(False))
    passed = run.checked([candidate(slot=slot, kind="cross", pages=(1, 2), about=(1, 2)) for slot in "abc"], "drafts")
    assert [(each.slot, each.pages) for each in passed] == [("b", (1,)), ("c", (1, 2))]
    again = [name for name, slot, pages in asked if slot == "b" and len(pages) == 1]
    assert again == [*funnel.AGAIN, "whole-document", "round-trip", "grades"]
    assert not [name for name, slot, _ in asked if slot == "a" and name in ("round-trip", "grades")]
    assert len([name for name, slot, _ in asked if slot == "c"]) == len(model_stages.CHECKS)


AUTHORS = WritingSettings(authors=("gpt-4o", "claude-3", "gemini-2"))


def drawn_of(
    name: str, pages: int, *kinds: str, doc_type: str = "", settings: WritingSettings = AUTHORS
) -> tuple[dict[str, QuotaLine], list[Slot]]:
    """The quotas and slots of a document whose pages have some kinds of content; nothing is asked about the first."""
    doc = document(name, ("",) * pages, doc_type=doc_type)
    content = [
        PageLine(doc=name, page=n, key=f"{n}", kinds=kinds, worth=0.0 if n == 1 else 0.7, why=())
        for n in range(1, pages + 1)
    ]
    wanted = quotas(doc, content, settings)
    return {quota.kind: quota for quota in wanted}, list(slots(doc, content, wanted, settings))


@pytest.mark.parametrize(
    "doc_type", ["Financial report", "Academic paper", "Brochure", "Guidebook", "Tutorial/Workshop", ""]
)
def test_minima_of_the_type_are_wanted(doc_type: str) -> None:
    wanted, _ = drawn_of("a", 30, "text", "table", "figure", doc_type=doc_type)
    minima = minima_of(doc_type)
    assert sum(quota.wanted for quota in wanted.values()) >= minima["all"]
    for kind in ("cross", "unanswerable", "table", "figure"):
        assert not minima[kind] or wanted[kind].wanted >= minima[kind]
    assert all(quota.slots >= 2 * quota.wanted and not quota.why_fewer for quota in wanted.values())


def test_what_a_document_does_not_have_is_said_and_a_window_stays_inside_it() -> None:
    wanted, drawn = drawn_of("a", 5, "text", doc_type="Financial report")
    assert (wanted["table"].slots, wanted["table"].why_fewer) == (0, "0 pages with this content")
    windows = [slot.pages for slot in drawn if slot.kind == "cross"]
    assert windows
    assert all(len(pages) == 2 and pages[-1] <= 5 for pages in windows)


def test_formats_authors_and_fifths_have_their_shares() -> None:
    settings = AUTHORS.model_copy(update={"per_document": 60})
    drawn = [slot for n in range(6) for slot in drawn_of(f"d{n}", 40, "text", "table", "figure", settings=settings)[1]]
    answerable = [slot for slot in drawn if slot.kind != "unanswerable"]
    formats = Counter(slot.format for slot in answerable)
    for format, share in FORMATS.items():
        assert abs(formats[format] / len(answerable) - share) < 0.02
    assert min(Counter(slot.author for slot in drawn).values()) > 0.25 * len(drawn)
    fifths = Counter((slot.pages[0] - 1) // 8 for slot in answerable)
    assert all(0.12 <= fifths[fifth] / len(answerable) <= 0.30 for fifth in range(5))
    assert len({(slot.doc, slot.kind, slot.pages, slot.number) for slot in answerable}) == len(answerable)
    assert len({slot.id for slot in drawn}) == len(drawn)


DOCS = [Doc(f"harbours-{number}", 9) for number in range(30)]


def questions(*, tells: bool) -> list[Candidate]:
    """Questions about tables, and edits of some to another year: of another document, or one that only edits have."""
    asked = []
    for at, doc in enumerate(DOCS):
        other = next(each for each in DOCS[at + 1 :] + DOCS[:at] if each.years != doc.years)
        years = {(page, page + 3): "1804" if tells else str(other.years[page % 4]) for page in (3, 6)}
        for page, n in [*((page, page) for page in range(2, 9)), *years]:
            fact, year = doc.cell(page, n), years.get((page, n))
            text = fact.question.replace(fact.question[-5:-1], year) if year else fact.question
            more = {"slot": f"{doc.name}-{page}-{n}", "doc": doc.name, "question": text}
            asked.append(unanswerable(**more) if year else candidate(**more, kind="table", answer_format="Integer"))
    return asked


def told(questions: list[Candidate]) -> set[str]:
    return {line.slot for line in without_told(questions) if line.outcome == "rejected"}


def test_an_edit_like_the_questions_of_other_documents_is_not_told_and_a_word_that_only_edits_have_is() -> None:
    (same, _), (other, _) = words_alone(questions(tells=False)), words_alone(questions(tells=True))
    assert same.area
    assert other.area
    assert same.area <= MOST < 0.9 < other.area
    assert (same.is_told, other.is_told) == (False, True)
    assert told(questions(tells=False)) == set()
    few, _ = words_alone(questions(tells=True)[:1])
    assert (few.area, few.is_undecided, told(questions(tells=True)[:1])) == (None, True, set())


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
    assert not words_alone([each for each in mixed if each.slot not in dropped])[0].is_told
    assert told(mixed[::-1]) == dropped

"""DocVQA: how a document is cut and padded, what the record and the prompt are, held against the published rules."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import Any

import needs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mmlongbench.task as mt
from builders.common import page_number
from builders.docvqa import DocVQA, DocVQAOptions
from builders.docvqa.contexts import page_unit
from builders.docvqa.evidence import NAMES_PAGE
from builders.docvqa.rows import DocumentQuestion, PageLabel
from mmlongbench.lengths import TokenBudget
from mmlongbench.packing.pack import DoesNotFitError, examples
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule())
DRAWS = mt.Draws((42, "mmlongdoc", "mmlongdoc_0"))
RESERVE = 256
INSTRUCTION = (
    "You are given a document with text and images, and a question. Answer the question as concisely as you can, using "
    "a single phrase or sentence if possible. If the question cannot be answered based on the information in the "
    "article, write 'Not answerable.' Write your answer in the following format:\nAnswer: [answer]\n\n"
)


def document(name: str, costs: Sequence[int], sha256: str = "") -> mt.Document:
    """A document whose pages cost so many image tokens each (at least 4)."""
    pages = (
        mt.Page(index, f"mmlongbench-doc/{name}/{name}_page{index}.jpg", 28 * cost, 28)
        for index, cost in enumerate(costs)
    )
    return mt.Document(name, name, sha256 or f"sha of {name}", tuple(pages))


def opened(*documents: mt.Document) -> mt.Sources:
    """Documents whose pages hold no text."""
    texts = {document.name: ("",) * len(document.pages) for document in documents}
    return mt.Sources(
        documents=mt.advanced.Documents(
            {document.id: document for document in documents}, texts=lambda name: texts[name]
        )
    )


def asked(doc: str, pages: Sequence[int] = (), **changed: Any) -> DocumentQuestion:
    fields: dict[str, Any] = {
        "id": "mmlongdoc_0",
        "doc": doc,
        "doc_type": "Guidebook",
        "question": "Which colour has the roof?",
        "answer": ("red",) if pages else ("Not answerable",),
        "answer_format": "String" if pages else "None",
        "pages": tuple(pages),
        "sources": ("Figure",) if pages else (),
    }
    return DocumentQuestion(**(fields | changed))


def builder(page_label: PageLabel = "none", **options: Any) -> DocVQA:
    return DocVQA("mmlongdoc", DocVQAOptions(**{"page_label": page_label, "max_answer_words": 5, **options}))


def packed(row: DocumentQuestion, among: mt.Sources, length: int, task: DocVQA | None = None) -> mt.PackedExample:
    """The one example of a row at a length, recounted."""
    pricer = Pricer(COUNTER, among.sizes)
    draft = (task or builder()).draft(row, among, DRAWS)
    (example,) = examples(draft, TokenBudget(length, RESERVE), (None,), pricer, DRAWS)
    assert pricer.whole(example.prompt) == example.count
    assert example.count.total + RESERVE <= length
    return example


def shown(example: mt.PackedExample) -> list[tuple[str, list[int]]]:
    """(folder, page indexes) of each document in prompt order."""
    found: list[tuple[str, list[int]]] = []
    for path in example.prompt.images:
        folder = path.split("/")[-2]
        if not found or found[-1][0] != folder:
            found.append((folder, []))
        found[-1][1].append(page_number(path))
    return found


def pages_of(runs: str) -> list[int]:
    """The pages that a record's `gaps` name."""
    pairs = [run.split("-") for run in runs.split(", ") if run]
    return [page for first, last in pairs for page in range(int(first), int(last) + 1)]


# Longer than the budget: the published rule of dropping, played page by page


def played(count: int, answers: Sequence[int]) -> Iterator[list[int]]:
    """Return the shown pages of a document, from all pages to the fewest, with one page less each time."""
    pages, side = list(range(count)), "right"
    yield list(pages)
    while len(pages) > max(1, len(answers)):
        open_sides = {side for side, page in (("left", pages[0]), ("right", pages[-1])) if page not in answers}
        if not open_sides:  # both ends are answer pages: drop the page farthest from them
            inner = [page for page in pages if page not in answers]
            pages.remove(max(inner, key=lambda page: (min(abs(page - answer) for answer in answers), page)))
        else:
            side = side if side in open_sides else "left" if side == "right" else "right"
            pages.pop(0 if side == "left" else -1)
            side = "left" if side == "right" else "right"
        yield list(pages)


def test_every_document_is_cut_as_the_rule_says_for_every_set_of_answer_pages() -> None:
    assert list(played(7, [2, 5])) == [
        [0, 1, 2, 3, 4, 5, 6],
        [0, 1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5],
        [2, 3, 4, 5],
        [2, 3, 5],
        [2, 5],
    ]
    for count in range(1, 12):
        pages = [page_unit(f"docs/x/x_page{index}.jpg", index, "none", "own") for index in range(count)]
        for answers in chain.from_iterable(combinations(range(count), size) for size in range(count + 1)):
            required, rest = mt.inside_out(pages, answers)
            order = [unit.data["index"] for unit in (*required, *rest.order)]
            cuts = [sorted(order[:size]) for size in range(count, len(required) - 1, -1)]
            assert cuts == list(played(count, answers)), answers


@st.composite
def cut_documents(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    """(tokens of each page, answer pages, tokens for pages)."""
    costs = draw(st.lists(st.integers(4, 600), min_size=2, max_size=12))
    answers = sorted(draw(st.sets(st.integers(0, len(costs) - 1), max_size=4)))
    return costs, answers, draw(st.integers(0, sum(costs)))


@given(cut_documents())
def test_a_packed_document_is_the_first_cut_that_fits(case: tuple[list[int], list[int], int]) -> None:
    costs, answers, room = case
    alone = opened(document("ISEP_student_handbook", costs))
    pricer = Pricer(COUNTER, alone.sizes)
    row = asked("ISEP_student_handbook", answers)

    def total(pages: list[int]) -> int:
        """Return the tokens of the prompt that shows these pages, computed from the template."""
        lines = "\n\n".join("Document ISEP_student_ha: " for _ in pages)
        question = f"Based on Document ISEP_student_ha, answer the following question. {row.question}"
        text = f"{INSTRUCTION}{lines}\n\nQuestion: {question}\nAnswer:"
        return COUNTER.count(text, [(28 * costs[page], 28) for page in pages]).total

    cuts = list(played(len(costs), answers))
    length = max(total(cuts[-1]), total(cuts[0]) - sum(costs) + room) + RESERVE
    draft = builder(unanswerable_anchor="middle").draft(row, alone, DRAWS)
    (example,) = examples(draft, TokenBudget(length, RESERVE), (None,), pricer, DRAWS)
    expected = next(pages for pages in cuts if total(pages) + RESERVE <= length)
    assert shown(example) == [("ISEP_student_handbook", expected)]
    assert example.count.total == total(expected)
    missing = sorted(set(range(expected[0], expected[-1])) - set(expected))
    assert pages_of(builder().record(example)["gaps"]) == missing


def test_answer_pages_that_do_not_fit_are_an_error_with_numbers() -> None:
    among = opened(document("a", [4000, 4000, 4000]))
    draft = builder().draft(asked("a", [0, 2]), among, DRAWS)
    with pytest.raises(DoesNotFitError, match=r"its 2 required units need 8\d\d\d tokens, with a reserve of 256"):
        examples(draft, TokenBudget(8192, RESERVE), (None,), Pricer(COUNTER, among.sizes), DRAWS)


# Shorter than the budget: other documents left and right


def padding_order(own: mt.Document, among: mt.Sources) -> list[mt.Document]:
    """Return the other documents in drawn order, without those whose label or content is already in the context."""
    laid = [own]
    for other in DRAWS.order("padding", among.documents.usable.values(), lambda found: found.id):
        if all(other.name[:15] != one.name[:15] and other.sha256 != one.sha256 for one in laid):
            laid.append(other)
    return laid[1:]


names = st.builds(
    "{}-{}".format, st.sampled_from(["annual-report-2019", "owners-manual-2170", "deck"]), st.integers(0, 4)
)
others = st.lists(
    st.builds(
        document, names, st.lists(st.integers(4, 400), min_size=1, max_size=6), st.sampled_from(["", "", "", "1", "2"])
    ),
    max_size=8,
    unique_by=lambda found: found.name,
)


@given(others, st.integers(1024, 6144), st.sampled_from(["", "1"]))
def test_padding_is_laid_as_the_rule_says(found: list[mt.Document], length: int, sha256: str) -> None:
    own = document("annual-report-2019", [300, 200], sha256)
    among = opened(own, *found)
    pricer = Pricer(COUNTER, among.sizes)
    example = packed(asked(own.id, [1]), among, length)

    def cost(page: mt.Page) -> int:
        return pricer.unit(page_unit(page.path, page.index, "none", "own")).total + pricer.text("\n\n")

    alone = packed(asked(own.id, [1]), opened(own), length)
    expected, room, is_open = shown(alone), length - RESERVE - alone.count.total, True
    assert expected == [(own.name, [0, 1])]
    for number, other in enumerate(padding_order(own, among)):
        is_left, taken = number % 2 == 0, []
        for page in reversed(other.pages) if is_left else other.pages:
            is_open = is_open and cost(page) <= room
            if is_open:
                room -= cost(page)
                taken.append(page.index)
        if taken:
            expected.insert(0 if is_left else len(expected), (other.name, sorted(taken)))
    assert shown(example) == expected


# Refusals

SIX = "one two three four five six"
LIST = {"answer": ("a b c", "d", "e f"), "answer_format": "List"}
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    ({"answer": (SIX,)}, {}, "long-form-answer", "at most 5 words", repr(SIX)),
    ({"answer": ("two words",)}, {"max_answer_words": 1}, "long-form-answer", "at most 1 words", "'two words'"),
    (
        LIST,
        {"answer_words": "whole"},
        "long-form-answer",
        "at most 5 words in all elements together",
        f"6 in {list(LIST['answer'])}",
    ),
    (
        {**LIST, "answer": ("short", SIX)},
        {"answer_words": "per_element"},
        "long-form-answer",
        "at most 5 words in each element",
        repr(SIX),
    ),
    ({"pages": (0, 3)}, {}, "answer-page-out-of-range", "pages from 1 to 3 of a", "page 4"),
    ({"doc": "b"}, {}, "missing-document", "", ""),
    ({"answer": ("",)}, {}, "no-reference-answer", "an answer to compare with", "none"),
    ({"columns": {"region": "x" * 101}}, {"facets": ("region",)}, "long-facet", "at most 100 characters", "more"),
]
KEPT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"answer": ("one two three four five",)}, {}),
    ({"answer": (SIX,)}, {"max_answer_words": None}),
    ({"answer": ("about 3.5 million of US dollars a year",), "answer_format": "Float"}, {}),
    ({"answer": ("a b", "c", "d e"), "answer_format": "List"}, {}),
    (LIST, {"answer_words": "per_element"}),
    ({"answer": ("",)}, {"answer_form": "long"}),
    ({"columns": {"region": "x" * 100}}, {"facets": ("region",)}),
]


@pytest.mark.parametrize(("changed", "options", "reason", "expected", "found"), REFUSED)
def test_a_question_that_cannot_be_asked_is_rejected(
    changed: dict[str, Any], options: dict[str, Any], reason: str, expected: str, found: str
) -> None:
    with pytest.raises(mt.Rejected) as caught:
        builder(**options).draft(asked(**{"doc": "a", "pages": [0], **changed}), opened(document("a", [4] * 3)), DRAWS)
    fault = caught.value.fault
    assert (fault.reason, bool(fault.todo)) == (reason, True)
    assert not expected or (fault.expected, fault.found) == (expected, found)
    if reason == "long-form-answer":
        assert "options.max_answer_words" in fault.todo
    if reason == "no-reference-answer":
        assert "options.answer_form to long" in fault.todo


@pytest.mark.parametrize(("changed", "options"), KEPT)
def test_answers_of_as_many_words_as_allowed_and_numbers_are_asked(
    changed: dict[str, Any], options: dict[str, Any]
) -> None:
    row = asked("a", [0], **changed)
    draft = builder(**options).draft(row, opened(document("a", [4])), DRAWS)
    assert draft.questions[0].data["asked"].row == row


# Record and prompt


OWN = document("honor_watch_gs_pro", [500] * 4)
AMONG = opened(OWN, document("owners-manual-2170416", [500, 500, 500]))


def released(
    row: DocumentQuestion, length: int = 3072, task: DocVQA | None = None
) -> tuple[mt.PackedExample, mt.Record]:
    """An example and its record, as it stands in a file."""
    task = task or builder()
    example = packed(row, AMONG, length, task)
    record: mt.Record = json.loads(json.dumps(task.record(example)))
    return example, record


def test_a_record_is_the_public_one() -> None:
    _, record = released(asked(OWN.id, [1, 3]))
    assert record == {
        "id": "mmlongdoc_0",
        "doc_name": "honor_watch_gs_pro",
        "question": "Which colour has the roof?",
        "answer": "red",
        "answer_format": "String",
        "ans_page_list": [1, 3],
        "page_list": [
            "mmlongbench-doc/owners-manual-2170416/owners-manual-2170416_page2.jpg",
            "mmlongbench-doc/honor_watch_gs_pro/honor_watch_gs_pro_page0.jpg",
            "mmlongbench-doc/honor_watch_gs_pro/honor_watch_gs_pro_page1.jpg",
            "mmlongbench-doc/honor_watch_gs_pro/honor_watch_gs_pro_page2.jpg",
            "mmlongbench-doc/honor_watch_gs_pro/honor_watch_gs_pro_page3.jpg",
        ],
        "answer_sources": ["Figure"],
        "doc_type": "Guidebook",
        "page_label": "none",
        "question_names_page": False,
        "gaps": "",
        "anchor": "answer",
        "anchor_page_list": [1, 3],
        "evidence_position": "inner, last",
    }


def test_a_record_is_in_the_groups_of_its_fields() -> None:
    record = released(asked(OWN.id, [1, 3], question_type="Multi-Hop"))[1]
    assert builder().facets(record) == {
        "answer format": ["String"],
        "evidence source": ["Figure"],
        "evidence": ["vision needed"],
        "evidence pages": ["cross-page"],
        "evidence position": ["inner", "last"],
        "anchor": ["answer"],
        "pages shown": ["5-8"],
        "document type": ["Guidebook"],
        "question type": ["Multi-Hop"],
    }
    for count, group in ((1, "1-4"), (4, "1-4"), (5, "5-8"), (128, "65-128"), (129, "129 and more")):
        assert builder().facets({**record, "page_list": record["page_list"][:1] * count})["pages shown"] == [group]
    text = {"answer_sources": ["Pure-text (Plain-text)", "Text"], "ans_page_list": [1]}
    facets = builder().facets({**record, **text})
    assert (facets["evidence"], facets["evidence pages"]) == (["text only"], ["single-page"])
    assert builder().facets({**record, "answer": "Not answerable"})["evidence pages"] == ["unanswerable"]
    assert builder().cluster(record) == OWN.name


def test_gaps_between_answer_pages_are_recorded() -> None:
    assert released(asked(OWN.id, [0, 3]), 1024 + 512)[1]["gaps"] == "1-2"
    assert released(asked(OWN.id, [0, 3]), 2048)[1]["gaps"] == "2-2"


def test_every_field_has_one_type_whatever_the_answer() -> None:
    rows = [
        asked(OWN.id, [1]),
        asked(OWN.id),
        asked(OWN.id, [1], answer=("3",), answer_format="Integer"),
        asked(OWN.id, [1], answer=("red", 'the "blue" é'), answer_format="List"),
    ]
    records = [released(row)[1] for row in rows]
    first, *others = [{name: type(value) for name, value in record.items()} for record in records]
    assert others == [first] * 3
    assert [record["answer"] for record in records[:3]] == ["red", "Not answerable", "3"]
    assert json.loads(records[3]["answer"]) == ["red", 'the "blue" é']
    assert "é" in records[3]["answer"]


@pytest.mark.parametrize(
    ("limit", "answer", "field"),
    [(None, "I", "short"), (20, SIX, "long"), (None, SIX[:-4], "short"), (6, "I", "short"), (5, "I", None)],
)
def test_only_records_that_may_have_long_answers_say_how_long_theirs_is(
    limit: int | None, answer: str, field: str | None
) -> None:
    task = builder(max_answer_words=limit)
    record = released(asked(OWN.id, [1], answer=(answer,)), task=task)[1]
    assert record.get("answer_length") == field
    assert task.facets(record).get("answer length") == ([field] if field else None)


def test_open_questions_are_asked_for_an_explanation_and_graded_by_a_committee() -> None:
    task = builder(answer_form="long", max_answer_words=None)
    example, record = released(asked(OWN.id, [1], answer=("",)), task=task)
    assert (record["answer_form"], record["answer_length"]) == ("long", "long")
    assert task.prompt(record) == example.prompt
    assert "200 words" in example.prompt.text
    spec = task.spec
    assert (spec.metric, spec.reserve, spec.may_lack_answers, spec.category) == ("judge-committee", 512, True, "")
    short = builder().spec
    assert (short.metric, short.reserve, short.may_lack_answers, short.category) == ("doc_qa", 256, False, "DocVQA")


def test_columns_of_ones_own_table_are_facets_and_accepted_answers_are_kept() -> None:
    row = asked(OWN.id, [1], columns={"region": "north", "notes": "x"}, accepted=("me", "We"))
    task = builder(facets=("region",))
    record = released(row, task=task)[1]
    assert record["facets"] == {"region": "north"}
    assert task.facets(record)["region"] == ["north"]
    assert task.accepted(record) == ("me", "We")
    assert task.accepted({**record, "accepted_answers": None}) == ()
    assert task.facets({**record, "facets": {"anchor": "x"}})["anchor (column)"] == ["x"]
    assert "region" not in task.facets({**record, "facets": ["x"]})


@pytest.mark.parametrize(
    ("page_label", "numbers"),
    [
        ("none", ["", "", ""]),
        ("index", [" (page 2)", " (page 0)", " (page 1)"]),
        ("printed", [" (page 3)", " (page 1)", " (page 2)"]),
    ],
)
def test_a_prompt_is_the_template_to_the_character(page_label: PageLabel, numbers: list[str]) -> None:
    among = opened(document("honor_watch_gs_pro", [500] * 2), document("owners-manual-2170416", [500] * 3))
    example = packed(asked(OWN.id, [0]), among, 2048, builder(page_label))
    assert example.prompt.rendered() == (
        f"{INSTRUCTION}"
        f"Document owners-manual-2{numbers[0]}: <image>\n\n"
        f"Document honor_watch_gs_{numbers[1]}: <image>\n\n"
        f"Document honor_watch_gs_{numbers[2]}: <image>\n\n"
        "Question: Based on Document honor_watch_gs_, answer the following question. Which colour has the roof?\n"
        "Answer:"
    )


questions = st.text(st.characters(exclude_categories=["Cs"])).map(mt.escape_markers)
page_labels = st.sampled_from(["none", "index", "printed"])


@given(questions, page_labels, st.integers(2, 6), st.sets(st.integers(0, 3), max_size=2))
def test_the_prompt_comes_back_from_the_record_alone(
    question: str, page_label: PageLabel, k: int, pages: set[int]
) -> None:
    task = builder(page_label)
    example, record = released(asked(OWN.id, sorted(pages), question=question), 1024 * k, task)
    assert task.prompt(record) == example.prompt
    assert builder().prompt(record) == example.prompt


def test_a_prompt_is_made_of_a_public_record_without_our_fields_and_braces_are_no_template() -> None:
    example, record = released(asked(OWN.id, [1], question="What is {context}? {0} {"))
    public = {name: record[name] for name in ("doc_name", "question", "page_list")}
    assert builder().prompt(public | {"unknown": 1}) == example.prompt
    assert example.prompt.rendered().endswith(" What is {context}? {0} {\nAnswer:")


NAMING = (
    "What date is mentioned on page 14?",
    "What is on page(1)?",
    "What is on Page No. 3?",
    "What is on page number 12?",
    "What do pages 3 to 5 show?",
    "Who stands in the picture of slide 7?",
    "Who stands in slide #7?",
    "What is the fax number on page fourteen?",
    "What is the fax number on page twelve?",
    "What is the title of page one?",
    "Is there a signature on the last page?",
    "How many websites are on the cover page?",
    "What is on the third slide?",
    "What is on the sixth slide?",
    "What is on the 21st page?",
    "What do the first pages show?",
)
NOT_NAMING = (
    "Which shapes does the slide use?",
    "What is the second FAQ shown in this slides?",
    "Which page of the guidebook refers to Oakland?",
    "How many pages contain tables?",
    "Are there more fans of Appota's fan page?",
    "What does homepage 3 show?",
    "How many page likes are there?",
    "Which landslide of 2014 was the largest?",
    "Who is on the front of the paperback?",
)


def test_a_question_that_names_a_page_is_flagged() -> None:
    assert [question for question in (*NAMING, *NOT_NAMING) if NAMES_PAGE.search(question)] == [*NAMING]
    for question in (NAMING[0], NOT_NAMING[0]):
        flag = released(asked(OWN.id, [1], question=question))[1]["question_names_page"]
        assert flag is (question in NAMING)


def test_real_questions_that_name_a_page() -> None:
    rows = json.loads((needs.shared("real", "mmlongbench-doc") / "samples.json").read_bytes())
    assert [number for number, row in enumerate(rows) if NAMES_PAGE.search(row["question"])] == [
        *(7, 29, 33, 43, 51, 52, 63, 64, 65, 66, 83, 84, 102, 103, 104, 105, 108, 110, 111, 112, 114)
    ]  # 68, "at Page at the second last", is not

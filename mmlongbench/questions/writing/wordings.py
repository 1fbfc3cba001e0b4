"""The words in which models are asked. A change of a wording changes the keys of its calls, so it is asked again."""

from collections.abc import Sequence

from mmlongbench.models.calls import fence, numbered
from mmlongbench.questions.question import AnswerFormat
from mmlongbench.questions.writing.lines import Candidate, Kind, Slot

PAGE_CONTENT = """\
You see one page of a document. Say what is on it that a reader can be asked about:
- text: paragraphs with facts; table: a table of data; figure: a chart, diagram, map or photograph that carries
  information; layout: headings, lists or boxes whose arrangement matters; contents: a table of contents or an index.
Equations, logos and decorations do not count. Name `none` if nothing is worth a question. `complexity`, from 1 to 10,
says how much there is to read from the page."""

DRAFT = """\
You write one question about a document for a benchmark of reading long documents. You see consecutive pages; each has
its label before it. The question is about {target}; the other pages are context only.
Rules:
- {demand}
- Somebody who has the whole document, but not these pages before them, must understand the question: name the table,
  figure, section, year or item. Never write "this page", "the table above", "the figure shown".
- The question must be challenging, must have one answer, and must not be answerable without the document.
- The answer is as short as possible: a number, a name, at most five words, or a list of such. Aim at the format
  {format}.
- Give the pages that hold the answer by the labels (`Page 4` is 4), where in them it is (`sources`), and in `quote` the
  words or numbers that hold it. `is_computed` is true if the answer is counted or computed and not read.
Reason first, then the question. `answers` has one element, unless the answer is a list."""

DEMANDS: dict[Kind, str] = {
    "text": "It needs the running text of the page, and its answer is not a copy of more than eight words.",
    "table": "It needs a table of the page: name its row and its column, and the unit.",
    "figure": "It needs a chart, diagram, map or picture of the page: name the series, legend or axis.",
    "layout": "It needs how the page is arranged: headings, lists, boxes, order.",
    "cross": "It needs two to four of the pages together: no single page answers it.",
}

EDIT = """\
You see the evidence pages of a question about a document, the question and its answer. Change exactly one qualifier of
the question (a year, a group, a row, a column, a name, a unit of place), so that the document does not answer it any
more. Keep every other word. The new qualifier must be plausible and must not occur anywhere in the document. Give the
whole new question, the words that you replaced (`was`), and the words in their place (`now`)."""

CHECKLIST = """\
You check a question about a document. You see the page or pages that it is about, and their neighbours. Decide four
things, each with its reason first:
1. `has_the_type`: the page really contains {target} (equations and tables of contents are none).
2. `needs_the_content`: the question needs that content; nothing else on the pages answers it.
3. `is_clear_and_answerable`: the question is clear, has one answer, and the pages answer it.
4. `is_of_reasonable_difficulty`: it is not trivial, and its answer is not copied out of the question or a heading.
General knowledge that is needed besides the page is allowed."""

ANSWER = """\
You see pages of a document. Answer the question from these pages alone. If they do not answer it, `is_answerable` is
false and `answers` is empty. Otherwise `answers` has the answer, as short as possible (a list has several elements),
and `pages` the labels of the pages that hold it."""

GUESS = """\
Answer a question about a document that you cannot see. Give your best guess in `answers`, as short as possible; leave
it empty only if no guess is possible."""

FURTHER = """\
You see pages of a document, a question that counts or lists things, and its answer. Look only for things on these pages
that belong to the answer and are missing in it. List them in `items` with their pages; leave both empty if nothing is
missing. Repetitions of what is counted already do not count."""

GRADE = """\
You see the evidence pages of a question about a document, the question and its answer. Grade from 1 to 5 how correct
and complete the answer is, by the pages alone: 5 correct and complete, 4 correct with a slip, 3 partly correct,
2 mostly wrong, 1 wrong or not supported. Reason first."""

ALL = (PAGE_CONTENT, DRAFT, *DEMANDS.values(), EDIT, CHECKLIST, ANSWER, GUESS, FURTHER, GRADE)
"""All wordings; their hash is in the lock."""

_TARGETS: dict[Kind, str] = {
    "text": "running text",
    "table": "a table",
    "figure": "a figure, chart, diagram or map",
    "layout": "headings, lists or boxes",
    "cross": "content that stands on several pages",
    "unanswerable": "content near to the question",
}


def titled(doc: str) -> str:
    """Return the title of a document as material."""
    return fence("title", doc)


def draft(slot: Slot) -> str:
    """Return the instruction for a draft."""
    target = f"Page {slot.pages[0]}" if slot.kind != "cross" else "at least two of these pages together"
    return DRAFT.format(target=target, demand=DEMANDS[slot.kind], format=shown_format(slot.format))


def checklist(kind: Kind) -> str:
    """Return the instruction for the checklist of a kind of question."""
    return CHECKLIST.format(target=_TARGETS[kind])


def shown_format(format: AnswerFormat) -> str:
    """Return a format as models are told it."""
    return {"Integer": "Integer (a whole number)", "Float": "Float (a number with decimals or %)"}.get(format, format)


def asked(candidate: Candidate) -> str:
    """Return the title and the question as material."""
    return "\n\n".join((titled(candidate.doc), fence("question", candidate.question)))


def answered(candidate: Candidate) -> str:
    """Return the title, the question and its answer as material."""
    return "\n\n".join((asked(candidate), fence("answer", shown_answer(candidate.answer))))


def shown_answer(values: Sequence[str]) -> str:
    """Return an answer as material: a list is numbered."""
    return values[0] if len(values) == 1 else numbered(values)

"""The sheet of a review: a row for each question, with empty cells for what an annotator decides.

Every row has a fingerprint of what it shows, so that a decision about another wording is not taken for one about this.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from mmlongbench.draws import Draws, digest
from mmlongbench.errors import Fault
from mmlongbench.io.files import write_whole
from mmlongbench.io.tables import Columns, table_rows
from mmlongbench.questions.question import Line, Question

Label: TypeAlias = Literal["Retain", "Revise", "Remove"]
"""What an annotator decides about a question (MMLongBench-Doc, A.4)."""
LABELS: tuple[Label, ...] = ("Retain", "Revise", "Remove")
PROBLEMS: Mapping[str, str] = {
    "wrong-answer-or-pages": "the answer or its pages are wrong; usually Revise",
    "repetitive": "another question asks the same; usually Remove",
    "ambiguous": "several answers fit",
    "shortcut": "fewer pages than claimed are enough, or the document is not needed; usually Remove",
    "low-relevance": "it is not about what the document is about",
    "context-dependent": "it is understood only beside its page; usually Revise",
}
"""The six problems of MMLongBench-Doc (A.4)."""
FURTHER: Mapping[str, str] = {
    "incomplete": "the answer lacks something",
    "answerable-after-all": "the document answers a question that should have no answer",
    "defective": "the question makes no sense",
    "corpus-defect": "the PDF is broken, or another one",
}
"""Problems that later corrections of MMLongBench-Doc found."""
SHOWN = ("id", "document", "pages", "question", "answer", "answer_format", "sources", "quote", "flags", "annotators")
"""The columns that show a question; `annotators` says how many should decide."""
FILLED = ("decision", "problem", "question_new", "answer_new", "pages_new", "comment", "annotator")
"""The columns that an annotator fills."""
COLUMNS = Columns(("id", "decision", "annotator", "fingerprint"), (*SHOWN[1:], *FILLED[1:-1]))
_FORMULA = ("=", "+", "-", "@", "\t")  # the beginnings of cells that a spreadsheet would compute


class Revision(Line):
    """The new fields of a question; None where nothing changes."""

    question: str | None = None
    answer: tuple[str, ...] | None = None
    pages: tuple[int, ...] | None = None


class Decision(Line):
    """What one annotator says about a question."""

    id: str
    annotator: str
    label: Label
    problem: str = ""  # a key of `PROBLEMS` or `FURTHER`; empty for Retain
    comment: str = ""
    revision: Revision | None = None  # None unless the label is Revise


def fingerprint(question: Question) -> str:
    """Return a hash of what a row shows of a question."""
    shown = (question.document, question.question, *question.answer, question.answer_format, *question.pages)
    return digest("review", *shown).hex()[:12]


def annotators_of(question: Question, share: float, seed: int = 0) -> int:
    """Return how many annotators should decide: two for a question with a flag, and for a drawn share of the others."""
    is_drawn = Draws((seed, question.document_sha256, "review")).fraction(question.id) < share
    return 2 if question.notes.get("flags") or is_drawn else 1


def in_order(questions: Iterable[Question]) -> list[Question]:
    return sorted(questions, key=lambda each: (each.document, each.pages, each.id))


def shown_answer(answer: str | Sequence[str]) -> str:
    """Return an answer as a cell: a list as JSON."""
    return answer if isinstance(answer, str) else json.dumps(list(answer), ensure_ascii=False)


def write_sheet(path: Path, questions: Iterable[Question], share: float) -> int:
    """Write a sheet as CSV that every spreadsheet opens; return the number of its rows."""
    text, rows = io.StringIO(), in_order(questions)
    written = csv.writer(text, lineterminator="\r\n")
    written.writerow((*SHOWN, *FILLED, "fingerprint"))
    for question in rows:
        cells = (
            question.id,
            question.document,
            "; ".join(map(str, question.pages)),
            question.question,
            shown_answer(question.answer),
            question.answer_format,
            "; ".join(question.sources),
            "; ".join(rest.text for rest in question.grounding),
            question.notes.get("flags", ""),
            str(annotators_of(question, share)),
        )
        written.writerow([safe_cell(cell) for cell in (*cells, *[""] * len(FILLED), fingerprint(question))])
    write_whole(path, [text.getvalue().encode("utf-8-sig")])
    return len(rows)


def safe_cell(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula, and that `plain_cell` reads as it was.

    >>> safe_cell("=1"), plain_cell("'=1"), plain_cell(safe_cell("'=1")), safe_cell("'s")
    ("'=1", '=1', "'=1", "'s")
    """
    return f"'{cell}" if cell.lstrip("'").startswith(_FORMULA) else cell


def plain_cell(cell: object) -> str:
    text = str(cell or "").strip()
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(_FORMULA) else text


def read_sheet(path: Path, known: Mapping[str, Question]) -> Iterator[tuple[str, Decision | Fault]]:
    """Yield (place, decision or fault) of each row that has a decision; the place names the line."""
    for place, row in table_rows(path, COLUMNS):
        if isinstance(row, Fault):
            yield place, row
            continue
        cells = {name: plain_cell(value) for name, value in row.items()}
        if cells["decision"]:
            found = _decision(cells, known)
            if isinstance(found, Fault):
                found = Fault(found.reason, found.expected, found.found[:40], path.name, place, found.field, found.todo)
            yield place, found


def _decision(cells: Mapping[str, str], known: Mapping[str, Question]) -> Decision | Fault:
    question = known.get(cells["id"])
    if question is None:
        expected = "the id of a question of the folder"
        return Fault("unknown-id", expected, cells["id"], field="id", todo="export again")
    if cells["fingerprint"] != fingerprint(question):
        todo = "export the sheet again, and decide about the question as it is now"
        return Fault("stale-review", fingerprint(question), cells["fingerprint"], field="fingerprint", todo=todo)
    label = next((each for each in LABELS if each.casefold() == cells["decision"].casefold()), None)
    if label is None:
        expected = f"one of {', '.join(LABELS)}"
        return Fault("unknown-decision", expected, cells["decision"], field="decision", todo="write one")
    if not cells["annotator"]:
        return Fault("no-annotator", "who decided", "nothing", field="annotator", todo="write a name or a number")
    problem, problems = cells.get("problem", "").casefold(), (*PROBLEMS, *FURTHER)
    if problem not in (problems if label != "Retain" else ("",)):
        expected = f"one of {', '.join(problems)}" if label != "Retain" else "nothing for Retain"
        return Fault("unknown-problem", expected, problem or "nothing", field="problem", todo="write it so")
    revision = _revision(cells, question) if label == "Revise" else None
    if isinstance(revision, Fault):
        return revision
    comment = cells.get("comment", "")
    return Decision(
        id=question.id, annotator=cells["annotator"], label=label, problem=problem, comment=comment, revision=revision
    )


def _revision(cells: Mapping[str, str], question: Question) -> Revision | Fault:
    """Return what a row changes. An answer that is a list is written as JSON."""
    asked, text, pages = (cells.get(name, "") for name in ("question_new", "answer_new", "pages_new"))
    numbers = [part.strip() for part in pages.replace(",", ";").split(";") if part.strip()]
    if not all(part.isdecimal() and len(part) < 6 for part in numbers):
        return Fault("wrong-pages", "page numbers such as 3; 5", pages, field="pages_new", todo="write them so")
    try:
        value = json.loads(text) if text.startswith("[") else text
    except (ValueError, RecursionError):
        value = text
    answer = tuple(map(str, value)) if isinstance(value, list) else (str(value),) if value else None
    if answer == ():
        return Fault("no-answer", "an answer, or a list with one", text, field="answer_new", todo="write one")
    before = question.answer if isinstance(question.answer, tuple) else (question.answer,)
    new_pages = tuple(sorted({*map(int, numbers)})) if tuple(map(int, numbers)) != question.pages else ()
    revision = Revision(
        question=asked if asked and asked != question.question else None,
        answer=answer if answer != before else None,
        pages=new_pages or None,
    )
    if revision == Revision():
        todo = "fill question_new, answer_new or pages_new; or decide Retain or Remove"
        return Fault("revised-without-a-change", "a new question, answer or pages", "none", field="decision", todo=todo)
    return revision

"""The sheet of a review: a row for each question, with empty cells for what an annotator decides.

Every row has a fingerprint of what it shows, so that a decision about another wording is not taken for one about this.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mmlongbench.draws import Draws, digest
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import write_whole
from mmlongbench.io.tables import Columns, table_rows
from mmlongbench.questions.question import Question
from mmlongbench.questions.reviewing.decisions import FURTHER, LABELS, PROBLEMS, Decision, Revision

SHOWN = ("id", "document", "pages", "question", "answer", "answer_format", "sources", "quote", "flags", "annotators")
"""The columns that show a question; `annotators` says how many should decide."""
FILLED = ("decision", "problem", "question_new", "answer_new", "pages_new", "comment", "annotator")
"""The columns that an annotator fills."""
COLUMNS = Columns(("id", "decision", "annotator", "fingerprint"), (*SHOWN[1:], *FILLED[1:-1]))
_FORMULA = ("=", "+", "-", "@", "\t")
"""The beginnings of cells that a spreadsheet would compute."""
_DIGITS = 12


def fingerprint(question: Question) -> str:
    """Return a hash of what a row shows of a question."""
    shown = (question.document, question.question, *question.answer, question.answer_format, *question.pages)
    return digest("review", *shown).hex()[:_DIGITS]


def annotators_of(question: Question, share: float, seed: int = 0) -> int:
    """Return how many annotators should decide: two for a question with a flag, and for a drawn share of the others."""
    is_drawn = Draws((seed, question.document_sha256, "review")).fraction(question.id) < share
    return 2 if question.notes.get("flags") or is_drawn else 1


def write_sheet(path: Path, questions: Iterable[Question], share: float) -> int:
    """Write a sheet as CSV that every spreadsheet opens; return the number of its rows."""
    rows = empty_rows(questions, share)
    write_whole(path, [sheet_bytes(rows)])
    return len(rows)


def in_order(questions: Iterable[Question]) -> list[Question]:
    """Return questions in the order of a sheet: document by document, page by page."""
    return sorted(questions, key=lambda each: (each.document, each.pages, each.id))


def empty_rows(questions: Iterable[Question], share: float) -> list[dict[str, str]]:
    """Return the rows of a sheet in which nothing is decided, as cells by column."""
    columns = (*SHOWN, *FILLED, "fingerprint")
    every = ([*_shown(each, share), *[""] * len(FILLED), fingerprint(each)] for each in in_order(questions))
    return [{name: safe_cell(cell) for name, cell in zip(columns, cells, strict=True)} for cells in every]


def sheet_bytes(rows: Sequence[Mapping[str, str]]) -> bytes:
    """Return the rows of a sheet as CSV; all have the same columns."""
    text = io.StringIO()
    written = csv.writer(text, lineterminator="\r\n")
    written.writerow(rows[0] if rows else (*SHOWN, *FILLED, "fingerprint"))
    written.writerows(row.values() for row in rows)
    return text.getvalue().encode("utf-8-sig")


def _shown(question: Question, share: float) -> list[str]:
    quote = "; ".join(rest.text for rest in question.grounding)
    return [
        question.id,
        question.document,
        "; ".join(map(str, question.pages)),
        question.question,
        shown_answer(question.answer),
        question.answer_format,
        "; ".join(question.sources),
        quote,
        question.notes.get("flags", ""),
        str(annotators_of(question, share)),
    ]


def shown_answer(answer: str | Sequence[str]) -> str:
    """Return an answer as a cell: a list as JSON."""
    return answer if isinstance(answer, str) else json.dumps(list(answer), ensure_ascii=False)


def safe_cell(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula, and that `plain_cell` reads as it was.

    >>> safe_cell("=1"), plain_cell("'=1"), plain_cell(safe_cell("'=1")), safe_cell("'s")
    ("'=1", '=1', "'=1", "'s")
    """
    return f"'{cell}" if cell.lstrip("'").startswith(_FORMULA) else cell


def plain_cell(cell: object) -> str:
    """Return the text of a cell that `safe_cell` may have written."""
    text = str(cell or "").strip()
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(_FORMULA) else text


def read_sheet(path: Path, known: dict[str, Question]) -> Iterator[Decision | Fault]:
    """Yield the decision of each row that has one, or what is wrong with it.

    Raises:
        SourceError: the sheet cannot be read.

    """
    for place, row in table_rows(path, COLUMNS):
        if isinstance(row, Fault):
            yield row
            continue
        cells = {name: plain_cell(value) for name, value in row.items()}
        if not cells["decision"]:
            continue
        found = decision_of(cells, known)
        if isinstance(found, Fault):
            found = Fault(found.reason, found.expected, found.found, path.name, place, found.field, found.todo)
        yield found


def decision_of(cells: Mapping[str, str], known: Mapping[str, Question]) -> Decision | Fault:
    """Return what the cells of a row decide, or what is wrong with them."""
    question = known.get(cells["id"])
    if question is None:
        return Fault(
            "unknown-id", "the id of a question of the folder", cells["id"][:40], field="id", todo="export again"
        )
    if cells["fingerprint"] != fingerprint(question):
        todo = "export the sheet again, and decide about the question as it is now"
        return Fault("stale-review", fingerprint(question), cells["fingerprint"][:40], field="fingerprint", todo=todo)
    label = next((each for each in LABELS if each.casefold() == cells["decision"].casefold()), None)
    if label is None:
        return Fault(
            "unknown-decision",
            f"one of {', '.join(LABELS)}",
            cells["decision"][:40],
            field="decision",
            todo="write one",
        )
    if not cells["annotator"]:
        return Fault("no-annotator", "who decided", "nothing", field="annotator", todo="write a name or a number")
    problem = cells.get("problem", "").casefold()
    names = (*PROBLEMS, *FURTHER)
    if (label != "Retain" and problem not in names) or (label == "Retain" and problem):
        expected = f"one of {', '.join(names)}" if label != "Retain" else "nothing for Retain"
        return Fault("unknown-problem", expected, problem[:40] or "nothing", field="problem", todo="write it so")
    revision = _revision(cells, question) if label == "Revise" else None
    if isinstance(revision, Fault):
        return revision
    comment = cells.get("comment", "")
    return Decision(
        id=question.id,
        annotator=cells["annotator"],
        label=label,
        problem=problem,
        comment=comment,
        revision=revision,
    )


def _revision(cells: Mapping[str, str], question: Question) -> Revision | Fault:
    answer, pages = cells.get("answer_new", ""), cells.get("pages_new", "")
    numbers = [part.strip() for part in pages.replace(",", ";").split(";") if part.strip()]
    if answer.startswith("[") and _changed_answer(answer, "") == ():
        return Fault("no-answer", "an answer, or a list with one", answer[:40], field="answer_new", todo="write one")
    if not all(part.isdecimal() and len(part) < 6 for part in numbers):
        return Fault("wrong-pages", "page numbers such as 3; 5", pages[:40], field="pages_new", todo="write them so")
    found = Revision(
        question=_changed(cells.get("question_new", ""), question.question),
        answer=_changed_answer(answer, question.answer),
        pages=None
        if not numbers or tuple(map(int, numbers)) == question.pages
        else tuple(sorted({*map(int, numbers)})),
    )
    if found == Revision():
        todo = "fill question_new, answer_new or pages_new; or decide Retain or Remove"
        return Fault("revised-without-a-change", "a new question, answer or pages", "none", field="decision", todo=todo)
    return found


def _changed(text: str, before: str) -> str | None:
    return text if text and text != before else None


def _changed_answer(text: str, before: str | tuple[str, ...]) -> tuple[str, ...] | None:
    if not text:
        return None
    try:
        value = json.loads(text) if text.startswith("[") else text
    except (ValueError, RecursionError):
        value = text
    after = tuple(map(str, value)) if isinstance(value, list) else (str(value),)
    return None if after == (before if isinstance(before, tuple) else (before,)) else after


def known_questions(questions: Iterable[Question]) -> dict[str, Question]:
    """Return questions by id.

    Raises:
        SourceError: two questions have one id.

    """
    found: dict[str, Question] = {}
    for question in questions:
        if question.id in found:
            raise SourceError(
                Fault("id-of-two-questions", "one question of each id", question.id, todo="make the questions again")
            )
        found[question.id] = question
    return found

"""The review of questions by people: the sheet that they fill, how sheets are merged, and the folder of the result.

Every row of a sheet has a fingerprint of what it shows, so that a decision about another wording is not taken for one
about this.

The folder `reviewed` has the questions as they were made, and `errata.yaml` with what people changed or removed, who
and why; its manifest names both. Revisions and removals can be read, checked and undone one by one.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import yaml

from mmlongbench.answers import format_of
from mmlongbench.draws import Draws, digest
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import write_whole
from mmlongbench.io.tables import Columns, table_rows
from mmlongbench.questions import table
from mmlongbench.questions.table import Line, Question, Reject
from mmlongbench.questions.writing.answers import normal
from mmlongbench.questions.writing.text_checks import wording_fault
from mmlongbench.statistics import ac1, drawn_places, interval, kappa

REVIEWED = "reviewed"
HELD = "held.jsonl"
ERRATA = "errata.yaml"
RESAMPLES = 2000  # how often documents are drawn with replacement, for the interval of kappa
_HEAD = "# What people changed in these questions, who and why. The manifest applies this file.\n"
Label: TypeAlias = Literal["Retain", "Revise", "Remove"]  # an annotator's decision (A.4)
LABELS: tuple[Label, ...] = ("Retain", "Revise", "Remove")
PROBLEMS: Mapping[str, str] = {  # the six problems of MMLongBench-Doc (A.4)
    "wrong-answer-or-pages": "the answer or its pages are wrong; usually Revise",
    "repetitive": "another question asks the same; usually Remove",
    "ambiguous": "several answers fit",
    "shortcut": "fewer pages than claimed are enough, or the document is not needed; usually Remove",
    "low-relevance": "it is not about what the document is about",
    "context-dependent": "it is understood only beside its page; usually Revise",
}
FURTHER: Mapping[str, str] = {  # problems that later corrections of MMLongBench-Doc found
    "incomplete": "the answer lacks something",
    "answerable-after-all": "the document answers a question that should have no answer",
    "defective": "the question makes no sense",
    "corpus-defect": "the PDF is broken, or another one",
}
SHOWN = ("id", "document", "pages", "question", "answer", "answer_format", "sources", "quote", "flags", "annotators")
"""The columns that show a question; `annotators` says how many should decide."""
FILLED = ("decision", "problem", "question_new", "answer_new", "pages_new", "comment", "annotator")
"""The columns that an annotator fills."""
COLUMNS = Columns(("id", "decision", "annotator", "fingerprint"), (*SHOWN[1:], *FILLED[1:-1]))
_FORMULA = ("=", "+", "-", "@", "\t")  # the beginnings of cells that a spreadsheet would compute


class Revision(Line):
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


def annotators_of(question: Question, share: float) -> int:
    """Return how many annotators should decide: two for a question with a flag, and for a drawn share of the others."""
    is_drawn = Draws((0, question.document_sha256, "review")).fraction(question.id) < share
    return 2 if question.notes.get("flags") or is_drawn else 1


def in_order(questions: Iterable[Question]) -> list[Question]:
    return sorted(questions, key=lambda each: (each.document, each.pages, each.id))


def shown_answer(answer: str | Sequence[str]) -> str:
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
                found = replace(found, found=found.found[:40], file=path.name, place=place)
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


class Agreement(Line):
    """How far the first two annotators of each question agree. Most questions are retained, so kappa is low even where
    annotators nearly always agree; Gwet's AC1 is not (ViDoRe V3 reports such a coefficient for this reason).
    """

    questions: int  # how many questions have two decisions
    matrix: tuple[tuple[int, ...], ...]
    """How often the first annotator said the row's label and the second the column's: Retain, Revise, Remove."""
    equal: float | None = None  # the share of equal decisions
    kappa: float | None = None  # Cohen's kappa; None if it is not defined, because everybody gave one label
    interval: tuple[float, float] | None = None  # that contains 95 % of resamples of two or more documents
    ac1: float | None = None


class Settled(Line):
    question: Question
    decisions: tuple[Decision, ...]  # what the annotators said, in the order of their sheets
    final: Decision | None = None  # the decision that counts; None if there is none yet
    needs: Literal["", "more", "third"] = ""  # `more`: fewer annotators decided than should; `third`: two differ


@dataclass(frozen=True)
class Merged:
    """What the sheets say together: all questions in the order of their ids, and the rows that could not be used."""

    settled: tuple[Settled, ...]
    faults: tuple[Fault, ...]
    agreement: Agreement

    def labelled(self, label: str) -> list[Settled]:
        return [each for each in self.settled if each.final and each.final.label == label]

    def needing(self, what: str) -> list[Settled]:
        return [each for each in self.settled if each.needs == what]

    @property
    def problems(self) -> Mapping[str, int]:
        named = Counter(each.final.problem for each in self.settled if each.final and each.final.problem)
        return dict(sorted(named.items()))


def read_folder(out: Path) -> dict[str, Question]:
    """Return the questions of a folder that people review, by id: those of the table, and the held ones."""
    if not (out / table.QUESTIONS).exists():
        expected, todo = f"a folder of questions with {table.QUESTIONS}", "finish it: run the command `questions` again"
        raise SourceError(Fault("no-questions", expected, "none", out.name, todo=todo))
    questions: dict[str, Question] = {}
    for name in (table.QUESTIONS, HELD):
        for question in table.read_questions(out / name) if (out / name).exists() else ():
            if question.id in questions:
                expected, todo = "one question of each id", "make the questions again"
                raise SourceError(Fault("id-of-two-questions", expected, question.id, name, todo=todo))
            questions[question.id] = question
    return questions


def merge(questions: Mapping[str, Question], sheets: Sequence[Path], share: float) -> Merged:
    """Return what the sheets of annotators say together. The first two annotators of a question are compared; a later
    one decides between them. `share` of the questions without a flag should be seen by two, as they were exported.
    """
    given: dict[str, dict[str, Decision]] = {}
    faults: list[Fault] = []
    for sheet in sheets:
        for place, found in read_sheet(sheet, questions):
            if isinstance(found, Fault):
                faults.append(found)
                continue
            before = given.get(found.id, {}).get(found.annotator)
            wrong = found.revision and _wrong_revision(_revised(questions[found.id], found))
            if before and before != found:
                expected, labels = "one decision of an annotator about a question", f"{before.label}, {found.label}"
                faults.append(Fault("decided-twice", expected, labels, sheet.name, place, todo="keep one of them"))
            elif wrong:
                expected = "a question that passes the static checks"
                faults.append(Fault(wrong[0], expected, wrong[1], sheet.name, place, todo="revise it again"))
            else:
                given.setdefault(found.id, {})[found.annotator] = found
    settled, pairs = [], []
    for id, question in sorted(questions.items()):
        decisions = tuple(given.get(id, {}).values())
        # Two equal decisions count, or a third one between them. Two revisions must be the same revision.
        is_equal = len({(each.label, each.revision) for each in decisions[:2]}) == 1
        if len(decisions) < max(annotators_of(question, share), 1):
            settled.append(Settled(question=question, decisions=decisions, needs="more"))
        elif is_equal or len(decisions) > 2:
            settled.append(Settled(question=question, decisions=decisions, final=decisions[0 if is_equal else -1]))
        else:
            settled.append(Settled(question=question, decisions=decisions, needs="third"))
        if len(decisions) > 1:
            pairs.append((question.document, decisions[0].label, decisions[1].label))
    return Merged(tuple(settled), tuple(faults), agreement(pairs))


def _wrong_revision(question: Question) -> tuple[str, str] | None:
    values = question.answer if isinstance(question.answer, tuple) else (question.answer,)
    answer = normal(values, question.answer_format)
    if isinstance(answer, tuple):
        return answer
    if (question.answer_format == "None") != (not question.pages):
        return "pages-and-answer", f"{question.answer_format} with {len(question.pages)} pages"
    return wording_fault(question.question, values)


def _revised(question: Question, decision: Decision) -> Question:
    change, fields = decision.revision, dict[str, object]()
    if change is None:
        return question
    if change.question is not None:
        fields["question"] = change.question
    if change.answer is not None:  # it has the format of the old one if it fits, otherwise that of its form
        form = "List" if len(change.answer) > 1 else format_of(change.answer[0])
        if form not in ("List", "None") and question.answer_format not in ("None", "List"):
            form = question.answer_format
        plain = normal(change.answer, form)
        fields["answer"] = change.answer if len(change.answer) > 1 else change.answer[0]
        fields["answer_format"] = question.answer_format if isinstance(plain, tuple) else plain.format
        if fields["answer_format"] == "None":
            fields["pages"] = ()
    if change.pages is not None:
        fields["pages"] = change.pages
    return question.model_copy(update=fields)


def agreement(pairs: Sequence[tuple[str, Label, Label]]) -> Agreement:
    by_document = {document: np.zeros((len(LABELS), len(LABELS))) for document, *_ in sorted(pairs)}
    for document, one, other in pairs:
        by_document[document][LABELS.index(one), LABELS.index(other)] += 1
    if not by_document:
        return Agreement(questions=0, matrix=((0,) * len(LABELS),) * len(LABELS))
    stacked, n = np.stack(list(by_document.values())), len(by_document)
    whole, ends = stacked.sum(axis=0), None
    if n > 1:
        drawn = drawn_places(digest("kappa", *by_document), n, n * RESAMPLES).reshape(RESAMPLES, n)
        kappas = [value for row in drawn if (value := kappa(stacked[row].sum(axis=0))) is not None]
        ends = interval(np.array(kappas)) if kappas else None
    value = kappa(whole)
    return Agreement(
        questions=len(pairs),
        matrix=tuple(tuple(int(count) for count in row) for row in whole),
        equal=round(float(np.trace(whole) / whole.sum()), 5),
        kappa=None if value is None else round(value, 5),
        interval=(round(ends[0], 4), round(ends[1], 4)) if ends else None,
        ac1=round(ac1(whole), 5),
    )


def write_review(out: Path, merged: Merged, share: float) -> Path:
    """Write the folder of reviewed questions, and return it: those of the table, and the held ones that people keep.
    Held questions without a final decision are left out; they are among those that need another annotator.
    """
    reviewed = out / REVIEWED
    kept, left = list[Settled](), list[Reject]()
    for each in merged.settled:
        question, is_kept = each.question, each.final is not None and each.final.label != "Remove"
        if is_kept or not question.notes.get("flags"):
            kept.append(each)
            continue
        left.append(
            Reject(
                id=question.id,
                document=question.document,
                stage="review",
                reason="removed-by-review" if each.final else "not-decided",
                found=each.final.problem if each.final else question.notes["flags"],
                expected="Retain or Revise",
                kind=question.kind,
                question=question.question,
                pages=question.pages,
            )
        )
    counts: dict[str, int] = {label: len(merged.labelled(label)) for label in LABELS}
    counts |= {"needs more": len(merged.needing("more")), "needs a third": len(merged.needing("third"))}
    earlier = yaml.safe_load((out / table.MANIFEST).read_text("utf-8"))["datasets"][0]
    maker = (earlier.get("options") or {}).get("synthetic", "model")  # a user may have removed the options
    documents = out / str(earlier["source"]["documents"])
    table.write_folder(reviewed, documents, maker, [each.question for each in kept], left, counts)
    errata: dict[str, dict[str, object]] = {}  # what was changed, by whom and why
    for each in kept:
        final = each.final
        if final is None or final.label == "Retain":
            continue
        who = ", ".join(decision.annotator for decision in each.decisions)
        why = f"{final.problem}{': ' + final.comment if final.comment else ''}"
        erratum: dict[str, object] = {"source": f"review by {who}: {why}"}
        if final.label == "Remove":
            erratum["drop"] = True
        else:
            fields = ("question", "answer", "pages", "answer_format")
            before = each.question.model_dump(mode="json", include={*fields})
            after = _revised(each.question, final).model_dump(mode="json", include={*fields})
            changed = [name for name in fields if before[name] != after[name]]
            erratum["set"] = {name: after[name] for name in changed}
            erratum["was"] = {name: before[name] for name in changed}
        errata[each.question.id] = erratum
    texts = (
        yaml.safe_dump({id: erratum}, allow_unicode=True, sort_keys=False, width=110) for id, erratum in errata.items()
    )
    write_whole(reviewed / ERRATA, [(_HEAD + "".join(texts)).encode()])
    # the manifest names the errata, and what the earlier one excludes; its first line is a comment, which stays
    head, _, text = (reviewed / table.MANIFEST).read_text("utf-8").partition("\n")
    manifest = yaml.safe_load(text)
    manifest["datasets"][0] |= {"errata": ERRATA, **{name: earlier[name] for name in ("exclude",) if name in earlier}}
    text = yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)
    write_whole(reviewed / table.MANIFEST, [f"{head}\n{text}".encode()])
    table.write_lines(
        reviewed / "decisions.jsonl", [decision for each in merged.settled for decision in each.decisions]
    )
    said = {"agreement": merged.agreement.model_dump(mode="json"), "problems": merged.problems, "counts": counts}
    write_whole(reviewed / "agreement.json", [json.dumps(said, indent=1).encode(), b"\n"])
    faults = (json.dumps(fault.fields(), ensure_ascii=False).encode() + b"\n" for fault in merged.faults)
    write_whole(reviewed / "faults.jsonl", faults)
    write_sheet(reviewed / "third.csv", [each.question for each in merged.needing("third")], share)
    return reviewed

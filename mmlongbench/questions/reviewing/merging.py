"""Merges the sheets of annotators: what is settled, what needs another annotator, and the folder of reviewed questions.

The folder `reviewed` has the questions as they were made, and `errata.yaml` with what people changed or removed, who
and why; its manifest names both. Revisions and removals can be read, checked and undone one by one.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import yaml

from mmlongbench.answers import format_of
from mmlongbench.draws import digest
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import write_whole
from mmlongbench.questions import table
from mmlongbench.questions.question import Line, Question, Reject
from mmlongbench.questions.reviewing.sheet import LABELS, Decision, Label, annotators_of, read_sheet, write_sheet
from mmlongbench.questions.writing.answers import normal
from mmlongbench.questions.writing.text_checks import wording_fault
from mmlongbench.statistics import ac1, drawn_places, interval, kappa

REVIEWED = "reviewed"
HELD = "held.jsonl"
ERRATA = "errata.yaml"
RESAMPLES = 2000  # how often documents are drawn with replacement, for the interval of kappa
_HEAD = "# What people changed in these questions, who and why. The manifest applies this file.\n"


class Agreement(Line):
    """How far the first two annotators of each question agree.

    Most questions are retained, so kappa is low even where annotators nearly always agree; Gwet's AC1 is not (ViDoRe V3
    reports such a coefficient for this reason). Both stand beside the share of equal decisions.
    """

    questions: int  # how many questions have two decisions
    matrix: tuple[tuple[int, ...], ...]
    """How often the first annotator said the row's label and the second the column's: Retain, Revise, Remove."""
    equal: float | None = None  # the share of equal decisions
    kappa: float | None = None  # Cohen's kappa; None if it is not defined, because everybody gave one label
    interval: tuple[float, float] | None = None
    """The interval of kappa that contains 95 % of resamples of documents; None if there are fewer than two."""
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
            wrong = found.revision and _wrong_revision(questions[found.id], found)
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


def _wrong_revision(before: Question, decision: Decision) -> tuple[str, str] | None:
    question = _revised(before, decision)
    values = question.answer if isinstance(question.answer, tuple) else (question.answer,)
    answer = normal(values, question.answer_format)
    if isinstance(answer, tuple):
        return answer
    if (question.answer_format == "None") != (not question.pages):
        return "pages-and-answer", f"{question.answer_format} with {len(question.pages)} pages"
    return wording_fault(question.question, values)


def _revised(question: Question, decision: Decision) -> Question:
    """Return a question with the fields that an annotator changed. A new answer has the format of the old one if it
    fits, otherwise that of its form.
    """
    change, fields = decision.revision, dict[str, object]()
    if change is None:
        return question
    if change.question is not None:
        fields["question"] = change.question
    if change.answer is not None:
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


def errata_of(settled: Sequence[Settled]) -> dict[str, dict[str, object]]:
    errata: dict[str, dict[str, object]] = {}
    for each in settled:
        final = each.final
        if final is None or final.label == "Retain":
            continue
        who = ", ".join(decision.annotator for decision in each.decisions)
        why = f"{final.problem}{': ' + final.comment if final.comment else ''}"
        erratum: dict[str, object] = {"source": f"review by {who}: {why}"}
        if final.label == "Remove":
            erratum["drop"] = True
        else:
            fields = {"question", "answer", "pages", "answer_format"}
            before = each.question.model_dump(mode="json", include=fields)
            after = _revised(each.question, final).model_dump(mode="json", include=fields)
            changed = [name for name in ("question", "answer", "pages", "answer_format") if before[name] != after[name]]
            erratum["set"] = {name: after[name] for name in changed}
            erratum["was"] = {name: before[name] for name in changed}
        errata[each.question.id] = erratum
    return errata


def write_review(out: Path, merged: Merged, share: float) -> Path:
    """Write the folder of reviewed questions, and return it.

    It has the questions of the table and the held questions that people retain or revise. Held questions without a
    final decision are left out; they are among those that need another annotator.
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
    errata = errata_of(kept)
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

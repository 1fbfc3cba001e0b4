"""Merges the sheets of annotators: what is settled, what needs another annotator, and the folder of reviewed questions.

The folder `reviewed` has the questions as models wrote them, and `errata.yaml` with what people changed or removed, who
and why; its manifest names both. Revisions and removals can be read, checked and undone one by one.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import write_whole
from mmlongbench.questions import table
from mmlongbench.questions.question import Question, Reject, format_of
from mmlongbench.questions.reviewing.decisions import Decision, Settled
from mmlongbench.questions.reviewing.kappa import Agreement, agreement
from mmlongbench.questions.reviewing.sheet import annotators_of, known_questions, read_sheet, write_sheet
from mmlongbench.questions.writing.answers import normal
from mmlongbench.questions.writing.lines import Candidate
from mmlongbench.questions.writing.text_checks import wording_fault

REVIEWED = "reviewed"
HELD = "held.jsonl"
ERRATA = "errata.yaml"
DECISIONS = "decisions.jsonl"
AGREEMENT = "agreement.json"
THIRD = "third.csv"
FAULTS = "faults.jsonl"
_HEAD = "# What people changed in these questions, who and why. The manifest applies this file.\n"


@dataclass(frozen=True)
class Merged:
    """What the sheets say together."""

    settled: tuple[Settled, ...]
    """All questions of the folder, in the order of their ids."""
    faults: tuple[Fault, ...]
    """The rows that could not be used."""
    agreement: Agreement

    def labelled(self, label: str) -> list[Settled]:
        """Return the questions with a final label."""
        return [each for each in self.settled if each.final and each.final.label == label]

    def needing(self, what: str) -> list[Settled]:
        """Return the questions that need `more` decisions, or a `third` annotator."""
        return [each for each in self.settled if each.needs == what]

    @property
    def problems(self) -> Mapping[str, int]:
        """Return how often each problem was named in final decisions."""
        found = Counter(each.final.problem for each in self.settled if each.final and each.final.problem)
        return dict(sorted(found.items()))


def read_folder(out: Path) -> dict[str, Question]:
    """Return the questions of a folder that people review: those of the table, and the held ones.

    Raises:
        SourceError: the folder has no table, or a file of it cannot be read.

    """
    if not (out / table.QUESTIONS).exists():
        todo = "finish it first: run the command `questions` again"
        raise SourceError(
            Fault("no-questions", f"a folder of questions with {table.QUESTIONS}", "none", out.name, todo=todo)
        )
    held = table.read_questions(out / HELD) if (out / HELD).exists() else ()
    return known_questions([*table.read_questions(out / table.QUESTIONS), *held])


def merge(questions: Mapping[str, Question], sheets: Sequence[Path], share: float) -> Merged:
    """Return what the sheets of annotators say together.

    Args:
        questions: the questions of the folder, by id.
        sheets: the sheets. The first two annotators of a question are compared; a later one decides between them.
        share: the share of questions without a flag that two annotators should see, as it was exported.

    Raises:
        SourceError: a sheet cannot be read.

    """
    given: dict[str, dict[str, Decision]] = {}
    faults: list[Fault] = []
    for sheet in sheets:
        for found in read_sheet(sheet, dict(questions)):
            fault = found if isinstance(found, Fault) else _fault(found, questions[found.id], given, sheet)
            if fault:
                faults.append(fault)
            elif isinstance(found, Decision):
                given.setdefault(found.id, {})[found.annotator] = found
    settled = [
        settle(question, list(given.get(id, {}).values()), annotators_of(question, share))
        for id, question in sorted(questions.items())
    ]
    pairs = [
        (each.question.document, each.decisions[0].label, each.decisions[1].label)
        for each in settled
        if len(each.decisions) > 1
    ]
    return Merged(tuple(settled), tuple(faults), agreement(pairs))


def _fault(
    found: Decision, question: Question, given: Mapping[str, Mapping[str, Decision]], sheet: Path
) -> Fault | None:
    """Return what is wrong with a decision beside others, or with its revision."""
    before = given.get(found.id, {}).get(found.annotator)
    if before and before != found:
        expected = "one decision of an annotator about a question"
        return Fault(
            "decided-twice", expected, f"{before.label}, {found.label}", sheet.name, found.id, todo="keep one of them"
        )
    if found.revision and (wrong := wrong_revision(question, found)):
        return Fault(
            wrong[0], "a question that passes the static checks", wrong[1], sheet.name, found.id, todo="revise it again"
        )
    return None


def wrong_revision(before: Question, decision: Decision) -> tuple[str, str] | None:
    """Return why a revised question fails the static checks, as reason and detail; None if it passes."""
    question, id = revised(before, decision), before.id
    values = question.answer if isinstance(question.answer, tuple) else (question.answer,)
    answer = normal(values, question.answer_format)
    if isinstance(answer, tuple):
        return answer
    if (question.answer_format == "None") != (not question.pages):
        return "pages-and-answer", f"{question.answer_format} with {len(question.pages)} pages"
    return wording_fault(
        Candidate(
            slot=id,
            doc=question.document,
            kind="text",
            author="",
            question=question.question,
            answer=values,
            answer_format=question.answer_format,
            pages=question.pages,
            about=question.pages,
        )
    )


def settle(question: Question, decisions: Sequence[Decision], wanted: int) -> Settled:
    """Return what several annotators say about a question: two equal decisions count, or a third one between them."""
    if len(decisions) < wanted or not decisions:
        return Settled(question=question, decisions=tuple(decisions), needs="more")
    first, *others = decisions
    if not others or _same(first, others[0]):
        return Settled(question=question, decisions=tuple(decisions), final=first)
    if len(others) > 1:
        return Settled(question=question, decisions=tuple(decisions), final=others[-1])
    return Settled(question=question, decisions=tuple(decisions), needs="third")


def _same(one: Decision, other: Decision) -> bool:
    """Return whether two annotators decide the same; two revisions must be the same revision."""
    return one.label == other.label and one.revision == other.revision


def revised(question: Question, decision: Decision) -> Question:
    """Return a question with the fields that an annotator changed."""
    change = decision.revision
    if change is None:
        return question
    values = change.answer
    fields: dict[str, object] = {}
    if change.question is not None:
        fields["question"] = change.question
    if values is not None:
        found = normal(values, "List" if len(values) > 1 else "String")
        plain = normal(values, _format_like(question, values)) if len(values) == 1 else found
        fields["answer"] = values if len(values) > 1 else values[0]
        fields["answer_format"] = plain.format if not isinstance(plain, tuple) else question.answer_format
        if fields["answer_format"] == "None":
            fields["pages"] = ()
    if change.pages is not None:
        fields["pages"] = change.pages
    return question.model_copy(update=fields)


def _format_like(question: Question, values: Sequence[str]) -> str:
    """Return the format that a new answer should have: the old one's if it fits, otherwise by its form."""
    by_form = format_of(values[0])
    return question.answer_format if question.answer_format not in ("None", "List") and by_form != "None" else by_form


def errata_of(merged: Merged) -> dict[str, dict[str, object]]:
    """Return the errata of a review, by the id of the question: what was changed, by whom and why."""
    found: dict[str, dict[str, object]] = {}
    for each in merged.settled:
        final = each.final
        if final is None or final.label == "Retain":
            continue
        who = ", ".join(decision.annotator for decision in each.decisions)
        why = f"{final.problem}{': ' + final.comment if final.comment else ''}"
        erratum: dict[str, object] = {"source": f"review by {who}: {why}"}
        if final.label == "Remove":
            found[each.question.id] = {**erratum, "drop": True}
            continue
        before, after = _fields(each.question), _fields(revised(each.question, final))
        changed = [name for name in before if before[name] != after[name]]
        found[each.question.id] = {
            **erratum,
            "set": {name: after[name] for name in changed},
            "was": {name: before[name] for name in changed},
        }
    return found


def _fields(question: Question) -> dict[str, object]:
    """Return the fields of the table that a review may change."""
    answer = list(question.answer) if isinstance(question.answer, tuple) else question.answer
    return {
        "question": question.question,
        "answer": answer,
        "pages": list(question.pages),
        "answer_format": question.answer_format,
    }


def write_review(out: Path, merged: Merged, share: float) -> Path:
    """Write the folder of reviewed questions, and return it.

    It has the questions of the table and the held questions that people retain or revise. Held questions without a
    final decision are left out; they are among those that need another annotator.
    """
    reviewed = out / REVIEWED
    kept = [each.question for each in merged.settled if not each.question.notes.get("flags") or _is_kept(each)]
    left = [_reject(each) for each in merged.settled if each.question.notes.get("flags") and not _is_kept(each)]
    table.write_folder(reviewed, _documents(out), "model", kept, left, _counts(merged))
    ids = {question.id for question in kept}
    errata = {id: each for id, each in errata_of(merged).items() if id in ids}
    write_whole(reviewed / ERRATA, [(_HEAD + _yaml(errata)).encode()])
    _name_errata(reviewed / table.MANIFEST, out / table.MANIFEST)
    table.write_lines(reviewed / DECISIONS, [decision for each in merged.settled for decision in each.decisions])
    said = {
        "agreement": merged.agreement.model_dump(mode="json"),
        "problems": merged.problems,
        "counts": _counts(merged),
    }
    write_whole(reviewed / AGREEMENT, [json.dumps(said, indent=1).encode(), b"\n"])
    faults = (json.dumps(fault.fields(), ensure_ascii=False).encode() + b"\n" for fault in merged.faults)
    write_whole(reviewed / FAULTS, faults)
    write_sheet(reviewed / THIRD, [each.question for each in merged.needing("third")], share)
    return reviewed


def _is_kept(settled: Settled) -> bool:
    return settled.final is not None and settled.final.label != "Remove"


def _reject(settled: Settled) -> Reject:
    question = settled.question
    reason = "removed-by-review" if settled.final else "not-decided"
    found = settled.final.problem if settled.final else question.notes["flags"]
    return Reject(
        id=question.id,
        document=question.document,
        stage="review",
        reason=reason,
        found=found,
        expected="Retain or Revise",
        kind=question.kind,
        question=question.question,
        pages=question.pages,
    )


def _counts(merged: Merged) -> dict[str, int]:
    counts = {label: len(merged.labelled(label)) for label in ("Retain", "Revise", "Remove")}
    return {**counts, "needs more": len(merged.needing("more")), "needs a third": len(merged.needing("third"))}


def _documents(out: Path) -> Path:
    """Return the folder of the documents, which the manifest of a folder of questions names."""
    manifest = yaml.safe_load((out / table.MANIFEST).read_text("utf-8"))
    return out / str(manifest["datasets"][0]["source"]["documents"])


def _yaml(errata: Mapping[str, Mapping[str, object]]) -> str:
    parts: Iterable[str] = (
        yaml.safe_dump({id: dict(erratum)}, allow_unicode=True, sort_keys=False, width=110)
        for id, erratum in errata.items()
    )
    return "".join(parts)


def _name_errata(path: Path, earlier: Path) -> None:
    """Add the errata to a manifest, and what the earlier one excludes; its first line is a comment, which stays."""
    before = yaml.safe_load(earlier.read_text("utf-8"))["datasets"][0]
    excluded = {"exclude": before["exclude"]} if "exclude" in before else {}
    text = path.read_text("utf-8")
    head = text.partition("\n")[0]
    manifest = yaml.safe_load(text)
    manifest["datasets"][0] |= {"errata": ERRATA, **excluded}
    write_whole(path, [f"{head}\n{yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)}".encode()])

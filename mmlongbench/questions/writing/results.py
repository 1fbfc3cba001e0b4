"""Writes the folder of questions: the table, what is known about every question, and the lock.

Besides the files of `questions.table` there are

    held.jsonl             questions about which people decide (`questions export`)
    surplus.jsonl          questions that passed, but that no quota wants
    provenance.jsonl       what every stage said about each of these questions, with every call by digest
    report.json            the funnel, quotas, distributions (`report.Report`)
    questions.lock.json    hashes of all files and documents, settings, versions; written last
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from mmlongbench.answers import NOT_ANSWERABLE
from mmlongbench.io.files import sha256_of, write_whole
from mmlongbench.questions import table
from mmlongbench.questions.question import Grounding, Line, Question, Reject, question_id
from mmlongbench.questions.writing import kinds, wordings
from mmlongbench.questions.writing.documents import Library
from mmlongbench.questions.writing.funnel import STAGES, Funnel, counts
from mmlongbench.questions.writing.lines import Called, Candidate, Judged, Outcome
from mmlongbench.questions.writing.report import Report
from mmlongbench.questions.writing.settings import WritingSettings
from mmlongbench.questions.writing.stages import CHECKS

HELD = "held.jsonl"
SURPLUS = "surplus.jsonl"
PROVENANCE = "provenance.jsonl"
REPORT = "report.json"
LOCK = "questions.lock.json"
MAKERS = ("mmlongbench", "pymupdf", "pillow", "rank-bm25")
"""The packages whose versions are in the lock."""
OF_RESULT = (
    table.TABLE,
    table.QUESTIONS,
    table.REJECTS,
    table.SUMMARY,
    table.MANIFEST,
    HELD,
    SURPLUS,
    PROVENANCE,
    REPORT,
)
"""The files that are written when no call is pending."""


class Step(Line):
    """What one stage said about a question."""

    stage: str
    outcome: Outcome
    reason: str = ""
    detail: str = ""
    calls: tuple[Called, ...] = ()


class Provenance(Line):
    """Where a question comes from: every stage, with every call."""

    id: str
    slot: str
    document: str
    author: str
    steps: tuple[Step, ...]


def remove(out: Path) -> list[str]:
    """Remove the files of an earlier result, because calls are pending; return their names."""
    there = [name for name in (LOCK, *OF_RESULT) if (out / name).exists()]
    for name in there:
        (out / name).unlink()
    return there


def write(
    out: Path, documents: Path, library: Library, settings: WritingSettings, funnel: Funnel, report: Report
) -> None:
    """Write all files, the lock last."""
    (out / LOCK).unlink(missing_ok=True)
    accepted = [to_question(each, library) for each in funnel.accepted]
    table.write_folder(out, documents, "model", accepted, _rejects(funnel, library), counts(funnel))
    table.write_lines(out / HELD, [to_question(each, library) for each in funnel.held])
    table.write_lines(out / SURPLUS, [to_question(each, library) for each in funnel.surplus])
    table.write_lines(out / PROVENANCE, _provenance(funnel, library))
    write_whole(out / REPORT, [report.model_dump_json(indent=1).encode(), b"\n"])
    write_whole(out / LOCK, [json.dumps(_lock(out, settings, funnel), indent=1, sort_keys=True).encode(), b"\n"])


def to_question(candidate: Candidate, library: Library) -> Question:
    """Return the line of a question."""
    document = library.documents[candidate.doc]
    notes = {"slot": candidate.slot, "author": candidate.author}
    notes |= {"flags": ", ".join(candidate.flags)} if candidate.flags else {}
    notes |= {"repairs": ", ".join(candidate.repairs)} if candidate.repairs else {}
    is_answerable = candidate.is_answerable
    role = "operand" if candidate.is_computed else "answer"
    rests = [Grounding(page=page, text=candidate.quote, role=role) for page in candidate.pages[:1] if candidate.quote]
    answer = candidate.answer if candidate.answer_format == "List" else candidate.answer[0]
    return Question(
        id=id_of(candidate, library),
        document=candidate.doc,
        document_sha256=document.line.sha256,
        question=candidate.question,
        answer=answer if is_answerable else NOT_ANSWERABLE,
        answer_format=candidate.answer_format,
        pages=candidate.pages,
        sources=candidate.sources if is_answerable else (),  # type: ignore[arg-type]  # the form of a draft has these
        kind="cross-page" if candidate.kind == "cross" else candidate.kind,
        synthetic="model",
        doc_type=document.line.doc_type,
        grounding=tuple(rests),
        derived="computed" if candidate.is_computed and is_answerable else "",
        twin_of=_id(candidate.parent, candidate.doc, library) if candidate.parent else "",
        edit=f"{candidate.was} → {candidate.now}" if candidate.parent else "",
        alternatives=candidate.alternatives,
        notes=notes,
    )


def id_of(candidate: Candidate, library: Library) -> str:
    """Return the id of a question, which depends on its document and its slot."""
    return _id(candidate.slot, candidate.doc, library)


def _id(slot: str, doc: str, library: Library) -> str:
    return question_id(library.documents[doc].line.sha256, "model", slot)


def _rejects(funnel: Funnel, library: Library) -> list[Reject]:
    last = {line.slot: line.candidate for stage in funnel.stages for line in stage.lines if line.candidate}
    by_id = {slot.id: slot for slot in funnel.drawn.slots}
    found = []
    for slot, (stage, line) in sorted(funnel.ended.items()):
        drawn, candidate = by_id[slot], last.get(slot)
        found.append(
            Reject(
                id=_id(slot, drawn.doc, library),
                document=drawn.doc,
                stage=stage,
                reason=line.reason,
                found=line.detail,
                expected=_expected(stage),
                kind=drawn.kind,
                question=candidate.question if candidate else "",
                pages=candidate.pages if candidate else drawn.pages,
                notes={"slot": slot, "author": drawn.author},
            )
        )
    return found


def _expected(stage: str) -> str:
    if stage == "words-alone":
        return "words that do not tell whether the document answers the question"
    return next((check.what for check in CHECKS if stage.endswith(check.name)), "a reply of the form")


def _provenance(funnel: Funnel, library: Library) -> list[Provenance]:
    lines: dict[str, list[tuple[str, Judged]]] = {}
    for stage in funnel.stages:
        for line in stage.lines:
            lines.setdefault(line.slot, []).append((stage.name, line))
    found = []
    for candidate in sorted((*funnel.accepted, *funnel.held, *funnel.surplus), key=lambda each: each.slot):
        steps = [
            Step(stage=stage, outcome=line.outcome, reason=line.reason, detail=line.detail, calls=line.calls)
            for stage, line in lines[candidate.slot]
            if line.calls or line.reason or line.detail
        ]
        found.append(
            Provenance(
                id=id_of(candidate, library),
                slot=candidate.slot,
                document=candidate.doc,
                author=candidate.author,
                steps=tuple(steps),
            )
        )
    return found


def _lock(out: Path, settings: WritingSettings, funnel: Funnel) -> Mapping[str, object]:
    files = [out / name for name in OF_RESULT] + sorted((out / STAGES).glob("*.jsonl"))
    reasons: dict[str, Counter[str]] = {}
    for stage, line in funnel.ended.values():
        reasons.setdefault(stage, Counter())[line.reason] += 1
    return {
        "settings": settings.model_dump(mode="json"),
        "wordings": sha256("\0".join(wordings.ALL).encode()).hexdigest(),
        "rules_of_pages": kinds.VERSION,
        "versions": {name: version(name) for name in MAKERS},
        "documents": {line.doc: line.sha256 for line in funnel.documents if not line.reason},
        "counts": counts(funnel),
        "rejected": {stage: dict(sorted(found.items())) for stage, found in sorted(reasons.items())},
        "calls": _digest(list(funnel.calls())),
        "files": {path.relative_to(out).as_posix(): sha256_of(path) for path in files},
    }


def _digest(calls: Sequence[Called]) -> str:
    """Return one hash of all calls and replies."""
    return sha256("\n".join(f"{call.key} {call.reply}" for call in calls).encode()).hexdigest()

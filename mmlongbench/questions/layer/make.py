"""Makes questions of a folder of PDFs from their layer: each document alone, then the checks between documents."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.answers import AnswerFormat
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import oversized
from mmlongbench.draws import digest
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import is_unicode, pdfs_by_name, sha256_of, shown_name
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Progress
from mmlongbench.questions.layer.baselines import baseline_of
from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.checks import Failed, alternatives, first_failed, places_elsewhere
from mmlongbench.questions.layer.choosing import asked_twice, chosen
from mmlongbench.questions.layer.document import Document, document_of
from mmlongbench.questions.layer.index import PageIndex
from mmlongbench.questions.layer.kinds.table import candidates_of
from mmlongbench.questions.layer.layers import layer_version, pages_of
from mmlongbench.questions.layer.padding import answered_elsewhere
from mmlongbench.questions.layer.rendered import differing, engine
from mmlongbench.questions.layer.report import DocumentReport, report_of
from mmlongbench.questions.layer.unread import other_texts
from mmlongbench.questions.question import Grounding, Question, Reject, format_of, question_id
from mmlongbench.questions.summary import Summary
from mmlongbench.questions.table import write_folder, write_lines

DOCUMENTS = "documents.jsonl"
"""The file with a line for each document: what it gives, and why not more."""
LAYERS = "layers"
"""The folder of the cache, below the output."""
_STRINGS = ("heading-number", "heading-of-caption")
"""Kinds whose answers look like numbers and are none."""


@dataclass(frozen=True)
class Settings:
    """How questions are made."""

    cache: Path
    """The folder in which the layers of documents are kept."""
    limits: Limits = field(default_factory=Limits)
    """The limits of documents."""
    with_ocr: bool = True
    """Whether OCR checks the words of questions, if it is installed."""


@dataclass(frozen=True)
class Work:
    """What one document gives."""

    questions: tuple[Question, ...]
    """The questions that passed the checks of the document."""
    places: Mapping[str, tuple[tuple[tuple[str, ...], int], ...]]
    """By the id of a question, groups of phrases with the page that must have them (see `checks.places_elsewhere`)."""
    rejects: tuple[Reject, ...]
    """The candidates that were left out."""
    report: DocumentReport
    """What the document gives, and why not more."""
    texts: tuple[str, ...]
    """The text of each page."""
    searched: tuple[str, ...]
    """The text of each page in which phrases are searched."""
    unread: frozenset[int]
    """The pages that show something that nobody can read."""


@dataclass(frozen=True)
class Made:
    """The questions of a folder."""

    summary: Summary
    """The counts."""
    reports: tuple[DocumentReport, ...]
    """What each document gives."""
    unreadable: tuple[Reject, ...]
    """The documents that cannot be read."""
    left_out: tuple[str, ...]
    """The documents with a page that nobody can read and that might answer questions of others; the manifest excludes
    them."""


def make_questions(
    documents: Path, out: Path, settings: Settings, workers: int = 1, progress: Progress | None = None
) -> Made:
    """Make questions of the PDFs of a folder, and write them.

    Raises:
        SourceError: the folder has no PDF.
        BuildError: the machine cannot read a page.

    """
    unread: list[Reject] = []
    calls = list(_readable(documents, unread))
    works: dict[str, Work] = {}
    with (progress or Progress(False)).bar("documents", len(calls)) as advance:
        names = [call[0].name for call in calls]
        arguments = [(path, sha256, settings) for path, sha256 in calls]
        with closing(each_done(workers, work_of, arguments, names)) as done:
            for number, found in done:
                if isinstance(found, Reject):
                    unread.append(found)
                else:
                    works[names[number]] = found
                advance()
    return _written(documents, out, settings, [works[name] for name in sorted(works)], unread)


def work_of(path: Path, sha256: str, settings: Settings) -> Work | Reject:
    """Return what a document gives, or the reject of a document that cannot be read."""
    try:
        pages = pages_of(path, sha256, settings.cache, settings.limits)
        program = engine() if settings.with_ocr else ""
        kept = settings.cache / f"{sha256}-{layer_version()}-{digest(engine()).hex()[:8]}"
        read = kept.with_name(f"{kept.name}.pages.jsonl") if program else None
        others = other_texts(path, pages, settings.limits, read)
        document = document_of(path.stem, sha256, pages, others)
        candidates = candidates_of(document)
        failed = {number: first_failed(document, each) for number, each in enumerate(candidates)}
        passed = [number for number, why in failed.items() if why is None]
        failed |= dict(asked_twice({number: candidates[number] for number in passed}))
        passed = [number for number in passed if failed[number] is None]
        taken, left = chosen(sha256, [candidates[number] for number in passed])
        crops = kept.with_name(f"{kept.name}.ocr.json")
        differ = differing(path, pages, taken, settings.limits, crops) if program else {}
    except SourceError as error:
        fault = error.fault
        found = f"{fault.place}: {fault.found}" if fault.place else fault.found
        todo = "leave it out" if "limits." in fault.todo else fault.todo  # there is no manifest
        if fault.reason == "time-of-a-page":
            todo = "raise --seconds-a-page if the page is meant to be so, or leave the document out"
        return _unread(path.stem, fault.reason, found, f"{fault.expected}: {todo}" if todo else fault.expected)
    rejects = [_reject(document, candidates[number], why) for number, why in failed.items() if why]
    rejects += [_reject(document, taken[number], why) for number, why in differ.items()]
    surplus = Failed("choosing", "surplus", "more candidates than places", "a place on its page and among its kind")
    rejects += [_reject(document, each, surplus) for each in left]
    accepted = [each for number, each in enumerate(taken) if number not in differ]
    questions = tuple(_question(document, each) for each in accepted)
    places = {q.id: places_elsewhere(document, each) for q, each in zip(questions, accepted, strict=True)}
    report = _with_baselines(report_of(document, candidates, questions, rejects), questions, document.texts)
    return Work(questions, places, tuple(rejects), report, document.texts, document.searched, document.unread)


def _with_baselines(report: DocumentReport, questions: Sequence[Question], texts: Sequence[str]) -> DocumentReport:
    found = [(question, baseline_of(question, texts)) for question in questions]
    with_pages = [each for question, each in found if question.pages]
    return report.model_copy(
        update={
            "found_at_1": sum(each.rank == 1 for each in with_pages),
            "found_at_5": sum(1 <= each.rank <= 5 for each in with_pages),
            "with_pages": len(with_pages),
            "guessed": sum(each.is_right for _, each in found),
        }
    )


def _question(document: Document, candidate: Candidate) -> Question:
    answer_format: AnswerFormat = "String" if candidate.kind in _STRINGS else format_of(candidate.answer)
    is_absent = bool(candidate.absent)
    return Question(
        id=_id(document, candidate.question),
        document=document.name,
        document_sha256=document.sha256,
        question=candidate.question,
        answer=candidate.answer,
        answer_format=answer_format,
        pages=() if is_absent else candidate.pages,
        sources=candidate.sources,
        kind=candidate.kind,
        synthetic="layer",
        accepted=() if is_absent or answer_format == "List" else candidate.accepted,
        grounding=tuple(
            Grounding(page=mark.page, text=mark.text, box=mark.box, role=mark.role) for mark in candidate.marks
        ),
        derived=candidate.derived,
        twin_of=_id(document, candidate.original) if candidate.original else "",
        edit=candidate.edit,
        alternatives=alternatives(document, candidate),
        notes=dict(candidate.notes),
    )


def _reject(document: Document, candidate: Candidate, why: Failed) -> Reject:
    return Reject(
        id=_id(document, candidate.question),
        document=document.name,
        stage=why.stage,
        reason=why.reason,
        found=why.found[:200],
        expected=why.expected[:200],
        kind=candidate.kind,
        question=candidate.question,
        pages=candidate.pages,
    )


def _id(document: Document, question: str) -> str:
    return question_id(document.sha256, question)


def _readable(documents: Path, unread: list[Reject]) -> Iterator[tuple[Path, str]]:
    """Yield (path, SHA-256) of each PDF that can be tried; the others are added to `unread`."""
    if not is_unicode(str(documents.absolute())):
        todo, place = "rename the folder", shown_name(str(documents))
        raise SourceError(Fault("name-not-unicode", "a folder whose path is UTF-8", "other bytes", place, todo=todo))
    found = pdfs_by_name(documents)
    if not found:
        todo = "give the folder that has them"
        raise SourceError(Fault("nothing-to-read", "a folder with PDFs", "none", documents.name, todo=todo))
    seen: dict[str, str] = {}
    for name, path in sorted(found.items()):
        if not is_unicode(name):
            expected = "a file name in UTF-8: rename the file"
            unread.append(_unread(shown_name(name), "name-not-unicode", "other bytes", expected))
            continue
        if isinstance(path, Fault):
            unread.append(_unread(name, path.reason, path.found, path.expected))
            continue
        if fault := oversized(path, Limits().bytes):
            unread.append(_unread(name, fault.reason, fault.found, fault.expected))
            continue
        sha256 = sha256_of(path)
        if sha256 in seen:
            unread.append(_unread(name, "same-bytes", f"the bytes of {seen[sha256]}", "another document"))
            continue
        seen[sha256] = name
        yield path, sha256


def _unread(name: str, reason: str, found: str, expected: str) -> Reject:
    """Return the reject of a document."""
    id = question_id("", "document", name)
    return Reject(id=id, document=name, stage="document", reason=reason, found=shown_name(found), expected=expected)


def _written(documents: Path, out: Path, settings: Settings, works: Sequence[Work], unread: Sequence[Reject]) -> Made:
    """Check the questions against the pages of other documents, and write the folder."""
    indexes = {work.report.document: PageIndex(list(enumerate(work.searched, 1))) for work in works}
    questions: list[Question] = []
    rejects = [*unread, *(reject for work in works for reject in work.rejects)]
    reports = []
    left_out = [work.report.document for work in works if _might_answer(work, works)]
    indexes = {name: index for name, index in indexes.items() if name not in left_out}
    for work in works:
        kept = []
        for question in work.questions:
            found = answered_elsewhere(work.places[question.id], question.document, indexes)
            if question.document in left_out:
                what = f"{question.document}, page {min(work.unread)}: a picture without words"
                expected = "pages that can be read: install tesseract"
                found = Failed("padding", "page-not-readable", what, expected)
            if found is None:
                kept.append(question)
            else:
                rejects.append(_of_padding(question, found))
        questions += kept
        reports.append(_counted_again(work.report, kept, work.texts))
    counts = Counter(
        {
            "documents": len(works),
            "documents without questions": sum(not report.questions for report in reports),
            "documents not readable": len(unread),
            "documents left out for a page that cannot be read": len(left_out),
            "candidates": sum(sum(report.candidates.values()) for report in reports),
            "table cells": sum(report.cells for report in reports),
            "table cells that two readers agree on": sum(report.facts for report in reports),
            "questions with pages": sum(report.with_pages for report in reports),
            "search finds the pages at rank 1": sum(report.found_at_1 for report in reports),
            "search finds the pages at ranks 1 to 5": sum(report.found_at_5 for report in reports),
            "text reader is right": sum(report.guessed for report in reports),
        }
    )
    write_lines(out / DOCUMENTS, reports)
    notes = {"layer": layer_version(), "ocr": engine() if settings.with_ocr else ""}
    summary = write_folder(out, documents, "layer", questions, rejects, counts, notes, left_out)
    return Made(summary, tuple(reports), tuple(unread), tuple(left_out))


def _might_answer(work: Work, works: Sequence[Work]) -> bool:
    """Return whether a page of a document that nobody can read might answer a question of another document.

    Nothing can be claimed about such a page. So the document must not pad contexts, and the manifest leaves it out.
    """
    others = (group for other in works if other is not work for group in other.places.values())
    numbers = {place for group in others for _, place in group}
    return any(page in numbers or 0 in numbers for page in work.unread)


def _counted_again(report: DocumentReport, kept: Sequence[Question], texts: Sequence[str]) -> DocumentReport:
    counts = dict(sorted(Counter(question.kind for question in kept).items()))
    return _with_baselines(report.model_copy(update={"questions": counts}), kept, texts)


def _of_padding(question: Question, why: Failed) -> Reject:
    return Reject(
        id=question.id,
        document=question.document,
        stage=why.stage,
        reason=why.reason,
        found=why.found[:200],
        expected=why.expected,
        kind=question.kind,
        question=question.question,
        pages=question.pages,
    )

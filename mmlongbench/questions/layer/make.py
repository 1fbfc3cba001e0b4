"""Makes questions of a folder of PDFs from their layer: each document alone, then what is claimed of all of them.

A context is padded with pages of other documents of the folder, so no page of another document may answer a question.
A document may have a fifth of the questions and a kind a quarter, so that no document and no kind decides the score of
the file; a share that would leave no question is lifted. Which ones are taken is drawn by hashes of the documents and
the questions.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from mmlongbench.answers import format_of
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import read_page
from mmlongbench.documents.pages import KeptTexts
from mmlongbench.documents.pdf import has_words, oversized, pages_to_read, read_pages
from mmlongbench.draws import Draws, digest
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import is_unicode, pdfs_by_name, sha256_of, shown_name
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Progress
from mmlongbench.likeness import is_same_wording
from mmlongbench.questions.layer.checks import Failed, first_failed, misread, ocr_name
from mmlongbench.questions.layer.facts import PageIndex, facts_of, normal
from mmlongbench.questions.layer.kinds import ABSENT, Candidate, candidates_of, is_general, stems, twin_of
from mmlongbench.questions.layer.page import Page, layer_version, pages_of
from mmlongbench.questions.table import (
    Grounding,
    Line,
    Question,
    Reject,
    Summary,
    question_id,
    write_folder,
    write_lines,
)

DOCUMENTS = "documents.jsonl"  # the file with a line for each document: what it gives, and why not more
LAYERS = "layers"  # the folder of the cache, below the output
ABSENT_SHARE = 20  # one of so many has no answer: with more, an audit would find that refusing all pays
MOST_OF_A_PAGE = 5  # how many questions may need a page
MOST_OF_A_KIND = 25  # how many questions of a kind a document may have
OF_A_DOCUMENT, OF_A_KIND = 5, 4  # a document has at most one of so many questions of a file, and a kind one of so many
_SURPLUS = Failed("choosing", "surplus", "more candidates than places", "a place on its page and among its kind")
_LARGE = 0.2  # a page with few words is a picture if pictures take so large a share of it

Named: TypeAlias = tuple[str, Candidate]  # a document and a candidate


@dataclass(frozen=True)
class Settings:
    cache: Path
    limits: Limits = field(default_factory=Limits)
    with_ocr: bool = True  # whether OCR checks the words of questions, if it is installed
    keeps_all: bool = False  # whether a document and a kind may have any share of the questions


class DocumentReport(Line):
    """What a document gives, and why not more: a line of `documents.jsonl`."""

    document: str
    pages: int
    pages_left_out: int  # pages that are turned or have too many words
    unread: tuple[int, ...]  # pages that show something that nobody can read, from 1; nothing can be claimed about them
    tables: int
    facts: int  # the cells that two readers see in the same way, and that have names of their own
    candidates: dict[str, int]
    questions: dict[str, int]
    losses: dict[str, int]  # why tables and cells gave no fact, with how many there were


@dataclass(frozen=True)
class Work:
    sha256: str
    candidates: tuple[Candidate, ...]
    rejects: tuple[Reject, ...]
    report: DocumentReport
    texts: tuple[str, ...]  # the text of each page in which phrases are searched
    in_tables: Mapping[tuple[int, int], frozenset[str]]  # the words of each table, by its page and number
    names: tuple[frozenset[str], frozenset[str]]  # the names of the rows and of the columns of its tables


@dataclass(frozen=True)
class Made:
    summary: Summary
    reports: tuple[DocumentReport, ...]
    unreadable: tuple[Reject, ...]
    left_out: tuple[str, ...]  # the documents with a page that nobody can read; the manifest excludes them


def make_questions(
    documents: Path, out: Path, settings: Settings, workers: int = 1, progress: Progress | None = None
) -> Made:
    """Make questions of the PDFs of a folder, and write them."""
    unreadable: list[Reject] = []
    calls = [(path, sha256, settings) for path, sha256 in _readable(documents, unreadable)]
    works: dict[str, Work] = {}
    names = [path.name for path, _, _ in calls]
    with (
        (progress or Progress(False)).bar("documents", len(calls)) as advance,
        closing(each_done(workers, work_of, calls, names)) as done,
    ):
        for number, work in done:
            if isinstance(work, Reject):
                unreadable.append(work)
            else:
                works[calls[number][0].stem] = work
            advance()
    works = dict(sorted(works.items()))
    left_out = tuple(name for name, work in works.items() if work.report.unread)
    others = {name: PageIndex(work.texts) for name, work in works.items() if name not in left_out}
    rejects = [*unreadable, *(reject for work in works.values() for reject in work.rejects)]
    free: dict[str, list[Candidate]] = {}
    for name, work in works.items():
        free[name] = []
        for candidate in work.candidates:
            failed = _answered_elsewhere(name, candidate.phrases, others)
            if name in left_out:
                found = f"{name}, page {work.report.unread[0]}: a picture without words"
                failed = Failed("padding", "page-not-readable", found, "pages that can be read: install tesseract")
            if failed:
                rejects.append(_reject(name, work.sha256, candidate, failed))
            else:
                free[name].append(candidate)
    taken, surplus, notes = chosen(free, keeps_all=settings.keeps_all)
    rejects += [_reject(name, works[name].sha256, candidate, failed) for name, candidate, failed in surplus]
    asked, twins = _with_twins(taken, works, others)
    if taken and not twins:
        notes += ("no question is unanswerable: no row or column of another document fits",)
    questions = [_question(name, works[name].sha256, candidate, others[name]) for name, candidate in asked]
    reports = []
    for name, work in works.items():
        kinds = Counter(question.kind for question in questions if question.document == name)
        reports.append(work.report.model_copy(update={"questions": dict(sorted(kinds.items()))}))
    write_lines(out / DOCUMENTS, reports)
    counts = {
        "documents": len(works),
        "documents without questions": sum(not report.questions for report in reports),
        "documents not readable": len(unreadable),
        "documents left out for a page that cannot be read": len(left_out),
        "tables": sum(report.tables for report in reports),
        "table cells that two readers agree on": sum(report.facts for report in reports),
        "candidates": sum(sum(report.candidates.values()) for report in reports),
    }
    made_with = {"layer": layer_version(), "ocr": ocr_name() if settings.with_ocr else ""}
    summary = write_folder(out, documents, "layer", questions, rejects, counts, made_with, left_out, notes)
    return Made(summary, tuple(reports), tuple(unreadable), left_out)


def work_of(path: Path, sha256: str, settings: Settings) -> Work | Reject:
    program = ocr_name() if settings.with_ocr else ""
    kept = str(settings.cache / f"{sha256}-{layer_version()}-{digest(program).hex()[:8]}")  # a version has dots
    try:
        pages = pages_of(path, sha256, settings.cache, settings.limits)
        read, unread = _other_texts(path, pages, settings.limits, Path(f"{kept}.pages.jsonl") if program else None)
        # a phrase that is broken over two lines is found in the first text, one in a column of its own in the second
        texts = tuple(
            " | ".join((page.text, " ".join(line.text for line in page.lines), read.get(page.number, "")))
            for page in pages
        )
        losses: Counter[str] = Counter()
        facts = list(facts_of(pages, PageIndex(texts), losses))
        candidates = candidates_of(sha256, facts)
        failed = [first_failed(pages, candidate) for candidate in candidates]
        passed = [candidate for candidate, why in zip(candidates, failed, strict=True) if why is None]
        passed, left = shortlist(sha256, passed)
        crops = Path(f"{kept}.ocr.json")
        differ = misread(path, passed, settings.limits, crops) if program else {}
    except SourceError as error:
        fault = error.fault
        todo = "leave it out" if "limits." in fault.todo else fault.todo  # there is no manifest
        if fault.reason == "time-of-a-page":
            todo = "raise --seconds-a-page if the page is meant to be so, or leave the document out"
        found = f"{fault.place}: {fault.found}" if fault.place else fault.found
        return _unread(path.stem, fault.reason, found, f"{fault.expected}: {todo}" if todo else fault.expected)
    why_not = [*zip(candidates, failed, strict=True), *((passed[at], why) for at, why in differ.items()), *left]
    return Work(
        sha256,
        tuple(candidate for at, candidate in enumerate(passed) if at not in differ),
        tuple(_reject(path.stem, sha256, candidate, why) for candidate, why in why_not if why),
        DocumentReport(
            document=path.stem,
            pages=len(pages),
            pages_left_out=sum(bool(page.raw.rotation) or page.raw.is_crowded for page in pages),
            unread=tuple(sorted(unread)),
            tables=sum(len(page.tables) for page in pages),
            facts=len(facts),
            candidates=dict(sorted(Counter(candidate.kind for candidate in candidates).items())),
            questions={},
            losses=dict(sorted(losses.items())),
        ),
        texts,
        {(page.number, at): stems(page.text_in(box)) for page in pages for at, box in enumerate(page.tables)},
        (
            frozenset(fact.label for fact in facts if not is_general(fact.label)),
            frozenset(fact.header for fact in facts if not is_general(fact.header)),
        ),
    )


def _other_texts(
    path: Path, pages: Sequence[Page], limits: Limits, kept: Path | None
) -> tuple[Mapping[int, str], set[int]]:
    """Return the texts of pages whose layer is not all that they say, by number: pages that are turned, have too many
    words, or are only pictures, which OCR reads. Without OCR (`kept` is None), also the pages that nobody can read.
    """
    doubtful = set()
    for page in pages:
        shown = [box for box, kind in page.regions if kind in ("picture", "table", "formula")]
        area = sum((box.x1 - box.x0) * (box.y1 - box.y0) for box in shown)
        is_picture = not has_words(page.text) and area > _LARGE * page.raw.size[0] * page.raw.size[1]
        if page.raw.rotation or page.raw.is_crowded or not page.words or is_picture:
            doubtful.add(page.number)
    texts: dict[int, str] = {}
    pictures: set[int] = set()
    for number, read in enumerate(read_pages(path, limits) if doubtful else (), 1):
        if number in doubtful:
            texts[number] = " ".join(read.text.split())
            if read.key and not has_words(read.text):
                pictures.add(number)
    if kept is None or not pictures:
        return texts, pictures
    recognised = KeptTexts(kept)
    missing = {number for number in pictures if number - 1 not in recognised.texts}
    known = [page.number - 1 for page in pages if page.number not in missing]
    for at, _, picture in pages_to_read(path, known, limits) if missing else ():
        if at + 1 in missing:
            read_text = read_page(picture, f"{path.name}, page {at + 1}", limits.seconds_a_page, "--seconds-a-page")
            recognised.add(at, read_text)
    return texts | {n: f"{texts[n]} {' '.join(recognised.texts[n - 1].split())}".strip() for n in pictures}, set()


def shortlist(sha256: str, candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[tuple[Candidate, Failed]]]:
    """Return the candidates of a document that OCR reads, and the others with the reason. Kinds take turns, rare ones
    first, so that a page with many cells is not used up by one kind.

    A name of a row is used by one question of a document, so no answer stands in another question, and no two questions
    have one answer.
    """
    draws = Draws(("choosing questions", sha256))
    asked = Counter(normal(candidate.question) for candidate in candidates)
    kinds: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        kinds.setdefault(candidate.kind, []).append(candidate)
    queues = [draws.order(kind, of_kind, lambda c: c.question) for kind, of_kind in kinds.items()]
    queues.sort(key=lambda queue: (len(queue), queue[0].kind))
    taken: list[Candidate] = []
    left: list[tuple[Candidate, Failed]] = []
    pages, of_kind, names, answers = Counter[int](), Counter[str](), set[str](), set[object]()
    while any(queues):
        for queue in queues:
            while queue:
                candidate = queue.pop(0)
                own = {normal(fact.label) for fact in candidate.facts}
                is_free = (
                    asked[normal(candidate.question)] == 1
                    and of_kind[candidate.kind] < MOST_OF_A_KIND
                    and all(pages[page] < MOST_OF_A_PAGE for page in candidate.pages)
                    and not any(f" {one} " in f" {two} " or f" {two} " in f" {one} " for one in own for two in names)
                    and candidate.answer not in answers
                )
                if is_free:
                    taken.append(candidate)
                    pages.update(candidate.pages)
                    of_kind[candidate.kind] += 1
                    names |= own
                    answers.add(candidate.answer)
                    break
                left.append((candidate, _SURPLUS))
    return taken, left


def chosen(
    candidates: Mapping[str, Sequence[Candidate]], *, keeps_all: bool
) -> tuple[list[Named], list[tuple[str, Candidate, Failed]], tuple[str, ...]]:
    """Return the questions of a file, those that are left out with the reason, and notes on what could not be kept.

    The file is the largest one that keeps both shares. If that has no question, as with fewer than five documents or
    four kinds, it is the largest one that keeps one of the shares; if that has none either, it has all questions. Notes
    name the shares that are not kept.
    """
    every = [(name, candidate) for name, of_document in candidates.items() for candidate in of_document]
    if keeps_all or not every:
        return every, [], ()
    documents, kinds = Counter(name for name, _ in every), Counter(candidate.kind for _, candidate in every)
    draws = Draws(("questions of a file", *sorted(documents)))
    turns: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, int, int, int, str, Candidate]] = []
    for name, candidate in draws.order("file", every, lambda each: f"{each[0]} {each[1].question}"):
        turns[name, candidate.kind] += 1
        rank = turns[name, candidate.kind], kinds[candidate.kind], documents[name], len(ranked)
        ranked.append((*rank, name, candidate))
    ranked.sort(key=lambda each: each[:4])  # documents and kinds take turns, rare ones first
    order = [(name, candidate) for *_, name, candidate in ranked]
    for shares in (((OF_A_DOCUMENT, OF_A_KIND),), ((OF_A_DOCUMENT, 1), (1, OF_A_KIND)), ((1, 1),)):
        files = [(_largest(order, *each), *each) for each in shares]
        counts, of_document, of_kind = max(files, key=lambda file: file[0].total())
        if size := counts.total():
            break
    notes, uneven = [], "no choice of questions keeps the shares"
    if of_document == 1:
        is_few = len(documents) < OF_A_DOCUMENT
        why = f"only {len(documents)} documents have questions: one" if is_few else f"{uneven}: one document"
        notes.append(f"{why} may have more than a fifth of them")
    if of_kind == 1:
        why = f"only {len(kinds)} kinds have questions: one" if len(kinds) < OF_A_KIND else f"{uneven}: one kind"
        notes.append(f"{why} may have more than a quarter of them")
    names: Counter[str] = Counter()
    for (name, _), count in counts.items():
        names[name] += count
    taken: list[Named] = []
    left: list[tuple[str, Candidate, Failed]] = []
    for name, candidate in order:
        if counts[name, candidate.kind]:
            counts[name, candidate.kind] -= 1
            taken.append((name, candidate))
        elif of_document > 1 and names[name] == size // of_document:
            expected = f"at most a fifth of the questions, {size // of_document}; --all keeps them"
            left.append((name, candidate, Failed("choosing", "share-of-a-document", name, expected)))
        else:
            expected = f"at most a quarter of the questions, {size // of_kind}; --all keeps them"
            left.append((name, candidate, Failed("choosing", "share-of-a-kind", candidate.kind, expected)))
    return taken, left, tuple(notes)


def _largest(order: Sequence[Named], of_document: int, of_kind: int) -> Counter[tuple[str, str]]:
    """Return how many questions of each document and kind the largest file has that keeps both shares."""
    size = len(order)
    # fewer places never give more questions, so no file between two sizes keeps the shares
    while (counts := _most(order, size // of_document, size // of_kind)).total() < size:
        size = counts.total()
    return counts


def _most(order: Sequence[Named], per_document: int, per_kind: int) -> Counter[tuple[str, str]]:
    """Return how many questions of each document and kind are taken if documents and kinds have so many places, and as
    many questions as possible are taken: a maximum flow from documents to kinds.

    A document that comes to a kind without a place may take a place of another document, which then asks a question of
    another kind; and so on, until a kind has a place.
    """
    offered = Counter((name, candidate.kind) for name, candidate in order)
    kinds = sorted({kind for _, kind in offered})
    taken, names, used = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    done = set[str]()  # documents for which no exchange finds a place, nor will a later one
    for name, candidate in order:
        if names[name] == per_document or name in done:
            continue
        # for each kind that can be reached: the document that asks a question of it, and the kind that it gives up
        reached = {kind: (name, "") for kind in (candidate.kind, *kinds) if taken[name, kind] < offered[name, kind]}
        queue = list(reached)
        for kind in queue:
            if used[kind] < per_kind:
                break
            for other, new in offered:
                if new not in reached and taken[other, kind] and taken[other, new] < offered[other, new]:
                    reached[new] = other, kind
                    queue.append(new)
        else:
            done.add(name)
            continue
        names[name] += 1
        used[kind] += 1
        while kind:
            other, given_up = reached[kind]
            taken[other, kind] += 1
            if given_up:
                taken[other, given_up] -= 1
            kind = given_up
    return taken


def _answered_elsewhere(own: str, phrases: Sequence[Sequence[str]], others: Mapping[str, PageIndex]) -> Failed | None:
    for group in phrases:
        for name, index in others.items():
            if name != own and (pages := index.pages_with(*group)):
                found = f"{name}, page {min(pages)}: {', '.join(group)}"
                return Failed("padding", "answered-by-padding", found, "no page of another document that answers it")
    return None


def _with_twins(
    taken: Sequence[Named], works: Mapping[str, Work], others: Mapping[str, PageIndex]
) -> tuple[list[Named], int]:
    # two twins of a document have other words, because they have one answer
    asked, twins, names = list(taken), list[Named](), set[str]()
    draws = Draws(("twins of questions", *sorted({works[name].sha256 for name, _ in taken})))
    wanted = max(len(asked) // ABSENT_SHARE, 1)
    for at in draws.order("twins", range(len(asked)), lambda at: f"{asked[at][0]} {asked[at][1].question}"):
        own, candidate = asked[at]
        alike = (twin.question for name, twin in twins if name == own)
        if len(twins) == wanted or any(is_same_wording(candidate.question, question) for question in alike):
            continue

        def is_elsewhere(name: str, own: str = own, of: Candidate = candidate) -> bool:
            return _answered_elsewhere(own, of.phrases_with(name), others) is not None

        is_column = candidate.is_column_replaceable
        free = {n for other, work in works.items() if other != own for n in work.names[is_column]} - names
        if twin := twin_of(candidate, free, others[own], works[own].in_tables, is_elsewhere):
            asked[at] = own, twin
            twins.append((own, twin))
            names.add(twin.edit.partition(" → ")[2])
    return asked, len(twins)


def _question(document: str, sha256: str, candidate: Candidate, index: PageIndex) -> Question:
    is_absent = candidate.kind == ABSENT
    own = candidate.pages
    same = {page for group in candidate.phrases for page in index.pages_with(*group)}
    return Question(
        id=question_id(sha256, candidate.question),
        document=document,
        document_sha256=sha256,
        question=candidate.question,
        answer=candidate.answer,
        answer_format=format_of(candidate.answer),
        pages=() if is_absent else own,
        sources=() if is_absent else ("Table",),
        kind=candidate.kind,
        synthetic="layer",
        accepted=() if is_absent else candidate.accepted,
        grounding=tuple(Grounding(**mark._asdict()) for mark in candidate.marks),
        derived="" if is_absent else candidate.derived,
        twin_of=question_id(sha256, candidate.original) if is_absent else "",
        edit=candidate.edit,
        alternatives=() if is_absent else tuple(sorted(same - set(own))),
    )


def _reject(document: str, sha256: str, candidate: Candidate, why: Failed) -> Reject:
    return Reject(
        id=question_id(sha256, candidate.question),
        document=document,
        stage=why.stage,
        reason=why.reason,
        found=why.found[:200],
        expected=why.expected[:200],
        kind=candidate.kind,
        question=candidate.question,
        pages=candidate.pages,
    )


def _readable(documents: Path, unreadable: list[Reject]) -> Iterator[tuple[Path, str]]:
    if not is_unicode(str(documents.absolute())):
        todo, place = "rename the folder", shown_name(str(documents))
        raise SourceError(Fault("name-not-unicode", "a folder whose path is UTF-8", "other bytes", place, todo=todo))
    paths = pdfs_by_name(documents)
    if not paths:
        todo = "give the folder that has them"
        raise SourceError(Fault("nothing-to-read", "a folder with PDFs", "none", documents.name, todo=todo))
    seen: dict[str, str] = {}
    for name, path in sorted(paths.items()):
        if not is_unicode(name):
            expected = "a file name in UTF-8: rename the file"
            unreadable.append(_unread(shown_name(name), "name-not-unicode", "other bytes", expected))
        elif fault := path if isinstance(path, Fault) else oversized(path, Limits().bytes):
            unreadable.append(_unread(name, fault.reason, fault.found, fault.expected))
        elif isinstance(path, Path):
            sha256 = sha256_of(path)
            if sha256 in seen:
                same = f"the bytes of {seen[sha256]}"
                unreadable.append(_unread(name, "same-bytes", same, "another document"))
            else:
                seen[sha256] = name
                yield path, sha256


def _unread(name: str, reason: str, found: str, expected: str) -> Reject:
    id = question_id("", "document", name)
    return Reject(id=id, document=name, stage="document", reason=reason, found=shown_name(found), expected=expected)

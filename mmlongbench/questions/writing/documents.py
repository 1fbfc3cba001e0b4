"""Documents of a run: which PDFs there are, what a table says about them, what is on their pages, pictures of pages for
models, and which pages have the words of a question. A document that is left out has a line with the reason.
"""

import datetime
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pydantic import TypeAdapter, ValidationError

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import PageFacts, page_facts
from mmlongbench.documents.pdf import page_sizes, read_pages, render_pages
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import is_unicode, pdfs_by_name, sha256_of, shown_name, write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.io.tables import ENDINGS, Columns, table_rows
from mmlongbench.likeness import shingles
from mmlongbench.models.calls import Picture
from mmlongbench.questions.writing.answers import content_words, words
from mmlongbench.questions.writing.lines import DocumentLine

if TYPE_CHECKING:
    from rank_bm25 import BM25Okapi

LabelledPage: TypeAlias = tuple[str, Picture]  # a page as a model sees it, with a label such as `Page 4`
ABOUT = Columns(("doc",), ("doc_type", "published"))  # the table that says what documents are
SHARED_PAGES = 0.10  # the share of a document's pages in a benchmark from which the whole document is left out
UNRELATED = 3  # a page that so many documents of a benchmark have is boilerplate, and is no page of any of them
QUALITY = 90  # of the JPEG files that models see
_FACTS = TypeAdapter(list[PageFacts])


@dataclass(frozen=True)
class ReadDocument:
    """A document that questions are written about. Its pages are counted from 1."""

    line: DocumentLine
    path: Path
    pages: tuple[PageFacts, ...]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(words(page.text) for page in self.pages)

    def printed(self, page: int) -> int | None:
        """Return the number that is printed as the first or the last word of a page; None if there is none."""
        text = self.pages[page - 1].text.split()
        numbers = [int(word) for word in (*text[-1:], *text[:1]) if word.isdecimal() and len(word) < 5]
        return numbers[0] if numbers else None


@dataclass(frozen=True)
class Benchmark:
    """What is known of a benchmark of which nothing may be in the table."""

    name: str
    questions: tuple[tuple[str, str], ...] = ()  # the place and the words of each question
    documents: tuple[tuple[str, str], ...] = ()  # the name and, if the file is there, the SHA-256 of each document
    keys: Mapping[str, str] = field(default_factory=dict)  # the documents of pages, by the key of the page

    @cached_property
    def _by_words(self) -> Mapping[str | frozenset[str], list[int]]:
        numbers: dict[str | frozenset[str], list[int]] = {}
        for number, (_, question) in enumerate(self.questions):
            keys: list[str | frozenset[str]] = [*shingles(question), content_words(question)]
            for key in keys:
                numbers.setdefault(key, []).append(number)
        return numbers

    def alike(self, question: str) -> Iterator[tuple[str, str]]:
        """Yield the questions, with their places, that share three words in a row or all words but grammar."""
        keys: list[str | frozenset[str]] = [*shingles(question), content_words(question)]
        yield from (
            self.questions[number] for number in sorted({n for key in keys for n in self._by_words.get(key, ())})
        )


def read_benchmark(path: Path, kept: Path) -> Benchmark:
    """Return what is known of a benchmark: a table of questions, a release, or a folder with tables and PDFs."""
    tables, pdfs = [path], []
    if not path.is_file():
        files = sorted(file for file in path.rglob("*") if file.is_file() and ".build" not in file.parts)
        released = [file for file in files if "mmlb_data" in file.parts and file.suffix == ".jsonl"]
        tables = released or [file for file in files if file.suffix.lower() in ENDINGS]
        pdfs = [file for file in files if file.suffix.lower() == ".pdf"]
    questions: list[tuple[str, str]] = []
    documents: dict[str, str] = {}
    for table in tables:
        for place, row in _rows(table):
            if isinstance(row.get("question"), str):
                questions.append((f"{table.name}, {place}", str(row["question"])))
            if name := row.get("doc_id") or row.get("doc"):
                documents.setdefault(Path(str(name)).stem, "")
    keys: dict[str, set[str]] = {}
    for pdf in pdfs:
        documents[pdf.stem] = sha256_of(pdf)
        known = kept / "page-keys" / f"{documents[pdf.stem]}.json"
        if not known.exists():
            try:
                own = [page.key for page in read_pages(pdf, Limits())]
            except SourceError:
                own = []  # a document of a benchmark that cannot be read has no pages to compare
            write_whole(known, [json.dumps(own).encode()])
        for key in json.loads(known.read_bytes()):
            keys.setdefault(key, set()).add(pdf.stem)
    if not questions and not documents:
        todo = "give a table with the column question, a release, or a folder of PDFs"
        raise SourceError(Fault("no-benchmark", "questions or documents", "none", path.name, todo=todo))
    documents_of = {key: min(names) for key, names in keys.items() if key and len(names) < UNRELATED}
    return Benchmark(path.name, tuple(questions), tuple(sorted(documents.items())), documents_of)


def _rows(table: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    try:
        for place, row in table_rows(table, Columns(("question",), ("doc", "doc_id"))):
            if not isinstance(row, Fault):
                yield place, row
    except SourceError as error:
        if error.fault.reason not in ("missing-column", "missing-columns"):
            raise


def of_benchmark(document: ReadDocument, benchmarks: Sequence[Benchmark]) -> str:
    """Return which benchmark has a document, by its bytes, its name, or a share of its pages; empty if none has."""
    keys = [page.key for page in document.pages if page.key]
    for benchmark in benchmarks:
        for name, sha256 in benchmark.documents:
            if sha256 == document.line.sha256 or words(name) == words(document.line.doc):
                return f"{benchmark.name} has {name}"
        shared = [key for key in keys if key in benchmark.keys]
        if keys and len(shared) >= SHARED_PAGES * len(keys) and len(shared) > 1:
            where = benchmark.keys[shared[0]]
            return f"{len(shared)} of {len(keys)} pages are in {benchmark.name}, as in {where}"
    return ""


@dataclass(frozen=True)
class Library:
    """All documents of a run by name, and pictures of their pages in a folder. Several threads may use it."""

    documents: Mapping[str, ReadDocument]
    left_out: tuple[DocumentLine, ...]
    folder: Path
    dpi: int
    benchmarks: tuple[Benchmark, ...] = ()
    _drawing: threading.Lock = field(default_factory=threading.Lock)
    _pictures: dict[tuple[str, int], Picture] = field(default_factory=dict)
    _ranking: threading.Lock = field(default_factory=threading.Lock)
    _ranks: "dict[str, BM25Okapi]" = field(default_factory=dict)

    def shown(self, doc: str, pages: Sequence[int]) -> tuple[LabelledPage, ...]:
        """Return pages of a document as models see them; a printed page number that differs is in the label."""
        document, shown = self.documents[doc], []
        with self._drawing:  # one process draws, so one thread asks for it
            folder = self.folder / f"{document.line.sha256[:16]}-{self.dpi}"
            paths = {page: folder / f"{page}.jpg" for page in sorted({*pages}) if (doc, page) not in self._pictures}
            if missing := [page - 1 for page, path in paths.items() if not path.exists()]:
                for number, _, data in render_pages(document.path, missing, self.dpi, QUALITY, Limits()):
                    write_whole(paths[number + 1], [data])
            for page, path in paths.items():
                self._pictures[doc, page] = Picture(path, sha256_of(path))
        for page in pages:
            printed = document.printed(page)
            label = f"Page {page} (printed page number {printed})" if printed and printed != page else f"Page {page}"
            shown.append((label, self._pictures[doc, page]))
        return tuple(shown)

    def ranked(self, doc: str, question: str, without: Sequence[int] = ()) -> list[int]:
        """Return the pages of a document by BM25 for a question, best first. Pages without text, and pages with equal
        scores, are in their order.
        """
        from rank_bm25 import BM25Okapi

        with self._ranking:
            if doc not in self._ranks:
                self._ranks[doc] = BM25Okapi([text.split() or ["\0"] for text in self.documents[doc].texts])
            scores = self._ranks[doc].get_scores(words(question).split())
        order = sorted(range(len(scores)), key=lambda page: (-round(float(scores[page]), 9), page))
        return [page + 1 for page in order if page + 1 not in without]


def read_library(
    folder: Path,
    about: Path | None,
    kept: Path,
    dpi: int,
    published_after: str,
    progress: Progress,
    benchmarks: tuple[Benchmark, ...] = (),
) -> Library:
    """Read all PDFs below a folder; what was read of an unchanged file is taken from the folder `kept`.

    A document is left out if its name cannot be written or another one has it, if another one has its bytes, if it is a
    link out of the folder, if it is too old, if it cannot be read, or if it stands in a benchmark.
    """
    files = pdfs_by_name(folder)
    if not files:
        raise SourceError(Fault("no-documents", "at least one PDF", "none", folder.name, todo="give a folder of PDFs"))
    told = _told(about) if about else {}
    documents, left_out, first_of = dict[str, ReadDocument](), list[DocumentLine](), dict[str, str]()
    with progress.bar("documents", len(files)) as advance:
        for name, path in files.items():
            if isinstance(path, Fault):  # a link out of the folder, which a build refuses, too; or two of one name
                line = DocumentLine(doc=shown_name(name), sha256="", pages=0, reason=path.reason)
                detail = f"expected {path.expected}, found {path.found}; {path.todo}"
                left_out.append(line.model_copy(update={"detail": detail}))
                advance()
                continue
            line = DocumentLine(doc=shown_name(name), sha256=sha256_of(path), pages=0, **told.get(name, {}))
            reason = detail = ""
            if not is_unicode(name):
                reason, detail = "name-not-unicode", "rename the file: its name is not UTF-8"
            elif (first := first_of.setdefault(line.sha256, line.doc)) != line.doc:
                reason, detail = "same-bytes", f"the bytes of {first}, which is used"
            elif published_after and line.published <= published_after:
                reason = "published-too-early" if line.published else "no-date-of-publication"
                detail = line.published or "see --about"
            else:
                try:
                    pages = _pages(path, kept / "facts" / f"{line.sha256}.json")
                except SourceError as error:
                    fault = error.fault
                    reason, detail = fault.reason, f"expected {fault.expected}, found {fault.found}"
                else:
                    line = line.model_copy(update={"pages": len(pages)})
                    documents[name] = ReadDocument(line, path, tuple(pages))
                    if detail := of_benchmark(documents[name], benchmarks):
                        reason = "benchmark-document"
                        del documents[name]
            if reason:
                left_out.append(line.model_copy(update={"reason": reason, "detail": detail}))
            advance()
    return Library(documents, tuple(left_out), kept / "pictures", dpi, benchmarks)


def _pages(path: Path, kept: Path) -> list[PageFacts]:
    try:
        return _FACTS.validate_json(kept.read_bytes())
    except (OSError, ValidationError):
        list(page_sizes(path, 72, Limits()))  # also refuses pages that cost too much
        pages = list(page_facts(path, Limits()))
        write_whole(kept, [json.dumps(_FACTS.dump_python(pages, mode="json")).encode()])
        return pages


def _told(about: Path) -> dict[str, dict[str, str]]:
    told = {}
    for place, row in table_rows(about, ABOUT):
        if isinstance(row, Fault):
            raise SourceError(row)
        name = str(row["doc"] or "").strip()
        name = name[:-4] if name.lower().endswith(".pdf") else name
        cells = {key: str(row.get(key) or "").strip() for key in ABOUT.optional}
        if (date := cells["published"]) and not is_date(date):
            expected, todo = "a date such as 2024-05-31", "write the date as 2024-05-31, or leave it empty"
            raise SourceError(Fault("wrong-date", expected, date[:40], about.name, place, "published", todo))
        told[name] = cells
    return told


def is_date(text: str) -> bool:
    """Return whether a text is a date such as 2024-05-31."""
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

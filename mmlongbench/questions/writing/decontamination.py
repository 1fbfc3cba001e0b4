"""The stage `decontamination`: nothing may stand in a named benchmark, neither the question, its page nor its document.

Questions are compared in words (the same 13 words in a row, 80 % of the runs of three words, or 90 % of the words that
are not grammar); pages by the hash of their content; documents by file, by name, and by the share of their pages.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import read_pages
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import sha256_of, write_whole
from mmlongbench.io.tables import ENDINGS, Columns, table_rows
from mmlongbench.likeness import is_same_wording, shingles
from mmlongbench.questions.writing.answers import words
from mmlongbench.questions.writing.context import Context, passed, rejected
from mmlongbench.questions.writing.documents import ReadDocument
from mmlongbench.questions.writing.lines import Candidate, Judged
from mmlongbench.questions.writing.near import content_words

SHARED_PAGES = 0.10
"""The share of a document's pages in a benchmark from which the whole document is left out."""
UNRELATED = 3
"""A page that so many documents of a benchmark have is boilerplate, and is no page of any of them."""
COMMON = 0.9
"""The share of the words of the longer question, grammar left out, that makes two questions the same."""
_QUESTIONS = Columns(("question",), ("doc", "doc_id"))


@dataclass(frozen=True)
class Benchmark:
    """What is known of one benchmark."""

    name: str
    questions: tuple[tuple[str, str], ...] = ()
    """The place and the words of each question."""
    documents: tuple[tuple[str, str], ...] = ()
    """The name and, if the file is there, the SHA-256 of each document."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The documents of pages, by the key of the page."""

    @cached_property
    def by_shingle(self) -> Mapping[str, list[int]]:
        """Return the numbers of questions by each run of three words."""
        found: dict[str, list[int]] = {}
        for number, (_, question) in enumerate(self.questions):
            for shingle in shingles(question):
                found.setdefault(shingle, []).append(number)
        return found

    @cached_property
    def by_words(self) -> Mapping[frozenset[str], list[int]]:
        """Return the numbers of questions by their words in any order, grammar left out."""
        found: dict[frozenset[str], list[int]] = {}
        for number, (_, question) in enumerate(self.questions):
            found.setdefault(frozenset(content_words(question)), []).append(number)
        return found


def read_benchmark(path: Path, kept: Path) -> Benchmark:
    """Return what is known of a benchmark: a table of questions, a release, or a folder with tables and PDFs.

    Raises:
        SourceError: nothing there can be read.

    """
    tables, pdfs = _files(path)
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
        for key in _keys(pdf, documents[pdf.stem], kept):
            keys.setdefault(key, set()).add(pdf.stem)
    if not questions and not documents:
        todo = "give a table with the column question, a release, or a folder of PDFs"
        raise SourceError(Fault("no-benchmark", "questions or documents", "none", path.name, todo=todo))
    own = {key: sorted(docs)[0] for key, docs in keys.items() if key and len(docs) < UNRELATED}
    return Benchmark(path.name, tuple(questions), tuple(sorted(documents.items())), own)


def _files(path: Path) -> tuple[list[Path], list[Path]]:
    if path.is_file():
        return [path], []
    files = sorted(each for each in path.rglob("*") if each.is_file() and ".build" not in each.parts)
    released = [each for each in files if "mmlb_data" in each.parts and each.suffix == ".jsonl"]
    tables = released or [each for each in files if each.suffix.lower() in ENDINGS]
    return tables, [each for each in files if each.suffix.lower() == ".pdf"]


def _rows(table: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    try:
        for place, row in table_rows(table, _QUESTIONS):
            if not isinstance(row, Fault):
                yield place, row
    except SourceError as error:
        if error.fault.reason not in ("missing-column", "missing-columns"):
            raise


def _keys(pdf: Path, sha256: str, kept: Path) -> list[str]:
    file = kept / "page-keys" / f"{sha256}.json"
    if file.exists():
        known: list[str] = json.loads(file.read_bytes())
        return known
    try:
        found = [page.key for page in read_pages(pdf, Limits())]
    except SourceError:
        found = []  # a document of a benchmark that cannot be read has no pages to compare
    write_whole(file, [json.dumps(found).encode()])
    return found


def of_document(document: ReadDocument, benchmarks: Iterable[Benchmark]) -> tuple[str, str] | None:
    """Return the reason and the detail if a document stands in a benchmark; None if it does not."""
    own_keys = [page.key for page in document.pages if page.key]
    name = words(document.name)
    for benchmark in benchmarks:
        for other, sha256 in benchmark.documents:
            if sha256 == document.line.sha256 or words(other) == name:
                return "benchmark-document", f"{benchmark.name} has {other}"
        shared = [key for key in own_keys if key in benchmark.keys]
        if own_keys and len(shared) >= SHARED_PAGES * len(own_keys) and len(shared) > 1:
            where = benchmark.keys[shared[0]]
            return (
                "benchmark-document",
                f"{len(shared)} of {len(own_keys)} pages are in {benchmark.name}, as in {where}",
            )
    return None


def of_question(candidate: Candidate, context: Context, benchmarks: Sequence[Benchmark]) -> Judged:
    """Return whether a benchmark has a page or the words of a question."""
    document = context.document(candidate)
    for benchmark in benchmarks:
        for page in candidate.pages or candidate.about:
            if where := benchmark.keys.get(document.pages[page - 1].key):
                return rejected(candidate.slot, "benchmark-page", f"page {page} is in {benchmark.name}, in {where}")
        near = {number for shingle in shingles(candidate.question) for number in benchmark.by_shingle.get(shingle, ())}
        near.update(benchmark.by_words.get(frozenset(content_words(candidate.question)), ()))
        for number in sorted(near):
            place, question = benchmark.questions[number]
            if _is_same(question, candidate.question):
                return rejected(candidate.slot, "benchmark-question", f"{benchmark.name}: {place}: {question[:160]}")
    return passed(candidate)


def _is_same(one: str, other: str) -> bool:
    """Return whether two questions are the same in nearly all of their words."""
    ours, theirs = content_words(one), content_words(other)
    common = len(ours & theirs) / max(1, len(ours), len(theirs))
    return common >= COMMON or words(one) == words(other) or is_same_wording(one, other)

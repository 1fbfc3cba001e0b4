"""The documents of a run: which PDFs there are, what a table says about them, what is on their pages, and pictures of
pages. A document that is left out has a line with the reason.
"""

import datetime
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import PageFacts, page_facts
from mmlongbench.documents.pdf import page_sizes, render_pages
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import is_unicode, sha256_of, shown_name, write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.io.tables import Columns, table_rows
from mmlongbench.models.calls import Picture
from mmlongbench.questions.writing.answers import words
from mmlongbench.questions.writing.asking import Shown
from mmlongbench.questions.writing.lines import DocumentLine

ABOUT = Columns(("doc",), ("doc_type", "published"))
"""The columns of the table that says what documents are and when they were published."""
_FACTS = TypeAdapter(list[PageFacts])
QUALITY = 90
"""The JPEG quality of the pages that models see."""


@dataclass(frozen=True)
class ReadDocument:
    """A document that questions are written about."""

    line: DocumentLine
    path: Path
    pages: tuple[PageFacts, ...]

    @property
    def name(self) -> str:
        """Return the name of the file without its ending; it is also the title that models are told."""
        return self.line.doc

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Return the words of each page (see `answers.words`)."""
        return tuple(words(page.text) for page in self.pages)

    def has_text(self, page: int) -> bool:
        """Return whether a page, from 1, has words in its text layer."""
        return len(self.texts[page - 1]) > 40

    def label(self, page: int) -> str:
        """Return the label of a page, from 1; a printed number that differs stands beside it."""
        printed = self.printed(page)
        return f"Page {page} (printed page number {printed})" if printed and printed != page else f"Page {page}"

    def printed(self, page: int) -> int | None:
        """Return the number that is printed as the first or the last word of a page, from 1; None if there is none."""
        found = self.pages[page - 1].text.split()
        numbers = [int(word) for word in (*found[-1:], *found[:1]) if word.isdecimal() and len(word) < 5]
        return numbers[0] if numbers else None


@dataclass(frozen=True)
class Library:
    """All documents of a run, by name, and pictures of their pages."""

    documents: Mapping[str, ReadDocument]
    left_out: tuple[DocumentLine, ...]
    folder: Path
    """The folder of pictures."""
    dpi: int
    _drawing: threading.Lock = field(default_factory=threading.Lock)
    _known: dict[tuple[str, int], Picture] = field(default_factory=dict)

    def shown(self, doc: str, pages: Sequence[int]) -> tuple[Shown, ...]:
        """Return pages of a document, from 1, as models see them."""
        document = self.documents[doc]
        self._draw(document, [page for page in pages if (doc, page) not in self._known])
        return tuple(Shown(document.label(page), self._known[doc, page]) for page in pages)

    def _draw(self, document: ReadDocument, pages: Sequence[int]) -> None:
        """Make the pictures of pages that are not there yet; one process draws, so one thread asks for it."""
        with self._drawing:
            folder = self.folder / f"{document.line.sha256[:16]}-{self.dpi}"
            paths = {page: folder / f"{page}.jpg" for page in sorted({*pages})}
            missing = [page for page, path in paths.items() if not path.exists()]
            if missing:
                drawn = render_pages(document.path, [page - 1 for page in missing], self.dpi, QUALITY, Limits())
                for number, _, data in drawn:
                    write_whole(paths[number + 1], [data])
            for page, path in paths.items():
                self._known[document.name, page] = Picture(path, sha256_of(path))


def read_library(
    folder: Path, about: Path | None, kept: Path, dpi: int, published_after: str, progress: Progress
) -> Library:
    """Read all PDFs below a folder; what was read of an unchanged file is taken from `kept`.

    Raises:
        SourceError: the table about the documents cannot be read, or there is no PDF.

    """
    files = _files(folder)
    told = _told(about) if about else {}
    documents, left_out, seen = dict[str, ReadDocument](), list[DocumentLine](), dict[str, str]()
    with progress.bar("documents", len(files)) as advance:
        for name, path in files.items():
            line = DocumentLine(doc=shown_name(name), sha256=sha256_of(path), pages=0, **told.get(name, {}))
            left = _of_name(line, name) or _of_copy(line, seen) or _of_date(line, published_after)
            found = left or _read(line, path, kept)
            if isinstance(found, ReadDocument):
                documents[name] = found
            else:
                left_out.append(found)
            advance()
    return Library(documents, tuple(left_out), kept / "pictures", dpi)


def _files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() == ".pdf" and path.is_file():
            if path.stem in found:
                fault = Fault("name-of-two-documents", "one PDF of each name", path.name, todo="rename one of them")
                raise SourceError(fault)
            found[path.stem] = path
    if not found:
        raise SourceError(Fault("no-documents", "at least one PDF", "none", folder.name, todo="give a folder of PDFs"))
    return found


def _told(about: Path) -> dict[str, dict[str, str]]:
    found = {}
    for place, row in table_rows(about, ABOUT):
        if isinstance(row, Fault):
            raise SourceError(row)
        name = str(row["doc"] or "").strip()
        name = name[:-4] if name.lower().endswith(".pdf") else name
        told = {key: str(row.get(key) or "").strip() for key in ABOUT.optional}
        if told["published"] and not is_date(told["published"]):
            todo = "write the date as 2024-05-31, or leave it empty"
            raise SourceError(
                Fault(
                    "wrong-date",
                    "a date such as 2024-05-31",
                    told["published"][:40],
                    about.name,
                    place,
                    "published",
                    todo,
                )
            )
        found[name] = told
    return found


def is_date(text: str) -> bool:
    """Return whether a text is a date such as 2024-05-31.

    >>> is_date("2024-05-31"), is_date("May 2024")
    (True, False)
    """
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _of_name(line: DocumentLine, name: str) -> DocumentLine | None:
    """Return the line of a document whose name cannot be written; None if it can."""
    if is_unicode(name):
        return None
    return line.model_copy(update={"reason": "name-not-unicode", "detail": "rename the file: its name is not UTF-8"})


def _of_copy(line: DocumentLine, seen: dict[str, str]) -> DocumentLine | None:
    """Return the line of a document whose bytes are those of one before it; None if there is none."""
    first = seen.setdefault(line.sha256, line.doc)
    if first == line.doc:
        return None
    return line.model_copy(update={"reason": "same-bytes", "detail": f"the bytes of {first}, which is used"})


def _of_date(line: DocumentLine, published_after: str) -> DocumentLine | None:
    """Return the line of a document that is left out for its date; None if it is used."""
    if not published_after or line.published > published_after:
        return None
    reason = "published-too-early" if line.published else "no-date-of-publication"
    return line.model_copy(update={"reason": reason, "detail": line.published or "see --about"})


def _read(line: DocumentLine, path: Path, kept: Path) -> ReadDocument | DocumentLine:
    file = kept / "facts" / f"{line.sha256}.json"
    try:
        pages = _FACTS.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        try:
            list(page_sizes(path, 72, Limits()))  # also refuses pages that cost too much
            pages = list(page_facts(path, Limits()))
        except SourceError as error:
            found = f"expected {error.fault.expected}, found {error.fault.found}"
            return line.model_copy(update={"reason": error.fault.reason, "detail": found})
        write_whole(file, [json.dumps(_FACTS.dump_python(pages, mode="json")).encode()])
    return ReadDocument(line.model_copy(update={"pages": len(pages)}), path, tuple(pages))


def blocks(pages: int, size: int) -> Iterator[tuple[int, ...]]:
    """Yield the pages of a document, from 1, in blocks of nearly the same size.

    >>> list(blocks(5, 3))
    [(1, 2), (3, 4, 5)]
    """
    count = -(-pages // size)
    for number in range(count):
        yield tuple(range(number * pages // count + 1, (number + 1) * pages // count + 1))

"""M-LongDoc (Chia et al. 2025, arXiv:2411.06176): open questions about one page of a long PDF, without answers.

The questions are JSON Lines, `test_academic.json`, `test_finance.json` and `test_product.json`, 1,051 rows. People kept
851 of them: their sheets have a column `valid`, and a row is joined to its mark by the text of the question. Pages
count from 1. The source of a row is the parsed document, `data/test/<name>.json`; its PDF is `<name>.pdf`.

A page of a parsed document is a line whose picture is in base64. The pictures are written as files, and named by the
number of the page. A page's text and its cut-outs are not used: a release has the text that the PDF or OCR gives, and
finds tables and figures in the PDF.

Rows of the training files have an answer, which is kept as the reference.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import ClassVar

from builders.docvqa.rows import DocumentQuestion, DocVQAOptions, open_question, page_numbers, strings_of
from mmlongbench.task import (
    Columns,
    Fault,
    Options,
    PageImages,
    Pages,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    escape_markers,
    json_lines,
    nearest,
    pdfs_by_name,
    raw_row,
    table_rows,
    visible_files,
)

PAGES = "pages"
"""The name of the source that `write_parsed` makes."""
DPI = 150
"""The resolution at which the program draws pages."""
MAX_PAGES = 10_000
"""The maximum number of a page."""
_LIST = "documents.jsonl"
"""The file with the name of each document, and its pages or its fault."""
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg"}


def write_parsed(source: Path, folder: Path, known: frozenset[str]) -> None:
    """Write the pages of each document below `source` that is a JSON Lines file, except the documents in `known`.

    A document with a line that cannot be used is refused as a whole: it would lack a page.
    """
    folder.mkdir(parents=True)
    lines = []
    files = [file for file in visible_files(source) if file.suffix.lower() in (".json", ".jsonl")]
    for number, file in enumerate(file for file in files if file.stem not in known):
        (folder / f"{number:05d}").mkdir()
        found = _written(file, folder / f"{number:05d}")
        about = found.fields() if isinstance(found, Fault) else [f"{number:05d}/{name}" for name in found]
        lines.append(json.dumps({"doc": file.stem, "pages": about}, ensure_ascii=False))
    (folder / _LIST).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def parsed_documents(folder: Path) -> Mapping[str, Pages | Fault]:
    """Return the documents that `write_parsed` wrote, by name. Two files of one name are a fault."""
    found: dict[str, Pages | Fault] = {}
    for _, _, line in json_lines(folder / _LIST):
        if isinstance(line, Fault):
            continue
        doc, pages = str(line["doc"]), line["pages"]
        if doc in found:
            todo = "rename or remove one of them"
            found[doc] = Fault("two-documents-of-one-name", "names that differ", f"{doc} twice", todo=todo)
        elif isinstance(pages, dict):
            found[doc] = Fault(**pages)
        elif isinstance(pages, list):
            found[doc] = PageImages(tuple(folder / str(page) for page in pages), dpi=DPI)
    return found


def _written(file: Path, folder: Path) -> list[str] | Fault:
    """Write the pages of one document into a folder; return the names of their files, or what is wrong with a line."""
    pages: dict[int, str] = {}
    for number, _, raw in json_lines(file):
        found = raw if isinstance(raw, Fault) else _page(raw)
        if not isinstance(found, Fault) and found[0] in pages:
            found = Fault("two-pages-of-one-number", "each page once", f"page {found[0]} twice", todo="remove a line")
        if isinstance(found, Fault):
            return replace(found, file=file.name, place=f"line {number}")
        page, data, ending = found
        pages[page] = f"page_{page}.{ending}"
        (folder / pages[page]).write_bytes(data)
    missing = next((page for page in range(1, len(pages) + 1) if page not in pages), None)
    if missing or not pages:
        expected = f"pages 1 to {len(pages)}" if pages else "at least one page"
        todo = "make the file again from the PDF, or give the PDF"
        return Fault("missing-pages", expected, f"no page {missing or 1}", file.name, todo=todo)
    return [pages[page] for page in sorted(pages)]


def _page(raw: Mapping[str, object]) -> tuple[int, bytes, str] | Fault:
    """Return the number, the bytes and the file ending of a page, or what is wrong with the line."""
    number, text = raw.get("number"), raw.get("image_string")
    if type(number) is not int or not 1 <= number <= MAX_PAGES:
        expected = f"the number of a page, from 1 to {MAX_PAGES}"
        return Fault("page-without-number", expected, repr(number)[:80], field="number", todo="correct the line")
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        data = b""
    ending = next((ending for start, ending in _SIGNATURES.items() if data.startswith(start)), "")
    if not ending:
        expected, found = "a PNG or JPEG in base64", f"{str(text)[:24]!r}" if text else "nothing"
        return Fault("broken-page", expected, found, field="image_string", todo="make the file again from the PDF")
    return number, data, ending


CATEGORIES = {"texts": "Text", "tables": "Table", "figures or diagrams or charts": "Figure"}
"""The categories of questions, and how the other public datasets call such a source of an answer."""
FACETS = ("annotator", "subject")
"""The columns that `options.facets` may name: the model that wrote a question, and the kind of the document."""
VALID = "valid"
"""The field that the sheets add to a row: `1` if people kept the question."""
_NOT_MARKED = "no mark"
_SHEET = Columns(("question", VALID))
_METADATA = Columns(("url", "category"))
_TABLES = (".xlsx", ".csv")


class MLongDoc(Reader[DocumentQuestion]):
    """M-LongDoc: 851 questions over 180 PDFs."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "documents")
    optional_sources: ClassVar[tuple[str, ...]] = ("annotations", "metadata")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "A folder with the files `test_*.json`, or one such file: JSON Lines with question, answer (mostly empty), "
            "category, evidence_pages (from 1) and source (`data/test/<name>.json`)."
        ),
        "documents": (
            "A folder of PDFs, each named `<name>.pdf`, or of parsed documents `<name>.json` (JSON Lines with the "
            "number and the picture of each page, at 150 DPI), also in subfolders; a PDF goes before a parsed document."
        ),
        "annotations": (
            "A folder with the sheets of the people who checked the questions (`.xlsx`, or CSV), or one sheet; the "
            "columns are question and valid, and only questions with the value 1 are asked. Without this source all "
            "questions are asked."
        ),
        "metadata": (
            "The file `metadata.csv` with the columns url and category, for `options.facets: [subject]` and the "
            "addresses of the documents."
        ),
    }
    extracted_from: ClassVar[Mapping[str, str]] = {PAGES: "documents"}
    image_folder: ClassVar[str] = "m-longdoc"
    fixed_fields: ClassVar[tuple[str, ...]] = (VALID,)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each row; its id is `m_longdoc_<name of the file, without test_>_<row>`, from 0."""
        kept = _kept(sources["annotations"]) if "annotations" in sources else None
        subjects = {name: category for name, _, category in _described(sources)}
        for file in _question_files(sources["questions"]):
            domain = file.stem.removeprefix("test_")
            for number, (line, _, raw) in enumerate(json_lines(file)):
                if isinstance(raw, dict):
                    marked = {} if kept is None else {VALID: kept.get(str(raw.get("question")).strip(), _NOT_MARKED)}
                    subject = subjects.get(PurePosixPath(str(raw.get("source"))).stem, "")
                    raw = {**raw, "domain": domain, "subject": subject, **marked}
                yield raw_row(f"m_longdoc_{domain}_{number}", raw, file.name, f"line {line}")

    def addresses(self, sources: SourcePaths) -> Mapping[str, str]:
        """Return the URLs of `metadata.csv`."""
        return {name: url for name, url, _ in _described(sources)}

    def row(self, raw: RawRow, sources: SourcePaths) -> DocumentQuestion | Fault:
        """Return one row cleaned. A row that people did not keep is skipped."""
        fields = raw.fields
        if fault := _fault_of(_mark(fields.get(VALID, "1"))):
            return fault
        strings = strings_of(fields, ("question", "category", "source"))
        if isinstance(strings, Fault):
            return strings
        if strings["category"] not in CATEGORIES:
            expected, todo = f"one of {', '.join(CATEGORIES)}", "correct it with errata"
            return Fault("unknown-category", expected, strings["category"][:80], field="category", todo=todo)
        name = PurePosixPath(strings["source"]).name
        if PurePosixPath(name).suffix not in (".json", ".pdf"):
            expected, todo = "a path such as data/test/<name>.json", "correct it with errata"
            return Fault("unknown-source", expected, strings["source"][:80], field="source", todo=todo)
        return open_question(
            raw.id,
            PurePosixPath(name).stem,
            strings["question"],
            fields.get("answer"),
            page_numbers(fields.get("evidence_pages"), "evidence_pages"),
            doc_type=str(fields.get("domain") or ""),
            sources=(CATEGORIES[strings["category"]],),
            columns={name: escape_markers(str(fields.get(name) or "")) for name in FACETS},
        )

    def extract(self, sources: SourcePaths, folder: Path) -> None:
        """Write the pages of parsed documents as files, for documents without a PDF."""
        documents = sources["documents"]
        if documents.is_dir() and any(file.suffix.lower() in (".json", ".jsonl") for file in visible_files(documents)):
            write_parsed(documents, folder / PAGES, frozenset(pdfs_by_name(documents)))

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return the PDFs by name and, for documents without a PDF, the pages of the parsed document."""
        parsed = parsed_documents(sources[PAGES]) if PAGES in sources else {}
        return {**parsed, **pdfs_by_name(sources["documents"])}

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        """Return which files are not read, and whether questions are asked that people did not keep.

        Raises:
            SourceError: `options.facets` names a column that there is not.

        """
        for name in options.facets if isinstance(options, DocVQAOptions) else ():
            if name not in FACETS:
                todo = f"the columns are {' and '.join(FACETS)}{nearest(name, FACETS)}"
                raise SourceError(Fault("unknown-column", "a column of M-LongDoc", repr(name), "", "", "facets", todo))
        notes, questions = [], sources["questions"]
        read = _question_files(questions)
        others = [file.name for file in visible_files(questions) if file not in read] if questions.is_dir() else []
        if others:
            notes.append(f"{questions.name}: not read: {', '.join(others)[:200]}; to read one of them, name it alone")
        if "annotations" not in sources:
            notes.append("all questions are asked; source.annotations keeps those that people kept (851 of 1,051)")
        return notes


def _question_files(questions: Path) -> list[Path]:
    """Return the files of questions: the file itself, or the files `test_*.json` of a folder.

    Raises:
        SourceError: the folder has no such file.

    """
    if not questions.is_dir():
        return [questions]
    found = [file for file in visible_files(questions) if file.name.startswith("test_") and file.suffix == ".json"]
    if not found:
        expected, todo = "files such as test_academic.json", "give the folder data/questions, or one file"
        raise SourceError(Fault("missing-source", expected, "none", questions.name, todo=todo))
    return found


def _kept(annotations: Path) -> dict[str, str]:
    """Return the mark of each question in the sheets, by the text of the question.

    A question that one sheet keeps is kept, whatever another sheet says: no question of the public sheets is in two.

    Raises:
        SourceError: there is no sheet, or a sheet has no column for questions or marks.

    """
    files = [annotations]
    if annotations.is_dir():
        files = [file for file in visible_files(annotations) if file.suffix.lower() in _TABLES]
        files = [file for file in files if annotations / file.name == file]
    if not files:
        todo = "give the folder data/annotation, or one of its sheets"
        raise SourceError(Fault("missing-source", "sheets (.xlsx or .csv)", "none", annotations.name, todo=todo))
    marks: dict[str, str] = {}
    for file in files:
        for place, raw in table_rows(file, _SHEET):
            if isinstance(raw, Fault):
                raise SourceError(replace(raw, file=file.name, place=place))
            if question := str(raw.get("question") or "").strip():
                mark = _mark(raw.get(VALID))
                marks[question] = "1" if "1" in (mark, marks.get(question)) else mark
    return marks


def _mark(value: object) -> str:
    """Return the mark of a question in one form, as sheets and programs write it in several.

    >>> _mark(1.0), _mark("TRUE"), _mark(" 0 "), _mark(None), _mark("maybe")
    ('1', '1', '0', 'empty', 'maybe')
    """
    text = "" if value is None else str(value).strip().lower()
    return {"1.0": "1", "true": "1", "0.0": "0", "false": "0", "": "empty"}.get(text, text)


def _fault_of(mark: str) -> Fault | None:
    """Return why a question with this mark is not asked; None if it is."""
    if mark == "1":
        return None
    todo = "leave out source.annotations to ask every question"
    if mark in ("0", "empty"):
        return Fault("not-kept-by-people", f"{VALID}: 1", f"{VALID}: {mark}", field=VALID, todo=todo, is_expected=True)
    if mark == _NOT_MARKED:
        todo = f"give all sheets of the people, or {todo}"
        return Fault("not-marked", f"a mark in {VALID}", "no sheet has the question", field=VALID, todo=todo)
    return Fault("unknown-mark", "1 or 0", f"{VALID}: {mark}"[:80], field=VALID, todo="correct it in the sheet")


def _described(sources: SourcePaths) -> Iterator[tuple[str, str, str]]:
    """Yield (name of the PDF without the ending, URL, category) of each document of `metadata.csv`; nothing without
    this source.
    """
    for _, raw in table_rows(sources["metadata"], _METADATA) if "metadata" in sources else ():
        if isinstance(raw, dict):
            url = str(raw.get("url") or "").strip()
            yield PurePosixPath(url).name.removesuffix(".pdf"), url, str(raw.get("category") or "")

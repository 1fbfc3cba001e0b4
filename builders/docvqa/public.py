"""The readers of MMLongBench-Doc, LongDocURL and M-LongDoc: questions about PDFs, or about their published page images.

Pages count from 1 in all annotations.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import ClassVar

import mmlongbench.task as mt
from builders.common import refused, source_error
from builders.docvqa.rows import (
    PAGES,
    DocumentQuestion,
    DocVQAOptions,
    clean,
    missing_pages,
    read_list,
    strings_of,
    texts_in,
    write_list,
)

# --- MMLongBench-Doc --------------------------------------------------------------------------------------------------


class MMLongBenchDoc(mt.readers.Reader[DocumentQuestion]):
    """MMLongBench-Doc: 1,082 questions over 135 PDFs."""

    # Ma et al. 2024, arXiv:2407.01523. A row has seven string fields; pages and lists are Python literals. Known errors
    # of the data (page 0, answerable rows without pages, "Int" answers that are not integers, lists without brackets)
    # are repaired or refused row by row.

    row_type: ClassVar[type[mt.Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("samples", "documents")
    source_forms: ClassVar[Mapping[str, str]] = {
        "samples": (
            "The file `samples.json` (a JSON array) or a Parquet file of the hub; a row has doc_id, doc_type, "
            "question, answer, evidence_pages (from 1), evidence_sources and answer_format, all of them texts."
        ),
        "documents": "A folder of PDFs, without subfolders; a PDF has the name that doc_id gives it.",
    }
    image_folder: ClassVar[str] = "mmlongbench-doc"

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        path = sources["samples"]
        if path.suffix == ".parquet":
            with mt.readers.parquet_file(path) as table:
                rows: object = table.read().to_pylist()
        else:
            rows = mt.readers.load_json(path, "a JSON array of rows")
        if not isinstance(rows, list):
            todo = "give samples.json, or the Parquet file of the hub"
            raise source_error("invalid-source", "a JSON array of rows", type(rows).__name__, path.name, todo)
        todo = "remove the row, or fetch the file again"
        for number, raw in enumerate(rows):
            fault = mt.Fault("not-a-row", "an object of seven fields", type(raw).__name__, todo=todo)
            fields = raw if isinstance(raw, dict) else fault
            yield mt.readers.raw_row(f"mmlongdoc_{number}", fields, path.name, f"row {number}")

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> DocumentQuestion:
        fields = ("doc_id", "doc_type", "question", "answer", "evidence_pages", "evidence_sources", "answer_format")
        name, doc_type, _, _, pages, places, declared = strings_of(raw.fields, *fields)
        listed = mt.metrics.literal_list(places)
        return clean(
            raw,
            name[:-4] if name.lower().endswith(".pdf") else name,
            declared,
            pages,
            doc_type=doc_type,
            sources=texts_in(listed),
            repairs=() if listed is not None else ("unreadable-evidence-sources-dropped",),
        )

    def documents(self, sources: mt.readers.SourcePaths) -> Mapping[str, mt.readers.Pages | mt.Fault]:
        """Return all PDFs of the folder except hidden ones, by their names without the ending. PDFs that share such a
        name are refused.
        """
        return mt.readers.pdfs_by_name(sources["documents"], is_deep=False)


# --- LongDocURL -------------------------------------------------------------------------------------------------------

_IMAGE = re.compile(r"(.+)_(\d+)\.png", re.IGNORECASE)


class LongDocURL(mt.readers.Reader[DocumentQuestion]):
    """LongDocURL: 2,325 questions over 396 documents."""

    # Deng et al. 2024, arXiv:2412.18424. Image files count from 0. A question is about a window of 30 pages
    # (`start_end_idx`). The published images have 72 DPI, so a page has a quarter of the tokens that it has at 144 DPI.

    row_type: ClassVar[type[mt.Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions",)
    optional_sources: ClassVar[tuple[str, ...]] = ("documents", "page_images")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "The file `LongDocURL.jsonl`; a line has doc_no, question, answer, answer_format, evidence_pages "
            "(from 1) and start_end_idx, and may have evidence_sources, task_tag, question_type and "
            "total_pages."
        ),
        "documents": "A folder of PDFs `<doc_no>.pdf`, also in subfolders. Give this source, page_images, or both.",
        "page_images": (
            "The folder of the published page images, `<doc_no>_<page from 0>.png`, also in subfolders; they "
            "have 72 DPI, so set `pages.dpi` to 72."
        ),
    }
    image_folder: ClassVar[str] = "longdocurl"
    fixed_fields: ClassVar[tuple[str, ...]] = ("total_pages",)

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        path = sources["questions"]
        for number, (line, _, raw) in enumerate(mt.readers.json_lines(path)):
            yield mt.readers.raw_row(f"longdocurl_{number}", raw, path.name, f"line {line}")

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> DocumentQuestion:
        fields = raw.fields
        doc, _, declared = strings_of(fields, "doc_no", "question", "answer_format")
        window = fields.get("start_end_idx")
        pages = window if isinstance(window, list) and all(type(page) is int for page in window) else []
        if len(pages) != 2 or not 1 <= pages[0] <= pages[1]:
            expected, todo = "[first, last] page from 1", "correct it with errata"
            raise refused("window-out-of-range", expected, repr(window)[:80], "start_end_idx", todo)
        return clean(
            raw,
            doc,
            declared,
            fields.get("evidence_pages"),
            question_type=": ".join(str(fields[key]) for key in ("task_tag", "question_type") if fields.get(key)),
            sources=texts_in(fields.get("evidence_sources")),
            window=(pages[0] - 1, pages[1] - 1),
        )

    def documents(self, sources: mt.readers.SourcePaths) -> Mapping[str, mt.readers.Pages | mt.Fault]:
        """Return the PDFs by name and, for documents without a PDF, the published page images. A document is refused if
        it lacks a page, or has two different images of one page.
        """
        pdfs = mt.readers.pdfs_by_name(sources["documents"]) if "documents" in sources else {}
        if "page_images" not in sources and "documents" in sources:
            return pdfs
        if "page_images" not in sources:
            expected = "source.documents (a folder of PDFs) or source.page_images (the published ones)"
            raise source_error("missing-source", expected, "neither", sources["questions"].name, "set one of them")
        folder = sources["page_images"]
        if not folder.is_dir():
            todo = "give the folder that holds the images"
            raise source_error("unreadable-source", "a folder of page images", "a file", folder.name, todo)
        totals: dict[str, int] = {}
        for _, _, raw in mt.readers.json_lines(sources["questions"]):
            doc, total = (None, None) if isinstance(raw, mt.Fault) else (raw.get("doc_no"), raw.get("total_pages"))
            if isinstance(doc, str) and type(total) is int:
                totals.setdefault(doc, total)
        images: dict[str, dict[int, Path]] = {}
        documents: dict[str, mt.readers.Pages | mt.Fault] = {}
        for path in mt.readers.visible_files(folder):
            if match := _IMAGE.fullmatch(path.name):
                other = images.setdefault(match[1], {}).setdefault(int(match[2]), path)
                if other != path and other.read_bytes() != path.read_bytes():
                    both = f"{other.relative_to(folder)}, {path.relative_to(folder)}"
                    expected, todo = "one image for each page", "remove one of the two"
                    documents[match[1]] = mt.Fault("two-documents-of-one-name", expected, both, folder.name, todo=todo)
        for doc, pages in images.items():
            last = max(max(pages), totals.get(doc, 0) - 1)
            lacking = missing_pages(doc, pages, 0, last, "", "fetch them, or give the PDF")
            whole = mt.readers.PageImages(tuple(pages[number] for number in sorted(pages)), dpi=72)
            documents.setdefault(doc, lacking or whole)
        return documents | pdfs


# --- M-LongDoc --------------------------------------------------------------------------------------------------------

DPI = 150
"""The resolution at which its authors' program draws pages."""
MAX_PAGES = 10_000
"""The maximum number of a page."""
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg"}
CATEGORIES = {"texts": "Text", "tables": "Table", "figures or diagrams or charts": "Figure"}
"""The categories of questions, and how the other public datasets call such a source of an answer."""
FACETS = ("annotator", "subject")
"""The columns that `options.facets` may name: the model that wrote a question, and the kind of the document."""
VALID = "valid"
"""The field that the sheets add to a row: `1` if people kept the question."""
_MARKS = {"1.0": "1", "true": "1", "0.0": "0", "false": "0", "": "empty"}
"""Marks as sheets and programs write them, and their usual form."""
_NOT_MARKED = "no mark"


class MLongDoc(mt.readers.Reader[DocumentQuestion]):
    """M-LongDoc: 851 questions over 180 PDFs."""

    # Chia et al. 2025, arXiv:2411.06176: open questions about one page of a long PDF, 1,051 rows, mostly without
    # answers. People kept 851 of them; a row is joined to the mark in their sheets by the text of the question. Rows of
    # the training files have an answer, which is kept as the reference. A page's text and its cut-outs are not used: a
    # release has the text that the PDF or OCR gives, and finds tables and figures in the PDF.

    row_type: ClassVar[type[mt.Row]] = DocumentQuestion
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
        "metadata": "The file `metadata.csv` with url and category, for addresses and for `options.facets: [subject]`.",
    }
    extracted_from: ClassVar[Mapping[str, str]] = {PAGES: "documents"}
    image_folder: ClassVar[str] = "m-longdoc"
    fixed_fields: ClassVar[tuple[str, ...]] = (VALID,)

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each row; its id is `m_longdoc_<name of the file, without test_>_<row>`, from 0."""
        marks = _marks(sources["annotations"]) if "annotations" in sources else None
        subjects = {name: category for name, _, category in _described(sources)}
        for file in _question_files(sources["questions"]):
            domain = file.stem.removeprefix("test_")
            for number, (line, _, raw) in enumerate(mt.readers.json_lines(file)):
                if isinstance(raw, dict):
                    subject = subjects.get(PurePosixPath(str(raw.get("source"))).stem, "")
                    raw = {**raw, "domain": domain, "subject": subject}
                    if marks is not None:
                        raw[VALID] = marks.get(str(raw.get("question")).strip(), _NOT_MARKED)
                yield mt.readers.raw_row(f"m_longdoc_{domain}_{number}", raw, file.name, f"line {line}")

    def addresses(self, sources: mt.readers.SourcePaths) -> Mapping[str, str]:
        return {name: url for name, url, _ in _described(sources)}

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> DocumentQuestion:
        fields = raw.fields
        mark, todo = _mark(fields.get(VALID, "1")), "leave out source.annotations to ask every question"
        if mark in ("0", "empty"):
            found = f"{VALID}: {mark}"
            fault = mt.Fault("not-kept-by-people", f"{VALID}: 1", found, field=VALID, todo=todo, is_expected=True)
            raise mt.Rejected(fault)
        if mark == _NOT_MARKED:
            todo = f"give all sheets of the people, or {todo}"
            raise refused("not-marked", f"a mark in {VALID}", "no sheet has the question", VALID, todo)
        if mark != "1":
            raise refused("unknown-mark", "1 or 0", f"{VALID}: {mark}"[:80], VALID, "correct it in the sheet")
        _, category, source = strings_of(fields, "question", "category", "source")
        if category not in CATEGORIES:
            expected = f"one of {', '.join(CATEGORIES)}"
            raise refused("unknown-category", expected, category[:80], "category", "correct it with errata")
        file = PurePosixPath(source)
        if file.suffix not in (".json", ".pdf"):
            expected = "a path such as data/test/<name>.json"
            raise refused("unknown-source", expected, source[:80], "source", "correct it with errata")
        return clean(
            raw,
            file.stem,
            None,
            fields.get("evidence_pages"),
            doc_type=str(fields.get("domain") or ""),
            sources=(CATEGORIES[category],),
            columns={name: mt.escape_markers(str(fields.get(name) or "")) for name in FACETS},
        )

    def extract(self, sources: mt.readers.SourcePaths, folder: Path) -> None:
        """Write the pages of parsed documents as files, for documents without a PDF. A document with a line that cannot
        be used is refused as a whole: it would lack a page.
        """
        files = mt.readers.visible_files(sources["documents"])
        files = [file for file in files if file.suffix.lower() in (".json", ".jsonl")]
        if not files:
            return
        pdfs = mt.readers.pdfs_by_name(sources["documents"])
        listed: dict[str, list[str | None] | mt.Fault] = {}
        for number, file in enumerate(file for file in files if file.stem not in pdfs):
            (folder / PAGES / f"{number:05d}").mkdir(parents=True)
            found, todo = f"{file.stem} twice", "rename or remove one of them"
            twice = mt.Fault("two-documents-of-one-name", "names that differ", found, todo=todo)
            listed[file.stem] = twice if file.stem in listed else _written(file, folder / PAGES, f"{number:05d}")
        (folder / PAGES).mkdir(exist_ok=True)
        write_list(folder / PAGES, listed)

    def documents(self, sources: mt.readers.SourcePaths) -> Mapping[str, mt.readers.Pages | mt.Fault]:
        parsed = read_list(sources[PAGES], dpi=DPI) if PAGES in sources else {}
        return {**parsed, **mt.readers.pdfs_by_name(sources["documents"])}

    def notes(self, sources: mt.readers.SourcePaths, options: mt.Options) -> Sequence[str]:
        for name in options.facets if isinstance(options, DocVQAOptions) else ():
            if name not in FACETS:
                todo = f"the columns are {' and '.join(FACETS)}{mt.readers.nearest(name, FACETS)}"
                raise source_error("unknown-column", "a column of M-LongDoc", repr(name), "", todo, "facets")
        questions, notes = sources["questions"], list[str]()
        read = _question_files(questions)
        if others := [file.name for file in mt.readers.visible_files(questions) if file not in read]:
            notes.append(f"{questions.name}: not read: {', '.join(others)[:200]}; to read one of them, name it alone")
        if "annotations" not in sources:
            notes.append("all questions are asked; source.annotations keeps those that people kept (851 of 1,051)")
        return notes


def _question_files(questions: Path) -> list[Path]:
    expected, todo = "files such as test_academic.json", "give the folder data/questions, or one file"
    return _files_of(questions, lambda file: file.match("test_*.json"), expected, todo)


def _files_of(source: Path, is_used: Callable[[Path], bool], expected: str, todo: str) -> list[Path]:
    """Return the file that a source is, or those files of a folder that are used."""
    files = list(filter(is_used, mt.readers.visible_files(source))) if source.is_dir() else [source]
    if not files:
        raise source_error("missing-source", expected, "none", source.name, todo)
    return files


def _marks(annotations: Path) -> dict[str, str]:
    """Return the mark of each question in the sheets, by the text of the question.

    A question that one sheet keeps is kept, whatever another sheet says: no question of the public sheets is in two.
    """

    def is_sheet(file: Path) -> bool:
        return file.parent == annotations and file.suffix.lower() in (".xlsx", ".csv")

    todo = "give the folder data/annotation, or one of its sheets"
    marks: dict[str, str] = {}
    for file in _files_of(annotations, is_sheet, "sheets (.xlsx or .csv)", todo):
        for place, raw in mt.readers.table_rows(file, mt.readers.Columns(("question", VALID))):
            if isinstance(raw, mt.Fault):
                raise mt.readers.SourceError(replace(raw, file=file.name, place=place))
            if question := str(raw.get("question") or "").strip():
                mark = _mark(raw.get(VALID))
                marks[question] = "1" if "1" in (mark, marks.get(question)) else mark
    return marks


def _mark(value: object) -> str:
    """Return the mark of a question in one form.

    >>> _mark(1.0), _mark("TRUE"), _mark(" 0 "), _mark(None), _mark("maybe")
    ('1', '1', '0', 'empty', 'maybe')
    """
    text = "" if value is None else str(value).strip().lower()
    return _MARKS.get(text, text)


def _described(sources: mt.readers.SourcePaths) -> Iterator[tuple[str, str, str]]:
    """Yield (name of the PDF without the ending, URL, category) of each document of `metadata.csv`, if it is given."""
    if "metadata" in sources:
        for _, raw in mt.readers.table_rows(sources["metadata"], mt.readers.Columns(("url", "category"))):
            if isinstance(raw, dict):
                url = str(raw.get("url") or "").strip()
                yield PurePosixPath(url).name.removesuffix(".pdf"), url, str(raw.get("category") or "")


def _written(file: Path, root: Path, folder: str) -> list[str | None] | mt.Fault:
    """Write the pages of a parsed document into a folder below the root; return their paths, or what is wrong."""
    pages: dict[int, str] = {}
    for line, _, raw in mt.readers.json_lines(file):
        place, todo = f"line {line}", "make the file again from the PDF"
        if isinstance(raw, mt.Fault):
            return replace(raw, file=file.name, place=place)
        number, text = raw.get("number"), raw.get("image_string")
        if type(number) is not int or not 1 <= number <= MAX_PAGES:
            expected, found = f"the number of a page, from 1 to {MAX_PAGES}", repr(number)[:80]
            return mt.Fault("page-without-number", expected, found, file.name, place, "number", "correct the line")
        try:
            data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
        except ValueError:
            data = b""
        ending = next((ending for start, ending in _SIGNATURES.items() if data.startswith(start)), "")
        if not ending:
            expected, found = "a PNG or JPEG in base64", f"{str(text)[:24]!r}" if text else "nothing"
            return mt.Fault("broken-page", expected, found, file.name, place, "image_string", todo)
        if number in pages:
            found, todo = f"page {number} twice", "remove a line"
            return mt.Fault("two-pages-of-one-number", "each page once", found, file.name, place, todo=todo)
        pages[number] = f"{folder}/page_{number}.{ending}"
        (root / pages[number]).write_bytes(data)
    todo = "make the file again from the PDF, or give the PDF"
    lacking = missing_pages(file.stem, pages, 1, max(len(pages), 1), file.name, todo)
    return lacking or [pages[number] for number in sorted(pages)]

"""Your own documents: a folder of PDFs or of page images, and a table of questions about them.

The table is CSV, `.xlsx`, JSON Lines or a JSON array with the fields `doc, question, answer, pages`. `doc` is the
document's name; `pages` are the answer pages, counted from 1 (`4`, `3; 5` or `[3, 5]`). Write a list as `["a", "b"]`.
If the document does not answer a question, write `Not answerable` and no page.

Optional fields: `id`; `answer_format`, which is otherwise derived from the answer; `accepted`, other right answers;
`sources`, where the answer is (text, table, chart …); `doc_type`. `options.facets` names further fields that reports
use.

A folder with page images and without PDFs is a document with the folder's name. In the folder of all documents, and in
a folder that also has PDFs, the files `<document>_<number>.jpg` are the pages of a document. Pages are in the order of
their numbers, which begin with 1 (or 0) and have no gaps.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

from builders.common import not_unicode
from builders.docvqa.rows import MAX_FACET, DocumentQuestion, DocVQAOptions, clean, format_of, strings_of
from mmlongbench.task import (
    ANSWER_FORMATS,
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
    columns_of,
    escape_markers,
    file_inside,
    id_in,
    literal_list,
    nearest,
    pdfs_by_name,
    raw_row,
    table_rows,
    two_of_one_name,
    visible_files,
)

_IMAGES = (".jpg", ".jpeg", ".png")
_KINDS = {".jpg": "JPG", ".jpeg": "JPG"}
"""How messages call files with an ending; other files are called by their ending in capitals."""
_NAMED = re.compile(r"(?P<name>.*?[^ _-])[ _-]+(?:(?:page|p)[ _-]*)?(?P<number>[0-9]{1,6})", re.IGNORECASE)
"""Matches the name, without its ending, of a page whose document has no folder of its own."""
_NUMBERED = re.compile(r"(?:.*[^0-9])?(?P<number>[0-9]{1,6})")
"""Matches the name, without its ending, of a page in the folder of its document."""
_SHOWN = 5
"""How many names, numbers or kinds of files a message lists."""


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """What a folder of documents has."""

    documents: Mapping[str, Pages | Fault]
    unused: Sequence[Path] = ()
    """The images that are pages of no document, because their names do not say of which."""

    @property
    def of_images(self) -> dict[str, int]:
        """The numbers of pages of the documents that are page images, by id."""
        return {id: len(each.files) for id, each in self.documents.items() if isinstance(each, PageImages)}


def find_documents(folder: Path) -> FoundDocuments:
    """Return all documents below a folder: PDFs by their names without the ending, and page images.

    Raises:
        SourceError: the path is not a folder, or nothing below it can be used as a document.

    """
    found: dict[str, Pages | Fault] = dict(pdfs_by_name(folder))
    files = visible_files(folder)
    with_pdfs = {folder, *(file.parent for file in files if file.suffix.lower() == ".pdf")}
    groups: dict[tuple[Path, str], list[Path]] = {}
    unused: list[Path] = []
    for file in (file for file in files if file.suffix.lower() in _IMAGES):
        named = _NAMED.fullmatch(file.stem) if file.parent in with_pdfs else None
        if named or file.parent not in with_pdfs:
            groups.setdefault((file.parent, named["name"] if named else file.parent.name), []).append(file)
        else:
            unused.append(file)
    by_id: dict[str, list[list[Path]]] = {}
    for (_, id), pages in groups.items():
        by_id.setdefault(id, []).append(pages)
    for id, several in by_id.items():
        found[id] = _one(id, several, folder, id in found)
    if not found:
        raise SourceError(_nothing(folder, files))
    return FoundDocuments(found, unused)


def _one(id: str, several: Sequence[list[Path]], folder: Path, is_pdf: bool) -> PageImages | Fault:
    """Return the document with an id, or its fault if several documents have this id."""
    if is_pdf or len(several) > 1:
        if not is_pdf:
            return two_of_one_name([pages[0] for pages in several], folder)
        found = f"{id}.pdf and {several[0][0].relative_to(folder).as_posix()}"
        todo = "rename or remove one of the two"
        return Fault("two-documents-of-one-name", "names that differ", found, folder.name, todo=todo)
    return _numbered_pages(id, several[0], folder)


def _numbered_pages(id: str, files: Sequence[Path], folder: Path) -> PageImages | Fault:
    """Return a document of page images in the order of their numbers, or what is wrong with these files."""
    numbered: dict[int, Path] = {}
    for file in files:
        name = file.relative_to(folder).as_posix()
        if file_inside(folder, file.relative_to(folder)) is None:
            expected, todo = "a page that lies in the folder", "copy it into the folder"
            return Fault("path-outside-source", expected, "a link out of it", name, todo=todo)
        match = _NUMBERED.fullmatch(file.stem)
        if match is None:
            todo = "name the pages 1.jpg, 2.jpg …, or move this file out of the folder"
            return Fault(
                "page-without-number", f"a number at the end of the name of each page of {id}", name, todo=todo
            )
        other = numbered.setdefault(int(match["number"]), file)
        if other != file:
            todo = "remove one of them, or give each document a folder of its own"
            both = f"{other.relative_to(folder).as_posix()} and {name}"
            return Fault("two-pages-of-one-number", f"each page of {id} once", both, folder.name, todo=todo)
    first, last = min(1, *numbered), max(numbered)
    missing = list(islice((number for number in range(first, last + 1) if number not in numbered), _SHOWN + 1))
    if missing:
        more = " …" if len(missing) > _SHOWN else ""
        found = f"no {', '.join(map(str, missing[:_SHOWN]))}{more}"
        todo = "add these pages, or number the files from 1 without gaps"
        return Fault("missing-pages", f"pages {first} to {last} of {id}", found, folder.name, todo=todo)
    return PageImages(tuple(numbered[number] for number in sorted(numbered)))


def count_kinds(files: Iterable[Path]) -> str:
    """Return how many files there are of each kind, most frequent first, such as `36 JPGs, 1 TXT`."""
    kinds = Counter(_KINDS.get(ending := file.suffix.lower(), ending[1:9].upper() or "other file") for file in files)
    ordered = sorted(kinds.items(), key=lambda each: (-each[1], each[0]))[:_SHOWN]
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in ordered)


def _nothing(folder: Path, files: Sequence[Path]) -> Fault:
    """Return the fault of a folder without documents."""
    expected = "PDFs, or page images such as report_1.jpg or report/1.jpg"
    found = f"0 PDFs{', ' if files else ''}{count_kinds(files)}{' here' if files else ', an empty folder'}"
    todo = "name the pages so, put each document into a folder with its name, or check source.documents"
    return Fault("no-documents", expected, found, folder.name, todo=todo)


COLUMNS = Columns(("doc", "question", "answer", "pages"), ("id", "answer_format", "accepted", "sources", "doc_type"))
"""The columns of the table of questions; options may name further ones as facets."""

_SPAN = re.compile(r"(?P<first>[0-9]{1,8})\s*(?P<sign>-|–|—|to|and|&)\s*(?P<last>[0-9]{1,8})", re.IGNORECASE)
"""Matches two page numbers as people often write them: `3-5`, `3 to 5`, `3 and 5`."""
_MAX_NAMED = 20
"""A message lists every page of a range of at most so many pages; of a longer range, only the first and the last."""
_MAX_LISTED = 100
"""The maximum number of texts in a cell with several."""
_PLACES = ("Text", "Table", "Chart", "Figure", "Layout")
"""Where answers are found, as the public datasets write it; reports know `Text`."""
_LISTED = 10
"""How many columns or documents a note lists."""


class OwnDocuments(Reader[DocumentQuestion]):
    """Questions of your own about PDFs or page images."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "documents")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "A table with the columns doc, question, answer and pages (from 1), and optionally id, answer_format, "
            "accepted (other right answers), sources (where the answer is: text, table, chart …) and doc_type. Its "
            "forms: CSV in UTF-8 with a header, with commas, semicolons or tabs (`.csv`, `.tsv`), the first sheet of "
            "an Excel file (`.xlsx`), JSON Lines (`.jsonl`), a JSON array (`.json`) or Parquet (`.parquet`)."
        ),
        "documents": (
            "A folder of PDFs and of page images (`report_1.jpg` or `report/1.jpg`), also in subfolders; the column "
            "doc has the name of a PDF, or of a document of page images."
        ),
    }
    image_folder: ClassVar[str] = "own-documents"
    fixed_fields: ClassVar[tuple[str, ...]] = ("id",)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each question. Its id is the table's field `id` or, without this field, `own_<row>`, from 0."""
        path = sources["questions"]
        for number, (place, raw) in enumerate(table_rows(path, COLUMNS)):
            id = raw if isinstance(raw, Fault) else id_in(raw)
            if isinstance(id, Fault):
                yield raw_row(f"own_{number}", id, path.name, place)
            else:
                yield raw_row(id or f"own_{number}", raw, path.name, place)

    def row(self, raw: RawRow, sources: SourcePaths) -> DocumentQuestion | Fault:
        """Return one question cleaned."""
        fields = raw.fields
        strings = strings_of(fields, ("doc", "question"))
        if isinstance(strings, Fault):
            return strings
        if fault := _faulty_pages(fields.get("pages")):
            return fault
        name = strings["doc"].strip().rstrip("/")
        declared, answer = _declared(fields.get("answer_format")), fields.get("answer")
        found = clean(
            raw.id,
            name[:-4] if name.lower().endswith(".pdf") else name,
            strings["question"],
            answer,
            declared or format_of(answer),
            _pages(fields.get("pages")),
            pages_field="pages",
            doc_type=str(fields.get("doc_type") or ""),
        )
        return found if isinstance(found, Fault) else _completed(found, fields, declared)

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return all PDFs and all documents of page images below the folder, by name (see `find_documents`)."""
        return find_documents(sources["documents"]).documents

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        """Return which columns of the table are not used, and which images are pages or are not used.

        Raises:
            SourceError: `options.facets` names a column that the table does not have.

        """
        path = sources["questions"]
        further = [name for name in columns_of(table_rows(path, COLUMNS)) if name not in COLUMNS.known]
        facets = options.facets if isinstance(options, DocVQAOptions) else ()
        for name in facets:
            if name not in further:
                there = ", ".join(further[:_LISTED]) or "none"
                is_known = f"; the reader uses {name} itself" if name in COLUMNS.known else nearest(name, further)
                todo = f"further columns are: {there}{is_known}"
                raise SourceError(
                    Fault("unknown-column", "a column of the table", repr(name), path.name, "", "options.facets", todo)
                )
        notes = []
        if unused := [name for name in further if name not in facets]:
            todo = "name them in options.facets to break scores down by them"
            notes.append(f"{path.name}: columns not used: {_listed(unused)}; {todo}")
        found = find_documents(sources["documents"])
        if found.of_images:
            named = [f"{id} ({pages})" for id, pages in sorted(found.of_images.items())]
            notes.append(f"{sources['documents'].name}: documents of page images (number of pages): {_listed(named)}")
        if found.unused:
            todo = "their names do not say of which document they are pages (report_1.jpg, or report/1.jpg)"
            notes.append(f"{sources['documents'].name}: not used: {count_kinds(found.unused)}; {todo}")
        return notes


def _completed(row: DocumentQuestion, fields: Mapping[str, object], declared: str) -> DocumentQuestion | Fault:
    """Return a row with the optional fields of the table, or what is wrong with one of them."""
    if declared and ANSWER_FORMATS.get(declared) != row.answer_format:
        expected = f"an answer of the format {declared}"
        todo = 'write such an answer (a list as ["a", "b"]), or leave answer_format empty'
        return Fault("answer-of-another-format", expected, repr(fields.get("answer"))[:80], field="answer", todo=todo)
    accepted = _texts(fields.get("accepted"), "accepted")
    if isinstance(accepted, Fault):
        return accepted
    if accepted and row.answer_format in ("List", "None"):
        todo = "leave accepted empty for lists and for questions without an answer"
        return Fault("accepted-answers", "no other accepted answers", f"{len(accepted)}", field="accepted", todo=todo)
    places = _texts(fields.get("sources"), "sources")
    if isinstance(places, Fault):
        return places
    columns = {name: _cell(value) for name, value in fields.items() if name not in COLUMNS.known}
    more: dict[str, object] = {
        "accepted": tuple(map(escape_markers, accepted)),
        "sources": tuple(_place(text) for text in places),
        "columns": {name: text for name, text in columns.items() if not not_unicode(name + text, name)},
        "label_width": "distinct",
    }
    return row.model_copy(update=more)


def _declared(value: object) -> str:
    """Return the format that a table declares, by its usual name if it is known; empty if it declares none."""
    text = str(value or "").strip()
    return next((name for name in ANSWER_FORMATS if name.casefold() == text.casefold()), text)


def _texts(value: object, field: str) -> tuple[str, ...] | Fault:
    """Return the texts of a list, of a list written as text, or of a text with semicolons between them."""
    values = value if isinstance(value, list) else [value]
    if isinstance(value, str):
        values = literal_list(value) or [] if value.lstrip().startswith("[") else value.split(";")
    elif value is None:
        values = []
    is_read = bool(values) or not isinstance(value, str) or not value.strip()
    if not is_read or len(values) > _MAX_LISTED or not all(isinstance(each, str | int | float) for each in values):
        expected = f'texts with semicolons between them, or a list such as ["a", "b"] of at most {_MAX_LISTED} texts'
        return Fault("missing-or-mistyped-field", expected, repr(value)[:80], field=field, todo="write them so")
    texts = tuple(text for each in values if (text := str(each).strip()))
    return not_unicode("".join(texts), field) or texts


def _place(text: str) -> str:
    return next((place for place in _PLACES if place.casefold() == text.casefold()), escape_markers(text))


def _cell(value: object) -> str:
    """Return the value of a further column as text; longer ones are cut, because the builder refuses them anyway."""
    if isinstance(value, str | int | float):
        return escape_markers(str(value).strip()[: MAX_FACET + 1])
    return ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(name[:40] for name in names[:_LISTED]) + more


def _faulty_pages(value: object) -> Fault | None:
    """Return the fault of two page numbers that are written as `3-5`, `3 to 5` or `3 and 5`; None for other values."""
    found = _SPAN.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    first, last = int(found["first"]), int(found["last"])
    is_range = found["sign"].lower() not in ("and", "&") and first < last < first + _MAX_NAMED
    pages = range(first, last + 1) if is_range else (first, last)
    todo = f"write {'; '.join(map(str, pages))}"
    expected = "page numbers with semicolons between them"
    return Fault("answer-pages-not-a-list", expected, repr(value)[:80], field="pages", todo=todo)


def _pages(value: object) -> object:
    """Return a list of pages if the value is a text such as `4`, `3; 5` or `3, 5`, a number, or empty. Any other
    value, such as the text `[3, 5]`, is returned unchanged.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return []
    if isinstance(value, int):
        return [value]
    if isinstance(value, str) and not value.strip().startswith("["):
        parts = [part.strip() for part in value.replace(";", ",").split(",")]
        return [int(part) if part.isdecimal() and len(part) < 9 else part for part in parts]
    return value

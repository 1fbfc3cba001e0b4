"""Your own documents: a folder of PDFs or of page images, and a table of questions about them.

`OwnDocuments.source_forms` says what both look like. In the table, several pages are written as `3; 5` or `[3, 5]`, and
a list of answers as `["a", "b"]`. If the document does not answer a question, the answer is `Not answerable`, without a
page. A format that is not given follows from the answer. `options.facets` names further columns that reports use.

A folder with page images and without PDFs is a document with the folder's name. In the folder of all documents, and in
a folder that also has PDFs, the files `<document>_<number>.jpg` are the pages of a document. Pages are in the order of
their numbers, which begin with 1 (or 0) and have no gaps.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import mmlongbench.task as mt
from builders.common import not_unicode, refused, source_error
from builders.docvqa.rows import MAX_FACET, DocumentQuestion, DocVQAOptions, clean, missing_pages, strings_of

# --- documents --------------------------------------------------------------------------------------------------------

_IMAGES = {".jpg": "JPG", ".jpeg": "JPG", ".png": "PNG"}
"""The endings of page images, and how messages call such files; other files are called by their ending in capitals."""
_NAMED = re.compile(r"(?P<name>.*?[^ _-])[ _-]+(?:(?:page|p)[ _-]*)?(?P<number>[0-9]{1,6})", re.IGNORECASE)
"""Matches the name, without its ending, of a page whose document has no folder of its own."""
_NUMBERED = re.compile(r"(?:.*[^0-9])?(?P<number>[0-9]{1,6})")
"""Matches the name, without its ending, of a page in the folder of its document."""


def find_documents(folder: Path) -> tuple[Mapping[str, mt.readers.Pages | mt.Fault], list[Path]]:
    """Return all documents below a folder: PDFs by their names without the ending, and page images. Return the images,
    too, that are pages of no document, because their names do not say of which.

    Raises:
        SourceError: the path is not a folder, or nothing below it can be used as a document.

    """
    documents: dict[str, mt.readers.Pages | mt.Fault] = dict(mt.readers.pdfs_by_name(folder))
    files = mt.readers.visible_files(folder)
    with_pdfs = {folder, *(file.parent for file in files if file.suffix.lower() == ".pdf")}
    groups: dict[str, dict[Path, list[Path]]] = {}  # the images of each document, by the folder that they are in
    unused: list[Path] = []
    for file in (file for file in files if file.suffix.lower() in _IMAGES):
        match = _NAMED.fullmatch(file.stem) if file.parent in with_pdfs else None
        if match or file.parent not in with_pdfs:
            id = match["name"] if match else file.parent.name
            groups.setdefault(id, {}).setdefault(file.parent, []).append(file)
        else:
            unused.append(file)
    for id, several in groups.items():
        first = [pages[0] for pages in several.values()]
        if id in documents:
            found, todo = f"{id}.pdf and {first[0].relative_to(folder).as_posix()}", "rename or remove one of the two"
            documents[id] = mt.Fault("two-documents-of-one-name", "names that differ", found, folder.name, todo=todo)
        elif len(several) > 1:
            documents[id] = mt.readers.two_of_one_name(first, folder)
        else:
            documents[id] = _in_order(id, next(iter(several.values())), folder)
    if not documents:
        expected = "PDFs, or page images such as report_1.jpg or report/1.jpg"
        held = f"0 PDFs, {count_kinds(files)} here" if files else "0 PDFs, an empty folder"
        todo = "name the pages so, put each document into a folder with its name, or check source.documents"
        raise source_error("no-documents", expected, held, folder.name, todo)
    return documents, unused


def _in_order(id: str, files: Sequence[Path], folder: Path) -> mt.readers.PageImages | mt.Fault:
    """Return a document of page images in the order of their numbers, or what is wrong with these files."""
    pages: dict[int, Path] = {}
    for file in files:
        name = file.relative_to(folder).as_posix()
        if mt.readers.file_inside(folder, file.relative_to(folder)) is None:
            expected, todo = "a page that lies in the folder", "copy it into the folder"
            return mt.Fault("path-outside-source", expected, "a link out of it", name, todo=todo)
        match = _NUMBERED.fullmatch(file.stem)
        if match is None:
            expected = f"a number at the end of the name of each page of {id}"
            todo = "name the pages 1.jpg, 2.jpg …, or move this file out of the folder"
            return mt.Fault("page-without-number", expected, name, todo=todo)
        other = pages.setdefault(int(match["number"]), file)
        if other != file:
            both = f"{other.relative_to(folder).as_posix()} and {name}"
            todo = "remove one of them, or give each document a folder of its own"
            return mt.Fault("two-pages-of-one-number", f"each page of {id} once", both, folder.name, todo=todo)
    todo = "add these pages, or number the files from 1 without gaps"
    lacking = missing_pages(id, pages, min(1, *pages), max(pages), folder.name, todo)
    return lacking or mt.readers.PageImages(tuple(pages[number] for number in sorted(pages)))


def count_kinds(files: Iterable[Path]) -> str:
    """Return how many files there are of each kind, most frequent first, such as `36 JPGs, 1 TXT`."""
    endings = (file.suffix.lower() for file in files)
    kinds = Counter(_IMAGES.get(ending, ending[1:9].upper() or "other file") for ending in endings)
    ordered = sorted(kinds.items(), key=lambda each: (-each[1], each[0]))[:5]
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in ordered)


# --- questions --------------------------------------------------------------------------------------------------------

COLUMNS = mt.readers.Columns(
    ("doc", "question", "answer", "pages"), ("id", "answer_format", "accepted", "sources", "doc_type")
)
"""The columns of the table of questions; options may name further ones as facets."""
_SPAN = re.compile(r"(?P<first>[0-9]{1,8})\s*(?P<sign>-|–|—|to|and|&)\s*(?P<last>[0-9]{1,8})", re.IGNORECASE)
"""Matches two page numbers as people often write them: `3-5`, `3 to 5`, `3 and 5`."""
_MAX_NAMED = 20
"""A message lists every page of a range of at most so many pages; of a longer range, only the first and the last."""
_MAX_TEXTS = 100
"""The maximum number of texts in a cell with several."""
_PLACES = {place.casefold(): place for place in ("Text", "Table", "Chart", "Figure", "Layout")}
"""Where answers are found, as the public datasets write it; reports know `Text`."""
_FORMATS = {name.casefold(): name for name in mt.metrics.ANSWER_FORMATS}


class OwnDocuments(mt.readers.Reader[DocumentQuestion]):
    """Questions of your own about PDFs or page images."""

    row_type: ClassVar[type[mt.Row]] = DocumentQuestion
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

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        path = sources["questions"]
        for number, (place, raw) in enumerate(mt.readers.table_rows(path, COLUMNS)):
            id = raw if isinstance(raw, mt.Fault) else mt.readers.id_in(raw)
            name, fields = (f"own_{number}", id) if isinstance(id, mt.Fault) else (id or f"own_{number}", raw)
            yield mt.readers.raw_row(name, fields, path.name, place)

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> DocumentQuestion:
        fields, answer = raw.fields, raw.fields.get("answer")
        doc, _ = strings_of(fields, "doc", "question")
        doc, pages = doc.strip().rstrip("/"), _pages(fields.get("pages"))
        declared = str(fields.get("answer_format") or "").strip()
        declared = _FORMATS.get(declared.casefold(), declared)
        row = clean(
            raw,
            doc[:-4] if doc.lower().endswith(".pdf") else doc,
            declared or mt.metrics.format_of(answer),
            pages,
            pages_field="pages",
            doc_type=str(fields.get("doc_type") or ""),
            label_width="distinct",
        )
        if declared and mt.metrics.ANSWER_FORMATS.get(declared) != row.answer_format:
            todo = 'write such an answer (a list as ["a", "b"]), or leave answer_format empty'
            expected = f"an answer of the format {declared}"
            raise refused("answer-of-another-format", expected, repr(answer)[:80], "answer", todo)
        accepted = tuple(map(mt.escape_markers, _texts(fields, "accepted")))
        if accepted and row.answer_format in ("List", "None"):
            todo = "leave accepted empty for lists and for questions without an answer"
            raise refused("accepted-answers", "no other accepted answers", f"{len(accepted)}", "accepted", todo)
        places = (_PLACES.get(text.casefold(), mt.escape_markers(text)) for text in _texts(fields, "sources"))
        columns = {}
        for name, value in fields.items():
            # Longer values are cut, because the builder refuses them anyway.
            text = str(value).strip()[: MAX_FACET + 1] if isinstance(value, str | int | float) else ""
            if name not in COLUMNS.known and not not_unicode(name + text, name):
                columns[name] = mt.escape_markers(text)
        return row.model_copy(update={"accepted": accepted, "sources": tuple(places), "columns": columns})

    def documents(self, sources: mt.readers.SourcePaths) -> Mapping[str, mt.readers.Pages | mt.Fault]:
        return find_documents(sources["documents"])[0]

    def notes(self, sources: mt.readers.SourcePaths, options: mt.Options) -> Sequence[str]:
        path, folder = sources["questions"], sources["documents"]
        columns = mt.readers.columns_of(mt.readers.table_rows(path, COLUMNS))
        further = [name for name in columns if name not in COLUMNS.known]
        facets = options.facets if isinstance(options, DocVQAOptions) else ()
        for name in (name for name in facets if name not in further):
            known = f"; the reader uses {name} itself" if name in COLUMNS.known else mt.readers.nearest(name, further)
            todo = f"further columns are: {', '.join(further[:10]) or 'none'}{known}"
            raise source_error("unknown-column", "a column of the table", repr(name), path.name, todo, "options.facets")
        notes = []
        if unused := [name for name in further if name not in facets]:
            todo = "name them in options.facets to break scores down by them"
            notes.append(f"{path.name}: columns not used: {_listed(unused)}; {todo}")
        documents, others = find_documents(folder)
        of_images = {id: pages for id, pages in documents.items() if isinstance(pages, mt.readers.PageImages)}
        images = [f"{id} ({len(pages.files)})" for id, pages in sorted(of_images.items())]
        if images:
            notes.append(f"{folder.name}: documents of page images (number of pages): {_listed(images)}")
        if others:
            todo = "their names do not say of which document they are pages (report_1.jpg, or report/1.jpg)"
            notes.append(f"{folder.name}: not used: {count_kinds(others)}; {todo}")
        return notes


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(name[:40] for name in names[:10]) + more


def _texts(fields: Mapping[str, object], field: str) -> tuple[str, ...]:
    """Return the texts of a list, of a list written as text, or of a text with semicolons between them."""
    value = fields.get(field)
    values: Sequence[object] = value if isinstance(value, list) else [] if value is None else [value]
    if isinstance(value, str):
        values = mt.metrics.literal_list(value) or [None] if value.lstrip().startswith("[") else value.split(";")
    if len(values) > _MAX_TEXTS or not all(isinstance(text, str | int | float) for text in values):
        expected = f'texts with semicolons between them, or a list such as ["a", "b"] of at most {_MAX_TEXTS} texts'
        raise refused("missing-or-mistyped-field", expected, repr(value)[:80], field, "write them so")
    texts = tuple(filter(None, (str(text).strip() for text in values)))
    if fault := not_unicode("".join(texts), field):
        raise mt.Rejected(fault)
    return texts


def _pages(value: object) -> object:
    """Return a list of pages if the value is a text such as `4`, `3; 5` or `3, 5`, a number, or empty. Any other
    value, such as the text `[3, 5]`, is returned unchanged.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return []
    if isinstance(value, int):
        return [value]
    if not isinstance(value, str) or value.strip().startswith("["):
        return value
    if span := _SPAN.fullmatch(value.strip()):
        first, last = int(span["first"]), int(span["last"])
        is_range = span["sign"].lower() not in ("and", "&") and first < last < first + _MAX_NAMED
        todo = f"write {'; '.join(map(str, range(first, last + 1) if is_range else (first, last)))}"
        expected = "page numbers with semicolons between them"
        raise refused("answer-pages-not-a-list", expected, repr(value)[:80], "pages", todo)
    parts = [part.strip() for part in value.replace(";", ",").split(",")]
    return [int(part) if part.isdecimal() and len(part) < 9 else part for part in parts]

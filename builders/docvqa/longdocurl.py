"""LongDocURL (Deng et al. 2024, arXiv:2412.18424): `LongDocURL.jsonl`, and PDFs or the published page images.

Pages of annotations count from 1, image files from 0. A question is about a window of 30 pages (`start_end_idx`). PDFs
are named by `doc_no`; the published images are rendered at 72 DPI, a quarter of the tokens, so all documents of a
release are, where they are used.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import ClassVar

from builders.docvqa.cleaning import clean, faulty_text, texts_in
from builders.docvqa.rows import DocumentQuestion
from mmlongbench import (
    Fault,
    PageImages,
    Pages,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    json_lines,
    pdfs_by_name,
    raw_row,
    visible_files,
)

DPI = 72
"""Of the published page images."""
_IMAGE = re.compile(r"(.+)_(\d+)\.png", re.IGNORECASE)


class LongDocURL(Reader[DocumentQuestion]):
    """LongDocURL: 2,325 questions over 396 documents."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions",)
    optional_sources: ClassVar[tuple[str, ...]] = ("documents", "page_images")
    image_folder: ClassVar[str] = "longdocurl"
    fixed_fields: ClassVar[tuple[str, ...]] = ("total_pages",)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Each row of the source as it stands there; its id is `longdocurl_<row>`, from 0."""
        path = sources["questions"]
        for number, (line, _, raw) in enumerate(json_lines(path)):
            yield raw_row(f"longdocurl_{number}", raw, path.name, f"line {line}")

    def row(self, raw: RawRow, sources: SourcePaths) -> DocumentQuestion | Fault:
        """One row cleaned."""
        fields = raw.fields
        if fault := faulty_text(fields, ("doc_no", "question", "answer_format")):
            return fault
        window = _window(fields.get("start_end_idx"))
        if isinstance(window, Fault):
            return window
        return clean(
            raw.id,
            fields["doc_no"],
            fields["question"],
            fields.get("answer"),
            fields["answer_format"],
            fields.get("evidence_pages"),
            question_type=": ".join(str(fields[key]) for key in ("task_tag", "question_type") if fields.get(key)),
            sources=texts_in(fields.get("evidence_sources")),
            window=window,
        )

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """PDFs by name; then, of the published images, the documents that have no PDF."""
        if not {"documents", "page_images"} & set(sources):
            expected = "source.documents (a folder of PDFs) or source.page_images (the published ones)"
            raise SourceError(Fault("missing-source", expected, "neither", sources["questions"].name))
        found: dict[str, Pages | Fault] = {}
        if "page_images" in sources:
            found |= _published(sources["page_images"], _totals(sources["questions"]))
        return found | (pdfs_by_name(sources["documents"]) if "documents" in sources else {})


def _window(value: object) -> tuple[int, int] | Fault:
    """The first and last page, from 0."""
    if isinstance(value, list) and len(value) == 2 and all(type(page) is int for page in value):
        first, last = value
        if 1 <= first <= last:
            return first - 1, last - 1
    return Fault("window-out-of-range", "[first, last] page from 1", repr(value)[:80], field="start_end_idx")


def _totals(questions: Path) -> dict[str, int]:
    """How many pages a document has, as its questions say."""
    found: dict[str, int] = {}
    for _, _, raw in json_lines(questions):
        if not isinstance(raw, Fault) and isinstance(raw.get("doc_no"), str) and type(raw.get("total_pages")) is int:
            found.setdefault(raw["doc_no"], raw["total_pages"])
    return found


def _published(folder: Path, totals: Mapping[str, int]) -> dict[str, Pages | Fault]:
    """The published page images: `…/<doc_no>_<page from 0>.png`, whole documents only."""
    if not folder.is_dir():
        raise SourceError(Fault("unreadable-source", "a folder of page images", "a file", folder.name))
    named: dict[str, dict[int, Path]] = {}
    twice: dict[str, Fault] = {}
    for path in visible_files(folder):
        if match := _IMAGE.fullmatch(path.name):
            other = named.setdefault(match[1], {}).setdefault(int(match[2]), path)
            if other != path and other.read_bytes() != path.read_bytes():
                names = f"{other.relative_to(folder)}, {path.relative_to(folder)}"
                twice[match[1]] = Fault("two-documents-of-one-name", "each page once", names, folder.name)
    return {doc: twice.get(doc) or _whole(doc, pages, totals.get(doc)) for doc, pages in named.items()}


def _whole(doc: str, pages: Mapping[int, Path], total: int | None) -> PageImages | Fault:
    count = max(max(pages) + 1, total or 0)
    if missing := list(islice((number for number in range(count) if number not in pages), 10)):
        expected, found = f"pages 0 to {count - 1} of {doc}", f"no {', '.join(map(str, missing))}"
        return Fault("missing-pages", expected, found, todo="fetch them, or give the PDF")
    return PageImages(tuple(pages[number] for number in range(count)), dpi=DPI)

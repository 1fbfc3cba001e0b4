"""LongDocURL (Deng et al. 2024, arXiv:2412.18424): `LongDocURL.jsonl`, and PDFs or the published page images.

Annotations count pages from 1, image files from 0. A question is about a window of 30 pages (`start_end_idx`). PDFs are
named by `doc_no`. The published images have 72 DPI, so a page has a quarter of the tokens that it has at 144 DPI.
A manifest that uses these images must set `pages.dpi` to 72.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import ClassVar

from builders.docvqa.rows import DocumentQuestion, clean, strings_of, texts_in
from mmlongbench.task import (
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
"""The resolution of the published page images."""
_IMAGE = re.compile(r"(.+)_(\d+)\.png", re.IGNORECASE)


class LongDocURL(Reader[DocumentQuestion]):
    """LongDocURL: 2,325 questions over 396 documents."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions",)
    optional_sources: ClassVar[tuple[str, ...]] = ("documents", "page_images")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "The file `LongDocURL.jsonl`; a line has doc_no, question, answer, answer_format, evidence_pages "
            "(from 1) and start_end_idx, and may have evidence_sources, task_tag, question_type and "
            "total_pages."
        ),
        "documents": (
            "A folder of PDFs, each named `<doc_no>.pdf`, also in subfolders. Give this source, page_images, or both."
        ),
        "page_images": (
            "The folder of the published page images, `<doc_no>_<page from 0>.png`, also in subfolders; they "
            "have 72 DPI, so set `pages.dpi` to 72."
        ),
    }
    image_folder: ClassVar[str] = "longdocurl"
    fixed_fields: ClassVar[tuple[str, ...]] = ("total_pages",)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each row of the source; its id is `longdocurl_<row>`, from 0."""
        path = sources["questions"]
        for number, (line, _, raw) in enumerate(json_lines(path)):
            yield raw_row(f"longdocurl_{number}", raw, path.name, f"line {line}")

    def row(self, raw: RawRow, sources: SourcePaths) -> DocumentQuestion | Fault:
        """Return one row cleaned."""
        fields = raw.fields
        strings = strings_of(fields, ("doc_no", "question", "answer_format"))
        if isinstance(strings, Fault):
            return strings
        window = _window(fields.get("start_end_idx"))
        if isinstance(window, Fault):
            return window
        return clean(
            raw.id,
            strings["doc_no"],
            strings["question"],
            fields.get("answer"),
            strings["answer_format"],
            fields.get("evidence_pages"),
            question_type=": ".join(str(fields[key]) for key in ("task_tag", "question_type") if fields.get(key)),
            sources=texts_in(fields.get("evidence_sources")),
            window=window,
        )

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return the PDFs by name and, for documents without a PDF, the published page images."""
        if not {"documents", "page_images"} & set(sources):
            expected = "source.documents (a folder of PDFs) or source.page_images (the published ones)"
            raise SourceError(
                Fault("missing-source", expected, "neither", sources["questions"].name, todo="set one of them")
            )
        found: dict[str, Pages | Fault] = {}
        if "page_images" in sources:
            found |= _published(sources["page_images"], _totals(sources["questions"]))
        return found | (pdfs_by_name(sources["documents"]) if "documents" in sources else {})


def _window(value: object) -> tuple[int, int] | Fault:
    """Return the first and last page, from 0."""
    if isinstance(value, list) and len(value) == 2 and all(type(page) is int for page in value):
        first, last = value
        if 1 <= first <= last:
            return first - 1, last - 1
    return Fault(
        "window-out-of-range",
        "[first, last] page from 1",
        repr(value)[:80],
        field="start_end_idx",
        todo="correct it with errata",
    )


def _totals(questions: Path) -> dict[str, int]:
    """Return how many pages each document has, as its first question with `total_pages` says."""
    found: dict[str, int] = {}
    for _, _, raw in json_lines(questions):
        doc, pages = (None, None) if isinstance(raw, Fault) else (raw.get("doc_no"), raw.get("total_pages"))
        if isinstance(doc, str) and type(pages) is int:
            found.setdefault(doc, pages)
    return found


def _published(folder: Path, totals: Mapping[str, int]) -> dict[str, Pages | Fault]:
    """Return the published page images `…/<doc_no>_<page from 0>.png` by document; a `Fault` for a document that lacks
    a page, or that has two different images of one page.
    """
    if not folder.is_dir():
        raise SourceError(
            Fault(
                "unreadable-source",
                "a folder of page images",
                "a file",
                folder.name,
                todo="give the folder that holds the images",
            )
        )
    named: dict[str, dict[int, Path]] = {}
    twice: dict[str, Fault] = {}
    for path in visible_files(folder):
        if match := _IMAGE.fullmatch(path.name):
            other = named.setdefault(match[1], {}).setdefault(int(match[2]), path)
            if other != path and other.read_bytes() != path.read_bytes():
                names = f"{other.relative_to(folder)}, {path.relative_to(folder)}"
                twice[match[1]] = Fault(
                    "two-documents-of-one-name",
                    "one image for each page",
                    names,
                    folder.name,
                    todo="remove one of the two",
                )
    return {doc: twice.get(doc) or _whole(doc, pages, totals.get(doc)) for doc, pages in named.items()}


def _whole(doc: str, pages: Mapping[int, Path], total: int | None) -> PageImages | Fault:
    count = max(max(pages) + 1, total or 0)
    if missing := list(islice((number for number in range(count) if number not in pages), 10)):
        expected, found = f"pages 0 to {count - 1} of {doc}", f"no {', '.join(map(str, missing))}"
        return Fault("missing-pages", expected, found, todo="fetch them, or give the PDF")
    return PageImages(tuple(pages[number] for number in range(count)), dpi=DPI)

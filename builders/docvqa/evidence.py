"""Finds where the answer of a released record is. Wrong content of a field never raises an error, so files that others
made can be read, too.

A page is identified by the folder of its image, which belongs to one document, and by the number in the image's name.
The position of the page in `page_list` is not used, because pages of other documents are in this list, too.
"""

import re
from collections.abc import Iterator, Sequence

import mmlongbench.task as mt
from builders.docvqa.paths import find_index, folder_of, path_of_page
from builders.docvqa.rows import DocumentQuestion

_END = 1_000_000
"""All page numbers are below this, because the name of a page's image has at most six digits for the number."""
_RANGE = re.compile(r"(\d{1,6})-(\d{1,6})", re.ASCII)
"""Matches the pages that a joined image shows, such as `4-7`."""
MAX_ANSWER_PAGES = 10_000
"""The maximum number of answer pages of a record; further ones are ignored."""


def evidence_of(record: mt.Record) -> mt.Evidence:
    """Return the document of a question, the answer pages, the pages of this document that the prompt shows, and
    paths and texts of pages of this document.

    >>> paths = ["docs/b/b_page0.jpg", "docs/a/a_page2.jpg", "docs/a/a_page3.jpg"]
    >>> found = evidence_of({"doc_name": "a", "page_list": paths, "ans_page_list": [3]})
    >>> found.document, found.pages, found.shown, found.images[4]
    ('a', (3,), (2, 3), 'docs/a/a_page4.jpg')
    """
    name, texts = record.get("doc_name"), _listed(record.get("page_text_list"))
    document, answers = name if isinstance(name, str) else None, _answer_pages(record)
    own, is_parted = list(_own_pages(record, document)), "crop_list" in record
    shown = {number: path for _, number, path in own}
    return mt.Evidence(
        document,
        answers,
        tuple(shown),
        {**_around(answers, next(iter(shown.values()), "")), **shown},
        {
            number: text.replace(mt.MARKER, "") if is_parted else text
            for at, number, _ in own
            if at < len(texts) and isinstance(text := texts[at], str)
        },
        *_joined(record, own),
    )


def _joined(
    record: mt.Record, own: Sequence[tuple[int, int, str]]
) -> tuple[dict[int, tuple[int, int]], tuple[int, ...]]:
    """Return the pages that each joined image of the document shows, and the answer pages in the document; both are
    empty if pages are not joined.
    """
    ranges = _listed(record.get("joined_page_list"))
    found = {
        number: (int(pages[1]), int(pages[2]))
        for at, number, _ in own
        if at < len(ranges) and isinstance(text := ranges[at], str) and (pages := _RANGE.fullmatch(text))
    }
    return found, _answer_pages(record, "document_page_list") if ranges else ()


def _answer_pages(record: mt.Record, name: str = "ans_page_list") -> tuple[int, ...]:
    pages = _listed(record.get(name))[:MAX_ANSWER_PAGES]
    return tuple(sorted({page for page in pages if isinstance(page, int) and page >= 0}))


def _own_pages(record: mt.Record, document: str | None) -> Iterator[tuple[int, int, str]]:
    """Yield (place in the record, number, path) of each shown page of a document, each page once."""
    seen: set[int] = set()
    for at, path in enumerate(_listed(record.get("page_list"))):
        if not isinstance(path, str) or folder_of(path) != document:
            continue
        number = find_index(path)
        if number is not None and number not in seen:
            seen.add(number)
            yield at, number, path


def _around(answers: tuple[int, ...], path: str) -> dict[int, str]:
    """Return the paths of the answer pages and of the pages beside them, by number. They are derived from `path`, the
    path of any page of the document. If `path` is empty, the result is empty.
    """
    wanted = {page for answer in answers for page in (answer - 1, answer, answer + 1) if 0 <= page < _END}
    return {page: path_of_page(path, page) for page in sorted(wanted)} if path else {}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def blank_evidence(row: DocumentQuestion, document: mt.Document) -> tuple[str, ...]:
    """Return a note for each answer page of one colour, which the lock counts. `row` has the numbers of single pages,
    also if the pages of the document are joined.

    Raises:
        Rejected: an answer page is damaged.

    """
    for page in (page for page in row.pages if page in document.damaged):
        expected = f"page {page + 1} of {document.id} to be drawn whole"
        todo = "replace the PDF with a whole one (print it to a new PDF, if a viewer shows the page), or exclude it"
        why = document.damaged[page]
        raise mt.Rejected(mt.Fault("damaged-answer-page", expected, why, field=row.pages_field, todo=todo))
    shown = document.joined or tuple((page,) for page in document.pages)
    keys = (zip(pages, document.keys_at(at), strict=False) for at, pages in enumerate(shown))
    blank = {page.index for each in keys for page, key in each if not key}
    return tuple(f"answer page of one colour ({document.id}, page {page + 1})" for page in row.pages if page in blank)

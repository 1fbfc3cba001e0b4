"""Finds where the answer of a released record is, and the groups by which reports break down its scores.

Wrong content of a field never raises an error, so files that others made can be read, too.

A page is identified by the folder of its image, which belongs to one document, and by the number in the image's name.
The position of the page in `page_list` is not used, because pages of other documents are in this list, too.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import mmlongbench.task as mt
from builders.common import PAGE, find_number
from builders.docvqa.rows import DocumentQuestion

_SLIDE = re.compile(r"-(\d{1,6})-\d+\.\w+$")
_UPTO_TWELVE = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUMBER = rf"\(?(?:no\.?\s*|number\s+|#\s*)?(?:\d+|{_UPTO_TWELVE}|\w+teen|twenty|thirty|forty|fifty)\b"
_WORDS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_NTH = rf"(?:cover|title|{_WORDS}|last|final|penultimate|next|previous|\d+(?:st|nd|rd|th))"
NAMES_PAGE = re.compile(rf"\b(?:page|slide)s?\s*{_NUMBER}|\b{_NTH}\s+(?:page|slide)s?\b", re.IGNORECASE)
"""Matches words such as `page 3` or `the last slide` in a question; in a context, this page may be at another place."""


def page_index(path: str) -> int:
    """Return the number of a page, from 0, by the name of its image: `_page<N>` counts from 0, a slide's `-<N>-1024`
    from 1.

    >>> page_index("mmlongbench-doc/ab/ab_page12.jpg"), page_index("slideVQA/deck/a-deck-4-1024.jpg")
    (12, 3)
    """
    if (found := find_index(path)) is None:
        raise ValueError(f"{path}: expected a name that ends in page<N> or -<N>-1024")
    return found


def find_index(path: str) -> int | None:
    """Return the page's number like `page_index`; None if the name has none."""
    if (number := find_number(path)) is not None:
        return number
    found = _SLIDE.search(path)
    return int(found[1]) - 1 if found else None


def folder_of(path: str) -> str:
    """Return the name of the folder that a page's image is in; each document has a folder of its own.

    >>> folder_of("mmlongbench-doc/ab/ab_page12.jpg"), folder_of("ab_page12.jpg")
    ('ab', '')
    """
    folders, _, file = path.rpartition("/")
    folder = folders.rpartition("/")[2]
    is_plain = file not in ("", ".") and folder not in ("", ".")
    return folder if is_plain else PurePosixPath(path).parent.name  # this takes ten times as long


def path_of_page(path: str, index: int) -> str:
    """Return the path of the page `index` of the same document as the page `path`; empty if `path` has no page number.

    >>> path_of_page("mmlongbench-doc/ab/ab_page12.jpg", 3), path_of_page("slideVQA/deck/a-deck-4-1024.jpg", 0)
    ('mmlongbench-doc/ab/ab_page3.jpg', 'slideVQA/deck/a-deck-1-1024.jpg')
    """
    found, number = PAGE.search(path), index
    if not found:
        found, number = _SLIDE.search(path), index + 1
    return f"{path[: found.start(1)]}{number}{path[found.end(1) :]}" if found else ""


def evidence_positions(record: mt.Record) -> tuple[str, ...]:
    """Return where the answer pages of a released record are among the shown pages of their document.

    A position is `first`, `inner` or `last`; it is `only` if a single page of the document is shown. No position is
    repeated. Answer pages that are not shown have no position. The result is empty for a question without an answer.

    >>> pages = [f"docs/a/a_page{number}.jpg" for number in (3, 4, 5, 6)]
    >>> evidence_positions({"doc_name": "a", "page_list": ["docs/b/b_page0.jpg", *pages], "ans_page_list": [3, 5]})
    ('first', 'inner')
    """
    name = str(record.get("doc_name", "")).removesuffix(".pdf")
    own = [find_index(path) for path in record.get("page_list", ()) if folder_of(path) == name]
    places = [own.index(page) for page in record.get("ans_page_list", ()) if page in own]
    found = {_position(place, len(own)) for place in places}
    return tuple(position for position in ("first", "inner", "last", "only") if position in found)


def _position(place: int, count: int) -> str:
    if count == 1:
        return "only"
    return "first" if place == 0 else "last" if place == count - 1 else "inner"


def runs_between(shown: Sequence[int]) -> str:
    """Return the ranges of numbers that are missing between the shown ones, such as `1-2, 7-7`.

    The result is a string, because loaders would give a column of lists another type if all its lists were empty, as
    they are at long lengths.
    """
    return ", ".join(f"{a + 1}-{b - 1}" for a, b in itertools.pairwise(shown) if b > a + 1)


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


METRICS = (
    "mmlongbench-doc",
    "mmlongbench-doc-lenient",
    "anls",
    "smudge",
    "judge-mmlongbench-doc",
    "judge-answers",
    "judge-committee",
)
"""The metrics that can score answers about documents, besides the benchmark's own metric `doc_qa`."""
LONG_METRICS = ("judge-committee", "judge-answers")
"""The metrics that can score explanations; `judge-answers` needs reference answers."""
_TEXT_SOURCES = ("Text", "Pure-text (Plain-text)")
"""The kinds of evidence that are running text; all others, even layout, are visual."""
_PAGES = ((1, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128))


def facets_of(record: mt.Record) -> Mapping[str, Sequence[str]]:
    """Return the groups of a question, by facet. A facet is left out if the record has no value for it."""
    sources = record.get("answer_sources") or []
    needs = [] if not sources else ["text only" if set(sources) <= set(_TEXT_SOURCES) else "vision needed"]
    found = {
        "answer format": [record.get("answer_format", "")],
        "answer length": [record.get("answer_length", "")],
        "evidence source": sources,
        "evidence": needs,
        "evidence pages": [_evidence_pages(record)],
        "evidence position": evidence_positions(record),
        "evidence shown": [_evidence_shown(record)],
        "anchor": [record.get("anchor", "")],
        "pages shown": [_pages_shown(len(record.get("page_list", ())))],
        "document type": [record.get("doc_type", "")],
        "question type": [record.get("question_type", "")],
    }
    columns = record.get("facets")
    for column, value in columns.items() if isinstance(columns, dict) else ():
        found[column if column not in found else f"{column} (column)"] = [str(value)]
    kept = {name: [group for group in groups if group] for name, groups in found.items()}
    return {name: groups for name, groups in kept.items() if groups}


def _evidence_pages(record: mt.Record) -> str:
    """Return the group of a question by its number of answer pages. As in MMLongBench-Doc, an answerable question for
    which the source names no page counts as cross-page.
    """
    if record.get("answer") == mt.NOT_ANSWERABLE:
        return "unanswerable"
    return "single-page" if len(record.get("ans_page_list", ())) == 1 else "cross-page"


def _evidence_shown(record: mt.Record) -> str:
    """Return whether a retrieved context shows all answer pages, some, or none; empty for any other context."""
    answers = set(record.get("ans_page_list", ()))
    if "gold_ranks" not in record or not answers:
        return ""
    shown = {find_index(path) for path in record.get("page_list", ()) if folder_of(path) == record.get("doc_name")}
    return "all" if answers <= shown else "some" if answers & shown else "none"


def _pages_shown(count: int) -> str:
    return next((f"{first}-{last}" for first, last in _PAGES if count <= last), f"{_PAGES[-1][1] + 1} and more")

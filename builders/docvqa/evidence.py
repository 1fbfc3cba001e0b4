"""Where answers are: in a released record, for scores and reports; and in the documents of a source, where annotations
may be wrong.

A page is identified by the folder of its image, which belongs to one document, and by the number in the image's name.
The position of the page in `page_list` is not used, because pages of other documents are in this list, too. Wrong
content of a record's field never raises an error, so files that others made can be read, too.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import mmlongbench.task as mt
from builders.common import PAGE_NUMBER, find_page_number
from builders.docvqa.rows import DocumentQuestion

# --- names of pages ---------------------------------------------------------------------------------------------------


def path_of_page(path: str, index: int) -> str:
    """Return the path of the page `index` of the same document as the page `path`; empty if `path` has no page number.

    >>> path_of_page("mmlongbench-doc/ab/ab_page12.jpg", 3), path_of_page("slideVQA/deck/a-deck-4-1024.jpg", 0)
    ('mmlongbench-doc/ab/ab_page3.jpg', 'slideVQA/deck/a-deck-1-1024.jpg')
    """
    match = PAGE_NUMBER.search(path)
    if match is None:
        return ""
    group, number = ("page", index) if match["page"] else ("slide", index + 1)
    return f"{path[: match.start(group)]}{number}{path[match.end(group) :]}"


def folder_of(path: str) -> str:
    """Return the name of the folder that a page's image is in; each document has a folder of its own.

    >>> folder_of("mmlongbench-doc/ab/ab_page12.jpg"), folder_of("ab_page12.jpg")
    ('ab', '')
    """
    folders, _, file = path.rpartition("/")
    folder = folders.rpartition("/")[2]
    is_plain = file not in ("", ".") and folder not in ("", ".")
    return folder if is_plain else PurePosixPath(path).parent.name  # this takes ten times as long


# --- the answer in a record -------------------------------------------------------------------------------------------

_UPTO_TWELVE = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_COUNTED = rf"\(?(?:no\.?\s*|number\s+|#\s*)?(?:\d+|{_UPTO_TWELVE}|\w+teen|twenty|thirty|forty|fifty)\b"
_ORDINALS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_NTH = rf"(?:cover|title|{_ORDINALS}|last|final|penultimate|next|previous|\d+(?:st|nd|rd|th))"
NAMES_PAGE = re.compile(rf"\b(?:page|slide)s?\s*{_COUNTED}|\b{_NTH}\s+(?:page|slide)s?\b", re.IGNORECASE)
"""Matches words such as `page 3` or `the last slide` in a question; in a context, this page may be at another place."""
_END = 1_000_000
"""All page numbers are below this, because the name of a page's image has at most six digits for the number."""
_RANGE = re.compile(r"(\d{1,6})-(\d{1,6})", re.ASCII)
"""Matches the pages that a joined image shows, such as `4-7`."""
MAX_ANSWER_PAGES = 10_000
"""The maximum number of answer pages of a record; further ones are ignored."""


def evidence_positions(record: mt.Record) -> tuple[str, ...]:
    """Return where answer pages are among the shown pages of their document: `first`, `inner` or `last`; `only` if a
    single page is shown. No position is repeated, and answer pages that are not shown have none.

    >>> pages = [f"docs/a/a_page{number}.jpg" for number in (3, 4, 5, 6)]
    >>> evidence_positions({"doc_name": "a", "page_list": ["docs/b/b_page0.jpg", *pages], "ans_page_list": [3, 5]})
    ('first', 'inner')
    """
    name = str(record.get("doc_name", "")).removesuffix(".pdf")
    own = [find_page_number(path) for path in record.get("page_list", ()) if folder_of(path) == name]
    places = {own.index(page) for page in record.get("ans_page_list", ()) if page in own}
    if len(own) == 1:
        return ("only",) if places else ()
    last = len(own) - 1
    is_there = {"first": 0 in places, "inner": any(0 < place < last for place in places), "last": last in places}
    return tuple(position for position, is_it in is_there.items() if is_it)


def runs_between(shown: Sequence[int]) -> str:
    """Return the ranges of numbers that are missing between the shown ones, such as `1-2, 7-7`.

    The result is a string, because loaders would give a column of lists another type if all its lists were empty, as
    they are at long lengths.
    """
    return ", ".join(f"{a + 1}-{b - 1}" for a, b in itertools.pairwise(shown) if b > a + 1)


def evidence_of(record: mt.Record) -> mt.Evidence:
    """Return where the answer of a record is. Paths of pages beside the answer pages are derived from those of others.

    >>> paths = ["docs/b/b_page0.jpg", "docs/a/a_page2.jpg", "docs/a/a_page3.jpg"]
    >>> answer = evidence_of({"doc_name": "a", "page_list": paths, "ans_page_list": [3]})
    >>> answer.document, answer.pages, answer.shown, answer.images[4]
    ('a', (3,), (2, 3), 'docs/a/a_page4.jpg')
    """
    name = record.get("doc_name")
    answers, ranges = _pages_in(record, "ans_page_list"), _listed(record, "joined_page_list")
    shown: dict[int, str] = {}
    texts: dict[int, str] = {}
    joined: dict[int, tuple[int, int]] = {}
    columns = itertools.zip_longest(_listed(record, "page_list"), _listed(record, "page_text_list"), ranges)
    for path, text, pages in columns:
        number = find_page_number(path) if isinstance(path, str) and folder_of(path) == name else None
        if number is None or number in shown:
            continue
        shown[number] = str(path)
        if isinstance(text, str):
            texts[number] = text.replace(mt.advanced.MARKER, "") if "crop_list" in record else text
        if isinstance(pages, str) and (match := _RANGE.fullmatch(pages)):
            joined[number] = (int(match[1]), int(match[2]))
    beside = sorted({page + step for page in answers for step in (-1, 0, 1) if 0 <= page + step < _END})
    known = next(iter(shown.values()), "")
    derived = {page: path for page in beside if (path := path_of_page(known, page))}
    return mt.Evidence(
        name if isinstance(name, str) else None,
        answers,
        tuple(shown),
        derived | shown,
        texts,
        joined,
        _pages_in(record, "document_page_list") if ranges else (),
    )


def _pages_in(record: mt.Record, field: str) -> tuple[int, ...]:
    pages = _listed(record, field)[:MAX_ANSWER_PAGES]
    return tuple(sorted({page for page in pages if isinstance(page, int) and page >= 0}))


def _listed(record: mt.Record, field: str) -> list[object]:
    value = record.get(field)
    return value if isinstance(value, list) else []


_TEXT_SOURCES = {"Text", "Pure-text (Plain-text)"}
"""The kinds of evidence that are running text; all others, even layout, are visual."""
_COUNTS = ((1, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128))
"""The groups of questions by the number of shown pages."""


def facets_of(record: mt.Record) -> Mapping[str, Sequence[str]]:
    """Return the groups of a question, by facet. A facet is left out if the record has no value for it."""
    sources, answers = record.get("answer_sources") or [], record.get("ans_page_list", ())
    paths = record.get("page_list", ())
    # As in MMLongBench-Doc, an answerable question for which the source names no page counts as cross-page.
    spread = "single-page" if len(answers) == 1 else "cross-page"
    retrieved = ""
    if "gold_ranks" in record and answers:
        shown = {find_page_number(path) for path in paths if folder_of(path) == record.get("doc_name")}
        retrieved = "all" if shown.issuperset(answers) else "some" if shown.intersection(answers) else "none"
    facets = {
        "answer format": [record.get("answer_format", "")],
        "answer length": [record.get("answer_length", "")],
        "evidence source": sources,
        "evidence": ["text only" if _TEXT_SOURCES.issuperset(sources) else "vision needed"] if sources else [],
        "evidence pages": ["unanswerable" if record.get("answer") == mt.metrics.NOT_ANSWERABLE else spread],
        "evidence position": evidence_positions(record),
        "evidence shown": [retrieved],
        "anchor": [record.get("anchor", "")],
        "pages shown": [next((f"{first}-{last}" for first, last in _COUNTS if len(paths) <= last), "129 and more")],
        "document type": [record.get("doc_type", "")],
        "question type": [record.get("question_type", "")],
    }
    columns = record.get("facets")
    for column, value in columns.items() if isinstance(columns, dict) else ():
        facets[column if column not in facets else f"{column} (column)"] = [str(value)]
    kept = {name: [group for group in groups if group] for name, groups in facets.items()}
    return {name: groups for name, groups in kept.items() if groups}


# --- annotations that may be wrong ------------------------------------------------------------------------------------

# Nothing is certain here: an answer may be read from a picture, or occur on a page by chance. The result is a draft of
# errata that somebody must check.

_COMMA = re.compile(r"(?<=\d),(?=\d{3})")
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_NAMED = re.compile(r"\bpage\s+(\d{1,4})\b", re.IGNORECASE)
_NEAR = 3
"""The maximum number of pages with an answer's text; an answer on more pages does not show which page is meant."""
_ROWS = 3
"""The minimum number of answers that must be off by the same number of pages before all pages of a document count as
shifted."""


def words(text: str) -> str:
    """Return the words of a text in lower case, with one space before and after each, and numbers without commas.

    >>> words("Total: 3,927 Barge-loads")
    ' total 3927 barge loads '
    """
    plain = _COMMA.sub("", unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(_WORDS.findall(plain))} "


def find_suspects(rows: Sequence[DocumentQuestion], sources: mt.Sources) -> Iterator[mt.advanced.Suspect]:
    """Yield each question whose answer pages may be wrong, with the reason, document after document."""
    by_doc: dict[str, list[DocumentQuestion]] = {}
    for row in rows:
        by_doc.setdefault(row.doc, []).append(row)
    for doc, asked in by_doc.items():
        try:
            document, texts = sources.documents[doc], sources.documents.page_texts(doc)
        except mt.Rejected as refused:
            yield from (mt.advanced.Suspect(row.id, refused.fault.reason, str(refused.fault)) for row in asked)
            continue
        pages = [""] * document.page_count
        for page, text in zip(document.pages, texts, strict=True):
            pages[page.index] = words(text)
        yield from _of_document(asked, pages)


def _of_document(rows: Sequence[DocumentQuestion], pages: Sequence[str]) -> Iterator[mt.advanced.Suspect]:
    """Yield the suspects of a document, whose pages are given as words."""
    holding = {
        row.id: {number for number, page in enumerate(pages) if all(phrase in page for phrase in phrases)}
        for row in rows
        if row.pages and (phrases := _phrases(row))
    }
    shift, count = _shift(rows, holding), len(pages)
    for row in rows:
        answer, listed = " and ".join(map(repr, row.answer)), _numbers(row.pages)
        right = tuple(page + shift for page in row.pages)
        right = right if shift and right and right[0] >= 0 and right[-1] < count else ()
        if row.pages and row.pages[-1] >= count:
            kind, evidence = "page-beyond-the-document", f"page {row.pages[-1] + 1} of {count}"
            right = right if shift else _printed(row.pages, pages)
        elif right:
            by = f"{abs(shift)} page{'s' if abs(shift) > 1 else ''} {'after' if shift > 0 else 'before'}"
            evidence = f"answers of this document are usually found {by} the page that the source gives"
            kind = "numbering-off"
        else:
            others, why_unknown = _elsewhere(row, holding.get(row.id), pages) if row.pages else ((), "")
            named = _named_otherwise(row, pages)
            if others:
                kind, right = "answer-on-another-page", others if len(others) == len(row.pages) else ()
                evidence = f"{answer} is not on page {listed}, but on page {_numbers(others)}"
            elif named is not None:
                kind = "question-names-another-page"
                evidence = f"the question names page {named}, its answer page is {listed}"
            elif wrong := [repair for repair in row.repairs if "-to-" in repair]:
                kind = "answer-of-another-format"
                evidence = f"{answer} has another format than the one declared ({', '.join(wrong)})"
            else:
                if why_unknown:
                    yield mt.advanced.Suspect(row.id, why_unknown, "", could_judge=False)
                continue
        yield mt.advanced.Suspect(row.id, kind, evidence, {row.pages_field: [n + 1 for n in right]} if right else {})


def _elsewhere(row: DocumentQuestion, holding: set[int] | None, pages: Sequence[str]) -> tuple[tuple[int, ...], str]:
    """Return (pages, reason): the pages that hold the answer and match the question better than the annotated pages do;
    or why nothing is known. Both are empty if an annotated page holds the answer. `holding` are all pages that hold it.

    A number may be computed, or read from a chart, and occur on another page by chance. A page with such a number
    usually has no more of the question's words than the annotated page. Where the source names no chart, a page with a
    number of four digits need not have more of the words, and one with a name of two words may have fewer.
    """
    if not all(mt.advanced.has_words(pages[page]) for page in row.pages):
        return (), "its answer page has no text"
    if holding is None:
        return (), "its answer is too short to be told from others"
    if not holding:
        return (), "its answer stands on no page as it is written"
    if holding.intersection(row.pages):
        return (), ""
    if len(holding) > _NEAR:
        return (), "its answer stands on too many pages"
    # The right page usually has most of the long words of a question.
    asked = {word for word in words(row.question).split() if len(word) > 3}
    common = {page: sum(f" {word} " in pages[page] for word in asked) for page in (*holding, *row.pages)}
    here = max(common[page] for page in row.pages)
    phrases, sources = _phrases(row), " ".join(row.sources).casefold()
    if len(row.pages) > 1 or any(word in sources for word in ("chart", "figure", "image")):
        more = 2
    elif len(holding) > 1 or not all(map(_is_rare, phrases)):
        more = 1
    else:
        more = 0 if any(map(str.isdigit, "".join(phrases))) else -here
    others = tuple(page for page in sorted(holding) if common[page] >= here + more)
    return others, "its answer stands on a page that fits no better"


def _named_otherwise(row: DocumentQuestion, pages: Sequence[str]) -> int | None:
    # a page that a question names may count from 1, or be the number that is printed on every answer page
    named = {int(number) for number in _NAMED.findall(row.question)}
    if not row.pages or len(named) != 1:
        return None
    number = named.pop()
    is_right = number - 1 in row.pages or all(f" {number} " in pages[page] for page in row.pages)
    return None if is_right else number


def _printed(wanted: Sequence[int], pages: Sequence[str]) -> tuple[int, ...]:
    """Return the pages on which the numbers (from 1) of the wanted pages are printed as the first or last word; empty
    unless each number is printed on exactly one page.
    """
    ends = [{*page.split()[:1], *page.split()[-1:]} for page in pages]
    printed = [[number for number, words in enumerate(ends) if str(page + 1) in words] for page in wanted]
    return tuple(numbers[0] for numbers in printed) if all(len(numbers) == 1 for numbers in printed) else ()


def _shift(rows: Sequence[DocumentQuestion], holding: Mapping[str, set[int]]) -> int:
    """Return by how many pages the page numbers of a whole document are off; 0 if too few answers show a shift.

    An answer is only used if it has one annotated page, and if its text is on at most `_NEAR` pages. The same shift
    must be shown by at least `_ROWS` of these answers, by at least two thirds of them, and by more than twice as many
    as show no shift.
    """
    single = [row for row in rows if len(row.pages) == 1 and 1 <= len(holding.get(row.id, ())) <= _NEAR]
    hits = Counter(page - row.pages[0] for row in single for page in holding[row.id])
    best = max(hits, key=lambda shift: (hits[shift], -abs(shift), shift), default=0)
    is_off = hits[best] >= _ROWS and hits[best] > 2 * hits[0] and hits[best] * 3 >= 2 * len(single)
    return best if is_off else 0


def _phrases(row: DocumentQuestion) -> tuple[str, ...]:
    """Return the phrases that must be on an answer page: the answer or, for a list, its elements. The result is empty
    if there is no answer, or if a phrase may be on a page by chance: if it has no word of six letters, no two words,
    and no three digits.
    """
    phrases = tuple(words(value) for value in row.answer) if row.answer_format != "None" else ()
    for phrase in phrases:
        letters = [word for word in phrase.split() if word.isalpha()]
        is_long = any(len(word) >= 6 for word in letters) or len(letters) >= 2
        if not is_long and sum(map(str.isdigit, phrase)) < 3:
            return ()
    return phrases


def _is_rare(phrase: str) -> bool:
    """Return whether a phrase is hardly ever on a page by chance: a number of four digits, or two longer words."""
    parts = phrase.split()
    return any(part.isdigit() and len(part) >= 4 for part in parts) or sum(len(part) > 3 for part in parts) >= 2


def _numbers(pages: Sequence[int]) -> str:
    return ", ".join(str(page + 1) for page in pages)

"""Finds annotations that may be wrong: answer pages that a document does not have, or that lack the answer's text.

Nothing is certain here: an answer may be read from a picture, or occur on a page by chance. The result is a draft of
errata that somebody must check.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import mmlongbench.task as mt
from builders.docvqa.rows import DocumentQuestion

_COMMA = re.compile(r"(?<=\d),(?=\d{3})")
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_NEAR = 3
"""The maximum number of pages with an answer's text; an answer on more pages does not show which page is meant."""
_ROWS = 3
"""The minimum number of answers that must be off by the same number of pages before all pages of a document count as
shifted."""
_NAMED = re.compile(r"\bpage\s+(\d{1,4})\b", re.IGNORECASE)
_RARE_DIGITS = 4
"""A number with so many digits is seldom on a page by chance."""
_PICTURES = ("chart", "figure", "image")


@dataclass(frozen=True)
class Read:
    """The pages of a document, as words separated by spaces."""

    pages: tuple[str, ...]

    @cached_property
    def has_text(self) -> tuple[bool, ...]:
        """For each page, whether it has more text than a stamp has."""
        return tuple(mt.has_words(page) for page in self.pages)

    def having(self, phrases: Sequence[str]) -> frozenset[int]:
        """Return the pages, from 0, that contain every phrase."""
        return frozenset(n for n, page in enumerate(self.pages) if all(phrase in page for phrase in phrases))

    def printed(self, pages: Sequence[int]) -> tuple[int, ...]:
        """Return, for each of `pages`, the page on which its number (from 1) is printed as the first or last word. The
        source may mean such printed numbers. The result is empty unless each number is printed on exactly one page.
        """
        ends = [set(page.split()[:1] + page.split()[-1:]) for page in self.pages]
        found = [[n for n, end in enumerate(ends) if str(page + 1) in end] for page in pages]
        return tuple(each[0] for each in found) if all(len(each) == 1 for each in found) else ()


def words(text: str) -> str:
    """Return the words of a text in lower case, with one space before and after each, and numbers without commas.

    >>> words("Total: 3,927 Barge-loads")
    ' total 3927 barge loads '
    """
    plain = _COMMA.sub("", unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(_WORDS.findall(plain))} "


def find_suspects(rows: Sequence[DocumentQuestion], sources: mt.Sources) -> Iterator[mt.Suspect]:
    """Yield each question whose answer pages may be wrong, with the reason, document after document."""
    by_doc: dict[str, list[DocumentQuestion]] = {}
    for row in rows:
        by_doc.setdefault(row.doc, []).append(row)
    for doc, asked in by_doc.items():
        try:
            read = Read(tuple(map(words, _texts(sources.documents, doc))))
        except mt.Rejected as refused:
            yield from (mt.Suspect(row.id, refused.fault.reason, str(refused.fault)) for row in asked)
            continue
        yield from _of_document(asked, read)


def _texts(documents: mt.Documents, doc: str) -> list[str]:
    """Return the text of each page of a document by its number; a page without an image has an empty text."""
    document = documents[doc]
    found = dict(zip((page.index for page in document.pages), documents.page_texts(doc), strict=True))
    return [found.get(number, "") for number in range(document.page_count)]


def _of_document(rows: Sequence[DocumentQuestion], read: Read) -> Iterator[mt.Suspect]:
    found = {row.id: read.having(_phrases(row)) for row in rows if row.pages and _phrases(row)}
    shift = _shift(rows, found)
    for row in rows:
        last = len(read.pages)
        if row.pages and row.pages[-1] >= last:
            moved = _moved(row, shift, last) if shift else read.printed(row.pages)
            yield _suspect(row, "page-beyond-the-document", f"page {row.pages[-1] + 1} of {last}", moved)
        elif shift and row.pages and (moved := _moved(row, shift, last)):
            pages = f"{abs(shift)} page{'s' if abs(shift) > 1 else ''} {'after' if shift > 0 else 'before'}"
            evidence = f"answers of this document are usually found {pages} the page that the source gives"
            yield _suspect(row, "numbering-off", evidence, moved)
        elif row.id in found and (others := _elsewhere(row, found[row.id], read)):
            pages = ", ".join(str(page + 1) for page in sorted(others))
            evidence = f"{_shown(row)} is not on page {_numbers(row.pages)}, but on page {pages}"
            moved = tuple(sorted(others)) if len(others) == len(row.pages) else ()
            yield _suspect(row, "answer-on-another-page", evidence, moved)
        elif evidence := _named_otherwise(row, read):
            yield _suspect(row, "question-names-another-page", evidence, ())
        elif wrong := [repair for repair in row.repairs if "-to-" in repair]:
            evidence = f"{_shown(row)} has another format than the one declared ({', '.join(wrong)})"
            yield _suspect(row, "answer-of-another-format", evidence, ())
        elif row.pages and (why := _not_judged(row, found.get(row.id), read)):
            yield mt.Suspect(row.id, why, "", could_judge=False)


def _not_judged(row: DocumentQuestion, found: frozenset[int] | None, read: Read) -> str:
    """Return why nothing is known about the answer pages of a row; empty if an answer page has the answer."""
    if not all(read.has_text[page] for page in row.pages):
        return "its answer page has no text"
    if found is None:
        return "its answer is too short to be told from others"
    if found & set(row.pages):
        return ""
    if not found:
        return "its answer stands on no page as it is written"
    return (
        "its answer stands on too many pages"
        if len(found) > _NEAR
        else "its answer stands on a page that fits no better"
    )


def _elsewhere(row: DocumentQuestion, found: frozenset[int], read: Read) -> frozenset[int]:
    """Return the pages that contain the answer and match the question better than the annotated pages do. The result is
    empty if an annotated page contains the answer or has no text, or if the answer is on many pages.

    A number may be computed, or read from a chart, and occur on another page by chance. A page with such a number
    usually has no more of the question's words than the annotated page. Where the source names no chart, a page with a
    number of four digits need not have more of the words, and one with a name of two words may have fewer.
    """
    if not all(read.has_text[page] for page in row.pages) or found & set(row.pages) or not 1 <= len(found) <= _NEAR:
        return frozenset()
    asked = Counter(words(row.question).split())
    here = max(_common(asked, read.pages[page]) for page in row.pages)
    in_pictures = any(word in source.casefold() for source in row.sources for word in _PICTURES)
    is_rare = len(found) == 1 and all(map(_is_rare, _phrases(row)))
    more = 0 if any(map(str.isdigit, "".join(_phrases(row)))) else -len(asked)
    more = 2 if in_pictures or len(row.pages) > 1 else more if is_rare else 1
    return frozenset(page for page in found if _common(asked, read.pages[page]) >= here + more)


def _named_otherwise(row: DocumentQuestion, read: Read) -> str:
    """Return a message if a question names one page, and the number of this page is neither the number of an answer
    page nor printed on every answer page; otherwise an empty text.
    """
    named = {int(number) for number in _NAMED.findall(row.question)}
    known = {page + 1 for page in row.pages}
    printed = all(f" {number} " in read.pages[page] for number in named for page in row.pages)
    if not row.pages or len(named) != 1 or named & known or printed:
        return ""
    return f"the question names page {named.pop()}, its answer page is {_numbers(row.pages)}"


def _common(asked: Mapping[str, int], page: str) -> int:
    """Return how many long words of a question a page has; the right page usually has most of them."""
    return sum(1 for word in asked if len(word) > 3 and f" {word} " in page)


def _shift(rows: Sequence[DocumentQuestion], found: Mapping[str, frozenset[int]]) -> int:
    """Return by how many pages the page numbers of a whole document are off; 0 if they are right, or if too few answers
    show a shift.

    An answer is only used if it has one annotated page, and if its text is on at most `_NEAR` pages. The same shift
    must be shown by at least `_ROWS` of these answers, by at least two thirds of them, and by more than twice as many
    as show no shift.
    """
    single = [row for row in rows if len(row.pages) == 1 and 1 <= len(found.get(row.id, ())) <= _NEAR]
    hits = Counter(page - row.pages[0] for row in single for page in found[row.id])
    if not hits:
        return 0
    best = max(hits, key=lambda shift: (hits[shift], -abs(shift), shift))
    is_off = best != 0 and hits[best] >= _ROWS and hits[best] > 2 * hits[0] and hits[best] * 3 >= 2 * len(single)
    return best if is_off else 0


def _moved(row: DocumentQuestion, shift: int, count: int) -> tuple[int, ...]:
    pages = tuple(page + shift for page in row.pages)
    return pages if pages and pages[0] >= 0 and pages[-1] < count else ()


def _phrases(row: DocumentQuestion) -> tuple[str, ...]:
    """Return the phrases that must be on an answer page: the answer or, for a list, its elements. The result is empty
    if a phrase is so common that it may be on a page by chance, or if there is no answer.
    """
    if row.answer_format == "None":
        return ()
    phrases = tuple(words(value) for value in row.answer)
    return phrases if all(map(_is_telling, phrases)) else ()


def _is_telling(phrase: str) -> bool:
    """Return whether a phrase is unlikely to be on a page by chance: it has a word of six letters, or two words, or
    three digits.
    """
    parts = phrase.split()
    letters = [part for part in parts if part.isalpha()]
    return any(len(part) >= 6 for part in letters) or len(letters) >= 2 or sum(map(str.isdigit, phrase)) >= 3


def _is_rare(phrase: str) -> bool:
    """Return whether a phrase is hardly ever on a page by chance: a number of four digits, or two longer words."""
    parts = phrase.split()
    return any(part.isdigit() and len(part) >= _RARE_DIGITS for part in parts) or sum(len(p) > 3 for p in parts) >= 2


def _suspect(row: DocumentQuestion, kind: str, evidence: str, pages: tuple[int, ...]) -> mt.Suspect:
    return mt.Suspect(row.id, kind, evidence, {row.pages_field: [page + 1 for page in pages]} if pages else {})


def _numbers(pages: Sequence[int]) -> str:
    return ", ".join(str(page + 1) for page in pages)


def _shown(row: DocumentQuestion) -> str:
    return " and ".join(repr(value) for value in row.answer)

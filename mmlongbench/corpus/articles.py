"""The article, which every source gives in the same form, and the checks that it must pass. File formats are not known
here.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mmlongbench.errors import Fault

MAX_CHARACTERS = 5_000_000
"""The maximum length of an article; War and Peace has 3.2 million characters."""
MAX_OF_A_NAME = 1_000
"""The maximum length of an id or a title, in characters."""


@dataclass(frozen=True, slots=True)
class Article:
    """One document of a source, before it is cut."""

    doc_id: str
    title: str
    paragraphs: tuple[str, ...]
    """The body without the title; a paragraph that begins with `Section::::` is only the heading of a section."""
    first: int = 0
    """The number of the first paragraph in the source; it is 1 in KILT, whose paragraph 0 is the title."""
    passage_id: str = ""
    """The id of the passage, if the source is already cut into passages; the article is then a single passage. Empty
    for any other source."""
    file: str = ""
    place: str = ""
    """The line, row or page inside the file."""
    wikidata: int = 0
    """The number of the article's Wikidata id, which is a second key; 0 if the source gives no such id."""

    @property
    def id(self) -> str:
        """The id that must be unique in a source: the passage's id if there is one, else the document's."""
        return self.passage_id or self.doc_id


def fit(articles: Iterable[Article | Fault]) -> Iterator[Article | Fault]:
    """Yield each article that passes the checks, and a fault in place of each other article."""
    seen = Keys()
    for article in articles:
        if isinstance(article, Fault):
            yield article
        elif (fault := _fault(article)) is not None:
            yield fault
        elif not seen.add(key_of(article.id)):
            todo = "give each article an id of its own"
            yield _named(article, "duplicate-id", "an id that no earlier article has", _shown(article.id), "id", todo)
        else:
            yield article


def key_of(text: str) -> int:
    """Return 64 bits of a text's hash, never 0. Two ids rarely have the same key: this is expected in one of 80,000
    corpora with 21 million articles each.
    """
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


def _fault(article: Article) -> Fault | None:
    """Return what is wrong with an article, without a look at other articles; None if nothing is wrong."""
    for field, text in (("title", article.title), ("id", article.doc_id), ("id", article.id)):
        if not text.strip():
            return _named(article, f"missing-{field}", "a text", "only whitespace" if text else "none", field)
        if len(text) > MAX_OF_A_NAME:
            return _too_long(article, f"{field}-too-long", MAX_OF_A_NAME, len(text), field)
        if (found := _surrogate(text)) is not None:
            return _named(article, "lone-surrogate", "text that UTF-8 can spell", found, field)
    return _body_fault(article)


def _body_fault(article: Article) -> Fault | None:
    length = sum(map(len, article.paragraphs))
    if length > MAX_CHARACTERS:
        return _too_long(article, "text-too-long", MAX_CHARACTERS, length, "text")
    if not any(p.strip() and (article.passage_id or not is_section(p)) for p in article.paragraphs):
        return _named(
            article, "empty-text", "at least one word of text", "none", "text", "leave it out, or give its text"
        )
    for number, paragraph in enumerate(article.paragraphs, article.first):
        if (found := _surrogate(paragraph)) is not None:
            place = f"{found}, paragraph {number}"
            return _named(article, "lone-surrogate", "text that UTF-8 can spell", place, "text")
    return None


SECTION = "Section::::"
"""The beginning of a line in KILT that is the heading of a section."""


def is_section(paragraph: str) -> bool:
    """Return whether a paragraph is only the heading of a section."""
    return paragraph.lstrip().startswith(SECTION)


def _surrogate(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"U+{ord(text[error.start]):04X} at character {error.start}"
    return None


def _too_long(article: Article, reason: str, bound: int, length: int, field: str) -> Fault:
    todo = "split the article, or take it out"
    return _named(article, reason, f"at most {bound:,} characters", f"{length:,}", field, todo)


def _named(
    article: Article,
    reason: str,
    expected: str,
    found: str,
    field: str = "",
    todo: str = "correct the article, or take it out",
) -> Fault:
    return Fault(reason, expected, found, article.file, article.place, field, todo)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:79]}…")


class Keys:
    """A set of non-zero 64-bit keys, an open-addressed table at most two thirds full: it takes 12 to 24 bytes a key."""

    def __init__(self) -> None:
        self.slots = array("Q", bytes(8 * 1024))
        self.count = 0

    def add(self, key: int) -> bool:
        """Add a key, and return whether it was new."""
        if 3 * self.count >= 2 * len(self.slots):
            self._grow()
        at = self._find(key)
        if self.slots[at] == key:
            return False
        self.slots[at] = key
        self.count += 1
        return True

    def _find(self, key: int) -> int:
        slots, mask = self.slots, len(self.slots) - 1
        at = key & mask
        while slots[at] not in (0, key):
            at = (at + 1) & mask
        return at

    def _grow(self) -> None:
        keys = self.slots
        self.slots = array("Q", bytes(16 * len(keys)))
        for key in keys:
            if key:
                self.slots[self._find(key)] = key

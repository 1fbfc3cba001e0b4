"""The article, which every source gives in the same form, and the checks that it must pass. File formats are not known
here.
"""

import hashlib
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mmlongbench.errors import Fault

INFO_FIELD, ID_FIELD = "wikidata_info", "wikidata_id"
"""The fields with the id: in KILT, `wikidata_info` is an object with the field `wikidata_id`; a row of Wiki6M has
`wikidata_id` itself."""
_ID = re.compile(r"[Qq]([1-9][0-9]{0,17})")


def wikidata_of(row: Mapping[str, object]) -> int:
    """Return the number of a row's Wikidata id; 0 if the row has no valid id.

    >>> wikidata_of({"wikidata_info": {"wikidata_id": "Q42"}}), wikidata_of({"wikidata_id": " q7 "})
    (42, 7)
    >>> wikidata_of({"wikidata_info": None}), wikidata_of({"wikidata_info": {"wikidata_id": ""}})
    (0, 0)
    """
    info = row.get(INFO_FIELD)
    found = info.get(ID_FIELD) if isinstance(info, Mapping) else None
    return wikidata_number(found) or wikidata_number(row.get(ID_FIELD))


def wikidata_number(id: object) -> int:
    """Return the number in a Wikidata id; 0 if the value is no such id.

    >>> wikidata_number("Q178185"), wikidata_number("Q0"), wikidata_number("178185"), wikidata_number(None)
    (178185, 0, 0, 0)
    """
    match = _ID.fullmatch(id.strip()) if isinstance(id, str) else None
    return int(match[1]) if match else 0


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


IDS = ("_id", "id", "wikipedia_id", "wikidata_id", "doc_id", "docid", "kilt_id")
TITLES = ("wikipedia_title", "title")
TEXTS = ("text", "contents", "wikipedia_content")
FIELDS = (*IDS, *TITLES, *TEXTS, INFO_FIELD)
_BULLET = "BULLET::::"
"""The beginning of KILT's list items; it is kept, as in KILT's own passages."""


def article_of(row: Mapping[str, object], file: str, place: str, *, is_kilt: bool = False) -> Article | Fault:
    """Return the article of a row, or what is wrong with the row's types.

    A list of paragraphs with a `wikipedia_title` is in KILT's form: its paragraph 0 is the title and is left out.
    """
    id_field, id = _first(row, IDS)
    title_field, title = _first(row, TITLES)
    text_field, text = _first(row, TEXTS)
    if isinstance(id, int) and not isinstance(id, bool):
        id = str(id)
    if isinstance(text, Mapping):
        text = text.get("paragraph")
    if not isinstance(id, str | None):
        return Fault(
            "wrong-type",
            "a text or a whole number",
            type(id).__name__,
            file,
            place,
            id_field,
            todo="correct the field, or take the row out",
        )
    if not isinstance(title, str | None):
        return Fault(
            "wrong-type",
            "a text",
            type(title).__name__,
            file,
            place,
            title_field,
            todo="correct the field, or take the row out",
        )
    if title is None and text_field == "contents" and isinstance(text, str):
        title, text = _split(text)
    paragraphs = _paragraphs(text, is_kilt=is_kilt)
    if isinstance(paragraphs, str):
        return Fault(
            "wrong-type",
            "a list of texts" if is_kilt else "a text",
            paragraphs,
            file,
            place,
            text_field,
            todo="correct the field, or take the row out",
        )
    first = int(not isinstance(text, str) and (is_kilt or row.get("wikipedia_title") is not None))
    wikidata = wikidata_of(row)
    return Article((id or "").strip(), title or "", paragraphs[first:], first, "", file, place, wikidata)


def paragraphs_of(text: str) -> tuple[str, ...]:
    """Return the paragraphs of a text, which blank lines separate. KILT's marker lines are paragraphs of their own."""
    paragraphs: list[list[str]] = [[]]
    for line in text.split("\n"):
        is_alone = is_section(line) or line.lstrip().startswith(_BULLET)
        if is_alone or not line.strip():
            paragraphs.append([])
        paragraphs[-1].append(line)
        if is_alone:
            paragraphs.append([])
    return tuple(" ".join(lines).strip() for lines in paragraphs if any(line.strip() for line in lines))


def _first(row: Mapping[str, object], names: Sequence[str]) -> tuple[str, object]:
    """Return the first of some field names for which a row has a value, and the value.

    If the row has no value for any of them, return the first field name and None.
    """
    return next(((name, row[name]) for name in names if row.get(name) is not None), (names[0], None))


def _split(contents: str) -> tuple[str | None, str]:
    """Split Pyserini's `contents` into the title, perhaps quoted, on the first line, and the text after it."""
    head, newline, text = contents.partition("\n")
    return (head.strip().strip('"'), text) if newline else (None, contents)


def _paragraphs(text: object, *, is_kilt: bool) -> tuple[str, ...] | str:
    """Return the paragraphs of a text; if it has a wrong type, return a text that says which type it has."""
    if text is None:
        return ()
    if isinstance(text, str) and not is_kilt:
        return paragraphs_of(text)
    if not isinstance(text, list):
        return type(text).__name__
    wrong = next((type(paragraph).__name__ for paragraph in text if not isinstance(paragraph, str)), "")
    return f"a list with a {wrong}" if wrong else tuple(text)

"""The article: the form of every document of a source, how a row becomes one, and the checks that it must pass."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mmlongbench.corpus.index import Keys, key_of
from mmlongbench.errors import Fault

IDS = ("_id", "id", "wikipedia_id", "wikidata_id", "doc_id", "docid", "kilt_id")
TITLES = ("wikipedia_title", "title")
TEXTS = ("text", "contents", "wikipedia_content")
FIELDS = (*IDS, *TITLES, *TEXTS, "wikidata_info")
"""The fields of a row that are read. Of several ids, titles or texts, the first that has a value counts."""
SECTION = "Section::::"  # the beginning of a line in KILT that is the heading of a section
_BULLET = "BULLET::::"  # the beginning of KILT's list items; it is kept, as in KILT's own passages
_WIKIDATA_ID = re.compile(r"[Qq]([1-9][0-9]{0,17})")

MAX_CHARACTERS = 5_000_000
"""The maximum length of an article; War and Peace has 3.2 million characters."""
MAX_OF_A_NAME = 1_000  # the maximum length of an id or a title, in characters


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


def article_of(row: Mapping[str, object], file: str, place: str, *, is_kilt: bool = False) -> Article | Fault:
    """Return the article of a row, or what is wrong with the row's types.

    A list of paragraphs with a `wikipedia_title` is in KILT's form: its paragraph 0 is the title and is left out.
    """

    def wrong_type(field: str, expected: str, found: str) -> Fault:
        todo = "correct the field, or take the row out"
        return Fault("wrong-type", expected, found, file, place, field, todo)

    id_field, id = _first(row, IDS)
    title_field, title = _first(row, TITLES)
    text_field, text = _first(row, TEXTS)
    if isinstance(id, int) and not isinstance(id, bool):
        id = str(id)
    if not isinstance(id, str | None):
        return wrong_type(id_field, "a text or a whole number", type(id).__name__)
    if not isinstance(title, str | None):
        return wrong_type(title_field, "a text", type(title).__name__)
    if isinstance(text, Mapping):  # a row of KILT on the hub
        text = text.get("paragraph")
    if title is None and text_field == "contents" and isinstance(text, str):
        # Pyserini's form: the title, perhaps quoted, is on the first line
        head, newline, body = text.partition("\n")
        if newline:
            title, text = head.strip().strip('"'), body
    paragraphs: tuple[str, ...] = ()
    if isinstance(text, str) and not is_kilt:
        paragraphs = paragraphs_of(text)
    elif text is not None:
        expected = "a list of texts" if is_kilt else "a text"
        if not isinstance(text, list):
            return wrong_type(text_field, expected, type(text).__name__)
        if wrong := [paragraph for paragraph in text if not isinstance(paragraph, str)]:
            return wrong_type(text_field, expected, f"a list with a {type(wrong[0]).__name__}")
        paragraphs = tuple(text)
    first = int(not isinstance(text, str) and (is_kilt or row.get("wikipedia_title") is not None))
    # in KILT, `wikidata_info` is an object with the field `wikidata_id`; a row of Wiki6M has `wikidata_id` itself
    info = row.get("wikidata_info")
    wikidata = wikidata_number(info.get("wikidata_id") if isinstance(info, Mapping) else None)
    wikidata = wikidata or wikidata_number(row.get("wikidata_id"))
    return Article((id or "").strip(), title or "", paragraphs[first:], first, "", file, place, wikidata)


def _first(row: Mapping[str, object], names: Sequence[str]) -> tuple[str, object]:
    """Return the first of some field names for which a row has a value, and the value; without a value, the first name
    and None.
    """
    return next(((name, row[name]) for name in names if row.get(name) is not None), (names[0], None))


def wikidata_number(id: object) -> int:
    """Return the number in a Wikidata id; 0 if the value is no such id.

    >>> wikidata_number("Q178185"), wikidata_number("Q0"), wikidata_number("178185"), wikidata_number(None)
    (178185, 0, 0, 0)
    """
    match = _WIKIDATA_ID.fullmatch(id.strip()) if isinstance(id, str) else None
    return int(match[1]) if match else 0


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


def is_section(paragraph: str) -> bool:
    """Return whether a paragraph is only the heading of a section."""
    return paragraph.lstrip().startswith(SECTION)


def fit(articles: Iterable[Article | Fault]) -> Iterator[Article | Fault]:
    """Yield each article that passes the checks, and a fault in place of each other article."""
    seen = Keys()
    for article in articles:
        fault = article if isinstance(article, Fault) else _fault(article, seen)
        yield article if fault is None else fault


def _fault(article: Article, seen: Keys) -> Fault | None:
    """Return what is wrong with an article; if nothing is, add its id to those that were seen."""

    def fault(
        reason: str, expected: str, found: str, field: str, todo: str = "correct the article, or take it out"
    ) -> Fault:
        return Fault(reason, expected, found, article.file, article.place, field, todo)

    def too_long(reason: str, most: int, length: int, field: str) -> Fault:
        todo = "split the article, or take it out"
        return fault(reason, f"at most {most:,} characters", f"{length:,}", field, todo)

    for field, text in (("title", article.title), ("id", article.doc_id), ("id", article.id)):
        if not text.strip():
            return fault(f"missing-{field}", "a text", "only whitespace" if text else "none", field)
        if len(text) > MAX_OF_A_NAME:
            return too_long(f"{field}-too-long", MAX_OF_A_NAME, len(text), field)
        if found := _surrogate(text):
            return fault("lone-surrogate", "text that UTF-8 can spell", found, field)
    length = sum(map(len, article.paragraphs))
    if length > MAX_CHARACTERS:
        return too_long("text-too-long", MAX_CHARACTERS, length, "text")
    if not any(p.strip() and (article.passage_id or not is_section(p)) for p in article.paragraphs):
        return fault("empty-text", "at least one word of text", "none", "text", "leave it out, or give its text")
    for number, paragraph in enumerate(article.paragraphs, article.first):
        if found := _surrogate(paragraph):
            return fault("lone-surrogate", "text that UTF-8 can spell", f"{found}, paragraph {number}", "text")
    if not seen.add(key_of(article.id)):
        shown = repr(article.id if len(article.id) <= 80 else f"{article.id[:79]}…")
        todo = "give each article an id of its own"
        return fault("duplicate-id", "an id that no earlier article has", shown, "id", todo)
    return None


def _surrogate(text: str) -> str:
    """Return the first character of a text that UTF-8 cannot spell, and its place; empty if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"U+{ord(text[error.start]):04X} at character {error.start}"
    return ""

"""Turns a row with named fields into an article. It knows the field names of KILT, Wiki6M, BEIR, DPR and Pyserini."""

from collections.abc import Mapping, Sequence

from mmlongbench.corpus.articles import Article, is_section
from mmlongbench.corpus.wikidata import INFO_FIELD, wikidata_of
from mmlongbench.errors import Fault

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

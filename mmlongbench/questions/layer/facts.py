"""Facts: cells of tables that two readers see in the same way, and that nothing in the document can be confused with.

A table is called by its numbered caption, or by its heading; where the document has this heading on other pages too, by
the heading of its page as well. No other page of the document, except its contents, has these words. The row and the
column are called by words that no other row and column of the table have. The second reader of tables, `confirms`, has
the grids that PyMuPDF finds; the words of a cell are those whose middle is in it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise

from mmlongbench.questions.layer.page import Box, Grid, Page, Word, around
from mmlongbench.questions.layer.words import YEAR, Header, Row, WordTable, clean_label, read_table

MAX_LABEL_WORDS, MAX_TITLE_WORDS = 14, 16  # longer labels and headings are not quoted
NEAR = 70.0  # a caption or heading is at most so many points away
_PRINTED = re.compile(
    r"(?P<sign>[-−–+]?)\s?[$€£¥]?\s?(?P<open>\(?)\s?[$€£¥]?\s?(?P<inner>[-−–]?)(?P<digits>(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?)\s?"
    r"(?P<percent>%?)\s?(?P<close>\)?)\s?(?P<after>%?)"
)
_RANGE = re.compile(r"(19|20)\d\d|\$?\d[\d,]*\s?([-–—]|to)\s?\$?\d[\d,]*|\d+\+")
"""Matches labels that are years or ranges, such as `2019`, `18-29` and `65+`."""
_CAPTION = re.compile(  # begins as the caption of a table, or of a part of it on another page, does
    r"\W*(?i:continued from |continuation of )?(?P<kind>(?i:table|exhibit))\s+"
    r"(?P<number>[A-Z]?\d{1,3}(?:\.\d{1,2})?|[IVX]{1,5})"
    r"(?:(?i:[\s(\[,:;.–—-]*(?:cont(?:inued|['’]?d)?\b|concluded))|\s*(?:[.:|–—-]|$)|(?=\s+[A-Z“\"]))"
)
_UNIT = re.compile(
    r"\(?\b((?:dollars |amounts |shares |u\.s\. dollars |\$ )*in (?:us\$ |u\.s\. dollars |\$ |€ )?"
    r"(?:thousands|millions|billions|percent|percentages)(?: of [a-z.$€ ]{2,20}|,? except [a-z ,/-]{4,60})?)\)?",
    re.IGNORECASE,
)
_CONTINUED = re.compile(r"[\s(–—-]*\bcont(inued|['’]?d)\b\.?\)?", re.IGNORECASE)
_NO_TITLE = re.compile(  # units, names of companies, and words whose last letter stands alone
    r"(?i:(table of )?contents|index|page)|\(.*|.*(?i:,? (inc|corp|ltd|llc|plc|co)\b\.?( and subsidiaries)?)|"
    r".*([a-z] [b-z]\b|[a-z] a\W*$).*"
)
_HEADINGS = ("section-header", "title")
_CONTENTS = frozenset(("contents", "table of contents", "index", "list of tables", "list of figures"))
_CLOSING = frozenset("%)") | {")%", "%)"}
_SIGNS = _CLOSING | frozenset("$€£¥(") | {"US$", "C$"}


def normal(text: str) -> str:
    """Return the letters and digits of a text in lower case, with one blank between runs of them.

    >>> normal("Net income (loss): $9,889")
    'net income loss 9 889'
    """
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def number_of(printed: str) -> Decimal | None:
    """Return the value of a printed number; None if it is no number. Round brackets and signs make it negative.

    >>> number_of("$ (1,203.50)"), number_of("12 %"), number_of("−4"), number_of("1,06")
    (Decimal('-1203.50'), Decimal('12'), Decimal('-4'), None)
    """
    found = _PRINTED.fullmatch(printed.strip())
    if not found or not found["digits"] or bool(found["open"]) != bool(found["close"]):
        return None
    value = Decimal(found["digits"].replace(",", ""))
    is_negative = found["open"] or found["sign"] in tuple("-−–") or found["inner"]
    return -value if is_negative else value


def answer_of(printed: str) -> str:
    """Return a printed number as an answer: without a currency sign, with a minus for brackets.

    >>> answer_of("$ 9,889"), answer_of("(380)"), answer_of("45.6 %")
    ('9,889', '-380', '45.6%')
    """
    plain = re.sub(r"[$€£¥\s]", "", printed).replace("−", "-").replace("–", "-")
    if not plain.startswith("("):
        return plain
    return "-" + plain.replace("(", "").replace(")", "").lstrip("-")


class PageIndex:
    """Finds phrases on the pages of a document: words in a normal form."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [f" {normal(text)} " for text in texts]
        self._known: dict[str, frozenset[int]] = {}

    def pages_with(self, *phrases: str) -> frozenset[int]:
        """Return the numbers of the pages, from 1, on which all phrases are; no page if there is no phrase."""
        forms = [form for phrase in phrases if (form := normal(phrase))]
        for form in set(forms) - set(self._known):
            self._known[form] = frozenset(at for at, text in enumerate(self.texts, 1) if f" {form} " in text)
        return frozenset.intersection(*(self._known[form] for form in forms)) if forms else frozenset()


@dataclass(frozen=True)
class TableName:
    """A table, as questions name it."""

    page: int
    number: int
    caption: str  # `Table 3`; empty if it has no numbered caption
    headings: tuple[str, ...]  # its heading, and that of its page if it needs it; empty if it has a numbered caption
    unit: str  # the unit of the values as it is printed near the table, such as `in millions`; empty if there is none
    box: Box  # where the caption or heading is

    @property
    def words(self) -> tuple[str, ...]:
        return (self.caption,) if self.caption else self.headings

    def __str__(self) -> str:
        name = self.caption or f"the table under the heading “{self.headings[0]}”"
        return f"{name} on the page with the heading “{self.headings[1]}”" if len(self.headings) > 1 else name


@dataclass(frozen=True)
class Fact:
    table: TableName
    row: int
    column: int
    label: str
    group: str  # the last line above without values; empty if there is none
    header: str
    value: str  # the value as it is printed, without blanks after signs
    boxes: tuple[Box, ...]  # where the label, the header over this column alone, and the value are
    leaf: str  # the header over this column alone
    has_ink: bool  # whether the words of label, header and value hold ink

    @property
    def page(self) -> int:
        return self.table.page

    @property
    def amount(self) -> Decimal:
        return number_of(self.value) or Decimal(0)


def facts_of(pages: Sequence[Page], index: PageIndex, losses: Counter[str]) -> Iterator[Fact]:
    """Yield the facts of a document; `losses` counts why tables and cells gave none."""
    contents = frozenset(page.number for page in pages if is_contents(page))
    names = [name for page in pages if page.number not in contents for name in _names_of(page)]
    captions = Counter(_caption(line.text) for page in pages if page.number not in contents for line in page.lines)
    headings = Counter(normal(name.headings[0]) for name in names if name.headings)
    called = {(name.page, name.number): name for name in names}
    ends = [
        [kind for _, kind in page.regions if kind not in ("page-header", "page-footer", "footnote")] for page in pages
    ]
    runs_on = {at for at, (one, two) in enumerate(pairwise(ends), 1) if one[-1:] == two[:1] == ["table"]}
    for page in pages:
        for number, box in enumerate(page.tables):
            name = called.get((page.number, number))
            table = read_table(page, box)
            reason = "table-of-contents" if page.number in contents else "table-without-a-name" if not name else ""
            is_last, is_first = box == page.tables[-1], number == 0
            if (page.number in runs_on and is_last) or (page.number - 1 in runs_on and is_first):
                reason = reason or "table-may-run-on"
            if isinstance(table, str):
                reason = reason or table
            if name and not reason:
                name = _named_once(name, page, index, contents, captions, headings)
                reason = "" if name else "name-twice-in-the-document"
            if reason or name is None or isinstance(table, str):
                losses[reason] += 1
                continue
            unit = name.unit or _unit(" ".join(table.corner))
            yield from _cells(page, table, replace(name, unit=unit), losses)


def is_contents(page: Page) -> bool:
    """Return whether a page is a table of contents: many lines end with a page number after dots, or it says so."""
    texts = [line.text.strip() for line in page.lines if len(line.text.strip()) > 1]
    dotted = sum("....." in text or ". . . ." in text or "…" in text for text in texts)
    heads = {page.text_in(region.box).casefold().strip(" :") for region in page.regions if region.kind in _HEADINGS}
    numbers = sum(text[-1].isdigit() for text in texts)
    return (dotted >= 5 and dotted >= 0.2 * len(texts)) or (bool(heads & _CONTENTS) and 2 * numbers >= len(texts))


def _names_of(page: Page) -> Iterator[TableName]:
    for number, table in enumerate(page.tables):
        near = [region for region in page.regions if region.kind != "table" and _distance(region.box, table) <= NEAR]
        unit = _unit(
            " ".join(page.text_in(box) for box, kind in near if kind in ("text", "caption", *_HEADINGS))[-300:]
        )
        captions = [
            box for box, kind in near if kind in ("caption", "text", *_HEADINGS) and _caption(page.text_in(box))
        ]
        if captions:
            nearest = min(captions, key=lambda box: _distance(box, table))
            tables = [other for other in page.tables if _distance(nearest, other) <= NEAR]
            if min(tables, key=lambda other: (_distance(nearest, other), other)) == table:
                unit = unit or _unit(page.text_in(nearest))
                yield TableName(page.number, number, _caption(page.text_in(nearest)), (), unit, nearest)
                continue
        above = [box for box, kind in near if kind in _HEADINGS and box.y1 <= table.y0 + 4]
        titles = [(box, clean_title(page.text_in(box))) for box in sorted(above, key=lambda box: -box.y1)]
        named = (each for each in titles if not each[1].startswith("(") and not _UNIT.fullmatch(each[1]))
        box, title = next(named, (table, ""))
        between = [region.box for region in page.regions if region.kind == "picture"] + list(page.tables)
        is_first = not any(box.y1 <= other.y0 + 2 and other.y1 <= table.y0 + 2 for other in between)
        if is_first and _can_be_title(title):
            yield TableName(page.number, number, "", (title,), unit, box)


def _can_be_title(text: str) -> bool:
    is_short = len(text.split()) <= MAX_TITLE_WORDS
    return is_short and sum(map(str.isalpha, text)) >= 6 and not _NO_TITLE.fullmatch(text)


def clean_title(text: str) -> str:
    """Return a heading without `continued` and signs at its end.

    >>> clean_title("Balance Sheets (Continued):")
    'Balance Sheets'
    """
    return _CONTINUED.sub("", " ".join(text.split())).strip(" :–—-")


def _caption(text: str) -> str:
    """Return the name of the table of which a text begins a part, such as `Table 3`; empty if it begins none."""
    found = _CAPTION.match(" ".join(text.split()))
    return f"{found['kind'].capitalize()} {found['number']}" if found else ""


def _distance(box: Box, table: Box) -> float:
    """Return how far a box is above or below a table; infinite if it is over no part of it."""
    is_over = box.x0 < table.x1 and box.x1 > table.x0
    return max(table.y0 - box.y1, box.y0 - table.y1, 0.0) if is_over else float("inf")


def _unit(text: str) -> str:
    found = _UNIT.search(text)
    return " ".join(found[1].split()).rstrip(" ,").lower() if found else ""


def _named_once(
    name: TableName,
    page: Page,
    index: PageIndex,
    contents: frozenset[int],
    captions: Mapping[str, int],
    headings: Mapping[str, int],
) -> TableName | None:
    if name.caption:
        return name if captions[name.caption] == 1 else None
    title = name.headings[0]
    if headings[normal(title)] == 1 and index.pages_with(title) - contents == {page.number}:
        return name
    on_page = sum(normal(title) == normal(other.headings[0]) for other in _names_of(page) if other.headings)
    for region in page.regions:
        first = clean_title(page.text_in(region.box))
        if region.kind in _HEADINGS and _can_be_title(first) and normal(first) not in normal(title):
            is_one = on_page == 1 and index.pages_with(title, first) - contents == {page.number}
            return replace(name, headings=(title, first)) if is_one else None
    return None


def _cells(page: Page, table: WordTable, name: TableName, losses: Counter[str]) -> Iterator[Fact]:
    labels = Counter(normal(row.label) for row in table.rows)
    for number, row in enumerate(table.rows):
        headers = table.headers[row.section]
        bad_label = row.is_unsure
        if labels[normal(row.label)] > 1:
            bad_label = "label-twice-in-the-table"
        elif not name.caption and _rows_like(row, name, page) > 1:
            bad_label = "label-twice-on-the-page"
        elif sum(map(str.isalpha, row.label)) < 3 and not _RANGE.fullmatch(row.label):
            bad_label = "label-without-words"
        elif len(row.label.split()) > MAX_LABEL_WORDS:
            bad_label = "label-too-long"
        for column, piece in sorted(row.values.items()):
            if not piece.is_number:
                continue
            header = headers[column]
            reason = bad_label or header.fault or _ambiguous(header, column, headers)
            if not reason and {"page", "pages"} & set(normal(header.leaf).split()):
                reason = "table-of-contents"
            if not reason and number_of(piece.text) is None:
                reason = "no-plain-number"
            own = [word for part in header.own for word in part.piece.words]
            if not reason and not confirms(page, row.words, own, piece.words, table.columns[0][0]):
                reason = "readers-disagree"
            if reason:
                losses[reason] += 1
                continue
            parts = row.words, own, piece.words
            over = [word for part in header.parts if part.is_sure for word in part.piece.words]
            others = [other for at, other in enumerate(headers) if at != column]
            yield Fact(
                name,
                number,
                column,
                row.label,
                row.group,
                clean_label(header.text if any(_can_mean(header, other) for other in others) else header.leaf),
                piece.text,
                tuple(around([word.box for word in part]) for part in parts),
                header.leaf,
                all(word.has_ink for word in (*row.words, *over, *piece.words)),
            )


def _ambiguous(header: Header, column: int, headers: Sequence[Header]) -> str:
    """Return why the header does not tell its column from the others; empty if it does."""
    for at, other in enumerate(headers):
        if at != column and (own := YEAR.sub("", normal(header.leaf)).strip()) and _is_in(own, other.above):
            return "header-of-two-columns"  # `Benefits 2017` beside columns below `Pension benefits`
        if at == column or not _can_mean(header, other):
            continue
        # both columns must be spanned by as many lines, and by other words
        is_spanned = header.above and other.above and len(header.parts) == len(other.parts)
        if not is_spanned or _is_in(header.above, other.above) or _is_in(header.text, other.text):
            return "header-of-two-columns"
    return ""


def _can_mean(header: Header, other: Header) -> bool:
    """Return whether the words over one column alone may be meant for another one: the lower lines of one are those of
    the other, or a bare year is in both.
    """
    one, two = ([normal(part.piece.text) for part in each.own] for each in (header, other))
    shorter = min(len(one), len(two))
    is_year = bool(YEAR.fullmatch(header.leaf)) and _is_in(header.leaf, other.text)
    return (shorter > 0 and one[-shorter:] == two[-shorter:]) or is_year or normal(header.leaf) == normal(other.leaf)


def _is_in(words: str, text: str) -> bool:
    return f" {normal(words)} " in f" {normal(text)} "


def _rows_like(row: Row, name: TableName, page: Page) -> int:
    """Return how many lines of a page, from the heading on, begin as a row does and have no other words: below one
    heading there may be several tables with the same rows, such as one for each year.
    """
    words = row.words[: len(row.label.split())]  # a mark of a footnote may follow
    label = normal(" ".join(word.text for word in words if word.box.y0 < words[0].box.y1))
    lines = (normal(line.text) for line in page.lines if line.box.y0 >= name.box.y0)
    return sum(
        bool(label) and line.startswith(label) and not any(map(str.isalpha, line.removeprefix(label))) for line in lines
    )


def confirms(page: Page, label: Sequence[Word], header: Sequence[Word], value: Sequence[Word], first: float) -> bool:
    """Return whether a grid has in one row and one column the label, the header over this column alone, and the value
    that the reader of words has; `first` is the left edge of the first column of values.
    """
    for grid in page.raw.grids:
        row, box = _place(grid, value[-1].box)
        if box is None:
            continue
        in_cell = {word.box for word in page.words_in(box, 0.0) if word.text not in _SIGNS and word.is_text}
        in_row = [word for cell in grid.rows[row] if cell for word in page.words_in(cell, 0.0)]
        left = {word.box for word in in_row if word.box.x1 <= first + 0.5 and word.is_text}
        is_value = in_cell == {word.box for word in value if word.text not in _SIGNS}
        if is_value and left == {word.box for word in label if word.is_text}:
            wide = _with_empty_cells(page, grid.rows[row], box)
            if all(_is_over(grid, row, wide, word.box) for word in header):
                return True
    return False


def _place(grid: Grid, value: Box) -> tuple[int, Box | None]:
    for number, row in enumerate(grid.rows):
        for box in row:
            if box and box.holds(value.x, value.y):
                return number, box
    return 0, None


def _with_empty_cells(page: Page, row: Sequence[Box | None], box: Box) -> Box:
    """Return a cell with the cells beside it that are empty; a cell left of it may have a currency sign."""
    cells = sorted((cell for cell in row if cell), key=lambda cell: cell.x0)
    at, left, right = cells.index(box), box.x0, box.x1
    for cell in reversed(cells[:at]):
        if any(word.is_text for word in page.words_in(cell, 0.0)):
            break
        left = cell.x0
    for cell in cells[at + 1 :]:
        if any(word.text not in _CLOSING for word in page.words_in(cell, 0.0)):
            break
        right = cell.x1
    return Box(left, box.y0, right, box.y1)


def _is_over(grid: Grid, row: int, box: Box, word: Box) -> bool:
    """Return whether a word of a header is in a cell above that shares a part of the column, or above the grid."""
    if word.y < min(cell.y0 for cells in grid.rows for cell in cells if cell):
        return box.x0 - 2 <= word.x <= box.x1 + 2
    above = (cell for cells in grid.rows[:row] for cell in cells if cell)
    return any(cell.holds(word.x, word.y) and cell.x0 < box.x1 - 1 and cell.x1 > box.x0 + 1 for cell in above)

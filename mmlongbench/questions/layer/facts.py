"""Facts of tables that two independent readers see in the same way: a label, a column, a value, and where they stand.

The first reader knows only the places of words (`columns.py`), the second only PyMuPDF's grids (`grids.py`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mmlongbench.questions.layer.columns import Row, WordTable, box_of, clean_label, read_table
from mmlongbench.questions.layer.grids import CellWords, confirmed_by, ruled_cells
from mmlongbench.questions.layer.headers import Header
from mmlongbench.questions.layer.page import Box, Line, Page, Region
from mmlongbench.questions.layer.pieces import Piece
from mmlongbench.questions.layer.titles import Title, clean_title, title_of
from mmlongbench.questions.numbers import number_of

MAX_LABEL_WORDS = 14
"""A longer label is not quoted."""
_CONTENTS_SHARE = 0.5
"""A page with leader dots or page numbers at so large a share of its lines is a table of contents."""


_YEAR = re.compile(r"(19|20)\d\d")
_RANGE = re.compile(r"(19|20)\d\d|\$?\d[\d,]*\s?([-–—]|to)\s?\$?\d[\d,]*|\d+\+")
"""Matches labels that are years or ranges, such as `2019`, `18-29` and `65+`."""
_HEADINGS = ("section-header", "title")
_PAGES = frozenset(("page", "pages"))
"""Words in headers of columns of tables of contents."""


@dataclass(frozen=True)
class TableName:
    """A table, as questions name it."""

    page: int
    """The number of the page, from 1."""
    number: int
    """The number of the table on the page, from 0."""
    title: Title
    """What it is called."""
    is_alone: bool
    """Whether it is the only table of the page."""

    @property
    def key(self) -> tuple[int, int]:
        """The page and the number of the table; no other table of the document has both."""
        return self.page, self.number


@dataclass(frozen=True)
class Fact:
    """A cell of a table."""

    table: TableName
    """The table."""
    row: int
    """The number of the row, from 0."""
    column: int
    """The number of the column, from 0."""
    label: str
    """The label of the row."""
    group: str
    """The group of rows that it belongs to; empty if there is none."""
    header: str
    """The header of the column with what spans it."""
    leaf: str
    """The header of the column alone."""
    value: str
    """The value as it is printed, without blanks after signs and without a deviation."""
    whole: str
    """The value with its deviation, such as `66.4% (0.8%)`."""
    label_box: Box
    """Where the label is."""
    header_box: Box
    """Where the header of the column alone is."""
    value_box: Box
    """Where the value is."""
    value_words: tuple[str, ...]
    """The words of the value as the file has them."""
    has_ink: bool
    """Whether the boxes of label, header and value hold ink."""
    readers: tuple[str, ...]
    """How the grids that confirm the cell were found."""
    times: int
    """How many lines of the table have this value in this column, also rows that are no facts and lines that are no
    rows."""
    is_text: bool = False
    """Whether the value is text, in a ruled table."""

    @property
    def page(self) -> int:
        """The number of the page, from 1."""
        return self.table.page


@dataclass
class PageFacts:
    """What a page gives."""

    facts: list[Fact] = field(default_factory=list)
    """The facts that the readers agree on."""
    names: list[TableName] = field(default_factory=list)
    """What all tables of the layout are called, from top to bottom."""
    tables: int = 0
    """The tables of the layout."""
    read: int = 0
    """The tables that were read from words."""
    cells: int = 0
    """The cells that were read from words."""
    losses: Counter[str] = field(default_factory=Counter)
    """Why tables and cells gave no fact, with how many there were."""


def facts_of(page: Page) -> PageFacts:
    """Return the facts of a page's tables."""
    found = PageFacts()
    tables = page.tables
    found.tables = len(tables)
    if tables and is_contents(page):
        found.losses["table-of-contents"] += len(tables)
        return found
    for number, region in enumerate(tables):
        table = read_table(page, region.box)
        if isinstance(table, str):
            found.losses[table] += 1
            found.names.append(TableName(page.number, number, title_of(page, region, ""), len(tables) == 1))
            _add_text(found, page, found.names[-1], region)
            continue
        found.read += 1
        name = TableName(page.number, number, title_of(page, region, table.corner), len(tables) == 1)
        found.names.append(name)
        found.facts += _unique(found, list(_numbers(found, page, table, name)), table, page.lines)
    return found


def is_contents(page: Page) -> bool:
    """Return whether a page is a table of contents: many lines end with a page number after dots, or it says so."""
    texts = [line.text.strip() for line in page.lines if len(line.text.strip()) > 1]
    dotted = sum("....." in text or ". . . ." in text or "…" in text for text in texts)
    heads = {page.text_in(each.box).casefold().strip(" :") for each in page.regions if each.kind in _HEADINGS}
    is_named = bool(heads & {"contents", "table of contents", "index", "list of tables", "list of figures"})
    numbers = sum(text.isdigit() for text in texts) + sum(text[-1:].isdigit() and not text.isdigit() for text in texts)
    return (dotted >= 5 and dotted >= 0.2 * len(texts)) or (is_named and numbers >= _CONTENTS_SHARE * len(texts))


def _numbers(found: PageFacts, page: Page, table: WordTable, name: TableName) -> Iterator[Fact]:
    """Yield the facts of a table of numbers."""
    first = table.columns[0][0]
    for number, row in enumerate(table.rows):
        headers = table.headers[row.section]
        for column, piece in sorted(row.values.items()):
            if not piece.is_number:
                continue
            found.cells += 1
            header = headers[column]
            reason = row.is_unsure or header.fault or _ambiguous(header, column, headers) or _bad_label(row.label)
            if reason := reason or ("table-of-contents" if _PAGES & set(_key(header.leaf).split()) else ""):
                found.losses[reason] += 1
                continue
            cell = CellWords(row.words, header.leaf_words, piece.words, first)
            readers = confirmed_by(page, cell)
            if not readers:
                found.losses["readers-disagree"] += 1
                continue
            words = (*row.words, *header.words, *piece.words)
            yield Fact(
                name,
                number,
                column,
                row.label,
                row.group,
                _shown(header, column, headers),
                header.leaf,
                piece.number,
                piece.text,
                box_of(row.words),
                box_of(header.leaf_words),
                box_of(piece.number_words),
                tuple(word.text for word in piece.words),
                all(word.has_ink for word in words),
                readers,
                _times(piece, table.over[column]),
            )


def _times(piece: Piece, column: Sequence[Piece]) -> int:
    """Return how many pieces over a column are the same number, also those of rows that are not read."""
    value = number_of(piece.number)
    return sum(other.text == piece.text or (value is not None and number_of(other.number) == value) for other in column)


def _shown(header: Header, column: int, headers: Sequence[Header]) -> str:
    """Return how questions name a column: by its own header, and by what spans it if another header has these words."""
    others = [other for number, other in enumerate(headers) if number != column]
    return clean_label(header.text if any(_can_mean(header, other) for other in others) else header.leaf)


def _ambiguous(header: Header, column: int, headers: Sequence[Header]) -> str:
    """Return why the header does not tell its column from the others; empty if it does.

    Where another header has the same words, both columns must be spanned by something, and by something else.
    """
    for number, other in enumerate(headers):
        if number == column or not _can_mean(header, other):
            continue
        is_spanned = header.is_whole and other.is_whole and header.above and other.above
        if not is_spanned or _is_in(header.above, other.above) or _is_in(header.text, other.text):
            return "header-of-two-columns"
    return ""


def _can_mean(header: Header, other: Header) -> bool:
    """Return whether the words over one column alone may be meant for another one: the lower lines of one are those of
    the other, or a bare year is in both.
    """
    one, two = header.own_lines, other.own_lines
    shorter = min(len(one), len(two))
    has_same_end = shorter > 0 and list(map(_key, one[-shorter:])) == list(map(_key, two[-shorter:]))
    is_year = bool(_YEAR.fullmatch(header.leaf)) and _is_in(header.leaf, other.text)
    return has_same_end or is_year or _key(header.leaf) == _key(other.leaf)


def _is_in(words: str, text: str) -> bool:
    """Return whether words are a run of the words of a text."""
    return f" {_key(words)} " in f" {_key(text)} "


def _bad_label(label: str) -> str:
    if sum(map(str.isalpha, label)) < 3 and not _RANGE.fullmatch(label):
        return "label-without-words"
    return "label-too-long" if len(label.split()) > MAX_LABEL_WORDS else ""


def _key(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def _unique(found: PageFacts, facts: Sequence[Fact], table: WordTable, lines: Sequence[Line]) -> list[Fact]:
    """Return the facts whose label is on one row of the table and, unless the table has a number, begins one line of
    the page alone: below one heading there may be several tables with the same rows, such as one for each year.
    """
    rows = Counter(_key(row.label) for row in table.rows)
    kept = []
    for fact in facts:
        key = _key(fact.label)
        if rows[key] > 1:
            found.losses["label-twice-in-the-table"] += 1
        elif fact.table.title.by != "number" and _rows_like(table.rows[fact.row], fact.table.title, lines) > 1:
            found.losses["label-twice-on-the-page"] += 1
        else:
            kept.append(fact)
    return kept


def _rows_like(row: Row, title: Title, lines: Sequence[Line]) -> int:
    """Return how many lines of a page, below the title if there is one, begin as a row does: with the first line of its
    label, and with no other words after it.
    """
    words = row.words[: len(row.label.split())]  # a mark of a footnote may follow
    label = _key(" ".join(word.text for word in words if word.box.y0 < words[0].box.y1))
    below = [line for line in lines if title.box is None or line.box.y0 >= title.box.y0]
    return sum(_begins(_key(line.text), label) for line in below)


def _begins(line: str, label: str) -> bool:
    """Return whether a line is a label, perhaps with values after it.

    >>> _begins("net sales 29 128", "net sales"), _begins("net sales growth", "net sales")
    (True, False)
    """
    rest = line.removeprefix(label)
    return bool(label) and line.startswith(label) and not any(map(str.isalpha, rest))


def _add_text(found: PageFacts, page: Page, name: TableName, region: Region) -> None:
    """Add the facts of a ruled table of short texts: two grids, of the network and of the drawn lines, must agree."""
    inside = {
        how: [cell for _, cell in ruled_cells(page, how) if region.box.holds(cell.value_box.x, cell.value_box.y)]
        for how in ("lines", "network")
    }
    by_lines = Counter((cell.label, cell.header, cell.value) for cell in inside["lines"])
    by_network = Counter((_key(clean_title(cell.label)), cell.header) for cell in inside["network"])
    same = Counter((cell.header, _key(cell.value)) for cell in inside["network"])
    rows: dict[str, int] = {}
    columns: dict[str, int] = {}
    for cell in inside["network"]:
        found.cells += 1
        short = len(cell.value.split()) <= 5 and len(cell.header.split()) <= 6
        label = clean_title(cell.label)
        if not short or _bad_label(label):
            found.losses["text-too-long"] += 1
        elif by_lines[cell.label, cell.header, cell.value] != 1:
            found.losses["readers-disagree"] += 1
        elif by_network[_key(label), cell.header] > 1:
            found.losses["label-twice-in-the-table"] += 1
        else:
            row = rows.setdefault(label, len(rows))
            column = columns.setdefault(cell.header, len(columns))
            words = page.words_in(cell.value_box, 0.0) + page.words_in(cell.label_box, 0.0)
            found.facts.append(
                Fact(
                    name,
                    row,
                    column,
                    label,
                    "",
                    clean_title(cell.header),
                    clean_title(cell.header),
                    cell.value,
                    cell.value,
                    cell.label_box,
                    cell.header_box,
                    cell.value_box,
                    tuple(cell.value.split()),
                    all(word.has_ink for word in words),
                    ("lines", "network"),
                    same[cell.header, _key(cell.value)],
                    is_text=True,
                )
            )

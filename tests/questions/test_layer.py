"""Questions from the layer over pages whose every word is known: tables of two readers, names, kinds, twins, choice."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from drawn_tables import draw_tables
from hypothesis import example, given
from hypothesis import strategies as st

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import page_layers
from mmlongbench.documents.pdf import read_pages
from mmlongbench.questions.layer import checks, make
from mmlongbench.questions.layer.checks import agrees, first_failed, misread
from mmlongbench.questions.layer.facts import Fact, PageIndex, facts_of, is_contents, normal
from mmlongbench.questions.layer.kinds import Candidate, Mark, candidates_of, stems, twin_of
from mmlongbench.questions.layer.make import MOST_OF_A_PAGE, DocumentReport, Work, _with_twins, chosen, shortlist
from mmlongbench.questions.layer.page import Box, Grid, Page, RawPage
from mmlongbench.questions.layer.words import Header, WordTable, lines_of, read_table

HEIGHT, PITCH, LETTER = 10.0, 14.0, 5.0
Cells = Sequence[tuple[float, str]]
"""The cells of a line: the left edge and the text of each."""
Corners = tuple[float, float, float, float]


def right(edge: float, text: str) -> tuple[float, str]:
    """A cell whose right edge is given."""
    return edge - LETTER * len(text), text


def line(label: str, *numbers: str) -> Cells:
    """A line of a table: a label and two columns of numbers."""
    return [*([(50.0, label)] if label else []), *(right(330 + 100 * at, text) for at, text in enumerate(numbers))]


def table(lines: Sequence[Cells], top: float = 100.0) -> list[tuple[float, float, str]]:
    """x, y and text of each cell of a table."""
    return [(x, top + PITCH * number, text) for number, line in enumerate(lines) for x, text in line]


def words(x: float, y: float, text: str) -> list[tuple[float, float, float, float, str, bool]]:
    """The words of a text that begins at x; each letter is 5 points wide, a blank too."""
    found = []
    for word in text.split(" "):
        found.append((x, y, x + LETTER * len(word), y + HEIGHT, word, True))
        x += LETTER * (len(word) + 1)
    return found


def page(
    number: int,
    texts: Sequence[tuple[float, float, str]],
    tables: Sequence[Corners] = (),
    regions: Sequence[tuple[float, float, float, float, str]] = (),
    edges: Sequence[float] = (),
    rules: Sequence[tuple[float, float, float]] = (),
) -> Page:
    """A page with texts at their places, boxes of tables, and other boxes of the layout.

    `edges` are the vertical lines of a grid over every table, with a row for every line of text in the table; without
    them there is no grid.
    """
    found = tuple(word for x, y, text in texts for word in words(x, y, text))
    grids = [Grid("network", rows=_rows(texts, box, edges)) for box in tables] if edges else []
    raw = RawPage(
        size=(600.0, 800.0),
        rotation=0,
        word_count=len(found),
        words=found,
        lines=tuple((x, y, x + LETTER * len(text), y + HEIGHT, text, 10.0, False) for x, y, text in texts),
        boxes=(*((*box, "table") for box in tables), *regions),
        grids=tuple(grids),
        rules=tuple(rules),
    )
    return Page(number, raw)


def _rows(
    texts: Sequence[tuple[float, float, str]], box: tuple[float, float, float, float], edges: Sequence[float]
) -> tuple[tuple[Box | None, ...], ...]:
    tops = sorted({y for _, y, _ in texts if box[1] <= y <= box[3]})
    return tuple(tuple(Box(x0, y - 2, x1, y + HEIGHT + 2) for x0, x1 in pairwise(edges)) for y in tops)


BALANCE: Sequence[Cells] = (
    line("(in millions)", "2021", "2020"),
    line("Cash and equivalents", "9,889", "8,348"),
    line("Inventories", "6,854", "7,367"),
    line("Goodwill", "242", "223"),
    line("Deferred taxes", "(380)", "(56)"),
    line("Prepaid rent", "1,498", "1,653"),
)
MORE: Sequence[Cells] = (
    line("(in millions)", "2021", "2020"),
    line("Trade payables", "2,214", "2,131"),
    line("Accrued wages", "875", "902"),
    line("Income taxes due", "306", "229"),
    line("Notes payable", "471", "388"),
    line("Lease liabilities", "2,913", "2,845"),
)
INCOME: Sequence[Cells] = (
    line("(in millions)", "2021", "2020"),
    line("Footwear", "500", "400"),
    line("Apparel", "300", "350"),
    line("Equipment", "120", "110"),
    line("Inventories", "77", "66"),
    line("Licence fees", "19", "18"),
)
EDGES = (40.0, 280.0, 380.0, 450.0)
BOX = (45.0, 95.0, 440.0, 190.0)
WIDE = (45.0, 95.0, 560.0, 260.0)
TITLE = (50.0, 70.0, 250.0, 82.0, "section-header")
CAPTION = (*TITLE[:4], "caption")
CASH = "“Cash and equivalents” in the column “2021”"


def balance(
    number: int = 1,
    title: str = "Consolidated Balance Sheets",
    lines: Sequence[Cells] = BALANCE,
    edges: Sequence[float] = EDGES,
    box: Corners = BOX,
) -> Page:
    """A page with a heading and a table of five rows and two years, whose grid agrees with its words."""
    return page(number, [(50.0, 71.0, title), *table(lines)], [box], [TITLE], edges)


def numbered(number: int, caption: str, lines: Sequence[Cells] = BALANCE) -> Page:
    """A page with a table below a caption."""
    return page(number, [(50.0, 71.0, caption), *table(lines)], [BOX], [CAPTION], EDGES)


def index_of(pages: Sequence[Page]) -> PageIndex:
    return PageIndex([page.text for page in pages])


def found_in(*pages: Page) -> tuple[list[Fact], Counter[str]]:
    """The facts of a document, and why other cells gave none."""
    losses: Counter[str] = Counter()
    return list(facts_of(pages, index_of(pages), losses)), losses


def asked(*pages: Page, kind: str = "", words: str = "") -> list[Candidate]:
    found = candidates_of("ab", found_in(*pages)[0])
    return [each for each in found if kind in ("", each.kind) and words in each.question]


def read(lines: Sequence[Cells], rules: Sequence[tuple[float, float, float]] = ()) -> WordTable:
    found = read_table(page(1, table(lines), [WIDE], rules=rules), Box(*WIDE))
    assert isinstance(found, WordTable), found
    return found


def headers_of(lines: Sequence[Cells], rules: Sequence[tuple[float, float, float]] = ()) -> list[str]:
    return [header.text for header in read(lines, rules).headers[0]]


def test_every_cell_that_both_readers_see_is_a_fact() -> None:
    found, _ = found_in(balance())
    values = {(fact.label, fact.header): fact.value for fact in found}
    years = ("2021", "2020")
    assert values == {
        (str(cells[0][1]), year): cells[at][1] for cells in BALANCE[1:] for at, year in enumerate(years, 1)
    }
    table = found[0].table
    assert (str(table), table.unit) == ("the table under the heading “Consolidated Balance Sheets”", "in millions")


@pytest.mark.parametrize(
    ("edges", "lost"),
    [
        ((40.0, 120.0, 280.0, 380.0, 450.0), ""),  # a label over two cells is still one label
        ((290.0, 380.0, 450.0), "readers-disagree"),  # no label
        ((), "readers-disagree"),  # no grid
    ],
)
def test_a_grid_that_sees_other_cells_takes_the_facts_away(edges: Sequence[float], lost: str) -> None:
    found, losses = found_in(balance(edges=edges))
    assert (len(found), losses.get(lost, 0) if lost else 10) == ((0, 10) if lost else (10, 10))


def test_a_label_and_a_value_in_one_cell_of_the_grid_are_no_fact() -> None:
    found, losses = found_in(balance(edges=(40.0, 380.0, 450.0)))
    assert {fact.header for fact in found} == {"2020"}
    assert losses["readers-disagree"] == 5


def test_a_header_of_another_column_in_the_grid_takes_its_facts_away() -> None:
    """The words say that `2021` is over the first column of values; the grid has it over the second one."""
    lines = [[(50.0, "(in millions)"), right(360, "2021"), right(430, "2020")], *BALANCE[1:]]
    found, _ = found_in(balance(lines=lines, edges=(40.0, 280.0, 335.0, 450.0)))
    assert ("Cash and equivalents", "2021") not in {(fact.label, fact.header) for fact in found}


def test_a_label_that_is_twice_in_a_table_is_not_asked_about() -> None:
    found, losses = found_in(balance(lines=[*BALANCE[:-1], line("Inventories", "1,111", "1,112")]))
    assert "Inventories" not in {fact.label for fact in found}
    assert losses["label-twice-in-the-table"] == 4


HEADER_ROWS: tuple[Cells, ...] = (
    ((50.0, "Footwear"), right(250, "10"), right(330, "20"), right(420, "30"), right(500, "40")),
    ((50.0, "Apparel"), right(250, "11"), right(330, "21"), right(420, "31"), right(500, "41")),
)
LONG: Cells = ((225, "Fiscal year 2021 in all"), (395, "Fiscal year 2020 in all"))
SHORT: Cells = (right(300, "2021"), right(470, "2020"))
KINDS: Cells = (right(250, "Gross"), right(330, "Net"), right(420, "Gross"), right(500, "Net"))
RULES = ((220.0, 280.0, 111.0), (280.5, 335.0, 111.0), (385.0, 505.0, 111.0))
MONTHS: tuple[Cells, ...] = (
    ((50.0, "May"), right(250, "387.32"), right(330, "318,000")),
    ((50.0, "June"), right(250, "380.10"), right(330, "102,000")),
)


@pytest.mark.parametrize(
    ("lines", "rules", "headers"),
    [
        pytest.param(
            [LONG, KINDS, *HEADER_ROWS],
            (),
            [f"Fiscal year {year} in all {kind}" for year in (2021, 2020) for kind in ("Gross", "Net")],
            id="over two columns",
        ),
        pytest.param(
            [SHORT, KINDS, *HEADER_ROWS], RULES, ["2021 Gross", "2021 Net", "2020 Gross", "2020 Net"], id="by a rule"
        ),
        pytest.param(
            [[right(250, "Average")], [right(250, "Price"), right(330, "Shares")], *MONTHS],
            (),
            ["Average Price", "Shares"],
            id="of several lines",
        ),
    ],
)
def test_a_header_belongs_to_what_it_spans(
    lines: Sequence[Cells], rules: Sequence[tuple[float, float, float]], headers: list[str]
) -> None:
    assert headers_of(lines, rules) == headers


def test_without_a_rule_columns_of_one_header_are_not_asked_about() -> None:
    edges = (40.0, 200.0, 260.0, 340.0, 430.0, 510.0)
    found, losses = found_in(balance(lines=[SHORT, KINDS, *HEADER_ROWS], edges=edges, box=WIDE))
    assert not found
    assert set(losses) <= {"header-of-two-columns", "header-beside-its-column"}
    assert Header(()).fault == "no-header-of-its-own"


def test_a_header_of_two_groups_of_columns_names_none_of_them() -> None:
    """`Gross 2021` of the first group is spanned by two lines, of the second one by one line."""
    edges = (40.0, 200.0, 260.0, 340.0, 430.0, 510.0)
    lines = [[(225, "Benefits of the two funds")], LONG, KINDS, *HEADER_ROWS]
    found, losses = found_in(balance(lines=lines, edges=edges, box=WIDE))
    assert not found
    assert losses["header-of-two-columns"] == 8


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        ("72 ▶", "data-in-the-header"),
        ("64k 32k", "header-of-two-columns"),
        ("June 30, 2019", ""),
        ("18-29", ""),
        ("2019 – 2020", ""),
    ],
)
def test_numbers_of_lines_and_joined_headers_name_no_column(header: str, fault: str) -> None:
    found = read([line("(in millions)", header, "Total"), *BALANCE[1:]])
    assert found.headers[0][0].fault == fault


def test_numbers_in_the_header_and_rows_of_sums_are_no_headers() -> None:
    sums = [line("Sex", "Rep", "Dem"), line("Men", "51", "40"), line("Women", "49", "60"), line("", "100", "100")]
    found = read([*sums, line("Young", "14", "19")])
    assert [row.section for row in found.rows] == [0, 0, 0]
    assert [header.text for header in found.headers[0]] == ["Rep", "Dem"]


def test_names_with_values_have_no_header() -> None:
    lines = [[(50.0, "reviewer"), (300.0, "A2SUAM")], line("item", "13714"), [(50.0, "name"), (300.0, "McDonald")]]
    assert read_table(page(1, table([*lines, line("vote", "5")]), [WIDE]), Box(*WIDE)) == "names-and-values"


def test_a_line_above_continues_a_label_or_names_a_group() -> None:
    lines: list[Cells] = [
        (right(330, "2021"),),
        ((50.0, "Current assets:"),),
        ((60.0, "Cash"), right(330, "10")),
        ((60.0, "Income from operations before"),),
        ((60.0, "taxes"), right(330, "20")),
        ((60.0, "Something else"),),
        ((60.0, "Other line"), right(330, "30")),
    ]
    rows = read(lines).rows
    assert [(row.label, row.group) for row in rows[:2]] == [
        ("Cash", "Current assets:"),
        ("Income from operations before taxes", "Current assets:"),
    ]
    assert rows[2].is_unsure == "line-above-without-values"


@pytest.mark.parametrize(
    ("text", "number"),
    [("$ 9,889", "$9,889"), ("( 380 )", "(380)"), ("45.6 %", "45.6%"), ("( 0.8 )%", "(0.8)%")],
)
def test_signs_belong_to_their_number(text: str, number: str) -> None:
    pieces = lines_of(page(1, [(50.0, 50.0, text)]).words)[0].pieces
    assert [(piece.text, piece.is_number) for piece in pieces] == [(number, True)]


def test_a_box_with_a_heading_inside_holds_two_tables() -> None:
    texts = [*table(BALANCE, 100.0), (50.0, 200.0, "Second Part Here"), *table(BALANCE, 220.0)]
    found = page(1, texts, [(45.0, 95.0, 440.0, 320.0)], [(50.0, 199.0, 200.0, 211.0, "section-header")])
    assert [round(box.y0) for box in found.tables] == [95, 211]


def names(*pages: Page) -> set[str]:
    """How questions name the tables of pages."""
    return {str(fact.table) for fact in found_in(*pages)[0]}


HEADED = "the table under the heading “Consolidated Balance Sheets”"


@pytest.mark.parametrize(
    ("second", "named"),
    [
        *(
            (text, set())
            for text in ("Table 3 (continued)", "Table 3: Financial position", "Table 3", "TABLE 3 - Cont'd")
        ),
        ("Continued from Table 3", set()),
        ("Table 4: Liabilities", {"Table 3", "Table 4"}),
        ("As Table 3 shows, it was a year of calm", {"Table 3", "the table under the heading “Liabilities of 2021”"}),
    ],
)
def test_a_numbered_caption_is_a_name_if_it_stands_once(second: str, named: set[str]) -> None:
    other = numbered(2, second, MORE)
    if second.startswith("As "):
        other = page(
            2, [(50.0, 71.0, "Liabilities of 2021"), *table(MORE), (50.0, 300.0, second)], [BOX], [TITLE], EDGES
        )
    assert names(numbered(1, "Table 3: Financial position"), other) == named


def with_head(number: int, head: str, title: str = "Section 1", lines: Sequence[Cells] = BALANCE) -> Page:
    """A page with a heading of its own above that of its table."""
    texts = [(50.0, 20.0, head), (50.0, 71.0, title), *table(lines)]
    return page(number, texts, [BOX], [(50.0, 19.0, 250.0, 31.0, "title"), TITLE], EDGES)


def test_a_heading_of_two_pages_is_a_name_only_with_the_heading_of_its_page() -> None:
    assert names(balance()) == {HEADED}
    assert names(balance(1), balance(2)) == set()
    assert names(balance(1), page(2, [(50.0, 71.0, "See the Consolidated Balance Sheets")])) == set()
    two = with_head(1, "The harbour of Quarl"), with_head(2, "The harbour of Nevin", lines=MORE)
    heads = {"The harbour of Quarl", "The harbour of Nevin"}
    assert names(*two) == {f"the table under the heading “Section 1” on the page with the heading “{h}”" for h in heads}
    assert names(*two, with_head(3, "The harbour of Nevin")) == {sorted(names(*two))[1]}


def test_a_table_that_may_run_on_to_the_next_page_is_not_asked_about() -> None:
    rest = page(2, table(MORE), [BOX], edges=EDGES)
    found, losses = found_in(balance(1), rest)
    assert (found, losses) == ([], {"table-may-run-on": 1, "table-without-a-name": 1})
    between = page(2, [(50.0, 20.0, "The harbour of Quarl"), *table(MORE)], [BOX], [(50, 19, 250, 31, "text")], EDGES)
    assert names(balance(1), between) == {HEADED}


def test_two_tables_of_a_page_below_one_heading_have_no_name() -> None:
    second = (BOX[0], BOX[1] + 120, BOX[2], BOX[3] + 120)
    texts = [(50.0, 71.0, "Consolidated Balance Sheets"), *table(BALANCE), *table(MORE, 220.0)]
    found, losses = found_in(page(1, texts, [BOX, second], [TITLE], EDGES))
    assert {fact.table.number for fact in found} == {0}
    assert losses["table-without-a-name"] == 1


@pytest.mark.parametrize("where", ["contents", "elsewhere"])
def test_a_table_of_contents_does_not_take_a_name_away(where: str) -> None:
    lines = [(50.0, 71.0, "Contents"), *((50.0, 100.0 + 14 * n, f"Chapter of {n}") for n in range(1, 6))]
    lines.append(
        (50.0, 300.0, "Consolidated Balance Sheets 2" if where == "contents" else "Consolidated Balance Sheets")
    )
    other = page(1, lines if where == "contents" else lines[5:], regions=[TITLE])
    assert names(other, balance(2)) == ({HEADED} if where == "contents" else set())


@pytest.mark.parametrize("text", ["(in millions)", "NIKE, Inc.", "Consolidated Balance Shee t", "one " * 20, ""])
def test_units_companies_and_broken_words_are_no_titles(text: str) -> None:
    assert found_in(balance(title=text)) == ([], Counter({"table-without-a-name": 1}))


def test_a_table_of_contents_gives_no_fact() -> None:
    lines = [line("Item", "Page"), *(line(f"Chapter about {name}", str(n)) for n, name in enumerate("abcde", 3))]
    found, losses = found_in(balance(lines=lines, edges=(40.0, 280.0, 380.0)))
    assert not found
    assert losses["table-of-contents"]


@pytest.mark.parametrize("name", ["Contents", "Table of Contents", "Index:", "List of Tables", "List of Figures"])
def test_a_page_that_calls_itself_contents_is_one(name: str) -> None:
    lines = [(50.0, 71.0, name), *table([[(50.0, f"About {each} {n}")] for n, each in enumerate("abcde", 3)])]
    heading = (50.0, 70.0, 500.0, 82.0, "section-header")
    assert is_contents(page(1, lines, [BOX], [heading]))
    assert not is_contents(page(1, lines, [BOX]))


@pytest.mark.parametrize(
    ("printed", "read", "is_same"),
    [
        ("$ 9,889", "$9,889", True),
        ("45.6%", "45.6 %", True),
        ("9,889", "9,839", False),
        ("12.5", "125", False),
        ("Net income: 3 lI", "Net lncome, 3 II", True),
        ("Net income", "Net incorne", False),
        ("SOannow Quay", "Stannow Quay", False),
        ("Net income", "Gross profit", False),
        ("1", "", False),
    ],
)
def test_ocr_must_read_the_same_digits_and_letters(printed: str, read: str, is_same: bool) -> None:
    assert agrees(printed, read) == is_same


PRODUCTS = "Income By Product"


def two_tables() -> tuple[Page, Page]:
    return balance(1), balance(2, PRODUCTS, INCOME)


def test_every_candidate_of_sound_tables_passes_the_second_path() -> None:
    found = asked(*two_tables())
    assert {each.kind for each in found} == {"table-value", "table-comparison", "table-change", "table-aggregate"}
    assert [each for each in found if first_failed(two_tables(), each)] == []


def test_a_cell_is_named_by_its_table_row_and_column() -> None:
    (found,) = asked(*two_tables(), kind="table-value", words="“Goodwill” in the column “2021”")
    question = f"According to {HEADED}, what is the value of “Goodwill” in the column “2021”?"
    assert (found.question, found.answer) == (f"{question} The table gives values in millions.", "242")


def test_negative_numbers_are_accepted_in_both_forms() -> None:
    (found,) = asked(*two_tables(), kind="table-value", words="“Deferred taxes” in the column “2021”")
    assert (found.answer, found.accepted) == ("-380", ("(380)",))


def test_answers_are_computed_from_rows_of_one_unit_and_sign() -> None:
    found = asked(*two_tables())
    answers = {each.question: each.answer for each in found if each.kind == "table-change"}
    assert {"1,541", "513", "19", "155"} <= set(answers.values())  # 9,889 - 8,348 = 1,541
    for each in found:
        numbers = [int(fact.value.strip("()").replace(",", "")) for fact in each.facts]
        if each.kind == "table-aggregate":
            assert each.answer == f"{sum(numbers):,}"
        if each.kind == "table-comparison":
            larger = each.facts[numbers.index(max(numbers))].label
            assert each.answer == (larger, f"{abs(numbers[0] - numbers[1]):,}")
        if each.kind != "table-value":
            assert "Deferred taxes" not in {fact.label for fact in each.facts}
            assert len({fact.row for fact in each.facts[:2]}) == 2 or each.kind == "table-change"


def test_a_join_looks_the_larger_row_of_one_table_up_in_another_one() -> None:
    other = [
        line("(in millions)", "2019", "2018"),
        line("Cash and equivalents", "71", "72"),
        line("Inventories", "8", "9"),
    ]
    pages = balance(1), balance(2, PRODUCTS, other)
    found = asked(*pages, kind="table-join")
    assert found
    assert not [each for each in found if first_failed(pages, each)]
    for each in found:
        one, two, answer = each.facts
        larger = max((one, two), key=lambda fact: fact.amount)
        assert (answer.label, answer.page != larger.page) == (larger.label, True)
        assert each.answer == answer.value
        assert each.pages == (1, 2)


@pytest.mark.parametrize(
    ("unit", "kept", "other"), [("in millions", "2021", "% change"), ("shares in thousands", "Number", "Price")]
)
def test_a_column_of_another_kind_has_not_the_unit_of_its_table(unit: str, kept: str, other: str) -> None:
    rows = (("Footwear", "500", "25"), ("Apparel", "300", "14"), ("Equipment", "120", "11"))
    prices = (("Granted", "1,500", "61.20"), ("Vested", "1,300", "58.40"), ("Forfeited", "120", "57.10"))
    lines = [line(f"({unit})", kept, other), *(line(*row) for row in (rows if other == "% change" else prices))]
    changed = asked(balance(1, PRODUCTS, lines), words=f"“{other}”")
    assert changed
    assert not [each for each in changed if unit in each.question]
    assert all(unit in each.question for each in asked(balance(1, PRODUCTS, lines), words=f"“{kept}”"))
    assert {each.kind for each in changed} == {"table-value"}


@pytest.mark.parametrize("label", ["Total assets", "Other, net", "All"])
def test_a_name_that_is_too_general_for_a_twin_is_in_no_question(label: str) -> None:
    lines = [*BALANCE[:3], line(label, "5", "6"), *BALANCE[4:]]
    assert not asked(balance(lines=lines), words=f"“{label}”")


def twin(candidate: Candidate, names: Sequence[str], *pages: Page, elsewhere: str = "") -> str:
    """The change by which the twin of a question is made; empty if no name fits."""
    in_tables = {(page.number, at): stems(page.text_in(box)) for page in pages for at, box in enumerate(page.tables)}
    found = twin_of(candidate, names, index_of(pages), in_tables, lambda name: name == elsewhere)
    return found.edit if found else ""


def test_a_twin_has_a_name_that_its_table_does_not_have() -> None:
    pages = balance(1), page(2, [(50.0, 100.0, "Trade payables of the harbour")])
    (found,) = asked(pages[0], kind="table-value", words="“Goodwill” in the column “2021”")
    row, column = replace(found, replaceable="Goodwill"), replace(found, replaceable="2021")
    lost = ["Trade payables", "Cash of the port", "Inventory", "Goodwill", "1999"]  # in the document, or near a row
    assert twin(row, lost, *pages) == ""
    assert twin(row, [*lost, "Notes payable of three kinds", "Licences"], *pages) == "Goodwill → Licences"
    assert twin(row, ["Licences", "Wharves"], *pages, elsewhere="Licences") == "Goodwill → Wharves"
    assert twin(column, ["2020", "2021", "Price", "2019"], *pages) == "2021 → 2019"
    assert twin(column, ["2019"], *pages, page(3, [(50.0, 100.0, "Goodwill of 2019")])) == ""


def numbered_years() -> Page:
    """A numbered table whose rows are years."""
    lines = [line("", "Revenue", "Costs"), line("2019", "900", "800"), line("2018", "700", "600")]
    return numbered(1, "Table 3: Financial position", lines)


ROW = (numbered_years, "“2019” in the column “Revenue”", "2019", "2014")
COLUMN = (lambda: numbered(1, "Table 3: Financial position"), "“Goodwill” in the column “2021”", "2021", "2019")
SPANNED = (
    lambda: spanned(("Audited", "Restated"), ("Group", "Net")),
    "“Footwear” in the column “Audited Group”",
    *("Audited Group", "Unaudited Sole"),
)


@pytest.mark.parametrize(
    ("table", "said", "has_twin"),
    [
        (ROW, "Table 3 shows that Revenue of 2014 was 5,000", False),
        (ROW, "Table 3 shows 5,000 for 2014", False),
        (ROW, "Revenue was 5,000 in 2014", False),
        (ROW, "The harbour was dug in 2014", True),
        (ROW, "Costs were 5,000 in 2014", True),
        (ROW, "Table 3 shows that Revenue was 5,000", True),
        (COLUMN, "Table 3 shows that it was a year of calm", True),
        (COLUMN, "Table 3 shows that 2019 was a year of calm", False),
        (COLUMN, "In 2019 Goodwill was 3", False),
        (COLUMN, "In 2019 Inventories were 3", True),
        (SPANNED, "Unaudited Adjusted Sole Footwear", False),
        (SPANNED, "Unaudited Adjusted Sole Trousers", True),
    ],
)
def test_a_question_has_no_twin_that_another_page_answers(
    table: tuple[Callable[[], Page], str, str, str], said: str, has_twin: bool
) -> None:
    own, words, name, other = table
    pages = own(), page(2, [(50.0, 100.0, said)])
    (found,) = asked(*pages, kind="table-value", words=words)
    assert twin(replace(found, replaceable=name), [other], *pages) == (f"{name} → {other}" if has_twin else "")


def work(*pages: Page) -> Work:
    """What a document of these pages gives; its candidates are not chosen."""
    facts, losses = found_in(*pages)
    report = DocumentReport(
        document="",
        pages=len(pages),
        pages_left_out=0,
        unread=(),
        tables=0,
        facts=len(facts),
        candidates={},
        questions={},
        losses=losses,
    )
    in_tables = {(page.number, at): stems(page.text_in(box)) for page in pages for at, box in enumerate(page.tables)}
    names = frozenset(fact.label for fact in facts), frozenset(fact.header for fact in facts)
    return Work("ab", (), (), report, tuple(page.text for page in pages), in_tables, names)


def twins_in(candidate: Candidate, works: dict[str, Work]) -> list[str]:
    """The changes by which the question of the document `a` gets twins beside other documents."""
    others = {name: PageIndex(work.texts) for name, work in works.items()}
    taken, count = _with_twins([("a", candidate)], works, others)
    assert [each.kind for _, each in taken] == ["unanswerable"] * count or not count
    return [each.edit for _, each in taken if each.edit]


def spanned(above: tuple[str, str], below: tuple[str, str], rows: Sequence[str] = ("Footwear", "Apparel")) -> Page:
    """A page with a table of two groups of two columns, each group below a header and a rule."""
    edges = (40.0, 200.0, 260.0, 340.0, 430.0, 510.0)
    heads = [right(300, above[0]), right(470, above[1])], [right(x, below[n % 2]) for n, x in enumerate(ENDS)]
    values = [[(50.0, name), *(right(x, f"{n + 1}{at}") for at, x in enumerate(ENDS))] for n, name in enumerate(rows)]
    texts = [(50.0, 71.0, "Consolidated Balance Sheets"), *table([*heads, *values])]
    return page(1, texts, [WIDE], [TITLE], edges, RULES)


ENDS = (250.0, 330.0, 420.0, 500.0)


@pytest.mark.parametrize(
    ("rows", "twins"),
    [
        (("Footwear", "Apparel"), []),  # the other document answers: it has the heading, the row and the column
        (("Trousers", "Wharves"), ["Audited Group → Adjusted Sole"]),
    ],
)
def test_a_column_below_a_header_of_several_has_no_twin_that_another_document_answers(
    rows: Sequence[str], twins: list[str]
) -> None:
    own = spanned(("Audited", "Restated"), ("Group", "Net"))
    other = spanned(("Unaudited", "Adjusted"), ("Parent", "Sole"), rows)
    (found,) = asked(own, kind="table-value", words="“Footwear” in the column “Audited Group”")
    assert [(fact.header, fact.leaf) for fact in found.facts] == [("Audited Group", "Group")]
    column = replace(found, replaceable="Audited Group")
    assert twins_in(column, {"a": work(own), "b": work(other)}) == twins


def test_words_that_are_not_rendered_take_the_question_away() -> None:
    sound = balance(1)
    words = tuple((*word[:5], word[4] != "9,889") for word in sound.raw.words)
    pages = [Page(1, sound.raw.model_copy(update={"words": words}))]
    failed = {each.question for each in asked(*pages) if (why := first_failed(pages, each)) and why.stage == "ink"}
    assert failed
    assert failed == {each.question for each in asked(*pages) if "9,889" in {fact.value for fact in each.facts}}


@pytest.mark.parametrize("printed", ["9,888", "9,8", "8,989"])
def test_lines_that_have_another_number_take_the_question_away(printed: str) -> None:
    """The second path reads the lines: here they have another number than the words."""
    sound = balance(1)
    lines = tuple((*line[:4], line[4].replace("9,889", printed), *line[5:]) for line in sound.raw.lines)
    pages = [Page(1, sound.raw.model_copy(update={"lines": lines}))]
    (found,) = asked(*pages, kind="table-value", words=CASH)
    failed = first_failed(pages, found)
    assert failed
    assert (failed.stage, failed.reason) == ("again", "second-path-differs")


def test_few_questions_of_a_page_and_one_of_a_row_are_listed_in_any_order() -> None:
    found = asked(*two_tables())
    taken, left = shortlist("ab", found)
    assert len(taken) + len(left) == len(found)
    assert all(sum(number in each.pages for each in taken) <= MOST_OF_A_PAGE for number in (1, 2))
    rows = [label for each in taken for label in {normal(fact.label) for fact in each.facts}]
    assert len(rows) == len(set(rows))
    backward = shortlist("ab", found[::-1])[0]
    assert {each.question for each in taken} == {each.question for each in backward}
    assert not shortlist("ab", [found[0], replace(found[0], answer="7")])[0]


def some(kinds: dict[str, int]) -> list[Candidate]:
    """Candidates of some kinds, as many as wanted of each."""
    (fact, *_), _ = found_in(balance())
    return [Candidate(kind, f"{kind} {n}", str(n), (fact,), "") for kind, count in kinds.items() for n in range(count)]


def test_too_few_documents_or_kinds_for_the_shares_are_named() -> None:
    few = {"one": some({"a": 20, "b": 5, "c": 5, "d": 5}), "two": some({"a": 5}), "none": []}
    taken, _, notes = chosen(few, keeps_all=False)
    assert notes == ("only 2 documents have questions: one may have more than a fifth of them",)
    assert max(Counter(each.kind for _, each in taken).values()) * 4 <= len(taken)
    assert chosen({"one": some({"a": 9, "b": 1, "c": 1}), "two": some({"a": 1})}, keeps_all=False)[2] == (
        "only 2 documents have questions: one may have more than a fifth of them",
        "only 3 kinds have questions: one may have more than a quarter of them",
    )
    assert chosen(few, keeps_all=True)[:2] == ([(name, each) for name, of in few.items() for each in of], [])


Offered = list[dict[str, int]]
ONE_OF_EACH = [{kind: 1} for kind in "abcd"]
FOLDERS = st.lists(st.dictionaries(st.sampled_from("abcde"), st.integers(1, 9), max_size=5), max_size=8).filter(any)


def most(offered: Offered, of_document: int, of_kind: int) -> int:
    """How many questions the largest file has, by the theorem of the minimum cut."""
    subsets = [set(kinds) for count in range(6) for kinds in combinations("abcde", count)]

    def cut(size: int, kinds: set[str]) -> int:
        own = (sum(count for kind, count in each.items() if kind in kinds) for each in offered)
        return size // of_kind * (5 - len(kinds)) + sum(min(size // of_document, count) for count in own)

    sizes = range(sum(sum(each.values()) for each in offered), 0, -1)
    return next((size for size in sizes if all(cut(size, kinds) >= size for kinds in subsets)), 0)


@given(FOLDERS)
@example([{"a": 10}, {"a": 1}, {"b": 1}, {"c": 1}, {"d": 1}])
@example([{"a": 4, "b": 2, "c": 2, "d": 2}, *ONE_OF_EACH])
@example([dict.fromkeys("abcde", 2), *ONE_OF_EACH])
@example([{"a": 20}, {"a": 20}, *({"a": 20, kind: 1} for kind in "bcd")])
@example([{"a": 9, "b": 1, "c": 1, "d": 1} for _ in range(5)])
@example([dict.fromkeys("abcde", 8), {"a": 1}, {"b": 1, "c": 1}, {"a": 1, "d": 2}, {"b": 2, "e": 2}, {"c": 1}])
def test_the_file_is_the_largest_one_with_the_shares_and_is_never_empty(offered: Offered) -> None:
    candidates = {f"doc-{n}": some(kinds) for n, kinds in enumerate(offered)}
    taken, left, notes = chosen(candidates, keeps_all=False)
    every = [(name, each.question) for name, of_document in candidates.items() for each in of_document]
    kept, lost = [(name, each.question) for name, each in taken], [(name, each.question) for name, each, _ in left]
    assert sorted(kept + lost) == sorted(every)
    is_kept = {
        "fifth": max(Counter(name for name, _ in taken).values()) * 5 <= len(taken),
        "quarter": max(Counter(each.kind for _, each in taken).values()) * 4 <= len(taken),
    }
    lifted = {share for share in is_kept if any(share in note for note in notes)}
    assert {share for share, kept in is_kept.items() if not kept} <= lifted
    sizes = most(offered, 5, 4), max(most(offered, 5, 1), most(offered, 1, 4)), len(every)
    assert (len(taken), len(lifted)) == next((size, count) for count, size in enumerate(sizes) if size)
    full = {why.reason for *_, why in left}
    assert full <= {f"share-of-a-{'document' if share == 'fifth' else 'kind'}" for share in is_kept.keys() - lifted}
    backward = chosen({name: candidates[name][::-1] for name in reversed(candidates)}, keeps_all=False)
    assert {(name, each.question) for name, each in backward[0]} == set(kept)


def test_what_ocr_reads_otherwise_takes_its_questions_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that has `O` for each `t` has other letters than are printed; what has no `t` stays."""
    found = asked(balance(1, "Balances of Quarl"))

    def read_texts(path: Path, marks: Sequence[Mark], mode: str, limits: Limits) -> dict[str, str]:
        return {checks._key(mark, mode): mark.text.replace("t", "O") for mark in marks}

    monkeypatch.setattr(checks, "_texts", read_texts)
    failed = misread(tmp_path / "x.pdf", found, Limits(), tmp_path / "kept.json")
    assert {why.reason for why in failed.values()} == {"ocr-differs"}
    kept = {fact.label for at, each in enumerate(found) if at not in failed for fact in each.facts}
    assert kept == {"Goodwill"}


def test_what_ocr_read_is_kept_under_the_versions_of_all_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = list[Path]()
    monkeypatch.setattr(make, "pages_of", lambda *_: [])

    def other_texts(*given: Path) -> tuple[dict[str, str], set[str]]:
        kept.append(given[-1])
        return {}, set()

    def misread(*given: Path) -> dict[str, str]:
        kept.append(given[-1])
        return {}

    monkeypatch.setattr(make, "_other_texts", other_texts)
    monkeypatch.setattr(make, "misread", misread)
    for layer, ocr in (("1.26.4", "tesseract 5.3.0"), ("1.26.5", "tesseract 5.3.0"), ("1.26.4", "tesseract 5.3.1")):
        monkeypatch.setattr(make, "layer_version", lambda layer=layer: layer)
        monkeypatch.setattr(make, "ocr_name", lambda ocr=ocr: ocr)
        assert isinstance(make.work_of(tmp_path / "x.pdf", "ab", make.Settings(tmp_path)), Work)
    assert len({*kept}) == 6
    assert {path.name.endswith((".pages.jsonl", ".ocr.json")) for path in kept} == {True}


@pytest.mark.rare
def test_reading_a_layout_changes_nothing_that_the_process_reads_later(tmp_path: Path) -> None:
    draw_tables(tmp_path)
    path = tmp_path / "dredging.pdf"
    before = list(read_pages(path, Limits()))
    list(page_layers(path, Limits()))
    assert list(read_pages(path, Limits())) == before

"""Two readers of tables: what each reads, and that only cells on which both agree become facts."""

from collections.abc import Sequence

import pytest
from layer_pages import BALANCE, BOX, EDGES, Cells, balance, page, right, table

from mmlongbench.questions.layer.columns import WordTable, read_table
from mmlongbench.questions.layer.facts import Fact, facts_of
from mmlongbench.questions.layer.headers import Header
from mmlongbench.questions.layer.page import Box, Page
from mmlongbench.questions.layer.pieces import lines_of
from mmlongbench.questions.layer.titles import captions_of, title_of

WIDE = (45.0, 95.0, 560.0, 260.0)


def read(lines: Sequence[Cells], rules: Sequence[tuple[float, float, float]] = ()) -> WordTable:
    found = read_table(page(1, table(lines), [WIDE], rules=rules), Box(*WIDE))
    assert isinstance(found, WordTable), found
    return found


def headers_of(lines: Sequence[Cells], rules: Sequence[tuple[float, float, float]] = ()) -> list[str]:
    return [header.text for header in read(lines, rules).headers[0]]


def facts(*pages: Page) -> dict[tuple[str, str], str]:
    return {(fact.label, fact.header): fact.value for each in pages for fact in facts_of(each).facts}


def test_every_cell_that_both_readers_see_is_a_fact() -> None:
    assert facts(balance()) == {
        ("Cash and equivalents", "2021"): "9,889",
        ("Cash and equivalents", "2020"): "8,348",
        ("Inventories", "2021"): "6,854",
        ("Inventories", "2020"): "7,367",
        ("Goodwill", "2021"): "242",
        ("Goodwill", "2020"): "223",
        ("Deferred taxes", "2021"): "(380)",
        ("Deferred taxes", "2020"): "(56)",
        ("Prepaid rent", "2021"): "1,498",
        ("Prepaid rent", "2020"): "1,653",
    }


def test_the_title_is_the_heading_above_and_the_unit_stands_in_the_corner() -> None:
    fact: Fact = facts_of(balance()).facts[0]
    assert (fact.table.title.by, fact.table.title.words) == ("heading", "Consolidated Balance Sheets")
    assert fact.table.title.unit == "in millions"


@pytest.mark.parametrize(
    ("edges", "lost"),
    [
        ((40.0, 120.0, 280.0, 380.0, 450.0), ""),  # a label over two cells is still one label
        ((290.0, 380.0, 450.0), "readers-disagree"),  # no label
        ((), "readers-disagree"),  # no grid
    ],
)
def test_a_grid_that_sees_other_cells_takes_the_facts_away(edges: Sequence[float], lost: str) -> None:
    found = facts_of(page(1, table(BALANCE), [BOX], edges=edges))
    assert (len(found.facts), found.losses.get(lost, 0) if lost else 10) == ((0, 10) if lost else (10, 10))


def test_a_label_and_a_value_in_one_cell_of_the_grid_are_no_fact() -> None:
    found = facts_of(page(1, table(BALANCE), [BOX], edges=(40.0, 380.0, 450.0)))
    assert {fact.header for fact in found.facts} == {"2020"}
    assert found.losses["readers-disagree"] == 5


def test_header_of_other_column_in_the_grid_takes_its_facts_away() -> None:
    """The words say that `2021` is over the first column of values; the grid has it over the second one."""
    lines = [((50.0, "(in millions)"), right(360, "2021"), right(430, "2020")), *BALANCE[1:]]
    edges = (40.0, 280.0, 335.0, 450.0)
    found = facts_of(page(1, table(lines), [BOX], edges=edges))
    assert ("Cash and equivalents", "2021") not in {(fact.label, fact.header) for fact in found.facts}


def test_a_label_that_is_twice_in_a_table_is_not_asked_about() -> None:
    lines = [*BALANCE[:-1], ((50.0, "Inventories"), right(330, "1,111"), right(430, "1,112"))]
    found = facts_of(balance(lines=lines))
    assert "Inventories" not in {fact.label for fact in found.facts}
    assert found.losses["label-twice-in-the-table"] == 4


HEADER_ROWS: tuple[Cells, ...] = (
    ((50.0, "Footwear"), right(250, "10"), right(330, "20"), right(420, "30"), right(500, "40")),
    ((50.0, "Apparel"), right(250, "11"), right(330, "21"), right(420, "31"), right(500, "41")),
)


def test_a_header_over_two_columns_belongs_to_both() -> None:
    lines: list[Cells] = [
        ((225, "Fiscal year 2021 in all"), (395, "Fiscal year 2020 in all")),
        (right(250, "Gross"), right(330, "Net"), right(420, "Gross"), right(500, "Net")),
        *HEADER_ROWS,
    ]
    assert headers_of(lines) == [
        "Fiscal year 2021 in all Gross",
        "Fiscal year 2021 in all Net",
        "Fiscal year 2020 in all Gross",
        "Fiscal year 2020 in all Net",
    ]


def test_a_rule_says_what_a_short_header_spans() -> None:
    lines: list[Cells] = [
        (right(300, "2021"), right(470, "2020")),
        (right(250, "Gross"), right(330, "Net"), right(420, "Gross"), right(500, "Net")),
        *HEADER_ROWS,
    ]
    rules = [(220.0, 280.0, 111.0), (280.5, 335.0, 111.0), (385.0, 505.0, 111.0)]
    assert headers_of(lines, rules) == ["2021 Gross", "2021 Net", "2020 Gross", "2020 Net"]


def test_without_a_rule_columns_of_one_header_are_not_asked_about() -> None:
    lines: list[Cells] = [
        (right(300, "2021"), right(470, "2020")),
        (right(250, "Gross"), right(330, "Net"), right(420, "Gross"), right(500, "Net")),
        *HEADER_ROWS,
    ]
    edges = (40.0, 200.0, 260.0, 340.0, 430.0, 510.0)
    found = facts_of(page(1, table(lines), [WIDE], edges=edges))
    assert not found.facts
    assert set(found.losses) <= {"header-of-two-columns", "header-beside-its-column"}


def test_a_header_of_several_lines_is_joined() -> None:
    lines: list[Cells] = [
        (right(250, "Average"),),
        (right(250, "Price"), right(330, "Shares")),
        ((50.0, "May"), right(250, "387.32"), right(330, "318,000")),
        ((50.0, "June"), right(250, "380.10"), right(330, "102,000")),
    ]
    assert headers_of(lines) == ["Average Price", "Shares"]


def test_numbers_in_the_header_and_rows_of_sums_are_no_headers() -> None:
    lines: list[Cells] = [
        ((50.0, "Sex"), right(330, "Rep"), right(430, "Dem")),
        ((50.0, "Men"), right(330, "51"), right(430, "40")),
        ((50.0, "Women"), right(330, "49"), right(430, "60")),
        (right(330, "100"), right(430, "100")),
        ((50.0, "Young"), right(330, "14"), right(430, "19")),
    ]
    found = read(lines)
    assert [row.section for row in found.rows] == [0, 0, 0]
    assert [header.text for header in found.headers[0]] == ["Rep", "Dem"]


def test_names_with_values_have_no_header() -> None:
    lines: list[Cells] = [
        ((50.0, "reviewer"), (300.0, "A2SUAM")),
        ((50.0, "item"), right(330, "13714")),
        ((50.0, "name"), (300.0, "McDonald")),
        ((50.0, "vote"), right(330, "5")),
    ]
    assert read_table(page(1, table(lines), [WIDE]), Box(*WIDE)) == "names-and-values"


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
        ("Cash", "Current assets"),
        ("Income from operations before taxes", "Current assets"),
    ]
    assert rows[2].is_unsure == "line-above-without-values"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("$ 9,889", "$9,889"),
        ("( 380 )", "(380)"),
        ("45.6 %", "45.6%"),
        ("66.4% (0.8%)", "66.4%"),
        ("3.1 ± 0.2", "3.1"),
    ],
)
def test_signs_belong_to_their_number(text: str, number: str) -> None:
    pieces = lines_of(page(1, [(50.0, 50.0, text)]).words)[0].pieces
    assert [(piece.number, piece.is_number) for piece in pieces] == [(number, True)]


def test_a_box_with_a_heading_inside_holds_two_tables() -> None:
    texts = [*table(BALANCE, 100.0), (50.0, 200.0, "Second Part Here"), *table(BALANCE, 220.0)]
    found = page(1, texts, [(45.0, 95.0, 440.0, 320.0)], [(50.0, 199.0, 200.0, 211.0, "section-header")])
    assert [round(region.box.y0) for region in found.tables] == [95, 211]


def test_captions_are_numbered_and_the_number_is_the_name() -> None:
    caption = (50.0, 196.0, 400.0, 208.0, "caption")
    texts = [*table(BALANCE), (50.0, 197.0, "Table 3: Balance in short.")]
    found = page(1, texts, [BOX], [caption])
    assert [(each.kind, each.number, each.text) for each in captions_of(found)] == [("Table", "3", "Balance in short.")]
    assert title_of(found, found.tables[0], "").words == "Table 3"


@pytest.mark.parametrize(
    "text", ["(in millions)", "Contents", "NIKE, Inc.", "Consolidated Balance Shee t", "one " * 20]
)
def test_units_companies_and_broken_words_are_no_titles(text: str) -> None:
    found = page(1, [(50.0, 71.0, text), *table(BALANCE)], [BOX], [(50.0, 70.0, 500.0, 82.0, "section-header")])
    assert title_of(found, found.tables[0], "").by == "page"


def test_a_table_of_contents_gives_no_fact() -> None:
    lines: list[Cells] = [((50.0, "Item"), right(330, "Page"))]
    lines += [((50.0, f"Chapter about {name}"), right(330, str(number))) for number, name in enumerate("abcde", 3)]
    found = facts_of(page(1, table(lines), [BOX], edges=(40.0, 280.0, 380.0)))
    assert not found.facts
    assert found.losses["table-of-contents"]


def test_a_header_without_lines_has_a_fault() -> None:
    assert Header(()).fault == "no-header-of-its-own"


def test_edges_of_the_test_page_are_as_the_grid_has_them() -> None:
    assert balance().grids[0].rows[0][1] == Box(EDGES[1], 98.0, EDGES[2], 112.0)

"""Questions from the layer over pages whose every word is known: tables of two readers, kinds, doubts, choice."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from drawn_tables import draw_tables

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import page_layers
from mmlongbench.documents.pdf import read_pages
from mmlongbench.questions.layer import rendered
from mmlongbench.questions.layer.candidate import Candidate, Mark
from mmlongbench.questions.layer.checks import first_failed, places_elsewhere
from mmlongbench.questions.layer.choosing import ABSENT_SHARE, MOST_OF_A_KIND, MOST_OF_A_PAGE, asked_twice, chosen
from mmlongbench.questions.layer.columns import WordTable, read_table
from mmlongbench.questions.layer.document import Document, document_of
from mmlongbench.questions.layer.facts import facts_of, is_contents
from mmlongbench.questions.layer.headers import Header
from mmlongbench.questions.layer.index import PageIndex
from mmlongbench.questions.layer.kinds.table import candidates_of
from mmlongbench.questions.layer.padding import answered_elsewhere
from mmlongbench.questions.layer.page import Box, Page, RawGrid, RawPage
from mmlongbench.questions.layer.pieces import lines_of
from mmlongbench.questions.layer.rendered import agrees, differing
from mmlongbench.questions.layer.titles import captions_of, title_of
from mmlongbench.questions.layer.unread import OtherTexts

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
    grids = [RawGrid(how="network", rows=_rows(texts, box, edges)) for box in tables] if edges else []
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
) -> tuple[tuple[tuple[float, float, float, float] | None, ...], ...]:
    tops = sorted({y for _, y, _ in texts if box[1] <= y <= box[3]})
    return tuple(tuple((x0, y - 2, x1, y + HEIGHT + 2) for x0, x1 in pairwise(edges)) for y in tops)


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


def balance(number: int = 1, title: str = "Consolidated Balance Sheets", lines: Sequence[Cells] = BALANCE) -> Page:
    """A page with a heading and a table of five rows and two years, whose grid agrees with its words."""
    texts = [(50.0, 71.0, title), *table(lines)]
    return page(number, texts, [BOX], [TITLE], EDGES)


def document(*pages: Page, name: str = "report") -> Document:
    """A document of pages."""
    return document_of(name, "ab" * 32, pages)


def numbered(number: int, caption: str, lines: Sequence[Cells] = BALANCE) -> Page:
    """A page with a table below a caption."""
    return page(number, [(50.0, 71.0, caption), *table(lines)], [BOX], [CAPTION], EDGES)


def asked(of: Document, kind: str, words: str = "") -> list[Candidate]:
    return [each for each in candidates_of(of) if each.kind == kind and words in each.question]


def failures(of: Document, kind: str) -> set[tuple[str, str]]:
    found = (first_failed(of, each) for each in asked(of, kind))
    return {(each.stage, each.reason) for each in found if each}


def read(lines: Sequence[Cells], rules: Sequence[tuple[float, float, float]] = ()) -> WordTable:
    found = read_table(page(1, table(lines), [WIDE], rules=rules), Box(*WIDE))
    assert isinstance(found, WordTable), found
    return found


def headers_of(lines: Sequence[Cells], rules: Sequence[tuple[float, float, float]] = ()) -> list[str]:
    return [header.text for header in read(lines, rules).headers[0]]


def test_every_cell_that_both_readers_see_is_a_fact() -> None:
    found = facts_of(balance()).facts
    values = {(fact.label, fact.header): fact.value for fact in found}
    years = ("2021", "2020")
    assert values == {
        (str(cells[0][1]), year): cells[at][1] for cells in BALANCE[1:] for at, year in enumerate(years, 1)
    }
    title = found[0].table.title
    assert (title.by, title.words, title.unit) == ("heading", "Consolidated Balance Sheets", "in millions")


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


def test_a_header_of_another_column_in_the_grid_takes_its_facts_away() -> None:
    """The words say that `2021` is over the first column of values; the grid has it over the second one."""
    lines = [[(50.0, "(in millions)"), right(360, "2021"), right(430, "2020")], *BALANCE[1:]]
    found = facts_of(page(1, table(lines), [BOX], edges=(40.0, 280.0, 335.0, 450.0)))
    assert ("Cash and equivalents", "2021") not in {(fact.label, fact.header) for fact in found.facts}


def test_a_label_that_is_twice_in_a_table_is_not_asked_about() -> None:
    found = facts_of(balance(lines=[*BALANCE[:-1], line("Inventories", "1,111", "1,112")]))
    assert "Inventories" not in {fact.label for fact in found.facts}
    assert found.losses["label-twice-in-the-table"] == 4


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
    found = facts_of(page(1, table([SHORT, KINDS, *HEADER_ROWS]), [WIDE], edges=edges))
    assert not found.facts
    assert set(found.losses) <= {"header-of-two-columns", "header-beside-its-column"}
    assert Header(()).fault == "no-header-of-its-own"


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
        ("Cash", "Current assets"),
        ("Income from operations before taxes", "Current assets"),
    ]
    assert rows[2].is_unsure == "line-above-without-values"


@pytest.mark.parametrize(
    ("text", "number"),
    [("$ 9,889", "$9,889"), ("( 380 )", "(380)"), ("45.6 %", "45.6%"), ("66.4% (0.8%)", "66.4%"), ("3.1 ± 0.2", "3.1")],
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
    lines = [line("Item", "Page"), *(line(f"Chapter about {name}", str(n)) for n, name in enumerate("abcde", 3))]
    found = facts_of(page(1, table(lines), [BOX], edges=(40.0, 280.0, 380.0)))
    assert not found.facts
    assert found.losses["table-of-contents"]


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
        ("Net income", "Net incorne", True),
        ("Net income", "Gross profit", False),
        ("1", "", False),
    ],
)
def test_ocr_must_read_the_same_digits_and_similar_words(printed: str, read: str, is_same: bool) -> None:
    assert agrees(printed, read) == is_same


def two_tables() -> Document:
    return document(balance(1), balance(2, "Income By Product", INCOME))


def one_table() -> Document:
    return document(balance(1, "Income By Product", INCOME))


def with_layout(*more: Page, others: OtherTexts | None = None, count: int = 3) -> Document:
    """Numbered headings and captions on three pages, and further pages."""
    texts = {
        1: ("1 INTRODUCTION", "Figure 1: The northern harbour seen from above."),
        2: ("2 METHODS USED", "Figure 2: Ships that came in during the winter."),
        3: ("3 RESULTS FOUND", "Figure 3: Depth of water along the quay wall."),
    }
    regions = [TITLE, (50.0, 399.0, 400.0, 411.0, "caption")]
    found = [
        page(number, [(50.0, 71.0, texts[number][0]), (50.0, 400.0, texts[number][1])], regions=regions)
        for number in range(1, count + 1)
    ]
    return document_of("report", "ab" * 32, [*found, *more], *([others] if others else []))


def answers(of: Document, kind: str) -> dict[str, object]:
    return {each.question: each.answer for each in asked(of, kind)}


def test_every_candidate_of_sound_documents_passes_the_second_path() -> None:
    for of in (two_tables(), with_layout()):
        found = candidates_of(of)
        assert found
        failed = [first_failed(of, each) for each in found]
        assert not [each for each in failed if each and each.stage not in ("words", "absent")], failed


def test_a_cell_is_named_by_its_table_row_and_column() -> None:
    question = "According to the table under the heading “Consolidated Balance Sheets”, what is the value of "
    question += "“Goodwill” in the column “2021”? The table gives values in millions."
    assert answers(two_tables(), "table-value")[question] == "242"


def test_negative_numbers_are_accepted_in_both_forms_and_deviations_are_left_out() -> None:
    (found,) = asked(two_tables(), "table-value", "“Deferred taxes” in the column “2021”")
    assert (found.answer, found.accepted) == ("-380", ("(380)",))
    lines = [*BALANCE[:3], line("Goodwill", "66.4 (0.8)", "65.1 (0.7)"), *BALANCE[4:]]
    pairs = asked(document(balance(lines=lines)), "table-pair", "“Goodwill”")
    assert all(each.question.endswith("Leave out deviations, such as those in brackets.") for each in pairs)
    assert [each.answer for each in pairs] == [("66.4", "65.1")]


def test_a_row_is_asked_for_by_a_value_that_is_once_in_its_column() -> None:
    """A value of a row that is no fact, because its label is twice or is not there, counts too."""
    of = document(balance(lines=[*BALANCE[:-1], line("Prepaid rent", "9,889", "1,653")]))
    assert not asked(of, "table-row", "“9,889”")
    assert [each.answer for each in asked(of, "table-row", "“6,854” in the column “2021”")] == ["Inventories"]
    twice = [*BALANCE[:-1], line("Prepaid rent", "6,854", "1"), line("Prepaid rent", "2", "3")]
    assert not asked(document(balance(lines=twice)), "table-row", "“6,854”")
    unnamed = document(
        balance(1, lines=[*BALANCE[:-1], line("", "6,854", "1,653")]), balance(2, "Income By Product", BALANCE)
    )
    assert not asked(unnamed, "table-row", "“6,854” in the column “2021” of the table under")
    assert not [each for each in asked(unnamed, "cross-page-join", "“6,854”") if each.facts[0].page == 1]
    assert not [each for each in asked(unnamed, "table-row", "“6,854”") if each.pages == (1,)]


def test_changes_and_sums_are_exact_and_leave_out_negative_numbers() -> None:
    found = answers(two_tables(), "table-change")
    assert {"1,541", "513", "19", "155"} <= set(map(str, found.values()))  # 9,889 - 8,348 = 1,541
    assert not [question for question in found if "Deferred taxes" in question]
    (total,) = asked(one_table(), "table-sum", "2021")
    assert total.answer == str(sum(int(fact.value) for fact in total.facts))
    assert len(total.facts) == 2  # rows that follow each other


def test_the_largest_and_the_count_name_the_rows_that_they_compare() -> None:
    largest, counts = asked(one_table(), "table-largest"), asked(one_table(), "table-count")
    assert largest
    for each in largest:
        numbers = {fact.label: int(fact.value) for fact in each.facts}
        best = max if "largest" in each.question else min
        assert each.answer == best(numbers, key=numbers.__getitem__)
        assert all(f"“{label}”" in each.question for label in numbers)
    for each in counts:
        first, *others = each.facts
        assert each.answer == str(sum(int(other.value) > int(first.value) for other in others))


def test_joins_and_differences_need_both_pages_and_rows_of_one_name_and_unit() -> None:
    (join,) = asked(two_tables(), "cross-page-join")
    assert (join.pages, join.facts[0].label) == ((1, 2), "Inventories")
    assert join.answer in {"77", "66", "6,854", "7,367"}
    found = asked(two_tables(), "cross-page-difference")
    assert found
    for each in found:
        assert {fact.label for fact in each.facts} == {"Inventories"}
        one, two = (int(fact.value.replace(",", "")) for fact in each.facts)
        assert each.answer == f"{abs(one - two):,}"


def test_captions_and_headings_are_asked_for_with_their_pages() -> None:
    of = with_layout()
    assert set(map(str, answers(of, "caption-number").values())) == {"Figure 1", "Figure 2", "Figure 3"}
    assert [each.answer for each in asked(of, "caption-page", "Figure 2")] == ["2"]
    assert [each.answer for each in asked(of, "heading-title", "section 2 ")] == ["METHODS USED"]
    assert [each.answer for each in asked(of, "heading-number", "“RESULTS FOUND”")] == ["3"]
    (count,) = asked(of, "caption-count")
    assert count.answer == str(len(count.pages))


def test_edits_change_one_qualifier_that_no_page_has() -> None:
    of = two_tables()
    edits = [each for each in asked(of, "unanswerable") if first_failed(of, each) is None]
    for each in edits:
        old, new = each.edit.split(" → ")
        assert each.question == each.original.replace(old, new)
        assert not of.index.has(*each.phrases[0])
    years = {each.absent for each in edits if each.absent.isdigit()}
    assert years
    assert not years & of.index.years


def test_an_edit_that_a_page_answers_is_left_out() -> None:
    of = with_layout()
    edit = next(each for each in candidates_of(of) if each.edit == "Figure 3 → Figure 4")
    assert first_failed(of, edit) is None
    more = page(4, [(50.0, 71.0, "See also Figure 4 of the annex")])
    failed = first_failed(document(*of.pages, more), edit)
    assert failed
    assert (failed.stage, failed.reason) == ("absent", "answerable-after-all")
    assert failed.found.startswith("page 4")


def test_a_question_names_the_page_where_another_page_has_its_words() -> None:
    text = [(50.0, 71.0, "Consolidated Balance Sheets"), (50.0, 100.0, "Goodwill"), (50.0, 130.0, "In 2021")]
    found = asked(document(balance(1), page(2, text)), "table-value", "“Goodwill” in the column “2021”")
    assert ["on page 1" in each.question for each in found] == [True]


def test_words_that_are_not_rendered_take_the_question_away() -> None:
    sound = balance(1)
    words = tuple((*word[:5], word[4] != "9,889") for word in sound.raw.words)
    of = document(Page(1, sound.raw.model_copy(update={"words": words})))
    failed = [each.question for each in asked(of, "table-value") if (f := first_failed(of, each)) and f.stage == "ink"]
    assert len(failed) == 1
    assert CASH in failed[0]


@pytest.mark.parametrize("printed", ["9,888", "9,8", "8,989"])
def test_lines_that_have_another_number_take_the_question_away(printed: str) -> None:
    """The second path reads the lines: here they have another number than the words."""
    sound = balance(1)
    lines = tuple((*line[:4], line[4].replace("9,889", printed), *line[5:]) for line in sound.raw.lines)
    of = document(Page(1, sound.raw.model_copy(update={"lines": lines})))
    (found,) = asked(of, "table-value", CASH)
    failed = first_failed(of, found)
    assert failed
    assert (failed.stage, failed.reason) == ("again", "second-path-differs")


def test_few_questions_of_a_page_and_a_share_of_edits_are_chosen_in_any_order() -> None:
    of = two_tables()
    passed = [each for each in candidates_of(of) if first_failed(of, each) is None]
    taken, left = chosen("ab", passed)
    assert len(taken) + len(left) == len(passed)
    for number in (1, 2):
        assert sum(number in each.pages for each in taken if not each.absent) <= MOST_OF_A_PAGE
    answerable = [each for each in taken if not each.absent]
    assert len(taken) - len(answerable) <= round(len(answerable) * ABSENT_SHARE / (1 - ABSENT_SHARE))
    slots = [slot for each in taken for slot in each.slots]
    assert len(slots) == len(set(slots))
    assert {each.kind for each in passed} - {"unanswerable"} <= set(MOST_OF_A_KIND)
    backward = chosen("ab", passed[::-1])[0]
    assert {each.question for each in taken} == {each.question for each in backward}


@pytest.mark.parametrize(
    ("second", "name"),
    [
        *((text, "Table 3 on page 1,") for text in ("Table 3 (continued)", "Table 3: Financial position", "Table 3")),
        *((text, "Table 3 on page 1,") for text in ("TABLE 3 - Cont'd", "Continued from Table 3")),
        ("", "Table 3 on page 1,"),  # it runs on without a caption
        ("Table 4: Liabilities", "Table 3,"),
    ],
)
def test_a_table_in_parts_is_named_by_its_page_too(second: str, name: str) -> None:
    rest = numbered(2, second, MORE) if second else page(2, table(MORE), [BOX], edges=EDGES)
    of = document(numbered(1, "Table 3: Financial position"), rest)
    found = asked(of, "table-value", "“Goodwill”")
    assert found
    assert all(name in each.question for each in found)
    assert second or of.parts_of(of.facts[0].table) == {1, 2}


def test_two_tables_of_one_name_without_cells_of_their_own_are_told_apart() -> None:
    """The second table gives no fact, because no grid confirms it; its name counts all the same."""
    bare = page(2, [(50.0, 71.0, "Consolidated Balance Sheets"), *table(MORE)], [BOX], [TITLE])
    of = document(balance(1), bare)
    assert all("on page 1," in each.question for each in asked(of, "table-value", "“Goodwill”"))


def test_a_row_of_another_part_of_a_table_is_not_missing_in_it() -> None:
    """Page 3 is a part of Table 3, two pages away: its rows are no edit of a question about the first part."""
    pages = [
        numbered(1, "Table 3: Financial position"),
        page(2, [(50.0, 71.0, "A page of text between the parts.")]),
        numbered(3, "Table 3 (continued)", MORE),
    ]
    edits = asked(document(*pages), "unanswerable", "Table 3 on page 1")
    labels = {str(line[0][1]) for line in MORE[1:]}
    assert not [each for each in edits if each.absent in labels]


def with_scan(*, is_read: bool) -> Document:
    """The last page is a picture, which OCR reads or does not read."""
    sound = page(4, [])
    scan = Page(4, sound.raw.model_copy(update={"word_count": 0}))
    read = OtherTexts({4: "Figure 2: Ships that came in during the winter."}, frozenset())
    return with_layout(balance(3), scan, others=read if is_read else OtherTexts({}, frozenset({4})), count=2)


def test_a_page_that_nobody_reads_blocks_what_is_claimed_of_all_pages() -> None:
    of = with_scan(is_read=False)
    for kind in ("caption-number", "caption-page", "heading-title"):
        assert failures(of, kind) == {("unique", "page-not-readable")}
    assert failures(of, "unanswerable") == {("absent", "page-not-readable")}
    values = asked(of, "table-value")
    assert values
    assert all("on page 3," in each.question for each in values)
    assert not failures(of, "table-value")


def test_the_words_of_a_page_that_ocr_reads_count() -> None:
    of = with_scan(is_read=True)
    assert not asked(of, "caption-number", "“Ships")
    assert asked(of, "caption-number", "“The northern")


def sections(*numbers: str, lost: Sequence[str] = (), more: str = "") -> Document:
    """Pages with a heading each; the layout does not find those that are lost. `more` is a line of the first page."""
    pages = []
    for at, number in enumerate(numbers, 1):
        regions = [] if number in lost else [(50.0, 70.0, 250.0, 82.0, "section-header")]
        texts = [(50.0, 71.0, f"{number} HARBOUR PART {chr(64 + at)}")]
        pages.append(page(at, [*texts, *([(50.0, 300.0, more)] if more and at == 1 else [])], regions=regions))
    return document(*pages)


@pytest.mark.parametrize(
    ("lost", "reason"), [("3.2", "numbers-with-a-gap"), ("3.1", "numbers-with-a-gap"), ("3.3", "second-path-differs")]
)
def test_subsections_are_counted_where_their_numbers_run_on_and_no_heading_is_lost(lost: str, reason: str) -> None:
    (found,) = asked(of := sections("3", "3.1", "3.2", "3.3", "4"), "subsection-count")
    assert (found.answer, first_failed(of, found)) == ("3", None)
    of = sections("3", "3.1", "3.2", "3.3", "4", lost=[lost])
    assert failures(of, "subsection-count") == {("again", reason)}
    numbered = sections("3", "3.1", "3.2", "4", more="3.3 100 ways to rest")  # a title that begins with a number
    assert failures(numbered, "subsection-count") == {("again", "second-path-differs")}


@pytest.mark.parametrize(
    ("unit", "kept", "other"), [("in millions", "2021", "% change"), ("shares in thousands", "Number", "Price")]
)
def test_a_column_of_another_kind_has_not_the_unit_of_its_table(unit: str, kept: str, other: str) -> None:
    rows = (("Footwear", "500", "25"), ("Apparel", "300", "14"), ("Equipment", "120", "11"))
    prices = (("Granted", "1,500", "61.20"), ("Vested", "1,300", "58.40"), ("Forfeited", "120", "57.10"))
    lines = [line(f"({unit})", kept, other), *(line(*row) for row in (rows if other == "% change" else prices))]
    of = document(balance(1, "Income By Product", lines), balance(2, "Income By Region", lines))
    changed = asked(of, "table-value", f"“{other}”")
    assert changed
    assert not [each for each in changed if unit in each.question]
    assert all(unit in each.question for each in asked(of, "table-value", f"“{kept}”"))
    assert not asked(of, "cross-page-difference", other)


def test_a_question_that_names_a_page_is_held_against_pages_of_other_documents() -> None:
    """A page with the same number and words answers it; with another number, it answers only if it has the name too."""
    of = document(page(1, table(BALANCE), [BOX], edges=EDGES))
    (found,) = asked(of, "table-value", "“Goodwill” in the column “2021”")
    assert "the table on page 1" in found.question
    rival = "Goodwill 2021"
    for at, is_answered in ((1, True), (2, False)):
        indexes = {"rival": PageIndex([(at, rival)])}
        assert bool(answered_elsewhere(places_elsewhere(of, found), "report", indexes)) == is_answered
    named = document(balance(1), balance(2))
    found = asked(named, "table-value", "“Goodwill” in the column “2021”")[0]
    assert "on page 1" in found.question
    indexes = {"rival": PageIndex([(9, "Consolidated Balance Sheets: Goodwill 2021")])}
    assert answered_elsewhere(places_elsewhere(named, found), "report", indexes)


def test_one_question_is_asked_once_and_not_at_all_if_it_has_two_answers() -> None:
    found = asked(document(balance(1)), "table-value")[0]
    again, other = replace(found), replace(found, answer="7")
    assert [number for number, _ in asked_twice({0: found, 1: again})] == [1]
    assert [number for number, _ in asked_twice({0: found, 1: again, 2: other})] == [0, 1, 2]


def letters(change: dict[str, str]) -> dict[int, str]:
    """A change of letters, as `str.translate` takes it."""
    return {ord(one): other for one, other in change.items()}


def with_letters(change: dict[int, str]) -> Document:
    """A page with a table and a caption, whose layer has other letters than are printed."""
    lines = [[(x, text.translate(change)) for x, text in line] for line in BALANCE]
    caption = (50.0, 71.0, "Table 1: State of the treasury at the turn of the year".translate(change))
    return document(page(1, [caption, *table(lines)], [BOX], [(50.0, 70.0, 400.0, 82.0, "caption")], EDGES))


@pytest.mark.parametrize(
    ("layer", "read", "is_lying"),
    [
        pytest.param({"t": "O"}, {"O": "t"}, True, id="a layer that has O for each t"),
        pytest.param({}, {}, False, id="the same letters"),
        pytest.param({}, {"v": "x"}, False, id="a rare letter that OCR mistakes"),
        pytest.param({}, {"l": "I"}, False, id="letters that look alike"),
        pytest.param({}, {"s": "S"}, False, id="another case"),
        pytest.param({"u": "ü"}, {"ü": "u"}, False, id="a letter that English does not have"),
    ],
)
def test_a_layer_is_not_believed_if_ocr_always_reads_one_letter_as_another_one(
    layer: dict[str, str], read: dict[str, str], is_lying: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions about tables and about captions rest on the letters of the page, and all go."""

    def read_texts(path: Path, marks: Sequence[Mark], mode: str, limits: Limits) -> dict[str, str]:
        return {rendered._key(mark, mode): mark.text.translate(letters(read)) for mark in marks}

    of = with_letters(letters(layer))
    found = candidates_of(of)
    assert {"table-value", "caption-number", "unanswerable"} <= {each.kind for each in found}
    monkeypatch.setattr(rendered, "_texts", read_texts)
    failed = differing(tmp_path / "x.pdf", of.pages, found, Limits(), tmp_path / "kept.json")
    assert {each.reason for each in failed.values()} == ({"ocr-differs"} if is_lying else set())
    assert len(failed) == (len(found) if is_lying else 0)


def test_a_caption_that_ocr_reads_otherwise_takes_its_questions_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = with_layout()
    found = [each for each in candidates_of(of) if each.kind == "caption-number"]

    def read_texts(path: Path, marks: Sequence[Mark], mode: str, limits: Limits) -> dict[str, str]:
        painted = "Figure 2: Something else is painted over the caption."
        return {rendered._key(mark, mode): painted if mark.page == 2 else mark.text for mark in marks}

    monkeypatch.setattr(rendered, "_texts", read_texts)
    failed = differing(tmp_path / "x.pdf", of.pages, found, Limits(), tmp_path / "kept.json")
    assert [(found[number].answer, why.reason) for number, why in failed.items()] == [("Figure 2", "ocr-differs")]


EARLIER: Sequence[Cells] = (
    line("(in millions)", "2019", "2018"),
    *(line(str(cells[0][1]), f"{n},111", f"{n},222") for n, cells in enumerate(BALANCE[1:], 3)),
)


@pytest.mark.parametrize(("caption", "is_asked"), [("", False), ("Table 3: Financial position", True)])
def test_rows_that_two_tables_below_one_heading_have_are_not_asked_for(caption: str, is_asked: bool) -> None:
    second = (BOX[0], BOX[1] + 120, BOX[2], BOX[3] + 120)
    title = caption or "Consolidated Balance Sheets"
    texts = [(50.0, 71.0, title), *table(BALANCE), *table(EARLIER, 220.0)]
    heading = CAPTION if caption else TITLE
    two = document(page(1, texts, [BOX, second], [heading], EDGES))
    assert bool(asked(two, "table-value", "“Goodwill” in the column “2021”")) is is_asked
    assert asked(document(balance()), "table-value", "“Goodwill”")


@pytest.mark.rare
def test_reading_a_layout_changes_nothing_that_the_process_reads_later(tmp_path: Path) -> None:
    draw_tables(tmp_path)
    path = tmp_path / "dredging.pdf"
    before = list(read_pages(path, Limits()))
    list(page_layers(path, Limits()))
    assert list(read_pages(path, Limits())) == before

"""What may make a question of the layer ambiguous or wrong: tables in parts, pages that nobody reads, lost headings."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from layer_pages import BALANCE, BOX, EDGES, TITLE, Cells, balance, document, page, right, table

from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.checks import first_failed, places_elsewhere
from mmlongbench.questions.layer.choosing import asked_twice
from mmlongbench.questions.layer.document import Document, document_of
from mmlongbench.questions.layer.index import PageIndex
from mmlongbench.questions.layer.kinds.table import candidates_of
from mmlongbench.questions.layer.padding import answered_elsewhere
from mmlongbench.questions.layer.page import Page
from mmlongbench.questions.layer.unread import OtherTexts

CAPTION = (50.0, 70.0, 250.0, 82.0, "caption")
MORE: Sequence[Cells] = (
    ((50, "(in millions)"), right(330, "2021"), right(430, "2020")),
    ((50, "Trade payables"), right(330, "2,214"), right(430, "2,131")),
    ((50, "Accrued wages"), right(330, "875"), right(430, "902")),
    ((50, "Income taxes due"), right(330, "306"), right(430, "229")),
    ((50, "Notes payable"), right(330, "471"), right(430, "388")),
    ((50, "Lease liabilities"), right(330, "2,913"), right(430, "2,845")),
)


def numbered(number: int, caption: str, lines: Sequence[Cells] = BALANCE) -> Page:
    """A page with a table below a caption."""
    return page(number, [(50.0, 71.0, caption), *table(lines)], [BOX], [CAPTION], EDGES)


def asked(of: Document, kind: str, words: str = "") -> list[Candidate]:
    return [each for each in candidates_of(of) if each.kind == kind and words in each.question]


def failures(of: Document, kind: str) -> set[tuple[str, str]]:
    found = (first_failed(of, each) for each in asked(of, kind))
    return {(each.stage, each.reason) for each in found if each}


@pytest.mark.parametrize(
    "second",
    ["Table 3 (continued)", "Table 3: Financial position", "TABLE 3 - Cont'd", "Continued from Table 3", "Table 3"],
)
def test_a_table_in_parts_is_named_by_its_page_too(second: str) -> None:
    of = document(numbered(1, "Table 3: Financial position"), numbered(2, second, MORE))
    assert all("Table 3 on page 1," in each.question for each in asked(of, "table-value", "“Goodwill”"))
    assert asked(of, "table-value", "“Goodwill”")


def test_a_table_alone_is_named_by_its_number() -> None:
    of = document(numbered(1, "Table 3: Financial position"), numbered(2, "Table 4: Liabilities", MORE))
    assert all("Table 3," in each.question for each in asked(of, "table-value", "“Goodwill”"))


def test_a_table_that_runs_on_without_a_caption_is_in_parts() -> None:
    rest = page(2, table(MORE), [BOX], edges=EDGES)
    of = document(numbered(1, "Table 3: Financial position"), rest)
    assert all("Table 3 on page 1," in each.question for each in asked(of, "table-value", "“Goodwill”"))
    assert of.parts_of(of.facts[0].table) == {1, 2}


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


def scanned(number: int) -> Page:
    """A page that is a picture."""
    sound = page(number, [])
    return Page(number, sound.raw.model_copy(update={"word_count": 0}))


def with_scan(*, is_read: bool) -> Document:
    texts = {
        1: ("1 INTRODUCTION", "Figure 1: The northern harbour seen from above."),
        2: ("2 METHODS USED", "Figure 2: Ships that came in during the winter."),
    }
    regions = [(50.0, 70.0, 250.0, 82.0, "section-header"), (50.0, 399.0, 400.0, 411.0, "caption")]
    found = [page(n, [(50.0, 71.0, one), (50.0, 400.0, two)], regions=regions) for n, (one, two) in texts.items()]
    others = OtherTexts({4: "Figure 2: Ships that came in during the winter."} if is_read else {}, frozenset({4}))
    others = OtherTexts(others.texts, frozenset()) if is_read else others
    return document_of("report", "ab" * 32, [*found, balance(3), scanned(4)], others)


def test_a_page_that_nobody_reads_blocks_what_is_claimed_of_all_pages() -> None:
    of = with_scan(is_read=False)
    for kind in ("caption-number", "caption-page", "heading-title"):
        assert failures(of, kind) == {("unique", "page-not-readable")}
    assert failures(of, "unanswerable") == {("absent", "page-not-readable")}


def test_a_table_is_named_by_its_page_where_another_page_is_not_read() -> None:
    of = with_scan(is_read=False)
    found = asked(of, "table-value")
    assert found
    assert all("on page 3," in each.question for each in found)
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


def test_subsections_are_counted_where_their_numbers_run_on() -> None:
    (found,) = asked(of := sections("3", "3.1", "3.2", "3.3", "4"), "subsection-count")
    assert (found.answer, first_failed(of, found)) == ("3", None)


@pytest.mark.parametrize(
    ("lost", "reason"), [("3.2", "numbers-with-a-gap"), ("3.1", "numbers-with-a-gap"), ("3.3", "second-path-differs")]
)
def test_a_count_of_subsections_is_left_out_if_a_heading_is_lost(lost: str, reason: str) -> None:
    of = sections("3", "3.1", "3.2", "3.3", "4", lost=[lost])
    assert failures(of, "subsection-count") == {("again", reason)}


def test_a_value_of_a_line_without_a_label_counts_in_its_column() -> None:
    """The last line is a sum without a label: its value is that of a row, so the row is not alone."""
    total = [*BALANCE[:-1], (right(330, "6,854"), right(430, "1,653"))]
    of = document(balance(1, lines=total), balance(2, "Income By Product", BALANCE))
    assert not asked(of, "table-row", "“6,854” in the column “2021” of the table under")
    assert not [each for each in asked(of, "cross-page-join", "“6,854”") if each.facts[0].page == 1]
    assert not [each for each in asked(of, "table-row", "“6,854”") if each.pages == (1,)]


def test_a_change_in_per_cent_has_not_the_unit_of_its_table() -> None:
    lines: Sequence[Cells] = (
        ((50, "(in millions)"), right(330, "2021"), right(430, "% change")),
        ((50, "Footwear"), right(330, "500"), right(430, "25")),
        ((50, "Apparel"), right(330, "300"), right(430, "14")),
        ((50, "Equipment"), right(330, "120"), right(430, "11")),
    )
    of = document(balance(1, "Income By Product", lines), balance(2, "Income By Region", lines))
    changed = asked(of, "table-value", "% change")
    assert changed
    assert not [each for each in changed if "in millions" in each.question]
    assert all("in millions" in each.question for each in asked(of, "table-value", "“2021”"))
    assert not asked(of, "cross-page-difference", "% change")


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


def test_a_price_has_not_the_unit_of_a_table_of_shares() -> None:
    lines: Sequence[Cells] = (
        ((50, "(shares in thousands)"), right(330, "Number"), right(430, "Price")),
        ((50, "Granted"), right(330, "1,500"), right(430, "61.20")),
        ((50, "Vested"), right(330, "1,300"), right(430, "58.40")),
        ((50, "Forfeited"), right(330, "120"), right(430, "57.10")),
    )
    of = document(balance(1, "Restricted Stock Units", lines), balance(2, "Stock Options", lines))
    assert all("shares in thousands" in each.question for each in asked(of, "table-value", "“Number”"))
    prices = asked(of, "table-value", "“Price”")
    assert prices
    assert not [each for each in prices if "in thousands" in each.question]
    assert not asked(of, "cross-page-difference")


def test_one_question_is_asked_once_and_not_at_all_if_it_has_two_answers() -> None:
    found = asked(document(balance(1)), "table-value")[0]
    again, other = replace(found), replace(found, answer="7")
    assert [number for number, _ in asked_twice({0: found, 1: again})] == [1]
    assert [number for number, _ in asked_twice({0: found, 1: again, 2: other})] == [0, 1, 2]


EARLIER: Sequence[Cells] = (
    ((50, "(in millions)"), right(330, "2019"), right(430, "2018")),
    *(
        (label, right(330, f"{number},111"), right(430, f"{number},222"))
        for number, (label, *_) in enumerate(BALANCE[1:], 3)
    ),
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


def test_a_subsection_whose_title_begins_with_a_number_counts() -> None:
    assert failures(sections("3", "3.1", "3.2", "4", more="3.3 100 ways to rest"), "subsection-count") == {
        ("again", "second-path-differs")
    }


def test_a_value_is_asked_for_without_its_deviation() -> None:
    lines = [*BALANCE[:3], ((50, "Goodwill"), right(330, "66.4 (0.8)"), right(430, "65.1 (0.7)")), *BALANCE[4:]]
    found = asked(document(balance(lines=lines)), "table-pair", "“Goodwill”")
    assert all(each.question.endswith("Leave out deviations, such as those in brackets.") for each in found)
    assert [each.answer for each in found] == [("66.4", "65.1")]

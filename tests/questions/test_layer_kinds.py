"""The kinds of questions over documents whose every cell is known."""

from collections.abc import Sequence

import pytest
from layer_pages import BALANCE, Cells, balance, document, page, right

from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.checks import first_failed
from mmlongbench.questions.layer.choosing import ABSENT_SHARE, MOST_OF_A_KIND, MOST_OF_A_PAGE, chosen
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.kinds.table import candidates_of
from mmlongbench.questions.layer.page import Page

INCOME: Sequence[Cells] = (
    ((50, "(in millions)"), right(330, "2021"), right(430, "2020")),
    ((50, "Footwear"), right(330, "500"), right(430, "400")),
    ((50, "Apparel"), right(330, "300"), right(430, "350")),
    ((50, "Equipment"), right(330, "120"), right(430, "110")),
    ((50, "Inventories"), right(330, "77"), right(430, "66")),
    ((50, "Licence fees"), right(330, "19"), right(430, "18")),
)
HEADING = (50.0, 70.0, 250.0, 82.0, "section-header")
CASH = "“Cash and equivalents” in the column “2021”"


def two_tables() -> Document:
    return document(balance(1), balance(2, "Income By Product", INCOME))


def one_table() -> Document:
    return document(balance(1, "Income By Product", INCOME))


def with_layout() -> Document:
    """Numbered headings and captions on three pages."""
    texts = {
        1: ("1 INTRODUCTION", "Figure 1: The northern harbour seen from above."),
        2: ("2 METHODS USED", "Figure 2: Ships that came in during the winter."),
        3: ("3 RESULTS FOUND", "Figure 3: Depth of water along the quay wall."),
    }
    regions = [HEADING, (50.0, 399.0, 400.0, 411.0, "caption")]
    places = {number: [(50.0, 71.0, heading), (50.0, 400.0, text)] for number, (heading, text) in texts.items()}
    return document(*(page(number, found, regions=regions) for number, found in places.items()))


def asked(of: Document, kind: str, words: str = "") -> list[Candidate]:
    return [each for each in candidates_of(of) if each.kind == kind and words in each.question]


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


def test_a_negative_number_is_accepted_in_both_forms() -> None:
    (found,) = asked(two_tables(), "table-value", "“Deferred taxes” in the column “2021”")
    assert (found.answer, found.accepted) == ("-380", ("(380)",))


def test_a_row_is_asked_for_by_a_value_that_is_once_in_its_column() -> None:
    twice = [*BALANCE[:-1], ((50.0, "Prepaid rent"), right(330, "9,889"), right(430, "1,653"))]
    of = document(balance(1, lines=twice))
    assert not asked(of, "table-row", "“9,889”")
    assert [each.answer for each in asked(of, "table-row", "“6,854” in the column “2021”")] == ["Inventories"]


def test_a_value_of_a_row_that_is_no_fact_counts_too() -> None:
    """Two rows have one label, so they are not asked about; the value of one of them is in another row, too."""
    twice = [
        ((50.0, "Prepaid rent"), right(330, "6,854"), right(430, "1")),
        ((50.0, "Prepaid rent"), right(330, "2"), right(430, "3")),
    ]
    of = document(balance(1, lines=[*BALANCE[:-1], *twice]))
    assert not asked(of, "table-row", "“6,854”")


def test_changes_are_exact_and_leave_out_negative_numbers() -> None:
    found = answers(two_tables(), "table-change")
    assert {"1,541", "513", "19", "155"} <= set(map(str, found.values()))  # 9,889 - 8,348 = 1,541
    assert not [question for question in found if "Deferred taxes" in question]


def test_sums_are_of_rows_that_follow_each_other() -> None:
    (found,) = asked(one_table(), "table-sum", "2021")
    assert found.answer == str(sum(int(fact.value) for fact in found.facts))
    assert len(found.facts) == 2


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


def test_a_join_needs_both_pages() -> None:
    (found,) = asked(two_tables(), "cross-page-join")
    assert (found.pages, found.facts[0].label) == ((1, 2), "Inventories")
    assert found.answer in {"77", "66", "6,854", "7,367"}


def test_cross_page_differences_compare_rows_of_one_name_and_unit() -> None:
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


def test_few_questions_of_a_page_and_a_share_of_edits_are_chosen() -> None:
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


def test_the_order_of_candidates_does_not_decide_what_is_chosen() -> None:
    of = two_tables()
    passed = [each for each in candidates_of(of) if first_failed(of, each) is None]
    forward, backward = chosen("ab", passed)[0], chosen("ab", passed[::-1])[0]
    assert {each.question for each in forward} == {each.question for each in backward}

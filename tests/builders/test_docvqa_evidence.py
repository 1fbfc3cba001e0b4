"""The evidence of a document question, read from its record; also from records that others made."""

from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mmlongbench.task as mt
from builders.docvqa import DocVQA, DocVQAOptions
from builders.docvqa.paths import folder_of, page_index, path_of_page

PAGES = ["docs/fern/fern_page3.png", "docs/rose/rose_page2.png", "docs/rose/rose_page1.png", "docs/ros/ros_page4.png"]


def evidence(**record: Any) -> mt.Evidence:
    found = DocVQA("roses", DocVQAOptions()).evidence({"doc_name": "rose", "page_list": PAGES, **record})
    assert found is not None
    return found


def test_pages_are_those_of_the_answers_document_by_folder_and_number() -> None:
    found = evidence(ans_page_list=[4, 2, 2], page_text_list=["ferns", "two", "one", "others"])
    assert (found.document, found.pages, found.shown) == ("rose", (2, 4), (2, 1))
    assert found.images == {number: f"docs/rose/rose_page{number}.png" for number in (1, 2, 3, 4, 5)}
    assert found.texts == {2: "two", 1: "one"}


def test_slides_are_counted_from_0() -> None:
    found = evidence(doc_name="deck", page_list=["s/deck/a-deck-4-1024.jpg"], ans_page_list=[0])
    assert found.shown == (3,)
    assert found.images == {number: f"s/deck/a-deck-{number + 1}-1024.jpg" for number in (0, 1, 3)}


def test_a_page_that_is_shown_twice_counts_where_it_stands_first() -> None:
    found = evidence(page_list=[*PAGES[1:3], "copy/rose/rose_page2.png"], page_text_list=["two", "one", "again"])
    assert (found.shown, found.images[2], found.texts[2]) == ((2, 1), "docs/rose/rose_page2.png", "two")


def test_a_question_without_an_answer_has_no_pages() -> None:
    found = evidence(ans_page_list=[])
    assert (found.pages, found.shown, found.texts) == ((), (2, 1), {})


@pytest.mark.parametrize("value", [None, 7, "rose", {"a": 1}, [None, {}, ["x"], -1, "x.png"], []])
def test_fields_of_another_type_tell_nothing(value: object) -> None:
    assert evidence(ans_page_list=value).pages == ()
    assert evidence(page_list=value).shown == ()
    assert evidence(page_text_list=value).texts in ({}, {1: "x.png"} if isinstance(value, list) else {})
    assert evidence(doc_name=value).document == (value if isinstance(value, str) else None)


def test_a_record_without_a_document_has_its_answer_pages_still() -> None:
    found = evidence(doc_name=None, ans_page_list=[1])
    assert found == mt.Evidence(None, (1,))


def test_numbers_of_pages_are_bounded() -> None:
    assert evidence(page_list=[f"docs/rose/rose_page{'1' * 5000}.png"]).shown == ()
    with pytest.raises(ValueError, match="expected a name that ends in page<N>"):
        page_index(f"docs/rose/rose_page{'1' * 5000}.png")
    assert path_of_page("docs/rose/cover.png", 1) == ""
    far = evidence(ans_page_list=[999_999, 10**4300 - 1])
    assert (len(far.pages), sorted(far.images)) == (2, [1, 2, 999_998, 999_999])


@given(st.text(alphabet="/.ab\0", max_size=12))
def test_the_folder_of_a_page_is_that_of_its_path(path: str) -> None:
    assert folder_of(path) == PurePosixPath(path).parent.name


def test_a_task_that_does_not_say_has_no_evidence() -> None:
    record = {"id": 7, "question": ["no text"], "answer": "red"}
    builder = DocVQA("roses", DocVQAOptions())
    assert mt.Builder.evidence(builder, record) is None
    assert (builder.question(record), builder.answer_format(record), builder.source_id(record)) == ("", None, "")

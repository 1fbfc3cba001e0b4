"""What a draft is given: documents, pages, pictures, web pages; and the answers that a question offers."""

from types import SimpleNamespace
from typing import Any

import pytest

from mmlongbench.task import Choices, Document, Fault, Image, Page, Rejected, Row, Sources
from mmlongbench.task.advanced import Documents, DraftError, Images, WebPages
from mmlongbench.task.readers import ImageClasses

PAGES = (Page(0, "docs/a/a_page0.jpg", 100, 200), Page(1, "docs/a/a_page1.jpg", 200, 100))
BROKEN = Fault("broken-document", "a PDF that can be opened", "none", "b.pdf")
DOCUMENTS = Documents(
    {"z": Document("z", "z", "22", ()), "a.1": Document("a.1", "a", "11", PAGES)},
    {"b": BROKEN},
)


def test_a_document_is_found_by_its_id_with_its_pages_in_order() -> None:
    assert DOCUMENTS["a.1"].name == "a"
    assert DOCUMENTS["a.1"].pages == PAGES


def test_a_document_is_found_by_the_name_of_its_pdf_unless_that_is_the_id_of_another() -> None:
    assert DOCUMENTS["a.1.pdf"] is DOCUMENTS["a.1"]
    with pytest.raises(Rejected) as caught:
        DOCUMENTS["b.pdf"]
    assert caught.value.fault == BROKEN
    both = Documents({"x": Document("x", "x", "1", ()), "x.pdf": Document("x.pdf", "x.pdf", "2", ())})
    assert (both["x.pdf"].sha256, both["x"].sha256) == ("2", "1")


def test_a_missing_page_is_named_and_the_others_keep_their_numbers() -> None:
    first, third = PAGES[0], Page(2, "docs/a/a_page2.jpg", 200, 100)
    document = Document("a", "a", "11", (first, third), missing=(1,))
    assert (document.page_count, document.page(1), document.page(3)) == (3, first, third)
    assert [document.position(page.index) for page in document.pages] == [0, 1]
    for number, reason in ((2, "missing-page"), (4, "page-out-of-range")):
        with pytest.raises(Rejected) as caught:
            document.page(number)
        assert caught.value.fault.reason == reason
    documents = Documents({"a": document}, texts=lambda name: ("One.", "Three."))
    assert [documents.page_text("a", index) for index in (0, 2)] == ["One.", "Three."]


def test_pages_are_counted_from_1_and_a_number_out_of_range_rejects_the_question() -> None:
    document = DOCUMENTS["a.1"]
    assert [document.page(1), document.page(2)] == list(PAGES)
    for number in (0, -1, 3):
        with pytest.raises(Rejected) as caught:
            document.page(number)
        assert caught.value.fault == Fault(
            "page-out-of-range", "a page from 1 to 2 of document a.1", f"{number}", todo="correct the row"
        )


def test_a_missing_document_rejects_the_question_that_asks_for_it() -> None:
    with pytest.raises(Rejected) as caught:
        DOCUMENTS["../../etc/passwd"]
    expected, todo = "a document '../../etc/passwd' among the sources", "add it to the sources, or correct its name"
    assert caught.value.fault == Fault("missing-document", expected, "none", field="doc", todo=todo)


def test_a_missing_document_is_answered_with_the_nearest_name() -> None:
    known = Documents({name: Document(name, name, "1", ()) for name in ("harbour-dredging-2019", "tide-tables")})
    with pytest.raises(Rejected, match="found none; did you mean 'harbour-dredging-2019'"):
        known["harbour-2019"]


def test_a_refused_document_rejects_with_what_is_wrong_with_it() -> None:
    with pytest.raises(Rejected) as caught:
        DOCUMENTS["b"]
    assert caught.value.fault == BROKEN


def test_the_usable_documents_are_listed_sorted() -> None:
    assert DOCUMENTS.ids == ("a.1", "z")


def test_texts_that_were_not_read_are_an_error_that_says_what_asks_for_them() -> None:
    with pytest.raises(DraftError, match=r"document a\.1: its texts were not read: set TaskSpec\.page_texts"):
        DOCUMENTS.page_texts("a.1")


def test_the_text_of_a_page_is_stripped_and_holds_no_marker() -> None:
    documents = Documents(DOCUMENTS.usable, texts=lambda name: (" One.\n", "<image> two"))
    assert [documents.page_text("a.1", index) for index in (0, 1)] == ["One.", "< image > two"]


def test_sizes_are_known_by_path() -> None:
    found = {"docs/a/a_page0.jpg": (100, 200), "docs/a/a_page1.jpg": (200, 100)}
    assert Sources(documents=DOCUMENTS).sizes == found
    pictures: Any = SimpleNamespace(sizes={})
    sources = Sources(documents=DOCUMENTS, images=Images(pictures))
    pictures.sizes["x/later.png"] = (3, 4)
    assert sources.sizes["x/later.png"] == (3, 4)
    assert sources.sizes["docs/a/a_page0.jpg"] == (100, 200)


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        (
            "documents",
            "this dataset has no documents: its task needs mt.Pdfs in `sources`, or its reader `documents()`",
        ),
        ("images", "this dataset has no pictures: its task needs mt.Folder in `sources`, or its reader `image()`"),
        ("web_pages", "this dataset has no web pages: its reader needs a method `web_pages(sources)`"),
        (
            "image_classes",
            "this dataset has no classes of pictures: its reader needs a method `image_classes(sources)`",
        ),
        ("corpus", "this dataset has no corpus: name one in its manifest (`corpus: …`)"),
    ],
)
def test_a_part_that_is_not_there_says_who_would_bring_it(part: str, fault: str) -> None:
    with pytest.raises(DraftError) as caught:
        getattr(Sources(), part)
    assert str(caught.value) == fault


def test_a_part_without_anything_in_it_is_there() -> None:
    sources = Sources(documents=Documents({}), web_pages=WebPages({}), image_classes=ImageClasses("train", "val"))
    pictures: Any = SimpleNamespace(sizes={})
    others = Sources(images=Images(pictures))
    assert (sources.documents.ids, sources.web_pages.ids, dict(sources.image_classes.classes)) == ((), (), {})
    parts = ("documents", "images", "image_classes")
    assert [part for part in parts if getattr(sources, f"has_{part}")] == ["documents", "image_classes"]
    assert [part for part in parts if getattr(others, f"has_{part}")] == ["images"]


def test_web_pages_stand_in_the_order_of_the_source_and_are_cut_into_passages() -> None:
    words = " ".join(["word"] * 59)
    pages = WebPages({"z": [f"One {words}. Two {words}.", Image("a.png")], "a": []})
    assert pages.ids == ("z", "a")
    assert pages.page("z") == (f"One {words}.", f"Two {words}.", Image("a.png"))
    assert pages.page("a") == ()


def test_rows_are_those_that_are_given() -> None:
    assert [row.id for row in Sources(rows=[Row(id="a"), Row(id="b")]).rows] == ["a", "b"]
    assert list(Sources().rows) == []


@pytest.mark.parametrize("right", [-1, 2, "A", None])
def test_a_right_answer_that_is_not_offered_is_refused(right: Any) -> None:
    with pytest.raises(ValueError, match=rf"the right answer is {right!r}, expected a place from 0 to 1"):
        Choices(("yes", "no"), right)


def test_answers_that_are_offered_are_of_one_kind_and_have_a_chance() -> None:
    with pytest.raises(ValueError, match="texts beside images"):
        Choices(("yes", Image("no.jpg")), 0)
    assert Choices(("a", "b", "c", "d"), 3).chance == 0.25

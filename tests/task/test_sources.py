import pytest

from mmlongbench import Document, Fault, Page, Rejected, World

PAGES = (Page(0, "docs/a/a_page0.jpg", 100, 200), Page(1, "docs/a/a_page1.jpg", 200, 100))
BROKEN = Fault("broken-document", "a PDF that can be opened", "none", "b.pdf")
WORLD = World(
    {"z": Document("z", "z", "22", ()), "a.1": Document("a.1", "a", "11", PAGES)},
    {"b": BROKEN},
)


def test_a_document_is_found_by_its_id_with_its_pages_in_order() -> None:
    assert WORLD.document("a.1").name == "a"
    assert WORLD.pages("a.1") == PAGES


def test_a_missing_document_rejects_the_question_that_asks_for_it() -> None:
    with pytest.raises(Rejected) as caught:
        WORLD.pages("../../etc/passwd")
    assert caught.value.fault == Fault(
        "missing-document", "a document '../../etc/passwd' among the sources", "none", field="doc"
    )


def test_a_refused_document_rejects_with_what_is_wrong_with_it() -> None:
    with pytest.raises(Rejected) as caught:
        WORLD.document("b")
    assert caught.value.fault == BROKEN


def test_the_pool_has_the_usable_documents_sorted() -> None:
    assert WORLD.pool("documents") == ("a.1", "z")


def test_sizes_are_known_by_path() -> None:
    assert WORLD.sizes == {"docs/a/a_page0.jpg": (100, 200), "docs/a/a_page1.jpg": (200, 100)}

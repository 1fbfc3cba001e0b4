"""The texts of pages that a release shows as images."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from asked_questions import asked

from mmlongbench.shortcuts import pages
from mmlongbench.shortcuts.pages import PageTexts
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit


def page(id: str, *texts: str, image: str = "") -> ShownUnit:
    return ShownUnit(id, "own", texts, (image,) if image else (), is_gold=False)


DATASETS = {
    "images": [asked("a", "?", page("d/1.jpg", "Document d: ", image="d/1.jpg"))] * 2,
    "passages": [asked("b", "?", page("40#1", "Title", "A passage"))] * 2,
    "texts": [
        asked("c", "?", page("d/1.jpg", "Document d: ", "The first page"), page("d/2.jpg", "Document d: ", "More"))
    ],
}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that were read, in order."""
    found: list[str] = []

    def questions(release: object, dataset: str) -> Iterator[AskedQuestion]:
        for each in DATASETS[dataset]:
            found.append(each.id)
            yield each

    monkeypatch.setattr(pages, "asked_questions", questions)
    return found


def test_an_image_has_the_text_of_the_same_page_in_another_dataset(read: list[str]) -> None:
    release: Any = SimpleNamespace(datasets=tuple(DATASETS))
    texts = PageTexts(release)
    assert texts.of(page("x", "Head", "Its own text")) == "Its own text"
    assert read == []  # nothing is read for texts
    assert texts.of(page("d/1.jpg", image="d/1.jpg")) == "The first page"
    assert texts.of(page("", image="d/2.jpg")) == "More"
    assert texts.of(page("e/1.jpg", image="e/1.jpg")) == ""
    assert read == ["a", "b", "c"]  # datasets without texts of pages are left after one question

"""The page store: reading several pages at once gives the same as reading each page alone."""

from pathlib import Path

import pymupdf
from tiny import draw_pdf

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_images import PageImages
from mmlongbench.documents.page_store import keys_and_texts_of, keys_of, texts_of

LIMITS = Limits()
SENTENCE = "A page of more than forty letters is told from others by its words."


def test_keys_and_texts_are_the_same_read_at_once_or_apart(tmp_path: Path) -> None:
    with pymupdf.open() as document:
        for text in (SENTENCE, "stamp", "", SENTENCE):
            document.new_page(width=400, height=200).insert_text((20, 40), text)
        document.save(tmp_path / "four.pdf")
    found = list(keys_and_texts_of(tmp_path / "four.pdf", LIMITS))
    assert [key for key, _ in found] == list(keys_of(tmp_path / "four.pdf", LIMITS))
    assert [text for _, text in found] == list(texts_of(tmp_path / "four.pdf", LIMITS))
    assert [bool(key) for key, _ in found] == [True, True, False, True]
    assert found[0] == found[3] != found[1]
    assert SENTENCE in found[0][1]


def test_images_of_pages_have_keys_and_no_text(tmp_path: Path) -> None:
    draw_pdf(tmp_path / "ash.pdf", 2)
    files = []
    with pymupdf.open(tmp_path / "ash.pdf") as document:
        for number, page in enumerate(document):
            files.append(tmp_path / f"{number}.png")
            page.get_pixmap(dpi=72).save(files[-1])
    pages = PageImages(tuple(files))
    assert list(keys_and_texts_of(pages, LIMITS)) == [(key, "") for key in keys_of(pages, LIMITS)]

"""The pages of a record that hold its answer: pictures of a release, or their texts. Paths are data.

A page is known by the folder it stands in, which is its document's, and the number in its name, never by its place
among the record's pages: documents of others stand around it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mmlongbench.io.folders import file_inside
from mmlongbench.metrics.judge.pictures import Picture, picture_of
from mmlongbench.task.rows import Record

MOST = 20
"""Pages that a judge is shown, the first of them."""
_PAGE = re.compile(r"page(\d{1,6})\.\w+$")
_SLIDE = re.compile(r"-(\d{1,6})-\d+\.\w+$")


@dataclass(frozen=True, slots=True)
class GoldPages:
    """What judges see of a document."""

    numbers: tuple[int, ...] = ()
    """Of the pictures, from 1."""
    pictures: tuple[Picture, ...] = ()
    texts: tuple[str, ...] = ()
    """Of pages, where there are no pictures."""

    @property
    def caption(self) -> str:
        """What is said of the pictures."""
        named = ", ".join(map(str, self.numbers))
        return f"The pictures are the document's pages {named}, in this order." if self.pictures else ""


def gold_pages(record: Record, images: Path | None) -> GoldPages:
    """The answer pages of a record, as pictures below a folder where they are there, else as texts of the record."""
    paths, texts = own_pages(record), own_texts(record)
    answers = [number for number in answer_pages(record) if number in paths]
    numbers = sorted(answers, key=list(paths).index)[:MOST]
    shown = {number: found for number in numbers if images and (found := _picture(images, paths[number]))}
    if shown:
        return GoldPages(tuple(1 + number for number in shown), tuple(shown.values()))
    return GoldPages(texts=tuple(texts[number] for number in numbers if number in texts))


def answer_pages(record: Record) -> list[int]:
    """Return the pages that hold the answer, from 0."""
    return sorted({number for number in _listed(record, "ans_page_list") if isinstance(number, int) and number >= 0})


def own_pages(record: Record) -> dict[int, str]:
    """Return the paths of the pages of a record's own document, by the pages' numbers, in the order of the record."""
    return {index: path for _, index, path in _own(record)}


def own_texts(record: Record) -> dict[int, str]:
    """Return the texts that a record holds of the pages of its own document, by the pages' numbers."""
    texts = _listed(record, "page_text_list")
    return {index: texts[at] for at, index, _ in _own(record) if at < len(texts) and isinstance(texts[at], str)}


def page_path(path: str, index: int) -> str:
    """Return the path of another page of the same document; empty where a name does not tell its page.

    >>> page_path("mmlongbench-doc/ab/ab_page12.jpg", 3), page_path("slideVQA/deck/a-deck-4-1024.jpg", 0)
    ('mmlongbench-doc/ab/ab_page3.jpg', 'slideVQA/deck/a-deck-1-1024.jpg')
    """
    found, number = _PAGE.search(path), index
    if not found:
        found, number = _SLIDE.search(path), index + 1
    return f"{path[: found.start(1)]}{number}{path[found.end(1) :]}" if found else ""


def page_index(path: str) -> int | None:
    """The page's number from 0 in its image's name, as the public files number: pages from 0, slides from 1.

    >>> page_index("mmlongbench-doc/ab/ab_page12.jpg"), page_index("slideVQA/deck/a-deck-4-1024.jpg"), page_index("x")
    (12, 3, None)
    """
    if found := _PAGE.search(path):
        return int(found[1])
    found = _SLIDE.search(path)
    return int(found[1]) - 1 if found else None


def _own(record: Record) -> Iterator[tuple[int, int, str]]:
    """Yield each page of a record's own document once: its place in the record, its number, its path."""
    seen: set[int] = set()
    for at, path in enumerate(_listed(record, "page_list")):
        index = page_index(path) if _is_own(path, record) else None
        if index is not None and index not in seen:
            seen.add(index)
            yield at, index, path


def _is_own(path: Any, record: Record) -> bool:  # noqa: ANN401  (a record may hold anything)
    return isinstance(path, str) and PurePosixPath(path).parent.name == record.get("doc_name")


def _listed(record: Record, field: str) -> Sequence[Any]:
    value = record.get(field)
    return value if isinstance(value, list) else []


def _picture(images: Path, path: str) -> Picture | None:
    file = file_inside(images, path)
    return picture_of(file) if file else None

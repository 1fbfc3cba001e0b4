"""The pages of a record that hold its answer: pictures of a release, or their texts. Paths are data.

A page is known by the folder it stands in, which is its document's, and the number in its name, never by its place
among the record's pages: documents of others stand around it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mmlongbench.scoring.judge.pictures import Picture, picture_of
from mmlongbench.sources import file_inside
from mmlongbench.task import Record

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
    paths, texts = _listed(record, "page_list"), _listed(record, "page_text_list")
    answers = {number for number in _listed(record, "ans_page_list") if isinstance(number, int)}
    places = [at for at, path in enumerate(paths) if _is_own(path, record) and page_index(path) in answers][:MOST]
    shown = {at: found for at in places if images and (found := _picture(images, paths[at]))}
    if shown:
        numbers = tuple(1 + (page_index(paths[at]) or 0) for at in shown)
        return GoldPages(numbers, tuple(shown.values()))
    return GoldPages(texts=tuple(texts[at] for at in places if at < len(texts) and isinstance(texts[at], str)))


def page_index(path: str) -> int | None:
    """The page's number from 0 in its image's name, as the public files number: pages from 0, slides from 1.

    >>> page_index("mmlongbench-doc/ab/ab_page12.jpg"), page_index("slideVQA/deck/a-deck-4-1024.jpg"), page_index("x")
    (12, 3, None)
    """
    if found := _PAGE.search(path):
        return int(found[1])
    found = _SLIDE.search(path)
    return int(found[1]) - 1 if found else None


def _is_own(path: Any, record: Record) -> bool:  # noqa: ANN401  (a record may hold anything)
    return isinstance(path, str) and PurePosixPath(path).parent.name == record.get("doc_name")


def _listed(record: Record, field: str) -> Sequence[Any]:
    value = record.get(field)
    return value if isinstance(value, list) else []


def _picture(images: Path, path: str) -> Picture | None:
    file = file_inside(images, path)
    return picture_of(file) if file else None

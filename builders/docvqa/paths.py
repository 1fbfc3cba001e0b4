"""Reads page numbers in the names of released images and in questions, and finds answer pages in a released record."""

import itertools
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import mmlongbench.task as mt
from builders.common.pages import PAGE, find_number

_SLIDE = re.compile(r"-(\d{1,6})-\d+\.\w+$")
_UPTO_TWELVE = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUMBER = rf"\(?(?:no\.?\s*|number\s+|#\s*)?(?:\d+|{_UPTO_TWELVE}|\w+teen|twenty|thirty|forty|fifty)\b"
_WORDS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_NTH = rf"(?:cover|title|{_WORDS}|last|final|penultimate|next|previous|\d+(?:st|nd|rd|th))"
NAMES_PAGE = re.compile(rf"\b(?:page|slide)s?\s*{_NUMBER}|\b{_NTH}\s+(?:page|slide)s?\b", re.IGNORECASE)
"""Matches words such as `page 3` or `the last slide` in a question; in a context, this page may be at another place."""


def page_index(path: str) -> int:
    """Return the number of a page, from 0, by the name of its image: `_page<N>` counts from 0, a slide's `-<N>-1024`
    from 1.

    >>> page_index("mmlongbench-doc/ab/ab_page12.jpg"), page_index("slideVQA/deck/a-deck-4-1024.jpg")
    (12, 3)
    """
    if (found := find_index(path)) is None:
        raise ValueError(f"{path}: expected a name that ends in page<N> or -<N>-1024")
    return found


def find_index(path: str) -> int | None:
    """Return the page's number like `page_index`; None if the name has none."""
    if (number := find_number(path)) is not None:
        return number
    found = _SLIDE.search(path)
    return int(found[1]) - 1 if found else None


def folder_of(path: str) -> str:
    """Return the name of the folder that a page's image is in; each document has a folder of its own.

    >>> folder_of("mmlongbench-doc/ab/ab_page12.jpg"), folder_of("ab_page12.jpg")
    ('ab', '')
    """
    folders, _, file = path.rpartition("/")
    folder = folders.rpartition("/")[2]
    is_plain = file not in ("", ".") and folder not in ("", ".")
    return folder if is_plain else PurePosixPath(path).parent.name  # this takes ten times as long


def path_of_page(path: str, index: int) -> str:
    """Return the path of the page `index` of the same document as the page `path`; empty if `path` has no page number.

    >>> path_of_page("mmlongbench-doc/ab/ab_page12.jpg", 3), path_of_page("slideVQA/deck/a-deck-4-1024.jpg", 0)
    ('mmlongbench-doc/ab/ab_page3.jpg', 'slideVQA/deck/a-deck-1-1024.jpg')
    """
    found, number = PAGE.search(path), index
    if not found:
        found, number = _SLIDE.search(path), index + 1
    return f"{path[: found.start(1)]}{number}{path[found.end(1) :]}" if found else ""


def evidence_positions(record: mt.Record) -> tuple[str, ...]:
    """Return where the answer pages of a released record are among the shown pages of their document.

    A position is `first`, `inner` or `last`; it is `only` if a single page of the document is shown. No position is
    repeated. Answer pages that are not shown have no position. The result is empty for a question without an answer.

    >>> pages = [f"docs/a/a_page{number}.jpg" for number in (3, 4, 5, 6)]
    >>> evidence_positions({"doc_name": "a", "page_list": ["docs/b/b_page0.jpg", *pages], "ans_page_list": [3, 5]})
    ('first', 'inner')
    """
    name = str(record.get("doc_name", "")).removesuffix(".pdf")
    own = [find_index(path) for path in record.get("page_list", ()) if folder_of(path) == name]
    places = [own.index(page) for page in record.get("ans_page_list", ()) if page in own]
    found = {_position(place, len(own)) for place in places}
    return tuple(position for position in ("first", "inner", "last", "only") if position in found)


def _position(place: int, count: int) -> str:
    if count == 1:
        return "only"
    return "first" if place == 0 else "last" if place == count - 1 else "inner"


def runs_between(shown: Sequence[int]) -> str:
    """Return the ranges of numbers that are missing between the shown ones, such as `1-2, 7-7`.

    The result is a string, because loaders would give a column of lists another type if all its lists were empty, as
    they are at long lengths.
    """
    return ", ".join(f"{a + 1}-{b - 1}" for a, b in itertools.pairwise(shown) if b > a + 1)

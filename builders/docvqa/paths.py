"""Page numbers in the names of released images, and in questions."""

import itertools
import re
from collections.abc import Sequence

_PAGE = re.compile(r"page(\d+)\.\w+$")
_SLIDE = re.compile(r"-(\d+)-\d+\.\w+$")
_UPTO_TWELVE = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUMBER = rf"\(?(?:no\.?\s*|number\s+|#\s*)?(?:\d+|{_UPTO_TWELVE}|\w+teen|twenty|thirty|forty|fifty)\b"
_WORDS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_NTH = rf"(?:cover|title|{_WORDS}|last|final|penultimate|next|previous|\d+(?:st|nd|rd|th))"
NAMES_PAGE = re.compile(rf"\b(?:page|slide)s?\s*{_NUMBER}|\b{_NTH}\s+(?:page|slide)s?\b", re.IGNORECASE)
"""Questions that name a page, which a context may show at another place."""


def page_index(path: str) -> int:
    """The page's number, from 0, in its image's name: `_page<N>` from 0, or a slide's `-<N>-1024` from 1.

    >>> page_index("mmlongbench-doc/ab/ab_page12.jpg"), page_index("slideVQA/deck/a-deck-4-1024.jpg")
    (12, 3)
    """
    if found := _PAGE.search(path):
        return int(found[1])
    if found := _SLIDE.search(path):
        return int(found[1]) - 1
    raise ValueError(f"{path}: expected a name that ends in page<N> or -<N>-1024")


def runs_between(shown: Sequence[int]) -> str:
    """Runs of numbers that are missing between the shown ones, such as `1-2, 7-7`.

    A string: loaders give a column of lists that are all empty, as at long lengths, another type.
    """
    return ", ".join(f"{a + 1}-{b - 1}" for a, b in itertools.pairwise(shown) if b > a + 1)

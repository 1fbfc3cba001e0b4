"""How many questions of each kind are wanted: MMLongBench-Doc's shares and its minima for each type of document."""

from collections.abc import Mapping
from dataclasses import dataclass

from mmlongbench.answers import AnswerFormat
from mmlongbench.questions.writing.lines import Kind

FORMATS: Mapping[AnswerFormat, float] = {"String": 0.291, "Integer": 0.348, "Float": 0.185, "List": 0.176}
"""The shares of formats among answerable questions (MMLongBench-Doc, Table 2)."""
UNANSWERABLE = 0.206
CROSS = 0.337
"""The shares of unanswerable and of cross-page questions among all (Table 2)."""
SINGLE = 1 - UNANSWERABLE - CROSS
SOURCES: Mapping[str, float] = {"Text": 0.355, "Layout": 0.139, "Table": 0.254, "Chart": 0.207, "Figure": 0.354}
"""The shares of evidence sources among answerable questions; a question may have several."""
MORE_THAN_TWO = 0.286
"""The share of cross-page questions with more than two evidence pages."""
FIFTH = (0.12, 0.30)
"""The smallest and the largest share of evidence pages in each fifth of the documents."""
MAX_A_PAGE = 2
"""The maximum number of questions about a page."""
MAX_EVIDENCE = 4
"""The maximum number of evidence pages of a question; more would not fit short contexts."""
WINDOWS = ((11, 2), (31, 4), (61, 6))
"""The pages of a window for a cross-page question, for documents with fewer pages than the first number."""
WIDEST_WINDOW = 8


@dataclass(frozen=True, slots=True)
class Minima:
    """The minimum numbers of questions about a document of one type (MMLongBench-Doc, Table 5)."""

    all: int
    cross: int = 0
    unanswerable: int = 0
    table: int = 0
    figure: int = 0
    """Charts and images together."""
    shown: int = 0
    """Tables, charts and images together, where the paper has one number for them."""


MINIMA: Mapping[str, Minima] = {
    "industr": Minima(3, cross=2),
    "administration": Minima(3, cross=2),
    "workshop": Minima(6, cross=2, unanswerable=1, shown=3),
    "tutorial": Minima(6, cross=2, unanswerable=1, shown=3),
    "research": Minima(5, cross=3, unanswerable=1, table=2, figure=2),
    "financial": Minima(10, cross=5, unanswerable=2, table=7),
    "academic": Minima(6, cross=3, unanswerable=1, table=2, figure=3),
    "guide": Minima(7, cross=3, unanswerable=1, figure=4),
    "brochure": Minima(7, cross=2, unanswerable=1, figure=3),
}
"""The minima by a part of the type's name in small letters."""
UNKNOWN = Minima(6, cross=2, unanswerable=1, table=2, figure=2)
"""The minima of a document of an unknown type; our choice."""


def minima_of(doc_type: str) -> Minima:
    """Return the minima of a type of document.

    >>> minima_of("Financial report").all, minima_of("Research report / Introduction").all, minima_of("").all
    (10, 5, 6)
    """
    name = doc_type.casefold()
    return next((minima for part, minima in MINIMA.items() if part in name), UNKNOWN)


def wanted_of(minima: Minima, pages: Mapping[Kind, int], per_document: int) -> dict[Kind, tuple[int, int]]:
    """Return how many questions of each kind are wanted of a document, and the minimum of each kind.

    Single-page questions are one third each about text, tables and figures, as far as the document has such pages; what
    it does not have is asked about the others.

    Args:
        minima: the minima of its type.
        pages: how many pages have each kind of content.
        per_document: the wanted number of questions; 0: the minimum.

    """
    total = max(per_document, minima.all)
    cross = max(minima.cross, round(CROSS * total))
    unanswerable = max(minima.unanswerable, round(UNANSWERABLE * total))
    single = max(total - cross - unanswerable, 0)
    least: dict[Kind, int] = {"table": minima.table, "figure": minima.figure}
    if minima.shown:  # half of what may be either of the two
        least = {"table": minima.shown // 2, "figure": minima.shown - minima.shown // 2}
    found: dict[Kind, tuple[int, int]] = {
        "cross": (cross, minima.cross),
        "unanswerable": (unanswerable, minima.unanswerable),
    }
    there: list[Kind] = [kind for kind in ("table", "figure", "text") if pages.get(kind)]
    layout = single // 8 if pages.get("layout") and single >= 8 else 0
    shares = dict.fromkeys(there, 0)
    for kind in there:
        shares[kind] = min(least.get(kind, 0), single) if kind != "text" else 0
    while there and sum(shares.values()) + layout < single:
        shares[min(there, key=lambda kind: (shares[kind], there.index(kind)))] += 1
    for kind in ("text", "table", "figure"):
        found[kind] = (max(shares.get(kind, 0), least.get(kind, 0)), least.get(kind, 0))
    found["layout"] = (layout, 0)
    return found


def window_of(pages: int) -> int:
    """Return how many pages the author of a cross-page question sees.

    >>> window_of(8), window_of(40), window_of(200)
    (2, 6, 8)
    """
    return min(pages, next((width for most, width in WINDOWS if pages < most), WIDEST_WINDOW))

"""The table of the examples of a dataset: what is filtered, in which order, and which page of it is shown."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mmlongbench.lengths import format_length
from mmlongbench.web.viewer.index_lines import IndexRow
from mmlongbench.web.viewer.site import Links, Site
from mmlongbench.web.viewer.sources import ViewedFile

PAGE = 50
"""The rows of a page."""
MAX_QUERY = 200
SORTS = ("id", "length", "placement", "question", "answer", "document", "tokens", "fill", "images", "score")
"""The columns by which a table is sorted; the default is the order of the files."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a reader wants to see of a table."""

    words: str = ""
    """Words that must all occur in a row, in any field."""
    length: str = ""
    """A length such as `8K`; empty: all."""
    sort: str = ""
    """A column of `SORTS`, with `-` before it for the reverse order."""
    page: int = 1
    facet: str = ""
    """A facet and one of its groups, such as `pages: 3`; empty: all."""
    placement: str = ""
    """A depth or a permutation, such as `0.4`; `~0.4`: the depths that a report rounds to 0.4; empty: all."""
    model: str = ""
    """The model whose scores sort the table; empty: the means of all models do."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "Query":
        """Return the query of an address; what cannot be used is left out."""
        sort = given.get("sort", "")
        page = given.get("page", "")
        number = int(page) if page.isascii() and page.isdecimal() and len(page) < 9 else 1
        return cls(
            given.get("q", "")[:MAX_QUERY],
            given.get("length", "")[:20],
            sort if sort.removeprefix("-") in SORTS else "",
            max(1, number),
            given.get("facet", "")[:MAX_QUERY],
            given.get("placement", "")[:20],
            given.get("model", "")[:MAX_QUERY],
        )


def table(site: Site, links: Links, dataset: str, query: Query, size: int = PAGE) -> dict[str, object]:
    """Return a page of the table of a dataset as JSON values."""
    found = [
        (file, row)
        for file in site.viewed.of(dataset)
        if query.length in ("", format_length(file.length))
        for row in _matching(site, file, query.words.casefold().split())
        if not query.facet or any(query.facet == f"{name}: {each}" for name in row.facets for each in row.facets[name])
    ]
    if query.placement:
        found = [pair for pair in found if query.placement in (_exact(pair[1]), _rounded(pair[1]))]
    if query.sort:
        column = query.sort.removeprefix("-")
        keys = {(file.number, row.row): _sort_key(site, file, row, column, query.model) for file, row in found}
        found.sort(key=lambda pair: keys[pair[0].number, pair[1].row], reverse=query.sort.startswith("-"))
    pages = max(1, -(-len(found) // size))
    page = min(query.page, pages)
    shown = found[(page - 1) * size : page * size]
    rows = [_cells(site, links, file, row) for file, row in shown]
    return {"total": len(found), "page": page, "pages": pages, "rows": rows}


def _matching(site: Site, file: ViewedFile, words: Sequence[str]) -> Iterator[IndexRow]:
    for row in site.index.file(file.number).rows:
        if not words or all(word in text for text in [_text(row)] for word in words):
            yield row


def _exact(row: IndexRow) -> str:
    return "" if row.placement is None else f"{round(row.placement, 6):g}"


def _rounded(row: IndexRow) -> str:
    """Return a depth as a report with many depths rounds it: to tenths, and a half to the even one."""
    if row.placement is None or not math.isfinite(row.placement):
        return ""
    return f"~{round(10 * row.placement) / 10:g}"


def _text(row: IndexRow) -> str:
    facets = (f"{name} {value}" for name, values in row.facets.items() for value in values)
    return "\n".join((row.id, row.placed, row.question, row.answer, row.document, *facets)).casefold()


def _sort_key(site: Site, file: ViewedFile, row: IndexRow, column: str, model: str) -> tuple[object, ...]:
    values: dict[str, object] = {
        "length": file.length,
        "placement": -1.0 if row.placement is None else row.placement,
        "tokens": row.tokens,
        "fill": _fill(file, row),
        "images": row.images,
    }
    if column == "score":
        score = site.answers.score(file, row, model if model in site.answers.models else "")
        return (-1.0 if score is None else score,)
    if column in values:
        return (values[column],)
    return natural(str(getattr(row, column)))


def natural(text: str) -> tuple[object, ...]:
    """Return a key that sorts numbers within texts by their values.

    >>> natural("doc_10") > natural("doc_9")
    True
    """
    parts: list[object] = []
    for piece in re.split(r"(\d+)", text.casefold()):
        parts += [0, int(piece), ""] if piece.isascii() and piece.isdecimal() and len(piece) < 19 else [1, 0, piece]
    return tuple(parts)


def _fill(file: ViewedFile, row: IndexRow) -> float:
    return (row.tokens + row.reserve) / file.length


def _cells(site: Site, links: Links, file: ViewedFile, row: IndexRow) -> dict[str, object]:
    scores = [site.answers.score(file, row, model) for model in site.answers.models]
    return {
        "url": links.example(file, row.row),
        "id": row.name,
        "length": format_length(file.length),
        "placement": row.placed,
        "question": row.fault or row.question,
        "fault": bool(row.fault),
        "answer": row.answer,
        "document": row.document,
        "facets": [f"{name}: {', '.join(values)}" for name, values in row.facets.items()],
        "tokens": row.tokens,
        "fill": round(_fill(file, row), 4),
        "images": row.images,
        "scores": [None if score is None else round(score, 4) for score in scores],
    }

"""Draws the slots: one place for each question, with its page, format and author, before any question is written.

Every draw is a hash of (seed, document, name), so another document changes no slot of this one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from mmlongbench.answers import AnswerFormat
from mmlongbench.draws import Draws
from mmlongbench.questions.writing.documents import ReadDocument
from mmlongbench.questions.writing.lines import Kind, PageLine, QuotaLine, Slot
from mmlongbench.questions.writing.quotas import FORMATS, MAX_A_PAGE, minima_of, wanted_of, window_of
from mmlongbench.questions.writing.settings import WritingSettings

_GOLDEN = 0.6180339887498949
"""The step between the drawn places of formats: shares are met in short rows, too."""
_KINDS: tuple[Kind, ...] = ("table", "figure", "text", "layout")
_UNSAFE = "abcdefghijklmnopqrstuvwxyz0123456789"


def pages_by_kind(pages: Sequence[PageLine]) -> dict[Kind, list[PageLine]]:
    """Return the pages that are worth asking about, by the kind of their content."""
    return {kind: [page for page in pages if page.worth > 0 and kind in page.kinds] for kind in _KINDS}


def quotas(document: ReadDocument, pages: Sequence[PageLine], settings: WritingSettings) -> list[QuotaLine]:
    """Return how many questions of each kind are wanted of a document, and how many slots it has for them."""
    by_kind = pages_by_kind(pages)
    counts = {kind: len(found) for kind, found in by_kind.items()}
    usable = sum(page.worth > 0 for page in pages)
    found = []
    for kind, (wanted, least) in wanted_of(minima_of(document.line.doc_type), counts, settings.per_document).items():
        most = _room(kind, counts, usable, settings.over)
        slots = min(ceil(wanted * settings.over), most)
        why = "" if slots >= wanted else _why_fewer(kind, counts, usable)
        if wanted or least:
            found.append(
                QuotaLine(doc=document.name, kind=kind, wanted=wanted, least=least, slots=slots, why_fewer=why)
            )
    return found


def _room(kind: Kind, counts: Mapping[Kind, int], usable: int, over: float) -> int:
    """Return for how many slots of a kind a document has pages."""
    a_page = ceil(MAX_A_PAGE * over)
    if kind == "cross":
        return max(usable - 1, 0) * a_page
    return usable * a_page if kind == "unanswerable" else counts.get(kind, 0) * a_page


def _why_fewer(kind: Kind, counts: Mapping[Kind, int], usable: int) -> str:
    if kind in ("cross", "unanswerable"):
        return f"{usable} pages are worth asking about"
    return f"{counts.get(kind, 0)} pages with this content"


def slots(
    document: ReadDocument, pages: Sequence[PageLine], wanted: Sequence[QuotaLine], settings: WritingSettings
) -> Iterator[Slot]:
    """Yield the slots of a document, in the order of their ids."""
    draws = Draws((settings.seed, document.line.sha256, "slots"))
    by_kind = pages_by_kind(pages)
    start, taken = draws.fraction("formats"), Counter[int]()
    fifths, numbers = Counter[int](), Counter[tuple[int, Kind]]()
    number = 0
    for quota in sorted(wanted, key=lambda quota: quota.kind):
        own = draws.at(quota.kind)
        for n in range(quota.slots):
            id = f"{_short(document)}-{quota.kind}-{n:03}"
            author = own.at(n).choice("author", settings.authors)
            if quota.kind == "unanswerable":
                yield Slot(id=id, doc=document.name, kind=quota.kind, format="None", pages=(), author=author, number=n)
                continue
            about = _about(quota.kind, document, pages, by_kind, own.at(n), taken, fifths)
            format = _format((start + number * _GOLDEN) % 1)
            number += 1
            yield Slot(
                id=id,
                doc=document.name,
                kind=quota.kind,
                format=format,
                pages=about,
                author=author,
                number=numbers[about[0], quota.kind],
            )
            taken[about[0]] += 1
            numbers[about[0], quota.kind] += 1
            fifths[_fifth(about[0], len(pages))] += 1


def _about(
    kind: Kind,
    document: ReadDocument,
    pages: Sequence[PageLine],
    by_kind: Mapping[Kind, Sequence[PageLine]],
    draws: Draws,
    taken: Mapping[int, int],
    fifths: Mapping[int, int],
) -> tuple[int, ...]:
    """Return the page, or the window of pages, of a slot. Pages with fewer slots come first, then those in the fifth of
    the document that has fewest, then those worth more; the rest is drawn.
    """
    count = len(document.pages)
    if kind == "cross":
        width = window_of(count)
        starts = [page.page for page in pages if page.worth > 0 and page.page + width - 1 <= count]
        starts = starts or [max(1, count - width + 1)]
        first = min(starts, key=lambda page: (taken[page], fifths[_fifth(page, count)], draws.rank("page", str(page))))
        return tuple(range(first, first + width))
    order = sorted(
        by_kind[kind],
        key=lambda page: (
            taken[page.page],
            fifths[_fifth(page.page, count)],
            -page.worth,
            draws.rank("page", str(page.page)),
        ),
    )
    return (order[0].page,)


def _fifth(page: int, count: int) -> int:
    return (page - 1) * 5 // max(count, 1)


def _format(at: float) -> AnswerFormat:
    """Return the format at a place between 0 and 1, by the shares of formats.

    >>> _format(0.0), _format(0.3), _format(0.7), _format(0.999)
    ('String', 'Integer', 'Float', 'List')
    """
    for format, share in FORMATS.items():
        if at < share:
            return format
        at -= share
    return "List"


def _short(document: ReadDocument) -> str:
    """Return the beginning of the ids of a document's slots: a part of its name, and of its hash."""
    name = "".join(letter for letter in document.name.casefold() if letter in _UNSAFE)[:16]
    return f"{name or 'doc'}-{document.line.sha256[:8]}"

"""What models answer in several contexts of a release, as one HTML page: what is needed, the scores in each context,
the differences, and the questions that are answered blind. The page needs no network and no other files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mmlongbench.lengths import format_length
from mmlongbench.shortcuts.contexts.blind import MAX_LUCK
from mmlongbench.shortcuts.contexts.needs import MARGIN
from mmlongbench.shortcuts.contexts.results import ContextAudit, ContextRow, Difference, NeedVerdict
from mmlongbench.statistics import LEVEL, MIN_CLUSTERS, RESAMPLES
from mmlongbench.web.intervals import Interval, Look, interval
from mmlongbench.web.kit import Section, render
from mmlongbench.web.numbers import points

VERDICTS: Mapping[NeedVerdict, str] = {"does not need": "■", "undecided": "◪", "needs": "□"}
"""A mark for each verdict, what is bad first; the marks differ without colours."""
LISTED = 500
"""The most questions answered blind that a page lists for a dataset."""
_LOOKS: Mapping[NeedVerdict, Look] = {"does not need": "sure", "undecided": "dashed", "needs": "open"}


@dataclass(frozen=True, slots=True)
class _Compared:
    """A difference with the group that it is about."""

    row: ContextRow
    found: Difference

    @property
    def place(self) -> int:
        """Return the place of the verdict in the order of the table."""
        need = self.found.need
        return list(VERDICTS).index(need.verdict) if need else len(VERDICTS)


def contexts_page(title: str, audit: ContextAudit) -> Iterator[str]:
    """Yield the page of an audit of contexts in pieces."""
    return render(
        "contexts.html",
        title=title,
        sections=list(_sections(audit)),
        audit=audit,
        whole=[each for each in audit.rows if not each.facet],
        groups=[each for each in audit.rows if each.facet],
        compared=_compared,
        has_verdicts=_has_verdicts,
        means=means,
        group=group,
        name=name,
        bar=bar,
        share=share,
        ends=ends,
        marks=VERDICTS,
        listed=LISTED,
        level=f"{LEVEL:.0%}",
        resamples=RESAMPLES,
        margin=f"{100 * MARGIN:g}",
        luck=f"{MAX_LUCK:.0%}",
        min_clusters=MIN_CLUSTERS,
    )


def _sections(audit: ContextAudit) -> Iterator[Section]:
    """Yield the sections that have content."""
    if any(each.differences for each in audit.rows):
        yield Section("needs", "What is needed")
    yield Section("scores", "Scores in each context")
    if any(each.facet for each in audit.rows):
        yield Section("facets", "By facet", [(model, "") for model in audit.models])
    if audit.blind_counts:
        yield Section("blind", "Answered without the context")
    if audit.notes:
        yield Section("noted", "Notes")


def _compared(rows: Sequence[ContextRow]) -> list[_Compared]:
    """Return all differences of some groups; what is not needed first, then what is undecided."""
    found = [_Compared(row, each) for row in rows for each in row.differences]
    return sorted(found, key=lambda each: (each.place, each.row.length is not None))


def _has_verdicts(rows: Sequence[ContextRow]) -> bool:
    return any(row.differences for row in rows)


def means(row: ContextRow, contexts: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (score, interval, sorting key) of a group in each context; empty texts if there is none."""
    found = {each.context: each for each in row.means}
    there = (found.get(context) for context in contexts)
    return [(points(e.mean), ends(e.low, e.high), str(e.mean)) if e else ("", "", "-1") for e in there]


def group(row: ContextRow) -> tuple[str, str, int]:
    """Return (length, group, number to sort by) of a row."""
    length = "all" if row.length is None else format_length(row.length)
    return length, f"{row.facet}: {row.value}" if row.facet else "all", row.length or 0


def name(context: str) -> str:
    """Return the name of a context; the released prompt has the name `full`."""
    return context or "full"


def bar(found: Difference) -> Interval | None:
    """Return the interval of a difference; None if there are too few clusters for one."""
    if found.low is None or found.high is None:
        return None
    return interval(found.low, found.high, found.mean, _LOOKS[found.need.verdict] if found.need else "open")


def share(value: float | None) -> str:
    """Return a share in percent; a dash if there is none.

    >>> share(0.256), share(None)
    ('26 %', '–')
    """
    return "–" if value is None else f"{100 * value:.0f} %".replace("-", "−")


def ends(low: float | None, high: float | None) -> str:
    """Return the ends of an interval of scores, as points.

    >>> ends(0.1, 0.25), ends(None, None)
    ('10.0–25.0', '–')
    """
    return "–" if low is None or high is None else f"{points(low)}–{points(high)}"

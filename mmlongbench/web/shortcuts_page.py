"""The shortcut audit as HTML pages that need no network and no other files: what tells an answer without looking, and
what models answer in several contexts. Their only script sorts tables.
"""

from collections.abc import Iterator, Mapping, Sequence

from mmlongbench.documents.image_urls import ImageUrls
from mmlongbench.errors import ReleaseError
from mmlongbench.lengths import format_length
from mmlongbench.shortcuts.audit import SeenQuestion, ShortcutAudit
from mmlongbench.shortcuts.blind import MAX_LUCK, BlindCounts
from mmlongbench.shortcuts.contexts import MARGIN, ContextAudit, ContextRow, Difference
from mmlongbench.shortcuts.difficulty import difficulty_table
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.statistics import LEVEL, MIN_CLUSTERS, RESAMPLES
from mmlongbench.table import Cell, Table, Value
from mmlongbench.web.charts import IntervalLook, interval_bar
from mmlongbench.web.kit import Section, html, points, render

MAX_IMAGES = 240
"""The most images in a page."""
MAX_PIXELS = 40_000
"""The most pixels of an image in a page; a larger one is made smaller."""
MAX_URL = 96 * 1024
"""The most characters of an image in a page. An image that has more, although it is small, is only named."""
_LISTED = 500
"""The most questions answered blind that a page lists for a dataset."""
_VERDICTS: Mapping[str, tuple[int, str, str, IntervalLook]] = {
    "leak": (0, "■", "leak", "sure"),
    "does not need": (0, "■", "leak", "sure"),
    "undecided": (1, "◪", "undecided", "dashed"),
    "clean": (2, "□", "clean", "open"),
    "needs": (2, "□", "clean", "open"),
}
"""The place in a table, the mark, the class of the stylesheet and the interval of each verdict; marks and intervals
differ without colours."""


def verdict(name: str, what: str = "") -> str:
    """Return a verdict with its mark, and what it is about, as HTML."""
    _, mark, look, _ = _VERDICTS[name]
    return html("verdict", look, mark, name, what)


def shortcuts_page(
    title: str, audit: ShortcutAudit, seen: Mapping[tuple[str, str], Sequence[SeenQuestion]], urls: ImageUrls
) -> Iterator[str]:
    """Yield the page of an audit in pieces. `seen` are the questions to look at, by dataset and kind; `urls` gives
    images as data URIs.
    """
    leaks, left, known = audit.leaks, MAX_IMAGES, dict[str, str]()

    def url(path: str) -> str:
        """Return an image; nothing after `MAX_IMAGES` of them, or if it is too large or cannot be read."""
        nonlocal left
        if not left:
            return ""
        if path not in known:
            try:
                found = urls(path)
            except ReleaseError:
                found = ""
            known[path] = found if len(found) <= MAX_URL else ""
        left -= bool(known[path])
        return known[path]

    sections = [
        (bool(audit.findings), Section("findings", "What tells")),
        (bool(leaks), Section("leaks", "Leaks to look at", [(leak.kind, leak.dataset) for leak in leaks])),
        (bool(audit.difficulties), Section("difficulty", "How hard gold is to find")),
        (bool(audit.notes), Section("untried", "Not tried")),
        (True, Section("reading", "How to read this page")),
    ]
    return render(
        "shortcuts.html",
        title=title,
        sections=[section for is_there, section in sections if is_there],
        audit=audit,
        leaks=leaks,
        findings=_findings(audit.findings),
        counts={name: sum(each.verdict == name for each in audit.findings) for name in ("leak", "undecided", "clean")},
        verdict=verdict,
        seen=[seen.get((leak.dataset, leak.kind), ()) for leak in leaks],
        url=url,
        difficulty=difficulty_table(audit.difficulties),
        most_images=MAX_IMAGES,
    )


def _findings(findings: Sequence[Finding]) -> Table:
    """Return leaks first, then what is undecided; those with the largest excess first."""
    rows: list[Sequence[Value]] = []
    for each in sorted(findings, key=lambda each: (_VERDICTS[each.verdict][0], -each.excess)):
        place, _, _, look = _VERDICTS[each.verdict]
        is_open = each.verdict == "undecided"
        rows.append(
            (
                Cell(verdict(each.verdict), key=place),
                each.dataset,
                Cell(f"{each.length // 1024}K" if each.length else "", key=each.length),
                each.kind,
                each.questions,
                Cell(points(each.found), key=each.found),
                Cell(points(each.chance), key=each.chance),
                Cell(interval_bar(each.low, each.high, each.excess, look), key=each.excess),
                Cell(points(each.smallest) if is_open and each.smallest is not None else "", key=each.smallest or 0),
                Cell(f"{each.needed:,}" if is_open and each.needed else "", key=each.needed or 0),
            )
        )
    columns = ("verdict", "dataset", "at", "what tells", "n", "found", "chance", "excess", "shows", "needed")
    return Table(columns, rows, align="llrlrrrlrr")


# Contexts.


def contexts_page(title: str, audit: ContextAudit) -> Iterator[str]:
    """Yield the page of an audit of contexts in pieces: what is needed, the scores in each context, the differences,
    and the questions that are answered blind.
    """
    whole = [row for row in audit.rows if not row.facet]
    sections = [
        (any(row.differences for row in audit.rows), Section("needs", "What is needed")),
        (True, Section("scores", "Scores in each context")),
        (len(whole) < len(audit.rows), Section("facets", "By facet", [(model, "") for model in audit.models])),
        (bool(audit.blind_counts), Section("blind", "Answered without the context")),
        (bool(audit.notes), Section("noted", "Notes")),
    ]
    facets = []
    for model in audit.models:
        rows = [row for row in audit.rows if row.facet and row.model == model]
        differences = _differences(rows, has_groups=True) if any(row.differences for row in rows) else None
        facets.append((model, len(rows), _scores(rows, audit.contexts, has_groups=True), differences))
    return render(
        "contexts.html",
        title=title,
        sections=[section for is_there, section in sections if is_there],
        audit=audit,
        needs=_differences(whole),
        scores=_scores(whole, audit.contexts),
        facets=facets,
        blind_counts=Table(
            ("dataset", "asked", "all answers right", "two answers offered", "listed", "expected by luck"),
            [(each.dataset, *_counts(each)) for each in audit.blind_counts],
        ),
        blind=[(dataset, count, table) for dataset, count, table in _blind(audit) if count],
        listed=_LISTED,
        level=f"{LEVEL:.0%}",
        resamples=RESAMPLES,
        margin=f"{100 * MARGIN:g}",
        luck=f"{MAX_LUCK:.0%}",
        min_clusters=MIN_CLUSTERS,
    )


def _group(row: ContextRow, *, has_groups: bool) -> tuple[Value, ...]:
    """Return the dataset, the model, the length and, if rows are groups of a facet, the group."""
    length = "all" if row.length is None else format_length(row.length)
    group = (f"{row.facet}: {row.value}",) if has_groups else ()
    return row.dataset, row.model, Cell(length, key=row.length or 0), *group


def _differences(rows: Sequence[ContextRow], *, has_groups: bool = False) -> Table:
    """Return all differences of some groups; what is not needed first, then what is undecided."""

    def order(pair: tuple[ContextRow, Difference]) -> tuple[int, bool]:
        row, found = pair
        return _VERDICTS[found.need.verdict][0] if found.need else 3, row.length is not None

    lines: list[Sequence[Value]] = []
    pairs = [(row, found) for row in rows for found in row.differences]
    for row, found in sorted(pairs, key=order):
        need, name = found.need, Cell(key=3)
        if need:
            place, _, _, look = _VERDICTS[need.verdict]
            what = f"{':' if need.verdict == 'undecided' else ''} the {need.part}"
            more = f"; about {need.needed:,} questions would decide" if need.needed else ""
            name = Cell(verdict(need.verdict, what), [need.reason + more] if need.reason else [], key=place)
        mean = Cell(points(found.mean), key=found.mean)
        if found.low is not None and found.high is not None:
            mean = mean._replace(text=interval_bar(found.low, found.high, found.mean, look if need else "open"))
        survival = Cell("–", key=-9)
        if found.survival is not None:
            ends = (found.survival_low, found.survival_high)
            between = [f"{_share(ends[0])} to {_share(ends[1])}"] if None not in ends else []
            survival = Cell(_share(found.survival), between, key=found.survival)
        scores = (Cell(points(score), key=score) for score in (found.full, found.other))
        group = _group(row, has_groups=has_groups)
        lines.append((name, *group, found.context or "full", found.questions, *scores, mean, survival))
    columns = ("verdict", "dataset", "model", "length", *(("group",) if has_groups else ()), "full −", "n")
    align = f"llll{'l' if has_groups else ''}lrrrlr"
    return Table((*columns, "full", "other", "difference", "survival"), lines, align=align)


def _scores(rows: Sequence[ContextRow], contexts: Sequence[str], *, has_groups: bool = False) -> Table:
    lines: list[Sequence[Value]] = []
    for row in rows:
        cells, means = list[Cell](), {each.context: each for each in row.means}
        for context in contexts:
            mean = means.get(context)
            if mean is None:
                cells.append(Cell(key=-1))
                continue
            between = "–" if mean.low is None or mean.high is None else f"{points(mean.low)}–{points(mean.high)}"
            cells.append(Cell(points(mean.mean), [between], key=mean.mean))
        chance = Cell(points(row.chance), key=row.chance)
        lines.append((*_group(row, has_groups=has_groups), chance, *cells))
    columns = ("dataset", "model", "length", *(("group",) if has_groups else ()), "chance")
    align = "lll" + ("l" if has_groups else "")
    return Table((*columns, *(context or "full" for context in contexts)), lines, align=align)


def _counts(counts: BlindCounts) -> tuple[Value, ...]:
    luck = Cell(f"{counts.by_luck:.1f}", key=counts.by_luck)
    return counts.questions, counts.right, counts.binary, counts.listed, luck


def _blind(audit: ContextAudit) -> Iterator[tuple[str, int, Table]]:
    """Yield the questions that are answered blind: (dataset, how many, a table of the first ones)."""
    for counts in audit.blind_counts:
        own = [each for each in audit.blind if each.dataset == counts.dataset]
        rows = [
            (each.id, each.right, each.answers, Cell(f"{each.luck:.4f}", key=each.luck), ", ".join(each.models))
            for each in own[:_LISTED]
        ]
        yield counts.dataset, len(own), Table(("question", "right", "answers", "luck", "models"), rows, align="lrrrl")


def _share(value: float | None) -> str:
    """Return a share in percent, with a minus sign as wide as a digit."""
    return "–" if value is None else f"{100 * value:.0f} %".replace("-", "−")

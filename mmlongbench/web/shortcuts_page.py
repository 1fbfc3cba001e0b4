"""The shortcut audit as one HTML page: the verdict, a table of all findings, and for each leak questions to look at.

The page needs no network and no other files; small copies of images are in it. Its only script sorts tables.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from mmlongbench.documents.image_urls import ImageUrls
from mmlongbench.errors import ReleaseError
from mmlongbench.shortcuts.audit import SeenQuestion, ShortcutAudit
from mmlongbench.shortcuts.difficulty import difficulty_table
from mmlongbench.shortcuts.findings import Finding, Verdict
from mmlongbench.web.intervals import Interval, Look, interval
from mmlongbench.web.kit import Section, render

MAX_IMAGES = 240
"""The most images in a page."""
MAX_PIXELS = 40_000
"""The most pixels of an image in a page; a larger one is made smaller."""
MAX_URL = 96 * 1024
"""The most characters of an image in a page. An image that has more, although it is small, is only named."""
Seen = Mapping[tuple[str, str], Sequence[SeenQuestion]]
"""The questions to look at, by dataset and kind."""
VERDICTS: Mapping[Verdict, str] = {"leak": "■", "undecided": "◪", "clean": "□"}
"""A mark for each verdict, in the order of the table; the marks differ without colours."""
_LOOKS: Mapping[Verdict, Look] = {"leak": "sure", "undecided": "dashed", "clean": "open"}


def shortcuts_page(title: str, audit: ShortcutAudit, seen: Seen, urls: ImageUrls) -> Iterator[str]:
    """Yield the page of an audit in pieces.

    Args:
        title: the heading of the page.
        audit: what the audit found.
        seen: the questions to look at.
        urls: gives images as data URIs.

    """
    leaks = audit.leaks
    return render(
        "shortcuts.html",
        title=title,
        sections=list(_sections(audit)),
        audit=audit,
        leaks=leaks,
        findings=_in_order(audit.findings),
        counts={verdict: sum(each.verdict == verdict for each in audit.findings) for verdict in VERDICTS},
        marks=VERDICTS,
        places={verdict: place for place, verdict in enumerate(VERDICTS)},
        bar=bar,
        seen={place: seen.get((each.dataset, each.kind), ()) for place, each in enumerate(leaks)},
        url=_bounded(urls),
        difficulty=difficulty_table(audit.difficulties),
        most_images=MAX_IMAGES,
    )


def _sections(audit: ShortcutAudit) -> Iterator[Section]:
    """Yield the sections that have content."""
    if audit.findings:
        yield Section("findings", "What tells")
    if audit.leaks:
        yield Section("leaks", "Leaks to look at", [(each.kind, each.dataset) for each in audit.leaks])
    if audit.difficulties:
        yield Section("difficulty", "How hard gold is to find")
    if audit.notes:
        yield Section("untried", "Not tried")
    yield Section("reading", "How to read this page")


def _in_order(findings: Sequence[Finding]) -> list[Finding]:
    """Return leaks first, then what is undecided; those with the largest excess first."""
    order = list(VERDICTS)
    return sorted(findings, key=lambda each: (order.index(each.verdict), -each.excess))


def bar(found: Finding) -> Interval:
    """Return the interval of a finding's excess above chance."""
    return interval(found.low, found.high, found.excess, _LOOKS[found.verdict])


def _bounded(urls: ImageUrls) -> Callable[[str], str]:
    """Return a function that gives the data URI of an image; it is empty after `MAX_IMAGES` images, and for an image
    that is too large or cannot be read.
    """
    known: dict[str, str] = {}
    left = MAX_IMAGES

    def url(path: str) -> str:
        nonlocal left
        if left and path not in known:
            known[path] = _url(urls, path)
        found = known.get(path, "") if left else ""
        left -= bool(found)
        return found

    return url


def _url(urls: ImageUrls, path: str) -> str:
    try:
        found = urls(path)
    except ReleaseError:
        return ""
    return found if len(found) <= MAX_URL else ""

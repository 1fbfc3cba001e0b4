"""Finds the pages of a subject in the contexts of the release: only what the index knows is shown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mmlongbench.errors import MMLongBenchError
from mmlongbench.task.metric import Evidence
from mmlongbench.web.viewer.index_lines import IndexRow
from mmlongbench.web.viewer.records import example_of
from mmlongbench.web.viewer.review import Subject
from mmlongbench.web.viewer.site import Site
from mmlongbench.web.viewer.sources import ViewedFile

MAX_PAGES = 24
"""The most pages that are shown beside an answer."""
MAX_EXAMPLES = 12
"""The most examples whose records are read to find them."""


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page of the document, as a context of the release shows it."""

    number: int
    """Its number, from 1."""
    is_claimed: bool
    """Whether the source says that the answer is there."""
    is_proposed: bool
    """Whether it is proposed instead."""
    file: ViewedFile | None = None
    """The file of an example that shows it; None if none does."""
    path: str = ""
    """The path of its image; empty if it is shown as a text, or not at all."""
    image: int = -1
    """The number of its image in the index of the file."""
    text: str = ""
    joined: tuple[int, int] | None = None
    """The first and the last page that the image shows, from 1, if it joins pages."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside a claimed answer."""

    pages: tuple[ShownPage, ...]
    example: tuple[ViewedFile, int] | None
    """The example of the subject, the shortest one; None if the release has none."""


def beside(site: Site, subject: Subject) -> Beside:
    """Return the pages that a subject names, as far as a context of the release shows them.

    The longest example of the subject comes first, then other examples about the same document.
    """
    found = list(_examples(site, subject))
    own = [(file, row) for file, row, is_own in found if is_own]
    claimed = list(subject.pages)
    shown: dict[int, ShownPage] = {}
    for file, row, is_own in islice(found, MAX_EXAMPLES):
        evidence = _evidence(site, file, row)
        if evidence is None:
            continue
        if is_own and not claimed:
            claimed = [page + 1 for page in (evidence.document_pages or evidence.pages)]
        wanted = _wanted(claimed, subject.proposed)
        for page in wanted:
            if page not in shown and (made := _page(site, file, evidence, page, claimed, subject.proposed)):
                shown[page] = made
        if wanted and all(page in shown for page in wanted):
            break
    pages = tuple(
        shown.get(page) or ShownPage(page, page in claimed, page in subject.proposed)
        for page in _wanted(claimed, subject.proposed)
    )
    return Beside(pages, (own[-1][0], own[-1][1].row) if own else None)


def _wanted(claimed: Sequence[int], proposed: Sequence[int]) -> list[int]:
    """Return the pages to show, claimed ones first."""
    return list(dict.fromkeys([*claimed, *proposed]))[:MAX_PAGES]


def _examples(site: Site, subject: Subject) -> Iterator[tuple[ViewedFile, IndexRow, bool]]:
    """Yield the examples of a subject, the longest first, then those about its document."""
    files = [each for each in site.viewed.files if subject.dataset in ("", each.dataset)]
    ordered = sorted(files, key=lambda file: -file.length)
    others, document = list[tuple[ViewedFile, IndexRow, bool]](), subject.document.removesuffix(".pdf")
    for file in ordered:
        for row in site.index.file(file.number).rows:
            if row.fault:
                continue
            if row.id == subject.id:
                document = row.document or document
                yield file, row, True
            elif row.document:
                others.append((file, row, False))
    yield from (each for each in others if document and each[1].document in (document, f"{document}.pdf"))


def _evidence(site: Site, file: ViewedFile, row: IndexRow) -> Evidence | None:
    try:
        record = site.index.record(file.number, row)
        return example_of(site.viewed, file, dict(record), f"{file.name}, {row.id}").evidence
    except MMLongBenchError:
        return None


def _page(
    site: Site, file: ViewedFile, evidence: Evidence, page: int, claimed: Sequence[int], proposed: Sequence[int]
) -> ShownPage | None:
    number = _shown_as(evidence, page - 1)
    if number is None:
        return None
    path, text = evidence.images.get(number, ""), evidence.texts.get(number, "")
    first, last = evidence.joined.get(number, (0, 0))
    joined = (first + 1, last + 1) if evidence.joined else None
    images = site.index.images(file.number)
    if path in images:
        image = images.index(path)
        return ShownPage(page, page in claimed, page in proposed, file, path, image, joined=joined)
    if text:
        return ShownPage(page, page in claimed, page in proposed, file, text=text)
    return None


def _shown_as(evidence: Evidence, page: int) -> int | None:
    """Return the number by which evidence names a page of the document: its own, or that of the joined image."""
    if not evidence.joined:
        return page
    return next((number for number, (first, last) in evidence.joined.items() if first <= page <= last), None)

"""The page of the release: its datasets and lengths, what was left out, shortcuts, its lock, and differences to another
release; and the page of rejects.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pydantic import JsonValue, TypeAdapter, ValidationError

from mmlongbench.io.files import bounded_lines
from mmlongbench.lengths import format_length
from mmlongbench.release.lock import CellCounts, DatasetCounts, UnreadableCounts
from mmlongbench.web.kit import Section, render
from mmlongbench.web.viewer.site import Links, Site

MAX_REJECTS = 500
"""The most rejects that a page shows."""
_LINE = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class Cell:
    """A dataset at one length."""

    length: str
    file: str
    examples: int
    fill: float
    """The mean fill."""
    images: float
    """The mean number of images."""
    faults: int
    """The records that cannot be read."""
    counts: CellCounts | None
    """What the lock counts; None if it counts nothing."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset of the release."""

    name: str
    url: str
    cells: tuple[Cell, ...]
    counts: DatasetCounts | None
    fault: str
    """Why its counts cannot be read."""


@dataclass(frozen=True, slots=True)
class RejectLine:
    """A line of `rejects.jsonl`."""

    number: int
    """The number of the line, from 1."""
    dataset: str
    id: str
    reason: str
    where: str
    """The file and the place of the raw row."""
    raw: str
    """The line as it is, indented."""


def release_page(site: Site, links: Links) -> Iterator[str]:
    """Yield the page of the release in pieces."""
    datasets = [_dataset(site, links, number) for number in range(len(site.viewed.datasets))]
    return render(
        "view_release.html",
        title=site.viewed.name,
        site=site,
        links=links,
        datasets=datasets,
        sections=list(_sections(site, datasets)),
        sources=list(_sources(site)),
        anchor=reject_anchor,
    )


def _sections(site: Site, datasets: list[Dataset]) -> Iterator[Section]:
    """Yield the sections that have content."""
    yield Section("datasets", "Datasets")
    if any(each.counts and (each.counts.questions.rejected or each.counts.questions.skipped) for each in datasets):
        yield Section("rejects", "Left out")
    if site.findings:
        yield Section("shortcuts", "Shortcuts")
    if site.against:
        yield Section("differences", "Differences")
    if site.viewed.lock_id:
        yield Section("lock", "Lock")


def _dataset(site: Site, links: Links, number: int) -> Dataset:
    name = site.viewed.datasets[number]
    counts = site.viewed.counts.get(name)
    readable = counts if isinstance(counts, DatasetCounts) else None
    cells = []
    for file in site.viewed.of(name):
        head = site.index.head(file.number)
        length, rows = format_length(file.length), max(1, head.rows)
        cells.append(
            Cell(
                length=length,
                file=file.name,
                examples=head.rows,
                fill=head.fill_sum / rows,
                images=head.image_sum / rows,
                faults=head.faults,
                counts=readable.cells.get(length) if readable else None,
            )
        )
    fault = counts.fault if isinstance(counts, UnreadableCounts) else ""
    return Dataset(name, links.dataset(number), tuple(cells), readable, fault)


def _sources(site: Site) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each dataset with what the lock says about how it was made: (name, value)."""
    for data in site.viewed.manifest:
        said = [(key, _short(value)) for key, value in data.items() if key != "name" and value not in (None, {}, [])]
        yield str(data.get("name")), said


def _short(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:299]}…"


def rejects_page(site: Site, links: Links) -> Iterator[str]:
    """Yield the page of rejects in pieces: every reject with its raw row, by dataset and reason."""
    lines = list(islice(read_reject_lines(site), MAX_REJECTS + 1))
    groups: dict[tuple[str, str], list[RejectLine]] = {}
    for line in lines[:MAX_REJECTS]:
        groups.setdefault((line.dataset, line.reason), []).append(line)
    return render(
        "view_rejects.html",
        title="Left out",
        site=site,
        links=links,
        groups=groups,
        most=MAX_REJECTS,
        has_more=len(lines) > MAX_REJECTS,
        anchor=reject_anchor,
    )


def reject_anchor(site: Site, dataset: str, reason: str) -> str:
    """Return the anchor of the rejects of a dataset with a reason."""
    names = site.viewed.datasets
    slug = "".join(each if each.isascii() and each.isalnum() else "-" for each in reason)
    return f"r{names.index(dataset) if dataset in names else 'x'}-{slug}"


def read_reject_lines(site: Site) -> Iterator[RejectLine]:
    """Yield the lines of `rejects.jsonl`; a line that cannot be read is shown as it is."""
    path = site.viewed.rejects
    if path is None:
        return
    with path.open("rb") as file:
        for number, _, line in bounded_lines(file):
            if line is None or not line.strip():
                continue
            try:
                found = _LINE.validate_json(line)
            except ValidationError:
                found = {}
            raw = json.dumps(found, ensure_ascii=False, indent=1) if found else line.decode("utf-8", "replace")
            where = ", ".join(str(found[key]) for key in ("file", "place", "field") if found.get(key))
            yield RejectLine(
                number,
                str(found.get("dataset", "")),
                str(found.get("id", "")),
                str(found.get("reason", "unreadable")),
                where,
                raw[:20_000],
            )

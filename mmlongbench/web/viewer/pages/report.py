"""The page of the score report: curves over lengths and depths, in which each point leads to its examples."""

from collections.abc import Iterator
from itertools import groupby
from urllib.parse import urlencode

from mmlongbench.errors import ReleaseError
from mmlongbench.web.kit import Section, render
from mmlongbench.web.viewer.curves import Curves, Figure, Point, read_curves
from mmlongbench.web.viewer.site import Links, Site

_PARTS = {"datasets": "Datasets by length", "depth": "By depth", "facets": "By facet"}


def report_page(site: Site, links: Links) -> Iterator[str]:
    """Yield the page of the report in pieces.

    Raises:
        MMLongBenchError: no scores were given, or they contradict each other.

    """
    if not site.answers.score_paths:
        raise ReleaseError("there are no scores: start the viewer with --predictions or --scores")
    found = read_curves(site.answers.score_paths)
    parts = _parts(found)
    return render(
        "view_report.html",
        title="Report",
        site=site,
        links=links,
        curves=found,
        sections=[Section(part, name) for part, name in _PARTS.items() if part in parts],
        parts=parts,
        target=lambda figure, point: target(site, links, figure, point),
    )


def _parts(found: Curves) -> dict[str, list[tuple[str, list[Figure]]]]:
    """Return the figures of each part, by heading."""
    return {
        part: [(heading, list(each)) for heading, each in groupby(those, key=lambda figure: figure.heading)]
        for part, those in groupby(found.figures, key=lambda figure: figure.part)
    }


def target(site: Site, links: Links, figure: Figure, point: Point) -> str:
    """Return the address of the examples of a point, worst first; empty if the release lacks the dataset."""
    names = site.viewed.datasets
    if figure.dataset not in names:
        return ""
    is_depth = figure.part == "depth"
    query = {
        "length": figure.value if is_depth else point.column,
        "placement": point.column if is_depth else "",
        "facet": f"{figure.facet}: {figure.value}" if figure.facet else "",
        "sort": "score",
    }
    kept = urlencode({name: value for name, value in query.items() if value})
    return f"{links.dataset(names.index(figure.dataset))}#{kept}"

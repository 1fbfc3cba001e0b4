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
        target=lambda figure, point, model: target(site, links, figure, point, model),
    )


def _parts(found: Curves) -> dict[str, list[tuple[str, list[Figure]]]]:
    """Return the figures of each part, by heading."""
    return {
        part: [(heading, list(each)) for heading, each in groupby(those, key=lambda figure: figure.heading)]
        for part, those in groupby(found.figures, key=lambda figure: figure.part)
    }


def target(site: Site, links: Links, figure: Figure, point: Point, model: str) -> str:
    """Return the address of the examples of a point, those first that the model has worst; empty if the release lacks
    the dataset.
    """
    names = site.viewed.datasets
    if figure.dataset not in names:
        return ""
    is_depth = figure.part == "depth"
    query = {
        "length": figure.value if is_depth else point.column,
        "placement": _placement(figure, point) if is_depth else "",
        "facet": f"{figure.facet}: {figure.value}" if figure.facet else "",
        "sort": "score",
        "model": shown if (shown := site.answers.shown_names.get(model, model)) in site.answers.models else "",
    }
    kept = urlencode({name: value for name, value in query.items() if value})
    return f"{links.dataset(names.index(figure.dataset))}#{kept}"


def _placement(figure: Figure, point: Point) -> str:
    """Return the depth of a point as a table has it. If all depths of a figure are tenths, the report may have rounded
    them, and an example at another depth belongs to the nearest tenth.
    """
    return f"~{point.column}" if all(_is_tenth(name) for _, name in figure.axis) else point.column


def _is_tenth(depth: str) -> bool:
    return f"{round(10 * float(depth)) / 10:g}" == depth

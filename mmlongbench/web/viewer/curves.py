"""The curves of the score report as the viewer keeps them: values only, so that a server does not load what computes
them.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular, write_whole
from mmlongbench.io.pool import each_done
from mmlongbench.web.viewer.places import cache_folder, key_of

MAX_BYTES = 64 * 1024 * 1024
"""The most bytes of the curves that are kept."""
MAX_FIGURES = 600
"""The most figures of a page."""
_FORMAT = "curves 1"


@dataclass(frozen=True, slots=True)
class DrawnLook:
    """The look of a model's line (`charts.Look`)."""

    colour: int
    shape: str
    is_dashed: bool


@dataclass(frozen=True, slots=True)
class Point:
    """A score in a figure, which leads to its examples."""

    x: str
    y: str
    column: str
    """The length, or the depth."""
    about: str
    """The score with its interval and the number of examples, in words."""


@dataclass(frozen=True, slots=True)
class Line:
    """The scores of one model."""

    model: str
    look: DrawnLook
    lines: Sequence[str]
    whiskers: Sequence[str]
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Figure:
    """The curves of all models over lengths or depths."""

    part: str
    """`datasets`, `depth` or `facets`."""
    heading: str
    """What stands above the figures that belong together."""
    name: str
    label: str
    """The metric and its profile."""
    dataset: str
    facet: str
    """The facet; empty if the figure is about none."""
    value: str
    """The group of the facet, or the length of a figure over depths; empty: all."""
    axis: Sequence[tuple[str, str]]
    """(x, name) of each length or depth."""
    ticks: Sequence[tuple[str, str, str]]
    curves: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Curves:
    """All figures of a report."""

    models: Sequence[tuple[str, DrawnLook]]
    figures: Sequence[Figure]
    left_out: int
    """How many figures are left out, because the page would be too long."""
    notes: Sequence[str]
    size: tuple[int, int]
    """The width and the height of a figure."""
    left: int
    """Where the horizontal lines begin."""
    right: int
    """Where they end."""


CURVES = TypeAdapter(Curves)
_GUARD = threading.Lock()
"""At most one report is computed at a time."""


def read_curves(paths: Sequence[Path], compute: Callable[[Sequence[Path]], bytes] | None = None) -> Curves:
    """Return the curves of scores; they are computed once, in a process of its own, and kept.

    Args:
        paths: files or folders of scores.
        compute: computes them in this process.

    Raises:
        MMLongBenchError: the scores cannot be read, or contradict each other.

    """
    files = [file for path in paths for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]
    kept = cache_folder() / "curves" / f"{key_of(files, _FORMAT)}.json"
    with _GUARD:
        try:
            return CURVES.validate_json(read_regular(kept, MAX_BYTES))
        except (OSError, ValueError, ValidationError):
            data = compute(files) if compute else _elsewhere(files)
        write_whole(kept, [data])
        return CURVES.validate_json(data)


def _elsewhere(files: Sequence[Path]) -> bytes:
    for _, found in each_done(1, computed, [(files,)], ["the report"]):
        return found
    raise ReleaseError("the report was not computed")


def computed(files: Sequence[Path]) -> bytes:
    """Compute curves; called in a process of its own, because the import alone takes 100 MB.

    Raises:
        ReleaseError: the scores cannot be read, or contradict each other.

    """
    from mmlongbench.web.viewer.curving import curves_of

    return curves_of(files)

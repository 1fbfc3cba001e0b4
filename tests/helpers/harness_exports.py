"""Exports a release, and reads the parts of prompts for comparison."""

from pathlib import Path
from typing import Any

import mmlongbench as mm
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.release.opened import open_release
from mmlongbench.release.selecting import Selection, select


def export(target: type[Target], release: Path, out: Path, **choices: Any) -> Exported:
    """Export a release into a new folder. `choices` are fields of `Export`, and `selection`."""
    opened = open_release(release)
    cells = tuple(select(opened, choices.pop("selection", Selection())))
    out.mkdir(parents=True)
    return target().write(Export(opened, cells, out, **choices))


def examples_of(release: Path) -> list[mm.Example]:
    """All examples of a release, in the order of an export."""
    opened = mm.open_release(release)
    return [
        each for name in opened.datasets for length in opened.lengths(name) for each in opened.examples(name, length)
    ]


def sequence_of(example: mm.Example) -> list[tuple[str, str]]:
    """The parts of a prompt: ("text", the text) or ("image", its path below `mmlb_image/`)."""
    return [("text", part) if isinstance(part, str) else ("image", part.path) for part in example.prompt.parts]

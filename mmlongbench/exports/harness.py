"""What the targets for evaluation harnesses share: a first look at all examples, the link to the release, and files
that are made from templates.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from mmlongbench.documents.image_urls import ImageUrls
from mmlongbench.errors import ReleaseError
from mmlongbench.exports.target import Export
from mmlongbench.io.files import write_whole
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import calling
from mmlongbench.release.layout import IMAGES, name_of
from mmlongbench.release.release import Example
from mmlongbench.release.selection import Cell
from mmlongbench.task.builder import scoring_input
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.metric import ScoringInput

RELEASE = "release"
"""The name of the link in an export that leads to the release."""
LINKED_IMAGES = f"{RELEASE}/{IMAGES}"
"""The images of the release, from the folder of the export."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a target must know of a cell before it writes."""

    cell: Cell
    name: str
    """The dataset and the length, such as `mmlongdoc_8K`."""
    metric: str
    """The name of the metric of the dataset."""
    examples: int
    """The number of examples."""
    answer: int
    """The maximum number of tokens of an answer."""
    longest: int
    """The tokens of the longest prompt."""
    most_images: int
    """The number of images of the prompt that has the most."""


def facts_of(export: Export) -> list[Facts]:
    """Read every chosen example once, and check that its images are there and that no two examples have one name.
    Cells without an example are left out.

    Raises:
        ReleaseError: an image is missing, two examples of a file have one name, or there is no example at all.

    """
    images = export.release.image_urls()
    found = [facts for cell in export.cells if (facts := _facts(cell, export, images)).examples]
    if not found:
        raise ReleaseError(f"{export.release.path.name}: no example is chosen; choose other datasets or lengths")
    return found


def _facts(cell: Cell, export: Export, images: ImageUrls) -> Facts:
    names, reserve, longest, most = set[str](), 0, 0, 0
    for example in cell.examples():
        name = name_of(example.record)
        if name in names:
            raise ReleaseError(f"{example.file}: two examples have the name {name!r:.200}; see `mmlongbench audit`")
        names.add(name)
        try:
            for path in example.prompt.images:
                images(path)
        except ReleaseError as error:
            raise ReleaseError(f"{example.file}, {name}: {error}") from error
        reserve = max(reserve, example.reserve)
        longest = max(longest, example.tokens.total)
        most = max(most, len(example.prompt.images))
    spec = export.release.builder(cell.dataset).spec
    name, answer = f"{cell.dataset}_{format_length(cell.length)}", export.max_tokens or reserve or spec.reserve
    return Facts(cell, name, spec.metric, len(names), answer, longest, most)


def asked_of(export: Export, example: Example) -> ScoringInput:
    """Return what a metric is given for an example, without a prediction."""
    builder = export.release.builder(example.dataset)
    about = f"example {example.id!r}"
    with calling("builder", type(builder).__name__, "a method that scoring calls", about=about):
        return scoring_input(builder, example.record, example.file)


def refuse_forms(export: Export, target: str, *taken: str) -> None:
    """Refuse a form of image addresses that a target does not take.

    Raises:
        ReleaseError: `export.images` is not one of the forms.

    """
    if export.images and export.images not in taken:
        raise ReleaseError(f"--images {export.images}: {target} reads image files; expected {' or '.join(taken)}")


def text_of(answer: object) -> str:
    """Return an answer as one text: the text itself, or else JSON.

    >>> text_of("0012"), text_of(["a", "b"]), text_of(3)
    ('0012', '["a", "b"]', '3')
    """
    return answer if isinstance(answer, str) else json_text(answer)


def json_text(value: object) -> str:
    """Return a value as JSON in one line, which UTF-8 can encode."""
    return to_json(value).decode().removesuffix("\n")


def link_release(export: Export) -> None:
    """Make a link in the folder of the export that leads to the release; it is relative."""
    out = export.out.resolve()
    (out / RELEASE).symlink_to(os.path.relpath(export.release.path.resolve(), out), target_is_directory=True)


def write_template(path: Path, template: str, **values: object) -> None:
    """Write a file from a template of this package: `$name` becomes a value, `$$` a dollar sign."""
    text = (files("mmlongbench.exports") / "templates" / template).read_text("utf-8")
    write_whole(path, [Template(text).substitute(values).encode("utf-8", "backslashreplace")])


def table_of(cells: Mapping[str, Facts]) -> str:
    """Return a table of cells in Markdown, by the names that the target gives them."""
    heads = ("name", "examples", "metric", "answer tokens", "longest prompt (tokens)", "most images")
    rows = [heads, ("---", *["---:"] * (len(heads) - 1))]
    for name, each in cells.items():
        figures = (f"{figure:,}" for figure in (each.answer, each.longest, each.most_images))
        rows.append((f"`{name}`", f"{each.examples:,}", each.metric, *figures))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)

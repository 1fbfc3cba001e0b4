"""A task made of text: pages of PDFs as passages with a few pictures, for measuring what text costs to count."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import mmlongbench.task as mt
from mmlongbench.documents import pdf
from mmlongbench.documents.limits import Limits
from mmlongbench.io.files import write_whole
from mmlongbench.lengths import TokenBudget
from mmlongbench.manifest.model import CounterSpec
from mmlongbench.packing.pack import examples
from mmlongbench.packing.pricing import Pricer
from mmlongbench.release.layout import DATA, IMAGES
from mmlongbench.task import Draws, Image, Part, Record, Sources, Unit, escape_markers

INSTRUCTION = "Read the pages, then answer the question.\n\n"
PICTURE = (1224, 1584)
"""Pixels of a US letter page at 144 DPI."""
PICTURES = 8
"""In each example."""
CHARACTERS = 6
"""More characters than a token of page text has, so that there is enough of it."""


class Passage(mt.Row):
    """A question over some pictures and all passages."""

    passages: tuple[str, ...]
    pictures: tuple[str, ...]


class Passages(mt.Builder[Passage]):
    """Passages in a drawn order behind a few pictures."""

    row_type: ClassVar[type[mt.Row]] = Passage
    spec = mt.TaskSpec(mt.FilePattern("passages/{name}_K{k}.jsonl"), metric="none")

    def draft(self, row: Passage, sources: Sources, draws: Draws) -> mt.Draft:
        """The pictures, then as many passages as fit."""
        shown = tuple(_unit(path, Image(path), (0, index)) for index, path in enumerate(row.pictures))
        drawn = draws.order("passages", range(len(row.passages)))
        passages = [_unit(f"passage {n}", row.passages[n], (1, index)) for index, n in enumerate(drawn)]
        return mt.Draft(
            row.id, (INSTRUCTION,), (mt.Question(row.id, _question(row.id)),), shown, mt.InOrder(tuple(passages))
        )

    def record(self, example: mt.PackedExample) -> Record:
        """The passages as they stand, so that the prompt is made of the record alone."""
        bodies = [unit.body for unit in example.units]
        return {
            "id": example.id,
            "pictures": [body.path for body in bodies if isinstance(body, Image)],
            "passages": [body for body in bodies if isinstance(body, str)],
        }

    def prompt(self, record: Record) -> mt.Prompt:
        """The prompt of a line."""
        bodies = [*map(Image, record["pictures"]), *record["passages"]]
        units = [_unit(str(index), body, (index,)) for index, body in enumerate(bodies)]
        return mt.assemble((INSTRUCTION,), units, "\n\n", _question(record["id"]))


def write_passages(root: Path, builder: Passages, pages: Sequence[str], length: int, count: int) -> Path:
    """Pack examples of one length and write their file and pictures as a release has them; returns the file."""
    pictures = tuple(f"{builder.dataset}/{number}.jpg" for number in range(PICTURES))
    for picture in pictures:
        _draw(root / IMAGES / picture)
    copies = CHARACTERS * length // sum(map(len, pages)) + 1
    pricer = Pricer(CounterSpec().open(), dict.fromkeys(pictures, PICTURE))
    budget = TokenBudget(length, builder.spec.reserve)
    path = root / DATA / builder.spec.files.write(builder.dataset, length)
    rows = (Passage(id=f"{number}", passages=tuple(pages) * copies, pictures=pictures) for number in range(count))
    records = (_record(builder, row, budget, pricer) for row in rows)
    write_whole(path, builder.spec.format.bundle(records))
    return path


def read_pages(pdfs: Iterable[Path], limits: Limits) -> list[str]:
    """The text of every page that has any."""
    texts = (escape_markers(page.text) for path in pdfs for page in pdf.read_pages(path, limits))
    return [text for text in texts if text.strip()]


def _record(builder: Passages, row: Passage, budget: TokenBudget, pricer: Pricer) -> Record:
    draws = Draws((builder.dataset, row.id))
    [example] = examples(builder.draft(row, Sources(), draws), budget, (None,), pricer, draws)
    count = example.count
    tokens = {"text": count.text, "image": count.image, "reserve": example.reserve}
    return {**builder.record(example), "length": count.total, "tokens": tokens}


def _unit(id: str, body: Part, place: tuple[int, ...]) -> Unit:
    return Unit(id, "padding", body, place)


def _question(id: str) -> tuple[str]:
    return (f"\n\nQuestion {id}: what do the pages say?\nAnswer:",)


def _draw(path: Path) -> None:
    from PIL import Image as Picture

    path.parent.mkdir(parents=True, exist_ok=True)
    Picture.new("RGB", PICTURE, "white").save(path)

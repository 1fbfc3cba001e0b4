"""A whole task in one file: find the moral of a fable, hidden at a depth among other fables.

The source is a JSON Lines file of `{"title", "text", "moral"}`: each fable is asked about once, the others are its
haystack.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import mmlongbench.task as mt

INSTRUCTION = "Read the fables and answer the question.\n\n"


class FableRow(mt.Row):
    """One fable that is asked about."""

    title: str
    text: str
    moral: str


class FableReader(mt.readers.Reader[FableRow]):
    """Fables from a JSON Lines file."""

    row_type: ClassVar[type[mt.Row]] = FableRow
    sources: ClassVar[tuple[str, ...]] = ("fables",)
    image_folder: ClassVar[str] = "fables"

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """One row a fable."""
        fables = [json.loads(line) for line in sources["fables"].read_text("utf-8").splitlines()]
        for number, fable in enumerate(fables):
            yield mt.readers.RawRow(f"fables-{number}", fable, sources["fables"].name, f"line {number + 1}")

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> FableRow | mt.Fault:
        """A fable with its moral; one that has none is named."""
        if not raw.fields.get("moral"):
            return mt.Fault("no-moral", "a moral", "nothing", field="moral")
        title, text = mt.escape_markers(raw.fields["title"]), mt.escape_markers(raw.fields["text"])
        return FableRow(id=raw.id, title=title, text=text, moral=raw.fields["moral"])


def draw_fables(folder: Path) -> dict[str, Path]:
    """Draw two hundred fables of a fox: the sample of the reader."""
    draws, path = mt.Draws(("fables",)), folder / "fables.jsonl"
    animals = ("crow", "stork", "goat", "lion", "hen")
    lines = []
    for number in range(200):
        animal = draws.choice(f"animal {number}", animals)
        text = f"A fox met a {animal}. " * draws.integer(f"length {number}", 2, 20) + f"Secret {number}."
        lines.append(json.dumps({"title": f"Fable {number}", "text": text, "moral": f"secret {number}"}))
    path.write_text("\n".join(lines), "utf-8")
    return {"fables": path}


class Fables(mt.advanced.Builder[FableRow]):
    """The moral of a fable, at a depth among others."""

    row_type: ClassVar[type[mt.Row]] = FableRow
    spec = mt.advanced.TaskSpec(
        files=mt.readers.FilePattern("fables/{name}_K{k}_dep{placements}.jsonl"),
        metric="sub_em",
        placements=mt.Placements(mt.Depth, mt.DEPTHS),
    )

    def draft(self, row: FableRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        """The fable at a depth (no place of its own); the others in a drawn order."""
        gold = _fable(row.title, row.text, "gold", None)
        # a source of some hundred fables may be read for each of them; see `Sources.rows` about a large one
        others = [other for other in sources.rows if isinstance(other, FableRow) and other.id != row.id]
        drawn = draws.order("others", others, lambda fable: fable.title)
        units = tuple(_fable(other.title, other.text, "negative", (n,)) for n, other in enumerate(drawn))
        question = mt.advanced.Question(row.id, _ask(row.title), {"title": row.title, "moral": row.moral})
        return mt.advanced.ContextDraft(
            (gold,), mt.InOrder(units), id=row.id, instruction=(INSTRUCTION,), questions=(question,)
        )

    def record(self, example: mt.PackedExample) -> mt.Record:
        """One line of the file."""
        data = example.question.data
        fables = [{"title": unit.id, "text": unit.body} for unit in example.units]
        return {"id": example.id, "title": data["title"], "answer": data["moral"], "fables": fables}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """The prompt of a line."""
        units = [_fable(fable["title"], fable["text"], "negative", (0,)) for fable in record["fables"]]
        return mt.advanced.assemble((INSTRUCTION,), units, "\n\n", _ask(record["title"]))


def _fable(title: str, text: str, role: mt.advanced.Role, place: tuple[int, ...] | None) -> mt.Unit:
    return mt.Unit(title, text, place, role, head=f"{title}: ")


def _ask(title: str) -> tuple[str]:
    return (f"\n\nQuestion: what is the moral of {title}?\nAnswer:",)

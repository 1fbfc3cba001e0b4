"""Correct tasks with properties that no built-in task has; their releases pass the audit."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import mmlongbench.task as mt

TILES = 12
KEPT = "This is the unforgettable tile that you have to keep in mind"
SAID = "The red fox sleeps here. Nobody knows of it."


class TileRow(mt.Row):
    """A tile that is asked about."""

    tile: str


class TileReader(mt.readers.Reader[TileRow]):
    """Two questions about tiles, and a picture for each tile."""

    row_type: ClassVar[type[mt.Row]] = TileRow
    sources: ClassVar[tuple[str, ...]] = ("tiles",)
    image_folder: ClassVar[str] = "tiles"

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        for number in range(2):
            yield mt.readers.RawRow(f"tile-{number}", {"tile": f"{number}.png"})

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> TileRow | mt.Fault:
        return TileRow(id=raw.id, tile=raw.fields["tile"])

    def image(self, sources: mt.readers.SourcePaths, name: str) -> mt.readers.PictureFile | None:
        return mt.readers.file_inside(sources["tiles"], name)


def draw_tiles(folder: Path) -> dict[str, Path]:
    from PIL import Image

    for number in range(TILES):
        Image.new("L", (56 + 28 * (number % 5), 56), 20 * number).save(folder / f"{number}.png")
    return {"tiles": folder}


class Lined(mt.advanced.Builder[TileRow]):
    """A picture at a depth among others, each in a line of its own; the base class of the other tasks."""

    row_type: ClassVar[type[mt.Row]] = TileRow
    placements: ClassVar[mt.Placements] = mt.Placements(mt.Depth, (0.0, 0.4, 1.0))
    separator: ClassVar[str] = "\n"
    instruction: ClassVar[str] = "Look at the tiles.\n\n"

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        return mt.advanced.TaskSpec(
            mt.readers.FilePattern("tiles/{name}_K{k}.jsonl"), "sub_em", placements=self.placements
        )

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        return self.context(
            row.id, [row.tile], [mt.advanced.Question(row.id, _ask(row.tile), {"tile": row.tile})], sources
        )

    def context(
        self, id: str, tiles: Sequence[str], questions: Sequence[mt.advanced.Question], sources: mt.Sources
    ) -> mt.advanced.ContextDraft:
        needles = tuple(self.unit(sources, tile, "needle", None) for tile in tiles)
        others = [f"{number}.png" for number in range(TILES) if f"{number}.png" not in tiles]
        units = tuple(self.unit(sources, name, "negative", (place,)) for place, name in enumerate(others))
        return mt.advanced.ContextDraft(
            needles,
            mt.InOrder(units),
            id=id,
            instruction=(self.instruction,),
            questions=tuple(questions),
            separator=self.separator,
        )

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return mt.Unit(name, mt.Image(sources.images[name].path), place, role)

    def record(self, example: mt.PackedExample) -> mt.Record:
        units = [[unit.head, _spelled(unit.body), unit.tail] for unit in example.units]
        tile = example.question.data["tile"]
        return {"id": example.id, "tile": tile, "answer": [tile], "units": units}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        units = [mt.Unit(str(n), _body(at[1]), (), "negative", at[0], at[2]) for n, at in enumerate(record["units"])]
        return mt.advanced.assemble((self.instruction,), units, self.separator, _ask(record["tile"]))


class Inline(Lined):
    """Texts that follow each other within one line."""

    separator = " "

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        words = "Some squares are greyer than others, others are wider" if place else "Unforgettable tile"
        return mt.Unit(name, f"{words}: {name}.", place, role)

    def needles(self, record: mt.Record) -> list[mt.Part]:
        return [f"Unforgettable tile: {record['tile']}."]


class InlineLines(Inline):
    """Texts of several lines, each of which begins in the last line of the one before it."""

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        made = super().unit(sources, name, role, place)
        return mt.Unit(name, f"{made.body}\nIts colour is grey.\nUnbelievably grey", place, role)


class InlinePictures(Lined):
    """Pictures with their names that follow each other within one line, and an instruction that ends in one."""

    separator = " "
    instruction = "Look at the tiles:"

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return mt.Unit(
            name, mt.Image(sources.images[name].path), place, role, "Remember this square tile: ", f" ({name})"
        )


class Headed(Lined):
    """Pictures with a head line of text, the needle as well; the question shows the needle, too."""

    instruction = "Look at the tiles.\n\n"

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return mt.Unit(name, mt.Image(sources.images[name].path), place, role, f"A tile:\n{name}\n", "\nSo far.")

    def needles(self, record: mt.Record) -> list[mt.Part]:
        return [mt.Image(f"tiles/{record['tile']}")]


class HeadedAll(Headed):
    """The same, without `needles`."""

    def needles(self, record: mt.Record) -> None:  # type: ignore[override]
        """Return nothing."""


class Shown(Headed):
    """Shows the needle's picture in the instruction as well."""

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        from dataclasses import replace

        made = super().draft(row, sources, draws)
        return replace(made, instruction=("Find\n", mt.Image(sources.images[row.tile].path), "\nhere.\n\n"))

    def prompt(self, record: mt.Record) -> mt.Prompt:
        made = super().prompt(record).parts
        shown = ("Find\n", mt.Image(f"tiles/{record['tile']}"), "\nhere.\n\n")
        return mt.Prompt.of((*shown, str(made[0]).removeprefix(self.instruction), *made[1:]))


class Blanks(Lined):
    """Sentences whose ids hold blanks, at permutations."""

    placements = mt.Placements(mt.Permutation, (0, 1))
    separator = "\n\n"

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        needles = tuple(
            mt.Unit(f"the {n} % needle\tof {row.id}", _secret(n), None, "needle", between_sentences=True)
            for n in range(2)
        )
        texts = [f"Passage {n} begins.\nIt has two lines.\n\n\n\nAnd it ends. So it does." for n in range(TILES)]
        units = tuple(mt.Unit(f"passage {n}", text, (n,), "negative") for n, text in enumerate(texts))
        question = mt.advanced.Question(row.id, _ask(row.tile), {"tile": row.tile})
        return mt.advanced.ContextDraft(
            needles,
            mt.InOrder(units),
            id=row.id,
            instruction=(self.instruction,),
            questions=(question,),
            separator=self.separator,
        )

    def needles(self, record: mt.Record) -> list[mt.Part]:
        return [_secret(0), _secret(1)]


class _Lines(mt.readers.FileFormat):
    """Records as lines, in a format of the task's own."""

    def bundle(self, records: Iterable[mt.Record]) -> Iterator[bytes]:
        yield json.dumps(list(records)).encode()

    def unbundle(self, path: Path) -> Iterator[tuple[str, mt.Record]]:
        for number, record in enumerate(json.loads(path.read_bytes())):
            yield f"entry {number}", record


class Bundled(Lined):
    """Makes a new format for its second file at each access."""

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        bundle = mt.advanced.Bundle(mt.readers.FilePattern("tiles/{name}_K{k}_all.json"), _Lines())
        return mt.advanced.TaskSpec(
            mt.readers.FilePattern("tiles/{name}_K{k}.jsonl"), "sub_em", placements=self.placements, bundle=bundle
        )


class SharedPermutations(Lined, mt.advanced.SharedContextBuilder[TileRow]):
    """Questions that share a context, whose tiles stand in permutations."""

    placements = mt.Placements(mt.Permutation, (0, 1))

    def contexts(self, rows: Sequence[TileRow], sources: mt.Sources) -> Sequence[mt.advanced.ContextDraft]:
        questions = [mt.advanced.Question(row.id, _ask(row.tile), {"tile": row.tile}) for row in rows]
        return [self.context("shared", [row.tile for row in rows], questions, sources)]


class InlineTwo(Inline):
    """Two needles in permutations among texts that follow each other within one line."""

    placements = mt.Placements(mt.Permutation, (0, 1, 2, 3))

    def context(
        self, id: str, tiles: Sequence[str], questions: Sequence[mt.advanced.Question], sources: mt.Sources
    ) -> mt.advanced.ContextDraft:
        return super().context(id, ("1.png", "0.png"), questions, sources)

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        words = "Some squares are greyer than others, others are wider" if place else KEPT
        return mt.Unit(name, f"{words}: {name}.", place, role)

    def needles(self, record: mt.Record) -> list[mt.Part]:
        return [f"{KEPT}: {name}." for name in ("1.png", "0.png")]


class InlinePrefix(InlineTwo):
    """Three needles of a few words, each like the texts around it."""

    def context(
        self, id: str, tiles: Sequence[str], questions: Sequence[mt.advanced.Question], sources: mt.Sources
    ) -> mt.advanced.ContextDraft:
        return Inline.context(self, id, ("1.png", "0.png", "7.png"), questions, sources)

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return mt.Unit(name, f"tile {name}", place, role)

    def needles(self, record: mt.Record) -> list[mt.Part]:
        return ["tile 1.png", "tile 0.png", "tile 7.png"]


class MixedLines(Lined):
    """Pictures in lines of their own for one row, within one line for another."""

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        return replace(super().draft(row, sources, draws), separator=_between(row.id))

    def prompt(self, record: mt.Record) -> mt.Prompt:
        units = [mt.Unit(str(n), _body(at[1]), (), "negative", at[0], at[2]) for n, at in enumerate(record["units"])]
        return mt.advanced.assemble((self.instruction,), units, _between(record["id"]), _ask(record["tile"]))


def _between(id: str) -> str:
    return "\n" if id == "tile-0" else " "


def _secret(number: int) -> str:
    return f"The secret number {number} is {number * 111 + 222}."


def _spelled(body: mt.Part) -> str:
    return body if isinstance(body, str) else f"image: {body.path}"


def _body(spelled: str) -> mt.Part:
    return mt.Image(spelled.removeprefix("image: ")) if spelled.startswith("image: ") else spelled


def _ask(tile: str) -> tuple[mt.Part, ...]:
    return (f"\n\nQuestion: which one is {tile}?\nAnswer:",)

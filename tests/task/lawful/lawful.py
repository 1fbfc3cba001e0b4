"""Tasks that are right in forms that no built-in task has: an audit finds nothing wrong with what they release."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import mmlongbench as mm

TILES = 12
KEPT = "This is the unforgettable tile that you have to keep in mind"
SAID = "The red fox sleeps here. Nobody knows of it."


class TileRow(mm.Row):
    """A tile that is asked about."""

    tile: str


class TileReader(mm.Reader[TileRow]):
    """Two questions about tiles, and a picture for each tile."""

    row_type: ClassVar[type[mm.Row]] = TileRow
    sources: ClassVar[tuple[str, ...]] = ("tiles",)
    image_folder: ClassVar[str] = "tiles"

    def raw_rows(self, sources: mm.SourcePaths) -> Iterator[mm.RawRow | mm.RowFault]:
        """Return a row for each of two tiles."""
        for number in range(2):
            yield mm.RawRow(f"tile-{number}", {"tile": f"{number}.png"})

    def row(self, raw: mm.RawRow, sources: mm.SourcePaths) -> TileRow | mm.Fault:
        """Return the tile that is asked about."""
        return TileRow(id=raw.id, tile=raw.fields["tile"])

    def image(self, sources: mm.SourcePaths, name: str) -> mm.PictureFile | None:
        """Return a tile by its name."""
        return mm.file_inside(sources["tiles"], name)


def draw_tiles(folder: Path) -> dict[str, Path]:
    """Draw tiles of different greys and sizes."""
    from PIL import Image

    for number in range(TILES):
        Image.new("L", (56 + 28 * (number % 5), 56), 20 * number).save(folder / f"{number}.png")
    return {"tiles": folder}


class Lined(mm.Builder[TileRow]):
    """A picture at a depth among others, each in a line of its own; what the other tasks change."""

    row_type: ClassVar[type[mm.Row]] = TileRow
    placements: ClassVar[mm.Placements] = mm.Placements(mm.Depth, (0.0, 0.4, 1.0))
    separator: ClassVar[str] = "\n"
    instruction: ClassVar[str] = "Look at the tiles.\n\n"

    @property
    def spec(self) -> mm.TaskSpec:
        """Return what the class has."""
        return mm.TaskSpec(mm.FilePattern("tiles/{name}_K{k}.jsonl"), "sub_em", placements=self.placements)

    def draft(self, row: TileRow, sources: mm.Sources, draws: mm.Draws) -> mm.Draft:
        """Return the row's tile at a depth, the others in their order."""
        return self.context(row.id, [row.tile], [mm.Question(row.id, _ask(row.tile), {"tile": row.tile})], sources)

    def context(self, id: str, tiles: Sequence[str], questions: Sequence[mm.Question], sources: mm.Sources) -> mm.Draft:
        """Return a context with some tiles at depths."""
        needles = tuple(self.unit(sources, tile, "needle", None) for tile in tiles)
        others = [f"{number}.png" for number in range(TILES) if f"{number}.png" not in tiles]
        units = tuple(self.unit(sources, name, "negative", (place,)) for place, name in enumerate(others))
        return mm.Draft(id, (self.instruction,), tuple(questions), needles, mm.InOrder(units), self.separator)

    def unit(self, sources: mm.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mm.Unit:
        """Return a tile as a unit."""
        return mm.Unit(name, role, mm.Image(sources.images[name].path), place)

    def record(self, example: mm.Example) -> mm.Record:
        """Return one line of the file."""
        units = [[unit.head, _spelled(unit.body), unit.tail] for unit in example.units]
        tile = example.question.data["tile"]
        return {"id": example.id, "tile": tile, "answer": [tile], "units": units}

    def prompt(self, record: mm.Record) -> mm.Prompt:
        """Return the prompt of a line."""
        units = [mm.Unit(str(n), "negative", _body(at[1]), (), at[0], at[2]) for n, at in enumerate(record["units"])]
        return mm.assemble((self.instruction,), units, self.separator, _ask(record["tile"]))


class Inline(Lined):
    """Texts that follow each other within one line."""

    separator = " "

    def unit(self, sources: mm.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mm.Unit:
        """Return a text."""
        words = "Some squares are greyer than others, others are wider" if place else "Unforgettable tile"
        return mm.Unit(name, role, f"{words}: {name}.", place)

    def needles(self, record: mm.Record) -> list[mm.Part]:
        """Return the text of the tile."""
        return [f"Unforgettable tile: {record['tile']}."]


class InlineLines(Inline):
    """Texts of several lines, each of which begins in the last line of the one before it."""

    def unit(self, sources: mm.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mm.Unit:
        """Return a text of three lines."""
        made = super().unit(sources, name, role, place)
        return mm.Unit(name, role, f"{made.body}\nIts colour is grey.\nUnbelievably grey", place)


class InlinePictures(Lined):
    """Pictures with their names that follow each other within one line, and an instruction that ends in one."""

    separator = " "
    instruction = "Look at the tiles:"

    def unit(self, sources: mm.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mm.Unit:
        """Return a tile with words around it."""
        return mm.Unit(
            name, role, mm.Image(sources.images[name].path), place, "Remember this square tile: ", f" ({name})"
        )


class Headed(Lined):
    """Pictures with a head line of text, the needle as well; the question shows the needle, too."""

    instruction = "Look at the tiles.\n\n"

    def unit(self, sources: mm.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mm.Unit:
        """Return a tile with its name in a line above it."""
        return mm.Unit(name, role, mm.Image(sources.images[name].path), place, f"A tile:\n{name}\n", "\nSo far.")

    def needles(self, record: mm.Record) -> list[mm.Part]:
        """Return the picture of the tile."""
        return [mm.Image(f"tiles/{record['tile']}")]


class HeadedAll(Headed):
    """The same, without telling what its needles are."""

    def needles(self, record: mm.Record) -> None:  # type: ignore[override]
        """Return nothing."""


class Shown(Headed):
    """Shows the needle's picture in the instruction as well."""

    def draft(self, row: TileRow, sources: mm.Sources, draws: mm.Draws) -> mm.Draft:
        """Return the draft with a picture before the context."""
        from dataclasses import replace

        made = super().draft(row, sources, draws)
        return replace(made, instruction=("Find\n", mm.Image(sources.images[row.tile].path), "\nhere.\n\n"))

    def prompt(self, record: mm.Record) -> mm.Prompt:
        """Return the prompt with a picture before the context."""
        made = super().prompt(record).parts
        shown = ("Find\n", mm.Image(f"tiles/{record['tile']}"), "\nhere.\n\n")
        return mm.Prompt.of((*shown, str(made[0]).removeprefix(self.instruction), *made[1:]))


class Blanks(Lined):
    """Sentences whose ids hold blanks, at permutations."""

    placements = mm.Placements(mm.Permutation, (0, 1))
    separator = "\n\n"

    def draft(self, row: TileRow, sources: mm.Sources, draws: mm.Draws) -> mm.Draft:
        """Return two sentences in passages with line breaks."""
        needles = tuple(
            mm.Unit(f"the {n} % needle\tof {row.id}", "needle", _secret(n), None, between_sentences=True)
            for n in range(2)
        )
        texts = [f"Passage {n} begins.\nIt has two lines.\n\n\n\nAnd it ends. So it does." for n in range(TILES)]
        units = tuple(mm.Unit(f"passage {n}", "negative", text, (n,)) for n, text in enumerate(texts))
        question = mm.Question(row.id, _ask(row.tile), {"tile": row.tile})
        return mm.Draft(row.id, (self.instruction,), (question,), needles, mm.InOrder(units), self.separator)

    def needles(self, record: mm.Record) -> list[mm.Part]:
        """Return the two sentences."""
        return [_secret(0), _secret(1)]


class _Lines(mm.FileFormat):
    """Records as lines, in a format of the task's own."""

    def bundle(self, records: Iterable[mm.Record]) -> Iterator[bytes]:
        """Write the records."""
        yield json.dumps(list(records)).encode()

    def unbundle(self, path: Path) -> Iterator[tuple[str, mm.Record]]:
        """Read the records."""
        for number, record in enumerate(json.loads(path.read_bytes())):
            yield f"entry {number}", record


class Bundled(Lined):
    """Makes the format of its second file anew whenever it is asked."""

    @property
    def spec(self) -> mm.TaskSpec:
        """Return a specification of its own each time."""
        bundle = mm.Bundle(mm.FilePattern("tiles/{name}_K{k}_all.json"), _Lines())
        return mm.TaskSpec(
            mm.FilePattern("tiles/{name}_K{k}.jsonl"), "sub_em", placements=self.placements, bundle=bundle
        )


class SharedPermutations(Lined, mm.SharedContextBuilder[TileRow]):
    """Questions that share a context, whose tiles stand in permutations."""

    placements = mm.Placements(mm.Permutation, (0, 1))

    def contexts(self, rows: Sequence[TileRow], sources: mm.Sources) -> Sequence[mm.Draft]:
        """Return one context for all rows."""
        questions = [mm.Question(row.id, _ask(row.tile), {"tile": row.tile}) for row in rows]
        return [self.context("shared", [row.tile for row in rows], questions, sources)]


class InlineTwo(Inline):
    """Two needles in permutations among texts that follow each other within one line."""

    placements = mm.Placements(mm.Permutation, (0, 1, 2, 3))

    def context(self, id: str, tiles: Sequence[str], questions: Sequence[mm.Question], sources: mm.Sources) -> mm.Draft:
        """Return a context with two tiles at depths."""
        return super().context(id, ("1.png", "0.png"), questions, sources)

    def unit(self, sources: mm.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mm.Unit:
        """Return a text of some length."""
        words = "Some squares are greyer than others, others are wider" if place else KEPT
        return mm.Unit(name, role, f"{words}: {name}.", place)

    def needles(self, record: mm.Record) -> list[mm.Part]:
        """Return the texts of both tiles."""
        return [f"{KEPT}: {name}." for name in ("1.png", "0.png")]


class InlinePrefix(InlineTwo):
    """Three needles of a few words, each like the texts around it."""

    def context(self, id: str, tiles: Sequence[str], questions: Sequence[mm.Question], sources: mm.Sources) -> mm.Draft:
        """Return a context with three tiles at depths."""
        return Inline.context(self, id, ("1.png", "0.png", "7.png"), questions, sources)

    def unit(self, sources: mm.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mm.Unit:
        """Return the name of a tile."""
        return mm.Unit(name, role, f"tile {name}", place)

    def needles(self, record: mm.Record) -> list[mm.Part]:
        """Return the names of the three tiles."""
        return ["tile 1.png", "tile 0.png", "tile 7.png"]


class MixedLines(Lined):
    """Pictures in lines of their own for one row, within one line for another."""

    def draft(self, row: TileRow, sources: mm.Sources, draws: mm.Draws) -> mm.Draft:
        """Return the draft with the row's separator."""
        return replace(super().draft(row, sources, draws), separator=_between(row.id))

    def prompt(self, record: mm.Record) -> mm.Prompt:
        """Return the prompt with the row's separator."""
        units = [mm.Unit(str(n), "negative", _body(at[1]), (), at[0], at[2]) for n, at in enumerate(record["units"])]
        return mm.assemble((self.instruction,), units, _between(record["id"]), _ask(record["tile"]))


def _between(id: str) -> str:
    return "\n" if id == "tile-0" else " "


def _secret(number: int) -> str:
    return f"The secret number {number} is {number * 111 + 222}."


def _spelled(body: mm.Part) -> str:
    return body if isinstance(body, str) else f"image: {body.path}"


def _body(spelled: str) -> mm.Part:
    return mm.Image(spelled.removeprefix("image: ")) if spelled.startswith("image: ") else spelled


def _ask(tile: str) -> tuple[mm.Part, ...]:
    return (f"\n\nQuestion: which one is {tile}?\nAnswer:",)

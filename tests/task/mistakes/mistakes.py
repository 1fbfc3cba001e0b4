"""A task that is right, find the tile of a name among others, and tasks that are each wrong in one way."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

import mmlongbench.task as mt

INSTRUCTION = "Look at the tiles.\n\n"
TILES = 8


class TileRow(mt.Row):
    """One tile that is asked about."""

    tile: str


class TileReader(mt.readers.Reader[TileRow]):
    """Tiles: a file of names, and a picture for each."""

    row_type: ClassVar[type[mt.Row]] = TileRow
    sources: ClassVar[tuple[str, ...]] = ("tiles",)
    image_folder: ClassVar[str] = "tiles"

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        for number in range(2):
            yield mt.readers.RawRow(f"tile-{number}", {"tile": f"{number}.png"}, "tiles.txt", f"line {number + 1}")

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> TileRow | mt.Fault:
        return TileRow(id=raw.id, tile=raw.fields["tile"])

    def image(self, sources: mt.readers.SourcePaths, name: str) -> mt.readers.PictureFile | None:
        return mt.readers.file_inside(sources["tiles"], name)


def draw_tiles(folder: Path) -> dict[str, Path]:
    from PIL import Image

    for number in range(TILES):
        Image.new("L", (56, 56), 30 * number).save(folder / f"{number}.png")
    return {"tiles": folder}


class Tiles(mt.advanced.Builder[TileRow]):
    """The tile at a depth among the others."""

    row_type: ClassVar[type[mt.Row]] = TileRow
    metric: ClassVar[str] = "sub_em"
    further: ClassVar[tuple[str, ...]] = ()
    bundle: ClassVar[mt.advanced.Bundle | None] = None

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        files, depths = mt.readers.FilePattern("tiles/{name}_K{k}.jsonl"), mt.Placements(mt.Depth, (0.0, 1.0))
        return mt.advanced.TaskSpec(files, self.metric, self.further, placements=depths, bundle=self.bundle)

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        needle = self.unit(sources, row.tile, "needle", None)
        others = [f"{number}.png" for number in range(TILES) if f"{number}.png" != row.tile]
        units = tuple(self.unit(sources, name, "negative", (place,)) for place, name in enumerate(others))
        question = mt.advanced.Question(row.id, _ask(row.tile), {"tile": row.tile})
        return mt.advanced.ContextDraft(
            (needle,), mt.InOrder(units), id=row.id, instruction=(INSTRUCTION,), questions=(question,), separator="\n"
        )

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return mt.Unit(name, mt.Image(sources.images[name].path), place, role)

    def record(self, example: mt.PackedExample) -> mt.Record:
        tile = example.question.data["tile"]
        return {"id": example.id, "tile": tile, "answer": [tile], "tiles": tuple(example.prompt.images)}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        units = [mt.Unit(path, mt.Image(path), (), "negative") for path in record["tiles"]]
        return mt.advanced.assemble((INSTRUCTION,), units, "\n", _ask(record["tile"]))


def _ask(tile: str) -> tuple[mt.Part, ...]:
    return (f"\n\nQuestion: which one is {tile}?\nAnswer:",)


def wrong(base: type[Any], **changes: Any) -> Any:
    """Return a subclass that differs in a few attributes."""
    return type("Wrong", (base,), changes)


def fail(*_: Any, **__: Any) -> Any:
    raise KeyError("boo")


# Prompts and records

Reversed = wrong(Tiles, prompt=lambda self, record: Tiles.prompt(self, {**record, "tiles": record["tiles"][::-1]}))
NoPrompt = wrong(Tiles, prompt=lambda self, record: "which one?")
PromptKey = wrong(Tiles, prompt=lambda self, record: mt.Prompt.of(record["boo"]))


def _in_other_words(self: Tiles, record: mt.Record) -> mt.Prompt:
    parts = Tiles.prompt(self, record).parts
    return mt.Prompt.of(part.replace("which one", "which") if isinstance(part, str) else part for part in parts)


def _with(self: Tiles, record: mt.Record, path: str) -> mt.Prompt:
    return mt.Prompt.of((*Tiles.prompt(self, record).parts, mt.Image(path)))


OtherWords = wrong(Tiles, prompt=_in_other_words)
OneMore = wrong(Tiles, prompt=lambda self, record: _with(self, record, record["tiles"][0]))
OtherVariant = wrong(
    Tiles, variants=("other",), render_variant=lambda self, record, variant: _with(self, record, "tiles/other.png")
)


def edited(metric: str = "sub_em", **change: Any) -> Any:
    """Return a task that changes its record."""
    return wrong(Tiles, metric=metric, record=lambda self, example: {**Tiles.record(self, example), **change})


def without(key: str) -> Any:
    """Return a task whose record lacks a key."""

    def record(self: Tiles, example: mt.PackedExample) -> mt.Record:
        return {name: value for name, value in Tiles.record(self, example).items() if name != key}

    return wrong(Tiles, record=record)


def _place_of_the_tile(self: Tiles, example: mt.PackedExample) -> mt.Record:
    needle = next(unit.body.path for unit in example.units if isinstance(unit.body, mt.Image) and not unit.place)
    return {**Tiles.record(self, example), "answer": [str([*example.prompt.images].index(needle))]}


NoId, NoAnswer = without("id"), without("answer")
OtherId = edited(id="tile")
EmptyAnswer = edited(answer=[" "])
OddAnswer = edited("cls_acc", answer="red")
OddGold = edited("picky", answer="red")
ASet = edited(more={"colours": [1, {2}]})
NotANumber = edited(share=float("nan"))
AnswerOfPlacement = wrong(Tiles, record=_place_of_the_tile)
RecordKey = wrong(Tiles, record=lambda self, example: {"id": example.question.data["boo"]})

# Drafts and units


def units(change: Any) -> Any:
    """Return a task whose units are made otherwise, of (task, sources, name, role, place)."""
    return wrong(Tiles, unit=change)


def draft(change: Any) -> Any:
    """Return a task that changes its draft."""
    return wrong(Tiles, draft=lambda self, *given: change(Tiles.draft(self, *given)))


def _sixth_twice(self: Tiles, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
    made = Tiles.unit(self, sources, name, role, place)
    return replace(made, body=mt.Image(sources.images["6.png"].path)) if name == "7.png" else made


def _of_my_own(self: Tiles, sources: mt.Sources, name: str, *given: Any) -> mt.Unit:
    return replace(Tiles.unit(self, sources, name, *given), body=mt.Image(f"my/{name}"))


def _failing_at_the_end(made: mt.advanced.ContextDraft) -> mt.advanced.ContextDraft:
    def units() -> Iterator[mt.Unit]:
        yield from made.take_order.units(8192)
        raise KeyError("boo")

    return replace(made, take_order=mt.Chain((units,)))


Neadle = units(
    lambda self, sources, name, role, place: Tiles.unit(
        self, sources, name, "neadle" if role == "needle" else role, place
    )
)
PlacedNeedle = units(lambda self, sources, name, role, place: Tiles.unit(self, sources, name, role, place or (9,)))
NoPlace = draft(lambda made: replace(made, required=(replace(made.required[0], role="negative"),)))
Twice, UnknownImage = units(_sixth_twice), units(_of_my_own)
NoNeedle = draft(lambda made: replace(made, required=()))
OtherQuestion = draft(lambda made: replace(made, questions=(replace(made.questions[0], id="other"),)))
NoTakeOrder = draft(lambda made: replace(made, take_order=list(made.take_order.units(8192))))
LazyKey = draft(_failing_at_the_end)
DraftKey = wrong(Tiles, draft=fail)
Unannotated = wrong(
    Tiles,
    draft=lambda self, row, sources, draws: mt.advanced.ContextDraft(
        (), mt.InOrder(()), id=row.needles, instruction=(), questions=()
    ),
)

# Needles and what scoring calls

OtherNeedles = wrong(Tiles, needles=lambda self, record: [mt.Image(record["tiles"][0])])
NeedlesOfRow = wrong(Tiles, needles=lambda self, row: [mt.Image(row.tile)])
UnshownNeedle = wrong(Tiles, needles=lambda self, record: [mt.Image("tiles/none.png")])
NeedlesOfText = wrong(Tiles, needles=lambda self, record: "tile")
NeedlesOfNumbers = wrong(Tiles, needles=lambda self, record: [5])
FacetsKey = wrong(Tiles, facets=fail)
Judging = wrong(Tiles, metric="wayward")
UnknownMetric = wrong(Tiles, metric="sub_emm")
UnknownFurther = wrong(Tiles, further=("judge-nothing",))

# Declarations and formats


class _Forgetful(mt.readers.FileFormat):
    """A file that forgets all but the first tile."""

    def bundle(self, records: Iterable[mt.Record]) -> Iterator[bytes]:
        yield json.dumps([{**record, "tiles": record["tiles"][:1]} for record in records]).encode()

    def unbundle(self, path: Path) -> Iterator[tuple[str, mt.Record]]:
        for number, record in enumerate(json.loads(path.read_bytes())):
            yield f"entry {number}", record


class _Lines:
    """A format that is no subclass."""

    bundle = mt.readers.JsonLines.bundle
    unbundle = mt.readers.JsonLines.unbundle
    read = mt.readers.JsonLines.read


SPEC: Any = Tiles.spec
IN_ONE = mt.readers.FilePattern("tiles/{name}_K{k}.json")
SpecKey = wrong(Tiles, spec=property(fail))
InitKey = wrong(Tiles, __init__=fail)
NoSpec = wrong(Tiles, spec="sub_em")
NoFormat = wrong(Tiles, spec=property(lambda self: replace(SPEC.fget(self), format=_Lines())))
Forgetful = wrong(Tiles, bundle=mt.advanced.Bundle(IN_ONE, _Forgetful()))
NoBundleFormat = wrong(Tiles, bundle=mt.advanced.Bundle(IN_ONE, _Forgetful))  # type: ignore[arg-type]

# Readers


class StrictTile(TileRow):
    """A row that takes no list for a tuple."""

    model_config = ConfigDict(strict=True)
    places: tuple[int, ...] = (1,)


class SecretTile(TileRow):
    """A row with a field that is not written."""

    secret: Annotated[str, Field(exclude=True)] = ""


class NumberedTile(TileRow):
    """A row with a number."""

    number: int = 1


class Bytes(TileRow):
    """A row that holds bytes."""

    data: bytes = b"\xff"


def rows_of(kind: type[TileRow], **more: Any) -> Any:
    """Return a reader that declares and gives rows of another class."""
    row = lambda self, raw, sources: kind(id=raw.id, tile=raw.fields["tile"], **more)  # noqa: E731
    return wrong(TileReader, row_type=kind, row=row)


def _row_and_fail(
    self: TileReader, sources: mt.readers.SourcePaths
) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
    yield from TileReader.raw_rows(self, sources)
    raise KeyError("boo")


Dicts = wrong(TileReader, raw_rows=lambda self, sources: iter([{"id": "tile-0", "tile": "0.png"}]))
RowsKey = wrong(TileReader, raw_rows=_row_and_fail)
OtherRowId = wrong(TileReader, row=lambda self, raw, sources: TileRow(id=raw.fields["tile"], tile=raw.fields["tile"]))
NoRow = wrong(TileReader, row=lambda self, raw, sources: raw.fields)
RowKey = wrong(TileReader, row=lambda self, raw, sources: TileRow(id=raw.id, tile=raw.fields["boo"]))
GivesMore = wrong(TileReader, row=lambda self, raw, sources: SecretTile(id=raw.id, tile=raw.fields["tile"]))
OnlyInPython, NoText = rows_of(StrictTile), rows_of(Bytes)
Forgets, LongNumber = rows_of(SecretTile, secret="known"), rows_of(NumberedTile, number=10**5000)
DocumentsKey, ImageKey = wrong(TileReader, documents=fail), wrong(TileReader, image=fail)
NumberedDocuments = wrong(TileReader, documents=lambda self, sources: {5: mt.Fault("odd", "a document", "none")})
PooledTiles = wrong(TileReader, shows=lambda self, sources: ["0.png"])
MixedPool = wrong(TileReader, shows=lambda self, sources: {"0.png": frozenset(), 1: frozenset()})
NoWebPages = wrong(TileReader, web_pages=lambda self, sources: None)
ClassesKey = wrong(TileReader, image_classes=fail)
DictOfClasses = wrong(TileReader, image_classes=lambda self, sources: {})

# Samples and metrics


def draw_boo(folder: Path) -> dict[str, Path]:
    raise KeyError("boo")


def draw_none(folder: Path) -> dict[str, Path]:  # type: ignore[return]
    draw_tiles(folder)


def draw_empty(folder: Path) -> dict[str, Path]:
    return {}


def draw_others(folder: Path) -> dict[str, Path]:
    return {"tile": folder}


def draw_text(folder: Path) -> dict[str, Path]:
    return {"tiles": str(folder)}  # type: ignore[dict-item]


def draw_nowhere(folder: Path) -> dict[str, Path]:
    return {"tiles": folder / "tiles"}


def draw_between(folder: Path, tiles: int) -> dict[str, Path]:
    return draw_tiles(folder)


class Picky(mt.metrics.Metric):
    """A metric that implements `answer_fault`."""

    name = "picky"

    def score(self, asked: mt.metrics.ScoringInput) -> mt.Score:
        raise AssertionError("a build calls no score() of a stranger")

    def answer_fault(self, asked: mt.metrics.ScoringInput) -> str:
        return "" if isinstance(asked.answer, list) else "expected a list"


class Wayward(mt.metrics.Metric):
    """A correct metric that cannot score anything during a build."""

    name = "wayward"

    def score(self, asked: mt.metrics.ScoringInput) -> mt.Score:
        if not asked.prediction.startswith("{"):
            return mt.Score(None, failure="no JSON")
        raise KeyError("documents")

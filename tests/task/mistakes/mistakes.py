"""A task that is right, find the tile of a name among others, and tasks that are each wrong in one way."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

from pydantic import ConfigDict, Field

import mmlongbench.task as mt

INSTRUCTION = "Look at the tiles.\n\n"
TILES = 8


class TileRow(mt.Row):
    """One tile that is asked about."""

    tile: str


class TileReader(mt.Reader[TileRow]):
    """Tiles: a file of names, and a picture for each."""

    row_type: ClassVar[type[mt.Row]] = TileRow
    sources: ClassVar[tuple[str, ...]] = ("tiles",)
    image_folder: ClassVar[str] = "tiles"

    def raw_rows(self, sources: mt.SourcePaths) -> Iterator[mt.RawRow | mt.RowFault]:
        for number in range(2):
            yield mt.RawRow(f"tile-{number}", {"tile": f"{number}.png"}, "tiles.txt", f"line {number + 1}")

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> TileRow | mt.Fault:
        return TileRow(id=raw.id, tile=raw.fields["tile"])

    def image(self, sources: mt.SourcePaths, name: str) -> mt.PictureFile | None:
        return mt.file_inside(sources["tiles"], name)


def draw_tiles(folder: Path) -> dict[str, Path]:
    from PIL import Image

    for number in range(TILES):
        Image.new("L", (56, 56), 30 * number).save(folder / f"{number}.png")
    return {"tiles": folder}


class Tiles(mt.Builder[TileRow]):
    """The tile at a depth among the others."""

    row_type: ClassVar[type[mt.Row]] = TileRow
    metric: ClassVar[str] = "sub_em"
    further: ClassVar[tuple[str, ...]] = ()
    bundle: ClassVar[mt.Bundle | None] = None

    @property
    def spec(self) -> mt.TaskSpec:
        files, depths = mt.FilePattern("tiles/{name}_K{k}.jsonl"), mt.Placements(mt.Depth, (0.0, 1.0))
        return mt.TaskSpec(files, self.metric, self.further, placements=depths, bundle=self.bundle)

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        needle = self.unit(sources, row.tile, "needle", None)
        others = [f"{number}.png" for number in range(TILES) if f"{number}.png" != row.tile]
        units = tuple(self.unit(sources, name, "negative", (place,)) for place, name in enumerate(others))
        question = mt.Question(row.id, _ask(row.tile), {"tile": row.tile})
        return mt.Draft(row.id, (INSTRUCTION,), (question,), (needle,), mt.InOrder(units), "\n")

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return mt.Unit(name, role, mt.Image(sources.images[name].path), place)

    def record(self, example: mt.PackedExample) -> mt.Record:
        tile = example.question.data["tile"]
        return {"id": example.id, "tile": tile, "answer": [tile], "tiles": tuple(example.prompt.images)}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        units = [mt.Unit(path, "negative", mt.Image(path), ()) for path in record["tiles"]]
        return mt.assemble((INSTRUCTION,), units, "\n", _ask(record["tile"]))


def _ask(tile: str) -> tuple[mt.Part, ...]:
    return (f"\n\nQuestion: which one is {tile}?\nAnswer:",)


class Reversed(Tiles):
    """Shows the tiles backwards."""

    def prompt(self, record: mt.Record) -> mt.Prompt:
        return super().prompt({**record, "tiles": record["tiles"][::-1]})


class OtherWords(Tiles):
    """Asks in other words."""

    def prompt(self, record: mt.Record) -> mt.Prompt:
        made = super().prompt(record)
        parts = (part.replace("which one", "which") if isinstance(part, str) else part for part in made.parts)
        return mt.Prompt.of(parts)


class OneMore(Tiles):
    """Adds a word at the end."""

    def prompt(self, record: mt.Record) -> mt.Prompt:
        return mt.Prompt.of((*super().prompt(record).parts, mt.Image(record["tiles"][0])))


class NoPrompt(Tiles):
    """Gives a text for a prompt."""

    def prompt(self, record: mt.Record) -> mt.Prompt:
        return "which one?"  # type: ignore[return-value]


class _Edited(Tiles):
    """Changes its record."""

    change: ClassVar[dict[str, Any]] = {}
    gone: ClassVar[tuple[str, ...]] = ()

    def record(self, example: mt.PackedExample) -> mt.Record:
        made = {**super().record(example), **self.change}
        return {key: value for key, value in made.items() if key not in self.gone}


class NoId(_Edited):
    """Has no id."""

    gone = ("id",)


class OtherId(_Edited):
    """Has the same id in every record."""

    change: ClassVar[dict[str, Any]] = {"id": "tile"}


class NoAnswer(_Edited):
    """Has no answer."""

    gone = ("answer",)


class EmptyAnswer(_Edited):
    """Has an answer of nothing."""

    change: ClassVar[dict[str, Any]] = {"answer": [" "]}


class OddAnswer(_Edited):
    """Has an answer that its metric cannot score."""

    metric = "cls_acc"
    change: ClassVar[dict[str, Any]] = {"answer": "red"}


class ASet(_Edited):
    """Has a value that JSON does not know."""

    change: ClassVar[dict[str, Any]] = {"more": {"colours": [1, {2}]}}


class NotANumber(_Edited):
    """Has a number that JSON does not know."""

    change: ClassVar[dict[str, Any]] = {"share": float("nan")}


class Neadle(Tiles):
    """Mistypes a role."""

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return super().unit(sources, name, "neadle" if role == "needle" else role, place)


class PlacedNeedle(Tiles):
    """Gives the needle a place."""

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return super().unit(sources, name, role, place or (9,))


class NoPlace(Tiles):
    """Gives others no place."""

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return super().unit(sources, name, role, None)


class NoNeedle(Tiles):
    """Requires nothing."""

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        return replace(super().draft(row, sources, draws), required=())


class Twice(Tiles):
    """Lists a tile twice."""

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        made = super().unit(sources, name, role, place)
        return replace(made, body=mt.Image(sources.images["6.png"].path)) if name == "7.png" else made


class OtherQuestion(Tiles):
    """Asks a question of another id."""

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        made = super().draft(row, sources, draws)
        return replace(made, questions=(replace(made.questions[0], id="other"),))


class UnknownImage(Tiles):
    """Shows a picture by a path that no reader gave."""

    def unit(self, sources: mt.Sources, name: str, role: Any, place: tuple[int, ...] | None) -> mt.Unit:
        return replace(super().unit(sources, name, role, place), body=mt.Image(f"my/{name}"))


class AnswerOfPlacement(Tiles):
    """Has another answer at each depth, without `is_answer_of_context`."""

    def record(self, example: mt.PackedExample) -> mt.Record:
        paths = list(example.prompt.images)
        needle = next(unit.body.path for unit in example.units if isinstance(unit.body, mt.Image) and not unit.place)
        return {**super().record(example), "answer": [str(paths.index(needle))]}


class OtherNeedles(Tiles):
    """Names other needles at each depth."""

    def needles(self, record: mt.Record) -> list[mt.Part]:
        return [mt.Image(record["tiles"][0])]


class NeedlesOfRow(Tiles):
    """Has a method of its own that is called as an optional one is."""

    def needles(self, row: Any) -> list[mt.Part]:
        return [mt.Image(row.tile)]


class UnshownNeedle(Tiles):
    """Names a needle that the prompt does not show."""

    def needles(self, record: mt.Record) -> list[mt.Part]:
        return [mt.Image("tiles/none.png")]


class NeedlesOfText(Tiles):
    """Returns one text in place of a list of them."""

    def needles(self, record: mt.Record) -> Any:
        return "tile"


class NeedlesOfNumbers(Tiles):
    """Returns the numbers of pictures in place of pictures."""

    def needles(self, record: mt.Record) -> Any:
        return [5]


class OddGold(_Edited):
    """Has an answer for which the stranger's metric says that it has no score."""

    metric = "picky"
    change: ClassVar[dict[str, Any]] = {"answer": "red"}


class FacetsKey(Tiles):
    """Fails in `facets`, which scoring calls."""

    def facets(self, record: mt.Record) -> Mapping[str, Sequence[str]]:
        raise KeyError("boo")


class Judging(Tiles):
    """Is scored by a metric that gives no score to what is no JSON, and fails without its documents."""

    metric = "wayward"


class UnknownMetric(Tiles):
    """Mistypes its metric."""

    metric = "sub_emm"


class UnknownFurther(Tiles):
    """Mistypes a further metric."""

    further = ("judge-nothing",)


class DraftKey(Tiles):
    """Fails in `draft`."""

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        raise KeyError("boo")


class LazyKey(Tiles):
    """Fails where its units are taken."""

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        made = super().draft(row, sources, draws)

        def units() -> Iterator[mt.Unit]:
            yield from made.take_order.units(8192)
            raise KeyError("boo")

        return replace(made, take_order=mt.Chain((units,)))


class RecordKey(Tiles):
    """Fails in `record`."""

    def record(self, example: mt.PackedExample) -> mt.Record:
        return {"id": example.question.data["boo"]}


class PromptKey(Tiles):
    """Fails in `prompt`."""

    def prompt(self, record: mt.Record) -> mt.Prompt:
        return mt.Prompt.of(record["boo"])


class SpecKey(Tiles):
    """Fails in `spec`."""

    @property
    def spec(self) -> mt.TaskSpec:
        raise KeyError("boo")


class InitKey(Tiles):
    """Fails when it is bound."""

    def __init__(self, dataset: str, options: mt.Options) -> None:
        raise KeyError("boo")


class OtherVariant(Tiles):
    """Has a rendering that shows what the release may not have."""

    variants = ("other",)

    def render_variant(self, record: mt.Record, variant: str) -> mt.Prompt:
        return mt.Prompt.of((*self.prompt(record).parts, mt.Image("tiles/other.png")))


class _Forgetful(mt.FileFormat):
    """A file that forgets all but the first tile."""

    def bundle(self, records: Iterable[mt.Record]) -> Iterator[bytes]:
        yield json.dumps([{**record, "tiles": record["tiles"][:1]} for record in records]).encode()

    def unbundle(self, path: Path) -> Iterator[tuple[str, mt.Record]]:
        for number, record in enumerate(json.loads(path.read_bytes())):
            yield f"entry {number}", record


class Forgetful(Tiles):
    """Has a public file that gives other prompts than the records."""

    bundle = mt.Bundle(mt.FilePattern("tiles/{name}_K{k}.json"), _Forgetful())


class Unannotated(Tiles):
    """Takes any row, and reads a field that it does not have."""

    def draft(self, row: Any, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        return mt.Draft(row.needles, (), (), (), mt.InOrder(()))


class NoTakeOrder(Tiles):
    """Gives units in place of the order in which they are taken."""

    def draft(self, row: TileRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        made = super().draft(row, sources, draws)
        return replace(made, take_order=list(made.take_order.units(8192)))  # type: ignore[arg-type]


class NoSpec(Tiles):
    """Declares a text."""

    spec = "sub_em"  # type: ignore[assignment]


class _Lines:
    """A format that is no subclass."""

    bundle = mt.JsonLines.bundle
    unbundle = mt.JsonLines.unbundle
    read = mt.JsonLines.read


class NoFormat(Tiles):
    """Has a format of its own kind."""

    @property
    def spec(self) -> mt.TaskSpec:
        return replace(super().spec, format=_Lines())  # type: ignore[arg-type]


class NoBundleFormat(Tiles):
    """Names a class in place of a format."""

    bundle = mt.Bundle(mt.FilePattern("tiles/{name}_K{k}.json"), _Forgetful)  # type: ignore[arg-type]


class OtherRowId(TileReader):
    """Gives rows other ids than its raw rows."""

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> TileRow:
        return TileRow(id=raw.fields["tile"], tile=raw.fields["tile"])


class Dicts(TileReader):
    """Yields dicts."""

    def raw_rows(self, sources: mt.SourcePaths) -> Iterator[mt.RawRow | mt.RowFault]:
        yield {"id": "tile-0", "tile": "0.png"}  # type: ignore[misc]


class NoRow(TileReader):
    """Gives no row."""

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> TileRow:
        return raw.fields  # type: ignore[return-value]


class RowKey(TileReader):
    """Fails in `row`."""

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> TileRow:
        return TileRow(id=raw.id, tile=raw.fields["boo"])


class RowsKey(TileReader):
    """Fails in `raw_rows`."""

    def raw_rows(self, sources: mt.SourcePaths) -> Iterator[mt.RawRow | mt.RowFault]:
        yield from super().raw_rows(sources)
        raise KeyError("boo")


class DocumentsKey(TileReader):
    """Fails in `documents`."""

    def documents(self, sources: mt.SourcePaths) -> Mapping[str, mt.Pages | mt.Fault]:
        raise KeyError("boo")


class NumberedDocuments(TileReader):
    """Has numbers for the ids of documents."""

    def documents(self, sources: mt.SourcePaths) -> Mapping[str, mt.Pages | mt.Fault]:
        numbered: Any = {5: mt.Fault("odd", "a document", "none")}
        return cast(Mapping[str, mt.Pages | mt.Fault], numbered)


class ImageKey(TileReader):
    """Fails in `image`."""

    def image(self, sources: mt.SourcePaths, name: str) -> mt.PictureFile | None:
        raise KeyError("boo")


class PooledTiles(TileReader):
    """Gives a pool of pictures that is no mapping."""

    def shows(self, sources: mt.SourcePaths) -> Mapping[str, frozenset[str]]:
        return ["0.png"]  # type: ignore[return-value]


class MixedPool(TileReader):
    """Names a picture of its pool by a number."""

    def shows(self, sources: mt.SourcePaths) -> Mapping[str, frozenset[str]]:
        return {"0.png": frozenset(), 1: frozenset()}  # type: ignore[dict-item]


class NoWebPages(TileReader):
    """Gives None for its web pages."""

    def web_pages(self, sources: mt.SourcePaths) -> Mapping[str, Sequence[str | mt.Image]]:
        return None  # type: ignore[return-value]


class ClassesKey(TileReader):
    """Fails in `image_classes`."""

    def image_classes(self, sources: mt.SourcePaths) -> mt.ImageClasses | None:
        raise KeyError("boo")


class DictOfClasses(TileReader):
    """Gives classes of pictures as a dict."""

    def image_classes(self, sources: mt.SourcePaths) -> mt.ImageClasses | None:
        return {}  # type: ignore[return-value]


class StrictTile(TileRow):
    """A row that takes no list for a tuple."""

    model_config = ConfigDict(strict=True)
    places: tuple[int, ...] = (1,)


class OnlyInPython(TileReader):
    """Gives rows that cannot be read back from JSON."""

    row_type: ClassVar[type[mt.Row]] = StrictTile

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> StrictTile:
        return StrictTile(id=raw.id, tile=raw.fields["tile"])


class SecretTile(TileRow):
    """A row with a field that is not written."""

    secret: Annotated[str, Field(exclude=True)] = ""


class Forgets(TileReader):
    """Gives rows that lose a value on their way through a file."""

    row_type: ClassVar[type[mt.Row]] = SecretTile

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> SecretTile:
        return SecretTile(id=raw.id, tile=raw.fields["tile"], secret="known")


class GivesMore(TileReader):
    """Gives rows of a subclass of what it declares."""

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> SecretTile:
        return SecretTile(id=raw.id, tile=raw.fields["tile"])


class NumberedTile(TileRow):
    """A row with a number."""

    number: int = 1


class LongNumber(TileReader):
    """Gives rows with a number that is too long for JSON."""

    row_type: ClassVar[type[mt.Row]] = NumberedTile

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> NumberedTile:
        return NumberedTile(id=raw.id, tile=raw.fields["tile"], number=10**5000)


class Bytes(TileRow):
    """A row that holds bytes."""

    data: bytes = b"\xff"


class NoText(TileReader):
    """Gives rows whose bytes are no UTF-8."""

    row_type: ClassVar[type[mt.Row]] = Bytes

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> Bytes:
        return Bytes(id=raw.id, tile=raw.fields["tile"])


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


class Picky(mt.Metric):
    """A metric that implements `answer_fault`."""

    name = "picky"

    def score(self, asked: mt.ScoringInput) -> mt.Score:
        raise AssertionError("a build calls no score() of a stranger")

    def answer_fault(self, asked: mt.ScoringInput) -> str:
        return "" if isinstance(asked.gold, list) else "expected a list"


class Wayward(mt.Metric):
    """A correct metric that cannot score anything during a build."""

    name = "wayward"

    def score(self, asked: mt.ScoringInput) -> mt.Score:
        if not asked.prediction.startswith("{"):
            return mt.Score(None, failure="no JSON")
        raise KeyError("documents")

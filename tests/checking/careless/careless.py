"""A task that is right, find the colour of a note among others, and tasks that build although each is wrong."""

import itertools
import os
import random  # noqa: TID251  (one of the mistakes)
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import ClassVar

import mmlongbench.task as mt

NOTES = 24
COLOURS = ("amber", "beige", "coral", "denim", "ebony", "fawn", "green", "hazel", "ivory", "jade", "khaki", "lilac")
INSTRUCTION = "Read the notes.\n\n"
COUNT = itertools.count()
SEEN: list[str] = []
KNOWN: dict[str, str] = {}


class NoteRow(mt.Row):
    """One note that is asked about."""

    name: str
    colour: str


class NoteReader(mt.Reader[NoteRow]):
    """Notes: a file with a name and a colour in each line."""

    row_type: ClassVar[type[mt.Row]] = NoteRow
    sources: ClassVar[tuple[str, ...]] = ("notes",)
    image_folder: ClassVar[str] = "notes"

    def raw_rows(self, sources: mt.SourcePaths) -> Iterator[mt.RawRow | mt.RowFault]:
        for number, line in enumerate(self.lines(sources), 1):
            name, colour = line.split()
            yield mt.RawRow(self.id(name), {"name": name, "colour": colour}, "notes.txt", f"line {number}")

    def lines(self, sources: mt.SourcePaths) -> Iterable[str]:
        return sources["notes"].read_text("utf-8").splitlines()

    def id(self, name: str) -> str:
        return name

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> NoteRow | mt.Fault:
        return NoteRow(id=raw.id, **raw.fields)


def draw_notes(folder: Path) -> dict[str, Path]:
    lines = [f"note{number:02d} {COLOURS[number % len(COLOURS)]}" for number in range(NOTES)]
    (folder / "notes.txt").write_text("\n".join(lines), "utf-8")
    return {"notes": folder / "notes.txt"}


class Notes(mt.Builder[NoteRow]):
    """The note at a depth, among notes of other colours."""

    row_type: ClassVar[type[mt.Row]] = NoteRow
    metric: ClassVar[str] = "sub_em"
    instruction: ClassVar[str] = INSTRUCTION

    @property
    def spec(self) -> mt.TaskSpec:
        files = mt.FilePattern("notes/{name}_K{k}.jsonl")
        return mt.TaskSpec(files, self.metric, placements=mt.Placements(mt.Depth, (0.0, 1.0)))

    def draft(self, row: NoteRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        rows = [other for other in sources.rows if isinstance(other, NoteRow) and other.colour != row.colour]
        others = [self.note(other, "negative", (0,), row) for other in draws.order("notes", rows, lambda o: o.id)]
        units = tuple(replace(unit, place=(number,)) for number, unit in enumerate(self.ordered(others, row)))
        gold = self.note(row, "gold", None, row)
        question = mt.Question(row.id, self.ask(row.name), {"name": row.name, "answer": self.answer(row)})
        return mt.Draft(row.id, (self.instruction,), (question,), (gold,), self.taken(units), "\n")

    def note(self, note: NoteRow, role: mt.Role, place: tuple[int, ...] | None, row: NoteRow) -> mt.Unit:
        return mt.Unit(note.name, role, self.text(note, row), place)

    def text(self, note: NoteRow, row: NoteRow) -> str:
        return f"The note {note.name} is {note.colour}." + f" It has its place beside {note.name} in a drawer." * 3

    def ordered(self, units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
        return units

    def taken(self, units: tuple[mt.Unit, ...]) -> mt.TakeOrder:
        return mt.InOrder(units)

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        return (f"\n\nQuestion: which colour has {name}?\nAnswer:",)

    def answer(self, row: NoteRow) -> object:
        return [row.colour]

    def record(self, example: mt.PackedExample) -> mt.Record:
        data, notes = example.question.data, [str(unit.body) for unit in example.units]
        asked = [part for part in example.question.parts if isinstance(part, str)]
        return {"id": example.id, "name": data["name"], "answer": data["answer"], "notes": notes, "asked": asked}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        units = [mt.Unit(f"{n}", "negative", text, ()) for n, text in enumerate(record["notes"])]
        return mt.assemble((self.instruction,), units, "\n", record["asked"])


class Counter(Notes):
    """Numbers its questions in the order of calls."""

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        return (f"\n\nQuestion {next(COUNT)}: which colour has {name}?\nAnswer:",)


class Random(Notes):
    """Draws with the module that everybody knows."""

    def ordered(self, units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
        return random.sample(units, len(units))


class Clock(Notes):
    """Prints the time."""

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        return (f"\n\nAt {time.time_ns()}, which colour has {name}?\nAnswer:",)


class Today(Notes):
    """Prints the date."""

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        return (f"\n\nOn {date.today()}, which colour has {name}?\nAnswer:",)  # noqa: DTZ011  (the mistake)


class ProcessId(Notes):
    """Names its process."""

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        return (f"\n\nFor {os.getpid()}, which colour has {name}?\nAnswer:",)


class SetOrder(Notes):
    """Iterates over a set."""

    def ordered(self, units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
        by_id = {unit.id: unit for unit in units}
        return [by_id[id] for id in {*by_id}]


class HashOrder(Notes):
    """Sorts by the builtin hash."""

    def ordered(self, units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
        return sorted(units, key=lambda unit: hash(unit.id))


class Remembers(Notes):
    """Takes no note first that an earlier question took first."""

    def ordered(self, units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
        SEEN.append(row.id)
        return sorted(units, key=lambda unit: SEEN[-2:].count(unit.id))


class Shuffles(Notes):
    """Rotates a list that it keeps."""

    def ordered(self, units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
        kept = vars(self).setdefault("turns", [])
        kept.append(row.id)
        return [*units[len(kept) % 5 :], *units[: len(kept) % 5]]


@dataclass(frozen=True)
class _Once(mt.TakeOrder):
    left: Iterator[mt.Unit]

    def units(self, length: int) -> Iterable[mt.Unit]:
        return self.left


class OnceOnly(Notes):
    """Has a take order that can be iterated once."""

    def taken(self, units: tuple[mt.Unit, ...]) -> mt.TakeOrder:
        return _Once(iter(units))


@dataclass(frozen=True)
class _ByLength(mt.TakeOrder):
    all: tuple[mt.Unit, ...]
    is_text: bool = False

    def units(self, length: int) -> Iterable[mt.Unit]:
        if self.is_text:
            return (replace(unit, tail=f" (of {length})") for unit in self.all)
        return self.all if length <= 1024 else self.all[::-1]


class LengthOrder(Notes):
    """Takes units backwards at longer lengths."""

    def taken(self, units: tuple[mt.Unit, ...]) -> mt.TakeOrder:
        return _ByLength(units)


class LengthText(Notes):
    """Prints the length after each unit."""

    def taken(self, units: tuple[mt.Unit, ...]) -> mt.TakeOrder:
        return _ByLength(units, is_text=True)

    def record(self, example: mt.PackedExample) -> mt.Record:
        return {**super().record(example), "notes": [unit.text for unit in example.units]}


class HoldsAnswer(Notes):
    """Has the answer in its negatives."""

    def text(self, note: NoteRow, row: NoteRow) -> str:
        return f"{super().text(note, row)} It is not {row.colour}."


class GoldTwice(Notes):
    """Repeats the gold unit under another id."""

    def ordered(self, units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
        return [mt.Unit("copy", "own", self.text(row, row), (0,)), *units]


class LengthCluster(Notes):
    """Has a cluster for each length."""

    def cluster(self, record: mt.Record) -> str:
        return f"{record['length'] > 1024}"


class DepthCluster(Notes):
    """Has a cluster for each depth."""

    def cluster(self, record: mt.Record) -> str:
        return f"{record['depth']}"


class KeepsState(Notes):
    """Needs the draft for the prompt."""

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        KNOWN[name] = str(super().ask(name)[0])
        return (KNOWN[name],)

    def prompt(self, record: mt.Record) -> mt.Prompt:
        return super().prompt({**record, "asked": [KNOWN[record["name"]]]})


class PromptOnce(Notes):
    """Gives the prompt of a record once."""

    def prompt(self, record: mt.Record) -> mt.Prompt:
        key = f"{id(self)} {record['id']} {len(record['notes'])} {record.get('depth')}"
        ask = record["asked"] if key not in KNOWN else ["\n\nAgain:"]
        KNOWN[key] = ""
        return super().prompt({**record, "asked": ask})


class AllFields(Notes):
    """Prints what it does not know."""

    def prompt(self, record: mt.Record) -> mt.Prompt:
        known = ("id", "name", "answer", "notes", "asked", "length", "tokens", "depth", "depth_achieved")
        more = "".join(f"{key}: {value}\n" for key, value in record.items() if key not in (*known, "needle_start"))
        return super().prompt({**record, "asked": [f"{record['asked'][0]}{more}"]})


class RecordCounter(Notes):
    """Numbers its records in the order of calls."""

    def record(self, example: mt.PackedExample) -> mt.Record:
        return {**super().record(example), "number": next(COUNT)}


class EndsProcess(Notes):
    """Ends any process that did not make its drafts."""

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        KNOWN[f"ends {name}"] = ""
        return super().ask(name)

    def prompt(self, record: mt.Record) -> mt.Prompt:
        if f"ends {record['name']}" not in KNOWN:
            raise SystemExit(3)
        return super().prompt(record)


class SlotLeft(Notes):
    """Forgets to fill in its instruction."""

    instruction = "Read the notes about {name}.\n\n"


class ExpressionLeft(Notes):
    """Forgets the f of an f-string."""

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        return ("\n\nQuestion: which colour has {row.name}?\nAnswer:",)


class Marker(Notes):
    """Writes the marker of an image into its text."""

    instruction = "Read the notes.\n<image>\n"


class EmptyWord(Notes):
    """Has an answer that every text holds."""

    def answer(self, row: NoteRow) -> object:
        return ["the"]


class LateOption(Notes):
    """Has an option without a letter."""

    metric = "mc_acc"

    def answer(self, row: NoteRow) -> object:
        return 12


class NegativeLabel(Notes):
    """Has a label below zero."""

    metric = "cls_acc"

    def answer(self, row: NoteRow) -> object:
        return -1


class LongYes(Notes):
    """Answers a yes/no question with more than that."""

    metric = "binary_acc"

    def answer(self, row: NoteRow) -> object:
        return "Certainly"


class Generous(Notes):
    """Has a metric that is content with anything."""

    metric = "generous"


class Harsh(Notes):
    """Has a metric that is never content."""

    metric = "harsh"


class Moody(Notes):
    """Has a metric that raises for some outputs."""

    metric = "moody"


class Everything(Notes):
    """Requires more than fits."""

    def draft(self, row: NoteRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        made = super().draft(row, sources, draws)
        units = tuple(replace(unit, role="own") for unit in made.take_order.units(0))
        return replace(made, required=(*made.required, *units), take_order=mt.InOrder(()))


class SameIds(NoteReader):
    """Gives two notes one id."""

    def id(self, name: str) -> str:
        return name[:5]


class CountedIds(NoteReader):
    """Numbers its rows in the order of calls."""

    def id(self, name: str) -> str:
        return f"note-{next(COUNT)}"


class SetRows(NoteReader):
    """Iterates over a set."""

    def lines(self, sources: mt.SourcePaths) -> Iterable[str]:
        return {*super().lines(sources)}


class RandomRows(NoteReader):
    """Draws the colours of its notes."""

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> NoteRow | mt.Fault:
        return NoteRow(id=raw.id, name=raw.fields["name"], colour=random.choice(COLOURS))


class NoRows(NoteReader):
    """Refuses every row."""

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> NoteRow | mt.Fault:
        return mt.Fault("no-moral", "a moral", "nothing", field="moral", todo="add the column moral")


def draw_random(folder: Path) -> dict[str, Path]:
    found = draw_notes(folder)
    with found["notes"].open("a", encoding="utf-8") as file:
        file.write(f"\nlast {random.getrandbits(64):x}")
    return found


class _Plain(mt.Metric):
    name = "generous"

    def score(self, asked: mt.ScoringInput) -> mt.Score:
        return mt.Score(1.0)


class HarshMetric(_Plain):
    """A metric without a full score."""

    name = "harsh"

    def score(self, asked: mt.ScoringInput) -> mt.Score:
        return mt.Score(0.9 * (asked.prediction != ""))


class MoodyMetric(_Plain):
    """A metric that raises."""

    name = "moody"

    def score(self, asked: mt.ScoringInput) -> mt.Score:
        return mt.Score(float(len(asked.prediction) / len(asked.prediction)))


GenerousMetric = _Plain

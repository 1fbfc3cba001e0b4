"""A task that is right, find the colour of a note among others, and tasks that build although each is wrong."""

import itertools
import os
import random  # noqa: TID251  (one of the mistakes)
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

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


class NoteReader(mt.readers.Reader[NoteRow]):
    """Notes: a file with a name and a colour in each line."""

    row_type: ClassVar[type[mt.Row]] = NoteRow
    sources: ClassVar[tuple[str, ...]] = ("notes",)
    image_folder: ClassVar[str] = "notes"

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        for number, line in enumerate(self.lines(sources), 1):
            name, colour = line.split()
            yield mt.readers.RawRow(self.id(name), {"name": name, "colour": colour}, "notes.txt", f"line {number}")

    def lines(self, sources: mt.readers.SourcePaths) -> Iterable[str]:
        return sources["notes"].read_text("utf-8").splitlines()

    def id(self, name: str) -> str:
        return name

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> NoteRow | mt.Fault:
        return NoteRow(id=raw.id, **raw.fields)


def draw_notes(folder: Path) -> dict[str, Path]:
    lines = [f"note{number:02d} {COLOURS[number % len(COLOURS)]}" for number in range(NOTES)]
    (folder / "notes.txt").write_text("\n".join(lines), "utf-8")
    return {"notes": folder / "notes.txt"}


class Notes(mt.advanced.Builder[NoteRow]):
    """The note at a depth, among notes of other colours."""

    row_type: ClassVar[type[mt.Row]] = NoteRow
    metric: ClassVar[str] = "sub_em"
    instruction: ClassVar[str] = INSTRUCTION

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        files = mt.readers.FilePattern("notes/{name}_K{k}.jsonl")
        return mt.advanced.TaskSpec(files, self.metric, placements=mt.Placements(mt.Depth, (0.0, 1.0)))

    def draft(self, row: NoteRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        rows = [other for other in sources.rows if isinstance(other, NoteRow) and other.colour != row.colour]
        others = [self.note(other, "negative", (0,), row) for other in draws.order("notes", rows, lambda o: o.id)]
        units = tuple(replace(unit, place=(number,)) for number, unit in enumerate(self.ordered(others, row)))
        gold = self.note(row, "gold", None, row)
        question = mt.advanced.Question(row.id, self.ask(row.name), {"name": row.name, "answer": self.answer(row)})
        return mt.advanced.ContextDraft(
            (gold,),
            self.taken(units),
            id=row.id,
            instruction=(self.instruction,),
            questions=(question,),
            separator="\n",
        )

    def note(self, note: NoteRow, role: mt.advanced.Role, place: tuple[int, ...] | None, row: NoteRow) -> mt.Unit:
        return mt.Unit(note.name, self.text(note, row), place, role)

    def text(self, note: NoteRow, row: NoteRow) -> str:
        return f"The note {note.name} is {note.colour}." + f" It has its place beside {note.name} in a drawer." * 3

    def ordered(self, units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
        return units

    def taken(self, units: tuple[mt.Unit, ...]) -> mt.advanced.TakeOrder:
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
        units = [mt.Unit(f"{n}", text, (), "negative") for n, text in enumerate(record["notes"])]
        return mt.advanced.assemble((self.instruction,), units, "\n", record["asked"])


def wrong(base: type[Any] = Notes, **changes: Any) -> Any:
    """Return a subclass that differs in a few attributes."""
    return type("Wrong", (base,), changes)


def asking(before: Callable[[], object]) -> Any:
    """Return a task whose question begins with something."""
    return wrong(ask=lambda self, name: (f"\n\n{before()}, which colour has {name}?\nAnswer:",))


def ordering(order: Callable[[Sequence[mt.Unit], NoteRow], Sequence[mt.Unit]]) -> Any:
    """Return a task that takes its units in another order."""
    return wrong(ordered=lambda self, units, row: order(units, row))


def answering(metric: str, answer: object) -> Any:
    """Return a task with another metric and answer."""
    return wrong(metric=metric, answer=lambda self, row: answer)


# Other at each call, or in other surroundings

Counter = asking(lambda: f"Question {next(COUNT)}")
Clock = asking(lambda: f"At {time.time_ns()}")
Today = asking(lambda: f"On {date.today()}")  # noqa: DTZ011  (the mistake)
ProcessId = asking(lambda: f"For {os.getpid()}")
Random = ordering(lambda units, row: random.sample(units, len(units)))
HashOrder = ordering(lambda units, row: sorted(units, key=lambda unit: hash(unit.id)))


def _by_set(units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
    by_id = {unit.id: unit for unit in units}
    return [by_id[id] for id in {*by_id}]


def _by_drafts_before(units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
    SEEN.append(row.id)
    return sorted(units, key=lambda unit: SEEN[-2:].count(unit.id))


class Shuffles(Notes):
    """Rotates a list that it keeps."""

    def ordered(self, units: Sequence[mt.Unit], row: NoteRow) -> Sequence[mt.Unit]:
        kept = vars(self).setdefault("turns", [])
        kept.append(row.id)
        return [*units[len(kept) % 5 :], *units[: len(kept) % 5]]


SetOrder, Remembers = ordering(_by_set), ordering(_by_drafts_before)
RecordCounter = wrong(record=lambda self, example: {**Notes.record(self, example), "number": next(COUNT)})


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


class EndsProcess(Notes):
    """Ends any process that did not make its drafts."""

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        KNOWN[f"ends {name}"] = ""
        return super().ask(name)

    def prompt(self, record: mt.Record) -> mt.Prompt:
        if f"ends {record['name']}" not in KNOWN:
            raise SystemExit(3)
        return super().prompt(record)


# Units and take orders


@dataclass(frozen=True)
class _Once(mt.advanced.TakeOrder):
    left: Iterator[mt.Unit]

    def units(self, length: int) -> Iterable[mt.Unit]:
        return self.left


@dataclass(frozen=True)
class _ByLength(mt.advanced.TakeOrder):
    all: tuple[mt.Unit, ...]
    is_text: bool = False

    def units(self, length: int) -> Iterable[mt.Unit]:
        if self.is_text:
            return (replace(unit, tail=f" (of {length})") for unit in self.all)
        return self.all if length <= 1024 else self.all[::-1]


def _with_tails(self: Notes, example: mt.PackedExample) -> mt.Record:
    return {**Notes.record(self, example), "notes": [unit.text for unit in example.units]}


def _all_required(self: Notes, *given: Any) -> mt.advanced.ContextDraft:
    made = Notes.draft(self, *given)
    units = tuple(replace(unit, role="own") for unit in made.take_order.units(0))
    return replace(made, required=(*made.required, *units), take_order=mt.InOrder(()))


OnceOnly = wrong(taken=lambda self, units: _Once(iter(units)))
LengthOrder = wrong(taken=lambda self, units: _ByLength(units))
LengthText = wrong(taken=lambda self, units: _ByLength(units, is_text=True), record=_with_tails)
HoldsAnswer = wrong(text=lambda self, note, row: f"{Notes.text(self, note, row)} It is not {row.colour}.")
GoldTwice = wrong(
    ordered=lambda self, units, row: [mt.Unit("copy", self.text(row, row), (0,), "own"), *units],
)
Everything = wrong(draft=_all_required)
LengthCluster = wrong(cluster=lambda self, record: f"{record['length'] > 1024}")
DepthCluster = wrong(cluster=lambda self, record: f"{record['depth']}")
SlotLeft = wrong(instruction="Read the notes about {name}.\n\n")
ExpressionLeft = wrong(ask=lambda self, name: ("\n\nQuestion: which colour has {row.name}?\nAnswer:",))
Marker = wrong(instruction="Read the notes.\n<image>\n")

# What gives the answer away


def _colour(name: str) -> str:
    return COLOURS[int(name.removeprefix("note")) % len(COLOURS)]


def _headed(inside: str, head: str) -> Any:
    """Return a task that writes the role of a unit at its beginning: in its text, or before it."""

    def note(
        self: Notes, note: NoteRow, role: mt.advanced.Role, place: tuple[int, ...] | None, row: NoteRow
    ) -> mt.Unit:
        text = inside.format(role=role) + self.text(note, row)
        return mt.Unit(note.name, text, place, role, head.format(role=role))

    return wrong(note=note, record=_with_tails)


class GoldOffered(Notes):
    """Takes the gold note as long as there is room."""

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        return mt.advanced.TaskSpec(mt.readers.FilePattern("notes/{name}_K{k}.jsonl"), self.metric)

    def draft(self, row: NoteRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        made = super().draft(row, sources, draws)
        last = replace(made.required[0], place=(999,))
        return replace(made, required=(), take_order=mt.InOrder((*made.take_order.units(0), last)))


class LateError(Notes):
    """Fails for a note that is not in the sample."""

    def answer(self, row: NoteRow) -> object:
        if row.name == "note07":
            raise KeyError(row.name)
        return [row.colour]


class FirstOf(Notes):
    """Asks for the first of two notes, wherever they stand."""

    def draft(self, row: NoteRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        made = super().draft(row, sources, draws)
        (asked,), other = made.questions, mt.Unit("other", f"The other note is not {row.name}, whatever you read.")
        wording = mt.Wording(("first", "second"), lambda units: 0, lambda text: (f"{asked.parts[0]} The {text}:",))
        question = replace(asked, parts=wording.parts("first"), wording=wording)
        return replace(made, required=(*made.required, other), questions=(question,))

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        return replace(super().spec, placements=mt.Placements(mt.Permutation, (0, 1, 2, 3)))


class PromptDate(Notes):
    """Writes the date into the prompt, and not into the record."""

    def ask(self, name: str) -> tuple[mt.Part, ...]:
        return (f"\n\nIt is {date.today()}. Which colour has {name}?\nAnswer:",)  # noqa: DTZ011  (the mistake)

    def prompt(self, record: mt.Record) -> mt.Prompt:
        return super().prompt({**record, "asked": self.ask(record["name"])})

    def record(self, example: mt.PackedExample) -> mt.Record:
        return {**super().record(example), "asked": []}


class MemoCounter(Notes):
    """Keeps a number with the question, under a key that JSON cannot hold."""

    def draft(self, row: NoteRow, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        draft = super().draft(row, sources, draws)
        data = {**draft.questions[0].data, "memo": {"text": INSTRUCTION * 9, (1, 2): next(COUNT)}}
        return replace(draft, questions=(replace(draft.questions[0], data=data),))


EmptyUnits = wrong(
    ordered=lambda self, units, row: [*(mt.Unit(f"empty {n}", "", (0,), "padding") for n in range(9)), *units]
)
TwoIds = wrong(ordered=lambda self, units, row: [units[0], replace(units[0], id="again"), *units[1:]])
Marked, MarkedInside = _headed("", "[{role}] "), _headed("{role}: ", "")


def _timed(self: Notes, note: NoteRow, role: mt.advanced.Role, place: tuple[int, ...] | None, row: NoteRow) -> mt.Unit:
    """Return a note with its time, after which gold has another mark."""
    head = f"9:{int(note.name.removeprefix('note')):02}{'!' if role == 'gold' else ''} "
    return mt.Unit(note.name, self.text(note, row), place, role, head)


MarkedByForm = wrong(note=_timed, record=_with_tails)
AsksAnswer = wrong(ask=lambda self, name: (f"\n\nQuestion: has {name} the colour {_colour(name)}?\nAnswer:",))
OtherPages = wrong(evidence=lambda self, record: mt.Evidence("doc", (7,), (1, 2)))
NoImages = wrong(evidence=lambda self, record: mt.Evidence("doc", (1,), (1, 2)))
Positioned = wrong(record=lambda self, example: {**Notes.record(self, example), "position": 0.5})

# Answers and metrics

EmptyWord = answering("sub_em", ["the"])
LateOption, NegativeLabel = answering("mc_acc", 12), answering("cls_acc", -1)
LongYes = answering("binary_acc", "Certainly")
WordyFloat = wrong(metric="doc_qa", answer=lambda self, row: "many", answer_format=lambda self, record: "Float")
UnshownOption, OptionTwice = (
    wrong(
        metric="mc_acc",
        answer=lambda self, row: 0,
        choices=lambda self, record, offered=offered: mt.Choices(offered, 0),
    )
    for offered in (("colour", "mauve"), ("colour", "colour"))
)
Generous, Harsh, Moody, AnyText, AnyColour = (
    wrong(metric=name) for name in ("generous", "harsh", "moody", "any-text", "any-colour")
)


class GenerousMetric(mt.metrics.Metric):
    """A metric that is content with anything."""

    name = "generous"

    def score(self, asked: mt.metrics.ScoringInput) -> mt.Score:
        return mt.Score(1.0)


class HarshMetric(mt.metrics.Metric):
    """A metric without a full score."""

    name = "harsh"

    def score(self, asked: mt.metrics.ScoringInput) -> mt.Score:
        return mt.Score(0.9 * (asked.prediction != ""))


class MoodyMetric(mt.metrics.Metric):
    """A metric that raises for an empty output."""

    name = "moody"

    def score(self, asked: mt.metrics.ScoringInput) -> mt.Score:
        return mt.Score(float(len(asked.prediction) / len(asked.prediction)))


class AnyTextMetric(mt.metrics.Metric):
    """A metric that is content with any output."""

    name = "any-text"

    def score(self, asked: mt.metrics.ScoringInput) -> mt.Score:
        return mt.Score(float(bool(asked.prediction)))


class AnyColourMetric(mt.metrics.Metric):
    """A metric that is content with any colour."""

    name = "any-colour"

    def score(self, asked: mt.metrics.ScoringInput) -> mt.Score:
        return mt.Score(float(asked.prediction in COLOURS))


# Readers

TellingIds = wrong(NoteReader, id=lambda self, name: f"{name}-{_colour(name)}")
SameIds = wrong(NoteReader, id=lambda self, name: name[:5])
CountedIds = wrong(NoteReader, id=lambda self, name: f"note-{next(COUNT)}")
SetRows = wrong(NoteReader, lines=lambda self, sources: {*NoteReader.lines(self, sources)})
RandomRows = wrong(
    NoteReader,
    row=lambda self, raw, sources: NoteRow(id=raw.id, name=raw.fields["name"], colour=random.choice(COLOURS)),
)
NoRows = wrong(
    NoteReader,
    row=lambda self, raw, sources: mt.Fault("no-moral", "a moral", "nothing", field="moral", todo="add the column"),
)


def draw_random(folder: Path) -> dict[str, Path]:
    found = draw_notes(folder)
    with found["notes"].open("a", encoding="utf-8") as file:
        file.write(f"\nlast {random.getrandbits(64):x}")
    return found

"""Checks every example before it is written: its draft, its units, its record, its answer, and the prompt that is
rebuilt from the record.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from hashlib import blake2b
from itertools import takewhile, zip_longest
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias, cast, get_args

from mmlongbench.draft import NEEDLES, ContextDraft, Draft, Question, Role, TakeOrder, Unit, Wording
from mmlongbench.errors import ScoringError
from mmlongbench.lengths import K
from mmlongbench.manifest.binding import Bound, PluginCallError, broken, calling
from mmlongbench.packing.pack import PackedExample
from mmlongbench.prompt import Image, Part, Prompt, Turn, needle_parts, shows
from mmlongbench.task.builder import scoring_input
from mmlongbench.task.file_formats import FileFormat, to_json, written
from mmlongbench.task.metric import Metric, Settings
from mmlongbench.task.rows import Record, Row
from mmlongbench.task.take_orders import Chain, InOrder
from mmlongbench.task.task import Task

ROLES: frozenset[str] = frozenset(get_args(Role))
JUDGED = "judge-"
"""The prefix of the names of metrics that ask a model; answers are not checked with these metrics."""
_AROUND = 24
"""How many characters an excerpt of a text has; it begins a little before the first difference."""

FirstPlacements: TypeAlias = dict[str, tuple[str, bytes, str, bytes, str]]
"""The first placement of each question at a length, by its id: its name, its answer as JSON and in short, a digest of
its needles, its cluster."""


class ExampleChecks:
    """The checks of the examples of one dataset. Each raises a `PluginCallError`, which names the method of the builder
    and the row.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound, self._builder = bound, bound.builder
        self._scored: dict[str, bytes] = {}
        """A digest of the last answer of each question that the metric can score."""
        self._written: tuple[str, dict[tuple[object, ...], bytes]] = "", {}
        """The last question, and the JSON of its units."""
        self._passed: dict[int, Unit] = {}
        """The units of the last example that passed `check_units`, by their identity."""

    def check_draft(self, draft: ContextDraft, row: Row) -> None:
        """Refuse a draft unless it has exactly one question, with the id of the row, and no gold unit has a place if
        there are placements.
        """
        placed = (unit.id for unit in draft.required if unit.role == "gold" and unit.place is not None)
        if self._bound.placements != (None,) and (id := next(placed, None)) is not None:
            said = f"unit {id!r} is required and has a place; in a task with placements, what is put at a depth has"
            raise self._broken("draft()", f"{said} `place=None`; give it the role own, or no place", row)
        ids = [question.id for question in draft.questions]
        if ids != [row.id]:
            fault = f"expected one question with the id of the row, found {', '.join(map(repr, ids[:3])) or 'none'}"
            if not ids and isinstance(self._builder, Task):
                fault += "; return an mt.Draft, to which the task adds it"
            raise self._broken("draft()", fault, row)

    def check_units(self, example: PackedExample, row: Row) -> None:
        """Refuse units of unknown roles, and two units with the same picture (`TaskSpec.repeats_pictures`). With
        placements, exactly the gold and needle units have no place, and there is at least one; without placements,
        every unit has a place.
        """
        shown: dict[str, str] = {}  # the units that show pictures, by the paths
        may_not_repeat = not self._bound.task.repeats_pictures
        has_placements = example.placement is not None
        fault = ""
        # the units of a further placement are the same, but for texts that needles stand in
        units, passed, now = example.units, self._passed, dict(zip(map(id, example.units), example.units, strict=True))
        new, gone = now.keys() - passed.keys(), passed.keys() - now.keys()
        is_alike = len(new) < len(now) and {now[key].id: now[key].images for key in new} == {
            passed[key].id: passed[key].images for key in gone
        }
        for unit in [unit for key, unit in now.items() if key in new] if is_alike else units:
            images: Sequence[str] = ()
            if fault := unit_fault(unit):
                pass
            elif unit.role not in ROLES:
                fault = f"unit {unit.id!r} has the role {unit.role!r}; roles are {', '.join(sorted(ROLES))}"
            elif (
                (images := unit.images) and may_not_repeat and (twice := next((p for p in images if p in shown), None))
            ):
                said = f"the units {shown[twice]!r} and {unit.id!r} show the same picture, {twice}"
                fault = f"{said}; leave one out, or set `repeats_pictures = True` if pictures may be repeated"
            elif not has_placements and unit.place is None:
                todo = "give it a place, or the task needles"
                fault = f"unit {unit.id!r} has no place, and the task has no placements; {todo}"
            elif unit.turns and (unit.body or unit.head or unit.tail or unit.further):
                fault = f"unit {unit.id!r} has turns and other parts; give every text and every image of it to a turn"
            elif any(not any(turn.parts) for turn in unit.turns):
                fault = f"unit {unit.id!r} has a turn without a text or an image"
            elif has_placements and unit.role in NEEDLES and unit.place is not None:
                said = f"unit {unit.id!r} has the role {unit.role} and a place"
                fault = f"{said}: what is put at a depth has `place=None`"
            elif has_placements and unit.role not in NEEDLES and unit.place is None:
                said = f"unit {unit.id!r} has the role {unit.role} and no place"
                fault = f"{said}: only units of the roles {' and '.join(NEEDLES)} have none"
            if fault:
                raise self._broken("draft()", fault, row)
            shown.update(dict.fromkeys(images, unit.id) if images else ())
        if {example.prompt.turns[0].role, example.prompt.turns[-1].role} != {"user"}:
            said = f"the first is the {example.prompt.turns[0].role}'s, the last the {example.prompt.turns[-1].role}'s"
            todo = "give the task an instruction, or let its units begin with the user, and ask a question"
            raise self._broken("draft()", f"a conversation begins and ends with the user; {said}; {todo}", row)
        if has_placements and not example.needles:
            todo = "give one the role needle and `place=None`"
            raise self._broken("draft()", f"the task has placements, and no required unit is a needle; {todo}", row)
        self._passed = now

    def check_record(self, example: PackedExample, record: Record, row: Row) -> bytes:
        """Return the line of a record, or refuse the record: it must have the row's id and a usable answer, JSON must
        be able to hold it, and its prompt must be the packed one.

        Prompt and answer are taken from the record as it is after it was written as JSON and read again.
        """
        if record.get("id") != row.id:
            found = repr(record["id"]) if "id" in record else "none"
            raise self._broken("record()", f"the record's id must be the row's, found {found}", row)
        fault, line, released = "", b"", record
        try:
            if example.id != self._written[0]:
                self._written = example.id, {}
            line, released = written(record, None if example.placement is None else self._written[1])
        except RecursionError:
            fault = "the record is nested too deeply for JSON, or contains itself"
        except (TypeError, ValueError) as error:
            fault = _unreleasable(record) or str(error)
        if fault:
            raise self._broken("record()", fault, row)
        with self._calling("prompt()", row):
            rebuilt = self._builder.prompt(released)
        if rebuilt != example.prompt and (fault := difference(example.prompt, rebuilt)):
            raise self._broken("prompt()", f"prompt(record) is not the prompt that was packed: {fault}", row)
        if not any(isinstance(part, str) and part.strip() for part in example.prompt.parts):
            raise self._broken("draft()", "the prompt has no text", row)
        with self._calling("answer_of()", row):
            fault = self._answer_fault(released, row)
        if fault:
            raise self._broken("record()", fault, row)
        if example.placement in (None, self._bound.placements[0]):
            self._check_variants(example, released, row)
        return line

    def _check_variants(self, example: PackedExample, record: Record, row: Row) -> None:
        """Refuse a variant of the prompt (`Builder.variants`) that cannot be made from a record, or that shows a
        picture which is not in the packed prompt.
        """
        for variant in self._builder.variants:
            method = f"render_variant({variant!r})"
            with self._calling(method, row):
                made = self._builder.render_variant(record, variant)
            if not isinstance(made, Prompt) or not made.text.strip():
                raise self._broken(method, f"expected a Prompt with a text, found {type(made).__name__}", row)
            if other := sorted(set(made.images) - set(example.prompt.images)):
                raise self._broken(method, f"it shows {other[0]!r}, which the packed prompt does not", row)

    def _answer_fault(self, record: Record, row: Row) -> str:
        """Return what is wrong with the answer of a record; empty if nothing is. The metric is asked whether it can
        score the answer, once for all records of a question that have the same answer.
        """
        gold, task = self._builder.answer_of(record), self._bound.task
        if gold is None and "answer" not in record:
            return "the record has no 'answer', and answer_of() gives none"
        if _is_empty(gold) and not task.may_lack_answers:
            return f"the answer is empty: {gold!r:.80}"
        digest = blake2b(to_json(gold), digest_size=16).digest()
        if self._metric is None or self._scored.get(row.id) == digest:
            return ""
        file = task.files.write(self._builder.dataset, K, 1, 1)  # a name in the form of the task's file names
        with self._calling("a method that scoring calls", row):
            asked = scoring_input(self._builder, record, file)
        try:
            with calling("metric", task.metric, "answer_fault()", about=f"the answer {gold!r:.80}"):
                if fault := self._metric.answer_fault(asked):
                    return f"metric {task.metric!r} cannot score the answer {gold!r:.80}: {fault}"
        except ScoringError:  # the metric needs a package or a source that is not installed
            pass
        self._scored[row.id] = digest
        return ""

    @cached_property
    def _metric(self) -> Metric | None:
        if self._bound.task.metric.startswith(JUDGED):
            return None
        try:
            with calling("metric", self._bound.task.metric, "__init__()"):
                return self._bound.metric(Settings())
        except ScoringError:  # it may need a judge, documents or a key, which only scoring has
            return None

    def check_file(self, form: FileFormat, path: Path, records: Iterable[Record], name: str) -> None:
        """Refuse a file in a builder's own format if the prompt of a record cannot be rebuilt from the file.

        `check_record` has already checked that each record gives the packed prompt. A file may hold further examples,
        such as every set of exemplars with every question; these are not compared. `records` are those that the file
        was made from, and `name` is its name in messages.
        """

        def digest(record: Record) -> bytes:
            return _digest(Prompt.of(self._builder.prompt(record).parts).parts)

        method = "the format of its files"
        with self._calling(method, about=f"file {name}"):
            wanted: dict[str, set[bytes]] = {}
            for record in records:
                wanted.setdefault(str(record["id"]), set()).add(digest(json.loads(to_json(record))))
            for _, record in form.unbundle(path):
                if left := wanted.get(str(record.get("id"))):
                    left.discard(digest(record))
        if missing := sorted(id for id, left in wanted.items() if left):
            fault = f"the prompt of example {missing[0]!r} cannot be rebuilt from {name} as it was packed"
            raise self._broken(method, fault)

    def check_placements(self, example: PackedExample, record: Record, row: Row, first: FirstPlacements) -> None:
        """Refuse a record whose answer, needles or cluster differ from those at an earlier placement of its length.
        With `TaskSpec.is_answer_of_context`, the answers may differ. `first` has what earlier calls have added.
        """
        placement = example.placement
        at = f"{placement.field} {placement.value}" if placement else "none"
        with self._calling("answer_of()", row):
            gold = self._builder.answer_of(record)
        with self._calling("cluster()", row):
            cluster = self._builder.cluster(record)
        needles = self._needles(record, example, row)
        ours = (at, to_json(gold), f"{gold!r:.80}", needles, cluster)
        other, answer, said, theirs, first_cluster = first.setdefault(example.id, ours)
        if answer != ours[1] and not self._bound.task.is_answer_of_context:
            fault = f"the answer is {said} at {other} and {ours[2]} at {at}; a task whose answers depend on the context"
            raise self._broken("record()", f"{fault} has `is_answer_of_context` in its spec", row)
        if theirs != needles:
            raise self._broken("needles()", f"the needles at {other} differ from those at {at}", row)
        if first_cluster != cluster:
            fault = f"the cluster is {first_cluster!r:.60} at {other} and {cluster!r:.60} at {at}"
            raise self._broken("cluster()", f"{fault}, expected one of a question", row)

    def _needles(self, record: Record, example: PackedExample, row: Row) -> bytes:
        """Return a digest of the needles of a record, after checking that all of them are in the prompt; empty if
        `needles()` returns None.
        """
        with self._calling("needles()", row):
            given = self._builder.needles(record)
            if given is None:
                return b""
            needles = given if isinstance(given, str) else list(given)
            parts = [needle if isinstance(needle, tuple) and needle else (needle,) for needle in needles]
            if isinstance(needles, str) or not all(isinstance(part, str | Image) for each in parts for part in each):
                raise TypeError(f"expected a list of texts, images, and tuples of them, found {needles!r:.80}")
        for needle in needles:
            if not shows(example.prompt.parts, needle):
                said = " and ".join(map(_said, needle_parts(needle)))
                raise self._broken("needles()", f"{said} is not in the prompt", row)
        return _digest(sorted(map(str, needles)))

    def _calling(self, method: str, row: Row | None = None, about: str = "") -> AbstractContextManager[None]:
        return calling("builder", self._bound.spec.builder, method, row, about)

    def _broken(self, method: str, fault: str, row: Row | None = None) -> PluginCallError:
        return broken("builder", self._bound.spec.builder, method, fault, row)


def draft_fault(draft: object) -> str:
    """Return which field of a draft has a wrong type, of a required unit, or of a question; empty if none has."""
    known = next((kind for kind in (Draft, ContextDraft) if isinstance(draft, kind)), None)  # or a subclass
    return _fault(draft, known) if known else f"returned {_a(draft)}, expected a Draft"


def unit_fault(unit: object) -> str:
    """Return which field of a unit has a wrong type; empty if none has."""
    if not isinstance(unit, Unit):
        return f"take_order holds {_a(unit)}, expected mt.Unit"
    return f"unit {unit.id!r}: {fault}" if (fault := _fault(unit, Unit)) else ""


def _fault(value: Any, kind: type) -> str:  # noqa: ANN401  (of this kind)
    for name, kinds, items, expected in _FIELDS[kind]:
        found: Any = getattr(value, name)
        found_kind = type(found)
        if found_kind is kinds[0] and (found_kind is str or not found):  # most fields; every packed unit comes here
            continue
        is_right = isinstance(found, kinds)
        if not is_right:
            return f"{name} is {_a(found)}, expected {expected}"
        is_sequence = items and isinstance(found, _TUPLE)
        for each in found if is_sequence else (found,):
            if is_sequence and not isinstance(each, items):
                return f"{name} holds {_a(each)}, expected {expected}"
            if type(each) in _FIELDS and (fault := _fault(each, type(each))):
                return f"{f'unit {each.id!r}' if isinstance(each, Unit) else name}: {fault}"
    if kind is Turn and value.role not in ("user", "assistant"):
        return f"role is {value.role!r}, expected user or assistant"
    filled = value.question if kind is Draft else value.texts if kind is Wording else None
    if filled is not None and not (filled.strip() if isinstance(filled, str) else filled):
        return "question is empty" if kind is Draft else "texts is empty"
    return ""


def _a(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


_TUPLE, _PART, _PARTS, _CALL = (tuple, list), (str, Image), "a tuple of texts and images", cast("type", Callable)
_COMMA = ", such as (x,) with its comma"
_Field: TypeAlias = tuple[str, tuple[type, ...], tuple[type, ...], str]
_DRAFT: tuple[_Field, ...] = (
    ("required", _TUPLE, (Unit,), f"a tuple of mt.Unit{_COMMA}"),
    ("take_order", (TakeOrder,), (), "a TakeOrder such as mt.InOrder(units)"),
    ("one_of", (*_TUPLE, NoneType), (Unit,), "a tuple or list of mt.Unit"),
    ("instruction", _TUPLE, _PART, f"{_PARTS}{_COMMA}"),
    ("noted", _TUPLE, (str,), f"a tuple of texts{_COMMA}"),
)
_FIELDS: dict[type, tuple[_Field, ...]] = {
    Draft: (
        *_DRAFT,
        ("question", (str, *_TUPLE, Wording, NoneType), _PART, f"a text, {_PARTS}, or mt.Wording"),
        ("fields", (dict, Mapping), (), "a dict"),
    ),
    ContextDraft: (
        *_DRAFT,
        ("separator", (str,), (), "a text"),
        ("questions", _TUPLE, (Question,), f"a tuple of mt.advanced.Question{_COMMA}"),
    ),
    Question: (("parts", _TUPLE, _PART, _PARTS), ("wording", (Wording, NoneType), (), "mt.Wording")),
    Wording: (
        ("texts", (tuple,), (str,), "a tuple of texts"),
        ("choose", (_CALL,), (), "a function"),
        ("parts", (_CALL,), (), "a function"),
    ),
    InOrder: (("order", (Collection,), (), "a tuple or list of mt.Unit"),),
    Chain: (("parts", _TUPLE, (InOrder, _CALL), f"a tuple of mt.InOrder and functions{_COMMA}"),),
    Unit: (
        *((name, (str,), (), "a text") for name in ("id", "role", "head", "tail", "label")),
        ("body", _PART, (), "a text or mt.Image"),
        ("place", (tuple, NoneType), (int, Integral), "a tuple of whole numbers such as (3,)"),
        ("further", _TUPLE, _PART, f"{_PARTS}{_COMMA}"),
        ("turns", _TUPLE, (Turn,), f"a tuple of mt.Turn{_COMMA}"),
    ),
    Turn: (("parts", _TUPLE, _PART, f"{_PARTS}{_COMMA}"),),
}
"""The fields that authors give: their types, those of the items of a sequence, and what is expected in words."""


def _is_empty(gold: object) -> bool:
    if isinstance(gold, str):
        return not gold.strip()
    return gold is None or (isinstance(gold, list | dict) and (not gold or all(map(_is_empty, gold))))


def _digest(value: object) -> bytes:
    return blake2b(repr(value).encode("utf-8", "backslashreplace"), digest_size=16).digest()


def difference(packed: Prompt, rebuilt: object) -> str:
    """Return where a rebuilt prompt first differs from the packed one, in words; empty if both are the same.

    >>> difference(Prompt.of(["a", Image("x.jpg")]), Prompt.of(["a", Image("y.jpg")]))
    "image 1 of 1 is 'x.jpg' in the packed prompt, 'y.jpg' in the rebuilt one"
    """
    if not isinstance(rebuilt, Prompt):
        return f"it is a {type(rebuilt).__name__}, expected a Prompt"
    for number, (turn, other) in enumerate(zip_longest(packed.turns, rebuilt.turns), 1):
        if turn is None or other is None or turn.role != other.role:
            roles = " in the packed prompt, ".join(each.role if each else "missing" for each in (turn, other))
            return f"turn {number} is {roles} in the rebuilt one"
        said, found = Prompt.of(turn.parts), Prompt.of(other.parts)
        if len(packed.turns) > 1 and said != found:
            return f"in turn {number}, {difference(said, found)}"
    if len(packed.turns) > 1:
        return ""
    ours, theirs = packed.parts, Prompt.of(rebuilt.parts).parts
    differing = (n for n, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other)
    at = next(differing, min(len(ours), len(theirs)))
    if at == len(ours) == len(theirs):
        return ""
    if at in (len(ours), len(theirs)):
        which, longer = ("packed", ours) if len(ours) > len(theirs) else ("rebuilt", theirs)
        return f"only the {which} one has part {at + 1}, {_said(longer[at])}"
    one, other = ours[at], theirs[at]
    if isinstance(one, Image) and isinstance(other, Image):
        number = sum(isinstance(part, Image) for part in ours[: at + 1])
        where = f"image {number} of {len(packed.images)}"
        return f"{where} is {one.path!r} in the packed prompt, {other.path!r} in the rebuilt one"
    if isinstance(one, str) and isinstance(other, str):
        char = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
        start = max(0, char - _AROUND // 3)
        before = "".join(part for part in ours[:at] if isinstance(part, str))
        excerpts = f"{_excerpt(one, start)} in the packed prompt, {_excerpt(other, start)} in the rebuilt one"
        return f"the text at character {len(before) + char} is {excerpts}"
    return f"part {at + 1} is {_said(one)} in the packed prompt, {_said(other)} in the rebuilt one"


def _said(part: Part) -> str:
    return f"the image {part.path!r}" if isinstance(part, Image) else f"the text {_excerpt(part, 0)}"


def _excerpt(text: str, start: int) -> str:
    return f"{'…' if start else ''}{text[start : start + _AROUND]!r}{'…' if len(text) > start + _AROUND else ''}"


def _unreleasable(value: object, place: str = "record") -> str:
    """Return in words which value JSON cannot hold, and where it is; empty if JSON can hold all values."""
    parts: Sequence[tuple[object, Any]] = ()
    if isinstance(value, dict):
        if wrong := next((key for key in value if not isinstance(key, str | int | float | bool | None)), None):
            return f"{place} has the key {wrong!r:.80}, which JSON cannot hold"
        parts = list(value.items())
    elif isinstance(value, list | tuple):
        parts = list(enumerate(value))
    elif isinstance(value, float) and not math.isfinite(value):
        return f"{place} is {value}, which JSON cannot hold"
    elif not isinstance(value, str | int | float | bool | None):
        return f"{place} is a {type(value).__name__}, which JSON cannot hold"
    faults = (_unreleasable(part, f"{place}[{key!r}]") for key, part in parts)
    return next(filter(None, faults), "")

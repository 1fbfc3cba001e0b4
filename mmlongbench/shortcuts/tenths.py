"""Whether a tenth of a context is enough, for answers that a task computes from its context (`Task.answer`).

The answer is computed again from the first tenth, the last tenth and a drawn tenth of the units.
"""

import math
from collections.abc import Sequence
from typing import Any

from mmlongbench.draft import Question, Unit
from mmlongbench.draws import Draws
from mmlongbench.packing.pack import PackedExample
from mmlongbench.prompt import Image, Prompt
from mmlongbench.task.builder import Builder
from mmlongbench.task.rows import Record, Row
from mmlongbench.task.task import Task
from tokenization import TokenCount

TENTHS = ("the first tenth", "the last tenth", "a drawn tenth")
_FEWEST = 10
"""The fewest units of a context that is divided."""


def right_tenths(builder: Builder[Row], record: Record, ids: Sequence[str] = ()) -> tuple[bool, ...] | str:
    """Return whether each of the `TENTHS` gives the answer of a record, whose units have these ids; or why this cannot
    be tried.
    """
    if not isinstance(builder, Task) or type(builder).answer is Task.answer:
        return "its answers are not computed by a method `answer(example)`"
    if type(builder).record is not Task.record:
        return "its records have a form of their own, from which no example can be made again"
    written: Sequence[Any] = record["units"]
    if len(written) < _FEWEST:
        return f"its contexts have fewer than {_FEWEST} units"
    fields = {name: record[name] for name in builder.row_type.model_fields if name in record}
    try:
        row = builder.row_type.model_validate(fields)
        whole = _example(record, row, range(len(written)), ids)
        if builder.answer(whole) != record["answer"]:
            return "`answer(example)` needs more than the record has of its units"
    except Exception as error:  # noqa: BLE001  (it may need what a record does not have, such as `group` of units)
        why = f"{type(error).__name__}: {error}"
        missing = "" if ids else "; the release has no items, so units have no ids"
        return f"`answer(example)` cannot be called with what the record has: {why:.200}{missing}"
    n = math.ceil(len(written) / 10)
    drawn = sorted(Draws(("shortcuts", "tenth", record["id"])).order("units", range(len(written)))[:n])
    given = []
    for places in (range(n), range(len(written) - n, len(written)), drawn):
        try:
            given.append(bool(builder.answer(_example(record, row, places, ids)) == record["answer"]))
        except Exception:  # noqa: BLE001  (no answer from this part)
            given.append(False)
    return tuple(given)


def _example(record: Record, row: Row, places: Sequence[int], ids: Sequence[str]) -> PackedExample:
    """Return an example with some of the units of a record."""
    units = []
    for place in places:
        unit = record["units"][place]
        parts = [Image(part["image"]) if isinstance(part, dict) else part for part in unit["shown"]]
        body = next((part for part in parts if isinstance(part, Image)), "".join(map(str, parts)))
        more = {"data": unit.get("data", {}), "label": unit.get("label", "")}
        units.append(Unit(ids[place] if ids else f"{place}", body, (place,), unit["role"], **more))
    question = Question(record["id"], (), {"row": row, "answer": None, "fields": {}})
    return PackedExample(record["id"], question, tuple(units), (), (), Prompt.of(()), TokenCount(0, 0), 0)

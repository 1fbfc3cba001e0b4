"""Reject lines: what was left out and why, for `rejects.jsonl`; nothing is dropped silently."""

from dataclasses import replace
from typing import Any

from mmlongbench.errors import Fault
from mmlongbench.task.rows import Row


def reject(dataset: str, id: str, fault: Fault, length: int | None = None) -> dict[str, Any]:
    """One line: a row reject has no length, a fit reject has one (tokens)."""
    return {"reject": {"dataset": dataset, "id": id, "length": length, **fault.fields()}}


def reject_row(dataset: str, row: Row, fault: Fault, length: int | None = None) -> dict[str, Any]:
    """The line of a row that was read: a fault that names no file of its own is at the row's place."""
    at = fault if fault.file else replace(fault, file=row.file, place=row.place)
    return reject(dataset, row.id, at, length)


def sentence(line: dict[str, Any]) -> str:
    """A reject in words."""
    fields = {key: value for key, value in line.items() if key not in ("dataset", "id", "length")}
    return f"{line['dataset']}, {line['id']}: {Fault(**fields)}"

"""Rejects: what was left out and why, for `rejects.jsonl`."""

from dataclasses import replace

from mmlongbench.building.lines import Reject
from mmlongbench.errors import Fault
from mmlongbench.task.rows import Row


def reject_row(dataset: str, row: Row, fault: Fault, length: int | None = None) -> Reject:
    """Return the reject of a row; a fault that names no file gets the file and place of the row."""
    return Reject(dataset, row.id, length, fault if fault.file else replace(fault, file=row.file, place=row.place))


def sentence(found: Reject) -> str:
    """Return a reject as one sentence."""
    return f"{found.dataset}, {found.id}: {found.fault}"

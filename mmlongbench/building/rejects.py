"""Rejects: what was left out and why, for `rejects.jsonl`."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from mmlongbench.building.lines import Reject
from mmlongbench.errors import BuildError, Fault
from mmlongbench.task.rows import Row

_FAULT = TypeAdapter(Fault)
_ABOUT = ("dataset", "id", "length")
"""The keys of a line of `rejects.jsonl` that do not belong to the fault."""


def reject_row(dataset: str, row: Row, fault: Fault, length: int | None = None) -> Reject:
    """Return the reject of a row; a fault that names no file gets the file and place of the row."""
    return Reject(dataset, row.id, length, fault if fault.file else replace(fault, file=row.file, place=row.place))


def sentence(found: Reject) -> str:
    """Return a reject as one sentence."""
    return f"{found.dataset}, {found.id}: {found.fault}"


def read_rejects(path: Path) -> Iterator[Reject]:
    """Yield the lines of `rejects.jsonl`.

    Raises:
        BuildError: the file cannot be read, or a line is not a reject.

    """
    try:
        with path.open("rb") as lines:
            for line in lines:
                found = json.loads(line)
                fault = {key: value for key, value in found.items() if key not in _ABOUT}
                yield Reject(str(found["dataset"]), str(found["id"]), found["length"], _FAULT.validate_python(fault))
    except (OSError, ValueError, LookupError, AttributeError, ValidationError) as error:
        raise BuildError(f"{path}: cannot be read; put the file back, or build the release again") from error

"""The rejects of a release: the rows and questions that were left out, with reasons, one a line of `rejects.jsonl`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from mmlongbench.errors import BuildError, Fault
from mmlongbench.task.rows import Row

_FAULT = TypeAdapter(Fault)
_ABOUT = ("dataset", "id", "length")
"""The keys of a line of `rejects.jsonl` that do not belong to the fault."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A row or question that was left out, and why."""

    dataset: str
    id: str
    length: int | None
    """The length at which a question does not fit; None for a row that is in no file."""
    fault: Fault
    kind: Literal["reject"] = "reject"

    def fields(self) -> dict[str, object]:
        """Return the line of `rejects.jsonl`."""
        return {"dataset": self.dataset, "id": self.id, "length": self.length, **self.fault.fields()}


def reject_row(dataset: str, row: Row, fault: Fault, length: int | None = None) -> Reject:
    """Return the reject of a row; a fault that names no file gets the file and place of the row."""
    return Reject(dataset, row.id, length, fault if fault.file else replace(fault, file=row.file, place=row.place))


def read_rejects(path: Path) -> Iterator[Reject]:
    """Yield the lines of `rejects.jsonl`."""
    try:
        with path.open("rb") as lines:
            for line in lines:
                reject = json.loads(line)
                fault = {key: value for key, value in reject.items() if key not in _ABOUT}
                yield Reject(str(reject["dataset"]), str(reject["id"]), reject["length"], _FAULT.validate_python(fault))
    except (OSError, ValueError, LookupError, AttributeError, ValidationError) as error:
        raise BuildError(f"{path}: cannot be read; put the file back, or build the release again") from error

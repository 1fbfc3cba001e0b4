"""Rows: what a source has as it stands there, and cleaned; and what is wrong with one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

from mmlongbench.errors import Fault

Record: TypeAlias = dict[str, Any]
"""One example in the public format."""


SourcePaths: TypeAlias = Mapping[str, Path]
"""What a manifest's `source` names, by the reader's names for it."""


class Row(BaseModel):
    """One question as its source has it, cleaned; readers add their fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """The released id; from the source where it has any, else of the source's row number."""
    repairs: tuple[str, ...] = ()
    """What was mended on the way in, as slugs to count by."""
    file: str = ""
    """The name of the source file it stands in, for rejects."""
    place: str = ""
    """Where it stands there: a line, a row."""


@dataclass(frozen=True, slots=True)
class RowFault:
    """A row that cannot be read."""

    id: str
    fault: Fault

    def __post_init__(self) -> None:
        """Make a text of an id that a plug-in gave as something else."""
        object.__setattr__(self, "id", str(self.id))


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row as its source has it, before it is corrected and cleaned."""

    id: str
    """That of the row which is made of it."""
    fields: dict[str, Any]
    file: str = ""
    """The name of the source file it stands in, for rejects."""
    place: str = ""
    """Where it stands there: a line, a row."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row whose annotation may be wrong."""

    id: str
    kind: str
    """A slug to count by."""
    evidence: str
    correction: Mapping[str, Any] = field(default_factory=dict)
    """What would be right, by the source's own field names; empty where nobody can tell."""


def raw_row(id: str, fields: dict[str, Any] | Fault, file: str, place: str) -> RawRow | RowFault:
    """Return a raw row, or the fault of one whose fields cannot be read, with the place where it stands."""
    if isinstance(fields, Fault):
        return RowFault(id, replace(fields, file=fields.file or file, place=fields.place or place))
    return RawRow(id, fields, file, place)


def placed(found: Row | Fault, raw: RawRow) -> Row | RowFault:
    """Return what a reader made of a raw row, with the place where that stands in its source."""
    if isinstance(found, Row):
        return found.model_copy(update={"file": raw.file or found.file, "place": raw.place or found.place})
    return RowFault(raw.id, replace(found, file=found.file or raw.file, place=found.place or raw.place))

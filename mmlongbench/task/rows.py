"""Rows of a source, raw and cleaned, and the faults of rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

from mmlongbench.errors import Fault

Record: TypeAlias = dict[str, Any]
"""One example in the public format."""


SourcePaths: TypeAlias = Mapping[str, Path]
"""The paths that a manifest gives under `source`, by the names that the reader gives its sources."""


class Row(BaseModel):
    """One question of a source, cleaned; readers add their own fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """The released id: the id in the source. For rows without one, most readers number the rows; a `Task` takes a hash
    of the fields."""
    repairs: tuple[str, ...] = ()
    """What the reader repaired in this row, as slugs by which repairs are counted."""
    file: str = ""
    """The name of the source file that the row is in, for rejects."""
    place: str = ""
    """The row's position in that file, such as its line."""


@dataclass(frozen=True, slots=True)
class RowFault:
    """A row that cannot be read."""

    id: str
    """The id of the row, as far as it can be read."""
    fault: Fault
    """What is wrong with it."""

    def __post_init__(self) -> None:
        """Turn an id of another type, given by a plug-in, into text."""
        object.__setattr__(self, "id", str(self.id))


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row as its source has it, before errata and cleaning."""

    id: str
    """The id of the row that is made of it."""
    fields: dict[str, Any]
    """The fields of the row, by their names in the source."""
    file: str = ""
    """The name of the source file that the row is in, for rejects."""
    place: str = ""
    """The row's position in that file, such as its line."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row whose annotation may be wrong."""

    id: str
    """The id of the row."""
    kind: str
    """A slug by which suspects are counted."""
    evidence: str
    """Why it may be wrong, in words."""
    correction: Mapping[str, Any] = field(default_factory=dict)
    """The correct values, by the names of the fields in the source; empty if they are not known."""
    could_judge: bool = True
    """False: nothing is known about the row, for the reason that `kind` says; such rows are only counted."""


def raw_row(id: str, fields: dict[str, Any] | Fault, file: str, place: str) -> RawRow | RowFault:
    """Return a raw row with its position in the source. If `fields` is a fault, return a `RowFault` with the fault and
    the position.
    """
    if isinstance(fields, Fault):
        return RowFault(id, replace(fields, file=fields.file or file, place=fields.place or place))
    return RawRow(id, fields, file, place)


def placed(found: Row | Fault, raw: RawRow) -> Row | RowFault:
    """Return the row or fault that a reader made of a raw row, with the raw row's position in the source."""
    if isinstance(found, Row):
        return found.model_copy(update={"file": raw.file or found.file, "place": raw.place or found.place})
    return RowFault(raw.id, replace(found, file=found.file or raw.file, place=found.place or raw.place))

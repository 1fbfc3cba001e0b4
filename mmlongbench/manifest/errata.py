"""Errata: corrections of a source's rows, by id, on top of its pinned bytes; each says where it is from.

mmlongdoc_12:
source: https://example.org/issues/7
set: {evidence_pages: "[5]"}
was: {evidence_pages: "[4]"}   # optional: what the source must say for the correction to be made
mmlongdoc_31:
source: the document was replaced
drop: true
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from mmlongbench.errors import Fault, ManifestError, SourceError
from mmlongbench.io.safe_read import read_whole
from mmlongbench.io.yaml_text import load_yaml
from mmlongbench.task.rows import RawRow, Row, RowFault, SourcePaths, at_place

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?")
REPAIR = "corrected-by-errata"
"""The repair by which corrected rows are counted."""


class Erratum(BaseModel):
    """What is wrong with one row."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    source: str = Field(min_length=1)
    """Who says so."""
    set: dict[str, Any] = {}
    """The right values, by the source's own field names."""
    was: dict[str, Any] = {}
    """The wrong values; where the source says otherwise, the row is rejected."""
    drop: bool = False
    """Whether the row is left out."""

    @model_validator(mode="after")
    def _does_something(self) -> "Erratum":
        if bool(self.set) == self.drop:
            raise ValueError("expected either `set` or `drop: true`")
        return self


Errata = Mapping[str, Erratum]


class _Loader(yaml.SafeLoader):
    """YAML in which all but true and false is text, as it is written.

    Other loaders make 14:04, 007, 0.50 and No another value than the one that is written.
    """


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))


class CorrectableReader(Protocol):
    """A reader whose rows can be corrected before they are cleaned."""

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow]:
        """Every row as the source has it."""
        ...

    def row(self, id: str, raw: dict[str, Any]) -> Row | Fault:
        """One of them cleaned."""
        ...


def load_errata(path: Path) -> Errata:
    """The errata of a file.

    Raises:
        ManifestError: it cannot be read, or says something else; with the id and the key.

    """
    try:
        data = load_yaml(read_whole(path, "errata in YAML"), _Loader, twice=False)
    except (SourceError, ValueError) as error:
        raise ManifestError(f"errata {path.name}: {' '.join(str(error).split())[:200]}") from error
    try:
        return TypeAdapter(dict[str, Erratum]).validate_python(data or {})
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))[:200]
        raise ManifestError(f"errata {path.name}: {where}: {problem['msg'].removeprefix('Value error, ')}") from error


def read_rows(
    reader: CorrectableReader, sources: SourcePaths, errata: Errata | None = None
) -> Iterator[Row | RowFault]:
    """Every row of a source, corrected and cleaned, or what is wrong with it.

    Raises:
        SourceError: an erratum is about a row that the source does not have.

    """
    left = dict(errata or {})
    for raw in reader.raw_rows(sources):
        yield at_place(raw.id, _row(reader, raw, left.pop(raw.id, None)), raw.file, raw.place)
    if left:
        expected = "ids of rows of the source"
        raise SourceError(Fault("erratum-without-row", expected, ", ".join(sorted(left)[:5]), todo="take it out"))


def _row(reader: CorrectableReader, raw: RawRow, erratum: Erratum | None) -> Row | Fault:
    if erratum is None:
        return raw.value if isinstance(raw.value, Fault) else reader.row(raw.id, raw.value)
    if erratum.drop:
        return Fault("dropped-by-errata", "a row that can be asked", erratum.source)
    if isinstance(raw.value, Fault):
        return raw.value
    fields = raw.value
    if unknown := [field for field in (*erratum.set, *erratum.was) if field not in fields]:
        return Fault("erratum-of-no-field", f"one of {', '.join(fields)}", unknown[0], todo="mend the erratum")
    for field, value in erratum.was.items():
        if fields.get(field) != _like(value, fields.get(field)):
            expected, found = repr(value), repr(fields.get(field))[:120]
            return Fault("erratum-of-another-version", expected, found, field=field, todo="check the erratum")
    corrected = {field: _like(value, fields.get(field)) for field, value in erratum.set.items()}
    row = reader.row(raw.id, {**fields, **corrected})
    is_other = any(corrected[field] != fields[field] for field in corrected)
    return row.model_copy(update={"repairs": (*row.repairs, REPAIR)}) if isinstance(row, Row) and is_other else row


def _like(value: object, other: object) -> object:
    """A value in the type of what it corrects: text as it is written where that is text, else numbers as numbers."""
    if isinstance(other, str):
        plain = [_number(item) for item in value] if isinstance(value, list) else value
        return str(plain).lower() if isinstance(plain, bool) else str(plain)
    return [_number(item) for item in value] if isinstance(value, list) else _number(value)


def _number(value: object) -> object:
    """The number that a text spells, or the text."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value

"""The rows stage: reads a source row by row, or says what is wrong with a row.

The reader yields a raw row, an erratum may correct it, and the reader makes the row.
"""

import json
from collections.abc import Iterator
from dataclasses import replace

from pydantic import ValidationError

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import ReadRow, RowLine
from mmlongbench.errors import DraftError, Fault, Rejected, SourceError
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.manifest.errata import REPAIR, Errata, corrected, load_errata
from mmlongbench.release.rejects import Reject, reject_row
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import RawRow, Row, RowFault, SourcePaths, placed


def read_source(session: Session, shard: Shard) -> Iterator[RowLine]:
    """Yield one line for each row, in the source's order: the row, or why it cannot be used, for example because its id
    occurred before.
    """
    plan = session.plans[shard.dataset]
    spec, reader = plan.spec, plan.bound.reader_type()
    errata = load_errata(spec.errata) if spec.errata else None
    places: dict[str, str] = {}
    for row in read_rows(reader, plan.sources, errata, spec.reader):
        if isinstance(row, RowFault):
            yield Reject(spec.name, row.id, None, row.fault)
        elif row.id in places:
            said = f"first {places[row.id]}" if places[row.id] else "it stands before"
            todo = "remove one of the two rows, or give it another id"
            yield reject_row(spec.name, row, Fault("duplicate-id", "an id once", said, field="id", todo=todo))
        else:
            yield ReadRow(_as_json(row, spec.reader))
        place = row.place if isinstance(row, Row) else row.fault.place
        places.setdefault(row.id, f"on {place}" if place.startswith("line ") else f"at {place}" if place else "")


def _as_json(row: Row, reader: str) -> dict[str, object]:
    with calling("reader", reader, "row()", row):
        fields = row.model_dump(mode="json")
        try:
            again = type(row).model_validate(json.loads(to_json(fields)))
        except ValidationError as error:
            first = error.errors()[0]
            fault = f"field {'.'.join(map(str, first['loc']))!r}: {first['msg']}"
        else:
            pairs = ((name, getattr(row, name), getattr(again, name)) for name in type(row).model_fields)
            changed = (f"field {name!r} was {old!r:.60} and is {new!r:.60}" for name, old, new in pairs if old != new)
            fault = next(changed, "")
        if fault:
            raise DraftError(
                f"the row changes when it is written as JSON and read again: {fault}; give its fields types that "
                "JSON has, without aliases, excluded or computed fields and strict types"
            )
    return fields


def read_rows(
    reader: Reader[Row], sources: SourcePaths, errata: Errata | None = None, name: str = ""
) -> Iterator[Row | RowFault]:
    """Yield every row of a source, corrected and cleaned, or what is wrong with it. `name` is the reader's in the
    manifest, for errors of the reader itself.
    """
    left = dict(errata or {})
    for raw in raw_rows(reader, sources, name):
        erratum = left.pop(raw.id, None)
        if erratum and erratum.drop:
            todo = "take it out of the errata to keep it"
            fault = Fault("dropped-by-errata", "a row that can be asked", erratum.source, todo=todo)
            if isinstance(raw, RawRow):
                yield placed(fault, raw)
            else:
                yield RowFault(raw.id, replace(fault, file=raw.fault.file, place=raw.fault.place))
        elif isinstance(raw, RowFault):
            yield raw
        elif erratum is None:
            yield cleaned(reader, sources, raw, name)
        elif isinstance(fields := corrected(raw.fields, erratum), Fault):
            yield placed(fields, raw)
        else:
            row = cleaned(reader, sources, replace(raw, fields=fields), name)
            is_other = any(fields[field] != raw.fields[field] for field in erratum.set)
            if isinstance(row, Row) and is_other:
                row = row.model_copy(update={"repairs": (*row.repairs, REPAIR)})
            yield row
    if left:
        expected = "ids of rows of the source"
        raise SourceError(Fault("erratum-without-row", expected, ", ".join(sorted(left)[:5]), todo="take it out"))


def raw_rows(reader: Reader[Row], sources: SourcePaths, name: str = "") -> Iterator[RawRow | RowFault]:
    """Yield every row of a source without corrections."""
    with calling("reader", name, "raw_rows()"):
        for number, raw in enumerate(reader.raw_rows(sources), 1):
            if not isinstance(raw, RawRow | RowFault):
                fault = f"item {number} is a {type(raw).__name__}, expected RawRow or RowFault"
                raise broken("reader", name, "raw_rows()", fault)
            yield raw


def cleaned(reader: Reader[Row], sources: SourcePaths, raw: RawRow, name: str = "") -> Row | RowFault:
    """Return the row or fault that the reader makes of a raw row, with the raw row's position."""
    at = ", ".join(part for part in (raw.file, raw.place) if part)
    about = f"row {raw.id!r}{f' ({at})' if at else ''}"
    with calling("reader", name, "row()", about=about):
        try:
            row = reader.row(raw, sources)
        except Rejected as refused:
            row = refused.fault
    if type(row) is not reader.row_type and not isinstance(row, Fault):
        fault = f"returned a {type(row).__name__}, expected {reader.row_type.__name__} (`row_type`) or Fault"
        raise broken("reader", name, "row()", fault, about=about)
    if isinstance(row, Row) and row.id != raw.id:
        raise broken("reader", name, "row()", f"the row's id must be the raw row's, found {row.id!r}", about=about)
    return placed(row, raw)

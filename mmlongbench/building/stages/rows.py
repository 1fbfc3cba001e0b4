"""The rows stage: reads, corrects and cleans every row of a source, or says what is wrong with it."""

import json
from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from mmlongbench.building.build_dir import Shard, rows_shard
from mmlongbench.building.lines import ReadRow, Reject, RowLine
from mmlongbench.building.rejects import reject_row
from mmlongbench.building.session import Session
from mmlongbench.errors import DraftError, Fault
from mmlongbench.manifest.calling import calling
from mmlongbench.manifest.errata import load_errata
from mmlongbench.manifest.reading import read_rows
from mmlongbench.manifest.registry import reader_type
from mmlongbench.task.formats import to_json
from mmlongbench.task.rows import Row, RowFault


def row_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for a dataset, because an id may occur only once among all rows."""
    return [rows_shard(name)]


def read_source(session: Session, shard: Shard) -> Iterator[RowLine]:
    """Yield one line for each row, in the source's order: the row, or why it cannot be used, for example because its id
    occurred before.
    """
    plan = session.plan(shard.dataset)
    spec, reader = plan.spec, reader_type(plan.spec.reader)()
    errata = load_errata(spec.errata) if spec.errata else None
    known = set()
    for found in read_rows(reader, plan.sources, errata, spec.reader):
        if isinstance(found, RowFault):
            yield Reject(spec.name, found.id, None, found.fault)
        elif found.id in known:
            yield reject_row(spec.name, found, Fault("duplicate-id", "an id once", "it stands before", field="id"))
        else:
            yield ReadRow(_as_json(found, spec.reader))
        known.add(found.id)


def _as_json(row: Row, reader: str) -> dict[str, object]:
    """Return the fields of a row as JSON; raise an error if the row is not the same when it is read back."""
    with calling("reader", reader, "row()", row):
        fields = row.model_dump(mode="json")
        if fault := _lost(row, json.loads(to_json(fields))):
            raise DraftError(
                f"the row changes when it is written as JSON and read again: {fault}; give its fields types that "
                "JSON has, without aliases, excluded or computed fields and strict types"
            )
    return fields


def _lost(row: Row, fields: Mapping[str, object]) -> str:
    """Return the first difference between a row and the row that is made again from its JSON; empty if none."""
    try:
        again = type(row).model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        return f"field {'.'.join(map(str, first['loc']))!r}: {first['msg']}"
    for name in type(row).model_fields:
        before, after = getattr(row, name), getattr(again, name)
        if before != after:
            return f"field {name!r} was {before!r:.60} and is {after!r:.60}"
    return ""

"""The rows stage: every row of a source, corrected and cleaned, or what is wrong with it."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from mmlongbench.building.build_dir import Shard, rows_shard
from mmlongbench.building.lines import ReadRow, Reject, RowLine
from mmlongbench.building.rejects import reject_row
from mmlongbench.building.session import Session
from mmlongbench.errors import DraftError, Fault
from mmlongbench.manifest.calling import calling
from mmlongbench.manifest.errata import load_errata, read_rows
from mmlongbench.manifest.registry import reader_type
from mmlongbench.task.rows import Row, RowFault


def row_shards(session: Session, name: str) -> list[Shard]:
    """One shard a dataset: an id may stand only once in all of its rows."""
    return [rows_shard(name)]


def read_source(session: Session, shard: Shard) -> Iterator[RowLine]:
    """One line a row, in the source's order: the row, the first of its id, or why it is none."""
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
            yield ReadRow(_as_json(found, type(reader).row_type, spec.reader))
        known.add(found.id)


def _as_json(row: Row, kind: type[Row], reader: str) -> dict[str, Any]:
    """The fields of a row as its file has them; one that is another when it is read again is its reader's fault."""
    with calling("reader", reader, "row()", row):
        fields = row.model_dump(mode="json")
        fault = _not_the_same(row, kind, fields)
        if fault:
            raise DraftError(f"a {type(row).__name__} is not the same when it is read from its JSON again: {fault}")
    return fields


def _not_the_same(row: Row, kind: type[Row], fields: dict[str, Any]) -> str:
    """Return in what a row differs from what its fields give; empty if in nothing."""
    if type(row) is not kind:
        return f"row_type is {kind.__name__}"
    try:
        again = kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        return f"field {'.'.join(map(str, first['loc']))!r}: {first['msg']}"
    if again == row:
        return ""
    differ = (name for name in kind.model_fields if getattr(again, name) != getattr(row, name))
    return f"field {next(differ, '')!r} is another"

"""The licences of single assets, as tables of licences or columns of the question table state them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.building.licence_tables import AssetRights, read_table, rights_of, without_login
from mmlongbench.errors import Fault, SourceError
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.licences import AssetColumns, LicenceTerms
from mmlongbench.manifest.plugins import reader_type
from mmlongbench.task.rows import RawRow

if TYPE_CHECKING:
    from mmlongbench.building.build_plan import DatasetPlan


@dataclass(frozen=True, slots=True)
class StatedRights:
    """What the sources of a dataset state about single assets."""

    by_source: Mapping[str, Mapping[str, AssetRights]]
    """The statements, by source (empty for those about all sources) and name of the asset."""
    unmet: set[tuple[str, str]] = field(default_factory=set)
    """(source, name) of the lines of tables of licences that no asset has had as a name so far."""

    def of(self, source: str, *names: str) -> AssetRights | None:
        """Return what is stated about an asset of a source, under the first of its names that is known."""
        self.meet(source, *names)
        for table in (source, ""):
            for name in names:
                if found := self.by_source.get(table, {}).get(name):
                    return found
        return None

    def meet(self, source: str, *names: str) -> None:
        """Note that an asset of a source has these names."""
        if self.unmet:
            self.unmet.difference_update((table, name) for table in (source, "") for name in names)


def stated_rights(plan: "DatasetPlan") -> StatedRights:
    """Read what the tables of licences and the question table of a dataset state about single assets.

    Raises:
        SourceError: a line of a table cannot be used; the error names the line.

    """
    spec = plan.spec.licences
    tables: dict[str, dict[str, AssetRights]] = {}
    lines: set[tuple[str, str]] = set()
    for source, terms in {"": spec, **spec.sources}.items():
        table = read_table(Path(terms.assets)) if terms.assets else {}
        lines.update((source, name) for name in table)
        tables[source] = {**_by_column(plan, terms), **table}
    return StatedRights(tables, lines)


def _by_column(plan: "DatasetPlan", terms: LicenceTerms) -> dict[str, AssetRights]:
    return dict(_of_columns(plan, terms.columns)) if terms.columns else {}


def _of_columns(plan: "DatasetPlan", columns: AssetColumns) -> Iterator[tuple[str, AssetRights]]:
    """Yield (asset, rights) of each row of the question table that has both. A row may name an asset again with the
    same licence; its authors are put together.

    Raises:
        SourceError: no row has the columns, or two rows give an asset different licences.

    """
    reader = reader_type(plan.spec.reader)()
    found: dict[str, AssetRights] = {}
    is_there, rows = False, 0
    with calling("reader", plan.spec.reader, "raw_rows()"):
        for raw in reader.raw_rows(plan.sources):
            if not isinstance(raw, RawRow):
                continue
            values, rows = raw.fields, rows + 1
            is_there = is_there or (columns.asset in values and columns.licence in values)
            asset, licence = values.get(columns.asset), values.get(columns.licence)
            if isinstance(asset, str) and isinstance(licence, str) and asset:
                author, url = (str(values.get(name) or "") if name else "" for name in (columns.author, columns.url))
                now = rights_of(licence, author, without_login(url))
                found[asset] = _joined(raw.id, asset, found[asset], now) if asset in found else now
    if rows and not is_there:
        expected = f"rows with the columns {columns.asset!r} and {columns.licence!r}"
        raise SourceError(Fault("columns-of-licences", expected, "none", field="licence.columns", todo="correct them"))
    yield from found.items()


def _joined(row: str, asset: str, before: AssetRights, now: AssetRights) -> AssetRights:
    """Return what two rows state about an asset."""
    if now.licence != before.licence:
        expected, found = f"one licence of {asset!r:.200}", f"{_said(before)} and {_said(now)}"
        raise SourceError(
            Fault(
                "columns-of-licences", expected, found, place=f"row {row}", field="licence.columns", todo="correct it"
            )
        )
    authors = dict.fromkeys(filter(None, (*before.author.split("; "), now.author)))
    return AssetRights(before.licence, "; ".join(authors), before.url or now.url)


def _said(rights: AssetRights) -> str:
    return rights.licence.name or "none"

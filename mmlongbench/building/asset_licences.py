"""The licences of single assets, as tables of licences or columns of the question table state them."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.building.locating import CORPUS
from mmlongbench.errors import Fault, ManifestError, SourceError, nearest
from mmlongbench.io.files import read_whole
from mmlongbench.io.printable import without_secrets
from mmlongbench.manifest.binding import Bound, calling
from mmlongbench.manifest.licences import AssetColumns, Licence, LicenceTerms, terms_of
from mmlongbench.task.rows import RawRow

if TYPE_CHECKING:
    from mmlongbench.building.build_plan import DatasetPlan

COLUMNS = ("asset", "licence", "author", "url")
"""The columns of a table of licences; `author` and `url` may be left out."""
_MAX_FIELD = 2_000


@dataclass(frozen=True, slots=True)
class AssetRights:
    """What is stated about one asset."""

    licence: Licence
    author: str = ""
    url: str = ""


def licence_tables(bound: Bound) -> list[Path]:
    """Return the tables of licences that a dataset names.

    Raises:
        ManifestError: one does not exist, or `licence.sources` names a source that the dataset cannot have.
        SourceError: a line of one cannot be used; the error names it.

    """
    _refuse_unknown_sources(bound)
    spec = bound.spec
    named = [terms.assets for terms in (spec.licences, *spec.licences.sources.values())]
    paths = [Path(name) for name in dict.fromkeys(filter(None, named))]
    if missing := next((path for path in paths if not path.is_file()), None):
        raise ManifestError(f"dataset {spec.name!r}: licence.assets: no such file: {missing}")
    for path in paths:
        read_table(path)  # a bad line is found before the long work
    return paths


def _refuse_unknown_sources(bound: Bound) -> None:
    """Refuse the licence of a source that is neither of the reader nor the corpus, because it would have no effect."""
    spec, reader = bound.spec, bound.reader_type
    names = (*reader.sources, *reader.optional_sources, CORPUS)
    if unknown := next((name for name in spec.licences.sources if name not in names), None):
        raise ManifestError(
            f"dataset {spec.name!r}: licence.sources: there is no source {unknown!r}; the sources are "
            f"{', '.join(names)}{nearest(unknown, names)}"
        )


def read_table(path: Path) -> dict[str, AssetRights]:
    """Return what a table of licences states, by the name of the asset.

    Raises:
        SourceError: the table has other columns, or a line that cannot be used.

    """
    try:
        text = read_whole(path, "a table of licences").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(path, "", "UTF-8", str(error), "save the table in UTF-8") from error
    lines = csv.reader(io.StringIO(text, newline=""))
    found: dict[str, AssetRights] = {}
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        if not {"asset", "licence"} <= set(header) or not set(header) <= set(COLUMNS):
            raise _refused(path, "line 1", ", ".join(COLUMNS), ", ".join(header), "correct the names of the columns")
        for row in lines:
            where = f"line {lines.line_num}"
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                raise _refused(path, where, f"{len(header)} values", f"{len(row)}", "correct the line")
            values = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
            asset = values["asset"]
            if not asset or any(len(cell) > _MAX_FIELD for cell in row):
                raise _refused(path, where, "the name of an asset", f"{asset[:80]!r}", "correct the line")
            if has_login(url := values.get("url", "")):
                found_url, todo = f"{without_secrets(url)[:200]!r}", "take the user and the password out"
                raise _refused(path, where, "a url without user and password", found_url, todo)
            if asset in found:
                raise _refused(path, where, "each asset once", f"{asset[:80]!r} again", "take one of the lines out")
            found[asset] = rights_of(values["licence"], values.get("author", ""), url)
    except csv.Error as error:
        raise _refused(path, f"line {lines.line_num}", "CSV", str(error), "correct the line") from error
    return found


def has_login(url: str) -> bool:
    """Return whether a URL has a user or a password, which would be published with it.

    >>> has_login("https://user:secret@host/a"), has_login("https://host/photos/1@N00/2?id=3")
    (True, False)
    """
    place = url.partition("?")[0]
    return without_secrets(place) != place


def without_login(url: str) -> str:
    """Return a URL; one with a user or a password is returned without them and without its query.

    >>> without_login("https://user:secret@host/a?b=1"), without_login("https://host/a?b=1")
    ('https://…@host/a?…', 'https://host/a?b=1')
    """
    return without_secrets(url) if has_login(url) else url


def rights_of(licence: str, author: str, url: str) -> AssetRights:
    """Return what texts state about an asset."""
    return AssetRights(terms_of(licence).licence, author, url)


def _refused(path: Path, where: str, expected: str, found: str, todo: str) -> SourceError:
    return SourceError(Fault("table-of-licences", expected, found, path.name, where, "licence.assets", todo))


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
    reader = plan.bound.reader_type()
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

"""What is stated about the rights of single assets: in tables of licences, and in columns of the question table."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.building.build_plan import CORPUS
from mmlongbench.errors import Fault, ManifestError, SourceError, nearest
from mmlongbench.io.files import read_whole
from mmlongbench.io.printable import without_secrets
from mmlongbench.manifest.binding import Bound, calling
from mmlongbench.manifest.licences import AssetColumns, Licence, terms_of
from mmlongbench.task.rows import RawRow

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
    """Return the tables of licences that a dataset names, and refuse a `licence.sources` that it cannot have."""
    spec, reader = bound.spec, bound.reader_type
    names = (*reader.sources, *reader.optional_sources, CORPUS)
    if unknown := next((name for name in spec.licences.sources if name not in names), None):
        raise ManifestError(
            f"dataset {spec.name!r}: licence.sources: there is no source {unknown!r}; the sources are "
            f"{', '.join(names)}{nearest(unknown, names)}"
        )
    tables = [terms.assets for terms in (spec.licences, *spec.licences.sources.values())]
    paths = [Path(name) for name in dict.fromkeys(filter(None, tables))]
    if missing := next((path for path in paths if not path.is_file()), None):
        raise ManifestError(f"dataset {spec.name!r}: licence.assets: no such file: {missing}")
    return paths


def stated_rights(
    bound: Bound, sources: Mapping[str, Path]
) -> tuple[dict[str, dict[str, AssetRights]], set[tuple[str, str]]]:
    """Read what is stated about single assets of a dataset. Return it by source (empty for all sources) and name of the
    asset; and the (source, name) of each line of a table of licences. A `SourceError` names a line that cannot be used,
    or a row that contradicts another.
    """
    licences = bound.spec.licences
    stated: dict[str, dict[str, AssetRights]] = {}
    lines: set[tuple[str, str]] = set()
    for source, terms in {"": licences, **licences.sources}.items():
        table = dict(_read_table(Path(terms.assets))) if terms.assets else {}
        lines.update((source, name) for name in table)
        stated[source] = {**(_read_columns(bound, sources, terms.columns) if terms.columns else {}), **table}
    return stated, lines


def _read_table(path: Path) -> Iterator[tuple[str, AssetRights]]:
    def refused(place: str, expected: str, found: str, todo: str = "correct the line") -> SourceError:
        return SourceError(Fault("table-of-licences", expected, found, path.name, place, "licence.assets", todo))

    try:
        text = read_whole(path, "a table of licences").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused("", "UTF-8", str(error), "save the table in UTF-8") from error
    lines, seen = csv.reader(io.StringIO(text, newline="")), set[str]()
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        if not {"asset", "licence"} <= set(header) or not set(header) <= set(COLUMNS):
            raise refused("line 1", ", ".join(COLUMNS), ", ".join(header), "correct the names of the columns")
        for row in lines:
            place, cells = f"line {lines.line_num}", [cell.strip() for cell in row]
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise refused(place, f"{len(header)} values", f"{len(cells)}")
            values = dict(zip(header, cells, strict=True))
            asset, url = values["asset"], values.get("url", "")
            if not asset or any(len(cell) > _MAX_FIELD for cell in row):
                raise refused(place, "the name of an asset", f"{asset[:80]!r}")
            if _has_login(url):
                shown, todo = f"{without_secrets(url)[:200]!r}", "take the user and the password out"
                raise refused(place, "a url without user and password", shown, todo)
            if asset in seen:
                raise refused(place, "each asset once", f"{asset[:80]!r} again", "take one of the lines out")
            seen.add(asset)
            yield asset, AssetRights(terms_of(values["licence"]).licence, values.get("author", ""), url)
    except csv.Error as error:
        raise refused(f"line {lines.line_num}", "CSV", str(error)) from error


def _read_columns(bound: Bound, sources: Mapping[str, Path], columns: AssetColumns) -> dict[str, AssetRights]:
    """Return what the rows of the question table state, by the name of the asset. A row may name an asset again with
    the same licence; its authors are put together.
    """

    def refused(expected: str, found: str, place: str = "") -> SourceError:
        field, todo = "licence.columns", "correct the table, or the names of its columns"
        return SourceError(Fault("columns-of-licences", expected, found, place=place, field=field, todo=todo))

    stated: dict[str, AssetRights] = {}
    has_rows = has_columns = False
    with calling("reader", bound.spec.reader, "raw_rows()"):
        for raw in bound.reader_type().raw_rows(sources):
            if not isinstance(raw, RawRow):
                continue
            values, has_rows = raw.fields, True
            has_columns = has_columns or (columns.asset in values and columns.licence in values)
            asset, terms = values.get(columns.asset), values.get(columns.licence)
            if not (isinstance(asset, str) and isinstance(terms, str) and asset):
                continue
            licence = terms_of(terms).licence
            author, url = (str(values.get(name) or "") if name else "" for name in (columns.author, columns.url))
            before = stated.get(asset, AssetRights(licence))
            if licence != before.licence:
                found = f"{before.licence.name or 'none'} and {licence.name or 'none'}"
                raise refused(f"one licence of {asset!r:.200}", found, f"row {raw.id}")
            authors = dict.fromkeys(filter(None, (*before.author.split("; "), author)))
            stated[asset] = AssetRights(licence, "; ".join(authors), before.url or without_login(url))
    if has_rows and not has_columns:
        raise refused(f"rows with the columns {columns.asset!r} and {columns.licence!r}", "none")
    return stated


def _has_login(url: str) -> bool:
    """Return whether a URL has a user or a password, which would be published with it.

    >>> _has_login("https://user:secret@host/a"), _has_login("https://host/photos/1@N00/2?id=3")
    (True, False)
    """
    place = url.partition("?")[0]
    return without_secrets(place) != place


def without_login(url: str) -> str:
    """Return a URL; one with a user or a password is returned without them and without its query.

    >>> without_login("https://user:secret@host/a?b=1"), without_login("https://host/a?b=1")
    ('https://…@host/a?…', 'https://host/a?b=1')
    """
    return without_secrets(url) if _has_login(url) else url

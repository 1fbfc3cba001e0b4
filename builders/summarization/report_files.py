"""The files of GovReport: one JSON file a report, JSON Lines, and the hub's Parquet files that keep sections.

The hub has the dataset in several forms. Those whose summaries are one text cannot be used, because the reference
summary of the benchmark has sections with titles; and without ids no PDF can be found.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from builders.common.splits import PARQUET
from mmlongbench.task import (
    Columns,
    Fault,
    SourceError,
    json_lines,
    json_object,
    parquet_file,
    table_rows,
    visible_files,
)

PlacedReport: TypeAlias = tuple[str, str, dict[str, object] | Fault]
"""(file, place in it, fields of the report or what is wrong with it)."""
_MAX_BYTES = 64 * 1024 * 1024
"""The maximum size of one report; the longest has a megabyte."""
_COLUMNS = Columns(unread=("document", "document_sections", "report"))
_WITH_SECTIONS = ("summary_sections", "highlight")
_USE = "use the configuration `structure` of launch/gov_report, or the JSON files of the archive gov-report"


def reports(source: Path) -> Iterator[PlacedReport]:
    """Yield each report of a file or of a folder, file after file.

    Raises:
        SourceError: there is no report, or the Parquet files have no ids or no sections of summaries.

    """
    tables, _ = tables_of(source)
    for file in tables:
        yield from ((_name(file, source), place, raw) for place, raw in table_rows(file, _COLUMNS))
    files = [source] if source.is_file() else _files(source, (".json", ".jsonl"))
    if not tables and not files:
        expected, todo = "files that end in .json, .jsonl or .parquet", "give the folder of the reports of GAO"
        raise SourceError(Fault("no-reports", expected, "none", source.name, todo=todo))
    for file in files if not _is_table(source) else ():
        yield from _of_json(file, source)


def tables_of(source: Path) -> tuple[Sequence[Path], int]:
    """Return the Parquet files that keep the sections of summaries, and how many others there are.

    Raises:
        SourceError: there are Parquet files, but none keeps sections.

    """
    found = [source] if _is_table(source) else _files(source, (PARQUET,)) if source.is_dir() else []
    columns = {file: _columns(file) for file in found}
    usable = [file for file, names in columns.items() if "id" in names and {*names}.intersection(_WITH_SECTIONS)]
    if found and not usable:
        raise SourceError(_without(columns[found[0]], _name(found[0], source)))
    return usable, len(found) - len(usable)


def unusable_form(raw: Mapping[str, object]) -> Fault | None:
    """Return the fault of a row of a form of the hub that cannot be used; None for any other row."""
    is_text = isinstance(raw.get("summary"), str) and not set(raw).intersection(_WITH_SECTIONS)
    return _without(list(raw)) if is_text and (isinstance(raw.get("document") or raw.get("report"), str)) else None


def hub_sections(value: object) -> object:
    r"""Return the sections of a summary of the hub in the form of the archive. The hub has an object of parallel lists,
    or a list of objects; paragraphs are lines of one text. A value of another form is returned unchanged.

    >>> hub_sections({"title": ["What GAO Found"], "paragraphs": ["One.\nTwo."]})
    [{'section_title': 'What GAO Found', 'paragraphs': ['One.', 'Two.']}]
    """
    if isinstance(value, dict):
        titles, texts = value.get("title"), value.get("paragraphs")
        if not isinstance(titles, list) or not isinstance(texts, list) or len(titles) != len(texts):
            return [value]
        value = [{"title": title, "paragraphs": text} for title, text in zip(titles, texts, strict=True)]
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return value
    return [
        {"section_title": each.get("title"), "paragraphs": text.split("\n") if isinstance(text, str) else text}
        for each in value
        for text in [each.get("paragraphs")]
    ]


def _without(columns: Sequence[str], file: str = "") -> Fault:
    """Return the fault of a form of the hub without sections of summaries or without ids."""
    found = ", ".join(columns)[:120] or "nothing"
    if "id" not in columns:
        todo = f"without ids no PDF can be found (ccdv/govreport-summarization has none): {_USE}"
        return Fault("reports-without-ids", "the columns id and summary_sections", found, file, todo=todo)
    todo = f"the reference summary needs its sections (the configurations plain_text have none): {_USE}"
    return Fault("summary-without-sections", "the columns id and summary_sections", found, file, todo=todo)


def _is_table(source: Path) -> bool:
    return source.is_file() and source.suffix.lower() == PARQUET


def _files(folder: Path, endings: Sequence[str]) -> list[Path]:
    return [file for file in visible_files(folder) if file.suffix.lower() in endings]


def _columns(file: Path) -> list[str]:
    with parquet_file(file) as table:
        return list(table.schema_arrow.names)


def _name(file: Path, source: Path) -> str:
    return file.name if file == source else file.relative_to(source).as_posix()


def _of_json(file: Path, source: Path) -> Iterator[PlacedReport]:
    """Yield the reports of a JSON file: one object, or one on each line."""
    name = _name(file, source)
    try:
        if _is_one_report(file, source):
            yield name, "report", _report(file)
            return
    except (OSError, SourceError) as error:
        found = error.fault.found if isinstance(error, SourceError) else error.strerror or str(error)
        todo = "download the file again"
        yield name, "report", Fault("unreadable-source", "a JSON file", found, todo=todo)
        return
    yield from ((name, f"line {number}", raw) for number, _, raw in json_lines(file))


def _is_one_report(file: Path, source: Path) -> bool:
    """Return whether a JSON file is one object, which may be on many lines. A file of a folder is one, too, if it has a
    single line.
    """
    if file.suffix.lower() == ".jsonl":
        return False
    lines = [line.value for line in islice(json_lines(file), 2)]
    return (file != source and len(lines) < 2) or (bool(lines) and _is_broken(lines[0]))


def _is_broken(value: dict[str, object] | Fault) -> bool:
    return isinstance(value, Fault) and value.reason in ("invalid-json", "not-a-row")


def _report(file: Path) -> dict[str, object] | Fault:
    if (size := file.stat().st_size) > _MAX_BYTES:
        return Fault("size-of-a-file", f"at most {_MAX_BYTES} bytes", str(size), todo="take the file out, or cut it")
    return json_object(file.read_bytes())

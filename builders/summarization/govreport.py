"""GovReport (Huang et al. 2021, arXiv:2104.02112): GAO's reports with their summaries, and a folder of their PDFs.

`reports` is a folder of JSON files (`gov-report/gao/*.json`), one such file, a file with a report on each line, or the
hub's Parquet files of the configuration `structure`. GAO's own summary is `highlight` in JSON, and
`summary_sections` in Parquet. Reports of the Congressional Research Service have another form of summary and are
rejected. The id of a report is `GAO-18-107` in the archive, `GAO_GAO-18-107` on the hub, and `gov_report_gao-18-107` in
the benchmark's public files and claims: all are read, and the last one is released.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar, TypeAlias

from builders.common import PARQUET
from builders.summarization.rows import Section, Summarised
from mmlongbench.task import (
    Columns,
    Fault,
    Options,
    Pages,
    RawRow,
    Reader,
    Rejected,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    escape_markers,
    json_lines,
    json_object,
    parquet_file,
    pdfs_by_name,
    raw_row,
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


_PREFIX = "gov_report_"
"""The prefix of ids in the benchmark's public rows and claims."""
_HUB_PREFIX = "gao_"
"""The prefix of ids on the hub, before a number that begins with `GAO-`; in lower case."""


class GovReport(Reader[Summarised]):
    """Reads GAO's reports."""

    row_type: ClassVar[type[Row]] = Summarised
    sources: ClassVar[tuple[str, ...]] = ("reports", "documents")
    source_forms: ClassVar[Mapping[str, str]] = {
        "reports": (
            "GAO's reports: a folder of JSON files such as `gov-report/gao`, one such file, or JSON Lines; a "
            "report has id and highlight, and may have url. Or the Parquet files `structure` of `launch/gov_report`, "
            "of all splits; a report has id and summary_sections."
        ),
        "documents": (
            "A folder of PDFs, also in subfolders, each named by the id of its report, such as `GAO-18-107.pdf`."
        ),
    }
    image_folder: ClassVar[str] = "gov-report/bg_pdf_img"
    hub_files: ClassVar[tuple[str, ...]] = ("structure/*/*.parquet",)
    fixed_fields: ClassVar[tuple[str, ...]] = ("id",)

    def __init__(self) -> None:
        """Start without names of PDFs. While rows are read, the names of the PDFs in their folder are kept."""
        self._stems: dict[Path, Mapping[str, Sequence[str]]] = {}

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each report; its id is the public one, `gov_report_` and the number of the report in lower case."""
        folder = sources["documents"]
        self._stems[folder] = _stems(folder)
        try:
            for file, place, raw in reports(sources["reports"]):
                id = None if isinstance(raw, Fault) else _id(raw)
                yield raw_row(public_id(id) if id else f"{file}, {place}", raw, file, place)
        finally:
            self._stems.pop(folder, None)

    def row(self, raw: RawRow, sources: SourcePaths) -> Summarised:
        """Return one report cleaned; raises Rejected."""
        folder = sources["documents"]
        if folder not in self._stems:
            self._stems[folder] = _stems(folder)
        return _row(_id(raw.fields), raw.fields, self._stems[folder])

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        """Return how many Parquet files are not read, because their summaries have no sections."""
        used, others = tables_of(sources["reports"])
        if not others:
            return ()
        count = len(used) + others
        return (f"{others} of {count} Parquet files of reports are not read, because their summaries have no sections",)

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return every PDF below the folder, by its name without the ending."""
        return pdfs_by_name(sources["documents"])


def _stems(folder: Path) -> Mapping[str, Sequence[str]]:
    """Return the names of PDFs without endings, grouped by their lower-case form."""
    found: dict[str, list[str]] = {}
    for stem in pdfs_by_name(folder):
        found.setdefault(stem.casefold(), []).append(stem)
    return found


def public_id(id: str) -> str:
    """Return the id that a report has in public files and claims, made from the id in any form.

    >>> public_id("GAO-18-107"), public_id("GAO_GAO-18-107"), public_id("gov_report_gao-18-107")
    ('gov_report_gao-18-107', 'gov_report_gao-18-107', 'gov_report_gao-18-107')
    """
    return f"{_PREFIX}{_number(id)}"


def _number(id: str) -> str:
    """Return a report's number in lower case, such as `gao-18-107`."""
    number = id.casefold().removeprefix(_PREFIX)
    return number.removeprefix(_HUB_PREFIX) if number.startswith(f"{_HUB_PREFIX}gao-") else number


def _id(raw: Mapping[str, object]) -> str | None:
    id = raw.get("id")
    return id.strip() or None if isinstance(id, str) else None


def _row(id: str | None, raw: Mapping[str, object], stems: Mapping[str, Sequence[str]]) -> Summarised:
    if fault := unusable_form(raw):
        raise Rejected(fault)
    if id is None:
        raise Rejected(
            Fault(
                "missing-or-mistyped-field",
                "a text",
                repr(raw.get("id"))[:80],
                field="id",
                todo="correct the field in the source or with errata",
            )
        )
    field = "highlight" if raw.get("summary_sections") is None else "summary_sections"
    if "highlight" not in raw and ("summary" in raw or "reports" in raw or _number(id).startswith("crs")):
        raise Rejected(
            Fault(
                "crs-report",
                "a report of GAO, with highlights",
                "one of CRS",
                field="highlight",
                todo="take it out: its summary has no highlights",
            )
        )
    highlight = raw.get(field) if field == "highlight" else hub_sections(raw[field])
    sections = tuple(_sections(highlight))
    if not sections:
        found = repr(raw.get(field))[:80]
        raise Rejected(
            Fault(
                "empty-summary",
                "sections with paragraphs",
                found,
                field=field,
                todo="correct the summary, or take the report out",
            )
        )
    url = raw.get("url")
    if not isinstance(url, str | None):
        raise Rejected(
            Fault(
                "missing-or-mistyped-field",
                "a text",
                repr(url)[:80],
                field="url",
                todo="correct the field in the source or with errata",
            )
        )
    document = _document(id, stems)
    return Summarised(id=public_id(id), source_id=id, kind="report", docs=(document,), sections=sections, url=url or "")


def _document(id: str, stems: Mapping[str, Sequence[str]]) -> str:
    """Return the name of a report's PDF: the only name that equals the report's number or, if none does, its public id,
    in upper or lower case. If there is no such name or more than one, return the number.
    """
    alike = stems.get(_number(id)) or stems.get(public_id(id), ())
    number = id if _number(id) == id.casefold() else _number(id)
    return alike[0] if len(alike) == 1 else number


def _sections(value: object) -> Iterator[Section]:
    """Yield the sections that have paragraphs; the subsections of a section come after it."""
    for raw in value if isinstance(value, list) else ():
        if not isinstance(raw, dict) or not isinstance(raw.get("section_title"), str):
            raise _broken("sections with a title", raw)
        paragraphs, inner = raw.get("paragraphs"), raw.get("subsections")
        texts = [] if paragraphs is None else paragraphs
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise _broken("paragraphs that are texts", paragraphs)
        if not isinstance(inner, list | None):
            raise _broken("a list of subsections", inner)
        if kept := tuple(escape_markers(text) for text in texts if text.strip()):
            yield Section(section_title=escape_markers(raw["section_title"]), paragraphs=kept)
        yield from _sections(inner)


def _broken(expected: str, found: object) -> Rejected:
    return Rejected(
        Fault(
            "broken-summary",
            expected,
            repr(found)[:80],
            field="highlight",
            todo="correct the summary, or take the report out",
        )
    )

"""The readers of GovReport and Multi-LexSum, and the row that both make: documents with their summary."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

import mmlongbench.task as mt
from builders.common import CORRECT, PARQUET, is_table, refused, source_error, source_rows, split_files

Kind = Literal["report", "case"]


class Section(BaseModel):
    """A part of a summary."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    section_title: str
    paragraphs: tuple[str, ...]


class Summarised(mt.Row):
    """Documents with their summary."""

    source_id: str = ""
    """The id of a report in the source, if the released id is another one."""
    kind: Kind
    """Whether the documents are one report, or those of a case."""
    docs: tuple[str, ...]
    """The ids of the documents, in the source's order."""
    sections: tuple[Section, ...]
    """The sections of a report's summary; for a case, its summaries, each titled by its length: short, long or tiny."""
    url: str = ""
    """The address of a report, as its source gives it."""


class SummaryReader(mt.readers.Reader[Summarised]):
    """Reads texts about documents, and a folder of these documents as PDFs."""

    row_type: ClassVar[type[mt.Row]] = Summarised

    def documents(self, sources: mt.readers.SourcePaths) -> Mapping[str, mt.readers.Pages | mt.Fault]:
        return mt.readers.pdfs_by_name(sources["documents"])


def _refused(reason: str, expected: str, found: object, field: str, todo: str = CORRECT) -> mt.Rejected:
    return refused(reason, expected, repr(found)[:80], field, todo)


# --- GovReport --------------------------------------------------------------------------------------------------------

_MAX_BYTES = 64 * 1024 * 1024
"""The maximum size of one report; the longest has a megabyte."""
_TEXTS_OF_REPORTS = mt.readers.Columns(unread=("document", "document_sections", "report"))
_WITH_SECTIONS = {"summary_sections", "highlight"}
_CORRECT_SUMMARY = "correct the summary, or take the report out"
_PREFIX = "gov_report_"
"""The prefix of ids in the benchmark's public rows and claims."""
_HUB_PREFIX = "gao_"
"""The prefix of ids on the hub, before a number that begins with `GAO-`; in lower case."""


class GovReport(SummaryReader):
    """Reads GAO's reports of GovReport (Huang et al. 2021, arXiv:2104.02112).

    Reports of the Congressional Research Service have another form of summary and are rejected. The id of a report is
    `GAO-18-107` in the archive, `GAO_GAO-18-107` on the hub, and `gov_report_gao-18-107` in the benchmark's public
    files and claims: all are read, and the last one is released.
    """

    sources: ClassVar[tuple[str, ...]] = ("reports", "documents")
    source_forms: ClassVar[Mapping[str, str]] = {
        "reports": "GAO's reports: a folder of JSON files such as `gov-report/gao`, one such file, or JSON Lines; a "
        "report has id and highlight, and may have url. Or the Parquet files `structure` of `launch/gov_report`, of "
        "all splits; a report has id and summary_sections.",
        "documents": "A folder of PDFs, also in subfolders, each named by the id of its report, such as "
        "`GAO-18-107.pdf`.",
    }
    image_folder: ClassVar[str] = "gov-report/bg_pdf_img"
    hub_files: ClassVar[tuple[str, ...]] = ("structure/*/*.parquet",)
    fixed_fields: ClassVar[tuple[str, ...]] = ("id",)

    def __init__(self) -> None:
        self._names: dict[Path, dict[str, list[str]]] = {}

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each report; its id is the public one, `gov_report_` and the number of the report in lower case."""
        for file, place, fields in _reports(sources["reports"]):
            id = None if isinstance(fields, mt.Fault) else _report_id(fields)
            yield mt.readers.raw_row(f"{_PREFIX}{_number(id)}" if id else f"{file}, {place}", fields, file, place)

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> Summarised:
        fields, id = raw.fields, _report_id(raw.fields)
        texts = (fields.get("document") or fields.get("report"), fields.get("summary"))
        if all(isinstance(text, str) for text in texts) and not _WITH_SECTIONS.intersection(fields):
            raise mt.Rejected(_other_form(list(fields)))
        if id is None:
            raise _refused("missing-or-mistyped-field", "a text", fields.get("id"), "id")
        number = _number(id)
        if "highlight" not in fields and ("summary" in fields or "reports" in fields or number.startswith("crs")):
            expected, todo = "a report of GAO, with highlights", "take it out: its summary has no highlights"
            raise refused("crs-report", expected, "one of CRS", "highlight", todo)
        field = "highlight" if fields.get("summary_sections") is None else "summary_sections"
        given = fields.get(field)
        sections = tuple(_sections(given if field == "highlight" else hub_sections(given)))
        if not sections:
            raise _refused("empty-summary", "sections with paragraphs", given, field, _CORRECT_SUMMARY)
        url = fields.get("url")
        if not isinstance(url, str | None):
            raise _refused("missing-or-mistyped-field", "a text", url, "url")
        # the PDF has the number or the public id as its name, in upper or lower case
        if (folder := sources["documents"]) not in self._names:
            self._names[folder] = {}
            for name in mt.readers.pdfs_by_name(folder):
                self._names[folder].setdefault(name.casefold(), []).append(name)
        names = self._names[folder].get(number) or self._names[folder].get(f"{_PREFIX}{number}", [])
        document = names[0] if len(names) == 1 else id if number == id.casefold() else number
        return Summarised(
            id=f"{_PREFIX}{number}", source_id=id, kind="report", docs=(document,), sections=sections, url=url or ""
        )

    def notes(self, sources: mt.readers.SourcePaths, options: mt.Options) -> Sequence[str]:
        """Return how many Parquet files are not read, because their summaries have no sections."""
        tables, others, _ = _files(sources["reports"])
        counts = f"{others} of {len(tables) + others} Parquet files of reports"
        return (f"{counts} are not read, because their summaries have no sections",) if others else ()


def _report_id(fields: Mapping[str, object]) -> str | None:
    id = fields.get("id")
    return id.strip() or None if isinstance(id, str) else None


def _number(id: str) -> str:
    """Return the number of a report in lower case, such as `gao-18-107`, from its id in any form."""
    number = id.casefold().removeprefix(_PREFIX)
    return number.removeprefix(_HUB_PREFIX) if number.startswith(f"{_HUB_PREFIX}gao-") else number


def _reports(source: Path) -> Iterator[tuple[str, str, dict[str, Any] | mt.Fault]]:
    """Yield (file, place, fields) of each report of a file or of a folder, file after file, Parquet files first."""
    tables, _, texts = _files(source)
    if not tables and not texts:
        expected, todo = "files that end in .json, .jsonl or .parquet", "give the folder of the reports of GAO"
        raise source_error("no-reports", expected, "none", source.name, todo)
    for name, file in tables.items():
        yield from ((name, *row) for row in mt.readers.table_rows(file, _TEXTS_OF_REPORTS))
    for name, file in texts.items():
        report = None if file.suffix.lower() == ".jsonl" else _one_report(file, is_given=file == source)
        if report is not None:
            yield name, "report", report
        else:
            yield from ((name, f"line {line.number}", line.value) for line in mt.readers.json_lines(file))


def _files(source: Path) -> tuple[Mapping[str, Path], int, Mapping[str, Path]]:
    """Return (Parquet files that have the sections of summaries, the number of other Parquet files, JSON files), files
    by their path below the source. A `SourceError` if there are Parquet files, but none has ids and sections.
    """
    files = {source.name: source}
    if not source.is_file():
        files = {file.relative_to(source).as_posix(): file for file in mt.readers.visible_files(source)}
    columns: dict[str, list[str]] = {}
    for name, file in files.items():
        if file.suffix.lower() == PARQUET:
            with mt.readers.parquet_file(file) as table:
                columns[name] = list(table.schema_arrow.names)
    usable = [name for name, fields in columns.items() if "id" in fields and _WITH_SECTIONS.intersection(fields)]
    if columns and not usable:
        name, fields = next(iter(columns.items()))
        raise mt.readers.SourceError(_other_form(fields, name))
    texts = {
        name: file
        for name, file in files.items()
        if name not in columns and (file == source or file.suffix.lower() in (".json", ".jsonl"))
    }
    return {name: files[name] for name in usable}, len(columns) - len(usable), texts


def _one_report(file: Path, *, is_given: bool) -> dict[str, object] | mt.Fault | None:
    """Return the report that a JSON file is, on one line or many, or what is wrong with it; None for a file of several
    lines, each of them a report. If the file is the source itself (`is_given`), a single line is one of several.
    """
    try:
        first = [line.value for line in islice(mt.readers.json_lines(file), 2)]
        is_part = bool(first) and isinstance(first[0], mt.Fault) and first[0].reason in ("invalid-json", "not-a-row")
        if not is_part and (is_given or len(first) > 1):
            return None
        if (size := file.stat().st_size) > _MAX_BYTES:
            expected, todo = f"at most {_MAX_BYTES} bytes", "take the file out, or cut it"
            return mt.Fault("size-of-a-file", expected, str(size), todo=todo)
        return mt.readers.json_object(file.read_bytes())
    except (OSError, mt.readers.SourceError) as error:
        found = error.fault.found if isinstance(error, mt.readers.SourceError) else error.strerror or str(error)
        return mt.Fault("unreadable-source", "a JSON file", found, todo="download the file again")


def _other_form(columns: Sequence[str], file: str = "") -> mt.Fault:
    # a form of the hub without ids, or without sections of summaries
    reason, why = "reports-without-ids", "without ids no PDF can be found (ccdv/govreport-summarization has none)"
    if "id" in columns:
        reason = "summary-without-sections"
        why = "the reference summary needs its sections (the configurations plain_text have none)"
    todo = f"{why}: use the configuration `structure` of launch/gov_report, or the JSON files of the archive gov-report"
    found = ", ".join(columns)[:120] or "nothing"
    return mt.Fault(reason, "the columns id and summary_sections", found, file, todo=todo)


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
        pairs = [*zip(titles, texts, strict=True)]
    elif isinstance(value, list) and all(isinstance(section, dict) for section in value):
        pairs = [(section.get("title"), section.get("paragraphs")) for section in value]
    else:
        return value
    return [
        {"section_title": title, "paragraphs": text.split("\n") if isinstance(text, str) else text}
        for title, text in pairs
    ]


def _sections(value: object) -> Iterator[Section]:
    """Yield the sections that have paragraphs; the subsections of a section come after it."""
    for raw in value if isinstance(value, list) else ():
        title = raw.get("section_title") if isinstance(raw, dict) else None
        if not isinstance(title, str):
            raise _refused("broken-summary", "sections with a title", raw, "highlight", _CORRECT_SUMMARY)
        paragraphs, inner = raw.get("paragraphs"), raw.get("subsections")
        texts = [] if paragraphs is None else paragraphs
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise _refused("broken-summary", "paragraphs that are texts", paragraphs, "highlight", _CORRECT_SUMMARY)
        if not isinstance(inner, list | None):
            raise _refused("broken-summary", "a list of subsections", inner, "highlight", _CORRECT_SUMMARY)
        if kept := tuple(mt.escape_markers(text) for text in texts if text.strip()):
            yield Section(section_title=mt.escape_markers(title), paragraphs=kept)
        yield from _sections(inner)


# --- Multi-LexSum -----------------------------------------------------------------------------------------------------


class MultiLexSum(SummaryReader):
    """Reads cases of the Civil Rights Litigation Clearinghouse from Multi-LexSum (Shen et al., arXiv:2206.10883)."""

    sources: ClassVar[tuple[str, ...]] = ("cases", "documents")
    source_forms: ClassVar[Mapping[str, str]] = {
        "cases": "JSON Lines such as `train.json`, `dev.json` or `test.json` of the release; a line has case_id, "
        "case_documents (ids of documents) and at least one of summary/short, summary/long and summary/tiny. Or cases "
        "as `datasets` loads them, as JSON Lines, a Parquet file or a folder of Parquet files; they have id and "
        "sources_metadata with doc_id. If the names of a folder's files name several splits, `test` is read.",
        "documents": "A folder of PDFs, each named by the id of a document, all in it or in a folder for each case.",
    }
    image_folder: ClassVar[str] = "multi-lexsum"
    fixed_fields: ClassVar[tuple[str, ...]] = ("case_id", "id")

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each case, with its own id or, without one, `line-<n>` from 1, or `row-<n>` from 0 in Parquet."""
        cases = sources["cases"]
        for index, (file, place, fields) in enumerate(source_rows(cases, unread=("sources",))):  # the documents' texts
            id = f"row-{index}" if is_table(cases) else place.replace(" ", "-")
            yield mt.readers.raw_row(_case_id(fields) or id, fields, file, place)

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> Summarised:
        fields, id = raw.fields, _case_id(raw.fields)
        if id is None:
            found = fields.get("case_id", fields.get("id"))
            raise _refused("missing-or-mistyped-field", "a text or a number", found, "case_id")
        field, given = "case_documents", fields.get("case_documents")
        if given is None and fields.get("sources_metadata") is not None:
            # the form that `datasets` loads: an object of parallel lists, or a list of objects
            field, given = "sources_metadata", fields["sources_metadata"]
            if isinstance(given, dict):
                given = given.get("doc_id")
            elif isinstance(given, list):
                given = [document.get("doc_id") if isinstance(document, dict) else None for document in given]
        names = [_id_of(document) for document in given] if isinstance(given, list) else [None]
        documents = tuple(filter(None, names))
        if len(documents) < len(names):
            raise _refused("missing-or-mistyped-field", "a list of ids", given, field)
        if not documents:
            todo = "name the documents of the case, or take it out"
            raise refused("case-without-documents", "at least one document", "none", field, todo)
        if len({*documents}) < len(documents):
            raise _refused("document-twice", "each document once", given, field, "name each document once")
        texts = {length: fields.get(f"summary/{length}") for length in ("short", "long", "tiny")}
        if wrong := {length: text for length, text in texts.items() if not isinstance(text, str | None)}:
            raise _refused("broken-summary", "summaries that are texts", wrong, "summary")
        sections = tuple(
            Section(section_title=length, paragraphs=(mt.escape_markers(text),))
            for length, text in texts.items()
            if text and text.strip()
        )
        if not sections:
            expected, todo = "a short, long or tiny summary", "give the case a summary, or take it out"
            raise _refused("empty-summary", expected, texts, "summary", todo)
        return Summarised(id=id, kind="case", docs=documents, sections=sections)

    def notes(self, sources: mt.readers.SourcePaths, options: mt.Options) -> Sequence[str]:
        cases = sources["cases"]
        return split_files(cases)[1] if is_table(cases) else ()


def _case_id(fields: Mapping[str, object] | mt.Fault) -> str | None:
    """Return the id of a case, which is called `id` in the form that `datasets` loads."""
    return None if isinstance(fields, mt.Fault) else _id_of(fields.get("case_id")) or _id_of(fields.get("id"))


def _id_of(value: object) -> str | None:
    """Return the id of a case or document, which the releases write as text or as a number."""
    return str(value).strip() or None if isinstance(value, str | int) and not isinstance(value, bool) else None

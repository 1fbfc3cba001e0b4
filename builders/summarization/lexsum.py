"""Multi-LexSum (Shen et al. 2022, arXiv:2206.10883): cases with several documents, and a folder of their PDFs.

`cases` is a file of the release (`train.json`, `dev.json`, `test.json`: lines of JSON), or cases in the form in which
the library `datasets` loads them, as JSON Lines or Parquet. PDFs are named by the ids of documents, in one folder or in
a folder for each case. The documents' texts (`sources.json`, or the field `sources`) are not needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from builders.common import PARQUET, split_files
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
    SourcePaths,
    escape_markers,
    json_lines,
    pdfs_by_name,
    raw_row,
    table_rows,
)

_COLUMNS = Columns(unread=("sources",))
LENGTHS = ("short", "long", "tiny")


class MultiLexSum(Reader[Summarised]):
    """Reads cases of the Civil Rights Litigation Clearinghouse."""

    row_type: ClassVar[type[Row]] = Summarised
    sources: ClassVar[tuple[str, ...]] = ("cases", "documents")
    source_forms: ClassVar[Mapping[str, str]] = {
        "cases": (
            "JSON Lines such as `train.json`, `dev.json` or `test.json` of the release; a line has case_id, "
            "case_documents (ids of documents) and at least one of summary/short, summary/long and summary/tiny. Or "
            "cases as `datasets` loads them, as JSON Lines, a Parquet file or a folder of Parquet files; they have id "
            "and sources_metadata with doc_id. If the names of a folder's files name several splits, `test` is read."
        ),
        "documents": "A folder of PDFs, each named by the id of a document, all in it or in a folder for each case.",
    }
    image_folder: ClassVar[str] = "multi-lexsum"
    fixed_fields: ClassVar[tuple[str, ...]] = ("case_id", "id")

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each case, with its own id or, without one, `line-<n>` from 1, or `row-<n>` from 0 in Parquet."""
        path = sources["cases"]
        for number, (file, place, raw) in enumerate(_cases(path)):
            id = None if isinstance(raw, Fault) else _case_id(raw)
            unnamed = f"row-{number}" if _is_table(path) else place.replace(" ", "-")
            yield raw_row(id or unnamed, raw, file, place)

    def row(self, raw: RawRow, sources: SourcePaths) -> Summarised:
        """Return one case cleaned; raises Rejected."""
        return _row(_case_id(raw.fields), raw.fields)

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return every PDF below the folder, by its name without the ending."""
        return pdfs_by_name(sources["documents"])

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        """Return which split is read."""
        cases = sources["cases"]
        return split_files(cases).notes if _is_table(cases) else ()


def _is_table(cases: Path) -> bool:
    return cases.is_dir() or cases.suffix.lower() == PARQUET


def _cases(path: Path) -> Iterator[tuple[str, str, dict[str, object] | Fault]]:
    """Yield (file, place, fields) of each case."""
    if not _is_table(path):
        yield from ((path.name, f"line {number}", raw) for number, _, raw in json_lines(path))
        return
    for file in split_files(path).files:
        yield from ((file.name, place, raw) for place, raw in table_rows(file, _COLUMNS))


def _case_id(raw: Mapping[str, object]) -> str | None:
    """Return the id of a case, which is called `id` in the form that `datasets` loads."""
    return _id(raw.get("case_id")) or _id(raw.get("id"))


def _document_ids(raw: Mapping[str, object]) -> tuple[str, object]:
    """Return the name of the field with the ids of documents, and its value."""
    found = raw.get("sources_metadata")
    if raw.get("case_documents") is not None or found is None:
        return "case_documents", raw.get("case_documents")
    if isinstance(found, list):
        found = {"doc_id": [each.get("doc_id") if isinstance(each, dict) else None for each in found]}
    return "sources_metadata", found.get("doc_id") if isinstance(found, dict) else found


def _id(value: object) -> str | None:
    """Return the id of a case or document, which the releases write as text or as a number."""
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value).strip() or None if is_id else None


def _row(id: str | None, raw: Mapping[str, object]) -> Summarised:
    if id is None:
        raise Rejected(
            Fault(
                "missing-or-mistyped-field",
                "a text or a number",
                repr(raw.get("case_id", raw.get("id")))[:80],
                field="case_id",
                todo="correct the field in the source or with errata",
            )
        )
    field, given = _document_ids(raw)
    documents = [_id(each) for each in given] if isinstance(given, list) else [None]
    named = tuple(each for each in documents if each)
    if len(named) < len(documents):
        raise Rejected(
            Fault(
                "missing-or-mistyped-field",
                "a list of ids",
                repr(given)[:80],
                field=field,
                todo="correct the field in the source or with errata",
            )
        )
    if not named:
        raise Rejected(
            Fault(
                "case-without-documents",
                "at least one document",
                "none",
                field=field,
                todo="name the documents of the case, or take it out",
            )
        )
    if len(set(named)) < len(named):
        raise Rejected(
            Fault(
                "document-twice",
                "each document once",
                repr(given)[:80],
                field=field,
                todo="name each document once",
            )
        )
    return Summarised(id=id, kind="case", docs=named, sections=_summaries(raw))


def _summaries(raw: Mapping[str, object]) -> tuple[Section, ...]:
    """Return the existing summaries, each as a section whose title is its length."""
    texts = {length: raw.get(f"summary/{length}") for length in LENGTHS}
    if wrong := {length: text for length, text in texts.items() if not isinstance(text, str | None)}:
        raise Rejected(
            Fault(
                "broken-summary",
                "summaries that are texts",
                repr(wrong)[:80],
                field="summary",
                todo="correct the field in the source or with errata",
            )
        )
    written = {length: text for length, text in texts.items() if isinstance(text, str) and text.strip()}
    if not written:
        raise Rejected(
            Fault(
                "empty-summary",
                "a short, long or tiny summary",
                repr(texts)[:80],
                field="summary",
                todo="give the case a summary, or take it out",
            )
        )
    return tuple(Section(section_title=key, paragraphs=(escape_markers(text),)) for key, text in written.items())

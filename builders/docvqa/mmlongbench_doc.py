"""MMLongBench-Doc (Ma et al. 2024, arXiv:2407.01523): `samples.json` or the hub's Parquet, and a folder of PDFs.

A row has seven string fields; pages and lists are Python literals, and pages count from 1. Known errors of the data
(page 0, answerable rows without pages, "Int" answers that are not integers, lists without brackets) are repaired or
refused row by row.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from builders.docvqa.rows import DocumentQuestion, clean, strings_of, texts_in
from mmlongbench.task import (
    Fault,
    Pages,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    literal_list,
    load_json,
    pdfs_by_name,
    raw_row,
)

FIELDS = ("doc_id", "doc_type", "question", "answer", "evidence_pages", "evidence_sources", "answer_format")


class MMLongBenchDoc(Reader[DocumentQuestion]):
    """MMLongBench-Doc: 1,082 questions over 135 PDFs."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("samples", "documents")
    source_forms: ClassVar[Mapping[str, str]] = {
        "samples": (
            "The file `samples.json` (a JSON array) or a Parquet file of the hub; a row has doc_id, doc_type, "
            "question, answer, evidence_pages (from 1), evidence_sources and answer_format, all of them texts."
        ),
        "documents": "A folder of PDFs, without subfolders; a PDF has the name that doc_id gives it.",
    }
    image_folder: ClassVar[str] = "mmlongbench-doc"

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each row of the source; its id is `mmlongdoc_<row>`, from 0."""
        for number, raw in enumerate(_load(sources["samples"])):
            fault = Fault(
                "not-a-row",
                "an object of seven fields",
                type(raw).__name__,
                todo="remove the row, or fetch the file again",
            )
            value = raw if isinstance(raw, dict) else fault
            yield raw_row(f"mmlongdoc_{number}", value, sources["samples"].name, f"row {number}")

    def row(self, raw: RawRow, sources: SourcePaths) -> DocumentQuestion | Fault:
        """Return one row cleaned."""
        fields = strings_of(raw.fields, FIELDS)
        if isinstance(fields, Fault):
            return fields
        name, named = fields["doc_id"], literal_list(fields["evidence_sources"])
        return clean(
            raw.id,
            name[:-4] if name.lower().endswith(".pdf") else name,
            fields["question"],
            fields["answer"],
            fields["answer_format"],
            fields["evidence_pages"],
            doc_type=fields["doc_type"],
            sources=texts_in(named),
            repairs=() if named is not None else ("unreadable-evidence-sources-dropped",),
        )

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return all PDFs of the folder except hidden ones, by their names without the ending. PDFs that share such a
        name are refused.
        """
        return pdfs_by_name(sources["documents"], is_deep=False)


def _load(path: Path) -> Sequence[object]:
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.read_table(path).to_pylist()
        except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: text that is not UTF-8
            found = str(error).replace(f"{path.parent}/", "")[:200]
            raise SourceError(
                Fault("unreadable-source", "a Parquet file", found, path.name, todo="fetch the file again")
            ) from error
    data = load_json(path, "a JSON array of rows")
    if not isinstance(data, list):
        raise SourceError(
            Fault(
                "invalid-source",
                "a JSON array of rows",
                type(data).__name__,
                path.name,
                todo="give samples.json, or the Parquet file of the hub",
            )
        )
    return data

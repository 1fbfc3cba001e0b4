"""MMLongBench-Doc (Ma et al. 2024, arXiv:2407.01523): `samples.json` or the hub's Parquet, and a folder of PDFs.

A row has seven string fields; pages and lists are Python literals, pages count from 1. The data's known dirt (page 0,
answerable rows without pages, "Int" answers that are no integers, bare lists) is mended or refused row by row.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from builders.docvqa.answers import Answer, literal_list, normalise
from builders.docvqa.rows import DocumentQuestion
from mmlongbench import (
    Fault,
    Row,
    RowFault,
    SourceError,
    Sources,
    at_place,
    escape_markers,
    load_json,
    pdfs_by_name,
)

FIELDS = ("doc_id", "doc_type", "question", "answer", "evidence_pages", "evidence_sources", "answer_format")


class MMLongBenchDoc:
    """MMLongBench-Doc: 1,082 questions over 135 PDFs."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("samples", "documents")
    image_folder: ClassVar[str] = "mmlongbench-doc"

    def rows(self, sources: Sources) -> Iterator[Row | RowFault]:
        """Each row of the source; its id is `mmlongdoc_<row>`, from 0."""
        file = sources["samples"].name
        for number, raw in enumerate(_load(sources["samples"])):
            id, place = f"mmlongdoc_{number}", f"row {number}"
            yield at_place(id, _row(id, raw), file, place)

    def documents(self, sources: Sources) -> Mapping[str, Path | Fault]:
        """Every visible PDF of the folder, by its name without the ending; those that share one are refused."""
        return pdfs_by_name(sources["documents"])

    def draw_sample(self, folder: Path) -> dict[str, Path]:
        """Twelve drawn reports with questions about them."""
        from builders.docvqa.sample import draw_reports

        return draw_reports(folder)


def _load(path: Path) -> list[Any]:
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table: list[Any] = pq.read_table(path).to_pylist()
        except (pa.ArrowException, OSError) as error:
            found = str(error).replace(f"{path.parent}/", "")
            raise SourceError(Fault("unreadable-source", "a Parquet file", found, path.name)) from error
        return table
    data = load_json(path, "a JSON array of rows")
    if not isinstance(data, list):
        raise SourceError(Fault("invalid-source", "a JSON array of rows", type(data).__name__, path.name))
    return data


def _row(id: str, raw: object) -> DocumentQuestion | Fault:
    if fault := _shape(raw):
        return fault
    row: dict[str, str] = raw  # type: ignore[assignment]  # its shape was checked
    answer = normalise(row["answer"], row["answer_format"])
    pages = _pages(row["evidence_pages"])
    if isinstance(answer, Fault):
        return answer
    if answer.format == "None":
        repairs = answer.repairs if pages == () else (*answer.repairs, "pages-of-unanswerable-dropped")
        return _question(id, row, answer, (), repairs)
    if isinstance(pages, Fault):
        return pages
    if not pages:
        return Fault("no-answer-pages", "at least one page", row["evidence_pages"], field="evidence_pages")
    return _question(id, row, answer, pages, answer.repairs)


def _question(
    id: str, row: Mapping[str, str], answer: Answer, pages: tuple[int, ...], repairs: tuple[str, ...]
) -> DocumentQuestion:
    named = literal_list(row["evidence_sources"])
    return DocumentQuestion(
        id=id,
        repairs=repairs if named is not None else (*repairs, "unreadable-evidence-sources-dropped"),
        doc=row["doc_id"][:-4] if row["doc_id"].lower().endswith(".pdf") else row["doc_id"],
        doc_type=escape_markers(row["doc_type"]),
        question=escape_markers(row["question"]),
        answer=tuple(map(escape_markers, answer.values)),
        answer_format=answer.format,
        pages=pages,
        sources=tuple(escape_markers(str(source)) for source in named or ()),
    )


def _shape(raw: object) -> Fault | None:
    """What is wrong with the outer form of a row: seven fields of valid text."""
    if not isinstance(raw, dict):
        return Fault("not-a-row", "an object of seven fields", type(raw).__name__)
    for field in FIELDS:
        value = raw.get(field)
        if not isinstance(value, str):
            found = type(value).__name__ if field in raw else "nothing"
            return Fault("missing-or-mistyped-field", "a string", found, field=field)
        if any("\ud800" <= character <= "\udfff" for character in value):
            return Fault("invalid-unicode", "valid Unicode", "a lone surrogate", field=field)
    if not raw["question"].strip():
        return Fault("empty-question", "a question", "nothing", field="question")
    return None


def _pages(text: str) -> tuple[int, ...] | Fault:
    """Pages from 0, ascending, of a list of pages from 1."""
    pages = literal_list(text)
    if pages is None or not all(isinstance(page, int) and not isinstance(page, bool) for page in pages):
        return Fault("answer-pages-not-a-list", "a list of integers such as [3, 5]", text, field="evidence_pages")
    numbers = sorted({page for page in pages if isinstance(page, int)})
    if numbers and numbers[0] < 1:
        expected = "pages from 1"
        return Fault("answer-page-out-of-range", expected, f"page {numbers[0]}", field="evidence_pages")
    return tuple(page - 1 for page in numbers)

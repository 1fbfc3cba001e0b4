"""GovReport (Huang et al. 2021, arXiv:2104.02112): GAO's reports as JSON, and a folder of their PDFs named by id.

`reports` is a JSON file a report (`gov-report/gao/*.json`), or lines of JSON; `highlight` is GAO's own summary. Reports
of the Congressional Research Service have another form of summary and are rejected.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from builders.summ.rows import Section, Summarised
from mmlongbench import (
    Fault,
    Rejected,
    Row,
    RowFault,
    SourceError,
    Sources,
    at_place,
    escape_markers,
    json_lines,
    json_object,
    pdfs_by_name,
    visible_files,
)


class GovReport:
    """GAO's reports."""

    row_type: ClassVar[type[Row]] = Summarised
    sources: ClassVar[tuple[str, ...]] = ("reports", "documents")
    image_folder: ClassVar[str] = "gov-report/bg_pdf_img"

    def rows(self, sources: Sources) -> Iterator[Row | RowFault]:
        """Each report, by its own id."""
        stems = {stem.casefold(): stem for stem in pdfs_by_name(sources["documents"])}
        for file, place, raw in _reports(sources["reports"]):
            id = None if isinstance(raw, Fault) else raw.get("id")
            named = id.strip() if isinstance(id, str) and id.strip() else f"{file}, {place}"
            try:
                found: Row | Fault = raw if isinstance(raw, Fault) else _row(raw, stems)
            except Rejected as refused:
                found = refused.fault
            yield at_place(named, found, file, place)

    def documents(self, sources: Sources) -> Mapping[str, Path | Fault]:
        """Every PDF of the folder, by its name without the ending."""
        return pdfs_by_name(sources["documents"])

    def draw_sample(self, folder: Path) -> dict[str, Path]:
        """Drawn reports with a summary page of GAO's shape."""
        from builders.summ.sample import draw_reports

        return draw_reports(folder)


def _reports(source: Path) -> Iterator[tuple[str, str, dict[str, Any] | Fault]]:
    """(file, place, the report or a fault) of each."""
    if source.is_file():
        for number, _, raw in json_lines(source):
            yield source.name, f"line {number}", raw
        return
    files = [file for file in visible_files(source) if file.suffix == ".json"]
    if not files:
        raise SourceError(Fault("no-reports", "files that end in .json", "none", source.name))
    for file in files:
        try:
            found = json_object(file.read_bytes())
        except OSError as error:
            found = Fault("unreadable-source", "a JSON file", error.strerror or str(error))
        yield file.relative_to(source).as_posix(), "report", found


def _row(raw: Mapping[str, Any], stems: Mapping[str, str]) -> Summarised:
    id = raw.get("id")
    if not isinstance(id, str) or not id.strip():
        raise Rejected(Fault("missing-or-mistyped-field", "a text", repr(id)[:80], field="id"))
    if "highlight" not in raw and ("summary" in raw or "reports" in raw or id.casefold().startswith("crs")):
        raise Rejected(Fault("crs-report", "a report of GAO, with highlights", "one of CRS", field="highlight"))
    sections = tuple(_sections(raw.get("highlight")))
    if not sections:
        raise Rejected(
            Fault("empty-summary", "sections with paragraphs", repr(raw.get("highlight"))[:80], field="highlight")
        )
    url = raw.get("url") if isinstance(raw.get("url"), str) else ""
    return Summarised(id=id, docs=(stems.get(id.casefold(), id),), sections=sections, url=str(url))


def _sections(value: object) -> Iterator[Section]:
    """The sections that hold paragraphs, those inside others after them."""
    for raw in value if isinstance(value, list) else ():
        if not isinstance(raw, dict) or not isinstance(raw.get("section_title"), str):
            raise Rejected(Fault("broken-summary", "sections with a title", repr(raw)[:80], field="highlight"))
        paragraphs = raw.get("paragraphs") or []
        if not isinstance(paragraphs, list) or not all(isinstance(text, str) for text in paragraphs):
            raise Rejected(
                Fault("broken-summary", "paragraphs that are texts", repr(paragraphs)[:80], field="highlight")
            )
        if kept := tuple(escape_markers(text) for text in paragraphs if text.strip()):
            yield Section(section_title=escape_markers(raw["section_title"]), paragraphs=kept)
        yield from _sections(raw.get("subsections"))

"""MM-NIAH's own files: annotation rows whose contexts already contain their needles, and their pictures.

`questions` is one of the six annotation files. `images` is the folder with the pictures of these files, or a folder
above this folder. `obelics` (optional) has more web pages. The fields of a row say what it asks; the name of the file
is not used. The needles are removed from a row's own context, which then becomes the first page of its haystack.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from builders.common.pictures import picture_below
from builders.mm_niah.annotations import (
    Annotation,
    asked_by,
    asked_by_refused,
    own_page,
    page_of_skipped,
    read_annotation,
)
from builders.mm_niah.obelics import obelics_faults, obelics_pages
from builders.mm_niah.pages import Pages, WebPage, picture_root
from builders.mm_niah.rows import HaystackQuestion
from mmlongbench.task import Fault, RawRow, Reader, Row, RowFault, SourcePaths, json_line_at, json_lines, raw_row


class MMNIAHRows(Reader[HaystackQuestion]):
    """MM-NIAH: questions about needles in interleaved web pages, each with a context of its own."""

    row_type: ClassVar[type[Row]] = HaystackQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    optional_sources: ClassVar[tuple[str, ...]] = ("obelics",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "JSON Lines, one of the six annotation files such as `retrieval-text.jsonl`; a line has id, "
            "context, question, answer, images_list and meta."
        ),
        "images": (
            "The folder with the pictures of the annotation files, or a folder at most two levels above the "
            "one that holds `obelics/`."
        ),
        "obelics": (
            "More web pages of OBELICS: JSON Lines or Parquet, a file or a folder of files; a row has the "
            "lists texts and images, and may have metadata."
        ),
    }
    image_folder: ClassVar[str] = "mm-niah"
    fixed_fields: ClassVar[tuple[str, ...]] = ("id", "question", "answer", "context", "images_list", "meta")

    def __init__(self) -> None:
        """Start without a folder of pictures. It is searched for when it is first needed, and again each time rows are
        read.
        """
        self._roots: dict[Path, Path] = {}

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each question, with the id `mm-niah-<id>`; then, as faults, the pages of `obelics` that cannot be read.

        Raises:
            SourceError: several folders could be the folder of pictures.

        """
        path = sources["questions"]
        self._roots[sources["images"]] = picture_root(sources["images"])
        for number, _, raw in json_lines(path):
            yield raw_row(f"mm-niah-{_id(raw, number)}", raw, path.name, f"line {number}")
        for id, fault in obelics_faults(sources["obelics"]) if "obelics" in sources else ():
            yield raw_row(id, fault, sources["obelics"].name, id)

    def row(self, raw: RawRow, sources: SourcePaths) -> HaystackQuestion | Fault:
        """Return one question cleaned."""
        found = read_annotation(raw.fields)
        return found.question if isinstance(found, Annotation) else found

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """Return a picture of a context, a question or a web page."""
        folder = sources["images"]
        if folder not in self._roots:
            self._roots[folder] = picture_root(folder)
        return picture_below(folder, name, self._roots[folder])

    def asked_pictures(self, sources: SourcePaths) -> Iterator[str]:
        """Yield the needles, patterns and options of all rows, including refused ones."""
        for _, _, raw in json_lines(sources["questions"]):
            found = read_annotation(raw)
            yield from asked_by(found) if isinstance(found, Annotation) else asked_by_refused(raw)

    def web_pages(self, sources: SourcePaths) -> Mapping[str, WebPage]:
        """Return the web pages by id: the contexts of rows, from which the needles are removed (`row-<id>`), then the
        pages of `obelics`.
        """
        path, found = sources["questions"], dict[str, Callable[[], WebPage]]()
        for number, offset, raw in json_lines(path):
            if not isinstance(raw, Fault):
                found.setdefault(f"row-{_id(raw, number)}", partial(_own_page, path, offset))
        return Pages(found | (obelics_pages(sources["obelics"]) if "obelics" in sources else {}))


def _id(raw: Mapping[str, object] | Fault, number: int) -> str:
    id = None if isinstance(raw, Fault) else raw.get("id")
    return str(id) if isinstance(id, int) and not isinstance(id, bool) else f"line-{number}"


def _own_page(path: Path, offset: int) -> WebPage:
    """Return a row's context without its needles, also for a skipped row; empty for a row that cannot be read."""
    raw = json_line_at(path, offset)
    found = read_annotation(raw)
    if isinstance(found, Annotation):
        return own_page(found)
    return page_of_skipped(raw) if found.is_expected and not isinstance(raw, Fault) else []

"""MM-NIAH's own files (Wang et al. 2024, arXiv:2406.07230): annotation rows whose contexts already contain their
needles, and their pictures.

The fields of a row say what it asks; the name of the file is not used. The needles are removed from a row's own
context, which then becomes the first page of its haystack. `placed_depth` is not read, because a release chooses its
own depths (those of the rows count from the start of the context). More web pages are rows of OBELICS (Laurençon et
al. 2023, arXiv:2306.16527) with two parallel lists, `images` (URLs) and `texts`. Their pictures are found by
`formatted_filename` of the metadata or the last part of the URL.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import ClassVar, TypeAlias
from urllib.parse import urlsplit

import mmlongbench.task as mt
from builders.common import open_parquet, picture_below
from builders.mm_niah.annotations import WEB, own_page, pictures_asked, read_fields, read_question
from builders.mm_niah.rows import MISTYPED, HaystackQuestion, Pages, WebPage

END = "END_OF_DOCUMENT_TOKEN_TO_BE_REPLACED"
"""The text at the end of a page of OBELICS."""
_Raw: TypeAlias = Mapping[str, object]
"""A row as it is in its file: a line of JSON or a row of Parquet."""


class MMNIAHRows(mt.readers.Reader[HaystackQuestion]):
    """MM-NIAH: questions about needles in interleaved web pages, each with a context of its own."""

    row_type: ClassVar[type[mt.Row]] = HaystackQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    optional_sources: ClassVar[tuple[str, ...]] = ("obelics",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": "JSON Lines, one of the six annotation files such as `retrieval-text.jsonl`; a line has id, "
        "context, question, answer, images_list and meta.",
        "images": "The folder with the pictures of the annotation files, or a folder at most two levels above the one "
        "that holds `obelics/`.",
        "obelics": "More web pages of OBELICS: JSON Lines or Parquet, a file or a folder of files; a row has the "
        "lists texts and images, and may have metadata.",
    }
    image_folder: ClassVar[str] = "mm-niah"
    fixed_fields: ClassVar[tuple[str, ...]] = ("id", "question", "answer", "context", "images_list", "meta")

    def __init__(self) -> None:
        # The folder of pictures is searched for when it is first needed, and again each time rows are read.
        self._roots: dict[Path, Path] = {}

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each question, with the id `mm-niah-<id>`; then, as faults, the pages of `obelics` that cannot be read.

        Raises:
            SourceError: several folders could be the folder of pictures.

        """
        path = sources["questions"]
        self._roots[sources["images"]] = picture_root(sources["images"])
        for number, _, line in mt.readers.json_lines(path):
            yield mt.readers.raw_row(f"mm-niah-{_id(line, number)}", line, path.name, f"line {number}")
        for id, read, listed in _obelics(sources):
            raw = read() if listed is None else listed
            page = raw if isinstance(raw, mt.Fault) else obelics_page(raw)
            if isinstance(page, mt.Fault):
                yield mt.readers.raw_row(id, page, sources["obelics"].name, id)

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> HaystackQuestion:
        return read_question(read_fields(raw.fields))

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        folder = sources["images"]
        if folder not in self._roots:
            self._roots[folder] = picture_root(folder)
        return picture_below(folder, name, self._roots[folder])

    def asked_pictures(self, sources: mt.readers.SourcePaths) -> Iterator[str]:
        for _, _, raw in mt.readers.json_lines(sources["questions"]):
            if not isinstance(raw, mt.Fault):
                yield from pictures_asked(raw)

    def web_pages(self, sources: mt.readers.SourcePaths) -> Mapping[str, WebPage]:
        """Return the web pages by id: the contexts of rows, from which the needles are removed (`row-<id>`), then the
        pages of `obelics`.
        """
        path, pages = sources["questions"], dict[str, Callable[[], WebPage]]()
        for number, offset, raw in mt.readers.json_lines(path):
            if not isinstance(raw, mt.Fault):
                read = partial(mt.readers.json_line_at, path, offset)
                pages.setdefault(f"row-{_id(raw, number)}", partial(_page, own_page, read))
        return Pages(pages | {id: partial(_page, obelics_page, read) for id, read, _ in _obelics(sources)})


def picture_root(folder: Path) -> Path:
    """Return the folder that holds `obelics/`, to which the names of pictures are relative: `folder`, or one at most
    two levels below it, because the archive of the validation split unpacks to `mm_niah_dev/images/`. If there is none,
    it is `folder`. A link to a folder of the same level does not count as a second folder.

    Raises:
        SourceError: several folders of one level have an `obelics/`.

    """
    level = [folder]
    for _ in range(3):
        roots = sorted({each.resolve(): each for each in reversed(level) if (each / WEB).is_dir()}.values())
        if len(roots) > 1:
            found = " and ".join(each.relative_to(folder).as_posix() for each in roots[:3])
            expected = f"one folder that holds {WEB}/"
            raise mt.readers.SourceError(
                mt.Fault("several-picture-folders", expected, found, folder.name, todo="name one of them")
            )
        if roots:
            return roots[0]
        level = [below for each in level for below in sorted(each.glob("[!.]*/"))]
    return folder


def _id(raw: Mapping[str, object] | mt.Fault, number: int) -> str:
    id = None if isinstance(raw, mt.Fault) else raw.get("id")
    return str(id) if type(id) is int else f"line-{number}"


def _page(parts: Callable[[_Raw], WebPage | mt.Fault], read: Callable[[], _Raw | mt.Fault]) -> WebPage:
    page = raw if isinstance(raw := read(), mt.Fault) else parts(raw)
    return [] if isinstance(page, mt.Fault) else page


def _obelics(
    sources: mt.readers.SourcePaths,
) -> Iterator[tuple[str, Callable[[], _Raw | mt.Fault], _Raw | mt.Fault | None]]:
    """Yield (id, function that reads the row, row) of each page, in the order of the files; the id is
    `obelics/<file>-<row from 0>`. The row is None in Parquet files, which are not read for this.

    Raises:
        SourceError: the source is a folder without pages.

    """
    if (source := sources.get("obelics")) is None:
        return
    endings = (".jsonl", ".json", ".parquet")
    files = (
        [source] if source.is_file() else [file for file in mt.readers.visible_files(source) if file.suffix in endings]
    )
    if not files:
        todo = "give the folder that has these files"
        raise mt.readers.SourceError(
            mt.Fault("no-pages", "JSON Lines or Parquet files", "none in it", source.name, todo=todo)
        )
    for file in files:
        stem = f"{WEB}/{file.relative_to(source).as_posix() if source.is_dir() else file.name}"
        if file.suffix != ".parquet":
            for number, (_, offset, raw) in enumerate(mt.readers.json_lines(file)):
                yield f"{stem}-{number}", partial(mt.readers.json_line_at, file, offset), raw
            continue
        metadata = open_parquet(file).metadata
        rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        places = ((group, row) for group, count in enumerate(rows) for row in range(count))
        for number, (group, row) in enumerate(places):
            yield f"{stem}-{number}", partial(_parquet_row, file, group, row), None


def _parquet_row(file: Path, group: int, row: int) -> _Raw | mt.Fault:
    import pyarrow as pa

    try:
        return _row_group(file, group)[row]
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        todo = "take the page out, or download the file again"
        return mt.Fault("unreadable-row", "a row that can be read", str(error)[:200], todo=todo)


@lru_cache(maxsize=4)
def _row_group(file: Path, group: int) -> Sequence[_Raw]:
    parquet = open_parquet(file)
    columns = [name for name in ("texts", "images", "metadata") if name in parquet.schema_arrow.names]
    return parquet.read_row_group(group, columns).to_pylist()


def obelics_page(raw: _Raw) -> WebPage | mt.Fault:
    """Return the texts and pictures of a row, or what is wrong with it."""
    texts, images, metadata = raw.get("texts"), raw.get("images"), raw.get("metadata")
    todo = "take the page out, or download the file again"
    if not isinstance(texts, list) or not isinstance(images, list) or len(texts) != len(images):
        return mt.Fault(MISTYPED, "two lists of one length", "something else", field="texts, images", todo=todo)
    try:  # the source stores this list as a text
        entries = json.loads(metadata) if isinstance(metadata, str) else metadata
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, list) or len(entries) != len(texts):
        entries = [None] * len(texts)
    parts: list[str | mt.Image] = []
    for number, (text, url, entry) in enumerate(zip(texts, images, entries, strict=True)):
        given = text if url is None else url
        if (text is None) == (url is None) or not isinstance(given, str):
            expected, found = "a text or a URL, the other null", repr((text, url))[:80]
            return mt.Fault("text-or-image", expected, found, field=f"[{number}]", todo=todo)
        if url is None:
            parts.append(given.replace(END, " "))
            continue
        name = entry.get("formatted_filename") if isinstance(entry, dict) else None
        name = PurePosixPath(name).name if isinstance(name, str) else ""
        parts.append(mt.Image(f"{WEB}/{name or PurePosixPath(urlsplit(given).path).name or 'image'}"))
    return parts

"""The readers of MM-NIAH's own files, and of your own pages with your own needles."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, ClassVar, TypeAlias
from urllib.parse import urlsplit

import mmlongbench.task as mt
from builders.common import CORRECT, open_parquet, picture_below, source_error
from builders.mm_niah.annotations import WEB, own_page, pictures_asked, read_fields, read_question
from builders.mm_niah.rows import MISTYPED, HaystackQuestion, HiddenNeedle, Pages, WebPage, refuse

_Raw: TypeAlias = Mapping[str, object]
"""A row as it is in its file: a line of JSON or a row of Parquet."""


class MMNIAHRows(mt.readers.Reader[HaystackQuestion]):
    """MM-NIAH: questions about needles in interleaved web pages, each with a context of its own."""

    # Wang et al. 2024, arXiv:2406.07230. More web pages are rows of OBELICS (Laurençon et al. 2023, arXiv:2306.16527).

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
        """Yield each question as `mm-niah-<id>`; then, as faults, the pages of `obelics` that cannot be read."""
        path = sources["questions"]
        self._roots[sources["images"]] = picture_root(sources["images"])
        for number, _, raw in mt.readers.json_lines(path):
            yield mt.readers.raw_row(f"mm-niah-{_id(raw, number)}", raw, path.name, f"line {number}")
        for id, read, line in _obelics(sources):
            row = read() if line is None else line
            page = row if isinstance(row, mt.Fault) else obelics_page(row)
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
    """
    for level in ([folder], folder.glob("[!.]*/"), folder.glob("[!.]*/[!.]*/")):
        holding = [path for path in sorted(level, reverse=True) if (path / WEB).is_dir()]
        roots = sorted({path.resolve(): path for path in holding}.values())
        if len(roots) > 1:
            found = " and ".join(root.relative_to(folder).as_posix() for root in roots[:3])
            expected, todo = f"one folder that holds {WEB}/", "name one of them"
            raise source_error("several-picture-folders", expected, found, folder.name, todo)
        if roots:
            return roots[0]
    return folder


def _id(raw: _Raw | mt.Fault, number: int) -> str:
    id = None if isinstance(raw, mt.Fault) else raw.get("id")
    return str(id) if type(id) is int else f"line-{number}"


def _page(parts: Callable[[_Raw], WebPage | mt.Fault], read: Callable[[], _Raw | mt.Fault]) -> WebPage:
    page = raw if isinstance(raw := read(), mt.Fault) else parts(raw)
    return [] if isinstance(page, mt.Fault) else page


# --- OBELICS ----------------------------------------------------------------------------------------------------------

_TAKE_OUT = "take the page out, or download the file again"


def _obelics(
    sources: mt.readers.SourcePaths,
) -> Iterator[tuple[str, Callable[[], _Raw | mt.Fault], _Raw | mt.Fault | None]]:
    """Yield (id, function that reads the row, row) of each page, in the order of the files; the id is
    `obelics/<file>-<row from 0>`. The row is None in Parquet files, which are not read for this.
    """
    if (source := sources.get("obelics")) is None:
        return
    files, endings = [source], (".jsonl", ".json", ".parquet")
    if not source.is_file():
        files = [file for file in mt.readers.visible_files(source) if file.suffix in endings]
    if not files:
        expected, todo = "JSON Lines or Parquet files", "give the folder that has these files"
        raise source_error("no-pages", expected, "none in it", source.name, todo)
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
        return mt.Fault("unreadable-row", "a row that can be read", str(error)[:200], todo=_TAKE_OUT)


@lru_cache(maxsize=4)
def _row_group(file: Path, group: int) -> Sequence[_Raw]:
    parquet = open_parquet(file)
    columns = [name for name in ("texts", "images", "metadata") if name in parquet.schema_arrow.names]
    return parquet.read_row_group(group, columns).to_pylist()


def obelics_page(raw: _Raw) -> WebPage | mt.Fault:
    """Return the texts and pictures of a row, or what is wrong with it. A picture is named by the `formatted_filename`
    of its metadata, or the last part of its URL.
    """
    texts, images, entries = raw.get("texts"), raw.get("images"), raw.get("metadata")
    if not isinstance(texts, list) or not isinstance(images, list) or len(texts) != len(images):
        return mt.Fault(MISTYPED, "two lists of one length", "something else", field="texts, images", todo=_TAKE_OUT)
    try:  # the source stores this list as a text
        entries = json.loads(entries) if isinstance(entries, str) else entries
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, list) or len(entries) != len(texts):
        entries = [None] * len(texts)
    parts: list[str | mt.Image] = []
    for index, (text, url, entry) in enumerate(zip(texts, images, entries, strict=True)):
        given = text if url is None else url
        if (text is None) == (url is None) or not isinstance(given, str):
            expected, found = "a text or a URL, the other null", repr((text, url))[:80]
            return mt.Fault("text-or-image", expected, found, field=f"[{index}]", todo=_TAKE_OUT)
        if url is None:
            parts.append(given.replace("END_OF_DOCUMENT_TOKEN_TO_BE_REPLACED", " "))
            continue
        name = entry.get("formatted_filename") if isinstance(entry, dict) else None
        name = PurePosixPath(name).name if isinstance(name, str) else ""
        parts.append(mt.Image(f"{WEB}/{name or PurePosixPath(urlsplit(given).path).name or 'image'}"))
    return parts


# --- your own pages ---------------------------------------------------------------------------------------------------

ENDINGS = (".txt", ".md")
_MAX_BYTES = 20_000_000
"""The maximum size of a page."""
_PICTURE = re.compile(r"!\[[^\[\]\n]*\]\(<?([^()>\s]{1,2000})(?:>|(?=[\s)]))[^)\n]{0,200}\)")
"""Matches a picture in Markdown. The pattern is bounded and unambiguous, so even a page full of brackets is searched in
one pass."""
_LISTS = ("needles", "choices", "shown")


class OwnPages(mt.readers.Reader[HaystackQuestion]):
    """Reads your own pages and pictures as a haystack, with your own needles."""

    row_type: ClassVar[type[mt.Row]] = HaystackQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "documents")
    optional_sources: ClassVar[tuple[str, ...]] = ("images",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": "JSON Lines; a line has question, answer and needles (sentences, or names of pictures), and may "
        "have id, choices and shown (names of pictures).",
        "documents": "A folder of pages, `.txt` or `.md`, also in subfolders, or one such file; Markdown pages may "
        "show pictures.",
        "images": "The folder of the pictures that questions and pages name; without it, they are in documents.",
    }
    image_folder: ClassVar[str] = "mm-niah"
    fixed_fields: ClassVar[tuple[str, ...]] = ("id", *_LISTS)

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each question, with its `id` or, without one, `mm-niah-<line from 0>`; then, as faults, the pages that
        are not text.
        """
        path, root = sources["questions"], sources["documents"]
        for number, _, raw in mt.readers.json_lines(path):
            given = None if isinstance(raw, mt.Fault) else raw.get("id")
            id = given if isinstance(given, str) and given.strip() else f"mm-niah-{number - 1}"
            yield mt.readers.raw_row(id, raw, path.name, f"line {number}")
        for page, file in _files(root).items():
            if isinstance(text := _text(root, file), mt.Fault):
                yield mt.readers.raw_row(page, text, page, "page")

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> HaystackQuestion:
        """Return a question. Its answer is a text; a list of counts, one for each needle; or the index of a choice."""
        fields: dict[str, Any] = {"needles": [], "choices": [], "shown": [], **raw.fields}
        question, answer = fields.get("question"), fields.get("answer")
        if not isinstance(question, str) or not question.strip():
            refuse(MISTYPED, "a text", repr(question), "question", CORRECT)
        for field in _LISTS:
            names = fields[field]
            if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
                refuse(MISTYPED, "a list of texts", repr(names)[:80], field, CORRECT)
        needles, choices, shown = (tuple(fields[field]) for field in _LISTS)
        marker = mt.advanced.MARKER
        if broken := next((needle for needle in needles if "\n" in needle or marker in needle), ""):
            todo = "write each needle in one line, without this marker"
            refuse("needle-with-marker", f"one line without {marker}", repr(broken)[:80], "needles", todo)
        about: dict[str, Any]
        if isinstance(answer, list) and answer and all(type(count) is int for count in answer):
            about = {"counts": tuple(answer)}
        elif choices and type(answer) is int:
            about = {"right": answer}
        elif not choices and isinstance(answer, str) and answer.strip():
            about = {"answers": (answer,)}
        else:
            expected = "the index of a choice" if choices else "a text, or a list of counts"
            refuse(MISTYPED, expected, repr(answer)[:80], "answer", CORRECT)
        hidden = tuple(
            HiddenNeedle(id=f"needle-{index}", image=name)
            if name.lower().endswith(mt.readers.PICTURE_ENDINGS)
            else HiddenNeedle(id=f"needle-{index}", text=name)
            for index, name in enumerate(needles)
        )
        question = " ".join(question.split())
        return HaystackQuestion(id=raw.id, question=question, needles=hidden, choices=choices, shown=shown, **about)

    def asked_pictures(self, sources: mt.readers.SourcePaths) -> Iterator[str]:
        for _, _, raw in mt.readers.json_lines(sources["questions"]):
            lists = [] if isinstance(raw, mt.Fault) else [raw.get(field) for field in _LISTS]
            for name in (name for names in lists if isinstance(names, list) for name in names):
                if isinstance(name, str) and name.lower().endswith(mt.readers.PICTURE_ENDINGS):
                    yield name

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        folder = sources.get("images", sources["documents"])
        return picture_below(folder.parent if folder.is_file() else folder, name)

    def web_pages(self, sources: mt.readers.SourcePaths) -> Mapping[str, WebPage]:
        root = sources["documents"]
        return Pages({page: partial(_parts, root, page, file) for page, file in _files(root).items()})


def _files(source: Path) -> dict[str, Path]:
    if source.is_file():
        return {source.name: source}
    pages = (file for file in mt.readers.visible_files(source) if file.suffix.lower() in ENDINGS)
    files = {file.relative_to(source).as_posix(): file for file in pages}
    if not files:
        expected = f"files that end in {' or '.join(ENDINGS)}"
        todo = "put pages with one of these endings into the folder"
        raise source_error("no-pages", expected, "none", source.name, todo)
    return dict(sorted(files.items()))


def _text(root: Path, file: Path) -> str | mt.Fault:
    # links to folders are not followed, so only a page that is a link itself can lie elsewhere
    if file.is_symlink() and root.is_dir() and mt.readers.file_inside(root, file.relative_to(root)) is None:
        todo = "put the page itself into the folder"
        return mt.Fault("path-outside-source", "a page that lies in the folder", "a link out of it", todo=todo)
    try:
        if (size := file.stat().st_size) > _MAX_BYTES:
            todo = "cut the page into several files"
            return mt.Fault("page-too-long", f"at most {_MAX_BYTES} bytes", str(size), todo=todo)
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        found = str(error).replace(f"{file.parent}/", "")[:120]
        return mt.Fault("unreadable-page", "a text in UTF-8", found, todo="save the page in UTF-8")


def _parts(root: Path, page: str, file: Path) -> WebPage:
    # texts and, in Markdown, pictures, which are named by their paths below the folder
    text = _text(root, file)
    if isinstance(text, mt.Fault):
        return []
    parts = _PICTURE.split(text) if file.suffix.lower() == ".md" else [text]
    folder = PurePosixPath(page).parent  # every second part is the path of a picture, from the folder of the page
    return [mt.Image(normpath((folder / part).as_posix())) if n % 2 else part for n, part in enumerate(parts)]

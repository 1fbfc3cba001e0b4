"""Your own haystack: a folder of text and Markdown pages with pictures, and questions about needles to hide in it.

A line of `questions` has `question`, `answer` (a text; a list of counts, one for each needle; or the index of a choice)
and `needles` (sentences, or names of pictures). It may have `id`, `choices` and `shown` (names of pictures). The names
of pictures are paths below `images` or, without it, below `documents`. If pictures are counted, the released answer has
one number for each picture of the context: the count for a needle, and 0 for all others. A picture that any question
names is never a filler of a haystack.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, ClassVar, NoReturn

import mmlongbench.task as mt
from builders.common import picture_below
from builders.mm_niah.rows import MISTYPED, HaystackQuestion, HiddenNeedle, Pages, WebPage, refuse

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
        fields = {"needles": [], "choices": [], "shown": [], **raw.fields}
        question, answer = fields.get("question"), fields.get("answer")
        if not isinstance(question, str) or not question.strip():
            _refuse_field("question", "a text", repr(question))
        for field in _LISTS:
            names = fields[field]
            if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
                _refuse_field(field, "a list of texts", repr(names)[:80])
        if broken := next(
            (needle for needle in fields["needles"] if "\n" in needle or mt.advanced.MARKER in needle), ""
        ):
            todo = "write each needle in one line, without this marker"
            refuse("needle-with-marker", f"one line without {mt.advanced.MARKER}", repr(broken)[:80], "needles", todo)
        about: dict[str, Any]
        if isinstance(answer, list) and answer and all(type(count) is int for count in answer):
            about = {"counts": tuple(answer)}
        elif fields["choices"] and type(answer) is int:
            about = {"right": answer}
        elif not fields["choices"] and isinstance(answer, str) and answer.strip():
            about = {"answers": (answer,)}
        else:
            expected = "the index of a choice" if fields["choices"] else "a text, or a list of counts"
            _refuse_field("answer", expected, repr(answer)[:80])
        needles = [
            {"id": f"needle-{n}", "image" if name.lower().endswith(mt.readers.PICTURE_ENDINGS) else "text": name}
            for n, name in enumerate(fields["needles"])
        ]
        about |= {"needles": tuple(map(HiddenNeedle.model_validate, needles))}
        about |= {"choices": tuple(fields["choices"]), "shown": tuple(fields["shown"])}
        return HaystackQuestion(id=raw.id, question=" ".join(question.split()), **about)

    def asked_pictures(self, sources: mt.readers.SourcePaths) -> Iterator[str]:
        for _, _, raw in mt.readers.json_lines(sources["questions"]):
            listed = [] if isinstance(raw, mt.Fault) else [raw.get(field) for field in _LISTS]
            names = (name for names in listed if isinstance(names, list) for name in names)
            yield from (
                name for name in names if isinstance(name, str) and name.lower().endswith(mt.readers.PICTURE_ENDINGS)
            )

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        folder = sources.get("images", sources["documents"])
        return picture_below(folder.parent if folder.is_file() else folder, name)

    def web_pages(self, sources: mt.readers.SourcePaths) -> Mapping[str, WebPage]:
        root = sources["documents"]
        return Pages({page: partial(_page, root, page, file) for page, file in _files(root).items()})


def _refuse_field(field: str, expected: str, found: str) -> NoReturn:
    refuse(MISTYPED, expected, found, field, "correct the field in the source or with errata")


def _files(source: Path) -> dict[str, Path]:
    """Return the files of pages by their paths below the folder."""
    if source.is_file():
        return {source.name: source}
    pages = (file for file in mt.readers.visible_files(source) if file.suffix.lower() in ENDINGS)
    found = {file.relative_to(source).as_posix(): file for file in pages}
    if not found:
        todo = "put pages with one of these endings into the folder"
        expected = f"files that end in {' or '.join(ENDINGS)}"
        raise mt.readers.SourceError(mt.Fault("no-pages", expected, "none", source.name, todo=todo))
    return dict(sorted(found.items()))


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


def _page(root: Path, page: str, file: Path) -> WebPage:
    """Return the parts of a page in order: texts and, in Markdown, pictures, which are named by their paths below the
    folder. The result is empty if the page is not text.
    """
    text = _text(root, file)
    if isinstance(text, mt.Fault):
        return []
    parts = _PICTURE.split(text) if file.suffix.lower() == ".md" else [text]
    folder = PurePosixPath(page).parent  # every second part is the path of a picture, from the folder of the page
    return [mt.Image(normpath((folder / part).as_posix())) if n % 2 else part for n, part in enumerate(parts)]

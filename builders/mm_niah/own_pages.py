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
from typing import Any, ClassVar

from builders.common import picture_below
from builders.mm_niah.rows import HaystackQuestion, HiddenNeedle, Pages, WebPage
from mmlongbench.task import (
    PICTURE_ENDINGS,
    Fault,
    Image,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    file_inside,
    json_lines,
    raw_row,
    visible_files,
)

ENDINGS = (".txt", ".md")
_MAX_BYTES = 20_000_000
"""The maximum size of a page."""
_PICTURE = re.compile(r"!\[[^\[\]\n]*\]\(<?([^()>\s]{1,2000})(?:>|(?=[\s)]))[^)\n]{0,200}\)")
"""Matches a picture in Markdown. The pattern is bounded and unambiguous, so even a page full of brackets is searched in
one pass."""
_LISTS = ("needles", "choices", "shown")


class OwnPages(Reader[HaystackQuestion]):
    """Reads your own pages and pictures as a haystack, with your own needles."""

    row_type: ClassVar[type[Row]] = HaystackQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "documents")
    optional_sources: ClassVar[tuple[str, ...]] = ("images",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "JSON Lines; a line has question, answer and needles (sentences, or names of pictures), and may "
            "have id, choices and shown (names of pictures)."
        ),
        "documents": (
            "A folder of pages, `.txt` or `.md`, also in subfolders, or one such file; Markdown pages may show "
            "pictures."
        ),
        "images": "The folder of the pictures that questions and pages name; without it, they are in documents.",
    }
    image_folder: ClassVar[str] = "mm-niah"
    fixed_fields: ClassVar[tuple[str, ...]] = ("id", *_LISTS)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each question, with its `id` or, without one, `mm-niah-<line from 0>`; then, as faults, the pages that
        are not text.
        """
        path = sources["questions"]
        for number, _, raw in json_lines(path):
            given = None if isinstance(raw, Fault) else raw.get("id")
            id = given if isinstance(given, str) and given.strip() else f"mm-niah-{number - 1}"
            yield raw_row(id, raw, path.name, f"line {number}")
        for page, file in _files(sources["documents"]).items():
            found = _text(sources["documents"], file)
            if isinstance(found, Fault):
                yield raw_row(page, found, page, "page")

    def row(self, raw: RawRow, sources: SourcePaths) -> HaystackQuestion | Fault:
        """Return one question cleaned."""
        return _row(raw.id, raw.fields)

    def asked_pictures(self, sources: SourcePaths) -> Iterator[str]:
        """Yield the needles, choices and shown pictures of all questions, including refused ones."""
        for _, _, raw in json_lines(sources["questions"]):
            listed = [] if isinstance(raw, Fault) else [raw.get(field) for field in _LISTS]
            names = (name for names in listed if isinstance(names, list) for name in names)
            yield from (name for name in names if isinstance(name, str) and name.lower().endswith(PICTURE_ENDINGS))

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """Return a picture below the folder `images` or, without this folder, below `documents`."""
        return picture_below(_pictures_folder(sources), name)

    def web_pages(self, sources: SourcePaths) -> Mapping[str, WebPage]:
        """Return the pages by their paths below the folder, sorted."""
        root = sources["documents"]
        return Pages({page: partial(_page, root, page, file) for page, file in _files(root).items()})


def _pictures_folder(sources: SourcePaths) -> Path:
    folder = sources.get("images", sources["documents"])
    return folder.parent if folder.is_file() else folder


def _files(source: Path) -> dict[str, Path]:
    """Return the files of pages by their paths below the folder."""
    if source.is_file():
        return {source.name: source}
    pages = (file for file in visible_files(source) if file.suffix.lower() in ENDINGS)
    found = {file.relative_to(source).as_posix(): file for file in pages}
    if not found:
        raise SourceError(
            Fault(
                "no-pages",
                f"files that end in {' or '.join(ENDINGS)}",
                "none",
                source.name,
                todo="put pages with one of these endings into the folder",
            )
        )
    return dict(sorted(found.items()))


def _text(root: Path, file: Path) -> str | Fault:
    if root.is_dir() and file_inside(root, file.relative_to(root)) is None:
        return Fault(
            "path-outside-source",
            "a page that lies in the folder",
            "a link out of it",
            todo="put the page itself into the folder",
        )
    try:
        if (size := file.stat().st_size) > _MAX_BYTES:
            return Fault(
                "page-too-long", f"at most {_MAX_BYTES} bytes", str(size), todo="cut the page into several files"
            )
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Fault(
            "unreadable-page",
            "a text in UTF-8",
            str(error).replace(f"{file.parent}/", "")[:120],
            todo="save the page in UTF-8",
        )


def _page(root: Path, page: str, file: Path) -> WebPage:
    """Return the parts of a page in order: texts and, in Markdown, pictures, which are named by their paths below the
    folder. The result is empty if the page is not text.
    """
    found = _text(root, file)
    if isinstance(found, Fault):
        return []
    texts = _PICTURE.split(found) if file.suffix.lower() == ".md" else [found]
    folder = PurePosixPath(page).parent
    parts = (Image(normpath((folder / part).as_posix())) if n % 2 else part for n, part in enumerate(texts))
    return list(parts)


def _row(id: str, raw: Mapping[str, object]) -> HaystackQuestion | Fault:
    question = raw.get("question")
    if not isinstance(question, str) or not question.strip():
        return Fault(
            "missing-or-mistyped-field",
            "a text",
            repr(question),
            field="question",
            todo="correct the field in the source or with errata",
        )
    lists: dict[str, list[str]] = {}
    for field in _LISTS:
        value = raw.get(field, [])
        if not isinstance(value, list) or not all(isinstance(name, str) and name.strip() for name in value):
            return Fault(
                "missing-or-mistyped-field",
                "a list of texts",
                repr(value)[:80],
                field=field,
                todo="correct the field in the source or with errata",
            )
        lists[field] = value
    if broken := next((needle for needle in lists["needles"] if "\n" in needle or "<image>" in needle), ""):
        return Fault(
            "needle-with-marker",
            "one line without <image>",
            repr(broken)[:80],
            field="needles",
            todo="write each needle in one line, without this marker",
        )
    answer = _answer(raw.get("answer"), bool(lists["choices"]))
    if isinstance(answer, Fault):
        return answer
    needles = [
        {"id": f"needle-{n}", "image" if name.lower().endswith(PICTURE_ENDINGS) else "text": name}
        for n, name in enumerate(lists["needles"])
    ]
    return HaystackQuestion(
        id=id,
        question=" ".join(question.split()),
        needles=tuple(map(HiddenNeedle.model_validate, needles)),
        choices=tuple(lists["choices"]),
        shown=tuple(lists["shown"]),
        **answer,
    )


def _answer(answer: object, has_choices: bool) -> dict[str, Any] | Fault:
    if isinstance(answer, list) and answer and all(type(count) is int for count in answer):
        return {"counts": tuple(answer)}
    if has_choices and type(answer) is int:
        return {"right": answer}
    if not has_choices and isinstance(answer, str) and answer.strip():
        return {"answers": (answer,)}
    expected = "the index of a choice" if has_choices else "a text, or a list of counts"
    return Fault(
        "missing-or-mistyped-field",
        expected,
        repr(answer)[:80],
        field="answer",
        todo="correct the field in the source or with errata",
    )

"""Reads a folder of .txt and .pdf files. Each file is an article: the path of the file is the article's id, and the
name of the file without the ending is the article's title.
"""

from collections.abc import Iterator
from pathlib import Path

from mmlongbench.corpus.articles import MAX_CHARACTERS, Article
from mmlongbench.corpus.lines import Advance
from mmlongbench.corpus.rows import paragraphs_of
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf_reader import page_text
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.folders import file_inside

PDF_LIMITS = Limits()
_MAX_BYTES = 4 * MAX_CHARACTERS


def read_folder(root: Path, advance: Advance) -> Iterator[Article | Fault]:
    """Yield the articles of a folder and its subfolders, sorted by path; the paragraphs of a PDF are its pages.

    A link that leads out of the folder is a fault, because its target is not part of the source.
    """
    for path in files_of(root):
        name = path.relative_to(root).as_posix()
        read = {".txt": _text, ".pdf": _pages}.get(path.suffix.lower())
        if file_inside(root, name) is None:
            yield Fault(
                "path-outside-source",
                "a file that lies in the folder",
                "a link out of it",
                name,
                todo="put the file itself into the folder",
            )
        elif read is None:
            yield Fault(
                "unknown-kind",
                "a .txt or a .pdf",
                path.suffix or "no ending",
                name,
                todo="convert it to one of these formats, or take it out",
            )
        else:
            found = read(path, name)
            yield found if isinstance(found, Fault) else Article(name, path.stem, found, file=name)
        advance()


def files_of(root: Path) -> list[Path]:
    """Return every file of a folder, sorted by path."""
    return sorted((path for path in root.rglob("*") if path.is_file()), key=lambda path: path.relative_to(root).parts)


def _text(path: Path, name: str) -> tuple[str, ...] | Fault:
    if (size := path.stat().st_size) > _MAX_BYTES:
        return Fault(
            "text-too-long", f"at most {_MAX_BYTES:,} bytes", f"{size:,}", name, todo="cut the text into several files"
        )
    try:
        return paragraphs_of(path.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02X} at byte {error.start}"
        return Fault("invalid-utf-8", "UTF-8", found, name, todo="save the file in UTF-8")


def _pages(path: Path, name: str) -> tuple[str, ...] | Fault:
    from dataclasses import replace

    try:
        return tuple(page_text(path, PDF_LIMITS))
    except SourceError as error:
        return replace(error.fault, file=name)

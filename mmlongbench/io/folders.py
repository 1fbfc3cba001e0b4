"""Finds files of source folders: PDFs by name, visible files, and files that must be inside a folder."""

import filecmp
from collections.abc import Iterator
from pathlib import Path, PurePath

from mmlongbench.errors import Fault, SourceError


def pdfs_by_name(folder: Path, *, is_deep: bool = True) -> dict[str, Path | Fault]:
    """Return every visible PDF of a folder by its name without the ending; with `is_deep`, those of subfolders too.

    The value is a fault if several PDFs have the name and differ, or if one of them is a link out of the folder.

    Raises:
        SourceError: the path is not a folder.

    """
    if not folder.is_dir():
        raise SourceError(
            Fault(
                "unreadable-source", "a folder of PDFs", "a file", folder.name, todo="give the folder, not a file in it"
            )
        )
    named: dict[str, list[Path]] = {}
    for path in visible_files(folder):
        if path.suffix.lower() == ".pdf" and (is_deep or path.parent == folder):
            named.setdefault(path.stem, []).append(path)
    return {stem: _document(paths, folder) for stem, paths in named.items()}


def _document(paths: list[Path], folder: Path) -> Path | Fault:
    """Return the file of a document, given all files that have its name, or what is wrong with these files."""
    for path in paths:
        if file_inside(folder, path.relative_to(folder)) is None:
            name, todo = path.relative_to(folder).as_posix(), "copy it into the folder"
            return Fault("path-outside-source", "a PDF that lies in the folder", "a link out of it", name, todo=todo)
    return paths[0] if _is_one(paths) else two_of_one_name(paths, folder)


def _is_one(paths: list[Path]) -> bool:
    """Return whether files are copies of each other."""
    return all(filecmp.cmp(paths[0], path, shallow=False) for path in paths[1:])


def two_of_one_name(paths: list[Path], folder: Path) -> Fault:
    """Return the fault of different documents with the same name, of which a question could mean any."""
    found, expected = (
        ", ".join(path.relative_to(folder).as_posix() for path in paths),
        "names that differ before the ending",
    )
    return Fault("two-documents-of-one-name", expected, found, folder.name, todo="rename all but one")


def is_unicode(name: str) -> bool:
    """Return whether the bytes of a file's name are UTF-8, so that it can be written into a text file."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def shown_name(name: str) -> str:
    r"""Return the name of a file as a text that can be written; a byte that is not UTF-8 becomes four letters.

    >>> shown_name("r\udce9port")
    'r\\xe9port'
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def visible_files(folder: Path) -> list[Path]:
    """Return all files below a folder, sorted, except files and folders whose name begins with a dot."""
    below = (found for found in folder.rglob("*") if found.is_file())
    return sorted(f for f in below if not any(part.startswith(".") for part in f.relative_to(folder).parts))


def file_inside(folder: Path, name: str | PurePath) -> Path | None:
    """Return a file of a folder if it is inside the folder when all links are followed; otherwise None.

    `name` may come from data. It is a path relative to the folder, or an absolute path. For a download in the hub's
    cache, the folder `blobs` counts as a part of the folder (`_roots`).
    """
    path = folder / name
    try:
        is_there = path.is_file() and any(path.resolve().is_relative_to(root) for root in _roots(folder))
    except (OSError, ValueError):  # too long, or not a possible name of a file
        return None
    return path if is_there else None


def _roots(folder: Path) -> Iterator[Path]:
    """Yield the folders that may hold a folder's files: the folder itself and, for a download in the hub's cache, the
    folder `blobs` of its dataset.
    """
    root = folder.resolve()
    yield root
    for above in root.parents:
        if above.name == "snapshots" and above.parent.name.startswith(("datasets--", "models--")):
            yield above.parent / "blobs"

"""Finds files of source folders: PDFs by name, visible files, and files that must be inside a folder."""

import filecmp
from pathlib import Path, PurePath

from mmlongbench.errors import Fault, SourceError


def pdfs_by_name(folder: Path, *, is_deep: bool = True) -> dict[str, Path | Fault]:
    """Return every visible PDF of a folder by its name without the ending; with `is_deep`, those of subfolders too.

    The value is a fault if several PDFs have the name and differ, or if one of them is a link out of the folder.

    Raises:
        SourceError: the path is not a folder.

    """
    if not folder.is_dir():
        todo = "give the folder, not a file in it"
        raise SourceError(Fault("unreadable-source", "a folder of PDFs", "a file", folder.name, todo=todo))
    named: dict[str, list[Path]] = {}
    for path in visible_files(folder):
        if path.suffix.lower() == ".pdf" and (is_deep or path.parent == folder):
            named.setdefault(path.stem, []).append(path)
    found: dict[str, Path | Fault] = {}
    for stem, paths in named.items():
        outside = next((path for path in paths if file_inside(folder, path.relative_to(folder)) is None), None)
        if outside:
            name, todo = outside.relative_to(folder).as_posix(), "copy it into the folder"
            expected = "a PDF that lies in the folder"
            found[stem] = Fault("path-outside-source", expected, "a link out of it", name, todo=todo)
        elif all(filecmp.cmp(paths[0], path, shallow=False) for path in paths[1:]):
            found[stem] = paths[0]
        else:
            found[stem] = two_of_one_name(paths, folder)
    return found


def two_of_one_name(paths: list[Path], folder: Path) -> Fault:
    """Return the fault of different documents with the same name, of which a question could mean any."""
    found = ", ".join(path.relative_to(folder).as_posix() for path in paths)
    expected, todo = "names that differ before the ending", "rename all but one"
    return Fault("two-documents-of-one-name", expected, found, folder.name, todo=todo)


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
    cache, the folder `blobs` of its dataset counts as a part of the folder.
    """
    path = folder / name
    try:
        root = folder.resolve()
        roots = [root]
        for above in root.parents:
            if above.name == "snapshots" and above.parent.name.startswith(("datasets--", "models--")):
                roots.append(above.parent / "blobs")
        is_there = path.is_file() and any(path.resolve().is_relative_to(root) for root in roots)
    except (OSError, ValueError):  # too long, or not a possible name of a file
        return None
    return path if is_there else None

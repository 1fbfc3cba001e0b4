"""Documents whose pages are image files: a folder for each document, or files such as `report_3.jpg`.

A folder with page images and without PDFs is a document with the folder's name. In the folder of all documents, and in
a folder that also has PDFs, the files `<document>_<number>.jpg` are the pages of a document. Pages are in the order of
their numbers, which begin with 1 (or 0) and have no gaps.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mmlongbench.task import (
    Fault,
    PageImages,
    Pages,
    SourceError,
    file_inside,
    pdfs_by_name,
    two_of_one_name,
    visible_files,
)

_IMAGES = (".jpg", ".jpeg", ".png")
_KINDS = {".jpg": "JPG", ".jpeg": "JPG"}
"""How messages call files with an ending; other files are called by their ending in capitals."""
_NAMED = re.compile(r"(?P<name>.*?[^ _-])[ _-]+(?:(?:page|p)[ _-]*)?(?P<number>[0-9]{1,6})", re.IGNORECASE)
"""Matches the name, without its ending, of a page whose document has no folder of its own."""
_NUMBERED = re.compile(r"(?:.*[^0-9])?(?P<number>[0-9]{1,6})")
"""Matches the name, without its ending, of a page in the folder of its document."""
_SHOWN = 5
"""How many names, numbers or kinds of files a message lists."""


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """What a folder of documents has."""

    documents: Mapping[str, Pages | Fault]
    unused: Sequence[Path] = ()
    """The images that are pages of no document, because their names do not say of which."""

    @property
    def of_images(self) -> dict[str, int]:
        """The numbers of pages of the documents that are page images, by id."""
        return {id: len(each.files) for id, each in self.documents.items() if isinstance(each, PageImages)}


def find_documents(folder: Path) -> FoundDocuments:
    """Return all documents below a folder: PDFs by their names without the ending, and page images.

    Raises:
        SourceError: the path is not a folder, or nothing below it can be used as a document.

    """
    found: dict[str, Pages | Fault] = dict(pdfs_by_name(folder))
    files = visible_files(folder)
    with_pdfs = {folder, *(file.parent for file in files if file.suffix.lower() == ".pdf")}
    groups: dict[tuple[Path, str], list[Path]] = {}
    unused: list[Path] = []
    for file in (file for file in files if file.suffix.lower() in _IMAGES):
        named = _NAMED.fullmatch(file.stem) if file.parent in with_pdfs else None
        if named or file.parent not in with_pdfs:
            groups.setdefault((file.parent, named["name"] if named else file.parent.name), []).append(file)
        else:
            unused.append(file)
    by_id: dict[str, list[list[Path]]] = {}
    for (_, id), pages in groups.items():
        by_id.setdefault(id, []).append(pages)
    for id, several in by_id.items():
        found[id] = _one(id, several, folder, id in found)
    if not found:
        raise SourceError(_nothing(folder, files))
    return FoundDocuments(found, unused)


def _one(id: str, several: Sequence[list[Path]], folder: Path, is_pdf: bool) -> PageImages | Fault:
    """Return the document with an id, or its fault if several documents have this id."""
    if is_pdf or len(several) > 1:
        if not is_pdf:
            return two_of_one_name([pages[0] for pages in several], folder)
        found = f"{id}.pdf and {several[0][0].relative_to(folder).as_posix()}"
        todo = "rename or remove one of the two"
        return Fault("two-documents-of-one-name", "names that differ", found, folder.name, todo=todo)
    return _pages(id, several[0], folder)


def _pages(id: str, files: Sequence[Path], folder: Path) -> PageImages | Fault:
    """Return a document of page images in the order of their numbers, or what is wrong with these files."""
    numbered: dict[int, Path] = {}
    for file in files:
        name = file.relative_to(folder).as_posix()
        if file_inside(folder, file.relative_to(folder)) is None:
            expected, todo = "a page that lies in the folder", "copy it into the folder"
            return Fault("path-outside-source", expected, "a link out of it", name, todo=todo)
        match = _NUMBERED.fullmatch(file.stem)
        if match is None:
            todo = "name the pages 1.jpg, 2.jpg …, or move this file out of the folder"
            return Fault(
                "page-without-number", f"a number at the end of the name of each page of {id}", name, todo=todo
            )
        other = numbered.setdefault(int(match["number"]), file)
        if other != file:
            todo = "remove one of them, or give each document a folder of its own"
            both = f"{other.relative_to(folder).as_posix()} and {name}"
            return Fault("two-pages-of-one-number", f"each page of {id} once", both, folder.name, todo=todo)
    first, last = min(1, *numbered), max(numbered)
    missing = list(islice((number for number in range(first, last + 1) if number not in numbered), _SHOWN + 1))
    if missing:
        more = " …" if len(missing) > _SHOWN else ""
        found = f"no {', '.join(map(str, missing[:_SHOWN]))}{more}"
        todo = "add these pages, or number the files from 1 without gaps"
        return Fault("missing-pages", f"pages {first} to {last} of {id}", found, folder.name, todo=todo)
    return PageImages(tuple(numbered[number] for number in sorted(numbered)))


def count_kinds(files: Iterable[Path]) -> str:
    """Return how many files there are of each kind, most frequent first, such as `36 JPGs, 1 TXT`."""
    kinds = Counter(_KINDS.get(ending := file.suffix.lower(), ending[1:9].upper() or "other file") for file in files)
    ordered = sorted(kinds.items(), key=lambda each: (-each[1], each[0]))[:_SHOWN]
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in ordered)


def _nothing(folder: Path, files: Sequence[Path]) -> Fault:
    """Return the fault of a folder without documents."""
    expected = "PDFs, or page images such as report_1.jpg or report/1.jpg"
    found = f"0 PDFs{', ' if files else ''}{count_kinds(files)}{' here' if files else ', an empty folder'}"
    todo = "name the pages so, put each document into a folder with its name, or check source.documents"
    return Fault("no-documents", expected, found, folder.name, todo=todo)

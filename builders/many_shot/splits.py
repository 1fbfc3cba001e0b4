"""The row that every reader of classified pictures makes for the builder, and the two splits of a set:
the pictures with their classes, whatever form the set has.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

from builders.common import is_unicode
from mmlongbench.task import Fault, PictureFile, Row, SourceError, file_inside


class ClassifiedImage(Row):
    """A picture to classify."""

    image: str
    """The name of the picture in the source."""
    kind: str
    """The id of its class among the reader's `image_classes`."""


_CORRECT = "correct the list, or download it again"


@dataclass(frozen=True, slots=True)
class Entry:
    """A picture of a split, as the source lists it."""

    picture: PictureFile | str
    """The picture, or the path of its file below the folder of the split."""
    label: int | None
    """The number of its class, from 0."""
    file: str
    """The name of the file that lists the picture, for messages."""
    place: str
    """The position in that file, for messages."""
    fault: Fault | None = None
    """Why the picture cannot be used."""


@dataclass(frozen=True, slots=True)
class Split:
    """The pictures of one split, in the order of the source."""

    name: str
    names: tuple[str, ...]
    """The names of the classes, by number; empty if the source has none."""
    entries: tuple[Entry, ...]
    folder: Path | None = None
    """The folder that must have the pictures that are files."""

    def kind(self, label: int | None) -> str | None:
        """Return the id of the class with a number, or None if there is no such class."""
        is_label = label is not None and label >= 0 and (label < len(self.names) or not self.names)
        return f"{label:05}" if is_label else None

    def fault(self, entry: Entry) -> Fault | None:
        """Return why a picture of the split cannot be used; None if it can."""
        if entry.fault or self.kind(entry.label) is not None:
            return entry.fault
        found = "nothing" if entry.label is None else str(entry.label)
        return no_label(found, 0, len(self.names))

    def image(self, number: int) -> PictureFile | None:
        """Return the picture of an entry; None if its file is missing or outside the folder."""
        picture = self.entries[number].picture
        if not isinstance(picture, str):
            return picture
        return file_inside(self.folder, picture) if self.folder else None


@dataclass(frozen=True, slots=True)
class Splits:
    """The split of exemplars and the split of tests."""

    exemplars: Split
    tests: Split
    notes: tuple[str, ...] = ()
    """What a user must know about the way the source was read, one sentence each."""


def no_label(found: str, first: int, count: int) -> Fault:
    """Return the fault of a picture whose class does not exist; the classes are numbered from `first`, and `count` is 0
    if it is unknown.
    """
    expected = f"a whole number from {first} to {first + count - 1}" if count else f"a whole number from {first}"
    return Fault(
        "no-label", expected, found, field="label", todo="give the picture a label, or take it out of the split"
    )


def unknown_class(found: str, expected: str) -> Fault:
    """Return the fault of a picture whose class is not among the classes of the source."""
    return Fault("unknown-class", expected, ascii(found)[:200], todo=_CORRECT)


def listed(name: str, names: tuple[str, ...], entries: Iterable[Entry], folder: Path) -> Split:
    """Return a split whose pictures are files below a folder, after a check of every entry.

    A picture that cannot be found, that would be outside the folder, or that is listed twice gets a fault.
    """
    present = _Present(folder)
    checked = [entry if entry.fault else replace(entry, fault=present.fault(str(entry.picture))) for entry in entries]
    return Split(name, names, tuple(_without_repeats(checked)), folder)


class _Present:
    """Says which files a folder has; each folder below it is listed once, because sets have up to 100,000 pictures."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files = lru_cache(maxsize=None)(self._list)

    def fault(self, name: str) -> Fault | None:
        """Return what is wrong with the name of a picture; None if there is such a file."""
        if not is_unicode(name):
            return Fault("invalid-unicode", "a name in UTF-8", ascii(name)[:200], todo=_CORRECT)
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            return Fault("path-outside-source", "a path below the folder of the pictures", name[:200], todo=_CORRECT)
        files = self._files(path.parent)
        if files is None or path.name not in files:
            found = "no such file" if files is not None else f"no folder {str(path.parent)[:200]}"
            todo = "complete the download of the pictures, or correct the list"
            return Fault("missing-image", f"the picture {name[:200]}", found, todo=todo)
        if not files[path.name]:
            todo = "copy the picture into the folder"
            return Fault("path-outside-source", "a picture in the folder of the source", "a link out of it", todo=todo)
        return None

    def _list(self, folder: PurePosixPath) -> Mapping[str, bool] | None:
        """Return whether each file of a folder is inside the root; None if there is no such folder."""
        path = self._root / folder
        try:
            with os.scandir(path) as found:
                has_links = path.resolve() != self._root.resolve() / folder
                return {
                    each.name: not (has_links or each.is_symlink())
                    or file_inside(self._root, path / each.name) is not None
                    for each in found
                    if each.is_file()
                }
        except (OSError, ValueError):  # it is no folder, or its name is not possible
            return None


def _without_repeats(entries: list[Entry]) -> Iterator[Entry]:
    """Yield the entries; of a picture that is listed several times, only the first is usable, and none if its classes
    differ.
    """
    usable = [entry for entry in entries if not entry.fault]
    classes = Counter(picture for picture, _ in {(entry.picture, entry.label) for entry in usable})
    seen = set()
    for entry in entries:
        fault = entry.fault
        if not fault and classes[entry.picture] > 1:
            found = f"{classes[entry.picture]} classes"
            fault = Fault("image-of-two-classes", "one class for each picture", found, todo=_CORRECT)
        elif not fault and entry.picture in seen:
            todo = "take it out of the list once"
            fault = Fault("image-twice", "each picture once", f"{entry.picture} again", todo=todo)
        elif not fault:
            seen.add(entry.picture)
        yield replace(entry, fault=fault)


def source_below(folder: Path, *names: str) -> Path | None:
    """Return the folder that has one of the files: the folder itself, or a folder in it; None if neither has one.

    A user may give the folder into which an archive was unpacked, which then holds one more folder.
    """
    return next((each for each in with_subfolders(folder) if any((each / name).is_file() for name in names)), None)


def with_subfolders(folder: Path) -> list[Path]:
    """Return a folder and the folders in it, sorted, except those whose names begin with a dot."""
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        inner = []
    return [folder, *inner]


def needed(folder: Path, *names: str, todo: str) -> Path:
    """Return the first of the files that a folder has.

    Raises:
        SourceError: the folder has none of them.

    """
    for name in names:
        if found := file_inside(folder, name):
            return found
    raise SourceError(
        Fault("missing-file", f"the file {' or '.join(names)} in the folder", "no such file", folder.name, todo=todo)
    )

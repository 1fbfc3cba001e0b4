"""Web pages that are read when needed, and the folders of their pictures; the readers of MM-NIAH share this code."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from mmlongbench.task import Fault, Image, SourceError

WebPage: TypeAlias = Sequence[str | Image]
WEB = "obelics"
"""The name of the folder of pictures from web pages."""
_CARTOONS = "abnormal_pic*"
_MADE = ("*paste*", _CARTOONS)
"""The names, as patterns, of folders with pictures that MM-NIAH made: page pictures with a pasted cartoon, and
cartoons."""
_MAX_LEVELS = 2
"""The folder of pictures is searched for in at most so many levels below the folder in the manifest."""


class Pages(Mapping[str, WebPage]):
    """Interleaved pages by id, in the source's order; only the functions that read them are kept in memory."""

    def __init__(self, found: Mapping[str, Callable[[], WebPage]]) -> None:
        """`found` has for each id a function that reads the page."""
        self._found = found

    def __getitem__(self, id: str) -> WebPage:
        return self._found[id]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def folders_of(name: str) -> tuple[str, ...]:
    """Return the folders in a picture's name."""
    return PurePosixPath(name).parts[:-1]


def is_made(name: str) -> bool:
    """Return whether a picture is in a folder of pasted page pictures or cartoons, which no haystack may show.

    >>> is_made("obelics_paste/find-image/b2.jpg"), is_made("abnormal_pic_val/kite.jpg"), is_made("obelics/paste.jpg")
    (True, True, False)
    """
    return any(fnmatch(folder.lower(), pattern) for folder in folders_of(name) for pattern in _MADE)


def is_cartoon(name: str) -> bool:
    """Return whether a picture is in a folder of cartoons."""
    return any(fnmatch(folder.lower(), _CARTOONS) for folder in folders_of(name))


def is_web(name: str) -> bool:
    """Return whether a picture is in the folder of pictures from web pages."""
    return WEB in folders_of(name)


def picture_root(folder: Path) -> Path:
    """Return the folder to which the names of pictures are relative: the folder that holds `obelics/`. It is `folder`,
    or at most two levels below it.

    The archive of the validation split unpacks to `mm_niah_dev/images/`, so a manifest may name that folder, the one
    above it, or the one that the archive was unpacked in. If no folder holds `obelics/`, the result is `folder`. A link
    to a folder of the same level does not count as a second folder.

    Raises:
        SourceError: several folders of one level have an `obelics/`.

    """
    level = [folder]
    for _ in range(_MAX_LEVELS + 1):
        found_by_place = {each.resolve(): each for each in reversed(level) if (each / WEB).is_dir()}
        roots = sorted(found_by_place.values())
        if len(roots) > 1:
            found = " and ".join(each.relative_to(folder).as_posix() for each in roots[:3])
            expected = f"one folder that holds {WEB}/"
            raise SourceError(Fault("several-picture-folders", expected, found, folder.name, todo="name one of them"))
        if roots:
            return roots[0]
        level = [below for each in level for below in _folders(each)]
    return folder


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return []

"""Web pages read when they are asked for, and the pictures they name: what the readers of MM-NIAH share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from mmlongbench import Fault, Image, SourceError, file_inside

WebPage: TypeAlias = Sequence[str | Image]
WEB = "obelics"
"""The folder of pictures as web pages have them."""
_CARTOONS = "abnormal_pic*"
_MADE = ("*paste*", _CARTOONS)
"""Folders of pictures that MM-NIAH made: page pictures with a cartoon pasted onto them, and the cartoons."""
_MAX_LEVELS = 2
"""The folder of pictures is looked for so many levels below the folder that a manifest names."""


class Pages(Mapping[str, WebPage]):
    """Interleaved pages by id, in the source's order; only where to find each is held in memory."""

    def __init__(self, found: Mapping[str, Callable[[], WebPage]]) -> None:
        """`found` gives for each id a function that reads the page."""
        self._found = found

    def __getitem__(self, id: str) -> WebPage:
        return self._found[id]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def folders_of(name: str) -> tuple[str, ...]:
    """Return the folders of a picture's name."""
    return PurePosixPath(name).parts[:-1]


def is_made(name: str) -> bool:
    """Whether a picture lies in a folder of pasted page pictures or cartoons, which no haystack may show.

    >>> is_made("obelics_paste/find-image/b2.jpg"), is_made("abnormal_pic_val/kite.jpg"), is_made("obelics/paste.jpg")
    (True, True, False)
    """
    return any(fnmatch(folder.lower(), pattern) for folder in folders_of(name) for pattern in _MADE)


def is_cartoon(name: str) -> bool:
    """Whether a picture lies in a folder of cartoons."""
    return any(fnmatch(folder.lower(), _CARTOONS) for folder in folders_of(name))


def is_web(name: str) -> bool:
    """Whether a picture lies in the folder of the web pages' own pictures."""
    return WEB in folders_of(name)


def picture_root(folder: Path) -> Path:
    """Return the folder that pictures are named below: the one that holds `obelics/`, up to two levels down.

    The archive of the validation split unpacks to `mm_niah_dev/images/`, so a manifest may name that folder, the one
    above it, or the one that the archive was unpacked in. Without an `obelics/` it is the folder itself. A link to a
    folder of the same level is no second folder.

    Raises:
        SourceError: several folders of one level hold an `obelics/`.

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


def picture_file(folder: Path, name: str, root: Path | None = None) -> Path | None:
    """Return a picture below a folder, by its name or by its name without the first folder; none that leads out of it.

    Names start from `root`, a folder below (see `picture_root`), else from the folder itself.
    """
    parts, root = PurePosixPath(name).parts, root or folder
    for tried in (parts, parts[1:]):
        if tried and (path := file_inside(root, root.joinpath(*tried))):
            return file_inside(folder, path)
    return None

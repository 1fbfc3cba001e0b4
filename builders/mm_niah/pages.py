"""Web pages read when they are asked for, and the pictures they name: what the readers of MM-NIAH share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from mmlongbench import Image, file_inside

WebPage: TypeAlias = Sequence[str | Image]


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


def picture_file(folder: Path, name: str) -> Path | None:
    """A picture below a folder, by its name or by its name without the first folder; none that leads out of it."""
    parts = PurePosixPath(name).parts
    for tried in (parts, parts[1:]):
        if tried and (path := file_inside(folder, folder.joinpath(*tried))):
            return path
    return None

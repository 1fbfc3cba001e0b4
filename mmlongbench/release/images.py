"""Sizes of released images, read from their headers without decoding pixels."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from mmlongbench.documents.pixels import header, oddities, unreadable
from mmlongbench.errors import ReleaseError


class ImageSizes(Mapping[str, tuple[int, int]]):
    """(width, height) in pixels, after EXIF rotation, by path below the image root; each header is read once."""

    def __init__(self, root: Path) -> None:
        """Look up images below this folder."""
        self._root = root.resolve()
        self._known: dict[str, tuple[int, int]] = {}
        self.turned: set[str] = set()
        """The images read so far whose EXIF orientation rotates or mirrors them."""
        self.odd: dict[str, tuple[str, ...]] = {}
        """What is odd about an image file, by path; only files with something odd are in it."""

    def __getitem__(self, path: str) -> tuple[int, int]:
        """Return the size of one image.

        Raises:
            ReleaseError: the image is missing, is not an image, or its path leaves the root.

        """
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def _read(self, path: str) -> tuple[int, int]:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or not (self._root / path).resolve().is_relative_to(self._root):
            raise ReleaseError(f"image {path!r}: the path leaves the image root")
        if (self._root / path).exists() and not (self._root / path).is_file():  # reading a pipe might never end
            raise ReleaseError(f"image {path!r}: is no file")
        try:
            size, turned = header(self._root / path)
            found = oddities(self._root / path)
        except FileNotFoundError as error:
            raise ReleaseError(f"image {path!r}: is missing") from error
        except unreadable() as error:
            raise ReleaseError(f"image {path!r}: cannot be read: {type(error).__name__}") from error
        if turned != 1:
            self.turned.add(path)
        if found:
            self.odd[path] = found
        return size

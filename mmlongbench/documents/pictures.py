"""Photographs of a source as images of a release: found by name, measured from headers, and renamed or shrunk if
needed.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Literal, TypeAlias

from mmlongbench.documents.names import safe_name
from mmlongbench.documents.pixels import (
    PictureFile,
    ending_of,
    header_size,
    jpeg_bytes,
    likeness,
    released_bytes,
    shrunk,
    unreadable,
)
from mmlongbench.errors import Fault, Rejected


class PictureBytes:
    """A set of picture files. `file in pictures` says whether one of them has the bytes of the file."""

    def __init__(self, files: Iterable[PictureFile]) -> None:
        """Keep the size of each file; a file that cannot be read is left out."""
        self._by_size: dict[int, list[PictureFile]] = {}
        self._hashes: dict[int, frozenset[str]] = {}
        for file in files:
            if (size := _size(file)) is not None:
                self._by_size.setdefault(size, []).append(file)

    def __contains__(self, file: PictureFile) -> bool:
        """Return whether one of the files has the same bytes; False for a file that cannot be read."""
        size = _size(file)
        if size is None or size not in self._by_size:
            return False
        if size not in self._hashes:
            self._hashes[size] = frozenset(filter(None, map(_sha256, self._by_size[size])))
        return _sha256(file) in self._hashes[size]


def _size(file: PictureFile) -> int | None:
    try:
        return file.stat().st_size if isinstance(file, Path) else len(file.read_bytes())
    except OSError:
        return None


def _sha256(file: PictureFile) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None


MAX_BYTES = 256 * 1024 * 1024
"""The maximum size of a picture's file, which is read whole to be hashed and released."""
_SAFE = re.compile(r"[^\x00-\x1f\x7f/\\\"<>:|?*\ud800-\udfff\s.-][^\x00-\x1f\x7f/\\\"<>:|?*\ud800-\udfff]*")

Reading: TypeAlias = Callable[[Path], AbstractContextManager[None]]
"""Returns a context in which a file is read and compared with its fingerprint."""


def _unguarded(path: Path) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a source as an image of the release."""

    path: str
    """The path below `mmlb_image/`."""
    width: int
    """The width in pixels, as released."""
    height: int
    """The height in pixels, as released."""
    source: PictureFile
    """The file of the source."""
    is_renamed: bool
    """Whether the name of its file had to be changed, for example because the name has a double quote; the public
    loader drops such names."""
    scale: float = 1.0
    """Its long side in the release divided by its long side in the source."""
    reading: Reading = field(default=_unguarded, compare=False, repr=False)
    """Returns a context manager; every read of the file is done inside it. In a build, it raises an error if the file
    has changed since it was fingerprinted. The default compares nothing."""
    as_jpeg: bool = False
    """Whether it is written anew as JPEG, also if its bytes could stay."""

    @property
    def sha256(self) -> str:
        """The SHA-256 of the source's bytes."""
        return hashlib.sha256(self._bytes()).hexdigest()

    def released(self) -> bytes:
        """Return the picture's bytes as released: those of the source, or the picture encoded anew (`released_bytes`,
        `jpeg_bytes`).

        Raises:
            Rejected: its pixels cannot be decoded.

        """
        try:
            make = jpeg_bytes if self.as_jpeg else released_bytes
            return make(self._bytes(), (self.width, self.height))
        except unreadable() as error:
            raise Rejected(_broken(self.source, error)) from error

    def likeness(self) -> bytes:
        """Return what the picture looks like, as a value that can be compared (see `pixels.likeness`).

        Raises:
            Rejected: its pixels cannot be decoded.

        """
        try:
            return likeness(self._bytes())
        except unreadable() as error:
            raise Rejected(_broken(self.source, error)) from error

    def _bytes(self) -> bytes:
        with _reading(self.source, self.reading):
            return self.source.read_bytes()


@dataclass(frozen=True, slots=True)
class Cap:
    """How many tokens a picture may cost, and what happens to a picture that costs more."""

    most: int
    above: Literal["reject", "shrink"]
    tokens: Callable[[int, int], int]
    """Returns the tokens of a picture from its (width, height) in pixels."""


class Pictures:
    """The pictures of a dataset, looked up when needed; each header is read once."""

    def __init__(
        self,
        folder: str,
        find: Callable[[str], PictureFile | None],
        most_pixels: int,
        longest: int | None = None,
        cap: Cap | None = None,
        *,
        by_content: bool = False,
        as_jpeg: bool = False,
        reading: Reading = _unguarded,
    ) -> None:
        """`folder` is the folder of the pictures in the release; `find` returns the file of a picture by its name in a
        row.

        With `longest`, a picture with a longer side is shrunk until its long side has this number of pixels. With
        `by_content`, the name of a picture in the release is a hash of the picture's bytes, so that the name does not
        reveal an answer and equal pictures are released once. With `as_jpeg`, all pictures are written anew as JPEG.
        Every file is read inside the context manager that `reading` returns; in a build, this raises an error if the
        file has changed since it was fingerprinted.
        """
        self._folder = folder
        self._find = find
        self._most_pixels = most_pixels
        self._longest = longest
        self._cap = cap
        self._by_content = by_content
        self._as_jpeg = as_jpeg
        self._reading = reading
        self._known: dict[str, Picture] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        """(width, height) by released path, of the pictures looked up so far."""
        self.origins: dict[str, str] = {}
        """The name of each picture in the source, by released path."""

    def __getitem__(self, name: str) -> Picture:
        """Return a picture by its name in the source.

        Raises:
            Rejected: it is missing, cannot be read, is too large, or would get the name of another picture in the
                release.

        """
        name = normpath(name)  # `./a.png` means `a.png`
        if name not in self._known:
            picture = self._read(name)
            other = self.origins.setdefault(picture.path, name)
            if other != name and not self._by_content:
                expected, found = "names that differ in the release", f"{other!r} is {picture.path} already"
                todo = "rename one of the two pictures"
                raise Rejected(Fault("two-images-of-one-name", expected, found, field="image", todo=todo))
            self._known[name] = picture
            self.sizes[picture.path] = (picture.width, picture.height)
        return self._known[name]

    def file(self, name: str) -> PictureFile | None:
        """Return the file of a picture by its name in the source, or None if there is none; the file is not read."""
        return self._find(normpath(name))

    def _read(self, name: str) -> Picture:
        file = self._find(name)
        if file is None:
            expected, todo = (
                f"a picture {name!r} among the sources",
                "add the picture to the sources, or correct its name",
            )
            raise Rejected(Fault("missing-image", expected, "none", field="image", todo=todo))
        with _reading(file, self._reading):
            return self._picture(name, file)

    def _picture(self, name: str, file: PictureFile) -> Picture:
        try:
            if isinstance(file, Path) and (size := file.stat().st_size) > MAX_BYTES:
                bound, todo = f"at most {MAX_BYTES} bytes", "make the file of the picture smaller"
                raise Rejected(Fault("size-of-an-image", bound, str(size), file.name, todo=todo))
            width, height = header_size(file)
        except unreadable() as error:
            raise Rejected(_broken(file, error)) from error
        if width * height > self._most_pixels or min(width, height) < 1:
            bound, todo = f"1 to {self._most_pixels} pixels", "make the picture smaller, or raise limits.pixels"
            raise Rejected(Fault("size-of-an-image", bound, f"{width} × {height}", file.name, todo=todo))
        fitted, scale = self._fitted((width, height), file.name)
        path, is_renamed = self._path(name, file)
        return Picture(f"{self._folder}/{path}", *fitted, file, is_renamed, scale, self._reading, self._as_jpeg)

    def _path(self, name: str, file: PictureFile) -> tuple[str, bool]:
        """Return the path of a picture in the release, and whether its name had to be changed. A name that is a hash
        (`by_content`) does not count as changed.
        """
        if self._by_content:
            data = file.read_bytes()
            ending = ".jpg" if self._as_jpeg else ending_of(data)
            return hashlib.sha256(data).hexdigest()[:24] + ending, False
        released = file_name(file.name)
        if self._as_jpeg:
            released = f"{PurePosixPath(released).stem}.jpg"
        folders = map(file_name, PurePosixPath(name).parts[:-1])
        return "/".join((*folders, released)), released != file.name

    def _fitted(self, size: tuple[int, int], name: str) -> tuple[tuple[int, int], float]:
        """Return the size in the release, and the scale."""
        long = max(size)
        longest = min(self._longest or long, long)
        cap = self._cap
        if cap and (cost := cap.tokens(*_at(size, longest))) > cap.most:
            if cap.above == "reject":
                todo = "set pictures.above to shrink, or give pictures.longest_side"
                expected, found = f"at most {cap.most} tokens", f"{cost} tokens"
                raise Rejected(Fault("image-above-cap", expected, found, name, todo=todo))
            fits = bisect_right(range(1, longest + 1), cap.most, key=lambda side: cap.tokens(*_at(size, side)))
            longest = max(1, fits)
        return _at(size, longest), longest / long


def _reading(file: PictureFile, reading: Reading) -> AbstractContextManager[None]:
    """Return the context in which a picture is read; a picture inside a table has no file of its own."""
    return reading(file) if isinstance(file, Path) else nullcontext()


def _at(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """Return the size at which the long side has `longest` pixels, as (width, height)."""
    return size if longest == max(size) else shrunk(size, longest / max(size))


def file_name(name: str) -> str:
    """Return the name of a picture's file in the release: its own name if every loader can handle it, otherwise a safe
    one.

    >>> file_name("oven_00000012.jpg"), file_name('a "b".JPG')
    ('oven_00000012.jpg', 'a_b-b243abbfda5ce798.JPG')
    """
    if _SAFE.fullmatch(name) and len(name.encode()) <= 200 and "<" not in name:
        return name
    pure = PurePosixPath(name)
    ending = pure.suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,5}", pure.suffix) else ""
    head, _, digits = safe_name(name).rpartition("-")
    return f"{head.removesuffix(ending).rstrip('._-') or 'image'}-{digits}{ending}"


def _broken(file: PictureFile, error: Exception) -> Fault:
    found = str(error).splitlines()
    if isinstance(file, Path):
        found = [line.replace(f"{file.parent}/", "") for line in found]
    expected, todo = "a picture that can be opened and decoded", "replace the picture, or take the row out"
    return Fault("broken-image", expected, next(iter(found), ""), file.name, todo=todo)

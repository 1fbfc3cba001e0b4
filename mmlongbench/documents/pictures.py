"""Photographs of a source as images of a release: found by name, measured from headers, and renamed or shrunk if
needed.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
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
from tokenization import TokenizationError

MAX_BYTES = 256 * 1024 * 1024
"""The maximum size of a picture's file, which is read whole to be hashed and released."""
_SAFE = re.compile(r"[^\x00-\x1f\x7f/\\\"<>:|?*\ud800-\udfff\s.-][^\x00-\x1f\x7f/\\\"<>:|?*\ud800-\udfff]*")

Reading: TypeAlias = Callable[[Path], AbstractContextManager[object]]
"""Returns a context in which a file is read. In a build, it raises an error if the file has changed since it was
fingerprinted; by default it compares nothing."""


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


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a source as an image of the release."""

    path: str
    """The path below `mmlb_image/`."""
    width: int
    """Width in pixels, as released."""
    height: int
    """Height in pixels, as released."""
    source: PictureFile
    """The file of the source."""
    is_renamed: bool
    """Whether the name of its file had to be changed, for example because the name has a double quote; the public
    loader drops such names."""
    scale: float = 1.0
    """Its long side in the release divided by its long side in the source."""
    reading: Reading = field(default=nullcontext, compare=False, repr=False)
    """Returns a context; every read of the file is done inside it. In a build, it raises an error if the file has
    changed since it was fingerprinted."""
    as_jpeg: bool = False
    """Whether it is written anew as JPEG, also if its bytes could stay."""

    @property
    def sha256(self) -> str:
        """The SHA-256 of the source's bytes."""
        return hashlib.sha256(self.source_bytes()).hexdigest()

    def released(self, source: bytes | None = None) -> bytes:
        """Return the picture's bytes as released: those of the source, or the picture encoded anew (`released_bytes`,
        `jpeg_bytes`). `source` has the bytes of the source if they are read already.

        Raises:
            Rejected: its pixels cannot be decoded.

        """
        try:
            make = jpeg_bytes if self.as_jpeg else released_bytes
            return make(source or self.source_bytes(), (self.width, self.height))
        except unreadable() as error:
            raise Rejected(_broken(self.source, error)) from error

    def likeness(self) -> bytes:
        """Return what the picture looks like (see `pixels.likeness`); raises Rejected if it cannot be decoded."""
        try:
            return likeness(self.source_bytes())
        except unreadable() as error:
            raise Rejected(_broken(self.source, error)) from error

    def source_bytes(self) -> bytes:
        """Return the bytes of the file in the source."""
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
        reading: Reading = nullcontext,
    ) -> None:
        """Look pictures up for a dataset.

        Args:
            folder: the folder of the pictures in the release.
            find: returns the file of a picture by its name in a row.
            most_pixels: the most pixels of a picture of the source.
            longest: a picture with a longer side is shrunk until its long side has this number of pixels.
            cap: what a picture may cost.
            by_content: the name of a picture in the release is a hash of its bytes, so that the name does not reveal an
                answer and equal pictures are released once.
            as_jpeg: all pictures are written anew as JPEG.
            reading: every file is read in its context.

        """
        self._folder, self._find, self._reading = folder, find, reading
        self._most_pixels, self._longest, self._cap = most_pixels, longest, cap
        self._by_content, self._as_jpeg = by_content, as_jpeg
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
        if name in self._known:
            return self._known[name]
        name = normpath(name)  # `./a.png` means `a.png`
        if name not in self._known:
            file = self._find(name)
            if file is None:
                todo = "add the picture to the sources, or correct its name"
                raise _rejected("missing-image", f"a picture {name!r} among the sources", "none", todo, field="image")
            with _reading(file, self._reading):
                picture = self._read(name, file)
            other = self.origins.setdefault(picture.path, name)
            if other != name and not self._by_content:
                expected, found = "names that differ in the release", f"{other!r} is {picture.path} already"
                todo = "rename one of the two pictures"
                raise _rejected("two-images-of-one-name", expected, found, todo, field="image")
            self._known[name] = picture
            self.sizes[picture.path] = (picture.width, picture.height)
        return self._known[name]

    def file(self, name: str) -> PictureFile | None:
        """Return the file of a picture by its name in the source, or None if there is none; the file is not read."""
        known = self._known.get(normpath(name))
        return known.source if known else self._find(normpath(name))

    def _read(self, name: str, file: PictureFile) -> Picture:
        try:
            if isinstance(file, Path) and (bytes := file.stat().st_size) > MAX_BYTES:
                bound, todo = f"at most {MAX_BYTES} bytes", "make the file of the picture smaller"
                raise _rejected("size-of-an-image", bound, str(bytes), todo, file.name)
            size = width, height = header_size(file)
        except unreadable() as error:
            raise Rejected(_broken(file, error)) from error
        if width * height > self._most_pixels or min(size) < 1:
            bound, todo = f"1 to {self._most_pixels} pixels", "make the picture smaller, or raise limits.pixels"
            raise _rejected("size-of-an-image", bound, f"{width} × {height}", todo, file.name)
        longest, cap = min(self._longest or max(size), max(size)), self._cap
        try:
            if cap and (cost := cap.tokens(*_at(size, longest))) > cap.most:
                if cap.above == "reject":
                    todo = "set pictures.above to shrink, or give pictures.longest_side"
                    raise _rejected("image-above-cap", f"at most {cap.most} tokens", f"{cost} tokens", todo, file.name)
                longest = max(1, bisect_right(range(1, longest + 1), cap.most, key=partial(_cost, cap.tokens, size)))
                cap.tokens(*_at(size, longest))
        except TokenizationError as error:
            why, _, todo = str(error).partition("; ")
            raise _rejected("refused-image", "an image that the counted model takes", why, todo, file.name) from error
        if self._by_content:  # such a name does not count as changed
            data = file.read_bytes()
            path = hashlib.sha256(data).hexdigest()[:24] + (".jpg" if self._as_jpeg else ending_of(data))
            is_renamed = False
        else:
            released = file_name(file.name)
            released = f"{PurePosixPath(released).stem}.jpg" if self._as_jpeg else released
            path = "/".join((*map(file_name, PurePosixPath(name).parts[:-1]), released))
            is_renamed = released != file.name
        path, scale = f"{self._folder}/{path}", longest / max(size)
        return Picture(path, *_at(size, longest), file, is_renamed, scale, self._reading, self._as_jpeg)


def _cost(tokens: Callable[[int, int], int], size: tuple[int, int], longest: int) -> int:
    try:
        return tokens(*_at(size, longest))
    except TokenizationError:  # a model refuses what is too small
        return 0


def _reading(file: PictureFile, reading: Reading) -> AbstractContextManager[object]:
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


def _rejected(reason: str, expected: str, found: str, todo: str, file: str = "", field: str = "") -> Rejected:
    return Rejected(Fault(reason, expected, found, file, field=field, todo=todo))


def _broken(file: PictureFile, error: Exception) -> Fault:
    lines = str(error).splitlines()
    if isinstance(file, Path):
        lines = [line.replace(f"{file.parent}/", "") for line in lines]
    expected, todo = "a picture that can be opened and decoded", "replace the picture, or take the row out"
    return Fault("broken-image", expected, next(iter(lines), ""), file.name, todo=todo)

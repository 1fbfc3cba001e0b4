"""Compares picture files by their bytes; most pairs differ in size, so few files are read."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from mmlongbench.documents.pixels import PictureFile


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

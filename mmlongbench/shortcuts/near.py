"""Pictures that look the same: equal bytes, or perceptual hashes at most 6 of 64 bits apart with like colours."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mmlongbench.documents.image_urls import MAX_BYTES, ImageUrls
from mmlongbench.documents.pixels import small_copy, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.safe_read import read_regular
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.opened import Release
from mmlongbench.shortcuts.extra import missing

BITS = 6
"""The most bits in which the hashes of two near-equal pictures differ."""
_SIDE = 128
_GRID = 4
_COLOURS = 12
"""The largest mean difference, in levels of 255, of the colours of two near-equal pictures. A perceptual hash is blind
to colour: a red and a blue square have the same one."""
_TELLING = 5.0
"""The smallest deviation of brightness, in levels of 255, of a picture with a telling hash."""
_BANDS = BITS + 1
_EDGES = tuple(64 * band // _BANDS for band in range(_BANDS + 1))


@dataclass(frozen=True, slots=True)
class Look:
    """What a picture looks like."""

    digest: str
    """The SHA-256 of its bytes."""
    bits: int | None
    """Its perceptual hash; None for a nearly uniform picture, whose hash is noise."""
    colours: bytes
    """The mean colours of a grid of 4 × 4."""

    def is_near(self, other: "Look") -> bool:
        """Return whether two pictures are the same, or nearly the same."""
        if self.digest == other.digest:
            return True
        if self.bits is None or other.bits is None or (self.bits ^ other.bits).bit_count() > BITS:
            return False
        off = sum(abs(one - two) for one, two in zip(self.colours, other.colours, strict=True))
        return off <= _COLOURS * len(self.colours)


def look_of(data: bytes, digest: str = "") -> Look:
    """Return what a picture looks like; raises an error of `unreadable()`.

    Raises:
        ReleaseError: a package is not installed.

    """
    try:
        import imagehash
    except ImportError as error:
        raise missing("imagehash", "a comparison of pictures") from error
    import numpy as np
    from PIL import Image

    small = small_copy(data, _SIDE)
    deviation = float(np.asarray(small.convert("L").resize((32, 32), Image.Resampling.BOX)).std())
    bits = int(str(imagehash.phash(small)), 16) if deviation >= _TELLING else None
    colours = small.resize((_GRID, _GRID), Image.Resampling.BOX).tobytes()
    return Look(digest or hashlib.sha256(data).hexdigest(), bits, colours)


class Pictures:
    """What the pictures of a release look like. Each is decoded once; about 300 bytes a picture are kept."""

    def __init__(self, release: Release) -> None:
        """Look up pictures of this release."""
        self._urls = ImageUrls(release.path / IMAGES)
        self._locked = {name: entry.sha256 for name, entry in release.lock.files.items()}
        self._known: dict[str, Look] = {}
        self.uniform: set[str] = set()
        """The pictures read so far that are nearly uniform; only their bytes are compared."""

    def __getitem__(self, path: str) -> Look:
        """Return what a picture looks like; `path` is below `mmlb_image/`.

        Raises:
            ReleaseError: the picture is missing or broken, or its path leaves the release.

        """
        if path not in self._known:
            try:
                data = read_regular(Path(self._urls(path)), MAX_BYTES)
                look = look_of(data, self._locked.get(f"{IMAGES}/{path}", ""))
            except unreadable() as error:
                raise ReleaseError(
                    f"image {path!r}: cannot be read: {type(error).__name__}; see `mmlongbench verify`"
                ) from error
            self._known[path] = look
            if look.bits is None:
                self.uniform.add(path)
        return self._known[path]


class NearIndex:
    """Finds near-equal pictures without comparing all pairs. Hashes that differ in at most 6 bits have at least one of
    7 bands of bits in common.
    """

    def __init__(self) -> None:
        """Make an empty index."""
        self._bands: tuple[dict[int, list[str]], ...] = tuple({} for _ in range(_BANDS))
        self._looks: dict[str, Look] = {}

    def add(self, look: Look) -> None:
        """Add a picture; one of the same bytes is added once."""
        if look.digest in self._looks:
            return
        self._looks[look.digest] = look
        if look.bits is not None:
            for buckets, value in zip(self._bands, _bands(look.bits), strict=True):
                buckets.setdefault(value, []).append(look.digest)

    def near(self, look: Look) -> list[str]:
        """Return the digests of the pictures that are near-equal to a picture."""
        found = dict.fromkeys([look.digest] if look.digest in self._looks else [])
        if look.bits is not None:
            for buckets, value in zip(self._bands, _bands(look.bits), strict=True):
                near = (each for each in buckets.get(value, ()) if each not in found)
                found.update(dict.fromkeys([each for each in near if look.is_near(self._looks[each])]))
        return list(found)


def _bands(bits: int) -> Iterator[int]:
    for low, high in pairwise(_EDGES):
        yield bits >> low & (1 << high - low) - 1

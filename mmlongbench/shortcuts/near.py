"""Pictures that look the same: equal bytes, or perceptual hashes at most 6 of 64 bits apart, with like details and
colours.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mmlongbench.documents.image_urls import MAX_BYTES, ImageUrls
from mmlongbench.documents.pixels import small_copy, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Release
from mmlongbench.shortcuts.extra import missing

BITS = 6
"""The most bits in which the hashes of two near-equal pictures differ."""
_FINE = 32
"""The most bits in which the finer hashes, of 256 bits, of two near-equal pictures differ. Pages of text and slides of
one layout are often within 6 of 64 bits: nearly all such pairs differ in 36 and more of the 256 bits, copies that were
encoded again, shrunk or made brighter in at most 30 (measured on the pictures of the quickstart release). A copy that
is cropped by 2 % is missed about as often as it is found."""
_SIDE = 128
_GRID = 4
_COLOURS = 12
"""The largest mean difference, in levels of 255, of the colours of two near-equal pictures. A perceptual hash is blind
to colour: a red and a blue square have the same one."""
_BRIGHTER = 24
"""The largest difference of their mean brightness, in levels of 255."""
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
    fine: int
    """Its perceptual hash of 256 bits."""
    colours: bytes
    """The mean colours of a grid of 4 × 4."""

    def is_near(self, other: "Look") -> bool:
        """Return whether two pictures are the same, or nearly the same."""
        if self.digest == other.digest:
            return True
        if self.bits is None or other.bits is None or (self.bits ^ other.bits).bit_count() > BITS:
            return False
        return (self.fine ^ other.fine).bit_count() <= _FINE and self._is_coloured_like(other)

    def _is_coloured_like(self, other: "Look") -> bool:
        """Return whether two pictures have like colours; one may be somewhat brighter as a whole."""
        brighter = (sum(self.colours) - sum(other.colours)) / len(self.colours)
        off = sum(abs(one - two - brighter) for one, two in zip(self.colours, other.colours, strict=True))
        return abs(brighter) <= _BRIGHTER and off <= _COLOURS * len(self.colours)


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
    fine = int(str(imagehash.phash(small, hash_size=16)), 16)
    return Look(digest or hashlib.sha256(data).hexdigest(), bits, fine, colours)


class Pictures:
    """What the pictures of a release look like. Each is decoded once; less than a kilobyte is kept of a picture."""

    def __init__(self, root: Path, digests: Mapping[str, str] | None = None) -> None:
        """Look up pictures below a folder; `digests` has the SHA-256 of those that are known, by path."""
        self._urls = ImageUrls(root)
        self._digests = digests or {}
        self._known: dict[str, Look] = {}
        self.uniform: set[str] = set()
        """The pictures read so far that are nearly uniform; only their bytes are compared."""

    @classmethod
    def of(cls, release: Release) -> "Pictures":
        """Return the pictures of a release, with the digests that its lock has."""
        names = ((name.removeprefix(f"{IMAGES}/"), entry) for name, entry in release.lock.files.items())
        return cls(release.path / IMAGES, {name: entry.sha256 for name, entry in names})

    def __getitem__(self, path: str) -> Look:
        """Return what a picture looks like; `path` is below `mmlb_image/`.

        Raises:
            ReleaseError: the picture is missing or broken, or its path leaves the release.

        """
        if path not in self._known:
            try:
                data = read_regular(Path(self._urls(path)), MAX_BYTES)
                look = look_of(data, self._digests.get(path, ""))
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

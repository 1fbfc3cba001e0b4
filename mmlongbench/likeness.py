"""What reads or looks alike: texts by their words, questions by MinHash, pictures by perceptual hashes.

The same rules serve the shortcut audit, mixes and written questions. They share no code with the search for hard
negatives, so that the audit does not repeat its mistakes.
"""

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.documents.image_urls import MAX_BYTES, ImageUrls
from mmlongbench.documents.pixels import decoded, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Release

if TYPE_CHECKING:
    import numpy as np
    from datasketch import MinHash
    from numpy.typing import NDArray

# ---- Texts

GRAM = 13
"""The number of words in a row that only a copy shares."""
SAME = 0.8
"""The smallest resemblance of two questions that count as the same words."""
LONGEST = 2_000
"""The most letters of a question of which runs of three words are compared; of a longer one, all words and runs of 13
words are compared."""
_SHINGLE = 3
_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"[^\W\d_]")
_LONG = 8_000
"""Texts with more letters are normalised anew each time, so that little memory is needed."""
_LEAST_WORDS = 8
"""The fewest words of a passage that is compared; shorter ones, such as labels, are equal by chance."""


def words(text: str) -> str:
    """Return the words of a text in small letters, with a blank before and after each.

    >>> words("The CO₂-level, in Łódź")
    ' the co2 level in łódź '
    """
    return _words(text) if len(text) > _LONG else _kept_words(text)


def _words(text: str) -> str:
    found = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(found)} " if found else ""


_kept_words = lru_cache(20_000)(_words)  # contexts repeat passages


def letters(text: str) -> int:
    """Return the number of letters in a text."""
    return len(_LETTER.findall(text))


def digest_of(text: str) -> bytes:
    """Return a short digest of the words of a text; empty if it has none."""
    found = words(text)
    return hashlib.blake2b(found.encode("utf-8", "backslashreplace"), digest_size=12).digest() if found else b""


def is_long(text: str) -> bool:
    """Return whether a text has enough words to be compared as a passage."""
    return words(text).count(" ") > _LEAST_WORDS


def shingles(text: str) -> frozenset[str]:
    """Return each run of three words in a text; all of its words as one run if it has fewer."""
    return _runs(text, _SHINGLE) or frozenset({words(text)} - {""})


def grams(text: str) -> frozenset[str]:
    """Return each run of 13 words in a text."""
    return _runs(text, GRAM)


def _runs(text: str, size: int) -> frozenset[str]:
    found = words(text).split()
    return frozenset(" ".join(found[at : at + size]) for at in range(len(found) - size + 1))


def is_same_wording(one: str, other: str) -> bool:
    """Return whether two questions have 13 words in a row in common, or 80 % of their runs of three words.

    >>> is_same_wording("Who planted the old oak at the gate?", "who planted the old oak, at the gate")
    True
    >>> is_same_wording("Is there a car?", "Is there a cat?")
    False
    """
    if not grams(one).isdisjoint(grams(other)):
        return True
    ours, theirs = shingles(one), shingles(other)
    return bool(ours and theirs) and len(ours & theirs) / len(ours | theirs) >= SAME


# ---- Questions

_FOUND = 0.6
"""The resemblance from which candidates are requested: the estimate is coarse, and each candidate is computed again."""
_PERMUTATIONS = 128
_MAX_CANDIDATES = 1_000
"""The most candidates of one question that are compared word by word; a template such as `is there a ...?` has many."""
_SEPARATED = re.compile(r"(?<![\d.,])\d{1,3}(?:([, ])\d{3})(?:\1\d{3})*(?!\d)")
"""Matches a number whose digits are in groups of three."""
_Key = tuple[str, str]


class KnownQuestions:
    """The questions of a release, to find each one that is asked elsewhere in the same or nearly the same words."""

    def __init__(self) -> None:
        """Make an empty index; raises ReleaseError if `datasketch` is not installed."""
        try:
            from datasketch import MinHashLSH
        except ImportError as error:
            raise missing("datasketch", "a comparison of questions with others") from error
        self._index = MinHashLSH(threshold=_FOUND, num_perm=_PERMUTATIONS)
        self._grams: dict[str, list[bytes]] = {}
        self._texts: dict[bytes, str] = {}
        self._asked: dict[bytes, list[tuple[_Key, str, frozenset[str]]]] = {}

    def add(self, key: _Key, question: str, subject: str = "", answers: Iterable[str] = ()) -> None:
        """Add a question; many may have the same words. An answer that is chosen from offered ones, such as yes, is not
        given.
        """
        digest = digest_of(question)
        if digest not in self._texts:
            self._texts[digest] = question
            self._index.insert(digest, _sketch(question))
            for gram in grams(question):
                self._grams.setdefault(gram, []).append(digest)
        self._asked.setdefault(digest, []).append((key, subject, frozenset(map(_plain, answers))))

    def same(self, question: str, subject: str, answers: Iterable[str] | None) -> list[_Key]:
        """Return the questions that have the words of another one and, if its answers are known, its subject or answer.

        Without this rule `Which country is this from?` would be shared by all that ask about pictures.
        """
        digest = digest_of(question)
        if not digest:
            return []
        candidates = [digest] if digest in self._texts else []
        candidates += [other for gram in sorted(grams(question)) for other in self._grams.get(gram, ())]
        if len(question) <= LONGEST:
            candidates += sorted(self._index.query(_sketch(question)))
        theirs = None if answers is None else frozenset(map(_plain, answers))
        return [
            key
            for other in list(dict.fromkeys(candidates))[:_MAX_CANDIDATES]
            if is_same_wording(self._texts[other], question)
            for key, about, plain in self._asked[other]
            if theirs is None or (subject and about == subject) or not plain.isdisjoint(theirs)
        ]


def _plain(answer: str) -> str:
    """Return an answer in a form in which answers that differ in case, punctuation or separated digits are equal.

    >>> _plain("About 1,040 crews.") == _plain("about 1040 crews")
    True
    """
    joined = _SEPARATED.sub(lambda number: re.sub("[, ]", "", number[0]), answer)
    return words(joined) or answer


def _sketch(text: str) -> "MinHash":
    from datasketch import MinHash

    sketch = MinHash(num_perm=_PERMUTATIONS)
    sketch.update_batch([run.encode("utf-8", "backslashreplace") for run in sorted(shingles(text))])
    return sketch


# ---- Pictures: equal bytes, or perceptual hashes at most 6 of 64 bits apart, with like details and colours

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
_PLAIN = 0.6
"""The smallest share of a picture that is of one grey, up to 4 levels of 255 brighter or darker, if it is like a page.
Two tables of one layout with other numbers may have near-equal hashes, so pages are compared in detail, too."""
_PAGE_SIDE, _CELL = 192, 12
"""The side of a page that is compared, and of its cells, in pixels."""
_OTHER, _SAME, _MOST = 0.9, 0.98, 0.5
"""Two pages of one layout have other words if a cell correlates less than 0.9, and more than half of them at least
0.98. A copy (JPEG of quality 15, a third of the size, brighter, cropped by 1 %) differs everywhere or nowhere, and is
rarely taken for other words (2 of 80 pages). Tables of which only few small cells differ may still be taken for one."""
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
    page: bytes = b""
    """Its greys of 192 × 192 pixels, compressed, if most of it is plain, as of a page; otherwise empty."""

    @property
    def is_blank(self) -> bool:
        """Whether the picture has one colour, such as an empty page."""
        cells = {self.colours[at : at + 3] for at in range(0, len(self.colours), 3)}
        return self.bits is None and len(cells) == 1

    def is_near(self, other: "Look") -> bool:
        """Return whether two pictures are the same, or nearly the same."""
        if self.digest == other.digest:
            return True
        if self.bits is None or other.bits is None or (self.bits ^ other.bits).bit_count() > BITS:
            return False
        if (self.fine ^ other.fine).bit_count() > _FINE:
            return False
        # One of them may be somewhat brighter as a whole.
        brighter = (sum(self.colours) - sum(other.colours)) / len(self.colours)
        off = sum(abs(one - two - brighter) for one, two in zip(self.colours, other.colours, strict=True))
        if abs(brighter) > _BRIGHTER or off > _COLOURS * len(self.colours):
            return False
        return not (self.page and other.page and _have_other_words(self.page, other.page))


def _have_other_words(one: bytes, other: bytes) -> bool:
    """Return whether two pages are the same in most of their cells with details, but not in all."""
    import numpy as np

    (ours, spread), (theirs, their_spread) = _cells(one), _cells(other)
    is_detailed = np.maximum(spread, their_spread) >= _TELLING
    # A mark of its own, such as a page number, stands on one of them alone: such a cell says nothing of the words.
    is_inked = np.minimum(spread, their_spread)[is_detailed] >= _TELLING
    # The noise of a blank cell is below one level.
    alike = ((ours * theirs).mean(axis=1) / np.maximum(spread, 1) / np.maximum(their_spread, 1))[is_detailed]
    return bool(is_inked.any()) and alike[is_inked].min() < _OTHER and bool((alike >= _SAME).mean() > _MOST)


@lru_cache(maxsize=512)  # 75 MB at most; pages of one layout are compared with each other
def _cells(page: bytes) -> tuple["NDArray[np.float32]", "NDArray[np.float32]"]:
    """Return the greys of each cell of a page, less their mean, and their deviations."""
    import numpy as np

    n = _PAGE_SIDE // _CELL
    greys = np.frombuffer(zlib.decompress(page), np.uint8).astype(np.float32)
    cells = greys.reshape(n, _CELL, n, _CELL).swapaxes(1, 2).reshape(n * n, _CELL * _CELL)
    return cells - cells.mean(axis=1, keepdims=True), cells.std(axis=1)


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

    whole = decoded(data, 2 * _SIDE)
    small = whole.resize((_SIDE, _SIDE), Image.Resampling.BOX)
    deviation = float(np.asarray(small.convert("L").resize((32, 32), Image.Resampling.BOX)).std())
    bits = int(str(imagehash.phash(small)), 16) if deviation >= _TELLING else None
    colours = small.resize((_GRID, _GRID), Image.Resampling.BOX).tobytes()
    fine = int(str(imagehash.phash(small, hash_size=16)), 16)
    # Other filters move thin lines by a part of a pixel, so copies of another size would differ.
    grey = whole.convert("L").resize((_PAGE_SIDE, _PAGE_SIDE), Image.Resampling.BILINEAR)
    plain = np.convolve(grey.histogram(), np.ones(9), "same").max() / _PAGE_SIDE**2
    page = zlib.compress(grey.tobytes(), 1) if plain >= _PLAIN else b""
    return Look(digest or hashlib.sha256(data).hexdigest(), bits, fine, colours, page)


class Pictures:
    """What the pictures of a release look like. Each is decoded once; less than a kilobyte is kept of a picture,
    and about ten of a page.
    """

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
        near = [look.digest] if look.digest in self._looks else []
        compared = {look.digest}
        if look.bits is not None:
            for buckets, value in zip(self._bands, _bands(look.bits), strict=True):
                candidates = [digest for digest in buckets.get(value, ()) if digest not in compared]
                near += [digest for digest in candidates if look.is_near(self._looks[digest])]
                compared.update(candidates)
        return near


def _bands(bits: int) -> Iterator[int]:
    for low, high in pairwise(_EDGES):
        yield bits >> low & (1 << high - low) - 1


def missing(package: str, what: str) -> ReleaseError:
    """Return the error for a package that is not installed; `what` is what needs it, such as `a comparison`."""
    return ReleaseError(f'{what} needs {package}: pip install "mmlongbench[shortcuts]"')

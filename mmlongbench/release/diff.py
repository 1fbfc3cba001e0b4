"""Finds what differs between two releases: locks key by key, files example by example, contexts unit by unit."""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

from mmlongbench.documents.pixels import header_size, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import sha256_of
from mmlongbench.io.progress import Progress
from mmlongbench.release.examples import ExampleFile
from mmlongbench.release.layout import IMAGES, by_length
from mmlongbench.release.lock import as_lock, lock_json, names_there

SHORT = 70
"""The maximum characters of a value that is shown whole; a SHA-256 has fewer."""
_AROUND = 20
"""How many characters of a long text are shown, from the first difference on."""
_UNITS = 5
"""The maximum number of units that are named for each kind of difference, such as `removed`."""
_PLACED = ("position", "start")
"""The fields of a unit that depend on the units before it."""


def differences(one: object, other: object, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, difference) for each difference of two values; the names of nested fields are joined with dots.

    >>> dict(differences({"seed": 42, "pages": {"dpi": 144}}, {"seed": 7, "pages": {"dpi": 72}}))
    {'seed': '42 against 7', 'pages.dpi': '144 against 72'}
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            at = f"{field}.{key}" if field else str(key)
            if key not in other:
                yield at, f"{short(one[key])} against nothing"
            elif key not in one:
                yield at, f"nothing against {short(other[key])}"
            else:
                yield from differences(one[key], other[key], at)
    elif one != other or type(one) is not type(other):
        yield field, against(one, other)


def against(one: object, other: object) -> str:
    """Return two different values in words: short values whole, long ones by their lengths and first difference.

    >>> against("red", ["red"])
    '"red" against ["red"]'
    >>> against("a" * 100, "a" * 99 + "bc")
    '100 against 101 characters, the first that differs is 99: "a" against "bc"'
    """
    if max(len(_json(one)), len(_json(other))) > SHORT:
        if isinstance(one, str) and isinstance(other, str):
            at = _common(one, other)
            ends = (short(text[at : at + _AROUND]) for text in (one, other))
            return f"{len(one):,} against {len(other):,} characters, the first that differs is {at}: {_joined(*ends)}"
        if isinstance(one, list) and isinstance(other, list):
            at = _common(one, other)
            return f"{len(one):,} against {len(other):,} entries, {_first_entry(one, other, at)}"
    return _joined(short(one), short(other))


def short(value: object) -> str:
    """Return a value as JSON, shortened if it is long."""
    text = _json(value)
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def contexts(one: Sequence[Mapping[str, object]], other: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield the differences between two contexts by units: removed, added, moved, and changed values.

    The moved units are the smallest set without which the other units have the same order in both contexts. If nothing
    else differs, the values of `start` (the tokens before a unit) are compared.
    """
    ours, theirs = ({str(row.get("unit")): row for row in rows} for rows in (one, other))
    both = [unit for unit in ours if unit in theirs]
    yield from _named("removed", [unit for unit in ours if unit not in theirs])
    yield from _named("added", [unit for unit in theirs if unit not in ours])
    ranks = {unit: rank for rank, unit in enumerate(theirs)}
    stay = _longest_rise([ranks[unit] for unit in both])
    places = {unit: f"{unit} from {at} to {ranks[unit]}" for at, unit in enumerate(ours) if unit in theirs}
    yield from _named("moved", [places[unit] for unit in both if ranks[unit] not in stay])
    said = [f"{unit}: {words}" for unit in both if (words := _row(ours[unit], theirs[unit]))]
    yield from _named("changed", said)
    if list(ours) == list(theirs) and not said:
        starts = {unit: [row[unit].get("start") for row in (ours, theirs)] for unit in both}
        yield from _named(
            "start elsewhere", [f"{unit} {against(*at)}" for unit, at in starts.items() if at[0] != at[1]]
        )


def _row(one: Mapping[str, object], other: Mapping[str, object]) -> str:
    ours, theirs = ({key: value for key, value in row.items() if key not in _PLACED} for row in (one, other))
    return ", ".join(f"{field} {words}" for field, words in differences(ours, theirs))


def _named(kind: str, units: Sequence[str]) -> Iterator[str]:
    if units:
        more = f", and {len(units) - _UNITS:,} more" if len(units) > _UNITS else ""
        yield f"{len(units):,} {'unit' if len(units) == 1 else 'units'} {kind}: {', '.join(units[:_UNITS])}{more}"


def _longest_rise(numbers: Sequence[int]) -> set[int]:
    """Return the numbers of a longest rising subsequence; all `numbers` are different.

    >>> sorted(_longest_rise([5, 0, 1, 3, 2]))
    [0, 1, 2]
    """
    ends: list[int] = []  # for each length, the smallest number at the end of a rising sequence
    before: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(ends, number)
        before[number] = ends[at - 1] if at else None
        ends[at : at + 1] = [number]
    found: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found


def _first_entry(one: Sequence[object], other: Sequence[object], at: int) -> str:
    if at == min(len(one), len(other)):
        longer, name = (one, "first") if len(one) > len(other) else (other, "second")
        return f"only the {name} has entry {at}: {short(longer[at])}"
    said = "; ".join(f"{field} {words}".strip() for field, words in differences(one[at], other[at]))
    return f"the first that differs is {at}: {said}"


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many entries at the start are the same."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _joined(one: str, other: str) -> str:
    return f"{one} against {other}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_Pair: TypeAlias = tuple[Path, Path]
_WRITTEN = "the same values, written otherwise"


@dataclass(frozen=True, slots=True)
class Named:
    """How many things there are, and the names of the first ones."""

    count: int = 0
    """How many there are."""
    first: tuple[str, ...] = ()
    """The names of the first ones."""

    @classmethod
    def of(cls, names: Sequence[str], limit: int | None = None) -> "Named":
        """Count all names, and keep the first `limit` of them; None: all."""
        return cls(len(names), tuple(names[:limit]))


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A file that both releases have, with different bytes."""

    file: str
    """Its path below the release."""
    what: str = ""
    """The difference in words if the file has no examples, if its examples are the same, or if they cannot be
    compared; otherwise empty."""
    in_both: int = 0
    """The number of examples that both files have."""
    differ: int = 0
    """How many of these differ."""
    only_in_a: Named = Named()
    """Examples that only the first release has."""
    only_in_b: Named = Named()
    """Examples that only the second release has."""
    first: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What differs in each of the first examples that differ, by the example's name."""


@dataclass(frozen=True, slots=True)
class ReleaseDifference:
    """The differences between two releases."""

    lock: tuple[tuple[str, str], ...]
    """(where, the difference in words) for each difference between the locks: manifest, sources, versions, counts. The
    entries of a file are compared only if the file is the same in both releases."""
    only_in_a: Mapping[str, Named]
    """Files that only the first release has, by top folder."""
    only_in_b: Mapping[str, Named]
    """Files that only the second release has, by top folder."""
    files: tuple[FileDifference, ...] = ()
    """Files with different bytes, except images."""
    images: Named = Named()
    """Images with different bytes; sizes in pixels and bytes are given after each name."""
    same: int = 0
    """The number of files that are the same in both."""

    @property
    def is_same(self) -> bool:
        """Whether there is no difference."""
        return not (self.lock or self.only_in_a or self.only_in_b or self.files or self.images.count)

    def summary(self) -> dict[str, object]:
        """Return the differences as one JSON object."""
        return {"is_same": self.is_same, **asdict(self)}


def diff(a: Path, b: Path, progress: Progress, limit: int = 5) -> ReleaseDifference:
    """Compare two releases on disk; only an index of the examples of each file is kept in memory.

    Args:
        a: one release.
        b: the other.
        progress: shows the bar.
        limit: how many examples of a file, and how many images, are named; the others are only counted.

    Raises:
        ReleaseError: `a` or `b` is not a release.

    """
    locks = lock_json(a), lock_json(b)
    for release, lock in zip((a, b), locks, strict=True):
        as_lock(release, lock)  # raises an error if it is not valid
    ours, theirs = {*names_there(a)}, {*names_there(b)}
    both = sorted(ours & theirs)
    only_in_a, only_in_b = (_by_folder(sorted(one), limit) for one in (ours - theirs, theirs - ours))
    said = list(_lock_differences(*locks))
    files: list[FileDifference] = []
    images: list[str] = []
    same = 0
    with progress.bar("diff: files", len(both)) as advance:
        for name in both:
            pair = (a / name, b / name)
            if _are_same(pair):
                same += 1
                said.extend(_listed(name, *locks))
            elif name.startswith(f"{IMAGES}/"):
                images.append(f"{name}: {_image_words(pair)}" if len(images) < limit else "")
            else:
                files.append(_file_difference(name, pair, limit))
            advance()
    files.sort(key=lambda file: by_length(file.file))
    return ReleaseDifference(tuple(said), only_in_a, only_in_b, tuple(files), Named.of(images, limit), same)


def _by_folder(names: Sequence[str], limit: int) -> dict[str, Named]:
    """Group files by top folder. For images, only the first `limit` names are kept; for other files, all names are
    kept.
    """
    folders: dict[str, list[str]] = {}
    for name in names:
        folders.setdefault(name.split("/")[0], []).append(name)
    return {folder: Named.of(found, limit if folder == IMAGES else None) for folder, found in folders.items()}


def _lock_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    one, other = (_by_name(lock["manifest"]) for lock in (ours, theirs))
    for where, words in differences(one, other):
        name, _, key = where.partition(".")
        yield f"sources: {name}.{key}" if "_sha256" in key or key == "corpus" else f"manifest: {where}", words
    if list(one) != list(other) and one.keys() == other.keys():
        yield "manifest: order of datasets", against(list(one), list(other))
    for key in sorted((ours.keys() | theirs.keys()) - {"manifest", "files"}):
        kind = "counts" if key == "datasets" else key
        for where, words in differences(ours.get(key), theirs.get(key)):
            yield f"{kind}: {where}" if where else kind, words


def _by_name(manifest: Sequence[object]) -> dict[str, object]:
    return {str(data.get("name") if isinstance(data, dict) else data): data for data in manifest}


def _listed(name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the difference between the entries of the two locks for a file that is the same in both releases."""
    entries = [lock["files"].get(name) for lock in (ours, theirs)]
    if entries[0] != entries[1]:
        yield f"files: {name}", f"the file is the same, the locks say {against(*entries)}"


def _are_same(pair: _Pair) -> bool:
    """Return whether two files have the same bytes. Only regular files are opened; if neither is one, they count as
    the same.
    """
    if not all(path.is_file() for path in pair):
        return not any(path.is_file() for path in pair)
    sizes = {path.stat().st_size for path in pair}
    return len(sizes) == 1 and len({sha256_of(path) for path in pair}) == 1


def _image_words(pair: _Pair) -> str:
    return _both(pair, lambda path: f"{_pixels(path)}, {path.stat().st_size:,} bytes")


def _pixels(path: Path) -> str:
    try:
        width, height = header_size(path)
    except unreadable() as error:
        return f"cannot be read ({type(error).__name__})"
    return f"{width:,} × {height:,} pixels"


def _both(pair: _Pair, said: Callable[[Path], str]) -> str:
    one, other = map(said, pair)
    return f"both {one}" if one == other else f"{one} against {other}"


def _file_difference(name: str, pair: _Pair, limit: int) -> FileDifference:
    if not all(path.is_file() for path in pair):
        return FileDifference(name, "is a file in one of them only")
    if not ExampleFile.has_examples(pair[0]):
        return FileDifference(name, _both(pair, lambda path: f"{path.stat().st_size:,} bytes"))
    try:
        return _example_differences(name, ExampleFile(pair[0]), ExampleFile(pair[1]), limit)
    except ReleaseError as error:
        return FileDifference(name, f"the bytes differ; {error}")


def _example_differences(name: str, ours: ExampleFile, theirs: ExampleFile, limit: int) -> FileDifference:
    both = [each for each in ours.digests if each in theirs.digests]
    differ = [each for each in both if ours.digests[each] != theirs.digests[each]]
    only_in_a, only_in_b = (
        Named.of([each for each in one.digests if each not in other.digests], limit)
        for one, other in ((ours, theirs), (theirs, ours))
    )
    what = ""
    if not (differ or only_in_a.count or only_in_b.count):
        is_ordered = list(ours.digests) == list(theirs.digests)
        what = _WRITTEN if is_ordered else "the same examples in another order"
    shown = differ[:limit]
    read, other_read = ours.read(shown), theirs.read(shown)
    first = {each: tuple(_said(read[each], other_read[each])) for each in shown}
    return FileDifference(name, what, len(both), len(differ), only_in_a, only_in_b, first)


def _said(one: object, other: object) -> list[str]:
    """Return what differs between two examples: fields if they are records, units if they are contexts."""
    try:
        if isinstance(one, list) and isinstance(other, list):
            said = list(contexts(one, other))
        else:
            said = [f"{where}: {words}" if where else words for where, words in differences(one, other)]
    except RecursionError:
        return ["values that are too deep to be compared"]
    return said or [_WRITTEN]

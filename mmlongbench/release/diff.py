"""Finds what differs between two releases: locks key by key, files example by example, contexts unit by unit.

The examples of a file are told apart by name, without the builder that made them.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any, TypeAlias

from mmlongbench.documents.pixels import header_size, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import MAX_BYTES, MAX_OF_A_FILE, bounded_lines, read_regular, sha256_of
from mmlongbench.io.progress import Progress
from mmlongbench.release.layout import IMAGES, by_length, name_of
from mmlongbench.release.lock import lock_json, names_there, read_lock
from mmlongbench.task.file_formats import to_json

_SHORT = 70
"""The maximum characters of a value that is shown whole; a SHA-256 has fewer."""
_AROUND = 20
"""How many characters of a long text are shown, from the first difference on."""
_UNITS = 5
"""The maximum number of units that are named for each kind of difference, such as `removed`."""
_PLACED = ("position", "start")
"""The fields of a unit that depend on the units before it."""
_ROWS = 5_000
_WRITTEN = "the same values, written otherwise"


@dataclass(frozen=True, slots=True)
class Named:
    """How many things there are, and the names of the first ones."""

    count: int = 0
    first: tuple[str, ...] = ()

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
    """Compare two releases on disk (see `mmlongbench.diff`). Of each file, only an index of its examples is kept in
    memory.
    """
    locks = lock_json(a), lock_json(b)
    for release, lock in zip((a, b), locks, strict=True):
        read_lock(release, lock)  # raises an error if it is not valid
    ours, theirs = {*names_there(a)}, {*names_there(b)}
    of_lock = list(_lock_differences(*locks))
    files: list[FileDifference] = []
    images: list[str] = []
    same = 0
    both = sorted(ours & theirs)
    with progress.bar("diff: files", len(both)) as advance:
        for name in both:
            pair = (a / name, b / name)
            # only regular files are opened; if neither is one, they count as the same
            are_files = [path.is_file() for path in pair]
            sizes = {path.stat().st_size for path in pair} if all(are_files) else set()
            if not any(are_files) or (len(sizes) == 1 and len({sha256_of(path) for path in pair}) == 1):
                same += 1
                entries = [lock["files"].get(name) for lock in locks]
                if entries[0] != entries[1]:
                    words = f"the file is the same, the locks say {against(*entries)}"
                    of_lock.append((f"files: {name}", words))
            elif name.startswith(f"{IMAGES}/"):
                is_named = len(images) < limit
                words = _both(pair, lambda path: f"{_pixels(path)}, {path.stat().st_size:,} bytes") if is_named else ""
                images.append(f"{name}: {words}")
            else:
                files.append(_file_difference(name, pair, limit))
            advance()
    files.sort(key=lambda file: by_length(file.file))
    only: list[dict[str, Named]] = []  # by top folder; of images, only the first are named
    for names in (ours - theirs, theirs - ours):
        folders = groupby(sorted(names), key=lambda name: name.split("/")[0])
        only.append({top: Named.of([*below], limit if top == IMAGES else None) for top, below in folders})
    return ReleaseDifference(tuple(of_lock), only[0], only[1], tuple(files), Named.of(images, limit), same)


def _lock_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    one, other = (
        {str(data.get("name") if isinstance(data, dict) else data): data for data in lock["manifest"]}
        for lock in (ours, theirs)
    )
    for where, words in differences(one, other):
        name, _, key = where.partition(".")
        yield f"sources: {name}.{key}" if "_sha256" in key or key == "corpus" else f"manifest: {where}", words
    if list(one) != list(other) and one.keys() == other.keys():
        yield "manifest: order of datasets", against(list(one), list(other))
    for key in sorted((ours.keys() | theirs.keys()) - {"manifest", "files"}):
        kind = "counts" if key == "datasets" else key
        for where, words in differences(ours.get(key), theirs.get(key)):
            yield f"{kind}: {where}" if where else kind, words


def _both(pair: tuple[Path, Path], words_of: Callable[[Path], str]) -> str:
    one, other = map(words_of, pair)
    return f"both {one}" if one == other else f"{one} against {other}"


def _pixels(path: Path) -> str:
    if not path.is_file():  # reading a pipe might never end
        return "no file"
    try:
        width, height = header_size(path)
    except unreadable() as error:
        return f"cannot be read ({type(error).__name__})"
    return f"{width:,} × {height:,} pixels"


def _file_difference(name: str, pair: tuple[Path, Path], limit: int) -> FileDifference:
    if not all(path.is_file() for path in pair):
        return FileDifference(name, "is a file in one of them only")
    if pair[0].suffix not in _EXAMPLES:
        return FileDifference(name, _both(pair, lambda path: f"{path.stat().st_size:,} bytes"))
    try:
        ours, theirs = map(ExampleFile, pair)
        both = [each for each in ours.digests if each in theirs.digests]
        differ = [each for each in both if ours.digests[each] != theirs.digests[each]]
        only_in_a, only_in_b = (
            Named.of([each for each in here.digests if each not in there.digests], limit)
            for here, there in ((ours, theirs), (theirs, ours))
        )
        what = ""
        if not (differ or only_in_a.count or only_in_b.count):
            is_ordered = list(ours.digests) == list(theirs.digests)
            what = _WRITTEN if is_ordered else "the same examples in another order"
        read, other_read = ours.read(differ[:limit]), theirs.read(differ[:limit])
    except ReleaseError as error:
        return FileDifference(name, f"the bytes differ; {error}")
    first: dict[str, tuple[str, ...]] = {}  # fields if the examples are records, units if they are contexts
    for each in differ[:limit]:
        one, other = read[each], other_read[each]
        try:
            if isinstance(one, list) and isinstance(other, list):
                words = list(_context_differences(one, other))
            else:
                words = [f"{where}: {values}" if where else values for where, values in differences(one, other)]
        except RecursionError:
            words = ["values that are too deep to be compared"]
        first[each] = tuple(words or [_WRITTEN])
    return FileDifference(name, what, len(both), len(differ), only_in_a, only_in_b, first)


def differences(one: object, other: object, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, difference) for each difference of two values; the names of nested fields are joined with dots.

    >>> dict(differences({"seed": 42, "pages": {"dpi": 144}}, {"seed": 7, "pages": {"dpi": 72}}))
    {'seed': '42 against 7', 'pages.dpi': '144 against 72'}
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            at = f"{field}.{key}" if field else str(key)
            if key not in other:
                yield at, f"{_short(one[key])} against nothing"
            elif key not in one:
                yield at, f"nothing against {_short(other[key])}"
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
    >>> against({"a": "y" * 90, (1, 2): 3}, {"a": "y" * 90, (1, 2): 4})
    "…yyyyyyyyy', (1, 2): 3} against …yyyyyyyyy', (1, 2): 4}"
    """
    is_long = max(len(_json(one)), len(_json(other))) > _SHORT
    if is_long and isinstance(one, str) and isinstance(other, str):
        at = _common(one, other)
        ends = " against ".join(_short(text[at : at + _AROUND]) for text in (one, other))
        return f"{len(one):,} against {len(other):,} characters, the first that differs is {at}: {ends}"
    if is_long and isinstance(one, list | tuple) and isinstance(other, list | tuple):
        at = _common(one, other)
        if at == min(len(one), len(other)):
            longer, name = (one, "first") if len(one) > len(other) else (other, "second")
            entry = f"only the {name} has entry {at}: {_short(longer[at])}"
        else:
            fields = "; ".join(f"{field} {words}".strip() for field, words in differences(one[at], other[at]))
            entry = f"the first that differs is {at}: {fields}"
        return f"{len(one):,} against {len(other):,} entries, {entry}"
    texts = _json(one), _json(other)
    start = max(0, _common(*texts) - _AROUND) if is_long else 0
    return " against ".join(f"{'…' if start else ''}{_cut(text[start:])}" for text in texts)


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _short(value: object) -> str:
    return _cut(_json(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # a value of a draft that JSON cannot hold
        return repr(value)


def _context_differences(one: Sequence[Mapping[str, object]], other: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield the differences between two contexts by units: removed, added, moved, and changed values.

    The moved units are the smallest set without which the other units have the same order in both contexts. If nothing
    else differs, the values of `start` (the tokens before a unit) are compared.
    """
    ours, theirs = ({str(row.get("unit")): row for row in rows} for rows in (one, other))
    both = [unit for unit in ours if unit in theirs]
    ranks = {unit: rank for rank, unit in enumerate(theirs)}
    stay = _longest_rise([ranks[unit] for unit in both])
    kinds = {
        "removed": [unit for unit in ours if unit not in theirs],
        "added": [unit for unit in theirs if unit not in ours],
        "moved": [
            f"{unit} from {at} to {ranks[unit]}"
            for at, unit in enumerate(ours)
            if unit in theirs and ranks[unit] not in stay
        ],
        "changed": [],
    }
    for unit in both:
        a, b = ({key: value for key, value in row[unit].items() if key not in _PLACED} for row in (ours, theirs))
        if words := ", ".join(f"{field} {values}" for field, values in differences(a, b)):
            kinds["changed"].append(f"{unit}: {words}")
    if list(ours) == list(theirs) and not kinds["changed"]:
        starts = {unit: [row[unit].get("start") for row in (ours, theirs)] for unit in both}
        kinds["start elsewhere"] = [f"{unit} {against(*at)}" for unit, at in starts.items() if at[0] != at[1]]
    for kind, units in kinds.items():
        if units:
            more = f", and {len(units) - _UNITS:,} more" if len(units) > _UNITS else ""
            number = f"{len(units):,} {'unit' if len(units) == 1 else 'units'}"
            yield f"{number} {kind}: {', '.join(units[:_UNITS])}{more}"


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
    rise: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        rise.add(last)
        last = before[last]
    return rise


_NamedExample: TypeAlias = tuple[str, bytes, object, int]
"""The name of an example, its bytes, its value (a text if it is no JSON object), and where its line begins."""


class ExampleFile:
    """The examples of a file. An index of them is kept in memory; examples are read when needed.

    A `.jsonl` file has an example a line. In a file of items, an example is the list of its units' rows; in the table
    of assets, it is a row; in a `.json` file, a member of the object.
    """

    def __init__(self, path: Path) -> None:
        """Read the whole file once; a file that is not what its ending says is a `ReleaseError`."""
        self._path = path
        self._starts: dict[str, int] = {}
        self.digests: dict[str, bytes] = {}
        """A digest of each example's bytes, by name, in the order of the file."""
        self.unreadable: list[str] = []
        for name, data, value, start in self._examples():
            self.digests[name], self._starts[name] = blake2b(data, digest_size=16).digest(), start
            if isinstance(value, str):
                self.unreadable.append(name)

    def read(self, names: Collection[str]) -> dict[str, object]:
        """Return some of the examples, by name."""
        if not names:
            return {}
        if self._path.suffix != ".jsonl":
            return {name: value for name, _, value, _ in self._examples() if name in names}
        examples: dict[str, object] = {}
        with self._path.open("rb") as file:
            for name in names:
                file.seek(self._starts[name])
                examples[name] = _object_or_text(file.readline(MAX_BYTES + 1))
        return examples

    def _examples(self) -> Iterator[_NamedExample]:
        times = Counter[str]()
        for name, data, value, start in _EXAMPLES[self._path.suffix](self._path):
            times[name] += 1  # a repeated name gets a number
            yield (name if times[name] == 1 else f"{name} ({times[name]})"), data, value, start


def _lines(path: Path) -> Iterator[_NamedExample]:
    with path.open("rb") as file:
        for number, start, whole in bounded_lines(file):
            line = b"" if whole is None else whole
            value = _object_or_text(line)
            yield (name_of(value) if isinstance(value, dict) else f"line {number}"), line, value, start


def _rows(path: Path) -> Iterator[_NamedExample]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened, pq.ParquetFile(opened) as file:
            rows = (row for batch in file.iter_batches(_ROWS) for row in batch.to_pylist())
            examples: Iterator[tuple[str, object]]
            if {"dataset", "kind", "name", "sha256"} <= set(file.schema_arrow.names):
                assets = ({**row, "sha256": row["sha256"].hex()} for row in rows)
                examples = ((f"{asset['dataset']}: {asset['kind']} {asset['name']}", asset) for asset in assets)
            else:
                contexts = (list(units) for _, units in groupby(rows, key=lambda row: (row["id"], row["placement"])))
                examples = ((name_of(units[0]), units) for units in contexts)
            for name, value in examples:
                yield name, repr(value).encode("utf-8", "backslashreplace"), value, 0
    except (pa.ArrowException, OSError, ValueError, KeyError, AttributeError) as error:
        raise ReleaseError(f"{path.name}: is no Parquet file of items: {type(error).__name__}") from error


def _members(path: Path) -> Iterator[_NamedExample]:
    try:
        value = _object_or_text(read_regular(path, MAX_OF_A_FILE))
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path.name}: {error}") from error
    if isinstance(value, str):
        raise ReleaseError(f"{path.name}: is no JSON object")
    yield from ((name, to_json(member), member, 0) for name, member in value.items())


_EXAMPLES = {".jsonl": _lines, ".parquet": _rows, ".json": _members}


def _object_or_text(line: bytes) -> dict[str, object] | str:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else line.decode("utf-8", "backslashreplace").removesuffix("\n")

"""Food-101 as its authors publish it: the pictures `images/<class>/<number>.jpg`, and lists of them in `meta/`.

The lists of a split are `train.json` and `test.json`, objects such as `{"apple_pie": ["apple_pie/1005649"]}`, or
`train.txt` and `test.txt` with lines such as `apple_pie/1005649`. A class has the number of its place among the sorted
classes, as in the Parquet files of the hub.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from builders.many_shot.splits import Entry, Splits, listed, needed, source_below, unknown_class
from mmlongbench.task import Fault, SourceError, load_json, text_lines

FORM = "Food-101's folders `images/` and `meta/`"
_LISTS = ("meta/{}.json", "meta/{}.txt")
_Listed = tuple[object, object, str]
"""(class, `class/number`, position in the file)."""


def find(folder: Path) -> Path | None:
    """Return the folder that has `meta/` with a list of a split; None if the source has another form."""
    return source_below(folder, *(name.format(split) for split in ("train", "test") for name in _LISTS))


def read(folder: Path) -> Splits:
    """Return the splits that `meta/` lists.

    Raises:
        SourceError: a list is missing or cannot be read.

    """
    found = {split: _listed(folder, split) for split in ("train", "test")}
    kinds = {kind for _, rows in found.values() for kind, _, _ in rows if isinstance(kind, str)}
    names = tuple(sorted(kinds))
    labels = {kind: number for number, kind in enumerate(names)}
    shown, asked = (listed(split, names, _entries(rows, labels, file), folder) for split, (file, rows) in found.items())
    return Splits(shown, asked)


def _listed(folder: Path, split: str) -> tuple[str, list[_Listed]]:
    """Return the name of the list of a split, and what it lists."""
    todo = "give the folder that `food-101.tar.gz` unpacks to"
    file = needed(folder, *(name.format(split) for name in _LISTS), todo=todo)
    if file.suffix == ".txt":
        lines = enumerate(text_lines(file, "a list of pictures"), 1)
        return file.name, [(line.rpartition("/")[0], line, f"line {number}") for number, line in lines if line.strip()]
    data = load_json(file, "an object with a list of pictures for each class")
    if not isinstance(data, dict) or not all(isinstance(rows, list) for rows in data.values()):
        expected, todo = "an object with a list of pictures for each class", "download it again"
        raise SourceError(Fault("unreadable-source", expected, "something else", file.name, todo=todo))
    rows = [(kind, row, f"{kind!a}, item {number}") for kind, rows in data.items() for number, row in enumerate(rows)]
    return file.name, rows


def _entries(rows: list[_Listed], labels: Mapping[str, int], file: str) -> Iterator[Entry]:
    for kind, row, place in rows:
        folder = row.strip().rpartition("/")[0] if isinstance(row, str) else ""
        fault = None if folder and folder == kind else unknown_class(str(row), "`class/number`, with this class")
        yield Entry(f"images/{str(row).strip()}.jpg", labels.get(folder), file, place, fault)

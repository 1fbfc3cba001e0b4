"""SUN397 as its authors publish it: pictures such as `a/abbey/sun_aaa.jpg`, the classes in `ClassName.txt`, and ten
partitions of training and test pictures.

A partition is a pair of lists, `Training_01.txt` and `Testing_01.txt`, with lines such as `/a/abbey/sun_aaa.jpg`. The
lists may be beside the folders of the pictures or in a folder of their own. Of several partitions the first is used.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from builders.many_shot.splits import Entry, Splits, listed, needed, unknown_class, with_subfolders
from mmlongbench.task import Fault, SourceError, file_inside, text_lines

FORM = "SUN397's folders of pictures with `ClassName.txt` and a partition (`Training_01.txt`, `Testing_01.txt`)"
_CLASSES = "ClassName.txt"
_LIST = re.compile(r"(Training|Testing)_(\d{2})\.txt")
_SCENE = re.compile(r"/?[a-z]/(.+)")


def find(folder: Path) -> Path | None:
    """Return the folder if it, or a folder in it, has `ClassName.txt` or a list of a partition; None if the source has
    another form.
    """
    names = [name for each in with_subfolders(folder) for name in _files(each)]
    return folder if any(name == _CLASSES or _LIST.fullmatch(name) for name in names) else None


def read(folder: Path) -> Splits:
    """Return the splits of the first partition.

    Raises:
        SourceError: no partition is complete, or a list cannot be read.

    """
    folders = with_subfolders(folder)
    number, training, testing = _partition(folders, folder.name)
    home = next((each for each in folders if (each / _CLASSES).is_file()), folder)
    lines = text_lines(needed(home, _CLASSES, todo="take it from `SUN397.tar.gz`"), "a list of classes")
    kinds = [line.strip().strip("/") for line in lines if line.strip()]
    labels = {kind: label for label, kind in enumerate(kinds)}
    names = tuple(map(scene_name, kinds))
    pictures = next((each for each in folders if any(_has(each, kind) for kind in kinds)), folder)
    shown, asked = (
        listed(split, names, _entries(file, labels, PurePosixPath(pictures.relative_to(folder))), folder)
        for split, file in (("train", training), ("test", testing))
    )
    return Splits(shown, asked, (f"{folder.name}: partition {number} of SUN397 is used",))


def scene_name(name: str) -> str:
    """Return the name of a class that is given as a path.

    >>> scene_name("/a/apartment_building/outdoor"), scene_name("airplane cabin")
    ('apartment building outdoor', 'airplane cabin')
    """
    path = _SCENE.fullmatch(name)
    return re.sub(r"[/_]", " ", path[1]) if path else name


def _partition(folders: list[Path], name: str) -> tuple[str, Path, Path]:
    """Return the number of the first complete partition, and its two lists."""
    lists = {each: folder / each for folder in reversed(folders) for each in _files(folder) if _LIST.fullmatch(each)}
    numbers = sorted({each[-6:-4] for each in lists})
    for number in numbers:
        pair = [lists.get(f"{kind}_{number}.txt") for kind in ("Training", "Testing")]
        if pair[0] and pair[1]:
            return number, pair[0], pair[1]
    found = ", ".join(sorted(lists)) or "no list of a partition"
    todo = "add both lists of a partition, from `Partitions.zip`"
    raise SourceError(Fault("missing-split", "`Training_01.txt` and `Testing_01.txt`", found, name, todo=todo))


def _files(folder: Path) -> list[str]:
    try:
        names = [path.name for path in folder.iterdir() if path.suffix == ".txt"]
    except OSError:
        return []
    return [name for name in names if file_inside(folder, name)]


def _has(folder: Path, kind: str) -> bool:
    try:
        return (folder / kind).is_dir()
    except OSError:  # the name is too long
        return False


def _entries(file: Path, labels: Mapping[str, int], below: PurePosixPath) -> Iterator[Entry]:
    """Yield what a list has; the folders of the classes are in the folder `below`."""
    for number, line in enumerate(text_lines(file, "a list of pictures"), 1):
        if name := line.strip().removeprefix("/"):
            label = labels.get(name.rpartition("/")[0])
            fault = unknown_class(name, f"a picture of a class in {_CLASSES}") if label is None else None
            yield Entry(str(below / name), label, file.name, f"line {number}", fault)

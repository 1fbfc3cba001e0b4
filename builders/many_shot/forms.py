"""The forms of sets of classified pictures: Food-101, SUN397 and Stanford Cars as their authors publish them, and
Parquet files of the hub.

A form is recognized by the files that are there. Every form is read to the same value, and a class has the same number
in all forms of a set. Sets have up to 100,000 pictures.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import mmlongbench.task as mt
from builders.common import is_unicode, missing_parts, open_parquet, source_error

if TYPE_CHECKING:
    import pyarrow as pa

_SPLITS = ("train", "test")
_CORRECT = "correct the list, or download it again"
_AGAIN = "download it again"


@dataclass(frozen=True, slots=True)
class Entry:
    """A picture, as the source lists it."""

    picture: mt.readers.PictureFile | str
    """A cell of a table, or the path of a file below `PictureSet.folder`."""
    label: int | None  # the number of its class, from 0; None only if there is a fault
    file: str
    place: str
    fault: mt.Fault | None = None  # why the picture cannot be used


@dataclass(frozen=True, slots=True)
class PictureSet:
    """What a source lists, in its order; the exemplars are the split `train`."""

    names: tuple[str, ...]  # of the classes, by number; empty if the source has none
    entries: Mapping[str, tuple[Entry, ...]]  # `exemplars` and `tests`
    test_split: str = "test"
    folder: Path | None = None  # the folder that must have the pictures that are files
    notes: tuple[str, ...] = ()  # what a user must know about the way the source was read, one sentence each


class Form(NamedTuple):
    """The form in which the authors of a set publish it."""

    what: str
    marks: tuple[str, ...]  # patterns of files; a folder that has one of them has this form
    read: Callable[[Path, Path], PictureSet]  # takes the source, and the folder with a mark: the source, or one in it


@lru_cache(maxsize=4)
def read_set(source: Path) -> PictureSet:
    """Return what a source lists; raises SourceError if it has several forms or none, or cannot be read."""
    if not source.is_dir():
        return _parquet(source)
    marked: dict[Form, Path] = {}  # the first folder with a mark of each form that is there
    for folder in _with_subfolders(source):
        for form in FORMS:
            if form not in marked and any(path.is_file() for mark in form.marks for path in folder.glob(mark)):
                marked[form] = folder
    if len(marked) == 1:
        [(form, folder)] = marked.items()
        return form.read(source, folder)
    if not marked and any(source.rglob("*.parquet")):
        return _parquet(source)
    reason, expected = "several-forms", "the files of one dataset"
    if not marked:
        reason, expected = "unknown-form", f"Parquet files, or {', or '.join(form.what for form in FORMS)}"
    found = " and ".join(form.what for form in FORMS if form in marked) or "none of them"
    raise source_error(reason, expected, found, source.name, "give the folder of one dataset")


def _with_subfolders(folder: Path) -> list[Path]:
    # a user may give the folder into which an archive was unpacked, which then holds one more folder
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        inner = []
    return [folder, *inner]


def _needed(folder: Path, *names: str, todo: str) -> Path:
    for name in names:
        if found := mt.readers.file_inside(folder, name):
            return found
    expected = f"the file {' or '.join(names)} in the folder"
    raise source_error("missing-file", expected, "no such file", folder.name, todo)


def _no_label(found: object, first: int, count: int) -> mt.Fault:
    """Return the fault of a picture without a class; there are `count` classes, or an unknown number (0)."""
    expected = f"a whole number from {first} to {first + count - 1}" if count else f"a whole number from {first}"
    said, todo = ascii(found)[:200], "give the picture a label, or take it out of the split"
    return mt.Fault("no-label", expected, "nothing" if found is None else said, field="label", todo=todo)


def _unknown_class(found: str, expected: str) -> mt.Fault:
    return mt.Fault("unknown-class", expected, ascii(found)[:200], todo=_CORRECT)


def _listed(entries: Iterable[Entry], folder: Path) -> tuple[Entry, ...]:
    """Return entries whose pictures are files below a folder. A picture that cannot be found, or that is outside the
    folder, has a fault. Of a picture that is listed several times, only the first is usable, and none if its classes
    differ.
    """
    files_of = cache(partial(_files_of, folder))
    checked = [entry if entry.fault else replace(entry, fault=_path_fault(entry, files_of)) for entry in entries]
    classes = Counter(picture for picture, _ in {(entry.picture, entry.label) for entry in checked if not entry.fault})
    seen = set()
    for index, entry in enumerate(checked):
        if entry.fault:
            continue
        if (count := classes[entry.picture]) > 1:
            fault = mt.Fault("image-of-two-classes", "one class for each picture", f"{count} classes", todo=_CORRECT)
            checked[index] = replace(entry, fault=fault)
        elif entry.picture in seen:
            found, todo = f"{entry.picture} again", "take it out of the list once"
            checked[index] = replace(entry, fault=mt.Fault("image-twice", "each picture once", found, todo=todo))
        seen.add(entry.picture)
    return tuple(checked)


def _path_fault(entry: Entry, files_of: Callable[[PurePosixPath], Mapping[str, bool] | None]) -> mt.Fault | None:
    """Return what is wrong with the path of a picture; None if there is such a file."""
    name = str(entry.picture)
    if not is_unicode(name):
        return mt.Fault("invalid-unicode", "a name in UTF-8", ascii(name)[:200], todo=_CORRECT)
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        expected = "a path below the folder of the pictures"
        return mt.Fault("path-outside-source", expected, name[:200], todo=_CORRECT)
    files = files_of(path.parent)
    if files is None or path.name not in files:
        found = "no such file" if files is not None else f"no folder {str(path.parent)[:200]}"
        todo = "complete the download of the pictures, or correct the list"
        return mt.Fault("missing-image", f"the picture {name[:200]}", found, todo=todo)
    if not files[path.name]:
        expected, todo = "a picture in the folder of the source", "copy the picture into the folder"
        return mt.Fault("path-outside-source", expected, "a link out of it", todo=todo)
    return None


def _files_of(root: Path, folder: PurePosixPath) -> Mapping[str, bool] | None:
    """Return whether each file of a folder is inside the root; None if there is no such folder."""
    path = root / folder
    try:
        with os.scandir(path) as entries:
            has_links = path.resolve() != root.resolve() / folder
            return {
                file.name: not (has_links or file.is_symlink()) or bool(mt.readers.file_inside(root, path / file.name))
                for file in entries
                if file.is_file()
            }
    except (OSError, ValueError):  # it is no folder, or its name is not possible
        return None


# --- Food-101 ---------------------------------------------------------------------------------------------------------


def _food101(_: Path, folder: Path) -> PictureSet:
    """Read `images/<class>/<number>.jpg` as the lists in `meta/` have them.

    A list is an object such as `{"apple_pie": ["apple_pie/1005649"]}`, or a text with lines such as
    `apple_pie/1005649`. A class has the number of its place among the sorted classes, as in the Parquet files of the
    hub.
    """
    lists = []  # of each split: the file, and (class, `class/number`, place) of each picture
    for split in _SPLITS:
        todo = "give the folder that `food-101.tar.gz` unpacks to"
        file = _needed(folder, f"meta/{split}.json", f"meta/{split}.txt", todo=todo)
        rows: list[tuple[str, object, str]] = []
        if file.suffix == ".txt":
            for number, line in enumerate(mt.readers.text_lines(file, "a list of pictures"), 1):
                if line.strip():
                    rows.append((line.rpartition("/")[0], line, f"line {number}"))
        else:
            expected = "an object with a list of pictures for each class"
            data = mt.readers.load_json(file, expected)
            if not isinstance(data, dict) or not all(isinstance(items, list) for items in data.values()):
                raise source_error("unreadable-source", expected, "something else", file.name, _AGAIN)
            for kind, items in data.items():
                rows += [(kind, item, f"{kind!a}, item {number}") for number, item in enumerate(items)]
        lists.append((file.name, rows))
    names = sorted({kind for _, rows in lists for kind, _, _ in rows})
    labels = {name: label for label, name in enumerate(names)}

    def entries(file: str, rows: Iterable[tuple[str, object, str]]) -> Iterator[Entry]:
        for kind, row, place in rows:
            inner = row.strip().rpartition("/")[0] if isinstance(row, str) else ""
            is_known = inner and inner == kind
            fault = None if is_known else _unknown_class(str(row), "`class/number`, with this class")
            yield Entry(f"images/{str(row).strip()}.jpg", labels.get(inner), file, place, fault)

    shown, asked = (_listed(entries(file, rows), folder) for file, rows in lists)
    return PictureSet(tuple(names), {"exemplars": shown, "tests": asked}, folder=folder)


# --- SUN397 -----------------------------------------------------------------------------------------------------------

_SUN397_CLASSES = "ClassName.txt"
_SUN397_LISTS = ("Training_[0-9][0-9].txt", "Testing_[0-9][0-9].txt")
_SCENE = re.compile(r"/?[a-z]/(.+)")


def scene_name(name: str) -> str:
    """Return the name of a class that is given as a path.

    >>> scene_name("/a/apartment_building/outdoor"), scene_name("airplane cabin")
    ('apartment building outdoor', 'airplane cabin')
    """
    path = _SCENE.fullmatch(name)
    return re.sub(r"[/_]", " ", path[1]) if path else name


def _sun397(source: Path, _: Path) -> PictureSet:
    """Read pictures such as `a/abbey/sun_aaa.jpg` as the first complete partition lists them.

    A partition is a pair of lists, `Training_01.txt` and `Testing_01.txt`, with lines such as `/a/abbey/sun_aaa.jpg`.
    The lists, `ClassName.txt`, and the folders of the pictures may each lie in the source or in a folder in it.
    """
    folders = _with_subfolders(source)
    inside = {
        path.name: path
        for folder in reversed(folders)
        for pattern in _SUN397_LISTS
        for path in folder.glob(pattern)
        if mt.readers.file_inside(folder, path.name)
    }
    pairs = [(f"Training_{number}.txt", f"Testing_{number}.txt") for number in sorted({name[-6:-4] for name in inside})]
    pair = next((pair for pair in pairs if all(name in inside for name in pair)), None)
    if not pair:
        found, todo = ", ".join(sorted(inside)), "add both lists of a partition, from `Partitions.zip`"
        expected = "`Training_01.txt` and `Testing_01.txt`"
        raise source_error("missing-split", expected, found or "no list of a partition", source.name, todo)
    home = next((folder for folder in folders if (folder / _SUN397_CLASSES).is_file()), source)
    file = _needed(home, _SUN397_CLASSES, todo="take it from `SUN397.tar.gz`")
    kinds = [line.strip().strip("/") for line in mt.readers.text_lines(file, "a list of classes") if line.strip()]
    labels = {kind: label for label, kind in enumerate(kinds)}
    is_folder = os.path.isdir  # `Path.is_dir` raises an error for a name that is too long
    below = next((folder for folder in folders if any(is_folder(folder / kind) for kind in kinds)), source)

    def entries(file: Path) -> Iterator[Entry]:
        for number, line in enumerate(mt.readers.text_lines(file, "a list of pictures"), 1):
            if name := line.strip().removeprefix("/"):
                label = labels.get(name.rpartition("/")[0])
                fault = _unknown_class(name, f"a picture of a class in {_SUN397_CLASSES}") if label is None else None
                path = PurePosixPath(below.relative_to(source), name)
                yield Entry(str(path), label, file.name, f"line {number}", fault)

    shown, asked = (_listed(entries(inside[name]), source) for name in pair)
    notes = (f"{source.name}: partition {pair[0][-6:-4]} of SUN397 is used",)
    return PictureSet(tuple(map(scene_name, kinds)), {"exemplars": shown, "tests": asked}, folder=source, notes=notes)


# --- Stanford Cars ----------------------------------------------------------------------------------------------------

_CARS_NAMES = "cars_meta.mat"
_CARS_LISTS = {"train": "cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}
MAX_BYTES = 16 * 1024 * 1024  # of a file of the devkit; a struct of Stanford Cars takes about 350 bytes
_SECONDS, _MEMORY = 60, 2 * 1024**3  # the limits of the process that reads such a file


def _cars(_: Path, folder: Path) -> PictureSet:
    """Read `cars_train/00001.jpg` and `cars_test/00001.jpg` as the devkit annotates them, in MATLAB's format.

    Each list has an array of structs `annotations`, with the fields `fname` and `class`, a number from 1. The names of
    the classes are `class_names` of `cars_meta.mat`. The files are in `devkit/` or beside it.
    """

    def variable(file: str, name: str, expected: str, of: type) -> list[object]:
        todo = "give the folder with the devkit; `cars_test_annos_withlabels.mat` is a download of its own"
        value = read_variable(_needed(folder, f"devkit/{file}", file, todo=todo), name)
        if not isinstance(value, list) or not all(isinstance(item, of) for item in value):
            raise source_error("unreadable-source", expected, "something else", file, _AGAIN)
        return value

    names = [str(name) for name in variable(_CARS_NAMES, "class_names", "a cell array of names", str)]

    def entries(split: str) -> Iterator[Entry]:
        file = _CARS_LISTS[split]
        for number, row in enumerate(variable(file, "annotations", "an array of structs", object)):
            name, label = (row.get("fname"), row.get("class")) if isinstance(row, dict) else (None, None)
            picture, place = f"cars_{split}/{name}", f"annotation {number}"
            if not isinstance(name, str) or not name or "/" in name:
                expected, todo = "the name of a file", "correct the devkit, or download it again"
                found = ascii(name)[:200]
                fault = mt.Fault("missing-or-mistyped-field", expected, found, field="fname", todo=todo)
                yield Entry(picture, None, file, place, fault)
            elif not isinstance(label, int | float) or label not in range(1, len(names) + 1):
                yield Entry(picture, None, file, place, _no_label(label, 1, len(names)))
            else:
                yield Entry(picture, int(label) - 1, file, place)

    shown, asked = (_listed(entries(split), folder) for split in _SPLITS)
    return PictureSet(tuple(names), {"exemplars": shown, "tests": asked}, folder=folder)


def read_variable(path: Path, name: str) -> object:
    """Return the value of a variable of a MATLAB file, as `matlab.py` prints it; raises SourceError if SciPy is not
    installed or cannot read the file within the limits, or there is no such variable.
    """
    expected, todo = "a MATLAB file of version 5", _AGAIN
    try:
        import scipy  # noqa: F401
    except ImportError as error:
        todo = 'reading .mat needs scipy: pip install "mmlongbench[matlab]"'
        raise source_error("unreadable-source", "the package scipy", "nothing", path.name, todo) from error
    program = [sys.executable, "-P", str(Path(__file__).with_name("matlab.py")), str(path), name, str(_MEMORY)]
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise OSError(f"no file of at most {MAX_BYTES} bytes")
        done = subprocess.run(program, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        found = str(error)
        if isinstance(error, subprocess.TimeoutExpired):
            found = f"more than {_SECONDS} s to read it"
        elif isinstance(error, subprocess.CalledProcessError):  # ended by a signal, it says nothing
            found = " ".join(error.stderr.split())[-200:] or f"what ends SciPy ({error.returncode})"
        raise source_error("unreadable-source", expected, found, path.name, todo) from error
    value: object = json.loads(done.stdout)
    if value == {"missing": name}:
        raise source_error("unreadable-source", f"a variable {name}", "none", path.name, "give the file of the devkit")
    return value


# --- Parquet files ----------------------------------------------------------------------------------------------------

_TESTS = ("test", "validation", "valid", "val")  # names of a split of tests; the first one that there is counts
_table = lru_cache(maxsize=64)(open_parquet)


@dataclass(frozen=True, slots=True)
class Cell:
    """A picture in a table; like a file, it has a name and bytes."""

    file: Path
    group: int
    row: int  # inside the group
    name: str

    def read_bytes(self) -> bytes:
        """Return the bytes of the picture; none for an empty cell."""
        import pyarrow as pa

        try:
            value = _pictures(self.file, self.group)[self.row].as_py()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise OSError(f"{self.file.name}: {error}") from error
        found = value.get("bytes") if isinstance(value, dict) else value
        return found if isinstance(found, bytes) else b""


@lru_cache(maxsize=8)  # so many row groups are in memory at a time
def _pictures(file: Path, group: int) -> "pa.Array[pa.Scalar[pa.DataType]]":
    return _table(file).read_row_group(group, ["image"]).column("image").combine_chunks()


def _parquet(source: Path) -> PictureSet:
    """Read the columns `image` and `label` of Parquet files whose names contain the name of the split.

    Labels are whole numbers; their names are in the file's metadata. Exemplars come from the split `train`, tests from
    `test` or, without it, from `validation`. Other splits and columns are not read.
    """
    root, tables = source.parent, [source]
    if source.is_dir():
        root, tables = source, [file for file in mt.readers.visible_files(source) if file.suffix == ".parquet"]
    files: dict[str, list[Path]] = {}  # of each split; it is named by the file or by the nearest folder that names one
    for file in tables:
        parts = reversed(file.relative_to(root).parts)
        words = (word for part in parts for word in re.findall(r"[a-z]+", part.lower()))
        files.setdefault(next((word for word in words if word in ("train", *_TESTS)), ""), []).append(file)
    tests = next((name for name in _TESTS if name in files), "")
    if "train" not in files or not tests:
        found = ", ".join(sorted(filter(None, files))) or "none in the names of Parquet files"
        expected = "files of a split `train`, and of `test` or `validation`"
        raise source_error("missing-split", expected, found, source.name, "give a folder or file that has this split")
    splits = ("train", tests)
    names = [next(filter(None, map(_class_names, files[split])), ()) for split in splits]
    if all(names) and names[0] != names[1]:
        todo = "use two splits of the same dataset"
        raise source_error("two-lists-of-names", "the same classes in both splits", "others", source.name, todo)
    classes = names[0] or names[1]
    shown, asked = (tuple(row for file in files[split] for row in _table_rows(file, len(classes))) for split in splits)
    notes = (note for split in splits for note in missing_parts(split, files[split]))
    return PictureSet(classes, {"exemplars": shown, "tests": asked}, tests, notes=tuple(notes))


def _table_rows(file: Path, count: int) -> Iterator[Entry]:
    """Yield the rows of a file; `count` is the number of classes, or 0 if their names are not known."""
    import pyarrow as pa

    table = _table(file)
    schema = table.schema_arrow
    for column in ("image", "label"):
        if column not in schema.names:
            found, todo = ", ".join(schema.names), "give a file with this column"
            raise source_error("missing-column", f"a column {column}", found, file.name, todo)
    if not (kind := str(schema.field("label").type)).startswith(("int", "uint")):
        todo = "write the labels as integers, or leave out the list of names"
        raise source_error("labels-not-integers", "a column of integers", kind, file.name, todo, "label")
    try:
        labels = table.read(["label"]).column("label").to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        found, todo = str(error)[:200], "download the file again"
        raise source_error("unreadable-source", "labels that can be read", found, file.name, todo) from error
    sizes = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
    cells = [(group, row) for group, size in enumerate(sizes) for row in range(size)]
    for number, ((group, row), label) in enumerate(zip(cells, labels, strict=True)):
        place = f"row {number}"
        is_label = label is not None and label >= 0 and (label < count or not count)
        fault = None if is_label else _no_label(label, 0, count)
        yield Entry(Cell(file, group, row, f"{file.name}, {place}"), label, file.name, place, fault)


def _class_names(file: Path) -> tuple[str, ...]:
    """Return the names of the classes from a schema that `datasets` has written."""
    try:
        metadata = _table(file).schema_arrow.metadata or {}
        label = json.loads(metadata[b"huggingface"])["info"]["features"]["label"]
        names = tuple(scene_name(str(name)) for name in label.get("names") or ())
        "".join(names).encode()
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):  # a lone surrogate is a ValueError
        return ()
    return names


FORMS = (
    Form(
        "Food-101's folders `images/` and `meta/`",
        ("meta/train.json", "meta/train.txt", "meta/test.json", "meta/test.txt"),
        _food101,
    ),
    Form(
        f"SUN397's folders of pictures with `{_SUN397_CLASSES}` and a partition (`Training_01.txt`, `Testing_01.txt`)",
        (_SUN397_CLASSES, *_SUN397_LISTS),
        _sun397,
    ),
    Form(
        "Stanford Cars' folders `cars_train/`, `cars_test/` and `devkit/`",
        tuple(f"{place}{file}" for file in (_CARS_NAMES, *_CARS_LISTS.values()) for place in ("devkit/", "")),
        _cars,
    ),
)

"""Stanford Cars as its authors published it: `cars_train/00001.jpg`, `cars_test/00001.jpg`, and a devkit in MATLAB's
format.

`cars_train_annos.mat` and `cars_test_annos_withlabels.mat` have an array of structs `annotations`, with the fields
`fname` and `class`, a number from 1. `cars_meta.mat` has the names of the classes, `class_names`. The files are in
`devkit/` or beside it.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from builders.many_shot.splits import Entry, Splits, listed, needed, no_label, source_below
from mmlongbench.task import Fault, SourceError

FORM = "Stanford Cars' folders `cars_train/`, `cars_test/` and `devkit/`"
_ANNOTATIONS = {"train": "cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}
_META = "cars_meta.mat"
_DEVKIT = "devkit/"
_HAVE = "give the folder with the devkit; `cars_test_annos_withlabels.mat` is a download of its own"
MAX_BYTES = 16 * 1024 * 1024
"""The maximum size of a file of the devkit; a struct of Stanford Cars takes about 350 bytes."""
_SECONDS = 60
_MEMORY = 2 * 1024**3
"""The limits of the process that reads a file of the devkit."""


def find(folder: Path) -> Path | None:
    """Return the folder that has a file of the devkit; None if the source has another form."""
    names = (_META, *_ANNOTATIONS.values())
    return source_below(folder, *(place + name for name in names for place in (_DEVKIT, "")))


def read(folder: Path) -> Splits:
    """Return the splits that the devkit annotates.

    Raises:
        SourceError: a file of the devkit is missing or cannot be read.

    """
    names = _names(needed(folder, _DEVKIT + _META, _META, todo=_HAVE))
    shown, asked = (
        listed(split, names, _entries(needed(folder, _DEVKIT + file, file, todo=_HAVE), split, len(names)), folder)
        for split, file in _ANNOTATIONS.items()
    )
    return Splits(shown, asked)


def _names(file: Path) -> tuple[str, ...]:
    found = read_variable(file, "class_names")
    names = tuple(name for name in found if isinstance(name, str)) if isinstance(found, list) else ()
    if not isinstance(found, list) or len(names) < len(found):
        raise SourceError(
            Fault("unreadable-source", "a cell array of names", "something else", file.name, todo="download it again")
        )
    return names


def _entries(file: Path, split: str, count: int) -> Iterator[Entry]:
    rows = read_variable(file, "annotations")
    if not isinstance(rows, list):
        raise SourceError(
            Fault("unreadable-source", "an array of structs", "something else", file.name, todo="download it again")
        )
    for number, row in enumerate(rows):
        name, label = (row.get("fname"), row.get("class")) if isinstance(row, dict) else (None, None)
        fault = None
        if not isinstance(name, str) or not name or "/" in name:
            todo = "correct the devkit, or download it again"
            fault = Fault(
                "missing-or-mistyped-field", "the name of a file", ascii(name)[:200], field="fname", todo=todo
            )
        elif not isinstance(label, int | float) or label not in range(1, count + 1):
            fault = no_label("nothing" if label is None else ascii(label)[:200], 1, count)
        place = f"annotation {number}"
        yield Entry(f"cars_{split}/{name}", int(label) - 1 if label and not fault else None, file.name, place, fault)


def read_variable(path: Path, name: str) -> object:
    """Return the value of a variable of a MATLAB file, as `matlab.py` prints it.

    Raises:
        SourceError: SciPy is not installed or cannot read the file within the limits, or there is no such variable.

    """
    expected, todo = "a MATLAB file of version 5", "download it again"
    try:
        import scipy  # noqa: F401
    except ImportError as error:
        todo = 'reading .mat needs scipy: pip install "mmlongbench[matlab]"'
        raise SourceError(Fault("unreadable-source", "the package scipy", "nothing", path.name, todo=todo)) from error
    program = [sys.executable, "-P", str(Path(__file__).with_name("matlab.py")), str(path), name, str(_MEMORY)]
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise OSError(f"no file of at most {MAX_BYTES} bytes")
        done = subprocess.run(program, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except subprocess.TimeoutExpired as error:
        found = f"more than {_SECONDS} s to read it"
        raise SourceError(Fault("unreadable-source", expected, found, path.name, todo=todo)) from error
    except OSError as error:
        raise SourceError(Fault("unreadable-source", expected, str(error), path.name, todo=todo)) from error
    except subprocess.CalledProcessError as error:  # ended by a signal, it says nothing
        found = " ".join(error.stderr.split())[-200:] or f"what ends SciPy ({error.returncode})"
        raise SourceError(Fault("unreadable-source", expected, found, path.name, todo=todo)) from error
    found = json.loads(done.stdout)
    if found == {"missing": name}:
        todo = "give the file of the devkit"
        raise SourceError(Fault("unreadable-source", f"a variable {name}", "none", path.name, todo=todo))
    return found

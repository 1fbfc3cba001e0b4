"""Prints a variable of a MATLAB file as JSON. It runs as a process of its own, `python matlab.py FILE VARIABLE MEMORY`,
because SciPy trusts such files: a file of 200 bytes takes 2 GB of memory, and one with nested cells ends the process.

An array of structs becomes a list of objects, a cell array a list, an array of characters a text, and an array of
numbers a list, or a number if it has one element. Arrays of other kinds are null.
"""

import json
import sys
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.io


def _plain(value: Any) -> object:  # noqa: ANN401  (an array of NumPy, or of another class of SciPy)
    kind = value.dtype.kind if isinstance(value, np.ndarray) else ""
    if kind == "V":
        return [{name: _plain(row[name]) for name in value.dtype.names} for row in value.ravel("F")]
    if kind == "O":
        return [_plain(cell) for cell in value.ravel("F")]
    if kind == "U" and value.size < 2:
        return "".join(value.ravel())
    if kind in ("b", "i", "u", "f"):
        return value.item() if value.size == 1 else value.ravel("F").tolist()
    return None


def _main(path: str, name: str, memory: int) -> None:
    with suppress(ImportError):  # Windows has only the limit of time
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        found = scipy.io.loadmat(path, variable_names=[name])
        sys.stdout.write(json.dumps(_plain(found[name]) if name in found else {"missing": name}))
    except Exception as error:  # noqa: BLE001  (SciPy raises errors of many kinds for a broken file)
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

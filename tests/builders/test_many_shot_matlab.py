"""MATLAB files are read as SciPy reads them; files that would make SciPy crash or take all memory are refused."""

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from class_sets import annotations, class_names, save_mat
from hypothesis import given
from hypothesis import strategies as st
from mutated import changed_bytes, fuzzing, refusal_or_none

from builders.many_shot.matlab import MAX_BYTES, read_variable
from mmlongbench.task import SourceError

HEADER = b"MATLAB 5.0 MAT-file, drawn".ljust(124) + struct.pack("<HH", 0x100, 0x4D49)
VALUES = {
    "annotations": annotations([(f"{n:05}.jpg", np.uint8(1 + n % 196)) for n in range(300)]),
    "class_names": class_names(["AM General Hummer SUV 2000", "Ram C/V Cargo Van Minivan 2012", "Škoda \u20ac"]),
    "numbers": np.array([[1.5, 2.0, -3.0]]),
    "one": np.int16(-7),
    "empty": np.zeros((0, 0)),
}


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def array(kind: int, sizes: tuple[int, ...], *parts: bytes, name: bytes = b"x") -> bytes:
    head = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack(f"<{len(sizes)}i", *sizes))
    return element(14, head + element(1, name) + b"".join(parts))


def nested(levels: int) -> bytes:
    """Cells in cells, which end SciPy's process from about 20,000 levels on."""
    data = array(6, (1, 1), element(9, struct.pack("<d", 1)))
    heads = [element(6, struct.pack("<II", 1, 0)) + element(5, struct.pack("<2i", 1, 1)) + element(1, b"x")] * levels
    parts, size = [data], len(data)
    for head in heads:
        size += len(head)
        parts.append(struct.pack("<II", 14, size) + head)
        size += 8
    return b"".join(reversed(parts))


def packed(data: bytes) -> bytes:
    found = zlib.compress(data)
    return struct.pack("<II", 15, len(found)) + found


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "another file": lambda: b"\x89PNG" * 100,
    "the header alone": lambda: HEADER,
    "version 7.3": lambda: b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<HH", 0x200, 0x4D49) + b"\x89HDF",
    "version 4": lambda: struct.pack("<5i", 0, 2**31 - 1, 2**31 - 1, 0, 2) + b"x\0",
    "9 levels": lambda: HEADER + nested(8),
    "100,000 levels": lambda: HEADER + nested(100_000),
    "cells that are not there": lambda: HEADER + array(1, (1, 2**31 - 1)),
    "structs that are not there": lambda: (
        HEADER + array(2, (1, 2**31 - 1), element(5, struct.pack("<i", 32)), element(1, b"fname".ljust(32, b"\0")))
    ),
    "fields of no bytes": lambda: HEADER + array(2, (1, 1), element(5, struct.pack("<i", 0)), element(1, b"fname")),
    "no dimensions": lambda: HEADER + array(6, (), element(9, bytes(8))),
    "a size beyond the end": lambda: HEADER + struct.pack("<II", 14, 2**31) + bytes(64),
    "a text in no encoding": lambda: HEADER + array(4, (1, 2), element(9, bytes(8))),
    "a broken text": lambda: HEADER + array(4, (1, 2), element(16, b"\xff\xfe")),
    "numbers of no type": lambda: HEADER + array(6, (1, 1), element(14, bytes(8))),
    "packed noise": lambda: HEADER + struct.pack("<II", 15, 40) + bytes(range(40)),
    "packed nothing": lambda: HEADER + packed(b""),
    "a bomb": lambda: HEADER + packed(array(6, (2**24, 1), element(9, bytes(MAX_BYTES + 1)))),
    "bombs": lambda: HEADER + packed(array(6, (2**20, 1), element(9, bytes(MAX_BYTES // 3)), name=b"y")) * 4,
}


@pytest.fixture(params=[True, False], ids=["packed", "plain"])
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return save_mat(tmp_path / "a.mat", is_packed=request.param, **VALUES)


def test_structs_cells_texts_and_numbers_are_read(file: Path) -> None:
    rows = read_variable(file, "annotations")
    box = {"bbox_x1": 39, "bbox_y1": 116, "bbox_x2": 569, "bbox_y2": 375}
    assert isinstance(rows, list)
    assert rows == [{**box, "class": 1 + n % 196, "fname": f"{n:05}.jpg"} for n in range(300)]
    assert read_variable(file, "class_names") == [
        "AM General Hummer SUV 2000",
        "Ram C/V Cargo Van Minivan 2012",
        "Škoda \u20ac",
    ]
    assert [read_variable(file, name) for name in ("numbers", "one", "empty")] == [[1.5, 2.0, -3.0], -7, []]


def test_the_structs_are_those_that_scipy_reads(file: Path) -> None:
    found: Any = scipy.io.loadmat(file, squeeze_me=True)["annotations"]
    rows: Any = read_variable(file, "annotations")
    assert [(row["fname"], row["class"]) for row in rows] == [
        (str(each["fname"]), int(each["class"])) for each in found
    ]


def test_numbers_that_matlab_saves_in_fewer_bytes_and_short_elements_are_read(tmp_path: Path) -> None:
    """MATLAB saves a double such as 14 as one byte, in an element of eight bytes together with its type and size."""
    short = struct.pack("<HHB3x", 2, 1, 14)
    big = b"MATLAB 5.0".ljust(124) + struct.pack(">HH", 0x100, 0x4D49)
    (tmp_path / "a.mat").write_bytes(HEADER + array(6, (1, 1), short))
    assert read_variable(tmp_path / "a.mat", "x") == 14
    flags, sizes = struct.pack(">IIII", 6, 8, 6, 0), struct.pack(">IIii", 5, 8, 1, 1)
    body = flags + sizes + struct.pack(">HHc3x", 1, 1, b"x") + struct.pack(">HHB3x", 1, 2, 14)
    (tmp_path / "b.mat").write_bytes(big + struct.pack(">II", 14, len(body)) + body)
    assert read_variable(tmp_path / "b.mat", "x") == 14


@pytest.mark.parametrize("kind", ["sparse", "complex", "several rows", "object"])
def test_arrays_of_other_kinds_are_none(kind: str, tmp_path: Path) -> None:
    import scipy.sparse

    found = {
        "sparse": scipy.sparse.csc_matrix(np.eye(3)),
        "complex": np.array([1 + 2j]),
        "several rows": np.array(["ab", "cd"]),
    }
    path = save_mat(tmp_path / "a.mat", x=found.get(kind, 1))
    if kind == "object":
        path.write_bytes(HEADER + array(17, (1, 1)))
    assert read_variable(path, "x") is None


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(HOSTILE[kind]())
    with pytest.raises(
        SourceError, match=r"^a\.mat: unreadable-source: expected .*; (download it again|give the file)"
    ):
        read_variable(path, "x")


def test_a_file_above_the_size_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.mat").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SourceError, match=f"more than {MAX_BYTES} bytes"):
        read_variable(tmp_path / "a.mat", "x")


def test_a_missing_variable_and_a_missing_file_are_named(tmp_path: Path) -> None:
    path = save_mat(tmp_path / "a.mat", x=1)
    with pytest.raises(SourceError, match=r"a\.mat: unreadable-source: expected a variable annotations, found none"):
        read_variable(path, "annotations")
    with pytest.raises(SourceError, match=r"none\.mat"):
        read_variable(tmp_path / "none.mat", "x")


SMALL = {"annotations": annotations([("00001.jpg", np.uint8(3)), ("00002.jpg", 2.0)]), "names": class_names(["a", "b"])}


def saved(*, is_packed: bool) -> bytes:
    file = io.BytesIO()
    scipy.io.savemat(file, SMALL, do_compression=is_packed)
    return file.getvalue()


@pytest.mark.parametrize("is_packed", [True, False])
@fuzzing(150)
@given(data=st.data())
def test_a_changed_file_is_read_or_refused(is_packed: bool, tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(changed_bytes(data.draw, saved(is_packed=is_packed)))
    with refusal_or_none("a.mat"):
        read_variable(path, "annotations")

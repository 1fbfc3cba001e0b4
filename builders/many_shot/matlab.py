"""Reads a variable of a MATLAB file (version 5, which MATLAB writes since 1996): structs, cells, texts and numbers.

SciPy reads such files too, but it trusts them: with SciPy 1.17, a file of a megabyte with nested cells ends the
process, and a file of 200 bytes takes 2 GB of memory. Here every size is compared with the bytes that are there.

A file is a header of 128 bytes and then elements: a type, a size and data. An array is an element whose data are
elements too: flags, dimensions, name, and what the kind of array needs (MathWorks, "MAT-File Format", version 5).
"""

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from mmlongbench.task import Fault, SourceError, read_whole

MAX_BYTES = 16 * 1024 * 1024
"""The maximum size of a file in bytes, packed and unpacked; a struct of Stanford Cars takes about 350 bytes."""
_MAX_DEPTH = 8
"""The maximum nesting of arrays; the devkit of Stanford Cars has two levels."""
_HEADER = 128
_ARRAY, _PACKED = 14, 15
_CELL, _STRUCT, _CHAR = 1, 2, 4
_NUMBERS = range(6, 16)
_COMPLEX = 0x08
_FORMATS = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}
"""The format of `struct` for each type of numbers."""
_ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}
"""The encoding of each type of texts."""


def read_variable(path: Path, name: str) -> object:
    """Return the value of a variable.

    An array of structs is a list of dicts, a cell array is a list, an array of characters is a text, and an array of
    numbers is a list, or a number if it has one element. Arrays of other kinds are None.

    Raises:
        SourceError: the file is no MATLAB file of version 5, is broken or too large, or has no such variable.

    """
    expected = "a MATLAB file of version 5"
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        for data, order in _variables(read_whole(path, expected)):
            if _name(data, order) == name:
                return _array(data, order, 1)
    except (ValueError, struct.error, zlib.error, OSError) as error:
        found = str(error) or "a file that ends early"
        raise SourceError(Fault("unreadable-source", expected, found, path.name, todo="download it again")) from error
    raise SourceError(
        Fault("unreadable-source", f"a variable {name}", "none", path.name, todo="give the file of the devkit")
    )


def _variables(data: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield (data, byte order) of the array of each variable."""
    order = {b"IM": "<", b"MI": ">"}.get(data[_HEADER - 2 : _HEADER])
    version = data[_HEADER - 4 : _HEADER - 2]
    if order is None or version not in (b"\x00\x01", b"\x01\x00"):
        found = "version 7.3" if data.startswith(b"MATLAB 7.3") else "something else"
        raise ValueError(found)
    left = MAX_BYTES
    for kind, part in _elements(data[_HEADER:], order):
        if kind == _PACKED:
            unpacking = zlib.decompressobj()
            part = unpacking.decompress(part, left + 1)
            left -= len(part)
            if left < 0:
                raise ValueError(f"variables that unpack to more than {MAX_BYTES} bytes")
            kind, part = next(_elements(part, order), (0, b""))
        if kind == _ARRAY:
            yield part, order


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield (type, data) of each element. An element of at most four bytes may have its type, its size and its data in
    eight bytes together.
    """
    at = 0
    while at < len(data):
        (first,) = struct.unpack_from(f"{order}I", data, at)
        kind, size = first & 0xFFFF, first >> 16
        start = end = at + 4
        if size:
            end = at + 8
        else:
            (size,) = struct.unpack_from(f"{order}I", data, start)
            start, padding = at + 8, 0 if kind == _PACKED else -size % 8
            end = start + size + padding
        if start + size > min(len(data), end):
            raise ValueError(f"an element of {size} bytes where {max(0, len(data) - start)} are left")
        yield kind, data[start : start + size]
        at = end


def _name(data: bytes, order: str) -> str:
    *_, (_, name) = islice(_elements(data, order), 3)  # after flags and dimensions
    return name.decode("latin-1")


def _array(data: bytes, order: str, depth: int) -> object:
    """Return the value of an array."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"arrays in more than {_MAX_DEPTH} levels")
    if not data:  # an empty array may be left out
        return []
    (_, flags), (_, dimensions), _, *rest = _elements(data, order)
    word = struct.unpack_from(f"{order}I", flags)[0]
    kind, is_complex = word & 0xFF, bool(word >> 8 & _COMPLEX)
    sizes = struct.unpack(f"{order}{len(dimensions) // 4}i", dimensions)
    if len(sizes) < 2:
        raise ValueError(f"an array of {len(sizes)} dimensions")
    if kind in (_CELL, _STRUCT):
        return _container(kind, sizes, rest, order, depth)
    if kind == _CHAR and len(rest) == 1 and sizes[0] <= 1:
        return _text(*rest[0], order)
    if kind in _NUMBERS and len(rest) == 1 and not is_complex:
        return _numbers(*rest[0], order)
    return None


def _container(
    kind: int, sizes: Sequence[int], rest: Sequence[tuple[int, bytes]], order: str, depth: int
) -> list[object]:
    """Return the values of a cell array, or of an array of structs as dicts by the names of the fields."""
    width, names = 1, b"\0"
    if kind == _STRUCT:
        (_, length), (_, names), *rest = rest
        (width,) = struct.unpack(f"{order}i", length)
        if width < 1:
            raise ValueError(f"names of fields in {width} bytes")
    count, each = math.prod(sizes), len(names) // width
    if count * each != len(rest) or any(part != _ARRAY for part, _ in rest):
        raise ValueError(f"{len(rest)} values in an array of {count} with {each} each")
    values = [_array(part, order, depth + 1) for _, part in rest]
    if kind == _CELL or not values:
        return values
    fields = [names[at : at + width].split(b"\0")[0].decode("latin-1") for at in range(0, each * width, width)]
    return [dict(zip(fields, values[at : at + each], strict=True)) for at in range(0, len(values), each)]


def _text(kind: int, data: bytes, order: str) -> str:
    encoding = _ENCODINGS.get(kind)
    if encoding is None:
        raise ValueError(f"a text of type {kind}")
    return data.decode(f"{encoding}-{'le' if order == '<' else 'be'}" if encoding == "utf-16" else encoding)


def _numbers(kind: int, data: bytes, order: str) -> object:
    letter = _FORMATS.get(kind)
    if letter is None:
        raise ValueError(f"numbers of type {kind}")
    found = struct.unpack(f"{order}{len(data) // struct.calcsize(letter)}{letter}", data)
    return found[0] if len(found) == 1 else list(found)

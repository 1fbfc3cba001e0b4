"""The items of a release: one row for each unit of each example, in Parquet files named like the public files.

What cannot be read raises a `ReleaseError`: a damaged file, a row that is no valid item (`NoItemError`), or more rows
of an example than it can have.
"""

import struct
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NotRequired, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from mmlongbench.errors import ReleaseError
from mmlongbench.release.layout import ITEMS, as_utf8

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_Row: TypeAlias = dict[str, object]
_Key: TypeAlias = tuple[object, object]
"""The id and the placement of a row, in the form that the file has."""
_AHEAD = 64
"""The items of at most so many examples are searched for the next one: so many neighbours may be missing from the
public file, or may have a record that cannot be read."""
_ROWS_AHEAD = 16
"""How many times the rows of the longest possible example are held at most while the next one is searched for."""
_READ = 1024
_READ_FEW = 64 * 1024
"""How many rows are read at once if at most `_FEW` columns are read."""
_FEW = 3
_MAX_UNITS = 2
"""The maximum number of units per token of an example's length; units that cost nothing are rare."""
_MAX_ROW = 4096
"""The maximum size of a row of items, on average, in bytes; a row has ids, a path and numbers."""
_MAX_FIRST = 256 * 1024
"""The bytes that a file of items may always have, even with few rows."""
_MAX_TEXT = 16 * 1024
_TEXTS = ["id", "unit", "role", "inside", "image"]
_NUMBERS = ["placement", "position", "start", "text_tokens", "image_tokens"]


class Item(TypedDict):
    """One unit of one example. It is a dict, because a release has millions of units."""

    id: str
    placement: float | None
    position: int
    """Its position among the units of the example, from 0."""
    unit: str
    role: str
    inside: NotRequired[str | None]
    """The ids of the needles inside the unit, separated by blanks; blanks and percent signs in the ids are escaped as
    in a URL."""
    image: str | None
    """The path of an image below `mmlb_image/`; None for a text, also for a text with crops of a page in it, whose
    paths the record has."""
    start: int
    """The tokens before the unit."""
    text_tokens: int
    image_tokens: int


class ItemColumns(TypedDict):
    """The units of one example, as a list for each column of `Item`; the position is the place in the lists. A column
    that has the same value for all of them may be that value.
    """

    id: str
    placement: float | None
    unit: list[str]
    role: list[str]
    inside: list[str] | str
    image: list[str | None] | None
    start: list[int]
    text_tokens: list[int]
    image_tokens: list[int] | int


_OF_AN_EXAMPLE = TypeAdapter(list[Item])


class NoItemError(ReleaseError):
    """A row of items is not valid; the other examples can be read."""


def _checked(rows: list[_Row]) -> list[Item]:
    try:
        return _OF_AN_EXAMPLE.validate_python(rows)
    except ValidationError as error:
        problem = error.errors()[0]
        row, *field = problem["loc"]
        raise NoItemError(f"unit {row}: {'.'.join(map(str, field))}: {problem['msg']}") from error


def items_path(root: Path, name: str) -> Path:
    """Return the path of the items of a public file; `name` is its path below `mmlb_data/`."""
    return root / ITEMS / Path(name).with_suffix(".parquet")


class ItemReader:
    """Reads the items of one public file, one example after another in the order of the file."""

    def __init__(self, root: Path, name: str, length: int, *, examples: int | None = None) -> None:
        """Read the items of a public file, which is named by its path below `mmlb_data/`.

        An example has at most twice as many units as its length has tokens; `examples`, the number of the file's
        examples, limits the rows that are read.
        """
        self._file = _in_order(root, name, length, examples)
        self._ahead: deque[tuple[_Key, list[_Row]]] = deque()
        self._most = _ROWS_AHEAD * _MAX_UNITS * length
        self._passed = ""

    def of(self, id: str, placement: float | None) -> Sequence[Item]:
        """Return the items of an example; empty if there are none. Call it in the order of the file's examples."""
        key = as_utf8(id), placement
        for place in range(_AHEAD):
            if place == len(self._ahead):
                held = sum(len(rows) for _, rows in self._ahead)
                group = next(self._file, None) if held < self._most else None
                if group is None:
                    break
                self._ahead.append(group)
            if self._ahead[place][0] == key:
                for _ in range(place):
                    (skipped, at), _ = self._ahead.popleft()
                    self._passed = self._passed or f"{skipped}, {at}"
                return _checked(self._ahead.popleft()[1])
        return ()

    def close(self) -> None:
        """Close the file of items; nothing can be read any more."""
        self._file.close()

    def left(self) -> str:
        """Return the first example whose items were not requested, as a text: id, placement. Empty if there is none."""
        keys = (key for key, _ in (*self._ahead, *self._file))
        return self._passed or next((f"{id}, {placement}" for id, placement in keys), "")


def items_in_order(root: Path, name: str, length: int) -> Iterator[tuple[str, float | None, list[Item]]]:
    """Yield (id, placement, items) of each example of a public file that has units, in the order of the file; nothing
    if the public file has no items. The items of one example are in memory at a time.
    """
    for _, rows in _in_order(root, name, length):
        items = _checked(rows)
        yield items[0]["id"], items[0]["placement"], items


def _in_order(
    root: Path, name: str, length: int, examples: int | None = None
) -> Generator[tuple[_Key, list[_Row]], None, None]:
    """Yield the rows of each example of a public file, in the order of the file; nothing if the file has no items."""
    path, most = items_path(root, name), _MAX_UNITS * length
    if not path.is_file():
        return
    with _items_table(path) as table:
        number = table.metadata.num_rows
        if examples is not None and number > (bound := most * examples):
            raise ReleaseError(f"{path.name}: {number:,} rows, {examples:,} examples have at most {bound:,}")
        units = (row for batch in _batches(table, path.name) for row in _rows(batch))
        for key, group in groupby(units, key=lambda row: (row["id"], row["placement"])):
            rows = list(islice(group, most + 1))
            if len(rows) > most:
                raise ReleaseError(f"{path.name}: {key[0]}, {key[1]}: more than {most:,} units")
            yield key, rows


def items_of_example(root: Path, name: str, length: int, id: str, placement: float | None) -> list[Item] | None:
    """Return the items of one example in the order of the file; None if the public file has no items (see
    `ItemReader`).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    path, most = items_path(root, name), _MAX_UNITS * length
    if not path.is_file():
        return None
    rows: list[_Row] = []
    # `pa.scalar` and `pa.array` would import pandas, if it is installed, which takes longer than to read the table
    text = as_utf8(id).encode()
    offsets = pa.py_buffer(struct.pack("=2i", 0, len(text)))
    wanted = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(text))[0]
    with _items_table(path) as table:
        for group in range(table.metadata.num_row_groups):
            ids = _batches(table, path.name, ("id",), [group])  # this column is small
            if not any(pc.any(pc.equal(batch["id"], wanted)).as_py() for batch in ids):
                continue
            for batch in _batches(table, path.name, groups=[group]):
                own = batch.filter(pc.equal(batch["id"], wanted))
                if own.num_rows:  # to unpack the texts of a batch takes long
                    rows += [row for row in _rows(own) if row["placement"] == placement]
                if len(rows) > most:
                    raise ReleaseError(f"{path.name}: {id}, {placement}: more than {most:,} units")
    return _checked(rows)


def keys_of_items(root: Path, name: str) -> list[tuple[str, float | None]] | None:
    """Return (id, placement) of each example that the items of a public file list, in the order of the file; None if
    the file has no items. Examples without units are not listed.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    path = items_path(root, name)
    if not path.is_file():
        return None
    keys: dict[_Key, None] = {}
    with _items_table(path) as table:
        for batch in _batches(table, path.name, ("id", "placement", "position")):
            is_later = cast("pa.BooleanArray", batch["position"].cast(pa.bool_()))  # without a scalar, as above
            keys.update(((row["id"], row["placement"]), None) for row in _rows(batch.filter(pc.invert(is_later))))
    return [(str(id), placement) for id, placement in keys if isinstance(placement, float | None)]


@contextmanager
def _items_table(path: Path) -> "Iterator[pq.ParquetFile]":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened:  # pyarrow takes no path that is not UTF-8
            table = pq.ParquetFile(opened, read_dictionary=_text_columns(opened, path.name))
            refuse_bomb(table, path.name, _MAX_FIRST, _MAX_ROW)
            yield table
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise ReleaseError(f"{path.name}: is no Parquet file of items: {type(error).__name__}; see verify") from error


def refuse_bomb(table: "pq.ParquetFile", name: str, first: int, row: int) -> None:
    """Refuse a table that unpacks to more than `first` bytes and, on average, `row` bytes a row."""
    meta = table.metadata
    size = sum(meta.row_group(number).total_byte_size for number in range(meta.num_row_groups))
    if size > (bound := first + meta.num_rows * row):
        raise ReleaseError(f"{name}: {size:,} bytes unpacked, {meta.num_rows:,} rows have at most {bound:,}")


def _text_columns(file: BinaryIO, name: str) -> list[str]:
    """Return the text columns of a table of items; refuse columns of other types."""
    import pyarrow.parquet as pq
    import pyarrow.types as types

    columns = []
    for field in pq.read_schema(file):
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        is_text = types.is_string(kind) or types.is_large_string(kind)
        is_number = types.is_integer(kind) or types.is_floating(kind)
        if field.name in _TEXTS and is_text:
            columns.append(field.name)
        is_known = is_text if field.name in _TEXTS else is_number
        if field.name in (*_TEXTS, *_NUMBERS) and not is_known and not types.is_null(kind):
            raise ReleaseError(f"{name}: {field.name} is {field.type}, expected a text or a number")
    return columns


def _batches(
    table: "pq.ParquetFile",
    file: str,
    columns: Sequence[str] = (*_TEXTS, *_NUMBERS),
    groups: list[int] | None = None,
) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of a table of items in batches, with these columns only, of all groups of rows or of some."""
    import pyarrow.compute as pc

    known = [name for name in table.schema_arrow.names if name in columns]
    checked: dict[str, tuple[tuple[object, ...], pa.StringArray]] = {}
    for batch in table.iter_batches(_READ if len(known) > _FEW else _READ_FEW, groups, columns=known):
        for name in batch.schema.names:
            coded = _coded(batch[name])
            if coded is None:
                continue
            texts = cast("pa.StringArray", coded.dictionary)  # `_text_columns` has checked this
            # Neighbouring batches share the memory of their texts, which are measured once. The texts are kept, so that
            # no others can come to the same place.
            memory = (len(texts), texts.offset, *(buffer and buffer.address for buffer in texts.buffers()))
            if name in checked and checked[name][0] == memory:
                continue
            checked[name] = memory, texts
            longest = pc.max(pc.binary_length(texts)).as_py() or 0
            if longest > _MAX_TEXT:
                raise ReleaseError(f"{file}: {name}: a text of {longest:,} bytes, at most {_MAX_TEXT:,} are read")
        yield batch


def _rows(batch: "pa.RecordBatch") -> Iterator[_Row]:
    """Yield the rows of a batch; equal texts share one object, so that a small file that repeats a text in every row
    needs little memory.
    """
    columns: list[list[object]] = []
    for name in batch.schema.names:
        coded = _coded(batch[name])
        if coded is None:
            columns.append(batch[name].to_pylist())
        else:
            texts = coded.dictionary.to_pylist()
            columns.append([None if at is None else texts[at] for at in coded.indices.to_pylist()])
    return (dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True))


def _coded(column: "pa.Array[Any]") -> "pa.DictionaryArray[Any, Any] | None":
    """Return a column that stores each different text once; None for any other column."""
    import pyarrow as pa

    return column if isinstance(column, pa.DictionaryArray) else None

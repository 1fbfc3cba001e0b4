"""The index of what is viewed: the rows of tables, and where the record and the units of each example begin.

Making it runs in a process of its own, because reading Parquet takes memory that a server should not keep. Reading it
takes pieces of files, never a whole one.
"""

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote, unquote

from pydantic import TypeAdapter, ValidationError

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.io.files import atomic_write, bounded_lines, write_whole
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.prompt import Image, Part, Prompt
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.items import Item, ItemReader
from mmlongbench.release.layout import DATA, as_utf8
from mmlongbench.release.lock import leads_out
from mmlongbench.task.file_formats import JSON_LINES
from mmlongbench.task.rows import Record
from mmlongbench.web.viewer.viewed import (
    Viewed,
    ViewedFile,
    as_text,
    cache_folder,
    example_of,
    key_of,
    open_viewed,
)

_MAX_ROWS = 60_000
"""The rows of tables that are in memory at a time; rows of other files are read again when they are needed."""
_MAX_TEXT = 400
"""The characters of a question or an answer that an index keeps."""
_MAX_FACETS = 12


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One example of a public file, as tables show it."""

    row: int
    """Its number in the file, from 0."""
    offset: int
    size: int
    """The record: its first byte and its bytes."""
    units_at: int
    units_size: int
    """The units in their file; 0 bytes: none are kept."""
    id: str = ""
    kind: str = ""
    """The kind of its placement: `depth`, `permutation` or empty."""
    placement: float | None = None
    question: str = ""
    answer: str = ""
    document: str = ""
    facets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tokens: int = 0
    """The tokens of the prompt, as the record states them."""
    reserve: int = 0
    images: int = 0
    fault: str = ""
    """Why the record cannot be read; empty if it can."""

    @property
    def number(self) -> int:
        """Its number as people count, from 1: what pages and addresses show."""
        return self.row + 1

    @property
    def name(self) -> str:
        """Its id or, without one, its number."""
        return self.id or f"example {self.number}"

    @property
    def placed(self) -> str:
        """The placement with its name, such as `depth 0.2`; empty if there is none."""
        return "" if self.placement is None else f"{self.kind or 'placement'} {self.placement:g}"


class Units(NamedTuple):
    """The units of one example."""

    items: Sequence[Item] = ()
    """What the release says about them; empty for files of other origin, and if the items cannot be read."""
    texts: Sequence[int] = ()
    """Without items, the text tokens of each block of the prompt."""
    note: str = ""
    """Why there are no items, if that is a fault."""


@dataclass(frozen=True, slots=True)
class IndexHead:
    """The head of an index: what it is made of."""

    rows: int
    is_copied: bool
    """Whether records are kept beside the index, because the public file has no record on a line of its own."""
    images: Sequence[str] = ()
    """The different images of the file, in the order in which prompts show them first; written as in a URL, because
    names of files may be no valid Unicode."""
    image_sum: int = 0
    """The images of all prompts together."""
    fill_sum: float = 0.0
    """The sum of the fills of all examples."""
    faults: int = 0
    """The records that cannot be read."""


_ROW, _HEAD = TypeAdapter(IndexRow), TypeAdapter(IndexHead)


class Index:
    """The indexes of all files of what is viewed. Threads may share it."""

    def __init__(self, viewed: Viewed, stems: Sequence[Path]) -> None:
        """Read the indexes of the files; `stems` are their paths without an ending."""
        self._viewed, self._stems = viewed, stems
        self._read: OrderedDict[int, tuple[IndexHead, Sequence[IndexRow]]] = OrderedDict()
        self._guard = threading.Lock()

    def rows(self, number: int) -> Sequence[IndexRow]:
        """Return the rows of a public file."""
        return self._file(number)[1]

    def images(self, number: int) -> list[str]:
        """Return the paths of the images of a file; the number of an image is its place here."""
        return [unquote(path, errors="surrogatepass") for path in self.head(number).images]

    def image(self, number: int, image: int) -> str:
        """Return the path of an image of a file by its number; it takes no longer where a file has many images."""
        paths = self._file(number)[0].images
        if image >= len(paths):
            raise ReleaseError(f"{self._viewed.files[number].name}: there is no image {image}")
        return unquote(paths[image], errors="surrogatepass")

    def head(self, number: int) -> IndexHead:
        """Return the head of the index of a public file; its rows are not read."""
        with self._guard:
            known = self._read.get(number)
        return known[0] if known else self._head(number)

    def record(self, number: int, row: IndexRow) -> Record:
        """Read the record of an example."""
        file = self._viewed.files[number]
        if row.fault:
            raise ReleaseError(f"{file.name}, example {row.number}: {row.fault}")
        if _stem(self._viewed, file) != self._stems[number]:
            raise ReleaseError(f"{file.name}: has changed since the viewer was started; start it again")
        is_copied, copies = self.head(number).is_copied, self._stems[number].with_suffix(".records")
        data = _piece(copies if is_copied else file.path, row.offset, row.size)
        try:
            record = _record(zlib.decompress(data) if is_copied else data, f"example {row.number}")
        except zlib.error as error:
            raise _damaged(copies, error) from error
        if isinstance(record, ReleaseError):
            raise ReleaseError(f"{file.name}: {record}")
        return record

    def units(self, number: int, row: IndexRow) -> Units:
        """Read the units of an example; they are empty if none are known."""
        if not row.units_size:
            return Units()
        path = self._stems[number].with_suffix(".units")
        try:
            return Units(*json.loads(zlib.decompress(_piece(path, row.units_at, row.units_size))))
        except (ValueError, TypeError, zlib.error) as error:
            raise _damaged(path, error) from error

    def _file(self, number: int) -> tuple[IndexHead, Sequence[IndexRow]]:
        with self._guard:
            if number not in self._read:
                path = self._stems[number].with_suffix(".rows")
                try:
                    with path.open("rb") as lines:
                        self._read[number] = self._head(number), [_ROW.validate_json(line) for line in lines]
                except (OSError, ValidationError) as error:
                    raise _damaged(path, error) from error
                while len(self._read) > 1 and sum(len(rows) for _, rows in self._read.values()) > _MAX_ROWS:
                    self._read.popitem(last=False)
            self._read.move_to_end(number)
            return self._read[number]

    def _head(self, number: int) -> IndexHead:
        path = self._stems[number].with_suffix(".head")
        try:
            return _HEAD.validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> ReleaseError:
    """Return the error for a damaged file of an index; without its head, the index is made again."""
    head = path.with_suffix(".head")
    return ReleaseError(f"{path}: is no index ({type(error).__name__}); remove {head} and start again")


def _piece(path: Path, offset: int, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)
    except OSError as error:
        raise ReleaseError(f"{path}: cannot be read: {error.strerror or error}") from error


def _stem(viewed: Viewed, file: ViewedFile) -> Path:
    """Return the path of an index without an ending. It changes with the path, size and time of change of the file and
    its items, with the lock, and with the code that reads them.
    """
    files = [file.path, *([file.items] if file.items else [])]
    about = (viewed.lock_id, viewed.code, file.name, str(file.images), file.variant)
    return cache_folder() / "index" / key_of(files, *about)


def open_index(viewed: Viewed, images: Path | None, tasks: TaskFiles, progress: Progress, variant: str = "") -> Index:
    """Open the index of what is viewed; files that changed, or that are new, are indexed in a process of their own,
    which opens them with the same `images`, `tasks` and `variant`.
    """
    stems = [_stem(viewed, file) for file in viewed.files]
    (cache_folder() / "index").mkdir(parents=True, exist_ok=True)
    stale = [file for file in viewed.files if not stems[file.number].with_suffix(".head").is_file()]
    calls = [(viewed.path, images, tasks, variant, file.name, stems[file.number]) for file in stale]
    with progress.bar("index: files", len(calls)) as advance:
        for _ in each_done(1, index_file, calls, [file.name for file in stale]) if calls else ():
            advance()
    return Index(viewed, stems)


# What makes an index.


def index_file(release: Path, image_folder: Path | None, tasks: TaskFiles, variant: str, name: str, stem: Path) -> None:
    """Make the index of one public file, in a process of its own."""
    viewed = open_viewed(release, image_folder, tasks, variant)
    file = viewed.by_name[name]
    if not file.path.is_file() or (viewed.lock_id and leads_out(viewed.path, f"{DATA}/{file.name}")):
        raise ReleaseError(f"{file.path}: is no file of the release; see `mmlongbench verify`")
    items = ItemReader(viewed.path, file.name, file.length) if file.items else None
    images: dict[str, None] = {}
    number, image_sum, fill_sum, faults, items_fault = 0, 0, 0.0, 0, ""
    rows_path, units_path, records_path = (stem.with_suffix(f".{part}") for part in ("rows", "units", "records"))
    with atomic_write(records_path) as records, atomic_write(units_path) as units, atomic_write(rows_path) as rows:
        for offset, size, record in _records(file, records):
            row, prompt = _row(viewed, file, number, record)
            text = b""
            if prompt is not None:
                try:
                    own = items.of(row.id, row.placement) if items else ()
                except ReleaseError as error:
                    own, items_fault = (), str(error)
                kept = (own, [], "") if own else ((), _text_tokens(file, prompt), items_fault)
                text = zlib.compress(json.dumps(kept).encode(), 1)
                images |= dict.fromkeys(quote(path, errors="surrogatepass") for path in prompt.images)
            row = replace(row, offset=offset, size=size, units_at=units.tell(), units_size=len(text))
            units.write(text)
            rows.write(_ROW.dump_json(row) + b"\n")
            number, image_sum, faults = number + 1, image_sum + row.images, faults + bool(row.fault)
            fill_sum += (row.tokens + row.reserve) / file.length
    head = IndexHead(number, file.form is not JSON_LINES, list(images), image_sum, fill_sum, faults)
    write_whole(stem.with_suffix(".head"), [_HEAD.dump_json(head)])  # written last: an index without it is none


def _records(file: ViewedFile, copies: BinaryIO) -> Iterator[tuple[int, int, Record | ReleaseError]]:
    """Yield (first byte, bytes, record) of each example; records without a line of their own are copied."""
    if file.form is JSON_LINES:
        with file.path.open("rb") as lines:
            for number, offset, line in bounded_lines(lines):
                if line is None:
                    yield offset, 0, ReleaseError(f"line {number}: too long")
                elif line.strip():
                    yield offset, len(line), _record(line, f"line {number}")
        return
    for _, record in file.form.read(file.path):
        data = b"" if isinstance(record, ReleaseError) else zlib.compress(json.dumps(record).encode(), 1)
        at = copies.tell()
        copies.write(data)
        yield at, len(data), record


def _record(line: bytes, where: str) -> Record | ReleaseError:
    try:
        record: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        return ReleaseError(f"{where}: expected one JSON object, found {str(error)[:120]}")
    return record if isinstance(record, dict) else ReleaseError(f"{where}: expected a JSON object")


def _row(
    viewed: Viewed, file: ViewedFile, number: int, record: Record | ReleaseError
) -> tuple[IndexRow, Prompt | None]:
    """Return a row without its places, and the prompt; no prompt if the record cannot be read."""
    if isinstance(record, ReleaseError):
        return IndexRow(number, 0, 0, 0, 0, fault=as_utf8(str(record))), None
    named = IndexRow(number, 0, 0, 0, 0, id=as_utf8(str(record.get("id", ""))[:400]))
    try:
        example = example_of(viewed, file, record, f"{file.name}, {named.id}")
        question = file.builder.question_of(record)
        document = (example.evidence.document if example.evidence else None) or file.builder.cluster(record)
    except MMLongBenchError as error:
        return replace(named, fault=as_utf8(str(error)[:400])), None
    groups = list(example.facets.items())[:_MAX_FACETS]
    row = replace(
        named,
        kind=next((kind for kind in ("depth", "permutation") if record.get(kind) is not None), ""),
        placement=placement_of(record),
        question=_shortened(question),
        answer=_shortened(as_text(example.answer)),
        document=as_utf8(str(document or "")[:200]),
        facets={as_utf8(str(key)[:80]): [as_utf8(str(value)[:80]) for value in values] for key, values in groups},
        tokens=example.tokens.total,
        reserve=example.reserve,
        images=len(example.prompt.images),
    )
    return row, example.prompt


def _text_tokens(file: ViewedFile, prompt: Prompt) -> list[int]:
    """Return the text tokens of each block of a prompt; where no tokenizer is open, four characters are a token."""
    if prompt.outline is None:
        blocks: Sequence[Sequence[Part]] = [(part,) for turn in prompt.turns for part in turn.parts]
    else:
        before = [prompt.outline.before] if prompt.outline.before else []
        blocks = [*before, *prompt.outline.units, prompt.outline.after]
    if file.text:
        return [file.text.count(Prompt.of(block).text) for block in blocks]
    texts = [[part for part in block if not isinstance(part, Image)] for block in blocks]
    return [sum(-(-len(part) // 4) for part in block) for block in texts]


def _shortened(text: str) -> str:
    """Return a text in one line, cut if it is long."""
    line = " ".join(as_utf8(text[: 4 * _MAX_TEXT]).split())
    return line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 1]}…"

"""Makes the index of a public file: a pass over its lines and its items. This runs in a process of its own, because
reading Parquet takes memory that a server should not keep.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.io.files import atomic_write, bounded_lines, write_whole
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.prompt import Image, Part, Prompt
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.items import Item, ItemReader
from mmlongbench.release.layout import DATA, as_utf8
from mmlongbench.release.lock import leads_out
from mmlongbench.task.file_formats import JSON_LINES
from mmlongbench.task.rows import Record
from mmlongbench.web.viewer.index_lines import HEAD, ROW, UNITS, IndexHead, IndexRow, Units, shortened, written
from mmlongbench.web.viewer.records import answer_text, example_of
from mmlongbench.web.viewer.sources import Viewed, ViewedFile, open_viewed

_MAX_FACETS = 12


@dataclass(frozen=True, slots=True)
class IndexPaths:
    """The files of an index."""

    rows: Path
    """A line for each example."""
    units: Path
    """The units of each example."""
    records: Path
    """Copies of records, where the public file has none on a line of its own."""
    head: Path
    """The head; it is written last."""

    @classmethod
    def of(cls, folder: Path, key: str) -> "IndexPaths":
        """Return the paths of the index with a key."""
        return cls(*(folder / f"{key}.{part}" for part in ("rows", "units", "records", "head")))


@dataclass(slots=True)
class _Made:
    """What is collected during a pass."""

    images: dict[str, None] = field(default_factory=dict)
    image_sum: int = 0
    rows: int = 0
    fill_sum: float = 0.0
    faults: int = 0
    items_fault: str = ""
    """Why the items cannot be read."""


def index_file(release: Path, images: Path | None, tasks: TaskFiles, name: str, folder: Path, key: str) -> int:
    """Make the index of one public file in a process of its own; return the number of its examples.

    Raises:
        ReleaseError: the file cannot be read.

    """
    viewed = open_viewed(release, images, tasks)
    return make_index(viewed, viewed.by_name[name], IndexPaths.of(folder, key))


def make_index(viewed: Viewed, file: ViewedFile, paths: IndexPaths) -> int:
    """Make the index of one public file; return the number of its examples.

    Raises:
        ReleaseError: the file cannot be read.

    """
    if not file.path.is_file() or (viewed.lock_id and leads_out(viewed.path, f"{DATA}/{file.name}")):
        raise ReleaseError(f"{file.path}: is no file of the release; see `mmlongbench verify`")
    made = _Made()
    items = ItemReader(viewed.path, file.name, file.length) if file.items else None
    with atomic_write(paths.records) as records, atomic_write(paths.units) as units, atomic_write(paths.rows) as rows:
        for offset, size, record in _records(file, records):
            found = _row(viewed, file, record, made)
            text = b"" if found.fault else _units(viewed, file, record, found, items, made)
            placed = replace(found, offset=offset, size=size, units_at=units.tell(), units_size=len(text))
            units.write(text)
            rows.write(ROW.dump_json(placed) + b"\n")
            made.rows += 1
            made.faults += bool(found.fault)
            made.fill_sum += (found.tokens + found.reserve) / file.length
    is_copied = file.form is not JSON_LINES
    head = IndexHead(file.name, made.rows, is_copied, list(made.images), made.image_sum, made.fill_sum, made.faults)
    write_whole(paths.head, [HEAD.dump_json(head)])
    return made.rows


def _records(file: ViewedFile, copies: BinaryIO) -> Iterator[tuple[int, int, Record | ReleaseError]]:
    """Yield (first byte, bytes, record) of each example; records without a line of their own are copied."""
    if file.form is JSON_LINES:
        with file.path.open("rb") as lines:
            for number, offset, line in bounded_lines(lines):
                if line is None:
                    yield offset, 0, ReleaseError(f"line {number}: too long")
                elif line.strip():
                    yield offset, len(line), record_of(line, f"line {number}")
        return
    for _, record in file.form.read(file.path):
        data = b"" if isinstance(record, ReleaseError) else zlib.compress(json.dumps(record).encode(), 1)
        at = copies.tell()
        copies.write(data)
        yield at, len(data), record


def record_of(line: bytes, where: str) -> Record | ReleaseError:
    """Return the record of a line, or what is wrong with the line."""
    try:
        record: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        return ReleaseError(f"{where}: expected one JSON object, found {str(error)[:120]}")
    return record if isinstance(record, dict) else ReleaseError(f"{where}: expected a JSON object")


def _row(viewed: Viewed, file: ViewedFile, record: Record | ReleaseError, made: _Made) -> IndexRow:
    plain = IndexRow(made.rows, 0, 0, 0, 0)
    if isinstance(record, ReleaseError):
        return replace(plain, fault=as_utf8(str(record)))
    named = replace(plain, id=as_utf8(str(record.get("id", ""))[:400]))
    try:
        example = example_of(viewed, file, record, f"{file.name}, {named.id}")
        question = file.builder.question(record)
    except MMLongBenchError as error:
        return replace(named, fault=as_utf8(str(error)[:400]))
    images = example.prompt.images
    made.images |= dict.fromkeys(map(written, images))
    made.image_sum += len(images)
    outline = example.prompt.outline
    groups = example.facets.items()
    facets = {as_utf8(str(key)[:80]): [as_utf8(str(each)[:80]) for each in values] for key, values in groups}
    document = example.evidence.document if example.evidence else None
    return replace(
        named,
        kind=next((kind for kind in ("depth", "permutation") if record.get(kind) is not None), ""),
        placement=placement_of(record),
        question=shortened(question),
        answer=shortened(answer_text(example.answer)),
        document=as_utf8(str(document or file.builder.cluster(record) or "")[:200]),
        facets=dict(list(facets.items())[:_MAX_FACETS]),
        text=example.tokens.text,
        image=example.tokens.image,
        reserve=example.reserve,
        images=len(images),
        units=len(outline.units) if outline else 0,
    )


def _units(
    viewed: Viewed, file: ViewedFile, record: object, row: IndexRow, items: ItemReader | None, made: _Made
) -> bytes:
    try:
        if own := items.of(row.id, row.placement) if items else ():
            return UNITS.dump_json(columns(own))
    except ReleaseError as error:
        made.items_fault = str(error)
    if not isinstance(record, dict):
        return b""
    example = example_of(viewed, file, record, file.name)
    outline = example.prompt.outline
    if outline is None:
        blocks: Sequence[Sequence[Part]] = [(part,) for turn in example.prompt.turns for part in turn.parts]
    else:
        blocks = [*([outline.before] if outline.before else []), *outline.units, outline.after]
    counts = [file.text.count(Prompt.of(block).text) if file.text else _about(block) for block in blocks]
    return UNITS.dump_json(Units(text=counts, is_counted_here=True, note=as_utf8(made.items_fault)))


def _about(parts: Sequence[Part]) -> int:
    """Estimate the tokens of texts, four characters each, where no tokenizer is open."""
    return sum(-(-len(part) // 4) for part in parts if not isinstance(part, Image))


def columns(items: Sequence[Item]) -> Units:
    """Return items as columns."""
    names = {item["role"]: None for item in items}
    place = {name: number for number, name in enumerate(names)}
    return Units(
        names=list(names),
        role=[place[item["role"]] for item in items],
        id=[item["unit"] for item in items],
        inside={number: inside for number, item in enumerate(items) if (inside := item.get("inside"))},
        image=[item["image"] for item in items],
        position=[item["position"] for item in items],
        start=[item["start"] for item in items],
        text=[item["text_tokens"] for item in items],
        pictures=[item["image_tokens"] for item in items],
    )

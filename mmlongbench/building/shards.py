"""The shard functions of the four stages; an engine maps them, in any order, over any processes."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mmlongbench.building.choose import choose_rows
from mmlongbench.building.dataset import Dataset, kept_rows, limits_of, open_dataset
from mmlongbench.building.plan import DatasetPlan, load_plan
from mmlongbench.building.rejects import reject
from mmlongbench.building.work import Shard, Stage, Work
from mmlongbench.documents.pdf import page_sizes, render_pages
from mmlongbench.errors import BuildError, DraftError, Fault, SourceError
from mmlongbench.files import sha256_of, write_whole
from mmlongbench.packing.budget import format_length, parse_length
from mmlongbench.packing.pack import DoesNotFitError, Example, examples
from mmlongbench.packing.placing import Depth
from mmlongbench.release.layout import IMAGES
from mmlongbench.task import Row

BLOCK = 32
"""Questions of a records shard."""


def run_shard(out: Path, shard: Shard) -> None:
    """Do one shard, unless it is done."""
    work = Work(out)
    with work.claim(shard):
        if not work.is_done(shard):
            work.write(shard, _STAGES[shard.stage](work, shard))


def forget() -> None:
    """Forget what this process knows of builds: a new one may use the same folder."""
    for known in (open_dataset, _plan, _rows, _needed):
        known.cache_clear()


@cache
def _plan(out: Path, dataset: str) -> DatasetPlan:
    return load_plan(Work(out), dataset)


def _read_document(work: Work, shard: Shard) -> Iterator[Any]:
    """One document: the sizes of its pages, or what is wrong with it."""
    plan = _plan(work.out, shard.dataset)
    try:
        yield {"pages": page_sizes(plan.documents[shard.name].path, plan.spec.pages.dpi, limits_of(plan.spec))}
    except SourceError as error:
        yield {"fault": error.fault.fields()}


def _choose(work: Work, shard: Shard) -> Iterator[Any]:
    """All rows of a dataset: which questions are in every file."""
    yield from choose_rows(open_dataset(work.out, shard.dataset))


def _pack_block(work: Work, shard: Shard) -> Iterator[Any]:
    """One cell × block of questions: records and items, integers and paths, no pixels."""
    dataset = open_dataset(work.out, shard.dataset)
    cell, block = shard.name.split("/")
    length, first = parse_length(cell), int(block) * BLOCK
    for row in _rows(work.out, shard.dataset)[first : first + BLOCK]:
        try:
            made = pack_row(dataset, row, length)
        except DoesNotFitError as error:
            found = Fault("does-not-fit", f"a prompt within {format_length(length)}", str(error))
            yield reject(dataset.spec.name, row.id, found, length)
            continue
        for example in made:
            yield {"record": finished_record(dataset, example), "items": _items(example)}


@cache
def _rows(out: Path, name: str) -> tuple[Row, ...]:
    return tuple(kept_rows(open_dataset(out, name), Work(out)))


def pack_row(dataset: Dataset, row: Row, length: int) -> list[Example]:
    """All examples of a row at a length."""
    draws = dataset.draws(row.id)
    draft = dataset.builder.draft(row, dataset.world, draws)
    return examples(draft, dataset.budget(length), dataset.placements(), dataset.pricer, draws)


def finished_record(dataset: Dataset, example: Example) -> dict[str, Any]:
    """The builder's record with what the engine adds: length, tokens, and where the needles stand."""
    record = dataset.builder.record(example)
    count, placement = example.count, example.placement
    added: dict[str, Any] = {
        "length": count.total,
        "tokens": {"text": count.text, "image": count.image, "reserve": example.reserve},
    }
    if placement is not None:
        added[placement.field] = placement.value
        is_single = isinstance(placement, Depth)
        added["depth_achieved"] = example.achieved[0] if is_single else list(example.achieved)
        if not is_single:
            added["depth_requested"] = list(example.depths)
    if clash := sorted(added.keys() & record.keys()):
        raise DraftError(f"{example.id}: the record of a builder holds {clash[0]!r}, which the engine adds")
    return {**record, **added}


def _items(example: Example) -> list[dict[str, Any]]:
    value = None if example.placement is None else float(example.placement.value)
    return [
        {
            "id": example.id,
            "placement": value,
            "position": position,
            "unit": item.unit.id,
            "role": item.unit.role,
            "image": None if isinstance(item.unit.body, str) else item.unit.body.path,
            "start": item.start,
            "text_tokens": item.count.text,
            "image_tokens": item.count.image,
        }
        for position, item in enumerate(example.items)
    ]


def _render_document(work: Work, shard: Shard) -> Iterator[Any]:
    """One document: each page that any example shows, rendered once; a page that stands there is whole."""
    dataset = open_dataset(work.out, shard.dataset)
    file = dataset.plan.documents[shard.name]
    pages = {page.index: page for page in dataset.world.pages(file.id)}
    needed = sorted(index for index, page in pages.items() if page.path in needed_images(work, dataset))
    missing = [index for index in needed if not (work.out / IMAGES / pages[index].path).is_file()]
    spec = dataset.spec
    for index, size, data in render_pages(file.path, missing, spec.pages.dpi, spec.pages.quality, limits_of(spec)):
        planned = (pages[index].width, pages[index].height)
        if size != planned:
            raise BuildError(f"{file.path.name}, page {index}: rendered as {size}, planned as {planned}; report this")
        write_whole(work.out / IMAGES / pages[index].path, [data])
    for index in needed:
        path = work.out / IMAGES / pages[index].path
        yield {"path": pages[index].path, "bytes": path.stat().st_size, "sha256": sha256_of(path)}


def needed_images(work: Work, dataset: Dataset) -> frozenset[str]:
    """The images that some example of a dataset shows."""
    return _needed(work.out, dataset.spec.name, dataset.spec.lengths)


@cache
def _needed(out: Path, name: str, lengths: tuple[int, ...]) -> frozenset[str]:
    work = Work(out)
    rows = len(_rows(out, name))
    lines = (line for shard in record_shards(name, lengths, rows) for line in work.read(shard))
    return frozenset(item["image"] for line in lines for item in line.get("items", ()) if item["image"])


def record_shards(dataset: str, lengths: tuple[int, ...], rows: int) -> list[Shard]:
    """The shards of all cells of a dataset, in the order of the files."""
    blocks = range((rows + BLOCK - 1) // BLOCK)
    return [Shard("records", dataset, f"{format_length(length)}/{b:05d}") for length in lengths for b in blocks]


_STAGES: dict[Stage, Callable[[Work, Shard], Iterator[Any]]] = {
    "documents": _read_document,
    "rows": _choose,
    "records": _pack_block,
    "assets": _render_document,
}

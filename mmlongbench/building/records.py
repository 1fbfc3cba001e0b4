"""The records stage: drafts packed into public records and items, integers and paths, no pixels."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from mmlongbench.building.dataset import Dataset, kept_rows, open_dataset
from mmlongbench.building.rejects import reject_row
from mmlongbench.building.work import Shard, Work
from mmlongbench.errors import DraftError, Fault, Rejected
from mmlongbench.packing.budget import format_length, parse_length
from mmlongbench.packing.pack import DoesNotFitError, Example, examples
from mmlongbench.packing.placing import Depth
from mmlongbench.policies import Without
from mmlongbench.prompt import Image
from mmlongbench.task import Row

BLOCK = 32
"""Questions of a shard."""


def blocks_of(rows: int) -> list[str]:
    """The names of the blocks of so many questions."""
    return [f"{block:05d}" for block in range((rows + BLOCK - 1) // BLOCK)]


def record_shards(dataset: str, lengths: tuple[int, ...], rows: int) -> list[Shard]:
    """The shards of all cells of a dataset, in the order of the files."""
    names = blocks_of(rows)
    return [Shard("records", dataset, f"{format_length(length)}/{block}") for length in lengths for block in names]


def block_rows(work: Work, dataset: str, block: str) -> tuple[Row, ...]:
    """The questions of a block."""
    first = int(block) * BLOCK
    return rows_of(work.out, dataset)[first : first + BLOCK]


@cache
def rows_of(out: Path, name: str) -> tuple[Row, ...]:
    """The questions of every file of a dataset, kept for the life of the process."""
    return tuple(kept_rows(open_dataset(out, name), Work(out)))


def pack_block(work: Work, shard: Shard) -> Iterator[Any]:
    """One cell × block of questions: records and items, integers and paths, no pixels."""
    dataset = open_dataset(work.out, shard.dataset)
    cell, block = shard.name.split("/")
    length = parse_length(cell)
    for row in block_rows(work, shard.dataset, block):
        try:
            made = pack_row(dataset, row, length)
        except DoesNotFitError as error:
            found = Fault("does-not-fit", f"a prompt within {format_length(length)}", str(error))
            yield reject_row(dataset.spec.name, row, found, length)
            continue
        except Rejected as error:
            yield reject_row(dataset.spec.name, row, error.fault, length)
            continue
        for number, example in enumerate(made):
            shown = {path: name for path in example.prompt.images if (name := dataset.world.origin(path))}
            record = finished_record(dataset, example)
            about: dict[str, Any] = {"ran_dry": example.ran_dry, "missing": example.missing}
            about["left_out"] = {} if number else dict(example.left_out)  # of the context: the same at every placement
            yield {"record": record, "items": _items(example), "pictures": shown, **about}


def pack_row(dataset: Dataset, row: Row, length: int) -> list[Example]:
    """All examples of a row at a length; a picture that cannot be decoded is barred, the next stands in its place."""
    draws = dataset.draws(row.id)
    draft = dataset.builder.draft(row, dataset.world, draws)
    broken: dict[str, str] = {}
    while True:
        whole = replace(draft, supply=Without(draft.supply, broken)) if broken else draft
        made = examples(whole, dataset.budget(length), dataset.placements(), dataset.pricer, draws)
        shown = {path for example in made for path in example.prompt.images}
        found = {path: reason for path in sorted(shown) if (reason := dataset.world.fault_of(path))}
        if not found:
            return made
        if required := {unit.body.path for unit in draft.required if isinstance(unit.body, Image)} & found.keys():
            raise DoesNotFitError(f"{row.id}: {min(required)} cannot be decoded")  # checked before: it has changed
        broken |= found


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
        achieved, starts = ([getattr(n, key) for n in example.needles] for key in ("achieved", "start"))
        added["depth_achieved"] = achieved[0] if is_single else achieved
        added["needle_start"] = starts[0] if is_single else starts
        if not is_single:
            added["depth_requested"] = [needle.requested for needle in example.needles]
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
            "inside": " ".join(needle.id for needle in item.unit.needles),
            "image": None if isinstance(item.unit.body, str) else item.unit.body.path,
            "start": item.start,
            "text_tokens": item.count.text,
            "image_tokens": item.count.image,
        }
        for position, item in enumerate(example.items)
    ]

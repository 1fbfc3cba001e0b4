"""The negatives stage: the rankings of a block of questions, and the hard negatives that remain of them."""

from collections.abc import Iterator
from typing import Any

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.dataset import open_dataset
from mmlongbench.building.records import block_rows


def find_negatives(build_dir: BuildDir, shard: Shard) -> Iterator[Any]:
    """One line a query: its negatives as places in the corpus, and how many passages were turned away, by reason."""
    dataset = open_dataset(build_dir.out, shard.dataset)
    library = dataset.world.library
    for row in block_rows(build_dir, shard.dataset, shard.name):
        draft = dataset.builder.draft(row, dataset.world, dataset.draws(row.id))
        next(iter(draft.take_order.units(max(dataset.spec.lengths))), None)  # to begin to take is to search
        for id, found in sorted(library.newly_found().items()) if library else ():
            yield {"id": id, "numbers": found.numbers, "rejected": dict(sorted(found.rejected.items()))}

"""The negatives stage: the rankings of a block of questions, and the hard negatives that remain of them."""

from collections.abc import Iterator

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.lines import FoundNegatives
from mmlongbench.building.session import Session
from mmlongbench.building.stages.records import block_rows, blocks_of, questions_of


def negative_shards(session: Session, name: str) -> list[Shard]:
    """One shard a block of questions, where the dataset has a corpus."""
    rows = len(session.rows(name)) if session.plan(name).corpus else 0
    return [Shard("negatives", name, block, questions_of(block, rows)) for block in blocks_of(rows)]


def find_negatives(session: Session, shard: Shard) -> Iterator[FoundNegatives]:
    """One line a query: its negatives as places in the corpus, and how many passages were turned away, by reason."""
    dataset = session.dataset(shard.dataset)
    library = dataset.world.library
    for row in block_rows(session, shard.dataset, shard.name):
        draft = dataset.builder.draft(row, dataset.world, dataset.draws(row.id))
        next(iter(draft.take_order.units(max(dataset.spec.lengths))), None)  # to begin to take is to search
        for id, found in sorted(library.newly_found().items()) if library else ():
            yield FoundNegatives(id, list(found.numbers), dict(sorted(found.rejected.items())))

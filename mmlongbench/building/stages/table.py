"""The table of the stages of a build, in order; every way of building follows it.

A whole build runs all stages, one after the other. A share runs some shards of one stage. A forecast runs the stages
with `is_prepared`.
"""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from mmlongbench.building import shard_results
from mmlongbench.building.build_dir import Shard, questions_shard, rows_shard
from mmlongbench.building.session import Session
from mmlongbench.building.source_files import Compared
from mmlongbench.building.stages.cells import cell_shards, write_cell
from mmlongbench.building.stages.documents import document_shards, read_document
from mmlongbench.building.stages.images import image_shards, make_images
from mmlongbench.building.stages.negatives import find_negatives, negative_shards
from mmlongbench.building.stages.questions import choose
from mmlongbench.building.stages.rankings import rank_pages, ranking_shards
from mmlongbench.building.stages.records import pack_block, record_shards
from mmlongbench.building.stages.rows import read_source
from mmlongbench.release.layout import StageName


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a build: independent shards, each of which leaves a file of typed lines."""

    name: StageName
    shards: Callable[[Session, str], list[Shard]]
    """Returns the shards of a dataset, which are known once earlier stages are done."""
    run: Callable[[Session, Shard], Iterator[Any]]
    lines: TypeAdapter[Any]
    label: str = ""
    """What a shard makes, for the progress bar; if empty, the first part of the name of the shard is shown."""
    is_prepared: bool = False
    """Whether `--stage prepare` runs this stage. Questions depend on all documents and rows, and later stages on the
    questions."""

    def group(self, shard: Shard) -> str:
        """Return the title of the progress bar that a shard belongs to."""
        return f"{shard.dataset} {self.label or shard.name.split('/')[0]}"


STAGES = (
    Stage("documents", document_shards, read_document, shard_results.DOCUMENTS, "documents", is_prepared=True),
    Stage("rows", lambda _, name: [rows_shard(name)], read_source, shard_results.ROWS, "rows", is_prepared=True),
    Stage("rankings", ranking_shards, rank_pages, shard_results.RANKINGS, "rankings of pages", is_prepared=True),
    Stage(
        "questions",
        lambda _, name: [questions_shard(name)],
        choose,
        shard_results.QUESTIONS,
        "questions",
        is_prepared=True,
    ),
    Stage("negatives", negative_shards, find_negatives, shard_results.NEGATIVES, "negatives"),
    Stage("records", record_shards, pack_block, shard_results.RECORDS),
    Stage("images", image_shards, make_images, shard_results.IMAGES),
    Stage("cells", cell_shards, write_cell, shard_results.CELLS, "files"),
)


PREPARED = tuple(stage for stage in STAGES if stage.is_prepared)
"""The stages that `--stage prepare` runs."""


def stage_named(name: StageName) -> Stage:
    """Return the stage with a name."""
    return next(stage for stage in STAGES if stage.name == name)


def run_shard(session: Session, shard: Shard) -> float:
    """Run one shard unless it is done, and return the seconds it took. If a source file has changed, raise an error
    before the result is complete.
    """
    build_dir, begun = session.build_dir, time.perf_counter()

    def lines() -> Iterator[Any]:
        with session.source_files.unchanged_tables(Compared.EACH_SHARD, [shard.dataset]):
            yield from stage_named(shard.stage).run(session, shard)

    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)  # shards make millions of values and hardly any reference cycle
    try:
        with build_dir.lock_shard(shard):
            if not build_dir.is_done(shard):
                build_dir.write(shard, lines())
    finally:
        gc.set_threshold(*thresholds)
    return time.perf_counter() - begun

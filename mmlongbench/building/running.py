"""One round of shards on an engine: what is done is shown as it is done, and written to the run log."""

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.engine import Engine
from mmlongbench.building.source_files import source_files
from mmlongbench.errors import Interrupted

_log = logging.getLogger(__name__)


def do_shards(stage: str, shards: Sequence[Shard], build_dir: BuildDir, engine: Engine) -> None:
    """Do those that are not done yet.

    Raises:
        Interrupted: by Ctrl-C; how much of the stage is done, and how to go on.
        SourceChangedError: a file of a source of very many files is not what was fingerprinted.

    """
    left = [shard for shard in shards if not build_dir.is_done(shard)]
    done = len(shards) - len(left)
    _log.info("%s: %d shards, %d of them done before", stage, len(shards), done)
    totals: Counter[str] = Counter()
    for shard in left:
        totals[shard.group] += shard.steps
    try:
        with (
            source_files(build_dir.out).unchanged_in_stage(shard.dataset for shard in left),
            engine.progress.board(totals) as advance,
            closing(engine.run(build_dir.out, left)) as ended,
        ):
            for shard, seconds in ended:
                done += 1
                advance(shard.group, shard.steps)
                _log.info("%s: done in %.2f s", shard, seconds)
    except KeyboardInterrupt as stop:
        raise Interrupted(
            f"interrupted at {stage}: {done:,} of {len(shards):,} shards of this stage are done and kept; "
            "the same command goes on from here"
        ) from stop

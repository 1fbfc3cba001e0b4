"""Runs the shards of a stage on an executor. Progress bars show the finished shards, and the run log gets a line for
each of them.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.executors.base import Executor
from mmlongbench.building.session import Session
from mmlongbench.building.stages.table import Stage
from mmlongbench.errors import Interrupted

_log = logging.getLogger(__name__)


def do_shards(stage: Stage, shards: Sequence[Shard], session: Session, executor: Executor, share: str = "") -> None:
    """Run the shards that are not done yet.

    Raises:
        Interrupted: the user pressed Ctrl-C; the error says how much of the stage is done.
        SourceChangedError: a file of a source with very many files has changed.

    """
    title = f"{stage.name} {share}".strip()
    left = [shard for shard in shards if not session.build_dir.is_done(shard)]
    done = len(shards) - len(left)
    _log.info("%s: %d shards, %d of them already done", title, len(shards), done)
    totals: Counter[str] = Counter()
    for shard in left:
        totals[stage.group(shard)] += shard.steps
    try:
        with (
            session.source_files.unchanged_in_stage(shard.dataset for shard in left),
            executor.progress.board(totals) as advance,
            closing(executor.run(session, left)) as ended,
        ):
            for shard, seconds in ended:
                done += 1
                advance(stage.group(shard), shard.steps)
                _log.info("%s: done in %.2f s", shard, seconds)
    except KeyboardInterrupt as stop:
        raise Interrupted(
            f"interrupted at {title}: {done:,} of {len(shards):,} shards of this stage are done and kept; "
            "run the same command to continue from here"
        ) from stop

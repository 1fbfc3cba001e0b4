"""Runs a build: saves the plan, runs the shards of each stage, and finishes the release. A killed build can be
continued.
"""

import logging
import platform
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir, Shard, questions_shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.executors import Executor
from mmlongbench.building.extension import (
    extension,
    finish_move,
    move_into_place,
    plan_extension,
    refuse_changed_examples,
    refuse_lost_questions,
)
from mmlongbench.building.finish import finish
from mmlongbench.building.finished_release import refuse_damage
from mmlongbench.building.out_folder import locked
from mmlongbench.building.planning import check_manifest, plan_build, save_or_refuse
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import QUESTIONS, RowCounts
from mmlongbench.building.shortfalls import Shortfall, refuse_losses, shortfalls_of, too_few
from mmlongbench.building.source_files import Compared
from mmlongbench.building.stages.table import STAGES, Stage
from mmlongbench.errors import Interrupted, MMLongBenchError, StrictStop
from mmlongbench.io.printable import shown
from mmlongbench.manifest.binding import Bound
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.plugins import is_installed
from mmlongbench.release.layout import LOCK, REJECTS
from mmlongbench.release.lock import Lock, read_lock, versions
from mmlongbench.release.rejects import Reject

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Built:
    """The result of a build."""

    out: Path | str
    """The folder or the URL of the release."""
    lock: Lock
    """The contents of the release: files, counts, versions."""
    was_complete: bool
    """Whether nothing was built, because the folder already had the release of the same manifest and sources."""
    notes: tuple[str, ...] = ()
    """What a user must know about the manifest, the sources or the build, one sentence each."""
    shortfalls: tuple[Shortfall, ...] = ()
    """The datasets that lost many of their questions, with the reasons."""


@dataclass(frozen=True, slots=True)
class Demands:
    """When a build stops because of rejected rows."""

    is_strict: bool = False
    min_kept: float = 0.0
    """The smallest share of its questions that each dataset must keep at each length, from 0 to 1."""


NO_DEMANDS = Demands()


def build(
    manifest: Manifest, out: Path, executor: Executor, demands: Demands = NO_DEMANDS, *, is_restart: bool = False
) -> Built:
    """Build a release, or finish one that was interrupted (see `mmlongbench.build`). `is_restart` discards an
    unfinished build first; a finished release is never discarded.
    """
    datasets = check_manifest(manifest)
    with locked(out) as build_dir:
        finish_move(build_dir)
        if (build_dir.out / LOCK).is_file():
            return _finished(datasets, build_dir, executor, demands, is_restart=is_restart)
        plans, notes = plan_build(datasets, build_dir, executor, is_restart=is_restart)
        lock = _run(plans, build_dir, executor, demands, build_dir.out)
        shutil.rmtree(build_dir.root)
    notes = (*notes, *_notes_of(plans, lock))
    return Built(build_dir.out, lock, False, notes, shortfalls_of(lock, build_dir.out))


def _notes_of(plans: Sequence[DatasetPlan], lock: Lock) -> tuple[str, ...]:
    of_sources = (f"dataset {plan.spec.name!r}: {note}" for plan in plans for note in plan.notes)
    of_metrics = (
        f"dataset {plan.spec.name!r}: metric {name!r} of builder {plan.spec.shown_builder!r} is not installed; the "
        "release can be built, but not scored by this metric"
        for plan in plans
        for name in plan.bound.task.further_metrics
        if not is_installed("metric", name)
    )
    return (*of_sources, *lock.licence_notes, *of_metrics)


def _run(plans: list[DatasetPlan], build_dir: BuildDir, executor: Executor, demands: Demands, out: Path) -> Lock:
    with logged(out), Session(build_dir.out, plans) as session:
        do_stages(session, executor, demands)
        return finish(session, executor)


def _finished(
    datasets: Sequence[Bound], build_dir: BuildDir, executor: Executor, demands: Demands, *, is_restart: bool
) -> Built:
    """Return a finished release if the manifest asks for nothing else, or extend it; refuse one that differs in another
    way, or is damaged.
    """
    out = build_dir.out
    with extension(build_dir) as inner:
        lock = read_lock(out)
        plans, added = plan_extension(datasets, lock, inner, executor)
        if not added:
            if is_restart:
                shutil.rmtree(inner.out)
            refuse_damage(lock.files, out)
            if few := shortfalls_of(lock, out, demands.min_kept):
                raise too_few(few, demands.min_kept, out / REJECTS)
            return Built(out, lock, True, _notes_of(plans, lock), shortfalls_of(lock, out))
        if is_restart:
            (inner.out / LOCK).unlink(missing_ok=True)
        notes = (*save_or_refuse(plans, inner, executor, is_restart=is_restart), added)
        lock = _run(plans, inner, executor, demands, out)
        move_into_place(build_dir)
    return Built(out, lock, False, (*notes, *_notes_of(plans, lock)), shortfalls_of(lock, out))


def do_stages(
    session: Session, executor: Executor, demands: Demands = NO_DEMANDS, stages: Sequence[Stage] = STAGES
) -> int:
    """Run stages for all datasets, one stage after the other, and return how many shards they have. `Demands` may stop
    them; an extension that would change existing examples is a `BuildError`.
    """
    names, build_dir, done = list(session.plans), session.build_dir, 0
    rejects: dict[str, list[Reject]] = {name: [] for name in names}
    with closing(executor):
        for stage in stages:
            shards = [shard for name in names for shard in stage.shards(session, name)]
            do_shards(stage, shards, session, executor)
            done += len(shards)
            if stage.name not in ("questions", "records"):
                continue
            if demands != NO_DEMANDS:
                for reject in rejects_of(stage, shards, session, is_strict=demands.is_strict):
                    if demands.min_kept:
                        rejects[reject.dataset].append(reject)
            if stage.name == "questions":
                refuse_lost_questions(session)
            else:
                refuse_changed_examples(session)
                cells = ((name, length) for name, plan in session.plans.items() for length in plan.spec.lengths)
                for name, length in cells:
                    if demands.min_kept and session.takes_whole(name, length):
                        rejects[name] += taken.rejects.values() if (taken := session.taken(name, length)) else ()
            if demands.min_kept:
                counts = {name: build_dir.only(questions_shard(name), QUESTIONS, RowCounts).counts for name in names}
                refuse_losses(counts, rejects, build_dir.out, demands.min_kept, is_here=executor.has_all_files)
    return done


def rejects_of(stage: Stage, shards: Iterable[Shard], session: Session, *, is_strict: bool) -> Iterator[Reject]:
    """Yield the rejects of shards that are done. With `is_strict`, raise `StrictStop` at the first one, unless the
    benchmark itself leaves it out.
    """
    for line in chain.from_iterable(session.build_dir.read(shard, stage.lines) for shard in shards):
        if isinstance(line, Reject):
            if is_strict and not line.fault.is_expected:
                raise StrictStop(f"--strict: {line.dataset}, {line.id}: {line.fault}")
            yield line


def do_shards(stage: Stage, shards: Sequence[Shard], session: Session, executor: Executor, share: str = "") -> None:
    """Run the shards that are not done yet; after Ctrl-C, an `Interrupted` says how much of the stage is done."""
    title = f"{stage.name} {share}".strip()
    left = [shard for shard in shards if not session.build_dir.is_done(shard)]
    done = len(shards) - len(left)
    _log.info("%s: %d shards, %d of them already done", title, len(shards), done)
    totals: Counter[str] = Counter()
    for shard in left:
        totals[stage.group(shard)] += shard.steps
    try:
        with (
            session.source_files.unchanged_tables(Compared.EACH_STAGE, (shard.dataset for shard in left)),
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


# The log of a build, a file beside the release: what was started, which shards were done, how it ended


def log_of(out: Path) -> Path:
    """Return the path of the log of a release.

    >>> log_of(Path("releases/mine")).as_posix()
    'releases/mine.log'
    """
    return out.with_name(f"{out.name}.log")


@contextmanager
def logged(out: Path) -> Iterator[None]:
    """Append what a build does to the log of its release; if the log cannot be written, the build runs without it."""
    handler: logging.Handler = logging.NullHandler()
    with suppress(OSError):
        handler = _LogFile(log_of(out), encoding="utf-8", errors="backslashreplace")
    form = logging.Formatter("%(asctime)s %(process)d %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    form.converter = time.gmtime
    handler.setFormatter(form)
    logger = logging.getLogger("mmlongbench")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    made_by = ", ".join(f"{name} {version}" for name, version in versions().items())
    _log.info("started: %s; Python %s; %s", " ".join(sys.argv[1:]), platform.python_version(), made_by)
    try:
        yield
        _log.info("ended well")
    except (Interrupted, MMLongBenchError, OSError) as error:
        _log.info("ended: %s", error)
        raise
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        with suppress(OSError):  # the rest of the log could not be written
            handler.close()


class _LogFile(logging.FileHandler):
    """Hides secrets, because a log is kept for long; an error of its own never stops a build."""

    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:
        del record

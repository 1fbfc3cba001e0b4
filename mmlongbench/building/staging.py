"""Builds in parts: one stage at a time, of it every n-th shard, on machines that share a folder; then finish.

mmlongbench build M --out R --stage prepare
mmlongbench build M --out R --stage records --shard 3/64      (each of 1/64 … 64/64, in any order, also at once)
mmlongbench build M --out R --stage images --shard 3/64
mmlongbench finish R
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.building.assets import asset_shards, forget_assets
from mmlongbench.building.build import go_on
from mmlongbench.building.dataset import open_dataset
from mmlongbench.building.engine import Engine
from mmlongbench.building.finish import finish
from mmlongbench.building.plan import DatasetPlan, begun, load_plan, plan_datasets
from mmlongbench.building.records import blocks_of, record_shards, rows_of
from mmlongbench.building.shards import forget
from mmlongbench.building.work import Shard, Work
from mmlongbench.errors import BuildError
from mmlongbench.files import claim
from mmlongbench.manifest import Manifest
from mmlongbench.release.layout import LOCK

STAGES = ("prepare", "negatives", "records", "images")
"""In their order; each needs those before it."""


@dataclass(frozen=True, slots=True)
class Share:
    """Every `of`-th shard, from the `number`-th on, counted from 1."""

    number: int
    of: int

    def pick(self, shards: Sequence[Shard]) -> list[Shard]:
        """The shards of this share, in their order."""
        return list(shards[self.number - 1 :: self.of])


WHOLE = Share(1, 1)


def parse_share(text: str) -> Share:
    """A share as the command line has it.

    >>> parse_share("3/64")
    Share(number=3, of=64)
    """
    number, slash, of = text.partition("/")
    if slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) < 10**6:
        return Share(int(number), int(of))
    raise BuildError(f"--shard {text!r}: expected N/OF, from 1/OF to OF/OF, such as 3/64")


def run_stage(manifest: Manifest, out: Path, engine: Engine, stage: str, share: Share = WHOLE) -> int:
    """Do one share of one stage; how many shards that were.

    Raises:
        BuildError: a stage before it is not done, another build has the folder, or `prepare` is to be shared.

    """
    work = Work(out.resolve())
    if (work.out / LOCK).is_file():
        raise BuildError(f"--out {out}: is finished; give another folder, or remove this one")
    if stage == "prepare":
        if share != WHOLE:
            raise BuildError("--stage prepare reads all rows at once: leave --shard out")
        with _claimed(work, is_alone=True):
            return _prepare(manifest, work, engine)
    with _claimed(work, is_alone=False):
        plans = _saved(work)
        shards = [shard for plan in plans for shard in _shards(stage, plan, work)]
        chosen = share.pick(shards)
        engine.run(
            work.out, [shard for shard in chosen if not work.is_done(shard)], f"{stage} {share.number}/{share.of}"
        )
        return len(chosen)


def finish_release(out: Path) -> dict[str, Any]:
    """Write the files of a release whose shards are all done, the lock last; returns the lock.

    Raises:
        BuildError: a shard is missing: how many, and the command that does the first.

    """
    work = Work(out.resolve())
    with _claimed(work, is_alone=True):
        plans = _saved(work)
        for stage in STAGES[1:]:
            for plan in plans:
                _shards(stage, plan, work, is_done=True)
        lock = finish(plans, work)
        shutil.rmtree(work.root)
    return lock


def _prepare(manifest: Manifest, work: Work, engine: Engine) -> int:
    """The plan, the documents and the rows of every dataset."""
    work.root.mkdir(parents=True, exist_ok=True)
    plans = plan_datasets(manifest, work, engine.progress)
    go_on(plans, work)
    forget()
    done = 0
    for plan in plans:
        name = plan.spec.name
        for shards in ([Shard("documents", name, d) for d in plan.documents], [Shard("rows", name, "all")]):
            engine.run(work.out, [shard for shard in shards if not work.is_done(shard)], f"{name}: prepare")
            done += len(shards)
    return done


def _shards(stage: str, plan: DatasetPlan, work: Work, *, is_done: bool = False) -> list[Shard]:
    """The shards of a stage of a dataset; those before it are done, and with `is_done` these too."""
    name = plan.spec.name
    for before, found in _before(stage, plan, work):
        _require(before, found(), work)
    of_stage: dict[str, Callable[[], list[Shard]]] = {
        "negatives": lambda: _negatives(plan, work),
        "records": lambda: record_shards(work.out, name, plan.spec.lengths),
        "images": lambda: asset_shards(work, open_dataset(work.out, name)),
    }
    shards = of_stage[stage]()
    if is_done:
        _require(stage, shards, work)
    return shards


def _before(stage: str, plan: DatasetPlan, work: Work) -> Iterator[tuple[str, Callable[[], list[Shard]]]]:
    """The stages before a stage, and their shards of a dataset, which are known once the former are done."""
    name = plan.spec.name
    yield "prepare", lambda: [*(Shard("documents", name, d) for d in plan.documents), Shard("rows", name, "all")]
    if stage in ("records", "images"):
        yield "negatives", lambda: _negatives(plan, work)
    if stage == "images":
        yield "records", lambda: record_shards(work.out, name, plan.spec.lengths)


def _negatives(plan: DatasetPlan, work: Work) -> list[Shard]:
    name = plan.spec.name
    return [Shard("negatives", name, b) for b in blocks_of(len(rows_of(work.out, name)))] if plan.corpus else []


def _require(stage: str, shards: Sequence[Shard], work: Work) -> None:
    missing = [number for number, shard in enumerate(shards, 1) if not work.is_done(shard)]
    if missing:
        raise BuildError(
            f"stage {stage}: {len(missing)} of {len(shards)} shards of {shards[0].dataset!r} are not done, first "
            f"{shards[missing[0] - 1]}; `mmlongbench build … --stage {stage}` does them"
        )


def _saved(work: Work) -> list[DatasetPlan]:
    """The plans that `prepare` has saved."""
    found = begun(work)
    if found is None:
        raise BuildError(f"--out {work.out}: nothing is prepared there; begin with --stage prepare")
    forget()
    forget_assets()
    return [load_plan(work, data["spec"]["name"]) for data in found["datasets"]]


@contextmanager
def _claimed(work: Work, *, is_alone: bool) -> Iterator[None]:
    """The right to work in a folder: alone, or beside others that each do shards of their own."""
    if not is_alone and not work.root.is_dir():
        raise BuildError(f"--out {work.out}: nothing is prepared there; begin with --stage prepare")
    with claim(work.root / "claims" / "build", f"the release {work.out}", is_shared=not is_alone):
        yield

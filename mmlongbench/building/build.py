"""A build from start to lock: plan, then the stages, each a list of shards, then finish. A killed build goes on."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.binding import bind_builder, check_reserve, placements_of
from mmlongbench.building.engine import Engine
from mmlongbench.building.finish import finish
from mmlongbench.building.plan import DatasetPlan, begun, plan_datasets, save_plans
from mmlongbench.building.rejects import sentence
from mmlongbench.building.run_log import logged
from mmlongbench.building.running import do_shards
from mmlongbench.building.shards import forget
from mmlongbench.building.stages import STAGES
from mmlongbench.building.work import Shard, Work
from mmlongbench.errors import BuildError, MMLongBenchError, StrictStop
from mmlongbench.files import TEMPORARY, claim
from mmlongbench.manifest import Manifest
from mmlongbench.plugins import reader_type
from mmlongbench.release.layout import LOCK
from mmlongbench.release.lock import read_lock, versions


@dataclass(frozen=True, slots=True)
class Built:
    """What a build left."""

    out: Path | str
    """Its folder, or the URL it stands at."""
    lock: dict[str, Any]
    was_complete: bool
    """The release was there already, of the same manifest and sources."""


def build(manifest: Manifest, out: Path, engine: Engine, *, is_strict: bool = False) -> Built:
    """Build a release, or finish one that was interrupted.

    Raises:
        ManifestError: the manifest names what is not there.
        BuildError: the folder cannot be used.
        StrictStop: something was rejected, and `is_strict`.

    """
    for spec in manifest.datasets:  # before anything is written
        builder = bind_builder(spec)
        placements_of(spec, builder)
        check_reserve(spec, builder)
        reader_type(spec.reader)
    with _claimed(out) as work:
        if (work.out / LOCK).is_file():
            return _complete(manifest, work, engine)
        plans = plan_build(manifest, work, engine)
        with logged(work.out):
            do_stages(plans, work, engine, is_strict=is_strict)
            lock = finish(plans, work)
        shutil.rmtree(work.root)
    return Built(work.out, lock, was_complete=False)


def run_stages(manifest: Manifest, work: Work, engine: Engine) -> list[DatasetPlan]:
    """Plan, then do every stage of all datasets; the working folder then holds all that a release is made of."""
    plans = plan_build(manifest, work, engine)
    do_stages(plans, work, engine)
    return plans


def plan_build(manifest: Manifest, work: Work, engine: Engine) -> list[DatasetPlan]:
    """Find and fingerprint the sources, and save the plan; or find the one that was saved to be the same."""
    plans = plan_datasets(manifest, work, engine.progress)
    _go_on(plans, work)
    forget()
    return plans


def do_stages(plans: list[DatasetPlan], work: Work, engine: Engine, *, is_strict: bool = False) -> None:
    """Every stage of all datasets, each over what the one before has left."""
    with closing(engine):
        for stage, shards_of in STAGES.items():
            shards = [shard for plan in plans for shard in shards_of(plan, work)]
            do_shards(stage, shards, work, engine)
            if is_strict and stage in ("rows", "records"):
                _refuse_rejects(shards, work)


def _complete(manifest: Manifest, work: Work, engine: Engine) -> Built:
    """A finished release, if it is of this manifest, these versions, and whole; nothing in it is touched either way."""
    try:
        lock = read_lock(work.out)
        _same(lock["manifest"], [plan.public() for plan in plan_datasets(manifest, work, engine.progress)], work.out)
        _same_versions(lock.get("versions"), "a release built", work.out)
        _whole(lock["files"], work.out)
    finally:
        shutil.rmtree(work.root)
    return Built(work.out, lock, was_complete=True)


def _go_on(plans: list[DatasetPlan], work: Work) -> None:
    """Save the plan, or find the one that was saved to be the same, so that no two builds are mixed.

    Raises:
        BuildError: the folder holds a build of another manifest, or by other versions.

    """
    before = begun(work)
    if before is None:
        save_plans(plans, work)
        return
    _same([data["public"] for data in before["datasets"]], [plan.public() for plan in plans], work.out)
    _same_versions(before["versions"], "a build begun", work.out)
    save_plans(plans, work)  # the sources may have moved


def _same_versions(before: object, what: str, out: Path) -> None:
    """Refuse what other versions made: its bytes may differ from what is made here."""
    there = before if isinstance(before, dict) else {}
    now = versions()
    for name in (name for name in now if there.get(name) != now[name]):
        raise BuildError(
            f"--out {out}: holds {what} with {name} {there.get(name)}, here is {now[name]}; "
            "give another folder, or remove this one"
        )


def _whole(files: dict[str, Any], out: Path) -> None:
    """Refuse a finished release of which a file is missing or has another size than the lock says."""
    for name, described in files.items():
        size = (out / name).stat().st_size if (out / name).is_file() else None
        if size != described["bytes"]:
            found = "it is missing" if size is None else f"it has {size} bytes"
            raise BuildError(
                f"--out {out}: the release is damaged: {name}: expected {described['bytes']} bytes, {found}; "
                f"put the file back, or remove the folder and build again (`mmlongbench audit {out}` lists all)"
            )


@contextmanager
def _claimed(out: Path) -> Iterator[Work]:
    """The right to build in a folder. A build that came to no plan leaves nothing, where nothing stood before."""
    work, new = _usable(out)
    with claim(work.root / "claims" / "build", f"the release {out}"):
        try:
            yield work
        except (MMLongBenchError, OSError):
            has_corpus = (work.root / "corpus").is_dir()  # it may have taken hours
            if work.root in new and not work.plan.is_file() and not has_corpus:
                shutil.rmtree(work.root, ignore_errors=True)
                with suppress(OSError):  # the outermost that is not empty ends it
                    for folder in new[1:]:
                        folder.rmdir()
            raise


def _usable(out: Path) -> tuple[Work, list[Path]]:
    """The folder to build in: new, empty, an interrupted build's, or a finished release's; and the folders made."""
    out = out.resolve()
    try:
        new = [folder for folder in (Work(out).root, out, *out.parents) if not folder.exists()]
        if out.exists() and not out.is_dir():
            raise BuildError(f"--out {out}: is a file; give a folder")
        if out.is_dir() and not ((out / LOCK).is_file() or Work(out).plan.is_file() or _is_bare(out)):
            raise BuildError(f"--out {out}: is not empty and no build of this engine; give an empty or a new folder")
        Work(out).root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"--out {out}: cannot be written: {error.strerror}") from error
    return Work(out), new


def _is_bare(out: Path) -> bool:
    """Whether there is nothing in a folder, or only what a build leaves that was stopped before it had a plan."""
    root = Work(out).root
    begun = {path.name for path in root.glob("*") if not path.name.startswith(TEMPORARY)}
    return {*out.iterdir()} <= {root} and begun <= {"claims", "sample", "corpus", "cache"}


def _same(before: list[dict[str, Any]], now: list[dict[str, Any]], out: Path) -> None:
    """Refuse to go on with another manifest's build; say what differs."""
    if before == now:
        return
    named = {data["name"]: data for data in before}
    for data in now:
        old = named.pop(data["name"], None)
        keys = ["name"] if old is None else [key for key in data if data[key] != old.get(key)]
        if keys:
            raise BuildError(
                f"--out {out}: holds a build of another manifest: {data['name']}.{keys[0]} is {data[keys[0]]!r}, "
                f"there it is {None if old is None else old.get(keys[0])!r}; give another folder, or remove this one"
            )
    raise BuildError(f"--out {out}: holds a build that also has {', '.join(named) or 'another order of datasets'}")


def _refuse_rejects(shards: list[Shard], work: Work) -> None:
    for line in (line for shard in shards for line in work.read(shard)):
        if "reject" in line and not line["reject"].get("is_expected", False):
            raise StrictStop(f"--strict: {sentence(line['reject'])}")

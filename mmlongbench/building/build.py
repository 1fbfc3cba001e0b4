"""Runs a build: saves the plan, runs the shards of each stage, and finishes the release. A killed build can be
continued.
"""

import errno
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.build_plan import DatasetPlan, load_interrupted_plan, plan_datasets, save_plans
from mmlongbench.building.executors.base import Executor
from mmlongbench.building.finish import finish
from mmlongbench.building.lines import Reject
from mmlongbench.building.rejects import sentence
from mmlongbench.building.run_log import logged
from mmlongbench.building.running import do_shards
from mmlongbench.building.session import Session
from mmlongbench.building.source_files import SOURCE_FILES, SourceFiles
from mmlongbench.building.stages.table import STAGES, Stage
from mmlongbench.errors import BuildError, MMLongBenchError, StrictStop
from mmlongbench.io.atomic import TEMPORARY, file_lock
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.registry import reader_type
from mmlongbench.manifest.resolve import (
    bind_builder,
    check_plugins,
    check_reserve,
    missing_metrics,
    placements_of,
    refuse_secrets,
)
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, LOCK
from mmlongbench.release.lock import Lock, LockedFile, read_lock, versions

_Manifest: TypeAlias = Sequence[Mapping[str, object]]
"""The resolved manifest: its datasets in order."""
_SOURCES = dict.fromkeys(("source", "source_sha256", "corpus", "errata", "reranker_sha256"))
"""The keys of a resolved dataset whose values depend on its sources, each with the value None. If two datasets
are updated with this dict, only their other keys can still differ."""


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
    """What a user must know about the manifest, one sentence each."""


def build(manifest: Manifest, out: Path, executor: Executor, *, is_strict: bool = False) -> Built:
    """Build a release, or finish one that was interrupted.

    Raises:
        ManifestError: the manifest names something that does not exist.
        BuildError: the folder cannot be used.
        StrictStop: something was rejected and `is_strict` is true.

    """
    check_manifest(manifest)
    with _locked(out) as build_dir:
        if (build_dir.out / LOCK).is_file():
            return _complete(manifest, build_dir, executor)
        plans = plan_build(manifest, build_dir, executor)
        with logged(build_dir.out), Session(build_dir.out) as session:
            do_stages(plans, session, executor, is_strict=is_strict)
            lock = finish(plans, session, executor)
        shutil.rmtree(build_dir.root)
    return Built(build_dir.out, lock, was_complete=False)


def check_manifest(manifest: Manifest) -> None:
    """Refuse a manifest whose plug-ins, placements or reserves cannot work, before anything is written."""
    for spec in manifest.datasets:
        refuse_secrets(spec)
        builder = bind_builder(spec)
        reader_type(spec.reader)
        check_plugins(spec, builder)
        placements_of(spec, builder)
        check_reserve(spec, builder)


def notes_on(manifest: Manifest) -> list[str]:
    """Return what a user must know about a manifest that can be built, one sentence each."""
    return [
        f"dataset {spec.name!r}: metric {name!r} of builder {spec.builder!r} is not installed; the release can be "
        "built, but not scored by this metric"
        for spec in manifest.datasets
        for name in missing_metrics(bind_builder(spec))
    ]


def plan_build(manifest: Manifest, build_dir: BuildDir, executor: Executor) -> list[DatasetPlan]:
    """Find and fingerprint the sources, and save the plan; refuse a folder that has a different plan already."""
    check_manifest(manifest)
    load_interrupted_plan(build_dir)  # refuses a plan of another version before anything is changed
    plans = plan_datasets(manifest, build_dir, executor.progress)
    _go_on(plans, build_dir)
    return plans


def do_stages(plans: list[DatasetPlan], session: Session, executor: Executor, *, is_strict: bool = False) -> None:
    """Run every stage for all datasets, one stage after the other."""
    with closing(executor):
        for stage in STAGES:
            shards = [shard for plan in plans for shard in stage.shards(session, plan.spec.name)]
            do_shards(stage, shards, session, executor)
            if is_strict and stage.name in ("questions", "records"):
                _refuse_rejects(stage, shards, session.build_dir)


def _complete(manifest: Manifest, build_dir: BuildDir, executor: Executor) -> Built:
    """Return a finished release without changing it; refuse one that differs in manifest, sources or versions, or is
    damaged.
    """
    try:
        lock = read_lock(build_dir.out)
        _same(
            lock.manifest,
            [plan.public() for plan in plan_datasets(manifest, build_dir, executor.progress)],
            build_dir.out,
        )
        _same_versions(lock.versions, "a release built", build_dir.out)
        _whole(lock.files, build_dir.out)
    finally:
        shutil.rmtree(build_dir.root)
    return Built(build_dir.out, lock, was_complete=True)


def _go_on(plans: list[DatasetPlan], build_dir: BuildDir) -> None:
    """Save the plan, or refuse a folder that has a different plan already, so that two builds are never mixed.

    Raises:
        BuildError: the folder holds a build of another manifest or of other sources, or one made with other versions.

    """
    before = load_interrupted_plan(build_dir)
    if before is None:
        build_dir.discard_all()
        if build_dir.plan.is_file():  # the plan is damaged; its build may have made files
            _discard_made(build_dir.out)
        save_plans(plans, build_dir)
        return
    now = [plan.public() for plan in plans]
    changed: list[Path] = []
    if before.public != now:
        # if the saved fingerprints are damaged, only the manifests are compared
        with suppress(BuildError), closing(SourceFiles(build_dir)) as files:
            changed = files.differences(file for plan in plans for file in plan.files)
    _same(before.public, now, build_dir.out, changed)
    _same_versions(before.versions, "an unfinished build", build_dir.out)
    save_plans(plans, build_dir)  # the sources may have been moved


def _discard_made(out: Path) -> None:
    """Remove what a build without a readable plan has made, so that another manifest can be built in its folder."""
    for made in (DATA, IMAGES, ITEMS):
        shutil.rmtree(out / made, ignore_errors=True)


def _same_versions(before: object, what: str, out: Path) -> None:
    """Refuse a release or an unfinished build of other versions of the packages, because its bytes may differ."""
    there = before if isinstance(before, dict) else {}
    now = versions()
    for name in (name for name in now if there.get(name) != now[name]):
        raise BuildError(
            f"--out {out}: holds {what} with {name} {there.get(name)}, but {now[name]} is installed here; "
            "give another folder, or remove this one"
        )


def _whole(files: Mapping[str, LockedFile], out: Path) -> None:
    """Refuse a finished release with a file that is missing or has another size than the lock says."""
    for name, described in files.items():
        size = (out / name).stat().st_size if (out / name).is_file() else None
        if size != described.bytes:
            found = "it is missing" if size is None else f"it has {size} bytes"
            raise BuildError(
                f"--out {out}: the release is damaged: {name}: expected {described.bytes} bytes, {found}; "
                f"put the file back, or remove the folder and build again (`mmlongbench audit {out}` lists all)"
            )


@contextmanager
def _locked(out: Path) -> Iterator[BuildDir]:
    """Hold the lock of a folder while a release is built in it. A build that fails before it saves a plan removes the
    folders that it made, unless it has begun to build a corpus.
    """
    build_dir, new = _usable(out)
    with file_lock(build_dir.root / "claims" / "build", f"the release {out}"):
        try:
            yield build_dir
        except (MMLongBenchError, OSError):
            has_corpus = (build_dir.root / "corpus").is_dir()  # building it may have taken hours
            if build_dir.root in new and not build_dir.plan.is_file() and not has_corpus:
                shutil.rmtree(build_dir.root, ignore_errors=True)
                with suppress(OSError):  # stop at the first folder that is not empty
                    for folder in new[1:]:
                        folder.rmdir()
            raise


def _usable(out: Path) -> tuple[BuildDir, list[Path]]:
    """Make the folder to build in. Return it, and the folders that did not exist before. Refuse a folder that is not
    empty and holds neither a build of mmlongbench nor a finished release.
    """
    out = resolved(out)
    try:
        new = [folder for folder in (BuildDir(out).root, out, *out.parents) if not folder.exists()]
        if out.exists() and not out.is_dir():
            raise BuildError(f"--out {out}: is a file; give a folder instead")
        if out.is_dir() and not ((out / LOCK).is_file() or BuildDir(out).plan.is_file() or _is_bare(out)):
            raise BuildError(
                f"--out {out}: is not empty and holds no build of mmlongbench; give an empty or a new folder"
            )
        BuildDir(out).root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"--out {out}: cannot be written: {error.strerror}") from error
    return BuildDir(out), new


def resolved(out: Path) -> Path:
    """Return the folder that a path leads to, with links followed.

    Raises:
        BuildError: the path is a loop of links.

    """
    try:
        return out.resolve()
    except (RuntimeError, OSError) as error:  # Python 3.11 raises RuntimeError, later versions OSError
        if isinstance(error, OSError) and error.errno != errno.ELOOP:
            raise
        raise BuildError(f"--out {out}: is a loop of symbolic links; give a folder") from error


def _is_bare(out: Path) -> bool:
    """Return whether a folder is empty, or has only the remains of a build that stopped before it saved a plan."""
    root = BuildDir(out).root
    begun = {path.name for path in root.glob("*") if not path.name.startswith(TEMPORARY)}
    return {*out.iterdir()} <= {root} and begun <= {"claims", "sample", "corpus", "cache", "code", SOURCE_FILES}


def _same(before: _Manifest, now: _Manifest, out: Path, changed: Sequence[Path] = ()) -> None:
    """Refuse to continue a build of another manifest or of other sources; the error says what differs."""
    if before == now:
        return
    if changed and [{**data, **_SOURCES} for data in before] == [{**data, **_SOURCES} for data in now]:
        more = f" and {len(changed) - 1:,} more files differ" if len(changed) > 1 else " differs"
        raise BuildError(
            f"--out {out}: holds an unfinished build of other sources: {changed[0]}{more}; restore the old "
            "files, give another folder, or remove this one"
        )
    named = {str(data.get("name")): data for data in before}
    for data in now:
        old = named.pop(str(data["name"]), None)
        keys = ["name"] if old is None else [key for key in data if data[key] != old.get(key)]
        if keys:
            found = _difference(str(data["name"]), keys[0], data[keys[0]], None if old is None else old.get(keys[0]))
            raise BuildError(
                f"--out {out}: holds a build of another manifest: {found}; give another folder, or remove this one"
            )
    raise BuildError(f"--out {out}: holds a build that also has {', '.join(named) or 'another order of datasets'}")


def _difference(dataset: str, key: str, value: object, there: object) -> str:
    """Describe what differs between two manifests at a key."""
    if key == "source" and isinstance(value, dict) and isinstance(there, dict):
        name = next((name for name in value if value[name] != there.get(name)), "")
        if _is_fingerprint(value.get(name)) and _is_fingerprint(there.get(name)):
            return f"{dataset}.source.{name} is {_files(value[name])}, there it is {_files(there[name])}"
    return f"{dataset}.{key} is {value!r}, there it is {there!r}"


def _is_fingerprint(source: object) -> bool:
    """Return whether a value of a manifest is the fingerprint of a source."""
    if not isinstance(source, dict):
        return False
    return isinstance(source.get("sha256"), str) and all(type(source.get(key)) is int for key in ("files", "bytes"))


def _files(source: Any) -> str:  # noqa: ANN401  (of a manifest)
    return f"{source['files']:,} files of {source['bytes']:,} bytes with the SHA-256 {source['sha256'][:12]}…"


def _refuse_rejects(stage: Stage, shards: list[Shard], build_dir: BuildDir) -> None:
    for line in (line for shard in shards for line in build_dir.read(shard, stage.lines)):
        if isinstance(line, Reject) and not line.fault.is_expected:
            raise StrictStop(f"--strict: {sentence(line)}")

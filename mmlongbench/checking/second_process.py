"""Looks at releases from a second process: audits each, then builds it again, with another hash seed, date, working
directory, HOME and LANG, and other workers. What a task keeps in memory, or takes from its surroundings, is not there.

The process runs `python -m mmlongbench.checking.second_process RELEASES RESULTS`, with the names of two JSON files.
"""

import hashlib
import json
import os
import site
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from mmlongbench.building.build import do_stages
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.building.finish import finish
from mmlongbench.building.planning import check_manifest, plan_build
from mmlongbench.building.session import Session
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.checking.findings import Failure, SecondLook
from mmlongbench.checking.world import World
from mmlongbench.errors import error_text
from mmlongbench.io.files import sha256_of
from mmlongbench.io.locations import LocalPath
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import Bound, PluginCallError, bind, calling
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.task_files import TaskFiles, tasks_of
from mmlongbench.prompt import Part
from mmlongbench.release.assets import ASSETS
from mmlongbench.release.audit import Target
from mmlongbench.release.audit import audit as audit_files
from mmlongbench.release.diff import against
from mmlongbench.release.layout import DATA, LOCK
from mmlongbench.release.lock import lock_bytes, read_lock
from mmlongbench.release.release import open_release
from mmlongbench.task.rows import Row, SourcePaths

WORKERS = 2
"""The processes of a build that is compared with a build in one process."""
_DATES = ("<+14>-14", "<-12>12")
"""Two time zones in which it is never the same day, as the variable TZ names them."""
_QUIET = Progress(is_shown=False)
Prompted: TypeAlias = tuple[str, int, str]
"""A prompt: the id of its row, its length in tokens, its text."""


@dataclass(frozen=True, slots=True)
class BuiltRelease:
    """A release of one dataset to audit and to build again."""

    manifest: Manifest
    release: Path
    out: Path
    """A new folder, for the release to compare with."""
    sources: dict[str, Path]
    workers: int = WORKERS
    prompts: tuple[str, ...] = ()
    """The digests of the prompts of all records, as the first process rebuilds them."""
    lengths: tuple[int, ...] = ()
    """The lengths at which examples are packed, of which `manifest` has the shortest."""
    packed: tuple[tuple[str, int, str, str], ...] = ()
    """The keys and the digests of `packed_texts`, as the first process has them."""


def look_again(releases: Sequence[BuiltRelease], folder: Path) -> list[SecondLook]:
    """Audit and build every release in another process; `folder` is for files that are passed to it.

    If a task ends the process, each release gets a process of its own; one that ends again has failed.
    """
    if not releases:
        return []
    given, results = folder / "releases.json", folder / "results.json"
    results.unlink(missing_ok=True)
    given.write_bytes(TypeAdapter(list[BuiltRelease]).dump_json(list(map(rooted, releases))))
    command = [sys.executable, "-P", "-m", "mmlongbench.checking.second_process", str(given), str(results)]
    done = subprocess.run(command, cwd=folder, env=surroundings(folder), check=False, capture_output=True, text=True)
    if not done.returncode and results.is_file():
        return TypeAdapter(list[SecondLook]).validate_json(results.read_bytes())
    if len(releases) > 1:
        return [look for release in releases for look in look_again([release], folder)]
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    message = f"the process that builds again ended with exit code {done.returncode}: {last}"
    return [SecondLook(failures=(Failure(message),), build_error=message)]


def rooted(built: BuiltRelease) -> BuiltRelease:
    """Make all paths absolute, so that another working directory does not change them."""

    def absolute(value: Any) -> Any:  # noqa: ANN401  (any value of a manifest)
        if isinstance(value, Path):
            return value.absolute()
        if isinstance(value, LocalPath):
            return LocalPath(value.path.absolute())
        if isinstance(value, tuple):
            return tuple(map(absolute, value))
        return {key: absolute(inner) for key, inner in value.items()} if isinstance(value, dict) else value

    specs = [spec.model_copy(update=absolute(dict(spec))) for spec in built.manifest.datasets]
    paths = {"release": absolute(built.release), "out": absolute(built.out), "sources": absolute(built.sources)}
    return replace(built, manifest=Manifest(datasets=tuple(specs)), **paths)


def surroundings(folder: Path) -> dict[str, str]:
    """Return the environment with another hash seed, time zone, HOME and LANG, and the folders from which this process
    imports. Caches stay where they are.
    """
    variables = os.environ
    is_east = time.localtime().tm_yday == time.gmtime(time.time() + 14 * 3600).tm_yday
    changed = {
        "PYTHONHASHSEED": "1" if variables.get("PYTHONHASHSEED") == "0" else "0",
        "PYTHONPATH": os.pathsep.join(str(Path(path or ".").resolve()) for path in sys.path),
        "TZ": _DATES[is_east],
        "HOME": str(folder),
        "PYTHONUSERBASE": site.getuserbase(),  # packages that were installed with `pip install --user`
        "LANG": "C" if variables.get("LANG") == "C.UTF-8" else "C.UTF-8",
        "XDG_CACHE_HOME": variables.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser()),
    }
    return {**variables, **changed}


def difference(release: Path, other: Path) -> Failure | None:
    """Return how two releases of one manifest differ, public files before others; None if they do not."""
    if read_lock(release).manifest != read_lock(other).manifest:
        return Failure("the fingerprints of the sources differ; a sample is the same every time", "draw()")
    first, second = _hashes(release), _hashes(other)
    changed = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    if not changed:
        return None
    name = next((name for name in changed if name.startswith(f"{DATA}/")), changed[0])
    more = f", and {len(changed) - 1} more files" if len(changed) > 1 else ""
    if name not in first or name not in second:
        return Failure(f"only one of the two builds has {name}{more}")
    pairs = zip((release / name).read_bytes().splitlines(), (other / name).read_bytes().splitlines(), strict=False)
    for number, (ours, theirs) in enumerate(pairs if name.endswith(".jsonl") else (), 1):
        if ours != theirs:
            record, again = json.loads(ours), json.loads(theirs)
            key = next((key for key in record if record[key] != again.get(key)), "")
            method = "raw_rows()" if key == "id" else "draft() or record()"
            where = f"in line {number}: {key!r} is {against(record.get(key), again.get(key))}"
            return Failure(f"{name} differs {where}{more}", method, str(record.get("id", "")))
    return Failure(f"{name} differs{more}")


def _hashes(release: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a release, by its path; the files of an unfinished build are left out. So is
    the table of assets, also in the lock: the second build reads the sources where the first one has unpacked or
    downloaded them to, so it knows other origins.
    """
    files = {path.relative_to(release).as_posix(): path for path in sorted(release.rglob("*")) if path.is_file()}
    hashes = {name: sha256_of(path) for name, path in files.items() if not name.startswith(".build/")}
    hashes.pop(ASSETS, None)
    lock = read_lock(release)
    locked = {name: file for name, file in lock.files.items() if name != ASSETS}
    data = b"".join(lock_bytes(lock.model_copy(update={"files": locked})))
    return {**hashes, LOCK: hashlib.sha256(data).hexdigest()}


def rows_digest(bound: Bound, sources: SourcePaths) -> str:
    """Return a digest of all rows of a source, or of what is wrong with them, in their order."""
    digest = hashlib.sha256()
    for row in read_rows(bound.reader_type(), sources, name=bound.spec.reader):
        digest.update(row.model_dump_json().encode() if isinstance(row, Row) else repr(row).encode())
    return digest.hexdigest()


def prompts(release: Path, tasks: TaskFiles) -> Iterator[Prompted]:
    """Rebuild the prompt of every record of a release, and its variants, and yield the id of its row, its length in
    tokens and the prompt.

    Raises:
        PluginCallError: a prompt cannot be rebuilt.

    """
    for file in open_release(release, tasks).files:
        if (dataset := file.dataset) is None:
            continue
        for _, record in file.form.unbundle(file.path):
            id, builder = str(record.get("id", "")), dataset.builder
            for form in ("", *builder.variants):
                try:
                    with calling("builder", dataset.spec.builder, f"render_variant({form!r})" if form else "prompt()"):
                        parts = (builder.render_variant(record, form) if form else builder.prompt(record)).parts
                except PluginCallError as error:
                    error.row = id
                    raise
                yield id, file.length, _as_text(parts)


def packed_texts(world: World) -> dict[tuple[str, int, str], str]:
    """Return the prompts and the answers of the examples at lengths that are packed, but not built, by the id of the
    row, the length in tokens, and what the text is.
    """
    texts = {}
    for length in world.lengths[len(world.built) :]:
        for example in world.examples(length):
            placement = example.placement
            at = f" at {placement.field} {placement.value}" if placement else ""
            texts[example.id, length, f"the prompt{at}"] = _as_text(example.prompt.parts)
            for variant, prompt in world.variants(example).items():
                texts[example.id, length, f"the variant {variant!r}{at}"] = _as_text(prompt.parts)
            texts[example.id, length, f"the answer{at}"] = repr(world.answer_of(example))
    return texts


def _as_text(parts: Iterable[Part]) -> str:
    return "".join(part if isinstance(part, str) else f"[{part.path}]" for part in parts)


def digest_of(prompt: str) -> str:
    return hashlib.sha256(prompt.encode("utf-8", "backslashreplace")).hexdigest()


def _look(built: BuiltRelease) -> SecondLook:
    """Rebuild the prompts of a release and audit it; then build it again. The prompts come first, so that no other
    method of the task was called in this process before `prompt()`.
    """
    rows, failures, build_error, other, packed = "", list[Failure](), "", None, None
    try:
        (spec,) = built.manifest.datasets
        tasks = tasks_of(spec.builder, spec.reader)
        try:
            pairs = enumerate(zip(prompts(built.release, tasks), built.prompts, strict=False))
            other = next(((n, text) for n, ((_, _, text), digest) in pairs if digest_of(text) != digest), None)
        except PluginCallError as error:
            message = f"in a new process, the prompt cannot be rebuilt from the record: {error.fault}"
            failures.append(Failure(message, error.method, error.row))
        rows = rows_digest(bind(spec), built.sources)
        for audit in audit_files(Target((built.release,), tasks=tasks), _QUIET):
            for kind, count in audit.problems.items():
                failures.append(Failure(f"{audit.file}: {kind} ({count} times): {audit.first[kind]}"))
    except Exception as error:  # noqa: BLE001  (one dataset must not end the checks of the others)
        failures.append(Failure(error_text(error)))
    try:
        build_dir, executor = BuildDir(built.out), LocalExecutor(built.workers, _QUIET)
        build_dir.root.mkdir(parents=True)
        plans, _ = plan_build(check_manifest(built.manifest), build_dir, executor)
        with Session(built.out, plans) as session:
            do_stages(session, executor)
            finish(session, executor)
            questions = tuple(session.questions(spec.name))
            world = World(session.dataset(spec.name), questions, built.lengths, built.out)
            theirs = packed_texts(world)
            ours = {(id, length, what): digest for id, length, what, digest in built.packed}
            for key in dict.fromkeys((*ours, *theirs)):
                if key not in theirs or digest_of(theirs[key]) != ours.get(key):
                    packed = (*key, theirs.get(key))
                    break
    except Exception as error:  # noqa: BLE001  (nor this one)
        build_error = error_text(error)
    return SecondLook(rows, tuple(failures), build_error, other, packed)


if __name__ == "__main__":
    given, results = map(Path, sys.argv[1:])
    releases = TypeAdapter(list[BuiltRelease]).validate_json(given.read_bytes())
    results.write_bytes(TypeAdapter(list[SecondLook]).dump_json(list(map(_look, releases))))

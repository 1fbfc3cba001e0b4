"""Looks at releases from another process: audits each, then builds it again, with another hash seed, date, working
directory, HOME and LANG, and other workers. What a task keeps in memory, or takes from its surroundings, is not there.

The other process runs `python -m mmlongbench.checking.again RELEASES RESULTS`, with the names of two JSON files.
"""

import hashlib
import json
import os
import site
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, field_validator

from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.checking.findings import two_values
from mmlongbench.errors import MMLongBenchError, error_text
from mmlongbench.io.files import sha256_of
from mmlongbench.io.locations import LocalPath
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import PluginCallError, calling
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.plugins import reader_type
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles, tasks_of
from mmlongbench.release.assets import ASSETS
from mmlongbench.release.audit import audit_release
from mmlongbench.release.layout import DATA, LOCK
from mmlongbench.release.lock import lock_bytes, read_lock
from mmlongbench.release.release import open_release
from mmlongbench.task.rows import Row, SourcePaths

WORKERS = 2
"""The processes of a build that is compared with a build in one process."""
_DATES = ("<+14>-14", "<-12>12")
"""Two time zones in which it is never the same day, as the variable TZ names them."""
_BUILD = ".build"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReleaseToRecheck(_Model):
    """A release to audit and to build again."""

    manifest: Manifest
    """What it was built from."""
    release: Path
    """Its folder."""
    out: Path
    """A new folder, for the release to compare with."""
    sources: dict[str, Path]
    """The sources of its only dataset."""
    workers: int = WORKERS

    @field_validator("manifest")
    @classmethod
    def _rooted(cls, manifest: Manifest) -> Manifest:
        """Make the paths absolute."""
        specs = (spec.model_copy(update={k: _absolute(v) for k, v in spec}) for spec in manifest.datasets)
        return Manifest(datasets=tuple(specs))

    @field_validator("sources")
    @classmethod
    def _rooted_sources(cls, sources: dict[str, Path]) -> dict[str, Path]:
        """Make the paths absolute."""
        return {name: path.absolute() for name, path in sources.items()}


class AuditProblem(_Model):
    """A kind of problem that an audit found."""

    file: str
    dataset: str
    """The dataset of the file; empty if it belongs to none."""
    problem: str
    count: int
    first: str


class Difference(_Model):
    """How two releases of one manifest differ."""

    text: str = ""
    """The first file that differs, in words; empty if none differs."""
    row: str = ""
    """The id of the first record that differs."""
    method: str = ""
    """The methods of which one gave something else."""


class RecheckResult(_Model):
    """What the other process found in a release."""

    rows: str = ""
    """A digest of all rows of the source, in their order; empty if they could not be read."""
    prompt_fault: str = ""
    """Why the prompt of a record could not be rebuilt; empty if all could."""
    prompt_row: str = ""
    """The id of this record."""
    audit: tuple[AuditProblem, ...] = ()
    audit_error: str = ""
    """Why there was no audit; empty if there was one."""
    build_error: str = ""
    """Why there is no second release; empty if there is one."""
    difference: Difference = Difference()
    """How the two releases differ. It is set in the process that compares them."""


def recheck(releases: Sequence[ReleaseToRecheck], folder: Path) -> list[RecheckResult]:
    """Audit and build every release in another process; `folder` is for files that are passed to it.

    Raises:
        MMLongBenchError: the process died.

    """
    given, results = folder / "releases.json", folder / "results.json"
    given.write_bytes(TypeAdapter(list[ReleaseToRecheck]).dump_json(list(releases)))
    command = [sys.executable, "-P", "-m", "mmlongbench.checking.again", str(given), str(results)]
    done = subprocess.run(command, cwd=folder, env=surroundings(folder), check=False, capture_output=True, text=True)
    if done.returncode or not results.is_file():
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise MMLongBenchError(f"the process that builds again ended with exit code {done.returncode}: {last}")
    return TypeAdapter(list[RecheckResult]).validate_json(results.read_bytes())


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


def _absolute(value: object) -> object:
    """Return a value of a manifest with absolute paths, which another working directory does not change."""
    if isinstance(value, Path):
        return value.absolute()
    if isinstance(value, LocalPath):
        return LocalPath(value.path.absolute())
    if isinstance(value, tuple):
        return tuple(map(_absolute, value))
    return {key: _absolute(each) for key, each in value.items()} if isinstance(value, dict) else value


def problems_of(release: Path, tasks: TaskFiles = NO_TASK_FILES) -> list[AuditProblem]:
    """Audit a release, and return every kind of problem."""
    return [
        AuditProblem(file=found.file, dataset=found.dataset, problem=kind, count=count, first=found.first[kind])
        for found in audit_release(release, Progress(is_shown=False), tasks=tasks)
        for kind, count in found.problems.items()
    ]


def hashes(release: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a release, by its path; the files of an unfinished build are left out. So is
    the table of assets, also in the lock: the second build reads the sources where the first one has unpacked or
    downloaded them to, so it knows other origins.
    """
    files = (path for path in sorted(release.rglob("*")) if path.is_file())
    named = {path.relative_to(release).as_posix(): path for path in files}
    found = {name: sha256_of(path) for name, path in named.items() if not name.startswith(f"{_BUILD}/")}
    found.pop(ASSETS, None)
    if LOCK in found:
        lock = read_lock(release)
        files_of_lock = {name: file for name, file in lock.files.items() if name != ASSETS}
        data = b"".join(lock_bytes(lock.model_copy(update={"files": files_of_lock})))
        found[LOCK] = hashlib.sha256(data).hexdigest()
    return found


def difference(one: Path, other: Path) -> Difference:
    """Compare two releases, public files before others."""
    if read_lock(one).manifest != read_lock(other).manifest:
        return Difference(
            text="the fingerprints of the sources differ; a sample is the same every time", method="draw()"
        )
    first, second = hashes(one), hashes(other)
    changed = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    if not changed:
        return Difference()
    name = next((name for name in changed if name.startswith(f"{DATA}/")), changed[0])
    more = f", and {len(changed) - 1} more files" if len(changed) > 1 else ""
    if name not in first or name not in second:
        return Difference(text=f"only one of the two builds has {name}{more}")
    found = _line(one / name, other / name)
    return found.model_copy(update={"text": f"{name} differs{found.text}{more}"})


def _line(one: Path, other: Path) -> Difference:
    """Return where two files first differ: the line, the field of its record, and the methods that make it."""
    pairs = zip(one.read_bytes().splitlines(), other.read_bytes().splitlines(), strict=False)
    for number, (ours, theirs) in enumerate(pairs if one.suffix == ".jsonl" else (), 1):
        if ours != theirs:
            record, again = json.loads(ours), json.loads(theirs)
            key = next((key for key in record if record[key] != again.get(key)), "")
            method = "raw_rows()" if key == "id" else "draft() or record()"
            text = f" in line {number}: {key!r} is {two_values(record.get(key), again.get(key))}"
            return Difference(text=text, row=str(record.get("id", "")), method=method)
    return Difference()


def _recheck_one(release: ReleaseToRecheck) -> RecheckResult:
    """Rebuild the prompts of a release and audit it; then build it again. The prompts come first, so that no other
    method of the task was called in this process before `prompt()`.
    """
    found = RecheckResult()
    try:
        (spec,) = release.manifest.datasets
        tasks = tasks_of(spec.builder, spec.reader)
        found = _prompts(release.release, tasks)
        found = found.model_copy(update={"rows": rows_digest(spec.reader, release.sources)})
        found = found.model_copy(update={"audit": tuple(problems_of(release.release, tasks))})
    except Exception as error:  # noqa: BLE001  (one dataset must not end the checks of the others)
        found = found.model_copy(update={"audit_error": error_text(error)})
    try:
        build(release.manifest, release.out, LocalExecutor(release.workers, Progress(is_shown=False)))
    except Exception as error:  # noqa: BLE001  (nor this one)
        found = found.model_copy(update={"build_error": error_text(error)})
    return found


def rows_digest(reader: str, sources: SourcePaths) -> str:
    """Return a digest of all rows of a source, or of what is wrong with them, in their order."""
    digest = hashlib.sha256()
    for row in read_rows(reader_type(reader)(), sources, name=reader):
        digest.update(row.model_dump_json().encode() if isinstance(row, Row) else repr(row).encode())
    return digest.hexdigest()


def _prompts(release: Path, tasks: TaskFiles) -> RecheckResult:
    """Rebuild the prompt of every record, and return the first fault."""
    for file in open_release(release, tasks).files:
        if (dataset := file.dataset) is None:
            continue
        for _, record in file.form.unbundle(file.path):
            try:
                with calling("builder", dataset.spec.builder, "prompt()"):
                    dataset.builder.prompt(record)
            except PluginCallError as error:
                return RecheckResult(prompt_fault=error.fault, prompt_row=str(record.get("id", "")))
    return RecheckResult()


if __name__ == "__main__":
    given, results = map(Path, sys.argv[1:])
    releases = TypeAdapter(list[ReleaseToRecheck]).validate_json(given.read_bytes())
    rechecked = [_recheck_one(each) for each in releases]
    results.write_bytes(TypeAdapter(list[RecheckResult]).dump_json(rechecked))

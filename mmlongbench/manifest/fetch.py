"""Downloads the sources of a manifest into a data folder: what is missing or wrong, checked against its record."""

import hashlib
import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from mmlongbench.errors import DiskFullError, FetchError, ManifestError, nearest
from mmlongbench.io.archives import FULL, remove
from mmlongbench.io.downloads import (
    HttpRefusal,
    NoRevisionError,
    RemoteFile,
    UnreachableError,
    hash_of,
    hub_address,
    hub_file,
    list_dataset,
    url_facts,
    url_file,
)
from mmlongbench.io.files import file_lock, said_bytes, write_whole
from mmlongbench.io.printable import without_secrets
from mmlongbench.io.progress import Advance, Progress
from mmlongbench.manifest.downloads import (
    FETCH_LOCK,
    MAIN,
    RESERVED,
    DownloadSpec,
    FetchedDataset,
    FetchedFile,
    fault_of_path,
    is_filled,
    load_record,
)
from mmlongbench.manifest.model import Manifest

_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """A place that files come from, and the datasets that need them."""

    spec: DownloadSpec
    licence: str
    datasets: tuple[str, ...]


def places_of(manifest: Manifest, only: Collection[str] = ()) -> tuple[Place, ...]:
    """Return the places of the named datasets of a manifest, of all by default, each once, in the order of the
    datasets.

    Raises:
        ManifestError: there is no such dataset.

    """
    names = [dataset.name for dataset in manifest.datasets]
    for name in only:
        if name not in names:
            raise ManifestError(
                f"--only {name!r:.100}: no such dataset; there are {', '.join(names)}{nearest(name, names)}"
            )
    places: dict[DownloadSpec, Place] = {}
    for dataset in manifest.datasets:
        for spec in dataset.downloads if dataset.name in only or not only else ():
            place = places.get(spec) or Place(spec, spec.licence or dataset.licence_text, ())
            places[spec] = replace(place, datasets=(*place.datasets, dataset.name))
    return tuple(places.values())


@dataclass(frozen=True, slots=True)
class FetchedPlace:
    """What was downloaded from one place."""

    name: str
    """`hub:owner/name`, or the URL without secrets."""
    folder: Path
    """The folder of the files; for a URL the file."""
    datasets: tuple[str, ...]
    """The datasets that need the files."""
    licence: str
    """The licence of the files."""
    commit: str = ""
    """The commit of a dataset of the hub; empty for a URL, or if the hub did not answer."""
    files: int = 0
    """How many files the place has for these datasets."""
    bytes: int = 0
    """The bytes of those of them that are there."""
    downloaded: int = 0
    """How many of them were downloaded now."""
    there: int = 0
    """How many of them are there, and have the expected bytes."""
    notes: tuple[str, ...] = ()
    """What a user must know, such as a file that was downloaded again."""
    problems: tuple[str, ...] = ()
    """Why files are not there, one sentence each."""
    unverified: bool = False
    """Whether nothing is known that confirms this place."""

    @property
    def is_complete(self) -> bool:
        """Whether all files are there."""
        return not self.problems and 0 < self.files == self.there


@dataclass(frozen=True, slots=True)
class LeftToDo:
    """What a person has to do, because no program may download the files."""

    folder: Path
    """Where the files go."""
    steps: tuple[str, ...]
    """What to do, in order."""
    datasets: tuple[str, ...]
    """The datasets that need the files."""
    licence: str
    """The licence of the files."""
    is_there: bool
    """Whether the file or folder is there; its content is not checked."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of `fetch`."""

    folder: Path
    """The data folder."""
    places: tuple[FetchedPlace, ...]
    """The places that a program may download from."""
    left: tuple[LeftToDo, ...]
    """What a person has to do."""

    @property
    def is_complete(self) -> bool:
        """Whether everything is there that a program may download."""
        return all(place.is_complete for place in self.places)


def fetch(
    manifest: Manifest,
    folder: Path,
    *,
    only: Collection[str] = (),
    update: bool = False,
    progress: Progress | None = None,
) -> Fetched:
    """Download what the datasets of a manifest need and a program may download, unless it is there already (see
    `mmlongbench.fetch`).
    """
    places = places_of(manifest, only)
    by_hand = [(place, folder / place.spec.to) for place in places if place.spec.steps]
    left = tuple(
        LeftToDo(target, place.spec.steps, place.datasets, place.licence, is_there=is_filled(target))
        for place, target in by_hand
    )
    programs = [place for place in places if not place.spec.steps]
    if not programs:
        return Fetched(folder, (), left)
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / FETCH_LOCK, f"{folder}"):
        accounts = _Run(folder, progress or Progress(False), is_update=update).all(programs)
    return Fetched(folder, tuple(account.result(folder) for account in accounts), left)


@dataclass(frozen=True, slots=True)
class _Job:
    path: str
    """The path below the data folder."""
    origin: str
    """`hub:owner/name@commit/path`, or the URL without secrets."""
    file: RemoteFile
    """What is expected of its bytes."""
    size: int | None = None
    """How many bytes its server says that it has."""
    version: str = ""
    """What the server of a URL calls this version of the file."""


@dataclass(slots=True)
class _Account:
    """What happened to the files of one place so far; the fields are those of `FetchedPlace`."""

    place: Place
    jobs: list[_Job] = field(default_factory=list)
    commit: str = ""
    there: int = 0
    bytes: int = 0
    downloaded: int = 0
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_stopped: bool = False
    """Whether nothing more of the place is downloaded."""

    def result(self, folder: Path) -> FetchedPlace:
        spec, about = self.place.spec, (self.place.datasets, self.place.licence, self.commit)
        counts = len(self.jobs), self.bytes, self.downloaded, self.there
        told = tuple(self.notes), tuple(self.problems), spec.unverified
        return FetchedPlace(spec.name, folder / spec.to, *about, *counts, *told)


class _Run:
    def __init__(self, folder: Path, progress: Progress, *, is_update: bool) -> None:
        self._folder, self._progress, self._is_update = folder, progress, is_update
        self._record = load_record(folder)  # it grows with each file
        self._listed: dict[tuple[str, str], tuple[str, tuple[RemoteFile, ...]]] = {}
        self._silent: UnreachableError | None = None
        """Why the hub did not answer; it is not asked again."""

    def all(self, places: Sequence[Place]) -> list[_Account]:
        accounts = []
        with self._progress.bar("listing", len(places)) as step:
            for place in places:
                accounts.append(self._account(place))
                step()
        origins: dict[str, str] = {}
        for account in accounts:
            for job in account.jobs:
                first = origins.setdefault(job.path, job.origin)
                if first != job.origin:  # the place that comes later is left out
                    account.is_stopped = True
                    account.problems.append(f"{job.path}: {first} and {job.origin} would be the same file")
        missing = self._missing(accounts)
        needed, free = sum(job.size or 0 for _, job in missing), shutil.disk_usage(self._folder).free
        if needed > free:
            raise DiskFullError(
                f"{self._folder}: {len(missing):,} files need {said_bytes(needed)}, and {said_bytes(free)} are free; "
                "make room, give another folder, or fetch fewer datasets with --only; nothing was downloaded"
            )
        if any(account.jobs for account in accounts):
            self._save_record()
        with self._progress.meter("fetching, MB", needed // _MB + 1) as advance:
            fetched = set[str]()
            for account, job in missing:
                if job.path in fetched:
                    self._count(account, job)
                elif not account.is_stopped and self._download(account, job, lambda size: advance(size / _MB)):
                    fetched.add(job.path)
        for account in accounts:
            if account.there == len(account.jobs) and not account.problems:
                self._drop_stale(account)
        return accounts

    def _account(self, place: Place) -> _Account:
        account, spec = _Account(place), place.spec
        try:
            if spec.hub:
                account.jobs = self._hub_jobs(account)
            else:  # what is expected of the file of a URL is what its first download had
                before = self._record.files.get(spec.to)
                is_known = before is not None and before.origin == spec.name and not self._is_update
                file = RemoteFile("", before.size, before.sha256) if before and is_known else RemoteFile("")
                account.jobs = [_Job(spec.to, spec.name, file)]
        except HttpRefusal as error:
            is_kept_from_us = error.status in (401, 403, 404)
            account.problems.append(_no_access(spec, error.status) if is_kept_from_us else str(error))
        except FetchError as error:
            account.problems.append(str(error))
        return account

    def _hub_jobs(self, account: _Account) -> list[_Job]:
        """Return the files of a dataset of the hub at the recorded commit, or at the newest one."""
        spec, before = account.place.spec, self._record.datasets.get(account.place.spec.key)
        try:
            account.commit, listed = self._pinned(account, before)
        except UnreachableError as error:
            if before is None:
                raise
            account.notes.append(f"{error}; the files are checked against the record of downloads alone")
            recorded = [(path.removeprefix(f"{spec.to}/"), self._record.files.get(path)) for path in before.files]
            account.commit = before.commit
            listed = tuple(
                RemoteFile(inner, known.size, known.sha256) if known else RemoteFile(inner) for inner, known in recorded
            )
        for file in listed:
            # as a program might resolve it
            parts = [part for part in file.path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
            fault = fault_of_path(file.path)
            if fault and (spec.matches(file.path) or spec.matches("/".join(parts))):
                said = f"lists a file {file.path!r:.200}, whose path cannot be used ({fault})"
                raise FetchError(f"{spec.name}: {said}; nothing of this dataset is downloaded")
        files = {file.path: file for file in listed if spec.matches(file.path)}
        for pattern in spec.files:
            if not any(spec.model_copy(update={"files": (pattern,)}).matches(path) for path in files):
                raise FetchError(f"{spec.name}: has no file {pattern!r} at this revision; see its page on the hub")
        jobs = [
            _Job(f"{spec.to}/{path}", f"{spec.name}@{account.commit}/{path}", file, file.size)
            for path, file in sorted(files.items())
        ]
        self._record.datasets[spec.key] = FetchedDataset(commit=account.commit, files=tuple(job.path for job in jobs))
        return jobs

    def _pinned(self, account: _Account, before: FetchedDataset | None) -> tuple[str, tuple[RemoteFile, ...]]:
        """Return the commit that the record names, and its files; a note says if the revision has moved since then."""
        spec, revision = account.place.spec, account.place.spec.revision or MAIN
        now, files = self._listing(spec.hub, revision)
        if before is None or before.commit == now:
            return now, files
        moved = f"{spec.name}: {revision} is now {now[:12]}, the files here are of {before.commit[:12]}"
        if self._is_update:
            account.notes.append(f"{moved}; they are replaced")
            return now, files
        account.notes.append(f"{moved}, which stays; --update downloads the newer files")
        try:
            return self._listing(spec.hub, before.commit)
        except (NoRevisionError, HttpRefusal) as error:
            raise FetchError(f"{moved}, which the hub no longer has; --update downloads the newer files") from error

    def _listing(self, name: str, revision: str) -> tuple[str, tuple[RemoteFile, ...]]:
        """Return the commit and the files of a dataset; each revision is listed once."""
        if self._silent:
            raise self._silent
        if (name, revision) not in self._listed:
            try:
                self._listed[name, revision] = list_dataset(name, revision)
            except UnreachableError as error:
                self._silent = error
                raise
        return self._listed[name, revision]

    def _missing(self, accounts: Sequence[_Account]) -> list[tuple[_Account, _Job]]:
        missing = []
        jobs = [(account, job) for account in accounts if not account.is_stopped for job in account.jobs]
        targets = [self._folder / job.path for _, job in jobs]
        here = sum(target.stat().st_size for target in targets if target.is_file())
        with self._progress.meter("checking, MB", here // _MB + 1) as advance:
            for account, job in jobs:
                try:
                    if self._is_there(account, job, lambda size: advance(size / _MB)):
                        self._count(account, job)
                        continue
                    if url := account.place.spec.url:
                        size, version = url_facts(url)
                        job = replace(job, size=size, version=version)
                    missing.append((account, job))
                except FetchError as error:
                    account.problems.append(_failed(account.place.spec, job, error))
        return missing

    def _is_there(self, account: _Account, job: _Job, advance: Advance) -> bool:
        """Return whether the expected file is there; raises FetchError if it is another, not downloaded here."""
        target, url = self._target(job.path), account.place.spec.url
        if not target.exists():
            return False
        remove(_part_of(target))  # of a process that was killed when the file had just got its name
        size, sha256, before = target.stat().st_size, hash_of(target, advance=advance), self._record.files.get(job.path)
        is_ours = before is not None and (before.size, before.sha256) == (size, sha256)
        fault, version = job.file.fault(target, size, sha256), before.version if before else ""
        if url and not job.file.sha256:  # only the server knows what is right
            expected, version = url_facts(url)
            fault = f"expected {expected:,} bytes, found {size:,}" if expected not in (None, size) else ""
            if before is not None and not (is_ours and version and version == before.version):
                fault = fault or "may be of another version"
        elif before is not None and not is_ours and not job.file.is_known and before.origin == job.origin:
            fault = fault or f"expected SHA-256 {before.sha256[:16]}…, found {sha256[:16]}…"
        if not fault:
            self._remember(job, size, sha256, version)
            return True
        if before is None:
            raise FetchError(f"{target}: is not the file of {job.origin} ({fault}); move it away")
        if not is_ours:
            account.notes.append(f"{target}: {fault}; it is downloaded again")
        return False

    def _download(self, account: _Account, job: _Job, advance: Advance) -> bool:
        target, spec = self._target(job.path), account.place.spec
        folder = _part_of(target)
        try:
            remove(folder)
            folder.mkdir(parents=True)
            if spec.hub:
                path = hub_file(spec.hub, account.commit, job.file.path, folder, advance)
            else:
                path = folder / "file"
                url_file(spec.url, job.size, job.version, path, advance)
            size, sha256 = path.stat().st_size, hash_of(path)
            if fault := job.file.fault(path, size, sha256):
                todo = "the hub sends other bytes than it lists: run the same command again later"
                if spec.url:
                    first = f"{job.origin} has other bytes than at the first download (downloads.json)"
                    todo = f"{first}: --update takes the new file"
                account.problems.append(f"{target}: {fault}; {todo}")
                return False
            with path.open("rb") as file:
                os.fsync(file.fileno())
            path.replace(target)
        except FetchError as error:
            account.problems.append(_failed(spec, job, error))
            account.is_stopped = True  # what stopped one file of a place would stop the next one
            return False
        except OSError as error:
            if error.errno not in FULL:
                raise
            todo = "make room and run the same command to continue"
            raise DiskFullError(f"{target}: {error.strerror}; what was downloaded is kept: {todo}") from error
        finally:
            remove(folder)
        self._remember(job, size, sha256, job.version)
        self._save_record()
        account.downloaded += 1
        self._count(account, job)
        if job.size is None and not job.file.is_known:
            account.notes.append(f"{target}: {job.origin} does not say its size; check that {size:,} bytes are all")
        return True

    def _drop_stale(self, account: _Account) -> None:
        """Remove files of earlier commits that a dataset of the hub no longer has, so that no reader finds them."""
        spec, paths = account.place.spec, {job.path for job in account.jobs}
        stale = []
        for path, file in self._record.files.items():
            name, _, rest = file.origin.partition("@")
            commit, _, inner = rest.partition("/")
            is_of_place = name == spec.name and path == f"{spec.to}/{inner}" and spec.matches(inner)
            if is_of_place and commit != account.commit and path not in paths:
                stale.append(path)
        for path in stale:
            self._target(path).unlink(missing_ok=True)
            del self._record.files[path]
            account.notes.append(f"{self._folder / path}: removed, because {account.commit[:12]} no longer has it")
        if stale:
            self._save_record()

    def _count(self, account: _Account, job: _Job) -> None:
        account.there += 1
        account.bytes += self._record.files[job.path].size

    def _remember(self, job: _Job, size: int, sha256: str, version: str) -> None:
        self._record.files[job.path] = FetchedFile(origin=job.origin, size=size, sha256=sha256, version=version)

    def _save_record(self) -> None:
        write_whole(self._folder / RESERVED, [self._record.model_dump_json(indent=1).encode(), b"\n"])

    def _target(self, path: str) -> Path:
        """Return the target of a download; raises FetchError if it, or a folder above it, is a link or no folder."""
        target, above = self._folder / path, self._folder
        for part in PurePosixPath(path).parts:
            above /= part
            if above.is_symlink():
                todo = "replace it by a folder or a file"
                raise FetchError(f"{above}: is a link; downloads are not written through links: {todo}")
            if above != target and above.exists() and not above.is_dir():
                raise FetchError(f"{above}: expected a folder, found a file; move it away")
        if target.exists() and not target.is_file():
            raise FetchError(f"{target}: expected a file, found a folder or a device; move it away")
        return target


def _failed(spec: DownloadSpec, job: _Job, error: FetchError) -> str:
    if not isinstance(error, HttpRefusal):
        return str(error)
    is_refused = error.status in (401, 403)
    if spec.hub and is_refused:
        return _no_access(spec, error.status)
    todo = f"see {spec.name}" if is_refused else "check whether the place still exists"
    return f"{error}; {todo}, or download the file by hand to {job.path}"


def _no_access(spec: DownloadSpec, status: int) -> str:
    page = without_secrets(f"{hub_address()}/datasets/{spec.hub}")
    first = f"agree to {spec.agree} at {page}" if spec.agree else f"check the name, or ask for access at {page}"
    login = "log in with `hf auth login` or set HF_TOKEN, and run the same command"
    what = "the hub has no such dataset for you" if status == 404 else "the hub refuses access"
    return f"{spec.name}: {what} ({status}); {first}, {login}"


def _part_of(target: Path) -> Path:
    """Return the folder into which a file is downloaded. Its name is always the same, so that the next run removes what
    a killed one left.
    """
    return target.with_name(f".part-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}")

"""Downloads the sources of a manifest into a data folder: what is missing or wrong, checked against its record."""

import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mmlongbench.errors import DiskFullError, FetchError
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
from mmlongbench.io.files import file_lock, said_bytes
from mmlongbench.io.printable import without_secrets
from mmlongbench.io.progress import Advance, Progress
from mmlongbench.manifest.download_record import (
    Fetched,
    FetchedDataset,
    FetchedFile,
    FetchedPlace,
    LeftToDo,
    Place,
    is_filled,
    load_record,
    paths_of,
    places_of,
    safe_target,
    save_record,
)
from mmlongbench.manifest.downloads import FETCH_LOCK, MAIN
from mmlongbench.manifest.model import Manifest

_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Job:
    """A file that a place has."""

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
class Account:
    """What happened to the files of one place so far."""

    place: Place
    jobs: list[Job] = field(default_factory=list)
    commit: str = ""
    there: int = 0
    bytes: int = 0
    downloaded: int = 0
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_stopped: bool = False
    """Whether nothing more of the place is downloaded."""


def fetch(
    manifest: Manifest,
    folder: Path,
    *,
    only: Collection[str] = (),
    update: bool = False,
    progress: Progress | None = None,
) -> Fetched:
    """Download what the datasets of a manifest need and a program may download, unless it is there already.

    Args:
        manifest: the manifest.
        folder: the data folder; it is made if it does not exist.
        only: the names of datasets; empty for all of them.
        update: whether newer files replace those that were downloaded before, if their place has changed.
        progress: shows how far it is; nothing is shown by default.

    Raises:
        ManifestError: `only` names no dataset of the manifest.
        FetchError: there is no room, or the record of the folder cannot be read.

    """
    programs, left = [], []
    for place in places_of(manifest, only):
        if not place.spec.steps:
            programs.append(place)
            continue
        target = folder / place.spec.to
        left.append(LeftToDo(target, place.spec.steps, place.datasets, place.licence, is_there=is_filled(target)))
    if not programs:
        return Fetched(folder, (), tuple(left))
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / FETCH_LOCK, f"{folder}"):
        run = _Run(folder, progress or Progress(False), is_update=update)
        return Fetched(folder, tuple(_result(account, folder) for account in run.all(programs)), tuple(left))


def _result(account: Account, folder: Path) -> FetchedPlace:
    place = account.place
    return FetchedPlace(
        name=place.spec.name,
        folder=folder / place.spec.to,
        datasets=place.datasets,
        licence=place.licence,
        commit=account.commit,
        files=len(account.jobs),
        bytes=account.bytes,
        downloaded=account.downloaded,
        there=account.there,
        notes=tuple(account.notes),
        problems=tuple(account.problems),
        unverified=place.spec.unverified,
    )


class _Run:
    def __init__(self, folder: Path, progress: Progress, *, is_update: bool) -> None:
        self._folder, self._progress, self._is_update = folder, progress, is_update
        self._record = load_record(folder)  # it grows with each file
        self._listed: dict[tuple[str, str], tuple[str, tuple[RemoteFile, ...]]] = {}
        self._silent: UnreachableError | None = None
        """Why the hub did not answer; it is not asked again."""

    def all(self, places: Sequence[Place]) -> list[Account]:
        """List the files of all places, check those that are there, and download the others."""
        accounts = []
        with self._progress.bar("listing", len(places)) as step:
            for place in places:
                accounts.append(self._account(place))
                step()
        self._refuse_shared_targets(accounts)
        missing = self._missing(accounts)
        self._refuse_small_disk([job for _, job in missing])
        if any(account.jobs for account in accounts):
            save_record(self._folder, self._record)
        with self._progress.meter("fetching, MB", sum(job.size or 0 for _, job in missing) // _MB + 1) as advance:
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

    def _account(self, place: Place) -> Account:
        account, spec = Account(place), place.spec
        try:
            if spec.hub:
                account.jobs = list(self._of_hub(place, account))
            else:  # what is expected of the file of a URL is what its first download had
                before = self._record.files.get(spec.to)
                is_known = before is not None and before.origin == spec.name and not self._is_update
                file = RemoteFile("", before.size, before.sha256) if before and is_known else RemoteFile("")
                account.jobs = [Job(spec.to, spec.name, file)]
        except HttpRefusal as error:
            is_kept_from_us = error.status in (401, 403, 404)
            account.problems.append(_no_access(place, error.status) if is_kept_from_us else str(error))
        except FetchError as error:
            account.problems.append(str(error))
        return account

    def _of_hub(self, place: Place, account: Account) -> Iterator[Job]:
        """Yield the files of a dataset of the hub at the recorded commit, or at the newest one."""
        name = place.spec.hub
        try:
            account.commit, listed = self._pinned(place, account)
        except UnreachableError as error:
            before = self._record.datasets.get(place.key)
            if before is None:
                raise
            account.notes.append(f"{error}; the files are checked against the record of downloads alone")
            account.commit, listed = before.commit, tuple(self._recorded(place, path) for path in before.files)
        files = {file.path: file for file in listed}
        paths = list(paths_of(place.spec, files.keys()))
        dataset = FetchedDataset(commit=account.commit, files=tuple(path for _, path in paths))
        self._record.datasets[place.key] = dataset
        for file, path in paths:
            yield Job(path, f"hub:{name}@{account.commit}/{file}", files[file], files[file].size)

    def _pinned(self, place: Place, account: Account) -> tuple[str, tuple[RemoteFile, ...]]:
        """Return the commit that the record names, and its files; a note says if the revision has moved since then."""
        spec, revision = place.spec, place.spec.revision or MAIN
        now, files = self._listing(spec.hub, revision)
        before = self._record.datasets.get(place.key)
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

    def _recorded(self, place: Place, path: str) -> RemoteFile:
        """Return a file of the hub as the record has it."""
        found = self._record.files.get(path)
        known = (found.size, found.sha256) if found else (None, "")
        return RemoteFile(path.removeprefix(f"{place.spec.to}/"), *known)

    def _refuse_shared_targets(self, accounts: Sequence[Account]) -> None:
        """Stop a place that has a file which an earlier one has differently."""
        origins: dict[str, str] = {}
        for account in accounts:
            for job in account.jobs:
                first = origins.setdefault(job.path, job.origin)
                if first != job.origin:
                    account.is_stopped = True
                    account.problems.append(f"{job.path}: {first} and {job.origin} would be the same file")

    def _missing(self, accounts: Sequence[Account]) -> list[tuple[Account, Job]]:
        """Return the files that have to be downloaded, with their sizes; count the others as there."""
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
                    if account.place.spec.url:
                        size, version = url_facts(account.place.spec.url)
                        job = replace(job, size=size, version=version)
                    missing.append((account, job))
                except FetchError as error:
                    account.problems.append(_said(account.place, job, error))
        return missing

    def _is_there(self, account: Account, job: Job, advance: Advance) -> bool:
        """Return whether a file is there with the expected bytes.

        Raises:
            FetchError: another file is there that was not downloaded here.

        """
        target, url = safe_target(self._folder, job.path), account.place.spec.url
        if not target.exists():
            return False
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

    def _refuse_small_disk(self, jobs: Sequence[Job]) -> None:
        needed, free = sum(job.size or 0 for job in jobs), shutil.disk_usage(self._folder).free
        if needed > free:
            raise DiskFullError(
                f"{self._folder}: {len(jobs):,} files need {said_bytes(needed)}, and {said_bytes(free)} are free; make "
                "room, give another folder, or fetch fewer datasets with --only; nothing was downloaded"
            )

    def _download(self, account: Account, job: Job, advance: Advance) -> bool:
        """Download one file, and add it to the record; return whether it is there."""
        target, spec = safe_target(self._folder, job.path), account.place.spec
        # The name is always the same, so that the next run removes what a killed one left.
        folder = target.with_name(f".part-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}")
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
            account.problems.append(_said(account.place, job, error))
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
        save_record(self._folder, self._record)
        account.downloaded += 1
        self._count(account, job)
        if job.size is None and not job.file.is_known:
            account.notes.append(f"{target}: {job.origin} does not say its size; check that {size:,} bytes are all")
        return True

    def _drop_stale(self, account: Account) -> None:
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
            safe_target(self._folder, path).unlink(missing_ok=True)
            del self._record.files[path]
            account.notes.append(f"{self._folder / path}: removed, because {account.commit[:12]} no longer has it")
        if stale:
            save_record(self._folder, self._record)

    def _count(self, account: Account, job: Job) -> None:
        account.there += 1
        account.bytes += self._record.files[job.path].size

    def _remember(self, job: Job, size: int, sha256: str, version: str) -> None:
        file = FetchedFile(origin=job.origin, size=size, sha256=sha256, version=version)
        self._record.files[job.path] = file


def _said(place: Place, job: Job, error: FetchError) -> str:
    if not isinstance(error, HttpRefusal):
        return str(error)
    is_refused = error.status in (401, 403)
    if place.spec.hub and is_refused:
        return _no_access(place, error.status)
    todo = f"see {place.spec.name}" if is_refused else "check whether the place still exists"
    return f"{error}; {todo}, or download the file by hand to {job.path}"


def _no_access(place: Place, status: int) -> str:
    name, agree = place.spec.hub, place.spec.agree
    page = without_secrets(f"{hub_address()}/datasets/{name}")
    first = f"agree to {agree} at {page}" if agree else f"check the name, or ask for access at {page}"
    login = "log in with `hf auth login` or set HF_TOKEN, and run the same command"
    what = "the hub has no such dataset for you" if status == 404 else "the hub refuses access"
    return f"hub:{name}: {what} ({status}); {first}, {login}"

"""Downloads the sources of a manifest into a data folder: what is missing or wrong, checked against its record."""

import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mmlongbench.errors import DiskFullError, FetchError
from mmlongbench.io.downloads import (
    Download,
    HttpRefusal,
    OtherBytesError,
    Part,
    Received,
    Remote,
    Transfer,
    Wait,
    fault_of,
    part_of,
    received_of,
)
from mmlongbench.io.files import file_lock, said_bytes
from mmlongbench.io.hub import (
    HubFile,
    HubListing,
    NoRevisionError,
    UnreachableError,
    list_dataset,
    no_access,
    remote_of,
)
from mmlongbench.io.progress import Advance, Progress
from mmlongbench.manifest.downloads import FETCH_LOCK, MAIN
from mmlongbench.manifest.fetching.record import (
    DownloadRecord,
    Fetched,
    FetchedDataset,
    FetchedFile,
    FetchedPlace,
    Place,
    is_for_a_program,
    left_to_do,
    load_record,
    paths_of,
    places_of,
    safe_target,
    save_record,
)
from mmlongbench.manifest.model import Manifest


@dataclass(frozen=True, slots=True)
class Job:
    """A file that a place has."""

    place: Place
    path: str
    """The path below the data folder."""
    origin: str
    """`hub:owner/name@commit/path`, or the URL without secrets."""
    remote: Remote


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

    def is_stale(self, path: str, origin: str) -> bool:
        """Return whether a downloaded file is one of the place at another commit, and the place no longer has it."""
        spec = self.place.spec
        name, _, rest = origin.partition("@")
        commit, _, file = rest.partition("/")
        is_here = name == spec.name and path == f"{spec.to}/{file}" and spec.matches(file)
        return is_here and commit != self.commit and all(job.path != path for job in self.jobs)


@dataclass
class Lister:
    """Lists the files of places; it asks the hub once for each dataset and revision."""

    transfer: Transfer
    is_update: bool
    record: DownloadRecord
    """The record, to which the commits of datasets are added."""
    _listed: dict[tuple[str, str], HubListing] = field(default_factory=dict)
    _silent: UnreachableError | None = None
    """Why the hub did not answer; it is not asked again."""

    def account(self, place: Place) -> Account:
        """Return the files of a place, or why they are not known."""
        account = Account(place)
        try:
            account.jobs = list(self._of_hub(place, account) if place.spec.hub else self._of_url(place))
        except HttpRefusal as error:
            is_kept_from_us = error.status in (401, 403, 404)
            said = no_access(place.spec.hub, error.status, place.spec.agree) if is_kept_from_us else error
            account.problems.append(str(said))
        except FetchError as error:
            account.problems.append(str(error))
        return account

    def _of_url(self, place: Place) -> Iterator[Job]:
        """Yield the one file of a URL; what is expected of it is what its first download had."""
        spec = place.spec
        before = self.record.files.get(spec.to)
        known = before is not None and before.origin == spec.name and not self.is_update
        remote = Remote(spec.url, {}, before.size, before.sha256) if known and before else Remote(spec.url)
        yield Job(place, spec.to, spec.name, remote)

    def _of_hub(self, place: Place, account: Account) -> Iterator[Job]:
        """Yield the files of a dataset of the hub at the recorded commit, or at the newest one."""
        try:
            listing = self._pinned(place, account)
        except UnreachableError as error:
            listing = self._recorded(place, error)
            account.notes.append(f"{error}; the files are checked against the record of downloads alone")
        account.commit = listing.commit
        files = {file.path: file for file in listing.files}
        found = list(paths_of(place.spec, files.keys()))
        dataset = FetchedDataset(commit=listing.commit, files=tuple(path for _, path in found))
        datasets = {**self.record.datasets, place.key: dataset}
        self.record = self.record.model_copy(update={"datasets": datasets})
        for name, path in found:
            origin = f"hub:{listing.name}@{listing.commit}/{name}"
            yield Job(place, path, origin, remote_of(listing, files[name]))

    def _pinned(self, place: Place, account: Account) -> HubListing:
        """Return the files at the commit that the record names; a note says if the revision has moved since then."""
        spec, revision = place.spec, place.spec.revision or MAIN
        now = self._listing(spec.hub, revision)
        before = self.record.datasets.get(place.key)
        if before is None or before.commit == now.commit:
            return now
        moved = f"{spec.name}: {revision} is now {now.commit[:12]}, the files here are of {before.commit[:12]}"
        if self.is_update:
            account.notes.append(f"{moved}; they are replaced")
            return now
        account.notes.append(f"{moved}, which stays; --update downloads the newer files")
        try:
            return self._listing(spec.hub, before.commit)
        except (NoRevisionError, HttpRefusal) as error:
            raise FetchError(f"{moved}, which the hub no longer has; --update downloads the newer files") from error

    def _recorded(self, place: Place, error: UnreachableError) -> HubListing:
        """Return the files of a place as the record has them; raise `error` if it has none."""
        before = self.record.datasets.get(place.key)
        if before is None:
            raise error
        return HubListing(place.spec.hub, before.commit, tuple(map(partial(self._file, place), before.files)))

    def _file(self, place: Place, path: str) -> HubFile:
        found = self.record.files.get(path)
        size, sha256 = (found.size, found.sha256) if found else (None, "")
        return HubFile(path.removeprefix(f"{place.spec.to}/"), size, sha256, "")

    def _listing(self, name: str, revision: str) -> HubListing:
        if self._silent:
            raise self._silent
        if (name, revision) not in self._listed:
            try:
                self._listed[name, revision] = list_dataset(name, revision, self.transfer)
            except UnreachableError as error:
                self._silent = error
                raise
        return self._listed[name, revision]


def refuse_shared_targets(accounts: list[Account]) -> None:
    """Take files that an earlier place has too off a later one; refuse a file that two places have differently."""
    seen: dict[str, Job] = {}
    for account in accounts:
        for job in account.jobs:
            first = seen.setdefault(job.path, job)
            if first.origin != job.origin:
                account.is_stopped = True
                account.problems.append(f"{job.path}: {first.origin} and {job.origin} would be the same file")


_MB = 1_000_000


def fetch(
    manifest: Manifest,
    folder: Path,
    *,
    only: Collection[str] = (),
    update: bool = False,
    progress: Progress | None = None,
    wait: Wait = time.sleep,
) -> Fetched:
    """Download what the datasets of a manifest need and a program may download, unless it is there already.

    Args:
        manifest: the manifest.
        folder: the data folder; it is made if it does not exist.
        only: the names of datasets; empty for all of them.
        update: whether newer files replace those that were downloaded before, if their place has changed.
        progress: shows how far it is; nothing is shown by default.
        wait: waits some seconds between attempts.

    Raises:
        ManifestError: `only` names no dataset of the manifest.
        FetchError: there is no room, or the record of the folder cannot be read.

    """
    places = places_of(manifest, only)
    programs = [place for place in places if is_for_a_program(place.spec)]
    left = tuple(left_to_do(place, folder) for place in places if not is_for_a_program(place.spec))
    if not programs:
        return Fetched(folder, (), left)
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / FETCH_LOCK, f"{folder}"), closing(Transfer(wait)) as transfer:
        run = _Run(folder, transfer, load_record(folder), progress or Progress(False), is_update=update)
        accounts = run.all(programs)
    return Fetched(folder, tuple(_result(account, folder) for account in accounts), left)


class _Run:
    """One run of `fetch`."""

    def __init__(
        self, folder: Path, transfer: Transfer, record: DownloadRecord, progress: Progress, *, is_update: bool
    ) -> None:
        self._folder, self._transfer, self._progress = folder, transfer, progress
        self._is_update = is_update
        self._record = record

    def all(self, places: Sequence[Place]) -> list[Account]:
        """List the files of all places, check those that are there, and download the others."""
        lister = Lister(self._transfer, self._is_update, self._record)
        with self._progress.bar("listing", len(places)) as step:
            accounts = []
            for place in places:
                accounts.append(lister.account(place))
                step()
        refuse_shared_targets(accounts)
        self._record = lister.record
        missing = self._checked(accounts)
        self._refuse_small_disk([job for _, job in missing])
        if accounts and any(account.jobs for account in accounts):
            save_record(self._folder, self._record)
        total = sum(job.remote.size or 0 for _, job in missing)
        with self._progress.meter("fetching, MB", total // _MB + 1) as advance:
            counted, fetched = _in_megabytes(advance), set[str]()
            for account, job in missing:
                if job.path in fetched:
                    self._count(account, job)
                elif not account.is_stopped and self._download(account, job, counted):
                    fetched.add(job.path)
        for account in accounts:
            if account.there == len(account.jobs) and not account.problems:
                self._drop_stale(account)
        return accounts

    def _drop_stale(self, account: Account) -> None:
        """Remove files of earlier commits that a dataset of the hub no longer has, so that no reader finds them."""
        stale = [path for path, file in self._record.files.items() if account.is_stale(path, file.origin)]
        for path in stale:
            safe_target(self._folder, path).unlink(missing_ok=True)
            account.notes.append(f"{self._folder / path}: removed, because {account.commit[:12]} no longer has it")
        if stale:
            kept = {path: file for path, file in self._record.files.items() if path not in stale}
            self._record = self._record.model_copy(update={"files": kept})
            save_record(self._folder, self._record)

    def _checked(self, accounts: Sequence[Account]) -> list[tuple[Account, Job]]:
        """Return the files that have to be downloaded; count the others as there."""
        missing = []
        jobs = [(account, job) for account in accounts if not account.is_stopped for job in account.jobs]
        with self._progress.meter("checking, MB", sum(map(self._size_here, jobs)) // _MB + 1) as advance:
            counted = _in_megabytes(advance)
            for account, job in jobs:
                try:
                    if self._is_there(account, job, counted):
                        self._count(account, job)
                    else:
                        missing.append((account, self._sized(job)))
                except HttpRefusal as error:
                    account.problems.append(_refused(job, error))
                except FetchError as error:
                    account.problems.append(str(error))
        return missing

    def _size_here(self, counted: tuple[Account, Job]) -> int:
        target = self._folder / counted[1].path
        return target.stat().st_size if target.is_file() else 0

    def _count(self, account: Account, job: Job) -> None:
        account.there += 1
        account.bytes += self._record.files[job.path].size

    def _is_there(self, account: Account, job: Job, advance: Advance) -> bool:
        """Return whether a file is there with the expected bytes.

        Raises:
            FetchError: another file is there that was not downloaded here.

        """
        target = safe_target(self._folder, job.path)
        if not target.exists():
            return False
        found, before = received_of(target, advance), self._record.files.get(job.path)
        is_ours = before is not None and (before.size, before.sha256) == (found.size, found.sha256)
        fault, version = fault_of(job.remote, found, target), before.version if before else ""
        if job.place.spec.url and not job.remote.sha256:  # only the server knows what is right
            size, version = self._transfer.look(job.remote)
            fault = f"expected {size:,} bytes, found {found.size:,}" if size not in (None, found.size) else ""
            if before is not None and not (is_ours and version and version == before.version):
                fault = fault or "may be of another version"
        elif before is not None and not is_ours and not job.remote.is_known and before.origin == job.origin:
            fault = fault or f"expected SHA-256 {before.sha256[:16]}…, found {found.sha256[:16]}…"
        if not fault:
            self._remember(job, found, version)
            return True
        if before is None:
            raise FetchError(f"{target}: is not the file of {job.origin} ({fault}); move it away")
        if not is_ours:
            account.notes.append(f"{target}: {fault}; it is downloaded again")
        return False

    def _sized(self, job: Job) -> Job:
        """Return a file of a URL with its size, as the server says it, to know how much room is needed."""
        if job.remote.size is not None:
            return job
        return replace(job, remote=replace(job.remote, size=self._transfer.look(job.remote)[0]))

    def _refuse_small_disk(self, jobs: Sequence[Job]) -> None:
        """Raise an error if there is less room than the files need whose sizes are known."""
        parts = [part_of(self._folder / job.path) for job in jobs]
        have = sum(part.stat().st_size for part in parts if part.is_file())
        needed = sum(job.remote.size or 0 for job in jobs) - have
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise DiskFullError(
                f"{self._folder}: {len(jobs):,} files need {said_bytes(needed)}, and {said_bytes(free)} are free; make "
                "room, give another folder, or fetch fewer datasets with --only; nothing was downloaded"
            )

    def _download(self, account: Account, job: Job, advance: Advance) -> bool:
        """Download one file, and add it to the record; return whether it is there."""
        target = safe_target(self._folder, job.path)
        part = Part(part_of(target), self._record.unfinished.get(job.path, ""))

        def begun() -> None:
            self._save(unfinished={**self._record.unfinished, job.path: part.validator})

        try:
            received = self._transfer.fetch(Download(job.remote, target, part, begun, advance))
        except OtherBytesError as error:
            account.problems.append(_other_bytes(target, job, error))
            return False
        except DiskFullError:
            raise
        except FetchError as error:
            account.problems.append(_refused(job, error) if isinstance(error, HttpRefusal) else str(error))
            account.is_stopped = True  # what stopped one file of a place would stop the next one
            return False
        self._remember(job, received, part.validator if job.place.spec.url else "")
        self._save(unfinished={path: tag for path, tag in self._record.unfinished.items() if path != job.path})
        account.downloaded += 1
        self._count(account, job)
        if job.remote.size is None and not job.remote.is_known:
            account.notes.append(
                f"{target}: {job.origin} does not say its size; check that {received.size:,} bytes are all"
            )
        return True

    def _remember(self, job: Job, found: Received, version: str) -> None:
        file = FetchedFile(origin=job.origin, size=found.size, sha256=found.sha256, version=version)
        self._record = self._record.model_copy(update={"files": {**self._record.files, job.path: file}})

    def _save(self, unfinished: dict[str, str]) -> None:
        self._record = self._record.model_copy(update={"unfinished": unfinished})
        save_record(self._folder, self._record)


def _refused(job: Job, error: HttpRefusal) -> str:
    """Return why a server does not give a file, with what to do."""
    spec = job.place.spec
    if spec.hub and error.status in (401, 403):
        return str(no_access(spec.hub, error.status, spec.agree))
    todo = f"see {spec.name}" if error.status in (401, 403) else "check whether the place still exists"
    return f"{error}; {todo}, or download the file by hand to {job.path}"


def _other_bytes(target: Path, job: Job, error: OtherBytesError) -> str:
    """Return what is wrong with bytes that were downloaded, with what to do."""
    if job.place.spec.hub:
        return f"{target}: {error}; the hub sends other bytes than it lists: run the same command again later"
    if not job.remote.is_known:
        return f"{target}: {error}; {job.origin} sends another size than it says: run the same command again later"
    return (
        f"{target}: {error}; {job.origin} has other bytes than at the first download (downloads.json): --update takes "
        "the new file"
    )


def _in_megabytes(advance: Advance) -> Advance:
    """Return a function that takes bytes, and moves a bar by whole megabytes."""
    done = 0

    def add(size: int) -> None:
        nonlocal done
        before, done = done, done + size
        advance(done // _MB - before // _MB)

    return add


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

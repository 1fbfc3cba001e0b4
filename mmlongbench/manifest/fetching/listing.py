"""Lists what has to be downloaded: the files of each place, with what is known about their bytes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from mmlongbench.errors import FetchError
from mmlongbench.io.downloads import HttpRefusal, Remote, Transfer
from mmlongbench.io.hub import (
    HubFile,
    HubListing,
    NoRevisionError,
    UnreachableError,
    list_dataset,
    no_access,
    remote_of,
)
from mmlongbench.manifest.downloads import MAIN
from mmlongbench.manifest.fetching.places import Place, paths_of
from mmlongbench.manifest.fetching.record import DownloadRecord, FetchedDataset


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

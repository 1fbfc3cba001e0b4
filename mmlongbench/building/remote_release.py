"""A release at a URL that fsspec knows (`s3://bucket/release`), built in local folders.

Every process works in its own folder, downloads what others have done and uploads what it has done. Each upload is a
complete file. The result of a shard is uploaded after the files of the shard, and the lock after all other files. A URL
cannot be locked: two builds of one manifest at the same time do the work twice, and write the same bytes.
"""

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.building import shard_results
from mmlongbench.building.build import log_of
from mmlongbench.building.build_dir import WORKING, BuildDir, Shard
from mmlongbench.building.executors import Done, Executor
from mmlongbench.building.session import Session
from mmlongbench.errors import BuildError, MMLongBenchError
from mmlongbench.io.files import TEMPORARY, atomic_write
from mmlongbench.io.printable import without_secrets
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, LOCK, REJECTS
from mmlongbench.release.lock import read_lock


@dataclass(frozen=True, slots=True)
class Remote:
    """A release at a URL; every method raises BuildError if the URL cannot be used."""

    url: str

    def pull(self, folder: Path, below: str = "") -> None:
        """Download the files at the URL that `folder` lacks or has in another size; with `below`, only files in the
        subfolder with this name.
        """
        for name, size in self._sizes(below).items():
            here = folder / name
            if not here.is_file() or here.stat().st_size != size:
                with (
                    self.opened() as (files, root),
                    atomic_write(here) as file,
                    files.open(f"{root}/{name}", "rb") as there,
                ):
                    shutil.copyfileobj(there, file)

    def push(self, folder: Path, paths: Iterable[Path]) -> None:
        """Upload files in the given order. A file gets its final name at the URL only when it is complete."""
        unique = f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{threading.get_ident()}"
        for path in paths:
            with self.opened() as (files, root):
                parent, _, last = f"{root}/{path.relative_to(folder).as_posix()}".rpartition("/")
                files.makedirs(parent, exist_ok=True)
                files.put_file(str(path), f"{parent}/{unique}-{last}")
                files.mv(f"{parent}/{unique}-{last}", f"{parent}/{last}")

    def push_new(self, folder: Path) -> None:
        """Upload what is missing at the URL or has another size there: first files of the release, then the working
        folder, last the lock, unless a file that it names is missing at the URL.
        """
        there, new = self._sizes(), []
        for path in sorted(folder.rglob("*")):
            is_ours = path.is_file() and "claims" not in path.parts and not path.name.startswith(TEMPORARY)
            if is_ours and there.get(path.relative_to(folder).as_posix()) != path.stat().st_size:
                new.append(path)
        lock = folder / LOCK
        self.push(folder, sorted((path for path in new if path != lock), key=lambda path: WORKING in path.parts))
        if lock not in new:
            return
        there = self._sizes()
        for name, file in read_lock(folder).files.items():
            if there.get(name) != file.bytes:
                raise BuildError(
                    f"--out {without_secrets(self.url)}: {name}: expected {file.bytes} bytes at the URL, found "
                    f"{there.get(name, 'none')}; "
                    "the lock was not uploaded; run the same command to continue, or with --restart if it ends so again"
                )
        self.push(folder, [lock])

    def has(self, name: str) -> bool:
        """Return whether a file or a folder exists at the URL."""
        with self.opened() as (files, root):
            return bool(files.exists(f"{root}/{name}"))

    def sweep(self) -> None:
        """Remove the working folder at the URL, and half-written files of killed processes."""
        with self.opened() as (files, root):
            for path in files.find(root):
                if Path(path).name.startswith(TEMPORARY):
                    files.rm(path)
        self.discard([WORKING])

    def discard(self, names: Iterable[str]) -> None:
        """Remove files and folders at the URL, by their path in the release."""
        with self.opened() as (files, root):
            for name in names:
                if files.exists(f"{root}/{name}"):
                    files.rm(f"{root}/{name}", recursive=True)

    def _sizes(self, below: str = "") -> dict[str, int]:
        """Return the size of each file at the URL, by its path in the release, without files of unfinished uploads."""
        with self.opened() as (files, root):
            files.invalidate_cache()
            start = f"{root}/{below}".rstrip("/")
            found = files.find(start, detail=True) if files.exists(start) else {}
            names = {path.removeprefix(root).lstrip("/"): about["size"] for path, about in found.items()}
            return {name: size for name, size in names.items() if not Path(name).name.startswith(TEMPORARY)}

    @contextmanager
    def opened(self) -> Iterator[tuple[Any, str]]:
        """Give (file system of fsspec, which has no types, path of the release in it); errors inside the block become
        errors that name the URL.
        """
        import fsspec

        try:
            yield fsspec.core.url_to_fs(self.url.rstrip("/"))
        except MMLongBenchError:
            raise
        except Exception as error:
            said = without_secrets(" ".join(str(error).split())) or type(error).__name__
            raise BuildError(
                f"--out {without_secrets(self.url)}: {said}; fix this and run the same command to continue"
            ) from error


class Mirrored(Executor):
    """An executor that uploads the results of its shards to a URL, and downloads the results of other machines."""

    def __init__(self, executor: Executor, remote: Remote) -> None:
        self.executor, self.remote, self.progress = executor, remote, executor.progress

    @property
    def has_all_files(self) -> bool:
        """Return False: files that other machines made are at the URL."""
        return False

    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Run all shards, and yield (shard, seconds) whenever a shard is done; raise the first error."""
        build_dir, out = session.build_dir, session.build_dir.out
        self.remote.push_new(out)
        for shard, seconds in self.executor.run(session, shards):
            if build_dir.is_done(shard):  # the shard ran on this machine
                self.remote.push(out, outputs(build_dir, shard))
            yield shard, seconds
        self.remote.pull(out, WORKING)

    def discard_elsewhere(self, build_dir: BuildDir) -> None:
        """Remove the unfinished build at the URL; otherwise its results would be downloaded again."""
        self.remote.discard((build_dir.root.name, DATA, IMAGES, ITEMS, REJECTS))

    def close(self) -> None:
        """End the processes of the executor."""
        self.executor.close()


def outputs(build_dir: BuildDir, shard: Shard) -> list[Path]:
    """Return the files that a shard has written, its result last."""
    files: list[str] = []
    if shard.stage == "images":
        files = [f"{IMAGES}/{line.path}" for line in build_dir.read(shard, shard_results.IMAGES)]
    if shard.stage == "cells":
        files = list(build_dir.only(shard, shard_results.CELLS, shard_results.WrittenCell).files)
    return [*(build_dir.out / file for file in files), build_dir.result(shard)]


def remote_of(out: str) -> Remote | None:
    """Return the `Remote` for a URL; None for a folder.

    >>> remote_of("s3://bucket/release"), remote_of("release")
    (Remote(url='s3://bucket/release'), None)
    """
    return Remote(out) if "://" in out else None


@contextmanager
def placed(out: str, executor: Executor) -> Iterator[tuple[Path, Executor]]:
    """Give the folder to build in and the executor to use for a release at `out`, a folder or a URL."""
    remote = remote_of(out)
    if remote is None:
        yield Path(out), executor
        return
    with tempfile.TemporaryDirectory(prefix="mmlongbench-") as temporary:
        folder = Path(temporary) / "release"
        remote.pull(folder, "" if remote.has(LOCK) else WORKING)
        try:
            yield folder, Mirrored(executor, remote)
            remote.push_new(folder)
        finally:
            with suppress(BuildError):  # after a first error, a second one says nothing new
                if (log := log_of(folder)).is_file():
                    with remote.opened() as (files, root):
                        files.put_file(str(log), f"{root}.{socket.gethostname()}.log")
        if (folder / LOCK).is_file():
            remote.sweep()

"""A release at a URL that fsspec knows (`s3://bucket/release`), built in folders that stand for it.

Every process works in a folder of its own, takes what others have done from the URL and puts there what it has done: a
file at a time, whole, results of shards after the files they speak of, the lock last. A URL has no lock of the
kernel's: two builds of one manifest at once do work twice, and write the same bytes.
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

from mmlongbench.building import lines
from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.executors.base import Done, Executor
from mmlongbench.building.made import written_cell
from mmlongbench.building.run_log import log_of
from mmlongbench.building.session import Session
from mmlongbench.errors import BuildError, MMLongBenchError
from mmlongbench.io.atomic import TEMPORARY, atomic_write
from mmlongbench.release.layout import IMAGES, LOCK
from mmlongbench.release.lock import read_lock


@dataclass(frozen=True, slots=True)
class Remote:
    """A release at a URL; every method raises BuildError where the URL cannot be used."""

    url: str

    def pull(self, folder: Path, below: str = "") -> None:
        """Take what is there, below a folder, and not here, or of another size here."""
        for name, size in self.listed(below).items():
            here = folder / name
            if not here.is_file() or here.stat().st_size != size:
                with (
                    self._reported() as (files, root),
                    atomic_write(here) as file,
                    files.open(f"{root}/{name}", "rb") as there,
                ):
                    shutil.copyfileobj(there, file)

    def push(self, folder: Path, paths: Iterable[Path]) -> None:
        """Put files there, in this order; each appears whole under its name."""
        unique = f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{threading.get_ident()}"
        for path in paths:
            with self._reported() as (files, root):
                parent, _, last = f"{root}/{path.relative_to(folder).as_posix()}".rpartition("/")
                files.makedirs(parent, exist_ok=True)
                files.put_file(str(path), f"{parent}/{unique}-{last}")
                files.mv(f"{parent}/{unique}-{last}", f"{parent}/{last}")

    def push_new(self, folder: Path) -> None:
        """Put there what is here and not there, or of another size: files, then results of shards, the lock last.

        Raises:
            BuildError: a file that the lock names is not there, so that the lock is not put.

        """
        there = self.listed()
        here = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        new = [path for name, path in here.items() if _is_kept(path) and there.get(name) != path.stat().st_size]
        working = BuildDir(folder).root.name
        self.push(folder, (path for path in sorted(new, key=lambda path: working in path.parts) if path.name != LOCK))
        if here.get(LOCK) in new:
            self._check(folder)
            self.push(folder, [here[LOCK]])

    def has(self, name: str) -> bool:
        """Whether a file or a folder is there."""
        with self._reported() as (files, root):
            return bool(files.exists(f"{root}/{name}"))

    def sweep(self, working: str) -> None:
        """Remove the working folder, and what killed processes left half-written."""
        with self._reported() as (files, root):
            left = [path for path in files.find(root) if Path(path).name.startswith(TEMPORARY)]
            for path in [*left, *([f"{root}/{working}"] if files.exists(f"{root}/{working}") else [])]:
                files.rm(path, recursive=True)

    def push_log(self, log: Path) -> None:
        """Put this machine's run log there, beside the release."""
        if log.is_file():
            with self._reported() as (files, root):
                name = Path(root).name
                files.put_file(str(log), f"{root.removesuffix(name)}{name}.{socket.gethostname()}.log")

    def listed(self, below: str = "") -> dict[str, int]:
        """Size by name of what is there, below the release."""
        with self._reported() as (files, root):
            files.invalidate_cache()
            start = f"{root}/{below}".rstrip("/")
            found = files.find(start, detail=True) if files.exists(start) else {}
            names = {path.removeprefix(root).lstrip("/"): each["size"] for path, each in found.items()}
            return {name: size for name, size in names.items() if not Path(name).name.startswith(TEMPORARY)}

    def _check(self, folder: Path) -> None:
        there = self.listed()
        for name, file in read_lock(folder).files.items():
            if there.get(name) != file.bytes:
                raise BuildError(
                    f"--out {self.url}: {name}: expected {file.bytes} bytes there, found {there.get(name, 'none')}; "
                    "the lock is not put there; the same command goes on"
                )

    @contextmanager
    def _reported(self) -> Iterator[tuple[Any, str]]:
        """(file system, root there), whose errors, of whatever package, name the URL."""
        import fsspec

        try:
            files, root = fsspec.core.url_to_fs(self.url.rstrip("/"))
            yield files, str(root)
        except MMLongBenchError:
            raise
        except Exception as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise BuildError(f"--out {self.url}: {said}; the same command goes on once that is mended") from error


def _is_kept(path: Path) -> bool:
    return "claims" not in path.parts and not path.name.startswith(TEMPORARY)


class Mirrored(Executor):
    """An executor whose shards are put to a URL as they are done, and taken from there where others did them."""

    def __init__(self, executor: Executor, remote: Remote) -> None:
        self.executor, self.remote, self.progress = executor, remote, executor.progress

    @property
    def has_all_files(self) -> bool:
        """No: what other machines have made is at the URL."""
        return False

    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Do all shards, each told as it ends; or raise the first error."""
        build_dir, out = session.build_dir, session.build_dir.out
        self.remote.push_new(out)
        for shard, seconds in self.executor.run(session, shards):
            if build_dir.is_done(shard):  # by this machine
                self.remote.push(out, outputs(build_dir, shard))
            yield shard, seconds
        self.remote.pull(out, build_dir.root.name)

    def close(self) -> None:
        """End what the executor has started."""
        self.executor.close()


def outputs(build_dir: BuildDir, shard: Shard) -> list[Path]:
    """The files that a shard has written, its result last."""
    files: list[str] = []
    if shard.stage == "images":
        files = [f"{IMAGES}/{line.path}" for line in build_dir.read(shard, lines.IMAGES)]
    if shard.stage == "cells":
        files = list(written_cell(build_dir, shard).files)
    return [*(build_dir.out / file for file in files), build_dir.result(shard)]


def remote_of(out: str) -> Remote | None:
    """Where a release is to stand, if that is no folder.

    >>> remote_of("s3://bucket/release"), remote_of("release")
    (Remote(url='s3://bucket/release'), None)
    """
    return Remote(out) if "://" in out else None


@contextmanager
def placed(out: str, executor: Executor) -> Iterator[tuple[Path, Executor]]:
    """The folder to build in, and the executor to use, so that what is done stands at `out`, a folder or a URL."""
    remote = remote_of(out)
    if remote is None:
        yield Path(out), executor
        return
    with tempfile.TemporaryDirectory(prefix="mmlongbench-") as temporary:
        folder = Path(temporary) / "release"
        working = BuildDir(folder).root.name
        remote.pull(folder, "" if remote.has(LOCK) else working)
        try:
            yield folder, Mirrored(executor, remote)
            remote.push_new(folder)
        finally:
            with suppress(BuildError):  # of a first error the second is no news
                remote.push_log(log_of(folder))
        if (folder / LOCK).is_file():
            remote.sweep(working)

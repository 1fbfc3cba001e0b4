"""A release at a URL that fsspec knows (`s3://bucket/release`), built in folders that stand for it.

Every machine works in a folder of its own, takes what others have done from the URL and puts there what it has done: a
file at a time, whole, results of shards after what they speak of, the lock last. A URL has no lock of the kernel's: two
builds of one manifest at once do work twice, and write the same bytes.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.building.engine import Done, Engine
from mmlongbench.building.run_log import log_of
from mmlongbench.building.work import Shard, Work
from mmlongbench.errors import BuildError
from mmlongbench.files import TEMPORARY, whole
from mmlongbench.progress import Progress
from mmlongbench.release.layout import IMAGES, LOCK


def is_url(out: str) -> bool:
    """Whether a release is to stand at a URL, and not in a folder.

    >>> is_url("s3://bucket/release"), is_url("release")
    (True, False)
    """
    return "://" in out


@dataclass(frozen=True, slots=True)
class Remote:
    """A release at a URL."""

    url: str

    def folder(self, place: str) -> Path:
        """Where this machine, or one node of a cluster, works for it."""
        name = hashlib.sha256(self.url.rstrip("/").encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"mmlongbench-{name}" / place

    def pull(self, folder: Path, below: str = "") -> None:
        """Take what is there, below a folder, and not here, or of another size here."""
        for name, size in self._listed(below).items():
            here = folder / name
            if not here.is_file() or here.stat().st_size != size:
                with whole(here) as file, self._files()[0].open(self._at(name), "rb") as there:
                    shutil.copyfileobj(there, file)

    def push(self, folder: Path, files: Iterable[Path]) -> None:
        """Put files there, in this order; each appears whole under its name."""
        files_there, _ = self._files()
        for path in files:
            name = path.relative_to(folder).as_posix()
            parent, _, last = self._at(name).rpartition("/")
            files_there.makedirs(parent, exist_ok=True)
            files_there.put_file(str(path), f"{parent}/{TEMPORARY}{last}")
            files_there.mv(f"{parent}/{TEMPORARY}{last}", self._at(name))

    def push_new(self, folder: Path, below: str = "") -> None:
        """Put there what is here, below a folder, and not there, or of another size; the lock last."""
        there = self._listed(below)
        here = [path for path in sorted((folder / below).rglob("*")) if path.is_file()]
        kept = [path for path in here if "claims" not in path.parts and not path.name.startswith(TEMPORARY)]
        new = [path for path in kept if there.get(path.relative_to(folder).as_posix()) != path.stat().st_size]
        self.push(folder, sorted(new, key=lambda path: path.name == LOCK))

    def push_log(self, log: Path) -> None:
        """Put the run log there, beside the release."""
        if log.is_file():
            files, root = self._files()
            files.put_file(str(log), log_of(Path(root)).as_posix())

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        return bool(self._files()[0].exists(self._at(name)))

    def remove(self, name: str) -> None:
        """Remove a folder there, if there is one."""
        if self.has(name):
            self._files()[0].rm(self._at(name), recursive=True)

    def _listed(self, below: str) -> dict[str, int]:
        """Size by name below the release."""
        files, root = self._files()
        files.invalidate_cache()
        found = files.find(self._at(below), detail=True) if self.has(below) else {}
        names = {path.removeprefix(root).lstrip("/"): each["size"] for path, each in found.items()}
        return {name: size for name, size in names.items() if not Path(name).name.startswith(TEMPORARY)}

    def _at(self, name: str) -> str:
        return f"{self._files()[1]}/{name}".rstrip("/")

    def _files(self) -> tuple[Any, str]:
        """(file system, root there).

        Raises:
            BuildError: nothing that is installed knows such a URL.

        """
        import fsspec

        try:
            files, root = fsspec.core.url_to_fs(self.url.rstrip("/"))
        except (ValueError, ImportError, TypeError, OSError) as error:
            raise BuildError(f"--out {self.url}: {' '.join(str(error).split())}") from error
        return files, str(root)


@dataclass(frozen=True, slots=True)
class Mirrored:
    """An engine whose shards are put to a URL as they are done, and taken from there where others did them."""

    engine: Engine
    remote: Remote

    @property
    def progress(self) -> Progress:
        """Where bars are shown."""
        return self.engine.progress

    def run(self, out: Path, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Do all shards, each told as it ends; or raise the first error."""
        work = Work(out)
        self.remote.push_new(out, work.root.name)
        for shard, seconds in self.engine.run(out, shards):
            if work.is_done(shard):  # by this machine
                self.remote.push(out, outputs(work, shard))
            yield shard, seconds
        self.remote.pull(out, work.root.name)

    def close(self) -> None:
        """End what the engine has started."""
        self.engine.close()


def outputs(work: Work, shard: Shard) -> list[Path]:
    """The files that a shard has written, its result last."""
    files: list[str] = []
    if shard.stage in ("assets", "pictures"):
        files = [f"{IMAGES}/{line['path']}" for line in work.read(shard)]
    if shard.stage == "cells":
        files = list(next(work.read(shard))["files"])
    return [*(work.out / file for file in files), work.result(shard)]


def remote_of(out: str) -> Remote | None:
    """Where a release is to stand, if that is no folder."""
    return Remote(out) if is_url(out) else None


@contextmanager
def placed(out: str, engine: Engine) -> Iterator[tuple[Path, Engine]]:
    """The folder to build in, and the engine to use, so that what is done stands at `out`, a folder or a URL.

    The folder that stands for a URL goes once the release is there.
    """
    remote = remote_of(out)
    if remote is None:
        yield Path(out), engine
        return
    folder = remote.folder("here")
    working = Work(folder).root.name
    folder.mkdir(parents=True, exist_ok=True)
    remote.pull(folder, "" if remote.has(LOCK) else working)
    try:
        yield folder, Mirrored(engine, remote)
        remote.push_new(folder)
    finally:
        remote.push_log(log_of(folder))
    if (folder / LOCK).is_file():
        remote.remove(working)
        shutil.rmtree(folder.parent)

"""Run a build in forked processes that die, meet a full disk or a clock set back, at a chosen place; for the tests.

Everything is imported and loaded once, so that a crash costs a tenth of a second. Usage: crash_worker.py MANIFEST,
then on standard input one JSON list a line: [folder, what happens, number of the rename or part of a path]; on standard
output one JSON list a line: [exit status as of os.waitpid, number of renames seen, standard error]. What happens is
none, before, after (SIGKILL before or after a rename), full (a sync fails), crowded (see `crowd_disk_at`), back (the
clock).
"""

import errno
import itertools
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from mmlongbench.cli import main
from mmlongbench.io.files import TEMPORARY

PAGE = 4096
"""The page size of the kernel in bytes: the smallest size of a file in a tmpfs."""


def die_at(kind: str, number: int, count: Callable[[], int]) -> None:
    """Kill the process just before or just after its n-th rename."""

    def dying(rename: Callable[..., None]) -> Callable[..., None]:
        def renamed(source: str, target: str) -> None:
            at = count()
            if kind == "before" and at == number:
                os.kill(os.getpid(), signal.SIGKILL)
            rename(source, target)
            if kind == "after" and at == number:
                os.kill(os.getpid(), signal.SIGKILL)

        return renamed

    mock.patch.object(os, "replace", dying(os.replace)).start()
    mock.patch.object(os, "rename", dying(os.rename)).start()  # of folders


def fill_disk_at(part: str) -> None:
    """Make the disk full when a file is synced whose path holds a part."""
    sync = os.fsync

    def fsync(file: int) -> None:
        if part in str(Path(f"/proc/self/fd/{file}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    mock.patch.object(os, "fsync", fsync).start()


def crowd_disk_at(part: str, ballast: Path) -> None:
    """Fill the disk but for one page when a file is begun whose path holds a part: the kernel refuses the second."""
    opens = Path.open

    def opened(path: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        if "w" in mode and path.name.startswith(TEMPORARY) and part in str(path) and not ballast.exists():
            with opens(ballast, "wb") as file:
                disk = os.statvfs(ballast)
                os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - PAGE)
        return opens(path, mode, *more, **named)

    mock.patch.object(Path, "open", opened).start()


def set_clock_back() -> None:
    """Let the time of day begin in 1990 and go back an hour whenever it is asked for."""
    hours = itertools.count(631_152_000, -3600)
    mock.patch.object(time, "time", side_effect=map(float, hours)).start()
    mock.patch.object(time, "time_ns", side_effect=(hour * 10**9 for hour in hours)).start()


def prepare(kind: str, where: int | str, out: Path, count: Callable[[], int]) -> None:
    """Install the crash."""
    if kind == "back":
        set_clock_back()
    if kind == "full" and isinstance(where, str):
        fill_disk_at(where)
    if kind == "crowded" and isinstance(where, str):
        crowd_disk_at(where, out.with_name("ballast"))
    die_at(kind, where if isinstance(where, int) else 0, count)


def live(manifest: str, out: str, kind: str, where: int | str, log: int, renames: int) -> None:
    """The life of one build."""
    seen = 0

    def count() -> int:
        nonlocal seen
        seen += 1
        os.pwrite(renames, f"{seen:8d}".encode(), 0)
        return seen

    os.dup2(log, 1)
    os.dup2(log, 2)
    prepare(kind, where, Path(out), count)
    code = 1
    try:
        code = build(manifest, out)
    finally:
        sys.stderr.flush()
        os._exit(code)


def build(manifest: str, out: str) -> int:
    """Build, and say how it ended."""
    sys.argv = ["mmlongbench", "build", manifest, "--out", out, "-q", "--workers", "1"]
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)


if __name__ == "__main__":
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # otherwise it warns about the fork
    read_here = lambda function, path, limits, **arguments: function(path, limits=limits, **arguments)  # noqa: E731
    mock.patch("mmlongbench.documents.confined.ask", read_here).start()  # a process for each fork would take seconds
    asked = sys.argv[1]
    with tempfile.TemporaryDirectory() as first:
        build(asked, first)  # every fork then has its modules loaded
    for line in sys.stdin:
        folder, kind, where = json.loads(line)
        with tempfile.TemporaryFile() as log, tempfile.TemporaryFile() as renames:
            child = os.fork()
            if not child:
                live(asked, folder, kind, where, log.fileno(), renames.fileno())
            _, status = os.waitpid(child, 0)
            said = os.pread(log.fileno(), 10_000, 0).decode()
            told = json.dumps([status, int(os.pread(renames.fileno(), 8, 0) or 0), said])
            sys.stdout.write(f"{told}\n")
            sys.stdout.flush()

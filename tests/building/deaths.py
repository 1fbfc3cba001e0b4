"""Run a build in forked processes that die, or meet a full disk, at a chosen place; a script for the tests.

Everything is imported and loaded once, so that a death costs a tenth of a second. Usage: deaths.py MANIFEST, then on
standard input one JSON list a line: [folder, kind of death, number of the rename or part of a path]; on standard output
one JSON list a line: [exit status as of os.waitpid, number of renames seen, standard error]. The kinds of death are
none, before, after, full.
"""

import errno
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from mmlongbench.cli import main


def die_at(kind: str, number: int, count: Callable[[], int]) -> None:
    """Make the n-th rename the last thing that is about to happen, or that has happened."""
    rename = os.replace

    def replace(source: str, target: str) -> None:
        at = count()
        if kind == "before" and at == number:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(source, target)
        if kind == "after" and at == number:
            os.kill(os.getpid(), signal.SIGKILL)

    mock.patch.object(os, "replace", replace).start()


def fill_disk_at(part: str) -> None:
    """Make the disk full when a file is synced whose path holds a part."""
    sync = os.fsync

    def fsync(file: int) -> None:
        if part in str(Path(f"/proc/self/fd/{file}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    mock.patch.object(os, "fsync", fsync).start()


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
    if isinstance(where, str):
        fill_disk_at(where)
    die_at(kind, where if isinstance(where, int) else 0, count)
    code = 1
    try:
        code = build(manifest, out)
    finally:
        sys.stderr.flush()
        os._exit(code)


def build(manifest: str, out: str) -> int:
    """Build, and say how it ended."""
    sys.argv = ["mmlongbench", "build", manifest, "--out", out, "-q"]
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)


if __name__ == "__main__":
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # or it warns of the fork
    asked = sys.argv[1]
    with tempfile.TemporaryDirectory() as first:
        build(asked, first)  # what it imports and loads is there in every fork
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

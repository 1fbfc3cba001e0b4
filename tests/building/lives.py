"""Builds that die: forked ones for `deaths.py`, and what is left of the processes of one that was killed."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from tiny import environment

SCRIPT, STRUCK = (Path(__file__).with_name(name) for name in ("deaths.py", "struck.py"))
ON_A_SMALL_DISK = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=4m none "$0" && exec "$@"')
"""Then a folder, and a command to which 4 MB of memory are mounted there."""


@dataclass(frozen=True)
class Life:
    """How one build ended."""

    status: int
    renames: int
    said: str

    @property
    def was_killed(self) -> bool:
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL

    @property
    def code(self) -> int:
        return os.waitstatus_to_exitcode(self.status)


@dataclass(frozen=True)
class Lives:
    """A process that forks builds."""

    asked: IO[str]
    told: IO[str]
    root: Path
    """Its root as it sees it, with what is mounted for it alone."""

    def one(self, out: Path, kind: str = "none", where: int | str = 0) -> Life:
        self.asked.write(json.dumps([str(out), kind, where]) + "\n")
        self.asked.flush()
        return Life(*json.loads(self.told.readline()))

    def seen(self, path: Path) -> Path:
        """A path as this process sees it."""
        return self.root / path.relative_to("/")


@contextmanager
def lives_of(manifest: Path, *before: str) -> Iterator[Lives]:
    """Forked builds of a manifest, by a process that is started with some words before it."""
    command = [*before, sys.executable, str(SCRIPT), str(manifest)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Lives(process.stdin, process.stdout, Path(f"/proc/{process.pid}/root"))
        process.stdin.close()


@contextmanager
def struck(source: Path, out: Path, part: str, by: signal.Signals, *args: object) -> Iterator[subprocess.Popen[bytes]]:
    """A build of the tiny source in a session of its own, struck by a signal before a file appears; see `struck.py`."""
    words = [sys.executable, STRUCK, "build", source / "tiny.yaml", "--out", out, "-q", *args]
    given = environment(PART=part, SIGNAL=int(by))
    with subprocess.Popen([*map(str, words)], env=given, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def skip_unless_mounting() -> None:
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("a file system is mounted in a name space of its own, which takes root")


def wait_for(seen: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def of_session(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def held_claims(out: Path) -> list[str]:
    """The claims of a build that some process holds."""
    return [path.name for path in (out / ".build" / "claims").glob("*") if is_held(path)]


def is_held(claim: Path) -> bool:
    with claim.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

"""Builds that die: forked ones for `crash_worker.py`, and what is left of the processes of one that was killed."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import needs
import pytest
from tiny import environment

SCRIPT, SIGNALLED = (Path(__file__).with_name(name) for name in ("crash_worker.py", "signal_worker.py"))
HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that end a process, unless it was started so that it ignores them."""
ON_A_SMALL_DISK = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=4m none "$0" && exec "$@"')
"""The start of a command. Then follow a folder, where 4 MB of memory are mounted for it, and the command itself."""


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
    """The root of the process, with the file systems that are mounted for it."""

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
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Lives(process.stdin, process.stdout, Path(f"/proc/{process.pid}/root"))
        process.stdin.close()
        process.wait()


@contextmanager
def signalled(
    source: Path,
    out: Path,
    part: str,
    by: signal.Signals,
    *args: object,
    ignored: Sequence[signal.Signals] = (),
    is_for_all: bool = False,
) -> Iterator[subprocess.Popen[Any]]:
    """A build of the tiny source in its own session, sent a signal before a file appears; see `signal_worker.py`.

    With `is_for_all` its workers are struck too, as by a terminal.
    """
    words = [sys.executable, SIGNALLED, "build", source / "tiny.yaml", "--out", out, "-q", *args]
    given = environment(PART=part, SIGNAL=int(by), **({"GROUP": ""} if is_for_all else {}))
    options = {"env": given, "start_new_session": True, "stderr": subprocess.PIPE, "text": True}
    with started([*map(str, words)], ignored, **options) as process:
        yield process


@contextmanager
def started(
    command: Sequence[str], ignored: Sequence[signal.Signals] = (), **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Run a process that ignores some signals and receives the others; it ends with the block.

    Where the tests are a background job of a script, they ignore SIGINT, and so would what they start.
    """

    def prepare() -> None:
        for each in HEARD:
            signal.signal(each, signal.SIG_IGN if each in ignored else signal.SIG_DFL)

    with subprocess.Popen(command, preexec_fn=prepare, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def skip_unless_mounting() -> None:
    needs.program("unshare", install="apt-get install util-linux")
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("a file system is mounted in a name space of its own, which takes root and unshare (util-linux)")


def wait_for(seen: Callable[[], object]) -> None:
    """Wait until a condition is true, up to the time limit of the test, because a busy machine may be slow."""
    while not seen():
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


def held_locks(out: Path) -> list[str]:
    """The claims of a build that some process holds."""
    return [path.name for path in (out / ".build" / "claims").glob("*") if is_held(path)]


def is_held(claim: Path) -> bool:
    with claim.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

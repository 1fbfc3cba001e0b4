"""Processes of a build: they start when it pays, end with it, die without harm, and keep off each other's work."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from crash_harness import HEARD, Lives, lives_of, of_session, signalled, started, wait_for
from halted import refused
from tiny import Ran, build, command, environment, hashes, leftovers

from mmlongbench.draws import Draws

rare = pytest.mark.rare
HOOKED = """
import concurrent.futures, ctypes, os, runpy, signal, sys, time
from pathlib import Path

Pool = concurrent.futures.ProcessPoolExecutor
rename, begin, end = os.replace, Pool.__init__, Pool.shutdown

def replace(source, target):
    here(str(target))
    rename(source, target)

def opened(self, workers, *more, **options):
    print("processes:", workers, flush=True)
    begin(self, workers, *more, **options)

def shutdown(*more, **options):
    print("waiting", flush=True)
    end(*more, **options)

def here(target):
{}

os.replace = replace
Pool.__init__ = opened
Pool.shutdown = shutdown
if __name__ == "__main__":
    runpy.run_module("mmlongbench", run_name="__main__")
"""
"""The command, and its workers, that do something before a file gets its name; they say when workers begin and end."""


def hooked(source: Path, out: Path, does: str, *args: object) -> AbstractContextManager[subprocess.Popen[Any]]:
    """Start a build of the tiny source that does something in `here(target)`."""
    script = out.with_name(f"{out.name}.py")
    script.write_text(HOOKED.format("\n".join(f"    {line}" for line in does.splitlines())))
    words = [sys.executable, script, "build", source / "tiny.yaml", "--out", out, "-q", *args]
    return started([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ran(source: Path, out: Path, does: str, *args: object) -> Ran:
    with hooked(source, out, does, *args) as process:
        said, err = process.communicate()
    return Ran(process.returncode, said, err)


# Signals


@pytest.mark.parametrize(
    ("workers", "is_for_all"),
    [pytest.param(1, False, marks=rare), pytest.param(2, True, marks=rare), (2, False)],
    ids=["1", "2-terminal", "2-one"],
)
def test_an_interrupt_ends_a_build_at_once_with_one_line_and_it_goes_on(
    workers: int, is_for_all: bool, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    args = ("--workers", workers)
    with signalled(source, out, "cedar_page1.jpg", signal.SIGINT, *args, is_for_all=is_for_all) as process:
        _, said = process.communicate()
    assert process.returncode == 130
    assert re.fullmatch(r"\n*interrupted at images: \d of \d shards .+; run the same command to continue.*\n", said)
    wait_for(lambda: not of_session(process.pid))
    before = set((out / "mmlb_image").rglob("[!.]*_page*.jpg"))
    assert build(source, out).code == 0
    assert before < set((out / "mmlb_image").rglob("[!.]*_page*.jpg"))
    assert not leftovers(out)


@rare
@pytest.mark.parametrize("by", [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM], ids=lambda signal: signal.name)
def test_a_signal_that_ends_a_build_leaves_no_process_and_it_goes_on(
    by: signal.Signals, source: Path, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with signalled(source, out, "cedar_page1.jpg", by, "--workers", 2) as process:
        process.communicate()
    assert process.returncode == -by
    wait_for(lambda: not of_session(process.pid))
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)
    assert not leftovers(out)


@rare
def test_an_interrupt_ends_workers_that_ignore_sigterm(source: Path, tmp_path: Path) -> None:
    deaf, args = [signal.SIGTERM], ("--workers", 2)
    with signalled(source, tmp_path / "out", "cedar_page1.jpg", signal.SIGINT, *args, ignored=deaf) as process:
        _, said = process.communicate()
    assert process.returncode == 130
    assert "interrupted at images: " in said  # it ended by itself, not by the limit of a second and a half
    wait_for(lambda: not of_session(process.pid))


@rare
@pytest.mark.parametrize("workers", [1, 2])
def test_a_build_that_ignores_signals_from_its_start_builds(
    workers: int, source: Path, finished: Path, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "mmlongbench", "build", source / "tiny.yaml", "--out", tmp_path / "out", "-q"]
    line = [*map(str, words), "--workers", str(workers)]
    with started(line, HEARD, stderr=subprocess.PIPE, text=True) as process:
        _, said = process.communicate()
    assert (process.returncode, said) == (0, "")
    assert hashes(tmp_path / "out") == hashes(finished)


LONG_CALL = """
if "cedar_page1" in target:
    signal.signal(signal.SIGINT, lambda *_: None)  # should it come before the call
    mutex = ctypes.create_string_buffer(64)
    ctypes.CDLL(None).pthread_mutex_lock(mutex)
    print("begun", flush=True)
    ctypes.CDLL(None).pthread_mutex_lock(mutex)  # for ever, and no step of Python's own
"""
ONE_FAILS = """
if "ash_page" in target:
    raise OSError(5, "Input/output error", "ash")
if "birch_page" in target:
    time.sleep(1000)
"""


@rare
@pytest.mark.parametrize(
    ("does", "workers", "seen"),
    [(LONG_CALL, 1, "begun\n"), (ONE_FAILS, 2, "waiting\n")],
    ids=["in a long call of another language", "while it waits for the others after an error of one"],
)
def test_an_interrupt_ends_a_build(does: str, workers: int, seen: str, source: Path, tmp_path: Path) -> None:
    with hooked(source, tmp_path / "out", does, "--workers", workers) as process:
        assert process.stdout is not None
        while process.stdout.readline() != seen:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130, said
    assert "interrupted" in said


# Workers that die


DIES = """
marker = Path({marker!r})
if "cedar_page1" in target and not marker.exists():
    if marker.parent.is_dir():
        marker.touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_all_cores_are_used_once_a_build_has_taken_a_while_and_a_shard_whose_worker_is_killed_is_done_once_more(
    source: Path, finished: Path, tmp_path: Path
) -> None:
    slow = "if 'documents/mmlongdoc/ash' in target: time.sleep(1.1)\n"
    cores = len(os.sched_getaffinity(0))
    workers = () if cores > 1 else ("--workers", 2)
    ended = ran(source, tmp_path / "out", slow + DIES.format(marker=str(tmp_path / "died")), *workers)
    assert (ended.code, ended.err) == (0, "")
    assert (tmp_path / "died").exists()
    all_of_them = str(max(cores, 2))  # they stay until one dies, and begin again with the next stage
    assert re.findall(r"processes: (\d+)", ended.out) == [all_of_them, "1", all_of_them]
    assert hashes(tmp_path / "out") == hashes(finished)


@rare
def test_a_shard_that_kills_its_worker_again_is_named_and_the_build_goes_on(
    source: Path, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    refused(
        ran(source, out, DIES.format(marker=str(tmp_path / "no" / "marker")), "--workers", 2),
        "error: images/mmlongdoc/pages/cedar: the process died at this shard again when it ran alone",
    )
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)


# Two builds of one thing at once: the second is refused by the kernel's lock, which dies with its owner


@contextmanager
def paused(source: Path, out: Path, part: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """A build that is paused in the middle of a shard: its process is alive and holds its locks."""
    with signalled(source, out, part, signal.SIGSTOP, "--workers", 1, *args) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        yield process


def stage(source: Path, out: Path, name: str, *args: str) -> Ran:
    return command("build", source / "tiny.yaml", "--out", out, "--stage", name, *args)


@pytest.fixture
def packed(source: Path, tmp_path: Path) -> Path:
    """A build that has only its images left to do; cedar is the third of four shards."""
    for name in ("prepare", "records"):
        assert stage(source, tmp_path / "out", name).code == 0
    return tmp_path / "out"


def test_a_shard_that_a_living_build_does_is_refused_until_that_build_dies(
    packed: Path, source: Path, finished: Path
) -> None:
    release = f"the release {packed} is being written by another process"
    with paused(source, packed, "images/mmlongdoc/pages/cedar", "--stage", "images", "--shard", "3/4") as first:
        busy = "is being written by another process; wait for it or stop it"
        refused(stage(source, packed, "images", "--shard", "3/4"), "shard images/mmlongdoc/pages/cedar of ", busy)
        for others in (build(source, packed), stage(source, packed, "prepare"), command("finish", packed)):
            refused(others, release)
        assert stage(source, packed, "images", "--shard", "4/4").code == 0  # another shard
        first.kill()
        first.wait()
        assert stage(source, packed, "images", "--shard", "3/4").code == 0
    assert build(source, packed).code == 0
    assert hashes(packed) == hashes(finished)
    assert not leftovers(packed)


@rare
def test_builds_of_different_shards_at_once_end_with_the_same_bytes(packed: Path, source: Path, finished: Path) -> None:
    with paused(source, packed, "cedar_page2.jpg", "--stage", "images", "--shard", "1/2") as first:
        assert stage(source, packed, "images", "--shard", "2/2").code == 0
        first.send_signal(signal.SIGCONT)
        assert first.wait() == 0
    assert command("finish", packed).code == 0
    assert hashes(packed) == hashes(finished)


@rare
def test_a_release_that_is_built_in_one_go_is_nobody_elses(source: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with paused(source, out, "records/mmlongdoc/2K") as first:
        for others in (build(source, out), stage(source, out, "records"), command("finish", out)):
            refused(others, f"error: the release {out} is being written by another process; wait for it or stop it")
        first.send_signal(signal.SIGCONT)
        assert first.wait() == 0
    assert hashes(out) == hashes(finished)


# Bytes depend on no process, place or clock


@rare
def test_workers_hash_seeds_places_and_dates_do_not_change_a_byte(source: Path, finished: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(source, moved)
    for path in moved.rglob("*"):
        os.utime(path, (86_400, 86_400))
    (tmp_path / "a" / "b").mkdir(parents=True)
    runs = {
        tmp_path / "one": (source, 1, "0"),
        tmp_path / "a" / "b" / "two": (moved, 2, "1"),
        tmp_path / "three": (source, 3, "random"),
    }
    with ExitStack() as stack:
        builds = {}
        for out, (where, workers, seed) in runs.items():
            words = [sys.executable, "-m", "mmlongbench", "build", where / "tiny.yaml", "--out", out, "-q"]
            given = environment(PYTHONHASHSEED=seed, TZ="Pacific/Kiritimati")
            line = [*map(str, words), "--workers", str(workers)]
            builds[out] = stack.enter_context(started(line, env=given, text=True, stderr=subprocess.PIPE))
        for out, process in builds.items():
            _, said = process.communicate()
            assert (process.returncode, said) == (0, "")
            assert hashes(out) == hashes(finished)
            assert not leftovers(out)


HOUR, YEAR = 3600, 365 * 24 * 3600
TIMES = {"an hour ahead": HOUR, "twenty years ahead": 20 * YEAR, "twenty years back": -20 * YEAR}
"""The modification time of files from before the clock was changed."""


@pytest.fixture(scope="module")
def dated(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny source, whose dates are to be changed."""
    return Path(shutil.copytree(source, tmp_path_factory.mktemp("clock") / "source"))


@pytest.fixture(scope="module")
def lives(dated: Path) -> Iterator[Lives]:
    with lives_of(dated / "tiny.yaml") as forked:
        yield forked


@rare
@pytest.mark.parametrize("when", TIMES)
def test_a_build_goes_on_to_the_same_bytes_when_the_clock_was_set(
    when: str, dated: Path, lives: Lives, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for number in Draws(("clock", when)).order("rename", range(3, 9))[:3]:  # each goes on from the last
        assert lives.one(out, "after", number).was_killed
        move_dates(out, TIMES[when])
        move_dates(dated, TIMES[when])
    ended = lives.one(out, "back")
    assert ended.code == 0, ended.said
    assert hashes(out) == hashes(finished)
    assert not leftovers(out)


def move_dates(folder: Path, seconds: int) -> None:
    """Set the modification time of every file in a folder."""
    for path in (folder, *folder.rglob("*")):
        about = path.stat()
        os.utime(path, (about.st_atime + seconds, about.st_mtime + seconds))

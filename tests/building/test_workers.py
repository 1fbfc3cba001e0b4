import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from crash_harness import HEARD, of_session, signalled, started, wait_for
from tiny import build, hashes, leftovers

from mmlongbench.building.build import build as make_release
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.io.process_pool import Processes, cores
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.loading import load_manifest

pytestmark = pytest.mark.slow

WRAPPER = """
import os, signal, sys
from pathlib import Path
from mmlongbench.building.stages import images

render = images._render_document

def die(session, shard, name):
    if name == "cedar" and not Path({marker!r}).exists():
        if Path({marker!r}).parent.is_dir():
            Path({marker!r}).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return render(session, shard, name)

images._render_document = die

if __name__ == "__main__":
    from mmlongbench.cli import main
    main()
"""


@pytest.mark.parametrize(
    ("workers", "is_for_all"), [(1, False), (2, True), (2, False)], ids=["1", "2-terminal", "2-one"]
)
def test_an_interrupt_ends_a_build_at_once_with_one_line_and_it_goes_on(
    workers: int, is_for_all: bool, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    args = ("--workers", workers)
    with signalled(source, out, "cedar_page1.jpg", signal.SIGINT, *args, is_for_all=is_for_all) as process:
        _, said = process.communicate()
    assert process.returncode == 130
    assert re.fullmatch(
        r"\n*interrupted at images: \d of \d shards of this stage are done and kept; "
        r"run the same command to continue from here\n",
        said,
    )
    wait_for(lambda: not of_session(process.pid))
    before = set((out / "mmlb_image").rglob("[!.]*_page*.jpg"))
    assert build(source, out).code == 0
    assert before < set((out / "mmlb_image").rglob("[!.]*_page*.jpg"))
    assert not leftovers(out)


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


def test_an_interrupt_ends_workers_that_ignore_sigterm(source: Path, tmp_path: Path) -> None:
    deaf, args = [signal.SIGTERM], ("--workers", 2)
    with signalled(source, tmp_path / "out", "cedar_page1.jpg", signal.SIGINT, *args, ignored=deaf) as process:
        _, said = process.communicate()
    assert process.returncode == 130
    assert "interrupted at images: " in said  # it ended by itself, not by the limit of a second and a half
    wait_for(lambda: not of_session(process.pid))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_build_that_ignores_signals_from_its_start_builds(
    workers: int, source: Path, finished: Path, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "mmlongbench", "build", source / "tiny.yaml", "--out", tmp_path / "out", "-q"]
    command = [*map(str, words), "--workers", str(workers)]
    with started(command, HEARD, stderr=subprocess.PIPE, text=True) as process:
        _, said = process.communicate()
    assert (process.returncode, said) == (0, "")
    assert hashes(tmp_path / "out") == hashes(finished)


def test_a_shard_whose_worker_is_killed_is_done_once_more(source: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = killed(source, out, tmp_path / "died")
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "died").exists()
    assert hashes(out) == hashes(finished)


def test_a_shard_that_kills_its_worker_again_is_named_and_the_build_goes_on(
    source: Path, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = killed(source, out, tmp_path / "no" / "marker")  # cannot be created, so the worker dies each time
    assert ran.returncode == 2
    assert ran.stderr.startswith(
        "error: images/mmlongdoc/pages/cedar: the process died at this shard again when it ran alone"
    )
    assert ran.stderr.count("\n") == 1
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)


def test_other_processes_are_started_once_a_build_has_taken_a_while_and_they_stay(
    source: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    make = Processes.__init__

    def counted(self: Processes, workers: int, *begin: object) -> None:
        started.append(workers)
        make(self, workers, *begin)  # type: ignore[arg-type]

    monkeypatch.setattr(Processes, "__init__", counted)
    manifest = load_manifest(source / "tiny.yaml")
    for patience, expected in ((1e9, []), (0.0, [2])):
        executor = LocalExecutor(2, Progress(is_shown=False), patience)
        make_release(manifest, tmp_path / str(patience), executor)
        assert started == expected
        assert hashes(tmp_path / str(patience)) == hashes(finished)


def test_all_cores_are_the_default(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LocalExecutor] = []

    def seen(workers: int, progress: Progress, patience: float) -> LocalExecutor:
        made.append(LocalExecutor(workers, progress, patience))
        return made[-1]

    monkeypatch.setattr("mmlongbench.building.executors.local.LocalExecutor", seen)
    for number, args in enumerate(((), ("--workers", "1"))):
        assert build(source, tmp_path / str(number), *args).code == 0
    assert [executor.workers for executor in made] == [cores(), 1]
    refused = build(source, tmp_path / "ray", "--engine", "ray", "--workers", "2")
    assert (refused.code, "--workers is for --engine local" in refused.err) == (2, True)


def killed(source: Path, out: Path, marker: Path) -> subprocess.CompletedProcess[str]:
    """A build of two workers; the one that renders `cedar` is killed unless the marker is there."""
    wrapper = out.with_name("wrapper.py")
    wrapper.write_text(WRAPPER.format(marker=str(marker)))
    command = [sys.executable, str(wrapper), "build", str(source / "tiny.yaml"), "--out", str(out), "--workers", "2"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_interrupt_ends_a_command_in_the_middle_of_a_long_call_of_another_language() -> None:
    deaf = """
import ctypes, signal
from mmlongbench.cli.interrupts import interrupted_soon

signal.signal(signal.SIGINT, lambda *_: None)  # should it come before the call
with interrupted_soon("interrupted; go on"):
    print("begun", flush=True)
    mutex = ctypes.create_string_buffer(64)
    ctypes.CDLL(None).pthread_mutex_lock(mutex)
    ctypes.CDLL(None).pthread_mutex_lock(mutex)  # for ever, and no step of Python's own
"""
    run = [sys.executable, "-c", deaf]
    with started(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, said) == (130, "\ninterrupted; go on\n")


def test_an_interrupt_ends_a_build_that_waits_for_the_others_after_an_error_of_one(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        """
import sys, time
from concurrent.futures import ProcessPoolExecutor
from mmlongbench.cli.interrupts import interrupted_soon
from mmlongbench.io.process_pool import Processes

end = ProcessPoolExecutor.shutdown

def shutdown(*args, **options):
    print("wrong", flush=True)
    end(*args, **options)

def work(number):
    if number:
        time.sleep(1000)
    raise ValueError("wrong")

if __name__ == "__main__":
    processes = Processes(2)
    with interrupted_soon("late"):
        try:
            list(processes.each_done(work, [(0,), (1,)], ["a", "b"]))
        except ValueError:
            ProcessPoolExecutor.shutdown = shutdown
            processes.close()
"""
    )
    run = [sys.executable, str(tmp_path / "slow.py")]
    with started(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "wrong\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert said.splitlines()[-1] == "KeyboardInterrupt"

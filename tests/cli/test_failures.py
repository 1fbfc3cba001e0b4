"""Errors of the system in one line: which file, which limit, and what to do."""

import errno
import os
import resource
import shutil
import sys
from pathlib import Path

import pytest
from crash_harness import started
from tiny import build, command, mmlongbench

from mmlongbench.cli.failures import words_of
from mmlongbench.errors import BuildError
from mmlongbench.io.atomic import atomic_write

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left", "/a/b"), "/a/b: No space left; no file is half-written"),
        (OSError(errno.ENOSPC, "No space left"), "standard output, or a file in the output folder or in "),
        (OSError(errno.EMFILE, "Too many open files", "/a/b"), "/a/b: Too many open files; allow more (ulimit -n)"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files; allow more (ulimit -n)"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory ran out; no file is half-written"),
        (MemoryError(), "memory ran out; no file is half-written"),
        (RuntimeError("can't start new thread"), "memory ran out; no file is half-written"),
        (ImportError("libx.so: failed to map segment from shared object"), "memory ran out; no file"),
        (BuildError("what it says"), "what it says"),
    ],
    ids=["full", "full-unnamed", "open", "open-unnamed", "enomem", "memory", "thread", "import", "own"],
)
def test_an_error_of_the_system_is_one_line(error: Exception, said: str) -> None:
    assert words_of(error).startswith(said)


def test_memory_that_ran_out_below_another_error_is_found() -> None:
    error = ValueError("of a library")
    error.__cause__ = MemoryError()
    assert words_of(error).startswith("memory ran out")


@pytest.mark.parametrize("error", [RuntimeError("a mistake"), ValueError("a mistake"), KeyError("a mistake")])
def test_a_mistake_of_the_engine_keeps_its_traceback(error: Exception) -> None:
    assert words_of(error) == ""


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as failed, atomic_write(tmp_path / "a.json"):
        raise OSError(errno.ENOSPC, "No space left")
    assert failed.value.filename == str(tmp_path / "a.json")


def test_a_current_folder_that_was_removed_is_named(tmp_path: Path) -> None:
    words = f"import os, sys; os.rmdir(os.getcwd()); sys.path[:0] = {sys.path!r}; import mmlongbench.cli as c; c.main()"
    (tmp_path / "gone").mkdir()
    command = [sys.executable, "-c", words, "build", "quickstart", "--out", "x"]
    with started(command, cwd=tmp_path / "gone", stderr=-1, text=True) as process:
        _, said = process.communicate()
    assert (process.returncode, said) == (
        2,
        "error: the current folder was removed; change to another and run the command again\n",
    )


def test_an_output_that_is_full_is_one_line() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ran = mmlongbench("list", capture_output=False, stdout=full, stderr=-1)
    assert ran.code == 2
    assert ran.err.startswith("error: standard output, or a file ")
    assert ran.err.endswith("; no file is half-written, run the command again once there is room\n")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "limit"), [("build", resource.RLIMIT_AS), ("audit", resource.RLIMIT_DATA)], ids=["build", "audit"]
)
def test_a_limit_of_memory_is_one_line(words: str, limit: int, source: Path, finished: Path, tmp_path: Path) -> None:
    given = ("build", source / "tiny.yaml", "--out", tmp_path / "out") if words == "build" else ("audit", finished)
    most = 60 * 1024 * 1024  # the interpreter starts, but the modules of the command do not load
    ran = mmlongbench(*given, "-q", preexec_fn=lambda: resource.setrlimit(limit, (most, most)))
    assert ran.code == 2
    assert ran.err.startswith("error: memory ran out")
    assert ran.err.count("\n") == 1


def test_an_output_that_reads_as_an_option_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = command("build", source / "tiny.yaml", "--out", "-x")
    assert refused.code == 2
    assert refused.err.endswith("Error: --out -x: other commands would read it as an option; write ./-x\n")
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_an_output_inside_a_source_is_refused_and_nothing_is_written(source: Path, tmp_path: Path) -> None:
    shutil.copytree(source, tmp_path / "source")
    inside = tmp_path / "source" / "documents" / "release"
    refused = build(tmp_path / "source", inside)
    assert refused.code == 2
    assert f"--out {inside}: lies inside source.documents of dataset 'mmlongdoc'" in refused.err
    assert not inside.exists()

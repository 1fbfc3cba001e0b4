"""Commands under limits of the system: one line says which file, which limit, and what to do."""

import os
import resource
import shutil
import sys
from pathlib import Path

import pytest
from crash_harness import started
from tiny import build, command, mmlongbench


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


def test_a_limit_of_memory_is_one_line(finished: Path) -> None:
    most = 60 * 1024 * 1024  # the interpreter starts, but the modules of the command do not load
    limit = (resource.RLIMIT_DATA, (most, most))
    ran = mmlongbench("audit", finished, "-q", preexec_fn=lambda: resource.setrlimit(*limit))
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

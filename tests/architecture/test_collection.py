"""Every process, at any time and under any hash seed, collects the same tests under the same plain ids."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

pytestmark = pytest.mark.rare

ROOT = Path(__file__).parents[2]
COLLECT = """
import sys, time, pytest
now, shift = time.time, float(sys.argv[1])
time.time = lambda: now() + shift
time.time_ns = lambda: int(time.time() * 10**9)
options = ["--collect-only", "--assert=plain", "--import-mode=importlib", "-p", "no:cacheprovider", "-o", "addopts="]
sys.exit(pytest.main([*options, "-q", "tests"]))
"""
TIMES_AND_SEEDS = ((0, "1"), (123_456_789, "2"))
"""(seconds by which the clock is ahead, seed of the hashes of texts)."""


def test_two_processes_collect_the_same_tests_under_plain_ids(tmp_path: Path) -> None:
    logs = [tmp_path / seed for _, seed in TIMES_AND_SEEDS]
    with ExitStack() as stack:
        started = zip(logs, TIMES_AND_SEEDS, strict=True)
        processes = [stack.enter_context(collecting(log, *each)) for log, each in started]
    one, other = (log.read_text().splitlines() for log in logs)
    assert [process.returncode for process in processes] == [0, 0], one[-20:]
    found = [[line for line in lines if "::" in line] for lines in (one, other)]
    assert found[0] == found[1]
    assert len(found[0]) > 4000
    assert [id for id in found[0] if not id.isascii() or re.search(r"\\x|\\u| at 0x|<lambda>", id)] == []


def collecting(log: Path, shift: float, seed: str) -> "subprocess.Popen[bytes]":
    """A process that writes the ids of all tests to a file."""
    with log.open("wb") as file:
        command = [sys.executable, "-c", COLLECT, str(shift)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file)

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from tiny import hashes, leftovers

from mmlongbench.draws import Draws

SCRIPT = Path(__file__).with_name("deaths.py")
TMPFS = """
set -e
mount -t tmpfs -o size=96k none {out}
! {python} -m mmlongbench build {manifest} --out {out} -q 2> {said}
test ! -e {out}/build.lock.json
mount -o remount,size=64m {out}
{python} -m mmlongbench build {manifest} --out {out} -q
cp -r {out} {copy}
"""


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

    def one(self, out: Path, kind: str = "none", where: int | str = 0) -> Life:
        self.asked.write(json.dumps([str(out), kind, where]) + "\n")
        self.asked.flush()
        return Life(*json.loads(self.told.readline()))


@contextmanager
def lives_of(manifest: Path) -> Iterator[Lives]:
    command = [sys.executable, str(SCRIPT), str(manifest)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Lives(process.stdin, process.stdout)
        process.stdin.close()


@pytest.fixture(scope="module")
def lives(source: Path) -> Iterator[Lives]:
    with lives_of(source / "tiny.yaml") as forked:
        yield forked


def test_a_build_killed_at_any_rename_goes_on_to_the_same_bytes(lives: Lives, finished: Path, tmp_path: Path) -> None:
    whole, expected = lives.one(tmp_path / "whole"), hashes(finished)
    assert whole.code == 0
    assert hashes(tmp_path / "whole") == expected
    last = whole.renames
    draws = Draws(("kills",))
    drawn = draws.order("renames", range(2, last - 1))[:6]
    for number in (1, *drawn, last - 1, last):
        kinds = ("before", "after")
        for kind in (draws.choice(f"{number}", kinds),) if number in drawn else kinds:
            out = tmp_path / f"{number}-{kind}"
            assert lives.one(out, kind, number).was_killed, number
            left = {path: sha for path, sha in hashes(out).items() if not path.startswith(".") and ".tmp-" not in path}
            assert left.items() <= expected.items()  # what stands under its name is whole
            assert ("build.lock.json" in left) == ((number, kind) == (last, "after"))
            again = lives.one(out)
            assert again.code == 0, again.said
            assert again.renames < whole.renames or number <= 2
            assert hashes(out) == expected
            assert not leftovers(out)


def test_a_build_killed_again_and_again_ends_with_the_same_bytes(lives: Lives, finished: Path, tmp_path: Path) -> None:
    assert all(lives.one(tmp_path / "out", "after", 2).was_killed for _ in range(8))  # the plan, and one shard each
    assert lives.one(tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)
    assert not leftovers(tmp_path / "out")


@pytest.mark.parametrize(
    "part",
    [
        "plan.json",
        "cedar.jsonl",
        "all.jsonl",
        "00000.jsonl",
        "cedar_page2.jpg",
        "mmlongdoc_K1.jsonl",
        "mmlongdoc_K2.parquet",
        "rejects.jsonl",
        "build.lock.json",
    ],
)
def test_a_full_disk_is_one_line_and_the_build_goes_on(part: str, lives: Lives, finished: Path, tmp_path: Path) -> None:
    life = lives.one(tmp_path / "out", "full", part)
    assert life.code == 2
    assert life.said.count("\n") == 1
    assert "No space left on device; nothing is half-written, the same command goes on" in life.said
    assert not [*(tmp_path / "out").rglob(".tmp-*")]
    assert not (tmp_path / "out" / "build.lock.json").exists()
    assert lives.one(tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)
    assert not leftovers(tmp_path / "out")


def test_a_disk_that_is_really_full(source: Path, finished: Path, tmp_path: Path) -> None:
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("a small file system is mounted in a name space of its own, which takes root")
    out, copy, said = tmp_path / "out", tmp_path / "copy", tmp_path / "said"
    out.mkdir()
    script = TMPFS.format(python=sys.executable, manifest=source / "tiny.yaml", out=out, copy=copy, said=said)
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in said.read_text()
    assert len(said.read_text().splitlines()) == 1
    assert hashes(copy) == hashes(finished)

"""Two builds of one thing at once: the second is refused by the kernel's lock, which dies with its owner."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from crash_harness import signalled
from tiny import Ran, build, command, hashes, leftovers

pytestmark = pytest.mark.slow


@contextmanager
def stopped(source: Path, out: Path, part: str, *args: str) -> Iterator[subprocess.Popen[str]]:
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
    with stopped(source, packed, "images/mmlongdoc/pages/cedar", "--stage", "images", "--shard", "3/4") as first:
        refused = stage(source, packed, "images", "--shard", "3/4")
        assert refused.code == 2
        assert "error: shard images/mmlongdoc/pages/cedar of " in refused.err
        assert "is being written by another process; wait for it or stop it\n" in refused.err
        assert stage(source, packed, "images", "--shard", "4/4").code == 0  # another shard
        first.kill()
        first.wait()
        assert stage(source, packed, "images", "--shard", "3/4").code == 0
    assert build(source, packed).code == 0
    assert hashes(packed) == hashes(finished)
    assert not leftovers(packed)


def test_builds_of_different_shards_at_once_end_with_the_same_bytes(packed: Path, source: Path, finished: Path) -> None:
    with stopped(source, packed, "cedar_page2.jpg", "--stage", "images", "--shard", "1/2") as first:
        assert stage(source, packed, "images", "--shard", "2/2").code == 0
        first.send_signal(signal.SIGCONT)
        assert first.wait() == 0
    assert command("finish", packed).code == 0
    assert hashes(packed) == hashes(finished)


def test_a_release_that_is_built_in_one_go_is_nobody_elses(source: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with stopped(source, out, "records/mmlongdoc/2K") as first:
        for refused in (build(source, out), stage(source, out, "records"), command("finish", out)):
            assert refused.code == 2
            assert (
                refused.err == f"error: the release {out} is being written by another process; wait for it or stop it\n"
            )
        first.send_signal(signal.SIGCONT)
        assert first.wait() == 0
    assert hashes(out) == hashes(finished)


def test_a_release_of_which_a_share_is_being_done_is_not_finished_or_built(packed: Path, source: Path) -> None:
    with stopped(source, packed, "images/mmlongdoc/pages/cedar", "--stage", "images", "--shard", "3/4"):
        for refused in (build(source, packed), stage(source, packed, "prepare"), command("finish", packed)):
            assert (refused.code, f"the release {packed} is being written by another" in refused.err) == (2, True)
    assert build(source, packed).code == 0

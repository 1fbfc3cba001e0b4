"""Clocks that are set back, and files from the future and the past: no byte depends on the time."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_harness import Lives, lives_of
from tiny import hashes, leftovers

from mmlongbench.draws import Draws

pytestmark = pytest.mark.slow

HOUR, YEAR = 3600, 365 * 24 * 3600
TIMES = {"an hour ahead": HOUR, "twenty years ahead": 20 * YEAR, "twenty years back": -20 * YEAR}
"""The modification time of files from before the clock was changed."""


@pytest.fixture(scope="module")
def own(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny source, whose dates are to be changed."""
    return Path(shutil.copytree(source, tmp_path_factory.mktemp("clock") / "source"))


@pytest.fixture(scope="module")
def lives(own: Path) -> Iterator[Lives]:
    with lives_of(own / "tiny.yaml") as forked:
        yield forked


@pytest.mark.parametrize("when", TIMES)
def test_a_build_goes_on_to_the_same_bytes_when_the_clock_was_set(
    when: str, own: Path, lives: Lives, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for number in Draws(("clock", when)).order("rename", range(3, 9))[:3]:  # each goes on from the last
        assert lives.one(out, "after", number).was_killed
        move_dates(out, TIMES[when])
        move_dates(own, TIMES[when])
    ended = lives.one(out, "back")
    assert ended.code == 0, ended.said
    assert hashes(out) == hashes(finished)
    assert not leftovers(out)


def move_dates(folder: Path, seconds: int) -> None:
    """Set the modification time of every file in a folder."""
    for path in (folder, *folder.rglob("*")):
        about = path.stat()
        os.utime(path, (about.st_atime + seconds, about.st_mtime + seconds))

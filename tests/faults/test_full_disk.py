"""Full disks: a sync that fails, and small file systems in memory that are really full."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_harness import ON_A_SMALL_DISK, Life, Lives, lives_of, skip_unless_mounting
from tiny import hashes, leftovers

PARTS = ("cedar.jsonl", "mmlongdoc_K2.parquet", "build.lock.json")
MORE = ("plan.json", "all.jsonl", "00000.jsonl", "cedar_page2.jpg", "mmlongdoc_K1.jsonl", "rejects.jsonl")
MIDDLES = {
    "cedar_page2.jpg": ("image", "mmlb_image/mmlongbench-doc/cedar/cedar_page1.jpg"),
    "records/mmlongdoc/2K": ("records", ".build/rows/mmlongdoc/all.jsonl"),
    "mmlongdoc_K2.jsonl": ("cell", "items/documentQA/mmlongdoc_K1.parquet"),
    "build.lock.json": ("lock", "rejects.jsonl"),
}
"""Files of more than a page, by a part of their path: what they are, and what was written just before."""
FIRST, *OTHERS = MIDDLES
TMPFS = """
set -e
mount -t tmpfs -o size=96k none {out}
! {python} -m mmlongbench build {manifest} --out {out} -q --workers 1 2> {said}
test ! -e {out}/build.lock.json
mount -o remount,size=64m {out}
{python} -m mmlongbench build {manifest} --out {out} -q --workers 1
cp -r {out} {copy}
"""


@pytest.fixture(scope="module")
def lives(source: Path) -> Iterator[Lives]:
    with lives_of(source / "tiny.yaml") as forked:
        yield forked


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where some processes have a small disk mounted."""
    skip_unless_mounting()
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def small(source: Path, disk: Path) -> Iterator[Lives]:
    with lives_of(source / "tiny.yaml", *ON_A_SMALL_DISK, str(disk)) as forked:
        yield forked


def has_stopped(life: Life, out: Path) -> bool:
    """Whether a build has ended as it should when the disk is full, with nothing half-written."""
    is_one_line = life.said.count("\n") == 1
    says = "No space left on device; no file is half-written, run the same command to continue" in life.said
    is_clean = not [*out.rglob(".tmp-*")] and not (out / "build.lock.json").exists()
    return life.code == 2 and is_one_line and says and is_clean


@pytest.mark.parametrize("part", [*PARTS, *(pytest.param(part, marks=pytest.mark.rare) for part in MORE)])
def test_a_full_disk_is_one_line_and_the_build_goes_on(part: str, lives: Lives, finished: Path, tmp_path: Path) -> None:
    life = lives.one(tmp_path / "out", "full", part)
    assert has_stopped(life, tmp_path / "out"), life.said
    assert lives.one(tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)
    assert not leftovers(tmp_path / "out")


@pytest.mark.parametrize("part", [FIRST, *(pytest.param(part, marks=pytest.mark.rare) for part in OTHERS)])
def test_a_disk_full_in_the_middle_of_a_file_leaves_none_of_it(
    part: str, small: Lives, finished: Path, disk: Path
) -> None:
    name, before = MIDDLES[part]
    out, ballast = small.seen(disk / name), small.seen(disk / "ballast")
    life = small.one(disk / name, "crowded", part)
    try:
        assert has_stopped(life, out), life.said
        assert (out / before).is_file()
        assert not [path for path in out.rglob("*") if part in str(path.relative_to(out)) and path.is_file()]
        assert small.one(disk / name).code == 2  # still full
    finally:
        ballast.unlink()
    again = small.one(disk / name)
    assert again.code == 0, again.said
    assert hashes(out) == hashes(finished)
    assert not leftovers(out)


@pytest.mark.rare
def test_a_disk_that_is_too_small_from_the_start(source: Path, finished: Path, tmp_path: Path) -> None:
    skip_unless_mounting()
    out, copy, said = tmp_path / "out", tmp_path / "copy", tmp_path / "said"
    out.mkdir()
    given = {"python": sys.executable, "manifest": source / "tiny.yaml", "out": out, "copy": copy, "said": said}
    script = TMPFS.format(**{name: shlex.quote(str(value)) for name, value in given.items()})
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in said.read_text()
    assert len(said.read_text().splitlines()) == 1
    assert hashes(copy) == hashes(finished)

"""The log beside a release records what was done when. It does not change the release."""

import re
import shutil
from pathlib import Path

from tiny import build, hashes

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \d+ (.+)")


def said(log: Path) -> list[str]:
    matches = [LINE.fullmatch(line) for line in log.read_text("utf-8").splitlines()]
    return [match[1] for match in matches if match]


def test_a_log_beside_the_release_tells_every_stage_and_shard(source: Path, finished: Path, tmp_path: Path) -> None:
    assert build(source, tmp_path / "out").code == 0
    lines = said(tmp_path / "out.log")
    assert lines[0].startswith("started: build ")
    assert "mmlongbench " in lines[0]
    assert "records: 2 shards, 0 of them already done" in lines
    assert any(re.fullmatch(r"records/mmlongdoc/2K/00000: done in \d+\.\d\d s", line) for line in lines)
    assert lines[-1] == "ended well"
    assert hashes(tmp_path / "out") == hashes(finished)


def test_a_build_that_goes_on_goes_on_in_the_same_log(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(source, out, "--strict").code == 1
    assert said(tmp_path / "out.log")[-1].startswith("ended: --strict: ")
    assert build(source, out).code == 0
    lines = said(tmp_path / "out.log")
    assert [line.split(":")[0] for line in lines if line.startswith(("started", "ended"))] == [
        "started",
        "ended",
        "started",
        "ended well",
    ]
    assert "documents: 4 shards, 4 of them already done" in lines


def test_where_no_log_can_be_written_the_build_goes_on_without(source: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "out.log").mkdir()
    assert build(source, tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)
    shutil.rmtree(tmp_path / "out.log")


def test_a_log_that_cannot_be_written_to_its_end_is_no_fault(source: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "out.log").symlink_to("/dev/full")
    assert build(source, tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)

import json
import os
import shutil
import subprocess
import sys
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from crash_harness import started
from tiny import build, environment, hashes, leftovers, rejects

pytestmark = pytest.mark.slow


def start(manifest: Path, out: Path, workers: int, seed: str) -> AbstractContextManager[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "mmlongbench", "build", str(manifest), "--out", str(out), "-q"]
    given = environment(PYTHONHASHSEED=seed, TZ="Pacific/Kiritimati")
    return started([*command, "--workers", str(workers)], env=given, text=True, stderr=subprocess.PIPE)


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
        builds = {
            out: stack.enter_context(start(where / "tiny.yaml", out, workers, seed))
            for out, (where, workers, seed) in runs.items()
        }
        for out, process in builds.items():
            _, said = process.communicate()
            assert (process.returncode, said) == (0, "")
            assert hashes(out) == hashes(finished)
            assert not leftovers(out)


def test_no_released_file_holds_an_absolute_path(source: Path, finished: Path, tmp_path: Path) -> None:
    broken = tmp_path / "source"
    shutil.copytree(source, broken)
    (broken / "documents" / "ash.pdf").write_bytes(b"%PDF-1.7\nno more")
    (broken / "documents" / "birch.pdf").write_bytes(b"nothing of the kind")
    (broken / "documents" / "cedar.pdf").write_bytes((source / "documents" / "cedar.pdf").read_bytes()[:700])
    assert build(broken, tmp_path / "out").code == 0
    for release in (finished, tmp_path / "out"):
        for path in (path for path in release.rglob("*") if path.is_file()):
            data = path.read_bytes()
            if path.suffix == ".parquet":
                data = json.dumps(
                    [pq.read_table(path).to_pylist(), str(pq.read_schema(path).metadata)], default=str
                ).encode()
            for secret in (tmp_path, source, source.parents[1], Path.cwd(), Path.home()):
                assert str(secret).encode() not in data, path
    assert {line["reason"] for line in rejects(tmp_path / "out")} > {"not-a-pdf", "truncated-document"}


def test_a_second_build_in_the_same_process_and_folder_remembers_nothing(source: Path, tmp_path: Path) -> None:
    assert build(source, tmp_path / "out", "--lengths", "1K", "--limit", "1").code == 0
    first = hashes(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    assert build(source, tmp_path / "out", "--lengths", "1K", "--limit", "3").code == 0
    second = hashes(tmp_path / "out")
    assert build(source, tmp_path / "elsewhere", "--lengths", "1K", "--limit", "3").code == 0
    assert second == hashes(tmp_path / "elsewhere") != first

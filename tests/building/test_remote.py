"""A release at a URL: the same bytes as in a folder, done by machines that see nothing of each other but the URL."""

import json
import shutil
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tiny import Ran, build, command, hashes

from mmlongbench.building.remote import Remote
from mmlongbench.draws import Draws
from mmlongbench.errors import BuildError

pytestmark = pytest.mark.slow


def build_at(source: Path, url: str, machine: Path, *args: object) -> Ran:
    """Build as a machine that has this folder for temporary files."""
    machine.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(machine))
        return command("build", source / "tiny.yaml", "--out", url, *args)


def read_log(folder: Path, release: str) -> str:
    """The log of this machine."""
    (log,) = folder.glob(f"{release}.*.log")
    return log.read_text()


def test_a_release_at_a_url_has_the_bytes_of_one_in_a_folder_and_nothing_is_left_here(
    source: Path, finished: Path, tmp_path: Path
) -> None:
    url = f"file://{tmp_path}/there/release"
    ran = build_at(source, url, tmp_path / "here")
    assert ran.code == 0, ran.err
    assert f"{url} is complete" in ran.out
    assert hashes(tmp_path / "there" / "release") == hashes(finished)
    assert not [path for path in (tmp_path / "here").rglob("*") if path.is_file()]
    assert read_log(tmp_path / "there", "release").splitlines()[-1].endswith("ended well")
    again = build_at(source, url, tmp_path / "here")
    assert (again.code, "was complete already" in again.out) == (0, True)


def test_machines_that_share_nothing_but_the_url_each_do_a_part(source: Path, finished: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/there"
    for number, stage in enumerate(("prepare", "records", "images")):
        ran = build_at(source, url, tmp_path / str(number), "--stage", stage)
        assert ran.code == 0, ran.err
    with pytest.MonkeyPatch.context() as patch:
        (tmp_path / "last").mkdir()
        patch.setattr(tempfile, "tempdir", str(tmp_path / "last"))
        assert command("finish", url).code == 0
    assert hashes(tmp_path / "there") == hashes(finished)


def test_a_build_that_stopped_goes_on_on_another_machine(source: Path, finished: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/there"
    assert build_at(source, url, tmp_path / "a", "--strict").code == 1
    assert not (tmp_path / "there" / "build.lock.json").exists()
    assert build_at(source, url, tmp_path / "b").code == 0
    assert hashes(tmp_path / "there") == hashes(finished)
    assert "documents: 4 shards, 4 of them already done" in read_log(tmp_path, "there")


def test_drawn_samples_are_found_where_another_machine_has_put_them(tmp_path: Path) -> None:
    manifest = tmp_path / "cases.yaml"
    manifest.write_text(
        "datasets: [{name: lexsum, builder: summary, reader: multi_lexsum, source: sample, lengths: [8K], "
        "sample: {n: 2}, options: {kind: case}, licence: none}]"
    )
    url = f"file://{tmp_path}/there"
    for machine, stage in (("a", "prepare"), ("b", "records"), ("c", "images")):
        (tmp_path / machine).mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(tmp_path / machine))
            ran = command("build", manifest, "--out", url, "--stage", stage)
            assert ran.code == 0, ran.err
        shutil.rmtree(tmp_path / machine)


def test_a_url_that_nothing_knows_is_one_line(source: Path, tmp_path: Path) -> None:
    refused = build_at(source, "nowhere://bucket/release", tmp_path / "here")
    assert refused.code == 2
    assert refused.err.startswith("error: --out nowhere://bucket/release: ")
    assert refused.err.count("\n") == 1


def test_a_half_built_release_may_be_moved(source: Path, finished: Path, tmp_path: Path) -> None:
    assert build(source, tmp_path / "before", "--strict").code == 1
    root = json.loads((tmp_path / "before" / ".build" / "plan.json").read_text())["root"]
    (tmp_path / "before").rename(tmp_path / "after")
    assert root == str(tmp_path / "before" / ".build")
    assert build(source, tmp_path / "after").code == 0
    assert hashes(tmp_path / "after") == hashes(finished)


def test_another_build_at_the_same_url_takes_nothing_from_the_first(source: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/there"
    for seed in (42, 43):
        for machine, stage in (("a", "prepare"), ("b", "records"), ("b", "images"), ("a", None)):
            stages = ("--stage", stage) if stage else ()
            ran = build_at(source, url, tmp_path / machine, "--set", f"seed={seed}", *stages)
            assert ran.code == 0, ran.err
        assert build(source, tmp_path / str(seed), "--set", f"seed={seed}").code == 0
        assert hashes(tmp_path / "there") == hashes(tmp_path / str(seed))
        shutil.rmtree(tmp_path / "there")


def test_a_lock_stands_there_only_when_every_file_does(source: Path, finished: Path, tmp_path: Path) -> None:
    url, push, pushed = f"file://{tmp_path}/there", Remote.push, 0
    for last in Draws(("pushes",)).order("ends", range(1, 6))[:4]:

        def push_some(self: Remote, folder: Path, paths: Iterable[Path], last: int = last) -> None:
            nonlocal pushed
            for path in paths:
                if pushed == last:
                    raise KeyboardInterrupt
                pushed += 1
                push(self, folder, [path])

        pushed = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Remote, "push", push_some)
            assert build_at(source, url, tmp_path / "a").code == 130
        assert not (tmp_path / "there" / "build.lock.json").exists()
    assert build_at(source, url, tmp_path / "b").code == 0
    assert hashes(tmp_path / "there") == hashes(finished)
    (tmp_path / "there" / "mmlb_image" / "mmlongbench-doc" / "ash" / "ash_page0.jpg").unlink()
    with pytest.raises(
        BuildError, match=r"ash_page0.jpg: expected \d+ bytes at the URL, found none; the lock was not uploaded"
    ):
        Remote(url)._check(finished)


def test_two_may_put_the_same_files_there_at_once(tmp_path: Path) -> None:
    remote, here = Remote(f"file://{tmp_path}/there"), tmp_path / "here"
    here.mkdir()
    files = [here / f"{number}" for number in range(60)]
    for file in files:
        file.write_text(file.name * 1000)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: remote.push(here, files), range(2)))
    assert hashes(tmp_path / "there") == hashes(here)


def test_an_error_of_a_file_system_is_one_line(source: Path, tmp_path: Path) -> None:
    refused = build_at(source, "data://x", tmp_path / "here")
    assert refused.code == 2
    assert refused.err.startswith("error: --out data://x: ")
    assert refused.err.count("\n") == 1


def test_what_killed_machines_left_half_written_goes_in_the_end(source: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / ".tmp-other-1-1-plan.json").write_text("{")
    assert build_at(source, f"file://{tmp_path}/there", tmp_path / "here").code == 0
    assert hashes(tmp_path / "there") == hashes(finished)

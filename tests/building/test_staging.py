"""Builds in parts, and releases at a URL: any share, in any order, on machines that see nothing of each other; the same
bytes as a build in one go.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from fsspec.implementations.local import LocalFileSystem
from halted import interrupt, refused
from tiny import Ran, build, command, hashes


def stage(source: Path, out: Path, name: str, shard: str = "") -> tuple[int, str]:
    ran = command("build", source / "tiny.yaml", "--out", out, "--stage", name, *(("--shard", shard) if shard else ()))
    return ran.code, ran.err


def test_any_order_of_shares_ends_with_the_same_bytes(source: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    assert stage(source, out, "prepare") == (0, "")
    for name in ("records", "images"):
        for number in (3, 1, 2, 1):
            assert stage(source, out, name, f"{number}/3") == (0, "")
    ran = command("finish", out)
    assert ran.code == 0, ran.err
    assert hashes(out) == hashes(finished)


@pytest.mark.rare
def test_shares_of_one_stage_can_be_done_at_once(source: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    assert stage(source, out, "prepare")[0] == 0
    for name in ("records", "images"):
        words = [sys.executable, "-m", "mmlongbench", "build", str(source / "tiny.yaml"), "--out", str(out), "-q"]
        shares = [[*words, "--stage", name, "--shard", f"{number}/2"] for number in (1, 2)]
        begun = [subprocess.Popen(share) for share in shares]
        assert [process.wait() for process in begun] == [0, 0]
    assert command("finish", out).code == 0
    assert hashes(out) == hashes(finished)


def test_what_is_not_done_is_named_with_what_does_it(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    assert stage(source, out, "records")[0] == 2
    assert "run --stage prepare first" in stage(source, out, "records")[1]
    assert stage(source, out, "prepare")[0] == 0
    code, said = stage(source, out, "images")
    assert (code, "stage records: 2 of 2 shards of 'mmlongdoc' are not done" in said) == (2, True)
    assert "run `mmlongbench build … --stage records`" in said
    assert stage(source, out, "records", "1/2")[0] == 0
    refused(command("finish", out), "stage records: 1 of 2")
    assert not (out / "build.lock.json").exists()


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/", "-1/2", "1/99999999"])
def test_a_share_that_is_none_is_refused(source: Path, tmp_path: Path, shard: str) -> None:
    code, said = stage(source, tmp_path / "release", "records", shard)
    assert (code, "expected N/OF" in said) == (2, True)


def test_preparing_is_not_shared_and_a_finished_release_is_left_alone(
    source: Path, finished: Path, tmp_path: Path
) -> None:
    assert "leave out --shard" in stage(source, tmp_path / "release", "prepare", "1/2")[1]
    assert "is finished" in stage(source, finished, "records")[1]
    assert "--shard needs --stage" in command("build", source / "tiny.yaml", "--out", tmp_path, "--shard", "1/2").err


DIFFERENT = [
    ("seed=7", "seed: 42 → 7"),
    ("lengths=[1K]", "lengths: 1K, 2K → 1K"),
    ("options.max_answer_words=6", "options.max_answer_words: 5 → 6"),
    ("name=other", "name: mmlongdoc → other"),
    ("source=sample", "source: now a drawn sample"),
    ("counter.tokenizer=own/tokenizer.json", "counter.tokenizer.name: llama2 → own/tokenizer.json"),
    ("errata=errata.yaml", "errata is new"),
]


def test_a_share_of_another_manifest_is_refused_in_words(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    assert stage(source, out, "prepare")[0] == 0
    results = {path: found for path, found in hashes(out).items() if path.endswith(".jsonl")}
    for name in ("records", "images"):
        for setting, said in DIFFERENT if name == "records" else DIFFERENT[:1]:
            ran = build(source, out, "--stage", name, "--set", setting)
            refused(
                ran,
                f"--out {out}: was prepared with a manifest that differs ({said}",
                "give the manifest and settings that --stage prepare was given",
            )
    assert {path: found for path, found in hashes(out).items() if path.endswith(".jsonl")} == results


def test_a_share_may_have_other_time_limits_and_sources_at_another_place(
    source: Path, finished: Path, tmp_path: Path
) -> None:
    out, moved = tmp_path / "release", Path(shutil.copytree(source, tmp_path / "moved"))
    assert stage(source, out, "prepare")[0] == 0
    for name in ("records", "images"):
        settings = ("--stage", name, "--set", "limits.seconds_a_page=7")
        assert command("build", moved / "tiny.yaml", "--out", out, *settings).code == 0
    assert command("finish", out).code == 0
    assert hashes(out) == hashes(finished)


def test_a_share_may_have_its_models_at_another_place(source: Path, tmp_path: Path) -> None:
    """Of a path, only its last part counts."""
    (dataset,) = yaml.safe_load((source / "tiny.yaml").read_text())["datasets"]
    dataset["source"] = {name: str(source / path) for name, path in dataset["source"].items()}

    def manifest(model: str) -> Path:
        path = tmp_path / f"{model.replace('/', '-')}.yaml"
        path.write_text(yaml.safe_dump({"datasets": [{**dataset, "retrieval": {"reranker": {"model": model}}}]}))
        return path

    (tmp_path / "here" / "bge").mkdir(parents=True)
    words = ("--out", tmp_path / "release", "--stage")
    assert command("build", manifest(str(tmp_path / "here/bge")), *words, "prepare").code == 0
    assert command("build", manifest("/elsewhere/bge"), *words, "records").code == 0
    refused(command("build", manifest("/elsewhere/gte"), *words, "images"), "retrieval.reranker.model: ", "gte")


# A release at a URL


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


@pytest.mark.rare
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


@pytest.mark.parametrize("url", ["nowhere://bucket/release", "data://x"])
def test_an_error_of_a_file_system_is_one_line(url: str, source: Path, tmp_path: Path) -> None:
    refused(build_at(source, url, tmp_path / "here"), f"error: --out {url}: ")


def test_an_unfinished_build_at_a_url_starts_again_there_too(source: Path, seed_7: Path, tmp_path: Path) -> None:
    words = ("build", source / "tiny.yaml", "--out", f"file://{tmp_path / 'there'}")
    assert command(*words, "--stage", "prepare").code == 0
    for name in ("mmlb_data/of-the-first.jsonl", "notes.txt"):  # only what belongs to a build is discarded
        (tmp_path / "there" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "there" / name).write_text("x")
    assert "seed: 42 → 7" in command(*words, "--set", "seed=7").err
    assert (tmp_path / "there/notes.txt").read_text() == "x"
    (tmp_path / "there/notes.txt").unlink()
    assert hashes(tmp_path / "there") == hashes(seed_7)


def test_another_build_at_the_same_url_takes_nothing_from_the_first(
    source: Path, finished: Path, seed_7: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    for seed, whole in ((42, finished), (7, seed_7)):
        for machine, part in (("a", "prepare"), ("b", "records"), ("a", None)):
            stages = ("--stage", part) if part else ()
            ran = build_at(source, f"file://{there}", tmp_path / machine, "--set", f"seed={seed}", *stages)
            assert ran.code == 0, ran.err
        assert hashes(there) == hashes(whole)
        shutil.rmtree(there)


@contextmanager
def uploaded(end: str, do: Callable[[str], object]) -> Iterator[None]:
    """Do something each time when a file with this end has been uploaded."""
    move = LocalFileSystem.mv

    def mv(files: LocalFileSystem, path: str, target: str, **options: Any) -> None:
        move(files, path, target, **options)
        if target.endswith(end):
            do(target)

    with mock.patch.object(LocalFileSystem, "mv", mv):
        yield


@pytest.mark.parametrize("end", ["ash_page0.jpg", "assets.parquet"])
def test_a_lock_stands_there_only_when_every_file_does(end: str, source: Path, finished: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    with uploaded(end, lambda _: interrupt()):
        assert build_at(source, f"file://{there}", tmp_path / "a").code == 130
    assert not (there / "build.lock.json").exists()
    with uploaded(end, lambda path: Path(path).unlink()):
        ran = build_at(source, f"file://{there}", tmp_path / "b", "--restart")
    refused(ran, f"{end}: expected ", " bytes at the URL, found none; the lock was not uploaded", "--restart")
    if end.endswith(".jpg"):  # a shard that is done is not made again
        assert build_at(source, f"file://{there}", tmp_path / "d").code == 2
    assert not (there / "build.lock.json").exists()
    assert build_at(source, f"file://{there}", tmp_path / "c", "--restart").code == 0
    assert hashes(there) == hashes(finished)


def test_what_killed_machines_left_half_written_goes_in_the_end(source: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / ".tmp-other-1-1-plan.json").write_text("{")
    assert build_at(source, f"file://{tmp_path}/there", tmp_path / "here").code == 0
    assert hashes(tmp_path / "there") == hashes(finished)

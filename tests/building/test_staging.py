"""Builds in parts: any share, in any order, at once; the same bytes as a build in one go."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import command

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import replanned
from mmlongbench.building.saved_plan import load_interrupted_plan
from mmlongbench.documents.ocr import ocr_version
from mmlongbench.io.atomic import sha256_of
from mmlongbench.manifest.model import RerankerSpec, RetrievalSpec

pytestmark = pytest.mark.slow


def hashes(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in folder.rglob("*") if path.is_file()}


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


def test_shares_of_one_stage_can_be_done_at_once(source: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    assert stage(source, out, "prepare")[0] == 0
    for name in ("records", "images"):
        build = [sys.executable, "-m", "mmlongbench", "build", str(source / "tiny.yaml"), "--out", str(out), "-q"]
        shares = [[*build, "--stage", name, "--shard", f"{number}/2"] for number in (1, 2)]
        begun = [subprocess.Popen(share) for share in shares]
        assert [process.wait() for process in begun] == [0, 0]
    assert command("finish", out).code == 0
    assert hashes(out) == hashes(finished)


def test_a_build_in_one_go_goes_on_from_parts(source: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    assert stage(source, out, "prepare")[0] == 0
    assert stage(source, out, "records", "2/2")[0] == 0
    assert command("build", source / "tiny.yaml", "--out", out, "-q").code == 0
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
    refused = command("finish", out)
    assert (refused.code, "stage records: 1 of 2" in refused.err) == (2, True)
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


def test_another_manifest_is_refused(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    assert [stage(source, out, name)[0] for name in ("prepare", "records")] == [0, 0]
    ran = command("build", source / "tiny.yaml", "--out", out, "--stage", "prepare", "--set", "seed=7")
    assert (ran.code, "differs (seed: 42 → 7)" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("seed=7", "seed: 42 → 7"),
        ("lengths=[1K]", "lengths: 1K, 2K → 1K"),
        ("options.max_answer_words=6", "options.max_answer_words: 5 → 6"),
        ("name=other", "name: mmlongdoc → other"),
        ("source=sample", "source: now a drawn sample"),
        ("counter.tokenizer=own/tokenizer.json", "counter.tokenizer: llama2 → own/tokenizer.json"),
        ("errata=errata.yaml", "errata is new"),
    ],
)
@pytest.mark.parametrize("name", ["records", "images"])
def test_a_share_of_another_manifest_is_refused_in_words(
    name: str, setting: str, said: str, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "release"
    assert stage(source, out, "prepare")[0] == 0
    before = {path: found for path, found in hashes(out).items() if path.endswith(".jsonl")}
    ran = command("build", source / "tiny.yaml", "--out", out, "--stage", name, "--set", setting)
    assert (ran.code, f"--out {out}: was prepared with a manifest that differs ({said}" in ran.err) == (2, True)
    assert "give the manifest and settings that --stage prepare was given" in ran.err
    assert {path: found for path, found in hashes(out).items() if path.endswith(".jsonl")} == before


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


def test_a_share_needs_no_ocr_of_its_own(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, programs = tmp_path / "release", tmp_path / "bin"
    programs.mkdir()
    (programs / "tesseract").write_text("#!/bin/sh\necho tesseract 5.0\n")
    (programs / "tesseract").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}")
    ocr_version.cache_clear()
    build = ("build", source / "tiny.yaml", "--out", out, "--stage")
    try:
        assert command(*build, "prepare", "--set", "pages.ocr=true").code == 0
        (programs / "tesseract").unlink()
        ocr_version.cache_clear()
        assert command(*build, "records", "--set", "pages.ocr=true").code == 0
        refused = command(*build, "records")
        assert (refused.code, "differs (pages.ocr: tesseract 5.0 → false)" in refused.err) == (2, True)
    finally:
        ocr_version.cache_clear()


def test_a_share_may_have_its_models_at_another_place(source: Path, tmp_path: Path) -> None:
    out, here = tmp_path / "release", tmp_path / "here" / "bge"
    here.mkdir(parents=True)
    assert stage(source, out, "prepare")[0] == 0
    saved = load_interrupted_plan(BuildDir(out))
    assert saved is not None
    (plan,) = saved.plans.values()
    before, there, other = (
        plan.spec.model_copy(update={"retrieval": RetrievalSpec(reranker=RerankerSpec(model=model))})
        for model in (str(here), "/elsewhere/bge", "/elsewhere/gte")
    )
    plan = replace(plan, spec=before)
    public = plan.public()
    assert replanned(plan, public, there, BuildDir(out)) == public
    assert replanned(plan, public, other, BuildDir(out)) != public

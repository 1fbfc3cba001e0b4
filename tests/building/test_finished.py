"""A release that is already complete: its versions are compared, and its files are checked."""

import json
import shutil
from pathlib import Path

import pytest
from tiny import build, hashes

FILES = ("rejects.jsonl", "mmlb_data/documentQA/mmlongdoc_K1.jsonl", "items/documentQA/mmlongdoc_K2.parquet")


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "out")
    return tmp_path / "out"


def test_a_release_of_other_versions_is_not_called_complete(source: Path, out: Path) -> None:
    path = out / "build.lock.json"
    lock = json.loads(path.read_text("utf-8"))
    lock["versions"]["pymupdf"] = "1.0"
    path.write_text(json.dumps(lock), "utf-8")
    before = hashes(out)
    refused = build(source, out)
    assert refused.code == 2
    assert "holds a finished release that differs (pymupdf 1.0 → " in refused.err
    assert "use another folder, or remove this one" in refused.err
    assert hashes(out) == before
    del lock["versions"]
    path.write_text(json.dumps(lock), "utf-8")
    assert "that differs (mmlongbench (not recorded) → " in build(source, out).err


@pytest.mark.parametrize("name", [*FILES, "mmlb_image/mmlongbench-doc/ash/ash_page1.jpg"])
def test_a_release_that_is_not_whole_is_not_called_complete(name: str, source: Path, out: Path) -> None:
    size = (out / name).stat().st_size
    with (out / name).open("ab") as file:
        file.write(b"\n")
    before = hashes(out)
    refused = build(source, out)
    assert refused.code == 2
    assert f"{name}: expected {size} bytes, it has {size + 1} bytes; put the file back, or remove" in refused.err
    assert hashes(out) == before
    (out / name).unlink()
    assert f"{name}: expected {size} bytes, it is missing; put the file back, or remove" in build(source, out).err


def test_the_first_file_that_is_missing_is_named(source: Path, out: Path) -> None:
    for folder in ("items", "mmlb_image"):
        shutil.rmtree(out / folder)
    refused = build(source, out)
    assert "the release is damaged: items/assets.parquet: " in refused.err
    assert refused.err.count("\n") == 1

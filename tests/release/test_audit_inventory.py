"""Files that are no public ones, and audits in several processes."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image
from tiny import Ran, command, in_one_process, records

from mmlongbench.io.progress import Progress
from mmlongbench.release.audit import audit_release

pytestmark = pytest.mark.slow

IMAGE = "mmlb_image/mmlongbench-doc/ash/ash_page0.jpg"
ITEMS = "items/documentQA/mmlongdoc_K1.parquet"
ASSETS = "items/assets.parquet"
BYTES = "the bytes are not those of the lock"


@pytest.fixture
def release(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "release")
    return tmp_path / "release"


def others(release: Path) -> dict[tuple[str, str], tuple[int, str]]:
    """(part, kind) → (how often, where first) of what is no public file."""
    audited = command("audit", release, "--json")
    assert audited.code == 1
    files = [file for file in map(json.loads, audited.out.splitlines()) if "/" not in file["file"]]
    return {(file["file"], p["problem"]): (p["count"], p["first"]) for file in files for p in file["problems"]}


@pytest.mark.parametrize("path", [ITEMS, "rejects.jsonl", IMAGE])
def test_a_changed_file_is_found(path: str, release: Path) -> None:
    with (release / path).open("ab") as file:
        file.write(b"\n")
    assert others(release) == {(path.split("/")[0], BYTES): (1, path)}


@pytest.mark.parametrize("path", [ITEMS, "rejects.jsonl", IMAGE])
def test_a_missing_file_is_found(path: str, release: Path) -> None:
    (release / path).unlink()
    assert others(release) == {(path.split("/")[0], "missing file"): (1, path)}


@pytest.mark.parametrize("path", ["items/a.parquet", "items/b/c", "mmlb_image/other/x_page0.jpg"])
def test_an_extra_file_is_found(path: str, release: Path) -> None:
    (release / path).parent.mkdir(exist_ok=True)
    (release / path).write_text("extra")
    assert others(release) == {(path.split("/")[0], "file is not in the lock"): (1, path)}


def test_rejects_that_the_lock_does_not_name_are_extra(release: Path) -> None:
    path = release / "build.lock.json"
    lock = json.loads(path.read_text("utf-8"))
    del lock["files"]["rejects.jsonl"]
    path.write_text(json.dumps(lock), "utf-8")
    assert others(release) == {
        ("build.lock.json", "the lock names no file of rejects, which every build writes"): (1, "rejects.jsonl"),
        ("rejects.jsonl", "file is not in the lock"): (1, "rejects.jsonl"),
    }


def test_an_image_whose_size_is_right_and_whose_pixels_are_not_is_found(release: Path) -> None:
    with Image.open(release / IMAGE) as picture:
        size = picture.size
    Image.new("RGB", size).save(release / IMAGE)
    assert others(release) == {("mmlb_image", BYTES): (1, IMAGE)}


def test_problems_of_one_part_are_one_line(release: Path) -> None:
    shutil.rmtree(release / "items")
    (release / "items").mkdir()
    (release / "items" / "new").touch()
    assert others(release) == {
        ("items", "missing file"): (3, ASSETS),
        ("items", "file is not in the lock"): (1, "items/new"),
    }


def test_a_release_without_problems_has_one_line_a_public_file(release: Path) -> None:
    found = audit_release(release, Progress(False))
    assert [audit.file for audit in found] == [f"documentQA/mmlongdoc_K{length}.jsonl" for length in (1, 2)]


@pytest.mark.parametrize("file", [3, {}, {"bytes": 3}, {"bytes": "3", "sha256": ""}, {"bytes": 3, "sha256": None}])
def test_a_lock_that_does_not_describe_a_file_is_refused(file: object, release: Path) -> None:
    path = release / "build.lock.json"
    lock = json.loads(path.read_text("utf-8"))
    lock["files"]["rejects.jsonl"] = file
    path.write_text(json.dumps(lock), "utf-8")
    refused = command("audit", release)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "build.lock.json: " in refused.err
    assert "files.rejects.jsonl" in refused.err


OPTIONS = {True: ("--json",), False: ()}
WORKERS = (1, 2, 7)


@pytest.fixture(scope="module")
def audits(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[Ran]]:
    """Audits of a release with faults, as JSON or not, with each number of workers."""
    release = shutil.copytree(finished, tmp_path_factory.mktemp("faults") / "release")
    found = records(release, "1K")
    found[1]["length"] += 1
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in found)
    (release / "mmlb_data" / "documentQA" / "mmlongdoc_K1.jsonl").write_text(text, "utf-8")
    (release / IMAGE).unlink()
    commands = [("audit", release, "--workers", n, *options) for options in OPTIONS.values() for n in WORKERS]
    ran = iter(in_one_process(*commands))
    return {as_json: [next(ran) for _ in WORKERS] for as_json in OPTIONS}


@pytest.mark.parametrize("as_json", [True, False])
def test_an_audit_says_the_same_whatever_the_workers(as_json: bool, audits: dict[bool, list[Ran]]) -> None:
    one, two, many = audits[as_json]
    assert one == two == many
    assert one.code == 1
    assert one.out.index("mmlongdoc_K1") < one.out.index("mmlongdoc_K2")

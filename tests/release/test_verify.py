"""`verify` names each damaged file, and the line if it can be known."""

import json
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tiny import Ran, command, mmlongbench, records

from mmlongbench.release.lock import Lock
from mmlongbench.release.verify import most_pixels, undecodable

pytestmark = pytest.mark.slow

FILE = "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
LONGER = "mmlb_data/documentQA/mmlongdoc_K2.jsonl"
IMAGE = "mmlb_image/mmlongbench-doc/ash/ash_page0.jpg"
ITEMS = "items/documentQA/mmlongdoc_K1.parquet"
BYTES = "the bytes are not those of the lock"
Found = list[tuple[str, str, str]]


@pytest.fixture
def release(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "release")
    return tmp_path / "release"


def problems(release: Path, *options: object) -> Found:
    """(file, problem, where) of each; the exit code and the lines for people agree."""
    verified = command("verify", release, "--json", *options)
    assert verified.code == 1
    said = json.loads(verified.out)
    found = [(each["file"], each["problem"], each["where"]) for each in said["problems"]]
    lines = [
        *(": ".join(part for part in each if part) for each in found),
        *([f"note: {said['note']}"] if said["note"] else []),
    ]
    assert command("verify", release, "-q", *options) == Ran(1, "", "".join(f"{line}\n" for line in lines))
    return found


def edit(release: Path, line: int, change: Callable[[dict[str, Any]], object], name: str = FILE) -> None:
    """Edit one record of a public file, lines from 1."""
    found = [json.loads(each) for each in (release / name).read_bytes().splitlines()]
    change(found[line - 1])
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in found)
    (release / name).write_text(text, "utf-8")


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_release_as_it_was_built_is_whole(release: Path) -> None:
    assert command("verify", release, "-q") == Ran(0, "", "")
    said = command("verify", release)
    assert said == Ran(0, f"{release}: whole; 20 files in the lock, 14 of them images\n", "")
    assert json.loads(command("verify", release, "--json").out) == {
        "files": 20,
        "images": 14,
        "problems": [],
        "note": "",
    }


def test_what_is_no_release_is_an_error(tmp_path: Path) -> None:
    refused = command("verify", tmp_path)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "no build.lock.json" in refused.err


@pytest.mark.parametrize("path", [ITEMS, "rejects.jsonl", IMAGE, FILE])
@pytest.mark.parametrize("share", [0, 0.25, 0.5, 0.75, 1])
def test_a_flipped_byte_is_named_wherever_it_is(path: str, share: float, release: Path) -> None:
    flip(release / path, int(share * ((release / path).stat().st_size - 1)))
    found = problems(release)
    assert found[0] == (path, BYTES, "")
    assert {file for file, _, _ in found} == {path}


@pytest.mark.parametrize("path", [ITEMS, "rejects.jsonl", IMAGE, FILE])
def test_a_missing_file_is_named(path: str, release: Path) -> None:
    (release / path).unlink()
    assert problems(release) == [(path, "missing file", "")]


def test_every_missing_page_is_named(release: Path) -> None:
    pages = sorted((release / "mmlb_image").rglob("*_page1.jpg"))
    for page in pages:
        page.unlink()
    assert problems(release) == [(page.relative_to(release).as_posix(), "missing file", "") for page in pages]
    assert len(pages) == 4


def test_an_edited_answer_is_named_by_its_line(release: Path) -> None:
    edit(release, 3, lambda record: record.update(answer='["green"]'))
    (damaged, unlike) = problems(release)
    assert damaged[:2] == (FILE, BYTES)
    assert damaged[2].endswith(f" bytes, the lock has {damaged_bytes(release):,}")
    assert unlike[:2] == (FILE, f"is unlike {LONGER}")
    before = json.dumps(records(release, "2K")[2]["answer"], ensure_ascii=False)
    assert unlike[2] == f'line 3, mmlongdoc_2: answer: "[\\"green\\"]" against {before}'


def damaged_bytes(release: Path) -> int:
    found: int = json.loads((release / "build.lock.json").read_text("utf-8"))["files"][FILE]["bytes"]
    return found


def test_an_answer_that_is_edited_at_every_length_is_named_by_its_files(release: Path) -> None:
    for name in (FILE, LONGER):
        edit(release, 3, lambda record: record.update(answer='["green"]'), name)
    assert [each[:2] for each in problems(release)] == [(FILE, BYTES), (LONGER, BYTES)]


def test_a_record_whose_recount_differs_is_named_by_its_line(release: Path) -> None:
    edit(release, 2, lambda record: record.update(length=record["length"] + 1))
    right = records(release, "1K")[1]["length"] - 1
    first = f"1×, first line 2, mmlongdoc_1: {right + 1} against {right}"
    assert (FILE, "length differs from the recount", first) in problems(release)


def test_a_line_that_is_not_json_is_named(release: Path) -> None:
    lines = (release / FILE).read_bytes().splitlines(keepends=True)
    (release / FILE).write_bytes(b"".join([*lines[:3], lines[3][:40], b"\n", *lines[4:]]))
    assert [name for name, _, where in problems(release) if "line 4: expected one JSON object, found " in where] == [
        FILE
    ]


def test_a_line_of_the_rejects_that_is_not_json_is_named(release: Path) -> None:
    with (release / "rejects.jsonl").open("ab") as file:
        file.write(b"{\n")
    size = (release / "rejects.jsonl").stat().st_size
    assert problems(release) == [
        ("rejects.jsonl", BYTES, f"{size:,} bytes, the lock has {size - 2:,}"),
        ("rejects.jsonl", "is no JSON object", "line 6"),
    ]


def test_a_truncated_image_cannot_be_decoded(release: Path) -> None:
    data = (release / IMAGE).read_bytes()
    (release / IMAGE).write_bytes(data[: len(data) // 2])
    (damaged, image) = problems(release)
    assert damaged == (IMAGE, BYTES, f"{len(data) // 2:,} bytes, the lock has {len(data):,}")
    assert image[:2] == (IMAGE, "the image cannot be decoded")
    assert image[2].startswith("OSError: image file is truncated")


def test_an_image_that_cannot_be_decoded_is_named_even_where_the_lock_has_it(release: Path) -> None:
    data = (release / IMAGE).read_bytes()[:-400]
    (release / IMAGE).write_bytes(data)
    describe(release, IMAGE, data)
    ((file, problem, _),) = problems(release)
    assert (file, problem) == (IMAGE, "the image cannot be decoded")


def describe(release: Path, name: str, data: bytes) -> None:
    """Write the hashes of the present files into the lock."""
    import hashlib

    path = release / "build.lock.json"
    lock = json.loads(path.read_text("utf-8"))
    lock["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    path.write_text(json.dumps(lock), "utf-8")


def chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def png_header(width: int, height: int) -> bytes:
    """A PNG whose header names this many pixels, without any pixel data."""
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_an_image_over_the_limit_is_not_decoded(release: Path) -> None:
    data = png_header(9_000, 9_000)
    (release / IMAGE).write_bytes(data)
    describe(release, IMAGE, data)
    said = "9,000 × 9,000 pixels, limits.pixels allows 64,000,000"
    assert problems(release) == [(IMAGE, "the image cannot be decoded", said)]
    (release / IMAGE).write_bytes(data := png_header(60_000, 60_000))
    describe(release, IMAGE, data)
    ((_, _, said),) = problems(release)
    assert said.startswith("DecompressionBombError: ")


def test_the_limit_is_the_largest_of_the_manifest() -> None:
    lock = {"format": 1, "datasets": {}, "files": {}}
    several = [{"limits": {"pixels": 30}}, {"limits": {"pixels": 40}}, {"limits": {"pixels": "50"}}, {"limits": 60}, {}]
    assert most_pixels(Lock.model_validate({**lock, "manifest": several})) == 40
    assert most_pixels(Lock.model_validate({**lock, "manifest": []})) == 64_000_000


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
def test_a_picture_of_any_kind_is_decoded_or_a_reason_is_given(form: str, tmp_path: Path) -> None:
    path = tmp_path / "picture"
    Image.linear_gradient("L").save(path, form)
    assert undecodable(path, 256 * 256) is None
    assert undecodable(path, 256 * 256 - 1) == "256 × 256 pixels, limits.pixels allows 65,535"
    data = path.read_bytes()
    reasons = set()
    for at in range(0, min(len(data), 400), 3):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        reasons.add(undecodable(path, 256 * 256))
        path.write_bytes(data[:at])
        assert str(tmp_path) not in str(undecodable(path, 256 * 256))
    assert len(reasons) > 1


@pytest.mark.parametrize(
    "path",
    ["notes.txt", "other/x", "items/a.parquet", "mmlb_image/x_page0.jpg", "mmlb_data/documentQA/mmlongdoc_K4.jsonl"],
)
def test_an_extra_file_is_named(path: str, release: Path) -> None:
    (release / path).parent.mkdir(exist_ok=True)
    (release / path).write_text("extra")
    assert problems(release) == [(path, "file is not in the lock", "")]


@pytest.mark.parametrize("path", [".tmp-7-build.lock.json", "mmlb_image/.tmp-7-x.jpg", ".build/plan.json"])
def test_a_temporary_file_is_named(path: str, release: Path) -> None:
    (release / path).parent.mkdir(exist_ok=True)
    (release / path).touch()
    assert problems(release) == [(path, "temporary file is left", "")]


def test_a_link_to_a_folder_is_extra_and_not_followed(release: Path) -> None:
    (release / "link").symlink_to(release.parent)
    (release / "mmlb_image" / "link").symlink_to(release.parent)
    assert problems(release) == [(path, "file is not in the lock", "") for path in ("link", "mmlb_image/link")]


def test_a_folder_of_images_may_be_a_link(release: Path, tmp_path: Path) -> None:
    (release / "mmlb_image").rename(tmp_path / "elsewhere")
    (release / "mmlb_image").symlink_to(tmp_path / "elsewhere")
    assert command("verify", release, "-q") == Ran(0, "", "")


def test_what_is_no_file_is_not_opened(release: Path) -> None:
    (release / IMAGE).unlink()
    os.mkfifo(release / IMAGE)
    assert problems(release) == [(IMAGE, "is no file", "")]


@pytest.mark.parametrize("path", ["../outside", "/etc/hostname", "mmlb_image/../../outside"])
def test_a_path_of_the_lock_that_leaves_the_release_is_not_followed(path: str, release: Path) -> None:
    describe(release, path, b"outside")
    (release.parent / "outside").write_bytes(b"outside")
    assert problems(release) == [(path, "the path leaves the release", "")]


def test_a_lock_with_another_size_than_its_checksum_is_found(release: Path) -> None:
    path = release / "build.lock.json"
    lock = json.loads(path.read_text("utf-8"))
    size = lock["files"][ITEMS]["bytes"]
    lock["files"][ITEMS]["bytes"] += 1
    path.write_text(json.dumps(lock), "utf-8")
    assert problems(release) == [(ITEMS, BYTES, f"{size:,} bytes, the lock has {size + 1:,}")]


def test_a_damaged_file_is_named_where_its_counter_is_missing(release: Path) -> None:
    path = release / "build.lock.json"
    lock = json.loads(path.read_text("utf-8"))
    lock["manifest"][0]["counter"]["tokenizer"]["name"] = "gone.json"
    path.write_text(json.dumps(lock), "utf-8")
    flip(release / FILE, 30)
    (damaged, uncounted) = problems(release)
    assert damaged == (FILE, BYTES, "")
    assert uncounted[:2] == (FILE, "its examples cannot be counted again")
    assert "gone.json" in uncounted[2]


def test_the_same_is_found_whatever_the_workers(release: Path) -> None:
    for number in range(130):
        (release / "mmlb_image" / f"{number}.jpg").touch()
    flip(release / IMAGE, 500)
    edit(release, 3, lambda record: record.update(answer='["green"]'))
    one, two = (mmlongbench("verify", release, "--workers", workers, "--json") for workers in (1, 2))
    assert one == two
    assert one.code == 1


def test_claims_of_gold_summaries_that_were_made_later_are_no_fault(release: Path) -> None:
    (release / "mmlb_data" / "summ").mkdir(parents=True)
    (release / "mmlb_data" / "summ" / "gov_claims.jsonl").write_text('{"id": "a", "claims": ["It is so."]}\n')
    assert command("verify", release).code == 0
    assert command("audit", release).code == 0

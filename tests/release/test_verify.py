"""`verify` names each damaged, missing or extra file, and the line if it can be known."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claimed_png import claimed_png
from once import linked
from PIL import Image
from tiny import Ran, command, records, relock, rewrite

FILE, LONGER = "mmlb_data/documentQA/mmlongdoc_K1.jsonl", "mmlb_data/documentQA/mmlongdoc_K2.jsonl"
IMAGE = "mmlb_image/mmlongbench-doc/ash/ash_page0.jpg"
ITEMS = "items/documentQA/mmlongdoc_K1.parquet"
BYTES, UNDECODED = "the bytes are not those of the lock", "the image cannot be decoded"
Found = list[tuple[str, str, str]]


@pytest.fixture
def release(finished: Path, tmp_path: Path) -> Path:
    return linked(finished, tmp_path / "release")


def problems(release: Path) -> Found:
    """(file, problem, where) of each; the exit code and the lines for people agree."""
    verified = command("verify", release, "--json")
    assert verified.code == 1
    said = json.loads(verified.out)
    found = [(each["file"], each["problem"], each["where"]) for each in said["problems"]]
    note = [f"note: {said['note']}"] if said["note"] else []
    lines = [*(": ".join(part for part in each if part) for each in found), *note]
    assert command("verify", release, "-q") == Ran(1, "", "".join(f"{line}\n" for line in lines))
    return found


def edit(release: Path, line: int, change: Callable[[dict[str, Any]], object], name: str = FILE) -> None:
    """Edit one record of a public file, lines from 1."""
    rewrite(release / name, lambda lines: change(lines[line - 1]))


def write(path: Path, data: bytes) -> None:
    """Write a file of its own in the place of one that may be linked."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    write(path, bytes(data))


def describe(release: Path, **files: bytes) -> None:
    """Write the hashes of some files into the lock."""
    made = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    relock(release, lambda lock: lock["files"].update(made))


def test_a_release_as_it_was_built_is_whole(finished: Path) -> None:
    assert command("verify", finished, "-q") == Ran(0, "", "")
    assert command("verify", finished) == Ran(0, f"{finished}: whole; 20 files in the lock, 14 of them images\n", "")
    said = json.loads(command("verify", finished, "--json").out)
    assert said == {"files": 20, "images": 14, "problems": [], "note": ""}


@pytest.mark.parametrize("path", [ITEMS, "rejects.jsonl", IMAGE, FILE])
def test_a_flipped_byte_is_named_wherever_it_is_and_so_is_a_missing_file(path: str, release: Path) -> None:
    data = (release / path).read_bytes()
    for share in (0, 0.25, 0.5, 0.75, 1):
        flip(release / path, int(share * (len(data) - 1)))
        found = problems(release)
        assert found[0] == (path, BYTES, "")
        assert {file for file, _, _ in found} == {path}
        write(release / path, data)
    (release / path).unlink()
    assert problems(release) == [(path, "missing file", "")]


def test_every_missing_page_is_named(release: Path) -> None:
    pages = sorted((release / "mmlb_image").rglob("*_page1.jpg"))
    for page in pages:
        page.unlink()
    assert problems(release) == [(page.relative_to(release).as_posix(), "missing file", "") for page in pages]
    assert len(pages) == 4


def test_an_edited_answer_is_named_by_its_line(release: Path) -> None:
    size = (release / FILE).stat().st_size
    edit(release, 3, lambda record: record.update(answer='["green"]'))
    (damaged, unlike) = problems(release)
    assert damaged == (FILE, BYTES, f"{(release / FILE).stat().st_size:,} bytes, the lock has {size:,}")
    before = json.dumps(records(release, "2K")[2]["answer"], ensure_ascii=False)
    where = f'line 3, mmlongdoc_2: answer: "[\\"green\\"]" against {before}'
    assert unlike == (FILE, f"is unlike {LONGER}", where)
    edit(release, 3, lambda record: record.update(answer='["green"]'), LONGER)
    assert [each[:2] for each in problems(release)] == [(FILE, BYTES), (LONGER, BYTES)]


def test_a_record_whose_recount_differs_is_named_by_its_line(release: Path) -> None:
    edit(release, 2, lambda record: record.update(length=record["length"] + 1))
    right = records(release, "1K")[1]["length"] - 1
    first = f"1×, first line 2, mmlongdoc_1: {right + 1} against {right}"
    assert (FILE, "length differs from the recount", first) in problems(release)


def test_a_line_that_is_no_json_is_named(release: Path) -> None:
    lines = (release / FILE).read_bytes().splitlines(keepends=True)
    (release / FILE).write_bytes(b"".join([*lines[:3], lines[3][:40], b"\n", *lines[4:]]))
    assert [name for name, _, where in problems(release) if "line 4: expected one JSON object" in where] == [FILE]
    (release / FILE).write_bytes(b"".join(lines))
    with (release / "rejects.jsonl").open("ab") as file:
        file.write(b"{\n")
    size = (release / "rejects.jsonl").stat().st_size
    assert problems(release) == [
        ("rejects.jsonl", BYTES, f"{size:,} bytes, the lock has {size - 2:,}"),
        ("rejects.jsonl", "is no JSON object", "line 6"),
    ]


def test_a_truncated_image_is_named_even_where_the_lock_has_it(release: Path) -> None:
    data = (release / IMAGE).read_bytes()
    cut = data[: len(data) // 2]
    write(release / IMAGE, cut)
    (damaged, image) = problems(release)
    assert damaged == (IMAGE, BYTES, f"{len(cut):,} bytes, the lock has {len(data):,}")
    assert image[:2] == (IMAGE, UNDECODED)
    assert image[2].startswith("OSError: image file is truncated")
    describe(release, **{IMAGE: cut})
    assert problems(release) == [image]


def test_an_image_over_the_limit_is_not_decoded(release: Path) -> None:
    for size in (9_000, 60_000):
        write(release / IMAGE, claimed_png(size, size))
        describe(release, **{IMAGE: claimed_png(size, size)})
        ((file, problem, said),) = problems(release)
        assert (file, problem) == (IMAGE, UNDECODED)
        assert said.startswith("9,000 × 9,000 pixels, limits.pixels" if size == 9_000 else "DecompressionBombError: ")


@pytest.mark.parametrize(
    ("limits", "said"),
    [([159_999], "159,999"), ([30, 160_000], ""), ([30, 40, "200000", None], "40"), ([60], "60")],
)
def test_the_limit_of_pixels_is_the_largest_of_the_manifest(limits: list[Any], said: str, release: Path) -> None:
    """The pages have 160,000 pixels. A limit that is no number does not count."""

    def change(lock: dict[str, Any]) -> None:
        (dataset,) = lock["manifest"]
        lock["manifest"] = [{**dataset, "name": f"d{at}", "limits": {"pixels": most}} for at, most in enumerate(limits)]

    relock(release, change)
    decoded = [where for file, kind, where in problems(release) if kind == UNDECODED and file == IMAGE]
    assert decoded == ([f"400 × 400 pixels, limits.pixels allows {said}"] if said else [])


def test_a_picture_of_any_format_is_decoded_or_a_reason_is_given(release: Path, tmp_path: Path) -> None:
    """Every third of the first bytes is changed, and the file is cut there, each in a file of its own."""
    written, whole = dict[str, bytes](), set[str]()
    for form in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"):
        Image.linear_gradient("L").resize((64, 64)).save(tmp_path / form, form)
        data = (tmp_path / form).read_bytes()
        whole.add(f"mmlb_image/{form}.jpg")
        written[f"mmlb_image/{form}.jpg"] = data
        for at in range(0, min(len(data), 400), 9):
            written[f"mmlb_image/{form}-{at}-changed.jpg"] = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
            written[f"mmlb_image/{form}-{at}-cut.jpg"] = data[:at]
    for name, data in written.items():
        (release / name).write_bytes(data)
    describe(release, **written)
    found = problems(release)
    assert {kind for _, kind, _ in found} == {UNDECODED}
    named = {file for file, _, _ in found}
    assert not named & whole
    assert all(any(form in name and "cut" in name for name in named) for form in ("JPEG", "PNG", "WEBP", "GIF", "BMP"))
    assert not [where for _, _, where in found if str(tmp_path) in where or not where]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        *((path, "file is not in the lock") for path in ("notes.txt", "other/x", "items/a.parquet")),
        ("mmlb_image/x_page0.jpg", "file is not in the lock"),
        ("mmlb_data/documentQA/mmlongdoc_K4.jsonl", "file is not in the lock"),
        *((f"{path}-x", "temporary file is left") for path in (".tmp-7", "mmlb_image/.tmp-7", ".build/plan")),
    ],
)
def test_an_extra_or_temporary_file_is_named(path: str, problem: str, release: Path) -> None:
    (release / path).parent.mkdir(exist_ok=True)
    (release / path).write_text("extra")
    assert problems(release) == [(path, problem, "")]


def test_a_link_to_a_folder_is_extra_and_not_followed_unless_it_is_a_top_folder(release: Path, tmp_path: Path) -> None:
    (release / "mmlb_image").rename(tmp_path / "elsewhere")
    (release / "mmlb_image").symlink_to(tmp_path / "elsewhere")
    assert command("verify", release, "-q") == Ran(0, "", "")
    (release / "link").symlink_to(release.parent)
    (release / "mmlb_image/link").symlink_to(release.parent)
    assert problems(release) == [(path, "file is not in the lock", "") for path in ("link", "mmlb_image/link")]


def test_what_is_no_file_is_not_opened(release: Path) -> None:
    (release / IMAGE).unlink()
    os.mkfifo(release / IMAGE)
    assert problems(release) == [(IMAGE, "is no file", "")]


def test_a_path_of_the_lock_that_leaves_the_release_is_not_followed(release: Path) -> None:
    (release.parent / "outside").write_bytes(b"outside")
    paths = ("../outside", "/etc/hostname", "mmlb_image/../../outside")
    describe(release, **dict.fromkeys(paths, b"outside"))
    assert sorted(problems(release)) == sorted((path, "the path leaves the release", "") for path in paths)


def test_a_lock_with_another_size_than_its_checksum_is_found(release: Path) -> None:
    size = (release / ITEMS).stat().st_size
    relock(release, lambda lock: lock["files"][ITEMS].update(bytes=size + 1))
    assert problems(release) == [(ITEMS, BYTES, f"{size:,} bytes, the lock has {size + 1:,}")]


def test_a_damaged_file_is_named_where_its_counter_is_missing(release: Path) -> None:
    relock(release, lambda lock: lock["manifest"][0]["counter"]["tokenizer"].update(name="gone.json"))
    flip(release / FILE, 30)
    (damaged, uncounted) = problems(release)
    assert damaged == (FILE, BYTES, "")
    assert uncounted[:2] == (FILE, "its examples cannot be counted again")
    assert "gone.json" in uncounted[2]


def test_a_lock_with_the_limits_of_an_earlier_version_is_read(release: Path) -> None:
    """Releases up to version 0.2 name counts of what a page draws, and no memory."""

    def earlier(lock: dict[str, Any]) -> None:
        for data in lock["manifest"]:
            del data["limits"]["memory"]
            data["limits"] |= {"operators": 10_000_000, "painted_pages": 10_000, "function_bytes": 32_768}

    relock(release, earlier)
    for words in ("verify", "audit", "show", "stats", "rights"):
        ran = command(words, release)
        assert (ran.code, ran.err) == (0, ""), words

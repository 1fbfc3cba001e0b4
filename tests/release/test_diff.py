"""The output of `diff` for two releases: by file, example and unit."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from once import linked
from PIL import Image
from tiny import Ran, command, relock, rewrite, write_manifest

FILE = "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
ITEMS = "items/documentQA/mmlongdoc_K1.parquet"
ASSETS = "items/assets.parquet"
IMAGE = "mmlb_image/mmlongbench-doc/ash/ash_page0.jpg"


@pytest.fixture
def other(finished: Path, tmp_path: Path) -> Path:
    return linked(finished, tmp_path / "other")


def said(a: Path, b: Path, *options: object) -> list[str]:
    """Return the lines of differences, without the last line, which counts equal files."""
    compared = command("diff", a, b, *options)
    assert (compared.code, compared.err) == (1, "")
    lines = compared.out.splitlines()
    assert lines[-1].startswith(f"A is {a}, B is {b}: ")
    assert not json.loads(command("diff", a, b, "--json", *options).out)["is_same"]
    return lines[:-1]


def test_a_copy_is_the_same(finished: Path, other: Path) -> None:
    line = f"A is {finished}, B is {other}: 20 files are the same, nothing differs\n"
    assert command("diff", finished, other) == Ran(0, line, "")
    assert json.loads(command("diff", finished, other, "--json").out)["is_same"]


def test_what_is_no_release_is_an_error(finished: Path, tmp_path: Path) -> None:
    refused = command("diff", finished, tmp_path)
    assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_a_manifest_is_compared_key_by_key(source: Path, finished: Path, tmp_path: Path) -> None:
    paths = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}
    changes = {"seed": 7, "lengths": ["1K"], "pages": {"quality": 80}, "source": paths}
    manifest = write_manifest(tmp_path / "other.yaml", **changes)
    built = command("build", manifest, "--out", tmp_path / "other", "-q")
    assert built.code == 0, built.err
    lines = said(finished, tmp_path / "other", "--limit", 1)
    for line in (
        "manifest: mmlongdoc.seed: 42 against 7",
        "manifest: mmlongdoc.lengths: [1024, 2048] against [1024]",
        "manifest: mmlongdoc.pages.quality: 90 against 80",
        'counts: mmlongdoc.cells.2K: {"examples": 6, "rejected": 0, "ran_dry": 0} against nothing',
        "mmlb_data/documentQA/mmlongdoc_K2.jsonl: only in A",
        "items/documentQA/mmlongdoc_K2.parquet: only in A",
        "images with other bytes: 13",
        "  and 12 more",
    ):
        assert line in lines
    assert any(line.startswith(f"  {IMAGE}: 400 × 400 pixels, ") for line in lines)


def test_sources_versions_and_other_keys_of_the_lock_are_compared(finished: Path, other: Path) -> None:
    def edit(lock: dict[str, Any]) -> None:
        lock["manifest"][0]["source_sha256"]["samples"] = "0" * 64
        lock["versions"]["pillow"] = "1"
        lock["new"] = 3
        lock["manifest"].append({"name": "more"})

    before = json.loads((other / "build.lock.json").read_text("utf-8"))
    relock(other, edit)
    sha256, pillow = before["manifest"][0]["source_sha256"]["samples"], before["versions"]["pillow"]
    assert said(finished, other) == [
        f'sources: mmlongdoc.source_sha256.samples: "{sha256}" against "{"0" * 64}"',
        'manifest: more: nothing against {"name": "more"}',
        "new: null against 3",
        f'versions: pillow: "{pillow}" against "1"',
    ]


def test_locks_that_name_other_bytes_of_the_same_file_differ(finished: Path, other: Path) -> None:
    relock(other, lambda lock: lock["files"].pop("rejects.jsonl"))
    (line,) = said(finished, other)
    assert line.startswith('files: rejects.jsonl: the file is the same, the locks say {"bytes": ')
    assert line.endswith(" against null")


def test_an_edited_field_is_quoted(finished: Path, other: Path) -> None:
    rewrite(other / FILE, lambda found: found[0].update(answer="soft", length=1))
    length = json.loads((finished / FILE).read_bytes().splitlines()[0])["length"]
    assert said(finished, other) == [
        f"{FILE}: 1 of 6 examples in both differ",
        '  mmlongdoc_0: answer: "hard" against "soft"',
        f"  mmlongdoc_0: length: {length} against 1",
    ]


def test_examples_of_one_only_are_named(finished: Path, other: Path) -> None:
    rewrite(other / FILE, lambda found: (found.pop(1), found[0].update(id="new")))
    assert said(finished, other) == [
        f"{FILE}: 0 of 4 examples in both differ, 2 only in A, 1 only in B",
        "  mmlongdoc_0: only in A",
        "  mmlongdoc_1: only in A",
        "  new: only in B",
    ]


def test_so_many_examples_are_named_and_the_others_counted(finished: Path, other: Path) -> None:
    rewrite(other / FILE, lambda found: [record.update(answer="?") for record in found])
    lines = said(finished, other, "--limit", 2)
    assert lines[0] == f"{FILE}: 6 of 6 examples in both differ"
    assert [line.split(":")[0] for line in lines[1:]] == ["  mmlongdoc_0", "  mmlongdoc_1", "  and 4 more that differ"]
    assert said(finished, other, "--limit", 0) == [lines[0], "  and 6 more that differ"]


def test_examples_in_another_order_are_the_same_examples(finished: Path, other: Path) -> None:
    rewrite(other / FILE, lambda found: found.reverse())
    assert said(finished, other) == [f"{FILE}: the same examples in another order"]


def test_a_line_written_otherwise_and_one_that_is_no_json(finished: Path, other: Path) -> None:
    lines = (other / FILE).read_bytes().splitlines(keepends=True)
    (other / FILE).write_bytes(b"".join([lines[0].replace(b'": ', b'":  '), *lines[1:5], b"{\n"]))
    assert said(finished, other) == [
        f"{FILE}: 1 of 5 examples in both differ, 1 only in A, 1 only in B",
        "  mmlongdoc_0: the same values, written otherwise",
        "  mmlongdoc_10: only in A",
        "  line 6: only in B",
    ]


def test_examples_of_one_name_are_told_apart(finished: Path, other: Path) -> None:
    rewrite(other / FILE, lambda found: found.append({**found[0], "answer": "soft"}))
    assert said(finished, other)[1:] == ["  mmlongdoc_0 (2): only in B"]


def test_units_that_were_removed_added_and_moved_are_named(finished: Path, other: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(other / ITEMS)
    rows = [row for row in table.to_pylist() if row["id"] == "mmlongdoc_0"]
    assert len(rows) == 4
    units = [row["unit"] for row in rows]
    new = [{**rows[-1], "unit": "new"}, rows[2], rows[0], {**rows[1], "role": "gold", "text_tokens": 9}]
    others = [row for row in table.to_pylist() if row["id"] != "mmlongdoc_0"]
    pq.write_table(table.from_pylist(new + others, table.schema), other / ITEMS)
    lines = said(finished, other)
    role, tokens = rows[1]["role"], rows[1]["text_tokens"]
    changed = ", ".join(
        [*([] if role == "gold" else [f'role "{role}" against "gold"']), f"text_tokens {tokens} against 9"]
    )
    assert lines == [
        f"{ITEMS}: 1 of 6 examples in both differ",
        f"  mmlongdoc_0: 1 unit removed: {units[3]}",
        "  mmlongdoc_0: 1 unit added: new",
        f"  mmlongdoc_0: 1 unit moved: {units[2]} from 2 to 1",
        f"  mmlongdoc_0: 1 unit changed: {units[1]}: {changed}",
    ]


def test_items_written_otherwise_are_the_same_items(finished: Path, other: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(other / ITEMS), other / ITEMS, compression="none")
    assert said(finished, other) == [f"{ITEMS}: the same values, written otherwise"]


def test_items_that_cannot_be_read_are_said_to_be_so(finished: Path, other: Path) -> None:
    (other / ITEMS).write_bytes(b"none")
    words = "the bytes differ; mmlongdoc_K1.parquet: is no Parquet file of items: ArrowInvalid"
    assert said(finished, other) == [f"{ITEMS}: {words}"]


def test_assets_are_compared_row_by_row(finished: Path, other: Path) -> None:
    table = pq.read_table(other / ASSETS)
    rows = table.to_pylist()
    changed = rows[1] | {"licence": "CC0-1.0"}
    pq.write_table(pa.Table.from_pylist([changed, *rows[2:]], table.schema), other / ASSETS)
    gone, edited = (f"{row['dataset']}: {row['kind']} {row['name']}" for row in rows[:2])
    assert said(finished, other) == [
        f"{ASSETS}: 1 of {len(rows) - 1} examples in both differ, 1 only in A",
        f'  {edited}: licence: "" against "CC0-1.0"',
        f"  {gone}: only in A",
    ]


def test_images_are_told_by_their_pixels_and_bytes(finished: Path, other: Path) -> None:
    broken = IMAGE.replace("page0", "page1")
    for path in (IMAGE, broken):
        (other / path).unlink()
    Image.new("RGB", (30, 20)).save(other / IMAGE)
    (other / broken).write_bytes(b"none")
    (other / "mmlb_image" / "new.jpg").touch()
    (other / "notes.bin").touch()
    lines = said(finished, other)
    assert lines[:3] == ["mmlb_image/new.jpg: only in B", "notes.bin: only in B", "images with other bytes: 2"]
    assert lines[3].startswith(f"  {IMAGE}: 400 × 400 pixels, ")
    assert " against 30 × 20 pixels, " in lines[3]
    assert lines[4].endswith(" against cannot be read (UnidentifiedImageError), 4 bytes")
    (other / broken).unlink()
    os.mkfifo(other / broken)
    assert said(finished, other)[4].endswith(" against no file, 0 bytes")


def test_of_what_only_one_has_all_files_are_named_and_the_first_images(finished: Path, other: Path) -> None:
    (other / "extra").mkdir()
    for name in ("extra/a.bin", "extra/b.bin", "mmlb_image/new.jpg", "mmlb_image/newer.jpg"):
        (other / name).touch()
    assert said(finished, other, "--limit", 1) == [
        "extra/a.bin: only in B",
        "extra/b.bin: only in B",
        "mmlb_image/new.jpg: only in B",
        "mmlb_image: only in B: and 1 more",
    ]


def test_a_public_object_is_compared_member_by_member(finished: Path, other: Path, tmp_path: Path) -> None:
    linked(finished, tmp_path / "one")
    for folder, answer in ((tmp_path / "one", 3), (other, 4)):
        domains = {"Birds": {"tests": [{"id": "a", "answer": answer}, 1] * 40}, "Plants": {}}
        (folder / "mmlb_data" / "birds_K1.json").write_text(json.dumps(domains), "utf-8")
        (folder / "mmlb_data" / "other.txt").write_text(str(answer) * answer, "utf-8")
    assert said(tmp_path / "one", other) == [
        "mmlb_data/birds_K1.json: 1 of 2 examples in both differ",
        "  Birds: tests: 80 against 80 entries, the first that differs is 0: answer 3 against 4",
        "mmlb_data/other.txt: 3 bytes against 4 bytes",
    ]
    (other / "mmlb_data" / "birds_K1.json").write_bytes(b"[" * 100_000)
    assert said(tmp_path / "one", other)[0].endswith("the bytes differ; birds_K1.json: is no JSON object")


def test_values_that_are_too_deep_are_no_crash(finished: Path, other: Path, tmp_path: Path) -> None:
    linked(finished, tmp_path / "one")
    for folder, deepest in ((tmp_path / "one", "1"), (other, "2")):
        line = '{"id": "deep", "x": ' + '{"x":' * 900 + deepest + "}" * 901
        (folder / FILE).write_text(line, "utf-8")
    (_, line) = said(tmp_path / "one", other)
    assert line.startswith("  deep: ")


VALUES: list[tuple[Any, Any, str]] = [
    (1, 1.0, "1 against 1.0"),
    (None, "", 'null against ""'),
    (["a"], ["b"], '["a"] against ["b"]'),
    ("x" * 80, "x" * 70, '80 against 70 characters, the first that differs is 70: "xxxxxxxxxx" against ""'),
    ([0] * 40, [0] * 41, "40 against 41 entries, only the second has entry 40: 0"),
    ([*[0] * 40, 1], [*[0] * 40, 2], "41 against 41 entries, the first that differs is 40: 1 against 2"),
    ({"a": "y" * 90}, 3, f'{{"a": "{"y" * 62}… against 3'),
]


def test_values_are_said_in_words(finished: Path, other: Path, tmp_path: Path) -> None:
    one = linked(finished, tmp_path / "one")
    fields = [{f"f{number}": value[side] for number, value in enumerate(VALUES)} for side in (0, 1)]
    rewrite(one / FILE, lambda found: found[0].update(fields[0]))
    rewrite(other / FILE, lambda found: found[0].update(fields[1]))
    lines = said(one, other)
    assert lines[1:] == [f"  mmlongdoc_0: f{number}: {words}" for number, (_, _, words) in enumerate(VALUES)]


def test_units_that_start_elsewhere_are_named(finished: Path, other: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(other / ITEMS)
    rows = table.to_pylist()
    (first, second), units = [row["start"] for row in rows[:2]], [row["unit"] for row in rows[:2]]
    rows[0]["start"], rows[1]["start"] = first + 1, second + 1
    pq.write_table(table.from_pylist(rows, table.schema), other / ITEMS)
    moved = f"{units[0]} {first} against {first + 1}, {units[1]} {second} against {second + 1}"
    assert said(finished, other)[1:] == [f"  mmlongdoc_0: 2 units start elsewhere: {moved}"]

"""Files of an unfinished or finished release that somebody changes, and torn results: made again, never locked."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from halted import noted, refused
from PIL import Image
from tiny import ROWS, build, command, hashes, leftovers, lock, row, write_rows

FILES = (
    "mmlb_image/mmlongbench-doc/cedar/cedar_page2.jpg",
    "mmlb_data/documentQA/mmlongdoc_K1.jsonl",
    "items/documentQA/mmlongdoc_K2.parquet",
)
RESULTS = (
    "documents/mmlongdoc/cedar",
    "rows/mmlongdoc/all",
    "questions/mmlongdoc/all",
    "records/mmlongdoc/2K/00000",
    "images/mmlongdoc/pages/cedar",
    "cells/mmlongdoc/1K",
)
DAMAGED = ("was damaged or changed, and was removed", "run the command again")


def replace(path: Path) -> None:
    if path.suffix == ".jpg":
        Image.new("RGB", (400, 400), "red").save(path)
    else:
        path.write_bytes(b"{}\n")


@pytest.mark.parametrize("change", [replace, Path.unlink], ids=["replaced", "removed"])
def test_files_that_are_not_as_made_are_counted_and_made_again(
    change: Callable[[Path], None], stopped: Path, source: Path, finished: Path
) -> None:
    for name in FILES:
        change(stopped / name)
    said = "is missing or not as this build made it, and 2 more files; run the command again to make it again"
    refused(build(source, stopped), f"error: {stopped / FILES[1]}: {said}")
    assert not (stopped / "build.lock.json").exists()
    assert build(source, stopped).code == 0
    assert hashes(stopped) == hashes(finished)
    assert not leftovers(stopped)


def test_a_part_finishes_only_what_was_made(source: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert [build(source, out, "--stage", name).code for name in ("prepare", "records", "images")] == [0, 0, 0]
    replace(out / FILES[0])
    refused(command("finish", out), FILES[0], "is missing or not as this build made it")
    assert "stage images: 1 of 4 shards" in command("finish", out).err
    assert build(source, out, "--stage", "images").code == 0
    assert command("finish", out).code == 0
    assert hashes(out) == hashes(finished)


def test_an_image_that_no_result_describes_is_rendered_anew(stopped: Path, source: Path, finished: Path) -> None:
    """As after a kill."""
    replace(stopped / FILES[0])
    (stopped / ".build/images/mmlongdoc/pages/cedar.jsonl").unlink()
    assert build(source, stopped).code == 0
    assert hashes(stopped) == hashes(finished)


TEARS: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda data: data[:-9],
    "without its end": lambda data: b"".join(data.splitlines(keepends=True)[:-1]),
    "empty": lambda data: b"",
    "other": lambda data: b'{"a": 1}\n',
    "without its beginning": lambda data: b"".join(data.splitlines(keepends=True)[1:]),
}


@pytest.mark.parametrize("tear", TEARS.values(), ids=TEARS)
def test_torn_results_count_as_not_done(
    tear: Callable[[bytes], bytes], stopped: Path, source: Path, finished: Path
) -> None:
    for path in (stopped / ".build" / f"{name}.jsonl" for name in RESULTS):
        path.write_bytes(tear(path.read_bytes()))
    ended = build(source, stopped)
    assert ended.code == 0, ended.err
    assert hashes(stopped) == hashes(finished)
    assert not leftovers(stopped)


def ended(lines: bytes) -> bytes:
    """Lines with the last one that marks a result as complete."""
    return lines + json.dumps({"bytes": len(lines), "sha256": hashlib.sha256(lines).hexdigest()}).encode() + b"\n"


def rows(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Callable[[bytes], bytes]:
    """Change the lines of a result, and mark it as complete again."""
    return lambda data: ended(
        b"".join(json.dumps(line).encode() + b"\n" for line in change([*map(json.loads, data.splitlines()[:-1])]))
    )


def with_fields(lines: list[dict[str, Any]], **fields: object) -> list[dict[str, Any]]:
    return [{**lines[0], "row": {**lines[0]["row"], **fields}}, *lines[1:]]


ROW_RESULT, QUESTION_RESULT, RECORDS = "rows/mmlongdoc/all", "questions/mmlongdoc/all", "records/mmlongdoc/1K/00000"
FALSE: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "changed inside": (RECORDS, lambda data: data.replace(b"white", b"black"), RECORDS),
    "nested too deeply": (RECORDS, lambda data: ended(b"[" * 100_000 + b"\n"), RECORDS),
    "another kind": ("documents/mmlongdoc/ash", lambda data: ended(b'{"kind": "other"}\n'), "documents/mmlongdoc/ash"),
    "fields of before": (ROW_RESULT, rows(lambda lines: with_fields(lines, field_of_before=1)), QUESTION_RESULT),
    "no rows": (ROW_RESULT, lambda data: ended(b""), QUESTION_RESULT),
    "one row less": (ROW_RESULT, rows(lambda lines: lines[1:]), QUESTION_RESULT),
    "one row more": (
        ROW_RESULT,
        rows(lambda lines: [*lines, *with_fields(lines[:1], id="mmlongdoc_11")]),
        QUESTION_RESULT,
    ),
    "another answer": (ROW_RESULT, rows(lambda lines: with_fields(lines, answer="another")), QUESTION_RESULT),
}
"""Results that look complete: the one that is changed, the change, and the one that is named. Rows that are not those
among which was chosen begin the choice anew."""


@pytest.mark.parametrize(("name", "change", "named"), FALSE.values(), ids=FALSE)
def test_a_result_that_is_not_what_its_stage_wrote_is_named_and_made_again(
    name: str, change: Callable[[bytes], bytes], named: str, stopped: Path, source: Path, finished: Path
) -> None:
    path = stopped / ".build" / f"{name}.jsonl"
    path.write_bytes(change(path.read_bytes()))
    for later in ("images", "cells"):  # without the results of later stages, the damaged ones are read
        shutil.rmtree(stopped / ".build" / later)
    refused(build(source, stopped), stopped / ".build" / f"{named}.jsonl", *DAMAGED)
    assert build(source, stopped).code == 0
    assert hashes(stopped) == hashes(finished)


@pytest.mark.parametrize("times", [0, 2])
def test_a_cell_that_is_not_counted_once_is_named_and_made_again(
    times: int, stopped: Path, source: Path, finished: Path
) -> None:
    path = stopped / ".build" / "cells/mmlongdoc/1K.jsonl"
    path.write_bytes(ended(path.read_bytes().splitlines(keepends=True)[0] * times))
    refused(build(source, stopped), path, *DAMAGED)
    assert build(source, stopped).code == 0
    assert hashes(stopped) == hashes(finished)


NO_PLANS = {
    "empty": "",
    "half": "{",
    "list": "[]",
    "null": "null",
    "without datasets": '{"root": "x"}',
    "empty dataset": '{"format": 6, "root": "x", "datasets": [{}], "versions": {}}',
    "deep list": "[" * 100_000,
    "deep mapping": '{"root": "x", "a":' * 5000,
}


@pytest.mark.parametrize("text", [*NO_PLANS.values(), None], ids=[*NO_PLANS, "of another engine"])
def test_a_torn_plan_counts_as_none_and_restart_discards_what_belongs_to_it(
    text: str | None, stopped: Path, source: Path, seed_7: Path
) -> None:
    """It is not known to which manifest the results belong."""
    plan = stopped / ".build/plan.json"
    if text is None:
        saved = json.loads(plan.read_text())
        saved["datasets"][0]["plan"]["spec"]["unknown"] = 1
        text = json.dumps(saved)
    plan.write_text(text)
    for folder in ("mmlb_data", "mmlb_image", "items"):  # files of the manifest before
        (stopped / folder).mkdir(exist_ok=True)
        (stopped / folder / "stray").write_text("of another manifest")
    assert "run --stage prepare first" in command("finish", stopped).err
    refused(build(source, stopped), "holds an unfinished build whose plan is damaged")
    if text in ("", None):  # once is enough: the plan is the same from here on
        again = build(source, stopped, "--set", "seed=7", "--restart")
        assert again.code == 0, again.err
        assert lock(stopped)["manifest"][0]["seed"] == 7
        assert hashes(stopped) == hashes(seed_7)


@pytest.mark.parametrize("words", [("build",), ("build", "--stage", "prepare"), ("finish",)])
def test_an_output_that_is_a_loop_of_links_is_one_line(words: tuple[str, ...], source: Path, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    name, *options = words
    given = [source / "tiny.yaml", "--out"] if name == "build" else []
    refused(command(name, *given, tmp_path / "a", *options), f"--out {tmp_path / 'a'}", "loop of symbolic links")


def test_two_datasets_of_one_document_render_it_once(own: Path, tmp_path: Path) -> None:
    (dataset,) = yaml.safe_load((own / "tiny.yaml").read_text())["datasets"]
    (own / "tiny.yaml").write_text(yaml.safe_dump({"datasets": [dataset, {**dataset, "name": "second"}]}))
    with noted() as written:
        assert build(own, tmp_path / "out").code == 0
    made = [name for name in written if name.endswith(".jpg")]
    assert len(made) == len(set(made)) > 0


# Finished releases


def test_a_release_of_other_versions_is_not_called_complete(source: Path, finished: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    path, changed = out / "build.lock.json", lock(out)
    changed["versions"]["pymupdf"] = "1.0"
    path.write_text(json.dumps(changed), "utf-8")
    before_it = hashes(out)
    refused(build(source, out), "a finished release that differs (pymupdf 1.0 → ", "use another folder, or remove this")
    assert hashes(out) == before_it
    del changed["versions"]
    path.write_text(json.dumps(changed), "utf-8")
    refused(build(source, out), "that differs (mmlongbench (not recorded) → ")


@pytest.mark.parametrize("name", [*FILES[1:], "rejects.jsonl", "mmlb_image/mmlongbench-doc/ash/ash_page1.jpg"])
def test_a_release_that_is_not_whole_is_not_called_complete(
    name: str, source: Path, finished: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    size = (out / name).stat().st_size
    with (out / name).open("ab") as file:
        file.write(b"\n")
    before_it = hashes(out)
    refused(build(source, out), f"{name}: expected {size} bytes, it has {size + 1} bytes; put the file back, or remove")
    assert hashes(out) == before_it
    (out / name).unlink()
    refused(build(source, out), f"{name}: expected {size} bytes, it is missing; put the file back, or remove")


LONGER = ("--lengths", "1K,2K,4K")


@pytest.mark.parametrize("name", FILES[:2])
def test_a_damaged_release_is_not_extended(name: str, source: Path, finished: Path, tmp_path: Path) -> None:
    """Its size is right, so that only its content tells."""
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    data = (out / name).read_bytes()
    (out / name).write_bytes(data[:-2] + b"  ")
    refused(build(source, out, *LONGER), f"the release is damaged: {name}: its content is not what the lock says")
    (out / name).write_bytes(data)
    assert build(source, out, *LONGER).code == 0


@pytest.mark.parametrize(("key", "value"), [("lengths", "1K"), ("sample", {"n": "x"}), ("name", 5), ("source", [])])
def test_a_lock_of_other_types_is_not_extended(
    key: str, value: object, source: Path, finished: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    changed = lock(out)
    changed["manifest"][0][key] = value
    (out / "build.lock.json").write_text(json.dumps(changed))
    refused(build(source, out, *LONGER), "holds a finished release that differs")


@pytest.mark.parametrize("text", [b"", b"not Parquet", None], ids=["empty", "no Parquet", "other columns"])
def test_items_that_a_forged_lock_names_are_refused(
    text: bytes | None, own: Path, finished: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    name = "items/documentQA/mmlongdoc_K1.parquet"
    if text is None:
        pq.write_table(pa.table({"other": [1]}), out / name)
    else:
        (out / name).write_bytes(text)
    forged = lock(out)
    data = (out / name).read_bytes()
    forged["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (out / "build.lock.json").write_text(json.dumps(forged))
    write_rows(own, (*ROWS, row("ash.pdf", "How old is it?", "80", "[2]", answer_format="Int")))
    refused(build(own, out), f"{out / name}: the release cannot be extended: ")

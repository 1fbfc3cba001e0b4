"""Files of an unfinished release that somebody changes, and torn results of shards: made again, never locked."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace as replace_fields
from pathlib import Path

import pytest
import yaml
from PIL import Image
from tiny import Ran, build, command, hashes, leftovers, lock

import mmlongbench.task as mt
from builders.docvqa import MMLongBenchDoc
from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.lines import ROWS, ReadRow, Reject
from mmlongbench.errors import BuildError, Fault
from mmlongbench.io.atomic import write_whole

pytestmark = pytest.mark.slow

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


@pytest.fixture(scope="module")
def stopped(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build that was stopped when all its shards were done; not to be changed."""
    out = tmp_path_factory.mktemp("stopped") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmlongbench.building.build.finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert build(source, out).code == 130
    return out


@pytest.fixture
def out(stopped: Path, tmp_path: Path) -> Path:
    """The same build in a folder of its own."""
    return shutil.copytree(stopped, tmp_path / "out")


def replace(path: Path) -> None:
    if path.suffix == ".jpg":
        Image.new("RGB", (400, 400), "red").save(path)
    else:
        path.write_bytes(b"{}\n")


@pytest.mark.parametrize("change", [replace, Path.unlink], ids=["replaced", "removed"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_what_was_made_is_made_again(
    name: str, change: Callable[[Path], None], out: Path, source: Path, finished: Path
) -> None:
    change(out / name)
    ended = build(source, out)
    assert ended.code == 2
    assert ended.err == (
        f"error: {out / name}: is missing or not as this build made it; run the command again to make it again\n"
    )
    assert not (out / "build.lock.json").exists()
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)
    assert not leftovers(out)


def test_a_part_finishes_only_what_was_made(source: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def stage(name: str) -> Ran:
        return command("build", source / "tiny.yaml", "--out", out, "--stage", name)

    assert [stage(name).code for name in ("prepare", "records", "images")] == [0, 0, 0]
    replace(out / FILES[0])
    ended = command("finish", out)
    assert (ended.code, "is missing or not as this build made it" in ended.err) == (2, True)
    assert "stage images: 1 of 4 shards" in command("finish", out).err
    assert stage("images").code == 0
    assert command("finish", out).code == 0
    assert hashes(out) == hashes(finished)


def test_an_image_that_nobody_made_is_rendered_anew(out: Path, source: Path, finished: Path) -> None:
    """As after a kill: a file that no result describes."""
    replace(out / FILES[0])
    BuildDir(out).discard(Shard("images", "mmlongdoc", "pages/cedar"))
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def cut(path: Path) -> None:
    """Without the last line, as if a whole line was lost."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def other(path: Path) -> None:
    path.write_bytes(b'{"a": 1}\n')


def short(path: Path) -> None:
    """Without its first line."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))


@pytest.mark.parametrize("tear", [torn, cut, empty, other, short])
@pytest.mark.parametrize("name", RESULTS)
def test_a_torn_result_counts_as_not_done(
    name: str, tear: Callable[[Path], None], out: Path, source: Path, finished: Path
) -> None:
    tear(out / ".build" / f"{name}.jsonl")
    ended = build(source, out)
    assert ended.code == 0, ended.err
    assert hashes(out) == hashes(finished)
    assert not leftovers(out)


def test_a_result_that_was_changed_inside_is_named_and_made_again(out: Path, source: Path, finished: Path) -> None:
    path = out / ".build" / "records" / "mmlongdoc" / "1K" / "00000.jsonl"
    BuildDir(out).discard(Shard("cells", "mmlongdoc", "1K"))
    path.write_bytes(path.read_bytes().replace(b"white", b"black"))
    ended = build(source, out)
    assert (ended.code, ended.err) == (
        2,
        f"error: {path}: was damaged or changed, and was removed; run the command again to continue\n",
    )
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    build_dir, shard = BuildDir(tmp_path), Shard("rows", "x", "all")
    fault = Fault("odd", "a name", "\udc80", file="\udc80\u2028")
    results: tuple[list[ReadRow | Reject], ...] = (
        [],
        [ReadRow({"a": 1})],
        [ReadRow({"a": "x" * 100_000}), Reject("x", "\u2028", None, fault)],
    )
    for lines in results:
        build_dir.write(shard, lines)
        assert build_dir.is_done(shard)
        assert list(build_dir.read(shard, ROWS)) == lines
        if lines:
            assert build_dir.last(shard, ROWS) == lines[-1]
    build_dir.discard(shard)
    assert not build_dir.is_done(shard)
    with pytest.raises(BuildError, match="run the command again"):
        list(build_dir.read(shard, ROWS))


@pytest.fixture(scope="module")
def of_seed_7(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release of another seed; not to be changed."""
    whole = tmp_path_factory.mktemp("of_seed_7") / "whole"
    assert build(source, whole, "--set", "seed=7").code == 0
    return whole


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"root": "x"}', '{"format": 4, "root": "x", "datasets": [{}], "versions": {}}']
)
def test_a_torn_plan_counts_as_none(text: str, out: Path, source: Path, of_seed_7: Path) -> None:
    (out / ".build" / "plan.json").write_text(text)
    stray = [out / folder / "stray" for folder in ("mmlb_data", "mmlb_image", "items")]  # of the manifest before
    for path in stray:
        path.parent.mkdir(exist_ok=True)
        path.write_text("of another manifest")
    assert "run --stage prepare first" in command("finish", out).err
    # it is not known to which manifest the results belong
    assert "holds an unfinished build whose plan is damaged" in build(source, out, "--set", "seed=7").err
    ended = build(source, out, "--set", "seed=7", "--restart")
    assert ended.code == 0, ended.err
    assert lock(out)["manifest"][0]["seed"] == 7
    assert hashes(out) == hashes(of_seed_7)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"root": "x", "a":' * 5000])
def test_a_plan_that_is_nested_too_deeply_counts_as_none(text: str, out: Path, source: Path, finished: Path) -> None:
    (out / ".build" / "plan.json").write_text(text)
    assert "holds an unfinished build whose plan is damaged" in build(source, out).err
    assert build(source, out, "--restart").code == 0
    assert hashes(out) == hashes(finished)


@pytest.mark.parametrize("name", ["rows/mmlongdoc/all", "documents/mmlongdoc/ash", "records/mmlongdoc/1K/00000"])
@pytest.mark.parametrize("lines", [b"", b"[" * 100_000 + b"\n", b'{"kind": "other"}\n'], ids=["none", "deep", "other"])
def test_a_result_of_other_lines_than_its_stage_writes_is_named_and_made_again(
    name: str, lines: bytes, out: Path, source: Path, finished: Path
) -> None:
    """Its last line marks it as complete."""
    path = out / ".build" / f"{name}.jsonl"
    end = json.dumps({"bytes": len(lines), "sha256": hashlib.sha256(lines).hexdigest()}).encode()
    path.write_bytes(lines + end + b"\n")
    for later in ("images", "cells"):  # without the results of later stages, the damaged ones are read
        shutil.rmtree(out / ".build" / later)
    ended = build(source, out)
    assert (ended.code, "was damaged or changed, and was removed; run the command ag" in ended.err) == (2, True)
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)


def test_rows_of_another_type_than_the_reader_has_now_are_made_again(out: Path, source: Path, finished: Path) -> None:
    path = out / ".build" / "rows" / "mmlongdoc" / "all.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()[:-1]]
    lines[0]["row"]["field_of_before"] = 1
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    end = json.dumps({"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}).encode()
    path.write_bytes(text + end + b"\n")
    ended = build(source, out)
    assert (ended.code, f"{path}: was damaged or changed, and was removed" in ended.err) == (2, True)
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)


@pytest.mark.parametrize("change", ["one row more", "one row less", "another answer"])
def test_rows_that_are_read_anew_as_others_begin_the_choice_anew(
    change: str, out: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = MMLongBenchDoc.row

    def more(self: MMLongBenchDoc, raw: mt.RawRow, sources: mt.SourcePaths) -> mt.Row | mt.Fault:
        mended = replace_fields(raw, fields={**raw.fields, "evidence_pages": "[1]"})
        return row(self, mended if raw.id == "mmlongdoc_8" else raw, sources)

    def less(self: MMLongBenchDoc, raw: mt.RawRow, sources: mt.SourcePaths) -> mt.Row | mt.Fault:
        return mt.Fault("too-new", "x", "y") if raw.id == "mmlongdoc_0" else row(self, raw, sources)

    def other(self: MMLongBenchDoc, raw: mt.RawRow, sources: mt.SourcePaths) -> mt.Row | mt.Fault:
        mended = replace_fields(raw, fields={**raw.fields, "answer": "another"})
        return row(self, mended if raw.id == "mmlongdoc_0" else raw, sources)

    changes = {"one row more": more, "one row less": less, "another answer": other}
    monkeypatch.setattr(MMLongBenchDoc, "row", changes[change])
    (out / ".build/rows/mmlongdoc/all.jsonl").unlink()
    shutil.rmtree(out / ".build/cells")
    ended = build(source, out)
    assert (ended.code, "was damaged or changed, and was removed" in ended.err) == (2, True)
    assert build(source, out).code == 0
    assert build(source, tmp_path / "anew").code == 0
    assert hashes(tmp_path / "anew").items() <= hashes(out).items()  # a page that no example shows any more may stay


def test_a_plan_that_is_whole_but_of_another_engine_is_torn_too(out: Path, source: Path, finished: Path) -> None:
    saved = json.loads((out / ".build" / "plan.json").read_text())
    saved["datasets"][0]["plan"]["spec"]["unknown"] = 1
    (out / ".build" / "plan.json").write_text(json.dumps(saved))
    assert "holds an unfinished build whose plan is damaged" in build(source, out).err
    assert build(source, out, "--restart").code == 0
    assert hashes(out) == hashes(finished)


@pytest.mark.parametrize("command_line", [("build",), ("build", "--stage", "prepare"), ("finish",)])
def test_an_output_that_is_a_loop_of_links_is_one_line(
    command_line: tuple[str, ...], source: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    name, *options = command_line
    words = [source / "tiny.yaml", "--out"] if name == "build" else []
    ended = command(name, *words, tmp_path / "a", *options)
    assert (ended.code, ended.err) == (
        2,
        f"error: --out {tmp_path / 'a'}: is a loop of symbolic links; give a folder\n",
    )


def test_two_datasets_of_one_document_render_it_once(source: Path, tmp_path: Path) -> None:
    (dataset,) = yaml.safe_load((source / "tiny.yaml").read_text())["datasets"]
    dataset["source"] = {name: str(source / path) for name, path in dataset["source"].items()}
    (tmp_path / "two.yaml").write_text(yaml.safe_dump({"datasets": [dataset, {**dataset, "name": "second"}]}))
    written: list[str] = []

    def write(path: Path, pieces: Iterable[bytes]) -> None:
        written.append(path.name)
        write_whole(path, pieces)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmlongbench.building.stages.images.write_whole", write)
        assert command("build", tmp_path / "two.yaml", "--out", tmp_path / "out", "--workers", 1).code == 0
    assert len(written) == len(set(written)) > 0

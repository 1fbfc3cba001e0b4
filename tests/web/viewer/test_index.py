"""The index: made once, outside the release; examples are found again by it, also in files that others made."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import hashes
from viewing import site_of

from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.task_files import NO_TASK_FILES
from mmlongbench.web.viewer import index as index_module
from mmlongbench.web.viewer.indexing import index_file


def test_each_example_is_found_by_its_index(finished: Path) -> None:
    site = site_of(finished)
    file = next(file for file in site.viewed.files if file.length == 2048)
    lines = file.path.read_bytes().splitlines()
    rows = site.index.file(file.number).rows
    assert [row.id for row in rows] == [json.loads(line)["id"] for line in lines]
    assert [site.index.record(file.number, row) for row in rows] == [json.loads(line) for line in lines]
    opened = site.open(file, 1)
    assert [opened.blocks[place].role for place in (0, -1)] == ["instruction", "question"]
    assert {each.role for each in opened.blocks[1:-1]} == {"own", "padding"}
    assert opened.blocks[-1].start + opened.blocks[-1].tokens == opened.total
    starts = [each.start for each in opened.blocks]
    assert starts == sorted(starts)


def test_nothing_is_written_into_the_release_and_nothing_is_indexed_twice(
    finished: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hashes(finished)
    site_of(finished)
    assert hashes(finished) == before
    assert list((cache / "mmlongbench/view/index").iterdir())

    def refuse(*_: object) -> int:
        raise AssertionError("was indexed")

    viewed = site_of(finished).viewed
    index_module.open_index(viewed, run=refuse)


def test_a_changed_file_is_indexed_again_and_refused_by_an_older_index(finished: Path, tmp_path: Path) -> None:
    release = Path(shutil.copytree(finished, tmp_path / "copy"))
    site = site_of(release)
    file = site.viewed.files[0]
    rows = site.index.file(0).rows
    path = release / "mmlb_data" / file.name
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(ReleaseError, match="has changed since the viewer was started"):
        site.index.record(0, rows[0])
    assert [row.id for row in site_of(release).index.file(0).rows] == [row.id for row in rows[1:]]


def test_a_line_that_is_no_record_is_a_row_that_says_why(finished: Path, tmp_path: Path) -> None:
    release = Path(shutil.copytree(finished, tmp_path / "copy"))
    path = next((release / "mmlb_data").rglob("*_K1.jsonl"))
    first, second, *others = path.read_bytes().splitlines(keepends=True)
    broken = json.loads(second) | {"page_list": 7}
    path.write_bytes(b"".join([b"{broken\n", json.dumps(broken).encode() + b"\n", b"\n", first, *others]))
    site = site_of(release)
    rows = site.index.file(0).rows
    assert "expected one JSON object" in rows[0].fault
    assert rows[1].fault
    assert not any(row.fault for row in rows[2:])
    with pytest.raises(ReleaseError, match="expected one JSON object"):
        site.open(site.viewed.files[0], 0)


def test_public_files_of_others_open_without_lock_items_and_images(finished: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(finished / "mmlb_data", tmp_path / "mmlb_data"))
    for path in data.rglob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        bare = [{key: value for key, value in line.items() if key != "tokens"} for line in lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in bare), "utf-8")
    site = site_of(tmp_path)
    assert [(file.dataset, file.length) for file in site.viewed.files] == [("mmlongdoc", 1024), ("mmlongdoc", 2048)]
    opened = site.open(site.viewed.files[1], 0)
    assert opened.is_estimated
    assert len(opened.missing) == len(opened.example.prompt.images) > 0
    assert opened.blocks[1].text > 0
    assert any("estimated" in note for note in opened.shown.notes)


def test_items_that_are_not_those_of_the_prompt_are_said_and_not_used(finished: Path, tmp_path: Path) -> None:
    release = Path(shutil.copytree(finished, tmp_path / "copy"))
    items = release / "items/documentQA"
    shutil.copy(items / "mmlongdoc_K2.parquet", items / "mmlongdoc_K1.parquet")
    site = site_of(release)
    opened = [site.open(site.viewed.files[0], row) for row in range(len(site.index.file(0).rows))]
    notes = [each.shown.notes for each in opened if each.is_estimated]
    assert any("see `mmlongbench verify`" in each[0] for each in notes)
    for each in notes:
        assert each[-1] == "units are the parts of the prompt, and their tokens are estimated"
        assert not any("has no items" in note for note in each)


def test_an_index_that_is_damaged_is_named(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    site = site_of(finished)
    for path in (tmp_path / "mmlongbench/view/index").glob("*.rows"):
        path.write_bytes(b"{}\n")
    with pytest.raises(ReleaseError, match="is no index"):
        site.index.file(0)


@pytest.mark.parametrize("part", ["units", "records"])
def test_an_index_with_damaged_units_or_copies_is_named_and_made_again(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    site = site_of(finished)
    known = site.index.file(0)
    site.index._read[0] = replace(known, head=replace(known.head, is_copied=part == "records"))
    for path in (tmp_path / "cache/mmlongbench/view/index").glob(f"*.{part}"):
        path.write_bytes(b"?" * 100_000)
    with pytest.raises(ReleaseError, match=r"is no index \(\w+\); remove .*\.head and start again"):
        site.read(site.viewed.files[0], 0)
    for path in (tmp_path / "cache/mmlongbench/view/index").glob("*.head"):
        path.unlink()
    again = site_of(finished)
    assert again.read(again.viewed.files[0], 0).blocks


def test_the_process_of_an_index_opens_the_release_itself(finished: Path, tmp_path: Path) -> None:
    viewed = site_of(finished).viewed
    made = index_file(finished, None, NO_TASK_FILES, viewed.files[0].name, tmp_path, "key")
    assert made == len((tmp_path / "key.rows").read_bytes().splitlines())

"""Sources that cannot be read or told apart, builds that cannot start, and builds that keep nothing."""

import errno
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tiny import ROWS, build, command, draw_pdf, hashes, lock, rejects, write_rows

from mmlongbench.documents.limits import MAX_PIXELS
from mmlongbench.documents.pixels import header_size
from mmlongbench.io.atomic import sha256_of

pytestmark = pytest.mark.slow


@pytest.fixture
def own(source: Path, tmp_path: Path) -> Path:
    """The tiny source, to be changed."""
    shutil.copytree(source, tmp_path / "source")
    return tmp_path / "source"


def unreadable(monkeypatch: pytest.MonkeyPatch, *names: str, code: int = errno.EACCES) -> None:
    """Files of these names cannot be read by any code."""

    def fails(path: Path) -> str:
        if path.name in names:
            raise OSError(code, "Not to be read", str(path))
        return sha256_of(path)

    monkeypatch.setattr("mmlongbench.building.source_files.sha256_of", fails)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
def test_a_document_that_cannot_be_read_is_refused_and_the_build_goes_on(
    code: int, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable(monkeypatch, "cedar.pdf", code=code)
    built = build(own, tmp_path / "out")
    assert built.code == 0, built.err
    refused = lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]["refused"]
    assert refused["cedar"].startswith("cedar.pdf: unreadable-document: expected a file that can be read, found ")
    reasons = {line["id"]: line["reason"] for line in rejects(tmp_path / "out")}
    assert reasons["mmlongdoc_2"] == reasons["mmlongdoc_10"] == "unreadable-document"
    assert command("audit", tmp_path / "out", "-q").code == 0
    before = lock(tmp_path / "out")["manifest"][0]["source_sha256"]["documents"]
    monkeypatch.undo()
    refused_again = build(own, tmp_path / "out").err  # it can be read now
    assert "documents: files changed (4 files); every context may show something from source.documents" in refused_again
    assert build(own, tmp_path / "other").code == 0
    assert lock(tmp_path / "other")["manifest"][0]["source_sha256"]["documents"] != before


@pytest.mark.parametrize("name", ["samples.json", "README.md"])
def test_another_source_that_cannot_be_read_is_named(
    name: str, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / "documents" / "README.md").touch()
    unreadable(monkeypatch, name)
    refused = build(own, tmp_path / "out")
    assert refused.code == 2
    assert f"error: {name}, dataset 'mmlongdoc': unreadable-source: expected a file that can be read" in refused.err
    assert "run the same command to continue" not in refused.err
    assert not (tmp_path / "out").exists()


def test_two_documents_of_one_stem_are_refused_and_the_rest_is_built(own: Path, tmp_path: Path) -> None:
    draw_pdf(own / "documents" / "cedar.PDF", 3)
    if len([*(own / "documents").iterdir()]) < 5:
        pytest.skip("this file system does not tell x.pdf from x.PDF")
    assert build(own, tmp_path / "out").code == 0
    found = [line for line in rejects(tmp_path / "out") if line["reason"] == "two-documents-of-one-name"]
    assert [line["id"] for line in found] == ["mmlongdoc_2", "mmlongdoc_10"]
    assert {line["found"] for line in found} == {"cedar.PDF, cedar.pdf"}
    assert "cedar" in lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]["refused"]
    assert not (tmp_path / "out" / "mmlb_image" / "mmlongbench-doc" / "cedar").exists()
    assert command("audit", tmp_path / "out", "-q").code == 0


def test_only_an_error_of_the_disk_says_that_the_same_command_goes_on(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(code: int) -> str:
        def fail(*_: Any) -> None:
            raise OSError(code, "it failed", "file")

        monkeypatch.setattr("mmlongbench.building.build.finish", fail)
        failed = build(source, tmp_path / "out")
        assert failed.code == 2
        return failed.err

    for code in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        assert failing(code) == "error: file: it failed; no file is half-written, run the same command to continue\n"
    for code in (errno.EACCES, errno.ENOENT):
        assert failing(code) == "error: file: it failed\n"
    assert failing(errno.EMFILE) == "error: file: it failed; allow more (ulimit -n), or use fewer --workers\n"


@pytest.mark.parametrize("out", ["out", "new/folders/out"])
def test_a_build_that_could_not_start_leaves_nothing(out: str, source: Path, tmp_path: Path) -> None:
    refused = build(source, tmp_path / out, "--set", "source.documents=nowhere")
    assert refused.code == 2
    assert not [*tmp_path.iterdir()]


def test_a_build_that_could_not_start_leaves_what_stood_there(source: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert build(source, tmp_path / "empty", "--set", "source.documents=nowhere").code == 2
    assert not [*(tmp_path / "empty").iterdir()]
    (tmp_path / "begun" / ".build" / "claims").mkdir(parents=True)
    assert build(source, tmp_path / "begun", "--set", "source.documents=nowhere").code == 2
    assert (tmp_path / "begun" / ".build" / "claims").is_dir()
    shutil.copytree(finished, tmp_path / "done")
    assert build(source, tmp_path / "done", "--set", "source.documents=nowhere").code == 2
    assert hashes(tmp_path / "done") == hashes(finished)


@pytest.mark.parametrize("option", [None, "--json", "-q"])
def test_a_build_that_kept_nothing_says_so_and_exits_with_1(option: str | None, own: Path, tmp_path: Path) -> None:
    write_rows(own, ROWS[5:9])
    built = build(own, tmp_path / "out", *([option] if option else []))
    assert built.code == 1
    path = tmp_path / "out" / "rejects.jsonl"
    said = built.err.splitlines(keepends=True)
    assert said[-1] == f"no question was kept: 4 read, 4 rejected, see {path}\n"
    assert said[:-1] == [] if option else said[0] == "warning: mmlongdoc: kept 0 of 4 questions\n"
    assert "no question fits it" not in built.out
    assert len(rejects(tmp_path / "out")) == 4
    assert not lock(tmp_path / "out")["datasets"]["mmlongdoc"]["questions"]["kept"]
    again = build(own, tmp_path / "out")
    assert (again.code, "was complete already" in again.out) == (1, True)
    audited = command("audit", tmp_path / "out")
    assert (audited.code, audited.err) == (1, f"{tmp_path / 'out'}: holds no public file\n")


@pytest.mark.parametrize("warned", ["error", "always"])
def test_headers_of_large_pictures_are_read_without_a_warning(warned: Any, tmp_path: Path) -> None:
    side = int(MAX_PIXELS**0.5)
    Image.new("1", (side, side)).save(tmp_path / "large.png")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(warned)
        assert header_size(tmp_path / "large.png") == (side, side)
    assert not seen
    Image.new("1", (side + 1, side + 1)).save(tmp_path / "larger.png")
    with pytest.raises(Image.DecompressionBombError):
        header_size(tmp_path / "larger.png")

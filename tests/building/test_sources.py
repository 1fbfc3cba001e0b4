"""Sources that cannot be used: documents are left out by name, other sources end the build, and both say what to do."""

import errno
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from halted import before, refused
from hostile_pdfs import blanks, groups, nested_forms, postscript
from tiny import ROWS, build, command, draw_pdf, hashes, lock, rejects, row, write_rows

from mmlongbench.errors import Fault, PageLimitError, ReaderDiedError


@contextmanager
def unreadable(name: str, code: int = errno.EACCES) -> Iterator[None]:
    """A file of this name cannot be read by any code, nor is it hashed."""
    digest = hashlib.file_digest

    def fails(file: Any, *more: Any) -> Any:
        if Path(file.name).name == name:
            raise OSError(code, "Not to be read", file.name)
        return digest(file, *more)

    with mock.patch.object(hashlib, "file_digest", fails):
        yield


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
def test_a_document_that_cannot_be_read_is_refused_and_the_build_goes_on(code: int, own: Path, tmp_path: Path) -> None:
    with unreadable("cedar.pdf", code):
        built = build(own, tmp_path / "out", "--set", "limits.seconds_a_page=1")
    assert built.code == 0, built.err
    left_out = lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]["refused"]
    assert left_out["cedar"].startswith("cedar.pdf: unreadable-document: expected a file that can be read, found ")
    reasons = {line["id"]: line["reason"] for line in rejects(tmp_path / "out")}
    assert reasons["mmlongdoc_2"] == reasons["mmlongdoc_10"] == "unreadable-document"
    assert command("audit", tmp_path / "out", "-q").code == 0
    before = lock(tmp_path / "out")["manifest"][0]["source_sha256"]["documents"]
    said = "source.documents changed (4 files); every context may show something from source.documents"
    refused(build(own, tmp_path / "out"), said)  # it can be read now
    assert build(own, tmp_path / "other").code == 0
    assert lock(tmp_path / "other")["manifest"][0]["source_sha256"]["documents"] != before


@pytest.mark.parametrize("name", ["samples.json", "README.md"])
def test_another_source_that_cannot_be_read_is_named(name: str, own: Path, tmp_path: Path) -> None:
    (own / "documents" / "README.md").write_text("about")
    with unreadable(name):
        ran = build(own, tmp_path / "out")
    refused(ran, f"error: {name}, dataset 'mmlongdoc': unreadable-source: expected a file that can be read")
    assert "run the same command to continue" not in ran.err
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


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ((errno.ENOSPC, errno.EDQUOT, errno.EIO), "; no file is half-written, run the same command to continue"),
        ((errno.EACCES, errno.ENOENT), ""),
        ((errno.EMFILE,), "; allow more (ulimit -n), or use fewer --workers"),
    ],
)
def test_only_an_error_of_the_disk_says_that_the_same_command_goes_on(
    codes: tuple[int, ...], said: str, stopped: Path, source: Path
) -> None:
    for code in codes:

        def fail(*_: Any, code: int = code) -> None:
            raise OSError(code, "it failed", "file")

        with before("rejects.jsonl", fail):
            ended = build(source, stopped)
        assert (ended.code, ended.err) == (2, f"error: file: it failed{said}\n")


@pytest.mark.parametrize("out", ["out", "new/folders/out"])
def test_a_build_that_could_not_start_leaves_nothing(out: str, source: Path, tmp_path: Path) -> None:
    ran = build(source, tmp_path / out, "--set", "source.documents=nowhere")
    refused(ran, "source.documents: no such file or folder")
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
    counted = "no question was kept: 4 read, 4 rejected, most often 2 × answer-page-out-of-range"
    assert said[-1] == f"error: dataset 'mmlongdoc': {counted}; see {path}\n"
    assert said[:-1] == [] if option else said[0] == "warning: mmlongdoc: kept 0 of 4 questions\n"
    assert "no question fits it" not in built.out
    assert "is complete" not in built.out
    assert len(rejects(tmp_path / "out")) == 4
    assert not lock(tmp_path / "out")["datasets"]["mmlongdoc"]["questions"]["kept"]
    again = build(own, tmp_path / "out")
    assert (again.code, "has no example" in again.out) == (1, True)
    audited = command("audit", tmp_path / "out")
    assert (audited.code, audited.err) == (1, f"{tmp_path / 'out'}: holds no public file\n")


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_dataset_that_kept_nothing_ends_the_build_with_1_and_leaves_the_release(
    in_parts: bool, own: Path, tmp_path: Path
) -> None:
    out, text = tmp_path / "out", (own / "tiny.yaml").read_text("utf-8")
    manifest: dict[str, Any] = yaml.safe_load(text)
    write_rows(own, ROWS[:4])
    (own / "short.json").write_text(json.dumps([ROWS[9], {**ROWS[9], "doc_id": "none.pdf"}]))
    lost = {**manifest["datasets"][0], "name": "lost", "admission_length": "2K", "lengths": ["1K"]}
    lost["source"] = {**lost["source"], "samples": "short.json"}
    (own / "both.yaml").write_text(yaml.safe_dump({"datasets": [manifest["datasets"][0], lost]}))
    words = ("build", own / "both.yaml", "--out", out)
    if in_parts:
        assert [command(*words, "--stage", name).code for name in ("prepare", "records", "images")] == [0, 0, 0]
    ended = command("finish", out) if in_parts else command(*words)
    assert ended.code == 1
    counted = "no question was kept: 2 read, 1 rejected, most often 1 × does-not-fit at 1K"
    assert ended.err.endswith(f"error: dataset 'lost': {counted}; see {out}/rejects.jsonl\n")
    assert f"{out} has no example of lost" in ended.out
    assert lock(out)["datasets"]["mmlongdoc"]["cells"]["1K"]["examples"] == 4
    assert len(rejects(out)) == 2
    assert command("audit", out).code == 0


# Documents that are too large, too expensive, too slow, or excluded


COSTLY: dict[str, tuple[Callable[[], bytes], str]] = {
    "nested": (nested_forms, "time-of-a-page"),
    "deep": (lambda: nested_forms(200, 1), "unreadable-page"),
    "programmed": (lambda: postscript(20_000), "time-of-a-page"),
    "grouped": (lambda: groups(20_000), "time-of-a-page"),
}


@contextmanager
def reader(error: Callable[[Path, Any], Exception]) -> Iterator[None]:
    """Every PDF that is read is an error."""

    def ask(function: object, path: Path, limits: Any, **_: object) -> Iterator[object]:
        raise error(path, limits)
        yield

    with mock.patch("mmlongbench.documents.confined.ask", ask):
        yield


def late(path: Path, limits: Any) -> PageLimitError:
    bound = f"at most {limits.seconds_a_page:g} seconds"
    return PageLimitError(Fault("time-of-a-page", bound, "more", path.name, "page 3"))


@pytest.mark.parametrize(
    "names", [("nested", "deep"), pytest.param((*COSTLY,), marks=pytest.mark.rare)], ids=["some", "all"]
)
def test_costly_documents_are_refused_by_name_and_the_rest_is_built(
    names: tuple[str, ...], own: Path, tmp_path: Path
) -> None:
    for name in names:
        draw, _ = COSTLY[name]
        (own / "documents" / f"{name}.pdf").write_bytes(draw())
    (own / "documents" / "blank.pdf").write_bytes(blanks(60))
    write_rows(own, (row("ash.pdf", "What?", "wood", "[1]"), row("nested.pdf", "Who?", "me", "[1]")))
    built = build(own, tmp_path / "out", "--set", "limits.seconds_a_page=1")
    assert built.code == 0, built.err
    left_out = lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]["refused"]
    assert {name: text.split(": ")[1] for name, text in left_out.items()} == {name: COSTLY[name][1] for name in names}
    (found,) = rejects(tmp_path / "out")
    assert (found["id"], found["reason"], found["file"]) == ("mmlongdoc_1", "time-of-a-page", "nested.pdf")
    assert command("audit", tmp_path / "out", "-q").code == 0


def test_a_document_over_the_limit_is_never_read(own: Path, tmp_path: Path) -> None:
    with (own / "documents" / "huge.pdf").open("wb") as file:
        file.write(b"%PDF-1.7\n")
        file.truncate(100 * 1024**3)  # a sparse file, which takes no space on the disk
    with unreadable("huge.pdf"):  # it would end the build
        built = build(own, tmp_path / "out")
        assert built.code == 0, built.err
        said = (
            f"huge.pdf: size-of-a-document: expected at most 536870912 bytes, found {100 * 1024**3}; raise limits.bytes"
        )
        assert lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]["refused"] == {"huge": said}
        assert f"document huge refused: {said}" in built.out
        assert "was complete already" in build(own, tmp_path / "out").out


def test_pages_that_take_too_long_at_their_end_name_the_way_on(source: Path, finished: Path, tmp_path: Path) -> None:
    words = (source / "tiny.yaml", "--out", tmp_path / "out", "--stage")
    for stage in ("prepare", "records"):
        assert command("build", *words, stage).code == 0
    with reader(late):
        ran = command("build", *words, "images", "--set", "limits.seconds_a_page=7", "--workers", 1)
    refused(ran, "page 3: time-of-a-page: expected at most 700 seconds")  # a page that was read may take so long
    assert command("build", *words, "images").code == 0
    assert command("finish", tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)


def test_every_command_that_reads_pdfs_names_a_page_that_takes_too_long(source: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    draw_pdf(tmp_path / "folder" / "ash.pdf", 1)
    said = "ash.pdf, page 3: time-of-a-page: expected at most 60 seconds, found more"
    with reader(late):
        assert said in command("plan", source / "tiny.yaml").out
        for words in (
            ("count", source / "documents" / "ash.pdf"),
            ("corpus", "build", tmp_path / "folder", "--out", tmp_path / "corpus"),
            ("doctor", source / "tiny.yaml"),
            ("build", source / "tiny.yaml", "--out", tmp_path / "out"),
        ):
            ran = command(*words)
            assert said in f"{ran.out}{ran.err}"


def test_questions_about_an_excluded_document_are_rejected(source: Path, finished: Path, tmp_path: Path) -> None:
    built = build(source, tmp_path / "out", "--set", "exclude=[cedar]")
    assert built.code == 0, built.err
    found = {line["id"]: line["reason"] for line in rejects(tmp_path / "out")}
    assert found["mmlongdoc_2"] == found["mmlongdoc_10"] == "excluded"
    assert lock(tmp_path / "out")["manifest"][0]["exclude"] == ["cedar"]
    said = "exclude: excluded: expected a document to be used, found one that the manifest excludes"
    assert lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]["refused"] == {"cedar": said}
    assert not (tmp_path / "out" / "mmlb_image" / "mmlongbench-doc" / "cedar").exists()
    prints = [lock(out)["manifest"][0]["source_sha256"] for out in (finished, tmp_path / "out")]
    assert prints[0] == prints[1]  # it is among the sources


@pytest.mark.parametrize(
    ("exclude", "said"),
    [
        ("[cedr]", "there is no document 'cedr'; did you mean 'cedar'?"),
        ("cedr", "there is no document 'cedr'"),
        ("{}", "Input should be a valid list"),
        ("[{a: b}]", "Input should be a valid string"),
        ("no", "YAML reads the name as False: write it in quotes, as in ['no']"),
        ("[1.50]", "YAML reads the name as 1.5: write it in quotes, as in ['1.5']"),
    ],
    ids=["unknown", "one", "no-list", "a-mapping", "no", "a-fraction"],
)
def test_an_exclusion_of_no_document_is_an_error(exclude: str, said: str, source: Path, tmp_path: Path) -> None:
    ran = build(source, tmp_path / "out", "--set", f"exclude={exclude}")
    assert (ran.code, "exclude: " in ran.err, said in ran.err) == (2, True, True), ran
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "id", ["4026369", "no", "a, b", "a: b", 'say "x"'], ids=["number", "no", "comma", "colon", "quote"]
)
def test_the_exclusion_that_an_error_advises_works(id: str, own: Path, tmp_path: Path) -> None:
    for path in (own / "documents").iterdir():
        path.unlink()
    draw_pdf(own / "documents" / f"{id}.pdf", 1)
    write_rows(own, (row(f"{id}.pdf", "What?", "wood", "[1]"),))
    with reader(lambda path, _: ReaderDiedError(f"{path.name}: died twice")):
        ended = build(own, tmp_path / "out", "--workers", 1)
    advice = re.search(r"`exclude: (\[.*\])`", ended.err)
    assert advice, ended.err
    built = build(own, tmp_path / "new", "--set", f"exclude={advice[1]}")
    assert "0 rejected, 1 skipped" in built.err
    assert lock(tmp_path / "new")["manifest"][0]["exclude"] == [id]


def test_an_exclusion_may_be_a_number_without_quotes(own: Path, tmp_path: Path) -> None:
    draw_pdf(own / "documents" / "4026369.pdf", 1)
    for at, words in enumerate(("exclude=4026369", "exclude=[4026369, cedar]")):
        assert build(own, tmp_path / str(at), "--set", words).code == 0
        assert lock(tmp_path / str(at))["manifest"][0]["exclude"][0] == "4026369"


def test_an_exclusion_stops_no_strict_build(own: Path, tmp_path: Path) -> None:
    write_rows(own, (row("ash.pdf", "What?", "wood", "[1]"), row("cedar.pdf", "Who?", "me", "[1]")))
    built = build(own, tmp_path / "out", "--set", "exclude=[cedar]", "--strict")
    assert built.code == 0, built.err
    assert lock(tmp_path / "out")["datasets"]["mmlongdoc"]["questions"]["skipped"] == {"excluded": 1}
    assert rejects(tmp_path / "out")[0]["is_expected"] is True

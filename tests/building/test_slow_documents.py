"""Documents that a build does without: too large, too costly to draw, excluded; and one that takes too long."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hostile_pdfs import blanks, content_bomb, groups, nested_forms, postscript, tiling
from tiny import build, command, draw_pdf, hashes, leftovers, lock, rejects, row, write_rows

from mmlongbench.documents import pdf_reader
from mmlongbench.errors import TimeLimitError
from mmlongbench.files import sha256_of

COSTLY: dict[str, tuple[Callable[[], bytes], str]] = {
    "nested": (nested_forms, "forms-of-a-page"),
    "tiled": (lambda: tiling(0.001), "pattern-of-a-page"),
    "programmed": (lambda: postscript(20_000), "function-of-a-document"),
    "unpacked": (lambda: content_bomb(70_000_000, 2), "content-of-a-page"),
    "grouped": (lambda: groups(20_000), "groups-of-a-page"),
}


@pytest.fixture
def own(source: Path, tmp_path: Path) -> Path:
    """The tiny source, to be changed."""
    shutil.copytree(source, tmp_path / "source")
    return tmp_path / "source"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Words by which no page is drawn in time."""
    monkeypatch.setattr(pdf_reader, "_GRACE", 0.0)
    return ("--set", "limits.seconds_a_page=0.000001")


def test_costly_documents_are_refused_by_name_and_the_rest_is_built(own: Path, tmp_path: Path) -> None:
    for name, (draw, _) in COSTLY.items():
        (own / "documents" / f"{name}.pdf").write_bytes(draw())
    (own / "documents" / "blank.pdf").write_bytes(blanks(60))
    write_rows(own, (row("ash.pdf", "What?", "wood", "[1]"), row("nested.pdf", "Who?", "me", "[1]")))
    built = build(own, tmp_path / "out")
    assert built.code == 0, built.err
    refused = lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]["refused"]
    assert {name: text.split(": ")[1] for name, text in refused.items()} == {
        name: reason for name, (_, reason) in COSTLY.items()
    }
    (found,) = rejects(tmp_path / "out")
    assert (found["id"], found["reason"], found["file"]) == ("mmlongdoc_1", "forms-of-a-page", "nested.pdf")
    assert command("audit", tmp_path / "out", "-q").code == 0


def test_a_document_over_the_limit_is_never_read(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    huge = own / "documents" / "huge.pdf"
    with huge.open("wb") as file:
        file.write(b"%PDF-1.7\n")
        file.truncate(100 * 1024**3)  # of which the disk has nothing

    def hashed(path: Path) -> str:
        assert path.resolve() != huge.resolve()
        return sha256_of(path)

    monkeypatch.setattr("mmlongbench.building.source_files.sha256_of", hashed)
    built = build(own, tmp_path / "out")
    assert built.code == 0, built.err
    said = f"huge.pdf: size-of-a-document: expected at most 536870912 bytes, found {100 * 1024**3}; raise limits.bytes"
    assert lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]["refused"] == {"huge": said}
    assert f"document huge refused: {said}" in built.out
    assert "was complete already" in build(own, tmp_path / "out").out


@pytest.mark.parametrize("workers", [1, 2])
def test_a_page_that_takes_too_long_ends_the_build_by_name(workers: int, own: Path, tmp_path: Path) -> None:
    (own / "documents" / "elm.pdf").write_bytes(groups(9000))
    args = ("--set", "limits.seconds_a_page=0.5", "--workers", workers)
    ended = build(own, tmp_path / "out", *args)
    assert (ended.code, ended.err) == (
        2,
        "error: dataset 'mmlongdoc', document 'elm': elm.pdf, page 0: takes longer than 0.5 s; exclude it (`exclude: "
        "[elm]` in the manifest, and a new folder), or raise limits.seconds_a_page, and the same command goes on\n",
    )
    built = build(own, tmp_path / "new", *args, "--set", "exclude=[elm]")
    assert built.code == 0, built.err
    refused = lock(tmp_path / "new")["datasets"]["mmlongdoc"]["documents"]["refused"]
    assert refused == {"elm": "exclude: excluded: expected a document to be used, found one that the manifest excludes"}


def test_more_time_lets_the_same_folder_go_on(
    source: Path, finished: Path, tmp_path: Path, hurried: tuple[str, str]
) -> None:
    out = tmp_path / "out"
    assert "takes longer than 1e-06 s" in build(source, out, *hurried).err
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)
    assert not leftovers(out)


def test_questions_about_an_excluded_document_are_rejected(source: Path, finished: Path, tmp_path: Path) -> None:
    built = build(source, tmp_path / "out", "--set", "exclude=[cedar]")
    assert built.code == 0, built.err
    found = {line["id"]: line["reason"] for line in rejects(tmp_path / "out")}
    assert found["mmlongdoc_2"] == found["mmlongdoc_10"] == "excluded"
    assert lock(tmp_path / "out")["manifest"][0]["exclude"] == ["cedar"]
    assert not (tmp_path / "out" / "mmlb_image" / "mmlongbench-doc" / "cedar").exists()
    prints = [lock(out)["manifest"][0]["source_sha256"] for out in (finished, tmp_path / "out")]
    assert prints[0] == prints[1]  # it is among the sources


@pytest.mark.parametrize(
    ("exclude", "said"),
    [
        ("[cedr]", "there is no document 'cedr'; did you mean 'cedar'?"),
        ("cedr", "there is no document 'cedr'"),
        ("{}", "Input should be a valid list"),
    ],
    ids=["unknown", "one", "no-list"],
)
def test_an_exclusion_of_no_document_is_an_error(exclude: str, said: str, source: Path, tmp_path: Path) -> None:
    refused = build(source, tmp_path / "out", "--set", f"exclude={exclude}")
    assert refused.code == 2
    assert "exclude: " in refused.err
    assert said in refused.err or exclude == "cedar"
    assert not (tmp_path / "out").exists()


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every PDF takes too long."""

    def ask(call: str, path: Path, *_: object, **__: object) -> Iterator[object]:
        raise TimeLimitError(f"{path.name}, page 3: takes longer than 60 s")
        yield

    monkeypatch.setattr(pdf_reader, "ask", ask)


@pytest.mark.usefixtures("late")
def test_every_command_that_reads_pdfs_ends_by_name(source: Path, tmp_path: Path) -> None:
    pdf = source / "documents" / "ash.pdf"
    (tmp_path / "folder").mkdir()
    draw_pdf(tmp_path / "folder" / "ash.pdf", 1)
    late = "ash.pdf, page 3: takes longer than 60 s"
    assert late in command("plan", source / "tiny.yaml").out
    for words in (
        ("count", pdf),
        ("corpus", "build", tmp_path / "folder", "--out", tmp_path / "corpus"),
        ("doctor", source / "tiny.yaml"),
        ("build", source / "tiny.yaml", "--out", tmp_path / "out", "--stage", "prepare"),
    ):
        ended = command(*words)
        assert (ended.code, late in ended.err, ended.err.count("\n")) == (2, True, 1), ended.err

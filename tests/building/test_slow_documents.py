"""Documents that a build leaves out (too large, too expensive to draw, excluded), and one that takes too long."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hostile_pdfs import blanks, content_bomb, groups, nested_forms, postscript, tiling
from tiny import build, command, draw_pdf, hashes, leftovers, lock, rejects, row, write_rows

from mmlongbench.documents import pdf_reader
from mmlongbench.errors import ReaderDiedError, TimeLimitError
from mmlongbench.io.atomic import sha256_of

pytestmark = pytest.mark.slow

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


def in_no_time(patch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Return words under which every page takes too long, however fast it is drawn."""
    says = pdf_reader._Reader._says_something
    patch.setattr(pdf_reader._Reader, "_says_something", lambda self, seconds: seconds > 1 and says(self, seconds))
    return ("--set", "limits.seconds_a_page=0.000001")


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Words by which no page is drawn in time."""
    return in_no_time(monkeypatch)


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
        file.truncate(100 * 1024**3)  # a sparse file, which takes no space on the disk

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
    hurried = ("--set", "limits.seconds_a_page=3")  # the other pages have time, even where others work too
    ended = build(own, tmp_path / "out", *hurried, "--workers", workers)
    assert (ended.code, ended.err) == (
        2,
        "error: dataset 'mmlongdoc', document 'elm': elm.pdf, page 0: takes longer than 3 s; exclude it (`exclude: "
        '["elm"]` in the manifest) and build in a new folder, or raise limits.seconds_a_page, '
        "and run the same command to continue\n",
    )
    built = build(own, tmp_path / "new", "--workers", workers, "--set", "exclude=[elm]")
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
        ("[{a: b}]", "Input should be a valid string"),
        ("no", "YAML reads the name as False: write it in quotes, as in ['no']"),
        ("[1.50]", "YAML reads the name as 1.5: write it in quotes, as in ['1.5']"),
    ],
    ids=["unknown", "one", "no-list", "a-mapping", "no", "a-fraction"],
)
def test_an_exclusion_of_no_document_is_an_error(exclude: str, said: str, source: Path, tmp_path: Path) -> None:
    refused = build(source, tmp_path / "out", "--set", f"exclude={exclude}")
    assert refused.code == 2
    assert "exclude: " in refused.err
    assert said in refused.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "id", ["4026369", "no", "a, b", "a: b", 'say "x"'], ids=["number", "no", "comma", "colon", "quote"]
)
def test_the_exclusion_that_an_error_advises_works(
    id: str, own: Path, tmp_path: Path, hurried: tuple[str, str]
) -> None:
    for path in (own / "documents").iterdir():
        path.unlink()
    draw_pdf(own / "documents" / f"{id}.pdf", 1)
    write_rows(own, (row(f"{id}.pdf", "What?", "wood", "[1]"),))
    ended = build(own, tmp_path / "out", *hurried, "--workers", 1)
    advice = re.search(r"`exclude: (\[.*\])`", ended.err)
    assert advice, ended.err
    built = build(own, tmp_path / "new", "--set", f"exclude={advice[1]}")
    assert "0 rejected, 1 skipped" in built.err
    assert lock(tmp_path / "new")["manifest"][0]["exclude"] == [id]


def test_a_document_at_which_the_reader_dies_is_named_with_a_way_on(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(call: str, path: Path, *_: object, **__: object) -> Iterator[object]:
        raise ReaderDiedError(f"{path.name}: died twice")
        yield

    monkeypatch.setattr(pdf_reader, "ask", ask)
    ended = build(source, tmp_path / "out", "--workers", 1)
    said = "error: dataset 'mmlongdoc', document 'ash': ash.pdf: died twice: exclude it (`exclude: [\"ash\"]` in the "
    assert (ended.code, ended.err) == (2, f"{said}manifest) and build in a new folder\n")


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


def test_a_stage_takes_the_time_of_a_page_from_its_own_command(source: Path, finished: Path, tmp_path: Path) -> None:
    words = (source / "tiny.yaml", "--out", tmp_path / "out", "--stage")
    for stage in ("prepare", "records"):
        assert command("build", *words, stage).code == 0
    with pytest.MonkeyPatch.context() as patch:
        ended = command("build", *words, "images", *in_no_time(patch), "--workers", 1)
    assert (ended.code, "takes longer than 1e-06 s" in ended.err) == (2, True), ended.err
    assert command("build", *words, "images").code == 0
    assert command("finish", tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)


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

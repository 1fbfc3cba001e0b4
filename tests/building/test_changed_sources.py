"""Sources that change during a build: no lock ever names sources from which the release was not made."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import ROWS, Ran, build, command, draw_pdf, hashes, leftovers, write_manifest, write_rows

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.fingerprints import MAX_TABLES, fingerprint, when_compared
from mmlongbench.building.finish import finish
from mmlongbench.building.running import do_shards
from mmlongbench.building.session import Session
from mmlongbench.building.source_files import SETTLED, Compared, SourceFiles, hash_file
from mmlongbench.building.stages.table import Stage, run_shard
from mmlongbench.corpus.making import make_corpus
from mmlongbench.documents.page_store import sizes_of
from mmlongbench.documents.pixels import header_size
from mmlongbench.errors import SourceChangedError
from mmlongbench.io.atomic import sha256_of
from mmlongbench.manifest.registry import sample_function

pytestmark = pytest.mark.slow

STAGES = ("documents", "records", "images", "finish")


@pytest.fixture(scope="module")
def corrected(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny source with errata; not to be changed."""
    folder = shutil.copytree(source, tmp_path_factory.mktemp("corrected") / "source")
    (folder / "errata.yaml").write_text("mmlongdoc_3: {source: seen, set: {answer: 5}}")
    write_manifest(folder / "tiny.yaml", errata="errata.yaml")
    return folder


@pytest.fixture(scope="module")
def whole(corrected: Path) -> dict[str, str]:
    """The hashes of the release of the tiny source with errata."""
    assert build(corrected, corrected.with_name("whole")).code == 0
    return hashes(corrected.with_name("whole"))


@pytest.fixture
def own(corrected: Path, tmp_path: Path) -> Path:
    """The tiny source with errata, to be changed."""
    return shutil.copytree(corrected, tmp_path / "source")


def build_and(change: Callable[[], object], stage: str, manifest: Path, out: Path, *args: object) -> Ran:
    """Build, and change something before a stage begins."""

    def before_stage(begun: Stage, *more: Any) -> None:
        if begun.name == stage:
            change()
        do_shards(begun, *more)

    def before_finish(*more: Any) -> Any:
        if stage == "finish":
            change()
        return finish(*more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmlongbench.building.build.do_shards", before_stage)
        patch.setattr("mmlongbench.building.build.finish", before_finish)
        return command("build", manifest, "--out", out, *args)


def move_text(path: Path) -> None:
    """Replace a PDF by another one of the same size and modification time."""
    data, about = path.read_bytes(), path.stat()
    assert b"1 0 0 1 20 160" in data
    path.write_bytes(data.replace(b"1 0 0 1 20 160", b"1 0 0 1 90 160"))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (about.st_size, about.st_mtime_ns)


def add_row(folder: Path) -> None:
    write_rows(folder, (*ROWS, ROWS[0]))


CHANGES: dict[str, Callable[[Path], object]] = {
    "documents/cedar.pdf": lambda path: draw_pdf(path, 4, side=210),
    "documents/dogwood.pdf": move_text,
    "documents/ash.pdf": Path.unlink,
    "documents/elm.pdf": lambda path: draw_pdf(path, 2),
    "documents/notes.txt": Path.touch,
    "samples.json": lambda path: add_row(path.parent),
    "errata.yaml": lambda path: path.write_text("mmlongdoc_3: {source: seen, set: {answer: 6}}"),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", CHANGES)
def test_a_source_that_changes_ends_the_build_and_the_release_is_that_of_the_first(
    name: str, stage: str, own: Path, corrected: Path, whole: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = build_and(lambda: CHANGES[name](own / name), stage, own / "tiny.yaml", out)
    assert ended.code == 2, ended.out
    assert ended.err.startswith(f"error: {own / name}: ")
    assert ended.err.count("\n") == 1
    assert "run the command again, or remove" in ended.err
    assert not (out / "build.lock.json").exists()
    shutil.rmtree(own)
    shutil.copytree(corrected, own)
    assert build(own, out).code == 0
    assert hashes(out) == whole
    assert not leftovers(out)


def test_sources_and_releases_may_be_called_by_way_of_a_link_and_back(own: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "inner")
    shutil.move(own, tmp_path / "elsewhere" / "source")  # link/.. is elsewhere, not the folder of the link
    called = tmp_path / "link" / ".." / "source"
    words = ["--set", f"source.samples={called / 'samples.json'}", "--set", f"source.documents={called / 'documents'}"]
    out = tmp_path / "link" / ".." / "out"
    done = build_and(lambda: None, "records", called / "tiny.yaml", out, "-q", *words)
    assert (done.code, done.err) == (0, "")
    ended = build_and(lambda: add_row(called), "finish", called / "tiny.yaml", tmp_path / "other", *words)
    assert ended.code == 2
    assert "samples.json: " in ended.err


def test_workers_compare_too(own: Path, tmp_path: Path) -> None:
    cedar = own / "documents" / "cedar.pdf"
    ended = build_and(lambda: move_text(cedar), "images", own / "tiny.yaml", tmp_path / "out", "--workers", 2)
    assert ended.err.startswith(f"error: {cedar}: changed while the release was built")
    assert not (tmp_path / "out" / "build.lock.json").exists()


@pytest.mark.parametrize("url", ["{out}", "file://{out}"])
def test_parts_compare_too(url: str, own: Path, tmp_path: Path) -> None:
    out = url.format(out=tmp_path / "out")
    for stage in ("prepare", "records"):
        assert command("build", own / "tiny.yaml", "--out", out, "--stage", stage).code == 0
    move_text(own / "documents" / "cedar.pdf")
    said = f"error: {own / 'documents' / 'cedar.pdf'}: changed while the release was built (dataset 'mmlongdoc', "
    ended = command("build", own / "tiny.yaml", "--out", out, "--stage", "images")
    assert ended.err.startswith(said)
    move_text_back = (own / "documents" / "cedar.pdf").read_bytes().replace(b"1 0 0 1 90 160", b"1 0 0 1 20 160")
    (own / "documents" / "cedar.pdf").write_bytes(move_text_back)
    assert command("build", own / "tiny.yaml", "--out", out, "--stage", "images").code == 0
    move_text(own / "documents" / "cedar.pdf")
    ended = command("finish", out)
    assert (ended.code, ended.err.startswith(said)) == (2, True)
    assert not (tmp_path / "out" / "build.lock.json").exists()


def test_sources_that_are_written_anew_with_the_same_bytes_are_the_same(
    own: Path, whole: dict[str, str], tmp_path: Path
) -> None:
    def rewrite() -> None:
        for path in [path for path in own.rglob("*") if path.is_file()]:
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data)
            os.utime(path, (86_400, 86_400))

    for stage in ("rows", "images", "finish"):
        ended = build_and(rewrite, stage, own / "tiny.yaml", tmp_path / stage)
        assert ended.code == 0, ended.err
        assert hashes(tmp_path / stage) == whole


Sample = Callable[[str], tuple[Path, dict[str, Path]]]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A function that draws the sample of a reader once: its folder, not to be changed, and the paths below it."""

    @cache
    def draw(reader: str) -> tuple[Path, dict[str, Path]]:
        folder = tmp_path_factory.mktemp(reader)
        (folder / "source").mkdir()
        found = sample_function(reader)(folder / "source")
        if "corpus" in found:
            make_corpus(str(found["corpus"]), folder / "corpus")
            found["corpus"] = folder / "corpus"
        return folder, {key: path.relative_to(folder) for key, path in found.items()}

    return draw


def drawn(sample: Sample, reader: str, builder: str, folder: Path, **more: Any) -> Path:
    """A manifest of a sample of its own in a folder."""
    kept, found = sample(reader)
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    source = {key: str(folder / path) for key, path in found.items()}
    if "corpus" in source:
        more["corpus"] = source.pop("corpus")
    about = {"name": "made", "builder": builder, "reader": reader, "licence": "none", "lengths": ["8K"]}
    dataset = {**about, "source": source, "sample": {"n": 2}, **more}
    (folder / "manifest.yaml").write_text(yaml.safe_dump({"datasets": [dataset]}))
    return folder / "manifest.yaml"


def spoil(path: Path) -> None:
    """Change one byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("reader", "builder", "options", "files", "stages"),
    [
        ("viquae", "vrag", {"gold": "span"}, "source/images/*", ("images",)),
        ("viquae", "vrag", {"gold": "span"}, "corpus/passages.arrow", ("records", "finish")),
        ("viquae", "vrag", {"gold": "span"}, "corpus/index/*", ("records",)),
        ("slidevqa", "docvqa", {}, "source/decks/*/*", ("documents", "images")),
        ("image_tables", "many_shot", {}, "source/data/*.parquet", ("records", "images")),
    ],
    ids=["pictures", "passages", "index", "page images", "tables of pictures"],
)
def test_what_any_reader_reads_is_compared(
    reader: str,
    builder: str,
    options: dict[str, Any],
    files: str,
    stages: Sequence[str],
    sample: Sample,
    tmp_path: Path,
) -> None:
    manifest = drawn(sample, reader, builder, tmp_path, options=options)
    kept = {path: path.read_bytes() for path in tmp_path.glob(files) if path.is_file()}
    assert kept

    def change() -> None:
        for path in kept:
            spoil(path)

    for stage in stages:
        ended = build_and(change, stage, manifest, tmp_path / "out")
        assert ended.code == 2, ended.out
        assert "changed while the release was built (dataset 'made', " in ended.err
        assert any(f"error: {path}: changed" in ended.err for path in kept)
        for path, data in kept.items():
            path.write_bytes(data)
    assert build_and(lambda: None, "none", manifest, tmp_path / "out").code == 0


@pytest.fixture(scope="module")
def many_tables(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of pictures in 1,200 tables, one picture or none in each."""
    import pyarrow.parquet as pq

    manifest = drawn(sample, "image_tables", "many_shot", tmp_path_factory.mktemp("many"))
    data = manifest.parent / "source" / "data"
    whole = pq.read_table(data / "train-00000-of-00001.parquet")
    (data / "train-00000-of-00001.parquet").unlink()
    pq.write_table(whole.slice(0, 0), data / "train-none.parquet")
    empty = (data / "train-none.parquet").read_bytes()
    for number in range(whole.num_rows):
        pq.write_table(whole.slice(number, 1), data / f"train-{number:04}.parquet")
    for number in range(whole.num_rows, 1_198):
        (data / f"train-{number:04}.parquet").write_bytes(empty)
    assert len([*data.iterdir()]) == 1_200
    return manifest


@pytest.fixture
def changing(many_tables: Path) -> Iterator[Path]:
    """One of the 1,200 tables, put back after the test."""
    table = many_tables.parent / "source" / "data" / "train-0007.parquet"
    data = table.read_bytes()
    yield table
    table.write_bytes(data)


def exchange(table: Path) -> None:
    """Replace a table by another readable one."""
    table.write_bytes(table.with_name("train-0008.parquet").read_bytes())


@pytest.mark.parametrize("stage", ["rows", "images"])
def test_one_of_very_many_tables_that_changes_is_named_before_its_stage(
    stage: str, many_tables: Path, changing: Path, tmp_path: Path
) -> None:
    ended = build_and(lambda: exchange(changing), stage, many_tables, tmp_path / "out", "--workers", 1)
    assert ended.code == 2, ended.out
    assert ended.err.startswith(f"error: {changing}: changed while the release was built (dataset 'made', source.data)")
    assert not (tmp_path / "out" / "build.lock.json").exists()


def test_one_of_very_many_tables_that_changes_in_a_stage_and_is_put_back_is_named(
    many_tables: Path, changing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(session: Session, shard: Any) -> float:
        data = changing.read_bytes()
        exchange(changing)
        try:
            return run_shard(session, shard)
        finally:
            changing.write_bytes(data)

    monkeypatch.setattr("mmlongbench.building.executors.local.run_shard", changed)
    ended = command("build", many_tables, "--out", tmp_path / "out", "--workers", 1)
    assert (ended.code, f"{changing}: was changed and changed back while it was read" in ended.err) == (2, True)


def test_the_last_comparison_finds_a_change_that_no_other_has_found(
    many_tables: Path, changing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SourceFiles, "unchanged_in_stage", lambda *more: nullcontext())
    ended = build_and(lambda: exchange(changing), "rows", many_tables, tmp_path / "out", "--workers", 1)
    assert ended.code == 2, ended.out
    assert ended.err.startswith(f"error: {changing}: changed while the release was built (dataset 'made', source.data)")
    assert not (tmp_path / "out" / "build.lock.json").exists()


def test_tables_beside_very_many_pictures_are_compared_in_each_shard(tmp_path: Path) -> None:
    pictures = [tmp_path / f"{number}.JPG" for number in range(MAX_TABLES + 1)]
    tables = [tmp_path / f"{number}.json" for number in range(MAX_TABLES)]
    found = when_compared([*pictures, *tables])
    assert {found[path] for path in pictures} == {Compared.WHERE_READ}
    assert {found[path] for path in tables} == {Compared.EACH_SHARD}
    found = when_compared([*pictures, *tables, tmp_path / "more.json"])
    assert {found[path] for path in tables} == {Compared.EACH_STAGE}
    assert {*when_compared(pictures[:MAX_TABLES]).values()} == {Compared.EACH_SHARD}


PLANNING: dict[str, Callable[[Path], object]] = {
    "samples.json": lambda path: add_row(path.parent),
    "errata.yaml": lambda path: path.write_text("mmlongdoc_3: {source: seen, set: {answer: 6}}"),
    "documents/ash.pdf": Path.unlink,
    "documents/elm.pdf": lambda path: draw_pdf(path, 2),
    "documents/dogwood.pdf": move_text,
}


@pytest.mark.parametrize("name", PLANNING)
def test_a_source_that_changes_after_planning_has_read_it_is_named(
    name: str, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documents were found in the old source; the new one would be hashed."""

    def changed(*more: Any) -> Any:
        PLANNING[name](own / name)
        return fingerprint(*more)

    with monkeypatch.context() as patch:
        patch.setattr("mmlongbench.building.build_plan.fingerprint", changed)
        ended = build(own, tmp_path / "out")
    said = (
        f"error: {own / name}: changed while the build was planned (dataset 'mmlongdoc'); run the command again once "
    )
    assert (ended.code, ended.err.startswith(said)) == (2, True), ended.err
    assert ended.err.count("\n") == 1
    assert build(own, tmp_path / "out").code == 0


def test_a_corpus_that_changes_after_planning_has_read_it_is_named(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = drawn(sample, "viquae", "vrag", tmp_path, options={"gold": "span"})

    def changed(*more: Any) -> Any:
        spoil(tmp_path / "corpus" / "passages.arrow")
        return fingerprint(*more)

    monkeypatch.setattr("mmlongbench.building.build_plan.fingerprint", changed)
    ended = command("build", manifest, "--out", tmp_path / "out")
    assert ended.err.startswith(f"error: {tmp_path / 'corpus' / 'passages.arrow'}: changed while the build was planned")


def test_a_tokenizer_of_the_user_s_own_is_compared(own: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    path = own / "tokenizer.json"
    Tokenizer(models.WordLevel({"[UNK]": 0, "page": 1}, "[UNK]")).save(str(path))
    args = ("--set", f"counter.tokenizer={path}")
    ended = build_and(
        lambda: path.write_text(path.read_text() + " "), "finish", own / "tiny.yaml", tmp_path / "out", *args
    )
    assert ended.err.startswith(f"error: {path}: changed while the release was built")


def test_a_document_that_changes_while_it_is_read_and_is_put_back_ends_the_build(
    own: Path, whole: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(document: Path, *more: Any) -> list[tuple[int, int]]:
        data, about = document.read_bytes(), document.stat()
        document.write_bytes(draw_other(tmp_path))
        found = sizes_of(document, *more)
        document.write_bytes(data)
        os.utime(document, ns=(about.st_atime_ns, about.st_mtime_ns))
        return found

    with monkeypatch.context() as patch:
        patch.setattr("mmlongbench.building.stages.documents.sizes_of", changed)
        ended = build(own, tmp_path / "out", "--workers", 1)
    said = "ash.pdf: was changed and changed back while it was read (dataset 'mmlongdoc', source.documents); run"
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert build(own, tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == whole


def draw_other(folder: Path) -> bytes:
    """The bytes of a PDF of larger pages."""
    draw_pdf(folder / "other.pdf", 2, side=210)
    return (folder / "other.pdf").read_bytes()


def test_what_is_put_back_before_the_block_ends_is_an_error_even_of_one_that_fails(own: Path, tmp_path: Path) -> None:
    assert command("build", own / "tiny.yaml", "--out", tmp_path / "out", "--stage", "prepare").code == 0
    files, table = SourceFiles(BuildDir(tmp_path / "out")), own / "samples.json"
    data = table.read_bytes()

    def changed() -> None:
        table.write_bytes(b"another")
        table.write_bytes(data)
        raise ValueError("a row that cannot be read")

    for block in (files.unchanged(table), files.unchanged_tables("mmlongdoc")):
        with pytest.raises(SourceChangedError, match=r"samples\.json: was changed and changed back"), block:
            changed()
    with files.unchanged(table), files.unchanged_tables("mmlongdoc"):
        pass
    with pytest.raises(SourceChangedError, match="changed while the release was built"), files.unchanged(table):
        table.write_bytes(b"another")
    files.close()


def test_a_picture_that_changes_while_it_is_read_and_is_put_back_ends_the_build(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = drawn(sample, "viquae", "vrag", tmp_path, options={"gold": "span"})

    def changed(file: Path) -> tuple[int, int]:
        data = file.read_bytes()
        file.write_bytes(b"another")
        file.write_bytes(data)
        return header_size(file)

    monkeypatch.setattr("mmlongbench.documents.pictures.header_size", changed)
    ended = command("build", manifest, "--out", tmp_path / "out", "--workers", 1)
    assert (ended.code, ": was changed and changed back while it was read" in ended.err) == (2, True), ended.err


def test_a_stamp_proves_nothing_of_a_file_that_was_only_just_changed(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("new")
    assert hash_file(tmp_path / "new").stamp is None


def test_a_settled_file_is_not_hashed_again(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmlongbench.building.source_files.SETTLED", -SETTLED)  # as if all were old
    hashed: list[Path] = []

    def counted(path: Path) -> str:
        hashed.append(path)
        return sha256_of(path)

    monkeypatch.setattr("mmlongbench.building.source_files.sha256_of", counted)
    assert build(own, tmp_path / "out").code == 0
    assert sorted(hashed.count(path) for path in (own / "documents").iterdir()) == [2] * 4  # first and last


def test_a_file_that_grows_while_it_is_hashed_is_refused(own: Path, tmp_path: Path) -> None:
    def growing(path: Path) -> str:
        with path.open("ab") as file:
            file.write(b"more")
        return "0" * 64

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmlongbench.building.source_files.sha256_of", growing)
        ended = build(own, tmp_path / "out")
    assert (ended.code, "is being written; run the command again once it is complete" in ended.err) == (2, True)


def test_a_list_of_files_that_is_torn_is_named(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command("build", own / "tiny.yaml", "--out", out, "--stage", "prepare").code == 0
    (out / ".build" / "sources.sqlite").write_bytes(b"torn")
    ended = command("build", own / "tiny.yaml", "--out", out, "--stage", "records")
    assert (ended.code, "sources.sqlite: cannot be read: " in ended.err) == (2, True)
    assert build(own, out).code == 0

"""Sources that change during a build: no lock ever names sources from which the release was not made."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest
import yaml
from halted import FIRST_OF_FINISH, before, refused
from own_model import write_own
from PIL import Image
from samples import Sources
from tiny import ROWS, build, command, draw_pdf, hashes, leftovers, write_manifest, write_rows

from tokenization import vision_rule

POINTS = {
    "documents": ".build/plan.json",
    "records": "questions/mmlongdoc/all.jsonl",
    "images": "records/mmlongdoc/1K/00000.jsonl",
    "finish": FIRST_OF_FINISH,
}
"""The file before which something changes, so that it is changed when a stage begins, or nearly so."""


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


WHEN = [
    *((name, "finish") for name in CHANGES),
    *(("documents/cedar.pdf", stage) for stage in ("documents", "records", "images")),
    ("documents/dogwood.pdf", "images"),
    ("samples.json", "documents"),
    ("samples.json", "images"),
    ("errata.yaml", "records"),
]


@pytest.mark.parametrize(("name", "stage"), WHEN)
def test_a_source_that_changes_ends_the_build_and_the_release_is_that_of_the_first(
    name: str, stage: str, own: Path, corrected: Path, whole: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with before(POINTS[stage], lambda: CHANGES[name](own / name)):
        refused(build(own, out), f"error: {own / name}: ", "run the command again, or remove")
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
    done = build(called, tmp_path / "link" / ".." / "out", "-q", *words)
    assert (done.code, done.err) == (0, "")
    with before(FIRST_OF_FINISH, lambda: add_row(called)):
        refused(build(called, tmp_path / "other", *words), "samples.json: ")


@pytest.mark.rare
def test_workers_compare_too(own: Path, tmp_path: Path) -> None:
    cedar = own / "documents" / "cedar.pdf"
    with before(POINTS["documents"], lambda: move_text(cedar)):
        ran = build(own, tmp_path / "out", "--workers", 2)
    refused(ran, f"error: {cedar}: changed while the release was built")
    assert not (tmp_path / "out" / "build.lock.json").exists()


@pytest.mark.parametrize("url", ["{out}", "file://{out}"])
def test_parts_compare_too(url: str, own: Path, tmp_path: Path) -> None:
    out = url.format(out=tmp_path / "out")
    for stage in ("prepare", "records"):
        assert command("build", own / "tiny.yaml", "--out", out, "--stage", stage).code == 0
    move_text(own / "documents" / "cedar.pdf")
    said = f"error: {own / 'documents' / 'cedar.pdf'}: changed while the release was built (dataset 'mmlongdoc', "
    refused(command("build", own / "tiny.yaml", "--out", out, "--stage", "images"), said)
    move_text_back = (own / "documents" / "cedar.pdf").read_bytes().replace(b"1 0 0 1 90 160", b"1 0 0 1 20 160")
    (own / "documents" / "cedar.pdf").write_bytes(move_text_back)
    assert command("build", own / "tiny.yaml", "--out", out, "--stage", "images").code == 0
    move_text(own / "documents" / "cedar.pdf")
    refused(command("finish", out), said)
    assert not (tmp_path / "out" / "build.lock.json").exists()


@pytest.mark.parametrize("stage", ["records", "finish"])
def test_sources_that_are_written_anew_with_the_same_bytes_are_the_same(
    stage: str, own: Path, whole: dict[str, str], tmp_path: Path
) -> None:
    def rewrite() -> None:
        for path in [path for path in own.rglob("*") if path.is_file()]:
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data)
            os.utime(path, (86_400, 86_400))

    with before(POINTS[stage], rewrite):
        ended = build(own, tmp_path / "out")
    assert ended.code == 0, ended.err
    assert hashes(tmp_path / "out") == whole


# While a build is planned


@contextmanager
def when_hashed(change: Callable[[], object]) -> Iterator[None]:
    """Change something once, when the first file of the sources is hashed: all of them are listed by then."""
    digest, left = hashlib.file_digest, [change]

    def changed(*args: Any) -> Any:
        if left:
            left.pop()()
        return digest(*args)

    with mock.patch.object(hashlib, "file_digest", changed):
        yield


@pytest.mark.parametrize("name", ["samples.json", "errata.yaml", "documents/elm.pdf", "documents/dogwood.pdf"])
def test_a_source_that_changes_after_planning_has_listed_it_is_named(name: str, own: Path, tmp_path: Path) -> None:
    """The documents were found in the old source; the new one would be hashed."""
    with when_hashed(lambda: CHANGES[name](own / name)):
        ran = build(own, tmp_path / "out")
    refused(ran, f"error: {own / name}: ", "run the command again once")
    if name != "samples.json":  # which may be hashed first
        assert "changed while the build was planned (dataset 'mmlongdoc')" in ran.err
    assert build(own, tmp_path / "out").code == 0


def test_a_file_that_grows_while_it_is_hashed_is_refused(own: Path, tmp_path: Path) -> None:
    digest = hashlib.file_digest

    def growing(file: Any, name: str) -> Any:
        found = digest(file, name)
        with Path(file.name).open("ab") as more:
            more.write(b"more")
        return found

    with mock.patch.object(hashlib, "file_digest", growing):
        refused(build(own, tmp_path / "out"), "is being written; run the command again once it is complete")


# Other kinds of sources


def drawn(sources: Sources, reader: str, builder: str, folder: Path, **more: Any) -> Path:
    """Write a manifest of a copy of a drawn sample."""
    root = Path(os.path.commonpath([path.parent for path in sources.values()]))
    shutil.copytree(root, folder / "source", dirs_exist_ok=True)
    source = {name: str(folder / "source" / path.relative_to(root)) for name, path in sources.items()}
    if "corpus" in source:
        made = command("corpus", "build", source.pop("corpus"), "--out", folder / "corpus")
        assert made.code == 0, made.err
        more["corpus"] = str(folder / "corpus")
    about = {"name": "made", "builder": builder, "reader": reader, "licence": "none", "lengths": ["8K"]}
    dataset = {**about, "source": source, "sample": {"n": 2}, **more}
    (folder / "manifest.yaml").write_text(yaml.safe_dump({"datasets": [dataset]}))
    return folder / "manifest.yaml"


def spoil(*paths: Path) -> None:
    """Change one byte in the middle of files."""
    for path in paths:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)


PLAN, ASKED = ".build/plan.json", "questions/made/all.jsonl"
READ: dict[str, tuple[str, dict[str, Any], tuple[tuple[str, str], ...]]] = {
    "viquae": (
        "vrag",
        {"options": {"gold": "span"}},
        (
            ("source/images/*", "records/made/8K/00000.jsonl"),
            ("corpus/passages.arrow", ASKED),
            ("corpus/passages.arrow", FIRST_OF_FINISH),
            ("corpus/index/*", ASKED),
        ),
    ),
    "slidevqa": (
        "docvqa",
        {},
        (("source/decks/*/*", "records/made/8K/00000.jsonl"),),
    ),
    "image_tables": (
        "many_shot",
        {},
        (("source/data/*.parquet", ASKED), ("source/data/*.parquet", FIRST_OF_FINISH)),
    ),
}
"""For a reader: its builder, more of the manifest, and which files change before which file of the build."""


@pytest.mark.parametrize("reader", READ)
def test_what_any_reader_reads_is_compared(reader: str, sample: Callable[[str], Sources], tmp_path: Path) -> None:
    builder, more, changes = READ[reader]
    manifest = drawn(sample(reader), reader, builder, tmp_path, **more)
    for files, point in changes:
        kept = {path: path.read_bytes() for path in tmp_path.glob(files) if path.is_file()}
        assert kept
        with before(point, partial(spoil, *kept)):
            ended = command("build", manifest, "--out", tmp_path / "out", "--workers", 1)
        refused(ended, "changed while the release was built (dataset 'made', ")
        assert any(f"error: {path}: changed" in ended.err for path in kept)
        for path, data in kept.items():
            path.write_bytes(data)
        if point != changes[-1][1]:
            shutil.rmtree(tmp_path / "out")
    ended = command("build", manifest, "--out", tmp_path / "out")
    assert (tmp_path / "out" / "build.lock.json").is_file(), ended.err  # it exits with 1 if no question fits 8K


def test_a_corpus_and_pictures_that_change_while_they_are_read_are_named(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    manifest = drawn(sample("viquae"), "viquae", "vrag", tmp_path, options={"gold": "span"})
    words, passages = ("build", manifest, "--out", tmp_path / "out", "--workers", 1), tmp_path / "corpus/passages.arrow"
    with when_hashed(lambda: spoil(passages)):
        refused(command(*words), f"error: {passages}: changed while the build was planned")
    spoil(passages)
    opened = Image.open

    def changed(file: Any, *more: Any, **options: Any) -> Any:
        if isinstance(file, Path):
            spoil(file)
        return opened(file, *more, **options)

    with mock.patch.object(Image, "open", changed):
        refused(command(*words), ": changed while the release was built (dataset 'made', source.images)")


@pytest.fixture(scope="module")
def many_tables(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of pictures in 1,200 tables, one picture or none in each."""
    manifest = drawn(sample("image_tables"), "image_tables", "many_shot", tmp_path_factory.mktemp("many"))
    (first,) = manifest.parent.glob("source/data/train-00000-of-00001.parquet")
    data, pictures = first.parent, pq.read_table(first)
    first.unlink()
    pq.write_table(pictures.slice(0, 0), data / "train-none.parquet")
    empty = (data / "train-none.parquet").read_bytes()
    for number in range(pictures.num_rows):
        pq.write_table(pictures.slice(number, 1), data / f"train-{number:04}.parquet")
    for number in range(pictures.num_rows, 1_198):
        (data / f"train-{number:04}.parquet").write_bytes(empty)
    assert len([*data.iterdir()]) == 1_200
    return manifest


@pytest.mark.parametrize("point", [PLAN, "rows/made/all.jsonl", FIRST_OF_FINISH])
def test_one_of_very_many_tables_that_changes_is_named(point: str, many_tables: Path, tmp_path: Path) -> None:
    (table,) = many_tables.parent.glob("source/data/train-0007.parquet")
    data, other = table.read_bytes(), table.with_name("train-0008.parquet").read_bytes()
    with before(point, lambda: table.write_bytes(other)):
        ended = command("build", many_tables, "--out", tmp_path / "out", "--workers", 1)
    table.write_bytes(data)
    refused(ended, f"error: {table}: changed while the release was built (dataset 'made', source.data)")
    assert not (tmp_path / "out" / "build.lock.json").exists()


def test_a_tokenizer_of_the_user_s_own_is_compared(own: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    path = own / "tokenizer.json"
    Tokenizer(models.WordLevel({"[UNK]": 0, "page": 1}, "[UNK]")).save(str(path))
    with before(FIRST_OF_FINISH, lambda: path.write_text(path.read_text() + " ")):
        ran = build(own, tmp_path / "out", "--set", f"counter.tokenizer={path}")
    refused(ran, f"error: {path}: changed while the release was built")


def test_a_list_of_files_that_is_torn_is_named(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(own, out, "--stage", "prepare").code == 0
    (out / ".build" / "sources.sqlite").write_bytes(b"torn")
    refused(build(own, out, "--stage", "records"), "sources.sqlite: cannot be read: ")
    assert build(own, out).code == 0


OWN = {"image": "qwen2.5-vl", "text": "own/tokenizer.json", "template": "own"}


@pytest.mark.parametrize("key", ["counter", "count_as"])
@pytest.mark.parametrize("name", ["tokenizer.json", "chat_template.jinja"])
def test_files_of_a_counter_that_change_end_the_build(name: str, key: str, own: Path, tmp_path: Path) -> None:
    write_own(own / "own")
    write_manifest(own / "tiny.yaml", **{key: OWN if key == "counter" else [OWN]})
    file = own / "own" / name
    with before(FIRST_OF_FINISH, lambda: file.write_text(file.read_text() + "\n")):
        refused(build(own, tmp_path / "out"), f"error: {file}: ", "run the command again, or remove")
    assert not (tmp_path / "out" / "build.lock.json").exists()


def test_a_further_counter_that_changes_between_two_parts_of_a_build_ends_it(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_own(own / "own")
    write_manifest(own / "tiny.yaml", count_as=[OWN])
    words = ("build", own / "tiny.yaml", "--out", tmp_path / "out", "--stage")
    assert command(*words, "prepare").code == 0
    rule = vision_rule("qwen2.5-vl")
    with monkeypatch.context() as later:
        later.setattr("mmlongbench.manifest.model.vision_rule", lambda _: replace(rule, max_images=3))
        refused(command(*words, "records"), "count_as.qwen2.5-vl.image is not the one that this build was started with")
    assert command(*words, "records").code == 0
    write_manifest(own / "tiny.yaml", count_as=[{**OWN, "template": None}])
    refused(command(*words, "images"), "was prepared with a manifest that differs", "count_as")

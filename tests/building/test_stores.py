"""What a build keeps on disk: plans and their differences, results, rows, prices, extracted files, files at a URL."""

import errno
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import pytest
from built import prepared
from ocr_programs import StandIn, programs_of
from tiny import KEPT, ROWS, build, hashes, write_manifest

from builders.docvqa.rows import DocumentQuestion
from mmlongbench.building.build_dir import BuildDir, Shard, rows_shard
from mmlongbench.building.build_plan import DatasetPlan, locked_counter
from mmlongbench.building.dataset import KeptPrices, KnownLines
from mmlongbench.building.differences import Described, changed_sources, differences, joined
from mmlongbench.building.planning import extract_sources
from mmlongbench.building.remote_release import Remote
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import NEGATIVES, FoundNegatives, ReadRow
from mmlongbench.building.shard_results import ROWS as ROW_LINES
from mmlongbench.building.source_files import MAX_TABLES, Compared, SourceFiles, when_compared
from mmlongbench.building.stages.cells import items_table
from mmlongbench.building.stages.documents import check_engine
from mmlongbench.documents import ocr
from mmlongbench.errors import BuildError, SourceChangedError, SourceError
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import PluginCallError
from mmlongbench.manifest.loading import find_manifest, load_manifest
from mmlongbench.manifest.model import CounterSpec, DatasetSpec
from mmlongbench.release.items import Item
from mmlongbench.release.read_dataset import locked_dataset
from mmlongbench.release.rejects import Reject
from mmlongbench.task import Fault, Row
from mmlongbench.task.readers import RawRow, Reader, RowFault, SourcePaths

QUIET = Progress(is_shown=False)

# Plans and their differences


def data(name: str = "a", **more: object) -> dict[str, object]:
    """A dataset as a lock has it."""
    found = {"name": name, "source": {"rows": fingerprint("1")}, "seed": 42, **more}
    source = found["source"]
    hashes = {key: each["sha256"] for key, each in source.items()} if isinstance(source, dict) else {}
    return {**found, "source_sha256": hashes}


def fingerprint(sha256: str, files: int = 1) -> dict[str, object]:
    return {"files": files, "bytes": 1, "sha256": sha256}


OURS = {"name": "docvqa", "distribution": "mmlongbench", "version": "0.1.0", "sha256": ""}
FILE = {"name": "fables.py:Fables", "distribution": "", "version": "", "sha256": "1"}


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ([data()], [data()], ""),
        ([data()], [data(seed=7)], "seed: 42 → 7"),
        ([data(), data("b")], [data(seed=7), data("c")], "a: seed: 42 → 7; dataset 'c' is new; dataset 'b' is gone"),
        ([data("b"), data()], [data(), data("b")], "the datasets have another order"),
        ([data(lengths=[8192])], [data(lengths=[8192, 16384])], "lengths: 8K → 8K, 16K"),
        ([data(lengths="x")], [data(lengths=[8192])], "lengths: x → 8K"),
        ([data(options={"a": {"b": None}})], [data(options={"a": {"b": [1, 2]}})], "options.a.b: not set → 1, 2"),
        ([data(options={"a": True})], [data(options={})], "options.a: true → not set"),
        ([data(source="sample")], [data()], "source: a drawn sample before, now files"),
        ([data(source={})], [data()], "source.rows is new"),
        ([data()], [data(source={})], "source.rows is gone"),
        ([data()], [data(source={"rows": fingerprint("2", 4)})], "source.rows changed"),
        ([data(corpus="1")], [data(corpus="2")], "corpus changed"),
        ([data(corpus=None)], [data(corpus="2")], "corpus is new"),
        ([data(errata="2")], [data(errata=None)], "errata is gone"),
        ([data(reranker_sha256="1")], [data(reranker_sha256="2")], "reranker changed"),
        (
            [data(counter={"tokenizer": {"name": "llama2", "sha256": "1"}})],
            [data(counter={"tokenizer": {"name": "own", "sha256": "2"}})],
            "counter.tokenizer.name: llama2 → own",
        ),
        ([data()], [data(code={"builder": FILE})], ""),  # a lock without the key is not compared
        ([data(code={"builder": FILE})], [data(code={"builder": {**FILE, "sha256": "2"}})], "task code changed: fab"),
        (
            [data(code={"builder": OURS, "reader": OURS})],
            [data(code={"builder": {**OURS, "version": "0.2.0"}, "reader": OURS})],
            "task code changed: docvqa (0.1.0 → 0.2.0)",
        ),
    ],
)
def test_differences_are_words(before: list[dict[str, object]], now: list[dict[str, object]], said: str) -> None:
    found = joined(differences(Described(before), Described(now)))
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_versions_are_named_and_many_differences_are_counted() -> None:
    before, now = {"mmlongbench": "0.1.0"}, {"mmlongbench": "0.2.0"}
    assert differences(Described([], before), Described([], now)) == ["mmlongbench 0.1.0 → 0.2.0"]
    assert joined([str(number) for number in range(10)]) == "0; 1; 2; 3; 4; 5; 6; 7; and 2 more"
    long = differences(Described([data(licence="x" * 99)]), Described([data(licence="y" * 99)]))
    assert long == [f"licence: {'x' * 60}… → {'y' * 60}…"]


def test_a_column_of_items_that_the_schema_lacks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Item.__annotations__, "colour", str)
    with pytest.raises(TypeError, match="'colour'"), items_table(tmp_path / "items.parquet"):
        pass
    assert not list(tmp_path.iterdir())


SPECS = load_manifest(find_manifest("quickstart-forms")).datasets
PLANS = {spec.name: DatasetPlan(spec, {}, {}, {}, {}, locked_counter(spec.counter.open())) for spec in SPECS}
MAKERS = {name: version(name) for name in ("pymupdf_layout", "onnxruntime")}


def test_a_lock_names_what_finds_crops_only_where_there_are_crops() -> None:
    assert PLANS["interleaved"].public()["pages"]["crops"] == MAKERS
    assert "crops" not in PLANS["joined"].public()["pages"]


def test_another_version_is_named_and_a_locked_dataset_with_crops_can_be_read() -> None:
    now = PLANS["interleaved"].public()
    before = {**now, "pages": {**now["pages"], "crops": {**MAKERS, "onnxruntime": "0.1"}}}
    found = differences(Described([before]), Described([now]))
    assert found == [f"pages.crops.onnxruntime: 0.1 → {version('onnxruntime')}"]
    assert locked_dataset(now, None).spec == SPECS[0].model_copy(
        update={"source": "sample", "counter": CounterSpec(text="llama2")}
    )


def test_another_engine_than_the_planned_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with programs_of(StandIn(tmp_path / "bin").folder, monkeypatch, alone=True):
        planned = ocr.ocr_engine()
        check_engine(planned)
        with pytest.raises(BuildError, match=r"planned with tesseract 4\.1, leptonica-6\.5\.4; here it is tesseract 9"):
            check_engine(replace(planned, engine="tesseract 4.1"))
        with pytest.raises(BuildError, match="here its data for English differ; install the same on all machines"):
            check_engine(replace(planned, language={"name": "eng", "sha256": "0"}))


# Results of shards, and rows that are read from them


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
        assert list(build_dir.read(shard, ROW_LINES)) == lines
        if lines:
            assert build_dir.last(shard, ROW_LINES) == lines[-1]
    build_dir.discard(shard)
    assert not build_dir.is_done(shard)
    with pytest.raises(BuildError, match="run the command again"):
        list(build_dir.read(shard, ROW_LINES))


PAGE_0 = 8
"""The place of a row that the reader refuses."""


def opened(own: Path, out: Path) -> Session:
    return prepared(load_manifest(own / "tiny.yaml"), out)


def test_rows_are_all_that_can_be_read_in_the_order_of_the_source(own: Path, tmp_path: Path) -> None:
    with opened(own, tmp_path / "out") as session:
        rows = session.dataset("mmlongdoc").sources.rows
        found = [each.id for each in rows]
        assert found == [f"mmlongdoc_{number}" for number in range(len(ROWS)) if number != PAGE_0]
        assert [each.id for each in session.questions("mmlongdoc")] == [*KEPT]
        assert [each.id for each in rows] == found
        assert len(rows) == len(found)
        assert [rows[place].id for place in (0, 3, -1)] == [found[0], found[3], found[-1]]
        assert [each.id for each in rows[2:5]] == found[2:5]
        assert all(isinstance(each, DocumentQuestion) for each in rows)
        with pytest.raises(IndexError):
            rows[len(found)]


def test_rows_are_those_before_sampling_and_after_errata(own: Path, tmp_path: Path) -> None:
    errata = {"mmlongdoc_0": {"source": "told", "set": {"question": "What is it made of?"}}}
    (own / "errata.yaml").write_text(json.dumps(errata))
    write_manifest(own / "tiny.yaml", sample={"n": 2}, errata="errata.yaml")
    with opened(own, tmp_path / "out") as session:
        rows = session.dataset("mmlongdoc").sources.rows
        assert len(rows) == len(ROWS) - 1
        first = rows[0]
        assert isinstance(first, DocumentQuestion)
        assert first.question == "What is it made of?"
        assert len(session.questions("mmlongdoc")) == 2


def test_rows_that_are_damaged_on_disk_end_the_build_by_name(own: Path, tmp_path: Path) -> None:
    with opened(own, tmp_path / "out") as session:
        rows = session.dataset("mmlongdoc").sources.rows
        assert rows[1].id == "mmlongdoc_1"
        path = session.build_dir.result(rows_shard("mmlongdoc"))
        path.write_bytes(path.read_bytes().replace(b'"mmlongdoc_1"', b'"mmlongdoc_1', 1))
        with pytest.raises(BuildError, match="was damaged or changed, and was removed"):
            rows[1]
        assert not path.exists()


# Prices


def test_a_file_that_is_none_of_prices_is_named(tmp_path: Path) -> None:
    path = tmp_path / f"{'a' * 32}.sqlite"
    path.write_bytes(b"not a database, but longer than a header of one " * 40)
    with pytest.raises(BuildError, match="remove that file"):
        KeptPrices(tmp_path, "a" * 64)


def test_a_file_of_an_earlier_version_is_read_and_written(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / f"{'a' * 32}.sqlite")) as file, file:
        file.execute("CREATE TABLE prices (text BLOB PRIMARY KEY, tokens INTEGER NOT NULL) WITHOUT ROWID")
        file.execute("INSERT INTO prices VALUES (?, 3)", (hashlib.sha256(b"a text").digest()[:16],))
    with closing(KeptPrices(tmp_path, "a" * 64)) as prices:
        assert prices.get("a text") == 3
        prices["another"] = 4
    with closing(sqlite3.connect(tmp_path / f"{'a' * 32}.sqlite")) as file:
        assert dict(file.execute("SELECT text, tokens FROM prices"))[hashlib.sha256(b"another").digest()[:16]] == 4


def test_prices_that_are_no_longer_held_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmlongbench.building.dataset.MAX_HELD", 2)
    with closing(KeptPrices(tmp_path, "a" * 64)) as prices:
        for number in range(7):
            prices[f"{number}"] = number
        assert [prices.get(f"{number}") for number in range(7)] == list(range(7))


# What a reader extracts from its sources


SPEC = DatasetSpec.model_validate(
    {"name": "d", "builder": "docvqa", "reader": "slidevqa", "source": {"table": "x"}, "lengths": ["8K"]}
)


class Plain(Reader[Row]):
    row_type: ClassVar[type[Row]] = Row
    sources: ClassVar[tuple[str, ...]] = ("table",)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        yield from ()

    def row(self, raw: RawRow, sources: SourcePaths) -> Row | Fault:
        return Row(id=raw.id)


class Extracting(Plain):
    """Writes each word of its table as a file; the class counts the calls."""

    calls: ClassVar[list[Path]] = []

    def extract(self, sources: SourcePaths, folder: Path) -> None:
        self.calls.append(folder)
        (folder / "words").mkdir()
        for word in sources["table"].read_text().split():
            (folder / "words" / word).write_text(word)
            if word == "bad":
                raise SourceError(Fault("bad-word", "a good word", word, todo="mend it"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    Extracting.calls.clear()
    (tmp_path / "table").write_text("one two")
    return tmp_path / "table"


def extracted(table: Path, reader: Reader[Row] | None = None) -> dict[str, Path]:
    sources: Mapping[str, Path] = {"table": table}
    return extract_sources(SPEC, reader or Extracting(), sources, BuildDir(table.parent / "out"), QUIET)


def words(found: Mapping[str, Path]) -> list[str]:
    return sorted(path.name for path in found["words"].iterdir())


def test_what_a_reader_writes_is_a_source_by_its_name(table: Path) -> None:
    assert extracted(table, Plain()) == {"table": table}
    assert not (table.parent / "out").exists()  # a reader that extracts nothing costs nothing
    found = extracted(table)
    assert found == {"table": table, "words": table.parent / "out/.build/extracted/d/words"}
    assert words(found) == ["one", "two"]


def test_files_are_written_again_only_if_the_sources_the_software_or_their_description_changed(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = table.parent / "out/.build/extracted/d.json"
    assert extracted(table) == extracted(table)
    assert len(Extracting.calls) == 1
    table.write_text("three")
    assert words(extracted(table)) == ["three"]
    assert len(Extracting.calls) == 2
    assert json.loads(description.read_text())[1] == "slidevqa"
    description.write_text("{")
    assert words(extracted(table)) == ["three"]
    assert len(Extracting.calls) == 3
    monkeypatch.setattr("mmlongbench.building.planning.versions", lambda: {"mmlongbench": "9"})
    assert words(extracted(table)) == ["three"]
    assert len(Extracting.calls) == 4
    (table.parent / "out").rename(table.parent / "moved")
    found = extract_sources(SPEC, Extracting(), {"table": table}, BuildDir(table.parent / "moved"), QUIET)
    assert words(found) == ["three"]
    assert len(Extracting.calls) == 4


def test_files_of_a_stopped_process_are_written_again(table: Path) -> None:
    table.write_text("one bad two")
    for _ in range(2):
        with pytest.raises(SourceError, match="bad-word"):
            extracted(table)
    table.write_text("one")
    assert words(extracted(table)) == ["one"]
    assert len(Extracting.calls) == 3


def test_a_full_disk_is_named_with_what_to_do(table: Path) -> None:
    class Full(Extracting):
        def extract(self, sources: SourcePaths, folder: Path) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BuildError, match=r"dataset 'd': .*: No space left on device; make room, and run the same"):
        extracted(table, Full())
    assert words(extracted(table)) == ["one", "two"]


def test_a_name_of_another_source_is_refused(table: Path) -> None:
    class Clashing(Extracting):
        def extract(self, sources: SourcePaths, folder: Path) -> None:
            (folder / "table").touch()

    with pytest.raises(PluginCallError, match=r"extract\(\): wrote 'table', which is the name of another source"):
        extracted(table, Clashing())


# Files of sources


def test_tables_beside_very_many_pictures_are_compared_in_each_shard(tmp_path: Path) -> None:
    pictures = [tmp_path / f"{number}.JPG" for number in range(MAX_TABLES + 1)]
    tables = [tmp_path / f"{number}.json" for number in range(MAX_TABLES)]
    found = when_compared([*pictures, *tables])
    assert {found[path] for path in pictures} == {Compared.WHERE_READ}
    assert {found[path] for path in tables} == {Compared.EACH_SHARD}
    found = when_compared([*pictures, *tables, tmp_path / "more.json"])
    assert {found[path] for path in tables} == {Compared.EACH_STAGE}
    assert {*when_compared(pictures[:MAX_TABLES]).values()} == {Compared.EACH_SHARD}


def test_what_changes_before_the_block_ends_is_an_error_even_of_one_that_fails(own: Path, tmp_path: Path) -> None:
    assert build(own, tmp_path / "out", "--stage", "prepare").code == 0
    files, table = SourceFiles(BuildDir(tmp_path / "out")), own / "samples.json"
    data = table.read_bytes()

    def changed() -> None:
        table.write_bytes(b"another")
        raise ValueError("a row that cannot be read")

    for block in (files.unchanged(table), files.unchanged_tables(Compared.EACH_SHARD, ["mmlongdoc"])):
        with pytest.raises(SourceChangedError, match=r"samples\.json: changed while the release was built"), block:
            changed()
        table.write_bytes(data)
    with files.unchanged(table), files.unchanged_tables(Compared.EACH_SHARD, ["mmlongdoc"]):
        pass
    with pytest.raises(SourceChangedError, match="changed while the release was built"), files.unchanged(table):
        table.write_bytes(b"another")
    files.close()


def test_a_file_that_does_not_change_is_hashed_first_and_last_only(own: Path, tmp_path: Path) -> None:
    hashed, digest = list[str](), hashlib.file_digest

    def counted(file: Any, kind: str) -> Any:
        hashed.append(file.name)
        return digest(file, kind)

    with mock.patch.object(hashlib, "file_digest", counted):
        assert build(own, tmp_path / "out").code == 0
    assert [hashed.count(str(path)) for path in (own / "documents").iterdir()] == [2] * 4


# Files at a URL


def test_two_may_put_the_same_files_there_at_once(tmp_path: Path) -> None:
    remote, here = Remote(f"file://{tmp_path}/there"), tmp_path / "here"
    here.mkdir()
    files = [here / f"{number}" for number in range(60)]
    for file in files:
        file.write_text(file.name * 1000)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: remote.push(here, files), range(2)))
    assert hashes(tmp_path / "there") == hashes(here)


def test_the_one_file_of_a_folder_is_not_named_because_it_may_have_been_another() -> None:
    old, new = (
        {"name": "d", "source": {"documents": {"files": 1}}, "source_sha256": {"documents": sha}} for sha in ("a", "b")
    )
    for sha256, said in (("b", "source.documents: ash.pdf changed"), ("c", "source.documents changed (1 file)")):
        assert list(changed_sources(old, new, {}, {("d", "source.documents"): {"ash.pdf": sha256}})) == [said]


def test_lines_are_found_after_their_ids_could_not_be_read(tmp_path: Path) -> None:
    build_dir, faults = BuildDir(tmp_path / "out"), [BuildError("damaged")]

    def ids() -> Iterator[str]:
        yield "a"
        if faults:
            raise faults.pop()
        yield "b"

    build_dir.write(Shard("negatives", "d", "00000"), [FoundNegatives("b", [3], {})])
    lines = KnownLines[FoundNegatives](build_dir, "negatives", "d", NEGATIVES, ids)
    with pytest.raises(BuildError, match="damaged"):
        lines.of("b")
    assert lines.of("b") == FoundNegatives("b", [3], {})

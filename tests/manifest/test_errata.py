"""Errata: corrections of the rows of an unchanged source, each with its `source`; all are in the lock."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import command, draw_source, write_manifest

from mmlongbench.building.stages.rows import raw_rows, read_rows
from mmlongbench.errors import Fault
from mmlongbench.manifest.calling import PluginCallError
from mmlongbench.manifest.errata import Erratum, load_errata
from mmlongbench.manifest.registry import installed, reader_type, sample_function
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import RawRow, Row, RowFault, SourcePaths

pytestmark = pytest.mark.slow
READERS = [plugin.name for plugin in installed("reader") if not plugin.problem]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The tiny source, in a folder of its own."""
    draw_source(tmp_path / "source")
    return tmp_path / "source"


def built(source: Path, errata: dict[str, Any], **changes: Any) -> Any:
    """What a build with errata printed."""
    (source / "errata.yaml").write_text(yaml.safe_dump(errata))
    manifest = write_manifest(source / "own.yaml", errata="errata.yaml", **changes)
    return command("build", manifest, "--out", source.parent / "out")


def lock(source: Path) -> Any:
    return json.loads((source.parent / "out/build.lock.json").read_text())


def record(source: Path, id: str) -> Any:
    lines = (source.parent / "out/mmlb_data/documentQA/mmlongdoc_K1.jsonl").read_text().splitlines()
    return next((found for line in lines if (found := json.loads(line))["id"] == id), None)


def test_rows_are_corrected_before_they_are_cleaned_and_the_lock_says_so(source: Path) -> None:
    errata = {
        "mmlongdoc_0": {
            "source": "a letter",
            "set": {"answer": "soft", "evidence_pages": [2]},
            "was": {"answer": "hard"},
        },
        "mmlongdoc_8": {"source": "the authors", "set": {"evidence_pages": "[1]"}},
        "mmlongdoc_10": {"source": "it was felled", "drop": True},
    }
    ran = built(source, errata)
    assert ran.code == 0, ran.err
    corrected = record(source, "mmlongdoc_0")
    assert (corrected["answer"], corrected["ans_page_list"]) == ("soft", [1])
    assert record(source, "mmlongdoc_8")["ans_page_list"] == [0]  # it was rejected for page 0
    assert record(source, "mmlongdoc_10") is None
    found = lock(source)["datasets"]["mmlongdoc"]
    assert found["questions"]["repaired"]["corrected-by-errata"] == 2
    assert found["questions"]["rejected"]["dropped-by-errata"] == 1
    assert found["errata"].keys() == errata.keys()
    assert found["errata"]["mmlongdoc_10"] == errata["mmlongdoc_10"]
    assert found["errata"]["mmlongdoc_0"]["set"] == {"answer": "soft", "evidence_pages": ["2"]}
    assert len(lock(source)["manifest"][0]["errata"]) == 64
    assert command("audit", source.parent / "out", "-q").code == 0


def test_an_erratum_of_another_version_rejects_its_row(source: Path) -> None:
    ran = built(source, {"mmlongdoc_0": {"source": "x", "set": {"answer": "soft"}, "was": {"answer": "brown"}}})
    assert ran.code == 0, ran.err
    lines = (source.parent / "out/rejects.jsonl").read_text().splitlines()
    (found,) = [line for line in map(json.loads, lines) if line["reason"] == "erratum-of-another-version"]
    assert (found["id"], found["field"], found["expected"], found["found"]) == (
        "mmlongdoc_0",
        "answer",
        "'brown'",
        "'hard'",
    )


@pytest.mark.parametrize(
    ("errata", "said"),
    [
        ({"mmlongdoc_99": {"source": "x", "drop": True}}, "mmlongdoc_99"),
        ({"mmlongdoc_0": {"drop": True}}, "mmlongdoc_0.source"),
        ({"mmlongdoc_0": {"source": "x"}}, "either `set` or `drop: true`"),
        ({"mmlongdoc_0": {"source": "x", "set": {"answer": "y"}, "drop": True}}, "either `set` or `drop: true`"),
        ({"mmlongdoc_0": {"source": "x", "sets": {"answer": "y"}}}, "sets"),
        (["mmlongdoc_0"], "errata.yaml"),
    ],
)
def test_errata_that_say_nothing_or_too_much_are_refused(source: Path, errata: Any, said: str) -> None:
    ran = built(source, errata)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_errata_that_are_not_there_are_refused(source: Path) -> None:
    manifest = write_manifest(source / "own.yaml", errata="nowhere.yaml")
    ran = command("build", manifest, "--out", source.parent / "out")
    assert (ran.code, "errata: no such file" in ran.err) == (2, True)


@pytest.fixture(scope="module")
def sample_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], SourcePaths]:
    """Return the sample of a reader; do not change it."""

    @cache
    def drawn(name: str) -> SourcePaths:
        return sample_function(name)(tmp_path_factory.mktemp(name))

    return drawn


@pytest.mark.parametrize("name", READERS)
def test_rows_of_every_reader_can_be_dropped_and_corrected(
    name: str, sample_of: Callable[[str], SourcePaths], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = reader_type(name)()
    sources = sample_of(name)
    raw = next(raw for raw in raw_rows(reader, sources) if isinstance(raw, RawRow))
    found = next(read_rows(reader, sources, {raw.id: Erratum(source="me", drop=True)}))
    assert isinstance(found, RowFault)
    assert (found.id, found.fault.reason, found.fault.place) == (raw.id, "dropped-by-errata", raw.place)
    given = list[RawRow]()

    def kept(self: object, raw: RawRow, sources: SourcePaths) -> Fault:
        given.append(raw)
        return Fault("looked-at", "nothing", "nothing")

    monkeypatch.setattr(type(reader), "row", kept)
    next(read_rows(reader, sources, {raw.id: Erratum(source="me", set=dict.fromkeys(raw.fields, "another"))}))
    assert given[0].fields == dict.fromkeys(raw.fields, "another")


@pytest.mark.parametrize("name", READERS)
def test_what_the_source_says_already_changes_no_row_of_any_reader(
    name: str, sample_of: Callable[[str], SourcePaths], tmp_path: Path
) -> None:
    """Errata are read as text; their values get the types of the source."""
    reader = reader_type(name)()
    sources = sample_of(name)
    plain = {found.id: found for found in read_rows(reader, sources)}
    raw = [raw for raw in raw_rows(reader, sources) if isinstance(raw, RawRow)]
    said = {each.id: {"source": "me", "set": each.fields, "was": each.fields} for each in raw}
    (tmp_path / "errata.yaml").write_text(yaml.safe_dump(said, allow_unicode=True), "utf-8")
    errata = load_errata(tmp_path / "errata.yaml")
    assert {found.id: found for found in read_rows(reader, sources, errata)} == plain


class OneRow(Reader[Row]):
    """A source of one row with fields as they are given; what reaches `row` is kept."""

    row_type = Row
    sources = ()
    image_folder = "one"

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields, self.given = fields, list[RawRow]()

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        yield RawRow("one", self.fields, "rows.jsonl", "line 1")

    def row(self, raw: RawRow, sources: SourcePaths) -> Row:
        self.given.append(raw)
        return Row(id=str(raw.fields.get("id", raw.id)))


@pytest.mark.parametrize(
    ("stands", "written", "becomes"),
    [
        ("4", "5", "5"),
        ("[4]", "[5, 6]", "[5, 6]"),
        ("a", "null", "null"),
        ("no", "true", "true"),
        (4, "5", 5),
        (0.5, "0.25", 0.25),
        (None, "5", 5),
        (None, "five", "five"),
        (4, "null", None),
        (False, "true", True),
        ([4], "[5, 6]", [5, 6]),
        (["4"], '["5", six]', ["5", "six"]),
        ([], "[5, six]", [5, "six"]),
        (["4", 4], "[5, six]", ["5", "six"]),
        (["4", 4], "[5, 6, 7]", ["5", 6, 7]),
        ([None, "4"], "[null, 5, 6]", [None, "5", 6]),
        ([{"sections": []}, {"sections": ["1"]}], "[{sections: []}, {sections: [2]}]",
         [{"sections": []}, {"sections": ["2"]}]),
        ({"pages": [1], "names": ["1"], "note": "1"}, "{pages: [2], names: [2], note: 2, more: 2}",
         {"pages": [2], "names": ["2"], "note": "2", "more": 2}),
        ([{"page": 1, "name": "1"}], "[{page: 2, name: 2}]", [{"page": 2, "name": "2"}]),
        ({"answer": ["1"]}, "null", None),
    ],
)  # fmt: skip
def test_values_take_the_types_of_what_they_correct(
    stands: object, written: str, becomes: object, tmp_path: Path
) -> None:
    (tmp_path / "errata.yaml").write_text(f"one: {{source: me, set: {{field: {written}}}}}")
    reader = OneRow({"field": stands})
    (row,) = read_rows(reader, {}, load_errata(tmp_path / "errata.yaml"))
    assert reader.given[0].fields == {"field": becomes}
    assert type(reader.given[0].fields["field"]) is type(becomes)
    assert isinstance(row, Row)
    assert row.repairs == ("corrected-by-errata",)


def test_an_erratum_that_would_change_the_id_of_a_row_names_the_reader() -> None:
    errata = {"one": Erratum(source="me", set={"id": "two"})}
    with pytest.raises(PluginCallError, match=r"row 'one' \(rows.jsonl, line 1\): the row's id must be the raw row's"):
        list(read_rows(OneRow({"id": "one"}), {}, errata))


@pytest.mark.parametrize(
    ("written", "released"),
    [("Yes", "Yes"), ("No", "No"), ("14:04", "14:04"), ("007", "007"), ("0.50", "0.50"), ("2019-04-01", "2019-04-01")],
)
def test_values_are_what_is_written(source: Path, written: str, released: str) -> None:
    """Other YAML makes of these a truth, seconds, octal digits, a shorter number, a date."""
    (source / "errata.yaml").write_text(f"mmlongdoc_0:\n  source: x\n  set: {{answer: {written}}}\n")
    manifest = write_manifest(source / "own.yaml", errata="errata.yaml")
    assert command("build", manifest, "--out", source.parent / "out").code == 0
    assert record(source, "mmlongdoc_0")["answer"] == released


def test_a_list_is_written_as_the_source_writes_lists(source: Path) -> None:
    erratum = {"source": "x", "set": {"answer": ["red", "7"], "answer_format": "List"}}
    assert built(source, {"mmlongdoc_0": erratum}).code == 0
    assert json.loads(record(source, "mmlongdoc_0")["answer"]) == ["red", "7"]


def test_a_field_that_rows_do_not_have_rejects_the_row(source: Path) -> None:
    assert built(source, {"mmlongdoc_0": {"source": "x", "set": {"evidence_page": "[1]"}}}).code == 0
    (found,) = [
        r
        for r in map(json.loads, (source.parent / "out/rejects.jsonl").read_text().splitlines())
        if r["id"] == "mmlongdoc_0"
    ]
    assert (found["reason"], found["found"]) == ("erratum-of-no-field", "evidence_page")


def test_an_id_that_stands_twice_is_refused(source: Path) -> None:
    (source / "errata.yaml").write_text("a: {source: x, drop: true}\na: {source: y, drop: true}\n")
    ran = command("build", write_manifest(source / "own.yaml", errata="errata.yaml"), "--out", source.parent / "out")
    assert (ran.code, "'a' occurs twice" in ran.err) == (2, True)


def test_what_changes_nothing_is_not_counted(source: Path) -> None:
    assert built(source, {"mmlongdoc_0": {"source": "x", "set": {"answer": "hard"}}}).code == 0
    assert "corrected-by-errata" not in lock(source)["datasets"]["mmlongdoc"]["questions"]["repaired"]

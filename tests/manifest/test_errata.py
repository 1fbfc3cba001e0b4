"""Errata: corrections of the rows of an unchanged source, each with its `source`; all are in the lock."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from samples import Sources
from tiny import build, command, lock, records, rejects, write_manifest

from mmlongbench.building.stages.rows import raw_rows, read_rows
from mmlongbench.errors import Fault
from mmlongbench.manifest.binding import PluginCallError
from mmlongbench.manifest.errata import Erratum, load_errata
from mmlongbench.manifest.plugins import installed, reader_type
from mmlongbench.task import Row
from mmlongbench.task.readers import RawRow, Reader, RowFault, SourcePaths

SHOWN = ("mmlongbench_doc", "image_tables", "viquae", "mm_niah")
"""Readers of a list, of tables with pictures, of lines and of web pages; the others are alike."""
READERS = [
    pytest.param(plugin.name, marks=() if plugin.name in SHOWN else pytest.mark.rare)
    for plugin in installed("reader")
    if plugin.origin == "mmlongbench"
]


def built(source: Path, folder: Path, errata: Any, **changes: Any) -> Any:
    """Build the tiny source with errata at 1K into `out` of a folder."""
    text = errata if isinstance(errata, str) else yaml.safe_dump(errata)
    (folder / "errata.yaml").write_text(text, "utf-8")
    for name in ("samples.json", "documents"):
        (folder / name).symlink_to(source / name)
    write_manifest(folder / "tiny.yaml", errata="errata.yaml", **{"lengths": ["1K"], **changes})
    return build(folder, folder / "out")


WRITTEN = "Yes", "No", "14:04", "007", "0.50", "2019-04-01"
"""Other YAML makes of these a truth, seconds, octal digits, a shorter number, a date."""


def test_rows_are_corrected_before_they_are_cleaned_and_the_lock_says_so(source: Path, tmp_path: Path) -> None:
    ran = built(
        source,
        tmp_path,
        """
mmlongdoc_0: {source: a letter, set: {answer: soft, evidence_pages: [2]}, was: {answer: hard}}
mmlongdoc_1: {source: another, set: {answer: white}}
mmlongdoc_2: {source: x, set: {answer: [red, 7], answer_format: List}}
mmlongdoc_3: {source: x, set: {evidence_page: "[1]"}}
mmlongdoc_4: {source: x, set: {answer: soft}, was: {answer: brown}}
mmlongdoc_8: {source: the authors, set: {evidence_pages: "[1]"}}
mmlongdoc_10: {source: it was felled, drop: true}
""",
    )
    assert ran.code == 0, ran.err
    found = {record["id"]: record for record in records(tmp_path / "out", "1K")}
    assert (found["mmlongdoc_0"]["answer"], found["mmlongdoc_0"]["ans_page_list"]) == ("soft", [1])
    assert json.loads(found["mmlongdoc_2"]["answer"]) == ["red", "7"]
    assert found["mmlongdoc_8"]["ans_page_list"] == [0]  # it was rejected for page 0
    assert not {"mmlongdoc_3", "mmlongdoc_4", "mmlongdoc_10"} & found.keys()
    counted = lock(tmp_path / "out")["datasets"]["mmlongdoc"]
    assert counted["questions"]["repaired"]["corrected-by-errata"] == 3  # what changes nothing is not counted
    assert counted["questions"]["rejected"]["dropped-by-errata"] == 1
    assert len(counted["errata"]) == 7
    assert counted["errata"]["mmlongdoc_10"] == {"source": "it was felled", "drop": True}
    assert counted["errata"]["mmlongdoc_0"]["set"] == {"answer": "soft", "evidence_pages": ["2"]}
    assert len(lock(tmp_path / "out")["manifest"][0]["errata"]) == 64
    reasons = {line["id"]: line for line in rejects(tmp_path / "out")}
    other, unknown = reasons["mmlongdoc_4"], reasons["mmlongdoc_3"]
    assert (other["reason"], other["field"]) == ("erratum-of-another-version", "answer")
    assert (other["expected"], other["found"]) == ("'brown'", "'Not answerable'")
    assert (unknown["reason"], unknown["found"]) == ("erratum-of-no-field", "evidence_page")
    assert command("audit", tmp_path / "out", "-q").code == 0


def test_values_are_what_is_written(source: Path, tmp_path: Path) -> None:
    ids = [f"mmlongdoc_{number}" for number in (0, 1, 3, 8, 10, 2)]
    texts = [
        f"{id}: {{source: x, set: {{answer: {text}, answer_format: Str, evidence_pages: '[1]'}}}}"
        for id, text in zip(ids, WRITTEN, strict=True)
    ]
    assert built(source, tmp_path, "\n".join(texts)).code == 0
    found = {record["id"]: record["answer"] for record in records(tmp_path / "out", "1K")}
    assert [found[id] for id in ids] == list(WRITTEN)


@pytest.mark.parametrize(
    ("errata", "said"),
    [
        ({"mmlongdoc_99": {"source": "x", "drop": True}}, "mmlongdoc_99"),
        ({"mmlongdoc_0": {"drop": True}}, "mmlongdoc_0.source"),
        ({"mmlongdoc_0": {"source": "x"}}, "either `set` or `drop: true`"),
        ({"mmlongdoc_0": {"source": "x", "set": {"answer": "y"}, "drop": True}}, "either `set` or `drop: true`"),
        ({"mmlongdoc_0": {"source": "x", "sets": {"answer": "y"}}}, "sets"),
        (["mmlongdoc_0"], "errata.yaml"),
        ("a: {source: x, drop: true}\na: {source: y, drop: true}\n", "'a' occurs twice"),
    ],
)
def test_errata_that_say_nothing_or_too_much_are_refused(source: Path, tmp_path: Path, errata: Any, said: str) -> None:
    ran = built(source, tmp_path, errata)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_errata_that_are_not_there_are_refused(source: Path, tmp_path: Path) -> None:
    ran = build(source, tmp_path / "out", "--set", "errata=nowhere.yaml")
    assert (ran.code, "errata: no such file" in ran.err) == (2, True)


@pytest.mark.parametrize("name", READERS)
def test_errata_reach_the_rows_of_every_reader(
    name: str, sample: Callable[[str], Sources], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read as text; their values get the types of the source, so what the source says changes no row."""
    reader, sources = reader_type(name)(), sample(name)
    plain = {found.id: found for found in read_rows(reader, sources)}
    raw = [raw for raw in raw_rows(reader, sources) if isinstance(raw, RawRow)]
    said = {each.id: {"source": "me", "set": each.fields, "was": each.fields} for each in raw}
    (tmp_path / "errata.yaml").write_text(yaml.safe_dump(said, allow_unicode=True), "utf-8")
    assert {found.id: found for found in read_rows(reader, sources, load_errata(tmp_path / "errata.yaml"))} == plain
    first = raw[0]
    found = next(each for each in read_rows(reader, sources, {first.id: Erratum(source="me", drop=True)}))
    assert isinstance(found, RowFault)
    assert (found.id, found.fault.reason, found.fault.place) == (first.id, "dropped-by-errata", first.place)
    given = list[RawRow]()

    def kept(self: object, raw: RawRow, sources: SourcePaths) -> Fault:
        given.append(raw)
        return Fault("looked-at", "nothing", "nothing")

    monkeypatch.setattr(type(reader), "row", kept)
    next(read_rows(reader, sources, {first.id: Erratum(source="me", set=dict.fromkeys(first.fields, "another"))}))
    assert given[0].fields == dict.fromkeys(first.fields, "another")


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

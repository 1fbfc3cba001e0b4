"""Any text, any YAML and any changed manifest or errata are loaded or refused by name."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from mutated import CHUNKS, TEXTS, changed_bytes, changed_value, fuzzing, hostile_values, refusal_or_none

from mmlongbench.building.stages.rows import cleaned, raw_rows, read_rows
from mmlongbench.errors import Fault
from mmlongbench.manifest.errata import Erratum, load_errata
from mmlongbench.manifest.loading import installed_manifests, load_manifest, narrowed
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.manifest.plugins import installed, reader_type, sample_function
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import RawRow, Row, RowFault, SourcePaths

pytestmark = pytest.mark.rare
MANIFESTS = [text for path in installed_manifests().values() if b"\ninclude:" not in (text := path.read_bytes())]
"""The manifests that can be read from any folder."""
ERRATA = b"""
mmlongdoc_0:
  source: I
  set: {answer: "[5]", question: q}
  was: {answer: "4"}
x: {source: me, drop: true}
"""
UNCORRECTABLE = ("image_folders", "image_tables", "inaturalist", "mm_niah")
"""Readers whose rows are made of fixed fields alone."""
READERS = [p.name for p in installed("reader") if not p.problem and p.name not in UNCORRECTABLE]
OPTIONAL = {
    "govreport": ("highlight", "url"),
    "own_documents": ("doc_type", "answer_format", "evidence_sources"),
    "own_pages": ("shown",),
    "photographs": ("anchor", "negatives"),
}
"""Fields that a row may have besides those of the sample."""
kinds = ("bool", "int", "timestamp", "float", "binary", "set", "omap", "map", "null")
tags = ("", *(f"!!{kind} " for kind in kinds), "&a ", "*a")
pieces = st.sampled_from(
    (*tags, "- ", ": ", "? ", "<<: *a", "[", "]", "{", "}", "\n", "\n  ", "|", ">-", "'", '"', "a", "7")
)
texts = st.text(max_size=60) | st.lists(pieces, max_size=30).map("".join)


def write(folder: Path, data: bytes) -> Path:
    path = folder / "m.yaml"
    path.write_bytes(data)
    return path


def loaded(path: Path) -> None:
    """Load it, or find the refusal to be one line of bounded length."""
    with refusal_or_none():
        manifest = load_manifest(path)
        narrowed(manifest, "8K", 3)
        for spec in manifest.datasets:
            assert DatasetSpec.model_validate(spec.model_dump(mode="json")) == spec


def test_manifests_and_errata_that_are_not_changed_are_loaded(tmp_path: Path) -> None:
    for manifest in MANIFESTS:
        assert load_manifest(write(tmp_path, manifest)).datasets
    assert load_errata(write(tmp_path, ERRATA)).keys() >= {"x"}


@fuzzing(examples=60)
@given(texts | st.binary(max_size=80))
@example("a: &a [*a]\ndatasets: *a")
@example("datasets: !!timestamp x")
def test_any_text_is_a_manifest_or_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str | bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    loaded(write(folder, text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")))


@fuzzing(examples=25)
@given(st.data())
def test_a_changed_manifest_is_a_manifest_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    manifest = data.draw(st.sampled_from(MANIFESTS))
    if data.draw(st.booleans()):
        changed = changed_value(data.draw, yaml.safe_load(manifest))
        manifest = yaml.safe_dump(changed, allow_unicode=False).encode("utf-8", "surrogatepass")
    else:
        manifest = changed_bytes(data.draw, manifest)
    loaded(write(tmp_path_factory.getbasetemp(), manifest))


@fuzzing(examples=25)
@given(st.data())
def test_any_setting_is_applied_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = write(tmp_path_factory.getbasetemp(), data.draw(st.sampled_from(MANIFESTS)))
    key = data.draw(
        st.sampled_from(("source.samples", "lengths", "counter.image.patch", "sample", "", "a.b.c", "name"))
    )
    with refusal_or_none():
        load_manifest(path, (f"{key}{data.draw(st.sampled_from(('=', '', '==')))}{data.draw(texts)}",))


@fuzzing(examples=60)
@given(st.data())
def test_any_errata_are_loaded_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(("bytes", "value", "text")))
    text: bytes
    if kind == "bytes":
        text = changed_bytes(data.draw, ERRATA)
    elif kind == "value":
        text = yaml.safe_dump(changed_value(data.draw, yaml.safe_load(ERRATA))).encode("utf-8", "surrogatepass")
    else:
        text = data.draw(texts).encode("utf-8", "surrogatepass")
    with refusal_or_none():
        load_errata(write(tmp_path_factory.getbasetemp(), text))


@pytest.mark.parametrize("name", READERS)
def test_any_fields_and_errata_make_a_row_or_a_fault(name: str, tmp_path: Path) -> None:
    reader = reader_type(name)()
    sources = sample_function(name)(tmp_path)
    readable = (raw for raw in raw_rows(reader, sources) if isinstance(raw, RawRow))
    sample = next(raw for raw in readable if isinstance(cleaned(reader, sources, raw), Row))
    names = sorted({*sample.fields, *OPTIONAL.get(name, ())} - {*reader.fixed_fields})
    reached, made = list[RawRow](), list[Row]()

    class Source(Reader[Row]):
        """One row of the sample, but for what its fields say."""

        row_type = reader.row_type

        def __init__(self, fields: dict[str, Any]) -> None:
            self.fields = fields

        def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
            yield replace(sample, fields=self.fields)

        def row(self, raw: RawRow, sources: SourcePaths) -> Row | Fault:
            reached.append(raw)
            return reader.row(raw, sources)

    values = hostile_values | st.sampled_from(("[1]", [1], 3, "Int", "List", "['a']", "Not answerable", {"a": [1]}))
    changes = st.dictionaries(st.sampled_from(names), values, max_size=2)
    gone = st.sets(st.sampled_from(names), max_size=1)

    @fuzzing(examples=25)
    @given(changes, gone, changes, st.sampled_from(["", *names]))
    def run(others: dict[str, Any], gone: set[str], corrected: dict[str, Any], checked: str) -> None:
        fields = {key: value for key, value in {**sample.fields, **others}.items() if key not in gone}
        was = {checked: fields.get(checked)} if checked else {}
        errata = {sample.id: Erratum(source="me", set=corrected, was=was)} if corrected else {}
        with refusal_or_none():
            for found in read_rows(Source(fields), sources, errata):
                assert isinstance(found, Row | RowFault)
                if isinstance(found, Row):
                    made.append(found)
                    json.dumps(found.model_dump(mode="json"), ensure_ascii=False).encode()

    run()
    assert reached
    assert made


def test_the_other_readers_have_no_field_that_errata_may_correct(tmp_path: Path) -> None:
    for name in UNCORRECTABLE:
        reader = reader_type(name)()
        (tmp_path / name).mkdir()
        for raw in raw_rows(reader, sample_function(name)(tmp_path / name)):
            assert isinstance(raw, RawRow)
            assert raw.fields.keys() <= {*reader.fixed_fields}


def test_the_hostile_pieces_are_hostile() -> None:
    assert b"\0" in CHUNKS
    assert "\ud800" in TEXTS

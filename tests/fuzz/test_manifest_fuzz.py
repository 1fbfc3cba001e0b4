"""Any text, any YAML and any changed manifest or errata are loaded or refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from mutated import CHUNKS, TEXTS, changed_bytes, changed_value, fuzzing, hostile_values, refusal_or_none

from mmlongbench.manifest.builtin_manifests import installed_manifests
from mmlongbench.manifest.errata import Erratum, load_errata, read_rows
from mmlongbench.manifest.model import DatasetSpec, load_manifest, narrowed
from mmlongbench.manifest.registry import installed, reader_type
from mmlongbench.task.rows import RawRow, Row, RowFault, SourcePaths

MANIFESTS = [path.read_bytes() for path in installed_manifests().values()]
ERRATA = b"""
mmlongdoc_0:
  source: I
  set: {answer: "[5]", question: q}
  was: {answer: "4"}
x: {source: me, drop: true}
"""
CORRECTABLE = [p.name for p in installed("reader") if not p.problem and hasattr(reader_type(p.name), "raw_rows")]
tags = (
    "",
    "!!bool ",
    "!!int ",
    "!!timestamp ",
    "!!float ",
    "!!binary ",
    "!!set ",
    "!!omap ",
    "!!map ",
    "!!null ",
    "&a ",
    "*a",
)
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


@pytest.mark.parametrize("name", CORRECTABLE)
def test_any_fields_and_errata_make_a_row_or_a_fault(name: str) -> None:
    reader: Any = reader_type(name)()
    fields = sorted(FIELDS)

    class Source:
        """The reader's rows, but for what the source says."""

        def __init__(self, raw: dict[str, Any]) -> None:
            self.raw = raw
            self.row = reader.row

        def raw_rows(self, sources: SourcePaths) -> Any:
            yield RawRow("a", self.raw, "file", "line 1")

    values = hostile_values | st.sampled_from(("[1]", [1], 3, "Int", "List", "['a']", "Not answerable"))
    rows = st.fixed_dictionaries({}, optional=dict.fromkeys(fields, values))

    @fuzzing(examples=25)
    @given(rows, st.dictionaries(st.sampled_from(fields), values, max_size=3), st.booleans())
    def run(raw: dict[str, Any], changes: dict[str, Any], is_checked: bool) -> None:
        was = {"question": raw.get("question")} if is_checked else {}
        erratum = Erratum(source="me", set=changes, drop=not changes, was=was)
        with refusal_or_none():
            for found in read_rows(Source(raw), {}, {"a": erratum}):
                assert isinstance(found, Row | RowFault)
                json.dumps(found.model_dump(mode="json"), ensure_ascii=False).encode() if isinstance(found, Row) else 0

    run()


FIELDS: tuple[str, ...] = (
    "question",
    "answer",
    "doc_id",
    "doc_type",
    "evidence_pages",
    "evidence_sources",
    "answer_format",
    "doc_no",
)
FIELDS += ("start_end_idx", "deck_name", "doc", "pages", "reasoning_type", "task_tag", "question_type")


def test_the_hostile_pieces_are_hostile() -> None:
    assert b"\0" in CHUNKS
    assert "\ud800" in TEXTS

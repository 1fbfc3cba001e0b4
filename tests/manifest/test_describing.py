"""Every built-in builder and reader describes its options, sources, rows and records; so does a class of one's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, Field

import mmlongbench.task as mt
from mmlongbench.errors import ManifestError
from mmlongbench.manifest.describing import (
    describe_builder,
    describe_manifest,
    describe_metric,
    describe_plugin,
    describe_reader,
    first_paragraph,
)
from mmlongbench.manifest.model_fields import fields_of, type_text
from mmlongbench.manifest.registry import GROUPS, Plugin, installed

OURS = [plugin for kind in GROUPS for plugin in installed(kind) if plugin.origin == "mmlongbench"]


def of_kind(kind: str) -> pytest.MarkDecorator:
    plugins = [plugin for plugin in OURS if plugin.kind == kind]
    return pytest.mark.parametrize("plugin", plugins, ids=[plugin.name for plugin in plugins])


@of_kind("reader")
def test_a_reader_says_the_form_of_each_source_and_the_meaning_of_each_row_field(plugin: Plugin) -> None:
    found = describe_plugin(plugin)
    assert found.kind == "reader"
    assert found.sources
    assert [source.name for source in found.sources if not source.form.endswith(".")] == []
    assert [field.name for field in found.row_fields if not field.text] == []
    assert found.builders
    assert {"quickstart", "quickstart-retrieved"} & {*found.manifests}
    assert found.has_sample


@of_kind("builder")
def test_a_builder_says_the_meaning_of_each_option_and_row_field(plugin: Plugin) -> None:
    found = describe_plugin(plugin)
    assert found.kind == "builder"
    assert [field.name for field in (*found.options, *found.row_fields) if not field.text] == []
    assert [field.name for field in found.record_fields if not field.text] == []
    assert {"id", "length", "tokens"} <= {field.name for field in found.record_fields}
    assert found.about.endswith(".")
    assert found.readers
    assert found.metrics
    assert found.files[0].kind == "records"


@of_kind("metric")
def test_a_metric_says_what_it_does_and_whose_rules_it_follows(plugin: Plugin) -> None:
    found = describe_plugin(plugin)
    assert found.kind == "metric"
    assert found.about
    assert found.profiles
    assert found.builders


@of_kind("sample")
def test_a_sample_names_its_reader(plugin: Plugin) -> None:
    found = describe_plugin(plugin)
    assert found.kind == "sample"
    assert (found.reader, bool(found.sources), bool(found.about)) == (plugin.name, True, True)


def test_metrics_and_placements_under_the_options_of_manifests_are_named_too() -> None:
    found = describe_plugin(next(plugin for plugin in OURS if (plugin.kind, plugin.name) == ("builder", "mm_niah")))
    assert found.kind == "builder"
    assert found.metrics == ("sub_em",)
    assert {*found.further_metrics} == {"soft_acc", "mc_acc", "mm-niah-count"}
    assert found.placements == ("6 depths (0, 0.2, 0.4, 0.6, 0.8, 1)", "3 permutations")
    assert {"depth", "permutation", "depth_requested"} <= {f.name for f in found.record_fields if f.is_added}


class Choices(mt.Options):
    """Options of one's own."""

    pace: Literal["slow", "fast"] = "slow"
    """How fast it is."""
    share: float = Field(gt=0, le=1)
    """A part
    of the whole."""
    names: Annotated[tuple[str, ...], Field(strict=False)] = ()


class TaleRow(mt.Row):
    """A row of one's own."""

    tale: str
    """The tale."""


class Tales(mt.Reader[TaleRow]):
    """Reads tales.

    This paragraph is about something else.
    """

    row_type: ClassVar[type[mt.Row]] = TaleRow
    sources: ClassVar[tuple[str, ...]] = ("tales",)
    optional_sources: ClassVar[tuple[str, ...]] = ("more",)
    image_folder: ClassVar[str] = "tales"
    source_forms: ClassVar[Mapping[str, str]] = {"tales": "JSON Lines."}

    def raw_rows(self, sources: mt.SourcePaths) -> Any:
        raise NotImplementedError

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> TaleRow:
        raise NotImplementedError


class Telling(mt.Builder[TaleRow]):
    row_type: ClassVar[type[mt.Row]] = TaleRow
    options_type: ClassVar[type[mt.Options]] = Choices
    record_fields: ClassVar[Mapping[str, str]] = {"id": "The id."}
    spec = mt.TaskSpec(mt.FilePattern("tales/{name}_K{k}.jsonl"), "sub_em")

    def draft(self, row: TaleRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        raise NotImplementedError

    def record(self, example: mt.PackedExample) -> mt.Record:
        raise NotImplementedError

    def prompt(self, record: mt.Record) -> mt.Prompt:
        raise NotImplementedError


def test_a_class_that_is_no_entry_point_is_described_too() -> None:
    found = describe_builder(Telling)
    assert (found.name, found.distribution, found.about, found.row_type) == ("Telling", "", "", "TaleRow")
    assert [(o.name, o.type, o.is_required, o.text) for o in found.options] == [
        ("pace", "slow | fast", False, "How fast it is."),
        ("share", "number, above 0, at most 1", True, "A part of the whole."),
        ("names", "list of texts", False, ""),
    ]
    assert (found.metrics, found.files) == ((), ())  # an option is required, so that nothing is known by default
    assert found.readers == ()


def test_a_reader_of_ones_own_says_its_sources_and_the_first_paragraph_of_its_docstring() -> None:
    found = describe_reader(Tales)
    assert found.about == "Reads tales."
    assert [(s.name, s.is_optional, s.form) for s in found.sources] == [
        ("tales", False, "JSON Lines."),
        ("more", True, ""),
    ]
    assert not found.has_sample


def test_a_metric_of_ones_own_is_described() -> None:
    class Half(mt.Metric):
        """Scores one half."""

        name = "half"

        def score(self, asked: mt.ScoringInput) -> mt.Score:
            return mt.Score(0.5)

    found = describe_metric(Half)
    assert (found.name, found.profiles, found.builders) == ("half", {"ours": ""}, ())


def test_a_manifest_shows_what_must_be_set_and_runs_no_code(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "# Mine\ndatasets:\n"
        "  - {name: a, builder: docvqa, reader: own_documents, source: {questions: q.csv}, lengths: 8K}\n"
        "  - {name: b, builder: nothing, reader: nobody, source: sample, options: {x: [1]}}\n",
        "utf-8",
    )
    found = describe_manifest("mine.yaml", path)
    first, second = found.datasets
    assert found.about == "Mine"
    assert first.source == {"questions": "q.csv", "documents": None}
    assert (first.lengths, first.metric) == ((8192,), "doc_qa")
    assert (second.source, second.metric, second.options) == ("sample", "", {"x": [1]})
    with pytest.raises(ManifestError, match=r"none\.yaml"):
        describe_manifest("none", tmp_path / "none.yaml")


class Inner(BaseModel):
    a: int


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (bool, "true | false"),
        (Literal["a", 3, None], "a | 3 | null"),
        (int | None, "integer, or null"),
        (int | str, "integer or text"),
        (list[Inner], "list of mappings with a"),
        (tuple[tuple[str, int], ...], "list of lists (text, integer)"),
        (tuple[Literal["a", "b"], ...], "list of (a | b)"),
        (Mapping[str, list[float]], "mapping from text to list of numbers"),
        (dict, "mapping"),
        (object, "object"),
    ],
)
def test_types_are_said_in_words(kind: object, said: str) -> None:
    assert type_text(kind) == said


def test_a_default_that_json_cannot_hold_is_shown_as_it_prints() -> None:
    class Odd(BaseModel):
        inner: Inner = Inner(a=1)
        path: Path = Path("x")
        many: tuple[int, ...] = Field(default_factory=tuple)
        odd: Any = complex(1, 2)

    assert [field.default for field in fields_of(Odd)] == [{"a": 1}, "x", [], "1+2j"]


def test_without_a_docstring_nothing_is_said() -> None:
    assert first_paragraph(Inner) == ""

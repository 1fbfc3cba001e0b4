"""Classes that break the contract are refused by name before any of their methods is called."""

from abc import ABCMeta
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import DynamicClassAttribute, MappingProxyType, MethodType
from typing import Any, ClassVar

import pytest

import mmlongbench.task as mt
from mmlongbench.errors import ManifestError
from mmlongbench.manifest.calling import PluginCallError
from mmlongbench.manifest.contracts import CONTRACTS, contract_fault
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.manifest.registry import GROUPS
from mmlongbench.manifest.resolve import bind_builder, check_plugins
from mmlongbench.scoring import running
from mmlongbench.scoring.running import Run
from mmlongbench.task.builder import ExaminingBuilder, SharedContextBuilder
from mmlongbench.task.metric import Metric, MetricWithTotals, Score, ScoringInput, Settings
from mmlongbench.task.task import task_fault


class Tale(mt.Builder[mt.Row]):
    """A builder that keeps its contract."""

    row_type: ClassVar[type[mt.Row]] = mt.Row
    spec = mt.TaskSpec(mt.FilePattern("tales/{name}_K{k}.jsonl"), "sub_em")

    def draft(self, row: mt.Row, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        raise NotImplementedError

    def record(self, example: mt.PackedExample) -> mt.Record:
        raise NotImplementedError

    def prompt(self, record: mt.Record) -> mt.Prompt:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Slotted(Tale):
    """A builder that is a dataclass."""

    dataset: str
    options: mt.Options


class Half(Metric):
    """A metric that keeps its contract."""

    name = "half"

    def score(self, asked: ScoringInput) -> Score:
        return Score(0.5)


def test_a_task_of_full_prompts_takes_no_corpus() -> None:
    text = {"name": "gov", "builder": "summary", "reader": "govreport", "source": "sample"}
    spec = DatasetSpec.model_validate({**text, "corpus": "passages"})
    with pytest.raises(ManifestError, match=r"^dataset 'gov': builder 'summary' takes no corpus: TaskSpec.full_"):
        check_plugins(spec, bind_builder(spec))


OUTSIDE = (
    "../../{name}_{k}.jsonl",
    "/tmp/{name}_{k}.jsonl",
    "a/../{name}_{k}.jsonl",
    "a//{name}_{k}.jsonl",
    "./{name}_{k}.jsonl",
    "C:/{name}_{k}.jsonl",
    "..\\{name}_{k}.jsonl",
    "a\n{name}_{k}.jsonl",
    "{name}_{k}.exe",
    "{name}.jsonl",
    "{k}.jsonl",
    "{name}_{k}_{seed}.jsonl",
    "{name}_{k}_{name.__class__}.jsonl",
    "{name}_{k}_{.jsonl",
)


@pytest.mark.parametrize("template", OUTSIDE)
def test_no_file_is_named_outside_a_release(template: str) -> None:
    letters: Any = own(mt.Task, metric="sub_em", files=template, row_type=Letter)
    plain, good = mt.FilePattern(template), mt.FilePattern("tales/{name}_K{k}.jsonl")
    spec = DatasetSpec.model_validate({"name": "gov", "builder": "summary", "reader": "govreport", "source": "sample"})
    faults = [
        _refusal(spec, mt.TaskSpec(plain, "sub_em")),
        _refusal(spec, mt.TaskSpec(good, "sub_em", bundle=mt.Bundle(plain, mt.JsonLines()))),
        task_fault(letters),
    ]
    assert f"files {plain.fault}" in faults[0]
    assert f"bundle.files {plain.fault}" in faults[1]
    assert faults[2] == f"'files' {plain.fault}"
    assert "expected a path with {name} and {k}" in plain.fault
    assert good.fault == ""


def test_names_of_files_that_are_a_text_are_refused() -> None:
    spec = DatasetSpec.model_validate({"name": "gov", "builder": "summary", "reader": "govreport", "source": "sample"})
    files: Any = "tales/{name}_K{k}.jsonl"
    assert "files: 'tales/{name}_K{k}.jsonl' is not a FilePattern" in _refusal(spec, mt.TaskSpec(files, "sub_em"))


def _refusal(spec: DatasetSpec, declared: mt.TaskSpec) -> str:
    builder = own(Tale, spec=declared)("gov", mt.Options())
    with pytest.raises(PluginCallError) as caught:
        check_plugins(spec, builder)
    return str(caught.value)


class Letter(mt.Row):
    """A row of a table."""

    text: str


def own(*bases: type, **members: object) -> type:
    """A subclass with members of its own."""
    return ABCMeta("Own", bases, members)


def a_method(self: object, *given: object) -> tuple[()]:
    return ()


@pytest.mark.parametrize(
    ("kind", "loaded"),
    [
        ("builder", Tale),
        ("metric", Half),
        ("builder", own(Tale, needles=staticmethod(a_method), notes="of its own", cluster=classmethod(a_method))),
        ("builder", own(Tale, contexts=3)),
        ("builder", Slotted),
        ("builder", own(Tale, variants=property(a_method), spec=DynamicClassAttribute(a_method))),
        ("metric", own(Half, notes=DynamicClassAttribute(a_method))),
        ("metric", own(Half, __slots__=("profile", "follows"))),
        ("metric", own(Half, notes=("a note",), concurrency=property(a_method))),
        ("metric", own(Half, profile="paper", follows="a paper", __init__=a_method)),
    ],
)
def test_a_class_that_keeps_its_contract_has_no_fault(kind: str, loaded: type) -> None:
    assert contract_fault(kind, loaded) == ""


@pytest.mark.parametrize(
    ("kind", "loaded", "said"),
    [
        ("builder", mt.Row, "is not a subclass of mmlongbench.task.builder.Builder"),
        ("reader", Tale, "is not a subclass of mmlongbench.task.reader.Reader"),
        ("builder", Tale("a", mt.Options()), "is not a subclass of mmlongbench.task.builder.Builder"),
        ("builder", own(mt.Builder, draft=a_method), "lacks prompt, record, row_type, spec, which a builder needs"),
        ("metric", own(Metric, score=a_method), "lacks name, which a metric needs"),
        ("builder", own(SharedContextBuilder, row_type=mt.Row), "lacks contexts, draft, prompt, record, spec, which"),
        (
            "builder",
            own(Tale, row_type=dict),
            "'row_type' is <class 'dict'>, expected a subclass of mmlongbench.task.row",
        ),
        ("builder", own(Tale, row_type="Row"), "'row_type' is 'Row', expected a subclass of mmlongbench.task.rows.Row"),
        (
            "builder",
            own(Tale, options_type=5),
            "'options_type' is 5, expected a subclass of mmlongbench.task.spec.Opti",
        ),
        (
            "builder",
            own(Tale, contexts=a_method),
            "has a method 'contexts', but is not a subclass of mmlongbench.task.",
        ),
        (
            "builder",
            own(Tale, suspects=a_method),
            "has a method 'suspects', but is not a subclass of mmlongbench.task.",
        ),
        ("metric", own(Half, totals=a_method), "has a method 'totals', but is not a subclass of mmlongbench.task.m"),
        (
            "metric",
            own(own(Half, totals=a_method)),
            "has a method 'totals', but is not a subclass of mmlongbench.task.m",
        ),
        ("builder", own(Tale, needles=1), "'needles' must be a method, as in every builder"),
        ("builder", own(Tale, spec=a_method), "'spec' must be a property or a value, as in every builder"),
        ("builder", own(Tale, variants=a_method), "'variants' must be a value of the class, as in every builder"),
        ("metric", own(Half, name=a_method), "'name' must be a value of the class, as in every metric"),
        (
            "metric",
            own(Half, profiles=property(a_method)),
            "'profiles' must be a value of the class, as in every metric",
        ),
        ("metric", own(Half, notes=a_method), "'notes' must be a value or a property, as in every metric"),
        ("metric", own(Half, concurrency=a_method), "'concurrency' must be a value or a property, as in every metric"),
        ("metric", own(Half, profile="paper"), "sets 'profile', which __init__ of mmlongbench.task.metric.Metric sets"),
    ],
)
def test_a_class_that_keeps_no_contract_is_refused_by_name(kind: str, loaded: object, said: str) -> None:
    assert said in contract_fault(kind, loaded)


class Leaves(mt.Reader[mt.Row]):
    """A reader that keeps its contract."""

    row_type: ClassVar[type[mt.Row]] = mt.Row
    sources: ClassVar[tuple[str, ...]] = ("leaves",)
    optional_sources: ClassVar[tuple[str, ...]] = ("more",)
    image_folder: ClassVar[str] = "leaves"

    def raw_rows(self, sources: mt.SourcePaths) -> Any:
        raise NotImplementedError

    def row(self, raw: mt.RawRow, sources: mt.SourcePaths) -> mt.Row:
        raise NotImplementedError


@pytest.mark.parametrize(
    "forms", [{}, {"leaves": "A folder."}, {"more": "A file.", "leaves": ""}, MappingProxyType({})]
)
def test_texts_about_sources_and_fields_are_mappings(forms: object) -> None:
    assert contract_fault("reader", own(Leaves, source_forms=forms)) == ""
    assert contract_fault("builder", own(Tale, record_fields=forms)) == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["leaves"], "is ['leaves'], expected a mapping from names to texts"),
        ("A folder.", "is 'A folder.', expected a mapping from names to texts"),
        (None, "is None, expected a mapping from names to texts"),
        ({"leaves": 5}, "has 'leaves': 5, expected a name and a text"),
        ({5: "A folder."}, "has 5: 'A folder.', expected a name and a text"),
        (property(a_method), "must be a value of the class, as in every"),
        (a_method, "must be a value of the class, as in every"),
    ],
)
def test_other_texts_about_sources_and_fields_are_refused(given: object, said: str) -> None:
    assert f"'source_forms' {said}" in contract_fault("reader", own(Leaves, source_forms=given))
    assert said in contract_fault("builder", own(Tale, record_fields=given))


def test_the_form_of_no_source_is_refused() -> None:
    said = contract_fault("reader", own(Leaves, source_forms={"leafs": "A folder."}))
    assert said.endswith("'source_forms' has 'leafs', which is no source of it; its sources are leaves, more")
    computed = own(Leaves, source_forms={"a": "b"}, sources=property(a_method))
    assert contract_fault("reader", computed) == ""  # its sources are known only from an object


def test_totals_of_an_object_are_refused() -> None:
    """They are called on the class, because scores that were read from a file have no metric object."""
    said = contract_fault("metric", own(Half, MetricWithTotals, totals=a_method))
    assert "'totals' must be a class method" in said
    assert contract_fault("metric", own(Half, MetricWithTotals, totals=classmethod(a_method))) == ""
    assert contract_fault("metric", own(Half, MetricWithTotals, totals=staticmethod(a_method))) == ""


def test_a_class_that_is_registered_is_no_subclass() -> None:
    registered = ABCMeta("Registered", (), {})
    mt.Builder.register(registered)  # type: ignore[arg-type]
    SharedContextBuilder.register(Tale)
    assert contract_fault("builder", Tale) == ""
    assert "is not a subclass of mmlongbench.task.builder.Builder" in contract_fault("builder", registered)


def test_an_examining_builder_needs_both_of_its_methods() -> None:
    kind = own(Tale, ExaminingBuilder, suspects=a_method)
    assert "lacks examined_documents" in contract_fault("builder", kind)


def test_every_kind_of_plugin_has_a_contract() -> None:
    assert CONTRACTS.keys() | {"sample"} == GROUPS.keys()


def draw_two(of: str, folder: Path) -> dict[str, Path]:
    return {of: folder}


@pytest.mark.parametrize("loaded", [partial(draw_two, "tiles"), MethodType(draw_two, "tiles"), dict])
def test_a_sample_is_any_function_of_a_folder_and_no_class(loaded: object) -> None:
    said = contract_fault("sample", loaded)
    assert said == ("<class 'dict'> is not a function that draws a sample into a folder" if loaded is dict else "")


def test_a_sample_that_asks_for_more_than_a_folder_is_refused() -> None:
    said = "it cannot be called with a folder alone: missing a required argument: 'folder'"
    assert contract_fault("sample", draw_two) == said


def test_a_metric_that_does_not_call_the_init_of_its_base_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(self: object, settings: Settings) -> None:
        """Keep nothing."""

    kind: Any = own(Half, __init__=forgotten)
    monkeypatch.setattr(running, "metric_type", lambda name: kind)
    with ExitStack() as stack, pytest.raises(PluginCallError, match=r"metric 'half': __init__\(\): AttributeError"):
        running._open_metrics(["half"], Run("model", ("half",), Settings()), stack)

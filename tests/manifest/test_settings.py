from pathlib import Path

import pytest
from tiny import build, write_manifest

from mmlongbench.errors import ManifestError
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.builtin_manifests import find_manifest
from mmlongbench.manifest.loading import load_manifest, narrowed
from mmlongbench.manifest.model import DatasetSpec, Manifest

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


def test_a_setting_may_leave_out_the_name_of_the_only_dataset(source: Path) -> None:
    assert only(source, "seed=7").seed == only(source, "mmlongdoc.seed=7").seed == 7
    assert only(source, " seed =8").seed == 8
    assert only(source, "seed=7", "seed=9").seed == 9


def test_a_setting_reaches_any_depth_and_leaves_the_rest(source: Path) -> None:
    dataset = only(source, "counter.image.patch=16", "sample.by=doc", "pages.dpi=72", "options.page_label=printed")
    assert (dataset.counter.image.patch, dataset.counter.image.unshuffle) == (16, 2)
    assert (dataset.sample.by, dataset.sample.n) == ("doc", None)
    assert (dataset.pages.dpi, dataset.pages.quality) == (72, 90)
    assert dataset.options["page_label"] == "printed"
    assert only(source, "lengths=[8K, 1M]").lengths == (8192, 1048576)
    assert only(source, "licence=a=b").licence == "a=b"


def test_with_several_datasets_a_setting_begins_with_a_name(two: Path) -> None:
    one, other = load_manifest(two, ("one.seed=7", "one.options.page_label=none")).datasets
    assert (one.seed, other.seed) == (7, 42)
    assert (one.options, other.options) == ({"page_label": "none"}, {"page_label": "index"})
    with pytest.raises(
        ManifestError, match=r"--set 'seed=7': must begin with the name of a dataset, one of one, two\.b"
    ):
        load_manifest(two, ("seed=7",))


def test_paths_of_settings_are_relative_to_where_they_are_typed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ("source.samples=x.json", "source.documents=/abs")
    expected = {"samples": (LocalPath(tmp_path / "x.json"),), "documents": (LocalPath(Path("/abs")),)}
    assert only(source, *settings, here=tmp_path).source == expected
    monkeypatch.chdir(tmp_path)
    assert only(source, *settings).source == expected
    assert only(source, "source=sample").source == "sample"


def test_a_setting_may_give_sources_to_a_manifest_that_draws_its_own(two: Path, tmp_path: Path) -> None:
    one, _ = load_manifest(two, ("one.source.samples=x",), tmp_path).datasets
    assert one.source == {"samples": (LocalPath(tmp_path / "x"),)}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("seed", "--set 'seed': expected dataset.key=value, such as source.documents=pdfs/"),
        ("", "--set '': expected dataset.key=value"),
        ("=3", "unknown key ''"),
        ("..=3", "unknown key ''"),
        ("sed=3", "unknown key 'sed'; did you mean 'seed'?"),
        ("pages.dpo=3", "unknown key 'pages.dpo'; did you mean 'dpi'?"),
        ("mmlongdoc=3", "unknown key 'mmlongdoc'"),
        ("other.seed=3", "unknown key 'other'"),
        ("seed=[1", "--set 'seed=[1': expected YAML"),
        ("seed=2024-99-99", "expected YAML, found month must be in 1..12"),
        ("seed=x", "seed: Input should be a valid integer"),
        ("seed.a=x", "seed: Input should be a valid integer"),
    ],
)
def test_a_bad_setting_is_one_line(setting: str, said: str, source: Path, tmp_path: Path) -> None:
    refused = build(source, tmp_path / "out", "--set", setting)
    assert refused.code == 2
    assert said in refused.err
    assert refused.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("lengths", ["8X", "", "0K", "1.5K", "-8K", "8K,", "8K 16K", "K", "1000", "8K,0", "٨K,x", "1T"])
def test_bad_lengths_are_refused_with_an_example(lengths: str, source: Path, tmp_path: Path) -> None:
    refused = build(source, tmp_path / "out", "--lengths", lengths)
    assert refused.code == 2
    assert "expected a whole number of K (1024 tokens) or M, at least 1K, such as 8K, 96K or 1M" in refused.err
    assert not (tmp_path / "out").exists()


def test_lengths_are_taken_once_in_the_order_they_are_given(tmp_path: Path) -> None:
    manifest = load_manifest(write_manifest(tmp_path / "m.yaml", sample={"n": 5}))
    (dataset,) = narrowed(manifest, "16k, 4K,16384,1m", None).datasets
    assert dataset.lengths == (16384, 4096, 1048576)
    assert dataset.sample.n == 5
    assert isinstance(narrowed(manifest, None, 3), Manifest)
    assert narrowed(manifest, None, 3).datasets[0].sample.n == 3
    assert narrowed(manifest, None, 9).datasets[0].sample.n == 5


@pytest.mark.parametrize(
    ("setting", "lengths"),
    [
        ("lengths=8K", (8192,)),
        ("lengths=8K, 16k", (8192, 16384)),
        ("lengths=[8K, 16K]", (8192, 16384)),
        ("lengths=8192", (8192,)),
    ],
)
def test_lengths_of_a_setting_may_be_written_as_those_of_the_option(
    setting: str, lengths: tuple[int, ...], tmp_path: Path
) -> None:
    (dataset,) = load_manifest(write_manifest(tmp_path / "m.yaml"), (setting,)).datasets
    assert dataset.lengths == lengths


def test_one_name_or_depth_of_a_setting_needs_no_brackets(tmp_path: Path) -> None:
    (dataset,) = load_manifest(write_manifest(tmp_path / "m.yaml"), ("exclude=ash, b", "placements=0.5")).datasets
    assert dataset.exclude == ("ash, b",)
    assert dataset.placements == (0.5,)


def test_a_sample_takes_the_place_of_the_corpus_too() -> None:
    path = find_manifest("viquae")
    (given,) = load_manifest(path).datasets
    assert given.corpus is not None
    for settings in (["source=sample"], {"source": "sample"}):
        (drawn,) = load_manifest(path, settings).datasets
        assert (drawn.source, drawn.corpus) == ("sample", None)
    (own,) = load_manifest(path, ["source=sample", "corpus=mine"]).datasets
    assert own.corpus == Path.cwd() / "mine"

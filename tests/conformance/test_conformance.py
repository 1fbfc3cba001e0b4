"""Every dataset of the samples keeps the rules of `mmlongbench check`, and its records are those of the goldens.

A new builder joins by a dataset in `manifests/quickstart.yaml`, or in another manifest of samples if the
layout of the public benchmark does not have its files.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from samples import FURTHER, Sources, every_sample_as_written, from_samples, left_out, samples_of
from tiny import command, environment, hashes, in_one_process

import mmlongbench as mm
import mmlongbench.task as mt
from mmlongbench.checking.check import check
from mmlongbench.manifest.loading import load_manifest, narrowed
from mmlongbench.manifest.plugins import builder_type, installed

GOLDENS = Path(__file__).parent / "goldens"
IS_WRITING = os.environ.get("MMLONGBENCH_GOLDENS") == "write"
DATASETS = {dataset["name"]: dataset for dataset in every_sample_as_written()["datasets"]}
OF_QUICKSTART = {dataset["name"] for dataset in samples_of("quickstart")["datasets"]}
pytestmark = pytest.mark.timeout(900)  # the first test builds what the others look at
every = pytest.mark.parametrize("name", DATASETS)


@pytest.fixture(scope="session")
def releases(families: Path, forms: Path) -> dict[str, Path]:
    """The release of each dataset."""
    return {name: families if name in OF_QUICKSTART else forms for name in DATASETS}


@pytest.fixture(scope="module")
def checked(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> mm.Checked:
    """A check of two questions of each dataset; the other process builds without workers, which is faster."""
    path = tmp_path_factory.mktemp("checked") / "samples.yaml"
    manifest = from_samples(every_sample_as_written(), sample)
    for dataset in manifest["datasets"]:
        if dataset["reader"] == "mmlongbench_doc":
            dataset["exclude"] = left_out()
    path.write_text(yaml.safe_dump(manifest), "utf-8")
    return check(narrowed(load_manifest(path), "8K,16K", 2), workers=1)


def test_every_installed_builder_and_reader_has_a_sample_dataset() -> None:
    assert {plugin.name for plugin in installed("builder")} == {each["builder"] for each in DATASETS.values()}
    assert {plugin.name for plugin in installed("reader")} == {each["reader"] for each in DATASETS.values()}


@pytest.mark.parametrize("builder", sorted({each["builder"] for each in DATASETS.values()}))
def test_every_builder_says_which_questions_share_evidence(builder: str) -> None:
    assert builder_type(builder).cluster is not mt.advanced.Builder.cluster


@pytest.mark.rare
@every
def test_every_dataset_keeps_every_rule_of_check(checked: mm.Checked, name: str) -> None:
    found = [finding for finding in checked.findings if finding.dataset == name]
    assert len(found) == 32
    assert [finding for finding in found if finding.status not in ("holds", "skipped")] == []


@every
def test_the_golden_prompt(releases: dict[str, Path], name: str) -> None:
    """One example a dataset, to be read: a diff shows what changed. MMLONGBENCH_GOLDENS=write writes them anew."""
    example = next(iter(mm.open_release(releases[name]).examples(name, "8K")))
    fields = (f'"{key}": {_short(json.dumps(value, ensure_ascii=False))}' for key, value in example.record.items())
    made = {
        "record.json": "{\n" + ",\n".join(fields) + "\n}\n",
        "prompt.txt": _short_text(example.prompt.rendered()) + "\n",
    }
    folder = GOLDENS / name
    if IS_WRITING:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in made.items():
            (folder / file).write_text(text, "utf-8")
    assert {file: (folder / file).read_text("utf-8") for file in made} == made
    assert all(text.count("\n") <= 60 for text in made.values())


def _short(line: str) -> str:
    """A line without its middle, where it holds the texts of pages."""
    return line if len(line) < 4_000 else f"{line[:600]} … {line[-300:]}"


def _short_text(text: str) -> str:
    """A prompt without its middle, where it is made of the texts of pages."""
    lines = text.split("\n")
    return text if len(lines) < 60 else "\n".join([*lines[:25], "…", *lines[-12:]])


def test_records_and_items_are_those_of_before_to_the_byte(families: Path, forms: Path) -> None:
    """The hash of each public file and of its items; MMLONGBENCH_GOLDENS=write writes them anew. The table of assets is
    not among them, because it has hashes of images, which depend on the encoder.
    """
    one, other = _hashes(families), _hashes(forms)
    assert one.keys().isdisjoint(other)
    made = one | other
    assert len(made) >= 2 * 2 * len(DATASETS)
    _same_as_before(made, "hashes_of_2.json")


@pytest.mark.rare
def test_records_and_items_of_more_questions_are_those_of_before_at_a_greater_length(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(from_samples(every_sample_as_written(), sample)), "utf-8")
    ran = command("build", tmp_path / "all.yaml", "--out", tmp_path / "out", "--limit", 12, "--lengths", "32K", "-q")
    assert ran.code == 0, ran.err
    _same_as_before(_hashes(tmp_path / "out"), "hashes_of_12.json")


def _hashes(release: Path) -> dict[str, str]:
    files = [*(release / "mmlb_data").rglob("*.*"), *(release / "items").rglob("*.parquet")]
    names = {path.relative_to(release).as_posix(): path for path in sorted(files) if path.name != "assets.parquet"}
    return {name: _hash(path) for name, path in names.items()}


def _same_as_before(made: dict[str, str], golden: str) -> None:
    kept = Path(__file__).with_name(golden)
    if IS_WRITING:
        kept.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    assert json.loads(kept.read_text("utf-8")) == made


def _hash(path: Path) -> str:
    """A hash of a file, or of a table's rows: the bytes of a Parquet file depend on who writes it."""
    data = json.dumps(pq.read_table(path).to_pylist()).encode() if path.suffix == ".parquet" else path.read_bytes()
    return hashlib.sha256(data).hexdigest()


@every
def test_no_answer_scores_next_to_nothing(releases: dict[str, Path], name: str) -> None:
    """`check` asks for less: an empty output must not score full."""
    if name == "m_longdoc":
        pytest.skip("a judge scores it")
    scorer = mm.scorer(releases[name], settings=mm.Settings(profile="ours"))  # the public code guesses
    for example in mm.open_release(releases[name]).examples(name, "16K"):
        for nothing in ("", "Not answerable"):
            score = scorer.score(example.key, nothing).score
            assert score == 1.0 if nothing == example.answer else score is not None and score < 0.5


def test_the_lock_and_the_table_of_assets_too_are_the_same_under_another_hash_seed(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    """They say where the sources are, so both builds read the same ones."""
    whole = samples_of("quickstart")
    datasets = [each for each in whole["datasets"] if each["name"] in ("vh_single", "retrieval-image", "food101")]
    few = {"defaults": {**whole["defaults"], "lengths": ["8K"]}, "datasets": datasets}
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(from_samples(few, sample)), "utf-8")
    for seed in (1, 2):
        given = environment(PYTHONHASHSEED=seed, PYTHONPATH=os.pathsep.join(sys.path))
        line = ("build", "few.yaml", "--out", f"out-{seed}", "--limit", 2, "--workers", 1, "-q")
        assert [(done.code, done.err) for done in in_one_process(line, env=given, cwd=tmp_path)] == [(0, "")]
    made, again = hashes(tmp_path / "out-1"), hashes(tmp_path / "out-2")
    assert {"build.lock.json", "items/assets.parquet"} < made.keys()
    assert made == again


@pytest.mark.rare
def test_other_workers_draw_and_build_the_same_bytes_in_another_process_under_another_hash_seed(
    families: Path, forms: Path, tmp_path: Path
) -> None:
    (tmp_path / "forms.yaml").write_text(yaml.safe_dump(samples_of(*FURTHER)), "utf-8")
    outs = {"quickstart": families, "forms.yaml": forms}
    lines = [("build", name, "--out", f"{name}-out", "--limit", 2, "--workers", 2, "-q") for name in outs]
    given = environment(PYTHONHASHSEED=7, PYTHONPATH=os.pathsep.join(sys.path))
    assert [done.code for done in in_one_process(*lines, env=given, cwd=tmp_path)] == [0, 0]
    for name, release in outs.items():
        made, expected = (hashes(each) for each in (tmp_path / f"{name}-out", release))
        for file in ("build.lock.json", "items/assets.parquet"):  # they say where the sources are
            del made[file], expected[file]
        assert made == expected != {}

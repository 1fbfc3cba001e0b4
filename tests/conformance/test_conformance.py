"""Every dataset of the samples keeps the rules of `mmlongbench check`, and its records are those of the goldens.

A new builder joins by a dataset in `manifests/quickstart.yaml`, or in another manifest of samples if the
layout of the public benchmark does not have its files.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from every_sample import FURTHER, every_sample_as_written, samples_of
from once import once
from samples import Sources, from_samples
from tiny import command, environment, hashes

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
def forms(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two questions of each sample that the quickstart does not have, at its lengths."""

    def make(folder: Path) -> None:
        (folder / "forms.yaml").write_text(yaml.safe_dump(from_samples(samples_of(*FURTHER), sample)), "utf-8")
        built = command("build", folder / "forms.yaml", "--out", folder / "release", "--limit", 2)
        assert built.code == 0, built.err

    return once(tmp_path_factory, "forms", make) / "release"


@pytest.fixture(scope="session")
def releases(families: Path, forms: Path) -> dict[str, Path]:
    """The release of each dataset."""
    return {name: families if name in OF_QUICKSTART else forms for name in DATASETS}


@pytest.fixture(scope="module")
def checked(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> mm.Checked:
    """A check of five questions of each dataset; the other process builds without workers, which is faster."""
    path = tmp_path_factory.mktemp("checked") / "samples.yaml"
    path.write_text(yaml.safe_dump(from_samples(every_sample_as_written(), sample)), "utf-8")
    return check(narrowed(load_manifest(path), "8K,16K", 5), workers=1)


def test_every_installed_builder_and_reader_has_a_sample_dataset() -> None:
    assert {plugin.name for plugin in installed("builder")} == {each["builder"] for each in DATASETS.values()}
    assert {plugin.name for plugin in installed("reader")} == {each["reader"] for each in DATASETS.values()}


@pytest.mark.parametrize("builder", sorted({each["builder"] for each in DATASETS.values()}))
def test_every_builder_says_which_questions_share_evidence(builder: str) -> None:
    assert builder_type(builder).cluster is not mt.Builder.cluster


@pytest.mark.rare
@every
def test_every_dataset_keeps_every_rule_of_check(checked: mm.Checked, name: str) -> None:
    found = [finding for finding in checked.findings if finding.dataset == name]
    assert len(found) == 20
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


@pytest.mark.parametrize("questions", [2, pytest.param(12, marks=pytest.mark.rare)])
def test_records_and_items_are_those_of_before_to_the_byte(
    questions: int, families: Path, forms: Path, sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    """The hash of each public file and of its items; MMLONGBENCH_GOLDENS=write writes them anew. The table of assets is
    not among them, because it has hashes of images, which depend on the encoder.
    """
    built, kept = [families, forms], Path(__file__).with_name(f"hashes_of_{questions}.json")
    if questions == 12:
        built = [tmp_path / "quickstart", tmp_path / "further"]
        for out, names in zip(built, (("quickstart",), FURTHER), strict=True):
            out.with_suffix(".yaml").write_text(yaml.safe_dump(from_samples(samples_of(*names), sample)), "utf-8")
            options = ("--limit", questions, "--lengths", "8K,16K,32K")
            ran = command("build", out.with_suffix(".yaml"), "--out", out, *options)
            assert ran.code == 0, ran.err
    made: dict[str, str] = {}
    for release in built:
        for path in sorted([*(release / "mmlb_data").rglob("*.*"), *(release / "items").rglob("*.parquet")]):
            name = path.relative_to(release).as_posix()
            if path.name != "assets.parquet":
                assert name not in made
                made[name] = _hash(path)
    if IS_WRITING:
        kept.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    assert len(made) >= 2 * 2 * len(DATASETS)
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


@pytest.mark.rare
def test_the_same_bytes_under_another_hash_seed_more_workers_and_relative_paths(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    """Samples are drawn once here; that they are the same under another hash seed is tested beside them."""
    drawn = [path for dataset in DATASETS.values() for path in sample(dataset["reader"]).values()]
    root = Path(os.path.commonpath(drawn))
    for number, where in enumerate((tmp_path, root)):
        manifest = from_samples(every_sample_as_written(), sample)
        for dataset in manifest["datasets"] if where == root else ():
            dataset["source"] = {key: str(Path(path).relative_to(root)) for key, path in dataset["source"].items()}
            if "corpus" in dataset:
                dataset["corpus"] = str(Path(dataset["corpus"]).relative_to(root))
        (where / f"own-{number}.yaml").write_text(yaml.safe_dump(manifest), "utf-8")
        words = ["build", f"own-{number}.yaml", "--limit", "2", "--lengths", "8K", "--out", str(tmp_path / f"{number}")]
        words += ["--workers", str(number + 1), "-q"]
        given = environment(PYTHONHASHSEED=number, PYTHONPATH=os.pathsep.join(sys.path))
        subprocess.run([sys.executable, "-m", "mmlongbench", *words], env=given, check=True, cwd=where)
    one, other = hashes(tmp_path / "0"), hashes(tmp_path / "1")
    assert len(one) > 10
    assert one == other

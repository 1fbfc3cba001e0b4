"""The rules of `mmlongbench check`, held to every builder of this project on the sample of its reader.

A new builder joins by a dataset in `manifests/quickstart.yaml`, or in another manifest of samples if the
layout of the public benchmark does not have its files.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from built import run_stages
from every_sample import every_sample, every_sample_as_written

from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.finish import finish
from mmlongbench.building.session import Session
from mmlongbench.building.stages.records import finished_record
from mmlongbench.checking.again import Difference, RecheckResult, difference, hashes, problems_of
from mmlongbench.checking.findings import Failure, Outcome
from mmlongbench.checking.ids import ids_are_unique
from mmlongbench.checking.purity import rows_are_the_same_twice
from mmlongbench.checking.rules import BYTES, RULES, Rule
from mmlongbench.checking.world import SmallRelease, World
from mmlongbench.io.atomic import sha256_of
from mmlongbench.io.locations import LocalPath
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.loading import narrowed
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.registry import installed, metric_type, sample_function
from mmlongbench.release.layout import DATA, ITEMS
from mmlongbench.task.builder import Builder
from mmlongbench.task.inputs import scoring_input
from mmlongbench.task.metric import Settings

GOLDENS = Path(__file__).parent / "goldens"
HASHES = Path(__file__).parent / "hashes.json"
LENGTHS = (8 * K, 16 * K, 32 * K)
QUIET = Progress(is_shown=False)
pytestmark = pytest.mark.slow


def quickstart(limit: int) -> Manifest:
    return narrowed(every_sample(), "8K,16K,32K", limit)


Drawn = dict[str, dict[str, Path]]
"""The sources and the corpus of each dataset."""


NAMES = [dataset.name for dataset in quickstart(1).datasets]


@dataclass(frozen=True)
class Worlds:
    """A release of all sample datasets, and what the rules look at of each; its working folder is kept."""

    release: Path
    session: Session
    of: dict[str, World]


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """The samples of the readers, each drawn once."""
    folder, samples = tmp_path_factory.mktemp("samples"), Drawn()
    for dataset in quickstart(1).datasets:
        if dataset.reader not in samples:
            (folder / dataset.reader).mkdir()
            samples[dataset.reader] = dict(sample_function(dataset.reader)(folder / dataset.reader))
    return {dataset.name: samples[dataset.reader] for dataset in quickstart(1).datasets}


@pytest.fixture(scope="session")
def worlds(drawn: Drawn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    out, manifest = tmp_path_factory.mktemp("conformance") / "release", quickstart(12)
    given = (_sources(drawn, dataset.name) for dataset in manifest.datasets)
    specs = tuple(each.model_copy(update=more) for each, more in zip(manifest.datasets, given, strict=True))
    with run_stages(Manifest(datasets=specs), out) as session:
        finish(list(session.plans.values()), session, LocalExecutor(1, QUIET))
        problems, released = problems_of(out), SmallRelease(out)
        found = {}
        for name in NAMES:
            audit = tuple(each for each in problems if each.dataset in ("", name))
            found[name] = World(
                session.dataset(name), session.questions(name), LENGTHS, released, RecheckResult(audit=audit)
            )
        yield Worlds(out, session, found)


def _sources(drawn: Drawn, name: str) -> dict[str, Any]:
    """The values of a dataset that say where its sources are."""
    source = dict(drawn[name])
    corpus = source.pop("corpus", None)
    return {"corpus": corpus, "source": {name: (LocalPath(path),) for name, path in source.items()}}


every = pytest.mark.parametrize("name", NAMES)


def test_every_installed_builder_and_reader_has_a_sample_dataset() -> None:
    assert {plugin.name for plugin in installed("builder")} == {d.builder for d in quickstart(1).datasets}
    assert {plugin.name for plugin in installed("reader")} == {d.reader for d in quickstart(1).datasets}


@every
def test_rows_are_the_same_twice(worlds: Worlds, name: str) -> None:
    plan = worlds.session.plan(name)
    assert failures(rows_are_the_same_twice(plan.spec.reader, plan.sources)) == []


@every
def test_ids_are_unique(worlds: Worlds, name: str) -> None:
    assert failures(ids_are_unique(worlds.session, name)) == []


@every
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.text != BYTES], ids=lambda rule: rule.find.__name__)
def test_every_dataset_keeps_every_rule_of_check(worlds: Worlds, rule: Rule, name: str) -> None:
    """In place of the other process of `check`, there is one audit of all datasets; a test below builds them again."""
    assert failures(rule.find(worlds.of[name])) == []


def failures(found: Iterable[Outcome]) -> list[Failure]:
    """Return the failures of a rule; notes and what was skipped are left out."""
    return [outcome for outcome in found if isinstance(outcome, Failure)]


@every
def test_the_golden_prompt(worlds: Worlds, name: str) -> None:
    """One example a dataset, to be read: a diff shows what changed. MMLONGBENCH_GOLDENS=write writes them anew."""
    world = worlds.of[name]
    example = world.examples(8 * K)[0]
    if example.prompt.text.count("\n") >= 60 and example.prompt.images:
        example = world.examples((4 if world.is_shared else 2) * K)[0]
    record = finished_record(world.dataset, example)
    fields = (f'"{key}": {_short(json.dumps(value, ensure_ascii=False))}' for key, value in record.items())
    made = {
        "record.json": "{\n" + ",\n".join(fields) + "\n}\n",
        "prompt.txt": _short_text(example.prompt.rendered()) + "\n",
    }
    folder = GOLDENS / name
    if os.environ.get("MMLONGBENCH_GOLDENS") == "write":
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in made.items():
            (folder / file).write_text(text, "utf-8")
    assert {file: (folder / file).read_text("utf-8") for file in made} == made
    assert all(text.count("\n") <= 60 for text in made.values())


def test_records_and_items_are_those_of_before_to_the_byte(worlds: Worlds) -> None:
    """The hash of each public file and of its items; MMLONGBENCH_GOLDENS=write writes them anew. The table of assets is
    not among them, because it has hashes of images, which depend on the encoder.
    """
    files = [
        path for folder in (DATA, ITEMS) for path in sorted((worlds.release / folder).rglob("*")) if path.is_file()
    ]
    made = {path.relative_to(worlds.release).as_posix(): _hash(path) for path in files if path.name != "assets.parquet"}
    if os.environ.get("MMLONGBENCH_GOLDENS") == "write":
        HASHES.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    assert len(made) > 2 * len(NAMES) * len(LENGTHS)
    assert json.loads(HASHES.read_text("utf-8")) == made


def _hash(path: Path) -> str:
    """A hash of a file, or of a table's rows: the bytes of a Parquet file depend on who writes it."""
    import pyarrow.parquet as pq

    if path.suffix != ".parquet":
        return sha256_of(path)
    return hashlib.sha256(json.dumps(pq.read_table(path).to_pylist()).encode()).hexdigest()


def _short(line: str) -> str:
    """A line without its middle, where it holds the texts of pages."""
    return line if len(line) < 15000 else f"{line[:600]} … {line[-300:]}"


def _short_text(text: str) -> str:
    """A prompt without its middle, where it is made of the texts of pages."""
    lines = text.split("\n")
    return text if len(lines) < 60 else "\n".join([*lines[:25], "…", *lines[-12:]])


def test_the_same_bytes_under_another_hash_seed_more_workers_and_relative_paths(drawn: Drawn, tmp_path: Path) -> None:
    """Samples are drawn once here; that they are the same under another hash seed is tested beside them."""
    folder = Path(os.path.commonpath([path for paths in drawn.values() for path in paths.values()]))
    relative = {name: {key: path.relative_to(folder) for key, path in paths.items()} for name, paths in drawn.items()}
    for number, (given, where) in enumerate([(drawn, tmp_path), (relative, folder)]):
        _build(given, where, tmp_path / f"{number}", f"{number}", number + 1)
    assert difference(tmp_path / "0", tmp_path / "1") == Difference()
    assert len(hashes(tmp_path / "0")) > 10


def _build(drawn: Drawn, folder: Path, out: Path, seed: str, workers: int) -> None:
    """Build a release in a folder, where its manifest is."""
    manifest = every_sample_as_written()
    for dataset in manifest["datasets"]:
        dataset |= json.loads(json.dumps(_sources(drawn, dataset["name"]), default=str))
    (folder / "own.yaml").write_text(yaml.safe_dump(manifest), "utf-8")
    command = [sys.executable, "-m", "mmlongbench", "build", "own.yaml", "--limit", "2", "--lengths", "8K"]
    environment: dict[str, Any] = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([*command, "--out", out, "--workers", str(workers), "-q"], env=environment, check=True, cwd=folder)


@every
def test_no_answer_scores_next_to_nothing(worlds: Worlds, name: str) -> None:
    """`check` asks for less: an empty output must not score full."""
    world = worlds.of[name]
    builder = world.dataset.builder
    if builder.spec.metric.startswith("judge-"):
        pytest.skip("judges score it")
    plain = metric_type(builder.spec.metric)(Settings(profile="ours"))  # the public code guesses if there is no answer
    for example in world.examples(16 * K):
        asked = scoring_input(builder, world.record(example), builder.spec.files.write(name, 16 * K, 1, 1))
        for nothing in ("", "Not answerable"):
            found = plain.score(replace(asked, prediction=nothing)).score
            assert found == 1.0 if nothing == asked.gold else found is not None and found < 0.5


@every
def test_a_task_names_its_evidence_or_returns_none(worlds: Worlds, name: str) -> None:
    assert type(worlds.of[name].dataset.builder).cluster is not Builder.cluster

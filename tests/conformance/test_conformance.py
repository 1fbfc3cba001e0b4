"""The rules that every builder must keep; each builds from the sample of its reader.

A new builder joins by a dataset in `manifests/quickstart.yaml`.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from built import run_stages

from mmlongbench.building.dataset import Dataset
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.finish import finish
from mmlongbench.building.stages.records import finished_record, pack_contexts, pack_row
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.corpus.retrieval.text import contains
from mmlongbench.io.atomic import sha256_of
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.builtin_manifests import find_manifest
from mmlongbench.manifest.model import Manifest, load_manifest, narrowed
from mmlongbench.manifest.registry import installed, metric_type, sample_function
from mmlongbench.packing.pack import NothingAskedError, PackedExample
from mmlongbench.release.audit import audit_release
from mmlongbench.release.images import ImageSizes
from mmlongbench.release.layout import DATA, IMAGES, ITEMS
from mmlongbench.release.loading import load_release
from mmlongbench.scoring.joining import scorable_files
from mmlongbench.task.builder import Builder, SharedContextBuilder
from mmlongbench.task.inputs import scoring_input
from mmlongbench.task.metric import Settings
from mmlongbench.task.rows import Row

GOLDENS = Path(__file__).parent / "goldens"
HASHES = Path(__file__).parent / "hashes.json"
LENGTHS = (8 * K, 16 * K, 32 * K)
QUIET = Progress(is_shown=False)
pytestmark = pytest.mark.slow


def quickstart(limit: int) -> Manifest:
    manifest = load_manifest(find_manifest("quickstart"))
    return narrowed(manifest, "8K,16K,32K", limit)


Drawn = dict[str, dict[str, Path]]
"""The sources and the corpus of each dataset."""


NAMES = [dataset.name for dataset in quickstart(1).datasets]


@dataclass(frozen=True)
class World:
    """A release of all sample datasets, and the working folder it was made in, kept."""

    release: Path
    datasets: dict[str, Dataset]
    rows: dict[str, tuple[Row, ...]]
    packed: dict[tuple[str, int], list[list[PackedExample]]]

    def examples(self, name: str, length: int) -> list[PackedExample]:
        return [example for examples in self.packed_rows(name, length) for example in examples]

    def packed_rows(self, name: str, length: int) -> list[list[PackedExample]]:
        """The examples of each row, or of each shared context; packed once."""
        if (name, length) not in self.packed:
            self.packed[name, length] = list(self._pack(self.datasets[name], self.rows[name], length))
        return self.packed[name, length]

    @staticmethod
    def _pack(dataset: Dataset, rows: tuple[Row, ...], length: int) -> Iterator[list[PackedExample]]:
        for row in () if is_shared(dataset) else rows:
            yield pack_row(dataset, row, length)
        for _, made in pack_contexts(dataset, rows, length) if is_shared(dataset) else ():
            if not isinstance(made, NothingAskedError):
                assert isinstance(made, list), made
                yield made


def is_shared(dataset: Dataset) -> bool:
    """Whether many questions share a context, of which each length has its own."""
    return isinstance(dataset.builder, SharedContextBuilder)


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
def world(drawn: Drawn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    out, manifest = tmp_path_factory.mktemp("conformance") / "release", quickstart(12)
    given = (_sources(drawn, dataset.name) for dataset in manifest.datasets)
    specs = tuple(each.model_copy(update=more) for each, more in zip(manifest.datasets, given, strict=True))
    with run_stages(Manifest(datasets=specs), out) as session:
        finish(list(session.plans.values()), session, LocalExecutor(1, QUIET))
        datasets = {name: session.dataset(name) for name in NAMES}
        yield World(out, datasets, {name: session.questions(name) for name in NAMES}, {})


def _sources(drawn: Drawn, name: str) -> dict[str, Any]:
    """The values of a dataset that say where its sources are."""
    source = dict(drawn[name])
    return {"corpus": source.pop("corpus", None), "source": source}


every = pytest.mark.parametrize("name", NAMES)


def test_every_installed_builder_and_reader_has_a_sample_dataset() -> None:
    assert {plugin.name for plugin in installed("builder")} == {d.builder for d in quickstart(1).datasets}
    assert {plugin.name for plugin in installed("reader")} == {d.reader for d in quickstart(1).datasets}


@every
def test_rows_are_the_same_twice(world: World, name: str) -> None:
    dataset = world.datasets[name]
    reader, sources = dataset.reader, dataset.plan.sources
    assert list(read_rows(reader, sources)) == list(read_rows(reader, sources))


@every
def test_a_draft_is_pure(world: World, name: str) -> None:
    dataset = world.datasets[name]
    for row in world.rows[name]:
        first, again = (dataset.builder.draft(row, dataset.sources, dataset.draws(row.id)) for _ in range(2))
        assert first.required == again.required
        assert first.questions == again.questions
        assert (
            list(first.take_order.units(8 * K))
            == list(first.take_order.units(8 * K))
            == list(again.take_order.units(8 * K))
        )


@every
@pytest.mark.parametrize("length", LENGTHS)
def test_every_example_is_within_its_budget_and_counts_to_the_token(world: World, name: str, length: int) -> None:
    pricer = world.datasets[name].pricer
    for example in world.examples(name, length):
        assert example.count.total + example.reserve <= length
        assert pricer.whole(example.prompt) == example.count


@every
def test_the_prompt_is_rebuilt_from_the_record_alone(world: World, name: str) -> None:
    dataset = world.datasets[name]
    for example in world.examples(name, 8 * K):
        record = json.loads(json.dumps(finished_record(dataset, example)))
        assert dataset.builder.prompt(record) == example.prompt
        assert dataset.builder.prompt({**record, "a field of somebody else's": 1}) == example.prompt


def _worst_error(example: PackedExample) -> float:
    """Return the distance of a needle from its requested depth, in halves of the largest unit; it must be at most 1."""
    hay = [item.count.total + 2 for item in example.items if item.unit.place is not None]
    total = sum(hay)
    return max(abs(n.requested - n.achieved) * total / (max(hay) / 2) for n in example.needles)


@every
def test_every_required_unit_stands_once_and_needles_at_their_depths(world: World, name: str) -> None:
    dataset = world.datasets[name]
    if is_shared(dataset):
        return
    for row, examples in zip(world.rows[name], world.packed_rows(name, 16 * K), strict=True):
        draft = dataset.builder.draft(row, dataset.sources, dataset.draws(row.id))
        for example in examples:
            times = Counter(unit.id for host in example.units for unit in (host, *host.needles))
            assert set(times.values()) == {1}
            assert {unit.id for unit in draft.required} <= times.keys()
            needles = [unit for unit in draft.required if unit.place is None]
            assert [needle.unit for needle in example.needles] == needles
            assert not needles or len(needles) > 1 or _worst_error(example) <= 1 + 1e-9


def _answers(record: dict[str, Any]) -> list[str]:
    given = record["answer"]
    return [str(answer) for answer in (given if isinstance(given, list) else [given])]


@every
def test_no_negative_holds_an_answer(world: World, name: str) -> None:
    for example in world.examples(name, 8 * K):
        negatives = [unit.text for unit in example.units if unit.role == "negative"]
        answers = _answers(world.datasets[name].builder.record(example)) if negatives else []
        assert answers or not negatives
        assert not [answer for answer in answers for text in negatives if contains(text, answer)]


@every
def test_no_slot_of_a_template_and_no_marker_is_left_over(world: World, name: str) -> None:
    for example in world.examples(name, 8 * K):
        assert "{" not in example.prompt.text.replace("{label}", "")
        assert "<image>" not in example.prompt.text


@every
def test_shorter_contexts_are_nested_in_longer_ones(world: World, name: str) -> None:
    dataset = world.datasets[name]
    if is_shared(dataset):
        return
    for row, *packed in zip(world.rows[name], *(world.packed_rows(name, length) for length in LENGTHS), strict=True):
        contexts = [examples[0] for examples in packed]
        for shorter, longer in pairwise(contexts):
            missing = {unit.id for unit in shorter.units} - {unit.id for unit in longer.units}
            both = [u.id for u in longer.units if u.place is not None and u.id in {v.id for v in shorter.units}]
            assert both == [u.id for u in shorter.units if u.place is not None and u.id not in missing]
            draft = world.datasets[name].builder.draft(
                row, world.datasets[name].sources, world.datasets[name].draws(row.id)
            )
            assert len(missing) <= (draft.closing.last if draft.closing else 0)


@every
def test_every_file_holds_the_same_questions(world: World, name: str) -> None:
    dataset = world.datasets[name]
    builder, ids = dataset.builder, []
    for length in LENGTHS:
        path = (
            world.release
            / DATA
            / builder.spec.files.write(name, length, len(world.rows[name]), len(dataset.placements()))
        )
        ids.append([record["id"] for _, record in builder.spec.format.unbundle(path)])
    if is_shared(dataset):  # a longer context shows more classes, and is asked about them
        assert all(set(shorter) <= set(longer) for shorter, longer in pairwise(ids))
    else:
        assert ids[0] == ids[1] == ids[2]


@every
@pytest.mark.parametrize("length", LENGTHS)
def test_shared_contexts_show_each_label_once_a_round_and_no_picture_twice(
    world: World, name: str, length: int
) -> None:
    dataset = world.datasets[name]
    for example in world.examples(name, length) if is_shared(dataset) else ():
        groups = [unit.group for unit in example.units]
        count = len(set(groups))
        rounds = [groups[start : start + count] for start in range(0, len(groups), count)]
        assert all(len(set(turn)) == len(turn) for turn in rounds)
        assert all(len(turn) == count for turn in rounds[:-1])
        assert len(set(example.prompt.images)) == len(example.prompt.images)
        assert example.question.group in groups


@pytest.fixture(scope="session")
def problems(world: World) -> dict[str, dict[str, dict[str, str]]]:
    """The findings of one audit, by dataset and file; findings that belong to no dataset are in each."""
    found = [audit for audit in audit_release(world.release, QUIET) if audit.problems]
    others = {audit.file: audit.first for audit in found if not audit.dataset}
    of = {name: {audit.file: audit.first for audit in found if audit.dataset == name} for name in NAMES}
    return {name: {**of[name], **others} for name in NAMES}


@every
def test_the_audit_finds_nothing_and_every_image_is_as_planned(
    world: World, problems: dict[str, dict[str, dict[str, str]]], name: str
) -> None:
    assert problems[name] == {}
    sizes, planned = ImageSizes(world.release / IMAGES), world.datasets[name].sources.sizes
    shown = {path for example in world.examples(name, 32 * K) for path in example.prompt.images}
    assert {path: sizes[path] for path in shown} == {path: planned[path] for path in shown}


@every
def test_the_golden_prompt(world: World, name: str) -> None:
    """One example a dataset, to be read: a diff shows what changed. MMLONGBENCH_GOLDENS=write writes them anew."""
    dataset = world.datasets[name]
    example = world.examples(name, 8 * K)[0]
    if example.prompt.text.count("\n") >= 60 and example.prompt.images:
        example = world.examples(name, (4 if is_shared(dataset) else 2) * K)[0]
    record = finished_record(dataset, example)
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


def test_records_and_items_are_those_of_before_to_the_byte(world: World) -> None:
    """The hash of each public file and of its items; MMLONGBENCH_GOLDENS=write writes them anew."""
    files = [path for folder in (DATA, ITEMS) for path in sorted((world.release / folder).rglob("*")) if path.is_file()]
    made = {path.relative_to(world.release).as_posix(): _hash(path) for path in files}
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
    hashes = [_built(drawn, tmp_path, tmp_path / "0", "0", 1), _built(relative, folder, tmp_path / "1", "1", 2)]
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) > 10


def _built(drawn: Drawn, folder: Path, out: Path, seed: str, workers: int) -> dict[str, str]:
    """The hash of each file of a release that is built in a folder, where its manifest is."""
    manifest = yaml.safe_load(find_manifest("quickstart").read_text("utf-8"))
    for dataset in manifest["datasets"]:
        dataset |= json.loads(json.dumps(_sources(drawn, dataset["name"]), default=str))
    (folder / "own.yaml").write_text(yaml.safe_dump(manifest), "utf-8")
    command = [sys.executable, "-m", "mmlongbench", "build", "own.yaml", "--limit", "2", "--lengths", "8K"]
    environment: dict[str, Any] = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([*command, "--out", out, "--workers", str(workers), "-q"], env=environment, check=True, cwd=folder)
    return {path.relative_to(out).as_posix(): sha256_of(path) for path in sorted(out.rglob("*")) if path.is_file()}


@every
def test_gold_answers_fed_back_score_full_and_no_answer_scores_nothing(world: World, name: str) -> None:
    builder = world.datasets[name].builder
    metric = metric_type(builder.spec.metric)(Settings())
    plain = metric_type(builder.spec.metric)(Settings(profile="ours"))  # the public code guesses if there is no answer
    opened = [each for each in scorable_files(load_release(world.release)) if each.builder.dataset == name]
    assert {each.file.length for each in opened} <= set(LENGTHS)
    for file in (each.file for each in opened if each.file.form and each.file.length == 16 * K):
        assert file.form is not None
        for _, record in file.form.unbundle(file.path):
            gold = builder.gold(record)
            asked = scoring_input(builder, record, file.name, _said(gold, metric.name))
            assert metric.score(asked).score == 1.0
            for nothing in ("", "Not answerable"):
                found = plain.score(replace(asked, prediction=nothing)).score
                assert found == 1.0 if nothing == gold else found is not None and found < 0.5


@every
def test_a_question_has_one_cluster_at_all_lengths_and_placements(world: World, name: str) -> None:
    builder = world.datasets[name].builder
    assert type(builder).cluster is not Builder.cluster  # a task of this project names its evidence or returns None
    found: dict[str, set[str]] = {}
    for file in load_release(world.release).files:
        if file.dataset is not None and file.dataset.builder.dataset == name and file.form:
            for _, record in file.form.unbundle(file.path):
                if "id" in record:
                    found.setdefault(str(record["id"]), set()).add(builder.cluster(record))
    assert found
    assert {len(clusters) for clusters in found.values()} == {1}


def _said(gold: Any, metric: str) -> str:
    """The prediction of a model that knows the answer."""
    if metric == "mc_acc":
        return chr(ord("A") + gold)
    return str(gold[0] if metric == "sub_em" and isinstance(gold, list) else gold)

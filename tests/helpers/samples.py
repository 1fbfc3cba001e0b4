"""The samples of readers, unpacked once in a session, their manifests, and releases built from them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from once import once
from tiny import command

from mmlongbench.manifest.plugins import sample_function
from mmlongbench.task.reader import SampleFiles

Sources = dict[str, Path]
"""The sources of a reader by name; a corpus is the source `corpus`."""
MANIFESTS = Path(__file__).parents[2] / "manifests"
FURTHER = ("quickstart-retrieved", "quickstart-forms")
"""The manifests of samples whose files have names of their own."""


def samples_of(*names: str) -> dict[str, Any]:
    """One manifest, as YAML has it, of the datasets of some manifests, which all have the same defaults."""
    first, *others = (yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text("utf-8")) for name in names)
    assert all(each["defaults"] == first["defaults"] for each in others)
    return {**first, "datasets": [spec for each in (first, *others) for spec in each["datasets"]]}


def every_sample_as_written() -> dict[str, Any]:
    """The manifest of all samples."""
    return samples_of("quickstart", *FURTHER)


def left_out() -> list[str]:
    """Eight of the twelve documents of MMLongBench-Doc's sample, to be excluded where four are enough."""
    (found,) = (spec["exclude"] for spec in samples_of(*FURTHER)["datasets"] if spec["name"] == "interleaved")
    return list(found)


def unpacked_sample(factory: pytest.TempPathFactory, reader: str) -> Sources:
    """Return the sources of a reader's sample, which is unpacked once in a session."""
    sample = sample_function(reader)
    assert isinstance(sample, SampleFiles)
    folder = once(factory, f"sample-{reader}", lambda folder: sample(folder))
    return {name: folder / path for name, path in sample.sources.items()}


def from_samples(manifest: dict[str, Any], sample: Callable[[str], Sources]) -> dict[str, Any]:
    """Return a manifest, as YAML has it, whose datasets have the unpacked samples as their sources."""
    datasets = []
    for dataset in manifest["datasets"]:
        sources = {name: str(path) for name, path in sample(dataset["reader"]).items()}
        corpus = {"corpus": sources.pop("corpus")} if "corpus" in sources else {}
        datasets.append({**dataset, "source": sources, **corpus})
    return {**manifest, "datasets": datasets}


def build_samples(manifest: dict[str, Any], sample: Callable[[str], Sources], folder: Path) -> None:
    """Build two questions of each dataset of a manifest of samples into `release` of a folder."""
    path = folder / "samples.yaml"
    path.write_text(yaml.safe_dump(from_samples(manifest, sample), sort_keys=False), "utf-8")
    built = command("build", path, "--out", folder / "release", "--limit", 2)
    assert built.code == 0, built.err

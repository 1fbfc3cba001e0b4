"""The samples of readers, drawn once in a session, their manifests, and releases built from them."""

import json
import os
import shutil
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import yaml
from once import once
from tiny import command

from mmlongbench.manifest.plugins import sample_function
from mmlongbench.task.reader import SampleFunction

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


def drawn_folder(factory: pytest.TempPathFactory, reader: str) -> Path:
    """Return a folder with a reader's sample and the places of its sources; it is drawn once."""

    def draw(folder: Path) -> None:
        (folder / "sample").mkdir()
        places = sample_function(reader)(folder / "sample")
        below = {name: str(path.relative_to(folder / "sample")) for name, path in places.items()}
        (folder / "places.json").write_text(json.dumps(below), "utf-8")

    return once(factory, f"sample-{reader}", draw)


def drawn_sample(factory: pytest.TempPathFactory, reader: str) -> Sources:
    """Return the sources of a reader's sample, which is drawn once in a session."""
    folder = drawn_folder(factory, reader)
    places: dict[str, str] = json.loads((folder / "places.json").read_text("utf-8"))
    return {name: folder / "sample" / path for name, path in places.items()}


def kept_samples(factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> None:
    """Let builds of this process take a copy of a sample that is drawn in place of drawing it again."""

    def drawing(reader: str) -> SampleFunction:
        if "options" in signature(own := sample_function(reader)).parameters:
            return own

        def draw(folder: Path) -> Sources:
            root = drawn_folder(factory, reader) / "sample"
            shutil.copytree(root, folder, copy_function=os.link, dirs_exist_ok=True)
            return {name: folder / path.relative_to(root) for name, path in drawn_sample(factory, reader).items()}

        return draw

    patch.setattr("mmlongbench.building.planning.sample_function", drawing)


def from_samples(manifest: dict[str, Any], sample: Callable[[str], Sources]) -> dict[str, Any]:
    """Return a manifest, as YAML has it, whose datasets have the drawn samples as their sources."""
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

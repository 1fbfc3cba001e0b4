"""The samples of readers, drawn once in a session, and the quickstart built from them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from once import once
from tiny import command

from mmlongbench.manifest.loading import find_manifest
from mmlongbench.manifest.plugins import sample_function

Sources = dict[str, Path]
"""The sources of a reader by name; a corpus is the source `corpus`."""


def drawn_sample(factory: pytest.TempPathFactory, reader: str) -> Sources:
    """Return the sources of a reader's sample; the first process of a session that needs them draws them."""

    def draw(folder: Path) -> None:
        (folder / "sample").mkdir()
        places = sample_function(reader)(folder / "sample")
        (folder / "places.json").write_text(json.dumps(places, default=str), "utf-8")

    folder = once(factory, f"sample-{reader}", draw)
    found: dict[str, str] = json.loads((folder / "places.json").read_text("utf-8"))
    return {name: Path(path) for name, path in found.items()}


def from_samples(manifest: dict[str, Any], sample: Callable[[str], Sources]) -> dict[str, Any]:
    """Return a manifest, as YAML has it, whose datasets have the drawn samples as their sources."""
    datasets = []
    for dataset in manifest["datasets"]:
        sources = {name: str(path) for name, path in sample(dataset["reader"]).items()}
        corpus = {"corpus": sources.pop("corpus")} if "corpus" in sources else {}
        datasets.append({**dataset, "source": sources, **corpus})
    return {**manifest, "datasets": datasets}


def build_quickstart(sample: Callable[[str], Sources], folder: Path) -> None:
    """Build two questions of each dataset of the quickstart into `release` of a folder."""
    manifest = from_samples(yaml.safe_load(find_manifest("quickstart").read_text("utf-8")), sample)
    path = folder / "quickstart.yaml"
    path.write_text(yaml.safe_dump(manifest, sort_keys=False), "utf-8")
    built = command("build", path, "--out", folder / "release", "--limit", 2)
    assert built.code == 0, built.err

"""The datasets of all samples: those of the quickstart, and those whose files have names of their own."""

from typing import Any

import yaml

from mmlongbench.manifest.builtin_manifests import find_manifest
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.manifest.model import Manifest

NAMES = ("quickstart", "quickstart-retrieved", "quickstart-forms")


def every_sample() -> Manifest:
    """The manifest of all samples."""
    first, *others = (load_manifest(find_manifest(name)) for name in NAMES)
    return first.model_copy(update={"datasets": tuple(spec for each in (first, *others) for spec in each.datasets)})


def every_sample_as_written() -> dict[str, Any]:
    """The same manifest as YAML has it; all have the same defaults."""
    first, *others = (yaml.safe_load(find_manifest(name).read_text("utf-8")) for name in NAMES)
    assert all(each["defaults"] == first["defaults"] for each in others)
    return {**first, "datasets": [spec for each in (first, *others) for spec in each["datasets"]]}

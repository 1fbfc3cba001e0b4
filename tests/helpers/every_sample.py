"""The datasets of all samples: those of the quickstart, and those whose files have names of their own."""

from pathlib import Path
from typing import Any

import yaml

MANIFESTS = Path(__file__).parents[2] / "manifests"
FURTHER = ("quickstart-retrieved", "quickstart-forms")


def samples_of(*names: str) -> dict[str, Any]:
    """One manifest, as YAML has it, of the datasets of some manifests, which all have the same defaults."""
    first, *others = (yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text("utf-8")) for name in names)
    assert all(each["defaults"] == first["defaults"] for each in others)
    return {**first, "datasets": [spec for each in (first, *others) for spec in each["datasets"]]}


def every_sample_as_written() -> dict[str, Any]:
    """The manifest of all samples."""
    return samples_of("quickstart", *FURTHER)

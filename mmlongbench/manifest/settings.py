"""Handles the paths of a manifest, and replacements of its values: `--set` of the command line, overrides in Python."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmlongbench.errors import ManifestError
from mmlongbench.io.yaml_text import load_yaml

HUB = "hub:"
"""The beginning of a source that is a dataset of the Hugging Face hub: `hub:owner/name@revision`."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def read_yaml(text: str, where: str) -> Any:  # noqa: ANN401  (YAML)
    """Parse a YAML text.

    Raises:
        ManifestError: the text is not YAML.

    """
    try:
        return load_yaml(text)
    except ValueError as error:
        raise ManifestError(f"{where}: expected YAML, found {' '.join(str(error).split())}") from error


def refuse_urls(where: str, key: str, value: object) -> None:
    """Refuse a URL where a path is expected; the message does not repeat the URL, because it may contain secrets."""
    if isinstance(value, str) and (scheme := _URL.match(value)):
        raise ManifestError(
            f"{where}: {key}: expected a file or folder of this machine, found a URL ({scheme[0]}…); download it first"
        )


def root_paths(dataset: dict[str, Any], path: Path) -> None:
    """Make the paths of a manifest relative to its folder."""
    root = path.parent
    counter = dataset.get("counter")
    tokenizer = counter.get("tokenizer") if isinstance(counter, dict) else None
    if isinstance(counter, dict) and isinstance(tokenizer, str) and (root / tokenizer).is_file():
        dataset["counter"] = {**counter, "tokenizer": str(root / tokenizer)}
    for key in ("corpus", "errata"):
        refuse_urls(str(path), key, dataset.get(key))
        if isinstance(dataset.get(key), str):
            dataset[key] = str(root / dataset[key])
    if isinstance(dataset.get("source"), dict):
        for name, value in dataset["source"].items():
            refuse_urls(str(path), f"source.{name}", value)
        local = {k: isinstance(v, str) and not v.startswith(HUB) for k, v in dataset["source"].items()}
        dataset["source"] = {k: str(root / v) if local[k] else v for k, v in dataset["source"].items()}


def apply_setting(setting: str, datasets: list[dict[str, Any]], here: Path) -> None:
    """Replace the value that `dataset.key=value` names; a path is taken as it is, any other value is parsed as YAML."""
    key, equals, text = setting.partition("=")
    where = f"--set {setting!r}"
    if not equals:
        raise ManifestError(f"{where}: expected dataset.key=value, such as source.documents=pdfs/")
    target, path = _named(where, key, datasets)
    if _is_path(path) and not text.strip():
        raise ManifestError(f"{where}: expected a path after the =, found nothing")
    if _is_path(path):
        refuse_urls("--set", key.strip(), text.strip())
    _replace(target, path, text if _is_path(path) else read_yaml(text, where), here)


def apply_override(key: str, value: object, datasets: list[dict[str, Any]], here: Path) -> None:
    """Replace the value that `dataset.key` names by a Python value."""
    target, path = _named(f"the override {key!r}", key, datasets)
    if _is_path(path):
        refuse_urls("the overrides", key, value)
    _replace(target, path, str(value) if isinstance(value, Path) else value, here)


def _named(where: str, key: str, datasets: list[dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Return the dataset that a key belongs to, and the parts of the key within it."""
    path = key.strip().split(".")
    named = {str(dataset.get("name")): dataset for dataset in datasets}
    if path[0] in named and len(path) > 1:
        return named[path[0]], path[1:]
    if len(datasets) != 1:
        raise ManifestError(f"{where}: must begin with the name of a dataset, one of {', '.join(named)}")
    return datasets[0], path


def _is_path(path: Sequence[str]) -> bool:
    """Return whether a key of a dataset holds a path."""
    return path in (["corpus"], ["errata"]) or (path[0] == "source" and len(path) > 1)


def _replace(target: dict[str, Any], path: list[str], value: object, here: Path) -> None:
    """Replace one value of a dataset; a path is relative to `here`."""
    if _is_path(path) and isinstance(value, str) and not value.startswith(HUB):
        value = str(here / value)
    for step in path[:-1]:
        inner = target.get(step)
        target[step] = dict(inner) if isinstance(inner, dict) else {}
        target = target[step]
    target[path[-1]] = value

"""Joins the paths of a manifest with a folder, and replaces values of a manifest, for `--set` of the command line and
for overrides in Python.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmlongbench.errors import ManifestError, nearest
from mmlongbench.io.locations import HUB, is_url, refuse_url
from mmlongbench.io.yaml_text import load_yaml

_WITH_PATHS = ("corpus", "errata", "counter")
"""The keys of a dataset whose values have paths of this machine; those of `source` may be URLs too."""


def read_yaml(text: str, where: str) -> Any:  # noqa: ANN401  (YAML)
    """Parse a YAML text.

    Raises:
        ManifestError: the text is not YAML.

    """
    try:
        return load_yaml(text)
    except ValueError as error:
        raise ManifestError(f"{where}: expected YAML, found {' '.join(str(error).split())}") from error


def root_paths(dataset: dict[str, Any], path: Path, data: Path | None = None) -> None:
    """Join the paths of a dataset with the folder of its manifest, because they are relative to that folder. If there
    is a folder `data`, those of sources and of the corpus are relative to it instead.
    """
    root = path.parent
    counter = dataset.get("counter")
    tokenizer = counter.get("tokenizer") if isinstance(counter, dict) else None
    if isinstance(counter, dict) and isinstance(tokenizer, str) and (root / tokenizer).is_file():
        dataset["counter"] = {**counter, "tokenizer": str(root / tokenizer)}
    for key in _WITH_PATHS:
        _refuse_urls(dataset.get(key), f"{path}: {key}")
    if isinstance(dataset.get("source"), str):
        _refuse_urls(dataset["source"], f"{path}: source")
    for key, folder in (("corpus", data or root), ("errata", root)):
        if isinstance(dataset.get(key), str):
            dataset[key] = str(folder / dataset[key])
    if isinstance(dataset.get("source"), dict):
        dataset["source"] = {name: _rooted(value, data or root) for name, value in dataset["source"].items()}


def _rooted(value: object, root: Path) -> object:
    """Return a location of a source, or a list of locations, with `root` before each relative path."""
    if isinstance(value, list | tuple):
        return [_rooted(each, root) for each in value]
    if not isinstance(value, str) or value.startswith(HUB) or is_url(value) or not value.strip():
        return value
    return str(root / value)


def apply_setting(setting: str, datasets: list[dict[str, Any]], here: Path, keys: Collection[str]) -> None:
    """Replace the value that `dataset.key=value` names. A path is relative to `here`; any other value is parsed as
    YAML. `keys` are the keys that a dataset may have.
    """
    key, equals, text = setting.partition("=")
    where = f"--set {setting!r}"
    if not equals:
        raise ManifestError(f"{where}: expected dataset.key=value, such as source.documents=pdfs/")
    target, path = _named(where, key, datasets, keys)
    if _is_path(path) and not text.strip():
        raise ManifestError(f"{where}: expected a path after the =, found nothing")
    is_list = path[0] == "source" and text.lstrip().startswith("[")
    is_null = text.strip() == "null"  # not a folder of this name, which is ./null
    value = text if _is_path(path) and not is_list and not is_null else read_yaml(text, where)
    _replace(target, path, _joined(f"--set: {key.strip()}", path, value, here))


def apply_override(key: str, value: object, datasets: list[dict[str, Any]], here: Path, keys: Collection[str]) -> None:
    """Replace the value that `dataset.key` names by a Python value; see `apply_setting`."""
    where = f"the override {key!r}"
    if not isinstance(key, str):
        raise ManifestError(f"{where}: expected a text, such as 'source.documents'")
    target, path = _named(where, key, datasets, keys)
    _replace(target, path, _joined(where, path, value, here))


def _named(
    where: str, key: str, datasets: list[dict[str, Any]], keys: Collection[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the dataset that a key belongs to, and the parts of the key without the dataset's name."""
    path = key.strip().split(".")
    named = {str(dataset.get("name")): dataset for dataset in datasets}
    if path[0] in named and len(path) > 1:
        return named[path[0]], path[1:]
    if path[0] in named and path[0] not in keys:
        raise ManifestError(f"{where}: unknown key {path[0]!r}: it is a dataset; add a key of it, as in {path[0]}.seed")
    if path[0] not in keys:
        hint = nearest(path[0], (*keys, *named))
        known = f"the manifest has the datasets {', '.join(named)}, and a dataset the keys {', '.join(keys)}"
        raise ManifestError(f"{where}: unknown key {path[0]!r:.80}{hint}; {known}")
    if len(datasets) != 1:
        raise ManifestError(f"{where}: must begin with the name of a dataset, one of {', '.join(named)}")
    return datasets[0], path


def _is_path(path: Sequence[str]) -> bool:
    """Return whether a key of a dataset holds a path."""
    return path in (["corpus"], ["errata"]) or (path[0] == "source" and len(path) > 1)


def _joined(where: str, path: list[str], value: object, here: Path) -> object:
    """Return the value of a key. A path is joined with `here`, and so is each path of a mapping for `source`."""
    if path == ["source"] and isinstance(value, Mapping):
        return {name: _joined(f"{where}: {name}", [*path, str(name)], inner, here) for name, inner in value.items()}
    if path[0] in _WITH_PATHS or path == ["source"]:
        _refuse_urls(value, where)
    if path == ["counter"] and isinstance(value, Mapping):
        return {name: str(inner) if isinstance(inner, Path) else inner for name, inner in value.items()}
    if isinstance(value, list | tuple) and _is_path(path):
        return [_joined(where, path, each, here) for each in value]
    if isinstance(value, Path):
        refuse_url(value, where, ManifestError)  # a `Path` of a URL has lost a slash: only a text can be one
        value = str(value)
    if not _is_path(path) or not isinstance(value, str):
        return value
    if not value.strip():
        raise ManifestError(f"{where}: expected a path, found an empty text")
    return _rooted(value, here)


def _refuse_urls(value: object, where: str) -> None:
    """Refuse a URL in a value, also in nested lists and mappings; the message names the keys that lead to it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _refuse_urls(inner, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_urls(inner, where)
    else:
        refuse_url(value, where, ManifestError)


def _replace(target: dict[str, Any], path: list[str], value: object) -> None:
    """Replace a value. If a sample takes the place of the sources, what fits only these goes with them: the corpus, the
    reranker, whose model is a large download, and a length of full prompts, because drawn reports are short.
    """
    if path == ["source"] and value == "sample":
        target["corpus"] = None
        if isinstance(retrieval := target.get("retrieval"), dict):
            target["retrieval"] = {**retrieval, "reranker": None}
        if "reference_length" in target:
            target["reference_length"] = "16K"
    for step in path[:-1]:
        inner = target.get(step)
        target[step] = dict(inner) if isinstance(inner, dict) else {}
        target = target[step]
    if value is None and len(path) == 2 and path[0] == "source":
        target.pop(path[1], None)  # a dataset without this source
    else:
        target[path[-1]] = value

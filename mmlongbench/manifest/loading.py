"""Loads manifests: reads the YAML with what it includes, overrides values from the command line, checks each key."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from mmlongbench.errors import ManifestError, MMLongBenchError, nearest
from mmlongbench.io.files import read_regular
from mmlongbench.io.locations import HUB, is_url, local_path, refuse_url
from mmlongbench.io.yaml_text import MAX_BYTES, load_yaml
from mmlongbench.manifest.licences import root_licence_files
from mmlongbench.manifest.mix import parse_mix
from mmlongbench.manifest.model import DatasetSpec, Manifest, counter_fields, length_of
from mmlongbench.manifest.strict_model import explain, shown
from mmlongbench.manifest.task_files import root_task_files

_Keys: TypeAlias = dict[str, Any]
"""A dataset, or a part of one, as YAML has it."""


def installed_manifests() -> dict[str, Path]:
    """Return the paths of the installed manifests by name. They are in the installed package or, in a checkout, in its
    folder `manifests`.
    """
    package = Path(__file__).parents[1]
    folders = (package / "installed_manifests", package.parent / "manifests")
    return {path.stem: path for folder in reversed(folders) for path in sorted(folder.glob("*.yaml"))}


def find_manifest(name: str) -> Path:
    """Return the path of a manifest, given as a path or an installed name; raises ManifestError if there is none."""
    refuse_url(name, "manifest", ManifestError)
    with suppress(OSError):  # too long for the name of a file
        if Path(name).is_file():
            return Path(name)
    installed = installed_manifests()
    if name in installed:
        return installed[name]
    known = f"{', '.join(installed)}{nearest(name, installed)}"
    raise ManifestError(f"no manifest {name!r:.200}: no such file, and installed are {known}")


def _yaml(text: str, where: str) -> Any:  # noqa: ANN401  (YAML)
    try:
        return load_yaml(text)
    except ValueError as error:
        raise ManifestError(f"{where}: expected YAML, found {' '.join(str(error).split())}") from error


def _root_paths(keys: _Keys, root: Path, data: Path | None, where: str) -> None:
    """Join the paths in keys of a dataset with the folder `root`, those of sources and of the corpus with the folder
    `data`, if it is given.
    """
    for key in ("corpus", "errata", "counter"):
        _refuse_urls(keys.get(key), f"{where}: {key}")
    for key, folder in (("corpus", data or root), ("errata", root)):
        if key in keys:
            keys[key] = _rooted(keys[key], folder, f"{where}: {key}")
    if "counter" in keys:
        keys["counter"] = _rooted_counter(keys["counter"], root)
    if isinstance(counters := keys.get("count_as"), list):
        keys["count_as"] = [_rooted_counter(counter, root) for counter in counters]
    if isinstance(source := keys.get("source"), Mapping):
        keys["source"] = {
            name: _rooted(value, data or root, f"{where}: source.{name}") for name, value in source.items()
        }
    else:
        refuse_url(source, f"{where}: source", ManifestError)


def _rooted_counter(counter: object, root: Path) -> object:
    """Return a counter with `root` before the paths of a tokenizer and a template that are there; other names, such as
    hub ids, stay as they are.
    """
    full = counter_fields(counter)
    if not isinstance(full, dict):
        return full
    rooted = {key: str(value) if isinstance(value, Path) else value for key, value in full.items()}
    for key in ("text", "template"):
        name = rooted.get(key)
        path = root / name if isinstance(name, str) and name else None
        if path and (path.is_file() or (key == "template" and path.exists())):
            rooted[key] = str(path)
    return rooted


def _rooted(value: object, root: Path, where: str) -> object:
    """Return a location, or a list of locations, with `root` before each relative path."""
    if isinstance(value, list | tuple):
        return [_rooted(location, root, where) for location in value]
    if isinstance(value, Path):
        refuse_url(value, where, ManifestError)  # a `Path` of a URL has lost a slash: only a text can be one
        value = str(value)
    if not isinstance(value, str) or value.startswith(HUB) or is_url(value):
        return value
    if not value.strip():
        raise ManifestError(f"{where}: expected a path, found an empty text")
    return str(root / value)


def _apply(setting: str | tuple[str, object], datasets: list[_Keys], here: Path) -> None:
    """Replace the value that `dataset.key=value` names, as it is typed, or the pair of a key and a Python value. A path
    is relative to `here`; any other typed value is YAML.
    """
    value: object
    if isinstance(setting, str):
        key, equals, value = setting.partition("=")
        where = f"--set {setting!r}"
        if not equals:
            raise ManifestError(f"{where}: expected dataset.key=value, such as source.documents=pdfs/")
    else:
        key, value = setting
        where = f"the override {key!r}"
        if not isinstance(key, str):
            raise ManifestError(f"{where}: expected a text, such as 'source.documents'")
    target, path = _target(where, key, datasets)
    named = key.split(".")[: -len(path)]  # the dataset, if the key begins with one
    if path[:2] == ["counter", "tokenizer"]:  # its earlier name
        path[1] = "text"
    if isinstance(setting, str):
        text = setting.partition("=")[2]
        if _is_path(path) and not text.strip():
            raise ManifestError(f"{where}: expected a path after the =, found nothing")
        # A source may be a list of locations; `null` is no folder of this name, which is ./null.
        is_list = path[0] == "source" and text.lstrip().startswith("[")
        if not _is_path(path) or is_list or text.strip() == "null":
            value = _yaml(text, where)
    alone: Any = value  # then a dataset with this key alone, whose paths are joined like those of a file
    for step in reversed(path):
        alone = {step: alone}
    given = "--set" if isinstance(setting, str) else "overrides"
    _root_paths(alone, here, None, ": ".join((given, *map(str.strip, named))))
    for step in path:
        alone = alone[step]
    _replace(target, path, alone)


def _target(where: str, key: str, datasets: list[_Keys]) -> tuple[_Keys, list[str]]:
    path, keys = key.strip().split("."), DatasetSpec.model_fields
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
    return path in (["corpus"], ["errata"]) or (path[0] == "source" and len(path) > 1)


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


def _replace(target: _Keys, path: list[str], value: object) -> None:
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


def load_manifest(
    path: Path,
    settings: Sequence[str] | Mapping[str, object] = (),
    here: Path | None = None,
    data: Path | None = None,
) -> Manifest:
    """Read a manifest, and the manifests that it includes.

    `settings` replace values: either texts `dataset.key=value`, as on the command line, or a mapping from `dataset.key`
    to the new value. Their paths are relative to `here`, by default the current folder; those of sources in the
    manifest are relative to `data`, by default the folder of the manifest.

    Raises:
        ManifestError: a file cannot be read, or a key or value is wrong; the error names the key and the nearest one.

    """
    read = list(_read(path, data))
    datasets = [dataset for dataset, _ in read]
    for setting in settings.items() if isinstance(settings, Mapping) else settings:
        _apply(setting, datasets, here or Path.cwd())
    for dataset, home in read:
        root_task_files(dataset, home)
    try:
        return Manifest.model_validate({"datasets": datasets})
    except ValidationError as error:
        raise ManifestError(explain(error, str(path), Manifest, datasets)) from error


@cache
def installed_datasets() -> Mapping[str, tuple[DatasetSpec, ...]]:
    """Return the datasets of each installed manifest that can be read, by the manifest's name."""
    datasets = {}
    for name, path in installed_manifests().items():
        with suppress(MMLongBenchError):
            datasets[name] = load_manifest(path).datasets
    return datasets


_KEYS = ("datasets", "defaults", "include", "mix")


def _read(path: Path, data: Path | None, above: tuple[Path, ...] = ()) -> Iterator[tuple[_Keys, Path]]:
    """Yield each dataset of a manifest and of those that it includes, with the manifest that has it. The defaults of a
    manifest hold for the included datasets too, where these and their own defaults say nothing.
    """
    if path.resolve() in above:
        raise ManifestError(f"{path}: includes itself; take it out of 'include'")
    try:
        text = read_regular(path, MAX_BYTES).decode()
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error
    content = _yaml(text, str(path))
    if not isinstance(content, dict):
        raise ManifestError(f"{path}: expected a mapping with the key 'datasets', found {type(content).__name__}")
    included = content.get("include") or []
    if not isinstance(included, list) or not all(isinstance(name, str) for name in included):
        raise ManifestError(f"{path}: include: expected a list of files, such as [mmlongdoc.yaml]")
    read, installed = list[tuple[_Keys, Path]](), installed_manifests()
    for name in included:
        refuse_url(name, f"{path}: include", ManifestError)
        other = path.parent / name if (path.parent / name).is_file() else installed.get(name)
        if other is None:
            hint = nearest(name, [*(beside.name for beside in path.parent.glob("*.yaml")), *installed])
            raise ManifestError(f"{path}: include: no such file beside it, and no installed manifest: {name}{hint}")
        read += _read(other, data, (*above, path.resolve()))
    if "mix" in content:
        parse_mix(content["mix"], str(path))  # a build does not use it: a mix is chosen from a release
    if unknown := [key for key in content if key not in _KEYS]:
        key = unknown[0]
        hint = nearest(str(key), _KEYS)
        if key in DatasetSpec.model_fields:
            common = "" if key == "name" else ", or for all of them into 'defaults'"
            hint = f": it is a key of a dataset; write it into an entry of 'datasets'{common}"
            if "datasets" not in content:
                entry = f"'datasets:' and, indented below it, '- {key}: …' with the other keys"
                hint = f": it is a key of a dataset; write {entry}"
        raise ManifestError(f"{path}: unknown key {shown(key)}{hint}")
    datasets = content.get("datasets") or [] if included else content.get("datasets")
    defaults = content.get("defaults") or {}
    if not isinstance(datasets, list) or not all(isinstance(dataset, dict) for dataset in (*datasets, defaults)):
        raise ManifestError(f"{path}: expected 'datasets' to be a list of mappings, 'defaults' a mapping")
    for keys in (defaults, *datasets):
        _root_paths(keys, path.parent, data, str(path))
        root_licence_files(keys, path, data)
    for dataset, home in (*read, *((dataset, path) for dataset in datasets)):
        yield {**defaults, **dataset}, home


def narrowed(manifest: Manifest, lengths: str | int | Sequence[str | int] | None, limit: int | None) -> Manifest:
    """Return the manifest with other lengths (such as `8K,32K`), and with samples of at most `limit` questions.

    Raises:
        ManifestError: a length is not valid, there is no length, or the limit is less than 1.

    """
    if limit is not None and (type(limit) is not int or limit < 1):
        raise ManifestError(f"limit {limit!r}: expected a whole number of questions, at least 1")
    listed = (lengths,) if isinstance(lengths, int) else lengths.split(",") if isinstance(lengths, str) else lengths
    if listed is not None and not listed:
        raise ManifestError("lengths: expected at least one, such as 8K")
    datasets = []
    for dataset in manifest.datasets:
        sample = dataset.sample
        if limit is not None:
            sample = sample.model_copy(update={"n": min(limit, sample.n or limit)})
        asked = tuple(map(length_of, listed)) if listed is not None else dataset.lengths
        datasets.append(dataset.model_copy(update={"sample": sample, "lengths": tuple(dict.fromkeys(asked))}))
    return Manifest(datasets=tuple(datasets))


def chosen_manifest(
    manifest: str | Path | Manifest,
    overrides: Mapping[str, object] | None,
    lengths: str | int | Sequence[str | int] | None,
    limit: int | None,
    data: str | Path | None = None,
) -> Manifest:
    """Return the manifest with the given overrides, lengths and limit applied; relative paths of sources are relative
    to the folder `data`, if it is given.

    Raises:
        ManifestError: the manifest cannot be found or read, or overrides or data are given for a Manifest object.

    """
    if not isinstance(manifest, Manifest):
        refuse_url(manifest, "manifest", ManifestError)
        manifest = load_manifest(find_manifest(str(manifest)), overrides or {}, data=data_folder(data))
    elif overrides or data is not None:
        given = "overrides" if overrides else "data"
        raise ManifestError(f"{given}: only for a manifest in a file; change the given Manifest object instead")
    return narrowed(manifest, lengths, limit)


def data_folder(data: str | Path | None) -> Path | None:
    """Return the folder that relative paths of sources are relative to, as an absolute path; None if it is not given, a
    `ManifestError` if it is no folder.
    """
    if data is None:
        return None
    folder = Path.cwd() / local_path(data, "data", ManifestError)
    if not folder.is_dir():
        raise ManifestError(f"data: expected a folder, found {'a file' if folder.exists() else 'none'}: {data}")
    return folder

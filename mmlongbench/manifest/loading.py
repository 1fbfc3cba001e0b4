"""Loads manifests: reads the YAML with what it includes, overrides values from the command line, checks each key."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mmlongbench.errors import ManifestError, nearest
from mmlongbench.io.locations import refuse_url
from mmlongbench.io.yaml_text import MAX_BYTES
from mmlongbench.manifest.builtin_manifests import installed_manifests
from mmlongbench.manifest.licences import root_licence_files
from mmlongbench.manifest.mix import parse_mix
from mmlongbench.manifest.model import DatasetSpec, Manifest, length_of
from mmlongbench.manifest.settings import apply_override, apply_setting, read_yaml, root_paths
from mmlongbench.manifest.task_files import root_task_files
from mmlongbench.manifest.validation import explain, shown


def load_manifest(
    path: Path,
    settings: Sequence[str] | Mapping[str, object] = (),
    here: Path | None = None,
    data: Path | None = None,
) -> Manifest:
    """Read a manifest, and the manifests that it includes.

    Args:
        path: the file of the manifest.
        settings: replacements of values: either texts `dataset.key=value`, as on the command line, or a mapping from
            `dataset.key` to the new value.
        here: the folder that paths in `settings` are relative to; by default the current folder.
        data: the folder that relative paths of sources are relative to; by default the folder of the manifest.

    Raises:
        ManifestError: a file cannot be read, or a key or value is wrong; the error names the key and the
                nearest known key.

    """
    found = list(_read(path, data))
    datasets = [dataset for dataset, _ in found]
    for setting in () if isinstance(settings, Mapping) else settings:
        apply_setting(setting, datasets, here or Path.cwd(), DatasetSpec.model_fields)
    for key, value in settings.items() if isinstance(settings, Mapping) else ():
        apply_override(key, value, datasets, here or Path.cwd(), DatasetSpec.model_fields)
    for dataset, home in found:
        root_task_files(dataset, home)
    try:
        manifest = Manifest.model_validate({"datasets": datasets})
    except ValidationError as error:
        raise ManifestError(explain(error, str(path), Manifest, datasets)) from error
    names = [dataset.name for dataset in manifest.datasets]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ManifestError(f"{path}: two datasets are called {twice[0]!r}; names must differ")
    return manifest


def _read(path: Path, data: Path | None, above: tuple[Path, ...] = ()) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield each dataset of a manifest and of those that it includes, with the manifest that has it."""
    if path.resolve() in above:
        raise ManifestError(f"{path}: includes itself; take it out of 'include'")
    found = read_yaml(_text(path), str(path))
    if not isinstance(found, dict):
        raise ManifestError(f"{path}: expected a mapping with the key 'datasets', found {type(found).__name__}")
    included = found.get("include") or []
    if not isinstance(included, list) or not all(isinstance(each, str) for each in included):
        raise ManifestError(f"{path}: include: expected a list of files, such as [mmlongdoc.yaml]")
    for name in included:
        yield from _read(_included(name, path), data, (*above, path.resolve()))
    if "mix" in found:
        parse_mix(found["mix"], str(path))  # a build does not use it: a mix is chosen from a release
    for dataset in _datasets(found, path):
        root_paths(dataset, path, data)
        root_licence_files(dataset, path, data)
        yield dataset, path


def _included(name: str, path: Path) -> Path:
    """Return the manifest that another one includes: a file beside it, or an installed manifest."""
    refuse_url(name, f"{path}: include", ManifestError)
    beside, installed = path.parent / name, installed_manifests()
    if beside.is_file():
        return beside
    if name in installed:
        return installed[name]
    known = [*(each.name for each in path.parent.glob("*.yaml")), *installed]
    raise ManifestError(
        f"{path}: include: no such file beside it, and no installed manifest: {name}{nearest(name, known)}"
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ManifestError(f"{path}: expected at most {MAX_BYTES} bytes, found more")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error


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


def _hint(key: object, *, has_list: bool) -> str:
    """Return what to do about an unknown key of a manifest; `has_list` says whether the manifest has `datasets`."""
    if key not in DatasetSpec.model_fields:
        return nearest(str(key), ("datasets", "defaults", "include", "mix"))
    if not has_list:
        return f": it is a key of a dataset; write 'datasets:' and, indented below it, '- {key}: …' with the other keys"
    common = "" if key == "name" else ", or for all of them into 'defaults'"
    return f": it is a key of a dataset; write it into an entry of 'datasets'{common}"


def _datasets(found: dict[Any, Any], path: Path) -> list[dict[str, Any]]:
    """Return the datasets of a manifest, with its defaults; a manifest that only includes others has none."""
    unknown = [key for key in found if key not in ("datasets", "defaults", "include", "mix")]
    if unknown:
        raise ManifestError(f"{path}: unknown key {shown(unknown[0])}{_hint(unknown[0], has_list='datasets' in found)}")
    datasets = found.get("datasets") or [] if found.get("include") else found.get("datasets")
    defaults = found.get("defaults") or {}
    if not isinstance(datasets, list) or not all(isinstance(item, dict) for item in (*datasets, defaults)):
        raise ManifestError(f"{path}: expected 'datasets' to be a list of mappings, 'defaults' a mapping")
    return [{**defaults, **dataset} for dataset in datasets]

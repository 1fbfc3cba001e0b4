"""Says which sources of a manifest are missing, and how to get them: by `mmlongbench fetch`, or by hand."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from mmlongbench.errors import FetchError
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.downloads import DownloadSpec, load_record
from mmlongbench.manifest.loading import installed_datasets, installed_manifests
from mmlongbench.manifest.model import DatasetSpec


def missing_of(spec: DatasetSpec) -> str:
    """Return which sources of a dataset are not there, and how to get them; empty if all are there."""
    missing = [(key, path) for key, paths in local_paths(spec).items() for path in paths if not is_there(path)]
    said = [f"{key}: no such file or folder: {path}" for key, path in missing]
    programs: dict[Path, list[str]] = {}
    by_hand: list[str] = []
    for key, path in missing:
        for place, data in places_of_path(spec, path):
            if place.steps:
                steps = " ".join(f"{number}. {step}" for number, step in enumerate(place.steps, start=1))
                by_hand.append(f"{key} by hand: {steps}")
            else:
                programs.setdefault(data, []).append(key)
    fetched = [_command(spec, data, keys, len(missing)) for data, keys in programs.items()]
    return "; ".join((*said, *fetched, *dict.fromkeys(by_hand)))


def unfinished_downloads(spec: DatasetSpec) -> tuple[str, ...]:
    """Return, for each dataset of the hub of which `fetch` brought some files below the sources but not all, a sentence
    that says so, because a reader takes the files of a folder for all.
    """
    said = []
    for path in (path for paths in local_paths(spec).values() for path in paths):
        for place, data in places_of_path(spec, path):
            listed = None
            with suppress(FetchError):  # a build does not need the record
                listed = load_record(data).datasets.get(place.key) if place.hub else None
            files = listed.files if listed else ()
            if lacking := [file for file in files if not (data / file).is_file()]:
                count = f"{len(lacking):,} {'is' if len(lacking) == 1 else 'are'} missing in {data}"
                todo = _command(spec, data, lacking, len(lacking))
                said.append(f"of the {len(files):,} files of {place.name}, {count}; {todo}")
    return tuple(dict.fromkeys(said))


def places_of_path(spec: DatasetSpec, path: Path) -> Iterator[tuple[DownloadSpec, Path]]:
    """Yield (place, data folder) of each place whose files may be at a path, inside it, or above it."""
    for place in spec.downloads:
        for number in range(len(path.parts)):
            if place.gives(PurePosixPath(*path.parts[number:])):
                yield place, Path(*path.parts[:number])
                break


def _command(spec: DatasetSpec, data: Path, keys: list[str], missing: int) -> str:
    """Return the command that downloads sources, with the smallest installed manifest that has them."""
    manifest = "MANIFEST"
    for name, datasets in sorted(installed_datasets().items(), key=lambda named: len(named[1])):
        if any(dataset.name == spec.name and dataset.downloads == spec.downloads for dataset in datasets):
            manifest = name
            break
    is_given = data not in {path.parent for path in installed_manifests().values()}
    command = ["mmlongbench", "fetch", manifest, "--to", str(data) if is_given else "data"]
    several = dict.fromkeys(keys)
    what = "it" if missing == 1 else "them" if missing == len(several) else ", ".join(several)
    return f"`{shlex.join(command)}` downloads {what}{'' if is_given else ', then add --data data'}"


def local_paths(spec: DatasetSpec) -> dict[str, list[Path]]:
    """Return the paths on this machine of each source of a dataset that the manifest gives, and of its corpus."""
    paths: dict[str, list[Path]] = {}
    for name, locations in spec.source.items() if not isinstance(spec.source, str) else ():
        local = [location for location in locations if isinstance(location, LocalPath)]
        paths[f"source.{name}"] = [match.path for location in local for match in location.matching()]
    return {**paths, **({"corpus": [spec.corpus]} if spec.corpus else {})}


def is_there(path: Path) -> bool:
    """Return whether a path exists, or leads into a file, such as an archive."""
    return path.exists() or any(above.is_file() for above in path.parents)

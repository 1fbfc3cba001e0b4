"""Says which sources of a manifest are missing, and how to get them: by `mmlongbench fetch`, or by hand."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from mmlongbench.errors import FetchError
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.downloads import DownloadRecord, DownloadSpec, load_record
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
    for paths in local_paths(spec).values():
        for place, data in (found for path in paths for found in places_of_path(spec, path) if found[0].hub):
            listed = _recorded(data).datasets.get(place.key)
            files = listed.files if listed else ()
            if lacking := [file for file in files if not (data / file).is_file()]:
                count = f"{len(lacking):,} {'is' if len(lacking) == 1 else 'are'} missing in {data}"
                todo = _command(spec, data, lacking, len(lacking))
                said.append(f"of the {len(files):,} files of {place.name}, {count}; {todo}")
    return tuple(dict.fromkeys(said))


def _recorded(data: Path) -> DownloadRecord:
    """Return the record of a data folder; an empty one if it cannot be read, because a build does not need it."""
    with suppress(FetchError):
        return load_record(data)
    return DownloadRecord()


def places_of_path(spec: DatasetSpec, path: Path) -> Iterator[tuple[DownloadSpec, Path]]:
    """Yield (place, data folder) of each place whose files may be at a path, or inside it."""
    for place in spec.downloads:
        if (data := _data_folder(path, place)) is not None:
            yield place, data


def _command(spec: DatasetSpec, data: Path, keys: list[str], missing: int) -> str:
    is_given = data not in {path.parent for path in installed_manifests().values()}
    command = ["mmlongbench", "fetch", _manifest_of(spec), "--to", str(data) if is_given else "data"]
    several = dict.fromkeys(keys)
    what = "it" if missing == 1 else "them" if missing == len(several) else ", ".join(several)
    return f"`{shlex.join(command)}` downloads {what}{'' if is_given else ', then add --data data'}"


def local_paths(spec: DatasetSpec) -> dict[str, list[Path]]:
    """Return the paths on this machine of each source of a dataset that the manifest gives, and of its corpus."""
    found: dict[str, list[Path]] = {}
    for name, locations in spec.source.items() if not isinstance(spec.source, str) else ():
        found[f"source.{name}"] = [
            each.path for one in locations if isinstance(one, LocalPath) for each in one.matching()
        ]
    return {**found, **({"corpus": [spec.corpus]} if spec.corpus else {})}


def is_there(path: Path) -> bool:
    """Return whether a path exists, or leads into a file, such as an archive."""
    return path.exists() or any(above.is_file() for above in path.parents)


def _data_folder(path: Path, place: DownloadSpec) -> Path | None:
    """Return the data folder of a path, if the path is where the files of a place go, or inside it or above it."""
    for number in range(len(path.parts)):
        below = PurePosixPath(*path.parts[number:])
        if place.holds(below) and place.gives(below):
            return Path(*path.parts[:number])
    return None


def _manifest_of(spec: DatasetSpec) -> str:
    """Return the name of the smallest installed manifest with a dataset's downloads; `MANIFEST` if there is none."""
    few_first = sorted(installed_datasets().items(), key=lambda each: len(each[1]))
    for name, datasets in few_first:
        if any(each.name == spec.name and each.downloads == spec.downloads for each in datasets):
            return name
    return "MANIFEST"

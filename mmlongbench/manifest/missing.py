"""Says which sources of a manifest are missing, and how to get them: by `mmlongbench fetch`, or by hand."""

import shlex
from pathlib import Path, PurePosixPath

from mmlongbench.errors import MMLongBenchError
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.builtin_manifests import installed_manifests
from mmlongbench.manifest.downloads import DownloadSpec
from mmlongbench.manifest.model import DatasetSpec, Manifest, load_manifest


def missing_sources(manifest: Manifest, data: Path, name: str = "") -> tuple[str, ...]:
    """Return, for each source of a manifest below the folder `data` that is not there, a line that says how to get it.

    Args:
        manifest: the manifest.
        data: the data folder.
        name: the name or the path of the manifest, for the command; by default that of an installed manifest with the
            same dataset.

    """
    return tuple(
        f"dataset {spec.name!r}: {key} is missing ({path}){how_to_get(spec, path, name)}"
        for spec in manifest.datasets
        for key, paths in local_paths(spec).items()
        for path in paths
        if path.is_relative_to(data) and not is_there(path)
    )


def how_to_get(spec: DatasetSpec, path: Path, name: str = "") -> str:
    """Return what to do about a missing source of a dataset, as the end of a message; empty if the manifest does not
    say where it comes from.

    Args:
        spec: the dataset.
        path: the path of the source, which has the folder of a download in it.
        name: see `missing_sources`.

    """
    found = [(place, data) for place in spec.downloads if (data := _data_folder(path, place)) is not None]
    by_hand = [step for place, _ in found for step in place.steps]
    programs = [data for place, data in found if not place.steps]
    said = []
    if programs:
        is_given = programs[0] not in {path.parent for path in installed_manifests().values()}
        folder = str(programs[0]) if is_given else "data"
        command = ["mmlongbench", "fetch", name or _manifest_of(spec), "--to", folder]
        said.append(f"; `{shlex.join(command)}` downloads it{'' if is_given else ', then add --data data'}")
    if by_hand:
        said.append("; by hand: " + " ".join(f"{number}. {step}" for number, step in enumerate(by_hand, start=1)))
    return "".join(said)


def local_paths(spec: DatasetSpec) -> dict[str, list[Path]]:
    """Return the paths on this machine of each source of a dataset that the manifest gives, and of its corpus."""
    found: dict[str, list[Path]] = {}
    for name, locations in spec.source.items() if not isinstance(spec.source, str) else ():
        found[f"source.{name}"] = [each.path for each in locations if isinstance(each, LocalPath)]
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
    """Return the name of an installed manifest that has a dataset's downloads; `MANIFEST` if there is none."""
    for name, path in installed_manifests().items():
        try:
            datasets = load_manifest(path).datasets
        except MMLongBenchError:
            continue
        if any(each.name == spec.name and each.downloads == spec.downloads for each in datasets):
            return name
    return "MANIFEST"

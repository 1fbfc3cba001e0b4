"""The places that the sources of a manifest come from, each once, and the paths below a data folder."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mmlongbench.errors import FetchError, ManifestError, nearest
from mmlongbench.manifest.downloads import MAIN, DownloadSpec, fault_of_path
from mmlongbench.manifest.model import Manifest


@dataclass(frozen=True, slots=True)
class Place:
    """A place that files come from, and the datasets that need them."""

    spec: DownloadSpec
    licence: str
    datasets: tuple[str, ...]

    @property
    def key(self) -> str:
        """The name of the place in the record of downloads."""
        spec = self.spec
        return f"{spec.name}@{spec.revision or MAIN} {' '.join(spec.files)} → {spec.to}"


def places_of(manifest: Manifest, only: Collection[str] = ()) -> tuple[Place, ...]:
    """Return the places of a manifest, each once, in the order of its datasets.

    Args:
        manifest: the manifest.
        only: the names of datasets; empty for all of them.

    Raises:
        ManifestError: there is no such dataset.

    """
    names = [dataset.name for dataset in manifest.datasets]
    for name in only:
        if name not in names:
            raise ManifestError(
                f"--only {name!r:.100}: no such dataset; there are {', '.join(names)}{nearest(name, names)}"
            )
    found: dict[DownloadSpec, list[str]] = {}
    licences: dict[DownloadSpec, str] = {}
    for dataset in manifest.datasets:
        for spec in dataset.downloads if dataset.name in only or not only else ():
            found.setdefault(spec, []).append(dataset.name)
            licences.setdefault(spec, spec.licence or dataset.licence_text)
    return tuple(Place(spec, licences[spec], tuple(names)) for spec, names in found.items())


def paths_of(spec: DownloadSpec, files: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (file of the hub, path below the data folder) of each file that an entry asks for.

    Raises:
        FetchError: the path of a file leads out of the folder, or no file has one of the names.

    """
    matching = [file for file in files if spec.matches(file)]
    hostile = [file for file in files if fault_of_path(file) and (file in matching or spec.matches(_plain(file)))]
    if hostile:
        raise FetchError(
            f"{spec.name}: lists a file {hostile[0]!r:.200}, whose path cannot be used ({fault_of_path(hostile[0])}); "
            "nothing of this dataset is downloaded"
        )
    for pattern in spec.files:
        if not any(spec.model_copy(update={"files": (pattern,)}).matches(file) for file in matching):
            raise FetchError(f"{spec.name}: has no file {pattern!r} at this revision; see its page on the hub")
    yield from ((file, f"{spec.to}/{file}") for file in sorted(set(matching)))


def _plain(file: str) -> str:
    """Return a path with the parts that lead upward taken out, as a program might resolve it."""
    return str(PurePosixPath(*[part for part in file.replace("\\", "/").split("/") if part not in ("", ".", "..")]))


def safe_target(folder: Path, path: str) -> Path:
    """Return the target of a download.

    Raises:
        FetchError: the target, or a folder on the way to it, is a link or no folder.

    """
    target = folder / path
    for above in (
        *reversed([each for each in target.parents if each != folder and each.is_relative_to(folder)]),
        target,
    ):
        if above.is_symlink():
            raise FetchError(
                f"{above}: is a link; downloads are not written through links: replace it by a folder or a file"
            )
        if above != target and above.exists() and not above.is_dir():
            raise FetchError(f"{above}: expected a folder, found a file; move it away")
    if target.exists() and not target.is_file():
        raise FetchError(f"{target}: expected a file, found a folder or a device; move it away")
    return target

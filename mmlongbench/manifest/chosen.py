"""Finds the manifest that a Python user gives (a file, the name of an installed manifest, or a Manifest), and applies
overrides, lengths and a limit.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mmlongbench.errors import ManifestError
from mmlongbench.io.locations import local_path, refuse_url
from mmlongbench.manifest.builtin_manifests import find_manifest
from mmlongbench.manifest.loading import load_manifest, narrowed
from mmlongbench.manifest.model import Manifest


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
    """Return the folder that relative paths of sources are relative to, as an absolute path; None if it is not given.

    Raises:
        ManifestError: it is no folder.

    """
    if data is None:
        return None
    folder = Path.cwd() / local_path(data, "data", ManifestError)
    if not folder.is_dir():
        raise ManifestError(f"data: expected a folder, found {'a file' if folder.exists() else 'none'}: {data}")
    return folder

"""Finds the manifest that a Python user gives (a file, the name of an installed manifest, or a Manifest), and applies
overrides, lengths and a limit.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mmlongbench.errors import ManifestError
from mmlongbench.io.urls import refuse_url
from mmlongbench.manifest.builtin_manifests import find_manifest
from mmlongbench.manifest.model import Manifest, load_manifest, narrowed


def chosen_manifest(
    manifest: str | Path | Manifest,
    overrides: Mapping[str, object] | None,
    lengths: str | int | Sequence[str | int] | None,
    limit: int | None,
) -> Manifest:
    """Return the manifest with the given overrides, lengths and limit applied.

    Raises:
        ManifestError: the manifest cannot be found or read, or overrides are given for a Manifest object.

    """
    if not isinstance(manifest, Manifest):
        refuse_url(manifest, "manifest", ManifestError)
        manifest = load_manifest(find_manifest(str(manifest)), overrides or {})
    elif overrides:
        raise ManifestError("overrides: only for a manifest in a file; change the given Manifest object instead")
    return narrowed(manifest, lengths, limit)

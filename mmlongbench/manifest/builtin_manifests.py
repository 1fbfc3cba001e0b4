"""The manifests that come with the package."""

from contextlib import suppress
from pathlib import Path

from mmlongbench.errors import ManifestError, nearest
from mmlongbench.io.locations import refuse_url

_PACKAGE = Path(__file__).parents[1]


def installed_manifests() -> dict[str, Path]:
    """Return the paths of the installed manifests by name. They are in the installed package or, in a checkout, in its
    folder `manifests`.
    """
    folders = (_PACKAGE / "installed_manifests", _PACKAGE.parent / "manifests")
    return {path.stem: path for folder in reversed(folders) for path in sorted(folder.glob("*.yaml"))}


def find_manifest(name: str) -> Path:
    """Return the path of a manifest, given as a path or as the name of an installed manifest.

    Raises:
        ManifestError: there is no such manifest.

    """
    refuse_url(name, "manifest", ManifestError)
    with suppress(OSError):  # too long for the name of a file
        if Path(name).is_file():
            return Path(name)
    found = installed_manifests()
    if name in found:
        return found[name]
    raise ManifestError(
        f"no manifest {name!r:.200}: no such file, and installed are {', '.join(found)}{nearest(name, found)}"
    )

"""The manifests that come with the package."""

from pathlib import Path

from mmlongbench.errors import ManifestError, nearest

_PACKAGE = Path(__file__).parents[1]


def installed_manifests() -> dict[str, Path]:
    """Return the installed manifests by name: from beside the installed package, or from the checkout that is
    running.
    """
    folders = (_PACKAGE / "installed_manifests", _PACKAGE.parent / "manifests")
    return {path.stem: path for folder in reversed(folders) for path in sorted(folder.glob("*.yaml"))}


def find_manifest(name: str) -> Path:
    """Find a manifest by its path, or by the name of an installed one."""
    if Path(name).is_file():
        return Path(name)
    found = installed_manifests()
    if name in found:
        return found[name]
    raise ManifestError(
        f"no manifest {name!r}: no such file, and installed are {', '.join(found)}{nearest(name, found)}"
    )

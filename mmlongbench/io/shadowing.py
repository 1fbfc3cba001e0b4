"""Finds out whether a folder or file hides one of our packages, because Python finds it first. This module imports
nothing of ours but errors, so that it works when such a package is hidden.
"""

import os
from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("tokenization", "builders")
"""The packages that lie beside the engine, and whose names other people use too."""
_HOME = Path(__file__).resolve().parents[2]


def shadowed(packages: tuple[str, ...] = PACKAGES) -> str:
    """Return a line that names the folder or file which hides one of our packages, and says what to do; empty if none
    is hidden.
    """
    for package in packages:
        ours = _HOME / package / "__init__.py"
        found = PathFinder.find_spec(package)
        first = Path(found.origin).resolve() if found and found.origin else None
        if ours.is_file() and first is not None and first != ours:
            hiding = first.parent if first.name == "__init__.py" else first
            return (
                f"{hiding} hides the package {package!r} of mmlongbench ({ours.parent}), because Python finds it "
                f"first: rename it, or {_remedy(hiding.parent)}"
            )
    return ""


def _remedy(folder: Path) -> str:
    """Return how to make Python find no packages in a folder."""
    listed = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if any(Path(each).resolve() == folder for each in listed if each):
        return f"take {folder} out of PYTHONPATH"
    return f"run the command in another folder than {folder}"

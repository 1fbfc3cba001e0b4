"""Finds out whether Python imports a folder or file of the user instead of one of our packages with the same name. This
module imports none of our modules, so it also works when one of our packages is hidden.
"""

import os
from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("tokenization", "builders")
"""The packages that lie beside the engine, and whose names other people use too."""
_HOME = Path(__file__).resolve().parents[2]


def shadowed(packages: tuple[str, ...] = PACKAGES) -> str:
    """If a folder or file hides one of our packages from import, return a line that names it and says what to do.
    Return an empty text if no package is hidden.
    """
    for package in packages:
        ours = _HOME / package / "__init__.py"
        found = PathFinder.find_spec(package)
        first = Path(found.origin).resolve() if found and found.origin else None
        if ours.is_file() and first is not None and first != ours:
            hiding = first.parent if first.name == "__init__.py" else first
            return (
                f"{hiding} hides the package {package!r} of mmlongbench ({ours.parent}), because Python finds it "
                f"first; rename {hiding.name}, or {_remedy(hiding.parent)}"
            )
    return ""


def _remedy(folder: Path) -> str:
    """Return how to make Python find no packages in a folder."""
    listed = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if any(Path(each).resolve() == folder for each in listed if each):
        return f"take {folder} out of PYTHONPATH"
    return f"run the command in another folder than {folder}"

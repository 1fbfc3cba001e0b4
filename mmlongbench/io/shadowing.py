"""Finds out whether Python imports a folder or file of the user instead of one of our packages with the same name. This
module imports none of our modules, so it also works when one of our packages is hidden.
"""

import os
from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("tokenization", "builders")
"""The packages that lie beside the engine, and whose names other people use too."""
_HOME = Path(__file__).resolve().parents[2]


def shadowed() -> str:
    """If a folder or file hides one of our packages from import, return a line that names it and says what to do.
    Return an empty text if no package is hidden.
    """
    for package in PACKAGES:
        ours = _HOME / package / "__init__.py"
        spec = PathFinder.find_spec(package)
        first = Path(spec.origin).resolve() if spec and spec.origin else None
        if ours.is_file() and first is not None and first != ours:
            hiding = first.parent if first.name == "__init__.py" else first
            listed = [Path(path).resolve() for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
            todo = f"run the command in another folder than {hiding.parent}"
            if hiding.parent in listed:
                todo = f"take {hiding.parent} out of PYTHONPATH"
            return (
                f"{hiding} hides the package {package!r} of mmlongbench ({ours.parent}), because Python finds it "
                f"first; rename {hiding.name}, or {todo}"
            )
    return ""

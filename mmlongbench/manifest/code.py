"""The code that makes the bytes of a release, as the lock names it: every plug-in of a dataset with its distribution,
its version and a fingerprint of its source.
"""

import hashlib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mmlongbench.manifest.model import SAMPLE, DatasetSpec
from mmlongbench.manifest.plugins import found_in
from mmlongbench.manifest.task_files import portable_name, task_file

ENGINE = "mmlongbench"
"""The distribution of the engine. The version of the engine stands for its code."""


class PluginCode(BaseModel):
    """The code of one plug-in."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    """The name of the plug-in; for a task file, its name without folders."""
    distribution: str = ""
    """The installed distribution that it belongs to; empty for a task file."""
    version: str = ""
    """The version of the distribution; empty for a task file."""
    sha256: str = ""
    """The SHA-256 of a task file, or of the list of all Python files of an installed plug-in's package with their
    hashes; empty for plug-ins of the engine, whose code the version names."""


def code_of(spec: DatasetSpec, metric: str) -> dict[str, PluginCode]:
    """Return the code of the plug-ins that make the bytes of a dataset, by the kind of the plug-in.

    Images are counted by the rule that the manifest sets under `counter`, which is code of the engine.

    Raises:
        PluginError: a plug-in cannot be found.

    """
    names = {"builder": spec.builder, "reader": spec.reader, "metric": metric}
    if spec.source == SAMPLE:
        names["sample"] = spec.reader
    return {kind: plugin_code(kind, name) for kind, name in names.items()}


def plugin_code(kind: str, name: str) -> PluginCode:
    """Return the code of a plug-in.

    Raises:
        PluginError: the plug-in cannot be found.

    """
    if found := task_file(name):
        return PluginCode(name=portable_name(name), sha256=found.sha256)
    point = found_in(kind, name)
    distribution = point.dist.name if point.dist else ""
    if distribution == ENGINE:
        return PluginCode(name=name, distribution=ENGINE, version=version(ENGINE))
    return PluginCode(
        name=name,
        distribution=distribution,
        version=point.dist.version if point.dist else "",
        sha256=package_sha256(point.module.partition(".")[0]),
    )


def package_sha256(name: str) -> str:
    """Return a fingerprint of the Python files of a package, or of a module: the SHA-256 of a list, which has the hash
    and the path of each file.
    """
    spec = find_spec(name)
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    files = [(path.relative_to(folder).as_posix(), path) for folder in folders for path in sorted(folder.rglob("*.py"))]
    if spec and spec.origin and not folders:
        files = [(Path(spec.origin).name, Path(spec.origin))]
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n" for name, path in files)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()

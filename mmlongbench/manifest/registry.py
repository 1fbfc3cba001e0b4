"""Finds builders, readers, samples and metrics by name, through entry points; the built-in ones are found in the same
way.
"""

import os
import sys
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

from mmlongbench.errors import PluginError, nearest
from mmlongbench.io.shadowing import shadowed
from mmlongbench.manifest.contracts import contract_fault
from mmlongbench.manifest.task_files import load_class, portable_name, task_file, without_module
from mmlongbench.task.builder import Builder
from mmlongbench.task.metric import PROFILES, Metric
from mmlongbench.task.reader import Reader, SampleFunction
from mmlongbench.task.rows import Row
from mmlongbench.task.task import Task

GROUPS = {
    "builder": "mmlongbench.builders",
    "reader": "mmlongbench.readers",
    "sample": "mmlongbench.samples",
    "metric": "mmlongbench.metrics",
}
"""The group of entry points of each kind of plug-in."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed builder, reader, sample or metric."""

    kind: str
    name: str
    origin: str
    """The distribution that it belongs to."""
    summary: str = ""
    problem: str = ""
    """Why it cannot be used; empty if it can."""
    profiles: tuple[str, ...] = ()
    """The profiles that a metric can follow, the default first; empty for other plug-ins."""


def builder_type(name: str) -> type[Builder[Row]]:
    """Return the class of a builder."""
    found: type[Builder[Row]] = _load("builder", name)
    return found


def reader_type(name: str) -> type[Reader[Row]]:
    """Return the class of a reader."""
    found: type[Reader[Row]] = _load("reader", name)
    return found


def sample_function(reader: str) -> SampleFunction:
    """Return the function that draws the sample of a reader."""
    found: SampleFunction = _load("sample", reader)
    return found


def metric_type(name: str) -> type[Metric]:
    """Return the class of a metric."""
    found: type[Metric] = _load("metric", name)
    return found


def described(kind: str, name: str) -> str:
    """Return a plug-in as messages show it, such as `builder 'fables' (fables:Fables of mmlongbench-fables)`. A plug-in
    in a task file is shown as `builder 'fables.py:Fables'`.
    """
    if found := task_file(name):
        return f"{kind} {found.shown!r}"
    origins = sorted({f"{point.value} of {_origin(point)}" for point in _points(kind).select(name=name)})
    return f"{kind} {name!r}{f' ({origins[0]})' if origins else ''}"


def is_installed(kind: str, name: str) -> bool:
    """Return whether a plug-in of this name is installed, without loading it."""
    return bool(_points(kind).select(name=name))


def found_in(kind: str, name: str) -> EntryPoint:
    """Return the entry point of a plug-in. A reader that is not installed may be a `Task` among the builders.

    Raises:
        PluginError: there is no such plug-in, or there are two.

    """
    points = _points(kind).select(name=name) or (_points("builder").select(name=name) if kind == "reader" else ())
    if not points:
        names = sorted({point.name for point in _points(kind)})
        raise PluginError(f"no {kind} {name!r} is installed (there are: {', '.join(names)}){nearest(name, names)}")
    if len(points) > 1 and len(origins := sorted({f"{point.value} of {_origin(point)}" for point in points})) > 1:
        raise PluginError(f"two {kind}s are called {name!r}: {' and '.join(origins)}; uninstall one")
    return next(iter(points))


def installed(kind: str) -> list[Plugin]:
    """Return every plug-in of a kind, after trying to load it; the `problem` of a broken one says what is wrong."""
    points = sorted(_points(kind), key=lambda point: (point.name, point.value))
    return [_try(kind, point, points) for point in points]


def _points(kind: str) -> EntryPoints:
    """Return the entry points of a kind."""
    return _points_in(kind, tuple((folder, _changed(folder)) for folder in sys.path))


@lru_cache(maxsize=16)
def _points_in(kind: str, folders: tuple[tuple[str, int], ...]) -> EntryPoints:
    """Return the entry points of a kind. The result is kept while the folders do not change, because Python reads a
    file of every installed package to find entry points.
    """
    return entry_points(group=GROUPS[kind])


def _changed(folder: str) -> int:
    """Return when something was last installed into a folder, in nanoseconds; 0 if the folder does not exist."""
    try:
        return os.stat(folder or ".").st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def _load(kind: str, name: str) -> Any:  # noqa: ANN401  (a class or a function, typed by the callers)
    if found := task_file(name):
        return _checked(kind, name, load_class(found), f"{kind} {found.shown!r} is broken: ")
    point = found_in(kind, name)
    if kind == "sample":
        import mmlongbench.documents.plain_mupdf  # noqa: F401  (what samples draw needs no networks)
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # a plug-in's module may fail in any way; the cause is kept
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        hidden = shadowed() if isinstance(error, ImportError | AttributeError) else ""
        raise PluginError(f"{_broken(kind, point)}{said}{f'; {hidden}' if hidden else ''}") from error
    return _checked(kind, name, loaded, _broken(kind, point))


def _checked(kind: str, name: str, loaded: object, broken: str) -> Any:  # noqa: ANN401  (see `_load`)
    """Return a plug-in that keeps its contract; as a reader, a `Task` is replaced by the reader of its rows."""
    is_task = isinstance(loaded, type) and issubclass(loaded, Task)
    if kind == "reader" and not is_task and isinstance(loaded, type) and issubclass(loaded, Builder):
        readers = ", ".join(sorted({point.name for point in _points("reader")}))
        raise PluginError(
            f"builder {portable_name(name)!r} is no mt.Task, so it needs a reader; set `reader`: {readers}"
        )
    try:
        fault = contract_fault("builder" if is_task else kind, loaded)
    except Exception as error:  # a plug-in may fail when its members are read
        raise PluginError(f"{broken}its members cannot be read: {type(error).__name__}: {error}") from error
    if fault:
        raise PluginError(f"{broken}{without_module(fault)}")
    return (
        loaded.reader_type() if kind == "reader" and isinstance(loaded, type) and issubclass(loaded, Task) else loaded
    )


def _broken(kind: str, point: EntryPoint) -> str:
    return f"{kind} {point.name!r} ({point.value} of {_origin(point)}) is broken: "


def _try(kind: str, point: EntryPoint, points: list[EntryPoint]) -> Plugin:
    try:
        loaded = _load(kind, point.name)
    except PluginError as error:
        return Plugin(kind, point.name, _origin(point), problem=str(error))
    if kind == "sample" and not is_installed("reader", point.name):
        problem = f"{described(kind, point.name)} is never drawn: no reader {point.name!r} is installed"
        return Plugin(kind, point.name, _origin(point), problem=problem)
    documented = loaded.func if isinstance(loaded, partial) else loaded
    summary = (documented.__doc__ or "").strip().splitlines()
    return Plugin(kind, point.name, _origin(point), summary[0] if summary else "", profiles=_profiles(loaded))


def _profiles(loaded: object) -> tuple[str, ...]:
    """Return the profiles that a metric offers, its default first; empty for other plug-ins."""
    if not (isinstance(loaded, type) and issubclass(loaded, Metric)):
        return ()
    return tuple(profile for profile in PROFILES if profile in loaded.profiles)


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unnamed distribution"

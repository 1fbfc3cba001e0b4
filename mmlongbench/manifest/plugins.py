"""Builders, readers, samples and metrics by name: finds them through entry points, the built-in ones like all others,
checks their contracts, and says which code they are.
"""

import hashlib
import inspect
import os
import re
import sys
from abc import ABCMeta
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, EntryPoints, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from mmlongbench.errors import PluginError, nearest
from mmlongbench.io.shadowing import shadowed
from mmlongbench.manifest.task_files import load_class, portable_name, task_file
from mmlongbench.task.builder import Builder, ExaminingBuilder, SharedContextBuilder
from mmlongbench.task.metric import PROFILES, Metric, MetricWithTotals
from mmlongbench.task.reader import Reader, SampleFiles, SampleFunction
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import Options
from mmlongbench.task.task import Task, task_fault

GROUPS = {
    "builder": "mmlongbench.builders",
    "reader": "mmlongbench.readers",
    "sample": "mmlongbench.samples",
    "metric": "mmlongbench.metrics",
}
"""The group of entry points of each kind of plug-in."""
CONTRACTS: Mapping[str, tuple[ABCMeta, tuple[str, ...], tuple[ABCMeta, ...]]] = {
    "builder": (Builder, ("row_type",), (SharedContextBuilder, ExaminingBuilder)),
    "task": (Task, ("row_type", "metric"), (SharedContextBuilder, ExaminingBuilder)),
    "reader": (Reader, ("row_type", "sources", "image_folder"), ()),
    "metric": (Metric, ("name",), (MetricWithTotals,)),
}
"""The base class of each kind of plug-in, the class attributes for which it has no default, and its subclasses whose
further methods are called only on their own subclasses."""
_RENAMED = {"gold": "answer_of", "question": "question_of"}
"""Methods of builders that had another name in earlier versions, by that name. Without a word they would be ignored."""


def contract_fault(kind: str, loaded: object) -> str:
    """Return why an object is not a valid plug-in of its kind; empty if it is."""
    if kind == "sample":
        if isinstance(loaded, type) or not callable(loaded):
            return f"{loaded!r} is not a function that draws a sample into a folder"
        try:
            inspect.signature(loaded).bind(Path())
        except TypeError as error:
            return f"it cannot be called with a folder alone: {error}"
        return ""
    is_task = kind == "builder" and isinstance(loaded, type) and issubclass(loaded, Task)
    base, needed, further = CONTRACTS["task" if is_task else kind]
    if not (isinstance(loaded, ABCMeta) and issubclass(loaded, base)):
        return f"{loaded!r} is not a subclass of {_name(base)}"
    members = set(dir(loaded))
    if missing := sorted({*loaded.__abstractmethods__, *(name for name in needed if name not in members)}):
        return f"{loaded!r} lacks {', '.join(missing)}, which a {kind} needs"
    for other in further:
        for name in sorted(other.__abstractmethods__ - set(dir(base))):
            if not issubclass(loaded, other) and callable(getattr(loaded, name, None)):
                return f"{loaded!r} has a method {name!r}, but is not a subclass of {_name(other)}, which defines it"
    if base is Metric and loaded.__init__ is Metric.__init__:
        for name in ("profile", "follows"):
            if name in members:
                return f"{loaded!r} sets {name!r}, which __init__ of {_name(base)} sets to something else"
    declaring = (base, *(other for other in further if issubclass(loaded, other)))
    if wrong := _wrong_member(loaded, declaring):
        return f"{loaded!r}: {wrong}, as in every {kind}"
    if wrong := _wrong_value(loaded, base):
        return f"{loaded!r}: {wrong}"
    return task_fault(loaded) if is_task and issubclass(loaded, Task) else ""


def _wrong_member(loaded: type, bases: Iterable[type]) -> str:
    for name, declared in ((name, member) for base in bases for name, member in vars(base).items()):
        wanted = ""
        if name.startswith("__"):
            continue
        found = inspect.getattr_static(loaded, name)
        if isinstance(declared, classmethod):
            wanted = "" if isinstance(found, classmethod | staticmethod) else "class method"
        elif inspect.isfunction(declared):
            wanted = "" if callable(getattr(loaded, name)) else "method"
        elif inspect.isfunction(found):
            wanted = "property or a value, not a method"
        if wanted:
            return f"{name!r} must be a {wanted}"
    return ""


def _wrong_value(loaded: type, base: type) -> str:
    """Return which class attribute has a wrong value or an old name, and what was expected; empty if none has. Only
    attributes that the base declares, or declared in earlier versions, are looked at.
    """
    declared = {*dir(base), *(name for each in base.__mro__ for name in inspect.get_annotations(each))}
    members = {name: getattr(loaded, name) for name in declared.intersection(dir(loaded))}
    for name, wanted in (("row_type", Row), ("options_type", Options)):
        found = members.get(name, wanted)
        if not (isinstance(found, type) and issubclass(found, wanted)):
            return f"{name!r} is {found!r}, expected a subclass of {_name(wanted)}"
    for name in ("name", "image_folder"):
        if not isinstance(found := members.get(name, ""), str):
            return f"{name!r} is {found!r}, expected a text"
    for name in ("record_fields", "source_forms", "extracted_from", "profiles"):
        found = members.get(name, {})
        if not isinstance(found, Mapping):
            return f"{name!r} is {found!r:.80}, expected a mapping from names to texts"
        if wrong := [key for key, text in found.items() if not (isinstance(key, str) and isinstance(text, str))]:
            return f"{name!r} has {wrong[0]!r:.80}: {found[wrong[0]]!r:.80}, expected a name and a text"
    for old, new in _RENAMED.items() if issubclass(loaded, Builder) and not issubclass(loaded, Task) else ():
        method = inspect.getattr_static(loaded, old, None)
        if inspect.isfunction(method) and (old == "gold" or "record" in inspect.signature(method).parameters):
            return f"{old!r} is now called {new!r}, so the method {old!r} has no effect: rename it"
    if issubclass(loaded, Metric) and not loaded.profiles:
        return "'profiles' is empty, expected the source of each profile"
    if issubclass(loaded, Reader):
        sources = (*loaded.sources, *loaded.optional_sources)
        if unknown := [name for name in loaded.source_forms if name not in sources]:
            known = f"its sources are {', '.join(sources)}"
            return f"'source_forms' has {unknown[0]!r}, which is no source of it; {known}"
    return ""


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed builder, reader, sample or metric."""

    kind: str
    name: str
    origin: str
    summary: str = ""
    problem: str = ""
    """Why it cannot be used; empty if it can."""
    profiles: tuple[str, ...] = ()
    """The profiles that a metric can follow, the default first; empty for other plug-ins."""


def builder_type(name: str) -> type[Builder[Row]]:
    return cast("type[Builder[Row]]", _load("builder", name))


def reader_type(name: str) -> type[Reader[Row]]:
    return cast("type[Reader[Row]]", _load("reader", name))


def sample_function(reader: str) -> SampleFunction:
    return cast("SampleFunction", _load("sample", reader))


def metric_type(name: str) -> type[Metric]:
    return cast("type[Metric]", _load("metric", name))


def described(kind: str, name: str) -> str:
    """Return a plug-in as messages show it, such as `builder 'fables' (fables:Fables of mmlongbench-fables)`. A plug-in
    in a task file is shown as `builder 'fables.py:Fables'`.
    """
    if file := task_file(name):
        return f"{kind} {file.shown!r}"
    origins = sorted({f"{point.value} of {_origin(point)}" for point in _points(kind).select(name=name)})
    return f"{kind} {name!r}{f' ({origins[0]})' if origins else ''}"


def is_installed(kind: str, name: str) -> bool:
    """Return whether a plug-in of this name is installed, without loading it."""
    return bool(_points(kind).select(name=name))


def _point(kind: str, name: str) -> EntryPoint:
    """Return the entry point of a plug-in. A reader that is not installed may be a `Task` among the builders."""
    points = _points(kind).select(name=name) or (_points("builder").select(name=name) if kind == "reader" else ())
    if not points:
        names = sorted({point.name for point in _points(kind)})
        raise PluginError(f"no {kind} {name!r} is installed (there are: {', '.join(names)}){nearest(name, names)}")
    if len(points) > 1 and len(origins := sorted({f"{point.value} of {_origin(point)}" for point in points})) > 1:
        raise PluginError(f"two {kind}s are called {name!r}: {' and '.join(origins)}; uninstall one")
    return next(iter(points))


def installed(kind: str) -> list[Plugin]:
    """Return every plug-in of a kind, after trying to load it; the `problem` of a broken one says what is wrong."""
    plugins = []
    for point in sorted(_points(kind), key=lambda point: (point.name, point.value)):
        name, origin = point.name, _origin(point)
        try:
            loaded = _load(kind, name)
            if kind == "sample" and not is_installed("reader", name):
                raise PluginError(f"{described(kind, name)} is never drawn: no reader {name!r} is installed")
        except PluginError as error:
            plugins.append(Plugin(kind, name, origin, problem=str(error)))
            continue
        summary = docstring(loaded).partition("\n")[0]
        profiles = tuple(profile for profile in PROFILES if profile in loaded.profiles) if kind == "metric" else ()
        plugins.append(Plugin(kind, name, origin, summary, profiles=profiles))
    return plugins


def docstring(loaded: object) -> str:
    """Return what a plug-in says about itself."""
    documented = loaded.func if isinstance(loaded, partial) else loaded
    return loaded.about if isinstance(loaded, SampleFiles) else inspect.cleandoc(documented.__doc__ or "")


def _points(kind: str) -> EntryPoints:
    return points_of(GROUPS[kind])


def points_of(group: str) -> EntryPoints:
    """Return the installed entry points of a group."""
    changed = []
    for folder in sys.path:
        try:
            changed.append((folder, os.stat(folder or ".").st_mtime_ns))  # noqa: PTH116
        except OSError:
            changed.append((folder, 0))
    found: EntryPoints = _points_in(tuple(changed)).select(group=group)
    return found


@lru_cache(maxsize=1)
def _points_in(folders: tuple[tuple[str, int], ...]) -> Any:  # noqa: ANN401  (Python 3.11 has a type of its own for it)
    """Return all entry points. They are kept until something is installed into one of the folders (path, time of the
    last change), because Python reads a file of every installed package to find entry points.
    """
    return entry_points()


def _load(kind: str, name: str) -> Any:  # noqa: ANN401  (a class or a function, typed by the callers)
    """Return a plug-in that keeps its contract; as a reader, a `Task` is replaced by the reader of its rows."""
    if file := task_file(name):
        broken = f"{kind} {file.shown!r} is broken: "
        loaded: Any = load_class(file)
    else:
        point = _point(kind, name)
        broken = f"{kind} {point.name!r} ({point.value} of {_origin(point)}) is broken: "
        if kind == "sample":
            import mmlongbench.documents.mupdf  # noqa: F401  (what samples draw needs no networks)
        try:
            loaded = point.load()
        except (Exception, SystemExit) as error:  # a plug-in's module may fail in any way; the cause is kept
            said = f"{type(error).__name__}: {' '.join(str(error).split())}"
            hidden = shadowed() if isinstance(error, ImportError | AttributeError) else ""
            raise PluginError(f"{broken}{said}{f'; {hidden}' if hidden else ''}") from error
    as_reader = kind == "reader" and isinstance(loaded, type) and issubclass(loaded, Builder)
    if as_reader and not issubclass(loaded, Task):
        readers = ", ".join(sorted({point.name for point in _points("reader")}))
        raise PluginError(
            f"builder {portable_name(name)!r} is no mt.Task, so it needs a reader; set `reader`: {readers}"
        )
    try:
        fault = contract_fault("builder" if as_reader else kind, loaded)
    except Exception as error:  # a plug-in may fail when its members are read
        raise PluginError(f"{broken}its members cannot be read: {type(error).__name__}: {error}") from error
    if fault:
        fault = re.sub(r"mmlongbench_task_[0-9a-f]{16}\.", "", fault)  # the names that modules of task files have
        raise PluginError(f"{broken}{fault}")
    return loaded.reader_type() if as_reader else loaded


@lru_cache  # Python parses the metadata of the distribution each time
def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unnamed distribution"


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


def plugin_code(kind: str, name: str) -> PluginCode:
    """Return which code a plug-in is, as the lock names it; a `PluginError` if it cannot be found."""
    if file := task_file(name):
        return PluginCode(name=file.shown, sha256=file.sha256)
    point = _point(kind, name)
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

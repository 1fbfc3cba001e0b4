"""Finds builders, readers, samples and metrics by name, through entry points; the built-in ones are found in the same
way.
"""

import inspect
import os
import sys
from abc import ABCMeta
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial, partialmethod
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, get_origin

from mmlongbench.errors import PluginError, nearest
from mmlongbench.io.shadowing import shadowed
from mmlongbench.manifest.task_files import load_class, portable_name, task_file, without_module
from mmlongbench.task.builder import Builder, ExaminingBuilder, SharedContextBuilder
from mmlongbench.task.metric import PROFILES, Metric, MetricWithTotals
from mmlongbench.task.reader import Reader, SampleFunction
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import Options
from mmlongbench.task.task import Task, task_fault

_METHODS = (FunctionType, classmethod, staticmethod)
_PROPERTIES = (property, cached_property)


@dataclass(frozen=True, slots=True)
class Contract:
    """The requirements for a kind of plug-in."""

    base: ABCMeta
    """The base class of such plug-ins."""
    needed: tuple[str, ...]
    """The class attributes for which the base has no default."""
    types: Mapping[str, type]
    """The class attributes whose value is a class, each with the class that the value must be a subclass of."""
    asked_of_class: tuple[str, ...]
    """Names of attributes that are read from the class itself, so that they must not be properties."""
    overwritten: tuple[str, ...] = ()
    """Names of attributes that `__init__` of the base sets, so that a plug-in must not set them in its class."""
    texts: tuple[str, ...] = ()
    """The class attributes whose value is a mapping from names to texts."""
    further: tuple[ABCMeta, ...] = ()
    """Subclasses of the base that define more methods. These methods are called only if the plug-in is a subclass of
    the class that defines them."""


CONTRACTS: Mapping[str, Contract] = {
    "builder": Contract(
        Builder,
        ("row_type",),
        {"row_type": Row, "options_type": Options},
        ("row_type", "options_type", "record_fields"),
        texts=("record_fields",),
        further=(SharedContextBuilder, ExaminingBuilder),
    ),
    "reader": Contract(
        Reader,
        ("row_type", "sources", "image_folder"),
        {"row_type": Row},
        ("row_type", "image_folder", "source_forms", "extracted_from"),
        texts=("source_forms", "extracted_from"),
    ),
    "metric": Contract(
        Metric, ("name",), {}, ("name", "profiles"), ("profile", "follows"), further=(MetricWithTotals,)
    ),
}

TASK = replace(CONTRACTS["builder"], base=Task, needed=("row_type", "metric"))
"""The contract of a `Task`: a builder that brings the reader of its rows."""


def contract_fault(kind: str, loaded: object) -> str:
    """Return why an object is not a valid plug-in of its kind; empty if it is."""
    if kind == "sample":
        return _sample_fault(loaded)
    is_task = isinstance(loaded, type) and issubclass(loaded, Task)
    contract = TASK if is_task else CONTRACTS[kind]
    if not (isinstance(loaded, ABCMeta) and contract.base in loaded.__mro__):
        return f"{loaded!r} is not a subclass of {_name(contract.base)}"
    known = set(dir(loaded))
    if missing := sorted({*loaded.__abstractmethods__, *(name for name in contract.needed if name not in known)}):
        return f"{loaded!r} lacks {', '.join(missing)}, which a {kind} needs"
    fault = next(_faults(kind, loaded, contract), "")
    return task_fault(loaded) if not fault and issubclass(loaded, Task) else fault


def _sample_fault(loaded: object) -> str:
    """Return why an object is not a function that draws a sample; empty if it is."""
    if isinstance(loaded, type) or not callable(loaded):
        return f"{loaded!r} is not a function that draws a sample into a folder"
    try:
        inspect.signature(loaded).bind(Path())
    except TypeError as error:
        return f"it cannot be called with a folder alone: {error}"
    return ""


def _faults(kind: str, loaded: type, contract: Contract) -> Iterator[str]:
    """Yield the faults of a class: a member is not of the kind (method, property, value) that the contract demands, or
    a class attribute has a wrong value.
    """
    yield from _uncalled(loaded, contract)
    yield from _values(kind, loaded, contract)
    bases = (contract.base, *(further for further in contract.further if further in loaded.__mro__))
    for name, value in ((name, value) for base in bases for name, value in vars(base).items() if name[:2] != "__"):
        if wanted := _wanted(value, inspect.getattr_static(loaded, name)):
            yield f"{loaded!r}: {name!r} must be a {wanted}, as in every {kind}"
    if inspect.getattr_static(loaded, "__init__") is inspect.getattr_static(contract.base, "__init__"):
        for name in contract.overwritten:
            if name in dir(loaded) and not inspect.ismemberdescriptor(inspect.getattr_static(loaded, name)):
                yield f"{loaded!r} sets {name!r}, which __init__ of {_name(contract.base)} sets to something else"


def _uncalled(loaded: type, contract: Contract) -> Iterator[str]:
    """Yield a fault for each method that would never be called: a class in `Contract.further` defines it, but the
    plug-in is not a subclass of that class.
    """
    for further in contract.further:
        for name in sorted(further.__abstractmethods__ - contract.base.__abstractmethods__):
            if further not in loaded.__mro__ and isinstance(inspect.getattr_static(loaded, name, None), _METHODS):
                yield f"{loaded!r} has a method {name!r}, but is not a subclass of {_name(further)}, which defines it"


def _values(kind: str, loaded: type, contract: Contract) -> Iterator[str]:
    """Yield a fault for each class attribute with a wrong value or type."""
    declared = {name for name, kind in inspect.get_annotations(contract.base).items() if _is_of_class(kind)}
    for name in sorted(declared & set(dir(loaded))):
        kinds = (*_METHODS, *_PROPERTIES) if name in contract.asked_of_class else _METHODS
        if isinstance(inspect.getattr_static(loaded, name), kinds):
            yield f"{loaded!r}: {name!r} must be a value of the class, as in every {kind}"
    for name, wanted in contract.types.items():
        if not (isinstance(found := getattr(loaded, name), type) and issubclass(found, wanted)):
            yield f"{loaded!r}: {name!r} is {found!r}, expected a subclass of {_name(wanted)}"
    for name in contract.texts:
        yield from _of_texts(loaded, name, inspect.getattr_static(loaded, name))
    if "profiles" in contract.asked_of_class and not (
        isinstance(found := inspect.getattr_static(loaded, "profiles"), Mapping) and found
    ):
        yield f"{loaded!r}: 'profiles' is {found!r}, expected the source of each profile that it offers"


def _of_texts(loaded: type, name: str, found: object) -> Iterator[str]:
    """Yield the fault of a class attribute that must be a mapping from names to texts, if it is none; or of a form for
    something that is no source of a reader.
    """
    if not isinstance(found, Mapping):
        yield f"{loaded!r}: {name!r} is {found!r:.80}, expected a mapping from names to texts"
    elif wrong := next(
        (key for key, text in found.items() if not (isinstance(key, str) and isinstance(text, str))), None
    ):
        yield f"{loaded!r}: {name!r} has {wrong!r:.80}: {found[wrong]!r:.80}, expected a name and a text"
    elif name == "source_forms" and issubclass(loaded, Reader):
        needed = listed_names(loaded, "sources")
        sources = (*needed, *listed_names(loaded, "optional_sources"))
        if needed and (unknown := [key for key in found if key not in sources]):
            known = f"its sources are {', '.join(sources)}"
            yield f"{loaded!r}: 'source_forms' has {unknown[0]!r}, which is no source of it; {known}"


def listed_names(loaded: type, name: str) -> tuple[str, ...]:
    """Return names that a class attribute lists; empty for an attribute that is read from an object."""
    found = inspect.getattr_static(loaded, name)
    return tuple(found) if isinstance(found, list | tuple) else ()


def _wanted(value: object, found: object) -> str:
    """Return which kind of member a plug-in must have in place of `value`, a member of the base class. Return an empty
    text if `found`, the plug-in's member, is of that kind.
    """
    if inspect.isfunction(value):
        return "" if _is_method(found) else "method"
    if isinstance(value, classmethod):
        return "" if isinstance(found, classmethod | staticmethod) else "class method"
    if isinstance(value, property):
        return "property or a value" if inspect.isfunction(found) else ""
    return "value or a property" if inspect.isfunction(found) and not callable(value) else ""


def _is_method(found: object) -> bool:
    """Return whether a member of a class can be called on the objects of the class."""
    return isinstance(found, (*_METHODS, *_PROPERTIES, partialmethod)) or callable(found)


def _is_of_class(kind: object) -> bool:
    """Return whether an annotation marks a class attribute."""
    return get_origin(kind) is ClassVar


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


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
        import mmlongbench.documents.mupdf  # noqa: F401  (what samples draw needs no networks)
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

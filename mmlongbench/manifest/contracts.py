"""Checks whether a plug-in keeps its contract before it is called: the class of a builder, reader or metric, or the
function of a sample.
"""

import inspect
from abc import ABCMeta
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partialmethod
from pathlib import Path
from types import FunctionType
from typing import ClassVar, get_origin

from mmlongbench.task.builder import Builder, ExaminingBuilder, SharedContextBuilder
from mmlongbench.task.metric import Metric, MetricWithTotals
from mmlongbench.task.reader import Reader
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

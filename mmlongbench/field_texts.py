"""Shows in `help()` what each field of a class means, from the texts below the fields in the source code.

A text is written once, below its field. Python does not keep these texts, so they are read from the source: when the
docstring is read or, for a class with a metaclass, when `with_field_texts` is called.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TypeVar

_ClassT = TypeVar("_ClassT", bound=type)
_PACKAGES = ("mmlongbench", "tokenization")
"""The packages whose source code is read."""
_HEAD = "\nAttributes:"
_WIDTH = 100


def with_field_texts(kind: _ClassT) -> _ClassT:
    """Return the same class; if it has fields with texts, its docstring gets a section `Attributes` at the end.

    The section is made when the docstring is read. A class with a metaclass gets it at once, because `help()` reads the
    docstring of such a class directly from the class namespace.
    """
    own = kind.__dict__.get("__doc__") or ""
    if not isinstance(own, _Docstring) and _HEAD not in own:
        docstring = _Docstring(own)
        type.__setattr__(kind, "__doc__", docstring if type(kind) is type else docstring.__get__(None, kind))
    return kind


def field_texts(kind: type) -> dict[str, str]:
    """Return the text of each field of a class and of its bases, for fields that have one."""
    return _texts_of(each for each in kind.__mro__ if each.__module__.split(".")[0] in _PACKAGES)


def field_texts_anywhere(kind: type) -> dict[str, str]:
    """Return the text of each field like `field_texts`, but also for classes that are not in our packages, such as the
    options of a plug-in.
    """
    return _texts_of(kind.__mro__)


def _texts_of(kinds: Iterable[type]) -> dict[str, str]:
    """Return the texts of the fields of classes; the text of an earlier class counts."""
    found: dict[str, str] = {}
    for each in kinds:
        found = {**_own_texts(each), **found}
    return found


class _Docstring:
    """The docstring of a class, made when it is read."""

    def __init__(self, text: str) -> None:
        self._text = inspect.cleandoc(text)

    def __get__(self, instance: object, owner: type) -> str:
        lines = [f"    {line}" for name, text in field_texts(owner).items() for line in _wrapped(name, text)]
        return "\n".join([self._text, _HEAD, *lines]) if lines else self._text


def _wrapped(name: str, text: str) -> list[str]:
    return textwrap.wrap(f"{name}: {text}", _WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _own_texts(kind: type) -> Mapping[str, str]:
    """Return the texts of the fields that a class itself declares; empty if its source code is not available."""
    try:
        file = inspect.getsourcefile(kind)
    except (TypeError, OSError):
        file = None
    node = _classes(file).get(kind.__name__) if file else None
    return dict(_texts(node)) if node else {}


@cache
def _classes(file: str) -> Mapping[str, ast.ClassDef]:
    """Return the classes of a module by name."""
    try:
        with open(file, encoding="utf-8") as source:  # noqa: PTH123  (the path comes from Python)
            body = ast.parse(source.read()).body
    except OSError:
        return {}
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}


def _texts(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each public field that a class declares, or that its `__init__` sets."""
    makers = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    for body in (node.body, *(maker.body for maker in makers)):
        yield from _below(body)


def _below(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each field with a text directly below it."""
    for field, below in pairwise(body):
        name = _name(field)
        if name and not name.startswith("_") and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield name, " ".join(str(below.value.value).split())


def _name(statement: ast.stmt) -> str:
    """Return the name that a statement declares (`name: type`) or sets on an object (`self.name = …`); empty for any
    other statement.
    """
    target = statement.target if isinstance(statement, ast.AnnAssign) else None
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        target = statement.targets[0]
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""

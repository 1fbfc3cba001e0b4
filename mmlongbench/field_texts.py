"""Shows in `help()` what each field of a class means, from the texts below the fields in the source code.

A text is written once, below its field. Python does not keep these texts, so they are read from the source: when the
docstring is read or, for a class with a metaclass, when `with_field_texts` is called.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import TypeVar

_ClassT = TypeVar("_ClassT", bound=type)
_FOREIGN = {*sys.stdlib_module_names, "pydantic"}
"""The packages whose source code is not read."""
_HEAD = "\nAttributes:"


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
    texts: dict[str, str] = {}
    for each in kind.__mro__:
        if each.__module__.split(".")[0] not in _FOREIGN:
            texts = {**dict(_texts_in_source(each)), **texts}  # the text of a subclass counts
    return texts


class _Docstring:
    """The docstring of a class, made when it is read."""

    def __init__(self, text: str) -> None:
        self._text = inspect.cleandoc(text)

    def __get__(self, instance: object, owner: type) -> str:
        lines = []
        for name, text in field_texts(owner).items():
            lines += textwrap.wrap(f"{name}: {text}", 72, subsequent_indent="    ", break_on_hyphens=False)
        return "\n".join([self._text, _HEAD, *(f"    {line}" for line in lines)]) if lines else self._text


def _texts_in_source(kind: type) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each public field that a class itself declares, or that its `__init__` sets, if a text
    stands directly below the field.
    """
    file = inspect.getsourcefile(kind)
    node = _class_of(file, kind.__name__) if file else None
    if node is None:
        return
    makers = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    for body in (node.body, *(maker.body for maker in makers)):
        for field, below in pairwise(body):
            match field:
                case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                    pass
                case ast.Assign(targets=[ast.Attribute(attr=name), *_]):
                    pass
                case _:
                    continue
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))) if not name.startswith("_"):
                    yield name, " ".join(text.split())


def _class_of(file: str, name: str) -> ast.ClassDef | None:
    """Return a class of a module; None if its source code is not there. Only the lines of the class are parsed."""
    found = re.search(rf"^class {name}\b.*?(?=^[^\s)#]|\Z)", _source(file), re.DOTALL | re.MULTILINE)
    try:
        node = ast.parse(found[0]).body[0] if found else None
    except SyntaxError:  # a text in it has a line that begins like one of the module
        node = next((node for node in ast.parse(_source(file)).body if getattr(node, "name", "") == name), None)
    return node if isinstance(node, ast.ClassDef) else None


@cache
def _source(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as source:  # noqa: PTH123  (the path comes from Python)
            return source.read()
    except OSError:
        return ""


@cache
def names_for_types(module: str) -> Mapping[str, str]:
    """Return the module of each name that a module imports for type checkers alone, in its block `if TYPE_CHECKING:`;
    the module itself imports it when it is used.
    """
    tree = ast.parse(inspect.getsource(sys.modules[module]))  # also in a zip file
    blocks = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = (node for node in next(blocks).body if isinstance(node, ast.ImportFrom))
    return {each.name: str(node.module) for node in imports for each in node.names}

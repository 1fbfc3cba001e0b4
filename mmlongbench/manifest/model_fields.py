"""Describes the fields of a pydantic model as the author of a file sees them: name, type, default and text."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter
from pydantic.fields import FieldInfo

from mmlongbench.field_texts import field_texts_anywhere

_PLAIN: Mapping[object, tuple[str, str]] = {
    str: ("text", "texts"),
    int: ("integer", "integers"),
    float: ("number", "numbers"),
    bool: ("true | false", "(true | false)"),
    NoneType: ("null", "nulls"),
    Path: ("path", "paths"),
    Any: ("any value", "any values"),
    dict: ("mapping", "mappings"),
}
"""The names of types in the singular and in the plural."""
_LISTS = (list, tuple, set, frozenset)
_ANY: TypeAdapter[Any] = TypeAdapter(Any)


class FieldText(BaseModel):
    """A field of a model, as a user reads about it."""

    model_config = ConfigDict(frozen=True)

    name: str
    """The name."""
    type: str
    """The type in words, such as `integer, at least 1` or `none | index | printed`."""
    is_required: bool
    """Whether a value must be given."""
    default: JsonValue = None
    """The default, as JSON has it; null also if a value must be given."""
    text: str
    """What the field means; empty if its class does not say it."""


def fields_of(model: type[BaseModel]) -> tuple[FieldText, ...]:
    """Return the fields of a model in their order; the texts are the strings below the fields in the source code."""
    texts = field_texts_anywhere(model)
    return tuple(_field(name, info, texts) for name, info in model.model_fields.items())


def _field(name: str, info: FieldInfo, texts: Mapping[str, str]) -> FieldText:
    is_required = info.is_required()
    default = None if is_required else info.get_default(call_default_factory=True, validated_data={})
    return FieldText(
        name=info.alias or name,
        type=", ".join((type_text(info.annotation), *_bounds(info.metadata))),
        is_required=is_required,
        default=_ANY.dump_python(default, mode="json", fallback=repr),
        text=info.description or texts.get(name, ""),
    )


def type_text(kind: object) -> str:
    """Return a type in words.

    >>> type_text(Literal["a", "b"] | None), type_text(tuple[str, ...]), type_text(dict[str, int])
    ('a | b, or null', 'list of texts', 'mapping from text to integer')
    >>> type_text(tuple[int, int] | None)
    'list (integer, integer), or null'
    """
    origin, arms = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_text(arms[0])
    if origin is Literal:
        return " | ".join(arm if isinstance(arm, str) else json.dumps(arm, default=repr) for arm in arms)
    if origin in (Union, UnionType):
        named = [type_text(arm) for arm in arms if arm is not NoneType]
        return f"{' or '.join(named)}{', or null' if NoneType in arms else ''}"
    if origin in _LISTS and arms:
        several = origin is not tuple or arms[1:] == (...,)
        return f"list of {_plural(arms[0])}" if several else f"list ({', '.join(map(type_text, arms))})"
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(arms) == 2:
        return f"mapping from {type_text(arms[0])} to {type_text(arms[1])}"
    return _named(kind)


def _named(kind: object) -> str:
    """Return the name of a type without arguments."""
    if kind in _PLAIN:
        return _PLAIN[kind][0]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return f"mapping with {', '.join(kind.model_fields)}"
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _plural(kind: object) -> str:
    if get_origin(kind) is Literal:
        return f"({type_text(kind)})"
    if kind in _PLAIN:
        return _PLAIN[kind][1]
    said = type_text(kind)
    first = said.partition(" ")[0]
    return said.replace(first, f"{first}s", 1) if first in ("mapping", "list") else said


def _bounds(metadata: list[Any]) -> Iterator[str]:
    """Yield the bounds of a number in words."""
    for each in metadata:
        if isinstance(each, Ge):
            yield f"at least {each.ge}"
        elif isinstance(each, Gt):
            yield f"above {each.gt}"
        elif isinstance(each, Le):
            yield f"at most {each.le}"
        elif isinstance(each, Lt):
            yield f"below {each.lt}"

"""The base of the models of a manifest; and pydantic's validation errors in one line for the author of the data."""

import re
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.errors import nearest

MAX_SHOWN = 300  # the maximum characters of a wrong value in a message


_ARM = re.compile(
    r"bool|int|(?:list|tuple|dict|set|frozenset|literal|union|tagged-union|nullable|lax-or-strict|json-or-python|is-instance"
    r"|function-[\w-]+|constrained-\w+)\[.*\]"
)
"""Parts that pydantic adds to a location if a type has several alternatives, such as `literal['sample']`."""
_PATTERN = "String should match pattern '^[A-Za-z0-9][A-Za-z0-9_.-]*$'"


class StrictModel(BaseModel):
    """A part of a manifest. Other keys are refused, and no value is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


def explain(error: ValidationError, where: str, model: type[BaseModel], datasets: list[dict[str, Any]]) -> str:
    """Describe the first problem of a validation in one line: the key, what was expected, what was found."""
    problem, *others = error.errors()
    place = _place(problem["loc"])
    inner = place[2:] if len(place) > 1 and place[0] == "datasets" else place
    key = ".".join(str(part)[:MAX_SHOWN] for part in inner if not isinstance(part, int))[: 2 * MAX_SHOWN]
    names = [datasets[part].get("name", part) for part in place[1:2] if isinstance(part, int) and part < len(datasets)]
    prefix = f"{where}: " + (f"dataset {shown(names[0])}: " if names else "")
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{prefix}unknown key {key!r}{nearest(str(place[-1]), _keys(model, place[:-1]))}"
    if problem["type"] == "missing":
        return f"{prefix}the key {key!r} is missing"
    # A union has a problem for each of its alternatives.
    same = [other for other in others if len(place) < len(other["loc"]) and _place(other["loc"]) == place]
    messages = []
    for message in (other["msg"] for other in (problem, *same)):
        # without the names of our classes and types, which do not occur in files
        message = message.removeprefix("Value error, ").replace("valid tuple", "valid list")
        message = message.replace(_PATTERN, "expected letters, digits and, after the first, also _ . -")
        message = re.sub(r" or (?:an )?instance of \w+", "", message).replace(
            "be a dictionary", "be a valid dictionary"
        )
        messages.append(message[: 2 * MAX_SHOWN])
    said = " or ".join(dict.fromkeys(messages))
    found = f" (found {shown(problem['input'])})" if place else ""
    return f"{prefix}{f'{key}: ' if key else ''}{said}{found}"


def shown(value: object) -> str:
    """Return a value as text; Python does not print integers with thousands of digits."""
    try:
        said = repr(list(value) if isinstance(value, tuple) else value)
    except ValueError:
        return f"a {type(value).__name__} with an integer of thousands of digits"
    return said if len(said) <= MAX_SHOWN else f"{said[:MAX_SHOWN]}…"


def _place(loc: tuple[int | str, ...]) -> list[int | str]:
    """Return the keys of a location, without the names that pydantic gives to the alternatives of a union."""
    return [part for part in loc if not (isinstance(part, str) and _ARM.fullmatch(part))]


def _keys(model: type, place: list[int | str]) -> list[str]:
    current = model
    for step in place:
        found = _fields(current).get(str(step))
        current = next((arm for arm in arms_of(found) if _fields(arm)), current)
    return list(_fields(current))


def arms_of(annotation: Any) -> list[type]:  # noqa: ANN401  (any annotation of a field)
    """Return the classes among a type and its alternatives.

    >>> arms_of(int | None), arms_of(Annotated[str, "a text"] | Annotated[int, "a number"])
    ([<class 'int'>, <class 'NoneType'>], [<class 'str'>, <class 'int'>])
    """
    arms = (get_args(arm)[0] if get_origin(arm) is Annotated else arm for arm in (annotation, *get_args(annotation)))
    return [arm for arm in arms if isinstance(arm, type)]


def _fields(model: type) -> dict[str, Any]:
    """Return the types of a model's or dataclass's fields, by name; empty for any other type."""
    if issubclass(model, BaseModel):
        return {name: field.annotation for name, field in model.model_fields.items()}
    return {field.name: field.type for field in fields(model)} if is_dataclass(model) else {}


def json_values(options: object) -> object:
    """Return options unchanged; raise an error if JSON cannot hold them, because they go into the lock."""

    def refuse_others(value: object, place: list[str]) -> None:
        at = f" at {shown('.'.join(place))}" if place else ""
        if isinstance(value, dict):
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise ValueError(f"the key {shown(key)}: expected a text{at}; put it in quotes")
                refuse_others(inner, [*place, key])
        elif isinstance(value, list | tuple):
            for inner in value:
                refuse_others(inner, place)
        elif isinstance(value, float) and not isfinite(value):
            raise ValueError(f"expected a number that JSON can hold{at}, found {value}")
        elif not isinstance(value, str | int | float | None):
            said = f"{shown(value)}{at} is a {type(value).__name__}, which JSON cannot hold"
            raise ValueError(f"{said}; write a text in quotes")

    if isinstance(options, dict):
        refuse_others(options, [])
    return options

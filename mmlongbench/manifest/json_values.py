"""Refuses options of a manifest that JSON cannot hold, because they go into the lock."""

from math import isfinite

from mmlongbench.manifest.validation import shown


def json_values(options: object) -> object:
    """Return options unchanged; raise an error if JSON cannot hold them, because they go into the lock."""
    if isinstance(options, dict):
        _refuse_other_values(options, [])
    return options


def _refuse_other_values(value: object, place: list[str]) -> None:
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {shown(key)}: expected a text{_at(place)}; put it in quotes")
            _refuse_other_values(each, [*place, key])
    elif isinstance(value, list | tuple):
        for each in value:
            _refuse_other_values(each, place)
    elif isinstance(value, float) and not isfinite(value):
        raise ValueError(f"expected a number that JSON can hold{_at(place)}, found {value}")
    elif not isinstance(value, str | int | float | None):
        said = f"{shown(value)}{_at(place)} is a {type(value).__name__}, which JSON cannot hold"
        raise ValueError(f"{said}; write a text in quotes")


def _at(place: list[str]) -> str:
    return f" at {shown('.'.join(place))}" if place else ""

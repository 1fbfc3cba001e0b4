"""Which options of a call are left out where an endpoint refuses them."""

from collections.abc import Mapping
from typing import Any

_OF_THE_FORM = {
    "response_format": ("response_format", "schema"),
    "max_completion_tokens": ("max_completion_tokens", "max_tokens"),
}
"""Options without which an answer is the same, and what refusals call them."""
_OF_THE_DRAW = {"temperature": ("temperature",), "seed": ("seed",)}
"""Options that the answer depends on: left out only where they are named, and nothing of the form is."""


def named_in(refusal: str, options: Mapping[str, Any]) -> frozenset[str]:
    """The options that a refusal is about.

    >>> sorted(named_in("Unsupported value: 'temperature'", {"temperature": 0.0, "response_format": {}}))
    ['temperature']
    """
    for names in (_OF_THE_FORM, _OF_THE_DRAW):
        if found := {option for option, called in names.items() if any(name in refusal for name in called)} & set(
            options
        ):
            return frozenset(found)
    return frozenset()


def of_the_form(options: Mapping[str, Any]) -> frozenset[str]:
    """The options that can be done without, whatever a refusal is about."""
    return frozenset(_OF_THE_FORM) & frozenset(options)

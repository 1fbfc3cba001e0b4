"""Decides which options of a call are left out when an endpoint refuses them."""

from collections.abc import Mapping

_OF_THE_FORM = {
    "response_format": ("response_format", "schema"),
    "max_completion_tokens": ("max_completion_tokens", "max_tokens"),
}
"""Options that do not change the answer, and their names in refusals."""
_OF_THE_DRAW = {"temperature": ("temperature",), "seed": ("seed",)}
"""Options that change the answer, and their names in refusals. An option is left out only if a refusal names it and
names no option of `_OF_THE_FORM`."""


_OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names of the limit of an answer; some endpoints know only one of them."""


def renamed(refusal: str, options: Mapping[str, object]) -> Mapping[str, str]:
    """Return the options that a refusal asks for under another name: their names, and the other names.

    >>> renamed("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {"max_tokens": 8})
    {'max_tokens': 'max_completion_tokens'}
    """
    return {name: other for name, other in _OTHER_NAMES.items() if name in options and f"'{other}' instead" in refusal}


def named_in(refusal: str, options: Mapping[str, object]) -> frozenset[str]:
    """Return the options that a refusal names. Options of `_OF_THE_DRAW` are returned only if the refusal names no
    option of `_OF_THE_FORM`.

    >>> sorted(named_in("Unsupported value: 'temperature'", {"temperature": 0.0, "response_format": {}}))
    ['temperature']
    """
    for names in (_OF_THE_FORM, _OF_THE_DRAW):
        if found := {option for option, called in names.items() if any(name in refusal for name in called)} & set(
            options
        ):
            return frozenset(found)
    return frozenset()


def of_the_form(options: Mapping[str, object]) -> frozenset[str]:
    """Return the options that do not change the answer; they may be left out after any refusal."""
    return frozenset(_OF_THE_FORM) & frozenset(options)

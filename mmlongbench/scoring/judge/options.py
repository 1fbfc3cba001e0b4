"""What a judge is asked for beside the words, and what is left out where an endpoint does not take it."""

from collections.abc import Mapping
from typing import Any

from mmlongbench.scoring.judge.calls import Call, V
from mmlongbench.scoring.judge.verdicts import shape

MOST_TOKENS = 8192
"""Of an answer, with what a model thinks before it."""
_OF_THE_FORM = {
    "response_format": ("response_format", "schema"),
    "max_completion_tokens": ("max_completion_tokens", "max_tokens"),
}
"""Options without which an answer is the same, and what refusals call them."""
_OF_THE_DRAW = {"temperature": ("temperature",), "seed": ("seed",)}
"""Options that the answer depends on: left out only where they are named, and nothing of the form is."""


def options_of(call: Call[V]) -> dict[str, Any]:
    """All that is asked for."""
    form = {"name": call.verdict.__name__, "schema": shape(call.verdict), "strict": True}
    options = {
        "response_format": {"type": "json_schema", "json_schema": form},
        "temperature": call.temperature,
        "max_completion_tokens": MOST_TOKENS,
    }
    return {**options, "seed": call.sample} if call.temperature else options


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

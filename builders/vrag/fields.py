"""Fields of JSON lines, checked: what the readers of entity questions share."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmlongbench import Fault

MAX_CHARACTERS = 10_000
"""Of a text field; a question has a hundred."""


def faulty_text(raw: Mapping[str, Any], fields: Sequence[str]) -> Fault | None:
    """What is wrong with fields that must hold text."""
    for field in fields:
        value = raw.get(field)
        if not isinstance(value, str) or not value.strip():
            found = repr(value)[:80] if field in raw else "nothing"
            return Fault("missing-or-mistyped-field", "a text", found, field=field)
        if len(value) > MAX_CHARACTERS:
            bound = f"at most {MAX_CHARACTERS} characters"
            return Fault("field-too-long", bound, str(len(value)), field=field)
    return None

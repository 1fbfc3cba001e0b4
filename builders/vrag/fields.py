"""Fields of JSON lines, checked: what the readers of entity questions share."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmlongbench import Fault


def faulty_text(raw: Mapping[str, Any], fields: Sequence[str]) -> Fault | None:
    """What is wrong with fields that must hold text."""
    for field in fields:
        value = raw.get(field)
        if not isinstance(value, str) or not value.strip():
            found = repr(value) if field in raw else "nothing"
            return Fault("missing-or-mistyped-field", "a text", found, field=field)
    return None

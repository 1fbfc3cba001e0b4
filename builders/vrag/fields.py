"""Fields of JSON lines, checked: what the readers of entity questions share."""

from collections.abc import Mapping, Sequence
from typing import Any

from builders.common.fields import not_text
from mmlongbench import Fault

MAX_CHARACTERS = 10_000
"""Of a text field; a question has a hundred."""


def faulty_text(raw: Mapping[str, Any], fields: Sequence[str]) -> Fault | None:
    """What is wrong with fields that must hold text."""
    for field in fields:
        if fault := not_text(raw, field):
            return fault
        if (length := len(raw[field])) > MAX_CHARACTERS:
            return Fault("field-too-long", f"at most {MAX_CHARACTERS} characters", str(length), field=field)
    return None

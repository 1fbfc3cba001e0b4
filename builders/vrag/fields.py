"""Checks of fields of JSON lines that the readers of entity questions share."""

from collections.abc import Mapping, Sequence

from builders.common.fields import not_text
from mmlongbench.task import Fault

MAX_CHARACTERS = 10_000
"""The maximum characters of a text field; a question has about a hundred."""


def texts_of(raw: Mapping[str, object], fields: Sequence[str]) -> dict[str, str] | Fault:
    """Return fields that must hold text, or the fault of the first one that is not valid."""
    texts = {field: value for field in fields if isinstance(value := raw.get(field), str)}
    for field in fields:
        if fault := not_text(raw, field):
            return fault
        if (length := len(texts[field])) > MAX_CHARACTERS:
            return Fault(
                "field-too-long",
                f"at most {MAX_CHARACTERS} characters",
                str(length),
                field=field,
                todo="shorten the field, or take the row out",
            )
    return texts

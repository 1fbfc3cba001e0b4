"""Checks of the fields of raw rows; each fault names the field, what was expected and what was found."""

import re
from collections.abc import Mapping

from mmlongbench.task import Fault

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded in UTF-8. A text with half a surrogate pair cannot be encoded; file names
    and JSON may have such texts.
    """
    return not _SURROGATE.search(text)


def not_unicode(text: str, field: str) -> Fault | None:
    """Return the fault of a field whose text cannot be encoded; None if the text can be encoded."""
    return (
        None
        if is_unicode(text)
        else Fault(
            "invalid-unicode", "valid Unicode", "a lone surrogate", field=field, todo="write the text in valid Unicode"
        )
    )


def mistyped(raw: Mapping[str, object], field: str, expected: str, most: int = 80) -> Fault:
    """Return the fault of a field that is missing or has the wrong type. It shows at most `most` characters of the
    value.
    """
    found = repr(raw[field])[:most] if field in raw else "nothing"
    return Fault(
        "missing-or-mistyped-field", expected, found, field=field, todo="correct the field in the source or with errata"
    )


def not_text(raw: Mapping[str, object], field: str, most: int = 80) -> Fault | None:
    """Return the fault of a field that holds no text or only blanks; None if the field holds other text."""
    value = raw.get(field)
    return None if isinstance(value, str) and value.strip() else mistyped(raw, field, "a text", most)

"""Numbers as documents print them."""

import re

_WHOLE = re.compile(r"[+-]?\d+|[+-]?\d{1,3}(,\d{3})+")
_DECIMAL = re.compile(r"[$£]?\s?[+-]?((\d{1,3}(,\d{3})+|\d+)(\.\d*)?|\.\d+)\s?(%|million|miles?)?", re.IGNORECASE)


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number, with or without commas between thousands."""
    return bool(_WHOLE.fullmatch(text))


def is_decimal(text: str) -> bool:
    """Return whether the benchmark's scorer reads a text as a number, perhaps with a currency or a per cent sign."""
    return bool(_DECIMAL.fullmatch(text))

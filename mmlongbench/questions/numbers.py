"""Numbers as documents print them, and their exact values."""

import re
from decimal import Decimal

_WHOLE = re.compile(r"[+-]?\d+|[+-]?\d{1,3}(,\d{3})+")
_DECIMAL = re.compile(r"[$£]?\s?[+-]?((\d{1,3}(,\d{3})+|\d+)(\.\d*)?|\.\d+)\s?(%|million|miles?)?", re.IGNORECASE)
_PRINTED = re.compile(
    r"(?P<sign>[-−–+]?)\s?[$€£¥]?\s?(?P<open>\(?)\s?[$€£¥]?\s?(?P<inner>[-−–]?)(?P<digits>(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?)\s?"
    r"(?P<percent>%?)\s?(?P<close>\)?)\s?(?P<after>%?)"
)


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number, with or without commas between thousands."""
    return bool(_WHOLE.fullmatch(text))


def is_decimal(text: str) -> bool:
    """Return whether the benchmark's scorer reads a text as a number, perhaps with a currency or a per cent sign."""
    return bool(_DECIMAL.fullmatch(text))


def number_of(printed: str) -> Decimal | None:
    """Return the value of a printed number; None if it is no number. Round brackets and signs make it negative.

    >>> number_of("$ (1,203.50)"), number_of("12 %"), number_of("−4"), number_of("1,06")
    (Decimal('-1203.50'), Decimal('12'), Decimal('-4'), None)
    """
    found = _PRINTED.fullmatch(printed.strip())
    if not found or not found["digits"] or bool(found["open"]) != bool(found["close"]):
        return None
    value = Decimal(found["digits"].replace(",", ""))
    is_negative = bool(found["open"]) or (found["sign"] in ("-", "−", "–") and found["sign"]) or found["inner"]
    return -value if is_negative else value


def is_percent(printed: str) -> bool:
    """Return whether a printed number has a per cent sign."""
    return "%" in printed


def answer_of(printed: str) -> tuple[str, tuple[str, ...]]:
    """Return a printed number as an answer, and other forms that are right: no currency sign, a minus for brackets.

    >>> answer_of("$ 9,889"), answer_of("(380)"), answer_of("45.6 %")
    (('9,889', ()), ('-380', ('(380)',)), ('45.6%', ()))
    """
    plain = re.sub(r"[$€£¥\s]", "", printed).replace("−", "-").replace("–", "-")
    if plain.startswith("(") and plain.endswith((")", ")%")):
        inner = plain.replace("(", "").replace(")", "")
        return f"-{inner.lstrip('-')}", (plain,)
    return plain, ()


def written(value: Decimal) -> str:
    """Return a computed value as an answer, with commas between thousands.

    >>> written(Decimal("1540")), written(Decimal("-0.50")), written(Decimal("0"))
    ('1,540', '-0.50', '0')
    """
    return f"{value:,f}"

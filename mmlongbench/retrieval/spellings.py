"""The ways in which one number or one date is usually written. Everything else is only written as it is."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal

from mmlongbench.retrieval.numbers import ENGLISH, NAMES, SCALES

MONTHS = re.findall(r"\w+", "January February March April May June July August September October November December")
ORDINALS = re.findall(
    r"\w+",
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
)
PERCENT = ("%", " percent", " per cent")
MOST_DECIMALS = 3
"""1.234 million is usual, 1.2345 million is not."""
MOST_SCALED = 10**6
"""Beyond a million trillion numbers are written in digits."""

_QUANTITY = re.compile(
    rf"([$€£¥]?)\s*([-−]?)({ENGLISH}|{'|'.join(NAMES)})(?:[\s-]({'|'.join(SCALES)}))?(\s*%|\s+\D+)?", re.I
)
_ORDINAL = re.compile(r"(\d{1,9})(?:st|nd|rd|th)", re.I)
_MONTH = rf"({'|'.join(f'{month[:3]}(?:{month[3:]})?' for month in MONTHS)}|sept)\.?"
_DAY_FIRST = re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH},?\s+(\d{{3,4}})", re.I)
_MONTH_FIRST = re.compile(rf"{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{3,4}})", re.I)
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:t[\d:.z+-]*)?", re.I)
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})")


def usual_spellings(text: str) -> list[str]:
    """A text, and if it is a number (with a unit, if it has one), an ordinal or a date, its other usual spellings.

    A date like 03/05/1990 is spelled as both of the days that it can be.

    >>> usual_spellings("1,200,000")
    ['1,200,000', '1200000', '1.2 million']
    >>> usual_spellings("twelve years")
    ['twelve years', '12 years']
    >>> usual_spellings("May 3, 1990")[:4]
    ['May 3, 1990', '3 May 1990', 'May 3 1990', '3rd May 1990']
    """
    bare = " ".join(text.split())
    readers: tuple[Callable[[str], Iterator[str]], ...] = (_dates, _ordinals, _quantities)
    found = [spelling for read in readers for spelling in read(bare)]
    return list(dict.fromkeys([text, *found]))


def number_spellings(value: float) -> list[str]:
    """The usual spellings of a number, the plain one first.

    >>> number_spellings(1234.0), number_spellings(2.5e6), number_spellings(0.9), number_spellings(12)
    (['1234', '1,234'], ['2500000', '2,500,000', '2.5 million'], ['0.9'], ['12', 'twelve'])
    """
    return list(dict.fromkeys(_spelled(Decimal(repr(value)))))


def _spelled(value: Decimal) -> Iterator[str]:
    if not value.is_finite():
        return
    yield _plain(value)
    yield _plain(value, ",")
    scales = ((name, value / scale) for name, scale in reversed(SCALES.items()) if name != "thousand")
    name, scaled = next(((name, scaled) for name, scaled in scales if 1 <= abs(scaled) < MOST_SCALED), ("", value))
    if name and round(scaled, MOST_DECIMALS) == scaled:
        yield f"{_plain(scaled)} {name}"
    if 0 <= value < len(NAMES) and value == int(value):
        yield NAMES[int(value)]


def _plain(value: Decimal, thousands: str = "") -> str:
    text = f"{value:{thousands}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def value_of(text: str) -> float | None:
    """The number that a text is, without a unit or currency; None if it is anything else.

    >>> value_of("1.2 million"), value_of("12"), value_of("12 km"), value_of("twelve")
    (1200000.0, 12.0, None, 12.0)
    """
    match = _QUANTITY.fullmatch(" ".join(text.split()))
    return float(_value(match)) if match and not match[1] and not match[5] else None


def _quantities(text: str) -> Iterator[str]:
    match = _QUANTITY.fullmatch(text)
    if match:
        rest = match[5] or ""
        units = PERCENT if rest in PERCENT or rest.strip() == "%" else (rest,)
        for spelling in _spelled(_value(match)):
            yield from (f"{match[1]}{spelling}{unit}" for unit in units)


def _value(match: re.Match[str]) -> Decimal:
    sign, digits, scale = match[2], match[3].lower(), match[4]
    value = Decimal(NAMES.index(digits) if digits in NAMES else re.sub("[,'’]", "", digits))
    value = value * SCALES[scale.lower()] if scale else value
    return value.copy_negate() if sign else value


def _ordinals(text: str) -> Iterator[str]:
    match = _ORDINAL.fullmatch(text)
    if match:
        yield from _ordinal(int(match.group(1)))
    elif text.lower() in ORDINALS:
        yield from _ordinal(ORDINALS.index(text.lower()))


def _ordinal(number: int) -> Iterator[str]:
    yield f"{number}{_suffix(number)}"
    if number < len(ORDINALS):
        yield ORDINALS[number]


def _suffix(number: int) -> str:
    return "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _dates(text: str) -> Iterator[str]:
    for day, month, year in _days(text):
        try:
            date(year, month, day)
        except ValueError:
            continue
        yield from _day(day, month, year)


def _days(text: str) -> Iterator[tuple[int, int, int]]:
    """The (day, month, year) that a text can mean."""
    if match := _DAY_FIRST.fullmatch(text):
        yield int(match[1]), _month(match[2]), int(match[3])
    elif match := _MONTH_FIRST.fullmatch(text):
        yield int(match[2]), _month(match[1]), int(match[3])
    elif match := _ISO.fullmatch(text):
        yield int(match[3]), int(match[2]), int(match[1])
    elif match := _NUMERIC.fullmatch(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        yield first, second, year
        yield second, first, year


def _month(name: str) -> int:
    return next(at for at, month in enumerate(MONTHS, 1) if month[:3].lower() == name[:3].lower())


def _day(day: int, month: int, year: int) -> Iterator[str]:
    name, nth = MONTHS[month - 1], f"{day}{_suffix(day)}"
    for shown in dict.fromkeys((name, name[:3])):
        yield f"{day} {shown} {year}"
        yield f"{shown} {day} {year}"
        yield f"{nth} {shown} {year}"
        yield f"{nth} of {shown} {year}"
        yield f"{shown} {nth} {year}"
    yield f"{year:04d}-{month:02d}-{day:02d}"
    for separator in "/.-":
        for one, two in ((day, month), (month, day)):
            yield f"{one:02d}{separator}{two:02d}{separator}{year}"
            yield f"{one}{separator}{two}{separator}{year}"

"""The usual ways to write a number or a date. Any other text has only one spelling."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal

from mmlongbench.corpus.retrieval.numbers import CURRENCIES, ENGLISH, NAMES, SCALES, SHORT, spoken

_WORDS = re.compile(r"\w+")
_MONTHS: list[str] = _WORDS.findall(
    "January February March April May June July August September October November December"
)
_FIRST: list[str] = _WORDS.findall(
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_TENS = [name for name in NAMES[20:] if "-" not in name]
ORDINALS = (*_FIRST, *(f"{tens}-{_FIRST[at]}" if at else f"{tens[:-1]}ieth" for tens in _TENS for at in range(10)))
"""The ordinals below a hundred, in order."""
PERCENT = ("%", " percent", " per cent")
MAX_DECIMALS = 3
"""The maximum number of decimals before `million` and the like: 1.234 million is usual, 1.2345 million is not."""
MAX_SCALED = 10**6
"""The number before `million` and the like must be below this. So a million trillion is written only in digits."""

MONEY = {
    "$": ("dollars", "dollar", "US dollars", "USD"),
    "€": ("euros", "euro", "EUR"),
    "£": ("pounds", "pound", "pounds sterling", "GBP"),
    "¥": ("yen", "JPY"),
}
"""The names of each currency, by its sign."""
_ODD_CASES = str.maketrans("ſıİ", "siI")
"""Letters that a search without regard to case takes for an s or i."""
_NUMBER = rf"\d{{1,3}}(?:\s\d{{3}})+(?:\.\d+)?|{ENGLISH}|{'|'.join(NAMES)}"
_HALF = r"\s?½|\s1/2|[\s-]and[\s-]a[\s-]half"
_UNIT = r"\s*%|\s+\D+|(?<=\d)(?!(?:st|nd|rd|th|s)\b)[^\W\d_]\D*"
_SHORTENED = re.compile(rf"([{CURRENCIES}]\s?)?((?:{ENGLISH})(?:½)?)\s?({'|'.join(SHORT)})", re.I)
_QUANTITY = re.compile(
    rf"([{CURRENCIES}]?)\s*([-−]?)({_NUMBER})({_HALF})?(?:[\s-]?({'|'.join(SCALES)})\b)?({_UNIT})?", re.I
)
_ORDINAL = re.compile(rf"(?:(\d{{1,9}})(?:st|nd|rd|th)|({'|'.join(reversed(ORDINALS))}))(\s+\D+)?", re.I)
_NTH = rf"(?:(\d{{1,2}})(?:st|nd|rd|th)?|({'|'.join(reversed(ORDINALS[1:32]))}))"
_MONTH = rf"({'|'.join(f'{month[:3]}(?:{month[3:]})?' for month in _MONTHS)}|sept)\.?"
_DAY_FIRST = re.compile(rf"(?:the\s+)?{_NTH}(?:\s+day)?(?:\s+of)?[\s-]+{_MONTH},?[\s-]+(\d{{3,4}})", re.I)
_MONTH_FIRST = re.compile(rf"{_MONTH}[\s-]+(?:the\s+)?{_NTH},?[\s-]+(\d{{3,4}})", re.I)
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:t[\d:.z+-]*)?", re.I)
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})")


def usual_spellings(text: str) -> list[str]:
    """Return a text and, if it is a number (perhaps with a unit), an ordinal or a date, its other usual spellings.

    A date like 03/05/1990 is spelled as both days that it can mean.

    >>> usual_spellings("1,200,000")
    ['1,200,000', '1200000', '1.2 million']
    >>> usual_spellings("twelve years")
    ['twelve years', '12 years']
    >>> usual_spellings("May 3, 1990")[:4]
    ['May 3, 1990', '3 May 1990', 'May 3 1990', '3rd May 1990']
    """
    bare = _read(text)
    readers: tuple[Callable[[str], Iterator[str]], ...] = (_dates, _ordinals, _quantities)
    found = [spelling for read in readers for spelling in read(bare)]
    return list(dict.fromkeys([text, *found]))


def number_spellings(value: float) -> list[str]:
    """Return the usual spellings of a number, the plain one first.

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
    name, scaled = next(((name, scaled) for name, scaled in scales if 1 <= abs(scaled) < MAX_SCALED), ("", value))
    if name and round(scaled, MAX_DECIMALS) == scaled:
        yield f"{_plain(scaled)} {name}"
    if 0 <= value < len(NAMES) and value == int(value):
        yield NAMES[int(value)]


def _plain(value: Decimal, thousands: str = "") -> str:
    text = f"{value:{thousands}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def value_of(text: str) -> float | None:
    """Return the number that a text consists of; None if the text has a unit, a currency or anything else.

    >>> value_of("1.2 million"), value_of("12"), value_of("12 km"), value_of("twelve"), value_of("two and a half")
    (1200000.0, 12.0, None, 12.0, 2.5)
    """
    bare = _read(text)
    match = _QUANTITY.fullmatch(bare)
    if match and not match[1] and not match[6]:
        return float(_value(match))
    said = None if match and match[1] else spoken(bare)
    return None if said is None else float(said)


def _read(text: str) -> str:
    """Return a text with single spaces, and with its short scale in full: `3.5bn` as `3.5 billion`. A single letter is
    a unit (`5m`), unless the number has a currency sign.
    """
    text = " ".join(text.translate(_ODD_CASES).split())
    match = _SHORTENED.fullmatch(text)
    if match is None or (len(match[3]) == 1 and not match[1]):
        return text
    factor = SHORT[match[3].lower()]
    return f"{match[1] or ''}{match[2]} {next(name for name, scale in SCALES.items() if scale == factor)}"


def _quantities(text: str) -> Iterator[str]:
    match = _QUANTITY.fullmatch(text)
    said = spoken(text)
    if said is not None:
        yield from (*_spelled(said), *_halves(said))
    elif match:
        value, unit = _value(match), (match[6] or "").strip()
        for spelling in (*_spelled(value), *_halves(value)):
            yield from _measured(spelling, match[1], unit)


def _measured(number: str, sign: str, unit: str) -> Iterator[str]:
    signs = [one for one, names in MONEY.items() if one == sign or unit.lower() in map(str.lower, names)]
    if unit in ("%", "percent", "per cent"):
        yield from (f"{sign}{number}{percent}" for percent in PERCENT)
    elif signs and not (sign and unit):
        yield f"{signs[0]}{number}"
        yield from (f"{number} {name}" for name in MONEY[signs[0]])
        digits, _, scale = number.partition(" ")
        shorter = (name for name, factor in SHORT.items() if scale and factor == SCALES.get(scale))
        yield from (f"{signs[0]}{digits}{name}" for name in shorter)
    else:
        yield f"{sign}{number} {unit}".rstrip()


def _halves(value: Decimal) -> Iterator[str]:
    if 0 < value < len(NAMES) and value % 1 == Decimal("0.5"):
        yield f"{int(value) or ''}½"
        yield from (f"{name} and a half" for name in (int(value), NAMES[int(value)]) if int(value))


def _value(match: re.Match[str]) -> Decimal:
    sign, digits, half, scale = match[2], match[3].lower(), match[4], match[5]
    value = Decimal(NAMES.index(digits) if digits in NAMES else re.sub(r"[,'’\s]", "", digits))
    value = (value + Decimal("0.5") if half else value) * (SCALES[scale.lower()] if scale else 1)
    return value.copy_negate() if sign else value


def _ordinals(text: str) -> Iterator[str]:
    if match := _ORDINAL.fullmatch(text):
        number = int(match[1]) if match[1] else ORDINALS.index(match[2].lower())
        what = match[3] or ""
        yield f"{number}{_suffix(number)}{what}"
        if number < len(ORDINALS):
            yield f"{ORDINALS[number]}{what}"


def _suffix(number: int) -> str:
    return "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


_DATE_FORMS = (
    "{day} {month} {year}",
    "{month} {day} {year}",
    "{nth} {month} {year}",
    "{nth} of {month} {year}",
    "{month} {nth} {year}",
    "{nth} day of {month} {year}",
    "{ordinal} of {month} {year}",
    "{ordinal} day of {month} {year}",
    "{month} {ordinal} {year}",
)


def _dates(text: str) -> Iterator[str]:
    for day, month, year in _days(text):
        try:
            date(year, month, day)
        except ValueError:
            continue
        name, nth = _MONTHS[month - 1], f"{day}{_suffix(day)}"
        for shown in dict.fromkeys((name, name[:3])):
            for form in _DATE_FORMS:
                yield form.format(day=day, nth=nth, ordinal=ORDINALS[day], month=shown, year=year)
        yield f"{year:04d}-{month:02d}-{day:02d}"
        for separator in "/.-":
            for one, two in ((day, month), (month, day)):
                yield f"{one:02d}{separator}{two:02d}{separator}{year}"
                yield f"{one}{separator}{two}{separator}{year}"


def _days(text: str) -> Iterator[tuple[int, int, int]]:
    def nth(digits: str | None, word: str | None) -> int:
        return int(digits) if digits else ORDINALS.index((word or "").lower())

    def month(name: str) -> int:
        return next(at for at, month in enumerate(_MONTHS, 1) if month[:3].lower() == name[:3].lower())

    if match := _DAY_FIRST.fullmatch(text):
        yield nth(match[1], match[2]), month(match[3]), int(match[4])
    elif match := _MONTH_FIRST.fullmatch(text):
        yield nth(match[2], match[3]), month(match[1]), int(match[4])
    elif match := _ISO.fullmatch(text):
        yield int(match[3]), int(match[2]), int(match[1])
    elif match := _NUMERIC.fullmatch(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        yield first, second, year
        yield second, first, year


MAX_ORDINAL = 999_999


def ordinal_words(number: int) -> str:
    """Return a number from 1 to 999,999 as an ordinal in words.

    >>> ordinal_words(2), ordinal_words(21), ordinal_words(100), ordinal_words(101)
    ('second', 'twenty-first', 'one hundredth', 'one hundred and first')
    >>> ordinal_words(1000), ordinal_words(1101)
    ('one thousandth', 'one thousand, one hundred and first')
    """
    if not 1 <= number <= MAX_ORDINAL:
        raise ValueError(f"an ordinal of {number}: expected 1 to {MAX_ORDINAL}")
    thousands, below = divmod(number, 1000)
    if thousands:
        hundreds, rest = divmod(thousands, 100)
        words = [f"{NAMES[hundreds]} hundred"] if hundreds else []
        head = " and ".join([*words, NAMES[rest]] if rest else words) + " thousand"
        return f"{head}{' and' if below < 100 else ','} {ordinal_words(below)}" if below else f"{head}th"
    hundreds, rest = divmod(below, 100)
    if not hundreds:
        return ORDINALS[rest]
    return f"{NAMES[hundreds]} hundred and {ORDINALS[rest]}" if rest else f"{NAMES[hundreds]} hundredth"

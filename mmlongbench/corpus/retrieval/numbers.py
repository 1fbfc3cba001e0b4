"""Finds the numbers in a text, in digits or words. In doubt, it finds too many rather than too few."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

_WORD = re.compile(r"[a-z]+")
_ONES: list[str] = _WORD.findall(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS: list[str] = _WORD.findall("twenty thirty forty fifty sixty seventy eighty ninety")
NAMES = (*_ONES, *(f"{tens}-{ones}" if at else tens for tens in _TENS for at, ones in enumerate(_ONES[:10])))
"""The number words below a hundred, in order."""
SMALL = {word: value for value, word in enumerate(NAMES) if "-" not in word}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
FACTORS = {"dozen": 12, "hundred": 100, "lakh": 10**5, "crore": 10**7, **SCALES}
"""Words that multiply the number before them."""
SHORT = {"k": 10**3, "m": 10**6, "mn": 10**6, "mln": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
CURRENCIES = "$€£¥"

ENGLISH = r"\d{1,3}(?:[,'’]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"  # English notation: 1,234.5 and 1234.5
_EUROPEAN = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+")
_ENGLISH = re.compile(ENGLISH)
_PIECE = re.compile(r"\.?\d+(?:[.,'’]\d+)*")
_SPACED = re.compile(r"(?<!\d)\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?:\.\d+)?(?!\d)")
_MIXED = re.compile(
    r"(?<![\w.,/])(?:(\d{1,9})\s?)?([¼-¾⅐-⅞])"
    r"|(?<![\w.,/])(?:(\d{1,9})[\s-])?([1-9])[/⁄]([2-9])(?![\w/])"
    r"|(\d{1,9})(?:\s+|-)and(?:\s+|-)(?:a|one)(?:\s+|-)half\b"
)
"""Notations with fractions: 2½, 2 1/2, 2 and a half."""
_FACTOR = re.compile(rf"[\s-]*({'|'.join(FACTORS)})s?\b|\s?(mn|mln|bn|tn)\b|(k|m|b)\b")
_MONEY = re.compile(r"\s([kmb])\b")
"""Matches a letter that is a factor after a currency sign: `$5 m` is five million, but `5 m` is five metres."""
_LINK = re.compile(rf"\s*(?:[-–—−/~,]|to\b|and\b|or\b)\s*[{CURRENCIES}]?\s*\.?\d+(?:[.,'’]\d+)*")
_MAX_LINKS = 3  # how many further numbers a list like `1, 2 or 3 million` may have
_SIGNED = re.compile(r"(?:^|[^\w.,])[-−]$")
_YEARS = re.compile(r"(?<!\d)(\d\d)(\d\d)\s?[/–—-]\s?(\d\d)(?![\d/-])")
_LINKS = frozenset({"and", "or", "to"})
_SKIPPED = frozenset({"a", "an"})
_FIRST = {"half", *SMALL, *_SKIPPED}
"""The words that can begin a spelled number. `million` cannot: in `1.2 million` it belongs to the digits."""
_VOCABULARY = {"half", *SMALL, *FACTORS, *_LINKS, *_SKIPPED}
_LONGEST = 100  # numbers of up to this many characters are kept exactly
_LARGEST = Decimal(10) ** 400  # larger than any float; numbers do not grow beyond it


def numbers_in(text: str) -> set[float]:
    """Return every number of a text, with and without its minus sign, and with and without a factor like `million`
    after it.

    >>> sorted(numbers_in("some 1,234.5 m or 1.2 million of twenty-five, at −3 °C"))
    [-3.0, 1.2, 3.0, 5.0, 20.0, 25.0, 1234.5, 1200000.0]
    >>> sorted(numbers_in("between 1.2 and 1.5 million")), sorted(numbers_in("1989/90"))
    ([1.2, 1.5, 1200000.0, 1500000.0], [90.0, 1989.0, 1990.0])
    """
    lower = text.lower()
    return {float(value) for find in (_digits, _mixed, _spaced, _years, _words) for value in find(lower)}


def _digits(text: str) -> Iterator[Decimal]:
    for piece in _PIECE.finditer(text):
        before = text[max(0, piece.start() - 2) : piece.start()]
        is_negative = _SIGNED.search(before)
        is_money = before.strip().endswith(tuple(CURRENCIES))
        for value in _readings(piece.group()):
            for factor in _factors(text, piece.end(), is_money):
                yield value * factor
                if is_negative:
                    yield -value * factor


def _factors(text: str, end: int, is_money: bool = False) -> list[int]:
    """Return 1 and the factors after a number; other numbers may come before a factor, as in `1.2 to 1.5 million`."""
    factors, own = [1], list(_own_factors(text, end, is_money))
    for _ in range(0 if own else _MAX_LINKS):
        link = _LINK.match(text, end)
        if link is None:
            break
        end = link.end()
        own += _own_factors(text, end, is_money)
    return factors + own


def _own_factors(text: str, end: int, is_money: bool) -> Iterator[int]:
    factor = 1
    for _ in range(3):  # as in: 3 hundred thousand million
        found = _FACTOR.match(text, end) or (_MONEY.match(text, end) if is_money else None)
        if found is None:
            return
        name = found[found.lastindex or 0]
        factor *= FACTORS.get(name) or SHORT[name]
        yield factor
        end = found.end()


def _mixed(text: str) -> Iterator[Decimal]:
    for found in _MIXED.finditer(text):
        if found[6]:
            value = Decimal(found[6]) + Decimal("0.5")
        elif found[2]:
            part = Fraction(unicodedata.numeric(found[2])).limit_denominator(10)
            value = Decimal(found[1] or 0) + Decimal(part.numerator) / part.denominator
        else:
            value = Decimal(found[3] or 0) + Decimal(found[4]) / Decimal(found[5])
        yield from (value * factor for factor in _factors(text, found.end()))


def _spaced(text: str) -> Iterator[Decimal]:
    for piece in _SPACED.finditer(text):
        value = _exact(re.sub(r"\s", "", piece.group()))
        yield from (value * factor for factor in _factors(text, piece.end()))


def _years(text: str) -> Iterator[Decimal]:
    """Yield the second year of a notation like 1989/90 and 1999–00."""
    for found in _YEARS.finditer(text):
        century, first, last = (Decimal(part) for part in found.groups())
        if last > first or (first == 99 and last == 0):
            yield (century + (last < first)) * 100 + last


def _readings(piece: str) -> list[Decimal]:
    """Return the numbers that digits with separators can mean. They are read in English notation; if that is not
    possible, in continental notation; if neither is possible, each part is read alone.
    """
    if piece.startswith("."):
        return [_exact(f"0{piece}")] if piece[1:].isdigit() else _readings(piece[1:])
    if _ENGLISH.fullmatch(piece):
        return [_exact(re.sub("[,'’]", "", piece))]
    if _EUROPEAN.fullmatch(piece):
        return [_exact(piece.replace(".", "").replace(",", "."))]
    return [_exact(part) for part in re.findall(r"\d+", piece)]


def _exact(digits: str) -> Decimal:
    return Decimal(digits if len(digits) <= _LONGEST else float(digits))


def _words(text: str) -> Iterator[Decimal]:
    """Yield the values of number words, singly and together: `twenty-five` gives 20, 5 and 25."""
    for run in _runs(text):
        yield from (Decimal(SMALL[word]) for word in run if word in SMALL)
        yield _value(run)
        parts: list[list[str]] = [[]]
        for word in run:
            if word in _LINKS:
                parts.append([])
            else:
                parts[-1].append(word)
        parts = [part for part in parts if any(word not in _SKIPPED for word in part)]
        values = [_value(part) for part in parts]
        yield from values
        for at, part in enumerate(parts[1:], 1):
            factor = FACTORS.get(part[-1], 1)
            yield from (value * factor for value in values[max(0, at - _MAX_LINKS) : at])


def _runs(text: str) -> Iterator[list[str]]:
    """Yield each unbroken run of number words as a list; words such as `and`, `to` and `a` may be in a run."""
    run: list[str] = []
    for word in (*_WORD.findall(text), ""):
        if word in _FIRST or (run and word in _VOCABULARY):
            run.append(word)
        elif run:
            if any(word in SMALL or word in FACTORS for word in run):
                yield run
            run = []


def _value(words: Sequence[str]) -> Decimal:
    """Return the value of number words taken together; other words are skipped.

    >>> _value(["two", "and", "a", "half", "million"]), _value(["a", "hundred", "and", "six"])
    (Decimal('2500000.0'), Decimal('106'))
    """
    total, current = Decimal(0), None
    for word in words:
        if word in SMALL or word == "half":
            current = (current or Decimal(0)) + (SMALL[word] if word in SMALL else Decimal("0.5"))
        elif word in FACTORS:
            product = (Decimal(1) if current is None else current) * FACTORS[word]
            if word in SCALES:  # what follows `thousand` is added to it
                total, current = min(total + product, _LARGEST), None
            else:
                current = min(product, _LARGEST)
    return total + (current or 0)


def spoken(text: str) -> Decimal | None:
    """Return the number that a text states in words alone; None if the text has anything else.

    >>> spoken("Two hundred and six"), spoken("a dozen"), spoken("half"), spoken("two or three")
    (Decimal('206'), Decimal('12'), None, None)
    """
    words = re.split(r"[\s-]+", text.lower().strip())
    is_number = all(word in _VOCABULARY and word not in ("or", "to") for word in words)
    is_started = words[0] in SMALL or (len(words) > 1 and words[0] in {"half", *_SKIPPED})
    has_value = any(word in SMALL or word in FACTORS for word in words)
    return _value(words) if is_number and is_started and has_value and words[-1] not in _SKIPPED else None

"""The numbers that stand in a text, in digits or words. Errs on the side of finding one too many."""

import re
from collections.abc import Iterator

_WORD = re.compile(r"[a-z]+")
_ONES = _WORD.findall(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = _WORD.findall("twenty thirty forty fifty sixty seventy eighty ninety")
NAMES = (*_ONES, *(f"{tens}-{ones}" if at else tens for tens in _TENS for at, ones in enumerate(_ONES[:10])))
"""The number words below a hundred, in order."""
SMALL = {word: value for value, word in enumerate(NAMES) if "-" not in word}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}

ENGLISH = r"\d{1,3}(?:[,'’]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
"""1,234.5 and 1234.5."""
_EUROPEAN = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+")
_ENGLISH = re.compile(ENGLISH)
_PIECE = re.compile(r"\.?\d+(?:[.,'’]\d+)*")
_SPACED = re.compile(r"(?<!\d)\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?!\d)")
_SCALE = re.compile(r"[\s-]*(hundred|" + "|".join(SCALES) + r")s?\b")
_SIGNED = re.compile(r"(?:^|[^\w.,])[-−]$")


def numbers_in(text: str) -> set[float]:
    """Every number of a text, with what `million` and the like make of it, and with its sign where it has one.

    >>> sorted(numbers_in("some 1,234.5 or 1.2 million of twenty-five, at −3 °C"))
    [-3.0, 1.2, 3.0, 5.0, 20.0, 25.0, 1234.5, 1200000.0]
    """
    lower = text.lower()
    return {*_digits(lower), *_spaced(lower), *_words(lower)}


def _digits(text: str) -> Iterator[float]:
    for piece in _PIECE.finditer(text):
        is_negative = _SIGNED.search(text[max(0, piece.start() - 2) : piece.start()])
        scale = _SCALE.match(text, piece.end())
        for value in _readings(piece.group()):
            yield value
            if scale:
                yield value * (SCALES.get(scale.group(1)) or 100)
            if is_negative:
                yield -value


def _spaced(text: str) -> Iterator[float]:
    for piece in _SPACED.finditer(text):
        yield float(re.sub(r"\s", "", piece.group()))


def _readings(piece: str) -> list[float]:
    """What a run of digits and separators says: as written in English, else on the continent, else its parts."""
    if piece.startswith("."):
        return [float(f"0{piece}")] if piece[1:].isdigit() else _readings(piece[1:])
    if _ENGLISH.fullmatch(piece):
        return [float(re.sub("[,'’]", "", piece))]
    if _EUROPEAN.fullmatch(piece):
        return [float(piece.replace(".", "").replace(",", "."))]
    return [float(part) for part in re.findall(r"\d+", piece)]


def _words(text: str) -> Iterator[float]:
    """Number words by themselves and together: `twenty-five` is 20, 5 and 25."""
    total, current, is_open = 0, 0, False
    for word in (*_WORD.findall(text), ""):
        if word in SMALL:
            yield float(SMALL[word])
            current, is_open = current + SMALL[word], True
        elif is_open and word == "hundred":
            current *= 100
        elif is_open and word in SCALES:
            total, current = total + current * SCALES[word], 0
        elif is_open and word != "and":
            yield float(total + current)
            total, current, is_open = 0, 0, False

"""Texts as they are compared: their words in small letters. This module shares no code with the search for negatives,
so that the audit does not repeat its mistakes.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"[^\W\d_]")
GRAM = 13
"""The number of words in a row that only a copy shares."""
_SHINGLE = 3
_KEPT = 20_000
"""The number of normalised texts that are kept, because contexts repeat passages."""


_LONG = 8_000
"""The letters of a text that is normalised anew each time, so that little memory is needed."""


def words(text: str) -> str:
    """Return the words of a text in small letters, with a blank before and after each.

    >>> words("The CO₂-level, in Łódź")
    ' the co2 level in łódź '
    """
    return _words(text) if len(text) > _LONG else _kept_words(text)


def _words(text: str) -> str:
    found = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(found)} " if found else ""


_kept_words = lru_cache(_KEPT)(_words)


def letters(text: str) -> int:
    """Return the number of letters in a text."""
    return len(_LETTER.findall(text))


def digest_of(text: str) -> bytes:
    """Return a short digest of the words of a text; empty if it has none."""
    found = words(text)
    return blake2b(found.encode("utf-8", "backslashreplace"), digest_size=12).digest() if found else b""


def shingles(text: str) -> frozenset[str]:
    """Return each run of three words in a text; all of its words as one run if it has fewer."""
    return _runs(text, _SHINGLE) or frozenset({words(text)} - {""})


def grams(text: str) -> frozenset[str]:
    """Return each run of 13 words in a text."""
    return _runs(text, GRAM)


def resemblance(one: str, other: str) -> float:
    """Return the share of the runs of three words of two texts that both have, from 0 to 1."""
    ours, theirs = shingles(one), shingles(other)
    return len(ours & theirs) / len(ours | theirs) if ours and theirs else 0.0


def _runs(text: str, size: int) -> frozenset[str]:
    found = words(text).split()
    return frozenset(" ".join(found[at : at + size]) for at in range(len(found) - size + 1))

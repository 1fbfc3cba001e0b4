"""Handles pictures that a question names by an ordinal, such as "the second image": finds, replaces or removes
ordinals.

The ordinal is the place of a picture, from 1, among all pictures of one context. In another context, it is usually
wrong.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from mmlongbench.task import ordinal_words

MAX_PLACE = 9_999
"""The highest place of a picture that is named in words."""
_NO_QUESTION = r"(?!\s+(?:of|one|image|picture|photo|option|choice|is\s+(?:the|it)|are|do|does|can)\b)"
_CLAUSE = (
    rf"whose|that|with|having|missing\s+(?:its|the|an?)|where(?!\s+is\b){_NO_QUESTION}|(?:in\s+)?which{_NO_QUESTION}"
)
_DESCRIBED = re.compile(rf"(?P<noun>\s+\w+(?:\s+(?:of|in)\s+the\s+\w+)?),?(?P<clause>\s+\(?(?:{_CLAUSE})\b)", re.I)
"""Matches the noun for a picture and the clause that describes the picture; a comma between them is removed with the
ordinal."""


@dataclass(frozen=True, slots=True)
class NamedPicture:
    """An ordinal in a question."""

    place: int
    """The place that the ordinal names, from 1."""
    start: int
    """The position of the ordinal's first character."""
    end: int
    """The position after the ordinal."""


@cache
def all_ordinals() -> tuple[str, ...]:
    """Return the ordinals of all places, in order, from `first`."""
    return tuple(ordinal_words(place) for place in range(1, MAX_PLACE + 1))


def pictures_named(question: str) -> tuple[NamedPicture, ...]:
    """Return the pictures that a question names by `the <ordinal> image`, in the order in which it names them.

    Images may also be called pictures or photos. Ordinals may be written in digits with `st`, `nd`, `rd` or `th`, even
    if the ending is wrong.

    >>> [each.place for each in pictures_named("Given the twenty-first image and the 22th photo, which is it?")]
    [21, 22]
    >>> [each.place for each in pictures_named("The first and second image are frames of one video.")]
    [1, 2]
    >>> pictures_named("Which of the following images appears first?")
    ()
    """
    return tuple(named for run in _run().finditer(question) for named in _in_run(run[1], run.start(1)))


def renamed(question: str, named: NamedPicture, ordinal: str) -> str:
    """Return the question with another ordinal; if the old ordinal begins with a capital letter, the new one does, too.

    >>> question = "Given the second image, whose corner is missing, which is it?"
    >>> renamed(question, pictures_named(question)[0], "one hundred and first")
    'Given the one hundred and first image, whose corner is missing, which is it?'
    """
    words = ordinal.capitalize() if question[named.start].isupper() else ordinal
    return f"{question[: named.start]}{words}{question[named.end :]}"


def without_ordinal(question: str, named: NamedPicture) -> str | None:
    """Return the question without the ordinal if a description of the picture follows the ordinal; otherwise None.

    >>> question = "Given the second image, whose corner is missing, which is it?"
    >>> without_ordinal(question, pictures_named(question)[0])
    'Given the image whose corner is missing, which is it?'
    """
    found = _DESCRIBED.match(question, named.end)
    return found and f"{question[: named.start]}{found['noun'].lstrip()}{found['clause']}{question[found.end() :]}"


def _in_run(words: str, at: int) -> Iterator[NamedPicture]:
    """Yield the ordinals of a run of number words; each ends at an ordinal word, such as `first` or `2nd`."""
    start = None
    for word in re.finditer(r"[a-z]+|\d+[a-z]+", words, re.IGNORECASE):
        if start is None and word[0].lower() == "and":
            continue
        start = word.start() if start is None else start
        if place := _place(words[start : word.end()]):
            yield NamedPicture(place, at + start, at + word.end())
            start = None


def _place(words: str) -> int | None:
    """Return the place that an ordinal names, in words or in digits; None if it is not an ordinal."""
    if digits := re.fullmatch(r"(\d{1,4})[a-z]+", words.lower()):
        return int(digits[1]) or None
    return _places().get(_key(words))


def _key(words: str) -> str:
    """Return number words in the form for look-ups: lower case, single blanks, without `and`."""
    found = re.findall(r"[a-z]+|\d+[a-z]+", words.lower())
    return " ".join(word for word in found if word != "and")


@cache
def _places() -> dict[str, int]:
    """Return the place of each ordinal, by the words of the ordinal in the form of `_key`."""
    return {_key(words): place for place, words in enumerate(all_ordinals(), 1)}


@cache
def _run() -> re.Pattern[str]:
    """Return the pattern of number words between `the` and the name of a picture."""
    words = sorted({word for key in _places() for word in key.split()})
    word = rf"(?:{'|'.join(words)}|\d{{1,4}}(?:st|nd|rd|th))"
    run = rf"{word}(?:(?:\s*,\s*|-|\s+)(?:and\s+)?{word}){{0,24}}"
    return re.compile(rf"\bthe\s+({run})\s+(?:image|picture|photo(?:graph)?)s?\b", re.IGNORECASE)

"""Pictures that a question names by an ordinal, such as "the second image": found, renamed, or named without it.

The ordinal is the place of a picture, from 1, among all pictures of one context. It is stale in any other context.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from mmlongbench import ordinal_words

MAX_PLACE = 9_999
"""The last picture of a context that is named in words."""
_DESCRIBED = re.compile(
    r"\s+(?P<noun>\w+),?(?P<clause>\s+(?:whose|that|with|which(?!\s+(?:of|one|image|picture|option|choice)\b))\b)", re.I
)
"""A picture and the clause that describes it; a comma before the clause goes with the ordinal."""


@dataclass(frozen=True, slots=True)
class NamedPicture:
    """An ordinal in a question."""

    place: int
    """From 1."""
    start: int
    """The first character of the ordinal."""
    end: int
    """The character after it."""


@cache
def all_ordinals() -> tuple[str, ...]:
    """Return the ordinals of all places, in order, from `first`."""
    return tuple(ordinal_words(place) for place in range(1, MAX_PLACE + 1))


def pictures_named(question: str) -> tuple[NamedPicture, ...]:
    """Return the pictures that a question names by `the <ordinal> image`, in its order.

    Pictures may also be called pictures, and ordinals be written in digits.

    >>> [each.place for each in pictures_named("Given the twenty-first image and the 2nd picture, which is it?")]
    [21, 2]
    >>> [each.place for each in pictures_named("The first and second image are frames of one video.")]
    [1, 2]
    >>> pictures_named("Which of the following images appears first?")
    ()
    """
    return tuple(named for run in _run().finditer(question) for named in _in_run(run[1], run.start(1)))


def renamed(question: str, named: NamedPicture, ordinal: str) -> str:
    """Return the question with another ordinal; one that begins a sentence keeps its capital.

    >>> question = "Given the second image, whose corner is missing, which is it?"
    >>> renamed(question, pictures_named(question)[0], "one hundred and first")
    'Given the one hundred and first image, whose corner is missing, which is it?'
    """
    words = ordinal.capitalize() if question[named.start].isupper() else ordinal
    return f"{question[: named.start]}{words}{question[named.end :]}"


def without_ordinal(question: str, named: NamedPicture) -> str | None:
    """Return the question with the picture told by its description alone; None where no description follows.

    >>> question = "Given the second image, whose corner is missing, which is it?"
    >>> without_ordinal(question, pictures_named(question)[0])
    'Given the image whose corner is missing, which is it?'
    """
    found = _DESCRIBED.match(question, named.end)
    return found and f"{question[: named.start]}{found['noun']}{found['clause']}{question[found.end() :]}"


def _in_run(words: str, at: int) -> Iterator[NamedPicture]:
    """The ordinals of a run of number words: each ends at a word that is one, such as `first` or `2nd`."""
    start = None
    for word in re.finditer(r"[a-z]+|\d+[a-z]+", words, re.IGNORECASE):
        if start is None and word[0].lower() == "and":
            continue
        start = word.start() if start is None else start
        if place := _places().get(_key(words[start : word.end()])):
            yield NamedPicture(place, at + start, at + word.end())
            start = None


def _key(words: str) -> str:
    """Number words as they are looked up: lower case, single blanks, without `and`."""
    found = re.findall(r"[a-z]+|\d+[a-z]+", words.lower())
    return " ".join(word for word in found if word != "and")


@cache
def _places() -> dict[str, int]:
    """The place of each ordinal, in words and in digits."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    found = {_key(words): place for place, words in enumerate(all_ordinals(), 1)}
    for place in range(1, MAX_PLACE + 1):
        is_teen = place % 100 in (11, 12, 13)
        found[f"{place}{'th' if is_teen else endings.get(place % 10, 'th')}"] = place
    return found


@cache
def _run() -> re.Pattern[str]:
    """A run of number words between `the` and the name of a picture."""
    words = sorted({word for key in _places() for word in key.split() if word.isalpha()})
    word = rf"(?:{'|'.join(words)}|\d{{1,4}}(?:st|nd|rd|th))"
    run = rf"{word}(?:(?:\s*,\s*|-|\s+)(?:and\s+)?{word}){{0,24}}"
    return re.compile(rf"\bthe\s+({run})\s+(?:image|picture)s?\b", re.IGNORECASE)

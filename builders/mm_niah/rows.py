"""The question that the readers of MM-NIAH make for its builder: what must hold for it, the pictures that it names by
ordinals, such as "the second image", and how it is asked.
"""

import re
from collections import UserDict
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import PurePosixPath
from typing import Annotated, Any, NamedTuple, NoReturn, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict

import mmlongbench.task as mt
from builders.common import refused

WebPage: TypeAlias = Sequence[str | mt.Image]
MISTYPED = "missing-or-mistyped-field"
MAX_PLACE = 9_999
"""The highest place of a picture that is named in words."""


class Pages(UserDict[str, Any]):
    """Interleaved pages by id, in the source's order; only the functions that read them are kept in memory."""

    def __getitem__(self, id: str) -> WebPage:
        page: WebPage = self.data[id]()
        return page


def is_made(name: str, *, is_cartoon: bool = False) -> bool:
    """Return whether a picture is in a folder of pictures that MM-NIAH made, which no haystack may show: cartoons and,
    unless `is_cartoon`, page pictures with a pasted cartoon.

    >>> is_made("obelics_paste/find-image/b2.jpg"), is_made("abnormal_pic_val/kite.jpg"), is_made("obelics/paste.jpg")
    (True, True, False)
    """
    folders = ("abnormal_pic*",) if is_cartoon else ("abnormal_pic*", "*paste*")
    return any(fnmatch(part.lower(), folder) for part in PurePosixPath(name).parts[:-1] for folder in folders)


def _defused(text: str) -> str:
    # what a model reads as a command gets blanks, but for the markers of pictures
    return mt.advanced.MARKER.join(map(mt.escape_markers, text.split(mt.advanced.MARKER)))


Defused: TypeAlias = Annotated[str, AfterValidator(_defused)]


class HiddenNeedle(BaseModel):
    """A needle: a sentence or a picture; exactly one of the two is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """The id, unique within a question, such as `needle-0`."""
    text: Defused = ""
    """A sentence without a newline and without a marker."""
    image: str = ""
    """The name, in the source, of the picture that is the needle or contains it."""


class HaystackQuestion(mt.Row):
    """One question about interleaved pages in which needles are hidden."""

    question: Defused
    """The question. When counting over pictures, it has one `<image>` marker for each picture in `shown`;
    otherwise it has none."""
    needles: tuple[HiddenNeedle, ...]
    """The needles, in the order of `counts`."""
    answers: tuple[Defused, ...] = ()
    """The accepted answers for retrieval and reasoning over text; the first one is released."""
    counts: tuple[int, ...] = ()
    """The numbers for counting, one for each needle; every other picture of a context has 0."""
    choices: tuple[str, ...] = ()
    """The picture options for retrieval and reasoning over pictures, by their names in the source."""
    right: int = -1
    """The index of the right choice in `choices`."""
    shown: tuple[str, ...] = ()
    """The pictures that are shown with the question, when counting over pictures."""
    is_ordinal_stale: bool = False
    """Whether the question's ordinal ("the second image") is wrong in the source's own document: it names another
    picture than the needle."""
    pages: tuple[str, ...] = ()
    """The ids of the question's own web pages, which are taken before all others."""


_CORRECT = "correct the row in the source or with errata, or take it out"


def refuse(reason: str, expected: str, found: str, field: str, todo: str = _CORRECT) -> NoReturn:
    raise refused(reason, expected, found, field, todo)


def check_row(row: HaystackQuestion, task: str, needle: str) -> None:
    """Refuse a row that cannot be a question of a dataset with this task and kind of needle."""
    _check_needles(row, task, needle)
    if row.shown and (task, needle) != ("counting", "image"):
        todo = "the public format shows pictures in questions that count pictures, nowhere else"
        refuse("pictures-in-the-question", "no picture", f"{len(row.shown)}", "question", todo)
    if (markers := row.question.count(mt.advanced.MARKER)) != len(row.shown):
        refuse("markers-and-images", f"{len(row.shown)} markers", str(markers), "question")
    if task == "counting":
        if row.choices:
            refuse("choices-and-counts", "no choices", f"{len(row.choices)}", "choices")
        if len(row.counts) != len(row.needles):
            refuse("counts-and-needles", f"{len(row.needles)} counts", str(len(row.counts)), "answer")
    elif needle == "text":
        if not row.answers or not all(map(mt.advanced.normalise, row.answers)):
            refuse("empty-answer", "an answer of letters or digits", repr(row.answers), "answer")
    else:
        if not row.choices:
            todo = "text options cannot be expressed in the public format"
            refuse("text-options", "picture choices", "none", "choices", todo)
        if len(set(row.choices)) < max(2, len(row.choices)):
            refuse("identical-choices", "two or more choices that differ", repr(row.choices), "choices")
        if not 0 <= row.right < len(row.choices):
            refuse("answer-out-of-range", f"an index below {len(row.choices)}", str(row.right), "answer")


def _check_needles(row: HaystackQuestion, task: str, kind: str) -> None:
    if not row.needles:
        refuse("no-needles", "at least one needle", "none", "needles")
    is_text = kind == "text"
    bodies = [needle.text if is_text else needle.image for needle in row.needles]
    if not all(bodies):
        refuse("needles-of-another-kind", f"needles that are {kind}s", "another kind", "needles", "set options.needle")
    distinct = {mt.advanced.normalise(body) if is_text else body for body in bodies}
    # Counted statements with equal numbers are equal.
    if len(distinct) < len(bodies) and not (task == "counting" and is_text):
        refuse("needle-twice", "needles that differ", repr(bodies), "needles")
    for body in bodies if is_text else ():
        if "\n" in body or mt.advanced.MARKER in body:
            refuse("needle-with-marker", f"one line without {mt.advanced.MARKER}", repr(body), "needles")
        if not mt.advanced.normalise(body):
            refuse("empty-needle", "a sentence", repr(body), "needles")


# --- ordinals ---------------------------------------------------------------------------------------------------------
# An ordinal is the place of a picture, from 1, among all pictures of one context. In another context, it is usually
# wrong.

_WORD = re.compile(r"[a-z]+|\d+[a-z]+", re.IGNORECASE)
_NO_QUESTION = r"(?!\s+(?:of|one|image|picture|photo|option|choice|is\s+(?:the|it)|are|do|does|can)\b)"
_CLAUSE = (
    rf"whose|that|with|having|missing\s+(?:its|the|an?)|where(?!\s+is\b){_NO_QUESTION}|(?:in\s+)?which{_NO_QUESTION}"
)
_DESCRIBED = re.compile(rf"(?P<noun>\s+\w+(?:\s+(?:of|in)\s+the\s+\w+)?),?(?P<clause>\s+\(?(?:{_CLAUSE})\b)", re.I)
"""Matches the noun for a picture and the clause that describes the picture; a comma between them is removed with the
ordinal."""


class NamedPicture(NamedTuple):
    """An ordinal in a question: the place that it names, from 1, and the positions where it begins and ends."""

    place: int
    start: int
    end: int


@cache
def all_ordinals() -> tuple[str, ...]:
    """Return the ordinals of all places, in order, from `first`."""
    return tuple(mt.advanced.ordinal_words(place) for place in range(1, MAX_PLACE + 1))


def pictures_named(question: str) -> tuple[NamedPicture, ...]:
    """Return the pictures that a question names by `the <ordinal> image`, in the order in which it names them.

    Images may also be called pictures or photos. Ordinals may be written in digits, even with a wrong ending.

    >>> [named.place for named in pictures_named("Given the twenty-first image and the 22th photo, which is it?")]
    [21, 22]
    """
    named = []
    places, run = _places()
    for found in run.finditer(question):
        start = None  # of an ordinal, which ends at a word such as `first` or `2nd`
        for word in _WORD.finditer(question, *found.span(1)):
            if start is None and word[0].lower() == "and":
                continue
            start = word.start() if start is None else start
            words = question[start : word.end()]
            digits = re.fullmatch(r"(\d{1,4})[a-z]+", words.lower())
            if place := int(digits[1]) if digits else places.get(_key(words)):
                named.append(NamedPicture(place, start, word.end()))
                start = None
    return tuple(named)


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


def _key(words: str) -> str:
    # "one hundred and first" and "One hundred  first" are one ordinal
    return " ".join(word for word in _WORD.findall(words.lower()) if word != "and")


@cache
def _places() -> tuple[Mapping[str, int], re.Pattern[str]]:
    """Return the place of each ordinal, by its words without `and`; and the pattern of an ordinal before a picture."""
    places = {_key(words): place for place, words in enumerate(all_ordinals(), 1)}
    word = rf"(?:{'|'.join(sorted({word for key in places for word in key.split()}))}|\d{{1,4}}(?:st|nd|rd|th))"
    run = rf"{word}(?:(?:\s*,\s*|-|\s+)(?:and\s+)?{word}){{0,24}}"
    return places, re.compile(rf"\bthe\s+({run})\s+(?:image|picture|photo(?:graph)?)s?\b", re.IGNORECASE)


# --- how a question is asked ------------------------------------------------------------------------------------------


def worded(
    row: HaystackQuestion, named: Sequence[NamedPicture], ordinal: str, choices: Sequence[str]
) -> tuple[str, mt.Wording | None]:
    """Return the question of a row that names pictures by ordinals; and, if its ordinal is rewritten, its wording: the
    ordinals of all places, of which one is the place of the needle among all pictures of the context.
    """
    if not named or ordinal == "source":
        return row.question, None
    if len(named) > 1 or len(row.needles) > 1:
        expected, found = "one ordinal and one needle", f"{len(named)} ordinals and {len(row.needles)} needles"
        todo = "set options.ordinal to source to keep the question as it is"
        refuse("several-ordinals", expected, found, "question", todo)
    if ordinal == "neutral":
        if (text := without_ordinal(row.question, named[0])) is None:
            expected = "words that describe the image, such as `whose corner is missing`"
            refuse("ordinal-without-description", expected, "none", "question", "set options.ordinal to rewrite")
        return text, None

    def choose(units: Sequence[mt.Unit]) -> int:
        pictures = [unit.id for unit in units if isinstance(unit.body, mt.Image)]
        if (place := pictures.index(row.needles[0].id)) >= MAX_PLACE:
            todo = "build a shorter length, or set options.ordinal to neutral"
            bound = f"a needle among the first {MAX_PLACE:,} pictures"
            refuse("more-pictures-than-ordinals", bound, f"place {place + 1:,}", "", todo)
        return place

    def parts(words: str) -> tuple[mt.Part, ...]:
        return ask(renamed(row.question, named[0], words), choices, has_choices=True)

    return renamed(row.question, named[0], all_ordinals()[0]), mt.Wording(all_ordinals(), choose, parts)


def ask(question: str, paths: Sequence[str], *, has_choices: bool) -> tuple[mt.Part, ...]:
    """Return a question with its pictures. With `has_choices`, the pictures follow the question as lettered choices.
    Without it, they replace the markers in the question.
    """
    if has_choices:
        options = [part for n, path in enumerate(paths) for part in (f"\n{chr(ord('A') + n)}. ", mt.Image(path))]
        return (f"\n\nQuestion: {question}", *options, "\nAnswer:")
    first, *others = question.split(mt.advanced.MARKER)
    shown = zip(paths[: len(others)], others, strict=True)
    return ("\n\nQuestion: ", first, *(part for path, text in shown for part in (mt.Image(path), text)), "\nAnswer:")

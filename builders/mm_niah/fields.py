"""Reads the fields of MM-NIAH's annotation rows in all their forms; refuses any other form, and says what is wrong."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from builders.mm_niah.pages import is_cartoon
from builders.mm_niah.rows import MARKER
from mmlongbench.task import Fault, Rejected

PAGE_BREAK = "</s>"
"""The break between the pages of some contexts; it is not part of a page's text."""
MAX_NEEDLE = 10_000
"""The maximum characters of a needle, which is a sentence."""
MAX_COUNT = 10**6
CORRECT = "correct the row in the source or with errata, or take it out"
"""What to do about most rows that cannot be read."""
_WHOLE = re.compile(r"[0-9]{1,9}(?:\.0{1,9})?")
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a row of any category; needles, options and answer are read later, depending on the category."""

    id: str
    context: str
    question: str
    answer: object
    meta: Mapping[str, object]
    pictures: tuple[str, ...]
    """The pictures of the context."""
    shown: tuple[str, ...]
    """The pictures of the question."""


def read_fields(raw: Mapping[str, object]) -> Fields:
    """Return the fields of a row.

    Raises:
        Rejected: a field is missing or has another type, or there are not as many pictures as markers.

    """
    if type(raw.get("id")) is not int:
        refuse("missing-or-mistyped-field", "an integer", repr(raw.get("id")), "id")
    context, question, meta = _text(raw, "context"), " ".join(_text(raw, "question").split()), raw.get("meta")
    if not isinstance(meta, dict):
        refuse("missing-or-mistyped-field", "an object", type(meta).__name__, "meta")
    images = names_of(raw.get("images_list"), "images_list")
    markers = context.count(MARKER) + question.count(MARKER)
    if markers != len(images):
        refuse("markers-and-images", f"{markers} pictures, one a marker", str(len(images)), "images_list")
    at = _shown_at(images, question.count(MARKER))
    pictures = tuple(name for number, name in enumerate(images) if number not in at)
    shown = tuple(images[number] for number in sorted(at))
    context = context.replace(PAGE_BREAK, "\n\n")
    return Fields(f"mm-niah-{raw['id']}", context, question, raw.get("answer"), meta, pictures, shown)


def _shown_at(images: Sequence[str], count: int) -> set[int]:
    """Return the places of the question's `count` pictures in `images_list`: the pictures in a folder of cartoons, if
    there are `count` of these; otherwise the last `count` pictures. If there are more than `count` cartoons, these last
    pictures must be cartoons.

    Some of MM-NIAH's own programs use the last entry of `images_list`, others the first. So the folder is more reliable
    than the place.
    """
    cartoons = {number for number, name in enumerate(images) if is_cartoon(name)}
    last = set(range(len(images) - count, len(images)))
    if len(cartoons) <= count:
        return cartoons if len(cartoons) == count else last
    if not last <= cartoons:
        expected = f"{count} of folder abnormal_pic*, or the last ones of them"
        refuse("pattern-unknown", expected, f"{len(cartoons)} at other places", "images_list")
    return last


def find_sentences(context: str, texts: Sequence[str]) -> dict[str, list[Span]]:
    """Return the positions of each text in a context, with any white space between its words.

    A text that is part of a longer text is not found inside the longer one.

    >>> find_sentences("It is 4. So it is 4. It is 4.", ["So it is 4.", "it is 4.", "It is 4."])
    {'So it is 4.': [(9, 20)], 'it is 4.': [], 'It is 4.': [(0, 8), (21, 29)]}
    """
    taken: list[Span] = []
    found: dict[str, list[Span]] = {}
    for text in sorted(dict.fromkeys(texts), key=len, reverse=True):
        pattern = re.compile(r"\s+".join(map(re.escape, text.split())))
        spans = [each.span() for each in pattern.finditer(context)]
        found[text] = [span for span in spans if not any(span[0] < end and start < span[1] for start, end in taken)]
        taken += found[text]
    return {text: found[text] for text in texts}


def sentences_of(fields: Fields) -> list[str]:
    """Return the needles of a text row with normalised white space; refuse anything but a list of sentences."""
    needles = fields.meta.get("needles")
    if not isinstance(needles, list) or not needles:
        refuse("no-needles", "a list of needles", repr(needles)[:80], "meta.needles")
    if not all(isinstance(needle, str) and needle.strip() for needle in needles):
        refuse("missing-or-mistyped-field", "a list of sentences", repr(needles)[:80], "meta.needles")
    if (longest := max(map(len, needles))) > MAX_NEEDLE:
        refuse("needle-too-long", f"at most {MAX_NEEDLE} characters", str(longest), "meta.needles")
    return [" ".join(needle.split()) for needle in needles]


def are_in_context(fields: Fields) -> bool:
    """Return whether `meta.needles` has needles, and all of them are sentences of the context."""
    needles = fields.meta.get("needles")
    texts = needles if isinstance(needles, list) else []
    if not texts or not all(isinstance(text, str) and text.strip() and len(text) <= MAX_NEEDLE for text in texts):
        return False
    return all(find_sentences(fields.context, [" ".join(text.split()) for text in texts]).values())


def numbers_of(answer: object) -> tuple[int, ...]:
    """Return the numbers of a counting answer; refuse any other answer."""
    counts = counts_of(answer)
    if counts is None:
        expected = "a list of whole numbers, or a text that spells one"
        refuse("missing-or-mistyped-field", expected, repr(answer)[:80], "answer")
    return counts


def counts_of(answer: object) -> tuple[int, ...] | None:
    """Return the numbers of a counting answer, given as a list or as JSON text; None for anything else.

    >>> counts_of("[1, 2.0]"), counts_of(["1", "2"]), counts_of("[1.5]")
    ((1, 2), (1, 2), None)
    """
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except (ValueError, RecursionError):
            return None
    if not isinstance(answer, list) or not answer:
        return None
    counts = [count for each in answer if (count := _count(each)) is not None]
    return tuple(counts) if len(counts) == len(answer) else None


def _count(value: object) -> int | None:
    """Return a whole number from 0 to `MAX_COUNT`, also if it is written as text or as `2.0`; None for other values."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def _text(raw: Mapping[str, object], field: str) -> str:
    value = raw.get(field)
    if not isinstance(value, str) or not value.strip():
        refuse("missing-or-mistyped-field", "a text", repr(value)[:80], field)
    return str(value)


def names_of(value: object, field: str) -> list[str]:
    """Return a list of names; refuse any other value."""
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        refuse("missing-or-mistyped-field", "a list of names", repr(value)[:80], field)
    return list(value) if isinstance(value, list) else []


def refuse(reason: str, expected: str, found: str, field: str, todo: str = CORRECT) -> NoReturn:
    """Refuse a row; the reject names the field, what was expected and what was found."""
    raise Rejected(Fault(reason, expected, found, field=field, todo=todo))

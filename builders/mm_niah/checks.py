"""Checks a question of MM-NIAH: its needles differ, one choice is right, and it has one marker for each picture."""

from collections.abc import Sequence
from typing import NoReturn

import mmlongbench.task as mt
from builders.mm_niah.fields import CORRECT
from builders.mm_niah.rows import MARKER, HaystackQuestion


def check_row(row: HaystackQuestion, task: str, needle: str) -> None:
    """Refuse a row that cannot be a question of this dataset.

    Raises:
        Rejected: the reject names the field, what was expected and what was found.

    """
    _needles(row, needle, may_repeat=(task, needle) == ("counting", "text"))
    if row.shown and (task, needle) != ("counting", "image"):
        todo = "the public format shows pictures in questions that count pictures, nowhere else"
        _refuse("pictures-in-the-question", "no picture", f"{len(row.shown)}", "question", todo)
    if row.question.count(MARKER) != len(row.shown):
        _refuse("markers-and-images", f"{len(row.shown)} markers", str(row.question.count(MARKER)), "question")
    if task == "counting":
        if len(row.counts) != len(row.needles):
            _refuse("counts-and-needles", f"{len(row.needles)} counts", str(len(row.counts)), "answer")
    elif needle == "text":
        if not row.answers or not all(map(mt.normalise, row.answers)):
            _refuse("empty-answer", "an answer of letters or digits", repr(row.answers), "answer")
    else:
        _choices(row)


def _needles(row: HaystackQuestion, kind: str, *, may_repeat: bool) -> None:
    """Refuse needles that cannot be hidden. Equal needles are only accepted with `may_repeat`, because counted
    statements with equal numbers are equal.
    """
    if not row.needles:
        _refuse("no-needles", "at least one needle", "none", "needles")
    bodies = [needle.text if kind == "text" else needle.image for needle in row.needles]
    if not all(bodies):
        _refuse("needles-of-another-kind", f"needles that are {kind}s", "another kind", "needles", "set options.needle")
    distinct = {mt.normalise(body) if kind == "text" else body for body in bodies}
    if len(distinct) < len(bodies) and not may_repeat:
        _refuse("needle-twice", "needles that differ", repr(bodies), "needles")
    for body in bodies if kind == "text" else ():
        if "\n" in body or MARKER in body:
            _refuse("needle-with-marker", f"one line without {MARKER}", repr(body), "needles")
        if not mt.normalise(body):
            _refuse("empty-needle", "a sentence", repr(body), "needles")


def _choices(row: HaystackQuestion) -> None:
    if not row.choices:
        todo = "text options cannot be expressed in the public format"
        _refuse("text-options", "picture choices", "none", "choices", todo)
    if len(set(row.choices)) < max(2, len(row.choices)):
        _refuse("identical-choices", "two or more choices that differ", repr(row.choices), "choices")
    if not 0 <= row.right < len(row.choices):
        _refuse("answer-out-of-range", f"an index below {len(row.choices)}", str(row.right), "answer")


def check_pictures(pictures: Sequence[mt.Picture], field: str, least_scale: float = 0) -> None:
    """Refuse pictures with the same bytes, and a picture that is shrunk so much that its needle may become invisible.

    Raises:
        Rejected: the reject names the field, what was expected and what was found.

    """
    if any(picture.source in mt.PictureBytes(e.source for e in pictures[:n]) for n, picture in enumerate(pictures)):
        _refuse(f"identical-{field}", "pictures that differ", "the same bytes twice", field)
    for picture in pictures:
        if picture.scale < least_scale:
            expected, found = f"a scale of at least {least_scale}", f"{picture.scale:.3f}"
            _refuse("needle-too-small", expected, found, picture.source.name, "raise pictures.longest_side")


def _refuse(reason: str, expected: str, found: str, field: str, todo: str = CORRECT) -> NoReturn:
    raise mt.Rejected(mt.Fault(reason, expected, found, field=field, todo=todo))

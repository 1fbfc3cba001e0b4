"""The row that the readers of MM-NIAH make for its builder, what must hold for it, and its web pages, which are read
when they are needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Annotated, NoReturn, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict

import mmlongbench.task as mt

WebPage: TypeAlias = Sequence[str | mt.Image]
CORRECT = "correct the row in the source or with errata, or take it out"
"""What to do about most rows that cannot be read."""
CARTOONS = "abnormal_pic*"
"""The names, as a pattern, of folders with cartoons."""
_MADE = ("*paste*", CARTOONS)
"""Folders with pictures that MM-NIAH made: page pictures with a pasted cartoon, and cartoons."""


class Pages(Mapping[str, WebPage]):
    """Interleaved pages by id, in the source's order; only the functions that read them are kept in memory."""

    def __init__(self, found: Mapping[str, Callable[[], WebPage]]) -> None:
        self._found = found

    def __getitem__(self, id: str) -> WebPage:
        return self._found[id]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def is_made(name: str, folders: Sequence[str] = _MADE) -> bool:
    """Return whether a picture is in a folder of pasted page pictures or cartoons, which no haystack may show.

    >>> is_made("obelics_paste/find-image/b2.jpg"), is_made("abnormal_pic_val/kite.jpg"), is_made("obelics/paste.jpg")
    (True, True, False)
    """
    return any(fnmatch(part.lower(), folder) for part in PurePosixPath(name).parts[:-1] for folder in folders)


def _defused(text: str) -> str:
    """Return a text in which what a model reads as a command has blanks, but for the markers of pictures."""
    return mt.MARKER.join(map(mt.escape_markers, text.split(mt.MARKER)))


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


def refuse(reason: str, expected: str, found: str, field: str, todo: str = CORRECT) -> NoReturn:
    """Refuse a row; the reject names the field, what was expected and what was found."""
    raise mt.Rejected(mt.Fault(reason, expected, found, field=field, todo=todo))


def check_row(row: HaystackQuestion, task: str, needle: str) -> None:
    """Refuse a row that cannot be a question of a dataset with this task and kind of needle.

    Raises:
        Rejected: the reject names the field, what was expected and what was found.

    """
    _check_needles(row, task, needle)
    if row.shown and (task, needle) != ("counting", "image"):
        todo = "the public format shows pictures in questions that count pictures, nowhere else"
        refuse("pictures-in-the-question", "no picture", f"{len(row.shown)}", "question", todo)
    if row.question.count(mt.MARKER) != len(row.shown):
        refuse("markers-and-images", f"{len(row.shown)} markers", str(row.question.count(mt.MARKER)), "question")
    if task == "counting":
        if len(row.counts) != len(row.needles):
            refuse("counts-and-needles", f"{len(row.needles)} counts", str(len(row.counts)), "answer")
    elif needle == "text":
        if not row.answers or not all(map(mt.normalise, row.answers)):
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
    is_text = kind == "text"
    if not row.needles:
        refuse("no-needles", "at least one needle", "none", "needles")
    bodies = [needle.text if is_text else needle.image for needle in row.needles]
    if not all(bodies):
        refuse("needles-of-another-kind", f"needles that are {kind}s", "another kind", "needles", "set options.needle")
    distinct = {mt.normalise(body) if is_text else body for body in bodies}
    # Counted statements with equal numbers are equal.
    if len(distinct) < len(bodies) and not (task == "counting" and is_text):
        refuse("needle-twice", "needles that differ", repr(bodies), "needles")
    for body in bodies if is_text else ():
        if "\n" in body or mt.MARKER in body:
            refuse("needle-with-marker", f"one line without {mt.MARKER}", repr(body), "needles")
        if not mt.normalise(body):
            refuse("empty-needle", "a sentence", repr(body), "needles")

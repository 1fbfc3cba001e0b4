"""The row that every reader of photographs makes for the builder, and the checks that the readers share."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from builders.common import mistyped, not_text, not_unicode
from builders.visual_haystacks.coco import Objects
from mmlongbench.task import Fault, Rejected, Row, escape_markers


class PhotographQuestion(Row):
    """One question about a few photographs among many."""

    question: str
    """The question."""
    answer: Literal["Yes", "No"]
    """The answer."""
    needles: tuple[str, ...]
    """The photographs that the question is about, by their names in the source."""
    negatives: tuple[str, ...] = ()
    """The photographs without the anchor object that the source lists for this question. As distractors, they are taken
    before the photographs of the pool (see `Reader.shows`)."""
    anchor: str = ""
    """The object that identifies a needle. No distractor from the pool shows this object. If this text is empty,
    nothing is taken from the pool."""


_SHOWN = 200
"""The maximum characters of a wrong value that a reject shows."""
_LEADING_MARKERS = re.compile(r"(?:\s*<image>[ \t]*(?:\n|$))*")
_MAX_ASKED = 1_000
"""The maximum characters of a question in which objects are searched for; questions of Visual Haystacks have about a
hundred."""
_ASKED = re.compile(
    r"for (?:the image|all images) with (?:an? )?(.+?), "
    r"(?:is there|do (?:all|any) of them contain) (?:an? )?(.+?)\W*$",
    re.IGNORECASE,
)


def text_in(raw: Mapping[str, object], field: str) -> str:
    """Return the text of a field without the space around it; raises Rejected if the field holds no valid text."""
    text = raw.get(field)
    if fault := not_text(raw, field, _SHOWN) or not_unicode(str(text), field):
        raise Rejected(fault)
    return str(text).strip()


def pictures_in(raw: Mapping[str, object], field: str, *, least: int = 0, prefix: str = "") -> tuple[str, ...]:
    """Return the names of pictures in a field, relative to the root and without `prefix`; raises Rejected if the field
    is not a list of at least `least` names. A field that is missing or null has no names.
    """
    value = [] if raw.get(field) is None else raw[field]
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value) or len(value) < least:
        expected = "a list of names of pictures" + (f", at least {least}" if least else "")
        raise Rejected(mistyped(raw, field, expected, _SHOWN))
    if fault := not_unicode("".join(value), field):
        raise Rejected(fault)
    return tuple(_name(name.removeprefix(prefix), field) for name in value)


def _name(given: str, field: str) -> str:
    path = PurePosixPath(given)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in given:
        raise Rejected(
            Fault(
                "path-outside-source",
                "a picture below the folder of images",
                repr(given),
                field=field,
                todo="put the picture into this folder, and name it by its path there",
            )
        )
    return str(path)


def answer_of(text: str, field: str) -> Literal["Yes", "No"]:
    """Return `Yes` or `No` from a text that is this word in upper or lower case, with or without a point after it;
    raises Rejected for any other text.
    """
    found = text.rstrip(".").casefold()
    if found not in ("yes", "no"):
        raise Rejected(
            Fault(
                "neither-yes-nor-no",
                "Yes or No",
                repr(text)[:200],
                field=field,
                todo="correct the answer in the source or with errata",
            )
        )
    return "Yes" if found == "yes" else "No"


def question_of(text: str, field: str) -> str:
    r"""Return the question without LLaVA's `<image>` markers at its beginning; in other markers, blanks are added.

    >>> question_of("<image>\nIs there an <image>?", "question")
    'Is there an < image >?'
    """
    question = escape_markers(_LEADING_MARKERS.sub("", text, count=1).strip())
    if not question:
        raise Rejected(
            Fault(
                "empty-question", "a question", "nothing", field=field, todo="write the question, or take the row out"
            )
        )
    return question


def asked_objects(question: str) -> tuple[str, str]:
    """Return (anchor, target): the object that identifies the needles, and the object that is asked about. Both are
    empty if the question has another form.

    >>> asked_objects("For the image with a truck, is there a dog?")
    ('truck', 'dog')
    >>> asked_objects("For all images with an apple, do any of them contain a wine glass?")
    ('apple', 'wine glass')
    """
    found = _ASKED.search(" ".join(question.split())) if len(question) <= _MAX_ASKED else None
    return (found[1], found[2]) if found else ("", "")


def against(objects: Objects | None, row: PhotographQuestion) -> PhotographQuestion:
    """Return the row with its anchor in the annotations' spelling, and without negatives that show the anchor.

    If the annotations do not know the anchor, the anchor becomes empty, so no picture is taken from the pool. Without
    annotations, the row is returned unchanged.

    Raises:
        Rejected: a needle does not show the anchor object.

    """
    if objects is None:
        return row
    anchor = objects.spelling.get(row.anchor.casefold(), "")
    if not anchor:
        return row.model_copy(update={"anchor": "", "repairs": (*row.repairs, "anchor-unknown-pool-unused")})
    lacking = next((name for name in row.needles if not objects.may_show(name, anchor)), None)
    if lacking is not None:
        raise Rejected(
            Fault(
                "needle-without-anchor",
                f"a picture that shows {anchor!r}",
                lacking,
                field="needles",
                todo="name other needles, or another anchor",
            )
        )
    shown = {name for name in row.negatives if objects.does_show(name, anchor)}.difference(row.needles)
    kept = tuple(name for name in row.negatives if name not in shown)
    repairs = (*row.repairs, "negative-shows-anchor") if shown else row.repairs
    return row.model_copy(update={"anchor": anchor, "negatives": kept, "repairs": repairs})

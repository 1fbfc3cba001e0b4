"""Makes remarks about released records of MM-NIAH, of any origin, from the fields of the records alone."""

from collections.abc import Iterator

import mmlongbench.task as mt
from builders.mm_niah.ordinals import pictures_named
from builders.mm_niah.pages import is_made
from builders.mm_niah.rows import MARKER

FOLDER = "mm-niah/"
"""The folder in which the pictures are released."""
_UNKNOWN_NEEDLE = "that cannot be compared: the record does not say which picture is the needle"


def ordinal_remarks(record: mt.Record, *, is_promised: bool) -> Iterator[mt.Remark]:
    """Yield a remark that says whether the ordinals of a question name its needles; nothing for a question without an
    ordinal.
    """
    named = pictures_named(record["question"]) if record.get("choices_image") else ()
    if named:
        needles = _needle_places(record)
        is_right = sorted({each.place for each in named}) == needles
        fault = "" if is_right else "naming another picture than the needle" if needles else _UNKNOWN_NEEDLE
        yield mt.Remark("questions with an ordinal", fault, is_promised=is_promised)


def filler_remarks(record: mt.Record, *, has_picture_needles: bool) -> Iterator[mt.Remark]:
    """Yield a remark that says whether a picture that the benchmark made, or a picture of the question, is a filler of
    the context.

    Only names are compared; the bytes of pictures are compared when a release is built.
    """
    needles, images = _needle_places(record), record.get("image_list") or []
    fillers = [path for place, path in enumerate(images, 1) if place not in needles]
    if not fillers:
        return
    beside = {*(record.get("choices_image") or ()), *(record.get("needle_image_list") or ())}
    fault = ""
    if has_picture_needles and not needles:
        fault = _UNKNOWN_NEEDLE
    elif any(is_made(path) for path in fillers):
        fault = "filled with a picture that was made for a question"
    elif not beside.isdisjoint(fillers):
        fault = "filled with a picture that is shown beside the question"
    yield mt.Remark("contexts with other pictures than needles", fault, is_promised=True)


def _needle_places(record: mt.Record) -> list[int]:
    """Return the places of the needles among the pictures, from 1. Needles are the pictures whose `has_ans` is true or,
    if there are none, the pictures whose paths are in `positive_ctxs`.
    """
    pictures = [ctx for ctx in record["ctxs"] if ctx["text"] == MARKER]
    if flagged := [place for place, ctx in enumerate(pictures, 1) if ctx.get("has_ans")]:
        return flagged
    needles = {f"{FOLDER}{positive['image']}" for positive in record.get("positive_ctxs") or () if "image" in positive}
    return [place for place, path in enumerate(record["image_list"], 1) if path in needles]

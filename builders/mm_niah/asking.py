"""Builds MM-NIAH's questions, with their pictures and with an ordinal that is right for the needle's place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import mmlongbench.task as mt
from builders.mm_niah.ordinals import (
    MAX_PLACE,
    NamedPicture,
    all_ordinals,
    pictures_named,
    renamed,
    without_ordinal,
)
from builders.mm_niah.rows import MARKER, HaystackQuestion

Ordinal = Literal["rewrite", "neutral", "source"]


@dataclass(frozen=True, slots=True)
class NeedlePlace(mt.Wording):
    """A question that names the needle by an ordinal: the place of the needle among all pictures of the context."""

    question: str
    named: NamedPicture
    needle: str
    """The id of the needle's unit."""
    choices: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The ordinals of all places."""
        return all_ordinals()

    def choose(self, units: Sequence[mt.Unit]) -> int:
        """Return the needle's place among the pictures, from 0."""
        pictures = [unit.id for unit in units if isinstance(unit.body, mt.Image)]
        if (place := pictures.index(self.needle)) >= MAX_PLACE:
            todo = "build a shorter length, or set options.ordinal to neutral"
            bound = f"a needle among the first {MAX_PLACE:,} pictures"
            raise mt.Rejected(mt.Fault("more-pictures-than-ordinals", bound, f"place {place + 1:,}", todo=todo))
        return place

    def parts(self, text: str) -> tuple[mt.Part, ...]:
        """Return the parts of the question, with the given ordinal."""
        return ask(self.asked(text), self.choices, has_choices=True)

    def asked(self, text: str) -> str:
        """Return the text of the question, with the given ordinal."""
        return renamed(self.question, self.named, text)


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of a draft, and the ordinals that the question has in the source."""

    text: str
    wording: NeedlePlace | None = None
    named: tuple[NamedPicture, ...] = ()
    """The ordinals in the source's question."""


def asked(row: HaystackQuestion, ordinal: Ordinal, choices: tuple[str, ...]) -> Asked:
    """Return the question of a row. An ordinal is looked for only if the question has picture options.

    Raises:
        Rejected: the ordinal must be replaced or left out, but the question has several ordinals or needles; or the
            ordinal must be left out, but no other words describe the needle.

    """
    named = pictures_named(row.question) if row.choices else ()
    if not named or ordinal == "source":
        return Asked(row.question, named=named)
    if len(named) > 1 or len(row.needles) > 1:
        expected, found = "one ordinal and one needle", f"{len(named)} ordinals and {len(row.needles)} needles"
        todo = "set options.ordinal to source to keep the question as it is"
        raise mt.Rejected(mt.Fault("several-ordinals", expected, found, field="question", todo=todo))
    if ordinal == "rewrite":
        wording = NeedlePlace(row.question, named[0], row.needles[0].id, choices)
        return Asked(wording.asked(all_ordinals()[0]), wording, named)
    text = without_ordinal(row.question, named[0])
    if text is None:
        expected = "words that describe the image, such as `whose corner is missing`"
        todo = "set options.ordinal to rewrite"
        raise mt.Rejected(mt.Fault("ordinal-without-description", expected, "none", field="question", todo=todo))
    return Asked(text, named=named)


def ask(question: str, paths: Sequence[str], *, has_choices: bool) -> tuple[mt.Part, ...]:
    """Return a question with its pictures. With `has_choices`, the pictures follow the question as lettered choices.
    Without it, they replace the markers in the question.
    """
    shown = iter(paths)
    if has_choices:
        options = [part for n, path in enumerate(shown) for part in (f"\n{chr(ord('A') + n)}. ", mt.Image(path))]
        return (f"\n\nQuestion: {question}", *options, "\nAnswer:")
    return ("\n\nQuestion: ", *_with_pictures(question, shown), "\nAnswer:")


def _with_pictures(question: str, shown: Iterator[str]) -> Iterator[mt.Part]:
    first, *others = question.split(MARKER)
    yield first
    for text in others:
        yield mt.Image(next(shown))
        yield text

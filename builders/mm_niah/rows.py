"""The row that every reader of MM-NIAH makes for the builder."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict

from mmlongbench.task import Row, escape_markers

MARKER = "<image>"
"""The marker that stands for a picture in a question and in a context."""


def defused(text: str) -> str:
    """Return a text in which what a model reads as a command has blanks, but for the markers of pictures that are
    shown.
    """
    return MARKER.join(map(escape_markers, text.split(MARKER)))


Defused: TypeAlias = Annotated[str, AfterValidator(defused)]


class HiddenNeedle(BaseModel):
    """A needle: a sentence or a picture; exactly one of the two is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """The id, unique within a question, such as `needle-0`."""
    text: Defused = ""
    """A sentence without a newline and without a marker."""
    image: str = ""
    """The name, in the source, of the picture that is the needle or contains it; empty if the needle is a sentence."""


class HaystackQuestion(Row):
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

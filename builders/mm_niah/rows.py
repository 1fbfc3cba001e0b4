"""The row that every reader of MM-NIAH makes for the builder."""

from pydantic import BaseModel, ConfigDict, field_validator

from mmlongbench.task import Row, escape_markers

MARKER = "<image>"


def defused(text: str) -> str:
    """Return a text in which what a model reads as a command has blanks, but for the markers of pictures that are
    shown.
    """
    return MARKER.join(map(escape_markers, text.split(MARKER)))


class HiddenNeedle(BaseModel):
    """A needle: a sentence or a picture; exactly one of the two is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """The id, unique within a question, such as `needle-0`."""
    text: str = ""
    """A sentence without a newline and without a marker."""
    image: str = ""
    """The name, in the source, of the picture that is the needle or contains it; empty if the needle is a sentence."""

    @field_validator("text")
    @classmethod
    def _defuse(cls, text: str) -> str:
        return defused(text)


class HaystackQuestion(Row):
    """One question about interleaved pages in which needles are hidden."""

    question: str
    """The question. When counting over pictures, it has one `<image>` marker for each picture in `shown`;
    otherwise it has none."""
    needles: tuple[HiddenNeedle, ...]
    """The needles, in the order of `counts`."""
    answers: tuple[str, ...] = ()
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

    @field_validator("question")
    @classmethod
    def _defuse(cls, question: str) -> str:
        return defused(question)

    @field_validator("answers")
    @classmethod
    def _defuse_answers(cls, answers: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(escape_markers, answers))

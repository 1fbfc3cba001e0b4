"""The row that every reader of MM-NIAH gives to the builder."""

from pydantic import BaseModel, ConfigDict

from mmlongbench import Row


class HiddenNeedle(BaseModel):
    """A sentence, or a picture; exactly one of the two is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """Distinct within a question, such as `needle-0`."""
    text: str = ""
    """A sentence without a newline and without a marker."""
    image: str = ""
    """The picture that is, or that carries, the needle, as the source names it."""


class HaystackQuestion(Row):
    """One question over interleaved pages in which needles are hidden."""

    question: str
    """In counting over pictures it holds one `<image>` marker for each of `shown`, and no marker elsewhere."""
    needles: tuple[HiddenNeedle, ...]
    """In the order in which `counts` has them."""
    answers: tuple[str, ...] = ()
    """Retrieval and reasoning over text: the released one first."""
    counts: tuple[int, ...] = ()
    """Counting: one for each needle; every other picture of a context has 0."""
    choices: tuple[str, ...] = ()
    """Retrieval and reasoning over pictures: the picture options, as the source names them."""
    right: int = -1
    """The index of the right one among `choices`."""
    shown: tuple[str, ...] = ()
    """Counting over pictures: the pictures that are shown with the question."""
    is_ordinal_stale: bool = False
    """Whether its ordinal ("the second image") names another picture than the needle in the source's own document."""
    pages: tuple[str, ...] = ()
    """Its own web pages, by id: taken before all others."""

"""The typed lines of a folder of questions: an accepted question, and a candidate that was left out."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from mmlongbench.answers import AnswerFormat
from mmlongbench.draws import KeyPart, digest

Source: TypeAlias = Literal["Text", "Table", "Chart", "Figure", "Layout"]
"""Where an answer is found, as MMLongBench-Doc and the reader `own_documents` name it."""
Maker: TypeAlias = Literal["layer", "model"]  # what made a question: the layer of a PDF, without a model; or a model
_ID_LENGTH = 16


class Line(BaseModel):
    """The base of all lines and parts of lines: frozen, without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Grounding(Line):
    """Words of a page that a question rests on."""

    page: Annotated[int, Field(ge=1)]
    text: str
    box: tuple[float, float, float, float] | None = None
    """Where the words are: x0, y0, x1, y1 in points from the upper left corner of the page before rotation. None if the
    place is not known."""
    role: str = "answer"
    """What the words are for the question: `answer`, an `operand` that the answer is computed from, or a name of one's
    own such as `row`."""


class Question(Line):
    """A question that passed every check."""

    id: str  # the id; `question_id` makes it from the document and the content
    document: str
    document_sha256: str
    question: str
    answer: str | tuple[str, ...]
    """A text, or the elements of a list; `Not answerable` if the document does not answer the question."""
    answer_format: AnswerFormat
    pages: tuple[int, ...]
    """The pages that are needed for the answer, counted from 1, ascending; empty if there is no answer."""
    sources: tuple[Source, ...] = ()  # where the answer is found
    kind: str  # what is asked for, such as `table-value` or `cross-page`
    synthetic: Maker  # what made the question. Such questions are never averaged with questions of people.
    accepted: tuple[str, ...] = ()  # other answers that are right
    doc_type: str = ""
    grounding: tuple[Grounding, ...] = ()
    derived: str = ""
    """How the answer follows from the operands in `grounding`, such as `sum`; empty if the answer stands on a page."""
    twin_of: str = ""
    """The id of the answerable question that an unanswerable one is a minimal edit of; empty for other questions."""
    edit: str = ""  # what was changed for an unanswerable question, such as `2019 → 2014`; empty for other questions
    alternatives: tuple[int, ...] = ()  # pages that answer the question too, counted from 1
    notes: dict[str, str] = {}
    """Further facts about the question by name, such as the model that wrote it, or a digest of a call."""


class Reject(Line):
    """A candidate that is no question of the table, and the first check that it failed."""

    id: str
    document: str
    stage: str  # the stage that left it out, such as `twin` or `rendered`
    reason: str  # a short slug, by which rejects are counted
    found: str
    expected: str
    kind: str = ""
    question: str = ""  # the question, if there was one already
    pages: tuple[int, ...] = ()
    notes: dict[str, str] = {}


def question_id(document_sha256: str, *content: KeyPart) -> str:
    """Return the id of a question: a hash of its document and of what makes it this question.

    No other document and no place in a list goes into it, so a further document changes no id.

    >>> question_id("ab", "table-value", 3) == question_id("ab", "table-value", 3)
    True
    >>> len(question_id("ab", "table-value", 4))
    16
    """
    return digest("question", document_sha256, *content).hex()[:_ID_LENGTH]

"""The forms of replies, checked strictly. A reply without the form is asked for again, and never counts as a yes."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PageContent(_Form):
    """What a model sees on a page."""

    reason: str
    content: list[Literal["text", "table", "figure", "layout", "contents", "none"]]
    complexity: int = Field(ge=1, le=10)


class Drafted(_Form):
    """A question as its author writes it."""

    reason: str
    question: str
    answers: list[str]
    answer_format: str
    evidence_pages: list[int]
    sources: list[Literal["Text", "Table", "Chart", "Figure", "Layout"]]
    quote: str
    is_computed: bool


class Edited(_Form):
    """A question of which one qualifier was changed, so that the document no longer answers it."""

    reason: str
    question: str
    was: str
    now: str


class Checklist(_Form):
    """The four items of M-LongDoc's checklist, each with its reason."""

    type_reason: str
    has_the_type: bool
    need_reason: str
    needs_the_content: bool
    clear_reason: str
    is_clear_and_answerable: bool
    difficulty_reason: str
    is_of_reasonable_difficulty: bool


class Answered(_Form):
    """An answer from pages."""

    reason: str
    is_answerable: bool
    answers: list[str]
    pages: list[int]


class Guessed(_Form):
    """An answer without the document."""

    reason: str
    answers: list[str]


class Further(_Form):
    """What else on some pages belongs to an answer that counts or lists things."""

    reason: str
    items: list[str]
    pages: list[int]


class Graded(_Form):
    """A grade of a question and its answer."""

    reason: str
    grade: int = Field(ge=1, le=5)

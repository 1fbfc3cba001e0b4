"""The row that every reader of summaries makes for the builder."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from mmlongbench.task import Row

Kind = Literal["report", "case"]


class Section(BaseModel):
    """A part of a summary."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    section_title: str
    """The title of the section."""
    paragraphs: tuple[str, ...]
    """The paragraphs of the section."""


class Summarised(Row):
    """Documents with their summary."""

    source_id: str = ""
    """The id of a report in the source, if the released id is another one."""
    kind: Kind
    """Whether the documents are one report, or those of a case."""
    docs: tuple[str, ...]
    """The ids of the documents, in the source's order."""
    sections: tuple[Section, ...]
    """The sections of a report's summary; for a case, its summaries, each titled by its length: short, long or tiny."""
    url: str = ""
    """The address of a report, as its source gives it."""

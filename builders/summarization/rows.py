"""The row that every reader of summaries gives to the builder."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from mmlongbench import Row

Kind = Literal["report", "case"]


class Section(BaseModel):
    """A part of a summary."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    section_title: str
    paragraphs: tuple[str, ...]


class Summarised(Row):
    """Documents with their summary."""

    source_id: str = ""
    """What the source calls a report, where the released id is another one."""
    kind: Kind
    """A report, or the documents of a case."""
    docs: tuple[str, ...]
    """In the source's order."""
    sections: tuple[Section, ...]
    """Of a report, as they are; of a case, the summaries it has, each under its length: short, long or tiny."""
    url: str = ""

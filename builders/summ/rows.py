"""The row that every reader of summaries gives to the builder."""

from pydantic import BaseModel, ConfigDict

from mmlongbench import Row


class Section(BaseModel):
    """A part of a summary."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    section_title: str
    paragraphs: tuple[str, ...]


class Summarised(Row):
    """Documents with their summary."""

    docs: tuple[str, ...]
    """In the source's order."""
    sections: tuple[Section, ...]
    """One without a title where the summary is one text."""
    url: str = ""

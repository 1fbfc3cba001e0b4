"""What the audit finds, as typed lines: one line for each probe of each dataset."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Verdict: TypeAlias = Literal["leak", "clean", "undecided"]
"""`leak`: what should not tell tells. `clean`: it tells less than 5 points, with 95 % confidence. `undecided`: the
file has too few questions to say either."""


class Finding(BaseModel):
    """What one probe found in one dataset."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    dataset: str
    """The name of the dataset."""
    file: str
    """The public file whose contexts tell most, below `mmlb_data/`."""
    length: int = 0
    """The length of this file, in tokens; 0 if what was found is the same at every length."""
    kind: str
    """What was tried, such as `answer from the question`."""
    verdict: Verdict
    """Whether it is a leak."""
    questions: int
    """The number of questions that were tried."""
    clusters: int
    """The number of documents, entities or needle pictures that these questions are about."""
    measure: str
    """What the numbers below are shares of, such as `answers guessed right`."""
    found: float
    """The share that was reached, from 0 to 1."""
    chance: float
    """The share that is reached if nothing tells."""
    low: float
    """The lower end of the 95 % interval of found − chance."""
    high: float
    """The upper end of this interval."""
    p: float | None
    """The probability of such a share if nothing tells; None if the share was counted and not estimated."""
    smallest: float | None
    """The smallest excess that this file would show with a probability of 0.8; None if it was counted."""
    needed: int | None
    """About how many questions would show an excess of 5 points; None if it was counted."""
    evidence: str
    """What tells, in words, such as the features with the largest weights."""
    examples: tuple[str, ...]
    """The ids of the questions that carry the finding, the strongest first; at most 10."""
    carriers: tuple[str, ...] = Field(default=(), exclude=True, repr=False)
    """If the share was counted: the ids of all questions without which nothing would be counted. It is not written."""

    @property
    def excess(self) -> float:
        """Return the share that was reached above chance."""
        return self.found - self.chance


ShortcutFinding = Finding
"""The name of a finding in `import mmlongbench as mm`, where a finding of `check` is `Finding`."""

"""The settings of a run: who writes, who checks, how much is asked. They are part of every stage's fingerprint."""

from pydantic import BaseModel, ConfigDict, Field

from mmlongbench.errors import MMLongBenchError
from mmlongbench.questions.writing.families import family


class WritingError(MMLongBenchError):
    """Questions cannot be written or checked as asked."""


class WritingSettings(BaseModel):
    """What decides the questions, besides the documents and the answers of the models."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    authors: tuple[str, ...] = Field(min_length=1)
    """The models that write; each slot draws one of them."""
    checkers: tuple[str, ...] = ()
    """Models that only check."""
    seed: int = 0
    per_document: int = Field(default=0, ge=0, le=500)
    """How many questions are wanted of a document; 0: the minimum of MMLongBench-Doc for its type."""
    over: float = Field(default=2.0, ge=1, le=10)
    """Slots for one wanted question; half of the drafts are expected to fail a check."""
    dpi: int = Field(default=144, ge=36, le=300)
    """The resolution of the pages that models see."""
    published_after: str = ""
    """Documents published on this date (2024-05-31) or before are left out; empty: all are used."""
    strict_anchor: bool = False
    """Whether a question that another document answers with another answer is rejected instead of held."""
    attempts: int = Field(default=3, ge=1, le=10)
    """How often a model is asked for one reply, until it has the form."""

    @property
    def models(self) -> tuple[str, ...]:
        """Return all models, each once."""
        return tuple(dict.fromkeys((*self.authors, *self.checkers)))

    def check(self) -> None:
        """Refuse models that would have to check their own questions.

        Raises:
            WritingError: an author has no model of another family beside it.

        """
        for author in self.authors:
            if all(family(model) == family(author) for model in self.models):
                raise WritingError(
                    f"--model {author}: no model of another family checks its questions; add one with --model or "
                    "--check-model (a model that checks itself lets its own mistakes pass)"
                )

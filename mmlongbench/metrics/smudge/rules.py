"""The differences between the profiles of SMuDGE: `paper` follows arXiv:2503.19120, `ours` differs in every field."""

from collections.abc import Callable
from dataclasses import dataclass

from mmlongbench.metrics.smudge import matching, own_matching
from mmlongbench.metrics.smudge.matching import Kind
from mmlongbench.metrics.smudge.places import LEAST_SIMILARITY
from mmlongbench.task.metric import Profile


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a profile."""

    follows: str
    """The paper that the rules come from; empty for this project's own rules."""
    kind_of: Callable[[str], Kind]
    match_score: Callable[[str, str], float]
    """Returns the match score of a gold answer and a prediction."""
    is_evidence_needed: bool
    """Whether the gold is searched for only on the evidence pages; if not, in the whole document."""
    is_refusal_placed: bool
    """Whether a prediction that says that there is no answer is searched for like any other."""
    least_gold: float
    """A gold is located only at a text with a similarity to it of more than this."""


RULES: dict[Profile, Rules] = {
    "paper": Rules(
        "arXiv:2503.19120",
        matching.kind_of,
        matching.match_score,
        is_evidence_needed=False,
        is_refusal_placed=True,
        least_gold=0.0,  # section 3.1: the most similar sequence; only predictions have a threshold
    ),
    "ours": Rules(
        "",
        own_matching.kind_of,
        own_matching.match_score,
        is_evidence_needed=True,
        is_refusal_placed=False,
        least_gold=LEAST_SIMILARITY,
    ),
}

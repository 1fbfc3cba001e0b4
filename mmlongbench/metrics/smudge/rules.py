"""What the two profiles of SMuDGE differ in: `paper` follows arXiv:2503.19120, `ours` deviates where it is said."""

from collections.abc import Callable
from dataclasses import dataclass

from mmlongbench.metrics.smudge import matching, own_matching
from mmlongbench.metrics.smudge.matching import Kind
from mmlongbench.task.metric import Profile


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a profile."""

    follows: str
    """The paper that they are taken from."""
    kind_of: Callable[[str], Kind]
    match_score: Callable[[str, str], float]
    """Of a gold answer and a prediction."""
    is_evidence_needed: bool
    """Whether the gold is looked for on the evidence pages only, else in the whole document."""
    is_refusal_placed: bool
    """Whether a prediction that says that there is no answer is looked for like any other."""
    is_graph_needed: bool
    """Whether strings are found by paths over the graph of words only, else in reading order unless asked otherwise."""


RULES: dict[Profile, Rules] = {
    "paper": Rules(
        "arXiv:2503.19120",
        matching.kind_of,
        matching.match_score,
        is_evidence_needed=False,
        is_refusal_placed=True,
        is_graph_needed=True,
    ),
    "ours": Rules(
        "",
        own_matching.kind_of,
        own_matching.match_score,
        is_evidence_needed=True,
        is_refusal_placed=False,
        is_graph_needed=False,
    ),
}

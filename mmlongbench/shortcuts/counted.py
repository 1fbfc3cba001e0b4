"""Findings whose share is counted, such as the share of questions that are asked twice."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, lgamma, log

from mmlongbench.shortcuts.findings import Finding, Verdict
from mmlongbench.shortcuts.reading import AskedQuestion
from mmlongbench.shortcuts.verdicts import TOLERATED
from mmlongbench.statistics import wilson

_MAX_EXAMPLES = 10


@dataclass(slots=True)
class Count:
    """What is counted about the questions of one dataset: which were tried, and which of them were hit."""

    kind: str
    measure: str
    file: str = ""
    tried: int = 0
    clusters: set[str] = field(default_factory=set)
    hits: dict[str, str] = field(default_factory=dict)
    """What was found, in words, by the id of the question."""
    carriers: set[str] = field(default_factory=set)
    """The ids of the hit questions without which nothing would be found."""

    def attempt(self, asked: AskedQuestion) -> None:
        """Count a question as tried."""
        self.file = asked.file
        self.tried += 1
        self.clusters.add(asked.cluster)

    def hit(self, asked: AskedQuestion, what: str, *, is_first: bool = False) -> None:
        """Keep what was found about a question; the first thing found is kept.

        `is_first` says that the question is the first of several that are the same: only the others must go.
        """
        self.hits.setdefault(asked.id, what)
        if not is_first:
            self.carriers.add(asked.id)

    def finding(self, dataset: str, chance: float = 0.0, at_chance: int = 0, notes: Iterable[str] = ()) -> Finding:
        """Return the finding.

        Args:
            dataset: the name of the dataset.
            chance: the share that is expected if nothing tells.
            at_chance: the largest number of hits that chance still explains; it is no leak.
            notes: more sentences for the evidence.

        """
        found = len(self.hits) / self.tried if self.tried else 0.0
        low, high = wilson(found, self.tried)
        first = [f"{id}: {what}" for id, what in list(self.hits.items())[:3]]
        more = [f"and {len(self.hits) - 3} more"] if len(self.hits) > 3 else []
        return Finding(
            dataset=dataset,
            file=self.file,
            kind=self.kind,
            verdict=_verdict(len(self.hits), low - chance, high - chance, at_chance),
            questions=self.tried,
            clusters=len(self.clusters),
            measure=self.measure,
            found=found,
            chance=chance,
            low=low - chance,
            high=high - chance,
            p=None,
            smallest=None,
            needed=None,
            evidence="; ".join([*(first or ["nothing was found"]), *more, *notes]),
            examples=tuple(list(self.hits)[:_MAX_EXAMPLES]),
            carriers=tuple(id for id in self.hits if id in self.carriers),
        )


def findings_of(counts: Iterable[Count], dataset: str, notes: Mapping[str, str] | None = None) -> list[Finding]:
    """Return the findings of all counts that tried something; `notes` are more words for the evidence, by kind."""
    said = notes or {}
    return [
        count.finding(dataset, notes=[said[count.kind]] if count.kind in said else ())
        for count in counts
        if count.tried
    ]


def most_hits(n: int, chance: float, p: float) -> int:
    """Return the smallest number of hits such that n attempts have more of them with a probability of at most p.

    >>> most_hits(20, 0.5, 0.05), most_hits(3, 0.5, 0.05), most_hits(5, 0.0, 0.05)
    (14, 3, 0)
    """
    if not 0 < chance < 1:
        return n if chance else 0
    total = 0.0
    for hits in range(n):
        ways = lgamma(n + 1) - lgamma(hits + 1) - lgamma(n - hits + 1)
        total += exp(ways + hits * log(chance) + (n - hits) * log(1 - chance))
        if 1 - total <= p:
            return hits
    return n


def _verdict(hits: int, low: float, high: float, at_chance: int) -> Verdict:
    if hits > at_chance and low > 0:
        return "leak"
    return "clean" if high < TOLERATED else "undecided"

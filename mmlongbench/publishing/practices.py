"""Practices for benchmarks after BetterBench (Reuel et al., 2024), in our words: which of them a publication meets.

What can be told from the publication is told automatically. The rest is a property of the package, which the table
states, or is not for this package to meet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mmlongbench.publishing.facts import Facts

State: TypeAlias = Literal["met", "not met", "not ours"]
"""`not ours`: only the publisher, or those who run models, can meet it."""
Stage: TypeAlias = Literal["design", "implementation", "documentation", "maintenance"]


@dataclass(frozen=True, slots=True)
class Practice:
    """One practice."""

    stage: Stage
    """The stage in the life of a benchmark that it belongs to."""
    name: str
    """What is asked for."""
    how: str
    """By what it is met, or what would meet it."""
    state: State = "met"
    """What holds for every publication; only used without `is_met`."""
    is_met: Callable[[Facts], bool] | None = None
    """Whether a publication meets it; None if this is the same for every publication."""

    @property
    def is_automatic(self) -> bool:
        """Whether the answer is told from the publication."""
        return self.is_met is not None

    def state_of(self, facts: Facts) -> State:
        """Return whether a publication meets it."""
        return self.state if self.is_met is None else "met" if self.is_met(facts) else "not met"


def _has_fills(facts: Facts) -> bool:
    return all(table.fills for table in facts.tables.examples)


PRACTICES = (
    Practice(
        "design", "The tested ability is defined", "`description` in the file of `--about`",
        is_met=lambda facts: bool(facts.about.description),
    ),
    Practice(
        "design", "Uses, and uses that are out of scope, are described", "`use_cases` in the file of `--about`",
        is_met=lambda facts: bool(facts.about.use_cases),
    ),
    Practice("design", "Metrics are defined and their choice explained", "a metric a dataset; the page on scoring"),
    Practice(
        "design", "Floor and ceiling of scores are given", "`baselines` in the file of `--about`",
        is_met=lambda facts: bool(facts.about.baselines),
    ),
    Practice(
        "design", "Shortcuts to answers were looked for", "`mmlongbench shortcuts --json`, given as `--shortcuts`",
        is_met=lambda facts: facts.shortcuts is not None,
    ),
    Practice(
        "design", "No shortcut to answers was found", "the same audit",
        is_met=lambda facts: facts.shortcuts is not None and not facts.leaks,
    ),
    Practice("design", "Effects of the prompt's form can be measured", "forms of contexts, depths and permutations"),
    Practice("design", "Experts of the domain took part", "the publisher says so", "not ours"),
    Practice("design", "It is compared with earlier benchmarks", "the paper", "not ours"),
    Practice(
        "design", "Lengths are controlled and shown", "tokens and reserve of every example",
        is_met=_has_fills,
    ),
    Practice("implementation", "Code that scores is available", "`mmlongbench score`"),
    Practice("implementation", "Data, or the means to make them, are open", "the manifest as resolved and the lock"),
    Practice("implementation", "Models behind an API and local models can be run", "`mmlongbench run`, exports"),
    Practice("implementation", "Scores come with their uncertainty", "intervals in `mmlongbench report`"),
    Practice("implementation", "Results can be made again", "predictions carry the lock and a digest of each example"),
    Practice("implementation", "A release can be built again, byte for byte", "the lock has every SHA-256 and version"),
    Practice(
        "implementation", "A canary lets training data be searched", "the canary in this card",
        is_met=lambda facts: bool(facts.canary),
    ),
    Practice(
        "implementation", "Every record has the canary", "`canary: true` in the manifest",
        is_met=lambda facts: bool(facts.lock.canary) and all(table.canary for table in facts.tables.examples),
    ),
    Practice("implementation", "Answers are kept from training", "answers are public here", "not met"),
    Practice("implementation", "Code is tested at every change", "the package's own tests"),
    Practice(
        "implementation", "Figures were counted a second time", "`mmlongbench audit --json`, given as `--audit`",
        is_met=lambda facts: facts.audit is not None and not any(line.problems for line in facts.audit),
    ),
    Practice("documentation", "There is a start in a few commands", "the README of the package"),
    Practice("documentation", "Files and columns are described", "this card, and croissant.json"),
    Practice(
        "documentation", "Limitations are named", "counts, audits and `limitations` in the file of `--about`",
        is_met=lambda facts: bool(facts.about.limitations) or facts.audit is not None,
    ),
    Practice(
        "documentation", "Biases and sensitive contents are named", "`biases` and `sensitive` in the file of `--about`",
        is_met=lambda facts: bool(facts.about.biases and facts.about.sensitive),
    ),
    Practice("documentation", "How data were collected and prepared is said", "sources, stages, rejects in this card"),
    Practice(
        "documentation", "Every part has a licence", "`licence` in the manifest",
        is_met=lambda facts: not facts.rights.without_licence,
    ),
    Practice(
        "documentation", "Every image and text has an origin", "`downloads` in the manifest, or a table of licences",
        is_met=lambda facts: facts.rights.with_origin == facts.rights.images + facts.rights.texts,
    ),
    Practice("documentation", "Metadata are readable by machines", "croissant.json with RAI and provenance"),
    Practice(
        "documentation", "There is a paper", "`paper` in the file of `--about`",
        is_met=lambda facts: bool(facts.about.paper),
    ),
    Practice("documentation", "The paper was reviewed", "the publisher says so", "not ours"),
    Practice(
        "documentation", "It can be cited", "`citation` in the file of `--about`; CITATION.cff",
        is_met=lambda facts: bool(facts.about.citation and facts.about.authors),
    ),
    Practice(
        "maintenance", "There is somebody to ask", "`contact` in the file of `--about`",
        is_met=lambda facts: bool(facts.about.contact),
    ),
    Practice(
        "maintenance", "It has a version and a date", "`version` and `date` in the file of `--about`",
        is_met=lambda facts: bool(facts.about.version and facts.about.date),
    ),
    Practice("maintenance", "Assets can be taken out", "`mmlongbench takedown`, tombstones beside the lock"),
    Practice("maintenance", "It is looked after once a year", "the publisher", "not ours"),
)  # fmt: skip
"""The practices, in the order of the table."""

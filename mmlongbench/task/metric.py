"""What a metric is: a function of one example and what a model said to it. Knows no task, no file, no metric by name.

Metrics are found through the entry points `mmlongbench.metrics`, the built-in ones exactly as a stranger's: an entry is
a subclass of `Metric`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from mmlongbench.errors import ScoringError
from mmlongbench.task.evidence import Evidence

Profile: TypeAlias = Literal["official", "paper", "ours"]
"""Whose rules a score follows: what the public code does today, what the paper prints, or what this project does."""
PROFILES: tuple[Profile, ...] = ("official", "paper", "ours")
"""In the order of preference: a metric follows the first that it offers, unless `Settings.profile` asks for another."""

LENIENT = "lenient"
"""A choice of metrics whose scores are an upper bound. They enter an average only where a user asks for it."""

Details: TypeAlias = Mapping[str, Any]
"""What a metric says beside the score: numbers (reports show their means), flags, short texts; all of JSON's types.

A detail called `<parameter>_<value>`, such as `alpha_0.5`, is the score under another value of a parameter; reports
compare these.
"""


@dataclass(frozen=True, slots=True)
class ScoringInput:
    """One example, as its builder tells it, and what a model said to it."""

    file: str
    """The public file of the example, below `mmlb_data/`."""
    dataset: str
    """The name of its dataset."""
    id: str
    """The released id of its question, as text: the same at every length and placement."""
    gold: Any
    """The answer, as the builder gives it."""
    prediction: str
    """The model's words, without its reasoning unless the user keeps that; empty where it gave no answer."""
    lead: str = ""
    """What the public code put before the words, of its own output files, such as `Answer:`."""
    place: int = 0
    """Its number among the examples of the file that a model was asked, from 0, in the order of the file."""
    kind: str = ""
    """What kind of example it is, as its task declares (`TaskSpec.kind`)."""
    question: str = ""
    """The question alone, without what the prompt puts around it; empty where the task has none."""
    answer_format: object = None
    """The format of the answer, such as `Integer` or `List`, as the builder gives it; None where it has none.

    In files that others made it may be any value of JSON.
    """
    evidence: Evidence | None = None
    """Where the answer stands; None where the builder does not tell."""
    source_id: str = ""
    """The id of the question in its source, where the released id is another; empty where nobody knows it."""
    cluster: str = ""
    """What the question is about, where several questions are about one thing (`Builder.cluster`)."""
    facets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The names of the groups that the example is in, by facet (`Builder.facets`)."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a metric makes of one example."""

    score: float | None
    """From 0 to 1; None: it could not be scored, which is counted apart and never as 0."""
    details: Details = field(default_factory=dict)
    failure: str = ""
    """Why there is no score, in one line."""


@dataclass(frozen=True, slots=True)
class Judge:
    """An endpoint that speaks OpenAI's protocol, and how it may be used."""

    url: str
    """Such as `http://127.0.0.1:8000/v1`."""
    models: tuple[str, ...]
    """One judge, or the members of a committee; none: the model that the public code asks, where a metric knows it."""
    cache: Path | None = None
    """An SQLite file with every answer there was; a call that stands there is not made again."""
    concurrency: int = 8
    """Calls under way at once."""
    timeout: float = 60.0
    """Seconds that one call may take."""
    attempts: int = 4
    """How often a call that fails is made in all."""
    samples: int | None = None
    """How often each judge of a committee is asked; None: as the profile has it."""
    prices: tuple[float, float] | None = None
    """Of a million tokens of input, and of output, to report the cost."""
    is_dry: bool = False
    """Count the calls that would be made, and make none."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of all metrics; each metric reads those that it needs."""

    judge: Judge | None = None
    judge_prompts: tuple[Path, ...] = ()
    """Files with the public code's own prompts, or its checkout; judges asked with them have the profile `official`."""
    documents: Path | None = None
    """The folder of PDFs that the questions are about, `<document>.pdf` (SMuDGE, texts for a committee)."""
    words: Path | None = None
    """A list of words and boxes in place of the PDFs' own: lines of JSON (SMuDGE)."""
    alphas: tuple[float, ...] = (0.25,)
    """Weights of the match score; the first is the score's (SMuDGE)."""
    ignores_reading_order: bool = False
    """Do without the PDF's reading order, as the profile `paper` always does (SMuDGE)."""
    images: Path | None = None
    """The release's folder of images (a committee sees the gold pages)."""
    data: Path | None = None
    """The release's folder of public files (claims of gold summaries stand beside them)."""
    profile: Profile | None = None
    """The profile that every metric must follow; None: each metric follows its own default."""


def chosen_profile(metric: str, offered: Mapping[Profile, str], settings: Settings) -> tuple[Profile, str]:
    """Return the profile that a metric follows under these settings, and the code or paper that it is taken from.

    Args:
        metric: the metric's name, for the error.
        offered: the profiles that the metric offers, each with its source, such as `arXiv:2503.19120`.
        settings: `settings.profile` is the one that the user asks for, if any.

    Raises:
        ScoringError: the metric does not offer the profile that the user asks for.

    >>> chosen_profile("smudge", {"ours": "", "paper": "arXiv:2503.19120"}, Settings())
    ('paper', 'arXiv:2503.19120')

    """
    default: Profile = next(profile for profile in PROFILES if profile in offered)
    asked: Profile = default if settings.profile is None else settings.profile
    if asked not in offered:
        raise not_offered(metric, asked, offered)
    return asked, offered[asked]


def not_offered(metric: str, asked: Profile, offered: Collection[Profile]) -> ScoringError:
    """Return the error that a metric does not offer the profile that the user asks for."""
    names = ", ".join(profile for profile in PROFILES if profile in offered)
    return ScoringError(f"--profile {asked}: the metric {metric!r} does not offer it; it offers {names}")


class Metric(ABC):
    """Scores one example at a time. Only `name` and `score` must be written.

    Raises:
        ScoringError: the settings ask for a profile that the metric does not offer.

    """

    name: ClassVar[str]
    """As the entry point has it."""
    profiles: ClassVar[Mapping[Profile, str]] = {"ours": ""}
    """The profiles that it offers, each with the code or paper that its rules are taken from.

    The profile says whose rules decide. A metric that uses the rules of a public code for something which that code
    does not do, such as `mmlongbench-doc`, has the profile `ours` and names that code as its source.
    """
    choices: tuple[str, ...] = ()
    """What changes its scores within the profile, each in a few words, such as `rule-extracted`."""
    notes: tuple[str, ...] = ()
    """What a reader of the scores must know of the settings, each in one sentence."""
    concurrency: int = 1
    """How many examples may be scored at once, in threads."""
    settings: Settings
    profile: Profile
    """The profile that it follows, under its settings."""
    follows: str
    """The code or paper that the rules of the profile are taken from."""

    def __init__(self, settings: Settings) -> None:
        """Keep the settings, and set `profile` and `follows` by them."""
        self.settings = settings
        self.profile, self.follows = chosen_profile(self.name, self.offered(), settings)

    @abstractmethod
    def score(self, asked: ScoringInput) -> Score:
        """Return the score of one example; never raises over what a model said."""

    def offered(self) -> Mapping[Profile, str]:
        """Return the profiles that can be chosen under these settings; all, unless one needs what is not given."""
        return self.profiles

    def answer_fault(self, asked: ScoringInput) -> str:
        """Return why the answer of an example cannot be scored, whatever a model says; empty if nothing is known.

        A build asks this of every answer, and ends where one has a fault. The prediction is empty. The settings are the
        defaults: there is no judge, and no folder of documents.
        """
        return ""

    def out_of_scope(self, asked: ScoringInput) -> str:
        """Return why an example is none that the metric could score, whatever a model said; empty if it is one.

        Such an example is left out, and counted by this reason.
        """
        return ""

    def absent(self, asked: ScoringInput) -> Details:
        """Return what `MetricWithTotals.totals` must know of an example that has no prediction."""
        return {}

    def usage(self) -> Mapping[str, float]:
        """Return the calls, tokens and failures so far, by name; empty of a metric that calls nobody."""
        return {}

    def stop(self) -> None:  # noqa: B027  (most metrics have nothing to stop)
        """Let threads inside `score` give up what they wait for; called before `close` where a run is interrupted."""

    def close(self) -> None:  # noqa: B027  (nor to close)
        """Close what is open."""


class MetricWithTotals(Metric):
    """A metric with figures of a whole file that are no mean of its examples, such as F1."""

    @classmethod
    @abstractmethod
    def totals(cls, scored: Sequence[Score]) -> Mapping[str, float]:
        """Return the figures of the examples of a file, by name. Scores that were read from a file give the same."""


class RuleMetric(Metric):
    """A metric that scores by rules alone, so that it has a score for every text, as long as it takes the answer."""

    def answer_fault(self, asked: ScoringInput) -> str:
        """Return why the answer cannot be scored, as a prediction of its own words shows."""
        gold = asked.gold
        said = str(gold[0] if isinstance(gold, list) and gold else gold)
        found = self.score(replace(asked, prediction=said))
        return found.failure or "it has no score" if found.score is None else ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the rules of a metric's scores come from."""

    profile: Profile = "ours"
    follows: str = ""
    """The code or paper, with its version."""
    choices: tuple[str, ...] = ()
    """What changes scores within the profile."""


def provenance_of(metric: Metric, settings: Settings) -> Provenance:
    """Return the provenance of a metric's scores.

    Raises:
        ScoringError: the settings ask for another profile.

    """
    if settings.profile not in (None, metric.profile):
        raise not_offered(metric.name, settings.profile, [metric.profile])
    return Provenance(metric.profile, metric.follows, tuple(metric.choices))

"""A metric: a function of one example and a model's output for it. No task, file or metric is known here by name.

Metrics are found through the entry points `mmlongbench.metrics`, the built-in ones like all others.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from mmlongbench.errors import ScoringError
from mmlongbench.io.locations import local_path


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the answer of an example is: in which document, and on which of its pages.

    Pages are numbered from 0 within their document; paths are below the release's folder of images.
    """

    document: str | None = None
    """The name of the document, as the release spells it; None if the record names none."""
    pages: tuple[int, ...] = ()
    """The numbers of the pages that hold the answer, ascending; the prompt may show only some of them."""
    shown: tuple[int, ...] = ()
    """The numbers of the pages of this document that the prompt shows, each once, in the order of the prompt."""
    images: Mapping[int, str] = field(default_factory=dict)
    """The image paths of pages, by page number: the pages in `shown`, the pages that hold the answer, and the pages
    directly before and after a page that holds the answer. The release may lack the image of a page that is not in
    `shown`."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """The text of each page in `shown`, by number, if the prompt shows texts."""
    joined: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """If images join pages, all numbers above count images, and this has the first and the last page of the document
    that each image in `shown` shows, both from 0; otherwise it is empty."""
    document_pages: tuple[int, ...] = ()
    """If images join pages, the numbers of the pages that hold the answer in their document; otherwise empty."""


Profile: TypeAlias = Literal["official", "paper", "ours"]
"""Whose rules a score follows. `official` means the rules of the public code today, `paper` the rules that the paper
prints, and `ours` the rules of this project."""
PROFILES: tuple[Profile, ...] = ("official", "paper", "ours")
"""All profiles, in order of preference. A metric follows the first profile that it offers, unless `Settings.profile`
asks for another."""

LENIENT = "lenient"
"""The word in `Metric.choices` of metrics whose scores are an upper bound. Such scores enter an average only if a user
asks for it."""

Details: TypeAlias = Mapping[str, Any]
"""The values that a metric gives beside the score. They are numbers, flags and short texts that JSON can hold; reports
show the means of the numbers.

A detail called `<parameter>_<value>`, such as `alpha_0.5`, is the score under another value of a parameter; reports
compare these."""


@dataclass(frozen=True, slots=True)
class ScoringInput:
    """One example, as its builder describes it, and a model's output for it."""

    file: str
    """The public file of the example, below `mmlb_data/`."""
    dataset: str
    """The name of its dataset."""
    id: str
    """The released id of its question, as text: the same at every length and placement."""
    answer: object
    """The answer, as the builder gives it."""
    prediction: str
    """The output of the model, without reasoning unless the user keeps it; empty if the model gave no answer."""
    lead: str = ""
    """The text that the public code puts before the output in its own files, such as `Answer:`."""
    place: int = 0
    """How many examples of the file come before this one and have a prediction. A prediction that is marked as skipped
    does not count."""
    kind: str = ""
    """The kind of the example, as its task declares it (`TaskSpec.kind`)."""
    question: str = ""
    """The question alone, without the text that the prompt puts around it; empty if the task has none."""
    answer_format: object = None
    """The format of the answer, such as `Integer` or `List`, as the builder gives it; None if it has none.

    In releases of other tools it may be any JSON value.
    """
    evidence: Evidence | None = None
    """Where the answer is; None if the builder does not say."""
    source_id: str = ""
    """The id of the question in its source, if that is not the released id; otherwise empty."""
    cluster: str = ""
    """An id that questions about the same thing share (`Builder.cluster`)."""
    facets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The names of the groups that the example is in, by facet (`Builder.facets`)."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """The whole record of the example."""
    accepted: tuple[object, ...] = ()
    """Other answers that count as right (`Builder.accepted`). Scoring calls the metric once for each answer, with the
    answer as `answer`, until one has the score 1; the best score counts. So a metric need not read this field."""


@dataclass(frozen=True, slots=True)
class Score:
    """The score that a metric gives one example."""

    score: float | None
    """From 0 to 1; None: the example could not be scored, which is counted apart and never as 0."""
    details: Details = field(default_factory=dict)
    """Other values, by name; a report shows the means of numbers."""
    failure: str = ""
    """Why there is no score, in one line."""

    def __post_init__(self) -> None:
        """Refuse a score that a report could not show as a share.

        Raises:
            ValueError: the score is not from 0 to 1.

        """
        if self.score is not None and not 0 <= self.score <= 1:
            raise ValueError(f"expected a score from 0 to 1, or None, found {self.score!r:.40}")


@dataclass(frozen=True, slots=True)
class Judge:
    """An endpoint that speaks OpenAI's protocol, and how it may be used."""

    url: str
    """An endpoint that speaks OpenAI's protocol: http://…/v1."""
    models: tuple[str, ...]
    """A judge; several are a committee. Without one, the judge of the public code, if the metric knows it."""
    cache: Path | None = None
    """An SQLite file that keeps every answer; no call is made twice."""
    concurrency: int = 8
    """The number of calls at the same time."""
    timeout: float = 60.0
    """The seconds that one call may take."""
    attempts: int = 4
    """The maximum number of attempts for one call."""
    samples: int | None = None
    """How often each judge of a committee is asked; by default as the profile says: 5 for `paper`, else 1."""
    prices: tuple[float, float] | None = None
    """Prices of a million tokens of input and of output, to report the cost."""
    is_dry: bool = False
    """Count the calls to judges, without making any."""

    def __post_init__(self) -> None:
        """Accept one model instead of a tuple, and a text instead of a path.

        Raises:
            ScoringError: an entry of `models` is not a name, or `cache` is not a path.

        """
        models = (self.models,) if isinstance(self.models, str) else tuple(self.models)
        if unnamed := [model for model in models if not isinstance(model, str) or not model]:
            raise ScoringError(f"models of a judge: expected names, found {unnamed[0]!r}")
        object.__setattr__(self, "models", models)
        if self.cache is not None:
            object.__setattr__(self, "cache", local_path(self.cache, "cache", ScoringError))


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of all metrics; each metric reads those that it needs."""

    judge: Judge | None = None
    """The endpoint of the judges; None: no judge is called."""
    judge_prompts: tuple[Path, ...] = ()
    """The public code's checkout, or a file of prompts in it (scripts/eval_gpt4_summ.py, utils_prompt.py), which is
    read but not run. Judges are asked with these prompts; only then are scores of judge-fluency-f1 and judge-answers
    official."""
    documents: Path | None = None
    """The folder of the PDFs that questions are about, each named `<document>.pdf` (smudge, judge-committee)."""
    words: Path | None = None
    """Words and boxes to use instead of the PDFs' own: lines of JSON (smudge)."""
    alphas: tuple[float, ...] = (0.25,)
    """Weight of the match; the score uses the first one, and reports compare all (smudge)."""
    images: Path | None = None
    """The release's folder of images (for a committee, which sees the pages that hold the answer)."""
    data: Path | None = None
    """The release's folder of public files (for judges of summaries, because the claims are in files beside these)."""
    profile: Profile | None = None
    """The profile that every metric must follow; None: each metric follows its own default."""

    def __post_init__(self) -> None:
        """Accept texts instead of paths, and one path of prompts instead of a tuple.

        Raises:
            ScoringError: one of them is not a path, but a URL or an empty text.

        """
        for name in ("documents", "words", "images", "data"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else local_path(value, name, ScoringError))
        prompts = (self.judge_prompts,) if isinstance(self.judge_prompts, str | Path) else self.judge_prompts
        listed = tuple(local_path(path, "judge_prompts", ScoringError) for path in prompts)
        object.__setattr__(self, "judge_prompts", listed)


def is_answered(gold: object) -> bool:
    """Return whether a known answer says anything; of a list, whether any of its answers does.

    >>> is_answered(0), is_answered(["", "Paris"]), is_answered(" "), is_answered([""]), is_answered(None)
    (True, True, False, False, False)
    """
    if isinstance(gold, list | tuple):
        return any(map(is_answered, gold))
    return bool(gold.strip()) if isinstance(gold, str) else gold is not None


def first_answer(gold: object) -> str:
    """Return an answer as text, or as JSON; of a list of answers, the first.

    >>> first_answer(["Paris", "paris"]), first_answer(3), first_answer({"port": "Paris"})
    ('Paris', '3', '{"port": "Paris"}')
    """
    first = gold[0] if isinstance(gold, list) and gold else gold
    return json.dumps(first, ensure_ascii=False, default=str) if isinstance(first, dict | list) else str(first)


class Metric(ABC):
    """Scores one example at a time. Subclasses define at least `name` and `score`.

    Raises:
        ScoringError: the settings ask for a profile that the metric does not offer.

    """

    name: ClassVar[str]
    """The metric's name, the same as its entry point."""
    profiles: ClassVar[Mapping[Profile, str]] = {"ours": ""}
    """The profiles that the metric offers, each with the code or paper that its rules come from.

    A metric may apply the rules of a public code to something that the code itself does not do. Such a metric, for
    example `mmlongbench-doc`, has the profile `ours` and names the public code as its source."""
    choices: tuple[str, ...] = ()
    """The settings that change the metric's scores within the profile, each in a few words, such as
    `rule-extracted`."""
    notes: tuple[str, ...] = ()
    """What people who read the scores must know about the settings, each note in one sentence."""
    concurrency: int = 1
    """How many examples may be scored at once, in threads."""
    settings: Settings
    """The options of the run."""
    profile: Profile
    """The profile that the metric follows under these settings."""
    follows: str
    """The code or paper that the rules of the profile come from."""

    def __init__(self, settings: Settings) -> None:
        """Keep the settings, and set `profile` and `follows` from them."""
        self.settings = settings
        offered = self.offered()
        names = [profile for profile in PROFILES if profile in offered]
        self.profile = settings.profile or names[0]
        if self.profile not in offered:
            raise _not_offered(self.name, self.profile, names)
        self.follows = offered[self.profile]

    @abstractmethod
    def score(self, asked: ScoringInput) -> Score:
        """Return the score of one example; never raises because of the model's output."""

    def offered(self) -> Mapping[Profile, str]:
        """Return the profiles that can be chosen under these settings. A profile that needs a missing setting is left
        out.
        """
        return self.profiles

    def answer_fault(self, asked: ScoringInput) -> str:
        """Return why the answer of an example cannot be scored, whatever the model's output; empty if no reason is
        known.

        A build calls this for every answer, and ends at the first fault. In such a call the prediction is empty, and
        the settings are the defaults: without a judge, without a folder of documents.
        """
        return ""

    def full_answer(self, asked: ScoringInput) -> str | None:
        """Return the output of a model that knows the answer, which scores 1; None if there is no such output, for
        example because a judge decides.

        By default it is the answer as text, and the first of several answers. `mmlongbench check` scores the returned
        text with every answer of a task. In such a call the prediction is empty.
        """
        return first_answer(asked.answer)

    def out_of_scope(self, asked: ScoringInput) -> str:
        """Return why the metric does not apply to an example, whatever the model's output; empty if it applies.

        Such an example is left out of the scores and counted by this reason.
        """
        return ""

    def compared_answer(self, asked: ScoringInput) -> str:
        """Return the answer of a model in a form in which equal answers are equal texts; it decides which of several
        answers to an example is the most frequent one.

        By default it is the whole output in lower case with single blanks. A metric that normalises answers, or reads
        only a part of the output, returns what it compares.
        """
        return " ".join(asked.prediction.casefold().split())

    def absent(self, asked: ScoringInput) -> Details:
        """Return the details of an example without a prediction, as far as `MetricWithTotals.totals` needs them."""
        return {}

    def usage(self) -> Mapping[str, float]:
        """Return the numbers of calls, tokens and failures so far, by name; empty for a metric that calls no model."""
        return {}

    def stop(self) -> None:  # noqa: B027  (most metrics have nothing to stop)
        """Make threads inside `score` stop waiting; it is called before `close` when a run is interrupted."""

    def close(self) -> None:  # noqa: B027  (nor to close)
        """Close what is open."""


class MetricWithTotals(Metric):
    """A metric with figures of a whole file that are not means over its examples, such as F1."""

    @classmethod
    @abstractmethod
    def totals(cls, scored: Sequence[Score]) -> Mapping[str, float]:
        """Return the figures of a file, by name, from the scores of its examples. Scores that were saved and read again
        must give the same figures.
        """


class RuleMetric(Metric):
    """A metric that scores by rules alone, so it has a score for every output if the metric accepts the answer
    (`answer_fault`).
    """

    def answer_fault(self, asked: ScoringInput) -> str:
        """Return why the answer cannot be scored; empty if it can. To find out, the answer is scored as a
        prediction.
        """
        found = self.score(replace(asked, prediction=first_answer(asked.answer)))
        return found.failure or "it has no score" if found.score is None else ""


ScoreFunction: TypeAlias = Callable[[str, Mapping[str, Any]], "float | bool | Score"]
"""Takes the output of a model and the record of the example, and returns the score from 0 to 1."""


def metric_of_function(function: ScoreFunction, name: str) -> type[Metric]:
    """Return a metric that scores with a function; `functools.partial` gives the function parameters of the task."""
    parameters = function.keywords if isinstance(function, partial) else {}

    class FunctionMetric(RuleMetric):
        __doc__ = (function.func if isinstance(function, partial) else function).__doc__
        choices = tuple(f"{key}={value}" for key, value in sorted(parameters.items()))

        def score(self, asked: ScoringInput) -> Score:
            found = function(asked.prediction, asked.record)
            if not isinstance(found, Score) and not 0 <= float(found) <= 1:
                raise ValueError(f"metric {name!r} returned {found!r:.40}, expected a score from 0 to 1")
            return found if isinstance(found, Score) else Score(float(found))

    FunctionMetric.name = name
    return FunctionMetric


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the rules of a metric's scores come from."""

    profile: Profile = "ours"
    """The profile: whose rules the scores follow."""
    follows: str = ""
    """The code or paper, with its version."""
    choices: tuple[str, ...] = ()
    """The settings that change scores within the profile."""


def provenance_of(metric: Metric, settings: Settings) -> Provenance:
    """Return the provenance of a metric's scores.

    Raises:
        ScoringError: the settings ask for another profile.

    """
    if settings.profile not in (None, metric.profile):
        raise _not_offered(metric.name, settings.profile, [metric.profile])
    return Provenance(metric.profile, metric.follows, tuple(metric.choices))


def _not_offered(metric: str, asked: Profile, offered: Sequence[Profile]) -> ScoringError:
    return ScoringError(f"--profile {asked}: the metric {metric!r} does not offer it; it offers {', '.join(offered)}")

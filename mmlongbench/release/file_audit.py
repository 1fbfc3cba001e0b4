"""The audit of one file of a release: its counts, its problems by kind, and its line of `audit --json`."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

from mmlongbench.corpus.retrieval.pages import AT, recall_at
from mmlongbench.errors import ReleaseError
from mmlongbench.release.example_cost import ExampleCost, Model
from mmlongbench.task.spec import Remark
from tokenization import TokenizationError

Finding: TypeAlias = tuple[str, str]
UNREADABLE = (ReleaseError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, OSError)
WORST = 5
"""How many examples are named for each model and file."""
BINS = 20
"""The number of bins of a histogram, from 0 to 1; one more bin is for values over 1."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class SpreadFigures(_Line):
    """Mean, standard deviation, smallest and largest value; all are 0 if there are no values."""

    mean: float
    """The mean."""
    sd: float
    """The standard deviation of the population."""
    min: int | float
    """The smallest value; a whole number if the values are whole numbers."""
    max: int | float
    """The largest value."""


class CostlyExample(_Line):
    """An example that costs much on a model."""

    id: str
    """Its id."""
    tokens: int
    """The tokens of its prompt."""


class ModelFigures(_Line):
    """What a file costs on one model."""

    tokens: SpreadFigures
    """The tokens of each prompt (its text and its images), without the reserve."""
    over_window: int
    """The number of examples whose prompt and reserve are larger than the window."""
    over_images: int
    """The number of examples with more images than a request may hold."""
    refused: int
    """The number of examples with an image that the model refuses."""
    first_refused: str
    """The first refused example, and why; empty if there is none."""
    not_counted: int
    """The number of examples that could not be read or counted."""
    fit: int
    """The number of examples that fit the model."""
    fits: float
    """The share of the counted and refused examples that fit the model; 1 if there are none."""
    worst: list[CostlyExample]
    """The costliest examples, the costliest first."""


class RemarkFault(_Line):
    """A fault of some of the examples that a remark is about."""

    fault: str
    """The fault in words, to be printed after the number of its examples."""
    count: int
    """How many examples have it."""
    first: str
    """Where it was first found."""


class RemarkFigures(_Line):
    """What a builder noticed about the records of a file, under one subject."""

    subject: str
    """The subject, in the plural."""
    examples: int
    """How many examples the subject applies to."""
    faults: list[RemarkFault]
    """The faults that some of these examples have."""


class ProblemFigures(_Line):
    """A kind of problem, and how often it was found."""

    problem: str
    """The problem in words."""
    count: int
    """How often it was found."""
    first: str
    """Where it was first found."""


class AuditLine(_Line):
    """The counts of one file; `models`, `remarks`, `recall` and `counted_as` are there only if they say something."""

    file: str
    """The path below `mmlb_data/`; for problems elsewhere, the part of the release, such as `mmlb_image`."""
    dataset: str
    """The name of the dataset; empty if it is unknown."""
    length: int
    """The length in tokens."""
    examples: int
    """The number of examples."""
    fill: SpreadFigures
    """(prompt + reserve) / length."""
    text: SpreadFigures
    """Text tokens per example."""
    image: SpreadFigures
    """Image tokens per example."""
    images: SpreadFigures
    """Images per example."""
    fill_histogram: list[int]
    """The number of examples in 20 equal bins of fill from 0 to 1, then the number above 1."""
    models: dict[str, ModelFigures] = {}
    """The cost of the file on each requested model, by the model's name."""
    fit_all: int | None = None
    """The number of examples that fit all of these models; there only with `models`."""
    remarks: list[RemarkFigures] = []
    """What the builder noticed about the records."""
    recall: dict[str, float] = {}
    """If contexts are retrieved: the mean share of a question's answer pages among the first k pages, by k."""
    counted_as: str = ""
    """The model by which the file was counted, in words; not there if it was the benchmark's rule of images."""
    also_counted_as: str = ""
    """The further counters of `tokens.as`, in words."""
    problems: list[ProblemFigures]
    """The problems that were found; empty if there are none."""


@dataclass(slots=True)
class Spread:
    """Mean, standard deviation, smallest and largest value of a stream of numbers."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    def add(self, value: float) -> None:
        """Add one number."""
        self.n += 1
        self.total += value
        self.squares += value * value
        self.least, self.most = min(self.least, value), max(self.most, value)

    @property
    def mean(self) -> float:
        """The mean; 0 if there are no numbers."""
        return self.total / self.n if self.n else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of the population."""
        return math.sqrt(max(0.0, self.squares / self.n - self.mean**2)) if self.n else 0.0

    def figures(self) -> SpreadFigures:
        """Return the numbers for a report."""
        if not self.n:
            return SpreadFigures(mean=0.0, sd=0.0, min=0.0, max=0.0)
        return SpreadFigures(mean=self.mean, sd=self.deviation, min=self.least, max=self.most)


def _bin(share: float) -> int:
    return BINS if share > 1 else min(BINS - 1, max(0, int(share * BINS)))


def _keep(costliest: dict[str, int], id: str, tokens: int) -> None:
    costliest[id] = max(tokens, costliest.get(id, 0))
    if len(costliest) > WORST:
        del costliest[min(costliest, key=lambda id: (costliest[id], id))]


@dataclass(slots=True)
class ModelTally:
    """What a file costs on one model, while it is counted (see `ModelFigures`)."""

    tokens: Spread = field(default_factory=Spread)
    over_window: int = 0
    over_images: int = 0
    refused: int = 0
    fit: int = 0
    first_refused: str = ""
    is_exact: bool = True
    """Whether the model itself counts the same; False if these are estimates."""
    without_template: bool = False
    """Whether the chat template of the release is left out, as that of another model."""
    shares: list[int] = field(default_factory=lambda: [0] * (BINS + 1))
    """A histogram of prompt and reserve of each example, as a share of the window."""
    costliest: dict[str, int] = field(default_factory=dict)
    """The tokens of the costliest example of each id, by id; only the `WORST` ids with the most tokens are kept."""
    over: dict[str, int] = field(default_factory=dict)
    """The same with the reserve, of the examples that are over the window."""
    totals: Spread = field(default_factory=Spread)
    """Tokens with the reserve."""

    def add(self, where: str, cost: ExampleCost, model: Model) -> str:
        """Add one example; return what does not fit the model, or an empty text if all does."""
        most_images, unfit, counter = model.rule.max_images, "", model.counter(cost.counter)
        self.is_exact, self.without_template = counter.is_exact, counter.template != cost.counter.template
        if most_images is not None and len(cost.sizes) > most_images:
            self.over_images += 1
            unfit = f"{len(cost.sizes):,} images, {model.name} takes {most_images:,}"
        try:
            total = sum(cost.tokens(model))
        except TokenizationError as error:
            self.refused += 1
            self.first_refused = self.first_refused or f"{where}: {error}"
            return f"an image that {model.name} refuses"
        self.tokens.add(total)
        self.totals.add(whole := total + cost.reserve)
        _keep(self.costliest, cost.id, total)
        if model.window is not None:
            if whole > model.window:
                self.over_window += 1
                _keep(self.over, cost.id, whole)
                unfit = f"{whole:,} tokens with the reserve, {model.name} takes {model.window:,}"
            self.shares[_bin(whole / model.window)] += 1
        self.fit += not unfit
        return unfit

    @property
    def worst(self) -> list[tuple[str, int]]:
        """Return (id, tokens) of the costliest examples, the costliest first."""
        return sorted(self.costliest.items(), key=lambda item: (-item[1], item[0]))

    @property
    def most_over(self) -> list[tuple[str, int]]:
        """Return (id, tokens with the reserve) of the costliest examples that are over the window."""
        return sorted(self.over.items(), key=lambda item: (-item[1], item[0]))

    def figures(self, examples: int) -> ModelFigures:
        """Return the numbers for a report about a file with `examples` examples."""
        counted = self.tokens.n + self.refused
        return ModelFigures(
            tokens=self.tokens.figures(),
            over_window=self.over_window,
            over_images=self.over_images,
            refused=self.refused,
            first_refused=self.first_refused,
            not_counted=examples - counted,
            fit=self.fit,
            fits=self.fit / counted if counted else 1.0,
            worst=[CostlyExample(id=id, tokens=tokens) for id, tokens in self.worst],
        )


@dataclass(slots=True)
class RemarkTally:
    """What a builder noticed about the records of a file, while they are read (see `RemarkFigures`)."""

    examples: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Facts:
    """Facts about the records of a file that other files of the dataset must agree with; values are kept as digests."""

    lines: int = 0
    """The number of examples of the file, including those that could not be read."""
    is_read: bool = True
    """Whether all examples could be read and counted."""
    placements: dict[str, list[float | None]] = field(default_factory=dict)
    """The placements of each id, in the order of the file."""
    answers: dict[str, bytes] = field(default_factory=dict)
    needles: dict[str, bytes] = field(default_factory=dict)
    balanced: Counter[str] = field(default_factory=Counter)
    """How often each value of the field `TaskSpec.balance` occurs."""
    is_by_line: bool = False
    """Whether there is an example all units of which begin lines, with so many units that this cannot be chance."""
    astray: str = ""
    """The id of the first example whose units do not begin lines, although its prompt has enough lines; empty if there
    is none."""
    shown: set[str] = field(default_factory=set)
    texts: set[bytes] = field(default_factory=set)
    """A digest of each text of a unit that is among the assets of the release (`assets.text_key`)."""


@dataclass(slots=True)
class FileAudit:
    """The counts and problems of one file."""

    file: str
    length: int = 0
    examples: int = 0
    fill: Spread = field(default_factory=Spread)
    text: Spread = field(default_factory=Spread)
    image: Spread = field(default_factory=Spread)
    images: Spread = field(default_factory=Spread)
    fills: list[int] = field(default_factory=lambda: [0] * (BINS + 1))
    models: dict[str, ModelTally] = field(default_factory=dict)
    fit_all: int = 0
    """The examples that fit all of these models."""
    unfit: dict[str, str] = field(default_factory=dict)
    """What does not fit them in the first such example of a question, by the question's id."""
    problems: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    """Where each kind of problem was first found, in words."""
    dataset: str = ""
    tokenizer: str = ""
    counted_as: str = ""
    """The model by which it was counted, in words; empty if it was the benchmark's rule of images."""
    also_counted_as: str = ""
    remarks: dict[str, RemarkTally] = field(default_factory=dict)
    gold_ranks: list[tuple[int, ...]] = field(default_factory=list)
    """The ranks of the pages with the answer, of each example whose context was retrieved (`Builder.gold_ranks`)."""
    facts: Facts | None = None
    """Facts that other files must agree with; None if they are not compared."""

    def add(self, where: str, cost: ExampleCost, models: Sequence[Model]) -> None:
        """Add one example."""
        share = cost.total / self.length
        self.fill.add(share)
        self.fills[_bin(share)] += 1
        self.text.add(cost.count.text)
        self.image.add(cost.count.image)
        self.images.add(len(cost.sizes))
        if cost.total > self.length:
            self.problem("over its length", f"{where}: {cost.count.total} + {cost.reserve} > {self.length}")
        unfit = [said for model in models if (said := self.models[model.name].add(where, cost, model))]
        self.fit_all += not unfit
        for said in unfit[:1]:
            self.unfit.setdefault(cost.id, said)

    def remark(self, remark: Remark, where: str, *, is_ours: bool) -> None:
        """Count a remark. If the file is of a release of this engine (`is_ours`), a fault that such a release promises
        not to have (`Remark.is_promised`) is a problem, too.
        """
        tally = self.remarks.setdefault(remark.subject, RemarkTally())
        tally.examples += 1
        if remark.fault:
            tally.faults[remark.fault] += 1
            tally.first.setdefault(remark.fault, where)
            if remark.is_promised and is_ours:
                self.problem(f"{remark.subject}: {remark.fault}", where)

    def problem(self, kind: str, where: str) -> None:
        """Add a problem."""
        self.problems[kind] += 1
        self.first.setdefault(kind, where)

    @property
    def recall(self) -> dict[str, float]:
        """Recall of the pages with the answer at 1, 5 and 10 pages; empty if no context was retrieved."""
        is_known = any(self.gold_ranks)
        return {str(k): round(recall_at(self.gold_ranks, k), 4) for k in AT} if is_known else {}

    def line(self) -> AuditLine:
        """Return the numbers for a report."""
        few: dict[str, Any] = {
            "models": {name: tally.figures(self.examples) for name, tally in self.models.items()},
            "fit_all": self.fit_all if self.models else None,
            "remarks": [
                RemarkFigures(
                    subject=subject,
                    examples=tally.examples,
                    faults=[RemarkFault(fault=f, count=n, first=tally.first[f]) for f, n in tally.faults.items()],
                )
                for subject, tally in self.remarks.items()
            ],
            "recall": self.recall,
            "counted_as": self.counted_as,
            "also_counted_as": self.also_counted_as,
        }
        return AuditLine(
            file=self.file,
            dataset=self.dataset,
            length=self.length,
            examples=self.examples,
            fill=self.fill.figures(),
            text=self.text.figures(),
            image=self.image.figures(),
            images=self.images.figures(),
            fill_histogram=self.fills,
            problems=[ProblemFigures(problem=p, count=n, first=self.first[p]) for p, n in self.problems.items()],
            **{key: value for key, value in few.items() if value not in ({}, [], "", None)},
        )


def tokens_text(tally: ModelTally) -> str:
    """Return the mean tokens of a file on a model, the share of examples over the window, and how many are refused.

    Returns `n/a` if an example has too many images, `refused` if the model refuses every example, and `not counted` if
    no example could be counted.
    """
    if tally.over_images:
        return "n/a"
    if not tally.tokens.n:
        return "refused" if tally.refused else "not counted"
    counted = tally.tokens.n + tally.refused
    over = f" ({tally.over_window / counted:.0%} over)" if tally.over_window else ""
    return f"{short_tokens(tally.tokens.mean)}{over}{f' ({tally.refused} refused)' if tally.refused else ''}"


def short_tokens(tokens: float) -> str:
    """Return a number of tokens for a narrow column.

    >>> short_tokens(890), short_tokens(7_540), short_tokens(2_357_953)
    ('890', '7.5K', '2,358K')
    """
    if tokens < 1000:
        return f"{tokens:.0f}"
    return f"{tokens / 1000:,.1f}K" if tokens < 100_000 else f"{tokens / 1000:,.0f}K"

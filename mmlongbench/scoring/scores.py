"""The scores file: one line of JSON for each example, model and metric, or for each answer if a model has several
answers (samples) to one example. Scoring writes it, a report reads it.

The file is called `<model>.<metrics>.jsonl`. A line has everything a report needs, so the
release is not needed. Below are the scores of several samples of an example.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mmlongbench.errors import ReleaseError, ScoringError
from mmlongbench.scoring.reasoning import Reasoning
from mmlongbench.task.file_formats import JSON_LINES
from mmlongbench.task.metric import PROFILES, Profile, Provenance

CONTEXT = "context "
"""How the choice begins that lines have if the model was given another context than the released prompt."""
UNKNOWN: Literal["unknown"] = "unknown"
Status: TypeAlias = Literal["scored", "absent", "failed", "skipped", "outside"]
T = TypeVar("T")
_MAX_RUNS = 120
"""The maximum number of lists that `runs` yields, unless an example has more samples."""
MAX_SAMPLE = 999_999
"""The highest number that a sample may have."""
SHOWN_PROFILES: tuple[str, ...] = (*PROFILES, UNKNOWN)
"""The profiles, in the order in which reports show them."""


def profile_order(profile: str) -> tuple[int, str]:
    """Return a key that sorts profiles as reports show them; a profile's name may be followed by choices.

    >>> sorted(["ours", "official, reasoning kept", "official"], key=profile_order)
    ['official', 'official, reasoning kept', 'ours']
    """
    return SHOWN_PROFILES.index(profile.partition(", ")[0]), profile


class ScoreLine(BaseModel):
    """One answer to an example, scored by one metric."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    """The model whose prediction was scored."""
    metric: str
    profile: Profile | Literal["unknown"] = UNKNOWN
    """The profile, which says whose rules the score follows; `unknown` in old files, whose lines have no profile."""
    follows: str = ""
    """The code or paper that the rules come from, with its version."""
    choices: Sequence[str] = ()
    """The choices that change scores within the profile, such as `rule-extracted`."""
    is_own: bool = False
    """Whether the metric is the task's own metric (`TaskSpec.metric`). An average may use another (`averaged_metric`,
    `report --metric`)."""
    averaged_metric: str = ""
    """See `TaskSpec`."""
    file: str
    """The public file, below `mmlb_data/`."""
    dataset: str
    category: str = ""
    counted_with: str = ""
    """See `TaskSpec`."""
    length: int
    """The length of the file, in tokens."""
    id: str
    depth: float | None = None
    """The requested depth, if the file has depths."""
    permutation: int | None = None
    status: Status
    """`absent`: there is no prediction, and the score is 0; `failed`: the example could not be scored; `skipped`: the
    model cannot be given the example; `outside`: the metric does not apply to the example (`Metric.out_of_scope`), and
    `failure` says why. Only scored and absent examples have a score; those outside are in no mean and no count."""
    skipped: str = ""
    """Why the model cannot be given the example; empty if it can."""
    score: float | None
    reasoning: Reasoning = ""
    """What was done with reasoning in the prediction; empty if there was none."""
    details: Mapping[str, object] = {}
    cluster: str = ""
    """An id that questions about the same thing, such as a document, share (`Builder.cluster`); empty if the question
    has no such id."""
    facets: Mapping[str, Sequence[str]] = {}
    """The groups that the example is in, by facet."""
    failure: str = ""
    digest: str = ""
    """The SHA-256 of the prompt, the images and the answer of the example that was scored (see `example_digest`); empty
    in old files, and for public files of other origin."""
    lock: str = ""
    """The first 16 hexadecimal digits of the SHA-256 of the release's lock; empty where `digest` is."""
    is_stale: bool = False
    """Whether the prediction was made for an example with another digest, and scored because of `--allow-stale`."""
    sample: int = Field(default=0, ge=0, le=MAX_SAMPLE)
    """The number of the answer among the model's answers to the same example."""
    answer: str = ""
    """A hash of the answer as the metric compares it (`Metric.compared_answer`), so that equal answers are found; empty
    if the example has only one answer."""


def read_scores(folder: Path) -> Iterator[ScoreLine]:
    """Yield every line of one scores file, or of all scores files in a folder, sorted by file name.

    Raises:
        ReleaseError: there is no scores file, or a line is not valid; the error names file, line and field.

    """
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else [folder]
    if not files or not files[0].is_file():
        raise ReleaseError(f"{folder}: no scores there (*.jsonl); `mmlongbench score` writes them")
    for file in files:
        for where, line in JSON_LINES.unbundle(file):
            try:
                yield ScoreLine.model_validate(line)
            except ValidationError as error:
                first = error.errors()[0]
                field = ".".join(map(str, first["loc"]))
                raise ReleaseError(f"{file.name}, {where}: {field}: {first['msg']}; is it a scores file?") from error


def refuse_other_scores(file: Path, model: str, lock: str, *, replaces: bool) -> None:
    """Raise a `ScoringError` if the file holds scores of another model or, unless `replaces` is true, of another
    release than the one with this lock (see `ScoreLine.lock`).
    """
    first = next(read_scores(file), None) if file.is_file() else None
    if first and first.model != model:
        todo = "give --model another name, or another --out"
        raise ScoringError(f"{file}: holds scores of {first.model!r}, not of {model!r}; {todo}")
    if first and first.lock != lock and not replaces:
        there, wanted = (f"the lock {each}" if each else "no lock" for each in (first.lock, lock))
        todo = "give another --out, or --replace to overwrite them"
        raise ScoringError(f"{file}: holds scores of a release with {there}, not of this one with {wanted}; {todo}")


def refuse_other_choices(file: Path, made: Mapping[str, Provenance]) -> None:
    """Raise a `ScoringError` if a scores file, which may not exist yet, has scores by one of these metrics that were
    made by another profile or other choices.
    """
    unseen = set(made)
    for line in read_scores(file) if file.is_file() else ():
        if line.metric not in unseen:
            continue
        new = made[line.metric]
        if (line.profile, *line.choices) != (new.profile, *new.choices):
            there, wanted = _said(line.profile, line.choices), _said(new.profile, new.choices)
            todo = "give another --out, or delete the file"
            raise ScoringError(f"{file}: holds scores by {line.metric} ({there}), not ({wanted}); {todo}")
        unseen.discard(line.metric)
        if not unseen:
            return


def _said(profile: str, choices: Sequence[str]) -> str:
    return ", ".join([profile, *choices])


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sample that has a score."""

    answer: object
    """The answer as the metric compares it; equal answers are equal values."""
    score: float


def mean_score(samples: Sequence[Sampled]) -> float:
    """Return the mean of the scores."""
    return math.fsum(each.score for each in samples) / len(samples)


def best_score(samples: Sequence[Sampled]) -> float:
    """Return the highest score."""
    return max(each.score for each in samples)


def majority_score(samples: Sequence[Sampled]) -> float:
    """Return the score of the most frequent answer; the samples are in the order of their numbers.

    Of several answers that are equally frequent, the one that occurs first counts. If samples with this answer have
    different scores, the first of these scores counts.

    >>> made = [Sampled("a", 0.0), Sampled("b", 1.0), Sampled("b", 0.5)]
    >>> majority_score(made), majority_score(made[:2])
    (1.0, 0.0)
    """
    (answer, _), *_ = Counter(each.answer for each in samples).most_common(1)
    return next(each.score for each in samples if each.answer == answer)


def runs(examples: Sequence[Sequence[T]]) -> Iterator[list[T]]:
    """Yield lists with one sample of each example: the first samples, the second ones, and so on. An example with fewer
    samples than others repeats its own in turn, until each sample of an example has occurred equally often.

    >>> list(runs([["a1", "a2"], ["b1"]]))
    [['a1', 'b1'], ['a2', 'b1']]
    """
    counts = set(map(len, examples))
    for number in range(min(math.lcm(*counts), max(_MAX_RUNS, *counts)) if counts else 0):
        yield [samples[number % len(samples)] for samples in examples]


def mean_figures(
    figures: Callable[[Sequence[T]], Mapping[str, float]], examples: Sequence[Sequence[T]]
) -> dict[str, float]:
    """Return the mean, over the lists that `runs` yields, of each figure; a figure that a list lacks is left out."""
    found: dict[str, list[float]] = {}
    for run in runs(examples):
        for name, value in figures(run).items():
            found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else math.fsum(values) / len(values) for name, values in found.items()}

"""Reads scores files, and reduces each line to numbers as soon as it is read."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.report.columns import (
    FAILED,
    STATES,
    Group,
    Placement,
    Question,
    ScoredFile,
    Series,
    column,
)
from mmlongbench.scoring.scores import SHOWN_PROFILES, ScoreLine, read_scores
from mmlongbench.task.metric import LENIENT, Score

_NAMES = ("series", "follows", "file", "question", "placement", "source", "failure", "answer", "digest", "lock")
"""The columns that are kept of each line besides its status and score."""
_LONGEST = 200
"""The maximum number of characters that are kept of the reason of a failure."""
_BOUNDS = {"scored": "from 0 to 1", "absent": "0", "failed": "null", "skipped": "null", "outside": "null"}


class Numbers(dict[Any, int]):
    """The number of each value; values are numbered in the order in which they first occur."""

    def __missing__(self, value: Any) -> int:  # noqa: ANN401  (any that can be a key)
        self[value] = len(self)
        return self[value]


def _integers() -> "array[int]":
    return array("i")


def _floats() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class Reading:
    """The lines that were read so far; values other than scores are replaced by their `numbers`."""

    keeps: Callable[[str], bool]
    """Returns whether the complete scores of a metric are kept, with their details; `totals` needs these scores."""
    numbers: dict[str, Numbers] = field(default_factory=lambda: defaultdict(Numbers))
    """By column, the values and their numbers. Lines that only `learn` reads add their questions and files, too."""
    rows: "array[int]" = field(default_factory=_integers)
    """For each line, the numbers of its values in the columns `_NAMES`."""
    status: "array[int]" = field(default_factory=_integers)
    sample: "array[int]" = field(default_factory=_integers)
    is_stale: "array[int]" = field(default_factory=_integers)
    score: "array[float]" = field(default_factory=_floats)
    members: "array[int]" = field(default_factory=_integers)
    """Pairs of the number of a line and the number of a group that the line is in."""
    details: "array[int]" = field(default_factory=_integers)
    """Pairs of the number of a line and the number of the name of a detail; `values` has the values of the details."""
    values: "array[float]" = field(default_factory=_floats)
    by_name: dict[str, ScoredFile] = field(default_factory=dict)
    clusters: dict[Question, str] = field(default_factory=dict)
    """The cluster of each question for which a line names a cluster."""
    kept: dict[int, Score] = field(default_factory=dict)
    own_metrics: dict[str, str] = field(default_factory=dict)
    """See `Scores.own_metrics`."""
    first_metrics: dict[tuple[str, str], str] = field(default_factory=dict)
    """See `Scores.first_metrics`."""
    averaged_metrics: dict[str, str] = field(default_factory=dict)
    """See `Scores.averaged_metrics`."""
    reasoning: Counter[tuple[Series, str, str]] = field(default_factory=Counter)
    """The number of lines by series, file, and what was done with reasoning."""
    outside: dict[tuple[str, str], set[tuple[object, ...]]] = field(default_factory=lambda: defaultdict(set))
    """The examples to which a metric does not apply, by metric and reason."""

    def learn(self, line: ScoreLine, source: str) -> tuple[int, int]:
        """Keep what a line says about its dataset; return the number of the line's file and that of its question.

        This is called also for lines under profiles that are not shown. So the averages under a profile have the same
        datasets, metrics and intervals, whether this profile is shown alone or with others.
        """
        _check(line, source)
        file, question = self._file(line, source), Question(line.dataset, line.id)
        self._add_cluster(question, line, source)
        if line.is_own:
            self.own_metrics[line.dataset] = line.metric
        if line.averaged_metric:
            self.averaged_metrics[line.dataset] = line.averaged_metric
        return self.numbers["file"][file], self.numbers["question"][question]

    def add(self, line: ScoreLine, source: str) -> None:
        """Reduce one line to numbers; `source` is the scores file that the line is in."""
        if line.status == "outside":
            self.learn(line, source)
            self.outside[line.metric, line.failure].add((line.file, line.id, line.depth, line.permutation))
            return
        number, numbers = len(self.score), self.numbers
        file, question = self.learn(line, source)
        series = Series(line.model, line.metric, line.profile, tuple(line.choices))
        placement = Placement(_or_first(line.depth), _or_first(line.permutation))
        status, failure = STATES.index(line.status), ""
        if status == FAILED:
            failure = " ".join(line.failure.split())[:_LONGEST] or "no reason is given"
        one, follows = numbers["series"][series], numbers["follows"][line.follows]
        at, where, why = numbers["placement"][placement], numbers["source"][source], numbers["failure"][failure]
        said = (numbers["answer"][line.answer], numbers["digest"][line.digest], numbers["lock"][line.lock])
        self.rows.extend((one, follows, file, question, at, where, why, *said))
        self.status.append(status)
        self.sample.append(line.sample)
        self.is_stale.append(line.is_stale)
        self.score.append(math.nan if line.score is None else line.score)
        for facet, names in line.facets.items():
            for name in dict.fromkeys(names):
                self.members.extend((number, numbers["group"][Group(facet, name)]))
        for name, value in line.details.items():
            if (found := _finite(value)) is not None:
                self.details.extend((number, numbers["name"][name]))
                self.values.append(found)
        if line.reasoning:
            self.reasoning[series, line.file, line.reasoning] += 1
        if LENIENT not in line.choices:
            self.first_metrics.setdefault((line.dataset, line.profile), line.metric)
        if self.keeps(line.metric):
            self.kept[number] = Score(line.score, line.details, line.failure)

    def _file(self, line: ScoreLine, source: str) -> ScoredFile:
        found = ScoredFile(line.dataset, line.length, line.file, line.category, line.counted_with)
        known = self.by_name.setdefault(line.file, found)
        if known != found:
            raise ReleaseError(
                f"{source}: {line.file} is of {_said(found)}, elsewhere of {_said(known)}: scores of several releases "
                "are mixed; report each from a folder of its own"
            )
        return found

    def _add_cluster(self, question: Question, line: ScoreLine, source: str) -> None:
        known = self.clusters.setdefault(question, line.cluster) if line.cluster else ""
        if known != line.cluster:
            raise ReleaseError(
                f"{source}: {line.file}, id {line.id!r} is about {line.cluster!r}, elsewhere about {known!r}: scores "
                "of several releases are mixed; report each from a folder of its own"
            )

    def notes(self) -> list[str]:
        """Return sentences about the examples to which a metric does not apply."""
        return [
            f"{metric}: {len(examples):,} examples are left out of every mean of this metric: {why}"
            for (metric, why), examples in sorted(self.outside.items())
        ]

    def lines(self) -> pd.DataFrame:
        """Return a row for each line, in the order of reading; the columns are `_NAMES`, `cluster`, `status`,
        `sample`, `is_stale` and `score`.

        A question whose lines name no cluster is a cluster of its own, even if the name of another cluster equals the
        question's id.
        """
        codes, questions = np.array(self.rows, np.int32).reshape(-1, len(_NAMES)), self.numbers["question"]
        found = pd.DataFrame({name: column(list(self.numbers[name]), codes[:, at]) for at, name in enumerate(_NAMES)})
        places = {cluster: place for place, cluster in enumerate(sorted({*map(self.cluster_of, questions)}))}
        of_each = np.array([places[self.cluster_of(question)] for question in questions])
        found["cluster"] = of_each[codes[:, _NAMES.index("question")]]
        sample, is_stale = np.array(self.sample, np.int64), np.array(self.is_stale, np.bool_)
        status = np.array(self.status, np.int8)
        return found.assign(status=status, sample=sample, is_stale=is_stale, score=np.array(self.score))

    def pairs(self, flat: "array[int]", name: str) -> pd.DataFrame:
        """Return a table with two columns: `line`, and a column with the name `name`.

        `flat` has pairs: the number of a line, and the number of a value of the other column.
        """
        codes = np.array(flat, np.int32).reshape(-1, 2)
        return pd.DataFrame({"line": codes[:, 0], name: column(list(self.numbers[name]), codes[:, 1])})

    def cluster_of(self, question: Question) -> tuple[str, str, bool]:
        """Return the cluster of a question: its dataset, its name, and whether it is the question itself."""
        name = self.clusters.get(question, "")
        return question.dataset, name or question.id, not name


def read_lines(folder: Path, keeps: Callable[[str], bool], profile: str = "") -> Reading:
    """Read every line of a folder of scores files; lines under another profile than the given one are used only by
    `learn`.

    Raises:
        ReleaseError: there is no line, a line is not valid, a score is impossible, or files of several releases are
            mixed.

    """
    reading, others = Reading(keeps), defaultdict[str, set[str]](set)
    for source, line in _lines(folder):
        if profile in ("", line.profile):
            reading.add(line, source)
        else:
            reading.learn(line, source)
            others[line.profile].add(line.metric)
    if not reading.rows and others:
        there = "; ".join(f"{name}: {', '.join(sorted(others[name]))}" for name in SHOWN_PROFILES if name in others)
        raise ReleaseError(f"--profile {profile}: nothing in {folder} was scored under it; there are {there}")
    if not reading.rows:
        raise ReleaseError(f"{folder}: the scores files are empty; `mmlongbench score` writes them")
    return reading


def _lines(folder: Path) -> Iterator[tuple[str, ScoreLine]]:
    for file in sorted(folder.glob("*.jsonl")) or [folder]:
        for line in read_scores(file):
            yield file.name, line


def _or_first(value: float | None) -> float:
    return -math.inf if value is None else value


def _finite(value: Any) -> float | None:  # noqa: ANN401  (whatever JSON holds)
    """Return a finite number or a flag as a float (a flag becomes 0 or 1); None for anything else."""
    try:
        found = float(value) if isinstance(value, (bool, int, float)) else math.nan
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _said(file: ScoredFile) -> str:
    return f"dataset {file.dataset!r}, length {file.length}, category {file.category!r}, with {file.counted_with!r}"


def _check(line: ScoreLine, source: str) -> None:
    """Refuse a score that the status of the line does not allow, and a depth that is infinite or NaN."""
    is_score = line.score is not None and 0 <= line.score <= (line.status == "scored")
    is_allowed = line.score is None if line.status in ("failed", "skipped", "outside") else is_score
    if not is_allowed or not math.isfinite(line.depth or 0.0):
        raise ReleaseError(
            f"{source}: {line.model}, {line.metric}, {line.file}, id {line.id!r}: status {line.status!r} with score "
            f"{line.score} at depth {line.depth}; expected a score {_BOUNDS[line.status]}; score it again"
        )

"""Reading scores files: each line is reduced to numbers as it comes. Knows no task, no metric and no facet by name."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.report.columns import FAILED, STATES, Group, Origin, ScoredFile, Series
from mmlongbench.scoring.scores import SHOWN_PROFILES, ScoreLine, read_scores
from mmlongbench.task.metric import LENIENT, Score

T = TypeVar("T")
_LONGEST = 200
"""Characters of a reason that are kept."""
_BOUNDS = {"scored": "from 0 to 1", "absent": "0", "failed": "null", "skipped": "null"}


def _integers() -> "array[int]":
    return array("q")


def _floats() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class Reading:
    """Lines on their way into columns; names become numbers in the order they are met."""

    keeps: Callable[[str], bool]
    """Of which metrics lines are needed whole."""
    rows: "array[int]" = field(default_factory=_integers)
    """Of each line: series, file, question, placement, status, source."""
    score: "array[float]" = field(default_factory=_floats)
    members: "array[int]" = field(default_factory=_integers)
    """Pairs of line and group."""
    details: "array[int]" = field(default_factory=_integers)
    """Pairs of line and name."""
    values: "array[float]" = field(default_factory=_floats)
    series: dict[Series, int] = field(default_factory=dict)
    files: dict[ScoredFile, int] = field(default_factory=dict)
    by_name: dict[str, ScoredFile] = field(default_factory=dict)
    questions: list[dict[str, int]] = field(default_factory=list)
    """By file: id → number."""
    clusters: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """By dataset: id → cluster, of the questions whose lines say it."""
    ids: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By dataset: the ids of all questions of which there is any line, also under a profile that is not shown."""
    placements: dict[tuple[float | None, int | None], int] = field(default_factory=dict)
    groups: dict[Group, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    kept: dict[int, Score] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    """By line: why it failed."""
    own_metrics: dict[str, str] = field(default_factory=dict)
    """By dataset: its own, where any line says which."""
    first_metrics: dict[tuple[str, str], str] = field(default_factory=dict)
    """By dataset and profile: the first that is met and is not lenient."""
    averaged_metrics: dict[str, str] = field(default_factory=dict)
    """By dataset: the one that it should enter averages by, where that is not its own."""
    origins: dict[Series, Counter[Origin]] = field(default_factory=lambda: defaultdict(Counter))
    reasoning: Counter[tuple[Series, str, str]] = field(default_factory=Counter)
    """Lines by series, file and what became of reasoning."""

    def learn(self, line: ScoreLine, source: str) -> int:
        """Take in what a line says of its dataset, and return the number of its file; its score is not added.

        Lines under another profile than the one that is asked for tell this too, so that the averages under a profile
        have the same members, metrics and intervals whether it is shown alone or with others.
        """
        _check(line, source)
        file = self._file(line, source)
        self.ids[line.dataset].add(line.id)
        self._add_cluster(line, source)
        if line.is_own:
            self.own_metrics[line.dataset] = line.metric
        if line.averaged_metric:
            self.averaged_metrics[line.dataset] = line.averaged_metric
        return file

    def add(self, line: ScoreLine, source: str) -> None:
        """Reduce one line; `source` is the scores file it stands in."""
        number = len(self.score)
        series = Series(line.model, line.metric, line.profile, tuple(line.choices))
        file = self.learn(line, source)
        question = _number(self.questions[file], line.id)
        placement = _number(self.placements, (line.depth, line.permutation))
        status = STATES.index(line.status)
        at = _number(self.series, series)
        self.rows.extend((at, file, question, placement, status, _number(self.sources, source)))
        self.score.append(math.nan if line.score is None else line.score)
        self._add_groups(line, number)
        self._add_numbers(line, number)
        self.origins[series][Origin(line.follows, tuple(line.choices))] += 1
        if line.reasoning:
            self.reasoning[series, line.file, line.reasoning] += 1
        if LENIENT not in line.choices:
            self.first_metrics.setdefault((line.dataset, line.profile), line.metric)
        if status == FAILED:
            self.failures[number] = " ".join(line.failure.split())[:_LONGEST] or "no reason is given"
        if self.keeps(line.metric):
            self.kept[number] = Score(line.score, line.details, line.failure)

    def _file(self, line: ScoreLine, source: str) -> int:
        found = ScoredFile(line.dataset, line.length, line.file, line.category, line.counted_with)
        known = self.by_name.setdefault(line.file, found)
        if known != found:
            raise ReleaseError(
                f"{source}: {line.file} is of {_said(found)}, elsewhere of {_said(known)}: scores of several releases "
                "are mixed; report each from a folder of its own"
            )
        number = _number(self.files, found)
        if number == len(self.questions):
            self.questions.append({})
        return number

    def _add_cluster(self, line: ScoreLine, source: str) -> None:
        known = self.clusters[line.dataset].setdefault(line.id, line.cluster) if line.cluster else ""
        if known != line.cluster:
            raise ReleaseError(
                f"{source}: {line.file}, id {line.id!r} is about {line.cluster!r}, elsewhere about {known!r}: scores "
                "of several releases are mixed; report each from a folder of its own"
            )

    def _add_groups(self, line: ScoreLine, number: int) -> None:
        for facet, names in line.facets.items():
            for name in dict.fromkeys(names):
                self.members.extend((number, _number(self.groups, Group(facet, name))))

    def _add_numbers(self, line: ScoreLine, number: int) -> None:
        for name, value in line.details.items():
            found = _finite(value)
            if found is not None:
                self.details.extend((number, _number(self.numbers, name)))
                self.values.append(found)


def read_lines(folder: Path, keeps: Callable[[str], bool], profile: str = "") -> Reading:
    """Read every line of a folder of scores files; of those under another profile than the given one, learn only.

    Raises:
        ReleaseError: there is none; a line is none or has a score that cannot be; files of several releases are mixed.

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


def _number(numbers: dict[T, int], key: T) -> int:
    return numbers.setdefault(key, len(numbers))


def _finite(value: Any) -> float | None:  # noqa: ANN401  (whatever JSON holds)
    """A number or a flag as a number; None of anything else."""
    try:
        found = float(value) if isinstance(value, (bool, int, float)) else math.nan
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _said(file: ScoredFile) -> str:
    return f"dataset {file.dataset!r}, length {file.length}, category {file.category!r}, with {file.counted_with!r}"


def _check(line: ScoreLine, source: str) -> None:
    """Refuse a score that its status does not allow, and a depth that is no number."""
    is_score = line.score is not None and 0 <= line.score <= (line.status == "scored")
    is_allowed = line.score is None if line.status in ("failed", "skipped") else is_score
    if not is_allowed or not math.isfinite(line.depth or 0.0):
        raise ReleaseError(
            f"{source}: {line.model}, {line.metric}, {line.file}, id {line.id!r}: status {line.status!r} with score "
            f"{line.score} at depth {line.depth}; expected a score {_BOUNDS[line.status]}; score it again"
        )

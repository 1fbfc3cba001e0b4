"""Reads a folder of scores into a table, with one row for each example, that all parts of a report group and average.

Lines that contradict each other raise an error. Several answers (samples) to an example become one row, so that an
example counts once in every mean, interval and count. Examples that not all models were given are left out.
"""

import math
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.manifest.plugins import metric_type
from mmlongbench.manifest.task_files import task_file
from mmlongbench.release.layout import LOCK
from mmlongbench.scoring.scores import (
    CONTEXT,
    SHOWN_PROFILES,
    UNKNOWN,
    Sampled,
    best_score,
    majority_score,
    mean_score,
    profile_order,
    read_scores,
)
from mmlongbench.task.metric import LENIENT, MetricWithTotals, Score

STATUS = ("scored", "absent", "failed", "skipped")
SCORED, ABSENT, FAILED, SKIPPED = range(4)
"""The status of a row. A row has a score if its status is `SCORED` or `ABSENT`."""
SERIES = ["model", "metric", "profile"]
FILE = ["dataset", "length"]
"""A dataset has one file of each length."""
_ROW = [*SERIES, "example"]
_OF_FILE = ["file", *FILE, "category", "counted_with"]
_TEXTS = (
    *(*SERIES, "follows", "choices", "averaged_metric", "file", "dataset", "category", "counted_with", "id"),
    *("cluster", "reasoning", "failure", "answer", "digest", "lock", "status", "source"),
)
_NUMBERS = ("length", "depth", "permutation", "sample", "is_own", "is_stale", "score")
_BOUNDS = {"scored": "from 0 to 1", "absent": "0", "failed": "null", "skipped": "null", "outside": "null"}
_LONGEST = 200
"""The maximum number of characters that are kept of the reason of a failure."""
_LARGEST = sys.float_info.max
_SHOWN = 12
"""How many digits of a digest are shown."""
_SEVERAL = "scores of several releases are mixed; report each from a folder of its own"


class Series(NamedTuple):
    """The outputs of one model, scored by one metric under one profile. Choices follow the name of the profile if
    scores of one model differ in them.
    """

    model: str
    metric: str
    profile: str

    @property
    def label(self) -> str:
        """The metric, followed by the profile unless the profile is `unknown`."""
        return self.metric if self.profile == UNKNOWN else f"{self.metric} ({self.profile})"


class Totals(dict[str, Callable[[Sequence[Score]], Mapping[str, float]] | None]):
    """By metric, the function that computes figures of whole files; None if there is none. A metric is loaded when its
    name first occurs; if it cannot be loaded, the report lacks only its totals.
    """

    def __init__(self) -> None:
        super().__init__()
        self.problems: dict[str, str] = {}
        """Why a metric could not be loaded, by the metric's name."""

    def __missing__(self, name: str) -> Callable[[Sequence[Score]], Mapping[str, float]] | None:
        self[name] = None
        if task_file(name):
            self.problems[name] = "a report runs no task file; `mmlongbench score` prints them, if the metric has any"
            return None
        try:
            metric = metric_type(name)
        except MMLongBenchError as error:
            self.problems[name] = " ".join(str(error).split())
        else:
            self[name] = metric.totals if issubclass(metric, MetricWithTotals) else None
        return self[name]


@dataclass(frozen=True, slots=True)
class Differing:
    """The examples that are not the same in all scores of their name, since models were scored on several releases.

    Digests tell them; scores without a digest are not compared.
    """

    examples: int = 0
    """How many examples differ."""
    of: int = 0
    """How many examples have a digest."""
    files: Mapping[str, int] = field(default_factory=dict)
    """How many examples differ, by public file."""
    first: str = ""
    """The first of them, with the digest that it has for each model."""
    stale: Mapping[str, int] = field(default_factory=dict)
    """How many scores are of predictions that were made for other examples (`--allow-stale`), by model."""
    without: Mapping[str, int] = field(default_factory=dict)
    """How many scores have no digest although others of the same files have one, by model."""

    def warnings(self) -> Iterator[str]:
        """Yield sentences that must stand above the scores."""
        if self.examples:
            files = ", ".join(f"{name} {count:,}" for name, count in self.files.items())
            yield (
                f"{self.examples:,} of {self.of:,} examples are not the same in all scores ({files}), so scores side "
                f"by side are not of the same examples; first {self.first}"
            )
        if self.stale:
            models = ", ".join(f"{model} {count:,}" for model, count in self.stale.items())
            yield f"scores of predictions that were made for other examples (--allow-stale): {models}"


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a folder. Columns of texts are categorical, and their categories are sorted."""

    lines: pd.DataFrame
    """A row for each example of each series, sorted by these; the index is the number of a line in the order of
    reading. The columns are fields of `ScoreLine`, but: `status` is an index of `STATUS`; `depth` and `permutation` are
    −∞ if there is none; `example` numbers the examples, `cluster` is a place in `clusters`; `score` is the mean of the
    samples of an example, `best` and `majority` are the scores of its best sample and of its most frequent answer, and
    `samples` is their number. `score` is 0 for absent predictions, and NaN for failed or skipped examples."""
    clusters: Sequence[tuple[str, str]]
    """The dataset and the name of each cluster, sorted; also of those that are not in `lines`."""
    files: pd.DataFrame
    """The files that were read, also those without scores under a profile that is shown; the columns are `file`,
    `dataset`, `length`, `category` and `counted_with`."""
    groups: pd.DataFrame
    """A row for each group that a facet puts a line in: `line`, `facet` and `group`."""
    details: pd.DataFrame
    """A row for each detail of a line that is a number: `line`, `name` and `value`."""
    kept: Mapping[int, Sequence[Score]]
    """The complete scores of the samples of each line, for metrics with totals."""
    totals: Totals
    own_metrics: Mapping[str, str]
    """The own metric of each dataset, if it is known from a line with `ScoreLine.is_own`."""
    first_metrics: Mapping[tuple[str, str], str]
    """The first metric that was read and is not lenient (see `LENIENT`), by dataset and profile."""
    averaged_metrics: Mapping[str, str]
    """The metric that a builder declares for averages, by dataset, if it is not the own metric."""
    origins: pd.DataFrame
    """Where the rules of each series come from: the columns of `SERIES`, `follows` and `choices`; sorted."""
    reasoning: Mapping[str, Mapping[str, int]]
    """For each model, how many predictions had reasoning, by what was done with it."""
    differing: Differing
    locks: Mapping[str, tuple[str, ...]]
    """The releases (see `ScoreLine.lock`) on which each model was scored, as far as the lines name them."""
    notes: Sequence[str]
    """Sentences that say which lines were left out, and why."""

    def values(self, column: str) -> list[Any]:
        """Return the different values of a column of `lines`, sorted."""
        return sorted(self.lines[column].unique())

    @property
    def profiles(self) -> list[str]:
        """All profiles; `official` and its choices come first."""
        return sorted(self.values("profile"), key=profile_order)

    @property
    def default_metrics(self) -> frozenset[str]:
        """The own metrics of all datasets; if a dataset's own metric is not known, its metrics in `first_metrics`."""
        first = (metric for (dataset, _), metric in self.first_metrics.items() if dataset not in self.own_metrics)
        return frozenset((*self.own_metrics.values(), *first))


def read(folder: Path, profile: str = "") -> Scores:
    """Read the scores of a folder; if `profile` is given, only the scores under this profile.

    Lines under other profiles still say what there is: so the averages under a profile have the same datasets, metrics
    and intervals, whether this profile is shown alone or with others.

    Raises:
        ReleaseError: there are no scores, a line is not valid or occurs twice, a score is impossible, or files of
            several releases are mixed.

    """
    totals = Totals()
    every, groups, details, kept = _read_lines(folder, profile, totals)
    files = _files(every)
    every["cluster"], clusters = _clusters(every)
    own = every[every["is_own"] == 1].drop_duplicates("dataset", keep="last")
    averaged = every[every["averaged_metric"] != ""].drop_duplicates("dataset", keep="last")
    is_shown = (every["profile"] == profile) | (not profile)
    outside = every[is_shown & (every["status"] == "outside")]
    lines = every[is_shown & (every["status"] != "outside")].copy()
    if lines.empty:
        _refuse_nothing(folder, profile, every[~is_shown])
    shown = _told_apart(lines)
    first_metrics = _first_metrics(lines.assign(shown=shown))
    lines["profile"] = shown
    lines["status"] = lines["status"].map({name: place for place, name in enumerate(STATUS)}).astype(np.int8)
    example = lines.groupby([*FILE, "id", "depth", "permutation"], observed=True)
    lines = lines.assign(example=example.ngroup()).sort_values([*_ROW, "sample"], kind="stable")
    _refuse_twins(lines)
    origins = lines[[*SERIES, "follows", "choices"]].drop_duplicates().sort_values([*SERIES, "follows", "choices"])
    different = _differing(lines)
    reasoning = _reasoning(lines)
    lines, details, of_samples, sample_notes = _combined(lines, details, kept)
    locks = lines.loc[lines["lock"] != "", ["model", "lock"]].drop_duplicates().sort_values(["model", "lock"])
    lines, shared_notes = _shared(lines)
    examples = outside.drop_duplicates(["metric", "failure", "file", "id", "depth", "permutation"])
    notes = [
        f"{metric}: {len(rows):,} examples are left out of every mean of this metric: {why}"
        for (metric, why), rows in grouped(examples, ["metric", "failure"]).items()
    ]
    if different.without:
        models = ", ".join(f"{model} {count:,}" for model, count in different.without.items())
        notes.append(f"scores without digests, which may be of other examples than the scores beside them: {models}")
    return Scores(
        lines=lines,
        clusters=clusters,
        files=files,
        groups=groups,
        details=details,
        kept=of_samples,
        totals=totals,
        own_metrics=dict(zip(own["dataset"], own["metric"], strict=True)),
        first_metrics=first_metrics,
        averaged_metrics=dict(zip(averaged["dataset"], averaged["averaged_metric"], strict=True)),
        origins=origins,
        reasoning=reasoning,
        differing=different,
        locks={str(model): tuple(some) for model, some in locks.groupby("model", observed=True)["lock"]},
        notes=[*notes, *sample_notes, *shared_notes],
    )


def grouped(lines: pd.DataFrame, by: Sequence[str]) -> dict[Any, Any]:
    """Group rows by the columns `by`; return the positions of the rows of each group, by its values in these columns
    (of one column, not in a tuple), sorted.
    """
    return dict(lines.groupby(list(by), observed=True).indices)


class _Columns:
    """A table that is packed while it is read, because a folder may have millions of lines.

    Texts become numbers of their different values. They stay objects, because pandas' own texts must be valid Unicode.
    """

    def __init__(self, texts: Sequence[str], numbers: Sequence[str]) -> None:
        self._texts = {name: (dict[str, int](), array("i")) for name in texts}
        self._numbers = {name: array("d") for name in numbers}

    def add(self, fields: Mapping[str, Any]) -> None:
        for name, (numbers, codes) in self._texts.items():
            codes.append(numbers.setdefault(fields[name], len(numbers)))
        for name, values in self._numbers.items():
            values.append(fields[name])

    def frame(self) -> pd.DataFrame:
        columns: dict[str, Any] = {name: np.array(values) for name, values in self._numbers.items()}
        for name, (numbers, codes) in self._texts.items():
            known = sorted(numbers)
            place = np.empty(len(known), np.int32)
            place[[numbers[text] for text in known]] = np.arange(len(known))
            columns[name] = pd.Categorical.from_codes(place[np.array(codes)], pd.Index(known, dtype=object))
        return pd.DataFrame(columns)


def _read_lines(
    folder: Path, profile: str, totals: Totals
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, dict[int, Score]]:
    """Return the lines, their groups, their details, and the complete scores of metrics with totals."""
    lines = _Columns(_TEXTS, _NUMBERS)
    groups, details = _Columns(("facet", "group"), ("line",)), _Columns(("name",), ("line", "value"))
    kept: dict[int, Score] = {}
    if (folder / LOCK).is_file():
        raise ReleaseError(f"{folder}: is a release; give the folder of scores that `mmlongbench score` wrote")
    files = sorted(folder.glob("*.jsonl")) or [folder]
    every = ((file.name, line) for file in files for line in read_scores(file))
    for number, (source, line) in enumerate(every):
        is_score = line.score is not None and 0 <= line.score <= (line.status == "scored")
        is_allowed = line.score is None if line.status in ("failed", "skipped", "outside") else is_score
        if not is_allowed or not math.isfinite(line.depth or 0.0):
            raise ReleaseError(
                f"{source}: {line.model}, {line.metric}, {line.file}, id {line.id!r}: status {line.status!r} with "
                f"score {line.score} at depth {line.depth}; expected a score {_BOUNDS[line.status]}; score it again"
            )
        failure = line.failure if line.status == "outside" else ""
        if line.status == "failed":
            failure = " ".join(line.failure.split())[:_LONGEST] or "no reason is given"
        lines.add(
            {
                **dict(line),
                "choices": "\n".join(line.choices),
                "depth": -math.inf if line.depth is None else line.depth,
                "permutation": -math.inf if line.permutation is None else line.permutation,
                "score": math.nan if line.score is None else line.score,
                "failure": failure,
                "source": source,
            }
        )
        if profile not in ("", line.profile) or line.status == "outside":
            continue
        for facet, names in line.facets.items():
            for group in dict.fromkeys(names):
                groups.add({"line": number, "facet": facet, "group": group})
        for name, value in line.details.items():
            if isinstance(value, bool | int | float) and -_LARGEST <= value <= _LARGEST:
                details.add({"line": number, "name": name, "value": float(value)})
        if totals[line.metric]:
            kept[number] = Score(line.score, line.details, line.failure)
    frame = lines.frame()
    whole = {"length": np.int64, "sample": np.int64, "is_own": np.bool_, "is_stale": np.bool_}
    return frame.astype(whole), groups.frame().astype({"line": int}), details.frame().astype({"line": int}), kept


def _files(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the files, sorted. Refuse a file of two datasets, lengths or categories, and two files of a dataset and
    length.
    """
    files = lines[[*_OF_FILE, "source"]].drop_duplicates(_OF_FILE)
    for _, several in files[files.duplicated("file", keep=False)].groupby("file", observed=True):
        one, two = (
            f"dataset {each.dataset!r}, length {each.length}, category {each.category!r}, with {each.counted_with!r}"
            for each in several.head(2).itertuples()
        )
        source, file = several.iloc[1][["source", "file"]]
        raise ReleaseError(f"{source}: {file} is of {two}, elsewhere of {one}: {_SEVERAL}")
    files = files.sort_values([*FILE, "file"])
    for (dataset, length), several in files[files.duplicated(FILE, keep=False)].groupby(FILE, observed=True):
        names = " and ".join(several["file"])
        raise ReleaseError(f"dataset {dataset!r} has two files of {length:,} tokens, {names}: {_SEVERAL}")
    return files[_OF_FILE].astype(dict.fromkeys(["file", "dataset", "category", "counted_with"], object))


def _clusters(lines: pd.DataFrame) -> tuple[Any, list[tuple[str, str]]]:
    """Return the cluster of each line, and the clusters. A question whose lines name no cluster is one of its own, even
    if another cluster has its id as a name.
    """
    named = lines.loc[lines["cluster"] != "", ["dataset", "id", "cluster", "file", "source"]]
    named = named.drop_duplicates(["dataset", "id", "cluster"])
    if not (twice := named[named.duplicated(["dataset", "id"])]).empty:
        line = twice.iloc[0]
        known = named[(named["dataset"] == line["dataset"]) & (named["id"] == line["id"])]["cluster"].iloc[0]
        about = f"{line['file']}, id {line['id']!r} is about {line['cluster']!r}, elsewhere about {known!r}"
        raise ReleaseError(f"{line['source']}: {about}: {_SEVERAL}")
    names = {(each.dataset, each.id): each.cluster for each in named.itertuples()}
    question = lines.groupby(["dataset", "id"], observed=True).ngroup().to_numpy()
    questions = lines[["dataset", "id"]].assign(question=question).drop_duplicates().sort_values("question")
    of_each = [
        (dataset, names.get((dataset, id), id), (dataset, id) not in names)
        for dataset, id in zip(questions["dataset"], questions["id"], strict=True)
    ]
    clusters = sorted(set(of_each))
    places = {cluster: place for place, cluster in enumerate(clusters)}
    codes = np.array([places[cluster] for cluster in of_each], np.int32)
    return codes[question], [(dataset, name) for dataset, name, _ in clusters]


def _refuse_nothing(folder: Path, profile: str, others: pd.DataFrame) -> None:
    if others.empty:
        raise ReleaseError(f"{folder}: the scores files are empty; `mmlongbench score` writes them")
    metrics = {name: sorted(set(others["metric"][others["profile"] == name])) for name in SHOWN_PROFILES}
    there = "; ".join(f"{name}: {', '.join(known)}" for name, known in metrics.items() if known)
    raise ReleaseError(f"--profile {profile}: nothing in {folder} was scored under it; there are {there}")


def _told_apart(lines: pd.DataFrame) -> pd.Categorical:
    """Return the profile that reports show for each line: its profile, followed by choices that tell scores apart.

    If a model has scores by one metric and profile that were made with different choices, such as with and without
    reasoning, each set of choices becomes a profile of its own, named by the choices that not all scores share. So no
    table and no average mixes them. If only different models differ in choices, they stay in one table, and a note says
    so. Scores with different contexts, such as `context none`, are never in one table.
    """
    sets = lines[[*SERIES, "choices"]].drop_duplicates()
    shown = {}
    for key, rows in grouped(sets, ["metric", "profile"]).items():
        some = sets.iloc[rows]
        choices = {text: text.split("\n") if text else [] for text in some["choices"].unique()}
        is_several = some["model"].duplicated().any()
        shared = set.intersection(*map(set, choices.values()))
        for text, made in choices.items():
            apart = [choice for choice in made if choice.startswith(CONTEXT) or (is_several and choice not in shared)]
            shown[(*key, text)] = ", ".join([key[1], *apart])
    combination = lines.groupby(["metric", "profile", "choices"], observed=True)
    names = [shown[key] for key in grouped(lines, ["metric", "profile", "choices"])]
    known = sorted(set(names))
    codes = np.array([known.index(name) for name in names])[combination.ngroup()]
    return pd.Categorical.from_codes(codes, pd.Index(known, dtype=object))


def _first_metrics(lines: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Return the first metric by dataset and profile, both as written and as shown."""
    lenient = [text for text in lines["choices"].cat.categories if LENIENT in text.split("\n")]
    strict = lines[~lines["choices"].isin(lenient)].drop_duplicates(["dataset", "profile"])
    first = dict(zip(zip(strict["dataset"], strict["profile"], strict=True), strict["metric"], strict=True))
    names = lines[["metric", "profile", "shown"]].drop_duplicates()
    for (dataset, profile), metric in list(first.items()):
        for shown in names["shown"][(names["metric"] == metric) & (names["profile"] == profile)]:
            first.setdefault((dataset, shown), metric)
    return first


def _refuse_twins(lines: pd.DataFrame) -> None:
    """Refuse two lines of one sample of an example."""
    same = [*_ROW, "sample"]
    for _, twins in lines[lines.duplicated(same, keep=False)].head(2).groupby(same, observed=True):
        line, where = twins.iloc[0], " and ".join(sorted(set(twins["source"])))
        sample = f", sample {line['sample']}" if line["sample"] else ""
        about = (
            f"{line['model']}, {Series(*line[SERIES]).label}, {line['file']}: id {line['id']!r}{_placed(line)}{sample}"
        )
        raise ReleaseError(
            f"{about} is scored twice, in {where}; keep one line of each (--model names a second run of a model)"
        )


def _differing(lines: pd.DataFrame) -> Differing:
    digest = lines["digest"].cat.codes.where(lines["digest"] != "")
    if digest.isna().all():
        return Differing()
    is_different = digest.notna() & (digest.groupby(lines["example"]).transform("nunique") > 1)
    is_compared = digest.notna().groupby(lines["file"], observed=True).transform("any")
    some, without = lines[is_different], lines[digest.isna() & is_compared]
    first = ""
    if not some.empty:
        same = some[some["example"] == some["example"].min()]
        line, models = same.iloc[0], same.groupby("digest", observed=True)["model"].unique()
        digests = "; ".join(f"{text[:_SHOWN]}… for {', '.join(names)}" for text, names in models.items())
        first = f"{line['file']}: {line['id']}{_placed(line)} ({digests})"
    return Differing(
        examples=some["example"].nunique(),
        of=lines["example"][digest.notna()].nunique(),
        files={file: some["example"].iloc[at].nunique() for file, at in grouped(some, ["file"]).items()},
        first=first,
        stale={model: len(at) for model, at in grouped(lines[lines["is_stale"]], ["model"]).items()},
        without={model: len(at) for model, at in grouped(without, ["model"]).items()},
    )


def _placed(line: "pd.Series[Any]") -> str:
    if line["depth"] > -math.inf:
        return f" at depth {line['depth']}"
    return f", permutation {line['permutation']}" if line["permutation"] > -math.inf else ""


def _reasoning(lines: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return how many predictions of each model had reasoning, by what was done with it.

    Several metrics may have read the same predictions, so for each file the highest number of any metric counts.
    """
    some = lines[lines["reasoning"] != ""]
    sizes = some.groupby([*SERIES, "choices", "file", "reasoning"], observed=True).size()
    most = sizes.groupby(["model", "file", "reasoning"], observed=True).max()
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    of_kinds: dict[Any, int] = most.groupby(["model", "reasoning"], observed=True).sum().to_dict()
    for (model, kind), count in of_kinds.items():
        counts[model][kind] = count
    return dict(counts)


def _combined(
    lines: pd.DataFrame, details: pd.DataFrame, kept: Mapping[int, Score]
) -> tuple[pd.DataFrame, pd.DataFrame, dict[int, list[Score]], list[str]]:
    """Combine the samples of each example into the first of them; return the lines, details, scores, and notes.

    The score of the example is the mean over its samples that have a score, and so are its details. An example has
    failed if all its samples have failed.
    """
    lines = lines.assign(best=lines["score"], majority=lines["score"], samples=1)
    is_several = lines.duplicated(_ROW, keep=False).to_numpy()
    if not is_several.any():
        return lines, details, {number: [score] for number, score in kept.items()}, []
    places, numbers = np.flatnonzero(is_several), lines.index.to_numpy()
    status, score, answer = lines["status"].to_numpy(), lines["score"].to_numpy(), lines["answer"].cat.codes.to_numpy()
    columns = {name: lines[name].to_numpy().copy() for name in ("score", "best", "majority", "samples")}
    stays, lost = ~is_several, 0
    owner = pd.Series(numbers, numbers)  # the line in which a line counts; -1: in none
    owner.iloc[places] = -1
    for at in grouped(lines[is_several], _ROW).values():
        samples = places[at]
        own = samples[status[samples] == status[samples].min()]
        first = own[0]
        stays[first] = True
        owner.iloc[own] = numbers[first]
        columns["samples"][first] = np.count_nonzero(np.isin(status[samples], (SCORED, FAILED)))
        lost += max(0, columns["samples"][first] - len(own))
        if status[first] <= ABSENT:
            answers = [Sampled(answer[place], float(score[place])) for place in own]
            columns["score"][first] = mean_score(answers)
            columns["best"][first] = best_score(answers)
            columns["majority"][first] = majority_score(answers)
    lines = lines.assign(**columns)[stays]
    details = details.assign(line=details["line"].map(owner))
    details = details[details["line"] >= 0].sort_values(["line", "name", "value"], kind="stable")
    details = details.groupby(["line", "name"], observed=True, sort=False)["value"].mean().reset_index()
    of_samples: dict[int, list[Score]] = defaultdict(list)
    for number, own in zip(numbers.tolist(), owner.tolist(), strict=True):
        if own >= 0 and number in kept:
            of_samples[own].append(kept[number])
    notes = []
    answered = lines[lines["status"].isin((SCORED, FAILED))]
    most = answered.groupby([*SERIES, *FILE], observed=True)["samples"].transform("max")
    for (model, metric), some in answered.assign(most=most).groupby(["model", "metric"], observed=True):
        if fewer := int((some["samples"] < some["most"]).sum()):
            notes.append(
                f"{model}, {metric}: {fewer:,} of {len(some):,} examples have fewer samples than others of their file"
            )
    if lost:
        notes.append(
            f"{lost:,} samples of examples with other samples have failed, and are left out of the examples' scores"
        )
    return lines, details, dict(of_samples), notes


def _shared(lines: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the lines of examples that all models were given, for each file, metric and profile; and notes.

    So models with different samples of a file, or with lost outputs, are compared on the examples that they share.
    """
    table = [*FILE, "metric", "profile"]
    models = lines.groupby(table, observed=True)["model"].transform("nunique")
    is_shared = lines.groupby([*table, "example"], observed=True)["model"].transform("size") == models
    notes, every = [], lines.groupby(table, observed=True)
    for key in grouped(lines[~is_shared], table):
        some = every.get_group(key)
        first, by_model = some.iloc[0], some.groupby("model", observed=True).size()
        counts = ", ".join(f"{model} {count:,}" for model, count in by_model.items())
        label, asked = Series(*first[SERIES]).label, f"models were asked different examples ({counts})"
        if not (common := int(is_shared[some.index].sum()) // len(by_model)):
            raise ReleaseError(
                f"{label}, {first['file']}: {asked} and share none: scores of several samples or releases are mixed; "
                "score all models on one, or report each from a folder of its own"
            )
        notes.append(f"{first['file']}, {label}: {asked}; here are the {common:,} they share")
    return lines[is_shared], sorted(notes)

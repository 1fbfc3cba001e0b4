"""What models answered, and how the answers were scored, by example. Predictions are read again when they are shown."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from mmlongbench.errors import MMLongBenchError, ScoringError
from mmlongbench.io.files import MAX_BYTES
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.plugins import GROUPS
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.models.receipts import FAULTS
from mmlongbench.scoring.predictions import REASONS, Key, Prediction, Predictions, Problems, read_predictions
from mmlongbench.scoring.scores import ScoreLine, read_scores
from mmlongbench.web.viewer.index_lines import IndexRow
from mmlongbench.web.viewer.places import cache_folder, key_of
from mmlongbench.web.viewer.sources import Viewed, ViewedFile, code_of_modules

WRONG = 0.5
"""An example is wrong for a model if its score by the task's own metric is below this."""
_FIELDS = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class ShownScore:
    """The score of one answer by one metric."""

    metric: str
    profile: str
    score: float | None
    status: str
    failure: str
    sample: int
    is_own: bool
    """Whether the metric is the task's own."""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """One answer of a model to an example."""

    model: str
    sample: int
    text: str
    """The answer; empty if the model was not given the example."""
    skipped: str
    """Why the model was not given the example; empty if it was."""
    reasoning: str
    receipt: Sequence[tuple[str, str]]
    """What the run says about the call: (name, value)."""
    fault: str
    """What is wrong with the tokens of the call, in words; empty if nothing is."""
    scores: Sequence[ShownScore]


@dataclass(slots=True)
class Answers:
    """The predictions and scores that were given to the viewer."""

    viewed: Viewed
    models: tuple[str, ...] = ()
    """The names of models, in the order of the files."""
    notes: tuple[str, ...] = ()
    """What could not be read or scored."""
    predictions: Mapping[str, Predictions] = field(default_factory=dict)
    """The predictions of each model."""
    score_paths: tuple[Path, ...] = ()
    """The files and folders of the scores, those that were made here included."""
    shown_names: Mapping[str, str] = field(default_factory=dict)
    """The name of a model here, by its name in the scores that were given; without those that are the same."""
    scores: dict[tuple[int, Key], list[tuple[str, ShownScore]]] = field(default_factory=dict)
    """(model, score) of each example, by file and key."""
    of_unknown_files: list[tuple[str, str]] = field(default_factory=list)
    """(model, place) of each score of a file that is not viewed."""

    def of(self, file: ViewedFile, row: IndexRow) -> list[ShownAnswer]:
        """Return all answers to an example, in the order of the models."""
        key, found = key_of_row(row), list[ShownAnswer]()
        scored = self.scores.get((file.number, key), [])
        for model in self.models:
            own = [score for name, score in scored if name == model]
            read = self.predictions.get(model)
            queue = _queue(read, file, key) if read else []
            found += [_answer(model, each, own) for each in queue]
            if not queue and own:
                found.append(ShownAnswer(model, 0, "", "", "", (), "", own))
        return found

    def score(self, file: ViewedFile, row: IndexRow, model: str = "") -> float | None:
        """Return the score of an example by the task's own metric: the mean over samples, and over all models if none
        is named; None if it has none.
        """
        scored = self.scores.get((file.number, key_of_row(row)), ())
        own = [each.score for name, each in scored if each.is_own and each.score is not None and model in ("", name)]
        return sum(own) / len(own) if own else None

    def is_wrong(self, file: ViewedFile, row: IndexRow) -> bool:
        """Return whether a model is wrong."""
        scores = (self.score(file, row, model) for model in self.models)
        return any(score is not None and score < WRONG for score in scores)


def key_of_row(row: IndexRow) -> Key:
    """Return the key by which predictions name an example."""
    return row.id, row.kind, round(row.placement, 4) if row.placement is not None and row.kind else 0.0


def read_answers(
    viewed: Viewed,
    predictions: Sequence[Path] = (),
    scores: Sequence[Path] = (),
    tasks: TaskFiles = NO_TASK_FILES,
    progress: Progress | None = None,
) -> Answers:
    """Read predictions and scores. Predictions of a model without scores are scored, in a process of its own, by the
    metrics that need no judge; these scores are kept in the cache.

    Raises:
        MMLongBenchError: predictions or scores cannot be read.

    """
    found = Answers(viewed)
    read: dict[str, Predictions] = {}
    sources: dict[str, Path] = {}
    problems = Problems()
    for path in predictions:
        name = _free(_model(path), read)
        read[name], sources[name] = read_predictions([path], problems), path
    lines = [line for path in scores for line in read_scores(path)]
    notes = [
        f"predictions: {REASONS[reason]}: {each['count']:,}; the first: {each['first'][0]}"
        for reason, each in problems.summary().items()
    ]
    same, made_here = _shown_names({line.model for line in lines}, sources), list[Path]()
    for name, path in sources.items():
        if name not in same.values():
            folder = _score_folder(viewed, name, path)
            made, note = _scored(viewed, name, path, folder, tasks, progress or Progress(False))
            _add(found, viewed, made, {})
            made_here += [folder] if made else []
            notes += [note] if note else []
    found.predictions, found.score_paths, found.shown_names = read, (*scores, *made_here), same
    _add(found, viewed, lines, same)
    found.models = tuple(dict.fromkeys([*read, *(same.get(line.model, line.model) for line in lines)]))
    found.notes = tuple(notes)
    return found


def _shown_names(scored: Iterable[str], sources: Mapping[str, Path]) -> dict[str, str]:
    """Return the name under which predictions are shown, by the name of the model in the scores that were given.

    Raises:
        ScoringError: scores may belong to two files of predictions.

    """
    found: dict[str, str] = {}
    for model in sorted(scored):
        fits = [name for name, path in sources.items() if model in (name, _model(path))]
        fits = fits or [name for name, path in sources.items() if model == path.stem]
        if len(fits) > 1:
            raise ScoringError(
                f"--scores: has scores of {model}, and {len(fits)} of the predictions have this name "
                f"({', '.join(str(sources[name]) for name in fits)}): rename one, or leave out the scores"
            )
        found |= dict.fromkeys([model] if fits else [], "".join(fits))
    return found


def _add(found: Answers, viewed: Viewed, lines: Iterable[ScoreLine], same: Mapping[str, str]) -> None:
    for line in lines:
        file = viewed.aliases.get(line.file)
        if file is None:
            model = same.get(line.model, line.model)
            found.of_unknown_files.append((model, f"a score of {line.file}, {line.id}"))
            continue
        kind = "depth" if line.depth is not None else "permutation" if line.permutation is not None else ""
        value = line.depth if line.depth is not None else float(line.permutation or 0)
        score = ShownScore(line.metric, line.profile, line.score, line.status, line.failure, line.sample, line.is_own)
        key = (file.number, (line.id, kind, round(value, 4)))
        found.scores.setdefault(key, []).append((same.get(line.model, line.model), score))


def _score_folder(viewed: Viewed, name: str, path: Path) -> Path:
    return cache_folder() / "scores" / _score_key(viewed, name, path)


def _scored(
    viewed: Viewed, name: str, path: Path, folder: Path, tasks: TaskFiles, progress: Progress
) -> tuple[list[ScoreLine], str]:
    """Score predictions, or read the scores that were made before; return them, and what went wrong."""
    try:
        if not any(folder.glob("*.jsonl")):
            with progress.bar(f"scores: {name}", 1) as advance:
                for _ in each_done(1, score_file, [(viewed.path, name, path, folder, tasks)], [path.name]):
                    advance()
        return list(read_scores(folder)), ""
    except MMLongBenchError as error:
        return [], f"{path.name} is not scored: {error}"


def _score_key(viewed: Viewed, name: str, path: Path) -> str:
    """Return the key of scores: it changes with the predictions and their name, the public files, and the code of
    builders and metrics.
    """
    files = [path, *(sorted(path.rglob("*")) if path.is_dir() else ()), *(file.path for file in viewed.files)]
    metrics = code_of_modules(each.module for each in entry_points(group=GROUPS["metric"]))
    return key_of(files, name, viewed.lock_id, str(viewed.path.absolute()), viewed.code, metrics)


def score_file(release: Path, name: str, predictions: Path, folder: Path, tasks: TaskFiles) -> int:
    """Score predictions of a model in a process of its own.

    Raises:
        MMLongBenchError: they cannot be scored.

    """
    from mmlongbench.scoring.score_model import score_paths
    from mmlongbench.task.metric import Settings

    done = score_paths(
        release,
        [predictions],
        ["default"],
        Settings(),
        Progress(False),
        model=name,
        out=folder,
        is_partial=True,
        only_answered=True,
        keeps_reasoning=False,
        allows_stale=True,
        images=None,
        tokenizer=None,
        tasks=tasks,
    )
    return len(done.cells)


def _queue(read: Predictions, file: ViewedFile, key: Key) -> list[Prediction]:
    found: list[Prediction] = []
    for name in (file.name, *file.aliases):
        if name in read.by_file:
            found += read.by_file[name].get(key, [])
    return sorted(found, key=lambda each: each.sample)


def _answer(model: str, prediction: Prediction, scores: Sequence[ShownScore]) -> ShownAnswer:
    fields = _fields(prediction)
    own = [each for each in scores if each.sample == prediction.sample]
    said = prediction.text if prediction.text is not None else fields.get("prediction")
    return ShownAnswer(
        model=model,
        sample=prediction.sample,
        text=said if isinstance(said, str) else "",
        skipped=prediction.skipped,
        reasoning=str(fields.get("reasoning") or ""),
        receipt=_receipt(fields),
        fault=FAULTS.get(prediction.receipt, ""),
        scores=own,
    )


def _receipt(fields: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """Return what a line says about the call."""
    usage = fields.get("usage")
    said = dict(usage) if isinstance(usage, dict) else {}
    said |= {
        name: fields[name] for name in ("expected_tokens", "finish_reason", "seconds", "receipt") if name in fields
    }
    settings = fields.get("settings")
    said |= settings if isinstance(settings, dict) else {}
    return [(name.replace("_", " "), _value(value)) for name, value in said.items() if value is not None]


def _value(value: JsonValue) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value)


def _fields(prediction: Prediction) -> Mapping[str, JsonValue]:
    """Read the line of a prediction; it is empty for outputs of the public code."""
    if prediction.text is not None:
        return {}
    try:
        with prediction.path.open("rb") as file:
            file.seek(prediction.offset)
            return _FIELDS.validate_json(file.readline(MAX_BYTES))
    except (OSError, ValidationError):
        return {}


def _model(path: Path) -> str:
    """Return the name of the model of predictions, as `score` names it."""
    from mmlongbench.scoring.score_model import model_of

    return model_of(path)


def _free(name: str, taken: Iterable[str]) -> str:
    known, number, free = set(taken), 1, name
    while free in known:
        number += 1
        free = f"{name} ({number})"
    return free

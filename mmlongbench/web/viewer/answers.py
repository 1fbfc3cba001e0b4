"""What models answered, and how the answers were scored, by example. Predictions are read again when they are shown."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from mmlongbench.errors import MMLongBenchError, ScoringError
from mmlongbench.io.files import MAX_BYTES
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.plugins import GROUPS
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.models.receipts import FAULTS
from mmlongbench.scoring.predictions import REASONS, Key, Prediction, Predictions, Problems, read_predictions
from mmlongbench.scoring.scores import ScoreLine, read_scores
from mmlongbench.web.viewer.index import Index, IndexRow
from mmlongbench.web.viewer.viewed import Viewed, ViewedFile, cache_folder, code_of, key_of

WRONG = 0.5
"""An example is wrong for a model if its score by the task's own metric is below this."""
_FIELDS = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class ShownScore:
    """The score of one answer by one metric: what is kept in memory of a line of scores."""

    model: str
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
    scores: Sequence[ShownScore]
    sample: int = 0
    text: str = ""
    """The answer; empty if the model was not given the example."""
    skipped: str = ""
    """Why the model was not given the example; empty if it was."""
    reasoning: str = ""
    receipt: Sequence[tuple[str, str]] = ()
    """What the run says about the call: (name, value)."""
    fault: str = ""
    """What is wrong with the tokens of the call, in words; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The predictions and scores that were given to the viewer."""

    models: tuple[str, ...]
    predictions: Mapping[str, Predictions]
    scores: Mapping[tuple[int, Key], Sequence[ShownScore]]
    """The scores of each example, by the number of the file and by what names the example."""
    score_paths: tuple[Path, ...]
    """The files and folders of the scores, those that were made here included."""
    shown_names: Mapping[str, str]
    """The name of a model here, by its name in the scores that were given, if predictions have another."""
    notes: tuple[str, ...]
    """What could not be read or scored, or fits no example."""

    def of(self, file: ViewedFile, row: IndexRow) -> list[ShownAnswer]:
        """Return all answers to an example, in the order of the models."""
        key, answers = _key(row), list[ShownAnswer]()
        for model in self.models:
            scores = [score for score in self.scores.get((file.number, key), ()) if score.model == model]
            read = self.predictions.get(model)
            queues = [read.by_file[name].get(key, []) for name in file.names if name in read.by_file] if read else []
            given = sorted((each for queue in queues for each in queue), key=lambda each: each.sample)
            answers += [_answer(model, each, scores) for each in given]
            if scores and not given:
                answers.append(ShownAnswer(model, scores))
        return answers

    def score(self, file: ViewedFile, row: IndexRow, model: str) -> float | None:
        """Return the mean score of a model over its samples by the task's own metric; None if it has none."""
        scores = self.scores.get((file.number, _key(row)), ())
        own = [each.score for each in scores if each.is_own and each.score is not None and each.model == model]
        return sum(own) / len(own) if own else None

    def is_wrong(self, file: ViewedFile, row: IndexRow) -> bool:
        """Return whether a model is wrong."""
        scores = (self.score(file, row, model) for model in self.models)
        return any(score is not None and score < WRONG for score in scores)


def _key(row: IndexRow) -> Key:
    return row.id, row.kind, round(row.placement, 4) if row.placement is not None and row.kind else 0.0


def _answer(model: str, prediction: Prediction, scores: Sequence[ShownScore]) -> ShownAnswer:
    fields: Mapping[str, JsonValue] = {}
    if prediction.text is None:  # a line; an output of the public code has the answer alone
        try:
            with prediction.path.open("rb") as file:
                file.seek(prediction.offset)
                fields = _FIELDS.validate_json(file.readline(MAX_BYTES))
        except (OSError, ValidationError):
            fields = {}
    text = prediction.text if prediction.text is not None else fields.get("prediction")
    return ShownAnswer(
        model=model,
        scores=[each for each in scores if each.sample == prediction.sample],
        sample=prediction.sample,
        text=(text or "(empty answer)") if isinstance(text, str) else "",
        skipped=prediction.skipped,
        reasoning=str(fields.get("reasoning") or ""),
        receipt=_receipt(fields),
        fault=FAULTS.get(prediction.receipt, ""),
    )


def _receipt(fields: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """Return what a line says about the call."""
    usage, settings = fields.get("usage"), fields.get("settings")
    names = ("expected_tokens", "finish_reason", "seconds", "receipt")
    about = {
        **(usage if isinstance(usage, dict) else {}),
        **{name: fields[name] for name in names if name in fields},
        **(settings if isinstance(settings, dict) else {}),
    }
    receipt = []
    for name, value in about.items():
        if value is not None:
            text = f"{value:,}" if type(value) is int else value if isinstance(value, str) else json.dumps(value)
            receipt.append((name.replace("_", " "), text))
    return receipt


def read_answers(
    viewed: Viewed,
    index: Index,
    predictions: Sequence[Path],
    scores: Sequence[Path],
    tasks: TaskFiles,
    progress: Progress,
) -> Answers:
    """Read predictions and scores. Predictions of a model without scores are scored, in a process of its own, by the
    metrics that need no judge; these scores are kept in the cache.
    """
    read, sources, problems = dict[str, Predictions](), dict[str, Path](), Problems()
    for path in predictions:
        model, number = _model(path), 1
        name = model
        while name in read:
            number += 1
            name = f"{model} ({number})"
        read[name], sources[name] = read_predictions([path], problems), path
    lines = [line for path in scores for line in read_scores(path)]
    names = _shown_names({line.model for line in lines}, sources)
    notes = [f"predictions: {text}" for text in _in_words(problems)]
    made: list[Path] = []
    made_lines: list[ScoreLine] = []
    for name, path in sources.items():
        if name not in names.values():
            folder = _score_folder(viewed, name, path)
            try:
                if not any(folder.glob("*.jsonl")):
                    with progress.bar(f"scores: {name}", 1) as advance:
                        for _ in each_done(1, score_file, [(viewed.path, name, path, folder, tasks)], [path.name]):
                            advance()
                made_lines += read_scores(folder)
                made.append(folder)
            except MMLongBenchError as error:
                notes.append(f"{path.name} is not scored: {error}")
    found = defaultdict[tuple[int, Key], list[ShownScore]](list)
    unfit = defaultdict[str, Problems](Problems)
    named = [
        *((line, line.model) for line in made_lines),
        *((line, names.get(line.model, line.model)) for line in lines),
    ]
    for model, given in read.items():
        for name, queues in given.by_file.items():
            for each in (each for queue in queues.values() for each in queue if name not in viewed.by_name):
                unfit[model].add("unknown-file", f"{each} ({name})")
    for line, model in named:
        file = viewed.by_name.get(line.file)
        if file is None:
            unfit[model].add("unknown-file", f"a score of {line.file}, {line.id}")
            continue
        kind = "depth" if line.depth is not None else "permutation" if line.permutation is not None else ""
        placement = line.depth if line.depth is not None else float(line.permutation or 0)
        score = ShownScore(
            model, line.metric, line.profile, line.score, line.status, line.failure, line.sample, line.is_own
        )
        found[file.number, (line.id, kind, round(placement, 4))].append(score)
    notes += _unfit(viewed, index, read, found, unfit)
    models = tuple(dict.fromkeys([*read, *(model for _, model in named)]))
    return Answers(models, read, dict(found), (*scores, *made), names, tuple(notes))


def _unfit(
    viewed: Viewed,
    index: Index,
    predictions: Mapping[str, Predictions],
    scores: Mapping[tuple[int, Key], Sequence[ShownScore]],
    unfit: Mapping[str, Problems],
) -> list[str]:
    """Return a note for each reason why predictions or scores of a model fit no example; `unfit` has what is known to
    fit none, by model, and gets more.
    """
    fits, notes = Counter[str](), list[str]()
    for file in viewed.files:
        given = [
            (model, key, f"{each} ({key[0]})")
            for model, read in predictions.items()
            for name in file.names
            if name in read.by_file
            for key, queue in read.by_file[name].items()
            for each in queue
        ]
        given += [
            (score.model, key, f"a score of {file.name}, {key[0]}")
            for (number, key), group in scores.items()
            if number == file.number
            for score in group
        ]
        keys = {_key(row) for row in index.rows(file.number)} if given else set[Key]()
        ids = {id for id, _, _ in keys}
        for model, key, place in given:
            if key in keys:
                fits[model] += 1
            else:
                unfit[model].add("wrong-placement" if key[0] in ids else "unknown-id", place)
    for model, problems in unfit.items():
        words = [f"{model}: {text}" for text in _in_words(problems)]
        if not fits[model]:
            raise ScoringError(f"{words[0]}. Nothing of {model} fits; give what was made for {viewed.name}")
        notes += words
    return notes


def _in_words(problems: Problems) -> list[str]:
    return [
        f"{REASONS[reason]}: {found['count']:,}; the first: {found['first'][0]}"
        for reason, found in problems.summary().items()
    ]


def _shown_names(scored: Iterable[str], sources: Mapping[str, Path]) -> dict[str, str]:
    """Return the name under which predictions are shown, by the name of the model in the scores that were given."""
    names: dict[str, str] = {}
    for model in sorted(scored):
        fits = [name for name, path in sources.items() if model in (name, _model(path))]
        fits = fits or [name for name, path in sources.items() if model == path.stem]
        if len(fits) > 1:
            raise ScoringError(
                f"--scores: has scores of {model}, and {len(fits)} of the predictions have this name "
                f"({', '.join(str(sources[name]) for name in fits)}): rename one, or leave out the scores"
            )
        if fits:
            names[model] = fits[0]
    return names


def _score_folder(viewed: Viewed, name: str, path: Path) -> Path:
    """Return the folder of scores in the cache. It changes with the predictions and their name, the public files, and
    the code of builders and metrics.
    """
    files = [path, *(sorted(path.rglob("*")) if path.is_dir() else ()), *(file.path for file in viewed.files)]
    metrics = code_of(metric.module for metric in entry_points(group=GROUPS["metric"]))
    key = key_of(files, name, viewed.lock_id, str(viewed.path.absolute()), viewed.code, metrics)
    return cache_folder() / "scores" / key


def score_file(release: Path, name: str, predictions: Path, folder: Path, tasks: TaskFiles) -> None:
    """Score predictions of a model in a process of its own."""
    from mmlongbench.scoring.score_model import score_paths
    from mmlongbench.task.metric import Settings

    score_paths(
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


def _model(path: Path) -> str:
    """Return the name of the model of predictions, as `score` names it."""
    from mmlongbench.scoring.score_model import model_of

    return model_of(path)

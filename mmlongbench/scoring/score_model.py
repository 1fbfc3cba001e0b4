"""Scores a model, given the paths of its predictions and of a release, or one example at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from mmlongbench.errors import ScoringError, nearest
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.plugins import metric_type
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.layout import DATA, IMAGES
from mmlongbench.scoring.joining import (
    ExampleDigests,
    ScorableFile,
    builder_name,
    open_scorable,
    records_of,
    scorable_files,
)
from mmlongbench.scoring.predictions import Key, Problems, key_of, read_predictions
from mmlongbench.scoring.reasoning import without_reasoning
from mmlongbench.scoring.running import Run, Scores, score, score_of, why_outside
from mmlongbench.scoring.scores import refuse_another_model
from mmlongbench.task.builder import scoring_input
from mmlongbench.task.metric import Metric, Score, ScoringInput, Settings


def score_model(
    run: Run,
    release: Path,
    predictions: Sequence[Path],
    out: Path | None,
    progress: Progress,
    *,
    images: Path | None = None,
    tokenizer: str | None = None,
    tasks: TaskFiles = NO_TASK_FILES,
    digests: ExampleDigests | None = None,
) -> Scores:
    """Score the predictions of a model; return the scores.

    Args:
        run: what to score, and how.
        release: a release of this engine, or public files of other origin.
        predictions: files, or folders of them.
        out: the scores file; None: no file is written.
        progress: shows the progress bar.
        images: the folder of images, if it is not beside the public files.
        tokenizer: the path of the tokenizer that the release was counted with, if this tokenizer is a file.
        tasks: the task files that the release was built with.
        digests: the opened release with the digests of its examples, if it is scored several times; None: it is opened
            here.

    Raises:
        ScoringError: no dataset declares a requested metric, there are no predictions, two outputs of the public code
            may belong to one file, predictions were made for other examples or have several contexts, or `out` holds
            other scores that must not be replaced (see `refuse_other_choices`).
        ReleaseError: the release cannot be read.

    """
    problems = Problems()
    if out:
        refuse_another_model(out, run.model)
    if digests is None:
        is_judged = run.settings.judge is not None
        digests = ExampleDigests(open_scorable(release, images, tokenizer, tasks, with_images=is_judged))
        if is_judged and digests.opened.is_publication and run.settings.images is None:
            shown = digests.opened.path / IMAGES
            run = replace(run, settings=replace(run.settings, images=shown))
    with read_predictions(predictions, problems) as read:
        return score(run, digests, read, out, problems, progress)


def score_paths(
    release: Path,
    predictions: Sequence[Path],
    metrics: Sequence[str],
    settings: Settings,
    progress: Progress,
    *,
    model: str | None,
    out: Path | None,
    is_partial: bool,
    only_answered: bool,
    keeps_reasoning: bool,
    allows_stale: bool,
    images: Path | None,
    tokenizer: str | None,
    tasks: TaskFiles,
) -> Scores:
    """Score the predictions of a model; return the scores as values (see `mmlongbench.score`)."""
    if not predictions:
        raise ScoringError("no predictions are given")
    if missing := [path for path in predictions if not path.exists()]:
        raise ScoringError(f"{missing[0]}: no such file or folder of predictions")
    names = tuple(dict.fromkeys(stripped for name in metrics if (stripped := name.strip())))
    if not names:
        raise ScoringError("metrics: expected at least one name, such as 'default'; `mmlongbench list` shows all")
    if images and not images.is_dir():
        raise ScoringError(f"{images}: no such folder of images")
    filled = filled_settings(release, settings, images)
    is_dry = filled.judge is not None and filled.judge.is_dry
    run = Run(
        model or model_of(predictions[0]),
        names,
        filled,
        is_partial,
        keeps_reasoning,
        is_dry,
        allows_stale,
        only_answered,
    )
    file = scores_file(out, run) if out and not is_dry else None
    return score_model(run, release, predictions, file, progress, images=images, tokenizer=tokenizer, tasks=tasks)


def model_of(predictions: Path) -> str:
    """Return the name of a model: the name of its folder of predictions (Qwen2.5-VL-7B-Instruct), or of its file of
    predictions without the ending.
    """
    path = predictions.resolve()
    return path.name if path.is_dir() else path.stem


def scores_file(folder: Path, run: Run) -> Path:
    """Return the path of the scores file in a folder. The name of the file contains the model, the metrics and the
    choices of the run, so that the file does not replace other scores.
    """
    profile = run.settings.profile
    choices = [*([profile] if profile else []), *(["kept"] if run.keeps_reasoning else [])]
    return folder / ".".join([run.model.replace("/", "_"), "+".join(run.metrics), *choices, "jsonl"])


def filled_settings(release: Path, settings: Settings, images: Path | None = None) -> Settings:
    """Return the settings with the folders of the release, where they name no others."""
    shown = settings.images or images or images_of(release)
    return replace(settings, images=shown, data=settings.data or data_of(release))


def images_of(release: Path) -> Path | None:
    """Return the folder `mmlb_image/` in `release`, or else beside `release`; None if neither exists."""
    return next((path for path in (release / IMAGES, release.parent / IMAGES) if path.is_dir()), None)


def data_of(release: Path) -> Path | None:
    """Return the folder of public files: `mmlb_data/` in `release`, or else `release`; None if neither is a folder."""
    return next((path for path in (release / DATA, release) if path.is_dir()), None)


@dataclass(frozen=True, slots=True)
class _File:
    """A public file, with the examples that were read from it."""

    file: ScorableFile
    metric: Metric
    inputs: dict[Key, ScoringInput] = field(default_factory=dict)
    """The input of the metric for each example, without a prediction. Contexts are not in it."""


class Scorer:
    """Scores one example of a release at a time, by the metric of its dataset. Threads can share it.

    A file is read once, when the first of its examples is scored. Of each example, memory then holds what its metric
    needs: the answer and the question, but not the context.
    """

    def __init__(
        self,
        release: Path,
        settings: Settings | None = None,
        *,
        keeps_reasoning: bool = False,
        tasks: TaskFiles = NO_TASK_FILES,
    ) -> None:
        """Open a release.

        Raises:
            ReleaseError: the release cannot be read.

        """
        self._release = release
        self._settings = filled_settings(release, settings or Settings())
        self._keeps_reasoning = keeps_reasoning
        files = scorable_files(open_scorable(release, None, None, tasks))
        self._known = {name: file for file in files for name in file.names}
        self._opened: dict[str, _File] = {}
        self._lock = Lock()

    def score(self, key: Mapping[str, object], prediction: str, place: int | None = None) -> Score:
        """Return the score of a prediction.

        Args:
            key: the fields that name the example, as in a line of predictions: `file`, `id`, and `depth` or
                `permutation` if it has one. Other fields are ignored.
            prediction: the output of the model; reasoning is left out, as `mmlongbench score` does.
            place: how many examples of the file come before this one among those that the model is given; None: all
                that come before it in the file. Visual haystacks take it as a guess if the model gives no answer.

        Returns:
            The score. Its `score` is None, and `failure` says why, if the example cannot be scored.

        Raises:
            ScoringError: the release has no such example, or a metric needs a package that is not installed.
            PluginError: a metric is not installed, or is broken.

        """
        said = prediction if self._keeps_reasoning else without_reasoning(prediction).answer
        with self._lock:
            opened = self._file(key.get("file"))
            asked = _input(opened, key)
            asked = replace(asked, prediction=said, place=asked.place if place is None else place)
            if why := why_outside(opened.metric, asked):
                return Score(None, failure=why)
            return score_of(opened.metric, asked)

    def close(self) -> None:
        """Close the metrics."""
        for opened in self._opened.values():
            opened.metric.close()
        self._opened.clear()

    def _file(self, name: object) -> _File:
        if not isinstance(name, str) or name not in self._known:
            hint = nearest(str(name), self._known)
            raise ScoringError(f"{self._release.name}: no public file {name!r:.200} that can be scored{hint}")
        file = self._known[name]
        if file.file.name not in self._opened:
            self._opened[file.file.name] = self._read(file)
        return self._opened[file.file.name]

    def _read(self, file: ScorableFile) -> _File:
        spec = file.builder.spec
        with calling("metric", spec.metric, "__init__()"):
            opened = _File(file, metric_type(spec.metric)(self._settings))
        name = builder_name(file)
        for place, (record, key) in enumerate(records_of(file)):
            if key in opened.inputs:
                raise ScoringError(
                    f"{file.file.name}: {key[0]!r} is the id of several examples that nothing tells apart; use "
                    "`mmlongbench score`, which takes predictions in the order of the file"
                )
            with calling("builder", name, "a method that scoring calls", about=f"example {record.get('id')!r}"):
                opened.inputs[key] = scoring_input(file.builder, record, file.file.name, place=place)
        return opened


def _input(opened: _File, key: Mapping[str, object]) -> ScoringInput:
    """Return the input of the metric for an example, without the prediction."""
    name = opened.file.file.name
    try:
        found = key_of(key)
    except ValueError as error:
        raise ScoringError(f"{name}: the key of an example: {error}") from error
    if found not in opened.inputs:
        id, kind, value = found
        placed = f" at {kind} {value:g}" if kind else ""
        raise ScoringError(f"{name}: no example {id!r:.200}{placed}; a key is the `key` of an example of this release")
    return opened.inputs[found]

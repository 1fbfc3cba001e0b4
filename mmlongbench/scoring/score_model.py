"""Scores a model, given the paths of its predictions and of a release, or one example at a time."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from mmlongbench.errors import ScoringError, nearest
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import calling, metric_of
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
from mmlongbench.scoring.results import Scores
from mmlongbench.scoring.running import Run, score, score_of, why_outside
from mmlongbench.scoring.scores import refuse_other_scores
from mmlongbench.task.builder import scoring_input
from mmlongbench.task.metric import Metric, Score, ScoringInput, Settings

_LONGEST = 180
"""The most bytes of a scores file's name, without its ending: file systems take 255, and metrics have parameters."""


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
    """Score the predictions of a model (files, or folders of them), and write them to the scores file `out`. `digests`
    is the opened release, if it is scored several times. For the other arguments, and for errors, see
    `mmlongbench.score`.
    """
    problems = Problems()
    if digests is None:
        is_judged = run.settings.judge is not None
        digests = ExampleDigests(open_scorable(release, images, tokenizer, tasks, with_images=is_judged))
        if is_judged and digests.opened.is_publication and run.settings.images is None:
            shown = digests.opened.path / IMAGES
            run = replace(run, settings=replace(run.settings, images=shown))
    if out:
        refuse_other_scores(out, run.model, digests.lock, replaces=run.replaces)
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
    replaces: bool = False,
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
    run = Run(
        model=model or model_of(predictions[0]),
        metrics=names,
        settings=filled_settings(release, settings, images),
        is_partial=is_partial,
        keeps_reasoning=keeps_reasoning,
        allows_stale=allows_stale,
        only_answered=only_answered,
        replaces=replaces,
    )
    # The name of the file has the model, the metrics and the choices, so that it does not replace other scores.
    choices = [*([settings.profile] if settings.profile else []), *(["kept"] if keeps_reasoning else [])]
    name = ".".join([run.model, "+".join(names), *choices]).replace("/", "_")
    in_bytes = name.encode(errors="surrogatepass")  # a folder's name may hold bytes that are no UTF-8
    if len(in_bytes) > _LONGEST:
        name = f"{in_bytes[:_LONGEST].decode(errors='ignore')}.{hashlib.sha256(in_bytes).hexdigest()[:16]}"
    file = out / f"{name}.jsonl" if out and not run.is_dry else None
    return score_model(run, release, predictions, file, progress, images=images, tokenizer=tokenizer, tasks=tasks)


def model_of(predictions: Path) -> str:
    """Return the name of a model: the name of its folder of predictions (Qwen2.5-VL-7B-Instruct), or of its file of
    predictions without the ending.
    """
    path = predictions.resolve()
    return path.name if path.is_dir() else path.stem


def filled_settings(release: Path, settings: Settings, images: Path | None = None) -> Settings:
    """Return the settings with the folders of the release, where they name no others: `mmlb_image/` in it or beside it,
    and `mmlb_data/` in it, or else the release itself.
    """
    pictures = next((path for path in (release / IMAGES, release.parent / IMAGES) if path.is_dir()), None)
    data = next((path for path in (release / DATA, release) if path.is_dir()), None)
    return replace(settings, images=settings.images or images or pictures, data=settings.data or data)


@dataclass(frozen=True, slots=True)
class _File:
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
        """Open a release."""
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
            name = opened.file.file.name
            try:
                found = key_of(key)
            except ValueError as error:
                raise ScoringError(f"{name}: the key of an example: {error}") from error
            if found not in opened.inputs:
                id, kind, value = found
                example = f"no example {id!r:.200}{f' at {kind} {value:g}' if kind else ''}"
                raise ScoringError(f"{name}: {example}; a key is the `key` of an example of this release")
            asked = opened.inputs[found]
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
        if file.file.name in self._opened:
            return self._opened[file.file.name]
        spec = file.builder.spec
        with calling("metric", spec.metric, "__init__()"):
            opened = _File(file, metric_of(file.builder, spec.metric)(self._settings))
        for place, (record, key) in enumerate(records_of(file)):
            if key in opened.inputs:
                raise ScoringError(
                    f"{file.file.name}: {key[0]!r} is the id of several examples that nothing tells apart; use "
                    "`mmlongbench score`, which takes predictions in the order of the file"
                )
            about = f"example {record.get('id')!r}"
            with calling("builder", builder_name(file), "a method that scoring calls", about=about):
                opened.inputs[key] = scoring_input(file.builder, record, file.file.name, place=place)
        self._opened[file.file.name] = opened
        return opened

"""Scores a model, given the paths of its predictions and of a release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mmlongbench.errors import ScoringError
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.layout import DATA, IMAGES
from mmlongbench.scoring.joining import open_scorable
from mmlongbench.scoring.predictions import read_predictions
from mmlongbench.scoring.problems import Problems
from mmlongbench.scoring.replacing import refuse_another_model
from mmlongbench.scoring.running import Outcome, Run, score
from mmlongbench.scoring.staleness import ExampleDigests
from mmlongbench.scoring.tallies import Tally
from mmlongbench.task.metric import Provenance, Settings


@dataclass(frozen=True, slots=True)
class CellScore:
    """The score of one dataset at one length by one metric."""

    metric: str
    """The name of the metric."""
    dataset: str
    """The name of the dataset."""
    length: int
    """The length in tokens."""
    score: float | None
    """The mean, from 0 to 1; an example without a prediction counts as 0. None if an example was skipped, or if no
    example could be scored."""
    score_of_others: float | None
    """The mean over the examples that were not skipped; None if none of them could be scored."""
    examples: int
    """The number of examples."""
    absent: int
    """The number of examples without a prediction."""
    failed: int
    """The number of examples that could not be scored; these examples are left out of the mean."""
    skipped: int
    """The number of examples that the model cannot be given."""
    first_failure: str
    """The first example that could not be scored, and why; empty if there is none."""
    further: Mapping[str, float]
    """Figures of the metric that are not means of examples, by name."""
    samples: int = 1
    """The maximum number of samples of an example. The score of an example with several samples is their mean."""
    best: float | None = None
    """The mean over the examples of the best score of their samples; None if there is no `score`, or no example has
    several samples."""
    majority: float | None = None
    """The mean over the examples of the score of their most frequent answer; None where `best` is None."""
    failed_samples: int = 0
    """The number of samples that could not be scored, of examples with a score."""


@dataclass(frozen=True, slots=True)
class PredictionProblem:
    """A kind of problem of predictions, and how often it was found."""

    reason: str
    """The name of the kind, such as `unknown-id`; `REASONS` describes each kind."""
    count: int
    """How often it was found."""
    first: tuple[str, ...]
    """The first places where it was found."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a model on a release."""

    model: str
    """The model whose predictions were scored."""
    file: Path | None
    """The file with a line for each example and metric, which a report reads; None if no file was requested, for a dry
    run, or if no prediction fits an example."""
    cells: tuple[CellScore, ...]
    """A score for each metric, dataset and length; empty for a dry run, or if no prediction fits an example."""
    problems: tuple[PredictionProblem, ...]
    """The problems of predictions; empty if there are none."""
    profiles: Mapping[str, Provenance]
    """Whose rules the scores of each metric follow."""
    reasoning: Mapping[str, int]
    """How many predictions had reasoning, by what was done with it."""
    skipped: Mapping[str, int]
    """How many examples the model cannot be given, by reason."""
    usage: Mapping[str, Mapping[str, float]]
    """The calls, tokens and failures of each metric that uses a judge."""
    notes: tuple[str, ...]
    """Sentences that a reader of the scores must know."""


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
) -> tuple[Outcome, Problems]:
    """Score the predictions of a model; return the result and the problems of the predictions.

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
            other scores that must not be replaced (see `replacing`).
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
        return score(run, digests, read, out, problems, progress), problems


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
    outcome, problems = score_model(
        run, release, predictions, file, progress, images=images, tokenizer=tokenizer, tasks=tasks
    )
    return scores_of(run, outcome, problems, file)


def scores_of(run: Run, outcome: Outcome, problems: Problems, out: Path | None) -> Scores:
    """Return the result of scoring as values."""
    found = problems.summary()
    return Scores(
        model=run.model,
        file=out if outcome.fits else None,
        cells=tuple(_cell(*key, tally) for key, tally in outcome.tallies.cells.items()),
        problems=tuple(
            PredictionProblem(reason, each["count"], tuple(each["first"])) for reason, each in found.items()
        ),
        profiles=outcome.provenances,
        reasoning=outcome.reasoning,
        skipped=outcome.skipped,
        usage=outcome.usage,
        notes=tuple(outcome.notes),
    )


def _cell(metric: str, dataset: str, length: int, tally: Tally) -> CellScore:
    return CellScore(
        metric,
        dataset,
        length,
        tally.mean,
        tally.mean_of_others,
        tally.examples,
        tally.absent,
        tally.failed,
        tally.skipped,
        tally.first_failure,
        tally.further,
        tally.samples,
        tally.best if tally.samples > 1 else None,
        tally.majority if tally.samples > 1 else None,
        tally.failed_samples,
    )


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

"""The construction engine for long-context vision-language benchmarks: `import mmlongbench as mm`.

- Make a release: `fetch` downloads its sources, `plan` forecasts it, `build` makes it from a manifest, and `check`
  holds its tasks to the rules that every task keeps.
- Look at it: `open_release` reads its examples, `diff` compares two releases.
- Trust it: `audit` counts the examples again, `verify` checks the files, `find_shortcuts` and `compare_contexts` say
  whether it can be solved without looking.
- Run models: `run` asks a model, `export` writes examples in the form of other tools, `collect` reads what these
  return, and `export_mix` writes examples to train on.
- Score: `score` scores predictions, `scorer` one at a time, for a program that runs the model itself.

Nothing is printed: results are values, and every error that a user can fix is an exception, a subclass of
`MMLongBenchError`. The command line calls the same functions. To write builders, readers or metrics, use
`import mmlongbench.task as mt`.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmlongbench.building.build import Built
    from mmlongbench.building.executors import Executor
    from mmlongbench.building.forecast import CellForecast, DatasetForecast, Forecast
    from mmlongbench.building.shortfalls import Shortfall
    from mmlongbench.checking.findings import Checked, CheckedDataset, Finding
    from mmlongbench.errors import (
        BuildError,
        DraftError,
        Fault,
        FetchError,
        ManifestError,
        MMLongBenchError,
        NotHereError,
        PluginError,
        ReleaseError,
        ScoringError,
        SourceError,
        StrictStop,
        TooFewKept,
    )
    from mmlongbench.exports.collecting import Collected, ResultProblem
    from mmlongbench.exports.target import Exported
    from mmlongbench.io.progress import Progress
    from mmlongbench.manifest.fetch import Fetched, FetchedPlace, LeftToDo
    from mmlongbench.manifest.mix import MixSpec
    from mmlongbench.manifest.model import DatasetSpec, Manifest
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.messages import Messages
    from mmlongbench.mixes.mixing import Mixed, MixReceipt
    from mmlongbench.models.receipts import Receipts
    from mmlongbench.models.run import RunResult
    from mmlongbench.models.settings import EndpointError, EndpointSettings, RunOptions
    from mmlongbench.prompt import Image, Prompt
    from mmlongbench.release.diff import FileDifference, ReleaseDifference
    from mmlongbench.release.file_audit import AuditLine, ModelFigures, ProblemFigures, RemarkFigures, SpreadFigures
    from mmlongbench.release.lock import CellCounts, DatasetCounts, Lock, LockedFile, QuestionCounts
    from mmlongbench.release.release import Example, Release
    from mmlongbench.release.selection import Selection
    from mmlongbench.release.verify import Problem, Verified
    from mmlongbench.scoring.results import CellScore, PredictionProblem, Scores
    from mmlongbench.scoring.score_model import Scorer
    from mmlongbench.shortcuts.audit import ShortcutAudit
    from mmlongbench.shortcuts.blind import BlindQuestion
    from mmlongbench.shortcuts.contexts import ContextAudit, ContextRow
    from mmlongbench.shortcuts.findings import ShortcutFinding
    from mmlongbench.task.metric import Evidence, Judge, Provenance, Score, Settings
    from tokenization import TokenCount

__all__ = ["audit", "build", "check", "collect", "compare_contexts", "diff", "export", "export_mix", "fetch"]
__all__ += ["find_shortcuts", "open_release", "plan", "run", "score", "scorer", "verify"]
# Manifests, builds and checks.
__all__ += ["Built", "CellForecast", "Checked", "CheckedDataset", "DatasetForecast", "DatasetSpec", "Fetched"]
__all__ += ["FetchedPlace", "Finding", "Forecast", "LeftToDo", "Manifest", "Shortfall", "TaskFiles"]
# Releases: what is in them, and what is wrong or differs.
__all__ += ["AuditLine", "CellCounts", "DatasetCounts", "Evidence", "Example", "FileDifference", "Image", "Lock"]
__all__ += ["LockedFile", "Messages", "ModelFigures", "Problem", "ProblemFigures", "Prompt", "QuestionCounts"]
__all__ += ["Release", "ReleaseDifference", "RemarkFigures", "SpreadFigures", "TokenCount", "Verified"]
# Models, exports and mixes.
__all__ += ["Collected", "EndpointSettings", "Exported", "MixReceipt", "MixSpec", "Mixed", "Receipts"]
__all__ += ["ResultProblem", "RunOptions", "RunResult"]
# Scores and shortcuts.
__all__ += ["BlindQuestion", "CellScore", "ContextAudit", "ContextRow", "Judge", "PredictionProblem", "Provenance"]
__all__ += ["Score", "Scorer", "Scores", "Settings", "ShortcutAudit", "ShortcutFinding"]
# Errors.
__all__ += ["BuildError", "DraftError", "EndpointError", "Fault", "FetchError", "MMLongBenchError", "ManifestError"]
__all__ += ["NotHereError", "PluginError", "ReleaseError", "ScoringError", "SourceError", "StrictStop", "TooFewKept"]


def build(
    manifest: "str | Path | Manifest",
    out: str | Path,
    *,
    overrides: Mapping[str, object] | None = None,
    data: str | Path | None = None,
    lengths: str | int | Sequence[str | int] | None = None,
    limit: int | None = None,
    strict: bool = False,
    min_kept: float = 0.0,
    restart: bool = False,
    workers: int = 1,
    executor: "Executor | None" = None,
    progress: bool | None = False,
) -> "Built":
    """Build a release. A build that was stopped continues where it stopped, and gives the same bytes.

    If the manifest or its sources changed since a build was stopped, it starts again if only cheap work would be lost;
    otherwise it is refused. A finished release is extended if lengths, datasets or questions were added.

    Args:
        manifest: the path of a file, the name of an installed manifest, or a `Manifest`.
        out: the folder of the release, which is new or holds a build to continue; or a URL that fsspec knows.
        overrides: values that replace values of a manifest's file. A key is `key` or `dataset.key`, as in
            `{"source.documents": "pdfs"}`; `{"source": {"documents": "pdfs"}}` replaces a whole source. Paths are
            relative to the current folder.
        data: the folder that relative paths of sources in the manifest are in; by default the folder of the manifest.
        lengths: build these lengths instead of the manifest's: `8192`, `"8K,32K"`, or `["8K", 32768]`.
        limit: the maximum number of questions of each dataset; a dataset with more is sampled.
        strict: stop at the first reject.
        min_kept: the smallest share of its questions that each dataset must keep at each length, from 0 to 1. Only kept
            and rejected rows count, not rows that are skipped or not sampled.
        restart: discard an unfinished build in the folder first. A finished release is never discarded.
        workers: the number of processes; it does not change the bytes. With several, a script needs
            `if __name__ == "__main__":`.
        executor: an object that runs the work, instead of `workers` processes of this machine.
        progress: whether to show bars on standard error; None: only if it is a terminal.

    Returns:
        The lock and the folder of the release. The counts of the lock say what was kept and rejected.

    Raises:
        ManifestError: the manifest, or an argument, cannot be used.
        PluginError: a builder, reader or metric is not installed, or is broken.
        SourceError: a source cannot be read.
        BuildError: the folder cannot be used, or a source changed during the build.
        DraftError: a builder broke its contract.
        StrictStop: something was rejected, and `strict` is true.
        TooFewKept: a dataset kept too few of its questions; the release is not finished. A build with a smaller
            `min_kept` goes on.

    """
    from dataclasses import replace

    from mmlongbench.building.build import Demands
    from mmlongbench.building.build import build as run
    from mmlongbench.building.executors import LocalExecutor
    from mmlongbench.building.remote_release import placed, remote_of
    from mmlongbench.errors import ManifestError
    from mmlongbench.manifest.loading import chosen_manifest

    _at_least_1("workers", workers, ManifestError)
    if not isinstance(min_kept, int | float) or isinstance(min_kept, bool) or not 0 <= min_kept <= 1:
        raise ManifestError(f"min_kept {min_kept!r}: expected a share from 0 to 1")
    if isinstance(out, Path) or not out.strip():
        _path(out, "out", ManifestError)
    loaded = chosen_manifest(manifest, overrides, lengths, limit, data)
    chosen = executor or LocalExecutor(workers, _bars(progress))
    with placed(str(out), chosen) as (folder, spread):
        built = run(loaded, folder, spread, Demands(strict, min_kept), is_restart=restart)
    return replace(built, out=str(out) if remote_of(str(out)) else Path(out))


def plan(
    manifest: "str | Path | Manifest",
    *,
    overrides: Mapping[str, object] | None = None,
    data: str | Path | None = None,
    lengths: str | int | Sequence[str | int] | None = None,
    limit: int | None = None,
    probe: int = 5,
    workers: int = 1,
    progress: bool | None = False,
) -> "Forecast":
    """Forecast a build: questions, examples, images, disk, time, and the role of the units that run out at each length.

    Sources are read, and a few questions are packed; nothing is kept.

    Args:
        manifest, overrides, data, lengths, limit, workers, progress: see `build`.
        probe: how many questions of each dataset are packed.

    Returns:
        A forecast of each dataset. If a dataset cannot be built, its `problem` says why.

    Raises:
        ManifestError: the manifest, or an argument, cannot be used.

    """
    from contextlib import closing

    from mmlongbench.building.executors import LocalExecutor
    from mmlongbench.building.forecast import Forecast, forecast
    from mmlongbench.errors import ManifestError
    from mmlongbench.manifest.loading import chosen_manifest

    _at_least_1("probe", probe, ManifestError)
    _at_least_1("workers", workers, ManifestError)
    loaded = chosen_manifest(manifest, overrides, lengths, limit, data)
    with closing(LocalExecutor(workers, _bars(progress))) as executor:
        return Forecast(tuple(forecast(loaded, executor, probe)))


def check(
    manifest: "str | Path | Manifest",
    *,
    overrides: Mapping[str, object] | None = None,
    data: str | Path | None = None,
    lengths: str | int | Sequence[str | int] | None = None,
    limit: int = 5,
    progress: bool | None = False,
) -> "Checked":
    """Hold the tasks of a manifest to the rules that every task keeps, such as that a draft is the same each time it
    is made, and that prompts come back from records.

    Every row is drafted, and some are packed at every length. A small release of each dataset, at the three shortest
    lengths, is built in a temporary folder; then another process audits it and builds it again.

    Args:
        manifest, overrides, data, progress: see `build`.
        lengths: the lengths at which examples are packed; None: those of the manifest, or its only one and the double
            of it.
        limit: how many questions of each dataset are packed.

    Returns:
        A finding for each rule and dataset. If its `failures` are empty, all holds.

    Raises:
        ManifestError: the manifest, or an argument, cannot be used.
        PluginError: a builder, reader or metric is not installed, or is broken.
        SourceError: a source cannot be read.

    """
    from mmlongbench.checking.check import check as run
    from mmlongbench.manifest.loading import chosen_manifest

    loaded = chosen_manifest(manifest, overrides, lengths, None, data)
    return run(loaded, _bars(progress), limit=limit, has_one_length=lengths is not None)


def fetch(
    manifest: "str | Path | Manifest",
    to: str | Path,
    *,
    only: str | Sequence[str] = (),
    update: bool = False,
    progress: bool | None = False,
) -> "Fetched":
    """Download the sources of a manifest that a program may download, unless they are there already.

    Args:
        manifest, progress: see `build`.
        to: the data folder, which `build(..., data=to)` then reads.
        only: the names of datasets; empty for all of them.
        update: whether newer files replace downloaded ones whose place has changed since then.

    Returns:
        What was downloaded from each place, why files are not there, and what is left to do by hand.

    Raises:
        ManifestError: the manifest, or an argument, cannot be used.
        FetchError: there is no room, or the folder has a damaged record of downloads.
        BuildError: another process downloads into the folder.

    """
    from mmlongbench.errors import ManifestError
    from mmlongbench.manifest.fetch import fetch as run
    from mmlongbench.manifest.loading import chosen_manifest

    loaded = chosen_manifest(manifest, None, None, None)
    names = (only,) if isinstance(only, str) else tuple(only)
    return run(loaded, _path(to, "to", ManifestError), only=names, update=update, progress=_bars(progress))


def open_release(
    path: str | Path, *, variant: str = "", tasks: "str | Path | Sequence[str | Path] | TaskFiles" = ()
) -> "Release":
    """Open a release of this engine, or a folder that `publish` wrote, to read its lock and its examples.

    Args:
        path: its folder. The files of a publication are made again in the user's cache when it is first opened.
        variant: the name of another form of the prompts that tasks offer, such as `oracle`; examples have this form.
        tasks: the task files that the release was built with, if it has any; their code runs. A `TaskFiles` may allow
            files that have changed.

    Returns:
        The release. Its files are read when examples are requested; no image is opened.

    Raises:
        ReleaseError: there is no lock, or it cannot be read.
        PluginError: a builder that the lock names is not installed, or is broken.
        DraftError: a builder cannot read a record. It is raised when examples are requested.

    """
    from mmlongbench.release.release import open_release as run

    return run(_path(path, "the release"), _tasks(tasks), variant)


def audit(
    paths: str | Path | Sequence[str | Path],
    *,
    images: str | Path | None = None,
    tokenizer: str | Path | None = None,
    variant: str = "",
    models: str | Sequence[str] = (),
    windows: Mapping[str, int | str] | None = None,
    text_tokenizers: Mapping[str, str | Path] | None = None,
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
    workers: int = 1,
    progress: bool | None = False,
) -> "tuple[AuditLine, ...]":
    """Count every example again, from the records and the headers of the images alone.

    Args:
        paths: a release, or public files that others made, such as a download.
        images: the folder that the image paths of public files start from; by default `mmlb_image/` beside
            `mmlb_data/`.
        tokenizer: the tokenizer that the release was counted with, if that is a file.
        variant: count another form of the prompts, such as `oracle`.
        models: the names of models; each example is also counted in the tokens of these models. `"all"` means all
            models.
        windows: the window of each model in tokens, by the model's name, such as `{"qwen2.5-vl": "128K"}`.
        text_tokenizers: the path or hub id of each model's tokenizer, by the model's name.
        tasks: see `open_release`.
        workers, progress: see `build`.

    Returns:
        The counts of each file. If none of them has `problems`, nothing is wrong.

    Raises:
        ReleaseError: the paths cannot be read or hold no public file, or a model is unknown.

    """
    from mmlongbench.errors import ReleaseError
    from mmlongbench.release.audit import Target
    from mmlongbench.release.audit import audit as run
    from mmlongbench.release.example_cost import models_of

    _at_least_1("workers", workers, ReleaseError)
    listed = _paths(paths, "the release")
    if not listed:
        raise ReleaseError("no release or public file is given")
    folder = None if images is None else _path(images, "images")
    _paths([path for path in (tokenizer,) if path is not None], "tokenizer")
    _paths(tuple((text_tokenizers or {}).values()), "text tokenizer")
    names = models if isinstance(models, str) else ",".join(models)
    given = ([f"{name}={value}" for name, value in (values or {}).items()] for values in (windows, text_tokenizers))
    target = Target(listed, folder, str(tokenizer) if tokenizer else None, variant, tasks=_tasks(tasks))
    audits = run(target, _bars(progress), workers, models_of(names, *given))
    if not audits:
        raise ReleaseError(f"{', '.join(map(str, listed))}: no public file is there")
    return tuple(each.line() for each in audits)


def verify(
    release: str | Path,
    *,
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
    workers: int = 1,
    progress: bool | None = False,
) -> "Verified":
    """Check that a release is whole: every file is as the lock says, every image can be decoded, and no other file is
    there.

    Args:
        release: its folder.
        tasks: see `open_release`. Without a task file that it needs, the lock's counts are not checked, and a note says
            so.
        workers, progress: see `build`.

    Returns:
        How many files were checked, and the `problems` that were found.

    Raises:
        ReleaseError: the release has no lock, or the lock cannot be read.

    """
    from mmlongbench.errors import ReleaseError
    from mmlongbench.release.verify import verify as run

    _at_least_1("workers", workers, ReleaseError)
    return run(_path(release, "the release"), _bars(progress), workers, _tasks(tasks))


def diff(a: str | Path, b: str | Path, *, limit: int = 5, progress: bool | None = False) -> "ReleaseDifference":
    """Compare two releases: manifest, sources, files, examples, units of contexts, images.

    Args:
        a: one release.
        b: the other.
        limit: how many examples of a file, and how many images, are named; the others are only counted.
        progress: see `build`.

    Returns:
        The differences; `is_same` is true if there are none.

    Raises:
        ReleaseError: one of them is not a release.

    """
    from mmlongbench.errors import ReleaseError
    from mmlongbench.release.diff import diff as run

    if type(limit) is not int or limit < 0:
        raise ReleaseError(f"limit {limit!r}: expected a whole number, at least 0")
    return run(_path(a, "the release"), _path(b, "the release"), _bars(progress), limit)


def run(
    release: str | Path,
    endpoint: "EndpointSettings",
    options: "RunOptions",
    *,
    datasets: str | Sequence[str] = (),
    lengths: str | int | Sequence[str | int] = (),
    limit: int | None = None,
    subset: str = "",
    out: str | Path | None = None,
    remote_files: bool = False,
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
    progress: bool | None = False,
) -> "RunResult":
    """Give a model the examples of a release, and write its predictions. A run that was stopped continues where it
    stopped: no call whose answer arrived is made again.

    Args:
        release: its folder.
        endpoint: the address of the model, and how it may be called. If `endpoint.cache` is None, answers are kept in a
            file beside the predictions.
        options: the name of the model, and how it is asked.
        datasets: only these datasets.
        lengths: only these lengths: `8192`, `"8K"`, or several of them.
        limit: the maximum number of examples of each file, the first ones.
        subset: a subset of the questions: `paper` has 100 of each dataset at each length, 50 of each MM-NIAH file.
        out: the file of predictions; None: `predictions/<model>.jsonl` in the current folder. Its lines about other
            examples are kept.
        remote_files: whether paths of images may be sent to another host.
        tasks, progress: see `open_release` and `build`.

    Returns:
        The answers, the calls that failed, and the receipts, which compare the prompt tokens that the endpoint counted
        with the expected ones.

    Raises:
        EndpointError: the endpoint cannot be called, or stopped answering; what was answered is kept.
        ReleaseError: nothing is chosen, or the options do not fit each other. For other errors see `open_release`.
        ManifestError: a length is not valid.

    """
    from contextlib import closing

    from mmlongbench.models.run import Run

    chosen = _selection(datasets, lengths, limit, subset)
    file = None if out is None else _path(out, "out")
    opened = open_release(release, tasks=tasks)
    with closing(Run(opened, chosen, options, endpoint, file, remote_files=remote_files)) as run:
        run.prepare()
        return run.ask(_bars(progress))


def export(
    release: str | Path,
    target: str,
    out: str | Path,
    *,
    datasets: str | Sequence[str] = (),
    lengths: str | int | Sequence[str | int] = (),
    limit: int | None = None,
    subset: str = "",
    images: str = "",
    model: str = "",
    max_tokens: int | None = None,
    form: str = "",
    variant: str = "",
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
    progress: bool | None = False,
) -> "Exported":
    """Write examples of a release in the form of another tool. The folder appears complete or not at all.

    Args:
        release: its folder.
        target: the name of an installed target, such as `openai` or `hf`; `mmlongbench list` shows all.
        out: the folder to write, which is new or empty.
        datasets, lengths, limit, subset: see `run`.
        images: how images are given: `path`, `file-url`, `data-uri`, or the URL at which `mmlb_image/` is served.
            Empty: the target's own choice.
        model: the name of the model, which requests contain.
        max_tokens: the maximum number of tokens of an answer; None: what the release keeps free.
        form: the form of the lines, for a target with several: `openai`, `sharegpt` or `llava` for `training`. Empty:
            the target's first.
        variant: see `open_release`; datasets without this form cannot be exported.
        tasks, progress: see `open_release` and `build`.

    Returns:
        The number of examples, what was left out and why, and what a user must know to run the files.

    Raises:
        ReleaseError: an image is missing, `out` cannot be used, nothing is chosen, or a choice does not fit the target.
            For other errors see `open_release`.
        PluginError: the target is not installed, or is broken.
        ManifestError: a length is not valid.

    """
    from mmlongbench.exports.export import Choices
    from mmlongbench.exports.export import export as run

    selection, folder = _selection(datasets, lengths, limit, subset), _path(out, "out")
    choices = Choices(images, model, max_tokens, form)
    opened = open_release(release, variant=variant, tasks=tasks)
    return run(opened, selection, target, folder, choices, _bars(progress))


def export_mix(
    release: str | Path,
    mix: "str | Path | MixSpec",
    target: str,
    out: str | Path,
    *,
    images: str = "",
    form: str = "",
    drop_overlap: bool = False,
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
    progress: bool | None = False,
) -> "Mixed":
    """Export a training mix of a release: examples with given shares of tasks and lengths, and so many tokens.

    Shares and tokens are met within 1 %, and nothing is shared with the evaluation releases that the mix names;
    otherwise nothing is written. Needs the extra `shortcuts`.

    Args:
        release: its folder.
        mix: a file with the key `mix`, which may be a manifest, or a `MixSpec`, whose folders are from the current one.
        target: the name of an installed target, such as `training`.
        out: the folder to write, which is new or empty.
        images, form: see `export`.
        drop_overlap: whether to leave out the examples that share something with an evaluation release.
        tasks, progress: see `open_release` and `build`.

    Returns:
        What was written, and the receipt: what was asked and reached, and with what it was compared.

    Raises:
        ReleaseError: the mix cannot be met, it shares something with an evaluation release, or `out` cannot be used.
            For other errors see `open_release`.
        ManifestError: the mix cannot be read.
        PluginError: the target is not installed, or is broken.

    """
    from mmlongbench.errors import ManifestError
    from mmlongbench.exports.export import Choices
    from mmlongbench.manifest.mix import MixSpec, read_mix
    from mmlongbench.mixes.mixing import export_mix as run

    spec = mix if isinstance(mix, MixSpec) else read_mix(_path(mix, "mix", ManifestError))
    opened, folder, choices = open_release(release, tasks=tasks), _path(out, "out"), Choices(images=images, form=form)
    return run(opened, spec, target, folder, choices, drops_overlap=drop_overlap, progress=_bars(progress))


def collect(
    release: str | Path,
    results: str | Path | Sequence[str | Path],
    *,
    model: str,
    out: str | Path | None = None,
    variant: str = "",
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
    progress: bool | None = False,
) -> "Collected":
    """Write the answers to requests that `export` wrote as predictions, in the order of the release.

    Args:
        release: the folder of the release.
        results: output and error files of OpenAI's Batch API, or output of `vllm run-batch`.
        model: the name of the model.
        out: the file of predictions; None: `predictions/<model>.jsonl`.
        variant: the form of the prompts that `export` wrote.
        tasks, progress: see `open_release` and `build`.

    Returns:
        How many examples have an answer, and the `problems` of the results.

    Raises:
        ReleaseError: the results hold no answer for the release, or `out` holds other predictions. For other errors see
            `open_release`.
        SourceError: a file of results cannot be read.

    """
    from mmlongbench.exports.collecting import collect as run

    file = None if out is None else _path(out, "out")
    opened = open_release(release, variant=variant, tasks=tasks)
    return run(opened, _paths(results, "results"), model, file, _bars(progress))


def score(
    release: str | Path,
    predictions: str | Path | Sequence[str | Path],
    *,
    metrics: str | Sequence[str] = "default",
    settings: "Settings | None" = None,
    model: str | None = None,
    out: str | Path | None = None,
    partial: bool = False,
    only_answered: bool = False,
    keep_reasoning: bool = False,
    allow_stale: bool = False,
    replace: bool = False,
    images: str | Path | None = None,
    tokenizer: str | Path | None = None,
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
    progress: bool | None = False,
) -> "Scores":
    """Score a model's predictions against a release, or against public files that others made.

    Args:
        release: its folder, or the public files.
        predictions: the paths of files with lines of JSON, of output files of the public code, or of folders of such
            files.
        metrics: names of metrics, such as `"doc_qa,rouge"`; `default` means the benchmark's own metrics, `judge` all
            metrics that ask a judge.
        settings: the options of metrics, such as the judge and the profile. If `images` or `data` is not set, the
            folder of the release is used.
        model: the name of the model; by default the name of the file or folder in `predictions`.
        out: a folder; a file with one line for each example and metric is written into it. None: no file is written.
        partial: whether to leave out files without any prediction; otherwise their examples score 0.
        only_answered: whether to leave out every example without a prediction, as after a run over a part of the
            release.
        keep_reasoning: whether to score predictions with their reasoning, as the public code does.
        allow_stale: whether to score predictions that were made for other examples than those of the release.
        replace: whether to overwrite scores of another release in `out`.
        images: the folder of the images, if it is not `mmlb_image/` of the release.
        tokenizer: the tokenizer that the release was counted with, if that is a file.
        tasks, progress: see `open_release` and `build`.

    Returns:
        The score of each metric for each dataset and length, and the `problems` of the predictions.

    Raises:
        ScoringError: there are no predictions, a prediction was made for another example, no metric is named, no
            dataset declares a named metric, the folder of images is missing, or `out` holds other scores. For other
            errors see `open_release`.
        PluginError: a metric is not installed, or is broken.

    """
    from mmlongbench.errors import ScoringError
    from mmlongbench.scoring.score_model import score_paths
    from mmlongbench.task.metric import Settings

    given = {"out": out, "images": images, "tokenizer": tokenizer}
    local = {name: _path(path, name, ScoringError) for name, path in given.items() if path is not None}
    return score_paths(
        _path(release, "the release"),
        _paths(predictions, "predictions", ScoringError),
        metrics.split(",") if isinstance(metrics, str) else metrics,
        settings or Settings(),
        _bars(progress),
        model=model,
        out=local.get("out"),
        is_partial=partial,
        only_answered=only_answered,
        keeps_reasoning=keep_reasoning,
        allows_stale=allow_stale,
        replaces=replace,
        images=local.get("images"),
        tokenizer=str(tokenizer) if tokenizer else None,
        tasks=_tasks(tasks),
    )


def scorer(
    release: str | Path,
    *,
    settings: "Settings | None" = None,
    keep_reasoning: bool = False,
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
) -> "Scorer":
    """Return a scorer of single examples, for a program that runs a model itself, such as an evaluation harness.

    Args:
        release: its folder.
        settings: the options of metrics (see `score`).
        keep_reasoning: whether to score predictions with their reasoning, as the public code does.
        tasks: see `open_release`.

    Returns:
        A `Scorer`. `scorer.score(example.key, prediction)` is the score that `score` gives the prediction.

    Raises:
        ReleaseError: the release cannot be read.
        PluginError: a builder that the lock names is not installed, or is broken. For other errors see `open_release`.

    """
    from mmlongbench.scoring.score_model import Scorer

    return Scorer(_path(release, "the release"), settings, keeps_reasoning=keep_reasoning, tasks=_tasks(tasks))


def find_shortcuts(
    release: str | Path,
    *,
    datasets: str | Sequence[str] = (),
    against: str | Path | None = None,
    dense: str | None = None,
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
    progress: bool | None = False,
) -> "ShortcutAudit":
    """Try to tell the answers of a release by what should not tell them, without a model. Needs the extra `shortcuts`.

    Args:
        release: its folder.
        datasets: the names of the datasets to try; empty for all.
        against: another release, or a folder of pictures and texts, with which nothing should be shared.
        dense: a sentence-transformers model, by which gold is searched for too; it needs the extra `dense`.
        tasks, progress: see `open_release` and `build`.

    Returns:
        A finding for each probe and dataset, the p-value of the release, how hard gold is to find by plain search, and
        notes. If its `leaks` are empty, nothing was found.

    Raises:
        ReleaseError: the extra is not installed. For other errors see `open_release`.

    """
    from mmlongbench.shortcuts.audit import audit_shortcuts
    from mmlongbench.shortcuts.difficulty import searches_of

    names = (datasets,) if isinstance(datasets, str) else tuple(datasets)
    other = None if against is None else _path(against, "against")
    with searches_of(dense) as searches:
        return audit_shortcuts(open_release(release, tasks=tasks), _bars(progress), names, other, searches)


def compare_contexts(
    release: str | Path,
    predictions: str | Path | Sequence[str | Path],
    *,
    tasks: "str | Path | Sequence[str | Path] | TaskFiles" = (),
    progress: bool | None = False,
) -> "ContextAudit":
    """Compare what models answer without the context, or with a part of it, with what they answer with all of it.

    Args:
        release: its folder, or the public files.
        predictions: files of `run` with several contexts (`RunOptions.context`), or folders of such files.
        tasks, progress: see `open_release` and `build`.

    Returns:
        Mean scores and differences in each context, and the questions that are answered blind.

    Raises:
        ScoringError: there are no predictions, or they are of other examples. For other errors see `open_release`.

    """
    from mmlongbench.errors import ScoringError
    from mmlongbench.shortcuts.contexts import audit_contexts

    files = _paths(predictions, "predictions", ScoringError)
    return audit_contexts(_path(release, "the release"), files, _bars(progress), _tasks(tasks))


def _selection(
    datasets: str | Sequence[str], lengths: str | int | Sequence[str | int], limit: int | None, subset: str
) -> "Selection":
    from mmlongbench.errors import ReleaseError
    from mmlongbench.release.selection import Selection

    if limit is not None:
        _at_least_1("limit", limit, ReleaseError)
    names = (datasets,) if isinstance(datasets, str) else tuple(datasets)
    wanted = (lengths,) if isinstance(lengths, str | int) else tuple(lengths)
    return Selection(names, wanted, limit, subset)


def _path(path: object, what: str, error: "type[MMLongBenchError] | None" = None) -> Path:
    """Return a path of this machine; anything else is an error, by default a `ReleaseError`."""
    from mmlongbench.errors import ReleaseError
    from mmlongbench.io.locations import local_path

    return local_path(path, what, error or ReleaseError)


def _paths(
    paths: str | Path | Sequence[str | Path], what: str, error: "type[MMLongBenchError] | None" = None
) -> tuple[Path, ...]:
    listed = (paths,) if isinstance(paths, str | Path) else tuple(paths)
    return tuple(_path(path, what, error) for path in listed)


def _tasks(tasks: "str | Path | Sequence[str | Path] | TaskFiles") -> "TaskFiles":
    from mmlongbench.manifest.task_files import TaskFiles

    return tasks if isinstance(tasks, TaskFiles) else TaskFiles(_paths(tasks, "tasks"))


def _bars(progress: bool | None) -> "Progress":
    from mmlongbench.io.progress import Progress

    return Progress(progress)


def _at_least_1(name: str, value: object, error: "type[MMLongBenchError]") -> None:
    if type(value) is not int or value < 1:
        raise error(f"{name} {value!r}: expected a whole number, at least 1")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> object:
        """Import a type when it is first used.

        Raises:
            ImportError: the name is for task authors; the error says that `mmlongbench.task` has it.
            AttributeError: there is no such name.

        """
        from mmlongbench.field_texts import names_for_types, with_field_texts

        if name in __all__:
            kind = globals()[name] = with_field_texts(getattr(import_module(names_for_types(__name__)[name]), name))
            return kind
        is_public = name.isidentifier() and not name.startswith("_")
        if is_public and find_spec(f"{__name__}.{name}") is None:
            for door in ("task", "task.readers", "task.metrics", "task.advanced"):
                if name in import_module(f"mmlongbench.{door}").__all__:
                    said = f"it is mmlongbench.{door}.{name} (import mmlongbench.task as mt)"
                    raise ImportError(f"mmlongbench.{name} is for task authors: {said}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

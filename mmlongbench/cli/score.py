"""The commands `score`, which scores predictions, and `claims`, which splits gold summaries for a judge."""

import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import click

import mmlongbench as mm
from mmlongbench.cli.console import print_table, say
from mmlongbench.cli.options import (
    FILE,
    FOLDER,
    NEW_FOLDER,
    PATH,
    bars,
    json_option,
    number_of,
    options_of,
    quiet_option,
    with_tasks,
)
from mmlongbench.errors import ReleaseError, ScoringError
from mmlongbench.io.locations import refuse_url
from mmlongbench.lengths import format_length
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.metrics.judge.judged import judge_client
from mmlongbench.metrics.judge.summaries import Summaries, write_claims
from mmlongbench.release.layout import DATA, LOCK
from mmlongbench.release.release import open_release
from mmlongbench.scoring.predictions import REASONS
from mmlongbench.table import Table
from mmlongbench.task.metric import PROFILES, Judge, Profile, Settings

_METRIC = "judge-fluency-f1"  # the metric that needs claims


@click.command()
@click.argument("release", type=PATH)
@click.argument("predictions", nargs=-1, required=True, type=PATH)
@click.option(
    "--metrics",
    default="default",
    show_default=True,
    metavar="A,B",
    help="default: the benchmark's own; judge: all that use a judge; or names, such as anls (see `list`).",
)
@click.option(
    "--out", type=NEW_FOLDER, default=Path("scores"), show_default=True, help="The folder for <model>.<metrics>.jsonl."
)
@click.option("--model", help="The name of the model; by default the name of PREDICTIONS.")
@click.option(
    "--only-answered",
    is_flag=True,
    help="Leave out every example without a prediction, as after a run over a part of the release; otherwise it "
    "scores 0.",
)
@click.option(
    "--partial", is_flag=True, help="Leave out files without any prediction; otherwise their examples score 0."
)
@click.option(
    "--allow-stale",
    is_flag=True,
    help="Score predictions that were made for other examples than those of RELEASE, too, and say how many.",
)
@click.option(
    "--replace",
    "replaces",
    is_flag=True,
    help="Overwrite scores of another release; otherwise they stay.",
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="Whose rules all metrics follow: those of the public code, of a paper, or of this project.  [default: "
    "official where a metric offers it, else paper, else ours]",
)
@click.option(
    "--reasoning",
    type=click.Choice(["strip", "keep"]),
    help="Remove reasoning (<think>…</think>, channels …) before scoring, or keep it as the public code does.  "
    "[default: strip]",
)
@click.option(
    "--compat",
    is_flag=True,
    help="Score like the public code with --docqa_llm_judge False: --profile official and --reasoning keep.",
)
@options_of(
    Settings,
    "settings",
    without=("judge", "images", "data", "profile"),
    judge_prompts={"option": "--judge-prompts", "type": PATH},
    documents={"type": FOLDER},
    words={"type": FILE},
    alphas={"type": click.FloatRange(0, 1)},
)
@options_of(
    Judge,
    "judge",
    prefix="--judge-",
    without=("attempts", "is_dry"),
    url={"required": False},
    models={"required": False},
)
@click.option("--dry-run", is_flag=True, help="Count the calls to judges, without making any or writing anything.")
@click.option("--images", type=FOLDER, help="The folder of images, if it is not mmlb_image/ of RELEASE.")
@click.option("--tokenizer", help="The tokenizer that RELEASE was counted with, if that is a file of yours.")
@json_option()
@quiet_option("Print only problems.")
@with_tasks
def score(
    release: Path,
    predictions: tuple[Path, ...],
    metrics: str,
    out: Path,
    model: str | None,
    only_answered: bool,
    partial: bool,
    allow_stale: bool,
    replaces: bool,
    profile: Profile | None,
    reasoning: str | None,
    compat: bool,
    settings: Settings,
    judge: Judge,
    dry_run: bool,
    images: Path | None,
    tokenizer: str | None,
    as_json: bool,
    quiet: bool,
    tasks: TaskFiles,
) -> None:
    """Score the PREDICTIONS of a model. RELEASE is a release of this engine, or public files that others made.

    PREDICTIONS are lines of JSON {"file", "id", "depth" or "permutation", "prediction"}, output files of the public
    code's eval.py, or folders of these. Predictions that do not fit are counted by reason; examples without a
    prediction score 0. For an example that the model cannot take, write "skipped": "context-length" (or image-limit,
    request-size) instead of the prediction: the example gets no score, and the mean of its dataset at this length is
    N/A. A model may answer an example several times; then each line has the number of its "sample". A line with the
    "digest" of another example than that of RELEASE is refused before anything is scored. Exits with 1 if a prediction
    does not fit, is missing, or could not be scored.
    """
    refuse_url(out, "--out", ScoringError)
    if release.is_file() and any((path / LOCK).is_file() for path in predictions):
        raise click.UsageError("RELEASE comes first, then PREDICTIONS")
    for name, value, of_compat in (("profile", profile, "official"), ("reasoning", reasoning, "keep")):
        if compat and value not in (None, of_compat):
            raise click.UsageError(f"--compat scores as the public code does; it excludes --{name} {value}")
    followed = "official" if compat else profile
    if settings.judge_prompts and followed not in (None, "official"):
        only = f"which only --profile official uses, not {followed}"
        raise click.UsageError(f"--judge-prompts gives the public code's prompts, {only}")
    has_judge = bool(judge.url or judge.models)
    if has_judge and not (judge.url and (judge.models or settings.judge_prompts)):
        raise click.UsageError("--judge-url and --judge-model go together")
    scores = mm.score(
        release,
        predictions,
        metrics=metrics,
        settings=replace(
            settings,
            judge=replace(judge, is_dry=dry_run) if has_judge else None,
            profile=followed,
        ),
        model=model,
        out=None if dry_run else out,
        partial=partial,
        only_answered=only_answered,
        keep_reasoning=compat or reasoning == "keep",
        allow_stale=allow_stale,
        replace=replaces,
        images=images,
        tokenizer=tokenizer,
        tasks=tasks,
        progress=False if quiet or as_json else None,
    )
    if dry_run:
        scores = replace(scores, cells=())  # without a judge they are known
    if as_json:
        click.echo(json.dumps(_summary(scores)))
    else:
        if not quiet:
            _show_scores(scores)
        _say_problems(scores)
        if not quiet and scores.file:
            say(f"{scores.file}: written; `mmlongbench report {shlex.quote(str(out))}` compares models")
        elif not quiet:
            say(f"nothing is written{'' if dry_run else ': no prediction fits an example'}")
    if scores.problems or any(cell.failed or cell.failed_samples for cell in scores.cells):
        sys.exit(1)


def _show_scores(scores: mm.Scores) -> None:
    for profile in PROFILES:
        provenances = {name: found for name, found in scores.profiles.items() if found.profile == profile}
        cells = [cell for cell in scores.cells if cell.metric in provenances]
        if not cells:
            continue
        print_table(_table(f"scores of 100 (examples), {profile}", cells))
        alike: dict[mm.Provenance, list[str]] = {}  # metrics that follow the same code or paper, with the same choices
        for name, provenance in provenances.items():
            alike.setdefault(provenance, []).append(name)
        for provenance, names in alike.items():
            if rules := [*([f"follows {provenance.follows}"] if provenance.follows else []), *provenance.choices]:
                say(f"{', '.join(names)}: {'; '.join(rules)}")
    for note in scores.notes:
        say(note)
    for kind, words in _REASONING.items():
        if count := scores.reasoning.get(kind):
            say(f"reasoning: {count:,} {'prediction has' if count == 1 else 'predictions have'} {words}")
    if scores.skipped:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(scores.skipped.items()))
        examples = number_of(sum(scores.skipped.values()), "example")
        say(f"skipped: {examples} that the model cannot take ({reasons}): N/A, not 0")
    for metric, usage in scores.usage.items():
        say(f"{metric}: {', '.join(f'{name} {value:,.10g}' for name, value in usage.items())}")


_REASONING = {
    "stripped": "reasoning, which is left out of what is scored",
    "unclosed": "reasoning that was cut off; only the text before it is scored",
    "kept": "reasoning, which is scored with the rest",
}


def _table(title: str, cells: Sequence[mm.CellScore]) -> Table:
    lengths = sorted({cell.length for cell in cells})
    rows: list[tuple[str, ...]] = []
    for dataset, metric in dict.fromkeys((cell.dataset, cell.metric) for cell in cells):
        means, figures = dict[int, str](), dict[str, dict[int, float | None]]()
        for cell in cells:
            if (cell.dataset, cell.metric) != (dataset, metric):
                continue
            if cell.skipped:
                means[cell.length] = f"N/A ({cell.skipped:,} of {cell.examples:,} skipped)"
            else:
                means[cell.length] = f"{_percent(cell.score)} ({cell.examples:,})"
            of_samples = {f"best of {cell.samples}": cell.best, f"majority of {cell.samples}": cell.majority}
            for name, value in {**(of_samples if cell.samples > 1 else {}), **cell.further}.items():
                figures.setdefault(name, {})[cell.length] = value
        rows.append((dataset, metric, *(means.get(length, "") for length in lengths)))
        rows += [("", f"  {name}", *(_percent(of.get(length)) for length in lengths)) for name, of in figures.items()]
    return Table(("dataset", "metric", *map(format_length, lengths)), rows, title, align="ll")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _say_problems(scores: mm.Scores) -> None:
    for problem in scores.problems:
        more = ", …" if problem.count > len(problem.first) else ""
        say(
            f"{problem.reason}: {problem.count:,} {REASONS[problem.reason]}: {'; '.join(problem.first)}{more}", err=True
        )
    for metric in dict.fromkeys(cell.metric for cell in scores.cells):
        for field, what in (
            ("failed", "examples have no score"),
            ("failed_samples", "samples of examples with other samples have no score"),
        ):
            if cells := [cell for cell in scores.cells if cell.metric == metric and getattr(cell, field)]:
                count = sum(getattr(cell, field) for cell in cells)
                say(f"failed: {metric}: {count:,} {what}, first {cells[0].first_failure}", err=True)


def _summary(scores: mm.Scores) -> dict[str, object]:
    cells: dict[str, dict[str, dict[str, object]]] = {}
    for cell in scores.cells:
        names = ["score", *(["score_of_others"] if cell.skipped else []), "examples", "absent", "failed", "skipped"]
        names += ["samples", "best", "majority", "failed_samples"] if cell.samples > 1 else []
        figures = {**{name: getattr(cell, name) for name in names}, **cell.further}
        cells.setdefault(cell.metric, {}).setdefault(cell.dataset, {})[str(cell.length)] = figures
    return {
        "out": str(scores.file) if scores.file else None,
        "profiles": {name: asdict(provenance) for name, provenance in scores.profiles.items()},
        "scores": cells,
        "reasoning": scores.reasoning,
        "skipped": scores.skipped,
        "problems": {problem.reason: {"count": problem.count, "first": problem.first} for problem in scores.problems},
        "usage": scores.usage,
        "notes": scores.notes,
    }


@click.command()
@click.argument("release", type=FOLDER)
@options_of(
    Judge,
    "judge",
    prefix="--judge-",
    without=("attempts", "samples", "prices", "is_dry"),
    models={"multiple": False, "option": "--judge-model", "help": "A model of this endpoint."},
)
@click.option("--out", type=NEW_FOLDER, help="The folder for the files; the release's mmlb_data/ by default.")
@click.option("--dry-run", is_flag=True, help="Count the calls without making any.")
@json_option()
@quiet_option("Print only failures.")
@with_tasks
def claims(
    release: Path,
    judge: Judge,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    tasks: TaskFiles,
) -> None:
    """Split the gold summaries of RELEASE into claims, once for all models that will be scored.

    A file, summ/<dataset>_claims.jsonl, is written when every summary of its dataset has claims. Exits with 1 if a
    summary has none; then run the same command again to continue.
    """
    is_quiet = quiet or as_json
    datasets = _summaries(release, tasks)
    with closing(judge_client(replace(judge, is_dry=dry_run))) as client:
        progress = bars(is_quiet=is_quiet)
        folder = release / DATA
        claimed = list(write_claims(client, judge.models[0], folder, out or folder, datasets, progress))
        usage = client.usage()
    if as_json:
        click.echo(json.dumps({"datasets": [asdict(each) for each in claimed], "usage": usage}))
    for each in () if as_json else claimed:
        for id, why in each.failures.items():
            say(f"{each.dataset}, {id}: no claims: {why}", err=True)
        if each.failures:
            say(f"{each.file}: not written; run the same command to try these again", err=True)
        elif not quiet and not dry_run:
            known = f"; already there: {each.known:,}" if each.known else ""
            say(f"{each.file}: {each.summaries:,} summaries, {each.claims:,} claims{known}")
        if each.others and not quiet:
            others = f"{len(each.others):,}, first {each.others[0]!r}"
            say(f"{each.file}: claims of ids that the release does not have are kept: {others}")
    if not is_quiet:
        say(", ".join(f"{name.replace('_', ' ')}: {number:,}" for name, number in usage.items()))
    if any(each.failures for each in claimed):
        sys.exit(1)


def _summaries(release: Path, tasks: TaskFiles) -> list[Summaries]:
    summaries: dict[str, Summaries] = {}
    for file in open_release(release, tasks).files:
        if file.dataset is None or _METRIC not in file.dataset.builder.spec.further_metrics:
            continue
        builder = file.dataset.builder
        before = summaries.get(builder.dataset)
        golds = dict(before.golds) if before else {}
        for where, record in file.form.unbundle(file.path):
            if (gold := builder.answer_of(record)) is None:
                raise ReleaseError(f"{file.name}, {where}: expected a gold summary, found none")
            golds[str(record["id"])] = str(gold)
        summaries[builder.dataset] = Summaries(builder.dataset, file.name, golds)
    if not summaries:
        raise ReleaseError(f"{release}: no dataset is scored by {_METRIC}, so no summary is split into claims")
    return list(summaries.values())

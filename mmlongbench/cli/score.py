"""The commands `score`, which scores predictions, and `claims`, which splits gold summaries for a judge."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import click

from mmlongbench.cli.console import print_table, say
from mmlongbench.cli.options import (
    ABOVE_0,
    FILE,
    FOLDER,
    NEW_FOLDER,
    PATH,
    bars,
    json_option,
    options_of,
    quiet_option,
    with_tasks,
)
from mmlongbench.errors import ReleaseError, ScoringError
from mmlongbench.io.locations import refuse_url
from mmlongbench.lengths import format_length
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.metrics.judge.claims import Claimed, Summaries, write_claims
from mmlongbench.metrics.judge.client import JudgeClient
from mmlongbench.models.pace import Backoff
from mmlongbench.release.layout import DATA, LOCK
from mmlongbench.release.release import open_release
from mmlongbench.scoring.problems import REASONS, Problems
from mmlongbench.scoring.running import Outcome, Run
from mmlongbench.scoring.score_model import data_of, images_of, model_of, score_model, scores_file
from mmlongbench.scoring.tallies import Tally
from mmlongbench.table import Table
from mmlongbench.task.metric import PROFILES, Judge, Profile, Provenance, Settings

_METRIC = "judge-fluency-f1"
"""The metric that needs claims."""


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
    "--out",
    type=NEW_FOLDER,
    default=Path("scores"),
    show_default=True,
    help="The folder for <model>.<metrics>.jsonl.",
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
    ignores_reading_order={"option": "--ignore-reading-order"},
)
@click.option(
    "--walk",
    is_flag=True,
    deprecated="Use --ignore-reading-order.",
    help="The former name of --ignore-reading-order.",
)
@options_of(
    Judge,
    "judge",
    prefix="--judge-",
    without=("attempts", "is_dry"),
    url={"metavar": "URL", "required": False},
    models={"metavar": "NAME", "required": False},
    timeout={"type": ABOVE_0},
    prices={"metavar": "IN OUT"},
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
    profile: Profile | None,
    reasoning: str | None,
    compat: bool,
    settings: Settings,
    walk: bool,
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
    names = tuple(dict.fromkeys(name.strip() for name in metrics.split(",") if name.strip()))
    if not names:
        raise click.UsageError(f"--metrics {metrics!r}: names no metric; see `list`")
    if compat and profile not in (None, "official"):
        raise click.UsageError(f"--compat scores as the public code does; it excludes --profile {profile}")
    if compat and reasoning == "strip":
        raise click.UsageError("--compat scores as the public code does; it excludes --reasoning strip")
    followed = "official" if compat else profile
    if settings.judge_prompts and followed not in (None, "official"):
        raise click.UsageError(
            f"--judge-prompts gives the public code's prompts, which only --profile official uses, not {followed}"
        )
    has_judge = bool(judge.url or judge.models)
    if has_judge and not (judge.url and (judge.models or settings.judge_prompts)):
        raise click.UsageError("--judge-url and --judge-model go together")
    settings = replace(
        settings,
        judge=replace(judge, is_dry=dry_run) if has_judge else None,
        ignores_reading_order=settings.ignores_reading_order or walk,
        images=images or images_of(release),
        data=data_of(release),
        profile=followed,
    )
    asked = Run(
        model or model_of(predictions[0]),
        names,
        settings,
        is_partial=partial,
        keeps_reasoning=compat or reasoning == "keep",
        is_dry=dry_run,
        allows_stale=allow_stale,
        only_answered=only_answered,
    )
    file = None if dry_run else scores_file(out, asked)
    progress = bars(is_quiet=quiet or as_json)
    outcome, problems = score_model(
        asked, release, predictions, file, progress, images=images, tokenizer=tokenizer, tasks=tasks
    )
    file = file if outcome.fits else None  # it does not appear if no prediction fits an example
    if as_json:
        click.echo(json.dumps(_summary(outcome, problems, file)))
    else:
        _show_scores(outcome, problems, file, is_quiet=quiet)
    tallies = outcome.tallies.cells.values()
    if problems or (not dry_run and any(tally.failed or tally.failed_samples for tally in tallies)):
        sys.exit(1)


def _show_scores(outcome: Outcome, problems: Problems, out: Path | None, *, is_quiet: bool) -> None:
    """Print a table for each profile, the notes and costs, and the problems; if quiet, only the problems."""
    if not is_quiet:
        if out:
            _show_tables(outcome)
        for line in _costs(outcome):
            say(line)
    for line in _wrong(outcome, problems):
        say(line, err=True)
    if not is_quiet:
        compared = f"`mmlongbench report {shlex.quote(str(out.parent))}` compares models" if out else ""
        nothing = "" if outcome.fits else ": no prediction fits an example"
        say(f"{out}: written; {compared}" if out else f"nothing is written{nothing}")


def _show_tables(outcome: Outcome) -> None:
    """Print a table for each profile."""
    for profile in PROFILES:
        metrics = {name: found for name, found in outcome.provenances.items() if found.profile == profile}
        cells = {key: tally for key, tally in outcome.tallies.cells.items() if key[0] in metrics}
        if cells:
            _show_table(f"scores of 100 (examples), {profile}", cells)
            for line in _provenances(metrics):
                say(line)


def _provenances(metrics: Mapping[str, Provenance]) -> Iterator[str]:
    """Yield a line for all metrics that follow the same code or paper with the same choices. Metrics with neither are
    left out.
    """
    together: dict[Provenance, list[str]] = {}
    for name, found in metrics.items():
        together.setdefault(found, []).append(name)
    for found, names in together.items():
        said = [*([f"follows {found.follows}"] if found.follows else []), *found.choices]
        if said:
            yield f"{', '.join(names)}: {'; '.join(said)}"


def _show_table(title: str, cells: Mapping[tuple[str, str, int], Tally]) -> None:
    lengths = sorted({length for _, _, length in cells})
    rows: dict[tuple[str, str], dict[int, Tally]] = {}
    for (metric, dataset, length), tally in cells.items():
        rows.setdefault((metric, dataset), {})[length] = tally
    lines: list[tuple[str, ...]] = []
    for (metric, dataset), tallies in rows.items():
        lines.append((dataset, metric, *(_cell(tallies[length]) if length in tallies else "" for length in lengths)))
        figures = {length: {**tally.of_samples, **tally.further} for length, tally in tallies.items()}
        for figure in dict.fromkeys(name for found in figures.values() for name in found):
            values = (figures.get(length, {}).get(figure) for length in lengths)
            lines.append(("", f"  {figure}", *map(_percent, values)))
    print_table(Table(("dataset", "metric", *map(format_length, lengths)), lines, title, align="ll"))


def _cell(tally: Tally) -> str:
    """Return a mean with its number of examples; N/A if the model cannot be given some of the examples."""
    if tally.skipped:
        return f"N/A ({tally.skipped:,} of {tally.examples:,} skipped)"
    return f"{_percent(tally.mean)} ({tally.examples:,})"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


_REASONING = {
    "stripped": "reasoning, which is left out of what is scored",
    "unclosed": "reasoning that was cut off; only the text before it is scored",
    "kept": "reasoning, which is scored with the rest",
}


def _costs(outcome: Outcome) -> Iterator[str]:
    yield from outcome.notes
    for kind, words in _REASONING.items():
        if number := outcome.reasoning.get(kind):
            who = "prediction has" if number == 1 else "predictions have"
            yield f"reasoning: {number:,} {who} {words}"
    if outcome.skipped:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in sorted(outcome.skipped.items()))
        total = sum(outcome.skipped.values())
        what = "example" if total == 1 else "examples"
        yield f"skipped: {total:,} {what} that the model cannot take ({reasons}): N/A, not 0"
    for metric, usage in outcome.usage.items():
        yield f"{metric}: {', '.join(f'{name} {value:,.10g}' for name, value in usage.items())}"


def _wrong(outcome: Outcome, problems: Problems) -> Iterator[str]:
    for reason, found in problems.summary().items():
        first = "; ".join(found["first"])
        more = ", …" if found["count"] > len(found["first"]) else ""
        yield f"{reason}: {found['count']:,} {REASONS[reason]}: {first}{more}"
    cells = outcome.tallies.cells.items()
    for name in dict.fromkeys(metric for metric, _, _ in outcome.tallies.cells):
        failed = [tally for (metric, _, _), tally in cells if metric == name and tally.failed]
        if failed:
            count = sum(tally.failed for tally in failed)
            yield f"failed: {name}: {count:,} examples have no score, first {failed[0].first_failure}"
        partly = [tally for (metric, _, _), tally in cells if metric == name and tally.failed_samples]
        if partly:
            count = sum(tally.failed_samples for tally in partly)
            what = f"{count:,} samples of examples with other samples have no score"
            yield f"failed: {name}: {what}, first {partly[0].first_failure}"


def _summary(outcome: Outcome, problems: Problems, out: Path | None) -> dict[str, object]:
    scores: dict[str, dict[str, dict[str, object]]] = {}
    for (metric, dataset, length), tally in outcome.tallies.cells.items():
        scores.setdefault(metric, {}).setdefault(dataset, {})[str(length)] = tally.summary()
    return {
        "out": str(out) if out else None,
        "profiles": {name: asdict(found) for name, found in outcome.provenances.items()},
        "scores": scores,
        "reasoning": outcome.reasoning,
        "skipped": outcome.skipped,
        "problems": problems.summary(),
        "usage": outcome.usage,
        "notes": list(outcome.notes),
    }


@click.command()
@click.argument("release", type=FOLDER)
@options_of(
    Judge,
    "judge",
    prefix="--judge-",
    without=("attempts", "samples", "prices", "is_dry"),
    url={"metavar": "URL"},
    models={"metavar": "NAME", "multiple": False, "option": "--judge-model", "help": "A model of this endpoint."},
    timeout={"type": ABOVE_0},
)
@click.option(
    "--out",
    type=NEW_FOLDER,
    help="The folder for the files; the release's mmlb_data/ by default.",
)
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
    datasets = _summaries(release, tasks)
    progress = bars(is_quiet=quiet or as_json)
    with closing(JudgeClient(replace(judge, is_dry=dry_run), Backoff())) as client:
        done = list(write_claims(client, release / DATA, out or release / DATA, datasets, progress))
        usage = client.usage()
    if as_json:
        click.echo(json.dumps({"datasets": [asdict(each) for each in done], "usage": usage}))
    else:
        _show_claims(done, usage, is_quiet=quiet, is_dry=dry_run)
    if any(each.failures for each in done):
        sys.exit(1)


def _summaries(release: Path, tasks: TaskFiles) -> list[Summaries]:
    """Return the gold summaries of every dataset that is scored by claims, each summary once for all lengths."""
    found: dict[str, Summaries] = {}
    for file in open_release(release, tasks).files:
        if file.dataset is None or _METRIC not in file.dataset.builder.spec.further_metrics:
            continue
        builder = file.dataset.builder
        golds = dict[str, str]()
        for where, record in file.form.unbundle(file.path):
            if (gold := builder.gold(record)) is None:
                raise ReleaseError(f"{file.name}, {where}: expected a gold summary, found none")
            golds[str(record["id"])] = str(gold)
        before = found.get(builder.dataset)
        found[builder.dataset] = Summaries(builder.dataset, file.name, {**(before.golds if before else {}), **golds})
    if not found:
        raise ReleaseError(f"{release}: no dataset is scored by {_METRIC}, so no summary is split into claims")
    return list(found.values())


def _show_claims(done: list[Claimed], usage: Mapping[str, float], *, is_quiet: bool, is_dry: bool) -> None:
    for each in done:
        for id, why in each.failures.items():
            say(f"{each.dataset}, {id}: no claims: {why}", err=True)
        if each.failures:
            say(f"{each.file}: not written; run the same command to try these again", err=True)
        elif not is_quiet and not is_dry:
            known = f"; already there: {each.known:,}" if each.known else ""
            say(f"{each.file}: {each.summaries:,} summaries, {each.claims:,} claims{known}")
        if each.others and not is_quiet:
            say(
                f"{each.file}: claims of ids that the release does not have are kept: "
                f"{len(each.others):,}, first {each.others[0]!r}"
            )
    if not is_quiet:
        say(", ".join(f"{name.replace('_', ' ')}: {number:,}" for name, number in usage.items()))

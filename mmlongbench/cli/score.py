"""The subcommand `score`: scores a model's predictions for a release, with the metrics that its datasets declare."""

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from mmlongbench.cli.console import Table, print_table, say
from mmlongbench.cli.options import with_tasks
from mmlongbench.lengths import format_length
from mmlongbench.scoring.problems import REASONS, Problems
from mmlongbench.scoring.running import Outcome
from mmlongbench.scoring.tallies import Tally
from mmlongbench.task.metric import PROFILES, Provenance

if TYPE_CHECKING:
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.scoring.problems import Problems
    from mmlongbench.task.metric import Judge, Profile, Settings


def show_scores(outcome: Outcome, problems: Problems, out: Path | None, *, is_quiet: bool) -> None:
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
    table = Table(title=title, title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    for name in ("dataset", "metric"):
        table.add_column(name, no_wrap=True)
    for length in lengths:
        table.add_column(format_length(length), justify="right", no_wrap=True)
    for (metric, dataset), tallies in rows.items():
        shown = (_cell(tallies[length]) if length in tallies else "" for length in lengths)
        table.add_row(dataset, metric, *shown)
        figures = {length: {**tally.of_samples, **tally.further} for length, tally in tallies.items()}
        for figure in dict.fromkeys(name for found in figures.values() for name in found):
            values = (figures.get(length, {}).get(figure) for length in lengths)
            table.add_row("", f"  {figure}", *(_percent(value) for value in values))
    print_table(table)


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


_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
RULES = ("official", "paper", "ours")
"""The profiles of `mmlongbench.task.metric`, which is imported only when needed."""


_JUDGES = (
    click.option("--judge-url", metavar="URL", help="The address of an endpoint that speaks OpenAI's protocol: …/v1."),
    click.option(
        "--judge-model",
        "judges",
        multiple=True,
        metavar="NAME",
        help="A judge; give several for a committee.  [default: with --judge-prompts the public code's judge]",
    ),
    click.option(
        "--judge-prompts",
        multiple=True,
        type=click.Path(path_type=Path, exists=True),
        help="The public code's checkout, or a file of prompts in it (scripts/eval_gpt4_summ.py, utils_prompt.py), "
        "which is read but not run. Judges are asked with these prompts; only then are scores of judge-fluency-f1 and "
        "judge-answers official.",
    ),
    click.option(
        "--judge-samples",
        type=click.IntRange(min=1),
        help="How often each judge of a committee is asked.  [default: 5 under --profile paper, else 1]",
    ),
)
"""The options for the judges and their prompts."""
_CALLS = (
    click.option(
        "--judge-cache",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Keep every answer in this SQLite file, and make no call twice.",
    ),
    click.option(
        "--judge-concurrency",
        type=click.IntRange(min=1),
        default=8,
        show_default=True,
        help="How many calls run at once.",
    ),
    click.option(
        "--judge-timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
        show_default=True,
        help="Seconds that one call may take.",
    ),
    click.option(
        "--judge-prices",
        nargs=2,
        type=click.FloatRange(min=0),
        metavar="IN OUT",
        help="Prices of a million tokens of input and of output, to report the cost.",
    ),
    click.option("--dry-run", is_flag=True, help="Count the calls to judges, without making any or writing anything."),
)
"""The options for calling the judges."""


def _judge_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed((*_JUDGES, *_CALLS)):
        command = option(command)
    return command


def _smudge_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option(
                "--documents", type=_FOLDER, help="The PDFs that questions are about (smudge, judge-committee)."
            ),
            click.option(
                "--words", type=_FILE, help="Words and boxes to use instead of the PDFs' own: lines of JSON (smudge)."
            ),
            click.option(
                "--alpha",
                "alphas",
                multiple=True,
                type=click.FloatRange(0, 1),
                help="Weight of the match; the score uses the first one (smudge).  [default: 0.25]",
            ),
            click.option(
                "--ignore-reading-order",
                is_flag=True,
                help="Ignore the PDFs' reading order, as the profile paper does (smudge).",
            ),
            click.option(
                "--walk",
                is_flag=True,
                deprecated="Use --ignore-reading-order.",
                help="The former name of --ignore-reading-order.",
            ),
        )
    ):
        command = option(command)
    return command


class _Further(TypedDict):
    """The options for judges and for SMuDGE."""

    judge_url: str | None
    judges: tuple[str, ...]
    judge_cache: Path | None
    judge_concurrency: int
    judge_timeout: float
    judge_samples: int | None
    judge_prices: tuple[float, float] | None
    judge_prompts: tuple[Path, ...]
    dry_run: bool
    documents: Path | None
    words: Path | None
    alphas: tuple[float, ...]
    ignore_reading_order: bool
    walk: bool


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True))
@click.argument("predictions", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--metrics",
    default="default",
    show_default=True,
    metavar="A,B",
    help="default: the benchmark's own; judge: all that use a judge; or names, such as anls (see `list`).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
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
    type=click.Choice(RULES),
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
@_judge_options
@_smudge_options
@click.option("--images", type=_FOLDER, help="The folder of images, if it is not mmlb_image/ of RELEASE.")
@click.option("--tokenizer", help="The tokenizer that RELEASE was counted with, if that is a file of yours.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print only problems.")
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
    profile: "Profile | None",
    reasoning: str | None,
    compat: bool,
    images: Path | None,
    tokenizer: str | None,
    as_json: bool,
    quiet: bool,
    tasks: "TaskFiles",
    **further: Unpack[_Further],
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
    from mmlongbench.errors import ScoringError
    from mmlongbench.io.locations import refuse_url
    from mmlongbench.io.progress import Progress
    from mmlongbench.release.layout import LOCK
    from mmlongbench.scoring.running import Run
    from mmlongbench.scoring.score_model import data_of, images_of, model_of, score_model, scores_file

    refuse_url(out, "--out", ScoringError)
    if release.is_file() and any((path / LOCK).is_file() for path in predictions):
        raise click.UsageError("RELEASE comes first, then PREDICTIONS")
    names = tuple(dict.fromkeys(name.strip() for name in metrics.split(",") if name.strip()))
    if not names:
        raise click.UsageError(f"--metrics {metrics!r}: names no metric; see `list`")
    asked_profile, keeps_reasoning = _protocol(profile, reasoning, is_compatible=compat)
    settings = _settings(further, images or images_of(release), data_of(release), asked_profile)
    is_dry = further["dry_run"]
    asked = Run(
        model or model_of(predictions[0]), names, settings, partial, keeps_reasoning, is_dry, allow_stale, only_answered
    )
    file = None if is_dry else scores_file(out, asked)
    progress = Progress(False if quiet or as_json else None)
    outcome, problems = score_model(
        asked, release, predictions, file, progress, images=images, tokenizer=tokenizer, tasks=tasks
    )
    file = file if outcome.fits else None  # it does not appear if no prediction fits an example
    if as_json:
        click.echo(json.dumps(_summary(outcome, problems, file)))
    else:
        show_scores(outcome, problems, file, is_quiet=quiet)
    if problems or (
        not is_dry and any(tally.failed or tally.failed_samples for tally in outcome.tallies.cells.values())
    ):
        sys.exit(1)


def _protocol(
    profile: "Profile | None", reasoning: str | None, *, is_compatible: bool
) -> tuple["Profile | None", bool]:
    """Return the requested profile, and whether reasoning is kept."""
    if is_compatible and profile not in (None, "official"):
        raise click.UsageError(f"--compat scores as the public code does; it excludes --profile {profile}")
    if is_compatible and reasoning == "strip":
        raise click.UsageError("--compat scores as the public code does; it excludes --reasoning strip")
    return ("official", True) if is_compatible else (profile, reasoning == "keep")


def _settings(further: _Further, images: Path | None, data: Path | None, profile: "Profile | None") -> "Settings":
    from mmlongbench.task.metric import Settings

    if further["judge_prompts"] and profile not in (None, "official"):
        raise click.UsageError(
            f"--judge-prompts gives the public code's prompts, which only --profile official uses, not {profile}"
        )
    return Settings(
        judge=_judge(further),
        judge_prompts=tuple(further["judge_prompts"]),
        documents=further["documents"],
        words=further["words"],
        alphas=tuple(further["alphas"]) or (0.25,),
        ignores_reading_order=further["ignore_reading_order"] or further["walk"],
        images=images,
        data=data,
        profile=profile,
    )


def _judge(further: _Further) -> "Judge | None":
    from mmlongbench.task.metric import Judge

    if not further["judge_url"] and not further["judges"]:
        return None
    if not further["judge_url"] or not (further["judges"] or further["judge_prompts"]):
        raise click.UsageError("--judge-url and --judge-model go together")
    return Judge(
        further["judge_url"],
        tuple(further["judges"]),
        further["judge_cache"],
        concurrency=further["judge_concurrency"],
        timeout=further["judge_timeout"],
        samples=further["judge_samples"],
        prices=further["judge_prices"],
        is_dry=further["dry_run"],
    )


def _summary(outcome: "Outcome", problems: "Problems", out: Path | None) -> dict[str, object]:
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

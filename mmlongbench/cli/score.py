"""The subcommand `score`: a model's predictions against a release, by the metrics that its datasets declare."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mmlongbench.scoring.problems import Problems
    from mmlongbench.scoring.running import Outcome
    from mmlongbench.task.metric import Judge, Profile, Settings

_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
PROFILES = ("official", "paper", "ours")
"""As `mmlongbench.task.metric` has them, which is not imported before it is needed."""


_JUDGES = (
    click.option("--judge-url", metavar="URL", help="An endpoint that speaks OpenAI's protocol: …/v1."),
    click.option(
        "--judge-model",
        "judges",
        multiple=True,
        metavar="NAME",
        help="A judge; several: a committee.  [default: with --judge-prompts the public code's judge]",
    ),
    click.option(
        "--judge-prompts",
        multiple=True,
        type=click.Path(path_type=Path, exists=True),
        help="The public code's checkout, or a file of prompts in it (scripts/eval_gpt4_summ.py, utils_prompt.py), "
        "which is read and not run: judges are asked with these, and only then are scores of judge-fluency-f1 and "
        "judge-answers official.",
    ),
    click.option(
        "--judge-samples",
        type=click.IntRange(min=1),
        help="How often each judge of a committee is asked.  [default: 5 under --profile paper, else 1]",
    ),
)
"""Who judges, and what is asked."""
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
        help="Calls under way at once.",
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
    click.option("--dry-run", is_flag=True, help="Count the calls to judges, make none and write nothing."),
)
"""How judges are called."""


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
                "--words", type=_FILE, help="Words and boxes in place of the PDFs' own: lines of JSON (smudge)."
            ),
            click.option(
                "--alpha",
                "alphas",
                multiple=True,
                type=click.FloatRange(0, 1),
                help="Weight of the match; the first is the score's (smudge).  [default: 0.25]",
            ),
            click.option(
                "--ignore-reading-order",
                is_flag=True,
                help="Do without the PDFs' reading order, as the profile paper does (smudge).",
            ),
            click.option(
                "--walk", is_flag=True, deprecated="Use --ignore-reading-order.", help="The former name of that option."
            ),
        )
    ):
        command = option(command)
    return command


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True))
@click.argument("predictions", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--metrics",
    default="default",
    show_default=True,
    metavar="A,B",
    help="default: the benchmark's own; judge: all that ask a judge; or names, such as anls (`list` has them).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("scores"),
    show_default=True,
    help="The folder for <model>.<metrics>.jsonl.",
)
@click.option("--model", help="Whose predictions they are; the name of PREDICTIONS by default.")
@click.option("--partial", is_flag=True, help="Leave out files without any prediction; else their examples score 0.")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="Whose rules all metrics follow: the public code's, a paper's, this project's.  [default: official where a "
    "metric offers it, else paper, else ours]",
)
@click.option(
    "--reasoning",
    type=click.Choice(["strip", "keep"]),
    help="Leave reasoning (<think>…</think>, channels …) out of what is scored, or keep it as the public code does.  "
    "[default: strip]",
)
@click.option(
    "--compat",
    is_flag=True,
    help="As the public code scores, with --docqa_llm_judge False: --profile official and --reasoning keep.",
)
@_judge_options
@_smudge_options
@click.option("--images", type=_FOLDER, help="The images, where they are not in mmlb_image/ of RELEASE.")
@click.option("--tokenizer", help="The tokenizer RELEASE was counted with, where that is a file of yours.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but problems.")
def score(
    release: Path,
    predictions: tuple[Path, ...],
    metrics: str,
    out: Path,
    model: str | None,
    partial: bool,
    profile: "Profile | None",
    reasoning: str | None,
    compat: bool,
    images: Path | None,
    tokenizer: str | None,
    as_json: bool,
    quiet: bool,
    **further: Any,  # noqa: ANN401  (the options of judges and of SMuDGE)
) -> None:
    """Score PREDICTIONS of a model against RELEASE, a folder of this engine, or public files that others made.

    PREDICTIONS are lines of JSON {"file", "id", "depth" or "permutation", "prediction"}, output files of the public
    code's eval.py, or folders of these. What does not fit is counted by reason; examples without a prediction score 0.
    An example that the model cannot hold has "skipped": "context-length" (or image-limit, request-size) in place of the
    prediction: it has no score, and its cell is N/A. Exits with 1 if anything does not fit or could not be scored.
    """
    from mmlongbench.cli.score_tables import show_scores
    from mmlongbench.io.progress import Progress
    from mmlongbench.release.layout import DATA, IMAGES
    from mmlongbench.scoring.joining import open_scorable
    from mmlongbench.scoring.predictions import read_predictions
    from mmlongbench.scoring.problems import Problems
    from mmlongbench.scoring.replacing import refuse_another_model
    from mmlongbench.scoring.running import Run
    from mmlongbench.scoring.running import score as run

    names = tuple(dict.fromkeys(name.strip() for name in metrics.split(",") if name.strip()))
    if not names:
        raise click.UsageError(f"--metrics {metrics!r}: names no metric; `list` has them")
    name = model or _name(predictions[0].resolve())
    folder = images or next((path for path in (release / IMAGES, release.parent / IMAGES) if path.is_dir()), None)
    data = next((path for path in (release / DATA, release) if path.is_dir()), None)
    asked_profile, keeps_reasoning = _protocol(profile, reasoning, is_compatible=compat)
    settings = _settings(further, folder, data, asked_profile)
    file = out / _file_name(name, names, asked_profile, keeps_reasoning=keeps_reasoning)
    problems, is_dry = Problems(), bool(further["dry_run"])
    if not is_dry:
        refuse_another_model(file, name)
    opened = open_scorable(release, images, tokenizer)
    with read_predictions(predictions, problems) as read:
        asked = Run(name, names, settings, partial, keeps_reasoning)
        progress = Progress(False if quiet or as_json else None)
        outcome = run(asked, opened, read, None if is_dry else file, problems, progress)
    if as_json:
        click.echo(json.dumps(_summary(outcome, problems, None if is_dry else file)))
    else:
        show_scores(outcome, problems, None if is_dry else file, is_quiet=quiet)
    if problems or (not is_dry and any(tally.failed for tally in outcome.tallies.cells.values())):
        sys.exit(1)


def _protocol(
    profile: "Profile | None", reasoning: str | None, *, is_compatible: bool
) -> tuple["Profile | None", bool]:
    """Return the profile that the options ask for, and whether reasoning is kept."""
    if is_compatible and profile not in (None, "official"):
        raise click.UsageError(f"--compat scores as the public code does; it excludes --profile {profile}")
    if is_compatible and reasoning == "strip":
        raise click.UsageError("--compat scores as the public code does; it excludes --reasoning strip")
    return ("official", True) if is_compatible else (profile, reasoning == "keep")


def _name(path: Path) -> str:
    """Of a folder all of its name, which may have dots in it (Qwen2.5-VL-7B-Instruct)."""
    return path.name if path.is_dir() else path.stem


def _file_name(model: str, metrics: Sequence[str], profile: "Profile | None", *, keeps_reasoning: bool) -> str:
    """Return the name of the scores file; what was asked of all metrics is in it, so that it replaces nothing else."""
    choices = [*([profile] if profile else []), *(["kept"] if keeps_reasoning else [])]
    return ".".join([model.replace("/", "_"), "+".join(metrics), *choices, "jsonl"])


def _settings(
    further: Mapping[str, Any], images: Path | None, data: Path | None, profile: "Profile | None"
) -> "Settings":
    from mmlongbench.task.metric import Settings

    if further["judge_prompts"] and profile not in (None, "official"):
        raise click.UsageError(f"--judge-prompts are the public code's, for --profile official, not {profile}")
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


def _judge(further: Mapping[str, Any]) -> "Judge | None":
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


def _summary(outcome: "Outcome", problems: "Problems", out: Path | None) -> dict[str, Any]:
    scores: dict[str, dict[str, dict[str, Any]]] = {}
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

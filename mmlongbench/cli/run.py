"""The subcommand `run`: gives a model the examples of a release, and writes its predictions with token receipts."""

import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.options import (
    NEW_FILE,
    PATH,
    bars,
    json_option,
    number_of,
    options_of,
    quiet_option,
    usage_of,
    with_tasks,
)
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.models.receipts import FAULTS
from mmlongbench.models.run import Run, RunResult
from mmlongbench.models.settings import EndpointSettings, RunOptions
from mmlongbench.release.release import open_release
from mmlongbench.release.selection import Selection

_NAMED = 5  # the maximum number of examples of each kind that are named


@click.command()
@click.argument("release", type=PATH)
@options_of(
    EndpointSettings,
    "endpoint",
    without=("is_dry",),
    cache={"help": "The file that keeps every answer.  [default: MODEL.calls.sqlite beside the predictions]"},
    timeout={"default": 600.0},
)
@options_of(RunOptions, "options")
@options_of(Selection, "selection", subset={"metavar": "paper"})
@click.option("--remote-files", is_flag=True, help="Allow file-url and path even if --url is another host.")
@click.option("--out", type=NEW_FILE, help="The file of predictions.  [default: predictions/MODEL.jsonl]")
@json_option()
@quiet_option()
@with_tasks
def run(
    release: Path,
    endpoint: EndpointSettings,
    options: RunOptions,
    selection: Selection,
    remote_files: bool,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    tasks: TaskFiles,
) -> None:
    """Give a model the examples of RELEASE, and write its predictions.

    Before the first example is sent, a few small calls find out how the endpoint counts tokens. After each answer, the
    endpoint's count is compared with the expected one, so that an image that was lost or made smaller, or a prompt that
    was cut, is reported. The key of the endpoint is read from OPENAI_API_KEY.

    Run the same command again to continue a run that was stopped: no call whose answer arrived is repeated.
    """
    is_quiet = quiet or as_json
    whole = open_release(release, tasks)
    with closing(Run(whole, selection, options, endpoint, out, remote_files=remote_files)) as asked:
        asked.prepare()
        if not is_quiet:
            _show_prepared(asked, options)
        found = asked.ask(bars(is_quiet=is_quiet))
    if as_json:
        click.echo(json.dumps({**asdict(found), "out": str(found.out)}))
    elif not quiet:
        _show_result(found, asked.notes)
        if found.answers:
            is_part = selection != Selection() or found.without_context > 0
            words = ["mmlongbench", "score", str(release), str(found.out), *(["--only-answered"] if is_part else [])]
            say(f"score them with `{shlex.join(words)}`")
    if found.failures or any(each.off for each in found.receipts):
        sys.exit(1)


def _show_prepared(prepared: Run, options: RunOptions) -> None:
    expected = [tokens for plan in prepared.planned if (tokens := prepared.expected(plan)) is not None]
    examples = number_of(len(prepared.planned), "example")
    if expected:
        examples += (
            f", {sum(expected) * options.samples:,} prompt tokens expected, at most {max(expected):,} in a prompt"
        )
    say(examples)
    if calibrations := list(prepared.calibrations.values()):
        constant = _range([each.constant for each in calibrations], ".0f")
        texts = f"a text {_range([each.ratio for each in calibrations], '.3f')} times the release's tokens"
        if all(each.is_exact for each in calibrations):
            texts = "texts are counted by the model's tokenizer"
        image = f"an image {_range([each.wrapper for each in calibrations], '.1f')} more than the rule says"
        turns = f"{_range([each.turn for each in calibrations], '.1f')} more for each further turn, "
        turns = turns if any(plan.cost and plan.cost.turns > 1 for plan in prepared.planned) else ""
        say(f"  probes: the chat template has {constant} tokens, {turns}{texts}, {image}")
    for note in prepared.notes:
        say(f"note: {note}")
    if prepared.oversized:
        what = "are left out" if options.skip_oversized else "are sent all the same (--skip-oversized leaves them out)"
        say(f"{len(prepared.oversized):,} examples are probably too large for the model; they {what}:")
        for each in prepared.oversized[:_NAMED]:
            unit = "images" if each.reason == "image-limit" else "tokens with the answer"
            say(f"  {each.name}: {each.found:,} {unit}, at most {each.most:,}")
        if len(prepared.oversized) > _NAMED:
            say(f"  and {len(prepared.oversized) - _NAMED:,} more")


def _range(values: Sequence[float], form: str) -> str:
    """Return the smallest and the largest of some numbers in words."""
    least, most = format(min(values) + 0.0, form), format(max(values) + 0.0, form)  # + 0.0: no -0
    return least if least == most else f"{least} to {most}"


def _show_result(result: RunResult, probed: Sequence[str]) -> None:
    ended = ", ".join(f"{reason} {count:,}" for reason, count in sorted(result.finish_reasons.items()))
    say(f"{result.out}: {number_of(result.answers, 'answer')}{f' (finish reason: {ended})' if ended else ''}")
    say(f"  {usage_of(result.usage)}")
    if result.without_context:
        say(f"  {result.without_context:,} examples do not have this context and were left out")
    for reason, count in sorted(result.skipped.items()):
        say(f"  skipped, {reason}: {count:,}")
    if result.shrunk:
        say(f"  {result.shrunk:,} images were sent smaller than they are (--max-pixels)")
    for note in result.notes:
        if note not in probed:
            say(f"  note: {note}")
    if cut := result.finish_reasons.get("length"):
        say(f"  {number_of(cut, 'answer')} reached the maximum number of tokens; --max-tokens allows more")
    for receipts in result.receipts:
        good = f"{receipts.calls - len(receipts.off):,} of {number_of(receipts.calls, 'prompt')} as expected"
        shift = f" beyond a common difference of {-receipts.shift:+g}" if receipts.shift else ""
        loss = f"the smallest loss that can be seen: {receipts.smallest_loss:,}"
        say(f"  {receipts.file}: {good} (± {receipts.tolerance:,} tokens{shift}; {loss})")
        if receipts.hides_images:
            say(f"    a lost image cannot be seen here: the cheapest one has {receipts.cheapest_image:,} tokens")
        for off in receipts.off[:_NAMED]:
            difference = (
                f"{number_of(abs(off.missing), 'token')} {'fewer' if off.missing > 0 else 'more'} than expected"
            )
            say(f"    {off.name}: {FAULTS[off.fault]}: {difference}")
        if len(receipts.off) > _NAMED:
            say(f"    and {len(receipts.off) - _NAMED:,} more; lines of the predictions name them (`receipt`)")
        if receipts.off and receipts.tolerance:
            say("    texts are estimated here; with --text-tokenizer every token is checked")
    for failure in result.failures:
        calls = number_of(failure.count, "call")
        say(f"  {calls} failed, {failure.kind}: {failure.advice}; the first: {failure.first}")

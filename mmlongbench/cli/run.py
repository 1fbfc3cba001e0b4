"""The subcommand `run`: gives a model the examples of a release, and writes its predictions with token receipts."""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.options import (
    ABOVE_0,
    NEW_FILE,
    PATH,
    bars,
    json_option,
    number_of,
    options_of,
    quiet_option,
    with_tasks,
)
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.models.opening import calls_file, opened_run
from mmlongbench.models.prediction_lines import predictions_file
from mmlongbench.models.receipts import FAULTS, Receipts
from mmlongbench.models.run import Prepared, RunResult, prepare
from mmlongbench.models.run import run as run_examples
from mmlongbench.models.settings import EndpointSettings, RunOptions
from mmlongbench.release.release import open_release
from mmlongbench.release.selection import Selection

_NAMED = 5
"""The maximum number of examples of each kind that are named."""


@click.command()
@click.argument("release", type=PATH)
@options_of(
    EndpointSettings,
    "endpoint",
    without=("is_dry",),
    url={"metavar": "URL"},
    cache={"help": "The file that keeps every answer.  [default: MODEL.calls.sqlite beside the predictions]"},
    timeout={"default": 600.0, "type": ABOVE_0},
    prices={"metavar": "IN OUT"},
)
@options_of(
    RunOptions,
    "options",
    model={"metavar": "NAME"},
    context={"metavar": "NAME"},
    images={"metavar": "FORM"},
    count_as={"metavar": "MODEL"},
    text_tokenizer={"metavar": "PATH|ID"},
    is_fresh={"option": "--fresh"},
)
@options_of(
    Selection, "selection", datasets={"metavar": "NAME"}, lengths={"metavar": "8K"}, subset={"metavar": "paper"}
)
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
    file = out or predictions_file(options.model, options.context)
    settings = replace(endpoint, cache=endpoint.cache or calls_file(file, options.model))
    whole = open_release(release, tasks)
    with opened_run(whole, selection, options, settings, remote_files=remote_files) as (asking, client):
        prepared = prepare(asking, client, file)
        if not is_quiet:
            _show_prepared(prepared, options)
        found = run_examples(asking, client, prepared, file, bars(is_quiet=is_quiet))
    if as_json:
        click.echo(json.dumps({**asdict(found), "out": str(found.out)}))
    elif not quiet:
        _show_result(found, prepared.probed.notes)
        if found.answers:
            is_part = selection != Selection() or found.without_context > 0
            words = ["mmlongbench", "score", str(release), str(found.out), *(["--only-answered"] if is_part else [])]
            say(f"score them with `{shlex.join(words)}`")
    if found.failures or any(each.off for each in found.receipts):
        sys.exit(1)


def _show_prepared(prepared: Prepared, options: RunOptions) -> None:
    expected = [prepared.expected(plan) for plan in prepared.planned]
    known = [tokens for tokens in expected if tokens is not None]
    said = number_of(len(prepared.planned), "example")
    if known:
        said += f", {sum(known) * options.samples:,} prompt tokens expected, at most {max(known):,} in a prompt"
    say(said)
    if found := list(prepared.probed.calibrations.values()):
        ratios, wrappers = [each.ratio for each in found], [each.wrapper for each in found]
        texts = f"a text {_range(ratios, '.3f')} times the release's tokens"
        if all(each.is_exact for each in found):
            texts = "texts are counted by the model's tokenizer"
        constant = _range([each.constant for each in found], ".0f")
        image = f"an image {_range(wrappers, '.1f')} more than the rule says"
        say(f"  probes: the chat template has {constant} tokens, {texts}, {image}")
    for note in prepared.probed.notes:
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
    least, most = format(min(values) + 0.0, form), format(max(values) + 0.0, form)
    return least if least == most else f"{least} to {most}"


def _show_result(found: RunResult, probed: Sequence[str]) -> None:
    usage = found.usage
    ended = ", ".join(f"{reason} {count:,}" for reason, count in sorted(found.finish_reasons.items()))
    say(f"{found.out}: {number_of(found.answers, 'answer')}{f' (finish reason: {ended})' if ended else ''}")
    cost = f", cost {usage['cost']:,.2f}" if "cost" in usage else ""
    say(
        f"  calls: {usage['calls']:,.0f} made, {usage['from_cache']:,.0f} answered from the file; "
        f"tokens: {usage['input_tokens']:,.0f} of prompts, {usage['output_tokens']:,.0f} of answers{cost}"
    )
    if found.without_context:
        say(f"  {found.without_context:,} examples do not have this context and were left out")
    for reason, count in sorted(found.skipped.items()):
        say(f"  skipped, {reason}: {count:,}")
    if found.shrunk:
        say(f"  {found.shrunk:,} images were sent smaller than they are (--max-pixels)")
    for note in found.notes:
        if note not in probed:
            say(f"  note: {note}")
    if cut := found.finish_reasons.get("length"):
        say(f"  {number_of(cut, 'answer')} reached the maximum number of tokens; --max-tokens allows more")
    for each in found.receipts:
        _show_receipts(each)
    for failure in found.failures:
        said = number_of(failure.count, "call")
        say(f"  {said} failed, {failure.kind}: {failure.advice}; the first: {failure.first}")


def _show_receipts(found: Receipts) -> None:
    shift = f" beyond a common difference of {-found.shift:+g}" if found.shift else ""
    seen = f"the smallest loss that can be seen: {found.smallest_loss:,}"
    good = f"{found.calls - len(found.off):,} of {number_of(found.calls, 'prompt')} as expected"
    say(f"  {found.file}: {good} (± {found.tolerance:,} tokens{shift}; {seen})")
    if found.hides_images:
        say(f"    a lost image cannot be seen here: the cheapest one has {found.cheapest_image:,} tokens")
    for off in found.off[:_NAMED]:
        difference = f"{number_of(abs(off.missing), 'token')} {'fewer' if off.missing > 0 else 'more'} than expected"
        say(f"    {off.name}: {FAULTS[off.fault]}: {difference}")
    if len(found.off) > _NAMED:
        say(f"    and {len(found.off) - _NAMED:,} more; lines of the predictions name them (`receipt`)")
    if found.off and found.tolerance:
        say("    texts are estimated here; with --text-tokenizer every token is checked")

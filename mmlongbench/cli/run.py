"""The subcommand `run`: gives a model the examples of a release, and writes its predictions with token receipts."""

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.options import CONCURRENCY, PRICES, TIMEOUT, with_tasks

if TYPE_CHECKING:
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.models.asking import RunOptions
    from mmlongbench.models.receipts import Receipts
    from mmlongbench.models.run import Prepared, RunResult
    from mmlongbench.models.settings import EndpointSettings

_NAMED = 5
"""The maximum number of examples of each kind that are named."""
_OPTIONS = (
    click.option("--url", required=True, metavar="URL", help="An endpoint that speaks OpenAI's protocol: …/v1."),
    click.option("--model", required=True, metavar="NAME", help="The name of the model, as the endpoint lists it."),
    click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="Only this dataset; repeatable."),
    click.option("--length", "lengths", multiple=True, metavar="8K", help="Only this length; repeatable."),
    click.option("--limit", type=click.IntRange(min=1), help="The maximum number of examples of each file."),
    click.option("--subset", default="", metavar="paper", help="`paper`: 100 questions of each dataset."),
    click.option(
        "--context",
        default="",
        metavar="NAME",
        help="Another context: none, text-only, images-only, shuffled, wrong, oracle, or a form that the task offers.",
    ),
    click.option(
        "--samples",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="The number of answers to each example; several need a --temperature above 0.",
    ),
    click.option(
        "--temperature", type=click.FloatRange(min=0), default=0.0, show_default=True, help="The temperature."
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        help="The maximum number of tokens of an answer.  [default: the reserve of the example]",
    ),
    click.option("--system", metavar="TEXT", help="A system message before the prompt."),
    click.option(
        "--images",
        default="data-uri",
        show_default=True,
        metavar="FORM",
        help="How images are sent: data-uri, file-url, path, or the URL at which mmlb_image/ is served.",
    ),
    click.option(
        "--max-pixels", type=click.IntRange(min=1), help="Send images with more pixels (width × height) smaller."
    ),
    click.option("--remote-files", is_flag=True, help="Allow file-url and path even if --url is another host."),
)
_COUNTS = (
    click.option(
        "--count-as",
        metavar="MODEL",
        help="The model whose rule counts images, if --model does not tell; `none`: no receipts.",
    ),
    click.option(
        "--text-tokenizer",
        metavar="PATH|ID",
        help="The model's tokenizer; then every difference is reported. Without it, counts of texts are scaled.",
    ),
    click.option(
        "--window", type=click.IntRange(min=1), help="The tokens of prompt and answer that the model takes, if known."
    ),
    click.option(
        "--max-images", type=click.IntRange(min=1), help="The images that the model takes in a request, if known."
    ),
    click.option(
        "--skip-oversized",
        is_flag=True,
        help="Leave out the examples that the model cannot take; `score` shows them as skipped.",
    ),
)
_CALLS = (
    click.option(
        "--out",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The file of predictions.  [default: predictions/MODEL.jsonl]",
    ),
    click.option(
        "--cache",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The file that keeps every answer.  [default: MODEL.calls.sqlite beside the predictions]",
    ),
    click.option(
        "--fresh",
        "is_fresh",
        is_flag=True,
        help="Ask again also where the answer is known, as after a change of the server; to continue, leave it out.",
    ),
    CONCURRENCY,
    TIMEOUT,
    click.option(
        "--attempts",
        type=click.IntRange(min=1),
        default=4,
        show_default=True,
        help="The maximum number of attempts for a call that fails in a way that may pass.",
    ),
    PRICES,
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    click.option("-q", "--quiet", is_flag=True, help="Print only errors."),
)


def _with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed((*_OPTIONS, *_COUNTS, *_CALLS)):
        command = option(command)
    return command


class _Given(TypedDict):
    """The options of the command."""

    url: str
    model: str
    datasets: tuple[str, ...]
    lengths: tuple[str, ...]
    limit: int | None
    subset: str
    context: str
    samples: int
    temperature: float
    max_tokens: int | None
    system: str | None
    images: str
    max_pixels: int | None
    remote_files: bool
    count_as: str | None
    text_tokenizer: str | None
    window: int | None
    max_images: int | None
    skip_oversized: bool
    out: Path | None
    cache: Path | None
    is_fresh: bool
    concurrency: int
    timeout: float
    attempts: int
    prices: tuple[float, float] | None
    as_json: bool
    quiet: bool


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True))
@_with_options
@with_tasks
def run(release: Path, tasks: "TaskFiles", **given: Unpack[_Given]) -> None:
    """Give a model the examples of RELEASE, and write its predictions.

    Before the first example is sent, a few small calls find out how the endpoint counts tokens. After each answer, the
    endpoint's count is compared with the expected one, so that an image that was lost or made smaller, or a prompt that
    was cut, is reported. The key of the endpoint is read from OPENAI_API_KEY.

    Run the same command again to continue a run that was stopped: no call whose answer arrived is repeated.
    """
    from mmlongbench.io.progress import Progress
    from mmlongbench.models.opening import calls_file, opened_run
    from mmlongbench.models.prediction_lines import predictions_file
    from mmlongbench.models.run import prepare
    from mmlongbench.models.run import run as run_examples
    from mmlongbench.release.release import open_release
    from mmlongbench.release.selection import Selection

    is_quiet = given["quiet"] or given["as_json"]
    out = given["out"] or predictions_file(given["model"], given["context"])
    settings = _settings(given, given["cache"] or calls_file(out, given["model"]))
    selection = Selection(given["datasets"], given["lengths"], given["limit"], given["subset"])
    whole = open_release(release, tasks)
    with opened_run(whole, selection, _options(given), settings, remote_files=given["remote_files"]) as opened:
        asking, client = opened
        prepared = prepare(asking, client, out)
        if not is_quiet:
            _show_prepared(prepared, given)
        found = run_examples(asking, client, prepared, out, Progress(False if is_quiet else None))
    if given["as_json"]:
        click.echo(json.dumps({**asdict(found), "out": str(found.out)}))
    elif not given["quiet"]:
        _show_result(found, prepared.probed.notes)
        _show_way_on(release, found, is_part=selection != Selection() or found.without_context > 0)
    if found.failures or any(each.off for each in found.receipts):
        sys.exit(1)


def _options(given: _Given) -> "RunOptions":
    from mmlongbench.models.asking import RunOptions

    return RunOptions(
        model=given["model"],
        context=given["context"],
        samples=given["samples"],
        temperature=given["temperature"],
        max_tokens=given["max_tokens"],
        system=given["system"],
        images=given["images"],
        max_pixels=given["max_pixels"],
        count_as=given["count_as"],
        text_tokenizer=given["text_tokenizer"],
        window=given["window"],
        max_images=given["max_images"],
        skip_oversized=given["skip_oversized"],
        is_fresh=given["is_fresh"],
    )


def _settings(given: _Given, cache: Path) -> "EndpointSettings":
    from mmlongbench.models.settings import EndpointSettings

    return EndpointSettings(
        given["url"], cache, given["concurrency"], given["timeout"], given["attempts"], given["prices"] or None
    )


def _show_prepared(prepared: "Prepared", given: _Given) -> None:
    expected = [prepared.expected(plan) for plan in prepared.planned]
    known = [tokens for tokens in expected if tokens is not None]
    said = _number(len(prepared.planned), "example")
    if known:
        said += f", {sum(known) * given['samples']:,} prompt tokens expected, at most {max(known):,} in a prompt"
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
        what = "are left out" if given["skip_oversized"] else "are sent all the same (--skip-oversized leaves them out)"
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


def _show_result(found: "RunResult", probed: Sequence[str]) -> None:
    usage = found.usage
    ended = ", ".join(f"{reason} {count:,}" for reason, count in sorted(found.finish_reasons.items()))
    say(f"{found.out}: {_number(found.answers, 'answer')}{f' (finish reason: {ended})' if ended else ''}")
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
        say(f"  {_number(cut, 'answer')} reached the maximum number of tokens; --max-tokens allows more")
    for each in found.receipts:
        _show_receipts(each)
    for failure in found.failures:
        said = _number(failure.count, "call")
        say(f"  {said} failed, {failure.kind}: {failure.advice}; the first: {failure.first}")


def _show_receipts(found: "Receipts") -> None:
    from mmlongbench.models.receipts import FAULTS

    shift = f" beyond a common difference of {-found.shift:+g}" if found.shift else ""
    seen = f"the smallest loss that can be seen: {found.smallest_loss:,}"
    good = f"{found.calls - len(found.off):,} of {_number(found.calls, 'prompt')} as expected"
    say(f"  {found.file}: {good} (± {found.tolerance:,} tokens{shift}; {seen})")
    if found.hides_images:
        say(f"    a lost image cannot be seen here: the cheapest one has {found.cheapest_image:,} tokens")
    for off in found.off[:_NAMED]:
        difference = f"{_number(abs(off.missing), 'token')} {'fewer' if off.missing > 0 else 'more'} than expected"
        say(f"    {off.name}: {FAULTS[off.fault]}: {difference}")
    if len(found.off) > _NAMED:
        say(f"    and {len(found.off) - _NAMED:,} more; lines of the predictions name them (`receipt`)")
    if found.off and found.tolerance:
        say("    texts are estimated here; with --text-tokenizer every token is checked")


def _show_way_on(release: Path, found: "RunResult", *, is_part: bool) -> None:
    """Say how the predictions are scored, if there are any."""
    if not found.answers:
        return
    words = ["mmlongbench", "score", str(release), str(found.out), *(["--only-answered"] if is_part else [])]
    say(f"score them with `{shlex.join(words)}`")


def _number(count: int, what: str) -> str:
    """Return a number of things in words.

    >>> _number(1, "call"), _number(2000, "call")
    ('1 call', '2,000 calls')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"

"""The options and the output of `questions` with models; `questions.py` has the command."""

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.endpoint_options import CONCURRENCY, PRICES, TIMEOUT

if TYPE_CHECKING:
    from mmlongbench.questions.writing.forecast import Expected
    from mmlongbench.questions.writing.making import Made, Prepared

_NAMED = 5
"""The maximum number of quotas that are named."""
_OPTIONS = (
    click.option("--url", metavar="URL", help="Let models write and check: an endpoint that speaks OpenAI's protocol."),
    click.option(
        "--model", "models", multiple=True, metavar="NAME", help="A model that writes and checks; repeatable."
    ),
    click.option(
        "--check-model", "checkers", multiple=True, metavar="NAME", help="A model that only checks; repeatable."
    ),
    click.option(
        "--per-document",
        type=click.IntRange(1, 500),
        help="Questions wanted of a document.  [default: MMLongBench-Doc's minimum for its type]",
    ),
    click.option(
        "--over",
        type=click.FloatRange(1, 10),
        default=2.0,
        show_default=True,
        help="Drafts for one wanted question; about half of them fail a check.",
    ),
    click.option(
        "--about",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="A table of the documents: doc, and doc_type or published (2024-05-31).",
    ),
    click.option(
        "--published-after", metavar="DATE", default="", help="Leave out documents that were not published after it."
    ),
    click.option(
        "--against",
        multiple=True,
        type=click.Path(path_type=Path, exists=True),
        help="Leave out what stands there: a table of questions, a release, or a folder of PDFs; repeatable.",
    ),
    click.option("--strict-anchor", is_flag=True, help="Reject questions that another document answers, too."),
    click.option("--seed", type=int, default=0, show_default=True, help="The seed of all draws."),
    click.option(
        "--dpi", type=click.IntRange(36, 300), default=144, show_default=True, help="The resolution of shown pages."
    ),
    CONCURRENCY,
    TIMEOUT,
    PRICES,
    click.option("--max-cost", type=click.FloatRange(min=0), help="Do not begin if more is expected; needs --prices."),
    click.option(
        "--count-as", metavar="MODEL", default="qwen2.5-vl", help="The model whose rule counts pages for the forecast."
    ),
    click.option("--dry-run", is_flag=True, help="Say what will be asked and what it costs, and end."),
    click.option("--replay", is_flag=True, help="Make no call: use only answers that are on file."),
)


class Given(TypedDict):
    """The options of `questions` with models."""

    url: str | None
    models: tuple[str, ...]
    checkers: tuple[str, ...]
    per_document: int | None
    over: float
    about: Path | None
    published_after: str
    against: tuple[Path, ...]
    strict_anchor: bool
    seed: int
    dpi: int
    concurrency: int
    timeout: float
    prices: tuple[float, float] | None
    max_cost: float | None
    count_as: str
    dry_run: bool
    replay: bool


@dataclass(frozen=True, slots=True)
class Printing:
    """How the command prints."""

    as_json: bool
    quiet: bool


def with_models(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of questions with models to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def make_with_models(documents: Path, out: Path, given: Given, printing: Printing, cache: Path | None) -> None:
    """Write and check questions with models, and say what it takes."""
    from mmlongbench.io.progress import Progress
    from mmlongbench.questions.writing.making import CALLS, make, prepare

    settings = _settings(given)
    is_quiet = printing.quiet or printing.as_json
    progress = Progress(False if is_quiet else None)
    prepared = prepare(
        documents, out, settings, progress, about=given["about"], against=given["against"], rule=given["count_as"]
    )
    if not is_quiet:
        _show_plan(prepared, given)
    _refuse_cost(prepared, given)
    if given["dry_run"]:
        if printing.as_json:
            click.echo(
                json.dumps({"expected": _fields(prepared.expected), "cost": prepared.cost(given["prices"] or None)})
            )
        return
    made = make(prepared, _endpoint(given, cache or out / CALLS), progress)
    if printing.as_json:
        click.echo(json.dumps({"out": str(out), "counts": dict(made.counts), "usage": dict(made.usage)}))
    elif not printing.quiet:
        _show_made(made, out)
    if not made.is_complete or not made.counts["accepted"]:
        sys.exit(1)


def _settings(given: Given) -> Any:  # noqa: ANN401  (its module is imported only here)
    from mmlongbench.questions.writing.documents import is_date
    from mmlongbench.questions.writing.settings import WritingSettings

    if not given["models"]:
        raise click.UsageError("questions with models need --model (repeatable); `--from layer` needs no model")
    if not given["url"] and not (given["dry_run"] or given["replay"]):
        raise click.UsageError("questions with models need --url")
    if given["max_cost"] is not None and not given["prices"]:
        raise click.UsageError("--max-cost needs --prices")
    if given["published_after"] and not is_date(given["published_after"]):
        raise click.UsageError(f"--published-after {given['published_after']}: expected a date such as 2024-05-31")
    return WritingSettings(
        authors=given["models"],
        checkers=given["checkers"],
        seed=given["seed"],
        per_document=given["per_document"] or 0,
        over=given["over"],
        dpi=given["dpi"],
        published_after=given["published_after"],
        strict_anchor=given["strict_anchor"],
    )


def _endpoint(given: Given, cache: Path) -> Any:  # noqa: ANN401  (its module is imported only here)
    from mmlongbench.models.settings import EndpointSettings

    return EndpointSettings(
        url=given["url"] or "http://127.0.0.1",
        cache=cache,
        concurrency=given["concurrency"],
        timeout=given["timeout"],
        prices=given["prices"] or None,
        is_dry=given["replay"],
    )


def _refuse_cost(prepared: "Prepared", given: Given) -> None:
    cost = prepared.cost(given["prices"] or None)
    if given["max_cost"] is not None and cost > given["max_cost"]:
        raise click.UsageError(
            f"expected cost {cost:,.2f}, --max-cost {given['max_cost']:,.2f}: ask for fewer questions "
            "(--per-document), or a smaller --dpi"
        )


def _show_plan(prepared: "Prepared", given: Given) -> None:
    library, drawn = prepared.library, prepared.drawn
    wanted = sum(quota.wanted for quota in drawn.quotas)
    left = f", {len(library.left_out)} left out" if library.left_out else ""
    say(
        f"{_number(len(library.documents), 'document')}{left}: {wanted:,} questions wanted, {len(drawn.slots):,} drafts"
    )
    for line in library.left_out[:_NAMED]:
        say(f"  {line.doc} is left out, {line.reason}: {line.detail}")
    if fewer := [quota for quota in drawn.quotas if quota.why_fewer]:
        for quota in fewer[:_NAMED]:
            say(f"  {quota.doc}: {quota.kind}: {quota.slots} of {quota.wanted} can be asked ({quota.why_fewer})")
        if len(fewer) > _NAMED:
            say(f"  and {len(fewer) - _NAMED} more; stages/03-quotas.jsonl has all")
    say(_total("expected", prepared.expected, given["prices"] or None))
    say(_total("if every draft passes every check", prepared.at_most, given["prices"] or None))


def _total(what: str, expected: "Sequence[Expected]", prices: tuple[float, float] | None) -> str:
    calls, taken = sum(each.calls for each in expected), sum(each.input_tokens for each in expected)
    given = sum(each.output_tokens for each in expected)
    cost = f", cost {sum(each.cost(prices) for each in expected):,.2f}" if prices else ""
    return f"  {what}: {calls:,.0f} calls, {taken:,.0f} tokens of prompts, {given:,.0f} of answers{cost}"


def _fields(expected: "Sequence[Expected]") -> list[dict[str, object]]:
    return [
        {
            "stage": each.stage,
            "calls": round(each.calls),
            "input_tokens": round(each.input_tokens),
            "output_tokens": round(each.output_tokens),
        }
        for each in expected
    ]


def _show_made(made: "Made", out: Path) -> None:
    counts, usage, report = made.counts, made.usage, made.report
    say(f"{'stage':<26} {'reached':>8} {'went on':>8}  why not")
    for stage in report.stages:
        reasons = ", ".join(
            f"{reason} {count}" for reason, count in stage.reasons.items() if reason not in ("all", "some")
        )
        if stage.reached and (stage.went_on < stage.reached or reasons):
            say(f"{stage.stage:<26} {stage.reached:>8,} {stage.went_on:>8,}  {reasons}")
    say(
        f"{counts['slots']:,} slots: {counts['accepted']:,} accepted, {counts['surplus']:,} surplus, "
        f"{counts['held']:,} held for people, {counts['rejected']:,} rejected, {counts['pending']:,} pending"
    )
    cost = f", cost {usage['cost']:,.2f}" if "cost" in usage else ""
    say(
        f"calls: {usage['calls']:,.0f} made, {usage['from_cache']:,.0f} answered from the file; tokens: "
        f"{usage['input_tokens']:,.0f} of prompts, {usage['output_tokens']:,.0f} of answers{cost}"
    )
    share = report.beside["automatic"]
    say(f"checks by models kept {share:.1%} of the drafts (M-LongDoc: 80.1 %, of which people kept 80.9 %)")
    if report.words_alone.area is not None:
        say(f"words alone tell unanswerable questions with an area of {report.words_alone.area:.2f} (0.50: not at all)")
    for note in report.notes:
        say(f"note: {note}")
    if not made.is_complete:
        say("calls are pending, so no table is written; run the same command to continue")
        for name in made.removed:
            say(f"  {name} of an earlier run was removed")
        return
    command = f"mmlongbench questions export {shlex.quote(str(out))} --review sheet.csv"
    say(f"{out}: people decide about held questions: {command}")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"

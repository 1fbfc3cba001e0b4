"""The command `questions`: questions about PDFs, written by models or read from text layers, and their review."""

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from mmlongbench.cli.console import print_table, say
from mmlongbench.cli.options import (
    COUNT,
    FILE,
    FOLDER,
    NEW_FILE,
    NEW_PATH,
    PATH,
    bars,
    json_option,
    number_of,
    options_of,
    quiet_option,
    usage_of,
)
from mmlongbench.documents.limits import Limits
from mmlongbench.errors import SourceError
from mmlongbench.io.files import shown_name
from mmlongbench.io.pool import cores
from mmlongbench.models.settings import EndpointSettings
from mmlongbench.questions.layer.make import DOCUMENTS, LAYERS, Made, Settings, make_questions
from mmlongbench.questions.table import MANIFEST, REJECTS
from mmlongbench.questions.writing.asking import WritingSettings
from mmlongbench.questions.writing.make import CALLS, Plan, prepare
from mmlongbench.questions.writing.make import Made as Written
from mmlongbench.questions.writing.make import make as write_questions
from mmlongbench.table import Table

_FAULTS = 10  # the maximum number of faults of sheets that are named
_NAMED = 5  # the maximum number of quotas that are named


class _OwnContext(click.Context):
    """The context of a group's own command, which is called by the name of the group."""

    @property
    def command_path(self) -> str:
        return self.parent.command_path if self.parent else super().command_path


class DefaultGroup(click.Group):
    """Runs a subcommand if the first argument is the name of one; otherwise the group's own command, with all
    arguments. A folder called like a subcommand is given as `./name`, or after `--`.
    """

    own: click.Command

    def of_its_own(self, function: Callable[..., Any]) -> click.Command:
        """Make a function with options and arguments the group's own command."""
        self.own = click.command()(function)
        self.own.context_class = _OwnContext
        self.help = self.own.help
        self.context_settings["ignore_unknown_options"] = True  # the own command knows them
        return self.own

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep `--` for the group's own command: the parser of the group takes it away where only options stand before
        it, and a name that begins with a dash would be read as an option.
        """
        before = args[: args.index("--")] if "--" in args else [""]
        mark = ["--"] if all(len(arg) > 1 and arg.startswith("-") for arg in before) else []
        return super().parse_args(ctx, [*args[: len(before)], *mark, *args[len(before) :]])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, args) if args[0] in self.commands else (self.name, self.own, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.own.format_usage(_OwnContext(self.own, parent=ctx, info_name=ctx.info_name), formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.own.format_options(_OwnContext(self.own, parent=ctx, info_name=ctx.info_name), formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=DefaultGroup)
def questions() -> None:
    """Make questions about DOCUMENTS."""


@questions.of_its_own
@click.argument("documents", type=FOLDER)
@click.option(
    "--from",
    "maker",
    type=click.Choice(["layer"]),
    help="What makes the questions: the text layer of the PDFs, without a model.  [default: models, see --url]",
)
@click.option("--out", required=True, type=NEW_PATH, help="The folder of the questions.")
@click.option(
    "--cache",
    type=NEW_PATH,
    help="The folder in which layers of documents are kept, or the file that keeps every answer of a model.  "
    "[default: layers, or calls.sqlite, in OUT]",
)
@click.option(
    "--ocr/--no-ocr",
    default=True,
    help="Whether tesseract, if it is installed, reads the words of each question in the picture of the page; a "
    "question is left out if they differ.  [default: --ocr]",
)
@click.option(
    "--all",
    "keeps_all",
    is_flag=True,
    help="With --from layer: keep all questions, also where more than a fifth are about one document, or a quarter are "
    "of one kind.",
)
@click.option(
    "--workers", type=COUNT, help="The number of processes; all cores by default. It does not change the bytes."
)
@click.option(
    "--seconds-a-page",
    type=click.FloatRange(min=0, max=86_400, min_open=True),
    help="With --from layer: the seconds that a page of a PDF may take. It does not change the bytes.  [default: 60]",
)
@click.option("--model", "authors", multiple=True, metavar="NAME", help="A model that writes and checks; repeatable.")
@click.option("--check-model", "checkers", multiple=True, metavar="NAME", help="A model that only checks; repeatable.")
@click.option(
    "--per-document",
    type=click.IntRange(1, 500),
    help="Questions wanted of a document.  [default: MMLongBench-Doc's minimum for its type]",
)
@click.option(
    "--over",
    type=click.FloatRange(1, 10),
    default=2.0,
    show_default=True,
    help="Drafts for one wanted question; about half of them fail a check.",
)
@click.option("--about", type=FILE, help="A table of the documents: doc, and doc_type or published (2024-05-31).")
@click.option(
    "--published-after", metavar="DATE", default="", help="Leave out documents that were not published after it."
)
@click.option(
    "--against",
    multiple=True,
    type=PATH,
    help="Leave out what stands there: a table of questions, a release, or a folder of PDFs; repeatable.",
)
@click.option("--strict-anchor", is_flag=True, help="Reject questions that another document answers, too.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of all draws.")
@click.option(
    "--dpi", type=click.IntRange(36, 300), default=144, show_default=True, help="The resolution of shown pages."
)
@options_of(
    EndpointSettings,
    "endpoint",
    without=("cache", "attempts", "is_dry"),
    url={
        "required": False,
        "help": "Let models write and check: an endpoint that speaks OpenAI's protocol.",
    },
    timeout={"default": 600.0},
)
@click.option("--max-cost", type=click.FloatRange(min=0), help="Do not begin if more is expected; needs --prices.")
@click.option(
    "--count-as", metavar="MODEL", default="qwen2.5-vl", help="The model whose rule counts pages for the forecast."
)
@click.option("--dry-run", is_flag=True, help="Say what will be asked and what it costs, and end.")
@click.option("--replay", is_flag=True, help="Make no call: use only answers that are on file.")
@json_option()
@quiet_option()
def make(
    documents: Path,
    maker: str | None,
    out: Path,
    cache: Path | None,
    ocr: bool,
    keeps_all: bool,
    workers: int | None,
    seconds_a_page: float | None,
    about: Path | None,
    against: tuple[Path, ...],
    endpoint: EndpointSettings,
    max_cost: float | None,
    count_as: str,
    dry_run: bool,
    replay: bool,
    as_json: bool,
    quiet: bool,
    **writing: Any,  # noqa: ANN401  (fields of WritingSettings)
) -> None:
    """Make questions about the PDFs of the folder DOCUMENTS: a table, and a manifest that `build` takes as it is.

    With `--from layer`, every answer is read from the text layer by two readers that must agree; no model is asked.
    With --url and --model, models write the questions, and models of other families check them; the key of the endpoint
    is read from OPENAI_API_KEY. Run the same command again to continue: no call whose answer arrived is repeated, and
    documents whose layer was read are not read again.
    """
    progress = bars(is_quiet=quiet or as_json)
    if maker == "layer":
        if endpoint.url or writing["authors"]:
            raise click.UsageError("--url and --model have no effect with --from layer: leave one of them out")
        limits = Limits(seconds_a_page=seconds_a_page) if seconds_a_page else Limits()
        layer = Settings(cache or out / LAYERS, limits, with_ocr=ocr, keeps_all=keeps_all)
        _show_read(make_questions(documents, out, layer, workers or cores(), progress), out, as_json, quiet)
        return
    if seconds_a_page or keeps_all:
        name = "--seconds-a-page" if seconds_a_page else "--all"
        raise click.UsageError(f"{name} has no effect without --from layer: leave it out")
    if not writing["authors"]:
        raise click.UsageError("questions with models need --model (repeatable); `--from layer` needs no model")
    if not (endpoint.url or dry_run or replay):
        raise click.UsageError("questions with models need --url")
    if max_cost is not None and not endpoint.prices:
        raise click.UsageError("--max-cost needs --prices")
    settings = WritingSettings(**{**writing, "per_document": writing["per_document"] or 0})
    plan = prepare(documents, out, settings, progress, about=about, against=against, rule=count_as)
    cost = plan.cost(endpoint.prices)
    if not (quiet or as_json):
        _show_plan(plan, endpoint.prices)
    if max_cost is not None and cost > max_cost:
        raise click.UsageError(
            f"expected cost {cost:,.2f}, --max-cost {max_cost:,.2f}: ask for fewer questions (--per-document), or "
            "a smaller --dpi"
        )
    if dry_run:
        if as_json:
            numbers = ("calls", "input_tokens", "output_tokens")
            expected = [
                {"stage": stage.stage, **{name: round(getattr(stage, name)) for name in numbers}}
                for stage in plan.expected
            ]
            click.echo(json.dumps({"expected": expected, "cost": cost}))
        return
    used = replace(endpoint, url=endpoint.url or "http://127.0.0.1", cache=cache or out / CALLS, is_dry=replay)
    written = write_questions(plan, used, progress)
    if as_json:
        click.echo(json.dumps({"out": str(out), "counts": written.report.counts, "usage": dict(written.usage)}))
    elif not quiet:
        _show_written(written, out)
    if not written.is_complete or not written.report.counts["accepted"]:
        sys.exit(1)


def _show_plan(plan: Plan, prices: tuple[float, float] | None) -> None:
    library = plan.library
    wanted = sum(quota.wanted for quota in plan.quotas)
    left = f", {len(library.left_out)} left out" if library.left_out else ""
    documents = number_of(len(library.documents), "document")
    say(f"{documents}{left}: {wanted:,} questions wanted, {len(plan.slots):,} drafts")
    for line in library.left_out[:_NAMED]:
        say(f"  {line.doc} is left out, {line.reason}: {line.detail}")
    fewer = [quota for quota in plan.quotas if quota.why_fewer]
    for quota in fewer[:_NAMED]:
        say(f"  {quota.doc}: {quota.kind}: {quota.slots} of {quota.wanted} can be asked ({quota.why_fewer})")
    if len(fewer) > _NAMED:
        say(f"  and {len(fewer) - _NAMED} more; stages/03-quotas.jsonl has all")
    for what, stages in (("expected", plan.expected), ("if every draft passes every check", plan.at_most)):
        names = ("calls", "input_tokens", "output_tokens")
        calls, prompts, answers = (sum(getattr(stage, name) for stage in stages) for name in names)
        cost = f", cost {sum(stage.cost(prices) for stage in stages):,.2f}" if prices else ""
        say(f"  {what}: {calls:,.0f} calls, {prompts:,.0f} tokens of prompts, {answers:,.0f} of answers{cost}")


def _show_written(written: Written, out: Path) -> None:
    report = written.report
    counts = report.counts
    rows = []
    for stage in report.stages:
        why = [f"{reason} {count}" for reason, count in stage.reasons.items() if reason not in ("all", "some")]
        if stage.reached and (stage.went_on < stage.reached or why):
            rows.append((stage.stage, stage.reached, stage.went_on, ", ".join(why)))
    print_table(Table(("stage", "reached", "went on", "why not"), rows, align="LrrL"))
    say(
        f"{counts['slots']:,} slots: {counts['accepted']:,} accepted, {counts['surplus']:,} surplus, "
        f"{counts['held']:,} held for people, {counts['rejected']:,} rejected, {counts['pending']:,} pending"
    )
    say(usage_of(written.usage))
    share = report.beside["automatic"]
    say(f"checks by models kept {share:.1%} of the drafts (M-LongDoc: 80.1 %, of which people kept 80.9 %)")
    if report.words_alone.area is not None:
        say(f"words alone tell unanswerable questions with an area of {report.words_alone.area:.2f} (0.50: not at all)")
    for note in report.notes:
        say(f"note: {note}")
    if written.is_complete:
        command = f"mmlongbench questions export {shlex.quote(str(out))} --review sheet.csv"
        say(f"{out}: people decide about held questions: {command}")
    else:
        say("calls are pending, so no table is written; run the same command to continue")
        for name in written.removed:
            say(f"  {name} of an earlier run was removed")


def _show_read(read: Made, out: Path, as_json: bool, quiet: bool) -> None:
    if as_json:
        click.echo(json.dumps(read.summary.model_dump(mode="json")))
    if as_json or quiet:
        return
    for report in read.reports:
        reasons = sorted(report.losses.items(), key=lambda item: -item[1])[:_NAMED]
        why = "".join(f", {count:,} {reason}" for reason, count in reasons)
        kept, tables = sum(report.questions.values()), number_of(report.tables, "table")
        say(f"{report.document}: {number_of(kept, 'question')}; {number_of(report.facts, 'cell')} of {tables}{why}")
    for reject in read.unreadable:
        say(f"{reject.document}: not read: {reject.reason}: expected {reject.expected}, found {reject.found}", err=True)
    if read.left_out:
        names = ", ".join(map(shown_name, read.left_out))
        say(f"left out of all contexts ({MANIFEST}: exclude), for pages that cannot be read: {names}", err=True)
    summary = read.summary
    say(f"questions: {summary.questions:,} ({', '.join(f'{n:,} {kind}' for kind, n in summary.by_kind.items())})")
    for stage, reasons_of in summary.rejects.items():
        hint = "; --all keeps those of a share" if any(reason.startswith("share-") for reason in reasons_of) else ""
        say(f"left out by {stage}: {', '.join(f'{n:,} {reason}' for reason, n in reasons_of.items())}{hint}")
    for note in summary.notes:
        say(f"note: {note}")
    say(f"{out}/{DOCUMENTS} says more about each document, {out}/{REJECTS} about what was left out")
    if summary.questions:
        say(f"build them: mmlongbench build {shlex.quote(str(out / MANIFEST))} --out RELEASE")


share_option = click.option(
    "--share",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="The share of questions that two annotators see; questions with a flag are seen by two in any case.",
)


@questions.command("export")
@click.argument("questions", type=FOLDER)
@click.option("--review", required=True, type=NEW_FILE, help="The sheet to write.")
@share_option
def export_sheet(questions: Path, review: Path, share: float) -> None:
    """Write a sheet (CSV) of the folder QUESTIONS for annotators, who decide Retain, Revise or Remove.

    Give each annotator a copy. A row has what the question, its answer and pages are, and empty cells to fill.
    """
    from mmlongbench.questions.review import PROBLEMS, read_folder, write_sheet

    if review.exists():
        raise click.UsageError(
            f"--review {review}: already exists, and decisions in it would be lost; give another file"
        )
    count = write_sheet(review, read_folder(questions).values(), share)
    say(f"{review}: {count:,} rows; decision is Retain, Revise or Remove; problem is one of {', '.join(PROBLEMS)}")


@questions.command("import")
@click.argument("questions", type=FOLDER)
@click.argument("sheets", nargs=-1, required=True, type=FILE)
@share_option
@json_option()
def import_sheets(questions: Path, sheets: Sequence[Path], share: float, as_json: bool) -> None:
    """Merge the filled SHEETS of annotators into QUESTIONS/reviewed: a table, and errata with who and why.

    The first two annotators of a question are compared; where they differ, a later sheet decides. Without one, the
    question stands in third.csv: copy it, fill the copy, and give it with all other sheets. Questions without a final
    decision stay in the table, but for those that were held.
    """
    from mmlongbench.questions.review import REVIEWED, merge, read_folder, read_sheet, write_review

    known, third = read_folder(questions), questions / REVIEWED / "third.csv"
    if third.is_file():  # it is written anew
        try:
            is_filled = any(True for _ in read_sheet(third, known))
        except SourceError:
            is_filled = True
        if is_filled or third.resolve() in [sheet.resolve() for sheet in sheets]:
            said = "would be written anew, and the decisions in it lost"
            raise click.UsageError(f"{third}: {said}; move it out of the folder, and give it there")
    merged = merge(known, sheets, share)
    reviewed = write_review(questions, merged, share)
    if as_json:
        click.echo(json.dumps(json.loads((reviewed / "agreement.json").read_bytes())))
        return
    labels = ", ".join(f"{label} {len(merged.labelled(label)):,}" for label in ("Retain", "Revise", "Remove"))
    say(f"{reviewed}: {labels}")
    agreement = merged.agreement
    if agreement.questions:
        kappa = "not defined (one label only)" if agreement.kappa is None else f"{agreement.kappa:.2f}"
        if agreement.interval:
            kappa += f" ({agreement.interval[0]:.2f} to {agreement.interval[1]:.2f} over documents)"
        say(
            f"two annotators decided {agreement.questions:,}: equal {agreement.equal:.0%}, Cohen's kappa {kappa}, "
            f"AC1 {agreement.ac1:.2f} (MMLongBench-Doc: kappa 0.42)"
        )
    for problem, count in merged.problems.items():
        say(f"  {problem}: {count:,}")
    if differ := merged.needing("third"):
        say(f"{len(differ):,} need a third annotator: {reviewed}/third.csv")
    if more := merged.needing("more"):
        say(f"{len(more):,} need more decisions")
    if undecided := sum(not settled.question.notes.get("flags") for settled in (*differ, *more)):
        say(f"{undecided:,} of these stay in the table as they are")
    for fault in merged.faults[:_FAULTS]:
        say(f"not used: {fault}")
    if len(merged.faults) > _FAULTS:
        say(f"and {len(merged.faults) - _FAULTS:,} more, see {reviewed}/faults.jsonl")
    say(f"build them with `mmlongbench build {shlex.quote(f'{reviewed}/manifest.yaml')} --out release`")

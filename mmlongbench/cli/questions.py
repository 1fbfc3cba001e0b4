"""The subcommand `questions`: questions about a folder of PDFs."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.default_group import DefaultGroup
from mmlongbench.cli.questions_models import Given, Printing, make_with_models, with_models
from mmlongbench.cli.questions_review import export_sheet, import_sheets

if TYPE_CHECKING:
    from mmlongbench.questions.layer.make import Made

_MORE_TIME = "run the same command with more --seconds-a-page to continue, or leave the document out"


@click.group(cls=DefaultGroup)
def questions() -> None:
    """Make questions about DOCUMENTS."""


@questions.of_its_own
@click.argument("documents", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--from",
    "maker",
    type=click.Choice(["layer"]),
    help="What makes the questions: the text layer of the PDFs, without a model.  [default: models, see --url]",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder of the questions.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
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
    "--workers",
    type=click.IntRange(min=1),
    help="The number of processes; all cores by default. It does not change the bytes.",
)
@click.option(
    "--seconds-a-page",
    type=click.FloatRange(min=0, max=86_400, min_open=True),
    help="With --from layer: the seconds that a page of a PDF may take. It does not change the bytes.  [default: 60]",
)
@with_models
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
def make(
    documents: Path,
    maker: str | None,
    out: Path,
    cache: Path | None,
    ocr: bool,
    workers: int | None,
    seconds_a_page: float | None,
    as_json: bool,
    quiet: bool,
    **given: Unpack[Given],
) -> None:
    """Make questions about the PDFs of the folder DOCUMENTS: a table, and a manifest that `build` takes as it is.

    With `--from layer`, every answer is read from the text layer by two readers that must agree; no model is asked.
    With --url and --model, models write the questions, and models of other families check them; the key of the endpoint
    is read from OPENAI_API_KEY. Run the same command again to continue: no call whose answer arrived is repeated, and
    documents whose layer was read are not read again.
    """
    if maker is None:
        if seconds_a_page:
            raise click.UsageError("--seconds-a-page has no effect without --from layer: leave it out")
        make_with_models(documents, out, given, Printing(as_json, quiet), cache)
        return
    if given["url"] or given["models"]:
        raise click.UsageError("--url and --model have no effect with --from layer: leave one of them out")
    from mmlongbench.documents.limits import Limits
    from mmlongbench.errors import TimeLimitError
    from mmlongbench.io.pool import cores
    from mmlongbench.io.progress import Progress
    from mmlongbench.questions.layer.make import LAYERS, Settings, make_questions

    limits = Limits(seconds_a_page=seconds_a_page) if seconds_a_page else Limits()
    settings = Settings(cache or out / LAYERS, limits, with_ocr=ocr)
    progress = Progress(False if quiet or as_json else None)
    try:
        made = make_questions(documents, out, settings, workers or cores(), progress)
    except TimeLimitError as error:
        raise TimeLimitError(error.what, _MORE_TIME) from error
    if as_json:
        click.echo(json.dumps(made.summary.model_dump(mode="json")))
    elif not quiet:
        _show(out, made)


def _show(out: Path, made: "Made") -> None:
    """Print what each document gives and why not more, then the counts."""
    from mmlongbench.io.folders import shown_name
    from mmlongbench.questions.layer.make import DOCUMENTS
    from mmlongbench.questions.table import MANIFEST, REJECTS

    for report in made.reports:
        say(f"{report.document}: {sum(report.questions.values()):,} questions; {report.why}")
    for reject in made.unreadable:
        say(f"{reject.document}: not read: {reject.reason}: expected {reject.expected}, found {reject.found}", err=True)
    if made.left_out:
        names = ", ".join(map(shown_name, made.left_out))
        say(f"left out of all contexts ({MANIFEST}: exclude), for pages that cannot be read: {names}", err=True)
    summary, counts = made.summary, made.summary.counts
    say(f"questions: {summary.questions:,} ({', '.join(f'{n:,} {kind}' for kind, n in summary.by_kind.items())})")
    for stage, reasons in summary.rejects.items():
        say(f"left out by {stage}: {', '.join(f'{n:,} {reason}' for reason, n in reasons.items())}")
    found, of = counts["search finds the pages at rank 1"], counts["questions with pages"]
    say(
        f"without pictures: a plain search finds the pages of {found:,} of {of:,} questions first; a simple reader of "
        f"text is right on {counts['text reader is right']:,} of {summary.questions:,}"
    )
    say(f"{out}/{DOCUMENTS} says more about each document, {out}/{REJECTS} about what was left out")
    if summary.questions:
        say(f"build them: mmlongbench build {shlex.quote(str(out / MANIFEST))} --out RELEASE")


questions.add_command(export_sheet)
questions.add_command(import_sheets)

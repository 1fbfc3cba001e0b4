"""The subcommand `questions`: questions about a folder of PDFs."""

from pathlib import Path
from typing import Unpack

import click

from mmlongbench.cli.default_group import DefaultGroup
from mmlongbench.cli.questions_models import Given, make_with_models, with_models
from mmlongbench.cli.questions_review import export_sheet, import_sheets


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
@with_models
def make(documents: Path, maker: str | None, out: Path, **given: Unpack[Given]) -> None:
    """Make questions about the PDFs of the folder DOCUMENTS: a table, and a manifest that `build` takes as it is.

    With --url and --model, models write the questions, and models of other families check them. Run the same command
    again to continue: no call whose answer arrived is repeated. The key of the endpoint is read from OPENAI_API_KEY.
    """
    if maker is None:
        make_with_models(documents, out, given)


questions.add_command(export_sheet)
questions.add_command(import_sheets)

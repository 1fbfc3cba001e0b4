"""The subcommand `questions`: questions about a folder of PDFs."""

from pathlib import Path

import click

from mmlongbench.cli.default_group import DefaultGroup


@click.group(cls=DefaultGroup)
def questions() -> None:
    """Make questions about DOCUMENTS."""


@questions.of_its_own
@click.argument("documents", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--from",
    "maker",
    type=click.Choice(["layer"]),
    required=True,
    help="What makes the questions: the text layer of the PDFs, without a model.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder of the questions.")
def make(documents: Path, maker: str, out: Path) -> None:
    """Make questions about the PDFs of the folder DOCUMENTS: a table, and a manifest that `build` takes as it is."""

"""A group that is a command itself."""

import click
import pytest
from click.testing import CliRunner, Result

from mmlongbench.cli.default_group import DefaultGroup


@click.group()
def program() -> None:
    """A program with one such group."""


@click.group(cls=DefaultGroup)
def make() -> None:
    """Replaced by the text of the own command."""


@make.of_its_own
@click.argument("folder")
@click.option("--from", "kind", required=True, help="What to make it from.")
def own(folder: str, kind: str) -> None:
    """Make something of FOLDER."""
    click.echo(f"made {folder} from {kind}")


program.add_command(make)


@make.command()
@click.argument("folder")
@click.option("--review", is_flag=True, help="For people.")
def export(folder: str, review: bool) -> None:
    """Export FOLDER."""
    click.echo(f"exported {folder} {review}")


def run(*args: str) -> Result:
    return CliRunner().invoke(program, args)


@pytest.mark.parametrize(
    ("args", "printed"),
    [
        (("docs", "--from", "layer"), "made docs from layer\n"),
        (("--from", "layer", "docs"), "made docs from layer\n"),
        (("./export", "--from", "layer"), "made ./export from layer\n"),
        (("--from", "layer", "export"), "made export from layer\n"),
        (("--from", "export", "docs"), "made docs from export\n"),
        (("export", "docs", "--review"), "exported docs True\n"),
        (("export", "export"), "exported export False\n"),
    ],
)
def test_only_a_first_argument_that_is_the_name_of_a_subcommand_runs_one(args: tuple[str, ...], printed: str) -> None:
    done = run("make", *args)
    assert (done.exit_code, done.output) == (0, printed)


@pytest.mark.parametrize("args", [("--help",), ()])
def test_the_help_shows_the_own_command_and_the_subcommands(args: tuple[str, ...]) -> None:
    shown = run("make", *args).output
    assert shown.startswith("Usage: program make [OPTIONS] FOLDER\n")
    for text in ("Make something of FOLDER.", "--from TEXT", "What to make it from.", "export  Export FOLDER."):
        assert text in shown


def test_help_after_other_arguments_is_that_of_the_own_command() -> None:
    shown = run("make", "docs", "--help")
    assert shown.exit_code == 0
    assert shown.output.startswith("Usage: program make [OPTIONS] FOLDER\n")


def test_an_error_names_the_group_as_the_user_typed_it() -> None:
    refused = run("make", "docs")
    assert refused.exit_code == 2
    assert "Try 'program make --help'" in refused.output
    assert "Missing option '--from'" in refused.output

"""The command `mmlongbench`: its subcommands in groups, errors in one line, and exit codes."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import NoReturn

import click

from mmlongbench.cli.console import error_line, interrupted_soon, printable_streams, say
from mmlongbench.errors import StrictStop, TooFewKept
from mmlongbench.io.shadowing import shadowed

COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Make": {
        "new": ("new:new", "Write a folder to begin with: a task, its manifest and a test."),
        "fetch": ("sources:fetch", "Download the sources of a manifest."),
        "corpus": ("sources:corpus", "Cut articles into passages, and search them."),
        "questions": ("questions:questions", "Make questions about PDFs."),
        "plan": ("build:plan", "Forecast a build: examples, images, disk, time."),
        "build": ("build:build", "Build a release from a manifest."),
        "finish": ("build:finish", "Finish a release that was built in stages."),
    },
    "Look": {
        "list": ("listing:list_installed", "List builders, readers, metrics, targets and manifests."),
        "schema": ("listing:schema", "Print a JSON Schema for editors."),
        "show": ("show:show", "Show one example as a model gets it."),
        "view": ("view:view", "Look at a release in a browser."),
        "stats": ("audit:stats", "Count images per example, by dataset and length."),
        "count": ("count:count", "Count the tokens of pictures, PDFs and texts."),
    },
    "Trust": {
        "check": ("check:check", "Hold the tasks of a manifest to the rules of every task."),
        "doctor": ("check:doctor", "List annotations of the sources that may be wrong."),
        "audit": ("audit:audit", "Count every example of a release again."),
        "verify": ("verify:verify", "Check that a release is complete."),
        "diff": ("verify:diff", "Print what differs between two releases."),
        "shortcuts": ("shortcuts:shortcuts", "Try to tell the answers without looking."),
    },
    "Models": {
        "run": ("run:run", "Give a model the examples of a release."),
        "collect": ("export:collect", "Write results of batch requests as predictions."),
        "score": ("score:score", "Score the predictions of a model."),
        "claims": ("score:claims", "Split gold summaries into claims, for a judge."),
        "report": ("report:report", "Compare models by their scores."),
    },
    "Share": {
        "export": ("export:export", "Write examples in the form of another tool."),
        "rights": ("publish:rights", "Show where images and texts come from, and their licences."),
        "publish": ("publish:publish", "Make a folder that is ready to publish, and upload it."),
        "takedown": ("publish:takedown", "Write a release anew without a document, image or source."),
    },
}
"""The commands of each group of `--help`: (module in this package and its command, what the command does)."""
EXIT_CODES = """
\b
Exit codes:
  0    done; an audit, `check` or `verify` found nothing wrong, two releases
       are the same
  1    an audit, `check` or `verify` found something wrong, two releases
       differ, --strict stopped at a reject, a build kept no question or less
       than --min-kept, a file could not be fetched, a prediction is missing
       or does not fit, or a score or claim could not be made
  2    the arguments, the manifest, a source or the output folder must be
       corrected
  130  interrupted; run the same command to continue
"""
INTERRUPTED = "interrupted; completed files are intact, run the same command to continue"


class LazyGroup(click.Group):
    """Imports the module of a command when the command is called, because importing all of them takes a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for commands in COMMANDS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for commands in COMMANDS.values():
            if cmd_name in commands:
                module, _, attribute = commands[cmd_name][0].partition(":")
                command: click.Command = getattr(import_module(f"mmlongbench.cli.{module}"), attribute)
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for group, commands in COMMANDS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), about) for name, (_, about) in commands.items()])


@click.group(
    cls=LazyGroup,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(package_name="mmlongbench")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def cli(debug: bool) -> None:
    """Build, audit and inspect long-context vision-language benchmarks.

    A manifest goes in; a release of examples with controlled lengths comes out, and every token of every example is
    accounted for.
    """


def main() -> NoReturn:
    """Run the command line. An error that a user can fix is printed as one line; `--debug` shows the traceback."""
    with printable_streams():
        sys.exit(_run())


def _run() -> int:
    if line := shadowed():
        say(f"error: {line}", err=True)
        return 2
    try:
        with interrupted_soon(INTERRUPTED):
            cli(prog_name="mmlongbench", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort) as stop:
        say(str(stop.__cause__ or "") or INTERRUPTED, err=True)  # click raises Abort from the KeyboardInterrupt
        return 130
    except Exception as error:
        line = error_line(error)
        if "--debug" in sys.argv or not line:
            raise
        say(f"error: {line}", err=True)
        return 1 if isinstance(error, StrictStop | TooFewKept) else 2
    return 0

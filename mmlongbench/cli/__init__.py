"""The command line. This is the only package that prints; it imports the engine when a command runs."""

import click

from mmlongbench.io.printable import printable
from mmlongbench.io.shadowing import shadowed

try:
    from mmlongbench.cli.main import main
except ImportError as error:
    if not (line := shadowed()):
        raise
    click.echo(f"error: {printable(line)}", err=True)
    raise SystemExit(2) from error

__all__ = ["main"]

"""The command line. The only place that prints; imports the engine when a command runs."""

from mmlongbench.cli.main import main

__all__ = ["main"]

"""The command line. This is the only package that prints; it imports the engine when a command runs."""

from mmlongbench.cli.main import main

__all__ = ["main"]

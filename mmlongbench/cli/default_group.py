"""A group of commands that is a command itself: its first argument need not be the name of a subcommand."""

from collections.abc import Callable
from typing import Any

import click

_OWN = "\0"
"""Stands for the group's own command among the arguments; no argument of a process can contain it."""


class _OwnContext(click.Context):
    """The context of a group's own command, which is called by the name of the group."""

    @property
    def command_path(self) -> str:
        return self.parent.command_path if self.parent else super().command_path


class DefaultGroup(click.Group):
    """Runs a subcommand if the first argument is the name of one; otherwise the group's own command, with all
    arguments. A folder called like a subcommand is given as `./name`.
    """

    own: click.Command

    def of_its_own(self, function: Callable[..., Any]) -> click.Command:
        """Make a function with options and arguments the group's own command."""
        self.own = click.command()(function)
        self.own.context_class = _OwnContext
        self.params, self.help = self.own.params, self.own.help
        return self.own

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put a name before the arguments of the group's own command."""
        is_own = bool(args) and args[0] not in self.commands and args[0] not in ctx.help_option_names
        params, self.params = self.params, []  # the group itself has no parameters; they are listed for the help
        try:
            return super().parse_args(ctx, [_OWN, *args] if is_own else args)
        finally:
            self.params = params

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand, or the group's own command."""
        if args[0] == _OWN:
            return self.name, self.own, args[1:]
        return super().resolve_command(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show how the group's own command is used."""
        self.own.format_usage(_own_context(self.own, ctx), formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options of the group's own command, then the subcommands."""
        self.own.format_options(_own_context(self.own, ctx), formatter)
        self.format_commands(ctx, formatter)


def _own_context(own: click.Command, ctx: click.Context) -> click.Context:
    return _OwnContext(own, parent=ctx, info_name=ctx.info_name)

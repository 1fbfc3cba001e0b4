"""The options of all commands that call models."""

from collections.abc import Callable
from typing import Any

import click

CONCURRENCY: Callable[..., Any] = click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="The number of calls at the same time.",
)
TIMEOUT: Callable[..., Any] = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="The seconds that one call may take.",
)
PRICES: Callable[..., Any] = click.option(
    "--prices",
    nargs=2,
    type=click.FloatRange(min=0),
    metavar="IN OUT",
    help="Prices of a million tokens of prompt and of answer, to report the cost.",
)

"""Progress bars on anything over two seconds; none when the output is no terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0
"""Seconds before a bar appears."""


class Progress:
    """Shows bars, or nothing."""

    def __init__(self, is_shown: bool | None = None) -> None:
        """By default bars are shown where standard error is a terminal."""
        self.is_shown = sys.stderr.isatty() if is_shown is None else is_shown

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        """A bar over `total` steps; the block calls what it is given once a step."""
        if not self.is_shown:
            yield lambda: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        bars = Bars(*columns, console=Console(stderr=True), transient=True)
        task = bars.add_task(label, total=total)
        began = time.monotonic()

        def advance() -> None:
            bars.advance(task)
            if time.monotonic() - began > PATIENCE and not bars.live.is_started:
                bars.start()

        try:
            yield advance
        finally:
            if bars.live.is_started:
                bars.stop()

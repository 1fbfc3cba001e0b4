"""Progress bars on anything over two seconds; none when the output is no terminal."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

PATIENCE = 2.0
"""Seconds before a bar appears."""


Advance: TypeAlias = Callable[[int], None]
"""Moves a bar on by so many steps."""


class Progress:
    """Shows bars, or nothing."""

    def __init__(self, is_shown: bool | None = None) -> None:
        """By default bars are shown where standard error is a terminal."""
        self.is_shown = sys.stderr.isatty() if is_shown is None else is_shown

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        """A bar over `total` steps; the block calls what it is given once a step."""
        with self.meter(label, total) as advance:
            yield lambda: advance(1)

    @contextmanager
    def meter(self, label: str, total: int) -> Iterator[Advance]:
        """A bar over `total` steps; the block calls what it is given with the steps that are done.

        It appears by the clock, so that a first step that takes long is seen to be under way.
        """
        if not self.is_shown:
            yield lambda steps: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        bars = Bars(*columns, console=Console(stderr=True), transient=True)
        task = bars.add_task(label, total=total)
        patience = threading.Timer(PATIENCE, bars.start)
        patience.daemon = True
        patience.start()
        try:
            yield lambda steps: bars.advance(task, steps)
        finally:
            patience.cancel()
            patience.join()  # it may be just at it
            bars.stop()

"""Progress bars on anything over two seconds; none when the output is no terminal."""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from mmlongbench.io.printable import shown

PATIENCE = 2.0
"""Seconds before a bar appears."""


Advance: TypeAlias = Callable[[int], None]
"""Moves a bar on by so many steps."""
AdvanceGroup: TypeAlias = Callable[[str, int], None]
"""Moves the bar of a group on by so many steps."""


class Progress:
    """Shows bars, or nothing."""

    def __init__(self, is_shown: bool | None = None) -> None:
        """By default bars are shown where standard error is a terminal."""
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.is_shown = is_terminal if is_shown is None else is_shown

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        """A bar over `total` steps; the block calls what it is given once a step."""
        with self.meter(label, total) as advance:
            yield lambda: advance(1)

    @contextmanager
    def meter(self, label: str, total: int) -> Iterator[Advance]:
        """A bar over `total` steps; the block calls what it is given with the steps that are done."""
        with self.board({label: total}) as advance:
            yield lambda steps: advance(label, steps)

    @contextmanager
    def board(self, totals: Mapping[str, int]) -> Iterator[AdvanceGroup]:
        """A bar for each group that is under way: how many of its steps are done, how many a second, the time left.

        They appear by the clock, so that a first step that takes long is seen to be under way.
        """
        if not self.is_shown or not totals:
            yield lambda group, steps: None
            return
        from mmlongbench.io.bars import new_bars

        bars = new_bars()
        tasks = {group: bars.add_task(shown(group), total=total, visible=False) for group, total in totals.items()}
        bars.update(next(iter(tasks.values())), visible=True)

        def advance(group: str, steps: int) -> None:
            bars.advance(tasks[group], steps)
            bars.update(tasks[group], visible=not bars.tasks[tasks[group]].finished)
            if not any(task.visible for task in bars.tasks):
                for task in [task for task in bars.tasks if not task.finished][:1]:
                    bars.update(task.id, visible=True)

        patience = threading.Timer(PATIENCE, bars.start)
        patience.daemon = True
        patience.start()
        try:
            yield advance
        finally:
            patience.cancel()
            patience.join()  # it may be just at it
            bars.stop()

"""Progress bars for anything that takes more than a moment; by default only if standard error is a terminal."""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from mmlongbench.io.printable import drawn_on, shown

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


PATIENCE = 0.4
"""The seconds before a bar appears: with the start of a command, it is seen within a second."""
_NARROW = 100
"""On a narrower terminal the bar itself is short, so that its label and numbers have room on one line."""


Advance: TypeAlias = Callable[[float], None]
"""A function that moves a bar by a number of steps."""
AdvanceGroup: TypeAlias = Callable[[str, float], None]
"""A function that moves the bar of a group by a number of steps."""


class Progress:
    """Shows bars, or nothing."""

    def __init__(self, is_shown: bool | None = None) -> None:
        """Show bars if `is_shown` is true. If it is None, show them only if standard error is a terminal."""
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.is_shown = is_terminal if is_shown is None else is_shown

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar with `total` steps; the block calls the given function once a step."""
        with self.board({label: total}) as advance:
            yield lambda: advance(label, 1)

    @contextmanager
    def meter(self, label: str, total: int) -> Iterator[Advance]:
        """Show a bar with `total` steps; the block calls the given function with the number of steps done."""
        with self.board({label: total}) as advance:
            yield lambda steps: advance(label, steps)

    @contextmanager
    def telling(self, label: str, total: int) -> Iterator[Callable[[str], None]]:
        """Show a bar with `total` steps; the block calls the given function once a step, with words to show beside the
        label.
        """
        with self._bars({label: total}) as (bars, tasks):

            def tell(words: str) -> None:
                if bars:
                    said = shown(f"{label}: {words}" if words else label)
                    bars.update(tasks[label], advance=1, description=said)

            yield tell

    @contextmanager
    def board(self, totals: Mapping[str, int]) -> Iterator[AdvanceGroup]:
        """Show a bar for each group that is under way, with the steps done, the steps a second and the time left.

        A timer makes the bars appear, so that a slow first step is visible too.
        """
        with self._bars(totals) as (bars, tasks):

            def advance(group: str, steps: float) -> None:
                if not bars:
                    return
                bars.advance(tasks[group], steps)
                bars.update(tasks[group], visible=not bars.tasks[tasks[group]].finished)
                left = [task for task in bars.tasks if not task.finished]
                if left and not any(task.visible for task in bars.tasks):
                    bars.update(left[0].id, visible=True)

            yield advance

    @contextmanager
    def _bars(self, totals: Mapping[str, int]) -> "Iterator[tuple[Bars | None, dict[str, TaskID]]]":
        """Yield the bars and the task of each group; (None, {}) if no bars are shown."""
        if not self.is_shown or not totals:
            yield None, {}
            return

        from rich import progress
        from rich.console import Console
        from rich.table import Column
        from rich.text import Text

        class Rate(progress.ProgressColumn):
            def render(self, task: progress.Task) -> Text:
                speed = task.speed or 0.0
                said = f"{speed:,.0f}/s" if speed >= 100 else f"{speed:.1f}/s"
                return Text(said if speed else "", style="progress.data.speed")

        console = Console(file=drawn_on(sys.stderr))
        bar, count = 10 if console.width < _NARROW else 40, 2 * len(f"{max(totals.values()):,}") + 1
        # rich would cut numbers to make room for a label: it gets what the bar, the numbers (a rate such as 12,345/s, a
        # time such as 0:00:00) and the gaps leave
        room = max(10, console.width - bar - count - len("12,345/s") - len("0:00:00") - 5)
        label = Column(no_wrap=True, overflow="ellipsis", max_width=room)
        columns = (
            progress.TextColumn("{task.description}", markup=False, table_column=label),
            progress.BarColumn(bar),
            progress.TextColumn("{task.completed:,.0f}/{task.total:,.0f}", style="progress.download"),
            Rate(),
            progress.TimeRemainingColumn(),
        )
        bars = progress.Progress(*columns, console=console, transient=True)
        tasks = {group: bars.add_task(shown(group), total=total, visible=False) for group, total in totals.items()}
        bars.update(next(iter(tasks.values())), visible=True)
        patience = threading.Timer(PATIENCE, bars.start)
        patience.daemon = True
        patience.start()
        try:
            yield bars, tasks
        finally:
            patience.cancel()
            patience.join()  # the timer may just be running
            bars.stop()

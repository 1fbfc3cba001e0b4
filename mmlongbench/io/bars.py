"""The look of a progress line: its label, the steps done, steps a second, the time left."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from mmlongbench.io.printable import drawn_on


class Rate(ProgressColumn):
    """The column with the steps a second, measured over the last steps."""

    def render(self, task: Task) -> Text:
        """Return the steps a second, or an empty text until the first steps are done."""
        return Text("" if task.speed is None else f"{task.speed:,.1f}/s", style="progress.data.speed")


def new_bars() -> Progress:
    """Return progress lines on standard error that disappear when they are done."""
    group = TextColumn("{task.description}", markup=False)
    columns = (group, BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    return Progress(*columns, console=Console(file=drawn_on(sys.stderr)), transient=True)

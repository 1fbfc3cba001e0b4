"""The look of a line of progress: what it is, how much of it is done, how much a second, the time left."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from mmlongbench.io.printable import drawn_on


class Rate(ProgressColumn):
    """Steps a second, as the last of them went."""

    def render(self, task: Task) -> Text:
        """Nothing until the first steps are done."""
        return Text("" if task.speed is None else f"{task.speed:,.1f}/s", style="progress.data.speed")


def new_bars() -> Progress:
    """Lines on standard error that go when they are done."""
    group = TextColumn("{task.description}", markup=False)
    columns = (group, BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    return Progress(*columns, console=Console(file=drawn_on(sys.stderr)), transient=True)

"""Task files on the command line: the options of commands that are given a release, and the line that says which files
of a manifest are run.
"""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmlongbench.cli.console import say

if TYPE_CHECKING:
    from mmlongbench.manifest.model import Manifest


task_option = click.option(
    "--task",
    "task_files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A task file that the release was built with; its code runs. Repeatable.",
)
"""The option `--task` alone."""


def with_tasks(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options; it receives one argument `tasks`, a `TaskFiles`."""

    @task_option
    @click.option(
        "--allow-changed-task", is_flag=True, help="Use a --task FILE that differs from the one of the release."
    )
    @wraps(command)
    def given(*args: Any, task_files: tuple[Path, ...], allow_changed_task: bool, **options: Any) -> Any:  # noqa: ANN401
        from mmlongbench.manifest.task_files import TaskFiles

        return command(*args, tasks=TaskFiles(task_files, allow_changed_task), **options)

    return given


def say_code(manifest: "Manifest") -> None:
    """Say on standard error which task files a manifest makes run; nothing without task files. `--quiet` and `--json`
    do not hide this line, because whoever builds a manifest of others must see that its code runs.
    """
    if found := dict.fromkeys(path.name for path in files_of(manifest)):
        say(f"note: the code of {', '.join(found)} runs, because the manifest names it", err=True)


def files_of(manifest: "Manifest") -> list[Path]:
    """Return the task files that a manifest names, each once."""
    from mmlongbench.manifest.task_files import task_files_of

    files = (file.path for spec in manifest.datasets for file in task_files_of(spec.builder, spec.reader))
    return list(dict.fromkeys(files))

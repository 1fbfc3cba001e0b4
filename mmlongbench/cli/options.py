"""The options of every command that is given a manifest, and the reading of this manifest."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmlongbench.cli.console import say

if TYPE_CHECKING:
    from mmlongbench.manifest.model import Manifest

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


def with_manifest(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument MANIFEST and the options `--data` and `--set`; it receives one argument `given`, a
    `Manifest`.
    """

    @click.argument("manifest")
    @click.option(
        "--data",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        metavar="DIR",
        help="The folder that relative paths of sources are in; by default the folder of the manifest.",
    )
    @click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override: [dataset.]key=value, e.g. source.documents=pdfs/.",
    )
    @wraps(command)
    def run(*args: Any, manifest: str, data: Path | None, settings: tuple[str, ...], **options: Any) -> Any:  # noqa: ANN401
        return command(*args, given=_read(manifest, data, settings), **options)

    return run


def lengths_option(metavar: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--lengths`, whose values are joined if it is given more than once."""
    return click.option(
        "--lengths",
        multiple=True,
        metavar=metavar,
        callback=lambda _context, _parameter, given: ",".join(given) if given else None,
        help=help,
    )


def _read(manifest: str, data: Path | None, settings: tuple[str, ...]) -> "Manifest":
    from mmlongbench.manifest.loading import data_folder, find_manifest, load_manifest

    return load_manifest(find_manifest(manifest), settings, data=data_folder(data))

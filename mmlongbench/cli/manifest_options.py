"""The options of every command that is given a manifest, and the reading of this manifest."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mmlongbench.manifest.model import Manifest


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

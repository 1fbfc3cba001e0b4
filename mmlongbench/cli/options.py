"""Options that several commands have, and options that are made from the fields of a dataclass."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import click

from mmlongbench.cli.console import say
from mmlongbench.field_texts import field_texts
from mmlongbench.io.progress import Progress

if TYPE_CHECKING:
    from mmlongbench.manifest.model import Manifest

Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]
_KindT = TypeVar("_KindT")

PATH = click.Path(path_type=Path, exists=True)
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
NEW_PATH = click.Path(path_type=Path)
NEW_FILE = click.Path(path_type=Path, dir_okay=False)
NEW_FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)
ABOVE_0 = click.FloatRange(min=0, min_open=True)

tokenizers_option = click.option(
    "--text-tokenizer", "tokenizers", multiple=True, metavar="MODEL=PATH|ID", help="The tokenizer for a model's text."
)
fits_option = click.option(
    "--fits",
    multiple=True,
    metavar="[MODEL=]TOKENS",
    help="The context window of these models, or of one of them, such as 128K: how many examples fit? Repeatable.",
)
workers_option = click.option(
    "--workers",
    type=COUNT,
    default=1,
    show_default=True,
    help="The number of processes; it does not change the result.",
)
html_option = click.option("--html", type=NEW_FILE, help="Write an HTML page.")


def json_option(help: str = "Print one JSON object.") -> Decorator:
    """The option `--json`, which the command gets as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def quiet_option(help: str = "Print only errors.") -> Decorator:
    """The options `-q` and `--quiet`."""
    return click.option("-q", "--quiet", is_flag=True, help=help)


def bars(*, is_quiet: bool) -> Progress:
    """Return bars of progress; quiet, there are none, and otherwise only on a terminal."""
    return Progress(False if is_quiet else None)


def options_of(
    kind: type[_KindT], name: str, prefix: str = "--", without: Collection[str] = (), **changes: Mapping[str, Any]
) -> Decorator:
    """Give a command an option for each field of a dataclass; the command gets one argument, made of the values.

    The type, the default and the help of an option are those of its field. A tuple of texts is an option that may be
    repeated, without the `s` at the end of the field's name; the option of a flag has no `is_` before its name. Whole
    numbers are at least 1.

    Args:
        kind: the dataclass.
        name: the name of the argument.
        prefix: the beginning of the names of the options.
        without: the fields that have no option, because the command sets them.
        changes: for a field whose option differs, the other arguments of `click.option`; `option` is its name.

    """
    texts, hints = field_texts(kind), get_type_hints(kind)
    made = [field for field in fields(kind) if field.name not in without]  # type: ignore[arg-type]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: Any, **options: Any) -> Any:  # noqa: ANN401  (a command returns nothing)
            values = {field.name: options.pop(f"{name}_{field.name}") for field in made}
            return command(*args, **{name: kind(**values)}, **options)

        for field in reversed(made):
            how = {**_option(field, hints[field.name], texts.get(field.name, "")), **changes.get(field.name, {})}
            spelled = field.name.removesuffix("s") if "multiple" in how else field.name
            spelled = spelled.removeprefix("is_").replace("_", "-")
            run = click.option(how.pop("option", f"{prefix}{spelled}"), f"{name}_{field.name}", **how)(run)
        return run

    return decorate


_TYPES: Mapping[object, click.ParamType[Any]] = {
    str: click.STRING,
    int: COUNT,
    float: click.FloatRange(min=0),
    Path: NEW_FILE,
}


_METAVARS: Mapping[str, str] = {
    **dict.fromkeys(("context", "datasets", "form", "model", "models"), "NAME"),
    "after": "DIR",
    "cleared": "LICENCE",
    "count_as": "MODEL",
    "images": "FORM",
    "lengths": "8K",
    "prices": "IN OUT",
    "text_tokenizer": "PATH|ID",
    "url": "URL",
}
"""What stands for the value of an option in `--help`, by the name of the field."""


def _option(field: "Field[Any]", hint: object, text: str) -> dict[str, Any]:
    kind = next(each for each in get_args(hint) if each is not NoneType) if NoneType in get_args(hint) else hint
    if kind is bool:
        return {"is_flag": True, "help": text}
    how: dict[str, Any] = {"help": text}
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        how |= {"multiple": True} if parts[-1] is ... else {"nargs": len(parts)}
        kind = parts[0]
    how["type"] = ABOVE_0 if field.name == "timeout" else _TYPES.get(kind, click.STRING)
    how["metavar"] = _METAVARS.get(field.name)
    if field.default is MISSING:
        return {**how, "required": True}
    return {**how, "default": field.default, "show_default": field.default not in (None, "", ())}


task_option = click.option(
    "--task",
    "task_files",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="A task file that the release was built with; its code runs. Repeatable.",
)
"""The option `--task` alone."""


def variant_option(help: str) -> Decorator:
    """Give a command the option `--variant`, the name of another form of prompts."""
    return click.option("--variant", default="", metavar="NAME", help=help)


def with_tasks(command: Command) -> Command:
    """Give a command the options about task files; it gets one argument `tasks`, a `TaskFiles`."""

    @task_option
    @click.option(
        "--allow-changed-task", is_flag=True, help="Use a --task FILE that differs from the one of the release."
    )
    @wraps(command)
    def run(*args: Any, task_files: tuple[Path, ...], allow_changed_task: bool, **options: Any) -> Any:  # noqa: ANN401
        from mmlongbench.manifest.task_files import TaskFiles

        return command(*args, tasks=TaskFiles(task_files, allow_changed_task), **options)

    return run


def with_manifest(command: Command) -> Command:
    """Give a command the argument MANIFEST and the options `--data` and `--set`; it gets one argument `manifest`, a
    `Manifest`.

    Standard error says which task files the manifest makes run. `--quiet` and `--json` do not hide this line, because
    whoever builds a manifest of others must see that its code runs.
    """

    @click.argument("manifest")
    @click.option(
        "--data",
        type=FOLDER,
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
        from mmlongbench.manifest.loading import data_folder, find_manifest, load_manifest

        loaded = load_manifest(find_manifest(manifest), settings, data=data_folder(data))
        if names := dict.fromkeys(path.name for path in task_files(loaded)):
            say(f"note: the code of {', '.join(names)} runs, because the manifest names it", err=True)
        known = [spec.name for spec in loaded.datasets]
        for spec in (spec for spec in loaded.datasets if spec.drawn_name not in known):
            said = f"note: {spec.name} is drawn as {spec.drawn_name!r}, which is not in this manifest"
            say(f"{said} ({', '.join(known)}); it may be in another one, or mistyped", err=True)
        return command(*args, manifest=loaded, **options)

    return run


def task_files(manifest: "Manifest") -> list[Path]:
    """Return the task files that a manifest names, each once."""
    from mmlongbench.manifest.task_files import task_files_of

    files = (file.path for spec in manifest.datasets for file in task_files_of(spec.builder, spec.reader))
    return list(dict.fromkeys(files))


def lengths_option(metavar: str, help: str) -> Decorator:
    """The option `--lengths`, whose values are joined if it is given more than once."""
    return click.option(
        "--lengths",
        multiple=True,
        metavar=metavar,
        callback=lambda _context, _parameter, given: ",".join(given) if given else None,
        help=help,
    )


def number_of(count: int, what: str) -> str:
    """Return a number of things in words.

    >>> number_of(1, "call"), number_of(2000, "call")
    ('1 call', '2,000 calls')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def usage_of(usage: Mapping[str, float]) -> str:
    """Return what calls of a model took, in words (see `ModelClient.usage`)."""
    cost = f", cost {usage['cost']:,.2f}" if "cost" in usage else ""
    return (
        f"calls: {usage['calls']:,.0f} made, {usage['from_cache']:,.0f} answered from the file; "
        f"tokens: {usage['input_tokens']:,.0f} of prompts, {usage['output_tokens']:,.0f} of answers{cost}"
    )

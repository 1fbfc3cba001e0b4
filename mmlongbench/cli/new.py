"""The subcommand `new task`: writes a folder with a task that builds, and says what to run next.

The templates are in `task_template/`. A name that ends in `.txt` is that of a template (`string.Template`); all other
files are copied.
"""

import json
import keyword
import os
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from string import Template

import click
import yaml

from mmlongbench.cli.console import say
from mmlongbench.errors import ManifestError
from mmlongbench.io.archives import whole_folder
from mmlongbench.io.locations import local_path
from mmlongbench.manifest.plugins import is_installed

MAX_NAME = 36  # the maximum number of characters of a name
_TEMPLATES = Path(__file__).parent / "task_template"
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@click.group()
def new() -> None:
    """Write a folder to begin with."""


@new.command()
@click.argument("name")
@click.option("--out", metavar="FOLDER", help="The folder, which must not exist.  [default: ./NAME]")
@click.option(
    "--package", "is_package", is_flag=True, help="Also write a pyproject.toml, so that the task can be installed."
)
def task(name: str, out: str | None, is_package: bool) -> None:
    """Write a folder with a task in one file, its manifest, a small sample, a test and a README.

    NAME is a word: letters, digits and underscores. The task builds at once; change it step by step.
    """
    if fault := _name_fault(name):
        raise click.UsageError(f"NAME {name!r:.80}: {fault}")
    if out is not None and (not out.strip() or out.startswith("-")):
        raise click.UsageError(f"--out {out!r}: expected a folder{f'; write ./{out}' if out.strip() else ''}")
    folder = local_path(out or name, "--out", ManifestError)
    if os.path.lexists(folder):
        raise click.UsageError(f"{folder} exists already; give another folder with --out, or another name")
    _write(folder, name, is_package=is_package)
    task_option = "" if is_package else f" --task {name}.py"
    say(f"{folder}: a task that finds the page which answers a question; {name}.py says what to change first")
    say("run:")
    say(f"  cd {shlex.quote(str(folder))}")
    if is_package:
        say("  pip install -e .")
    say(f"  mmlongbench build {name}.yaml --out release")
    say(f"  mmlongbench audit release{task_option}")
    say(f"  mmlongbench check {name}.yaml")
    say("  pytest")


def _name_fault(name: str) -> str:
    if not _WORD.fullmatch(name) or len(name) > MAX_NAME:
        return f"expected a word of at most {MAX_NAME} letters, digits and underscores that begins with a letter"
    if keyword.iskeyword(name) or keyword.iskeyword(_class_name(name)):
        return "it is a keyword of Python; choose another name"
    for kind in ("builder", "reader"):
        if is_installed(kind, name):
            return f"a {kind} of this name is installed (`mmlongbench list`); choose another name"
    spec = None if name in sys.modules else find_spec(name)
    is_module = name in sys.modules or (spec is not None and spec.origin is not None)  # a folder alone is none
    if name in sys.stdlib_module_names or is_module:
        return f"Python has a module of this name, which {name}.py would hide; choose another name"
    if name == "conftest" or name.startswith("test_"):
        return "pytest would take it for a file of tests; choose another name"
    return ""


def _class_name(name: str) -> str:
    """Return the name of the class of a task.

    >>> _class_name("dated_pages")
    'DatedPages'
    """
    return "".join(f"{part[:1].upper()}{part[1:]}" for part in name.split("_"))


def _write(folder: Path, name: str, *, is_package: bool) -> None:
    yaml_name = name if isinstance(yaml.safe_load(name), str) else json.dumps(name)  # words such as `yes`
    package = "| `pyproject.toml` | makes a package of it; its builder has the name of the task |\n"
    install = "\nInstall it first; then `mmlongbench list` shows its builder:\n\n```sh\npip install -e .\n```\n"
    values = {
        "name": name,
        "class_name": _class_name(name),
        "yaml_name": yaml_name,
        "builder": yaml_name if is_package else f"{name}.py:{_class_name(name)}",
        "distribution": f"mmlongbench-{name.replace('_', '-').strip('-')}",
        "package_row": package if is_package else "",
        "install": install if is_package else "",
        "task_option": "" if is_package else f" --task {name}.py",
    }
    named = {"task.py": f"{name}.py", "manifest.yaml": f"{name}.yaml", "test_task.py": f"test_{name}.py"}
    with whole_folder(folder) as whole:
        for file in (path for path in _TEMPLATES.rglob("*") if path.is_file()):
            if file.name == "pyproject.toml.txt" and not is_package:
                continue
            data, path = file.read_bytes(), whole / file.relative_to(_TEMPLATES)
            if file.suffix == ".txt":
                data = Template(data.decode()).substitute(values).encode()
                path = path.with_name(named.get(file.stem, file.stem))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if os.path.lexists(folder):  # made by another process in the meantime
            raise click.UsageError(f"{folder} exists already; give another folder with --out, or another name")

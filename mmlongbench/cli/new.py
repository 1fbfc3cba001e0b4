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
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from string import Template

import click

from mmlongbench.cli.console import say
from mmlongbench.errors import ManifestError
from mmlongbench.io.files import TEMPORARY
from mmlongbench.io.locations import local_path
from mmlongbench.manifest.plugins import is_installed

MAX_NAME = 36
"""The maximum number of characters of a name."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PACKAGE = "pyproject.toml.txt"


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
    if fault := name_fault(name):
        raise click.UsageError(f"NAME {name!r:.80}: {fault}")
    if out is not None and (not out.strip() or out.startswith("-")):
        raise click.UsageError(f"--out {out!r}: expected a folder{f'; write ./{out}' if out.strip() else ''}")
    folder = local_path(out or name, "--out", ManifestError)
    if os.path.lexists(folder):
        raise click.UsageError(f"{folder} exists already; give another folder with --out, or another name")
    made = NewTask(name, is_package)
    made.write(folder)
    say(f"{folder}: a task that finds the page which answers a question; {name}.py says what to change first")
    say("run:")
    for command in made.commands(folder):
        say(f"  {command}")


def name_fault(name: str) -> str:
    """Return why a task cannot have this name; empty if it can."""
    if not _WORD.fullmatch(name) or len(name) > MAX_NAME:
        return f"expected a word of at most {MAX_NAME} letters, digits and underscores that begins with a letter"
    if keyword.iskeyword(name) or keyword.iskeyword(class_name(name)):
        return "it is a keyword of Python; choose another name"
    for kind in ("builder", "reader"):
        if is_installed(kind, name):
            return f"a {kind} of this name is installed (`mmlongbench list`); choose another name"
    if name in sys.stdlib_module_names or _is_module(name):
        return f"Python has a module of this name, which {name}.py would hide; choose another name"
    if name == "conftest" or name.startswith("test_"):
        return "pytest would take it for a file of tests; choose another name"
    return ""


def class_name(name: str) -> str:
    """Return the name of the class of a task.

    >>> class_name("dated_pages")
    'DatedPages'
    """
    return "".join(f"{part[:1].upper()}{part[1:]}" for part in name.split("_"))


def _is_module(name: str) -> bool:
    """Return whether a module of this name can be imported. A folder without Python files is no module."""
    if name in sys.modules:
        return True
    spec = find_spec(name)
    return spec is not None and spec.origin is not None


@dataclass(frozen=True, slots=True)
class NewTask:
    """A folder to write."""

    name: str
    """The name of the task, of its files, and of its dataset."""
    is_package: bool
    """Whether the folder is a package to install."""

    def write(self, folder: Path) -> None:
        """Write the folder, which appears complete or not at all."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=folder.parent) as temporary:
            whole = Path(temporary) / "whole"
            for name, data in self.contents():
                path = whole / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            if os.path.lexists(folder):  # made by another process in the meantime
                raise click.UsageError(f"{folder} exists already; give another folder with --out, or another name")
            whole.rename(folder)

    def contents(self) -> Iterator[tuple[PurePosixPath, bytes]]:
        """Yield the path of each file in the folder, and its bytes."""
        values = self.values()
        for path, file in _files(files("mmlongbench.cli") / "task_template", PurePosixPath()):
            if path.name == _PACKAGE and not self.is_package:
                continue
            if path.suffix != ".txt":
                yield path, file.read_bytes()
                continue
            text = Template(file.read_text("utf-8")).substitute(values)
            yield self.renamed(path.with_suffix("")), text.encode()

    def renamed(self, path: PurePosixPath) -> PurePosixPath:
        """Return the path of a file of the folder, given that of its template without `.txt`."""
        names = {
            "task.py": f"{self.name}.py",
            "manifest.yaml": f"{self.name}.yaml",
            "test_task.py": f"test_{self.name}.py",
        }
        return path.with_name(names.get(path.name, path.name))

    def values(self) -> Mapping[str, str]:
        """Return the values of the slots of the templates."""
        package = "| `pyproject.toml` | makes a package of it; its builder has the name of the task |\n"
        install = "\nInstall it first; then `mmlongbench list` shows its builder:\n\n```sh\npip install -e .\n```\n"
        return {
            "name": self.name,
            "class_name": class_name(self.name),
            "yaml_name": self.yaml_name,
            "builder": self.yaml_name if self.is_package else f"{self.name}.py:{class_name(self.name)}",
            "distribution": f"mmlongbench-{self.name.replace('_', '-').strip('-')}",
            "package_row": package if self.is_package else "",
            "install": install if self.is_package else "",
            "task_option": self.task_option,
        }

    @property
    def yaml_name(self) -> str:
        """The name in YAML, where words such as `yes` need quotation marks."""
        import yaml

        return self.name if isinstance(yaml.safe_load(self.name), str) else json.dumps(self.name)

    @property
    def task_option(self) -> str:
        """The option that commands need which are given a release; an installed task needs none."""
        return "" if self.is_package else f" --task {self.name}.py"

    def commands(self, folder: Path) -> list[str]:
        """Return the commands to run next."""
        return [
            f"cd {shlex.quote(str(folder))}",
            *(["pip install -e ."] if self.is_package else []),
            f"mmlongbench build {self.name}.yaml --out release",
            f"mmlongbench audit release{self.task_option}",
            f"mmlongbench check {self.name}.yaml",
            "pytest",
        ]


def _files(folder: Traversable, at: PurePosixPath) -> Iterator[tuple[PurePosixPath, Traversable]]:
    """Yield the files below a folder of a package, each with its path in the folder, sorted."""
    for each in sorted(folder.iterdir(), key=lambda found: found.name):
        if each.is_dir():
            yield from _files(each, at / each.name)
        else:
            yield at / each.name, each

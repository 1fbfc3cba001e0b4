"""Task files: a manifest may name a builder or a reader by a Python file beside it, such as `fables.py:Fables`.

The code of such a file runs only if a user names the file, in a manifest or on the command line. A release that names
a task file never makes its code run. The name of the module has the SHA-256 of the file, so every process of a build
runs the same bytes.
"""

import hashlib
import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from mmlongbench.errors import ManifestError, PluginError, ReleaseError, nearest
from mmlongbench.io.files import read_regular, write_whole

MAX_BYTES = 1024 * 1024  # the maximum size of a task file in bytes
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A class in a file, as a manifest names it."""

    path: Path
    name: str

    @property
    def shown(self) -> str:
        """The name without folders, as messages and locks have it."""
        return f"{self.path.name}:{self.name}"

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file; raises what `read` raises."""
        return hashlib.sha256(self.read()).hexdigest()

    def read(self) -> bytes:
        """Return the bytes of the file.

        Raises:
            PluginError: the file cannot be read, or is not the one that an unfinished build has kept.

        """
        try:
            data = read_regular(self.path, MAX_BYTES)
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise PluginError(f"{self.path}: expected a task file that can be read, found: {said}") from error
        kept = self.path.parent.name
        if _SHA256.fullmatch(kept) and hashlib.sha256(data).hexdigest() != kept:
            raise PluginError(f"{self.path}: was changed after the build kept it; remove the folder and build again")
        return data


def task_file(name: str) -> TaskFile | None:
    """Return the file and the class that a builder's or reader's name gives; None for the name of an installed plug-in.

    >>> task_file("tasks/fables.py:Fables")
    TaskFile(path=PosixPath('tasks/fables.py'), name='Fables')
    >>> task_file("docvqa") is None
    True
    """
    path, mark, kind = name.partition(".py:")  # the name of a metric may have further colons
    return TaskFile(Path(f"{path}.py"), kind) if mark else None


def task_files_of(builder: str, reader: str) -> list[TaskFile]:
    """Return the task files of a dataset, each once."""
    return list(dict.fromkeys(file for name in (builder, reader) if (file := task_file(name))))


def portable_name(name: str) -> str:
    """Return the name of a plug-in without the folder of a task file."""
    file = task_file(name)
    return file.shown if file else name


def root_task_files(dataset: dict[str, Any], manifest: Path) -> None:
    """Replace the names of task files in a dataset by absolute ones; they are relative to the manifest's folder.

    Raises:
        ManifestError: a file does not exist, or lies outside the folder when all links are followed.

    """
    folder = manifest.parent.resolve()
    for key in ("builder", "reader"):
        value = dataset.get(key)
        file = task_file(value) if isinstance(value, str) else None
        if file is None:
            continue
        where, path = f"{manifest}: {key}: ", folder / file.path
        try:
            is_there = path.is_file()
        except (OSError, ValueError) as error:  # such as a name that is too long
            raise ManifestError(f"{where}{str(file.path)!r:.80} cannot be looked for: {error}") from error
        if not is_there:
            hint = nearest(file.path.name, (other.name for other in folder.glob("*.py")))
            raise ManifestError(f"{where}there is no file {file.path} beside the manifest{hint}")
        if not path.resolve().is_relative_to(folder):
            todo = "copy the file there, or install it as a package"
            raise ManifestError(f"{where}{file.path} leads out of the manifest's folder; {todo}")
        dataset[key] = f"{path.resolve()}:{file.name}"


def keep_task_file(name: str, folder: Path) -> str:
    """Copy a task file below the folder of a build, and return the name of the copy, so that all processes of the build
    run the same bytes. The name of an installed plug-in is returned unchanged.
    """
    file = task_file(name)
    if file is None:
        return name
    data = file.read()
    kept = folder / hashlib.sha256(data).hexdigest() / file.path.name
    if not kept.is_file():
        write_whole(kept, [data])
    return f"{kept}:{file.name}"


def load_class(file: TaskFile) -> object:
    """Return the class of a task file; its code runs once for each content.

    Raises:
        PluginError: the path is relative, the file cannot be run, or has no such class.

    """
    if not file.path.is_absolute():
        raise PluginError(f"{file.shown}: a task file is found beside its manifest; give a manifest's path")
    data = file.read()
    name = f"mmlongbench_task_{hashlib.sha256(data).hexdigest()[:16]}"
    if name not in sys.modules:
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = str(file.path)
        try:
            exec(compile(data, str(file.path), "exec"), vars(module))
        except (Exception, SystemExit) as error:  # a task file may fail in any way; the cause is kept
            sys.modules.pop(name, None)
            said = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == str(file.path)]
            line = f" ({file.path.name}, line {lines[-1]})" if lines else ""  # the message of a SyntaxError has it
            todo = ""
            if isinstance(error, ImportError) and (file.path.parent / f"{error.name}.py").is_file():
                todo = (
                    "; a task file is one file: put the code of the other into it, or make a package "
                    "(`mmlongbench new task NAME --package`)"
                )
            raise PluginError(f"{file.path.name} cannot be run: {said}{line}{todo}") from error
    members = vars(sys.modules[name])
    if members.get(file.name) is None:
        classes = [key for key, value in members.items() if isinstance(value, type)]
        known = f"it has {', '.join(classes) or 'none'}{nearest(file.name, classes)}"
        raise PluginError(f"{file.path.name} has no class {file.name!r}; {known}")
    return members[file.name]


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The task files that a user gives for a release whose tasks are no installed plug-ins."""

    paths: tuple[Path, ...] = ()
    """The Python files."""
    is_change_allowed: bool = False
    """Whether a file may differ from the one that the release was built with."""

    def named(self, kind: str, name: str, recorded: str) -> str:
        """Return the absolute name of a plug-in of a release, which the lock names as `fables.py:Fables`. The name of
        an installed plug-in is returned unchanged. `recorded` is the SHA-256 of the file in the lock; empty if the lock
        has none.

        Raises:
            PluginError: no such file was given, because a release never makes code run by itself.
            ReleaseError: the file differs from the one that the release was built with.

        """
        file = task_file(name)
        if file is None:
            return name
        given = [path for path in self.paths if path.name == file.path.name]
        same = [path for path in given if TaskFile(path, file.name).sha256 == recorded]
        if not given:
            raise PluginError(
                f"{kind} {file.shown!r} is a task file, and a release never makes its code run by itself; if you "
                f"trust the file, give it with --task {file.path.name}"
            )
        if not same and not self.is_change_allowed:
            raise ReleaseError(
                f"--task {given[0]}: is not the file that the release was built with (SHA-256 {recorded[:12] or 'none'}"
                "…); give that file, or add --allow-changed-task"
            )
        return f"{(same or given)[0].resolve()}:{file.name}"


NO_TASK_FILES = TaskFiles()


def tasks_of(*names: str) -> TaskFiles:
    """Return the task files among the names of builders and readers in a manifest."""
    return TaskFiles(tuple(dict.fromkeys(file.path for name in names if (file := task_file(name)))))


def recorded_code(data: Mapping[str, Any], kind: str) -> str:
    """Return the SHA-256 that a dataset of a lock has for the code of a plug-in; empty if it has none."""
    code = data.get("code")
    recorded = code.get(kind) if isinstance(code, dict) else None
    sha256 = recorded.get("sha256") if isinstance(recorded, dict) else None
    return sha256 if isinstance(sha256, str) else ""

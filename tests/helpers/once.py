"""What all processes of a test session share: made once, by whichever process needs it first."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` fills, once in a session; it is not to be changed.

    `make` is given the folder, which is empty. If it fails, the next process tries again. A name belongs to the module
    of `make`, so two modules may use the same name.
    """
    base = factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once"
    root.mkdir(exist_ok=True)
    own = f"{Path(make.__code__.co_filename).parent.name}-{make.__module__.rpartition('.')[2]}-{name}"
    folder, done = root / own, root / f"{own}.done"
    with FileLock(root / f"{own}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def linked(release: Path, to: Path) -> Path:
    """A copy of a release that a test may change; images are hard links, so they are replaced, never written into."""

    def copy(source: str, target: str) -> None:
        if "mmlb_image" in Path(source).parts:
            os.link(source, target)
        else:
            shutil.copy2(source, target)

    shutil.copytree(release, to, copy_function=copy)
    return to

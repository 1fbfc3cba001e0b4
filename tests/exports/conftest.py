"""Releases that tests of exports share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from exported import renamed
from hostile_release import spoil
from once import once

ODD = "a b#c%20d?é's"
"""The name of a folder with characters that mean something in URLs, patterns and shells."""


@pytest.fixture(scope="session")
def odd(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny release with odd names of images; not to be changed."""

    def make(folder: Path) -> None:
        renamed(finished, folder / "my release", "mmlongbench-doc/", f"{ODD}/")

    return once(tmp_path_factory, "odd", make) / "my release"


@pytest.fixture(scope="session")
def hostile(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six questions with hostile names, texts and answers; not to be changed."""
    return once(tmp_path_factory, "hostile", lambda folder: spoil(finished, folder / "release")) / "release"


@pytest.fixture
def without_bars() -> Iterator[None]:
    """The library of data sets shows no bars."""
    import datasets

    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()

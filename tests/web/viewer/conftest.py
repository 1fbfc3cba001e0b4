"""A release to look at, and a cache of its own for each module."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tiled import tiled


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the viewer keeps what it makes."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A release of small tasks with needles; not to be changed."""
    with tiled(tmp_path_factory.mktemp("tiles")) as release:
        yield release

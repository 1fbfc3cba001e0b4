"""What tests of builds share: a source to be changed, builds that stopped, and the release of another seed."""

import shutil
from pathlib import Path

import pytest
from halted import interrupted
from once import once
from tiny import build


@pytest.fixture
def own(source: Path, tmp_path: Path) -> Path:
    """The tiny source, to be changed."""
    return shutil.copytree(source, tmp_path / "source")


@pytest.fixture(scope="session")
def whole_but_lock(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of the tiny source whose shards are all done; not to be changed."""
    return once(tmp_path_factory, "tiny-stopped", lambda folder: interrupted(source, folder / "out")) / "out"


@pytest.fixture
def stopped(whole_but_lock: Path, tmp_path: Path) -> Path:
    """The same build in a folder of its own."""
    return shutil.copytree(whole_but_lock, tmp_path / "stopped")


@pytest.fixture(scope="session")
def only_prepared(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of the tiny source whose questions are chosen; not to be changed."""

    def prepare(folder: Path) -> None:
        assert build(source, folder / "out", "--stage", "prepare").code == 0

    return once(tmp_path_factory, "tiny-prepared", prepare) / "out"


@pytest.fixture
def prepared(only_prepared: Path, tmp_path: Path) -> Path:
    """The same build in a folder of its own."""
    return shutil.copytree(only_prepared, tmp_path / "prepared")


@pytest.fixture(scope="session")
def seed_7(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release of the tiny source with another seed; not to be changed."""

    def make(folder: Path) -> None:
        assert build(source, folder / "release", "--set", "seed=7").code == 0

    return once(tmp_path_factory, "tiny-seed-7", make) / "release"

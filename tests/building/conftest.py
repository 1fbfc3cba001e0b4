"""What tests of builds share: a source to be changed, and a build that was stopped just before its lock."""

import shutil
from pathlib import Path

import pytest
from halted import interrupted
from once import once


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

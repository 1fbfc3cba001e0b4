"""What all tests share: property tests that try the same examples everywhere."""

from pathlib import Path

import pytest
from hypothesis import settings
from tiny import command, draw_source

settings.register_profile("same everywhere", derandomize=True, deadline=None)
settings.load_profile("same everywhere")


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four tiny PDFs, their questions and a manifest; not to be changed."""
    folder = tmp_path_factory.mktemp("tiny") / "source"
    draw_source(folder)
    return folder


@pytest.fixture(scope="session")
def finished(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release of the tiny source; not to be changed."""
    folder = tmp_path_factory.mktemp("tiny") / "release"
    built = command("build", source / "tiny.yaml", "--out", folder)
    assert built.code == 0, built.err
    return folder

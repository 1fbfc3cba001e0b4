"""Releases that every target of `export` is tried on."""

from pathlib import Path

import pytest
from hostile_release import spoil

import mmlongbench as mm


@pytest.fixture(scope="session")
def hostile(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six questions with hostile names, texts and answers; not to be changed."""
    return spoil(finished, tmp_path_factory.mktemp("hostile") / "release")


@pytest.fixture(scope="session")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One question at six depths; not to be changed."""
    out = tmp_path_factory.mktemp("placed") / "release"
    mm.build("vh_single", out, overrides={"source": "sample"}, lengths=["1K"], limit=1)
    return out

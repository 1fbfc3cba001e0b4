"""Releases that tests of exports share."""

from pathlib import Path

import pytest
from exported import renamed
from hostile_release import spoil

import mmlongbench as mm
from mmlongbench.manifest.builtin_manifests import find_manifest
from mmlongbench.manifest.loading import load_manifest

MIXED = ("mmlongdoc", "text_mmlongdoc", "viquae", "vh_multi", "food101")
"""Pages, texts alone, six depths, three permutations, and a task with two public files."""
ODD = "a b#c%20d?é's"
"""The name of a folder with characters that mean something in URLs, patterns and shells."""


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two questions of five tasks at two lengths; not to be changed."""
    out = tmp_path_factory.mktemp("mixed") / "release"
    manifest = load_manifest(find_manifest("quickstart"))
    chosen = tuple(dataset for dataset in manifest.datasets if dataset.name in MIXED)
    mm.build(manifest.model_copy(update={"datasets": chosen}), out, limit=2)
    return out


@pytest.fixture(scope="session")
def odd(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny release with odd names of images; not to be changed."""
    return renamed(finished, tmp_path_factory.mktemp("odd") / "my release", "mmlongbench-doc/", f"{ODD}/")


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

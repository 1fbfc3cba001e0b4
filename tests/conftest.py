"""Fixtures of all tests. Property tests try the same examples on every machine, and test ids never differ."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

import pytest
from hypothesis import settings
from once import linked, once
from samples import FURTHER, Sources, build_samples, samples_of, unpacked_sample
from tiled import tiled
from tiny import command, draw_source

settings.register_profile("same everywhere", derandomize=True, deadline=None)
settings.load_profile("same everywhere")

LONGEST_ID = 80
"""Characters of a value that serves as the id of a test."""


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a value that is no short, plain text by its parameter; pytest numbers the names that are equal.

    Bytes may hold the time, and whoever runs the tests side by side must find the same ids in every process.
    """
    if isinstance(val, str):
        is_plain = val.isascii() and val.isprintable() and "\\" not in val
        return None if is_plain and 0 < len(val) <= LONGEST_ID else argname
    is_nameless = isinstance(val, FunctionType) and val.__name__ == "<lambda>"
    return argname if isinstance(val, bytes | re.Pattern) or is_nameless else None


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """A sync takes up to 20 ms, a build makes dozens, and only a power cut would tell; processes of tests do sync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four tiny PDFs, their questions and a manifest; not to be changed."""
    return once(tmp_path_factory, "tiny-source", lambda folder: draw_source(folder / "source")) / "source"


@pytest.fixture(scope="session")
def finished(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release of the tiny source; not to be changed."""

    def make(folder: Path) -> None:
        built = command("build", source / "tiny.yaml", "--out", folder / "release")
        assert built.code == 0, built.err

    return once(tmp_path_factory, "tiny-release", make) / "release"


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sources]:
    """The sources of a reader's sample by name, each unpacked once in a session; not to be changed."""
    return lambda reader: unpacked_sample(tmp_path_factory, reader)


@pytest.fixture(scope="session")
def families(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart: two questions of each of its datasets, of every family, at 8K and 16K; not to be changed."""
    quickstart = samples_of("quickstart")
    return once(tmp_path_factory, "families", lambda folder: build_samples(quickstart, sample, folder)) / "release"


@pytest.fixture(scope="session")
def two_tasks(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two questions of Food-101's and of MM-NIAH's samples at 8K; not to be changed."""
    whole = samples_of("quickstart")
    datasets = [each for each in whole["datasets"] if each["name"] in ("food101", "retrieval-text")]
    few = {"defaults": {**whole["defaults"], "lengths": ["8K"]}, "datasets": datasets}
    return once(tmp_path_factory, "two-tasks", lambda folder: build_samples(few, sample, folder)) / "release"


@pytest.fixture(scope="session")
def forms(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two questions of each sample that the quickstart does not have, at its lengths; not to be changed."""
    further = samples_of(*FURTHER)
    return once(tmp_path_factory, "forms", lambda folder: build_samples(further, sample, folder)) / "release"


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A release of small tasks with needles; not to be changed."""
    with tiled(tmp_path_factory) as release:
        yield release


@pytest.fixture
def copy(tiles: Path, tmp_path: Path) -> Path:
    """A copy of that release, to be changed."""
    return linked(tiles, tmp_path / "copy")

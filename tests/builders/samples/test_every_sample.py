"""Every built-in sample belongs to a reader, can be read by it, and is drawn with the same bytes each time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mmlongbench.building.locating import CORPUS
from mmlongbench.io.atomic import sha256_of
from mmlongbench.manifest.registry import installed, reader_type, sample_function

pytestmark = pytest.mark.slow

READERS = [plugin.name for plugin in installed("reader")]
DRAW_ALL = """
import sys, pathlib
from mmlongbench.manifest.registry import sample_function
for name in sys.argv[2:]:
    folder = pathlib.Path(sys.argv[1], name)
    folder.mkdir()
    sample_function(name)(folder)
"""


def digests(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256_of(path) for path in folder.rglob("*") if path.is_file()}


def test_every_reader_that_ships_has_a_sample_and_every_sample_a_reader() -> None:
    assert [plugin.name for plugin in installed("sample")] == READERS


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each sample, drawn by another process with another hash seed, in the opposite order."""
    folder = tmp_path_factory.mktemp("others")
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", DRAW_ALL, str(folder), *reversed(READERS)], check=True, env=environment)
    return folder


@pytest.mark.parametrize("name", READERS)
def test_a_sample_has_the_sources_of_its_reader_and_the_same_bytes_in_another_process(
    name: str, others: Path, tmp_path: Path
) -> None:
    drawn = sample_function(name)(tmp_path)
    reader = reader_type(name)
    assert {*reader.sources} <= drawn.keys() <= {*reader.sources, *reader.optional_sources, CORPUS}
    assert all(path.is_relative_to(tmp_path) for path in drawn.values())
    assert digests(tmp_path) == digests(others / name) != {}

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
DRAW = """
import sys, pathlib
from mmlongbench.manifest.registry import sample_function
sample_function(sys.argv[1])(pathlib.Path(sys.argv[2]))
"""


def digests(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256_of(path) for path in folder.rglob("*") if path.is_file()}


def test_every_reader_that_ships_has_a_sample_and_every_sample_a_reader() -> None:
    assert [plugin.name for plugin in installed("sample")] == READERS


@pytest.mark.parametrize("name", READERS)
def test_a_sample_has_the_sources_of_its_reader_and_the_same_bytes_in_another_process(
    name: str, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    drawn = sample_function(name)(one)
    reader = reader_type(name)
    assert {*reader.sources} <= drawn.keys() <= {*reader.sources, *reader.optional_sources, CORPUS}
    assert all(path.is_relative_to(one) for path in drawn.values())
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", DRAW, name, str(other)], check=True, env=environment)
    assert digests(one) == digests(other) != {}

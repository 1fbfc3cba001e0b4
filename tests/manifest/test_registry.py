"""Plug-ins by name: all built-in ones can be used, and a sample of another package is found in the same way."""

from pathlib import Path

import pytest

from mmlongbench.manifest.registry import GROUPS, Plugin, installed, sample_function

METADATA = "Metadata-Version: 2.1\nName: mmlongbench-moons\nVersion: 0.1\n"
POINTS = """
[mmlongbench.readers]
moon = builders.many_shot:ImageFolders
moons = builders.many_shot:ImageFolders
[mmlongbench.samples]
moon = moons:draw_one
moons = moons:draw_two
"""
MODULE = '''
from functools import partial

def draw(moons, folder):
    """Draw moons."""
    return {"train": folder, "test": folder / str(moons)}

draw_one = partial(draw, 1)
draw_two = partial(draw, 2)
'''


@pytest.mark.parametrize("kind", GROUPS)
def test_every_plugin_that_ships_can_be_used(kind: str) -> None:
    found = installed(kind)
    assert found
    assert not [plugin.problem for plugin in found if plugin.problem]


def test_one_function_can_be_the_sample_of_two_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "mmlongbench_moons-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "moons.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert sample_function("moon")(tmp_path)["test"] == tmp_path / "1"
    assert sample_function("moons")(tmp_path)["test"] == tmp_path / "2"
    found = [plugin for plugin in installed("sample") if plugin.origin == "mmlongbench-moons"]
    assert found == [Plugin("sample", name, "mmlongbench-moons", "Draw moons.") for name in ("moon", "moons")]

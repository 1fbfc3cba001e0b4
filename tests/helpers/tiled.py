"""A release of four small tasks with needles, built once a session from the tasks in `tests/task/lawful`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from once import once
from tiny import command

HERE = Path(__file__).parents[1] / "task/lawful"
TASKS = {"headed": "Headed", "blanks": "Blanks", "shown": "Shown", "inline": "InlineLines"}
"""The names of the datasets: pictures with heads, sentences inside passages, a prompt without an outline, and texts of
several lines."""


@contextmanager
def tiled(factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the release; its tasks are installed, as far as Python can tell, until the block ends."""

    def install(folder: Path) -> None:
        info = folder / "mmlongbench_tiled-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mmlongbench-tiled\nVersion: 0.1\n")
        builders = "".join(f"{name} = lawful:{task}\n" for name, task in TASKS.items())
        others = "[mmlongbench.readers]\ntiles = lawful:TileReader\n[mmlongbench.samples]\ntiles = lawful:draw_tiles\n"
        (info / "entry_points.txt").write_text(f"[mmlongbench.builders]\n{builders}{others}")

    def build(folder: Path) -> None:
        common = "reader: tiles, source: sample, lengths: [1K], admission_length: 1K"
        datasets = "".join(f"  - {{name: {name}, builder: {name}, {common}}}\n" for name in TASKS)
        (folder / "tiles.yaml").write_text(f"datasets:\n{datasets}", "utf-8")
        built = command("build", folder / "tiles.yaml", "--out", folder / "release", "-q")
        assert built.code == 0, built.err

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(once(factory, "tiles-installed", install)))
        patch.syspath_prepend(str(HERE))
        yield once(factory, "tiles", build) / "release"

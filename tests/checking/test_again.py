"""What the process that builds again is given: the same sources and packages, wherever it runs."""

import os
import site
import subprocess
import sys
from pathlib import Path

from mmlongbench.checking.again import ReleaseToRecheck, surroundings
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.model import DatasetSpec, Manifest


def test_paths_are_made_absolute(tmp_path: Path) -> None:
    spec = DatasetSpec(
        name="cars",
        builder="many_shot",
        reader="classified_tables",
        lengths=(8192,),
        source={"data": (LocalPath(Path("data")),)},
        corpus=Path("corpus"),
    )
    given = ReleaseToRecheck(manifest=Manifest(datasets=(spec,)), release=tmp_path, out=tmp_path / "again", sources={})
    dataset = given.manifest.datasets[0]
    assert dataset.source == {"data": (LocalPath(Path("data").absolute()),)}
    assert dataset.corpus == Path("corpus").absolute()


def test_packages_of_the_user_are_found_with_another_home(tmp_path: Path) -> None:
    given = surroundings(tmp_path)
    command = [sys.executable, "-c", "import os, site; print(os.environ['HOME']); print(site.getuserbase())"]
    found = subprocess.run(command, env=given, check=True, capture_output=True, text=True).stdout.splitlines()
    assert found == [str(tmp_path), site.getuserbase()]
    assert os.environ.get("HOME") != str(tmp_path)

"""A task in a real second package: it is installed, listed, built and audited."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import Ran, environment, in_one_process

pytestmark = pytest.mark.rare

HERE = Path(__file__).parent
MANIFEST = """
datasets:
  - {name: fables, builder: fables, reader: fables, source: sample, lengths: [2K, 4K], admission_length: 2K}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(HERE / "fables")], check=True)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the manifest and of the release."""
    made = tmp_path_factory.mktemp("fables")
    (made / "fables.yaml").write_text(MANIFEST)
    return made


@pytest.fixture(scope="module")
def ran(site: Path, folder: Path) -> list[Ran]:
    """What the list, a build and its audit printed."""
    build = ["build", str(folder / "fables.yaml"), "--out", str(folder / "out"), "--limit", "5", "--workers", "1"]
    audit = ["audit", str(folder / "out"), "--json"]
    return in_one_process(["list", "--json"], build, audit, env=environment(PYTHONPATH=site))


def test_it_is_listed_like_a_built_in_one(ran: list[Ran]) -> None:
    listed = json.loads(ran[0].out)["plugins"]
    assert {"builder", "reader", "sample"} == {plugin["kind"] for plugin in listed if plugin["name"] == "fables"}
    assert {plugin["origin"] for plugin in listed if plugin["name"] == "fables"} == {"mmlongbench-fables"}


def test_it_builds_six_depths_and_passes_the_audit(ran: list[Ran], folder: Path) -> None:
    _, built, audit = ran
    assert built.code == 0, built.err
    assert audit.code == 0, audit.err
    assert [json.loads(line)["examples"] for line in audit.out.splitlines()] == [30, 30]
    lines = (folder / "out/mmlb_data/fables/fables_K4_dep6.jsonl").read_text("utf-8").splitlines()
    first = [json.loads(line) for line in lines[:6]]
    assert [record["depth"] for record in first] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert [record["fables"][0]["title"] == record["title"] for record in first] == [True] + [False] * 5
    assert all(abs(record["depth"] - record["depth_achieved"]) < 0.05 for record in first)

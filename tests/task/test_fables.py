"""A task in a real second package: it is installed, listed, built and audited."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "mmlongbench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_it_is_listed_like_a_built_in_one(site: Path) -> None:
    listed = json.loads(run(site, "list", "--json").stdout)["plugins"]
    assert {"builder", "reader", "sample"} == {plugin["kind"] for plugin in listed if plugin["name"] == "fables"}
    assert {plugin["origin"] for plugin in listed if plugin["name"] == "fables"} == {"mmlongbench-fables"}


def test_it_builds_six_depths_and_passes_the_audit(site: Path, tmp_path: Path) -> None:
    (tmp_path / "fables.yaml").write_text(MANIFEST)
    built = run(site, "build", str(tmp_path / "fables.yaml"), "--out", str(tmp_path / "out"), "--limit", "5")
    assert built.returncode == 0, built.stderr
    audit = run(site, "audit", str(tmp_path / "out"), "--json")
    assert audit.returncode == 0, audit.stderr
    assert [json.loads(line)["examples"] for line in audit.stdout.splitlines()] == [30, 30]
    lines = (tmp_path / "out/mmlb_data/fables/fables_K4_dep6.jsonl").read_text("utf-8").splitlines()
    first = [json.loads(line) for line in lines[:6]]
    assert [record["depth"] for record in first] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert [record["fables"][0]["title"] == record["title"] for record in first] == [True] + [False] * 5
    assert all(abs(record["depth"] - record["depth_achieved"]) < 0.05 for record in first)

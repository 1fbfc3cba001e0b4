"""The built wheel works from another directory, and contains the right files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import in_one_process

pytestmark = pytest.mark.rare

ROOT = Path(__file__).parents[2]


def test_the_wheel_lists_and_builds_from_another_directory(tmp_path: Path) -> None:
    site = tmp_path / "site"
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(ROOT)], check=True)
    where = {**os.environ, "PYTHONPATH": str(site)}

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=where, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert run("-c", "import mmlongbench; print(mmlongbench.__file__)").startswith(str(site))
    (about,) = site.glob("mmlongbench-*.dist-info/METADATA")
    plain = [line for line in about.read_text("utf-8").splitlines() if line.startswith("Requires-Dist: rank-bm25")]
    assert plain == ["Requires-Dist: rank-bm25>=0.2.2"], "of the core, not of an extra"
    listed = run("-m", "mmlongbench", "list")
    assert "BROKEN" not in listed
    assert "quickstart" in listed
    run("-m", "mmlongbench", "new", "task", "notes", "--package")
    assert {path.name for path in (tmp_path / "notes").iterdir()} >= {"notes.py", "pyproject.toml", "questions.csv"}
    assert [*(tmp_path / "notes/documents").glob("*.pdf")], "the sample is in the wheel"
    commands = []
    for name, *others in (("slidevqa",), ("viquae", "--set", "retrieval.reranker=null")):
        options = ["--set", "source=sample", *others, "--limit", "1", "--lengths", "8K", "--workers", "1"]
        commands.append(["build", name, *options, "--out", name])
        commands.append(["audit", name, "--html", f"{name}.html"])
    ran = in_one_process(*commands, env=where, cwd=tmp_path)
    assert [each.code for each in ran] == [0] * 4, ran
    for name in ("slidevqa", "viquae"):
        assert (tmp_path / f"{name}.html").read_text("utf-8").endswith("</html>\n"), "templates are in the wheel"

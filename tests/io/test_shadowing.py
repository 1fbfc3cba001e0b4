"""A folder or file that hides one of our packages is named, with what to do."""

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import environment

from mmlongbench.io.shadowing import shadowed

ROOT = Path(__file__).parents[2]
COMMAND = "from mmlongbench.cli import main; main()"


def ran(hiding: Path, *code: str) -> subprocess.CompletedProcess[str]:
    """A program that finds what is in a folder before our packages."""
    script = "\n".join((f"import sys; sys.path[:0] = [{str(hiding)!r}, {str(ROOT)!r}]", *code))
    words = [sys.executable, "-c", script, "list"]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment(PYTHONPATH="/other"))


@pytest.mark.parametrize(
    ("package", "name", "is_in_path", "remedy"),
    [
        ("tokenization", "tokenization/__init__.py", False, "run the command in another folder than {0}"),
        ("builders", "builders.py", True, "take {0} out of PYTHONPATH"),
    ],
)
def test_what_hides_a_package_is_named(
    package: str, name: str, is_in_path: bool, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"/other:{tmp_path}" if is_in_path else "/other")
    hiding = tmp_path / name.partition("/")[0]
    said = f"{hiding} hides the package {package!r} of mmlongbench ({ROOT / package}), because Python finds it first; "
    assert shadowed() == f"{said}rename {hiding.name}, or {remedy.format(tmp_path)}"


def test_a_folder_that_is_no_package_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "builders").mkdir()
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.syspath_prepend(tmp_path)
    assert shadowed() == ""


def test_a_command_says_it_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "tokenization.py").touch()
    done = ran(tmp_path, COMMAND)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"error: {tmp_path / 'tokenization.py'} hides the package 'tokenization'")


def test_python_users_read_it_beside_the_broken_plug_in(tmp_path: Path) -> None:
    """Another error of a plug-in names no folder."""
    (tmp_path / "builders").mkdir()
    (tmp_path / "builders/__init__.py").write_text("")
    code = (
        "from mmlongbench.manifest.plugins import builder_type",
        "for name in ('docvqa', 'docva'):",
        "    try: builder_type(name)",
        "    except Exception as error: print(error)",
    )
    broken, unknown = ran(tmp_path, *code).stdout.splitlines()
    assert "No module named 'builders.docvqa'" in broken
    assert f"; {tmp_path / 'builders'} hides the package 'builders'" in broken
    assert unknown.startswith("no builder 'docva' is installed")

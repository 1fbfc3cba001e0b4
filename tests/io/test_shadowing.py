"""A folder or file that hides one of our packages is named, with what to do."""

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import environment

ROOT = Path(__file__).parents[2]
COMMAND = "from mmlongbench.cli import main; main()"


def ran(hiding: Path, *code: str, path: str = "/other") -> subprocess.CompletedProcess[str]:
    """A program that finds what is in a folder before our packages."""
    script = "\n".join((f"import sys; sys.path[:0] = [{str(hiding)!r}, {str(ROOT)!r}]", *code))
    words = [sys.executable, "-c", script, "list"]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment(PYTHONPATH=path))


@pytest.mark.parametrize(
    ("package", "name", "path", "remedy"),
    [
        ("tokenization", "tokenization/__init__.py", "/other", "run the command in another folder than {0}"),
        ("tokenization", "tokenization.py", "/other:{0}", "take {0} out of PYTHONPATH"),
    ],
)
def test_what_hides_a_package_is_named_in_one_line(
    package: str, name: str, path: str, remedy: str, tmp_path: Path
) -> None:
    hiding = tmp_path / name.partition("/")[0]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    done = ran(tmp_path, COMMAND, path=path.format(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    said = f"{hiding} hides the package {package!r} of mmlongbench ({ROOT / package}), because Python finds it first; "
    assert done.stderr == f"error: {said}rename {hiding.name}, or {remedy.format(tmp_path)}\n"


def test_a_folder_that_is_no_package_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "tokenization").mkdir()
    done = ran(tmp_path, COMMAND)
    assert (done.returncode, done.stderr) == (0, "")


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

"""A folder or file that hides one of our packages is named, with what to do."""

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import environment

ROOT = Path(__file__).parents[2]
COMMAND = "from mmlongbench.cli import main; main()"


def ran(hiding: Path, *code: str, python_path: str = "") -> subprocess.CompletedProcess[str]:
    """A program that finds what is in a folder before our packages."""
    script = "\n".join((f"import sys; sys.path[:0] = [{str(hiding)!r}, {str(ROOT)!r}]", *code))
    given = environment(PYTHONPATH=python_path)
    return subprocess.run(
        [sys.executable, "-c", script, "list"], capture_output=True, text=True, check=False, env=given
    )


@pytest.mark.parametrize(
    ("package", "is_folder", "is_in_path"), [("tokenization", True, False), ("builders", False, True)]
)
def test_what_hides_a_package_is_named_in_one_line(
    package: str, is_folder: bool, is_in_path: bool, tmp_path: Path
) -> None:
    hiding = tmp_path / package if is_folder else tmp_path / f"{package}.py"
    if is_folder:
        hiding.mkdir()
    (hiding / "__init__.py" if is_folder else hiding).write_text("")
    done = ran(tmp_path, COMMAND, python_path=f"/other:{tmp_path}" if is_in_path else "/other")
    remedy = (
        f"take {tmp_path} out of PYTHONPATH" if is_in_path else f"run the command in another folder than {tmp_path}"
    )
    said = f"{hiding} hides the package {package!r} of mmlongbench ({ROOT / package}), because Python finds it first; "
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {said}rename {hiding.name}, or {remedy}\n"


def test_a_folder_that_is_no_package_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "builders").mkdir()
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

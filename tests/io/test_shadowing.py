"""A folder or file that hides one of our packages is named, with what to do."""

import subprocess
import sys
from pathlib import Path

import pytest

from mmlongbench.errors import PluginError
from mmlongbench.io.shadowing import PACKAGES, shadowed
from mmlongbench.manifest.registry import builder_type

ROOT = Path(__file__).parents[2]


def test_nothing_is_hidden_here() -> None:
    assert shadowed() == ""


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("is_folder", [True, False])
def test_what_hides_a_package_is_named(
    package: str, is_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hiding = tmp_path / package if is_folder else tmp_path / f"{package}.py"
    if is_folder:
        hiding.mkdir()
    (hiding / "__init__.py" if is_folder else hiding).write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    said = f"{hiding} hides the package {package!r} of mmlongbench ({ROOT / package}), because Python finds it first; "
    assert shadowed() == f"{said}rename {hiding.name}, or run the command in another folder than {tmp_path}"
    monkeypatch.setenv("PYTHONPATH", f"/other:{tmp_path}")
    assert shadowed() == f"{said}rename {hiding.name}, or take {tmp_path} out of PYTHONPATH"


def test_a_folder_that_is_no_package_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "builders").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert shadowed() == ""


@pytest.mark.parametrize("package", PACKAGES)
def test_the_command_line_says_so_in_one_line(package: str, tmp_path: Path) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; from mmlongbench.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script, "list"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"error: {tmp_path / package} hides the package {package!r} of mmlongbench")


def test_python_users_read_it_beside_the_broken_plug_in(tmp_path: Path) -> None:
    (tmp_path / "builders").mkdir()
    (tmp_path / "builders/__init__.py").write_text("")
    script = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]\n"
        "from mmlongbench.manifest.registry import builder_type\n"
        "try: builder_type('docvqa')\nexcept Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "No module named 'builders.docvqa'" in done.stdout
    assert f"; {tmp_path / 'builders'} hides the package 'builders'" in done.stdout


def test_another_error_of_a_plug_in_names_no_folder() -> None:
    with pytest.raises(PluginError, match=r"^no builder 'docva' is installed"):
        builder_type("docva")

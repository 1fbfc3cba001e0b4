"""Task files: which files a manifest may name, when their code runs, and what the lock says of it."""

import json
import sys
from pathlib import Path

import pytest

from mmlongbench.errors import ManifestError, PluginError, ReleaseError
from mmlongbench.manifest.code import package_sha256, plugin_code
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.manifest.registry import builder_type, described, reader_type
from mmlongbench.manifest.task_files import TaskFiles, keep_task_file, task_file

TASK = '''
import mmlongbench.task as mt

class Line(mt.Row):
    text: str

class Lines(mt.Task[Line]):
    """Lines of a text."""
    metric = "sub_em"
    def draft(self, row, sources, draws): ...
    def record(self, example): ...
    def prompt(self, record): ...
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a task file."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/lines.py").write_text(TASK)
    return tmp_path / "tasks"


def named(folder: Path, name: str) -> str:
    """The name of the builder in a manifest of the folder, as it is loaded."""
    (folder / "m.yaml").write_text(json.dumps({"datasets": [{"name": "x", "builder": name, "source": {"rows": "r"}}]}))
    return load_manifest(folder / "m.yaml").datasets[0].builder


def test_a_file_is_found_beside_the_manifest_and_gives_a_builder_and_its_reader(folder: Path) -> None:
    name = named(folder, "lines.py:Lines")
    assert name == f"{folder.resolve()}/lines.py:Lines"
    assert builder_type(name).__doc__ == reader_type(name).__doc__ == "Lines of a text."
    assert (reader_type(name).sources, reader_type(name).image_folder) == (("rows",), "lines")
    assert described("builder", name) == "builder 'lines.py:Lines'"


def test_the_dataset_reads_itself_unless_a_reader_is_given(folder: Path) -> None:
    named(folder, "lines.py:Lines")
    assert load_manifest(folder / "m.yaml").datasets[0].reader == f"{folder.resolve()}/lines.py:Lines"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("line.py:Lines", "builder: there is no file line.py beside the manifest; did you mean 'lines.py'?"),
        ("../outside.py:Lines", "builder: ../outside.py leads out of the manifest's folder; copy the file there"),
        ("link.py:Lines", "builder: link.py leads out of the manifest's folder"),
        ("inner/lines.py:Lines", "builder: inner/lines.py leads out of the manifest's folder"),
        ("loop.py:Lines", "builder: there is no file loop.py beside the manifest"),
        ("folder.py:Lines", "builder: there is no file folder.py beside the manifest"),
    ],
)
def test_a_file_elsewhere_is_refused_and_never_run(name: str, said: str, folder: Path) -> None:
    (folder.parent / "outside.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    (folder.parent / "other").mkdir()
    (folder.parent / "other/lines.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    (folder / "link.py").symlink_to(folder.parent / "outside.py")
    (folder / "inner").symlink_to(folder.parent / "other")
    (folder / "loop.py").symlink_to(folder / "loop.py")
    (folder / "folder.py").mkdir()
    with pytest.raises(ManifestError) as refused:
        named(folder, name)
    assert said in str(refused.value)
    assert not (folder / "ran").exists()


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "same.py").symlink_to(folder / "lines.py")
    assert named(folder, "same.py:Lines") == f"{folder.resolve()}/lines.py:Lines"


def test_loading_a_manifest_runs_nothing(folder: Path) -> None:
    (folder / "lines.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    named(folder, "lines.py:Lines")
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def (", "lines.py cannot be run: SyntaxError: invalid syntax (lines.py, line 1)"),
        ("x = 1\nboo", "lines.py cannot be run: NameError: name 'boo' is not defined (lines.py, line 2)"),
        ("import sys\nsys.exit()", "lines.py cannot be run: SystemExit (lines.py, line 2)"),
        ("raise KeyError('a\\nb')", "lines.py cannot be run: KeyError: 'a\\nb' (lines.py, line 1)"),
        ("import os.nothing", "lines.py cannot be run: ModuleNotFoundError: No module named 'os.nothing'"),
        ("\0", "lines.py cannot be run: "),
        ("class Line: pass", "lines.py has no class 'Lines'; it has Line; did you mean 'Line'?"),
        ("", "lines.py has no class 'Lines'; it has none"),
        ("Lines = 5", "builder 'lines.py:Lines' is broken: 5 is not a subclass of mmlongbench.task.builder.Builder"),
        (TASK.replace('metric = "sub_em"', "pass"), "is broken: <class 'Lines'> lacks metric, which a builder needs"),
        (TASK.replace("def record", "def recrod"), "is broken: <class 'Lines'> lacks record, which a builder needs"),
        (TASK.replace("[Line]", ""), "is broken: <class 'Lines'> lacks row_type, which a builder needs"),
        (TASK.replace("text: str", "pass"), "'row_type' is Line, expected a subclass of mt.Row with the fields of a"),
        (TASK.replace('"sub_em"', "5"), "'metric' is 5, expected the name of a metric"),
        (TASK.replace("metric =", "files = 'x.jsonl'; metric ="), "'files' is 'x.jsonl', expected a path with {name}"),
        (TASK.replace("metric =", "placements = (0, 1); metric ="), "'placements' is (0, 1), expected mt.Placements("),
        (
            TASK.replace("metric =", "sources = ('rows',); metric ="),
            "'sources' is ('rows',), expected the forms of the",
        ),
        (
            TASK.replace("metric =", "sources = {'a': mt.Pdfs}; metric ="),
            "'sources' needs exactly one mt.Table, and at",
        ),
        (TASK.replace("metric =", "sources = {'a': mt.Table, 'b': mt.Table}; metric ="), "'sources' needs exactly one"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(code: str, said: str, folder: Path) -> None:
    (folder / "lines.py").write_text(code)
    with pytest.raises(PluginError) as refused:
        builder_type(named(folder, "lines.py:Lines"))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "code", ["import beside", "from beside import x", "from . import beside", "def f():\n    import beside.inner"]
)
def test_a_file_that_imports_its_neighbour_is_refused(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "beside.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    (folder / "lines.py").write_text(f"{code}\n{TASK}")
    for path in ([], [str(folder)]):  # with and without the folder among those of Python
        monkeypatch.setattr(sys, "path", [*path, *sys.path])
        with pytest.raises(PluginError, match="which lies beside it: a task file is one file"):
            builder_type(named(folder, "lines.py:Lines"))
    assert not (folder / "ran").exists()


def test_a_neighbour_that_is_imported_by_its_name_at_run_time_is_found_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "besides.py").write_text("")
    (folder / "lines.py").write_text(f"import importlib\nimportlib.import_module('besides')\n{TASK}")
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(PluginError, match=r"lines\.py imports besides, which lies beside it"):
        builder_type(named(folder, "lines.py:Lines"))


def test_modules_of_python_itself_are_no_neighbours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "lines.py").write_text(f"import os, sys, time\n{TASK}")
    monkeypatch.chdir(folder)  # the origin of these modules is no file, but `frozen` or `built-in`
    assert builder_type(named(folder, "lines.py:Lines"))


def test_other_content_is_another_module_and_the_same_content_runs_once(folder: Path) -> None:
    name = named(folder, "lines.py:Lines")
    first = builder_type(name)
    (folder / "again").mkdir()
    (folder / "again/lines.py").write_text(TASK)
    assert builder_type(f"{folder}/again/lines.py:Lines") is first
    (folder / "lines.py").write_text(TASK + "\nX = 1\n")
    assert builder_type(name) is not first


def test_a_kept_copy_is_the_file_that_was_read_and_a_changed_copy_is_refused(folder: Path, tmp_path: Path) -> None:
    name = f"{folder}/lines.py:Lines"
    kept = keep_task_file(name, tmp_path / "code")
    found = task_file(kept)
    assert found is not None
    assert found.path.read_text() == TASK
    assert builder_type(kept) is builder_type(name)
    found.path.write_text(TASK + "# changed")
    with pytest.raises(PluginError, match="was changed after the build kept it"):
        builder_type(kept)
    assert keep_task_file("docvqa", tmp_path / "code") == "docvqa"


def test_a_relative_name_runs_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(PluginError, match="a task file is found beside its manifest"):
        builder_type("lines.py:Lines")


def test_a_release_gets_only_the_file_that_it_was_built_with(folder: Path) -> None:
    file = folder / "lines.py"
    sha256 = plugin_code("builder", f"{file}:Lines").sha256
    with pytest.raises(PluginError, match=r"if you trust the file, give it with --task lines\.py"):
        TaskFiles().named("builder", "lines.py:Lines", sha256)
    with pytest.raises(PluginError, match="is a task file"):
        TaskFiles().named("builder", f"{file}:Lines", sha256)  # a forged lock with a path
    assert TaskFiles((file,)).named("builder", "lines.py:Lines", sha256) == f"{file.resolve()}:Lines"
    with pytest.raises(ReleaseError, match="is not the file that the release was built with"):
        TaskFiles((file,)).named("builder", "lines.py:Lines", "0" * 64)
    assert (
        TaskFiles((file,), is_change_allowed=True).named("builder", "lines.py:Lines", "") == f"{file.resolve()}:Lines"
    )
    (folder / "other").mkdir()
    (folder / "other/lines.py").write_text("# another task")
    assert TaskFiles((folder / "other/lines.py", file)).named("builder", "lines.py:Lines", sha256).startswith(str(file))
    assert TaskFiles().named("builder", "docvqa", "") == "docvqa"


def test_the_code_of_the_engine_is_its_version_and_that_of_a_file_its_bytes(folder: Path) -> None:
    assert plugin_code("builder", "docvqa").model_dump() == {
        "name": "docvqa",
        "distribution": "mmlongbench",
        "version": "0.1.0",
        "sha256": "",
    }
    found = plugin_code("builder", f"{folder}/lines.py:Lines")
    assert (found.name, found.distribution, len(found.sha256)) == ("lines.py:Lines", "", 64)


def test_the_code_of_a_package_is_every_python_file_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "site/hashed_package/inner"
    inner.mkdir(parents=True)
    for path in (inner.parent / "__init__.py", inner / "__init__.py", inner / "task.py"):
        path.write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    seen = {package_sha256("hashed_package")}
    (inner / "data.json").write_text("{}")  # no code
    assert {package_sha256("hashed_package")} == seen
    (inner / "task.py").write_text("x = 1")
    seen.add(package_sha256("hashed_package"))
    (inner / "task.py").rename(inner / "other.py")
    seen.add(package_sha256("hashed_package"))
    assert len(seen) == 3
